"""Targets that no noise reaches: what stands in the way, and what would do.

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
from walklearn.privacy.mechanisms.least_noise import log_grid, lowest

Accounting = Literal["tight", "lemma"]


class InfeasiblePrivacyError(ValueError):
    """No noise level gives this (ε, δ) for these bounds.

    Parameters
    ----------
    message
        What the user is told.
    floor
        The δ that cannot be beaten at this ε.
    smallest_epsilon
        What ε must exceed for this δ; infinite where none does.
    widest_bounds
        The widest bounds (from the same lo) that this (ε, δ) allows; None where no bounds do.

    Examples
    --------
    >>> from walklearn.privacy import calibrate
    >>> try:
    ...     calibrate("gamma", epsilon=0.1, delta=1e-9, bounds=(1.0, 2.0))
    ... except InfeasiblePrivacyError as error:
    ...     print(f"{error.floor:.3g} {error.smallest_epsilon:.3g}")
    0.226 19.3
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
    """The error for the Gamma mechanism, which has a floor by the exact δ and by the lemma."""
    lo, hi = bounds

    def floor(at: float, excess: float) -> float:
        if rule == "tight":
            return curves.floor_of_excess(at, excess)
        ends = (1.0, 1 + excess)
        if excess < _MIN_EXCESS:
            return 0.0
        return lowest(lambda t: curves.gamma_lemma_delta(at, t, ends), _floor_grid(ends))

    spread = (hi - lo) / lo
    smallest, widest = math.inf, None
    if delta > 0:
        excess, _ = _boundary(lambda x: floor(epsilon, x) > delta, 0.0, spread)
        widest = _widened(lo, excess)
        smallest = curves.gamma_smallest_epsilon(delta, bounds)
        if rule == "lemma":
            _, smallest = _boundary(lambda e: floor(e, spread) <= delta, epsilon, 2 * epsilon + 1)
    alternative = "use clamped-gamma" if delta > 0 else "use laplace"
    return _refusal(epsilon, delta, bounds, floor(epsilon, spread), smallest, widest, [alternative])


def refuse_clamped_gamma(epsilon: float, bounds: Bounds, clamp: Bounds) -> InfeasiblePrivacyError:
    """The error for δ = 0. Every δ > 0 is reached: much noise makes nearly all releases equal."""

    def pure(ends: Bounds, clamp: Bounds) -> float:
        return lowest(
            lambda t: curves.clamped_gamma_pure_epsilon(t, ends, clamp), _floor_grid(ends)
        )

    def too_wide(excess: float) -> bool:
        ends = (1.0, 1 + excess)
        return excess > _MIN_EXCESS and pure(ends, ends) > epsilon

    lo, hi = bounds
    widest = None
    if epsilon > 0 and clamp == bounds:
        widest = _widened(lo, _boundary(too_wide, 0.0, (hi - lo) / lo)[0])
    alternatives = ["allow delta > 0", "use laplace"]
    return _refusal(epsilon, 0.0, bounds, 0.0, pure(bounds, clamp), widest, alternatives)


def refuse_no_delta(kind: str) -> InfeasiblePrivacyError:
    """The error for δ = 0 with unclamped Gaussian noise or a cut Laplace tail: there δ > 0."""
    reasons = {
        "gaussian": "no noise level gives delta = 0 for unclamped Gaussian noise. Allow delta > 0, "
        "clamp the release, or use laplace.",
        "truncated-laplace": "no cut gives delta = 0 at the scale (hi - lo)/epsilon that "
        "truncated-laplace has. Allow delta > 0, or use laplace.",
    }
    return InfeasiblePrivacyError(reasons[kind])


def refuse_all_noise(kind: str, floor: float) -> InfeasiblePrivacyError:
    """The error for a mechanism whose δ stays above the target, however much noise it has."""
    return InfeasiblePrivacyError(
        f"no noise level of {kind} reaches this delta: with the most noise it is at least "
        f"{format_lower(floor, 3)}. Allow more, or use laplace.",
        floor,
    )


def refuse_nothing(kind: str) -> InfeasiblePrivacyError:
    """The error for ε = δ = 0, which no noise level gives."""
    return InfeasiblePrivacyError(
        f"no noise level of {kind} gives epsilon = 0 and delta = 0: such a release would say "
        f"nothing at all. {_CONSTANT[0].upper()}{_CONSTANT[1:]}, or raise epsilon or delta.",
        smallest_epsilon=0.0,
    )


# Bounds closer together than this are not told apart from equal ones.
_MIN_EXCESS = 1e-9
_CONSTANT = "publish a constant, such as the midpoint of the bounds"


def _widened(lo: float, excess: float) -> Bounds | None:
    """(lo, lo(1 + excess)), or None if that is no interval."""
    return (lo, lo * (1 + excess)) if lo * (1 + excess) > lo else None


def _floor_grid(bounds: Bounds) -> Array:
    """Where the least δ over all θ is sought: it never lies at a small θ."""
    return math.log(bounds[1]) + log_grid(-5.0, 12.0, 100.0)[::3]


def _boundary(holds: Callable[[float], bool], low: float, high: float) -> tuple[float, float]:
    """The last point where a condition is false and the first where it holds, to 7 digits.

    It is false at low; high is doubled until it holds there.
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
    widest: Bounds | None,
    alternatives: list[str],
) -> InfeasiblePrivacyError:
    ways = []
    if widest is not None:
        upper = widest[0] + float(format_lower(widest[1] - widest[0], 3))
        ways.append(f"narrow the bounds to at most {widest[0]:g}..{upper:.9g}")
    if math.isfinite(smallest):
        ways.append(f"raise epsilon above {format_upper(smallest, 3)}")
    *others, last = [*ways, *(alternatives if epsilon + delta > 0 else [_CONSTANT])]
    advice = f"{', '.join(others)}, or {last}" if others else last
    near = f"the floor is {format_lower(floor, 3)}" if floor > 0 else "0 is not reached"
    return InfeasiblePrivacyError(
        f"no noise level gives delta <= {format_upper(delta)} at epsilon = {format_upper(epsilon)} "
        f"for bounds {bounds[0]:g}..{bounds[1]:g}: {near}. {advice[0].upper()}{advice[1:]}.",
        floor,
        smallest,
        widest,
    )
