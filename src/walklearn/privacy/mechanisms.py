"""The mechanisms: what a node releases in place of its constant, and what that costs.

A mechanism turns a value v within public bounds [lo, hi] into a noisy one:

| name              | release                                            | noise      |
|-------------------|----------------------------------------------------|------------|
| gamma             | Gamma(shape v/θ, scale θ): mean v, variance vθ     | theta      |
| clamped-gamma     | the same, clamped to a public [l, h]               | theta      |
| laplace           | v + Laplace noise, clamped                         | scale      |
| truncated-laplace | v + Laplace noise that never exceeds ±cut, clamped | scale, cut |
| gaussian          | v + Gaussian noise, clamped                        | sigma      |

Released values steer a walk, so they must be positive: additive noise is clamped to the bounds
unless another clamp is given. `clamp=None` leaves it unclamped, for experiments only. Values
outside the bounds are moved to the nearer bound before the release; `outside` counts them.

`delta` is exact for the clamped release (`accounting`), `mean` and `variance` are those of the
clamped release (`moments`; the rounding to the grid changes them by less than 1e-9 of the
noise variance). A real release is drawn exactly (`exact_draws`), so δ is that of what is published.
With a generator a release is simulated: quick, in double precision (`sampling`), and it protects
nobody.

>>> mechanism = ClampedGamma(theta=20.0, bounds=(1.0, 50.0))
>>> round(mechanism.delta(3.0), 4), round(mechanism.epsilon(0.03), 3)
(0.8935, 8.566)
>>> mechanism.release([2.0, 30.0], np.random.default_rng(1)).shape
(2,)
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import ClassVar

import numpy as np
from numpy.typing import ArrayLike

from walklearn.files.registry import Registry
from walklearn.privacy import accounting, exact_draws, moments, sampling
from walklearn.privacy.arguments import Array, Bounds, check_epsilon
from walklearn.privacy.incomplete_gamma import LARGEST_SHAPE
from walklearn.privacy.mechanism import AT_BOUNDS, Mechanism

MECHANISMS: Registry[type[Mechanism]] = Registry("mechanism")


class _GammaLaw(Mechanism):
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

    def law(self, value: float) -> tuple[exact_draws.Law, float]:
        """The release of v follows Gamma(v/θ, θ)."""
        return exact_draws.GammaLaw(value, self.theta), 0.0

    def noisy(self, values: Array, generator: np.random.Generator) -> Array:
        """The values after one draw of the mechanism for each, not yet clamped."""
        draws = sampling.gamma_draws(values / self.theta, generator)
        draws *= self.theta
        return draws


@MECHANISMS.register
@dataclass(frozen=True, repr=False)
class Gamma(_GammaLaw):
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
    theta: float
    bounds: Bounds

    @property
    def clamp(self) -> None:  # type: ignore[override]
        """None, since releases are not clamped; those of `ClampedGamma` are."""
        return None

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
        return float(accounting.gamma_lemma_delta(epsilon, self.theta, self.bounds))

    def curve(self, epsilon: ArrayLike) -> Array:
        """δ for many ε at once."""
        return accounting.gamma_delta(epsilon, self.theta, self.bounds)

    def bias_and_variance(self, values: Array) -> tuple[Array, Array]:
        """The bias and variance of a release, for values within the bounds."""
        return np.zeros_like(values), values * self.theta

    def noisy(self, values: Array, generator: np.random.Generator) -> Array:
        """The values after one draw of the mechanism for each, not yet clamped."""
        return np.maximum(super().noisy(values, generator), self.grid_step)


@MECHANISMS.register
@dataclass(frozen=True, repr=False)
class ClampedGamma(_GammaLaw):
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
        return accounting.clamped_gamma_delta(epsilon, self.theta, self.bounds, self.clamp)

    def bias_and_variance(self, values: Array) -> tuple[Array, Array]:
        """The bias and variance of a release, for values within the bounds."""
        return moments.clamped_gamma(values, self.theta, self.clamp)


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
        return accounting.laplace_delta(epsilon, self.scale, self.bounds, self.clamp)

    @classmethod
    def deltas(
        cls, epsilon: float, noise: Array, bounds: Bounds, clamp: Bounds | None = AT_BOUNDS
    ) -> Array:
        """δ at one ε, for many noise levels at once."""
        return accounting.laplace_delta(epsilon, noise, bounds, clamp)

    def bias_and_variance(self, values: Array) -> tuple[Array, Array]:
        """The bias and variance of a release, for values within the bounds."""
        return moments.clamped_laplace(values, self.scale, self.clamp)

    def law(self, value: float) -> tuple[exact_draws.Law, float]:
        """Laplace noise around the value."""
        return exact_draws.TruncatedLaplace(self.scale), value

    def noisy(self, values: Array, generator: np.random.Generator) -> Array:
        """The values after one draw of the mechanism for each, not yet clamped."""
        return values + self.scale * sampling.laplace_draws(values.shape, generator)


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
        return accounting.truncated_laplace_delta(
            epsilon, self.scale, self.cut, self.bounds, self.clamp
        )

    def bias_and_variance(self, values: Array) -> tuple[Array, Array]:
        """The bias and variance of a release, for values within the bounds."""
        return moments.clamped_truncated_laplace(values, self.scale, self.cut, self.clamp)

    def law(self, value: float) -> tuple[exact_draws.Law, float]:
        """Truncated Laplace noise around the value."""
        return exact_draws.TruncatedLaplace(self.scale, self.cut), value

    def noisy(self, values: Array, generator: np.random.Generator) -> Array:
        """The values after one draw of the mechanism for each, not yet clamped."""
        draws = sampling.truncated_laplace_draws(values.shape, self.cut / self.scale, generator)
        return values + self.scale * draws


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
        return accounting.gaussian_delta(epsilon, self.sigma, self.bounds, self.clamp)

    @classmethod
    def deltas(
        cls, epsilon: float, noise: Array, bounds: Bounds, clamp: Bounds | None = AT_BOUNDS
    ) -> Array:
        """δ at one ε, for many noise levels at once."""
        return accounting.gaussian_delta(epsilon, noise, bounds, clamp)

    def bias_and_variance(self, values: Array) -> tuple[Array, Array]:
        """The bias and variance of a release, for values within the bounds."""
        return moments.clamped_gaussian(values, self.sigma, self.clamp)

    def law(self, value: float) -> tuple[exact_draws.Law, float]:
        """Gaussian noise around the value."""
        return exact_draws.Normal(self.sigma), value

    def noisy(self, values: Array, generator: np.random.Generator) -> Array:
        """The values after one draw of the mechanism for each, not yet clamped."""
        return values + self.sigma * generator.standard_normal(values.shape)
