"""Releases follow their law, on a public grid; moments and costs are those of the release."""

from __future__ import annotations

import math
import pickle
import secrets
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import integrate, special

from tests.privacy.textbook import upper_tail
from tests.running import python
from walklearn import privacy
from walklearn.privacy.draws import sampling

BOUNDS = (1.0, 10.0)
MECHANISMS = [
    privacy.Gamma(0.3, BOUNDS),
    privacy.Gamma(6.0, BOUNDS),
    privacy.Gamma(300.0, BOUNDS),
    privacy.ClampedGamma(0.01, BOUNDS),
    privacy.ClampedGamma(6.0, BOUNDS),
    privacy.ClampedGamma(600.0, BOUNDS),
    privacy.ClampedGamma(2.0, BOUNDS, clamp=(0.2, 30.0)),
    privacy.Laplace(3.0, BOUNDS),
    privacy.Laplace(3.0, BOUNDS, clamp=None),
    privacy.Laplace(0.5, BOUNDS, clamp=(4.0, 20.0)),
    privacy.TruncatedLaplace(3.0, 12.0, BOUNDS),
    privacy.TruncatedLaplace(3.0, 2.0, BOUNDS, clamp=None),
    privacy.TruncatedLaplace(1e5, 8.0, BOUNDS),
    privacy.Gaussian(4.0, BOUNDS),
    privacy.Gaussian(4.0, BOUNDS, clamp=None),
    privacy.Gaussian(0.3, BOUNDS, clamp=(0.5, 12.0)),
]
every_mechanism = pytest.mark.parametrize("mechanism", MECHANISMS, ids=repr)


@every_mechanism
@pytest.mark.parametrize("value", [1.0, 4.0, 10.0])
def test_moments_against_integrals(mechanism: privacy.Mechanism, value: float) -> None:
    """E[R] = l + ∫ P(R ≥ t) dt and E[R²] = l² + ∫ 2t P(R ≥ t) dt over the clamp."""
    low, high = mechanism.clamp or (value - 150.0, value + 150.0)
    if isinstance(mechanism, privacy.Gamma):
        low, high = 0.0, value + 60 * (mechanism.theta + math.sqrt(value * mechanism.theta))
    cut = getattr(mechanism, "cut", 1.0)
    kinks = [p for p in (value - cut, value - 0.2, value, value + 0.2, value + cut)
             if low < p < high]  # fmt: skip
    options = {"points": kinks, "limit": 500, "epsabs": 1e-11, "epsrel": 1e-11}
    first, _ = integrate.quad(lambda t: upper_tail(mechanism, t, value), low, high, **options)
    second, _ = integrate.quad(
        lambda t: 2 * (t - value) * upper_tail(mechanism, t, value), low, high, **options
    )
    mean = low + first
    variance = (low - value) ** 2 + second - (mean - value) ** 2
    assert float(mechanism.mean(value)) == pytest.approx(mean, rel=1e-7)
    assert float(mechanism.variance(value)) == pytest.approx(variance, rel=1e-6)


@every_mechanism
@pytest.mark.parametrize("value", [1.0, 7.0])
def test_releases_follow_the_law(mechanism: privacy.Mechanism, value: float) -> None:
    """Dvoretzky–Kiefer–Wolfowitz with the atoms: fails with probability below 1e-9 a case."""
    count = 100_000
    released = np.sort(mechanism.release(np.full(count, value), np.random.default_rng(7)))
    tolerance = math.sqrt(math.log(2e9) / (2 * count))
    low, high = mechanism.clamp or (-np.inf, np.inf)
    # At the borders between grid cells the rounded release has the law's own probabilities.
    points = np.quantile(released, np.linspace(0.001, 0.999, 300)) + mechanism.grid_step / 2
    points = (np.floor(points / mechanism.grid_step) + 0.5) * mechanism.grid_step
    points = points[(low < points) & (points < high)]
    empirical = np.searchsorted(released, points) / count
    assert np.abs(empirical - (1 - upper_tail(mechanism, points, value))).max() < tolerance
    if mechanism.clamp:
        assert abs((released == high).mean() - upper_tail(mechanism, high, value)) < tolerance
        assert abs((released == low).mean() - (1 - upper_tail(mechanism, low, value))) < tolerance


@every_mechanism
def test_releases_lie_on_the_public_grid(mechanism: privacy.Mechanism) -> None:
    values = np.random.default_rng(3).uniform(0.1, 20.0, (40, 50))
    released = mechanism.release(values, np.random.default_rng(4))
    assert released.shape == values.shape
    assert np.isfinite(released).all()
    ends = mechanism.clamp or ()
    steps = released / mechanism.grid_step
    assert np.all((steps == np.rint(steps)) | np.isin(released, ends))
    assert math.frexp(mechanism.grid_step)[0] == 0.5
    if mechanism.clamp:
        assert released.min() >= mechanism.clamp[0]
        assert released.max() <= mechanism.clamp[1]
    # The rounding is invisible beside the noise.
    deviation = math.sqrt(float(mechanism.variance(5.0)))
    assert mechanism.grid_step < 1e-3 * deviation


@every_mechanism
def test_specs_are_frozen_comparable_and_picklable(mechanism: privacy.Mechanism) -> None:
    assert pickle.loads(pickle.dumps(mechanism)) == mechanism
    assert hash(mechanism) == hash(pickle.loads(pickle.dumps(mechanism)))
    assert len({*MECHANISMS}) == len(MECHANISMS)
    assert privacy.MECHANISMS[mechanism.name] is type(mechanism)
    assert len(repr(mechanism)) < 90
    assert mechanism.noise > 0
    with pytest.raises(AttributeError):
        mechanism.bounds = (1.0, 2.0)  # type: ignore[misc]


@every_mechanism
@pytest.mark.parametrize("delta", [0.0, 1e-9, 0.03, 0.5])
def test_epsilon_inverts_delta(mechanism: privacy.Mechanism, delta: float) -> None:
    epsilon = mechanism.epsilon(delta)
    if math.isinf(epsilon):
        assert mechanism.delta(1e6) > delta
        return
    assert mechanism.delta(epsilon) <= delta
    if epsilon > 0:
        assert mechanism.delta(epsilon * (1 - 1e-9)) > delta


def test_pure_privacy() -> None:
    """Clamping makes the Gamma and the Gaussian mechanism pure; without it they never are."""
    assert privacy.Laplace(3.0, BOUNDS).epsilon(0.0) == pytest.approx(3.0)
    gaussian = privacy.Gaussian(9.0, BOUNDS)
    assert gaussian.epsilon(0.0) == pytest.approx(math.log(0.5 / special.ndtr(-1.0)))
    assert privacy.ClampedGamma(1e9, BOUNDS).epsilon(0.0) == pytest.approx(math.log(10.0), abs=1e-2)
    for endless in (privacy.Gamma(3.0, BOUNDS), privacy.Gaussian(9.0, BOUNDS, clamp=None),
                    privacy.TruncatedLaplace(3.0, 12.0, BOUNDS, clamp=None)):  # fmt: skip
        assert endless.epsilon(0.0) == math.inf


def test_values_outside_the_bounds_are_clamped_and_counted() -> None:
    mechanism = privacy.Gaussian(1e-3, BOUNDS)
    assert mechanism.count_out_of_bounds([0.5, 1.0, 10.0, 11.0, 5.0]) == 2
    released = mechanism.release([0.5, 99.0], np.random.default_rng(0))
    assert np.allclose(released, [1.0, 10.0], atol=0.01)
    assert float(mechanism.mean(12.0)) == pytest.approx(10.0, abs=0.01)
    one, other = (mechanism.release(v, np.random.default_rng(5)) for v in ([1, 0.2], [0.2, 1]))
    assert np.array_equal(one, other)


def test_small_shapes_are_never_zero() -> None:
    """NumPy's sampler gives 0 for half the draws at shape .001; the tail below a step is exact."""
    mechanism = privacy.Gamma(1000.0, BOUNDS)
    count = 200_000
    released = mechanism.release(np.full(count, 1.0), np.random.default_rng(1))
    assert np.random.default_rng(1).gamma(0.001, 1000.0, 1000).min() == 0
    step = mechanism.grid_step
    assert released.min() == step
    at_floor = special.gammainc(0.001, 1.5 * step / 1000.0)
    assert abs((released == step).mean() - at_floor) < math.sqrt(math.log(2e9) / (2 * count))


def test_log_draws_are_exact_in_the_tail() -> None:
    """−k ln G is exponential for tiny k: DKW with failure probability 1e-9."""
    shape, count = 1e-2, 100_000
    draws = sampling.gamma_draws(np.full(count, shape), np.random.default_rng(9))
    levels = np.array([1e-300, 1e-200, 1e-100, 1e-30, 1e-3])
    expected = special.gammainc(shape, levels)
    empirical = (draws[:, None] <= levels).mean(axis=0)
    assert np.abs(empirical - expected).max() < math.sqrt(math.log(2e9) / (2 * count))


def test_shares_of_gamma_releases_are_beta() -> None:
    """π_R(i) ~ Beta(L_i/θ, Σ_{j≠i} L_j/θ), mean L_i/ΣL; DKW with failure probability 1e-9."""
    values, theta, count = np.array([1.0, 2.0, 3.0, 10.0]), 2.5, 50_000
    mechanism = privacy.Gamma(theta, BOUNDS)
    released = mechanism.release(np.tile(values, (count, 1)), np.random.default_rng(11))
    shares = np.sort(released / released.sum(axis=1, keepdims=True), axis=0)
    tolerance = math.sqrt(math.log(2e9) / (2 * count))
    for node, value in enumerate(values):
        law = special.betainc(value / theta, (values.sum() - value) / theta, shares[:, node])
        assert np.abs(law - np.arange(1, count + 1) / count).max() < tolerance + 1e-4


def test_bits_come_from_the_operating_system(monkeypatch: pytest.MonkeyPatch) -> None:
    mechanism = privacy.ClampedGamma(6.0, BOUNDS)
    drawn: list[int | None] = []
    plain = secrets.token_bytes

    def counted(count: int | None = None) -> bytes:
        drawn.append(count)
        return plain(count)

    monkeypatch.setattr(secrets, "token_bytes", counted)
    values = np.full(50, 5.0)
    state = np.random.get_state()[1].copy()  # noqa: NPY002
    assert not np.array_equal(mechanism.release(values), mechanism.release(values))
    assert drawn == [32, 32]  # a key for each release
    assert np.array_equal(np.random.get_state()[1], state)  # noqa: NPY002
    again = [mechanism.release(values, np.random.default_rng(3)) for _ in range(2)]
    assert np.array_equal(*again)
    assert len(drawn) == 2


@given(value=st.floats(0.5, 12.0), noise=st.floats(-3, 6).map(lambda e: 10.0**e))
@settings(max_examples=60, deadline=None)
def test_clamped_moments_stay_within_the_clamp(value: float, noise: float) -> None:
    for kind in (privacy.ClampedGamma, privacy.Laplace, privacy.Gaussian):
        mechanism = kind(noise, BOUNDS)
        assert 1.0 - 1e-9 <= float(mechanism.mean(value)) <= 10.0 + 1e-9
        assert 0 <= float(mechanism.variance(value)) <= 81 / 4 + 1e-9
    assert mechanism.release(value, np.random.default_rng(0)).shape == ()


def calibrate(kind: str = "gamma", **target: Any) -> privacy.Mechanism:
    return privacy.calibrate(kind, **{"epsilon": 1.0, "delta": 0.1, "bounds": BOUNDS, **target})


BAD: dict[str, tuple[Callable[[], Any], str]] = {
    "negative epsilon": (lambda: MECHANISMS[0].delta(-1.0), "^epsilon"),
    "epsilon NaN": (lambda: MECHANISMS[0].delta(math.nan), "^epsilon"),
    "delta 1": (lambda: MECHANISMS[0].epsilon(1.0), "^delta"),
    "negative delta": (lambda: MECHANISMS[0].epsilon(-1e-9), "^delta"),
    "delta NaN": (lambda: MECHANISMS[0].epsilon(math.nan), "^delta"),
    "lo = 0": (lambda: privacy.Gamma(1.0, (0.0, 2.0)), "0 < lo < hi.*positive public lower"),
    "lo > hi": (lambda: privacy.Gamma(1.0, (3.0, 2.0)), "0 < lo < hi"),
    "lo = hi": (lambda: privacy.Laplace(1.0, (2.0, 2.0)), "nothing to protect"),
    "bounds NaN": (lambda: privacy.Laplace(1.0, (math.nan, 2.0)), "0 < lo < hi"),
    "bounds infinite": (lambda: privacy.Laplace(1.0, (1.0, math.inf)), "0 < lo < hi"),
    "one bound": (lambda: privacy.Laplace(1.0, (1.0,)), r"two numbers \(lo, hi\)"),
    "no bounds": (lambda: privacy.Laplace(1.0, 3.0), r"two numbers \(lo, hi\)"),
    "clamp inside out": (lambda: privacy.Laplace(1.0, BOUNDS, clamp=(3, 2)), "^clamp"),
    "clamp at 0": (lambda: privacy.Gaussian(1.0, BOUNDS, clamp=(0, 2)), "^clamp"),
    "no clamp": (lambda: privacy.ClampedGamma(1.0, BOUNDS, clamp=None), "needs a clamp"),
    "theta 0": (lambda: privacy.Gamma(0.0, BOUNDS), "^theta"),
    "scale negative": (lambda: privacy.Laplace(-1.0, BOUNDS), "^scale"),
    "cut infinite": (lambda: privacy.TruncatedLaplace(1.0, math.inf, BOUNDS), "^cut"),
    "sigma NaN": (lambda: privacy.Gaussian(math.nan, BOUNDS), "^sigma"),
    "theta too small": (lambda: privacy.Gamma(1e-12, BOUNDS), "shapes up to"),
    "value NaN": (lambda: MECHANISMS[0].release([1.0, math.nan]), "value 1 is nan"),
    "value infinite": (lambda: MECHANISMS[0].release([math.inf]), "only finite numbers"),
    "mean of NaN": (lambda: MECHANISMS[0].mean(math.nan), "only finite numbers"),
    "unknown kind": (
        lambda: calibrate("exponential"),
        "no mechanism 'exponential'.*gamma, clamped-gamma, gaussian, laplace, truncated-laplace"),
    "target epsilon": (lambda: calibrate(epsilon=-1.0), "^epsilon"),
    "target infinite": (lambda: calibrate(epsilon=math.inf), "no privacy"),
    "target delta": (lambda: calibrate(delta=1.0), "^delta"),
    "tiny target": (lambda: calibrate("laplace", delta=1e-200), "too close to 0"),
    "equal bounds": (lambda: calibrate(bounds=(2.0, 2.0)), "nothing to protect"),
    "unknown accounting": (lambda: calibrate(accounting="renyi"), '"tight" or "lemma"'),
    "lemma elsewhere": (lambda: calibrate("laplace", accounting="lemma"), "lemma"),
    "gamma with a clamp": (lambda: calibrate(clamp=BOUNDS), "never clamped"),
    "clamped gamma without": (lambda: calibrate("clamped-gamma", clamp=None), "needs a clamp"),
    "compare": (lambda: privacy.compare(epsilon=1.0, delta=2.0, bounds=BOUNDS), "^delta"),
}  # fmt: skip


@pytest.mark.parametrize("case", BAD)
def test_bad_input(case: str) -> None:
    call, message = BAD[case]
    with pytest.raises(ValueError, match=f"(?s){message}"):
        call()


def test_the_import_stays_light() -> None:
    script = (
        "import sys, walklearn.privacy as p;"
        "p.calibrate('gamma', epsilon=3, delta=.1, bounds=(1, 2));"
        "heavy = {'scipy.stats', 'scipy.optimize', 'dp_accounting', 'numba', 'matplotlib'};"
        "print(sorted(heavy & set(sys.modules)))"
    )
    assert python(script, check=True).stdout.strip() == "[]"
