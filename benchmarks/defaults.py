"""Walk and update of fits without privacy: the measurements behind the defaults.

    python -m benchmarks.defaults           some ten minutes
    python -m benchmarks.defaults --quick   the first settings only

For each setting the updates and the processor time until ‖w − w*‖ stays below 1e-6 ‖w*‖, for `Saga`
and `Finito` on three walks, each divided by those of `Saga` on `Uniform`. Rows are as an estimator
trains on them: columns of deviation 1 around 0 (or of maximum 1, not centred) and an intercept,
with the mean objective. None of the settings was used to choose the constants of an update. A run
that does not get there within the limit counts with the limit. The last rows are geometric means
over all settings.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

import numpy as np
import scipy.sparse
from sklearn.datasets import (
    load_breast_cancer,
    load_diabetes,
    load_digits,
    load_iris,
    load_wine,
    make_classification,
    make_friedman1,
    make_regression,
)

import walklearn as wl
from benchmarks.measurement import Measurement, main

CLOSE, LIMIT = 1e-6, 3_000_000
METHODS: dict[str, tuple[wl.Walk, wl.Update]] = {
    "Saga, Uniform": (wl.walks.Uniform(), wl.updates.Saga()),
    "Saga, Tour": (wl.walks.Tour(), wl.updates.Saga()),
    "Finito, Uniform": (wl.walks.Uniform(), wl.updates.Finito()),
    "Finito, OldestFirst": (wl.walks.OldestFirst(), wl.updates.Finito()),
    "Finito, Tour": (wl.walks.Tour(), wl.updates.Finito()),
}
BASE = "Saga, Uniform"


class Case(NamedTuple):
    """A setting: rows, loss, number and order of rows on nodes, graph and penalty."""

    name: str
    rows: Callable[[], tuple[Any, Any]]
    loss: wl.Loss
    nodes: int
    graph: Callable[[int], wl.Graph]
    penalty: float = 1e-3
    is_sorted: bool = False
    is_centred: bool = True


def pair(one: int, other: int) -> tuple[Any, Any]:
    """Return the images of two digits."""
    X, y = load_digits(return_X_y=True)
    chosen = np.isin(y, (one, other))
    return X[chosen], np.where(y[chosen] == one, 1.0, -1.0)


def signs(load: Callable[..., Any], first: int = 0) -> tuple[Any, Any]:
    """Return the rows of a data set, one class against the others."""
    X, y = load(return_X_y=True)
    return X, np.where(y == first, 1.0, -1.0)


def made(rows: int, columns: int, seed: int) -> tuple[Any, Any]:
    """Return rows of two classes that are not separable."""
    X, y = make_classification(
        rows, columns, n_informative=columns // 2, flip_y=0.1, random_state=seed
    )
    return X, np.where(y, 1.0, -1.0)


def text(rows: int, columns: int, seed: int) -> tuple[Any, Any]:
    """Return sparse rows, such as counts of words, of two classes."""
    rng = np.random.default_rng(seed)
    X = scipy.sparse.random(rows, columns, 0.01, format="csr", random_state=rng)
    score = X @ rng.standard_normal(columns) + 0.1 * rng.standard_normal(rows)
    return X, np.where(score > 0, 1.0, -1.0)


def one_hot(rows: int, columns: int, levels: int, seed: int) -> tuple[Any, Any]:
    """Return rows of encoded categories."""
    rng = np.random.default_rng(seed)
    X = np.eye(levels)[rng.integers(levels, size=(rows, columns))].reshape(rows, -1)
    score = X @ rng.standard_normal(X.shape[1]) + 0.3 * rng.standard_normal(rows)
    return X, np.where(score > 0, 1.0, -1.0)


def dense_text(rows: int, columns: int, seed: int) -> tuple[Any, Any]:
    """Return the rows of `text` as dense ones."""
    X, y = text(rows, columns, seed)
    return X.toarray(), y


def er(nodes: int) -> wl.Graph:
    return wl.graphs.erdos_renyi(nodes, min(1.0, 3 * np.log(nodes) / nodes), seed=nodes)


def attached(nodes: int) -> wl.Graph:
    return wl.graphs.barabasi_albert(nodes, 2, seed=nodes)


def near(nodes: int) -> wl.Graph:
    return wl.graphs.geometric(nodes, np.sqrt(4 * np.log(nodes) / nodes / np.pi), seed=nodes)


def cubic(nodes: int) -> wl.Graph:
    return wl.graphs.random_regular(nodes, 3, seed=nodes)


LOGISTIC, SQUARED, HUBER = wl.losses.Logistic(), wl.losses.Squared(), wl.losses.Huber(1.0)
CASES = (
    Case("cancer", lambda: signs(load_breast_cancer), LOGISTIC, 20, er),
    Case("cancer, a row per node", lambda: signs(load_breast_cancer), LOGISTIC, 569, er),
    Case("diabetes", lambda: load_diabetes(return_X_y=True), SQUARED, 30, attached),
    Case("iris", lambda: signs(load_iris, 1), LOGISTIC, 15, wl.graphs.ring),
    Case("wine", lambda: signs(load_wine, 1), LOGISTIC, 178, near, 1e-2),
    Case("digits 3/8, sorted", lambda: pair(3, 8), LOGISTIC, 50, cubic, 1e-2, True),
    Case("digits 4/9", lambda: pair(4, 9), LOGISTIC, 361, er, 1e-3),
    Case("digits 1/7, hinge", lambda: pair(1, 7), wl.losses.SquaredHinge(), 40, attached, 1e-2),
    Case("made 2000 × 20", lambda: made(2000, 20, 1), LOGISTIC, 100, er),
    Case("made 2000 × 20, ring", lambda: made(2000, 20, 2), LOGISTIC, 40, wl.graphs.ring),
    Case("made 5000 × 10, a row per node", lambda: made(5000, 10, 3), LOGISTIC, 5000, er),
    Case("made 1000 × 50, star", lambda: made(1000, 50, 4), LOGISTIC, 50, wl.graphs.star),
    Case("made 500 × 5, hinge", lambda: made(500, 5, 5), wl.losses.SquaredHinge(), 25, near),
    Case("friedman 600", lambda: make_friedman1(600, random_state=1), SQUARED, 60, near),
    Case("friedman, Huber", lambda: make_friedman1(400, random_state=2), HUBER, 400, er),
    Case("regression 1000 × 30", lambda: make_regression(1000, 30, noise=20.0, random_state=3),
         SQUARED, 100, cubic),
    Case("regression, sorted", lambda: make_regression(300, 10, noise=50.0, random_state=4),
         SQUARED, 30, wl.graphs.ring, 1e-2, True),
    Case("diabetes, Huber", lambda: load_diabetes(return_X_y=True), HUBER, 442, attached, 1e-2),
    Case("cancer, small λ", lambda: signs(load_breast_cancer), LOGISTIC, 50, near, 1e-4),
    Case("wine, sorted, path", lambda: signs(load_wine), LOGISTIC, 20,
         lambda nodes: wl.graphs.grid(1, nodes), 1e-2, True),
    Case("heavy rows", lambda: wl.datasets.heterogeneous_rows(300, dimension=8, seed=9), SQUARED,
         300, er, 1e-2),
    Case("two Gaussians, N = 20,000",
         lambda: wl.datasets.two_gaussians(20_000, dimension=10, seed=7), LOGISTIC, 20_000, er,
         1e-2),
    Case("one-hot 3000 × 60", lambda: one_hot(3000, 4, 15, 11), LOGISTIC, 60, er, is_centred=False),
    Case("one-hot 1000 × 100, a row per node", lambda: one_hot(1000, 5, 20, 12), LOGISTIC, 1000,
         attached, is_centred=False),
    Case("one-hot, squared", lambda: one_hot(2000, 3, 30, 13), SQUARED, 100, near,
         is_centred=False),
    Case("cancer, not centred", lambda: signs(load_breast_cancer), LOGISTIC, 30, attached,
         is_centred=False),
    Case("dense text 800 × 400", lambda: dense_text(800, 400, 14), LOGISTIC, 80, er,
         is_centred=False),
    Case("digits 2/5, not centred", lambda: pair(2, 5), LOGISTIC, 30, cubic, is_centred=False),
    Case("text 1000 × 2000", lambda: text(1000, 2000, 1), LOGISTIC, 50, er),
    Case("text 2000 × 500, a row per node", lambda: text(2000, 500, 2), LOGISTIC, 2000, er),
)  # fmt: skip


def instance(case: Case) -> tuple[wl.Problem, wl.Graph]:
    """Return the problem and the graph of a setting."""
    X, y = case.rows()
    y = np.asarray(y, dtype=float)
    if case.loss.takes == "number":
        y = (y - y.mean()) / y.std()
    if scipy.sparse.issparse(X):
        X = scipy.sparse.hstack([X, np.ones((len(y), 1))], format="csr")
    elif not case.is_centred:
        X = np.column_stack([X / np.maximum(abs(X).max(axis=0), 1e-9), np.ones(len(y))])
    else:
        deviations = X.std(axis=0)
        X = (X - X.mean(axis=0)) / np.where(deviations > 0, deviations, 1.0)
        X = np.column_stack([X, np.ones(len(y))])
    order = np.argsort(y, kind="stable")
    if not case.is_sorted:
        order = np.random.default_rng(5).permutation(len(y))
    owners = np.empty(len(y), dtype=int)
    owners[order] = np.arange(len(y)) * case.nodes // len(y)
    problem = wl.Problem(
        X, y, loss=case.loss, penalty=case.penalty, node_of_row=owners, nodes=case.nodes,
        aggregate="mean",
    )  # fmt: skip
    return problem, case.graph(case.nodes)


def cost(
    problem: wl.Problem, graph: wl.Graph, walk: wl.Walk, update: wl.Update
) -> tuple[int, float]:
    """Return the updates and the processor seconds until the error stays below CLOSE."""
    target, limit = CLOSE * float(np.linalg.norm(problem.optimum())), 20_000
    while True:
        limit = min(8 * limit, LIMIT)
        records = np.unique(np.geomspace(10, limit, 800).astype(int))
        options: dict[str, Any] = {"update": update, "seed": 3, "gaps": False, "cores": 1}
        run = wl.simulate(problem, graph, walk, steps=limit, records=records, **options)
        late = np.flatnonzero(~(run.distance[0] <= target))
        if late.size < len(records) or limit == LIMIT:
            break
    updates = int(records[min(late[-1] + 1, len(records) - 1)] if late.size else records[0])
    seconds = []
    for _ in range(3):
        start = time.process_time()
        wl.simulate(problem, graph, walk, steps=updates, records=1, **options)
        seconds.append(time.process_time() - start)
    return updates, min(seconds)


def measurements(quick: bool) -> Iterator[Measurement]:
    """Yield the rows."""
    ratios: dict[str, list[tuple[float, float]]] = {name: [] for name in METHODS}
    for case in CASES[:3] if quick else CASES:
        problem, graph = instance(case)
        costs = {name: cost(problem, graph, *method) for name, method in METHODS.items()}
        for name, (updates, seconds) in costs.items():
            ratios[name].append((updates / costs[BASE][0], seconds / costs[BASE][1]))
            yield Measurement(
                f"{case.name}: updates of {name}", ratios[name][-1][0], "times",
                note=f"{updates:,} updates, {seconds * 1e3:.3g} ms",
            )  # fmt: skip
    for name, pairs in ratios.items():
        of_updates, of_time = np.exp(np.log(pairs).mean(axis=0))
        yield Measurement(f"mean of all settings: updates of {name}", of_updates, "times")
        yield Measurement(f"mean of all settings: time of {name}", of_time, "times")


if __name__ == "__main__":
    main(measurements, __doc__)
