"""When a walk with memory has arrived: the token knows the gradient of f, and it is next to 0.

What the token carries tells ∇f as far as it was seen, s/n + λw. The walk has arrived when its part
that leads on within W is at most

    tolerance · λ · ‖w‖

and stayed so while every node was visited once more: s is made of gradients as old as the last
visit of each node. Then ‖w − w*‖ ≤ ‖∇f‖/λ is about `tolerance` of ‖w‖. Without a penalty there is
no such λ, and a thousandth of the curvature L̂ stands for it.

>>> import numpy as np
>>> from walklearn.objectives import Problem
>>> from walklearn.updates import Saga
>>> problem, saga = Problem([[1.0], [3.0]], [1.0, 1.0], penalty=1.0), Saga()
>>> token = saga.init_token(problem) | {"model": np.array([0.4]), "gradient_sum": np.array([-0.8]),
...                                     "nodes": np.array(2.0), "curvature": np.array(2.0)}
>>> gradient = saga.known_gradient(problem, token)               # −0.8/2 + 0.4
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

# A look costs as much as some hundred hops. So between two looks there are at least so many, as
# many as there are nodes, and a share of all hops so far: a walk is that much longer than need be.
MIN_HOPS, SHARE = 500, 1 / 16
FLAT = 1e-3  # of L̂: stands for λ where there is no penalty
ROUNDING = 1e-10  # of the first gradient that was known of all nodes: w* may be 0


def remaining_gradient(problem: Problem, model: Array, gradient: Array, curvature: float) -> float:
    """Return the length of ∇f, as the token knows it, as far as it leads on within W."""
    length = 1.0 / max(curvature + problem.penalty, np.finfo(float).tiny)
    moved = problem.domain.project(model - length * gradient)
    return float(np.linalg.norm((model - moved) / length))


@dataclass(eq=False)
class Arrival:
    """Looks at a walk now and then, and says when it has arrived."""

    tolerance: float
    ratio: float = np.inf  # what remains of the gradient, in units of what is tolerated
    _rounding: float | None = None
    _since: Array | None = None  # how often each node was visited when the gradient became small

    @staticmethod
    def hops(batch: WalkBatch) -> int:
        """How many updates to make before the next look."""
        nodes, so_far = int(batch.objective.nodes), int(batch.visits.sum())
        return max(MIN_HOPS, nodes, int(SHARE * so_far))

    def has_come(self, batch: WalkBatch) -> bool:
        """Whether the gradient is small, and was at all looks while every node was visited."""
        problem, update = batch.objective, batch.setting.update
        token = batch.positions[0].token.update
        gradient = update.known_gradient(problem, token)
        if gradient is None:
            return False
        model, curvature = update.model(problem, token), float(token.get("curvature", 1.0))
        remains = remaining_gradient(problem, model, gradient, curvature)
        if self._rounding is None:
            self._rounding = ROUNDING * remains
        strength = problem.penalty or FLAT * curvature
        tolerated = self.tolerance * strength * float(np.linalg.norm(model)) + self._rounding
        self.ratio = remains / tolerated if tolerated else float(remains > 0)
        if self.ratio > 1.0:
            self._since = None
        elif self._since is None:
            self._since = batch.visits.copy()
        return self._since is not None and bool((batch.visits > self._since).all())
