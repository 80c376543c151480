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


class _LaplaceMechanism(Mechanism):
    """v plus Laplace noise, conditioned on ``|noise|`` ≤ cut, which may be infinite."""

    scale: float
    cut: float

    @property
    def deviation(self) -> float:
        """Standard deviation of the noise; an upper bound on it if the noise is cut."""
        return min(self.cut / math.sqrt(3.0), math.sqrt(2.0) * self.scale)

    def curve(self, epsilon: ArrayLike) -> Array:
        """Return δ for each ε."""
        return curves.laplace_delta(epsilon, self.scale, self.bounds, self.clamp, self.cut)

    def bias_and_variance(self, values: Array) -> tuple[Array, Array]:
        """Return the bias and the variance of a release."""
        return moments.clamped_laplace(values, self.scale, self.clamp, self.cut)

    def distribution(self, value: float) -> tuple[exact_draws.Distribution, float]:
        """Return the noise and the value, which is its centre."""
        return exact_draws.TruncatedLaplace(self.scale, self.cut), value

    def noisy(self, values: Array, generator: np.random.Generator) -> Array:
        """Return the values plus simulated noise."""
        if math.isinf(self.cut):  # the difference of two exponentials: no tail is cut off
            draws = generator.standard_exponential(values.shape)
            draws -= generator.standard_exponential(values.shape)
        else:  # a size by inversion, and a sign
            cut = self.cut / self.scale
            size = -np.log1p(generator.random(values.shape) * math.expm1(-cut))
            sign = 2.0 * generator.integers(0, 2, values.shape) - 1.0
            draws = np.minimum(size, cut) * sign
        return values + self.scale * draws


@MECHANISMS.register
@dataclass(frozen=True, repr=False)
class Laplace(_LaplaceMechanism):
    """Additive Laplace noise: (ε, 0) with scale (hi − lo)/ε, and exact for δ > 0 too.

    Parameters
    ----------
    scale
        The scale of the noise, its mean absolute value.
    bounds
        Public lo and hi over all data that a node could hold, never computed from data.
    clamp
        Public ends that releases are clamped to, by default the bounds; None for no clamp.
    """

    name: ClassVar[str] = "laplace"
    noise_names: ClassVar[tuple[str, ...]] = ("scale",)
    cut: ClassVar[float] = math.inf  # type: ignore[misc]
    scale: float
    bounds: Bounds
    clamp: Bounds | None = AT_BOUNDS


@MECHANISMS.register
@dataclass(frozen=True, repr=False)
class TruncatedLaplace(_LaplaceMechanism):
    """Laplace noise conditioned on ``|noise|`` ≤ cut: bounded noise, for a small δ.

    Parameters
    ----------
    scale
        The scale of the Laplace distribution before it is cut.
    cut
        The largest absolute value of the noise.
    bounds
        Public lo and hi over all data that a node could hold, never computed from data.
    clamp
        Public ends that releases are clamped to, by default the bounds; None for no clamp.
    """

    name: ClassVar[str] = "truncated-laplace"
    noise_names: ClassVar[tuple[str, ...]] = ("scale", "cut")
    scale: float
    cut: float
    bounds: Bounds
    clamp: Bounds | None = AT_BOUNDS
