"""Tests of the noise find missing, too small and repeated noise, and do not blame honest noise."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from scipy import special, stats

from tests.privacy.test_auditing import BOUNDS, MECHANISMS
from walklearn.privacy import noise_test
from walklearn.privacy.mechanism import Mechanism
from walklearn.privacy.mechanisms import ClampedGamma, Gamma, Gaussian, Laplace
from walklearn.privacy.noise_test import (
    REPEATED,
    TOO_SMALL,
    mechanism_faults,
    repetition_p_value,
    small_noise_p_value,
)

# The p-value below which one of the nine tests of a mechanism finds a fault.
LIMIT = noise_test.FAILURE_PROBABILITY / 9


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

    assert mechanism_faults(mechanism, twice) == (REPEATED,)


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
    small, repeats = [], []
    probabilities = np.full(count, 1.0 / outcomes)
    for _ in range(4000):
        drawn = generator.integers(outcomes, size=count)
        small.append(small_noise_p_value((drawn + 1.0) / outcomes))
        repeats.append(repetition_p_value(drawn.astype(float), probabilities))
    limit = 0.01 + 5 * math.sqrt(0.01 / 4000)
    assert np.mean(np.array(small) < 0.01) < limit
    assert np.mean(np.array(repeats) < 0.01) < limit
