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
...     pace = pace.with_visit(float(age == 0), age)
>>> pace.nodes, pace.mean_age                 # 2 nodes; (1 + 4) / (2 · 3)
(2.0, 0.8333333333333334)
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from walklearn.arrays import Array

SHARE = 1.0 / 3.0  # of 1/(L̂ + λ)
ROUNDING = 1e-8  # of φ_i: a fall that is smaller cannot be told from rounding
FEW_NODES, MAX_VISITS = 100, 1000  # found by trial: 100 suffices for batches, rows for whole nodes
ROUNDS = 20  # after so many times as long as it takes to meet a node, who was not met is not there
HOPS_SHARE = 1 / 8  # of all hops, in which L̂ halves at the soonest; found by trial too
SLACK = 1e-6  # of the fall: equality, as for one row of least squares, passes the test


class Pace(NamedTuple):
    """How far the token has come round.

    Parameters
    ----------
    nodes
        n, how many nodes were visited; one of which a share of the rows was seen counts as that
        share.
    ages
        Σa over the returns to nodes, a the hops since the visit before.
    squared_ages
        Σa².
    """

    nodes: float = 0.0
    ages: float = 0.0
    squared_ages: float = 0.0

    def with_visit(self, seen: float, age: int) -> Pace:
        """The pace after one more visit.

        Parameters
        ----------
        seen
            The share of the node that was seen for the first time.
        age
            How many hops after the node's last visit; 0 for the first.

        Returns
        -------
        Pace
            A new one.
        """
        return Pace(self.nodes + seen, self.ages + age, self.squared_ages + float(age) ** 2)

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
        """Σa/n: how long the nodes that were met have been walked among, in the mean."""
        return self.ages / self.nodes if self.nodes else 0.0

    def has_come_round(self, nodes: int) -> bool:
        """Whether the walk has lasted so long that a node it has not met must be gone.

        τ̂ is how many hops it takes to meet a node again.

        >>> Pace(3.0, ages=300.0, squared_ages=1200.0).has_come_round(4)    # 100 hops, of 20 · 4
        True
        >>> Pace(3.0, ages=300.0, squared_ages=6000.0).has_come_round(4)    # of 20 · 10
        False
        """
        return self.hops > ROUNDS * max(self.mean_age, nodes)

    def decay(self, curvature: float, visits: float) -> float:
        """L̂ · 2^(−pace / H).

        Parameters
        ----------
        curvature
            L̂.
        visits
            H, in how many visits L̂ halves.

        Returns
        -------
        float
            The new L̂.
        """
        return float(curvature * 2.0 ** (-self.factor / visits))

    def step(self, curvature: float) -> float:
        """γ for a curvature L̂ + λ; 0 where there is none, since then there is no gradient."""
        return self.factor * SHARE / curvature if curvature > 0 else 0.0


def halving_visits(nodes: int, held: int, looks: int, hops: float) -> float:
    """H: N, but N times the rows looked at, from 100 to 1000, where few nodes hold several.

    All rows of a node together may hide for long that L̂ is too small, until w has swung out. So
    that the quiet times in between become long enough to arrive, H is then a share of all hops at
    least.

    Parameters
    ----------
    nodes
        N, of the whole network.
    held
        How many rows the node has.
    looks
        How many of them a visit looks at.
    hops
        `Pace.hops`.

    Returns
    -------
    float
        In how many visits L̂ halves.

    Examples
    --------
    >>> [halving_visits(*case, 0) for case in ((500, 9, 9), (20, 1, 1), (5, 80, 80), (5, 80, 1))]
    [500, 20, 400, 100]
    >>> halving_visits(5, 80, 80, hops=80_000)
    10000.0
    """
    if held <= 1:
        return nodes
    least = nodes if nodes >= FEW_NODES else min(max(nodes * looks, FEW_NODES), MAX_VISITS)
    return max(least, HOPS_SHARE * hops) if looks == held else least


def raise_curvature(
    curvature: float, value_at: Callable[[Array], float], w: Array, gradient: Array
) -> float:
    """Return L̂, doubled as long as the inspected rows contradict it.

    Parameters
    ----------
    curvature
        L̂ so far; 0 before the first gradient.
    value_at
        φ_i of the inspected rows, as a function of the model.
    w
        The model as it came.
    gradient
        ∇φ_i(w) of the same rows.

    Returns
    -------
    float
        L̂, unchanged where there is no gradient to try.
    """
    squared_norm, value = float(gradient @ gradient), value_at(w)
    if value < 0.0:
        raise ValueError(
            f"local_value is {value:g}, and the search for the step needs at least 0. Add a "
            "constant to it, or give a step, such as Saga(0.1)."
        )
    if not (squared_norm > 0.0 and value > 0.0 and np.isfinite(squared_norm)):
        return curvature
    curvature = curvature or squared_norm / (2.0 * value)
    while (fall := squared_norm / (2.0 * curvature)) > ROUNDING * value:
        if value_at(w - gradient / curvature) <= value - (1.0 - SLACK) * fall:
            break
        curvature *= 2.0
    return curvature
