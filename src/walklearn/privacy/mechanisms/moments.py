"""Bias and variance of a release clamped to [l, h], in closed form.

Let v be the true value and R the unclamped release. All lengths are measured from v, so that
small noise on a large value loses no digits. For symmetric noise Z with survival function S,

    J₁(x) = ∫₀ˣ S(z) dz,   J₂(x) = ∫₀ˣ 2z S(z) dz,   l' = l − v,   h' = h − v,
    E[clip(Z, l', h')] = J₁(h') − J₁(−l'),   E[clip²] = J₂(h') + J₂(−l')   for l' ≤ 0 ≤ h'.

For the Gamma distribution of shape k = v/θ, P(k + 1, x) = P(k, x) − w(x) with the kernel
w(x) = x^k e^(−x)/Γ(k + 1) turns the truncated moments into P, Q and w at both ends.

>>> bias, variance = clamped_laplace(np.array(5.0), 1e-3, (1.0, 9.0))
>>> float(bias), round(float(variance), 12)
(0.0, 2e-06)
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from walklearn.privacy.accounting import special
from walklearn.privacy.accounting.incomplete_gamma import log_kernel, log_tails
from walklearn.privacy.limits import Array, Bounds

Moments = tuple[Array, Array]
Integrals = Callable[[Array], tuple[Array, Array]]


def clamped_gamma(values: Array, theta: float, clamp: Bounds) -> Moments:
    """Bias and variance of Gamma(v/θ, θ) clamped to [l, h]."""
    low, high = clamp
    k = values / theta
    at_low = np.exp(log_tails(k, np.log(low / theta))[0])
    at_high = np.exp(log_tails(k, np.log(high / theta))[1])
    w_low, w_high = np.exp(log_kernel(k, low / theta)), np.exp(log_kernel(k, high / theta))
    # E[R − v] and E[(R − v)²] over l < R < h, from the recurrence in k.
    first = values * (w_low - w_high)
    second = values * theta * (1.0 - at_low - at_high)
    for w, end, sign in ((w_high, high, 1.0), (w_low, low, -1.0)):
        next_ratio = end / (values + theta)
        second += sign * w * values * (values * (1 - next_ratio) - theta * (1 + next_ratio))
    bias = (low - values) * at_low + (high - values) * at_high + first
    square = (low - values) ** 2 * at_low + (high - values) ** 2 * at_high + second
    return bias, np.maximum(square - bias**2, 0.0)


def clamped_laplace(
    values: Array, scale: float, clamp: Bounds | None, cut: float = np.inf
) -> Moments:
    """Bias and variance of Laplace noise conditioned on ±cut, clamped."""
    beyond, mass = np.exp(-cut / scale), -np.expm1(-cut / scale)

    def integrals(x: Array) -> tuple[Array, Array]:
        x = np.minimum(x, cut)
        t = x / scale
        first = (-scale * np.expm1(-t) - x * beyond) / (2 * mass)
        return first, (scale**2 * special.gammainc(2.0, t) - 0.5 * beyond * x**2) / mass

    return _clamped_symmetric(values, clamp, min(cut, 800.0 * scale), integrals)


def clamped_gaussian(values: Array, sigma: float, clamp: Bounds | None) -> Moments:
    """Bias and variance of Gaussian noise, clamped."""

    def integrals(x: Array) -> tuple[Array, Array]:
        t = x / sigma
        density, tail = np.exp(-0.5 * t**2) / np.sqrt(2 * np.pi), special.ndtr(-t)
        peak = 1 / np.sqrt(2 * np.pi)
        second = t**2 * tail + 0.5 * special.erf(t / np.sqrt(2)) - t * density
        return sigma * (t * tail + peak - density), sigma**2 * second

    return _clamped_symmetric(values, clamp, 50.0 * sigma, integrals)


def _clamped_symmetric(
    values: Array, clamp: Bounds | None, reach: float, integrals: Integrals
) -> Moments:
    """Bias and variance of v + Z clamped; the noise has no mass beyond `reach`."""
    low, high = clamp or (-np.inf, np.inf)
    start, end = np.clip(low - values, -reach, reach), np.clip(high - values, -reach, reach)
    (start_first, start_second), (end_first, end_second) = (
        integrals(np.abs(start)),
        integrals(np.abs(end)),
    )
    # Outside the clamp (v < l or v > h) the nearer end is a constant part of the release.
    bias = np.maximum(start, 0) + np.minimum(end, 0) + end_first - start_first
    square = np.maximum(start, 0) ** 2 + np.minimum(end, 0) ** 2
    square = square + np.sign(end) * end_second - np.sign(start) * start_second
    return bias, np.maximum(square - bias**2, 0.0)
