"""The least noise that gives (ε, δ) privacy within public bounds, or a refusal that says why.

For the Gamma law δ need not fall with the noise (clamped, ρ = 10, ε = 2.26: 0 at θ = 96, .001 at
θ = 1000), so nothing is bisected blindly: δ is computed on a fine grid of ln θ from the
smallest noise upwards, each dip between grid points is followed to its bottom, and the first
crossing is narrowed to the last digits. The mechanism that comes back has been asked for its
own `delta(epsilon)`, and more noise added if that is above δ in the last digit.

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
from typing import Any, TypeVar

import numpy as np

from walklearn.privacy.accounting import curves
from walklearn.privacy.accounting.incomplete_gamma import LARGEST_SHAPE
from walklearn.privacy.limits import (
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
    TruncatedLaplace,
    infeasible,
)
from walklearn.privacy.mechanisms.infeasible import Accounting
from walklearn.privacy.mechanisms.least_noise import least_noise, log_grid
from walklearn.privacy.mechanisms.mechanism import AT_BOUNDS, Mechanism

_AnyMechanism = TypeVar("_AnyMechanism", bound=Mechanism)

# Targets below this are as good as 0; noise is sought up to e^345 = 1e150 times the range.
_SMALLEST_TARGET = 1e-100
_LARGEST_LOG = 345.0


def calibrate(
    kind: str,
    *,
    epsilon: float,
    delta: float,
    bounds: Sequence[float],
    clamp: Sequence[float] | None = AT_BOUNDS,
    accounting: Accounting = "tight",
) -> Mechanism:
    """Find the mechanism of a kind with the least noise that is (ε, δ) private.

    Parameters
    ----------
    kind
        A name in `MECHANISMS`, such as "laplace" or "clamped-gamma".
    epsilon
        ε, at least 0: P(outcome) ≤ e^ε · P(outcome with the other value) + δ for all outcomes.
    delta
        δ, the additive slack in that inequality.
    bounds
        Public lo and hi over all data a node could hold, never computed from data.
    clamp
        Where the release is clamped, by default at the bounds; None leaves additive noise
        unclamped, for experiments. "gamma" is never clamped.
    accounting
        "tight" (exact), or "lemma" for the paper's sufficient condition ("gamma" only).

    Returns
    -------
    Mechanism
        The mechanism, whose `delta(epsilon)` is at most `delta`.

    Raises
    ------
    InfeasiblePrivacyError
        Where no noise level reaches the target; it says what would.

    Examples
    --------
    >>> round(calibrate("laplace", epsilon=1.0, delta=0.0, bounds=(1.0, 3.0)).scale, 9)
    2.0
    """
    mechanism = MECHANISMS.by_name(kind)
    epsilon, delta, bounds = check_epsilon(epsilon), check_delta(delta), check_bounds(bounds)
    ends = _check_choice(kind, epsilon, delta, clamp, bounds, accounting)
    if mechanism is Gamma:
        return _calibrate_gamma(epsilon, delta, bounds, accounting)
    if mechanism is ClampedGamma:
        return _calibrate_clamped_gamma(epsilon, delta, bounds, ends or bounds)
    if epsilon == 0 and delta == 0:
        raise infeasible.refuse_nothing(kind)
    if delta == 0 and (mechanism is TruncatedLaplace or (mechanism is Gaussian and ends is None)):
        raise infeasible.refuse_no_delta(kind)
    if mechanism is TruncatedLaplace:
        return _calibrate_truncated_laplace(epsilon, delta, bounds, ends)
    return _calibrate_one_noise(mechanism, epsilon, delta, bounds, ends)


def _check_choice(
    kind: str, epsilon: float, delta: float, clamp: Any, bounds: Bounds, accounting: str
) -> Bounds | None:
    if math.isinf(epsilon):
        raise ValueError("epsilon = inf asks for no privacy: release the values as they are.")
    for name, target in (("epsilon", epsilon), ("delta", delta)):
        if 0 < target < _SMALLEST_TARGET:
            raise ValueError(f"{name} = {target:g} is as good as 0: ask for 0.")
    if accounting not in ("tight", "lemma"):
        raise ValueError(f'accounting must be "tight" or "lemma", got {accounting!r}.')
    if accounting == "lemma" and kind != "gamma":
        raise ValueError(f'the lemma is about the mechanism "gamma", not about {kind!r}.')
    at_bounds = isinstance(clamp, str) and clamp == AT_BOUNDS
    if kind == "gamma" and not (at_bounds or clamp is None):
        raise ValueError('"gamma" is never clamped: for a clamp choose "clamped-gamma".')
    if kind == "clamped-gamma" and clamp is None:
        raise ValueError('"clamped-gamma" needs a clamp: without one choose "gamma".')
    if clamp is None:
        return None
    return bounds if at_bounds else check_clamp(clamp, bounds)


def _calibrate_gamma(epsilon: float, delta: float, bounds: Bounds, rule: Accounting) -> Gamma:
    delta_of, floor = curves.gamma_lemma_delta, 0.0
    if rule == "tight":
        delta_of, floor = curves.gamma_delta, curves.gamma_floor(epsilon, bounds)
    theta = None
    if delta > floor:
        theta = least_noise(lambda t: delta_of(epsilon, t, bounds), delta, _theta_grid(bounds))
    if theta is None:
        raise infeasible.refuse_gamma(epsilon, delta, bounds, rule)
    cost = Gamma.delta if rule == "tight" else Gamma.lemma_delta
    return _verified(lambda t: Gamma(t, bounds), theta, lambda m: cost(m, epsilon) <= delta)


def _calibrate_clamped_gamma(
    epsilon: float, delta: float, bounds: Bounds, clamp: Bounds
) -> ClampedGamma:
    def curve(theta: Array) -> Array:
        return curves.clamped_gamma_delta(epsilon, theta, bounds, clamp)

    theta = least_noise(curve, delta, _theta_grid(bounds))
    if theta is None:
        raise infeasible.refuse_clamped_gamma(epsilon, bounds, clamp)
    return _verified(
        lambda t: ClampedGamma(t, bounds, clamp), theta, lambda m: m.delta(epsilon) <= delta
    )


def _calibrate_one_noise(
    kind: type[Mechanism], epsilon: float, delta: float, bounds: Bounds, clamp: Bounds | None
) -> Mechanism:
    """Calibrate any mechanism with one parameter of noise.

    Of Laplace noise that is the scale Δ/(ε − 2 ln(1 − δ)), unless a clamp cuts into the bounds.
    """
    make: Callable[..., Mechanism] = kind

    def curve(noise: Array) -> Array:
        return kind.deltas(epsilon, noise, bounds, clamp)

    noise = _least_additive_noise(kind.name, curve, delta, bounds)
    return _verified(
        lambda level: make(level, bounds, clamp), noise, lambda m: m.delta(epsilon) <= delta
    )


def _calibrate_truncated_laplace(
    epsilon: float, delta: float, bounds: Bounds, clamp: Bounds | None
) -> TruncatedLaplace:
    """Take scale Δ/ε and the least cut: for δ ≤ ½, scale · ln(1 + (e^ε − 1)/2δ) (Geng 2020)."""
    # For ε → 0 the noise becomes uniform; a scale far above the cut is as good as infinite.
    # The last digits see to it that the privacy loss Δ/scale, rounded up, is at most ε.
    scale = (bounds[1] - bounds[0]) / max(epsilon, 1e-4 * delta) * (1 + 2.0**-49)

    def curve(cut: Array) -> Array:
        return curves.truncated_laplace_delta(epsilon, scale, cut, bounds, clamp)

    cut = _least_additive_noise(TruncatedLaplace.name, curve, delta, bounds)
    return _verified(
        lambda c: TruncatedLaplace(scale, c, bounds, clamp),
        cut,
        lambda m: m.delta(epsilon) <= delta,
    )


def _least_additive_noise(
    kind: str, curve: Callable[[Array], Array], delta: float, bounds: Bounds
) -> float:
    grid = math.log(bounds[1] - bounds[0]) + log_grid(-25.0, 12.0, _LARGEST_LOG)
    noise = least_noise(curve, delta, grid)
    if noise is None:  # ours reach every δ > 0 and every ε > 0 before e^345 ranges
        raise infeasible.refuse_all_noise(kind, float(curve(np.exp(grid[-1:]))[0]))
    return noise


def _theta_grid(bounds: Bounds) -> Array:
    """The noise levels from the smallest θ that is accounted for to more than any target needs."""
    return math.log(bounds[1]) + log_grid(-math.log(LARGEST_SHAPE) + 1e-9, 12.0, _LARGEST_LOG)


def _verified(
    make: Callable[[float], _AnyMechanism], noise: float, holds: Callable[[_AnyMechanism], bool]
) -> _AnyMechanism:
    """The mechanism that keeps its promise by its own account, with more noise if need be."""
    for power in range(-52, -20):
        mechanism = make(noise)
        if holds(mechanism):
            return mechanism
        noise *= 1.0 + 2.0**power
    raise ArithmeticError(f"{mechanism!r} misses the target it was calibrated for: please report.")
