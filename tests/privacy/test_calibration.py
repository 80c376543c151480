"""The least noise for a target, never less than it needs, and true refusals."""

from __future__ import annotations

import math
import pickle
from typing import Any

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from walklearn import privacy
from walklearn.privacy.accounting import curves
from walklearn.privacy.mechanisms.noise_search import find_min_noise, log_grid

KINDS = sorted(privacy.MECHANISMS)


def powers(low: float, high: float) -> st.SearchStrategy[float]:
    return st.floats(low, high).map(lambda exponent: 10.0**exponent)


@pytest.mark.parametrize("kind", KINDS)
@given(
    epsilon=st.one_of(st.just(0.0), powers(-6, 4)),
    delta=st.one_of(st.just(0.0), powers(-40, -0.001)),
    lo=powers(-6, 6),
    spread=powers(-3, 6),
)
@example(epsilon=1000.0, delta=1e-13, lo=1.0, spread=1.0)  # e^ε is more than a number can hold
@settings(max_examples=60, deadline=None)
def test_never_above_the_target(
    kind: str, epsilon: float, delta: float, lo: float, spread: float
) -> None:
    """Whatever comes back keeps its promise; with a little less noise it would not."""
    bounds = (lo, lo * (1 + spread))
    try:
        mechanism: Any = privacy.calibrate(kind, epsilon=epsilon, delta=delta, bounds=bounds)
    except privacy.InfeasiblePrivacyError as error:
        check_refusal(kind, epsilon, delta, bounds, error)
        return
    assert mechanism.name == kind
    assert mechanism.delta(epsilon) <= delta
    assert mechanism.epsilon(delta) <= epsilon * (1 + 1e-9) + 1e-300
    name = mechanism.noise_names[-1]
    settings_ = {n: getattr(mechanism, n) for n in (*mechanism.noise_names, "bounds")}
    settings_[name] *= 0.999
    if hasattr(mechanism, "theta") and bounds[1] / settings_["theta"] > 1e10:
        return  # the least noise that is accounted for
    assert type(mechanism)(**settings_).delta(epsilon) > delta


def check_refusal(
    kind: str,
    epsilon: float,
    delta: float,
    bounds: tuple[float, float],
    error: privacy.InfeasiblePrivacyError,
) -> None:
    if kind == "gamma":
        assert error.floor >= delta * (1 - 1e-9)
        assert error.smallest_epsilon >= epsilon * (1 - 1e-9)
        return
    assert delta == 0
    if kind == "clamped-gamma":
        theta = bounds[1] * np.logspace(-4, 8, 500)
        pure = curves.clamped_gamma_pure_epsilon(theta, bounds, bounds).min()
        assert epsilon <= error.smallest_epsilon <= pure * (1 + 1e-12)
    else:
        assert epsilon == 0 or kind == "truncated-laplace"


def test_the_paper_example_is_refused_with_numbers() -> None:
    with pytest.raises(privacy.InfeasiblePrivacyError) as caught:
        privacy.calibrate("gamma", epsilon=3.0, delta=0.03, bounds=(1.0, 50.0))
    error = caught.value
    assert str(error) == (
        "no noise level gives delta <= 0.03 at epsilon = 3 for bounds 1..50: the floor is 0.851. "
        "Narrow the bounds to at most 1..2.3, raise epsilon above 167, or use clamped-gamma."
    )
    assert isinstance(error, ValueError)
    copy = pickle.loads(pickle.dumps(error))
    assert str(copy) == str(error)
    assert copy.widest_bounds == error.widest_bounds
    assert copy.floor == pytest.approx(0.85107, abs=1e-5)


@pytest.mark.parametrize("rule", ["tight", "lemma"])
@pytest.mark.parametrize(("epsilon", "delta", "hi"), [(3.0, 0.03, 50.0), (1.0, 0.06, 3.0)])
def test_the_advice_of_a_gamma_refusal_works(
    rule: Any, epsilon: float, delta: float, hi: float
) -> None:
    target = {"epsilon": epsilon, "delta": delta, "bounds": (1.0, hi)}
    with pytest.raises(privacy.InfeasiblePrivacyError) as caught:
        privacy.calibrate("gamma", **target, accounting=rule)
    error = caught.value
    assert error.floor > delta
    narrow, wide = (1 + (error.widest_bounds[1] - 1) * f for f in (0.999, 1.001))
    works = (
        {"epsilon": error.smallest_epsilon * 1.001},
        {"bounds": (1.0, narrow)},
        {"delta": error.floor * 1.001},
    )
    fails = (
        {"epsilon": error.smallest_epsilon * 0.999},
        {"bounds": (1.0, wide)},
        {"delta": error.floor * 0.999},
    )
    for change in works:
        mechanism = privacy.calibrate("gamma", **{**target, **change}, accounting=rule)
        assert mechanism.delta(change.get("epsilon", epsilon)) <= change.get("delta", delta)
    for change in fails:
        with pytest.raises(privacy.InfeasiblePrivacyError):
            privacy.calibrate("gamma", **{**target, **change}, accounting=rule)


def test_the_advice_of_a_clamped_gamma_refusal_works() -> None:
    target = {"epsilon": 2.2, "delta": 0.0, "bounds": (1.0, 10.0)}
    with pytest.raises(privacy.InfeasiblePrivacyError) as caught:
        privacy.calibrate("clamped-gamma", **target)
    error = caught.value
    # Pure privacy does a little better than ln ρ, which is the limit for large θ.
    assert 2.2 < error.smallest_epsilon < math.log(10)
    smallest, widest = error.smallest_epsilon, error.widest_bounds[1]
    for change in (
        {"epsilon": smallest * 1.0001},
        {"bounds": (1.0, widest * 0.9999)},
        {"delta": 1e-9},
    ):
        assert privacy.calibrate("clamped-gamma", **{**target, **change}).noise > 0
    for change in ({"epsilon": smallest * 0.9999}, {"bounds": (1.0, widest * 1.0001)}):
        with pytest.raises(privacy.InfeasiblePrivacyError):
            privacy.calibrate("clamped-gamma", **{**target, **change})


def test_the_clamped_gamma_is_found_where_delta_is_not_monotone() -> None:
    """ρ = 10, ε = 2.26: δ = 0 at θ = 96, .001 at θ = 1000, and the least θ is below both."""
    mechanism = privacy.calibrate("clamped-gamma", epsilon=2.26, delta=0.0, bounds=(1.0, 10.0))
    assert mechanism.theta == pytest.approx(58.4976, rel=1e-5)
    curve = curves.gamma_delta(
        2.26, np.linspace(0.01, mechanism.theta * (1 - 1e-9), 20_000), (1.0, 10.0), (1.0, 10.0)
    )
    assert (curve > 0).all()


@given(
    ratio=powers(-0.5, 3).map(lambda spread: 1 + spread),
    epsilon=st.floats(0.1, 8.0),
    delta=powers(-6, -0.3),
)
@settings(max_examples=40, deadline=None)
def test_no_smaller_theta_is_feasible(ratio: float, epsilon: float, delta: float) -> None:
    """The scan misses no dip: a grid a hundred times finer finds nothing below."""
    bounds = (1.0, ratio)
    mechanism = privacy.calibrate("clamped-gamma", epsilon=epsilon, delta=delta, bounds=bounds)
    theta = mechanism.theta * (1 - np.logspace(-9, -0.001, 4000))
    assert (curves.gamma_delta(epsilon, theta, bounds, bounds) > delta).all()


@pytest.mark.parametrize(("epsilon", "delta"), [(3.0, 0.0), (0.5, 0.1), (1.0, 0.6), (1e-3, 1e-9)])
def test_closed_forms(epsilon: float, delta: float) -> None:
    lo, hi = bounds = (2.0, 9.0)
    width = hi - lo
    for clamp in ({}, {"clamp": None}):
        target = {"epsilon": epsilon, "delta": delta, "bounds": bounds, **clamp}
        laplace = privacy.calibrate("laplace", **target)
        assert laplace.scale == pytest.approx(width / (epsilon - 2 * math.log1p(-delta)), rel=1e-9)
        if 0 < delta <= 0.5:
            truncated = privacy.calibrate("truncated-laplace", **target)
            cut = width / epsilon * math.log1p(math.expm1(epsilon) / (2 * delta))
            assert truncated.cut == pytest.approx(cut, rel=1e-9)


def test_unclamped_noise_has_to_be_asked_for() -> None:
    target = {"epsilon": 1.0, "delta": 1e-5, "bounds": (1.0, 10.0)}
    for kind in ("laplace", "truncated-laplace", "gaussian"):
        assert privacy.calibrate(kind, **target).clamp == (1.0, 10.0)
        assert privacy.calibrate(kind, **target, clamp=None).clamp is None
        assert privacy.calibrate(kind, **target, clamp=(2.0, 3.0)).delta(1.0) <= 1e-5
    # Balle & Wang's sigma for sensitivity 1, ε = 1, δ = 1e-5.
    assert privacy.calibrate("gaussian", **target, clamp=None).sigma / 9 == pytest.approx(
        3.7304, abs=1e-3
    )
    with pytest.raises(privacy.InfeasiblePrivacyError, match="unclamped Gaussian"):
        privacy.calibrate("gaussian", epsilon=1.0, delta=0.0, bounds=(1.0, 2.0), clamp=None)


def test_tight_needs_less_noise_than_the_lemma() -> None:
    """About .35 to .84 of it at ε = 3."""
    for ratio, delta in ((1.5, 0.03), (2.0, 0.06), (2.2, 0.1)):
        target = {"epsilon": 3.0, "delta": delta, "bounds": (1.0, ratio)}
        tight = privacy.calibrate("gamma", **target)
        lemma = privacy.calibrate("gamma", **target, accounting="lemma")
        assert lemma.lemma_delta(3.0) <= delta
        assert 0.1 < tight.theta / lemma.theta < 0.9


@given(seed=st.integers(0, 2**32 - 1))
@settings(max_examples=30, deadline=None)
def test_min_noise_on_wavy_curves(seed: int) -> None:
    """Against a brute force scan, curves with dips that the grid may step over."""
    generator = np.random.default_rng(seed)
    amplitude, phase, frequency = generator.uniform(0, 0.4), generator.uniform(0, 6), 1.5

    def curve(noise: np.ndarray) -> np.ndarray:
        x = np.log(noise)
        return np.asarray(np.exp(-0.3 * x) + amplitude * np.sin(frequency * x + phase) ** 2)

    target = float(generator.uniform(0.05, 0.6))
    fine = np.linspace(0, 12, 400_001)
    below = np.flatnonzero(curve(np.exp(fine)) <= target)
    found = find_min_noise(curve, target, log_grid(0.0, 12.0, 12.5))
    if below.size:
        assert found is not None
        assert math.log(found) <= fine[below[0]] + 1e-9
        assert float(curve(np.array(found))) <= target * (1 + 1e-12)
