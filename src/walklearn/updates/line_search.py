"""Line search for a constant step, for updates with memory.

The token carries L̂, an estimate of the largest curvature of the φ_i. A visit with g = ∇φ_i(w)
first reduces it a little and then doubles it while the node's own rows contradict it,

    φ_i(w − g/L̂) > φ_i(w) − ‖g‖²/(2L̂)        (Schmidt, Le Roux & Bach, 2017),

unless ‖g‖²/(2L̂) is lost in the rounding of φ_i. L̂ starts at ‖g‖²/(2 φ_i(w)) of the first visit that
has a gradient: below that no loss, which is at least 0, can pass the test.

On a graph that mixes slowly, the step 1/(3(L̂ + λ)) is too long: the token stays in one part of the
graph and moves towards the minimum of that part, while the stored gradients of other parts are
outdated. The token measures their age by a, the hops since a node's last visit: τ̂ = Σa² / (2Σa) is
the mean age of a gradient (between two visits a hops apart its age runs from 0 to a). With n nodes
visited,

    γ = factor / (3(L̂ + λ)),   L̂ falls by 2^(−factor / H) a visit,   factor = min(1, n/τ̂).

The mean of a alone is useless: it is N on every graph. L̂ halves in H = N visits. But a visit tests
it along one direction only, which is enough for a node with one row but not for several rows. If
few nodes hold several rows each, L̂ must not fall below the curvature of the other directions
before a visit meets one of them (`halving_visits`).
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from walklearn.arrays import Array

STEP_SHARE = 1.0 / 3.0  # of 1/(L̂ + λ)
ROUNDING = 1e-8  # of φ_i: a smaller decrease cannot be distinguished from rounding
FEW_NODES, MAX_VISITS = 100, 1000  # chosen by experiment
MAX_RETURN_TIMES = 20  # return times τ̂ after which an unvisited node is presumed absent
HOPS_SHARE = 1 / 8  # share of all hops: the shortest time in which L̂ halves, by experiment
SLACK = 1e-6  # of the decrease: equality, as for one row of least squares, passes the test


class ReturnTimes(NamedTuple):
    """Statistics of the token's returns to nodes.

    Parameters
    ----------
    nodes
        n, the number of nodes visited; a node counts by the share of its rows that was used.
    ages
        Σa over the returns to nodes, a the hops since the visit before.
    squared_ages
        Σa².
    """

    nodes: float = 0.0
    ages: float = 0.0
    squared_ages: float = 0.0

    def with_visit(self, share: float, age: int) -> ReturnTimes:
        """Return the statistics after a visit, `age` hops after the last one (0 for the first).

        `share` is the share of the node that was used for the first time.
        """
        return ReturnTimes(self.nodes + share, self.ages + age, self.squared_ages + float(age) ** 2)

    @property
    def mean_age(self) -> float:
        """The mean age τ̂ of a gradient."""
        return self.squared_ages / (2.0 * self.ages) if self.ages else 0.0

    @property
    def factor(self) -> float:
        """The factor min(1, n/τ̂) of the step."""
        return min(1.0, self.nodes / self.mean_age) if self.ages else 1.0

    @property
    def hops(self) -> float:
        """Σa/n: the mean number of hops since the first visit to a node."""
        return self.ages / self.nodes if self.nodes else 0.0

    def missing_nodes_are_absent(self, nodes: int) -> bool:
        """True if the walk is so long that unvisited nodes can be presumed absent.

        τ̂ is the typical number of hops until a node is visited again.

        >>> ReturnTimes(3.0, ages=300.0, squared_ages=1200.0).missing_nodes_are_absent(4)
        True
        >>> ReturnTimes(3.0, ages=300.0, squared_ages=6000.0).missing_nodes_are_absent(4)
        False
        """
        return self.hops > MAX_RETURN_TIMES * max(self.mean_age, nodes)

    def step(self, curvature: float) -> float:
        """Return γ for a curvature L̂ + λ; 0 without curvature, since there is no gradient."""
        return self.factor * STEP_SHARE / curvature if curvature > 0 else 0.0


def halving_visits(nodes: int, rows: int, inspected: int, hops: float) -> float:
    """Return H, the visits in which L̂ halves, for N nodes and the rows of this node.

    H is N. If few nodes hold several rows, it is N times the inspected rows, from 100 to 1000. If a
    visit inspects all rows of its node, a too small L̂ can remain undetected until w has moved far
    away. Then H is also at least a share of `ReturnTimes.hops`, so that the time between two such
    moves becomes long enough to converge.

    >>> [halving_visits(*case, 0) for case in ((500, 9, 9), (20, 1, 1), (5, 80, 80), (5, 80, 1))]
    [500, 20, 400, 100]
    >>> halving_visits(5, 80, 80, hops=80_000)
    10000.0
    """
    if rows <= 1:
        return nodes
    visits = nodes if nodes >= FEW_NODES else min(max(nodes * inspected, FEW_NODES), MAX_VISITS)
    return max(visits, HOPS_SHARE * hops) if inspected == rows else visits


def raise_curvature(
    curvature: float, value_at: Callable[[Array], float], w: Array, gradient: Array
) -> float:
    """Return L̂, doubled until the inspected rows do not contradict it.

    L̂ is 0 before the first gradient, and unchanged without a gradient. `value_at` and `gradient`
    are φ_i as a function of the model and ∇φ_i(w), both of the inspected rows.
    """
    squared_norm, value = float(gradient @ gradient), value_at(w)
    if value < 0.0:
        raise ValueError(
            f"local_value is {value:g}, below 0. Add a constant, or give a step, as in Saga(0.1)."
        )
    if not (squared_norm > 0.0 and value > 0.0 and np.isfinite(squared_norm)):
        return curvature
    curvature = curvature or squared_norm / (2.0 * value)
    while (decrease := squared_norm / (2.0 * curvature)) > ROUNDING * value:
        if value_at(w - gradient / curvature) <= value - (1.0 - SLACK) * decrease:
            break
        curvature *= 2.0
    return curvature
