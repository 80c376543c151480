"""How long the steps should be and when to stop, where the user does not say.

The step size is γ_k = c / k^q with q just above ½, the slowest decay that the theorems allow: the
walk forgets its start fastest. The constant c follows from the smoothness constants L_i. The step
direction of node i is (scale_i L_i)-Lipschitz, and for every unbiased walk the mean of scale_i L_i
over its visits is L̄. So

    c = 1 / max_i (scale_i L_i)          where the loss can grow without bound (least squares):
                                         no step overshoots, and nothing blows up;
    c = 8 / L̄, at most 1 / (λ max scale) where the slope of the loss is bounded (logistic, Huber,
                                         softmax): there a long step cannot blow up, and L_i is
                                         the curvature at its worst, so that longer steps pay.

The 8 is measured, not derived (benchmarks/README.md). Under privacy L_i must not be looked at:
`public_step` takes what was released and the public bounds instead, and where there is noise on the
model, the noise in the first step has a length of about 1 at most.

A walk that is not told how long to go is looked at after n, 2n, 4n, … updates. For an error that
falls like a power of k, what a doubling still brings is about what is left to gain; so the walk
has `settled` when a doubling changes the loss by less than a share `tolerance` of what a model
of zeros loses, provided that the token went round in that time: on a ring it is in one part for
long, and unlearns there what it has learned in others.

>>> from walklearn import Problem, graphs, walks
>>> problem = Problem([[1.0], [2.0], [3.0]], [1.0, -1.0, 1.0], penalty=1.0)
>>> choose_step(problem, graphs.complete(3), walks.Weighted())      # L = 1.75, 4, 7.75
PowerStep(constant=0.38888888888888884, exponent=0.51)
>>> settled([0.5, 0.31, 0.309], of_zeros=0.7, tolerance=0.01, been=1.0)
True
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
ROUND = 0.9  # the share of the network that the last half of a walk must have seen
FIRST_LOOK = 1000  # updates before the loss is looked at first
SMALLEST = 1e-100  # rows that are all 0 have L_i = 0, and any step will do


def choose_step(problem: Problem, graph: Graph, walk: Walk, batch: int | None = None) -> PowerStep:
    """A step size that suits the problem and the walk, from all L_i.

    batch: how many of a node's rows an update looks at: the fewer, the shorter the steps.
    """
    scale = walk.gradient_scale(graph, problem)
    more = 0.0 if batch is None else problem.batch_smoothness(batch) - problem.smoothness_constants
    largest = float((scale * (problem.smoothness_constants + more)).max())
    mean = float((problem.importance + more).mean())
    return _step(problem.loss, problem.penalty, float(scale.max()), largest, mean)


def best_step(candidates: Sequence[T], errors: ArrayLike) -> T:
    """The step size, or constant, that left the least error; the first of equals.

    Tune on seeds of their own: the least of several errors is too good for the runs it comes from.
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
    """A step size from public facts only: what the nodes released, and the bounds of L_i.

    The walk must not scale its steps by anything else; a walk that releases nothing is taken to
    have an L̄ halfway between the bounds. noise_length: σ√size of the noise on the model.
    """
    scale = walk.gradient_scale(graph)
    mean = 0.5 * sum(bounds)
    if walk.innermost.release is not None:
        mean = float(walk.innermost.release.mean())
    step = _step(loss, penalty, float(scale.max()), float(scale.max()) * bounds[1], mean)
    if step.constant * noise_length > 1.0:
        step = PowerStep(1.0 / noise_length, EXPONENT)
    return step


def most_steps(nodes: int, remembers: bool = False) -> int:
    """How long to walk at most: a million updates, or 50 for each node; with memory 20 times that.

    A walk with memory ends when it has arrived, long before as a rule.
    """
    return max(MAX_STEPS, 50 * nodes) * (20 if remembers else 1)


def public_steps(nodes: int, most: int) -> int:
    """How long to walk where the loss may not be looked at: 100 updates for each node.

    Of few nodes 20,000 in all, of many a million, or 10 for each.
    """
    return min(most, max(MIN_STEPS, min(100 * nodes, MAX_STEPS), 10 * nodes))


def settled(losses: Sequence[float], of_zeros: float, tolerance: float, been: float) -> bool:
    """Whether the last doubling of the walk changed less than the tolerance allows.

    been: the share of where the walk ought to go (of its visit law) where it went meanwhile.
    """
    if len(losses) < 2 or been < ROUND:
        return False
    return abs(losses[-2] - losses[-1]) <= tolerance * of_zeros


def visited_mass(walk: Walk, graph: Graph, problem: Problem, visits: NDArray[np.int64]) -> float:
    """The share of the visit law that is at nodes with visits."""
    shares = known_stationary(walk.innermost, graph, problem)
    return float((visits > 0).mean() if shares is None else shares[visits > 0].sum())


def _step(
    loss: Loss, penalty: float, largest_scale: float, largest: float, mean: float
) -> PowerStep:
    if math.isinf(loss.max_slope):
        return PowerStep(1.0 / max(largest, SMALLEST), EXPONENT)
    constant = LENGTH / max(mean, SMALLEST)
    if penalty > 0:  # the pull of the penalty is not bounded, so it must not overshoot
        constant = min(constant, 1.0 / (penalty * largest_scale))
    return PowerStep(constant, EXPONENT)
