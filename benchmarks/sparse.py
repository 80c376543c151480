"""A walk against scikit-learn's SGD on the same rows, to the same loss; and what it holds.

    python -m benchmarks.sparse             # 2 to 4 minutes
    python -m benchmarks.sparse --quick     # a tenth of the rows, one repetition

The level to reach is 1 % above the loss (with its penalty) at which SGDClassifier stops by itself.
Both contestants are then given the fewest passes (SGDClassifier: 1, 2, 3, …) or updates (the walk:
1,000, times ⁴√2 again and again) that reach it, and `fit` is timed: the least process time of some
repetitions, in turns, with BLAS on one thread (its threads spin on after the work of a turn, into
the next contestant's). The update is the paper's, but over text it is Saga: a walk comes to some
rows more often than to others, which takes dozens of visits a row to even out without memory.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Iterable, Iterator
from typing import Any

import numpy as np
from scipy import sparse
from sklearn.linear_model import SGDClassifier
from threadpoolctl import threadpool_limits

from benchmarks.measurement import Measurement, main
from walklearn import Problem, RandomWalkClassifier

PENALTY = 1e-3
MAX_TRIES = 43
TARGET, MAX_BYTES = 3.0, 1.5

# (name, rows, features, density, values are 1, nodes (None: one per row), batch, update)
CASES: list[tuple[str, int, int, float, bool, int | None, int | None, str]] = [
    ("dense, 100 nodes", 32_000, 123, 1.0, False, 100, None, "sgd"),
    ("dense, 100 nodes, batch 32", 32_000, 123, 1.0, False, 100, 32, "sgd"),
    ("like a9a, a row per node", 32_000, 123, 0.11, True, None, None, "sgd"),
    ("like a9a, 100 nodes, batch 32", 32_000, 123, 0.11, True, 100, 32, "sgd"),
    ("like text, a row per node", 20_000, 50_000, 0.001, False, None, None, "saga"),
]


def rows_of(count: int, features: int, density: float, ones: bool) -> tuple[Any, Any]:
    """Rows with a linear rule and noise; dense where the density is 1."""
    generator = np.random.default_rng(0)
    if density == 1.0:
        X: Any = generator.standard_normal((count, features))
    else:
        X = sparse.random_array((count, features), density=density, format="csr", rng=generator)
        X.data = np.ones_like(X.data) if ones else 0.1 + X.data
    scores = X @ generator.standard_normal(features)
    noise = 0.5 * scores.std() * generator.standard_normal(count)
    return X, np.where(scores + noise > 0, 1, -1)


def loss_of(model: Any, X: Any, y: Any) -> float:
    """The mean logistic loss and the penalty on all weights but the intercept."""
    margins = y * model.decision_function(X)
    return float(np.logaddexp(0.0, -margins).mean() + 0.5 * PENALTY * (model.coef_**2).sum())


def fewest(
    make: Callable[[int], Any], amounts: Iterable[int], level: float, X: Any, y: Any
) -> tuple[int, float]:
    """The first of these amounts that reaches the level, and the loss there."""
    amount, loss = 0, np.inf
    for amount in amounts:
        loss = loss_of(make(amount), X, y)
        if loss <= level:
            break
    return amount, loss


def seconds(repetitions: int, *works: Callable[[], Any]) -> list[float]:
    """The least process time of each, in turns."""
    least = [math.inf] * len(works)
    for _ in range(repetitions):
        for place, work in enumerate(works):
            begun = time.process_time()
            work()
            least[place] = min(least[place], time.process_time() - begun)
    return least


def bytes_of(rows: Any) -> int:
    """What rows take in memory."""
    if isinstance(rows, np.ndarray):
        return rows.nbytes
    return int(rows.data.nbytes + rows.indices.nbytes + rows.indptr.nbytes)


def with_owners(problem: Problem) -> int:
    """The arrays that a problem keeps, one number each for rows and nodes among them."""
    arrays = (
        problem.y, problem.row_weights, problem.node_of_row, problem.offsets, problem.sample_weight,
    )  # fmt: skip
    return problem.row_bytes + sum(array.nbytes for array in arrays)


def compare(case: tuple[Any, ...], quick: bool) -> Iterator[Measurement]:
    """Time to equal loss, and memory."""
    name, count, features, density, ones, nodes, batch, update = case
    count, repetitions = (count // 10, 1) if quick else (count, 5)
    X, y = rows_of(count, features, density, ones)
    owners = None if nodes is None else np.arange(count) % nodes
    theirs = {"loss": "log_loss", "alpha": PENALTY, "random_state": 0}
    level = 1.01 * loss_of(SGDClassifier(**theirs).fit(X, y), X, y)

    def passes(amount: int) -> Any:
        return SGDClassifier(max_iter=amount, tol=None, **theirs).fit(X, y)

    def walk(amount: int) -> Any:
        return RandomWalkClassifier(
            walk="weighted" if update == "sgd" else "auto", update=update, penalty=PENALTY,
            standardise=False, steps=amount, batch=batch, random_state=0,
        ).fit(X, y, nodes=owners)  # fmt: skip

    needed, _ = fewest(passes, range(1, 100), level, X, y)
    amounts = (round(1000 * 2 ** (step / 4)) for step in range(MAX_TRIES))
    updates, reached = fewest(walk, amounts, level, X, y)
    with threadpool_limits(1, user_api="blas"):
        of_theirs, of_ours = seconds(repetitions, lambda: passes(needed), lambda: walk(updates))
    problem, _ = RandomWalkClassifier(standardise=False).prepare_problem(X, y, nodes=owners)
    note = (
        f"{updates:,} updates by {update} in {of_ours:.3f} s, {needed} passes in {of_theirs:.3f} s"
    )
    short = "" if reached <= level else f"; stopped at {reached / level:.3f} of the level"
    yield Measurement(f"{name}: a walk's time over SGDClassifier's to equal loss",
                      of_ours / of_theirs if not short else math.inf, "times", TARGET,
                      note=note + short)  # fmt: skip
    yield Measurement(f"{name}: arrays held, over the data", with_owners(problem) / bytes_of(X),
                      "times", MAX_BYTES)  # fmt: skip


def timed(quick: bool) -> Iterator[Measurement]:
    """Rows that measure time; the others measure memory."""
    for case in CASES:
        yield next(compare(case, quick))


def measurements(quick: bool) -> Iterator[Measurement]:
    for case in CASES:
        yield from compare(case, quick)


if __name__ == "__main__":
    main(measurements, __doc__)
