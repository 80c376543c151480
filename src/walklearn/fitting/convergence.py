"""Convergence test of a walk with memory: the gradient of f that the token carries is near 0.

The token carries an estimate of ∇f, s/n + λw, where s is the sum of the gradients that the nodes
store. Each of these is as old as the last visit of its node. The walk has converged if the
estimate, without the part that leads out of W, is at most

    tolerance · λ · ‖w‖

at every check since each node was visited once more. Then ‖w − w*‖ ≤ ‖∇f‖/λ is about `tolerance`
times ‖w‖. Without a penalty, a thousandth of the update's estimate of the curvature takes the place
of λ: L̂ of Saga, p/q of Finito.

>>> import numpy as np
>>> from walklearn.objectives import Problem
>>> from walklearn.updates import Saga
>>> problem, saga = Problem([[1.0], [3.0]], [1.0, 1.0], penalty=1.0), Saga()
>>> token = saga.init_token(problem) | {"model": np.array([0.4]), "gradient_sum": np.array([-0.8]),
...                                     "nodes": np.array(2.0), "curvature": np.array(2.0)}
>>> gradient = saga.gradient_estimate(problem, token)               # −0.8/2 + 0.4
>>> remaining_gradient(problem, token["model"], gradient, 2.0)
0.0
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from walklearn.objectives import Problem
from walklearn.simulation.batches import WalkBatch

Array = NDArray[Any]

# A check costs as much as some hundred hops, so checks are rare: the next one is after MIN_HOPS
# hops, or one per node, or this share of all hops so far, whichever is most.
MIN_HOPS, HOP_SHARE = 500, 1 / 16
CURVATURE_SHARE = 1e-3  # of the curvature, which replaces λ if there is no penalty
ROUNDING = 1e-10  # of the first gradient; without it a walk to w* = 0 would never end


def remaining_gradient(problem: Problem, model: Array, gradient: Array, curvature: float) -> float:
    """Return the length of the known ∇f, without the part that leads out of W."""
    length = 1.0 / max(curvature + problem.penalty, np.finfo(float).tiny)
    moved = problem.domain.project(model - length * gradient)
    return float(np.linalg.norm((model - moved) / length))


@dataclass(eq=False)
class Convergence:
    """Repeated checks of a walk for convergence."""

    tolerance: float
    ratio: float = np.inf  # of the remaining gradient to the largest that is tolerated
    _rounding: float | None = None
    _visits: Array | None = None  # of each node when the gradient became small

    @staticmethod
    def hops(batch: WalkBatch) -> int:
        """Return the number of updates before the next check."""
        nodes, so_far = int(batch.objective.nodes), int(batch.visits.sum())
        return max(MIN_HOPS, nodes, int(HOP_SHARE * so_far))

    def is_reached(self, batch: WalkBatch) -> bool:
        """Return True if the gradient was small at all checks since every node was visited."""
        problem, update = batch.objective, batch.setting.update
        token = batch.positions[0].token.update
        gradient = update.gradient_estimate(problem, token)
        if gradient is None:
            return False
        model, curvature = update.model(problem, token), update.curvature_estimate(token)
        remains = remaining_gradient(problem, model, gradient, curvature)
        if self._rounding is None:
            self._rounding = ROUNDING * remains
        strength = problem.penalty or CURVATURE_SHARE * curvature
        tolerated = self.tolerance * strength * float(np.linalg.norm(model)) + self._rounding
        self.ratio = remains / tolerated if tolerated else float(remains > 0)
        if self.ratio > 1.0:
            self._visits = None
        elif self._visits is None:
            self._visits = batch.visits.copy()
        return self._visits is not None and bool((batch.visits > self._visits).all())
