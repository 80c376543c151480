"""Speed of losses from functions beside built-in losses with the same formula.

    python -m benchmarks.losses           about a minute
    python -m benchmarks.losses --quick   few hops

Both run through `simulate` on the same problem and graph, turn by turn, after their kernels are
compiled. A value of 1 means that they are equally fast; above 1 the user's loss is faster.
"""

from __future__ import annotations

import math
from collections.abc import Iterator

import numpy as np

import walklearn as wl
from benchmarks.measurement import Measurement, main
from benchmarks.race import Contestant, race

NODES, TOKENS, HOPS, SEED = 100, 32, 3_200_000, 2024
TARGET = 0.8


def squared_hinge_value(score: float, target: float) -> float:
    return 0.5 * max(0.0, 1.0 - target * score) ** 2


def squared_hinge_slope(score: float, target: float) -> float:
    return -target * max(0.0, 1.0 - target * score)


def logistic_value(score: float, target: float) -> float:
    margin = target * score
    return max(0.0, -margin) + math.log1p(math.exp(-abs(margin)))


def logistic_slope(score: float, target: float) -> float:
    return float(-target / (1.0 + np.exp(target * score)))


SQUARED_HINGE = wl.losses.from_functions(
    squared_hinge_value, squared_hinge_slope, takes="sign", smoothness=1.0, name="own-squared-hinge"
)
LOGISTIC = wl.losses.from_functions(
    logistic_value, logistic_slope, takes="sign", smoothness=0.25, name="own-logistic"
)


def contestant(loss: wl.losses.Loss, dimension: int, update: str) -> Contestant:
    """Make calls of `simulate` without gaps."""
    X, y = wl.datasets.two_gaussians(NODES, dimension, variance=10.0, seed=SEED)
    problem = wl.Problem(X, y, loss=loss, penalty=1.0, domain=wl.domains.Ball(10.0))
    graph = wl.graphs.erdos_renyi(NODES, 0.3, seed=SEED, connected="retry")
    step = wl.PowerStep(10.0 / float(problem.smoothness_constants.mean()), 0.75)
    done = 0

    def run(hops: int) -> None:
        nonlocal done
        steps = max(1, hops // TOKENS)
        wl.simulate(
            problem, graph, "weighted", steps=steps, update=update, replicates=TOKENS, seed=SEED,
            step_size=step if update == "sgd" else None, gaps=False, cores=1, progress=False,
            records=10, engine="compiled",
        )  # fmt: skip
        done += steps * TOKENS

    return Contestant(run, lambda: done)


def measurements(quick: bool) -> Iterator[Measurement]:
    pairs = ((SQUARED_HINGE, wl.losses.SquaredHinge(), 10), (LOGISTIC, wl.losses.Logistic(), 50))
    for own, built_in, dimension in pairs:
        for update in ("sgd", "saga"):
            contestants = {
                name: contestant(loss, dimension, update)
                for name, loss in (("own", own), ("built-in", built_in))
            }
            ns = race(contestants, HOPS // (20 if quick else 1), 3 if quick else 15)
            yield Measurement(
                f"built-in / user's loss, {built_in!r}, {update}, d={dimension}",
                ns["built-in"] / ns["own"], "times", TARGET, True,
                f"{ns['built-in']:.1f} and {ns['own']:.1f} ns", ns["own"],
            )  # fmt: skip


if __name__ == "__main__":
    main(measurements, __doc__)
