"""Does a mechanism keep its word? A Monte Carlo lower bound on its δ.

The worst pair of values is (lo, hi) and the worst set a half-line, so a claim (ε, δ) says

    P(R(hi) ≥ t) − e^ε P(R(lo) ≥ t) ≤ δ    and    P(R(lo) ≤ t) − e^ε P(R(hi) ≤ t) ≤ δ

for every t. Both are estimated from draws: the first half of them chooses t, the second half
counts, and the counts give Clopper–Pearson bounds, a lower one for the first probability and an
upper one for the second. If the difference of these is above the claimed δ the claim is false,
except with probability at most 1 − confidence: the four bounds share it out equally. An honest
mechanism is also found consistent; so may a dishonest one be whose lie is too small to show.

Half-lines include their end, so the atoms of clamped releases count. Only `bounds`, `delta` and
`release` of the mechanism are used, and only what is really released is tested, grid and all.

>>> from walklearn.privacy.mechanisms import Laplace
>>> mechanism = Laplace(scale=9.0, bounds=(1.0, 10.0))
>>> audit(mechanism, epsilon=0.5, samples=20_000, seed=1).verdict
'consistent'
>>> audit(mechanism, epsilon=0.5, delta=0.1, samples=20_000, seed=1).verdict
'VIOLATED'
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass
from typing import NamedTuple, Protocol

import numpy as np

from walklearn.privacy import special
from walklearn.privacy.arguments import Array, Bounds, check_delta, check_epsilon

# Ends of half-lines that the first half of the draws chooses from.
_CANDIDATES = 1000
# Of the exponential function: larger ε give the same verdict.
_LARGEST_EXPONENT = 700.0


class Auditable(Protocol):
    """What an audit needs to know of a mechanism."""

    @property
    def bounds(self) -> Bounds:
        """The least and the largest value that it may be given."""

    def delta(self, epsilon: float) -> float:
        """The δ that the mechanism claims at this ε."""

    def release(self, values: Array, generator: np.random.Generator) -> Array:
        """What the mechanism publishes for these values."""


class Finding(ABC):
    """What every audit comes to: whether the claim is refuted, and that in a word."""

    @property
    @abstractmethod
    def violated(self) -> bool:
        """True where the claim is refuted."""

    @property
    def verdict(self) -> str:
        """The finding in a word."""
        return "VIOLATED" if self.violated else "consistent"


@dataclass(frozen=True)
class Audit(Finding):
    """What was claimed of a mechanism and what was found.

    The two lower bounds are true together with probability `confidence`.

    Parameters
    ----------
    mechanism
        What was audited.
    epsilon
        The claimed ε.
    delta
        The claimed δ.
    delta_lower
        A lower bound on δ at the claimed ε.
    epsilon_lower
        A lower bound on ε at the claimed δ.
    half_line
        The set of releases that shows it.
    samples
        How many releases were drawn from each of the two data sets.
    confidence
        The probability that the bounds are true.

    Examples
    --------
    >>> from walklearn.privacy.mechanisms import Laplace
    >>> mechanism = Laplace(1.0, bounds=(1.0, 2.0))                            # ε = 1
    >>> found = audit(mechanism, epsilon=0.5, delta=0.0, samples=20_000, seed=1)
    >>> found.verdict, found.delta_lower > found.delta
    ('VIOLATED', True)
    """

    mechanism: str
    epsilon: float
    delta: float
    delta_lower: float
    epsilon_lower: float
    half_line: str
    samples: int
    confidence: float

    @property
    def violated(self) -> bool:
        """True where the claim is refuted."""
        return self.delta_lower > self.delta

    def __str__(self) -> str:
        return (
            f"{self.verdict}: {self.mechanism} claims δ = {self.delta:.6g} at "
            f"ε = {self.epsilon:g}; δ is at least {self.delta_lower:.6g} there, and ε at least "
            f"{self.epsilon_lower:.6g} for that δ ({self.half_line}, {self.samples} draws of each "
            f"extreme value, confidence {self.confidence:g})."
        )


def audit(
    mechanism: Auditable,
    epsilon: float,
    delta: float | None = None,
    samples: int = 200_000,
    confidence: float = 0.999,
    seed: int | None = None,
) -> Audit:
    """Test the claim that a mechanism is (ε, δ) private, by drawing from it.

    Parameters
    ----------
    mechanism
        What releases a value; a mechanism of `privacy`, or anything with the same methods.
    epsilon
        The claimed ε.
    delta
        The claimed δ; by default what the mechanism itself gives for ε.
    samples
        How many releases to draw from each of two data sets.
    confidence
        The probability with which the bounds found are true.
    seed
        A number makes the result reproducible; None takes entropy of the operating system.

    Returns
    -------
    Audit
        The claim beside lower bounds on δ and ε; a bound above the claim refutes it.

    Examples
    --------
    >>> from walklearn.privacy.mechanisms import Laplace
    >>> found = audit(Laplace(scale=1.0, bounds=(1.0, 2.0)), epsilon=1.0, samples=10_000, seed=1)
    >>> found.epsilon_lower <= 1.0
    True
    """
    epsilon = check_epsilon(epsilon)
    half = _check_samples(samples) // 2
    if not 0 < confidence < 1:
        raise ValueError(f"confidence must be between 0 and 1, got {confidence!r}.")
    claimed = mechanism.delta(epsilon) if delta is None else check_delta(delta)
    risk = (1.0 - confidence) / 4
    generator = np.random.default_rng(seed)
    low, high = (mechanism.release(np.full(2 * half, v), generator) for v in mechanism.bounds)
    # Downwards is upwards for the negated numbers, with the values swapped.
    growth = math.exp(min(epsilon, _LARGEST_EXPONENT))
    up = _look_beyond(high, low, lambda more, less: more - growth * less, risk)
    down = _look_beyond(-low, -high, lambda more, less: more - growth * less, risk)
    best = max(up, down, key=lambda found: found.excess(epsilon))
    return Audit(
        mechanism=repr(mechanism),
        epsilon=epsilon,
        delta=claimed,
        delta_lower=max(0.0, best.excess(epsilon)),
        epsilon_lower=max(up.log_ratio(claimed), down.log_ratio(claimed)),
        half_line=f"R ≥ {up.end:.6g}" if best is up else f"R ≤ {-down.end:.6g}",
        samples=2 * half,
        confidence=confidence,
    )


def epsilon_shown(one: Array, other: Array, delta: float, risk: float) -> float:
    """A lower bound on the ε, at this δ, of what two data sets gave these draws.

    It is too large with probability `risk` at most. As in `audit`, half of the draws choose a
    half-line, up or down, and the other half count.
    """

    def log_ratio(more: Array, less: Array) -> Array:
        with np.errstate(divide="ignore"):
            return np.asarray(np.log(np.maximum(more - delta, 0.0)) - np.log(less))

    directions = [(one, other), (other, one), (-one, -other), (-other, -one)]
    return max(_look_beyond(*each, log_ratio, risk / 8).log_ratio(delta) for each in directions)


class _Found(NamedTuple):
    """A lower bound of P(R ≥ end) for one value, an upper one for the other (never 0)."""

    more: float
    less: float
    end: float

    def excess(self, epsilon: float) -> float:
        """The δ they show at this ε."""
        return self.more - math.exp(min(epsilon, _LARGEST_EXPONENT)) * self.less

    def log_ratio(self, delta: float) -> float:
        """The ε they show at this δ."""
        return max(0.0, math.log((self.more - delta) / self.less)) if self.more > delta else 0.0


def _look_beyond(
    more: Array, less: Array, shown: Callable[[Array, Array], Array], risk: float
) -> _Found:
    """Choose the half-line that shows most in the first half, count in the second."""
    half = more.size // 2
    ends = np.unique(np.quantile(more[:half], np.linspace(0, 1, _CANDIDATES), method="lower"))
    at_least, at_most = _bounds_at(more[:half], less[:half], ends, risk)
    end = ends[int(np.argmax(shown(at_least, at_most)))]
    at_least, at_most = _bounds_at(more[half:], less[half:], np.array([end]), risk)
    return _Found(float(at_least[0]), float(at_most[0]), float(end))


def _bounds_at(more: Array, less: Array, ends: Array, risk: float) -> tuple[Array, Array]:
    """Clopper–Pearson bounds, by quantiles of the beta law."""
    hits, false_hits = _at_least(more, ends), _at_least(less, ends)
    with np.errstate(all="ignore"):
        lower = special.betaincinv(hits, more.size - hits + 1, risk)
        upper = special.betainccinv(false_hits + 1, less.size - false_hits, risk)
    return (
        np.where(hits == 0, 0.0, lower),
        np.where(false_hits == less.size, 1.0, upper),
    )


def _at_least(draws: Array, ends: Array) -> Array:
    """Count how many draws are ≥ each end."""
    below = np.searchsorted(np.sort(draws), ends, side="left")
    return np.asarray(draws.size - below, dtype=np.float64)


def _check_samples(samples: int) -> int:
    if not isinstance(samples, int | np.integer) or samples < 2:
        raise ValueError(f"samples must be a whole number of at least 2, got {samples!r}.")
    return int(samples)
