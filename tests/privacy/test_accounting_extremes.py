"""δ where the noise is far out of proportion, and where a clamp lies within the bounds.

Nobody should use most of these mechanisms. But a δ that is too small, or a NaN that counts as a
small one, is a false claim wherever it is.
"""

from __future__ import annotations

import itertools
import math

import mpmath as mp
import numpy as np
import pytest

from walklearn import privacy
from walklearn.privacy.accounting import curves

A_HAIR = mp.mpf(10) ** -50


def beyond(z: mp.mpf, scale: mp.mpf, cut: mp.mpf) -> mp.mpf:
    """P(Z ≥ z) of Laplace noise that is cut off."""
    if abs(z) > cut:
        return mp.mpf(z < 0)
    left = mp.exp(-cut / scale)
    tail = (mp.exp(-abs(z) / scale) - left) / (2 * (1 - left))
    return tail if z >= 0 else 1 - tail


def worst_half_line(
    mechanism: privacy.Laplace | privacy.TruncatedLaplace, epsilon: float
) -> mp.mpf:
    """δ by trying every half-line whose end could be the worst one, and the same upside down."""
    lo, hi, scale = (mp.mpf(each) for each in (*mechanism.bounds, mechanism.scale))
    cut, e = mp.mpf(getattr(mechanism, "cut", mp.inf)), mp.mpf(epsilon)
    ends = [lo, hi, (lo + hi + e * scale) / 2, (lo + hi - e * scale) / 2]
    if cut < mp.inf:
        ends += [lo + cut, (lo + cut) * (1 + A_HAIR), lo - cut, hi + cut, hi - cut]
    clamps = [(-mp.inf, mp.inf)]
    if mechanism.clamp is not None:
        low, high = (mp.mpf(end) for end in mechanism.clamp)
        clamps = [(low, high), (lo + hi - high, lo + hi - low)]
    found = mp.mpf(0)
    for low, high in clamps:
        inner = [min(max(end, low), high) for end in ends]
        # Everything is at or above the lower end, so the first set that tells lies just above it.
        inner = [end + A_HAIR * (high - low) if end == low else end for end in inner]
        for end in inner:
            up, down = beyond(end - hi, scale, cut), beyond(end - lo, scale, cut)
            found = max(found, up - mp.exp(e) * down)
    return found


def some_laplace(generator: np.random.Generator) -> privacy.Laplace | privacy.TruncatedLaplace:
    lo = 10 ** generator.uniform(-3, 3)
    hi = lo * (1 + 10 ** generator.uniform(-6, 3))
    width, inner = hi - lo, np.sort(generator.uniform(0.1, 0.9, 2))
    scale = width * 10 ** generator.uniform(-3, 4)
    clamps = [(lo, hi), (lo / 2, 2 * hi), tuple(lo + width * inner), (lo + width / 2, 3 * hi), None]
    clamp = clamps[generator.integers(len(clamps))]
    cuts = [
        None,
        width * 10 ** generator.uniform(-13, 3),
        scale * 10 ** generator.uniform(-2, 2),
        width * generator.uniform(0.3, 2),
    ]
    cut = cuts[generator.integers(len(cuts))]
    if cut is None:
        return privacy.Laplace(scale, (lo, hi), clamp)
    return privacy.TruncatedLaplace(scale, cut, (lo, hi), clamp)


def test_laplace_is_never_below_the_truth() -> None:
    generator = np.random.default_rng(11)
    with mp.workdps(60):
        for _ in range(60):
            mechanism = some_laplace(generator)
            loss = (mechanism.bounds[1] - mechanism.bounds[0]) / mechanism.scale
            pure = mechanism.epsilon(0.0)
            for epsilon in (0.0, 0.01, 1.0, 0.7 * loss, loss, loss * (1 - 1e-15), pure):
                if epsilon > 1e6:
                    continue
                truth, found = worst_half_line(mechanism, epsilon), mechanism.delta(epsilon)
                assert found >= truth, (mechanism, epsilon)
                assert found <= truth * (1 + 1e-9) + 1e-10, (mechanism, epsilon)


FAR_OUT = [1e-320, 1e-300, 1e-200, 1e-100, 1e100, 1e200, 1e300]


@pytest.mark.parametrize("kind", sorted(privacy.MECHANISMS))
def test_no_noise_is_too_far_out_to_be_priced(kind: str) -> None:
    """Little noise tells everything; and no ε comes of a number that could not be computed."""
    make = privacy.MECHANISMS.by_name(kind)
    bounds = (1.0, 2.0)
    for noise in itertools.product(FAR_OUT, repeat=len(make.noise_names)):
        try:
            mechanism = make(*noise, bounds)
        except ValueError:  # a Gamma law of a shape that is not accounted for
            continue
        deltas = [mechanism.delta(epsilon) for epsilon in (0.0, 1e-300, 1e-10, 1.0, 1e5, math.inf)]
        assert all(0 <= delta <= 1 for delta in deltas), (mechanism, deltas)
        for more, less in itertools.pairwise(deltas):
            assert less <= more * (1 + 1e-9), (mechanism, deltas)
        if min(noise) < 1e-50:
            assert deltas[3] == 1, (mechanism, deltas)
            assert mechanism.epsilon(0.5) > 1.0, mechanism


def test_much_gaussian_noise_is_priced_to_the_end() -> None:
    """(2π)^(-1/2) Δ/σ at ε = 0, and never 0 beyond."""
    for sigma in (1e100, 1e200, 1e300):
        mechanism = privacy.Gaussian(sigma, (1.0, 2.0), clamp=None)
        assert mechanism.delta(0.0) == pytest.approx(1 / (math.sqrt(2 * math.pi) * sigma), rel=1e-9)
        assert all(mechanism.delta(epsilon) > 0 for epsilon in (1e-300, 1.0, 1e15))


def test_nan_is_no_small_delta() -> None:
    assert curves.smallest_epsilon(lambda epsilon: math.nan, 0.1) == math.inf
