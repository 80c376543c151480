"""Targets that no noise reaches: the reason, and the changes that would help.

>>> error = refuse_gamma(3.0, 0.03, (1.0, 50.0), "tight")
>>> round(error.floor, 2), round(error.smallest_epsilon, 1), round(error.widest_bounds[1], 2)
(0.85, 166.9, 2.31)
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Literal

from walklearn.privacy.accounting import curves
from walklearn.privacy.accounting.printing import format_lower, format_upper
from walklearn.privacy.limits import Array, Bounds
from walklearn.privacy.mechanisms.noise_search import find_minimum, log_grid

Accounting = Literal["tight", "lemma"]


class InfeasiblePrivacyError(ValueError):
    """No noise level gives this (ε, δ) for these bounds.

    Parameters
    ----------
    message
        The message for the user.
    floor
        The lower bound on δ at this ε.
    smallest_epsilon
        The limit that ε must exceed for this δ; infinite if no ε is enough.
    widest_bounds
        The widest bounds (from the same lo) that this (ε, δ) allows; None if there are none.
    """

    def __init__(
        self,
        message: str,
        floor: float = 0.0,
        smallest_epsilon: float = math.inf,
        widest_bounds: Bounds | None = None,
    ) -> None:
        super().__init__(message)
        self.floor = floor
        self.smallest_epsilon = smallest_epsilon
        self.widest_bounds = widest_bounds


def refuse_gamma(
    epsilon: float, delta: float, bounds: Bounds, rule: Accounting
) -> InfeasiblePrivacyError:
    """Return the error for the Gamma mechanism, whose δ has a floor, by the lemma as well."""
    lo, hi = bounds

    def floor(at: float, excess: float) -> float:
        if rule == "tight":
            return curves.floor_of_excess(at, excess)
        ends = (1.0, 1 + excess)
        if excess < _MIN_EXCESS:
            return 0.0
        return find_minimum(lambda t: curves.gamma_lemma_delta(at, t, ends), _floor_grid(ends))

    spread = (hi - lo) / lo
    smallest, excess = math.inf, 0.0
    if delta > 0:
        excess, _ = _boundary(lambda x: floor(epsilon, x) > delta, 0.0, spread)
        smallest = curves.gamma_smallest_epsilon(delta, bounds)
        if rule == "lemma":
            _, smallest = _boundary(lambda e: floor(e, spread) <= delta, epsilon, 2 * epsilon + 1)
    alternative = "use clamped-gamma" if delta > 0 else "use laplace"
    return _refusal(epsilon, delta, bounds, floor(epsilon, spread), smallest, excess, [alternative])


def refuse_clamped_gamma(epsilon: float, bounds: Bounds, clamp: Bounds) -> InfeasiblePrivacyError:
    """Return the error for δ = 0. Every δ > 0 is feasible: nearly all releases are then equal."""

    def pure(ends: Bounds, clamp: Bounds) -> float:
        return find_minimum(
            lambda t: curves.clamped_gamma_pure_epsilon(t, ends, clamp), _floor_grid(ends)
        )

    def too_wide(excess: float) -> bool:
        ends = (1.0, 1 + excess)
        return excess > _MIN_EXCESS and pure(ends, ends) > epsilon

    lo, hi = bounds
    excess = 0.0
    if epsilon > 0 and clamp == bounds:
        excess, _ = _boundary(too_wide, 0.0, (hi - lo) / lo)
    alternatives = ["allow delta > 0", "use laplace"]
    return _refusal(epsilon, 0.0, bounds, 0.0, pure(bounds, clamp), excess, alternatives)


# Bounds closer together than this count as equal.
_MIN_EXCESS = 1e-9
CONSTANT = "publish a constant, such as the midpoint of the bounds"


def _floor_grid(bounds: Bounds) -> Array:
    """Grid of ln θ for the smallest δ over all θ, which never lies at a small θ."""
    return math.log(bounds[1]) + log_grid(-5.0, 12.0, 100.0)[::3]


def _boundary(holds: Callable[[float], bool], low: float, high: float) -> tuple[float, float]:
    """Return the last point where a condition is false and the first where it holds, to 7 digits.

    The condition is false at low; high is doubled until it holds there.
    """
    while not holds(high):
        low, high = high, 2 * high
    while high - low > 1e-7 * high:
        middle = 0.5 * (low + high)
        low, high = (low, middle) if holds(middle) else (middle, high)
    return low, high


def _refusal(
    epsilon: float,
    delta: float,
    bounds: Bounds,
    floor: float,
    smallest: float,
    excess: float,
    alternatives: list[str],
) -> InfeasiblePrivacyError:
    """Return the error with its advice; bounds of ratio 1 + excess would be narrow enough."""
    changes, lo, hi = [], bounds[0], bounds[0] * (1 + excess)
    if hi > lo:
        upper = lo + float(format_lower(hi - lo, 3))
        changes.append(f"narrow the bounds to at most {lo:g}..{upper:.9g}")
    if math.isfinite(smallest):
        changes.append(f"raise epsilon above {format_upper(smallest, 3)}")
    *others, last = [*changes, *(alternatives if epsilon + delta > 0 else [CONSTANT])]
    advice = f"{', '.join(others)}, or {last}" if others else last
    limit = f"the floor is {format_lower(floor, 3)}" if floor > 0 else "0 is not reached"
    return InfeasiblePrivacyError(
        f"no noise level gives delta <= {format_upper(delta)} at epsilon = {format_upper(epsilon)} "
        f"for bounds {bounds[0]:g}..{bounds[1]:g}: {limit}. {advice[0].upper()}{advice[1:]}.",
        floor,
        smallest,
        (lo, hi) if hi > lo else None,
    )
