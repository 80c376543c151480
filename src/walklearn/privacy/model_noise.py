"""Noise on the model itself: what a node adds to the token is clipped and noisy.

The paper shares the model in the clear, and two consecutive models tell a row of the node in
between up to scale, because ∇f_i is a multiple of x_i. The remedy: at each visit the data part
g of ∇f_i is scaled to norm at most C, Gaussian noise is added, and the sum is what the update
uses; after `max_contributions` visits the node adds noise only:

    g ← g · min(1, C/‖g‖) + σ N(0, I),    σ = noise_multiplier · C.

**What is claimed.** Local differential privacy with replace-one adjacency: whatever other rows
a node had held, each contribution would move by at most 2C. So everyone who sees all tokens,
the neighbours included, sees at most T = max_contributions Gaussians of that sensitivity, and
they compose to exactly one, also when each depends on those before it:

    δ(ε) = Φ(μ/2 − ε/μ) − e^ε Φ(−μ/2 − ε/μ),    μ = 2 √T / noise_multiplier.

**What is not.** No amplification by the walk: that an observer may not see every token, or
not know who held it, is worth something, but nothing is deducted for it here. And what else
depends on the rows needs its own protection: only g is covered, so the penalty's λw (public)
is added afterwards, and g may be weighted afterwards by public numbers only, such as released
constants. A weight computed from the rows, such as L̄/L_i of the algorithm as printed, has to
be applied before `protect`.

**Floating point.** `release` is what a node of a real network calls: noise from the operating
system's entropy, and the sum rounded to a public grid of about 2^-16 σ, so that no output tells
by its low-order bits which g it came from (Mironov 2012). `protect` is the bare arithmetic on
normal numbers that a simulation draws from its seed: same statistics, no grid, and it protects
nobody. For both, δ is that of the ideal Gaussian (`sampling` says what finite precision adds for
each coordinate), and the sensitivity is charged as 2C(1 + 1e-12), which covers the rounding of
the norm.

>>> noise = ModelNoise.calibrate(epsilon=3.0, delta=1e-5, clip=1.0, max_contributions=10)
>>> round(noise.noise_multiplier, 3), noise.delta(3.0) <= 1e-5
(8.795, True)
>>> ModelNoise(clip=1.0, noise_multiplier=1.0, max_contributions=1).protect([3.0, 4.0], [0.0, 0.0])
array([0.6, 0.8])
"""

from __future__ import annotations

import math
import operator
from dataclasses import dataclass
from typing import ClassVar

import numpy as np
from numpy.typing import ArrayLike

from walklearn.privacy import accounting, sampling
from walklearn.privacy.accounting import LARGEST_EPSILON, smallest_epsilon
from walklearn.privacy.arguments import Array, check_delta, check_epsilon

_SMALLEST, _LARGEST = 1e-100, 1e100
_MOST_CONTRIBUTIONS = 10**12
# The norm of a clipped vector is right to about (dimensions · 1e-16).
_CLIPPING_ROUNDING = 1e-12


@dataclass(frozen=True)
class ModelNoise:
    """Clip to `clip`, add noise of deviation `noise_multiplier · clip`, at most so many times."""

    name: ClassVar[str] = "model-noise"
    clip: float
    noise_multiplier: float
    max_contributions: int

    def __post_init__(self) -> None:
        for name in ("clip", "noise_multiplier"):
            object.__setattr__(self, name, _check_size(getattr(self, name), name))
        contributions = check_contributions(self.max_contributions, "max_contributions")
        object.__setattr__(self, "max_contributions", contributions)

    @classmethod
    def calibrate(
        cls, *, epsilon: float, delta: float, clip: float, max_contributions: int
    ) -> ModelNoise:
        """The least noise for which all contributions of a node together are (ε, δ) private."""
        epsilon, delta = check_epsilon(epsilon), check_delta(delta)
        if math.isinf(epsilon):
            raise ValueError("epsilon = inf asks for no privacy: share the model without noise.")
        if delta == 0:
            raise ValueError("Gaussian noise never gives delta = 0: ask for a positive delta.")

        def noise(multiplier: float) -> ModelNoise:
            return cls(clip, multiplier, max_contributions)

        def enough(multiplier: float) -> bool:
            return noise(multiplier).delta(epsilon) <= delta

        if not enough(_LARGEST):
            raise ValueError(
                f"delta = {delta:g} at epsilon = {epsilon:g} needs more noise than {_LARGEST:g} "
                "times the clip: raise one of them."
            )
        low, high = _SMALLEST, _LARGEST
        # δ falls as the noise grows. `high` is always enough, so what comes back is checked.
        while low < (middle := _between(low, high)) < high:
            low, high = (low, middle) if enough(middle) else (middle, high)
        return noise(high)

    @property
    def standard_deviation(self) -> float:
        """σ, of the noise on each coordinate."""
        return self.noise_multiplier * self.clip

    @property
    def grid_step(self) -> float:
        """What `release` gives are multiples of this public step."""
        return sampling.grid_step(self.standard_deviation)

    def delta(self, epsilon: float, contributions: int | None = None) -> float:
        """δ of all contributions together, or of the first few."""
        epsilon = min(check_epsilon(epsilon), LARGEST_EPSILON)
        return float(self.curve(epsilon, self._count(contributions)))

    def epsilon(self, delta: float, contributions: int | None = None) -> float:
        """ε of all contributions together, or of the first few; infinite for δ = 0."""
        count = self._count(contributions)
        return smallest_epsilon(lambda epsilon: self.delta(epsilon, count), check_delta(delta))

    def curve(self, epsilon: ArrayLike, contributions: int) -> Array:
        """δ for many ε at once: one Gaussian of the ratio σ/(2C√T), measured in sensitivities."""
        sensitivity = 2.0 * math.sqrt(contributions) * (1.0 + _CLIPPING_ROUNDING)
        ratio = self.noise_multiplier / sensitivity
        return accounting.gaussian_delta(epsilon, ratio, (0.0, 1.0))

    def release(
        self,
        gradient: ArrayLike,
        generator: np.random.Generator | None = None,
        contributes: bool = True,
    ) -> Array:
        """One contribution, safe to show: clipped, with fresh noise, on the public grid."""
        gradient = np.asarray(gradient, float)
        if generator is None:
            generator = sampling.operating_system_generator()
        noisy = self.protect(gradient, generator.standard_normal(gradient.shape), contributes)
        return sampling.round_to_grid(noisy, self.grid_step)

    def protect(self, gradient: ArrayLike, normal: ArrayLike, contributes: bool = True) -> Array:
        """The clipped gradient plus σ times the normal numbers, for a simulation.

        Without `contributes` (the cap is reached) it is noise only. So is a gradient that is
        not finite: NaN would pass through the clipping and tell of the overflow.
        """
        gradient, normal = np.asarray(gradient, float), np.asarray(normal, float)
        if gradient.shape != normal.shape:
            raise ValueError(
                f"the gradient has shape {gradient.shape}, the normal numbers {normal.shape}: "
                "the noise needs one for each coordinate."
            )
        noisy: Array = self.standard_deviation * normal
        # A large norm may overflow to infinity, which is then noise only, too.
        with np.errstate(over="ignore", invalid="ignore"):
            norm = math.sqrt(np.vdot(gradient, gradient))
        if contributes and math.isfinite(norm):
            noisy = noisy + gradient * (self.clip / max(norm, self.clip))
        return noisy

    def _count(self, contributions: int | None) -> int:
        if contributions is None:
            return self.max_contributions
        return check_contributions(contributions, "contributions")


def check_contributions(contributions: int, name: str) -> int:
    """A count of contributions: a whole number of at least 1."""
    try:
        count = operator.index(contributions)
    except TypeError:
        count = 0
    if not 1 <= count <= _MOST_CONTRIBUTIONS:
        raise ValueError(
            f"{name} must be a whole number from 1 to {_MOST_CONTRIBUTIONS:g}, "
            f"got {contributions!r}."
        )
    return count


def _check_size(size: float, name: str) -> float:
    value = float(size)
    if not _SMALLEST <= value <= _LARGEST:
        raise ValueError(
            f"{name} must be positive and finite (within {_SMALLEST:g}..{_LARGEST:g}), "
            f"got {size!r}."
        )
    return value


def _between(low: float, high: float) -> float:
    """Halfway in the logarithm while the two are far apart, then in the number itself."""
    return math.sqrt(low) * math.sqrt(high) if high > 2.0 * low else 0.5 * (low + high)
