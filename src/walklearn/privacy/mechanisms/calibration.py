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
from functools import partial
from typing import Any, TypeVar

import numpy as np

from walklearn.checks import check_choice
from walklearn.privacy.accounting import curves
from walklearn.privacy.accounting.incomplete_gamma import LARGEST_SHAPE
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
    TruncatedLaplace,
    infeasible,
)
from walklearn.privacy.mechanisms.infeasible import Accounting
from walklearn.privacy.mechanisms.least_noise import Curve, least_noise, log_grid
from walklearn.privacy.mechanisms.mechanism import Mechanism

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
    mechanism: Any = MECHANISMS.by_name(kind)
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
    make: Callable[[float], Mechanism] = partial(mechanism, bounds=bounds, clamp=ends)
    curve: Curve = partial(mechanism.deltas, epsilon, bounds=bounds, clamp=ends)
    if mechanism is TruncatedLaplace:
        # The scale is Δ/ε, the cut the least: for δ ≤ ½, scale · ln(1 + (e^ε − 1)/2δ) (Geng 2020).
        # For ε → 0 the noise becomes uniform; a scale far above the cut is as good as infinite.
        # The last digits see to it that the privacy loss Δ/scale, rounded up, is at most ε.
        scale = (bounds[1] - bounds[0]) / max(epsilon, 1e-4 * delta) * (1 + 2.0**-49)
        make = partial(TruncatedLaplace, scale, bounds=bounds, clamp=ends)
        curve = partial(curves.laplace_delta, epsilon, scale, bounds, ends)
    grid = math.log(bounds[1] - bounds[0]) + log_grid(-25.0, 12.0, _LARGEST_LOG)
    found = _least_noisy(make, curve, grid, delta, lambda m: m.delta(epsilon))
    if found is None:  # ours reach every δ > 0 and every ε > 0 before e^345 ranges
        raise infeasible.refuse_all_noise(kind, float(curve(np.exp(grid[-1:]))[0]))
    return found


def _check_choice(
    kind: str, epsilon: float, delta: float, clamp: Any, bounds: Bounds, accounting: str
) -> Bounds | None:
    if math.isinf(epsilon):
        raise ValueError("epsilon = inf asks for no privacy: release the values as they are.")
    for name, target in (("epsilon", epsilon), ("delta", delta)):
        if 0 < target < _SMALLEST_TARGET:
            raise ValueError(f"{name} = {target:g} is as good as 0: ask for 0.")
    check_choice("accounting", accounting, Accounting)
    if accounting == "lemma" and kind != "gamma":
        raise ValueError(f'the lemma is about the mechanism "gamma", not about {kind!r}.')
    if kind == "gamma" and not (clamp is None or (isinstance(clamp, str) and clamp == AT_BOUNDS)):
        raise ValueError('"gamma" is never clamped: for a clamp choose "clamped-gamma".')
    if kind == "clamped-gamma" and clamp is None:
        raise ValueError('"clamped-gamma" needs a clamp: without one choose "gamma".')
    return check_clamp(clamp, bounds)


def _calibrate_gamma(epsilon: float, delta: float, bounds: Bounds, rule: Accounting) -> Gamma:
    curve, cost, floor = curves.gamma_lemma_delta, Gamma.lemma_delta, 0.0
    if rule == "tight":
        curve, cost, floor = curves.gamma_delta, Gamma.delta, curves.gamma_floor(epsilon, bounds)
    found = None
    if delta > floor:
        found = _least_noisy(
            lambda theta: Gamma(theta, bounds), lambda theta: curve(epsilon, theta, bounds),
            _theta_grid(bounds), delta, lambda m: cost(m, epsilon),
        )  # fmt: skip
    if found is None:
        raise infeasible.refuse_gamma(epsilon, delta, bounds, rule)
    return found


def _calibrate_clamped_gamma(
    epsilon: float, delta: float, bounds: Bounds, clamp: Bounds
) -> ClampedGamma:
    found = _least_noisy(
        lambda theta: ClampedGamma(theta, bounds, clamp),
        lambda theta: curves.gamma_delta(epsilon, theta, bounds, clamp),
        _theta_grid(bounds), delta, lambda m: m.delta(epsilon),
    )  # fmt: skip
    if found is None:
        raise infeasible.refuse_clamped_gamma(epsilon, bounds, clamp)
    return found


def _theta_grid(bounds: Bounds) -> Array:
    """Noise levels from the smallest θ that is accounted for to more than any target needs."""
    return math.log(bounds[1]) + log_grid(-math.log(LARGEST_SHAPE) + 1e-9, 12.0, _LARGEST_LOG)


def _least_noisy(
    make: Callable[[float], _AnyMechanism],
    curve: Curve,
    grid: Array,
    delta: float,
    cost: Callable[[_AnyMechanism], float],
) -> _AnyMechanism | None:
    """Return the mechanism with the least noise of the grid that reaches δ, if there is one.

    It keeps its promise by its own account: if its cost is above δ, noise is added.
    """
    noise = least_noise(curve, delta, grid)
    if noise is None:
        return None
    for power in range(-52, -20):
        mechanism = make(noise)
        if cost(mechanism) <= delta:
            return mechanism
        noise *= 1.0 + 2.0**power
    raise ArithmeticError(f"{mechanism!r} misses the target it was calibrated for: please report.")
