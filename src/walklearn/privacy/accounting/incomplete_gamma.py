"""Incomplete gamma functions in logarithms, for every shape from 1e-300 to 1e10.

With shape k, the tails of the Gamma distribution are P(k, x) = γ(k, x)/Γ(k) and Q = 1 − P. Privacy
needs both in logarithms at thresholds given by ln x, because x itself may be e^(−1e6), and it needs
the *smaller* tail to full relative accuracy. Each of four regimes has its own expansion:

* ln x < −40: P = x^k/Γ(k+1), the first term of the series;
* k ≥ 2e4: Temme's uniform expansion (SciPy stops its series after 2000 terms: at k = 1e9 that
  loses all but 2 % of a five-sigma tail, which would be a false privacy claim);
* P or Q below 1e-290 (and k < 2e4): power series and continued fraction times e^(ln kernel);
* elsewhere SciPy, which is accurate to about 1e-13 there.

>>> lower, upper = log_tails(1.0, np.log(2.0))     # shape 1: exponential distribution
>>> round(float(upper), 12)
-2.0
"""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

from walklearn.privacy.accounting import special
from walklearn.privacy.limits import Array

LARGEST_SHAPE = 1e10
_LARGE_SHAPE = 2e4
_TINY_LOG = -40.0
_SMALLEST_TAIL = 1e-290
_SHIFT = 16


def log_gamma_ratio(b: ArrayLike, c: ArrayLike) -> Array:
    """Return lnΓ(b + c) − lnΓ(b) for b, c > 0, without subtracting two large numbers.

    Γ(b + 1) = bΓ(b) lifts b by 16, which adds Σ ln(1 + c/(b + j)). Above 16 the Stirling formulas
    of both are subtracted symbolically. Every term is proportional to c for small c, so the
    quotient by c, which the thresholds need, is accurate too.
    """
    b, c = np.asarray(b, dtype=float), np.asarray(c, dtype=float)
    lifted, ratio = b + _SHIFT, c / (b + _SHIFT)
    stirling = c * (np.log(lifted + c) + np.log1p(ratio) / ratio - 1.0) - 0.5 * np.log1p(ratio)
    correction = _stirling_error(lifted + c) - _stirling_error(lifted)
    lift = sum(np.log1p(c / (b + j)) for j in range(_SHIFT))
    return np.asarray(stirling + correction - lift)


def log_gamma_one_plus(k: ArrayLike) -> Array:
    """Return lnΓ(1 + k), for tiny k by its series, because 1 + k would lose the digits of k."""
    k = np.asarray(k, dtype=float)
    euler, zeta2, zeta3, zeta4 = 0.5772156649015329, np.pi**2 / 6, 1.2020569031595942, np.pi**4 / 90
    small = np.minimum(k, 1e-3)
    series = small * (-euler + small * (zeta2 / 2 + small * (-zeta3 / 3 + small * zeta4 / 4)))
    return np.asarray(np.where(k < 1e-3, series, special.gammaln(1.0 + k)))


def log_kernel(k: ArrayLike, x: ArrayLike) -> Array:
    """Return ln(x^k e^(−x)/Γ(k + 1)); for large k as −k(μ − ln(1 + μ)) − …, μ = x/k − 1."""
    k, x = np.broadcast_arrays(np.asarray(k, dtype=float), np.asarray(x, dtype=float))
    large = np.maximum(k, _SHIFT)
    with np.errstate(divide="ignore", invalid="ignore"):
        direct = k * np.log(x) - x - log_gamma_one_plus(k)
    stirling = -large * _half_square(x, large) - 0.5 * np.log(2 * np.pi * large)
    return np.asarray(np.where(k < _SHIFT, direct, stirling - _stirling_error(large)))


def log_tails(shape: ArrayLike, log_x: ArrayLike) -> tuple[Array, Array]:
    """Return (ln P, ln Q) at x = e^log_x; the smaller of the two has full accuracy."""
    k, log_x = np.broadcast_arrays(np.asarray(shape, dtype=float), np.asarray(log_x, dtype=float))
    large = k >= _LARGE_SHAPE
    with np.errstate(over="ignore", divide="ignore", under="ignore", invalid="ignore"):
        x = np.exp(log_x)
        plain = np.where(large, 1.0, k)
        lower, upper = special.gammainc(plain, x), special.gammaincc(plain, x)
        log_lower = np.where(lower < 0.5, np.log(lower), np.log1p(-upper))
        log_upper = np.where(upper < 0.5, np.log(upper), np.log1p(-lower))
    for chosen, tails in (
        ((lower < _SMALLEST_TAIL) & ~large, _far_below),
        ((upper < _SMALLEST_TAIL) & ~large & np.isfinite(x), _far_above),
        (large, _temme),
    ):
        if chosen.any():
            log_lower[chosen], log_upper[chosen] = tails(k[chosen], x[chosen])
    tiny = log_x < _TINY_LOG
    if tiny.any():
        first_term = k[tiny] * log_x[tiny] - log_gamma_one_plus(k[tiny])
        log_lower[tiny], log_upper[tiny] = first_term, _log_complement(first_term)
    return log_lower, log_upper


def _far_below(k: Array, x: Array) -> tuple[Array, Array]:
    """P = kernel · (1 + x/(k+1) + x²/((k+1)(k+2)) + …), for x far below k."""
    total = np.ones_like(x)
    for n in range(_terms(k), 0, -1):
        total = 1.0 + total * (x / (k + n))
    log_lower = log_kernel(k, x) + np.log(total)
    return log_lower, _log_complement(log_lower)


def _far_above(k: Array, x: Array) -> tuple[Array, Array]:
    """Q = kernel · k/(x+1−k − 1(1−k)/(x+3−k − 2(2−k)/(x+5−k − …))), for x far above k."""
    terms = _terms(k)
    fraction = x + (2 * terms + 1) - k
    for n in range(terms, 0, -1):
        fraction = x + (2 * n - 1) - k - n * (n - k) / fraction
    log_upper = log_kernel(k, x) + np.log(k) - np.log(fraction)
    return _log_complement(log_upper), log_upper


def _terms(k: Array) -> int:
    """Number of terms for full precision of tails below 1e-290, 37 standard deviations away."""
    return 20 + int(2 * np.sqrt(k.max()))


def _temme(k: Array, x: Array) -> tuple[Array, Array]:
    """Q = ½ erfc(η√(k/2)) + e^(−kη²/2)/√(2πk) (c₀(η) + c₁(η)/k + …), ½η² = μ − ln(1 + μ).

    The value of c₂ at 0 suffices: for k ≥ 2e4 the rest contributes less than 1e-12 (DLMF 8.12).
    """
    with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
        excess = (x - k) / k
        half_square = _half_square(x, k)
        eta = np.copysign(np.sqrt(2 * half_square), excess)
        s = np.sqrt(k * half_square)
        near = np.abs(eta) < 0.1
        c0 = np.where(near, np.polyval(_C0, eta), 1 / excess - 1 / eta)
        far_c1 = 1 / eta**3 - 1 / excess**3 - 1 / excess**2 - 1 / (12 * excess)
        c1 = np.where(near, np.polyval(_C1, eta), far_c1)
        series = c0 + (c1 + _C2 / k) / k
        above = excess >= 0
        remainder = np.where(above, 1.0, -1.0) * series / np.sqrt(2 * np.pi * k)
        log_small = -(s**2) + np.log(0.5 * special.erfcx(s) + remainder)
        log_small = np.where(np.isinf(s), -np.inf, log_small)
    log_large = _log_complement(log_small)
    return np.where(above, log_large, log_small), np.where(above, log_small, log_large)


# Coefficients of c₀ and c₁ in powers of η, highest first (DLMF 8.12.12–14).
_C0 = (
    -1.85406221071516e-6, -2.18544851067999e-6, 3.91926317852244e-5, -139 / 777600,
    1 / 2835, 1 / 864, -2 / 135, 1 / 12, -1 / 3,
)  # fmt: skip
_C2 = 25 / 6048
_C1 = (-4.01877572016461e-7, 1 / 4860, -77 / 77760, 1 / 378, -1 / 288, -1 / 540)


def _half_square(x: Array, k: Array) -> Array:
    """½η² = μ − ln(1 + μ) with μ = x/k − 1, at least 0."""
    excess = (x - k) / k
    with np.errstate(divide="ignore", invalid="ignore"):
        log_ratio = np.where(excess < -0.5, np.log(x / k), np.log1p(excess))
        return np.maximum(excess - log_ratio, 0.0)


def _stirling_error(k: Array) -> Array:
    """lnΓ(k) − ((k − ½) ln k − k + ½ ln 2π), for k ≥ 16."""
    u = 1.0 / np.square(k)
    return np.asarray((1 / 12 - u * (1 / 360 - u * (1 / 1260 - u * (1 / 1680 - u / 1188)))) / k)


def _log_complement(log_probability: Array) -> Array:
    """ln(1 − e^y) for y ≤ 0."""
    with np.errstate(divide="ignore"):
        large = log_probability > -np.log(2.0)
        return np.where(
            large,
            np.log(-np.expm1(np.minimum(log_probability, 0.0))),
            np.log1p(-np.exp(np.minimum(log_probability, -np.log(2.0)))),
        )
