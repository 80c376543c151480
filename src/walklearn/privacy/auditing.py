"""Monte Carlo audit of a mechanism: lower bounds on its δ and ε, and tests of its noise.

The worst pair of values is (lo, hi), or two values `sensitivity` apart for a claim about one row,
and the worst set is a half-line. So a claim (ε, δ) means

    P(R(hi) ≥ t) − e^ε P(R(lo) ≥ t) ≤ δ    and    P(R(lo) ≤ t) − e^ε P(R(hi) ≤ t) ≤ δ

for every t. Both are estimated from draws. The first half chooses t, the second half counts, and
the counts give Clopper–Pearson bounds: a lower one for the first probability, an upper one for the
second. If their difference exceeds the claimed δ, the claim is false, except with probability at
most 1 − confidence, which the four bounds share equally. A consistent result is no proof: with n
draws the bound on ε never exceeds `largest_refutable_epsilon`.

Half-lines include their end, so the atoms of clamped releases count. The audit uses only `bounds`,
`delta` and `release` of the mechanism. It tests the published numbers, which lie on the grid.

If a mechanism states the distribution of its releases (`distribution`, as every `Mechanism` does),
its noise is also tested, for any ε: whether it is missing, too small or repeated, and for symmetric
noise whether it is one-sided or dependent (`noise_test`). Honest noise fails these tests with
probability below 1e-9.

By default the audit runs the code of real releases: `release` without a generator, which draws
exactly from the operating system's entropy. With a seed it audits the simulated draws.

>>> from walklearn.privacy.mechanisms import Laplace
>>> mechanism = Laplace(scale=9.0, bounds=(1.0, 10.0))
>>> audit(mechanism, epsilon=0.5, samples=2_000, confidence=1 - 1e-9).verdict
'consistent'
>>> audit(mechanism, epsilon=0.5, delta=0.1, samples=20_000, seed=1).verdict
'VIOLATED'
"""

from __future__ import annotations

import inspect
import math
from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Literal, NamedTuple, Protocol

import numpy as np

from walklearn.checks import check_number, check_whole
from walklearn.privacy import noise_test
from walklearn.privacy.accounting import special
from walklearn.privacy.accounting.printing import format_lower, format_upper
from walklearn.privacy.limits import Array, Bounds, check_delta, check_epsilon

# Number of half-lines that the first half of the draws chooses from.
_CANDIDATES = 1000
# Largest argument of the exponential function: larger ε give the same verdict.
_LARGEST_EXPONENT = 700.0


# Releases of each value by default: a few seconds of either kind.
_SAMPLES = {"real": 20_000, "simulated": 200_000}
Draws = Literal["real", "simulated"]
_NAMED = (inspect.Parameter.POSITIONAL_ONLY, inspect.Parameter.POSITIONAL_OR_KEYWORD)


class Auditable(Protocol):
    """Mechanism that can be audited."""

    @property
    def bounds(self) -> Bounds:
        """The smallest and the largest value that it accepts."""

    def delta(self, epsilon: float) -> float:
        """Return the δ that the mechanism claims at this ε."""

    def release(self, values: Array, generator: np.random.Generator | None = None) -> Array:
        """Return the published numbers for these values.

        Without a generator this is a real release. If the generator has no default, the mechanism
        has simulated draws only, and these are audited.
        """


@dataclass(frozen=True)
class AuditResult(ABC):
    """Result of an audit: the claim, and evidence against it."""

    epsilon: float
    delta: float
    epsilon_lower: float
    confidence: float
    draws: Draws
    largest_refutable_epsilon: float
    noise_releases: int
    faults: tuple[str, ...]

    @property
    @abstractmethod
    def violated(self) -> bool:
        """True if the claim is refuted."""

    @property
    def verdict(self) -> str:
        """The result in a word: "VIOLATED" or "consistent"."""
        return "VIOLATED" if self.violated else "consistent"

    @property
    def _limits(self) -> str:
        """Sentences on the tests of the noise, and on the limits of the audit."""
        if self.noise_releases == 0:
            noise = "The noise itself was not tested, because the mechanism has no `distribution`."
        elif self.faults:
            noise = f"Faults: {'; '.join(self.faults)}."
        else:
            noise = (
                f"Tests of {self.noise_releases:,} {self.draws} releases found no fault in "
                "the noise."
            )
        beyond = not self.violated and self.largest_refutable_epsilon < self.epsilon < math.inf
        return (
            f"{noise} With this many samples, the bounds can refute claims of ε up to "
            f"{format_lower(self.largest_refutable_epsilon, 3)}"
            f"{', which this claim exceeds: take more samples.' if beyond else '.'}"
        )


@dataclass(frozen=True)
class Audit(AuditResult):
    """Claim of a mechanism and the evidence against it.

    The two lower bounds are true together with probability `confidence`.

    Parameters
    ----------
    mechanism
        The audited mechanism.
    epsilon, delta
        The claimed ε and δ.
    delta_lower, epsilon_lower
        Lower bounds on δ at the claimed ε, and on ε at the claimed δ.
    half_line
        The set of releases that gives the bound on δ.
    samples
        The number of releases of each of two values.
    confidence
        The probability that the bounds are true.
    draws
        "real" for releases from the system's entropy, "simulated" for those of a generator.
    largest_refutable_epsilon
        The largest `epsilon_lower` that this many samples can give at this confidence.
    noise_releases
        The number of releases whose noise was compared with the mechanism's `distribution`; 0 if
        it has none.
    faults
        The faults found in the noise; honest noise has one with probability below 1e-9.
    """

    mechanism: str
    delta_lower: float
    half_line: str
    samples: int

    @property
    def violated(self) -> bool:
        """True if the claim is refuted."""
        return self.delta_lower > self.delta or bool(self.faults)

    def __str__(self) -> str:
        return (
            f"{self.verdict}: {self.mechanism} claims δ = {format_upper(self.delta)} at "
            f"ε = {format_upper(self.epsilon)}. Lower bounds: δ ≥ "
            f"{format_lower(self.delta_lower)} at this ε, "
            f"ε ≥ {format_lower(self.epsilon_lower)} at this δ ({self.half_line}, {self.samples} "
            f"{self.draws} releases of each of two values, confidence {self.confidence:g}). "
            f"{self._limits}"
        )


def audit(
    mechanism: Auditable,
    epsilon: float,
    delta: float | None = None,
    samples: int | None = None,
    confidence: float = 0.999,
    seed: int | None = None,
) -> Audit:
    """Test the claim that a mechanism is (ε, δ) private, by drawing from it.

    Parameters
    ----------
    mechanism
        A mechanism of `privacy`, or an object with the same methods.
    epsilon
        The claimed ε.
    delta
        The claimed δ; by default that of the mechanism for ε.
    samples
        The number of releases of each of two values; by default 20,000 real ones or
        200,000 simulated ones.
    confidence
        The probability with which the bounds are true.
    seed
        None audits real releases, which draw from the operating system's entropy. A number audits
        simulated releases, and makes the result reproducible.

    Returns
    -------
    Audit
        The claim beside lower bounds on δ and ε, and the faults of the noise. A bound above the
        claim, or a fault, refutes it.
    """
    epsilon = check_epsilon(epsilon)
    check_number("confidence", confidence, above=0.0, below=1.0)
    claimed = mechanism.delta(epsilon) if delta is None else check_delta(delta)
    draws: Draws = "real" if seed is None and _has_real_draws(mechanism) else "simulated"
    half = check_whole("samples", _SAMPLES[draws] if samples is None else samples, minimum=2) // 2
    risk = (1.0 - confidence) / 4
    generator = np.random.default_rng(seed)

    def release(values: Array) -> Array:
        arguments = () if draws == "real" else (generator,)
        return mechanism.release(values, *arguments)

    low, high = (release(np.full(2 * half, value)) for value in _worst_pair(mechanism))
    # A lower half-line is an upper one of the negated numbers, with the values swapped.
    growth = math.exp(min(epsilon, _LARGEST_EXPONENT))

    def excess(more: Array, less: Array) -> Array:
        return more - growth * less

    up = _find_half_line(high, low, excess, risk)
    down = _find_half_line(-low, -high, excess, risk)
    best = max(up, down, key=lambda half_line: half_line.excess(epsilon))
    described: Any = mechanism if hasattr(mechanism, "distribution") else None
    return Audit(
        mechanism=repr(mechanism),
        epsilon=epsilon,
        delta=claimed,
        delta_lower=max(0.0, best.excess(epsilon)),
        epsilon_lower=max(up.log_ratio(claimed), down.log_ratio(claimed)),
        half_line=f"R ≥ {up.end:.6g}" if best is up else f"R ≤ {-down.end:.6g}",
        samples=2 * half,
        confidence=confidence,
        draws=draws,
        largest_refutable_epsilon=largest_refutable(2 * half, claimed, risk),
        noise_releases=3 * noise_test.RELEASES if described else 0,
        faults=noise_test.mechanism_faults(described, release) if described else (),
    )


def epsilon_lower_bound(one: Array, other: Array, delta: float, risk: float) -> float:
    """Return a lower bound on ε at this δ, from draws for two data sets.

    It is too large with probability `risk` at most. As in `audit`, half of the draws choose an
    upper or lower half-line, and the other half count.
    """

    def log_ratio(more: Array, less: Array) -> Array:
        with np.errstate(divide="ignore"):
            return np.asarray(np.log(np.maximum(more - delta, 0.0)) - np.log(less))

    directions = [(one, other), (other, one), (-one, -other), (-other, -one)]
    return max(_find_half_line(*each, log_ratio, risk / 8).log_ratio(delta) for each in directions)


def largest_refutable(samples: int, delta: float, risk: float) -> float:
    """Return the largest bound on ε that this many draws can give.

    That is the bound if all draws of one value are hits, and no draw of the other.

    >>> round(largest_refutable(200, 1e-5, 0.001 / 16), 2)
    2.29
    """
    counted = samples - samples // 2
    every = risk ** (1.0 / counted)  # Clopper and Pearson's lower bound if all draws are hits
    return _HalfLine(every, 1.0 - every, 0.0).log_ratio(delta)


class _HalfLine(NamedTuple):
    """Lower bound of P(R ≥ end) for one value, and upper bound for the other (never 0)."""

    more: float
    less: float
    end: float

    def excess(self, epsilon: float) -> float:
        """Return the lower bound on δ at this ε."""
        return self.more - math.exp(min(epsilon, _LARGEST_EXPONENT)) * self.less

    def log_ratio(self, delta: float) -> float:
        """Return the lower bound on ε at this δ."""
        return max(0.0, math.log((self.more - delta) / self.less)) if self.more > delta else 0.0


def _find_half_line(
    more: Array, less: Array, evidence: Callable[[Array, Array], Array], risk: float
) -> _HalfLine:
    """Choose the half-line with the largest evidence in the first half, count in the second."""
    half = more.size // 2
    ends = np.unique(np.quantile(more[:half], np.linspace(0, 1, _CANDIDATES), method="lower"))
    at_least, at_most = _bounds_at(more[:half], less[:half], ends, risk)
    end = ends[int(np.argmax(evidence(at_least, at_most)))]
    at_least, at_most = _bounds_at(more[half:], less[half:], np.array([end]), risk)
    return _HalfLine(float(at_least[0]), float(at_most[0]), float(end))


def _bounds_at(more: Array, less: Array, ends: Array, risk: float) -> tuple[Array, Array]:
    """Return Clopper–Pearson bounds, by quantiles of the beta distribution."""
    hits, false_hits = _at_least(more, ends), _at_least(less, ends)
    with np.errstate(all="ignore"):
        lower = special.betaincinv(hits, more.size - hits + 1, risk)
        upper = special.betainccinv(false_hits + 1, less.size - false_hits, risk)
    return (
        np.where(hits == 0, 0.0, lower),
        np.where(false_hits == less.size, 1.0, upper),
    )


def _at_least(draws: Array, ends: Array) -> Array:
    """Return the number of draws ≥ each end."""
    below = np.searchsorted(np.sort(draws), ends, side="left")
    return np.asarray(draws.size - below, dtype=np.float64)


def _worst_pair(mechanism: Auditable) -> Bounds:
    """Return two values with the largest distance that the claim allows.

    For a claim about one row that is `sensitivity`; clamping hides it least in the middle.
    """
    low, high = mechanism.bounds
    sensitivity: float | None = getattr(mechanism, "sensitivity", None)
    if sensitivity is None:
        return low, high
    middle, half = 0.5 * (low + high), 0.5 * min(sensitivity, high - low)
    return middle - half, middle + half


def _has_real_draws(mechanism: Auditable) -> bool:
    """True if `release` needs no generator."""
    _, *others = inspect.signature(mechanism.release).parameters.values()
    return not any(each.default is each.empty and each.kind in _NAMED for each in others)
