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
                f"is only accounted for shapes up to {LARGEST_SHAPE:g}. Use at least "
                f"theta = {self.bounds[1] / LARGEST_SHAPE:g}, or Laplace noise."
            )

    @property
    def deviation(self) -> float:
        """Smallest standard deviation of an unclamped release: √(lo θ)."""
        return math.sqrt(self.bounds[0] * self.theta)

    def curve(self, epsilon: ArrayLike) -> Array:
        """Return δ for each ε."""
        return curves.gamma_delta(epsilon, self.theta, self.bounds, self.clamp)

    def bias_and_variance(self, values: Array) -> tuple[Array, Array]:
        """Return the bias and the variance of a release."""
        if self.clamp is None:
            return np.zeros_like(values), values * self.theta
        return moments.clamped_gamma(values, self.theta, self.clamp)

    def distribution(self, value: float) -> tuple[exact_draws.Distribution, float]:
        """Return Gamma(v/θ, θ), the whole release of v."""
        return exact_draws.GammaDistribution(value, self.theta), 0.0

    def noisy(self, values: Array, generator: np.random.Generator) -> Array:
        """Return one simulated draw for each value."""
        draws = sampling.gamma_draws(values / self.theta, generator)
        draws *= self.theta
        return draws


@MECHANISMS.register
@dataclass(frozen=True, repr=False)
class Gamma(_GammaMechanism):
    """The paper's mechanism: positive and unbiased, but its δ has a floor that θ cannot lower.

    Parameters
    ----------
    theta
        The scale θ of the noise; larger means more noise.
    bounds
        Public lo and hi over all data that a node could hold, never computed from data.
    """

    name: ClassVar[str] = "gamma"
    clamp: ClassVar[None] = None  # type: ignore[misc]  # releases of `ClampedGamma` are clamped
    theta: float
    bounds: Bounds

    def lemma_delta(self, epsilon: float) -> float:
        """Return δ by the paper's lemma; `delta` is the exact, smaller one."""
        epsilon = check_epsilon(epsilon)
        return float(curves.gamma_lemma_delta(epsilon, self.theta, self.bounds))


@MECHANISMS.register
@dataclass(frozen=True, repr=False)
class ClampedGamma(_GammaMechanism):
    """The paper's truncated Gamma: the release is clamped to public ends.

    Parameters
    ----------
    theta
        The scale θ of the noise; larger means more noise.
    bounds
        Public lo and hi over all data that a node could hold, never computed from data.
    clamp
        Public ends that releases are clamped to, by default the bounds.
    """

    name: ClassVar[str] = "clamped-gamma"
    theta: float
    bounds: Bounds
    clamp: Bounds = AT_BOUNDS

    def __post_init__(self) -> None:
        if self.clamp is None:
            raise ValueError("ClampedGamma needs a clamp. Use Gamma for unclamped releases.")
        super().__post_init__()
