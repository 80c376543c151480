"""Tests for noise that is missing, too small, repeated, one-sided or dependent.

The bound of `auditing` refutes a claim only if ε is small enough for the number of samples. The
tests here do not depend on ε: they compare releases with the distribution that the mechanism
claims. Each returns a p-value: an honest mechanism gets one below p with probability at most p.
An audit gives a false alarm with probability 1e-9 at most: each of the four faults has a quarter of
it, which all tests for this fault share equally.

**Too small.** A release R of a value v lies at the distance D = |R − v|. Let G be the probability
that the claimed distribution gives a distance of at most D. Under the claim P(G ≤ g) ≤ g for every
g, also where releases are rounded and clamped. Noise that is too small makes G small: if F is the
share of n releases with G ≤ g, then by Massart's one-sided inequality

    P(sup_g (F(g) − g) > d) ≤ exp(−2nd²).

The test is one-sided: more noise than claimed is no violation of privacy.

**Repeated.** Equal releases are rare on a fine grid. Let q_i be the claimed probability that
release i equals an earlier one, given those, and let M be the number of such releases. For every λ
the expectation of e^(λM) / Π(1 + (e^λ − 1) q_i) is 1, and by Markov's inequality the
reciprocal of this quotient is a p-value. Ends of a clamp do not count, because more noise than
claimed moves more releases there. If all n releases are equal, with claimed probability p, then
p^(n − 1) is a p-value as well.

**One-sided or dependent.** Symmetric noise has fair signs, and so have the products of the signs
of independent draws: of two coordinates, or of successive releases. The products in one test are
independent as well. A draw so close to 0 that rounding may have changed its sign counts as 0, which
only lowers the number of positive signs and that of negative ones. So the binomial distribution
B(n, 1/2) bounds both, and its tail gives the p-value. This finds noise that has lost its sign or
cancels between coordinates or releases, and copies that were changed a little.

At n = 1,000 missing noise (R = v) is found with certainty, unless the claim itself says that nearly
all releases are equal. Half of the claimed standard deviation is found with a probability of more
than 1 − 1e-9 (`tests/privacy/test_noise_test.py`), unless the clamp moves most releases to an end.

>>> import numpy as np
>>> uniform = np.random.default_rng(1).random(1000)
>>> small_noise_p_value(uniform) > 1e-3, small_noise_p_value(0.5 * uniform) < 1e-90
(True, True)
>>> repetition_p_value(np.arange(1000.0), np.full(1000, 1e-6))
1.0
>>> repetition_p_value(np.ones(1000), np.full(1000, 0.9)) < 1e-40
True
>>> sign_p_value(np.ones(3)), sign_p_value(np.array([1.0, 0.0, -1.0]))
(0.25, 1.0)
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import TYPE_CHECKING

import numpy as np

from walklearn.extras import package
from walklearn.privacy.accounting import special
from walklearn.privacy.limits import Array

if TYPE_CHECKING:
    from walklearn.privacy.mechanisms.mechanism import Mechanism

# The probability of a false alarm of all tests of one audit together.
FAILURE_PROBABILITY = 1e-9
# Releases of each value that the tests of a mechanism use.
RELEASES = 1000
TOO_SMALL = "the noise is missing or too small"
REPEATED = "releases repeat: the noise is constant or used more than once"
ONE_SIDED = "the noise has one sign more often than the other"
DEPENDENT = "the draws of the noise depend on each other"
_EXPONENTS = (0.5, 2.0, 8.0)  # λ: from few to many of the releases repeated


def small_noise_p_value(probabilities: Array) -> float:
    """Return the p-value of noise that is smaller than claimed.

    `probabilities` are the claimed ones, for each release, of noise with at most its absolute
    value.
    """
    count = probabilities.size
    excess = float(np.max(np.arange(1, count + 1) / count - np.sort(probabilities)))
    return math.exp(-2.0 * count * max(0.0, excess) ** 2)


def repetition_p_value(outcomes: Array, probabilities: Array) -> float:
    """Return the p-value of this many equal outcomes among independent ones.

    `outcomes` are in the order of their release; NaN marks those that do not count.
    `probabilities` are upper bounds on the claimed probability of each.
    """
    _, first = np.unique(outcomes, return_index=True, equal_nan=False)
    new = np.zeros(outcomes.size)
    new[first] = np.where(np.isnan(outcomes[first]), 0.0, probabilities[first])
    repeated = np.minimum(1.0, np.cumsum(new) - new)
    evidence = [
        exponent * (outcomes.size - first.size) - np.log1p(math.expm1(exponent) * repeated).sum()
        for exponent in _EXPONENTS
    ]
    # The mean of the quotients has expectation 1 too, and is at least a third of the largest.
    return min(1.0, len(_EXPONENTS) * math.exp(-max(0.0, *evidence)))


def sign_p_value(signs: Array) -> float:
    """Return the p-value of this many equal signs among independent fair ones; 0 is unknown."""
    count = max(np.count_nonzero(signs > 0), np.count_nonzero(signs < 0))
    if count == 0:
        return 1.0
    # The upper tail of the binomial distribution, on both sides.
    return min(1.0, 2.0 * float(special.betainc(count, signs.size - count + 1, 0.5)))


def faults(p_values: dict[str, list[float]]) -> tuple[str, ...]:
    """Return the faults with a p-value that honest noise has with probability below 1e-9.

    `p_values` has the results of all tests for each fault.
    """
    limit = FAILURE_PROBABILITY / len(p_values)
    return tuple(
        fault for fault, values in p_values.items() if any(p * len(values) < limit for p in values)
    )


def mechanism_faults(mechanism: Mechanism, release: Callable[[Array], Array]) -> tuple[str, ...]:
    """Return the faults in the noise of a mechanism, from 1,000 releases of each of three values.

    The values are the public bounds and their mean. Each release is a separate call of `release`,
    which takes an array of values. The claim is the mechanism's `distribution`.
    """
    low, high = mechanism.bounds
    p_values: dict[str, list[float]] = {TOO_SMALL: [], REPEATED: [], ONE_SIDED: [], DEPENDENT: []}
    for value in (low, 0.5 * (low + high), high):
        released = np.concatenate([release(np.full(1, value)) for _ in range(RELEASES)])
        within = _claimed_probability(mechanism, value)
        distances = np.abs(released - value)
        nearer = np.array([within(value - d, value + d) for d in distances])
        p_values[TOO_SMALL].append(small_noise_p_value(nearer))
        probabilities = np.array([within(r, r) for r in released])
        # Clamped releases accumulate at the ends; unclamped positive ones are at least one step.
        at_end = np.isin(released, mechanism.clamp or [mechanism.grid_step])
        is_constant = bool((released == released[0]).all())
        p_values[REPEATED] += [
            repetition_p_value(np.where(at_end, np.nan, released), probabilities),
            float(probabilities[0]) ** (RELEASES - 1) if is_constant else 1.0,
        ]
        noise, centre = mechanism.distribution(value)
        if centre == value and getattr(noise, "is_symmetric", False):
            signs = _signs(mechanism, value, released)
            p_values[ONE_SIDED].append(sign_p_value(signs))
            p_values[DEPENDENT].append(sign_p_value(signs[1:] * signs[:-1]))
    return faults(p_values)


def _signs(mechanism: Mechanism, value: float, released: Array) -> Array:
    """Return the signs of the noise, 0 where rounding or clamping hides them."""
    step, (bottom, top) = mechanism.grid_step, mechanism.clamp or (-math.inf, math.inf)
    positive = released > max(value, bottom) + step
    return positive.astype(float) - (released < min(value, top) - step)


def _claimed_probability(mechanism: Mechanism, value: float) -> Callable[[float, float], float]:
    """Return an upper bound on the claimed probability of a release in [low, high].

    The interval is one step of the grid wider at both ends, which covers the rounding.
    """
    arb = package("flint", "privacy", "an audit of the noise needs").arb
    noise, centre = mechanism.distribution(value)
    step, (bottom, top) = mechanism.grid_step, mechanism.clamp or (-math.inf, math.inf)

    def upper_tail(x: float) -> float:
        return float(noise.upper(arb(x - centre)))

    def within(low: float, high: float) -> float:
        above_low = 1.0 if low - step <= bottom else upper_tail(low - step)
        above_high = 0.0 if high + step >= top else upper_tail(high + step)
        return min(1.0, max(0.0, above_low - above_high))

    return within
