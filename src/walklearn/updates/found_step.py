"""A constant step that finds itself, for updates that remember gradients.

The token carries L̂, an estimate of the largest curvature of the φ_i. A visit with g = ∇φ_i(w)
lets it decay a little and then doubles it while the node's own rows contradict it,

    φ_i(w − g/L̂) > φ_i(w) − ‖g‖²/(2L̂)        (Schmidt, Le Roux & Bach, 2017),

unless ‖g‖²/(2L̂) drowns in the rounding of φ_i. L̂ starts at ‖g‖²/(2 φ_i(w)) of the first visit that
has a gradient: below that no loss, which is at least 0, can pass the test.

On a graph that mixes slowly 1/(3(L̂ + λ)) is too long: the token stays in one part and goes to the
minimum of that part, on gradients of the others that are long outdated. How outdated the token
knows from a, the hops since a node's last visit: τ̂ = Σa² / (2Σa) is the mean age of a gradient (a
visit that comes after a hops had ages from 0 to a). With n nodes visited,

    γ = pace / (3(L̂ + λ)),   L̂ decays by 2^(−pace / H) a visit,   pace = min(1, n/τ̂).

The mean of a alone would tell nothing: it is N on every graph. L̂ halves in H = N visits. But a
visit tests it along one direction, the only one that a single row has and one of many of several
rows: where few nodes hold them, L̂ must not fall below the curvature of the others before one of
them shows (`halving_visits`).

>>> pace = Pace()
>>> for age in (0, 0, 1, 2):                  # two first visits, then two returns
...     pace = pace.counted(float(age == 0), age)
>>> pace.nodes, pace.mean_age                 # 2 nodes; (1 + 4) / (2 · 3)
(2.0, 0.8333333333333334)
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from walklearn.problem.losses import Loss
from walklearn.problem.problem import NodeRows

Array = NDArray[Any]

SHARE = 1.0 / 3.0  # of 1/(L̂ + λ)
ROUNDING = 1e-8  # of φ_i: a fall that is smaller cannot be told from rounding
FEW_NODES, MOST_VISITS = 100, 1000  # found by trial: 100 suffices for batches, rows for whole nodes
SLACK = 1e-6  # of the fall: equality, as for one row of least squares, passes the test


class Pace(NamedTuple):
    """How far the token has come round: n, and Σa and Σa² over its returns to nodes."""

    nodes: float = 0.0  # n
    ages: float = 0.0
    squared_ages: float = 0.0

    def counted(self, seen: float, age: int) -> Pace:
        """With a visit that saw a new share of a node, `age` hops after its last one (0: none)."""
        return Pace(self.nodes + seen, self.ages + age, self.squared_ages + float(age) ** 2)

    @property
    def mean_age(self) -> float:
        """τ̂."""
        return self.squared_ages / (2.0 * self.ages) if self.ages else 0.0

    @property
    def factor(self) -> float:
        """min(1, n/τ̂)."""
        return min(1.0, self.nodes / self.mean_age) if self.ages else 1.0

    def decayed(self, curvature: float, visits: int) -> float:
        """L̂ · 2^(−pace / H), with H visits."""
        return float(curvature * 2.0 ** (-self.factor / visits))

    def step(self, curvature: float) -> float:
        """γ for a curvature L̂ + λ; 0 where there is none, since then there is no gradient."""
        return self.factor * SHARE / curvature if curvature > 0 else 0.0


def halving_visits(nodes: int, held: int, looks: int) -> int:
    """H: N, but N times the rows looked at, from 100 to 1000, where few nodes hold several.

    >>> [halving_visits(*case) for case in ((500, 9, 9), (20, 1, 1), (5, 80, 80), (5, 80, 1))]
    [500, 20, 400, 100]
    """
    if held <= 1 or nodes >= FEW_NODES:
        return nodes
    return min(max(nodes * looks, FEW_NODES), MOST_VISITS)


def raised(curvature: float, loss: Loss, rows: NodeRows, scores: Array, slopes: Array) -> float:
    """L̂, doubled as long as these rows contradict it."""
    gradient = rows.share * rows.gradient(slopes)
    squared_norm = float(gradient @ gradient)
    value = _value(loss, rows, scores)
    if not (squared_norm > 0.0 and value > 0.0 and np.isfinite(squared_norm)):
        return curvature
    curvature = curvature or squared_norm / (2.0 * value)
    along = rows.scores(gradient)
    while (fall := squared_norm / (2.0 * curvature)) > ROUNDING * value:
        if _value(loss, rows, scores - along / curvature) <= value - (1.0 - SLACK) * fall:
            break
        curvature *= 2.0
    return curvature


def _value(loss: Loss, rows: NodeRows, scores: Array) -> float:
    """φ_i, or as the mini-batch estimates it."""
    return rows.share * float(rows.weights @ loss.value(scores, rows.y))
