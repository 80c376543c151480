"""Compare walks, updates and numbers of tokens on graphs and data that were not used for tuning.

    python -m benchmarks.walks           about a minute
    python -m benchmarks.walks --quick   three draws, fewer updates

All figures are medians of 9 draws of graph and data: 100 nodes, one row each of two Gaussians
(d = 10, variance 10), λ = 1, sum objective. Three comparisons:

- SGD after 20,000 updates, f − f*: `Uniform` over `OldestFirst`. Each has the c and q of
  γ_k = c / k^q that gave the least median on 4 other draws.
- Updates until ‖w − w*‖ ≤ 1e-6 ‖w*‖: `Saga` on `Uniform` over `Finito` on `OldestFirst`.
- Hop times until the same error of the worst token: one token of Finito over four.

A run that does not reach its error within the limit counts with the limit, and the note says so.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator

import numpy as np

import walklearn as wl
from benchmarks.measurement import Measurement, main

NODES, UPDATES, CLOSE = 100, 20_000, 1e-6
DRAWS, TUNING_DRAWS = 9, 4
CONSTANTS = 2.0 ** np.arange(-9, 4)  # in units of 1 / max L_i · √UPDATES
EXPONENTS = (0.51, 0.75, 0.95)
MIN_OF_SGD, MIN_OF_SAGA, MIN_OF_TOKENS = 10.0, 1 / 0.6, 1.8
LIMIT = 2_000_000  # updates of Saga, which needs the most on a star


def two_rings(seed: int) -> wl.Graph:
    """Return the union of two rings through all nodes, each in a random order."""
    orders = [np.random.default_rng([seed, each]).permutation(NODES) for each in (0, 1)]
    pairs = [np.stack([order, np.roll(order, 1)], axis=1) for order in orders]
    return wl.graphs.from_edges(np.concatenate(pairs), NODES)


GRAPHS: dict[str, Callable[[int], wl.Graph]] = {
    "ER": lambda seed: wl.graphs.erdos_renyi(NODES, 0.3, seed=seed),
    "two rings": two_rings,
    "ring": lambda _: wl.graphs.ring(NODES),
    "star": lambda _: wl.graphs.star(NODES),
    "Barabási-Albert": lambda seed: wl.graphs.barabasi_albert(NODES, 3, seed=seed),
}
OF_SGD = ("ER", "ring", "star", "Barabási-Albert")
OF_TOKENS = ("ER", "ring", "Barabási-Albert")


def instances(graph: str, first: int, count: int) -> list[tuple[wl.Problem, wl.Graph]]:
    """Return draws of data and graph, from seeds that begin at `first`."""
    seeds = range(first, first + count)
    rows = [wl.datasets.two_gaussians(NODES, dimension=10, variance=10.0, seed=s) for s in seeds]
    return [
        (wl.Problem(*each, penalty=1.0), GRAPHS[graph](seed))
        for each, seed in zip(rows, seeds, strict=True)
    ]


def tuned(walk: wl.Walk, graph: str, updates: int) -> wl.PowerStep:
    """Return the step with the least median of f − f* on the draws for tuning."""
    cases = instances(graph, 1000, TUNING_DRAWS)
    unit = np.sqrt(updates) / np.mean([problem.importance.max() for problem, _ in cases])
    steps = [
        wl.PowerStep(constant * unit * updates ** (q - 0.5), q)
        for q in EXPONENTS
        for constant in CONSTANTS
    ]
    return min(steps, key=lambda step: median_gap(walk, step, cases, updates))


def median_gap(
    walk: wl.Walk, step: wl.PowerStep, cases: list[tuple[wl.Problem, wl.Graph]], updates: int
) -> float:
    """Return the median of f − f* after the last update; infinite where a run diverges."""
    gaps = [
        wl.simulate(*case, walk, step_size=step, steps=updates, records=[updates], seed=number)
        for number, case in enumerate(cases)
    ]
    return float(np.median(np.nan_to_num([run.gap[0, -1] for run in gaps], nan=np.inf)))


def reached(run: wl.Trace, costs: np.ndarray, scale: float) -> float:
    """Return the cost from which the distance stays at CLOSE; the last cost if it does not."""
    late = np.flatnonzero(~(run.distance[0] <= CLOSE * scale))
    return float(costs[min(late[-1] + 1, len(costs) - 1)] if late.size else costs[0])


def costs_to_reach(
    walk: wl.Walk, update: wl.Update, graph: str, draws: int, limit: int, tokens: int = 1
) -> tuple[np.ndarray, np.ndarray]:
    """Return the updates and the hop times of each draw until the error is reached."""
    updates, times = [], []
    records = np.unique(np.geomspace(10, limit, 1200).astype(int))
    for number, (problem, network) in enumerate(instances(graph, 0, draws)):
        run = wl.simulate(
            problem, network, walk, update=update, steps=limit, records=records, seed=number,
            tokens=tokens, gaps=False,
        )  # fmt: skip
        scale = float(np.linalg.norm(problem.optimum()))
        updates.append(reached(run, run.updates, scale))
        times.append(reached(run, run.time[0], scale))
    return np.array(updates), np.array(times)


def measurements(quick: bool) -> Iterator[Measurement]:
    """Yield the rows."""
    draws, sgd_updates, limit = (3, 5_000, 200_000) if quick else (DRAWS, UPDATES, LIMIT)
    for graph in OF_SGD:
        gaps = []
        for walk in (wl.walks.OldestFirst(), wl.walks.Uniform()):
            step = tuned(walk, graph, sgd_updates)
            gaps.append(median_gap(walk, step, instances(graph, 0, draws), sgd_updates))
        yield Measurement(
            f"SGD, {graph}: f − f* of Uniform over OldestFirst", gaps[1] / gaps[0], "times",
            MIN_OF_SGD, at_least=True, note=f"{gaps[1]:.2g} and {gaps[0]:.2g}",
        )  # fmt: skip
    finito, oldest = wl.updates.Finito(), wl.walks.OldestFirst()
    for graph in GRAPHS:
        own, times = costs_to_reach(oldest, finito, graph, draws, limit // 40)
        saga, _ = costs_to_reach(wl.walks.Uniform(), wl.updates.Saga(), graph, draws, limit)
        note = f"{np.median(saga):,.0f}{' (the limit)' * bool(np.median(saga) == limit)}"
        yield Measurement(
            f"updates to 1e-6, {graph}: Saga on Uniform over Finito on OldestFirst",
            np.median(saga) / np.median(own), "times", MIN_OF_SAGA, at_least=True,
            note=f"{note} and {np.median(own):,.0f}",
        )  # fmt: skip
        if graph in OF_TOKENS:
            _, of_four = costs_to_reach(oldest, finito, graph, draws, limit // 40, tokens=4)
            yield Measurement(
                f"hop times to 1e-6, {graph}: one token over four",
                np.median(times) / np.median(of_four), "times", MIN_OF_TOKENS, at_least=True,
                note=f"{np.median(times):,.0f} and {np.median(of_four):,.0f}",
            )  # fmt: skip


if __name__ == "__main__":
    main(measurements, __doc__)
