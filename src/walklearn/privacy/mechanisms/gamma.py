"""Gamma noise, which keeps a released constant positive."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import ClassVar

import numpy as np
from numpy.typing import ArrayLike

from walklearn.privacy.accounting import curves
from walklearn.privacy.accounting.incomplete_gamma import LARGEST_SHAPE
from walklearn.privacy.draws import exact_draws, sampling
from walklearn.privacy.limits import AT_BOUNDS, Array, Bounds, check_epsilon
from walklearn.privacy.mechanisms import moments
from walklearn.privacy.mechanisms.mechanism import MECHANISMS, Mechanism


class _GammaMechanism(Mechanism):
    """R ~ Gamma(v/θ, θ), clamped or not."""

    noise_names = ("theta",)
    is_positive = True
    theta: float

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.bounds[1] / self.theta > LARGEST_SHAPE:
            raise ValueError(
                f"theta = {self.theta:g} is too small for bounds up to {self.bounds[1]:g}: privacy "
                f"is only accounted for shapes up to {LARGEST_SHAPE:g}. Take at least "
                f"theta = {self.bounds[1] / LARGEST_SHAPE:g}, or Laplace noise."
            )

    @property
    def deviation(self) -> float:
        """The standard deviation of an unclamped release, the smallest over the bounds."""
        return math.sqrt(self.bounds[0] * self.theta)

    def distribution(self, value: float) -> tuple[exact_draws.Distribution, float]:
        """The release of v follows Gamma(v/θ, θ)."""
        return exact_draws.GammaDistribution(value, self.theta), 0.0

    def noisy(self, values: Array, generator: np.random.Generator) -> Array:
        """The values after one draw of the mechanism for each, not yet clamped."""
        draws = sampling.gamma_draws(values / self.theta, generator)
        draws *= self.theta
        return draws


@MECHANISMS.register
@dataclass(frozen=True, repr=False)
class Gamma(_GammaMechanism):
    """The paper's mechanism: positive and unbiased, but with a δ that θ cannot push to 0.

    Parameters
    ----------
    theta
        The scale θ of the noise; more of it is more noise.
    bounds
        Public lo and hi over all data a node could hold, never computed from data.

    Examples
    --------
    >>> Gamma(theta=2.0, bounds=(1.0, 10.0)).delta(3.0) < 1.0
    True
    """

    name: ClassVar[str] = "gamma"
    clamp: ClassVar[None] = None  # type: ignore[misc]  # releases of `ClampedGamma` are clamped
    theta: float
    bounds: Bounds

    @property
    def grid_step(self) -> float:
        """The usual step, but fine beside the smallest value: releases are at least one step."""
        lo, hi = self.bounds
        return sampling.grid_step(min(self.deviation, hi - lo, lo))

    @property
    def _cells(self) -> tuple[int | None, int | None]:
        return 1, None

    def lemma_delta(self, epsilon: float) -> float:
        """δ by the paper's lemma; `delta` is the exact, smaller one."""
        epsilon = check_epsilon(epsilon)
        return float(curves.gamma_lemma_delta(epsilon, self.theta, self.bounds))

    def curve(self, epsilon: ArrayLike) -> Array:
        """δ for many ε at once."""
        return curves.gamma_delta(epsilon, self.theta, self.bounds)

    def bias_and_variance(self, values: Array) -> tuple[Array, Array]:
        """The bias and variance of a release, for values within the bounds."""
        return np.zeros_like(values), values * self.theta

    def noisy(self, values: Array, generator: np.random.Generator) -> Array:
        """The values after one draw of the mechanism for each, not yet clamped."""
        return np.maximum(super().noisy(values, generator), self.grid_step)


@MECHANISMS.register
@dataclass(frozen=True, repr=False)
class ClampedGamma(_GammaMechanism):
    """The paper's truncated Gamma: the release is clamped to public ends.

    Parameters
    ----------
    theta
        The scale θ of the noise; more of it is more noise.
    bounds
        Public lo and hi over all data a node could hold, never computed from data.
    clamp
        Where the release is clamped, by default at the bounds; None leaves it unclamped.

    Examples
    --------
    >>> ClampedGamma(theta=2.0, bounds=(1.0, 10.0)).delta(3.0) < 1.0
    True
    """

    name: ClassVar[str] = "clamped-gamma"
    theta: float
    bounds: Bounds
    clamp: Bounds = AT_BOUNDS

    def __post_init__(self) -> None:
        if self.clamp is None:
            raise ValueError("a clamped Gamma needs a clamp; without one it is `Gamma`.")
        super().__post_init__()

    def curve(self, epsilon: ArrayLike) -> Array:
        """δ for many ε at once."""
        return curves.gamma_delta(epsilon, self.theta, self.bounds, self.clamp)

    def bias_and_variance(self, values: Array) -> tuple[Array, Array]:
        """The bias and variance of a release, for values within the bounds."""
        return moments.clamped_gamma(values, self.theta, self.clamp)
