"""Default step sizes and default lengths of walks.

The step size is γ_k = c / k^q with q just above ½, the slowest decay that the theorems allow: the
influence of the start vanishes fastest. The constant c follows from the smoothness constants L_i.
The step direction of node i is (scale_i L_i)-Lipschitz, and for every unbiased walk the mean of
scale_i L_i over its visits is L̄. So

    c = 1 / max_i (scale_i L_i)          if the loss can grow without bound (least squares):
                                         no step overshoots, and the model cannot diverge;
    c = 8 / L̄, at most 1 / (λ max scale) if the slope of the loss is bounded (logistic, Huber,
                                         softmax): a long step is harmless, and L_i is only the
                                         largest curvature, so longer steps are better.

The 8 is measured, not derived (benchmarks/README.md). Under privacy L_i must not be used:
`public_step` follows from the releases and the public bounds instead. With noise on the model, the
noise in the first step has a length of about 1 at most.

A walk without a given length is checked after n, 2n, 4n, … updates. If the error falls like a power
of k, one doubling gains about as much as all later ones together. So the walk has converged if a
doubling changes the loss by less than a share `tolerance` of the loss of zeros, provided that the
token visited most of the network in that time: on a ring it stays in one part for long, and the
model gets worse on the others.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TypeVar

import numpy as np
from numpy.typing import ArrayLike, NDArray

from walklearn.graphs import Graph
from walklearn.objectives import Problem
from walklearn.objectives.linear.losses import Loss
from walklearn.updates.step_sizes import PowerStep
from walklearn.walks import Walk
from walklearn.walks.markov import known_stationary

T = TypeVar("T")

EXPONENT = 0.51
LENGTH = 8.0  # of the first step, in units of 1/L̄, for losses whose slope is bounded

MIN_STEPS, MAX_STEPS = 20_000, 1_000_000
MIN_COVERAGE = 0.9  # the share of the network that the last half of a walk must visit
FIRST_CHECK = 1000  # updates before the loss is checked first
MIN_SMOOTHNESS = 1e-100  # L_i is 0 for rows that are all 0, and any step will do


def choose_step(problem: Problem, graph: Graph, walk: Walk, batch: int | None = None) -> PowerStep:
    """Return a step size that suits the problem and the walk, from all L_i.

    batch: the number of rows per update; the fewer, the shorter the steps.
    """
    scale = walk.gradient_scale(graph, problem)
    batch_excess = (
        0.0 if batch is None else problem.batch_smoothness(batch) - problem.smoothness_constants
    )
    max_smoothness = float((scale * (problem.smoothness_constants + batch_excess)).max())
    mean = float((problem.importance + batch_excess).mean())
    return _step(problem.loss, problem.penalty, float(scale.max()), max_smoothness, mean)


def best_step(candidates: Sequence[T], errors: ArrayLike) -> T:
    """Return the step size, or constant, with the smallest error; the first of equals.

    Tune on separate seeds: the smallest of several errors is biased for the runs it comes from.
    NaN is the error of a run that diverged.

    >>> best_step([0.1, 1.0, 10.0], [0.3, 0.2, np.nan])
    1.0
    """
    return candidates[int(np.argmin(np.where(np.isnan(errors), np.inf, errors)))]


def public_step(
    loss: Loss,
    penalty: float,
    graph: Graph,
    walk: Walk,
    bounds: tuple[float, float],
    noise_length: float = 0.0,
) -> PowerStep:
    """Return a step size from public facts only: the releases, and the bounds of L_i.

    The walk must not scale its steps by anything else. For a walk that releases nothing, L̄ is
    assumed halfway between the bounds. noise_length: σ√size of the noise on the model.
    """
    scale = walk.gradient_scale(graph)
    release = walk.innermost.release
    mean = 0.5 * sum(bounds) if release is None else float(release.mean())
    step = _step(loss, penalty, float(scale.max()), float(scale.max()) * bounds[1], mean)
    if step.constant * noise_length > 1.0:
        step = PowerStep(1.0 / noise_length, EXPONENT)
    return step


def max_steps(nodes: int, has_memory: bool) -> int:
    """Return the largest number of updates: a million, or 50 for each node; with memory 20 times.

    A walk with memory usually converges and ends long before.
    """
    return max(MAX_STEPS, 50 * nodes) * (20 if has_memory else 1)


def public_steps(nodes: int, limit: int) -> int:
    """Return the number of updates if the loss must not be evaluated: 100 for each node.

    It is at least 20,000; on many nodes it is a million, or 10 for each node.
    """
    return min(limit, max(MIN_STEPS, min(100 * nodes, MAX_STEPS), 10 * nodes))


def has_converged(losses: Sequence[float], zero_loss: float, tol: float, coverage: float) -> bool:
    """True if the last doubling of the walk changed the loss by at most a share `tol`.

    It is a share of `zero_loss`, the loss of zeros. coverage: `visited_mass` over that time.
    """
    if len(losses) < 2 or coverage < MIN_COVERAGE:
        return False
    return abs(losses[-2] - losses[-1]) <= tol * zero_loss


def visited_mass(walk: Walk, graph: Graph, problem: Problem, visits: NDArray[np.int64]) -> float:
    """Return the share of the stationary distribution that is at nodes with visits."""
    shares = known_stationary(walk.innermost, graph, problem)
    return float((visits > 0).mean() if shares is None else shares[visits > 0].sum())


def _step(
    loss: Loss, penalty: float, scale: float, max_smoothness: float, mean: float
) -> PowerStep:
    if math.isinf(loss.max_slope):
        return PowerStep(1.0 / max(max_smoothness, MIN_SMOOTHNESS), EXPONENT)
    constant = LENGTH / max(mean, MIN_SMOOTHNESS)
    if penalty > 0:  # the gradient of the penalty is not bounded, so it must not overshoot
        constant = min(constant, 1.0 / (penalty * scale))
    return PowerStep(constant, EXPONENT)
