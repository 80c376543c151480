"""What memory costs in a hop, and how good the step is that finds itself.

    python -m benchmarks.memory           about ten minutes
    python -m benchmarks.memory --quick   small sizes, few runs

Hops: `Saga` beside `Sgd` on the same problem and graph, in batches of the sizes that `simulate`
takes, turn by turn. Finito: calls of `simulate` on one core, with the walk Uniform. Steps: the
median of the hops after which ‖w − w*‖ stays below 1e-4 ‖w*‖, with the step that finds itself over
the best constant of a grid with ratios of √2. Fits: the processor time of a
`RandomWalkClassifier.fit`, with the drawing of its graph, that ends within 1e-6 of f*, over that of
scikit-learn's LogisticRegression(solver="saga") on the same objective, each with the fewest passes
over the rows of a grid with steps of a tenth.
"""

from __future__ import annotations

import time
import warnings
from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import Any

import networkx as nx
import numpy as np
from sklearn.exceptions import ConvergenceWarning
from sklearn.linear_model import LogisticRegression

import walklearn as wl
from benchmarks.hops import ONE_ROW, Size, make_setting, simulated
from benchmarks.measurement import Measurement, main
from benchmarks.race import Contestant, race
from benchmarks.same_work import advance, generators, streams_of
from walklearn.simulation.compiled_batches import LARGEST_BATCH
from walklearn.simulation.engines import COMPILED
from walklearn.simulation.simulate import MAX_BATCH_NUMBERS
from walklearn.visit import Setting

IN_GROUPS, ALONE = 2.0, 3.0  # targets: a hop of Finito over that of Sgd
WELL_MIXING, SLOW = 2.0, 3.0  # targets: hops over those of the best constant
SCIKIT_LEARNS = 3.0  # target: time of a fit over that of scikit-learn's
GAP, PENALTY, FEATURES = 1e-6, 1e-3, 20
PASSES = sorted({round(1.1**power) for power in range(50)})  # 1 to 107
CLOSE = 1e-4  # of ‖w*‖
GRID = 2.0 ** np.arange(-9.0, 4.1, 0.5)  # in units of 1 / max L_i


def contestant(setting: Setting, graph: wl.Graph, tokens: int) -> Contestant:
    """A batch of this update."""
    streams = streams_of(generators(tokens))
    batch = COMPILED[setting.update.compiled](setting, graph, streams)
    return Contestant(
        lambda hops: advance(batch, max(1, hops // tokens)), lambda: batch.iterations * tokens
    )


def hop_rows(size: Size, target: float, rounds: int) -> Iterator[Measurement]:
    setting, graph = make_setting(size)
    remembering = max(1, min(LARGEST_BATCH, MAX_BATCH_NUMBERS // size.nodes))
    found = race(
        {
            "Sgd": contestant(setting, graph, LARGEST_BATCH),
            "Saga": contestant(replace(setting, update=wl.updates.Saga()), graph, remembering),
            "Saga, given step": contestant(
                replace(setting, update=wl.updates.Saga(1e-4)), graph, remembering
            ),
        },
        size.hops,
        rounds,
    )
    note = f"Sgd {found['Sgd']:.0f} ns"
    for name, most in (("Saga", target), ("Saga, given step", None)):
        ratio = found[name] / found["Sgd"]
        what = f"a hop of {name} over Sgd's, {size}"
        yield Measurement(what, ratio, "times", most, note=note, own_time=found[name])


def finito_rows(size: Size, rounds: int) -> Iterator[Measurement]:
    setting, graph = make_setting(size)
    setting = replace(setting, walk=wl.walks.Uniform())
    updates: dict[str, Any] = {"Sgd": setting.update, "Finito": wl.updates.Finito()}
    for replicates, target in ((LARGEST_BATCH, IN_GROUPS), (1, ALONE)):
        found = race(
            {
                name: simulated(replace(setting, update=update), graph, replicates)
                for name, update in updates.items()
            },
            size.hops // 10,
            rounds,
        )
        what = f"a hop of Finito over Sgd's, {size}, replicates: {replicates}"
        note = f"Sgd {found['Sgd']:.0f} ns"
        ratio = found["Finito"] / found["Sgd"]
        yield Measurement(what, ratio, "times", target, note=note, own_time=found["Finito"])


def graphs(quick: bool) -> Iterator[tuple[str, wl.Graph, float, int]]:
    """A name, the graph, the target, and how many hops to allow."""
    yield "random", wl.graphs.erdos_renyi(100, 0.3, seed=1), WELL_MIXING, 60_000
    if quick:
        return
    yield "hubs", wl.graphs.barabasi_albert(100, 2, seed=1), WELL_MIXING, 200_000
    grid = nx.convert_node_labels_to_integers(nx.grid_2d_graph(10, 10))
    yield "grid", wl.graphs.as_graph(grid), WELL_MIXING, 200_000
    yield "ring of 101", wl.graphs.ring(101), SLOW, 1_000_000
    yield "barbell", wl.graphs.as_graph(nx.barbell_graph(40, 20)), SLOW, 1_000_000
    yield "lollipop", wl.graphs.as_graph(nx.lollipop_graph(50, 50)), SLOW, 1_000_000
    yield "star", wl.graphs.star(100), SLOW, 2_000_000


def problems(nodes: int) -> Iterator[tuple[str, wl.Problem]]:
    X, y = wl.datasets.two_gaussians(nodes, dimension=10, variance=10.0, seed=1)
    yield "logistic", wl.Problem(X, y, penalty=0.01, aggregate="mean")
    generator = np.random.default_rng(3)
    X = generator.standard_normal((nodes, 10)) * np.exp(generator.standard_normal((nodes, 1)))
    y = X @ generator.standard_normal(10) + 0.1 * generator.standard_normal(nodes)
    squared = wl.losses.Squared()
    yield "log-normal rows", wl.Problem(X, y, loss=squared, penalty=0.01, aggregate="mean")


def hops_needed(
    problem: wl.Problem, graph: wl.Graph, update: wl.updates.Update, most: int
) -> float:
    """The median of the hops after which w stays close; infinite where it does not get there."""
    run = wl.simulate(problem, graph, wl.walks.Uniform(laziness=0.1), update=update, steps=most,
                      replicates=7, seed=2, gaps=False, progress=False, records=400)  # fmt: skip
    far = np.nan_to_num(run.distance, nan=np.inf) > CLOSE * np.linalg.norm(problem.solution.model)
    after = run.records - np.argmax(far[:, ::-1], axis=1)  # one past the last that was far
    reached = [run.updates[k] if k < run.records else np.inf for k in after]
    return float(np.median(reached))


def step_rows(quick: bool) -> Iterator[Measurement]:
    for name, graph, target, most in graphs(quick):
        for kind, problem in problems(graph.node_count):
            yield step_row(problem, graph, most, quick)._replace(
                what=f"hops of Saga over the best constant's, {kind}, {name}", target=target
            )


def step_row(problem: wl.Problem, graph: wl.Graph, most: int, quick: bool) -> Measurement:
    largest, best, at = float(problem.smoothness_constants.max()), np.inf, 0.0
    for constant in GRID[12:17] if quick else GRID:
        allowed = int(min(most, 1.05 * best + 1000))
        needed = hops_needed(problem, graph, wl.updates.Saga(constant / largest), allowed)
        if needed < best:
            best, at = needed, constant
    found = hops_needed(problem, graph, wl.updates.Saga(), most)
    note = f"{found:,.0f} and {best:,.0f}, at {at:.3g} / max L"
    return Measurement("", found / best, "times", note=note)


def fewest_passes(fit: Callable[[int], Any], gap: Callable[[Any], float]) -> tuple[int, float]:
    """Over the rows, to come within GAP of f*, and the seconds of processor that they take."""
    low, high = 0, len(PASSES) - 1
    while low < high:
        middle = (low + high) // 2
        low, high = (low, middle) if gap(fit(PASSES[middle])) <= GAP else (middle + 1, high)
    seconds = []
    for _ in range(3):
        begun = time.process_time()
        fit(PASSES[low])
        seconds.append(time.process_time() - begun)
    return PASSES[low], min(seconds)


def fit_row(rows: int) -> Measurement:
    generator = np.random.default_rng(1)
    X = generator.standard_normal((rows, FEATURES))
    noise = 2.0 * generator.standard_normal(rows)
    y = (X @ generator.standard_normal(FEATURES) + noise > 0).astype(int)
    ours: dict[str, Any] = {"penalty": PENALTY, "standardise": False, "fit_intercept": False}
    theirs: dict[str, Any] = {"C": 1.0 / (PENALTY * rows), "fit_intercept": False, "tol": 0.0}
    problem, _ = wl.RandomWalkClassifier(graph="ring", **ours).prepare_problem(X, y)
    best = problem.solution.value

    def gap(model: Any) -> float:
        return float(problem.value(model.coef_[0]) - best)

    def walk(passes: int) -> Any:
        return wl.RandomWalkClassifier(steps=passes * rows, random_state=0, **ours).fit(X, y)

    def saga(passes: int) -> Any:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", ConvergenceWarning)  # tol=0 asks for all passes
            model = LogisticRegression(solver="saga", max_iter=passes, random_state=0, **theirs)
            return model.fit(X, y)

    walk(1)  # compiled before the clock runs
    (needed, seconds), (passes, of_theirs) = fewest_passes(walk, gap), fewest_passes(saga, gap)
    return Measurement(
        f"time of a fit over LogisticRegression(solver='saga') to f − f* ≤ 1e-6, {rows:,} rows",
        seconds / of_theirs, "times", SCIKIT_LEARNS,
        note=f"{needed} hops per node in {seconds:.3f} s, {passes} passes in {of_theirs:.3f} s",
    )  # fmt: skip


def timed(quick: bool) -> Iterator[Measurement]:
    """Rows that measure time; the others count hops, which takes most of the minutes."""
    for rows in (1000,) if quick else (1000, 10_000, 100_000):
        yield fit_row(rows)
    sizes = (
        ((ONE_ROW[0], 1.5),) if quick else ((ONE_ROW[0], 1.5), (ONE_ROW[1], 1.5), (ONE_ROW[5], 1.7))
    )
    for size, target in sizes:
        yield from hop_rows(size, target, rounds=2 if quick else 15)
    yield from finito_rows(ONE_ROW[0 if quick else 1], rounds=2 if quick else 15)


def measurements(quick: bool) -> Iterator[Measurement]:
    yield from timed(quick)
    yield from step_rows(quick)


if __name__ == "__main__":
    main(measurements, __doc__)
