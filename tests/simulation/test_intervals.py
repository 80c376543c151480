"""Intervals cover the truth as often as they say, and failures never make a method look good."""

from __future__ import annotations

import math

import numpy as np
import pytest

from walklearn.simulation.intervals import (
    log_slope,
    rank_correlation,
    ratio_of_means,
    ratio_of_medians,
)

REPETITIONS = 300


def pairs(generator: np.random.Generator, instances: int, one: float, other: float):
    """Log-normal pairs of mean 1 each, correlated by half: the ratio of the means is 1."""
    common, own = generator.standard_normal((2, instances))
    mixed = 0.5 * common + math.sqrt(0.75) * own
    return np.exp(one * common - one**2 / 2), np.exp(other * mixed - other**2 / 2)


@pytest.mark.parametrize(
    ("instances", "one", "other", "least"),
    [(100, 0.5, 0.5, 0.90), (100, 1.0, 1.0, 0.88), (100, 2.0, 2.0, 0.85), (100, 1.5, 0.3, 0.84),
     (20, 0.5, 0.5, 0.88), (20, 1.0, 1.0, 0.86)],
)  # fmt: skip
def test_ratio_covers_the_truth(instances: int, one: float, other: float, least: float) -> None:
    """Coverage as measured over 600 repetitions: .95, .94, .92, .92, .94, .94 in this order.

    With that coverage, 300 repetitions fall below `least` with a probability under 1e-4 each.
    """
    generator = np.random.default_rng(1)
    covered = 0
    for _ in range(REPETITIONS):
        _, lower, upper = ratio_of_means(*pairs(generator, instances, one, other))
        covered += lower <= 1.0 <= upper
    assert least <= covered / REPETITIONS


def test_ratio_finds_a_real_difference() -> None:
    """A factor of 2 with 100 pairs of σ = 0.5 is 11 standard errors away: missed under 1e-20."""
    above, below = pairs(np.random.default_rng(2), 100, 0.5, 0.5)
    value, lower, upper = ratio_of_means(2.0 * above, below)
    assert 1.0 < lower < value < upper < 4.0


def test_ratio_is_the_inverse_of_its_inverse() -> None:
    above, below = pairs(np.random.default_rng(3), 40, 1.0, 1.0)
    quotient, inverse = ratio_of_means(above, below), ratio_of_means(below, above)
    assert quotient.value == pytest.approx(1.0 / inverse.value)
    assert quotient.lower == pytest.approx(1.0 / inverse.upper, rel=1e-2)
    assert quotient.upper == pytest.approx(1.0 / inverse.lower, rel=1e-2)


def test_ratio_does_not_depend_on_units_or_order() -> None:
    above, below = pairs(np.random.default_rng(4), 40, 1.0, 1.0)
    plain = ratio_of_means(above, below)
    assert ratio_of_means(1e-30 * above, 1e-30 * below) == pytest.approx(plain)


def test_pairing_narrows_the_interval() -> None:
    generator = np.random.default_rng(5)
    hardness = generator.lognormal(sigma=1.5, size=100)
    above = hardness * generator.lognormal(sigma=0.1, size=100)
    paired = ratio_of_means(above, hardness)
    apart = ratio_of_means(above, generator.permutation(hardness))
    assert paired.upper / paired.lower < 1.2 < apart.upper / apart.lower


@pytest.mark.parametrize("failed", [np.inf, np.nan])
def test_a_failure_never_helps(failed: float) -> None:
    below = np.ones(50)
    above = 2.0 * np.ones(50)
    above[0] = failed
    value, lower, upper = ratio_of_means(above, below)
    assert value == np.inf
    assert lower == 2.0  # what the other instances say, in resamples without the failure
    assert upper == np.inf
    value, lower, upper = ratio_of_means(below, above)
    assert (value, lower, upper) == (0.0, 0.0, 0.5)


def test_failures_of_both_leave_the_ratio_open() -> None:
    errors = np.ones(50)
    errors[:10] = np.inf
    value, lower, upper = ratio_of_means(errors, errors)
    assert math.isnan(value)
    assert (lower, upper) == (0.0, np.inf)


def test_errors_of_zero() -> None:
    assert ratio_of_means(np.ones(20), np.zeros(20)) == (np.inf, np.inf, np.inf)
    value, lower, upper = ratio_of_means(np.zeros(20), np.full(20, -1e-18))
    assert math.isnan(value)
    assert (lower, upper) == (0.0, np.inf)


def test_equal_errors_have_no_interval_to_speak_of() -> None:
    errors = np.random.default_rng(6).lognormal(size=30)
    assert ratio_of_means(errors, errors) == pytest.approx((1.0, 1.0, 1.0))


def test_ratio_wants_pairs() -> None:
    with pytest.raises(ValueError, match="per instance"):
        ratio_of_means([1.0, 2.0], [1.0])


@pytest.mark.parametrize("size", [9, 10])
def test_median_ratio_is_that_of_the_medians(size: int) -> None:
    above, below = pairs(np.random.default_rng(10), size, 1.0, 1.0)
    expected = np.median(above) / np.median(below)
    assert ratio_of_medians(above, below).value == pytest.approx(expected)


def test_median_ratio_is_not_swayed_by_failures() -> None:
    above = np.full(30, 3.0)
    above[:4] = np.inf
    assert ratio_of_medians(above, np.ones(30)) == (3.0, 3.0, 3.0)
    above[:20] = np.inf
    assert ratio_of_medians(above, np.ones(30)).value == np.inf


def test_median_ratio_covers_the_truth() -> None:
    """Medians in the ratio 2; 300 repetitions cover under .88 with probability below 1e-4."""
    generator = np.random.default_rng(11)
    covered = 0
    for _ in range(REPETITIONS):
        above, below = generator.lognormal(size=(2, 100))
        _, lower, upper = ratio_of_medians(2.0 * above, below)
        covered += lower <= 2.0 <= upper
    assert covered / REPETITIONS >= 0.88


def test_slope_covers_the_truth() -> None:
    """Errors with mean C k^-0.7 whatever k; 300 repetitions cover under .88 with less than 1e-4."""
    generator = np.random.default_rng(7)
    costs = np.geomspace(100, 1000, 12)
    covered = 0
    for _ in range(REPETITIONS):
        instance = generator.lognormal(sigma=0.8, size=(100, 1))
        noise = generator.lognormal(mean=-0.125, sigma=0.5, size=(100, 12))
        _, lower, upper = log_slope(costs, instance * noise * costs**-0.7)
        covered += lower <= -0.7 <= upper
    assert covered / REPETITIONS >= 0.88


def test_slope_of_a_failed_run_is_unknown() -> None:
    errors = np.ones((20, 3))
    errors[:, 1] = np.inf
    value, lower, upper = log_slope([1.0, 2.0, 4.0], errors)
    assert math.isnan(value)
    assert (lower, upper) == (-np.inf, np.inf)


def test_slope_needs_two_records() -> None:
    with pytest.raises(ValueError, match="two records"):
        log_slope([1.0], np.ones((20, 1)))


def test_rank_correlation() -> None:
    """Nine places a factor 2 apart, errors of σ = 0.3 over 100 instances: no swap, under 1e-30."""
    generator = np.random.default_rng(8)
    predictions = np.tile(2.0 ** np.arange(9), (100, 1))
    errors = predictions * generator.lognormal(sigma=0.3, size=(100, 9))
    assert rank_correlation(errors, predictions) == pytest.approx((1.0, 1.0, 1.0))
    assert rank_correlation(errors, 1.0 / predictions) == pytest.approx((-1.0, -1.0, -1.0))


def test_noise_ranks_nothing_for_sure() -> None:
    """Errors of equal mean: the interval holds 0 unless 9 random ranks agree, about 5 % a time."""
    generator = np.random.default_rng(9)
    predictions = np.tile(2.0 ** np.arange(9), (30, 1))
    missed = 0
    for _ in range(40):
        _, lower, upper = rank_correlation(generator.lognormal(size=(30, 9)), predictions)
        missed += not lower <= 0.0 <= upper
    assert missed <= 12  # of 40 at 10 %: more with a probability under 1e-3
