"""Noise on the model: exact costs, least noise, and clipping before the noise."""

from __future__ import annotations

import pickle
from collections.abc import Callable
from typing import Any

import mpmath
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from walklearn.privacy.accounting import smallest_epsilon
from walklearn.privacy.model_noise import ModelNoise

NOISE = ModelNoise(clip=2.0, noise_multiplier=3.0, max_contributions=4)


def exact_delta(epsilon: float, multiplier: float, contributions: int) -> mpmath.mpf:
    with mpmath.workdps(60):
        mu = 2 * mpmath.sqrt(contributions) / mpmath.mpf(multiplier)
        near, far = mu / 2 - epsilon / mu, -mu / 2 - epsilon / mu
        return mpmath.ncdf(near) - mpmath.exp(epsilon) * mpmath.ncdf(far)


@pytest.mark.parametrize("multiplier", [0.05, 0.5, 3.0, 40.0, 1000.0])
@pytest.mark.parametrize("contributions", [1, 7, 1000])
def test_delta_is_the_analytic_gaussian_and_never_below(
    multiplier: float, contributions: int
) -> None:
    noise = ModelNoise(1.0, multiplier, contributions)
    mu = 2 * np.sqrt(contributions) / multiplier
    for sigmas in (0.0, 0.3, 1.0, 3.0, 6.0):
        epsilon = float(mu * (sigmas + mu / 2))
        truth = exact_delta(epsilon, multiplier, contributions)
        found = noise.delta(epsilon)
        assert found >= truth
        assert found == pytest.approx(float(truth), rel=1e-8, abs=1e-15)


def test_contributions_compose_to_one_gaussian() -> None:
    once = ModelNoise(1.0, 3.0 / 2.0, 1)
    assert NOISE.delta(1.0) == pytest.approx(once.delta(1.0), rel=1e-12)
    assert NOISE.delta(1.0, contributions=1) == ModelNoise(9.0, 3.0, 1).delta(1.0)
    deltas = [NOISE.delta(1.0, contributions=n) for n in range(1, 6)]
    assert np.all(np.diff(deltas) > 0)
    assert NOISE.delta(np.inf) < 1e-300
    assert NOISE.epsilon(0.0) == np.inf


def test_dp_accounting_agrees() -> None:
    """Its accountant composes the contributions one by one, to slightly more than the truth."""
    from dp_accounting.pld import privacy_loss_distribution as distributions

    one = distributions.from_gaussian_mechanism(
        standard_deviation=NOISE.standard_deviation, sensitivity=2 * NOISE.clip
    )
    theirs = one.self_compose(NOISE.max_contributions)
    for epsilon in (0.0, 0.5, 2.0, 5.0):
        delta = theirs.get_delta_for_epsilon(epsilon)
        assert NOISE.delta(epsilon) <= delta * (1 + 1e-9)
        assert NOISE.delta(epsilon) == pytest.approx(delta, rel=1e-5)


@given(
    st.floats(0.0, 20.0),
    st.floats(-30.0, -0.02),
    st.integers(1, 10_000),
)
@settings(max_examples=60, deadline=None)
def test_calibration_never_exceeds_delta_and_is_least(
    epsilon: float, log_delta: float, contributions: int
) -> None:
    delta = float(np.exp(log_delta))
    noise = ModelNoise.calibrate(
        epsilon=epsilon, delta=delta, clip=0.7, max_contributions=contributions
    )
    assert noise.delta(epsilon) <= delta
    assert exact_delta(epsilon, noise.noise_multiplier, contributions) <= delta
    less = ModelNoise(0.7, noise.noise_multiplier * (1 - 1e-6), contributions)
    assert less.delta(epsilon) > delta or less.delta(epsilon) == pytest.approx(delta, abs=1e-13)


def test_epsilon_inverts_delta() -> None:
    for delta in (0.3, 1e-3, 1e-9, 1e-30):
        epsilon = NOISE.epsilon(delta)
        assert NOISE.delta(epsilon) <= delta < NOISE.delta(epsilon * (1 - 1e-9))
    assert NOISE.epsilon(0.999) == 0.0
    assert smallest_epsilon(lambda _: 0.5, 0.4) == np.inf


def test_the_gradient_is_clipped_before_the_noise() -> None:
    zero, ones = np.zeros(2), np.ones(2)
    np.testing.assert_allclose(NOISE.protect([30.0, 40.0], zero), [1.2, 1.6], rtol=1e-15)
    np.testing.assert_array_equal(NOISE.protect([0.3, -0.4], zero), [0.3, -0.4])
    np.testing.assert_allclose(NOISE.protect([30.0, 40.0], ones), [7.2, 7.6], rtol=1e-15)
    np.testing.assert_array_equal(NOISE.protect([0.0, 0.0], ones), [6.0, 6.0])
    np.testing.assert_array_equal(NOISE.protect([30.0, 40.0], ones, contributes=False), [6.0, 6.0])
    # A matrix (softmax) is clipped in the Frobenius norm.
    assert np.linalg.norm(NOISE.protect(np.full((3, 4), 9.0), np.zeros((3, 4)))) <= 2 * (1 + 1e-12)


@pytest.mark.parametrize("bad", [np.nan, np.inf, -np.inf, 1e200])
def test_what_overflows_does_not_show(bad: float) -> None:
    noisy = NOISE.protect([1.0, bad], np.ones(2))
    np.testing.assert_array_equal(noisy, [6.0, 6.0])


@given(st.lists(st.floats(-1e150, 1e150), min_size=1, max_size=50))
@settings(max_examples=200, deadline=None)
def test_no_gradient_moves_the_release_by_more_than_the_clip(gradient: list[float]) -> None:
    moved = NOISE.protect(gradient, np.zeros(len(gradient)))
    assert np.linalg.norm(moved) <= NOISE.clip * (1 + 1e-12)


def test_a_release_lies_on_the_grid_and_has_the_deviation() -> None:
    rows = np.full(100_000, 1.0)
    released = NOISE.release(rows, np.random.default_rng(3))
    np.testing.assert_array_equal(released / NOISE.grid_step, np.rint(released / NOISE.grid_step))
    # Five standard errors of the deviation; of the mean, 2/√100000 after clipping.
    assert released.std() == pytest.approx(6.0, rel=5 / np.sqrt(200_000))
    assert abs(released.mean()) < 5 * 6 / np.sqrt(100_000) + 0.01
    assert not np.array_equal(NOISE.release(rows), NOISE.release(rows))


def test_values_are_frozen_comparable_and_travel() -> None:
    assert ModelNoise(2, 3, 4) == NOISE
    assert hash(NOISE) == hash(ModelNoise(2.0, 3.0, 4))
    assert pickle.loads(pickle.dumps(NOISE)) == NOISE
    assert NOISE.standard_deviation == 6.0


def calibrate(**changes: Any) -> ModelNoise:
    target: dict[str, Any] = {"epsilon": 1, "delta": 1e-5, "clip": 1, "max_contributions": 1}
    return ModelNoise.calibrate(**{**target, **changes})


CASES: dict[str, tuple[Callable[[], Any], str]] = {
    "no clip": (lambda: ModelNoise(0.0, 1.0, 1), r"clip must be positive"),
    "NaN clip": (lambda: ModelNoise(float("nan"), 1.0, 1), r"clip must be positive"),
    "infinite clip": (lambda: ModelNoise(float("inf"), 1.0, 1), r"clip must be positive"),
    "no noise": (lambda: ModelNoise(1.0, 0.0, 1), r"noise_multiplier must be positive"),
    "negative noise": (lambda: ModelNoise(1.0, -1.0, 1), r"noise_multiplier must be positive"),
    "no contributions": (lambda: ModelNoise(1.0, 1.0, 0), r"max_contributions must be a whole"),
    "half a contribution": (lambda: ModelNoise(1.0, 1.0, 1.5), r"whole number"),  # type: ignore[arg-type]
    "epsilon < 0": (lambda: NOISE.delta(-1.0), r"epsilon must be"),
    "epsilon NaN": (lambda: NOISE.delta(float("nan")), r"epsilon must be"),
    "delta = 1": (lambda: NOISE.epsilon(1.0), r"delta must be"),
    "no contribution": (lambda: NOISE.delta(1.0, 0), r"contributions must be"),
    "calibrate to delta = 0": (lambda: calibrate(delta=0.0), r"never gives delta = 0"),
    "calibrate to inf": (lambda: calibrate(epsilon=np.inf), r"no privacy"),
    "calibrate, epsilon < 0": (lambda: calibrate(epsilon=-1), r"epsilon must be"),
    "calibrate, delta = 1": (lambda: calibrate(delta=1.0), r"delta must be"),
    "calibrate, no clip": (lambda: calibrate(clip=0.0), r"clip must be"),
    "too much noise": (lambda: calibrate(epsilon=0, delta=1e-110), r"more noise than 1e\+100"),
    "shapes": (lambda: NOISE.protect([1.0, 2.0], [1.0]), r"one for each coordinate"),
}


@pytest.mark.parametrize("case", CASES)
def test_bad_input_is_refused(case: str) -> None:
    action, message = CASES[case]
    with pytest.raises(ValueError, match=message):
        action()
