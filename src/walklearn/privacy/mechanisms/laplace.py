"""Laplace noise, clamped to public bounds or truncated."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import ClassVar

import numpy as np
from numpy.typing import ArrayLike

from walklearn.privacy.accounting import curves
from walklearn.privacy.draws import exact_draws
from walklearn.privacy.limits import AT_BOUNDS, Array, Bounds
from walklearn.privacy.mechanisms import moments
from walklearn.privacy.mechanisms.mechanism import MECHANISMS, Mechanism


@MECHANISMS.register
@dataclass(frozen=True, repr=False)
class Laplace(Mechanism):
    """Additive Laplace noise: (ε, 0) with scale (hi − lo)/ε, and exact for δ > 0 too.

    Parameters
    ----------
    scale
        The scale of the noise, its mean absolute value.
    bounds
        Public lo and hi over all data a node could hold, never computed from data.
    clamp
        Where the release is clamped, by default at the bounds; None leaves it unclamped.

    Examples
    --------
    >>> Laplace(scale=1.0, bounds=(1.0, 2.0)).delta(1.0) < 1e-15
    True
    """

    name: ClassVar[str] = "laplace"
    noise_names: ClassVar[tuple[str, ...]] = ("scale",)
    scale: float
    bounds: Bounds
    clamp: Bounds | None = AT_BOUNDS

    @property
    def deviation(self) -> float:
        """The standard deviation of an unclamped release, the smallest over the bounds."""
        return math.sqrt(2.0) * self.scale

    def curve(self, epsilon: ArrayLike) -> Array:
        """δ for many ε at once."""
        return curves.laplace_delta(epsilon, self.scale, self.bounds, self.clamp)

    @classmethod
    def deltas(
        cls, epsilon: float, noise: Array, bounds: Bounds, clamp: Bounds | None = AT_BOUNDS
    ) -> Array:
        """δ at one ε, for many noise levels at once."""
        return curves.laplace_delta(epsilon, noise, bounds, clamp)

    def bias_and_variance(self, values: Array) -> tuple[Array, Array]:
        """The bias and variance of a release, for values within the bounds."""
        return moments.clamped_laplace(values, self.scale, self.clamp)

    def distribution(self, value: float) -> tuple[exact_draws.Distribution, float]:
        """Laplace noise around the value."""
        return exact_draws.TruncatedLaplace(self.scale), value

    def noisy(self, values: Array, generator: np.random.Generator) -> Array:
        """The values after one draw of the mechanism for each, not yet clamped."""
        # The difference of two exponentials: no tail is cut off.
        draws = generator.standard_exponential(values.shape)
        draws -= generator.standard_exponential(values.shape)
        return values + self.scale * draws


@MECHANISMS.register
@dataclass(frozen=True, repr=False)
class TruncatedLaplace(Mechanism):
    """Laplace noise conditioned on ``|noise|`` ≤ cut: bounded noise, for a small δ.

    Parameters
    ----------
    scale
        The scale of the Laplace law before it is cut.
    cut
        The largest absolute value of the noise.
    bounds
        Public lo and hi over all data a node could hold, never computed from data.
    clamp
        Where the release is clamped, by default at the bounds; None leaves it unclamped.

    Examples
    --------
    >>> TruncatedLaplace(scale=1.0, cut=5.0, bounds=(1.0, 2.0)).delta(1.0) < 0.01
    True
    """

    name: ClassVar[str] = "truncated-laplace"
    noise_names: ClassVar[tuple[str, ...]] = ("scale", "cut")
    scale: float
    cut: float
    bounds: Bounds
    clamp: Bounds | None = AT_BOUNDS

    @property
    def deviation(self) -> float:
        """The standard deviation of an unclamped release, the smallest over the bounds."""
        return min(self.cut / math.sqrt(3.0), math.sqrt(2.0) * self.scale)

    def curve(self, epsilon: ArrayLike) -> Array:
        """δ for many ε at once."""
        return curves.laplace_delta(epsilon, self.scale, self.bounds, self.clamp, self.cut)

    def bias_and_variance(self, values: Array) -> tuple[Array, Array]:
        """The bias and variance of a release, for values within the bounds."""
        return moments.clamped_laplace(values, self.scale, self.clamp, self.cut)

    def distribution(self, value: float) -> tuple[exact_draws.Distribution, float]:
        """Truncated Laplace noise around the value."""
        return exact_draws.TruncatedLaplace(self.scale, self.cut), value

    def noisy(self, values: Array, generator: np.random.Generator) -> Array:
        """The values after one draw of the mechanism for each, not yet clamped."""
        # A size by inversion, and a sign.
        cut = self.cut / self.scale
        size = -np.log1p(generator.random(values.shape) * math.expm1(-cut))
        sign = 2.0 * generator.integers(0, 2, values.shape) - 1.0
        draws: Array = np.minimum(size, cut) * sign
        return values + self.scale * draws
