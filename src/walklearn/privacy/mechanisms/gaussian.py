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
        Public lo and hi over all data a node could hold, never computed from data.
    clamp
        Where the release is clamped, by default at the bounds; None leaves it unclamped.

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
        """The standard deviation of an unclamped release, the smallest over the bounds."""
        return self.sigma

    def curve(self, epsilon: ArrayLike) -> Array:
        """δ for many ε at once."""
        return curves.gaussian_delta(epsilon, self.sigma, self.bounds, self.clamp)

    @classmethod
    def deltas(
        cls, epsilon: float, noise: Array, bounds: Bounds, clamp: Bounds | None = AT_BOUNDS
    ) -> Array:
        """δ at one ε, for many noise levels at once."""
        return curves.gaussian_delta(epsilon, noise, bounds, clamp)

    def bias_and_variance(self, values: Array) -> tuple[Array, Array]:
        """The bias and variance of a release, for values within the bounds."""
        return moments.clamped_gaussian(values, self.sigma, self.clamp)

    def distribution(self, value: float) -> tuple[exact_draws.Distribution, float]:
        """Gaussian noise around the value."""
        return exact_draws.Normal(self.sigma), value

    def noisy(self, values: Array, generator: np.random.Generator) -> Array:
        """The values after one draw of the mechanism for each, not yet clamped."""
        return values + self.sigma * generator.standard_normal(values.shape)
