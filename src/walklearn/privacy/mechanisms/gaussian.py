"""Gaussian noise, clamped to public bounds."""

from __future__ import annotations

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
class Gaussian(Mechanism):
    """Additive Gaussian noise, with the exact δ instead of a tail bound.

    Parameters
    ----------
    sigma
        The standard deviation of the noise.
    bounds
        Public lo and hi over all data that a node could hold, never computed from data.
    clamp
        Public ends that releases are clamped to, by default the bounds; None for no clamp.

    Examples
    --------
    >>> round(Gaussian(sigma=1.0, bounds=(1.0, 2.0), clamp=None).delta(1.0), 4)
    0.1269
    """

    name: ClassVar[str] = "gaussian"
    noise_names: ClassVar[tuple[str, ...]] = ("sigma",)
    sigma: float
    bounds: Bounds
    clamp: Bounds | None = AT_BOUNDS

    @property
    def deviation(self) -> float:
        """Standard deviation of the noise."""
        return self.sigma

    def curve(self, epsilon: ArrayLike) -> Array:
        """Return δ for each ε."""
        return curves.gaussian_delta(epsilon, self.sigma, self.bounds, self.clamp)

    def bias_and_variance(self, values: Array) -> tuple[Array, Array]:
        """Return the bias and the variance of a release."""
        return moments.clamped_gaussian(values, self.sigma, self.clamp)

    def distribution(self, value: float) -> tuple[exact_draws.Distribution, float]:
        """Return the noise and the value, which is its centre."""
        return exact_draws.Normal(self.sigma), value

    def noisy(self, values: Array, generator: np.random.Generator) -> Array:
        """Return the values plus simulated noise."""
        return values + self.sigma * generator.standard_normal(values.shape)
