"""Exact δ(ε) of every mechanism, in closed form and in logarithms.

A mechanism R is (ε, δ) locally private if P(R(v) ∈ S) ≤ e^ε P(R(v') ∈ S) + δ for all values
v, v' within the public bounds and all measurable sets S. The smallest such δ is the hockey stick

    δ(ε) = max over v, v' and S of  P(R(v) ∈ S) − e^ε P(R(v') ∈ S).

All these distributions have a monotone likelihood ratio in v, also after clamping. So the worst
pair is (lo, hi), the worst set an upper or lower half-line, and its end the point where the ratio
of densities is e^±ε, moved into the clamp [l, h] if it lies outside (the set is then the atom at
that end):

    δ = max{ Q_hi(t₊) − e^ε Q_lo(t₊),  P_lo(t₋) − e^ε P_hi(t₋) },

with Q_v(t) = P(R(v) ≥ t) before clamping and P_v = 1 − Q_v. For the Gamma mechanism of shape
v/θ and scale θ, with a = hi/θ and b = lo/θ, ln t±/θ = (±ε + lnΓ(a) − lnΓ(b))/(a − b).

So δ is the largest excess of a set's probability over e^ε times that under the other value. It is
not the probability that the privacy loss exceeds ε, which is the larger δ of the lemma (for Laplace
noise calibrated to (3, 0.03) the loss exceeds 3 half of the time, by 0.06).

**Accuracy.** δ is rounded up. e^ε P(R(v') ∈ S) is decreased, and the difference increased, by a
relative 1e-12 + 1e-14 √shape for the Gamma distribution and 1e-14 for the Gaussian. For Laplace
noise Δ/scale is increased in its last two digits and, at a clamp or a cut, tails in their last
four. That exceeds the error of the functions used (tested against 50 digits). If S ends at the
clamp of a Gamma distribution it is 1e-12 + 2e-13 √shape: elsewhere δ is stationary in the end of S,
but at the clamp the rounding of ln t is amplified 37 √shape times in a far tail. So δ is never
below the truth, and above it by at most 1e-11 for shapes up to 1e6, 2e-10 at a clamp. A positive δ
is never rounded to 0, and a δ that cannot be computed counts as 1.

All functions broadcast over ε and the noise.

>>> float(gamma_delta(3.0, 1.0, (1.0, 2.0))) < float(gamma_lemma_delta(3.0, 1.0, (1.0, 2.0)))
True
>>> float(laplace_delta(3.0, 49.0 / 3.0, (1.0, 50.0))) < 1e-15     # scale Δ/ε, rounded up
True
"""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np
from numpy.typing import ArrayLike, NDArray

from walklearn.privacy.accounting import special
from walklearn.privacy.accounting.incomplete_gamma import log_gamma_ratio, log_tails
from walklearn.privacy.limits import Array, Bounds

Mask = NDArray[np.bool_]

LARGEST_EPSILON = 2.0**50  # larger ε are treated as this one

# Smallest positive number of full precision: a positive δ is at least this.
_TINY = float(np.finfo(float).tiny)
_HUGE = 1e300  # standard deviations: the tail beyond it is 0
_GAUSSIAN_ROUNDING = 1e-14
_LAST_DIGITS = 2.0**-51


def gamma_lemma_delta(epsilon: ArrayLike, theta: ArrayLike, bounds: Bounds) -> Array:
    """Return δ of the paper's lemma, max{Q(a, x₊), P(b, x₋)}: the tail of the privacy loss.

    It overstates the cost of the Gamma mechanism; `gamma_delta` is exact.
    """
    a, b = _shapes(theta, bounds)
    _, upper = log_tails(a, _log_threshold(np.asarray(epsilon, float), theta, bounds))
    lower, _ = log_tails(b, _log_threshold(-np.asarray(epsilon, float), theta, bounds))
    return np.maximum(np.exp(np.maximum(upper, lower)), _TINY)


def gamma_delta(
    epsilon: ArrayLike, theta: ArrayLike, bounds: Bounds, clamp: Bounds | None = None
) -> Array:
    """Return the exact δ of the Gamma mechanism.

    Without a clamp it is never 0, since the privacy loss is unbounded. With one it is 0 for ε of at
    least the pure ε.
    """
    epsilon = np.asarray(epsilon, float)
    a, b = _shapes(theta, bounds)
    up = _log_threshold(epsilon, theta, bounds)
    down = _log_threshold(-epsilon, theta, bounds)
    positive = np.isfinite(epsilon)
    rounding = _rounding(a)
    if clamp is not None:
        log_low, log_high = _log_clamp(theta, clamp)
        positive &= ((log_low < up) & (up < log_high)) | ((log_low < down) & (down < log_high))
        ends = np.clip(up, log_low, log_high), np.clip(down, log_low, log_high)
        cut = (ends[0] != up) | (ends[1] != down)
        rounding = np.where(cut, _rounding(a, at_clamp=True), rounding)
        up, down = ends
    (lower_a, upper_a), (lower_b, upper_b) = log_tails(a, up), log_tails(b, up)
    above = _excess_of_tails(epsilon, (upper_a, lower_a), (upper_b, lower_b), rounding)
    (lower_a, upper_a), (lower_b, upper_b) = log_tails(a, down), log_tails(b, down)
    below = _excess_of_tails(epsilon, (lower_b, upper_b), (lower_a, upper_a), rounding)
    delta = _at_most_one(np.maximum(above, below) * (1.0 + rounding))
    return np.where(positive, np.maximum(delta, _TINY), delta)


def clamped_gamma_pure_epsilon(theta: ArrayLike, bounds: Bounds, clamp: Bounds) -> Array:
    """Return the smallest ε with δ = 0: max{ln Q(a, h)/Q(b, h), ln P(b, l)/P(a, l)}, rounded up.

    It tends to ln(hi/lo) for large θ, but need not be monotone.
    """
    a, b = _shapes(theta, bounds)
    log_low, log_high = _log_clamp(theta, clamp)
    up = log_tails(a, log_high)[1] - log_tails(b, log_high)[1]
    down = log_tails(b, log_low)[0] - log_tails(a, log_low)[0]
    return np.asarray(np.maximum(up, down) + _rounding(a, at_clamp=True))


def gamma_floor(epsilon: float, bounds: Bounds) -> float:
    """Return the infimum of δ over θ: e^(−s)(1 − 1/ρ), s = (ε + ln ρ)/(ρ − 1), ρ = hi/lo."""
    return floor_of_excess(epsilon, (bounds[1] - bounds[0]) / bounds[0])


def floor_of_excess(epsilon: float, excess: float) -> float:
    """Return the floor for ρ − 1, which may be smaller than the precision of ρ."""
    return math.exp(-(epsilon + math.log1p(excess)) / excess) * excess / (1 + excess)


def gamma_smallest_epsilon(delta: float, bounds: Bounds) -> float:
    """Return the ε at which the floor is δ, (ρ − 1) ln((1 − 1/ρ)/δ) − ln ρ; ε must exceed it.

    It is infinite for δ = 0, and 0 if δ is feasible for every ε.
    """
    if delta == 0:
        return math.inf
    excess = (bounds[1] - bounds[0]) / bounds[0]
    return max(0.0, excess * math.log(excess / (1 + excess) / delta) - math.log1p(excess))


def laplace_delta(
    epsilon: ArrayLike,
    scale: ArrayLike,
    bounds: Bounds,
    clamp: Bounds | None = None,
    cut: ArrayLike = np.inf,
) -> Array:
    """Return the exact δ of Laplace noise conditioned on ±cut.

    It includes releases that only one value can reach. Without clamp and cut it is
    1 − e^((ε − Δ/scale)/2), or 0 if that is negative. A clamp that contains the bounds has no
    effect, since the threshold lies between them. With the scale Δ/ε and a cut of at least Δ it is
    (e^ε − 1)/(2(e^(cut/scale) − 1)).
    """
    epsilon, scale = np.asarray(epsilon, float), np.asarray(scale, float)
    with np.errstate(over="ignore", invalid="ignore", divide="ignore"):
        # The largest privacy loss, Δ/scale, is rounded up: it decides whether δ is 0.
        width = (bounds[1] - bounds[0]) / scale * (1 + _LAST_DIGITS)
        reach = np.asarray(cut, float) / scale
        # Beyond hi the ratio of densities stays at e^(Δ/scale), which is above e^ε or not, up to
        # lo + cut. Beyond lo + cut only hi has releases, and below hi − cut only lo.
        is_exceeded = width > epsilon
        from_lo = np.where(is_exceeded, (width + epsilon) / 2, np.inf)
        from_hi = np.where(is_exceeded, (epsilon - width) / 2, np.inf)
        end = (
            np.maximum(np.minimum(from_lo, reach), width - reach),
            np.maximum(np.minimum(from_hi, reach - width), -reach),
        )

        def excess(far: Array, near: Array, is_moved: Mask) -> Array:
            return _laplace_excess(epsilon, width, reach, far, near, is_moved)

        return _additive_hockey_stick(epsilon, excess, end, scale, bounds, clamp)


def gaussian_delta(
    epsilon: ArrayLike, sigma: ArrayLike, bounds: Bounds, clamp: Bounds | None = None
) -> Array:
    """Return the exact δ of Gaussian noise.

    Unclamped it is the analytic Gaussian, Φ(Δ/2σ − εσ/Δ) − e^ε Φ(−Δ/2σ − εσ/Δ) (Balle & Wang
    2018). Clamped it reaches 0, because the atoms bound the likelihood ratio.
    """
    epsilon, sigma = np.asarray(epsilon, float), np.asarray(sigma, float)
    width = bounds[1] - bounds[0]
    with np.errstate(over="ignore", invalid="ignore"):
        half, shift = width / sigma / 2, np.minimum(epsilon * (sigma / width), _HUGE)

        def excess(far: Array, near: Array, is_moved: Mask) -> Array:
            return _gaussian_excess(epsilon, near, far)

        end = half + shift, shift - half
        return _additive_hockey_stick(epsilon, excess, end, sigma, bounds, clamp)


def smallest_epsilon(
    delta_of: Callable[[float], float], delta: float, tolerance: float = 0.0
) -> float:
    """Return the smallest ε with δ(ε) ≤ delta, rounded up, by default in the last digit."""
    if delta_of(0.0) <= delta:
        return 0.0
    low, high = 0.0, 1.0
    while not delta_of(high) <= delta:  # true for NaN as well
        low, high = high, 2.0 * high
        if low >= LARGEST_EPSILON:
            return math.inf
    while high - low > tolerance * high and low < (middle := 0.5 * (low + high)) < high:
        low, high = (low, middle) if delta_of(middle) <= delta else (middle, high)
    return high


def _additive_hockey_stick(
    epsilon: Array,
    excess: Callable[[Array, Array, Mask], Array],
    end: tuple[Array, Array],
    unit: Array,
    bounds: Bounds,
    clamp: Bounds | None,
) -> Array:
    """Return S(near) − e^ε S(far) for the half-line that ends `far` above lo and `near` above hi.

    Both are in units of the noise and computed separately: subtracting Δ from one would lose the
    digits of the other. `excess` also gets a mask of the ends that a clamp has moved. As the
    noise is symmetric, the lower half-line for the clamp [l, h] is the upper one for the clamp
    reflected at the midpoint.
    """
    lo, hi = bounds
    low, high = clamp or (-np.inf, np.inf)
    delta = np.zeros(())
    for start, stop in (((low - lo, low - hi), (high - lo, high - hi)),
                        ((hi - high, lo - high), (hi - low, lo - low))):  # fmt: skip
        # Close to hi only `near` has enough digits, close to lo only `far`.
        below = (end[0] < start[0] / unit) & (end[1] < start[1] / unit)
        above = (end[0] > stop[0] / unit) & (end[1] > stop[1] / unit)
        far, near = (
            np.where(below, start[at] / unit, np.where(above, stop[at] / unit, end[at]))
            for at in (0, 1)
        )
        value = excess(far, near, below | above)
        is_unmoved = (start[0] / unit < end[0]) & (end[0] < stop[0] / unit)
        positive = is_unmoved & np.isfinite(epsilon)
        delta = np.maximum(delta, np.where(positive, np.maximum(value, _TINY), value))
    return _at_most_one(delta * (1 + 1e-12))


def _at_most_one(delta: Array) -> Array:
    """Return δ, at most 1; a δ that could not be computed counts as 1."""
    return np.where(np.isnan(delta), 1.0, np.minimum(delta, 1.0))


def _excess(log_more: Array, log_less: Array) -> Array:
    """Return e^log_more − e^log_less, or 0 if that is negative."""
    with np.errstate(invalid="ignore", under="ignore"):
        gap = np.minimum(log_less - log_more, 0.0)
        excess = np.exp(log_more) * np.abs(np.expm1(gap))
    return np.where(np.isneginf(log_more), 0.0, excess)


def _excess_of_tails(
    epsilon: Array, more: tuple[Array, Array], less: tuple[Array, Array], rounding: Array
) -> Array:
    """Return M − e^ε m from (ln M, ln(1 − M)) and (ln m, ln(1 − m)), rounded up.

    If M is near 1 and ε near 0, complements are subtracted, so that a small difference of two large
    tails keeps its digits: (1 − m) − (1 − M) − (e^ε − 1) m.
    """
    plain = _excess(more[0], epsilon + less[0] - rounding)
    complements = _excess(less[1], more[1] - rounding)
    by_complements = complements - np.expm1(np.minimum(epsilon, 1.0)) * np.exp(less[0]) * (
        1 - rounding
    )
    return np.where(
        (more[0] > -math.log(2)) & (epsilon < 0.7), np.maximum(by_complements, 0.0), plain
    )


def _laplace_excess(
    epsilon: Array, width: Array, cut: Array, far: Array, near: Array, is_moved: Mask
) -> Array:
    """Return S(near) − e^ε S(far) in units of the scale, with exponentials subtracted symbolically.

    S(z) = (e^(−z) − q)/(2(1 − q)) for 0 ≤ z ≤ cut, with q = e^(−cut), and S(−z) = 1 − S(z). Added
    terms are rounded up and subtracted ones down, by more than the errors of the functions and the
    ends. Only an unmoved end between the bounds is not rounded: its terms are exact together. If
    the cut is far below the scale, the difference of the logarithms has more digits.
    """
    few = 8 * _LAST_DIGITS
    plain = _excess(
        _log_laplace_upper(near, cut, few), epsilon + _log_laplace_upper(far, cut, -few)
    )
    # Beyond 800 scales all terms underflow, so their rounding has no effect.
    remainder = -np.exp(epsilon - cut) * np.expm1(-epsilon)
    remainder *= 1 + few * (1 + epsilon + np.minimum(cut, epsilon + 800))
    loss = np.exp(-near) * np.expm1(epsilon - width)
    loss *= 1 - np.copysign(few * (1 + np.minimum(np.abs(near), 800)), loss)
    up, down = -np.expm1(near), -np.expm1(epsilon - far)
    off = up * (1 + np.abs(near)) + np.abs(down) + np.exp(epsilon - far) * (epsilon + far)
    between = remainder + up + down + np.where(np.isfinite(cut) | is_moved, few * off, 0.0)
    at_cut = -np.exp(-near) * np.expm1(-width)
    double = np.where(far == cut, at_cut, np.where(near >= 0, remainder - loss, between))
    symbolic = np.maximum(double / (-2 * np.expm1(-cut)), 0.0)
    before_cut = (far >= 0) & (far < cut) & (near > -cut)
    is_exact = before_cut | ((far == cut) & (near >= 0))
    # If e^ε overflows, the logarithms still give the result.
    return np.where(is_exact, np.fmin(symbolic, plain), plain)


def _gaussian_excess(epsilon: Array, near: Array, far: Array) -> Array:
    """Return Φ(−near) − e^ε Φ(−far) for near < far, rounded up; by erf if 0 lies between them."""
    log_tail = np.asarray(special.log_ndtr(-far))
    rounding = _GAUSSIAN_ROUNDING * (1 + np.abs(log_tail))
    plain = _excess(special.log_ndtr(-near), epsilon + log_tail - rounding)
    half = np.sqrt(0.5)
    middle = 0.5 * (special.erf(-near * half) + special.erf(far * half)) * (1 + _GAUSSIAN_ROUNDING)
    by_erf = middle - np.expm1(np.minimum(epsilon, 1.0)) * np.exp(log_tail) * (1 - rounding)
    between = (near <= 0) & (far > 0) & (epsilon < 0.7)
    return np.where(between, np.maximum(by_erf, 0.0), plain)


def _shapes(theta: ArrayLike, bounds: Bounds) -> tuple[Array, Array]:
    """Return a = hi/θ and b = lo/θ."""
    theta = np.asarray(theta, float)
    return np.asarray(bounds[1] / theta), np.asarray(bounds[0] / theta)


def _log_threshold(epsilon: Array, theta: ArrayLike, bounds: Bounds) -> Array:
    """Return ln x where the densities of the two extreme values have the ratio e^ε."""
    theta = np.asarray(theta, float)
    difference = (bounds[1] - bounds[0]) / theta
    with np.errstate(over="ignore"):
        return np.asarray((epsilon + log_gamma_ratio(bounds[0] / theta, difference)) / difference)


def _log_clamp(theta: ArrayLike, clamp: Bounds) -> tuple[Array, Array]:
    theta = np.asarray(theta, float)
    return np.log(clamp[0] / theta), np.log(clamp[1] / theta)


def _rounding(shape: Array, at_clamp: bool = False) -> Array:
    """Return the outward rounding of the logarithm of a tail, or of a ratio of tails."""
    return np.asarray(1e-12 + (2e-13 if at_clamp else 1e-14) * np.sqrt(shape))


def _log_laplace_upper(z: Array, cut: Array, rounding: float) -> Array:
    """Return ln P(Z ≥ z) for Laplace noise of scale 1 with |Z| ≤ cut, plus a relative rounding."""
    size = np.minimum(np.abs(z), cut)
    with np.errstate(divide="ignore", invalid="ignore"):
        # The distance to the cut has an error in the digits of the cut. Below 0 a smaller tail
        # makes the result larger.
        rest = cut - size + np.where(z < 0, -rounding, rounding) * cut
        rest = np.where(np.isinf(cut), np.inf, np.maximum(rest, 0.0))
        log_tail = -size + np.log(-np.expm1(-rest)) - np.log(-2 * np.expm1(-cut))
        log_upper = np.where(z < 0, np.log1p(-np.exp(log_tail)), log_tail)
        return np.asarray(np.minimum(log_upper + rounding * (1 + np.minimum(size, 800)), 0.0))
