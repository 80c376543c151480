"""Totals of several releases are upper bounds, and close to the truth."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import integrate, special

from tests.running import python
from walklearn.privacy.accounting import composition
from walklearn.privacy.accounting.composition import Charge, Composition, Release, compose
from walklearn.privacy.mechanisms import (
    ClampedGamma,
    Gamma,
    Gaussian,
    Laplace,
    TruncatedLaplace,
)
from walklearn.privacy.mechanisms.mechanism import Mechanism
from walklearn.privacy.model_noise import ModelNoise

BOUNDS = (1.0, 10.0)
NOISE = ModelNoise(clip=1.0, noise_multiplier=5.0, max_contributions=10)
CONSTANT = ClampedGamma(20.0, (1.0, 50.0))

RELEASES: list[Release] = [
    Gamma(5.0, BOUNDS),
    Gamma(500.0, BOUNDS),
    Gamma(0.01, (1.0, 1.01)),
    ClampedGamma(20.0, (1.0, 50.0)),
    ClampedGamma(3.0, BOUNDS, (0.5, 30.0)),
    Laplace(3.0, BOUNDS),
    Laplace(3000.0, BOUNDS),
    Laplace(0.3, BOUNDS, None),
    TruncatedLaplace(3.0, 20.0, BOUNDS),
    TruncatedLaplace(3.0, 2.0, BOUNDS, None),
    Gaussian(5.0, BOUNDS),
    Gaussian(500.0, BOUNDS, None),
    NOISE,
]


def total(*releases: tuple[Release, int]) -> Composition:
    return compose(Charge("it", mechanism, times) for mechanism, times in releases)


@pytest.mark.parametrize("release", RELEASES, ids=repr)
def test_one_release_is_exact(release: Release) -> None:
    one = total((release, 10 if release is NOISE else 1))
    for epsilon in (0.0, 0.1, 1.0, 5.0):
        assert one.delta(epsilon) == release.delta(epsilon)
    assert one.epsilon(0.01) == release.epsilon(0.01)


@pytest.mark.parametrize("sigma", [5.0, 50.0, 500.0])
@pytest.mark.parametrize("times", [2, 10, 100])
def test_gaussians_compose_to_a_gaussian(sigma: float, times: int) -> None:
    many = total((Gaussian(sigma, BOUNDS, None), times))
    one = Gaussian(sigma / math.sqrt(times), BOUNDS, None)
    for delta in (0.1, 1e-3, 1e-6):
        epsilon, truth = many.epsilon(delta), one.epsilon(delta)
        assert truth <= epsilon <= truth * (1 + 1e-4)
        assert one.delta(epsilon) <= many.delta(epsilon) <= delta
    for epsilon in np.linspace(0.0, 2 * one.epsilon(1e-9), 20):
        assert many.delta(epsilon) >= one.delta(epsilon)


def test_model_and_constant_compose_like_gaussians() -> None:
    """A Gaussian constant of ratio σ/Δ and T contributions of ratio z/2: μ² adds up."""
    constant = Gaussian(18.0, BOUNDS, None)
    both = total((constant, 1), (NOISE, 10))
    mu = math.sqrt((9 / 18) ** 2 + 10 * (2 / 5) ** 2)
    one = Gaussian(9 / mu, BOUNDS, None)
    for delta in (0.1, 1e-3, 1e-6):
        assert one.epsilon(delta) <= both.epsilon(delta) <= one.epsilon(delta) * (1 + 1e-4)


def test_laplace_agrees_with_dp_accounting() -> None:
    from dp_accounting.pld import privacy_loss_distribution as distributions

    theirs = distributions.from_laplace_mechanism(2.0).self_compose(3)
    ours = total((Laplace(18.0, BOUNDS), 3))
    for epsilon in (0.0, 0.4, 1.0, 1.4):
        assert ours.delta(epsilon) == pytest.approx(theirs.get_delta_for_epsilon(epsilon), rel=1e-4)
    assert ours.epsilon(0.0) == pytest.approx(1.5, rel=1e-14)
    assert ours.delta(1.5000001) < 1e-12


def gamma_stick(first: float, second: float, epsilon: float) -> float:
    """H(Gamma(first) || Gamma(second)) at any ε, by the tails beyond the crossing."""
    crossing = (epsilon + special.gammaln(first) - special.gammaln(second)) / (first - second)
    tail = special.gammaincc if first > second else special.gammainc
    x = math.exp(crossing)
    return float(tail(first, x) - math.exp(epsilon) * tail(second, x))


def gamma_pair(signs: tuple[int, int], epsilon: float) -> float:
    """H of the product of two Gamma pairs, each up (hi against lo) or down."""
    (a, b), (c, d) = [(4.0, 2.0) if sign > 0 else (2.0, 4.0) for sign in signs]

    def integrand(x: float) -> float:
        log_density = (a - 1) * math.log(x) - x - special.gammaln(a)
        loss = (a - b) * math.log(x) - special.gammaln(a) + special.gammaln(b)
        return math.exp(log_density) * gamma_stick(c, d, epsilon - loss)

    return float(integrate.quad(integrand, 1e-12, 60.0, limit=500, epsabs=1e-10)[0])


@pytest.mark.parametrize("epsilon", [0.0, 0.7, 2.0, 5.0])
def test_both_orders_of_an_asymmetrical_pair_are_covered(epsilon: float) -> None:
    """Two constants may both rise, both fall, or one of each: the total covers all of them."""
    exact = [gamma_pair(signs, epsilon) for signs in ((1, 1), (-1, -1), (1, -1))]
    found = total((Gamma(0.5, (1.0, 2.0)), 2)).delta(epsilon)
    assert found >= max(exact) - 1e-9
    assert found <= 1.3 * max(exact)  # the price of one curve for both orders
    assert len({round(value, 6) for value in exact}) >= 2  # they do differ


@given(
    st.sampled_from([release for release in RELEASES if isinstance(release, Mechanism)]),
    st.floats(1.0, 50.0),
    st.integers(1, 20),
    st.sampled_from([0.2, 1e-2, 1e-5, 1e-8]),
)
@settings(max_examples=15, deadline=None)
def test_a_total_is_at_least_its_parts_and_at_most_their_sum(
    constant: Mechanism, multiplier: float, times: int, delta: float
) -> None:
    noise = ModelNoise(1.0, multiplier, 20)
    both = total((constant, 1), (noise, times))
    epsilon = both.epsilon(delta)
    repeated = replace(noise, max_contributions=times)
    assert epsilon >= max(constant.epsilon(delta), repeated.epsilon(delta))
    if math.isfinite(epsilon):
        assert both.delta(epsilon) <= delta
        assert both.delta(epsilon / 2) >= constant.delta(epsilon / 2)
    basic = constant.epsilon(delta / 2) + repeated.epsilon(delta / 2)
    assert epsilon <= basic * (1 + 1e-3)


def test_below_the_slack_the_sum_is_taken() -> None:
    both = total((CONSTANT, 1), (NOISE, 3))
    assert both.epsilon(1e-14) == pytest.approx(
        CONSTANT.epsilon(5e-15) + replace(NOISE, max_contributions=3).epsilon(5e-15), rel=1e-9
    )
    assert both.epsilon(1e-9) < both.epsilon(1e-14)
    assert both.epsilon(0.0) == math.inf
    assert total((TruncatedLaplace(3.0, 20.0, BOUNDS, None), 2)).epsilon(1e-5) == math.inf


def test_losses_without_end_are_cut_off_upwards() -> None:
    """Bounds so wide that the loss reaches 1e7: still an upper bound, and no overflow."""
    wide = Gamma(1e4, (1.0, 1e6))
    both = total((wide, 1), (NOISE, 3))
    assert wide.delta(1.0) <= both.delta(1.0) <= 1.0
    basic = wide.epsilon(0.25) + replace(NOISE, max_contributions=3).epsilon(0.25)
    assert wide.epsilon(0.5) <= both.epsilon(0.5) <= basic * (1 + 1e-9)


def test_the_cost_of_no_release_and_of_an_unprotected_one() -> None:
    assert compose([]).epsilon(0.0) == 0.0
    assert compose([]).delta(0.0) == 0.0
    clear = compose([Charge("importance", None, 1), Charge("model", NOISE, 2)])
    assert clear.epsilon(0.5) == math.inf
    assert clear.delta(100.0) == 1.0


def test_equal_sets_of_releases_are_computed_once() -> None:
    composition._total_loss.cache_clear()
    constant = Laplace(7.0, BOUNDS)
    first = total((constant, 1), (NOISE, 3))
    second = total((NOISE, 1), (constant, 1), (NOISE, 2))
    assert first == second
    assert first.delta(1.0) == second.delta(1.0)
    assert composition._total_loss.cache_info().misses == 1


def test_dp_accounting_is_imported_late() -> None:
    lines = (
        "import sys, walklearn.privacy.accounting.ledger; sys.exit('dp_accounting' in sys.modules)"
    )
    assert python(lines).returncode == 0


CASES: dict[str, tuple[Callable[[], Any], str]] = {
    "no times": (lambda: total((CONSTANT, 0)), "^times"),
    "epsilon < 0": (lambda: total((CONSTANT, 2)).delta(-1.0), "^epsilon"),
    "delta = 1": (lambda: total((CONSTANT, 2)).epsilon(1.0), "^delta"),
    "delta NaN": (lambda: total((CONSTANT, 2)).epsilon(math.nan), "^delta"),
}


@pytest.mark.parametrize("case", CASES)
def test_bad_input_is_refused(case: str) -> None:
    action, message = CASES[case]
    with pytest.raises(ValueError, match=message):
        action()
