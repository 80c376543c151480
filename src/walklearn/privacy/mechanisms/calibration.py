"""The smallest noise that gives (ε, δ) privacy within public bounds, or a refusal with a reason.

For the Gamma distribution δ need not fall with the noise (clamped, ρ = 10, ε = 2.26: 0 at θ = 96,
.001 at θ = 1000), so bisection alone would be wrong: `noise_search` scans a fine grid. The
mechanism that is found is checked by its own `delta(epsilon)`. If that is above δ in the last
digit, noise is added.

The unclamped Gamma mechanism cannot reach every target: δ never falls below a floor
(`curves.gamma_floor`). Such a target is an `InfeasiblePrivacyError`.

>>> calibrate("laplace", epsilon=3.0, delta=0.0, bounds=(1.0, 50.0))
Laplace(scale=16.3333, bounds=(1, 50))
>>> calibrate("gamma", epsilon=3.0, delta=0.03, bounds=(1.0, 50.0))
Traceback (most recent call last):
    ...
walklearn.privacy.mechanisms.infeasible.InfeasiblePrivacyError: no noise level gives delta <= 0.03
at epsilon = 3 for bounds 1..50: the floor is 0.851. Narrow the bounds to at most 1..2.3, raise
epsilon above 167, or use clamped-gamma.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from walklearn.checks import check_choice
from walklearn.privacy.accounting import curves
from walklearn.privacy.accounting.incomplete_gamma import LARGEST_SHAPE
from walklearn.privacy.accounting.printing import format_lower
from walklearn.privacy.limits import (
    AT_BOUNDS,
    Array,
    Bounds,
    check_bounds,
    check_clamp,
    check_delta,
    check_epsilon,
)
from walklearn.privacy.mechanisms import (
    MECHANISMS,
    ClampedGamma,
    Gamma,
    Gaussian,
    Laplace,
    TruncatedLaplace,
)
from walklearn.privacy.mechanisms.infeasible import (
    CONSTANT,
    Accounting,
    InfeasiblePrivacyError,
    refuse_clamped_gamma,
    refuse_gamma,
)
from walklearn.privacy.mechanisms.mechanism import Mechanism
from walklearn.privacy.mechanisms.noise_search import find_min_noise, log_grid

# Smaller targets than this are refused; noise is searched up to e^345 = 1e150 times the range.
_SMALLEST_TARGET = 1e-100
_LARGEST_LOG = 345.0
# δ for many noise levels at once; other mechanisms compute one at a time.
_CURVES: dict[type, Callable[..., Array]] = {
    Gamma: curves.gamma_delta,
    ClampedGamma: curves.gamma_delta,
    Laplace: curves.laplace_delta,
    Gaussian: curves.gaussian_delta,
}


def calibrate(
    kind: str,
    *,
    epsilon: float,
    delta: float,
    bounds: Sequence[float],
    clamp: Sequence[float] | None = AT_BOUNDS,
    accounting: Accounting = "tight",
) -> Mechanism:
    """Find the mechanism of a kind with the smallest noise that is (ε, δ) private.

    Parameters
    ----------
    kind
        A name in `MECHANISMS`, such as "laplace" or "clamped-gamma".
    epsilon, delta
        P(outcome) ≤ e^ε · P(outcome with the other value) + δ for all outcomes.
    bounds
        Public lo and hi over all data that a node could hold, never computed from data.
    clamp
        Public ends that releases are clamped to, by default the bounds. None leaves additive
        noise unclamped, for experiments. "gamma" is never clamped.
    accounting
        "tight" (exact), or "lemma" for the paper's sufficient condition ("gamma" only).

    Returns
    -------
    Mechanism
        The mechanism, whose `delta(epsilon)` is at most `delta`.

    Raises
    ------
    InfeasiblePrivacyError
        If no noise level reaches the target; the message lists what would help.

    Examples
    --------
    >>> round(calibrate("laplace", epsilon=1.0, delta=0.0, bounds=(1.0, 3.0)).scale, 9)
    2.0
    """
    mechanism: Any = MECHANISMS.by_name(kind)
    epsilon, delta, (lo, hi) = check_epsilon(epsilon), check_delta(delta), check_bounds(bounds)
    ends = _check_target(kind, epsilon, delta, clamp, (lo, hi), accounting)
    is_lemma, is_gamma = accounting == "lemma", mechanism in (Gamma, ClampedGamma)
    settings: dict[str, Any] = {"bounds": (lo, hi), "clamp": ends}
    if mechanism is Gamma:
        del settings["clamp"]
    if mechanism is TruncatedLaplace:
        # The scale is Δ/ε, the cut minimal: for δ ≤ ½, scale · ln(1 + (e^ε − 1)/2δ) (Geng 2020).
        # For ε → 0 the noise becomes uniform; a scale far above the cut is as good as infinite.
        # The last digits ensure that the privacy loss Δ/scale, rounded up, is at most ε.
        settings["scale"] = (hi - lo) / max(epsilon, 1e-4 * delta) * (1 + 2.0**-49)

    def make(noise: float) -> Any:
        return mechanism(**settings, **{mechanism.noise_names[-1]: noise})

    def curve(noise: Array) -> Array:
        if is_lemma:
            return curves.gamma_lemma_delta(epsilon, noise, (lo, hi))
        if mechanism is TruncatedLaplace:
            return curves.laplace_delta(epsilon, settings["scale"], (lo, hi), ends, noise)
        if mechanism in _CURVES:
            return _CURVES[mechanism](epsilon, noise, (lo, hi), ends)
        return np.array([make(level).delta(epsilon) for level in noise])

    # From the smallest θ that is accounted for, or a negligible scale, up to huge noise.
    start, unit = (1e-9 - math.log(LARGEST_SHAPE), hi) if is_gamma else (-25.0, hi - lo)
    grid = math.log(unit) + log_grid(start, 12.0, _LARGEST_LOG)
    floor = -1.0
    if mechanism is Gamma:
        floor = 0.0 if is_lemma else curves.gamma_floor(epsilon, (lo, hi))
    noise = find_min_noise(curve, delta, grid) if delta > floor else None
    if noise is None and mechanism is Gamma:
        raise refuse_gamma(epsilon, delta, (lo, hi), accounting)
    if noise is None and mechanism is ClampedGamma:
        raise refuse_clamped_gamma(epsilon, (lo, hi), ends or (lo, hi))
    if noise is None:  # ours reach every δ > 0 and every ε > 0 before e^345 ranges
        lowest = float(curve(np.exp(grid[-1:]))[0])
        raise InfeasiblePrivacyError(
            f"no noise level of {kind} reaches this delta: with the most noise it is at least "
            f"{format_lower(lowest, 3)}. Allow a larger delta, or use laplace.",
            lowest,
        )
    cost = mechanism.lemma_delta if is_lemma else mechanism.delta
    for power in range(-52, -20):
        calibrated: Mechanism = make(noise)
        if cost(calibrated, epsilon) <= delta:
            return calibrated
        noise *= 1.0 + 2.0**power
    raise ArithmeticError(f"{calibrated!r} misses the target it was calibrated for. Please report.")


def _check_target(
    kind: str, epsilon: float, delta: float, clamp: Any, bounds: Bounds, accounting: str
) -> Bounds | None:
    """Check a target, and return the ends of the clamp."""
    if math.isinf(epsilon):
        raise ValueError("epsilon = inf means no privacy. Release the values as they are.")
    for name, target in (("epsilon", epsilon), ("delta", delta)):
        if 0 < target < _SMALLEST_TARGET:
            raise ValueError(f"{name} = {target:g} is too close to 0. Use 0.")
    check_choice("accounting", accounting, Accounting)
    if accounting == "lemma" and kind != "gamma":
        raise ValueError(f'The lemma covers the mechanism "gamma" only, not {kind!r}.')
    if kind == "gamma":
        if not (clamp is None or (isinstance(clamp, str) and clamp == AT_BOUNDS)):
            raise ValueError('"gamma" is never clamped. Use "clamped-gamma" for a clamp.')
        return None
    if kind == "clamped-gamma" and clamp is None:
        raise ValueError('"clamped-gamma" needs a clamp. Use "gamma" without one.')
    ends = check_clamp(clamp, bounds)
    if kind != "clamped-gamma" and epsilon == delta == 0:
        raise InfeasiblePrivacyError(
            f"no noise level of {kind} gives epsilon = 0 and delta = 0: such a release would "
            f"reveal nothing. {CONSTANT[0].upper()}{CONSTANT[1:]}, or raise epsilon or delta.",
            smallest_epsilon=0.0,
        )
    if kind == "gaussian" and delta == 0 and ends is None:
        raise InfeasiblePrivacyError(
            "no noise level gives delta = 0 for unclamped Gaussian noise. Allow delta > 0, clamp "
            "the release, or use laplace."
        )
    if kind == "truncated-laplace" and delta == 0:
        raise InfeasiblePrivacyError(
            "no cut gives delta = 0 at the scale (hi - lo)/epsilon that truncated-laplace has. "
            "Allow delta > 0, or use laplace."
        )
    return ends
