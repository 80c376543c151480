"""Tests of the noise find its faults, and do not blame honest noise."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from scipy import special, stats

from tests.privacy.test_auditing import BOUNDS, MECHANISMS
from walklearn.privacy import noise_test
from walklearn.privacy.mechanisms import ClampedGamma, Gamma, Gaussian, Laplace
from walklearn.privacy.mechanisms.mechanism import Mechanism
from walklearn.privacy.noise_test import (
    DEPENDENT,
    ONE_SIDED,
    REPEATED,
    TOO_SMALL,
    mechanism_faults,
    repetition_p_value,
    sign_p_value,
    small_noise_p_value,
)

# The p-value below which one of three tests finds one of the four faults of a mechanism.
LIMIT = noise_test.FAILURE_PROBABILITY / 12


def simulated(mechanism: Mechanism, seed: int = 1) -> Callable[[Any], Any]:
    generator = np.random.default_rng(seed)
    return lambda values: mechanism.release(values, generator)


@pytest.mark.parametrize("mechanism", MECHANISMS, ids=repr)
def test_honest_noise_has_no_faults(mechanism: Mechanism) -> None:
    """Each assertion fails by chance with probability below 1e-9."""
    assert mechanism_faults(mechanism, simulated(mechanism)) == ()
    assert mechanism_faults(mechanism, mechanism.release) == ()


@pytest.mark.parametrize("mechanism", MECHANISMS, ids=repr)
def test_missing_noise_is_found(mechanism: Mechanism) -> None:
    def without_noise(values: Any) -> Any:
        return np.clip(values, *mechanism.clamp) if mechanism.clamp else values

    assert TOO_SMALL in mechanism_faults(mechanism, without_noise)


def test_a_constant_is_found_if_the_claim_leaves_room_for_other_releases() -> None:
    """This mechanism releases 1 for 94 % of the values 50: 1,000 times with probability 1e-26."""
    mechanism = ClampedGamma(8000.0, (1.0, 50.0))
    assert mechanism_faults(mechanism, np.ones_like) == (REPEATED,)


def cumulative(name: str) -> Callable[[float], float]:
    """Return P(|noise| ≤ x) for noise of scale 1."""
    return {
        "gaussian": lambda x: float(special.erf(x / math.sqrt(2.0))),
        "laplace": lambda x: -math.expm1(-x),
        "truncated-laplace": lambda x: min(1.0, math.expm1(-x) / math.expm1(-4.0)),
    }[name]


@pytest.mark.parametrize("name", ["gaussian", "laplace", "truncated-laplace"])
def test_half_the_noise_is_missed_with_probability_below_1e_9(name: str) -> None:
    """At the best g, fewer than g + d of the distances may lie where the claim expects g."""
    count, share = noise_test.RELEASES, cumulative(name)
    d = math.sqrt(-math.log(LIMIT) / (2 * count))
    missed = min(
        stats.binom.cdf(math.floor(count * (share(x) + d)), count, share(2.0 * x))
        for x in np.linspace(0.01, 3.0, 300)
    )
    assert missed < 1e-15


def test_a_correlation_of_one_half_is_missed_with_probability_below_1e_9() -> None:
    """A cap of 5 gives 1,600 pairs of visits; there are 21 tests for dependence."""
    count, limit = 1600, noise_test.FAILURE_PROBABILITY / (4 * 21)
    enough = int(stats.binom.isf(limit / 2, count, 0.5)) + 1  # equal signs
    assert sign_p_value(np.repeat([1.0, -1.0], (enough, count - enough))) < limit
    assert stats.binom.cdf(enough - 1, count, 0.5 + math.asin(0.5) / math.pi) < 1e-9


@pytest.mark.parametrize("scale", [0.5, 2.0])
def test_too_little_noise_is_a_fault_and_too_much_is_not(scale: float) -> None:
    for claimed, real in (
        (Laplace(3.0, BOUNDS), Laplace(3.0 * scale, BOUNDS)),
        (Gaussian(1.0, BOUNDS), Gaussian(scale, BOUNDS)),
        (Gaussian(4.0, BOUNDS), Gaussian(4.0 * scale, BOUNDS)),
        (Gamma(0.5, BOUNDS), Gamma(0.5 * scale**2, BOUNDS)),
        (Gaussian(4.0, BOUNDS, None), Gaussian(4.0 * scale, BOUNDS, None)),
    ):
        found = mechanism_faults(claimed, simulated(real))
        assert found == ((TOO_SMALL,) if scale < 1 else ())


def test_noise_that_is_used_twice_is_found() -> None:
    mechanism = Laplace(3.0, BOUNDS, None)
    generator = np.random.default_rng(1)
    previous: list[Any] = []

    def twice(values: Any) -> Any:
        if previous:
            return previous.pop()
        previous.append(mechanism.release(values, generator))
        return previous[-1]

    assert mechanism_faults(mechanism, twice) == (REPEATED, DEPENDENT)


SYMMETRIC = [
    each for each in MECHANISMS if getattr(each.distribution(BOUNDS[0])[0], "is_symmetric", False)
]


@pytest.mark.parametrize("mechanism", SYMMETRIC, ids=repr)
def test_noise_that_lost_its_sign_is_found(mechanism: Mechanism) -> None:
    honest = simulated(mechanism)

    def positive(values: Any) -> Any:
        released = values + np.abs(honest(values) - values)
        return np.clip(released, *mechanism.clamp) if mechanism.clamp else released

    assert ONE_SIDED in mechanism_faults(mechanism, positive)


@pytest.mark.parametrize("mechanism", SYMMETRIC, ids=repr)
def test_releases_whose_noise_nearly_cancels_are_found(mechanism: Mechanism) -> None:
    honest, previous = simulated(mechanism), list[Any]()

    def cancelling(values: Any) -> Any:
        if not previous:
            previous.append(honest(values))
            return previous[0]
        released = 2.0 * values - previous.pop() + 3.0 * mechanism.grid_step
        return np.clip(released, *mechanism.clamp) if mechanism.clamp else released

    assert DEPENDENT in mechanism_faults(mechanism, cancelling)


def test_a_value_outside_the_clamp_is_no_fault() -> None:
    """All releases of 1 lie above it. An honest release fails with probability below 1e-9."""
    for mechanism in (Laplace(3.0, BOUNDS, (2.0, 8.0)), Gaussian(0.1, BOUNDS, (2.0, 8.0))):
        assert mechanism_faults(mechanism, simulated(mechanism)) == ()


def test_the_p_value_of_signs_is_that_of_the_exact_binomial_test() -> None:
    for positive, negative, unknown in ((9, 1, 0), (700, 300, 0), (1000, 0, 0), (5, 5, 0)):
        signs = np.repeat([1.0, -1.0, 0.0], (positive, negative, unknown))
        exact = stats.binomtest(positive, positive + negative).pvalue
        assert sign_p_value(signs) == pytest.approx(exact, rel=1e-9)
        assert sign_p_value(-signs) == sign_p_value(signs)
        assert sign_p_value(np.append(signs, 0.0)) >= sign_p_value(signs)
    assert sign_p_value(np.zeros(0)) == 1.0


def test_noise_that_is_missing_in_one_of_twenty_releases_is_found() -> None:
    mechanism = Laplace(3.0, BOUNDS, None)
    generator = np.random.default_rng(1)

    def release(values: Any) -> Any:
        return values if generator.random() < 0.05 else mechanism.release(values, generator)

    assert mechanism_faults(mechanism, release) == (REPEATED,)


@pytest.mark.parametrize("outcomes", [2, 30, 10_000])
def test_p_values_are_valid(outcomes: int) -> None:
    """Of 4,000 p-values at most 1 % are below 0.01, give or take 5 standard deviations."""
    generator, count = np.random.default_rng(1), 100
    small, repeats, signs = [], [], []
    probabilities = np.full(count, 1.0 / outcomes)
    for _ in range(4000):
        drawn = generator.integers(outcomes, size=count)
        small.append(small_noise_p_value((drawn + 1.0) / outcomes))
        repeats.append(repetition_p_value(drawn.astype(float), probabilities))
        fair = np.sign(drawn - 0.5 * (outcomes - 1))
        signs += [sign_p_value(fair), sign_p_value(fair[1:] * fair[:-1])]
    limit = 0.01 + 5 * math.sqrt(0.01 / 4000)
    assert np.mean(np.array(small) < 0.01) < limit
    assert np.mean(np.array(repeats) < 0.01) < limit
    assert np.mean(np.array(signs) < 0.01) < limit
