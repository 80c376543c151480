"""What a release costs: exact δ(ε) of every mechanism, in closed form and in logarithms.

A mechanism R is (ε, δ) locally private when P(R(v) ∈ S) ≤ e^ε P(R(v') ∈ S) + δ for all values
v, v' within the public bounds and all measurable sets S. The least such δ is the hockey stick

    δ(ε) = max over v, v' and S of  P(R(v) ∈ S) − e^ε P(R(v') ∈ S).

All laws here have a monotone likelihood ratio in v, and clamping keeps it. So the worst pair
is (lo, hi), the worst set a half-line up or down, and its end is where the ratio of densities
is e^±ε, moved into the clamp [l, h] if it lies outside (the set is then the atom at that end):

    δ = max{ Q_hi(t₊) − e^ε Q_lo(t₊),  P_lo(t₋) − e^ε P_hi(t₋) },

with Q_v(t) = P(R(v) ≥ t) before clamping and P_v = 1 − Q_v. For the Gamma mechanism of shape
v/θ and scale θ, with a = hi/θ and b = lo/θ, ln t±/θ = (±ε + lnΓ(a) − lnΓ(b))/(a − b).

So δ is an amount of probability that any set may have beyond e^ε times what the other value gives
it. It is not the probability that the privacy loss exceeds ε: that is the lemma's, larger δ (for
Laplace noise calibrated to (3, 0.03) the loss exceeds 3 half of the time, by 0.06).

Accuracy: δ is rounded up. e^ε P(R(v') ∈ S) is taken smaller, and the difference larger, by a
relative 1e-12 + 1e-14 √shape for the Gamma laws and 1e-14 for the Gaussian; of Laplace noise
Δ/scale is taken larger in its last two digits and, at a clamp or a cut, tails in their last four.
That is more than the error of the functions behind (tested against 50 digits). Where the clamp of a
Gamma law is the end of S it is 1e-12 + 2e-13 √shape: elsewhere δ is stationary in the end of S,
there the rounding of ln t counts 37 √shape times in a far tail. So δ is never below the truth, and
above it by at most 1e-11 for shapes up to 1e6, 2e-10 at a clamp. What is positive in exact
arithmetic is never rounded to 0, and what cannot be computed counts as 1.

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

LARGEST_EPSILON = 2.0**50  # larger ε are all the same

# The smallest positive number of full precision: what a positive δ is never rounded below.
_TINY = float(np.finfo(float).tiny)
_HUGE = 1e300  # deviations: no tail is left there
_GAUSSIAN_ROUNDING = 1e-14
_LAST_DIGITS = 2.0**-51


def gamma_lemma_delta(epsilon: ArrayLike, theta: ArrayLike, bounds: Bounds) -> Array:
    """δ of the paper's lemma, max{Q(a, x₊), P(b, x₋)}: the tail of the privacy loss.

    It overstates the cost of the Gamma mechanism; `gamma_delta` is the true one.
    """
    a, b = _shapes(theta, bounds)
    _, upper = log_tails(a, _log_threshold(np.asarray(epsilon, float), theta, bounds))
    lower, _ = log_tails(b, _log_threshold(-np.asarray(epsilon, float), theta, bounds))
    return np.maximum(np.exp(np.maximum(upper, lower)), _TINY)


def gamma_delta(
    epsilon: ArrayLike, theta: ArrayLike, bounds: Bounds, clamp: Bounds | None = None
) -> Array:
    """Return the exact δ of the Gamma mechanism.

    Without a clamp it is never 0, since the privacy loss is unbounded; with one it is 0 from the
    pure ε on.
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
    """The least ε with δ = 0: max{ln Q(a, h)/Q(b, h), ln P(b, l)/P(a, l)}, rounded up.

    It tends to ln(hi/lo) for large θ, but need not be monotone.
    """
    a, b = _shapes(theta, bounds)
    log_low, log_high = _log_clamp(theta, clamp)
    up = log_tails(a, log_high)[1] - log_tails(b, log_high)[1]
    down = log_tails(b, log_low)[0] - log_tails(a, log_low)[0]
    return np.asarray(np.maximum(up, down) + _rounding(a, at_clamp=True))


def gamma_floor(epsilon: float, bounds: Bounds) -> float:
    """The δ that no θ can beat: e^(−s)(1 − 1/ρ), s = (ε + ln ρ)/(ρ − 1), ρ = hi/lo."""
    return floor_of_excess(epsilon, (bounds[1] - bounds[0]) / bounds[0])


def floor_of_excess(epsilon: float, excess: float) -> float:
    """The floor as a function of ρ − 1, which may be smaller than the precision of ρ."""
    return math.exp(-(epsilon + math.log1p(excess)) / excess) * excess / (1 + excess)


def gamma_smallest_epsilon(delta: float, bounds: Bounds) -> float:
    """The ε at which the floor is δ, (ρ − 1) ln((1 − 1/ρ)/δ) − ln ρ; needed is more than it.

    Infinite for δ = 0, and 0 where δ is feasible for every ε.
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
    """Return the exact δ of Laplace noise conditioned on ±cut, with what only one value can reach.

    Without clamp and cut it is 1 − e^((ε − Δ/scale)/2), or 0 if that is negative; a clamp that
    contains the bounds changes nothing, since the threshold lies between them. With the scale Δ/ε
    and a cut of at least Δ it is (e^ε − 1)/(2(e^(cut/scale) − 1)).
    """
    epsilon, scale = np.asarray(epsilon, float), np.asarray(scale, float)
    with np.errstate(over="ignore", invalid="ignore", divide="ignore"):
        # The largest privacy loss, Δ/scale, is rounded up: it decides whether δ is 0.
        width = (bounds[1] - bounds[0]) / scale * (1 + _LAST_DIGITS)
        reach = np.asarray(cut, float) / scale
        # Beyond hi the ratio of densities stays at e^(Δ/scale): above e^ε from here on, or never,
        # until only hi can be reached, from lo + cut on. Below hi − cut only lo can.
        inside = width > epsilon
        from_lo = np.where(inside, (width + epsilon) / 2, np.inf)
        from_hi = np.where(inside, (epsilon - width) / 2, np.inf)
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
    """The exact δ of Gaussian noise; unclamped it is the analytic Gaussian (Balle & Wang 2018).

    Φ(Δ/2σ − εσ/Δ) − e^ε Φ(−Δ/2σ − εσ/Δ). Clamped it reaches 0: the atoms end the likelihood
    ratio's growth.
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
    """The least ε with δ(ε) ≤ delta, never less and by default to the last digit; or infinity."""
    if delta_of(0.0) <= delta:
        return 0.0
    low, high = 0.0, 1.0
    while not delta_of(high) <= delta:  # so that NaN is never small enough
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
    """S(near) − e^ε S(far) for the half-line that ends `far` above lo and `near` above hi.

    Both are in units of the noise and found apart: one minus Δ would lose the other's digits. A
    clamp moves the end, and excess is told where. Symmetric noise makes the half-line down for the
    clamp [l, h] the half-line up for the clamp reflected at the midpoint.
    """
    lo, hi = bounds
    low, high = clamp or (-np.inf, np.inf)
    delta = np.zeros(())
    for start, stop in (((low - lo, low - hi), (high - lo, high - hi)),
                        ((hi - high, lo - high), (hi - low, lo - low))):  # fmt: skip
        # Near hi only `near` has the digits to tell, near lo only `far`.
        below = (end[0] < start[0] / unit) & (end[1] < start[1] / unit)
        above = (end[0] > stop[0] / unit) & (end[1] > stop[1] / unit)
        far, near = (
            np.where(below, start[at] / unit, np.where(above, stop[at] / unit, end[at]))
            for at in (0, 1)
        )
        found = excess(far, near, below | above)
        inside = (start[0] / unit < end[0]) & (end[0] < stop[0] / unit)
        positive = inside & np.isfinite(epsilon)
        delta = np.maximum(delta, np.where(positive, np.maximum(found, _TINY), found))
    return _at_most_one(delta * (1 + 1e-12))


def _at_most_one(delta: Array) -> Array:
    """Cut δ at 1, and take 1 for a δ that could not be computed: it is not known to be less."""
    return np.where(np.isnan(delta), 1.0, np.minimum(delta, 1.0))


def _excess(log_more: Array, log_less: Array) -> Array:
    """e^log_more − e^log_less, or 0 where that is negative."""
    with np.errstate(invalid="ignore", under="ignore"):
        gap = np.minimum(log_less - log_more, 0.0)
        excess = np.exp(log_more) * np.abs(np.expm1(gap))
    return np.where(np.isneginf(log_more), 0.0, excess)


def _excess_of_tails(
    epsilon: Array, more: tuple[Array, Array], less: tuple[Array, Array], rounding: Array
) -> Array:
    """M − e^ε m from (ln M, ln(1 − M)) and (ln m, ln(1 − m)), rounded up.

    Where M is near 1 and ε near 0 the complements are subtracted instead, so that a small
    difference of two large tails keeps its digits: (1 − m) − (1 − M) − (e^ε − 1) m.
    """
    plain = _excess(more[0], epsilon + less[0] - rounding)
    complements = _excess(less[1], more[1] - rounding)
    both = complements - np.expm1(np.minimum(epsilon, 1.0)) * np.exp(less[0]) * (1 - rounding)
    return np.where((more[0] > -math.log(2)) & (epsilon < 0.7), np.maximum(both, 0.0), plain)


def _laplace_excess(
    epsilon: Array, width: Array, cut: Array, far: Array, near: Array, is_moved: Mask
) -> Array:
    """S(near) − e^ε S(far) in units of the scale, with the exponentials subtracted on paper.

    S(z) = (e^(−z) − q)/(2(1 − q)) for 0 ≤ z ≤ cut, with q = e^(−cut), and S(−z) = 1 − S(z). What
    is added is rounded up and what is subtracted down, by more than the functions and the ends are
    off; but for an end between the bounds that nothing has moved, where they are exact together.
    Where the cut is far below the scale, the difference of the logarithms has more digits.
    """
    few = 8 * _LAST_DIGITS
    plain = _excess(
        _log_laplace_upper(near, cut, few), epsilon + _log_laplace_upper(far, cut, -few)
    )
    # Beyond 800 scales nothing is left that could be rounded.
    left = -np.exp(epsilon - cut) * np.expm1(-epsilon)
    left *= 1 + few * (1 + epsilon + np.minimum(cut, epsilon + 800))
    lost = np.exp(-near) * np.expm1(epsilon - width)
    lost *= 1 - np.copysign(few * (1 + np.minimum(np.abs(near), 800)), lost)
    up, down = -np.expm1(near), -np.expm1(epsilon - far)
    off = up * (1 + np.abs(near)) + np.abs(down) + np.exp(epsilon - far) * (epsilon + far)
    between = left + up + down + np.where(np.isfinite(cut) | is_moved, few * off, 0.0)
    at_cut = -np.exp(-near) * np.expm1(-width)
    double = np.where(far == cut, at_cut, np.where(near >= 0, left - lost, between))
    on_paper = np.maximum(double / (-2 * np.expm1(-cut)), 0.0)
    before_cut = (far >= 0) & (far < cut) & (near > -cut)
    is_exact = before_cut | ((far == cut) & (near >= 0))
    # Where e^ε is too large for a number on paper, the logarithms know.
    return np.where(is_exact, np.fmin(on_paper, plain), plain)


def _gaussian_excess(epsilon: Array, near: Array, far: Array) -> Array:
    """Φ(−near) − e^ε Φ(−far) for near < far, rounded up; from erf where 0 lies between them."""
    log_tail = np.asarray(special.log_ndtr(-far))
    rounding = _GAUSSIAN_ROUNDING * (1 + np.abs(log_tail))
    plain = _excess(special.log_ndtr(-near), epsilon + log_tail - rounding)
    half = np.sqrt(0.5)
    middle = 0.5 * (special.erf(-near * half) + special.erf(far * half)) * (1 + _GAUSSIAN_ROUNDING)
    both = middle - np.expm1(np.minimum(epsilon, 1.0)) * np.exp(log_tail) * (1 - rounding)
    between = (near <= 0) & (far > 0) & (epsilon < 0.7)
    return np.where(between, np.maximum(both, 0.0), plain)


def _shapes(theta: ArrayLike, bounds: Bounds) -> tuple[Array, Array]:
    """a = hi/θ and b = lo/θ."""
    theta = np.asarray(theta, float)
    return np.asarray(bounds[1] / theta), np.asarray(bounds[0] / theta)


def _log_threshold(epsilon: Array, theta: ArrayLike, bounds: Bounds) -> Array:
    """ln x where the densities of the two extreme values have the ratio e^ε."""
    theta = np.asarray(theta, float)
    difference = (bounds[1] - bounds[0]) / theta
    with np.errstate(over="ignore"):
        return np.asarray((epsilon + log_gamma_ratio(bounds[0] / theta, difference)) / difference)


def _log_clamp(theta: ArrayLike, clamp: Bounds) -> tuple[Array, Array]:
    theta = np.asarray(theta, float)
    return np.log(clamp[0] / theta), np.log(clamp[1] / theta)


def _rounding(shape: Array, at_clamp: bool = False) -> Array:
    """By how much the logarithm of a tail, or of a ratio of tails, is rounded outward."""
    return np.asarray(1e-12 + (2e-13 if at_clamp else 1e-14) * np.sqrt(shape))


def _log_laplace_upper(z: Array, cut: Array, rounding: float) -> Array:
    """ln P(Z ≥ z) for Laplace noise of scale 1 conditioned on |Z| ≤ cut, rounded up by so much."""
    size = np.minimum(np.abs(z), cut)
    with np.errstate(divide="ignore", invalid="ignore"):
        # What is left to the cut is off by digits of the cut; below 0 less of a tail is more.
        rest = cut - size + np.where(z < 0, -rounding, rounding) * cut
        rest = np.where(np.isinf(cut), np.inf, np.maximum(rest, 0.0))
        log_tail = -size + np.log(-np.expm1(-rest)) - np.log(-2 * np.expm1(-cut))
        found = np.where(z < 0, np.log1p(-np.exp(log_tail)), log_tail)
        return np.asarray(np.minimum(found + rounding * (1 + np.minimum(size, 800)), 0.0))
