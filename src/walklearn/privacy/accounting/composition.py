"""Total cost of several releases of one node.

A release is described by the curve δ(ε) of the worst pair of values, in the worse of both
orders. Such a curve, continued to ε < 0 by

    δ(−ε) = 1 − e^(−ε) + e^(−ε) δ(ε),

is the hockey stick of one dominating pair of distributions (P, Q): a supremum over pairs, closed
under swapping them, is again convex in e^ε. Products of dominating pairs dominate the composition,
also if later releases depend on earlier ones, and for every direction in which each value moves
(Zhu, Dong & Wang 2022). So the privacy loss ln dP/dQ of all releases is distributed as the
convolution of theirs.

It is computed by dp-accounting: the curve is joined by straight lines in e^ε between points of
a grid ("connect the dots", Doroshenko et al. 2022), which lie above it because it is convex.
Beyond the grid the loss counts as infinite. So the result is an upper bound, and the largest
possible rounding error of the convolution (`slack`, about 1e-11) is added. Some cases need no grid
and are exact: no release, a single release, contributions to the model (one Gaussian, also with
different noise), and δ = 0, where ε is the sum of the ε of the releases.

δ is that of the ideal distributions. A release is drawn from these exactly (`exact_draws`), so
finite precision adds nothing to it. A simulation draws in double precision and protects nobody.

>>> from walklearn.privacy.mechanisms import Laplace
>>> release = Laplace(scale=9.0, bounds=(1.0, 10.0))
>>> compose([Charge("importance", release, 1)]).delta(0.5) == release.delta(0.5)
True
>>> three = compose([Charge("importance", release, 2), Charge("degree", release, 1)])
>>> round(three.epsilon(0.0), 12)
3.0
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, replace
from functools import lru_cache, reduce
from typing import Any, NamedTuple, TypeAlias

import numpy as np

from walklearn.checks import check_whole
from walklearn.privacy.accounting.curves import LARGEST_EPSILON, smallest_epsilon
from walklearn.privacy.limits import check_delta, check_epsilon
from walklearn.privacy.mechanisms.mechanism import Mechanism
from walklearn.privacy.model_noise import MAX_TIMES, ModelNoise

Release: TypeAlias = Mechanism | ModelNoise
Factors: TypeAlias = tuple[tuple[Release, int], ...]

# The loss is cut off where δ exceeds its limit by this only.
_TAIL = 1e-14
# Grid points from 0 to the end of the loss, and the smallest step for a loss of up to 1: below it
# the rounding of δ would affect its second differences.
_POINTS = 2**15
_MIN_STEP = 3e-5
_MIN_REACH = 1e-3
# An ε beyond this is treated as infinite.
_LARGEST_REACH = 1e4
# Unit of rounding; there are a few roundings on each of the log n levels of the transform.
_ROUNDING = 2.0**-52


class Charge(NamedTuple):
    """A number of releases of the same thing by one mechanism.

    Parameters
    ----------
    what
        Name of the released thing.
    mechanism
        The mechanism; None for an unprotected release.
    times
        The number of releases.
    """

    what: str
    mechanism: Release | None
    times: int


@dataclass(frozen=True)
class Composition:
    """All releases of a node.

    factors: the releases whose privacy losses are convolved, and the numbers of convolutions of
    each with itself. is_unprotected: True if something was released without protection.
    """

    factors: Factors
    is_unprotected: bool

    def delta(self, epsilon: float) -> float:
        """Return an upper bound on δ for this ε, exact for a single release."""
        epsilon = check_epsilon(epsilon)
        if self._reveals_all:
            return 1.0
        if (single := self._single) is not None:
            return single.delta(epsilon)
        if epsilon >= _basic_epsilon(self.factors, 0.0):
            return 0.0
        loss, slack = _total_loss(self.factors)
        return min(1.0, float(loss.get_delta_for_epsilon(epsilon)) + slack)

    def epsilon(self, delta: float) -> float:
        """Return an upper bound on ε for this δ; infinite where there is none.

        A δ that the convolution cannot resolve (about 1e-11) is split between the releases
        instead: basic composition, where ε and δ add up.
        """
        delta = check_delta(delta)
        if self._reveals_all:
            return math.inf
        if (single := self._single) is not None:
            return single.epsilon(delta)
        if delta == 0 or delta < self.delta(LARGEST_EPSILON):
            return _basic_epsilon(self.factors, delta)
        return _convolved_epsilon(self, delta)

    def within(self, epsilon: float, delta: float) -> bool:
        """True if the total is (ε, δ) private; quicker than the smallest of either."""
        return self.delta(epsilon) <= check_delta(delta) or self.epsilon(delta) <= epsilon

    @property
    def _reveals_all(self) -> bool:
        """True without protection, or if bounded noise cannot mix the extreme values."""
        return self.is_unprotected or any(each.delta(math.inf) >= 1 for each, _ in self.factors)

    @property
    def _single(self) -> Release | None:
        return self.factors[0][0] if [times for _, times in self.factors] == [1] else None


def compose(charges: Iterable[Charge]) -> Composition:
    """Compose charges into one total, which is computed on demand and cached.

    Parameters
    ----------
    charges
        The charges of one node.

    Returns
    -------
    Composition
        The total, with the methods `delta(epsilon)` and `epsilon(delta)`.
    """
    total: Counter[Release | None] = Counter()
    for charge in charges:
        total[charge.mechanism] += check_whole("times", charge.times, maximum=MAX_TIMES)
    is_unprotected = total.pop(None, 0) > 0
    # Sorted, so that the last digits of a total are the same in every process.
    factors: list[tuple[Any, int]] = sorted(total.items(), key=repr)
    # The contributions of a ModelNoise are one Gaussian, and so are those of several together.
    noises = [each for each in factors if isinstance(each[0], ModelNoise)]
    if len(noises) == 1:
        at, (noise, times) = factors.index(noises[0]), noises[0]
        factors[at] = replace(noise, max_contributions=times), 1
    elif noises:
        factors = [each for each in factors if each not in noises] + [(_one_gaussian(noises), 1)]
    return Composition(tuple(factors), is_unprotected)


def _loss(release: Release, times: int, step: float) -> Any:
    from dp_accounting.pld import pld_pmf, privacy_loss_distribution  # takes a second

    last = math.ceil(_reach(release) / step)
    epsilons = np.arange(last + 1, dtype=np.float64) * step
    above = release.curve(epsilons)
    below = -np.expm1(-epsilons) + np.exp(-epsilons) * above
    deltas = np.concatenate([below[:0:-1], above])
    function = pld_pmf.create_pmf_pessimistic_connect_dots_fixed_gap(step, -last, last, deltas)
    loss = privacy_loss_distribution.PrivacyLossDistribution(function)
    return loss if times == 1 else loss.self_compose(times)


def _one_gaussian(noises: list[tuple[ModelNoise, int]]) -> ModelNoise:
    """Return one contribution that costs as much as all of these: Gaussians add up in 1/z²."""
    total = math.fsum(times / noise.noise_multiplier**2 for noise, times in noises)
    multiplier = math.sqrt(1.0 / total) * (1.0 - 1e-14)  # rounded down, which overcharges
    return ModelNoise(clip=1.0, noise_multiplier=multiplier, max_contributions=1)


# Many nodes have the same releases, so slow results are cached for each set of them.
@lru_cache(maxsize=4096)
def _basic_epsilon(factors: Factors, delta: float) -> float:
    """Return the sum of all ε, each for an equal share of δ; for δ = 0 this is optimal."""
    share = delta / max(1, sum(times for _, times in factors)) * (1.0 - 1e-15)
    total = math.fsum(times * each.epsilon(share) for each, times in factors)
    return total * (1.0 + 1e-15)


@lru_cache(maxsize=4096)
def _convolved_epsilon(composition: Composition, delta: float) -> float:
    return smallest_epsilon(composition.delta, delta, tolerance=1e-9)


@lru_cache(maxsize=64)
def _total_loss(factors: Factors) -> tuple[Any, float]:
    """Return the convolution of all losses, and a bound on the rounding error of its δ."""
    # With √times the grid is fine enough for the spread of the sum, which grows no faster.
    reach = sum(math.sqrt(times) * _reach(each) for each, times in factors)
    step = max(reach / _POINTS, _MIN_STEP * math.sqrt(reach))
    losses = [_loss(each, times, step) for each, times in factors]
    total = reduce(lambda one, other: one.compose(other, tail_mass_truncation=0), losses)
    points = sum(loss._pmf_remove.to_dense_pmf().size for loss in losses)
    return total, sum(times for _, times in factors) * _slack(points, step)


def _slack(points: int, step: float) -> float:
    """Return a bound on the rounding error of δ for each release.

    The transform of n points is accurate to about 2^-52 log n in the mean square, so its errors
    sum to at most √n times that. The masses are second differences of δ divided by the step.
    """
    return _ROUNDING * (4.0 * math.sqrt(points) * math.log2(points) + 1.0 / step)


def _reach(release: Release) -> float:
    """Return the end of the loss: beyond it δ falls by no more than the tail."""
    rest = float(release.curve(np.array(LARGEST_EPSILON))) + _TAIL
    reach = smallest_epsilon(lambda epsilon: float(release.curve(np.array(epsilon))), rest)
    return min(max(reach, _MIN_REACH), _LARGEST_REACH)
