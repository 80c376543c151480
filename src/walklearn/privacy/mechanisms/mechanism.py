"""What every mechanism offers: a release in place of a value, its cost and its error.

The mechanisms themselves are in `gamma`, `laplace` and `gaussian`.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from typing import Any, ClassVar

import numpy as np
from numpy.typing import ArrayLike

from walklearn.checks import check_number
from walklearn.parts import is_current
from walklearn.privacy.accounting import curves
from walklearn.privacy.draws import exact_draws, sampling
from walklearn.privacy.limits import (
    AT_BOUNDS,
    Array,
    Bounds,
    check_bounds,
    check_clamp,
    check_delta,
    check_epsilon,
    check_values,
)
from walklearn.registry import Registry


class Mechanism(ABC):
    """What every mechanism offers. `clamp` is None where the release is not clamped.

    Attributes
    ----------
    name
        What files, plans and the command line call the mechanism, once it is registered in
        `MECHANISMS`.
    noise_names
        The parameters of the noise; more of the last one is more noise.
    is_positive
        Whether also an unclamped release is above 0.
    """

    name: ClassVar[str]
    noise_names: ClassVar[tuple[str, ...]]
    is_positive: ClassVar[bool] = False
    bounds: Bounds
    clamp: Bounds | None

    def __post_init__(self) -> None:
        bounds = check_bounds(self.bounds)
        settled: dict[str, Any] = {"bounds": bounds}
        for name in self.noise_names:
            settled[name] = check_number(name, getattr(self, name), above=0.0)
        if "clamp" in self.__dict__:
            settled["clamp"] = check_clamp(self.clamp, bounds)
        for name, setting in settled.items():
            object.__setattr__(self, name, setting)

    @property
    def is_accounted(self) -> bool:
        """True if the class that draws a release also states its cost, in `curve`."""
        return is_current(
            type(self),
            "curve",
            "release",
            "distribution",
            "noisy",
            "grid_step",
            "_cells",
            "_inside",
        )

    @property
    def noise(self) -> float:
        """The noise level, whatever its name here: theta, scale, cut or sigma."""
        return float(getattr(self, self.noise_names[-1]))

    def delta(self, epsilon: float) -> float:
        """The least δ for which the release is (ε, δ) private.

        Parameters
        ----------
        epsilon
            ε, at least 0, possibly infinite.

        Returns
        -------
        float
            From 0 to 1.
        """
        return float(self.curve(min(check_epsilon(epsilon), curves.LARGEST_EPSILON)))

    def epsilon(self, delta: float) -> float:
        """The least ε for which the release is (ε, δ) private.

        Parameters
        ----------
        delta
            δ, in [0, 1).

        Returns
        -------
        float
            Infinite where there is none.
        """
        return curves.smallest_epsilon(self.delta, check_delta(delta))

    def mean(self, value: ArrayLike) -> Array:
        """The mean of what is released.

        Parameters
        ----------
        value
            One value or many; those outside the bounds count as the nearer one.

        Returns
        -------
        array
            Of the same shape.
        """
        inside = self._inside(value)
        return np.asarray(inside + self.bias_and_variance(inside)[0])[()]

    def bias(self, value: ArrayLike) -> Array:
        """The mean of the release minus the value itself (also where that is out of bounds).

        Parameters
        ----------
        value
            One value or many.

        Returns
        -------
        array
            Of the same shape.
        """
        return np.asarray(self.mean(value) - np.asarray(value, dtype=float))[()]

    def variance(self, value: ArrayLike) -> Array:
        """The variance of what is released.

        Parameters
        ----------
        value
            One value or many; those outside the bounds count as the nearer one.

        Returns
        -------
        array
            Of the same shape.
        """
        return np.asarray(self.bias_and_variance(self._inside(value))[1])[()]

    def count_out_of_bounds(self, values: ArrayLike) -> int:
        """Return the number of values outside the public bounds, which a release clamps."""
        array = check_values(values)
        return int(np.count_nonzero((array < self.bounds[0]) | (array > self.bounds[1])))

    def release(self, values: ArrayLike, generator: np.random.Generator | None = None) -> Array:
        """Draw a noisy value for each value, exactly.

        Release a value once and keep what came out: a second draw costs a second time.

        Parameters
        ----------
        values
            One or many, of any shape; those outside the bounds are moved to the nearer one.
        generator
            For a simulated release, which protects nobody. By default the noise comes from the
            operating system's entropy.

        Returns
        -------
        array
            Of the same shape, multiples of `grid_step` within the clamp.
        """
        inside = self._inside(values)
        if generator is None:
            laws = [self.distribution(float(value)) for value in inside.flat]
            released = np.array(exact_draws.rounded(laws, self.grid_step, *self._cells))
        else:
            released = self.noisy(np.atleast_1d(inside), generator)
            released /= self.grid_step
            np.rint(released, out=released)
            most = sampling.LARGEST_MULTIPLE
            np.clip(released, -most, most, out=released)
            released *= self.grid_step
        if self.clamp is not None:
            np.clip(released, *self.clamp, out=released)
        return released.reshape(inside.shape)

    @property
    def grid_step(self) -> float:
        """Released values are multiples of this public step, or an end of the clamp."""
        low, high = self.clamp or self.bounds
        return sampling.grid_step(min(self.deviation, high - low))

    @property
    def _cells(self) -> tuple[int | None, int | None]:
        """The first and the last cell of the grid that a clamped release needs to be told from."""
        if self.clamp is None:
            return None, None
        low, high = (end / self.grid_step for end in self.clamp)  # exact: a power of two
        return math.floor(low), math.ceil(high)

    def __repr__(self) -> str:
        parts = [f"{name}={getattr(self, name):.6g}" for name in self.noise_names]
        parts.append(f"bounds=({self.bounds[0]:.6g}, {self.bounds[1]:.6g})")
        if "clamp" in self.__dict__ and self.clamp != self.bounds:
            ends = self.clamp and f"({self.clamp[0]:.6g}, {self.clamp[1]:.6g})"
            parts.append(f"clamp={ends}")
        return f"{type(self).__name__}({', '.join(parts)})"

    def _inside(self, values: ArrayLike) -> Array:
        return np.clip(check_values(values), *self.bounds)

    @classmethod
    def deltas(
        cls, epsilon: float, noise: Array, bounds: Bounds, clamp: Bounds | None = AT_BOUNDS
    ) -> Array:
        """δ at one ε for many noise levels, as a calibration asks; all at once where that is quick.

        This is for mechanisms with one parameter of noise.

        Parameters
        ----------
        epsilon
            ε, at least 0.
        noise
            The noise levels, shape (levels,).
        bounds
            The public bounds of the values.
        clamp
            What releases are clamped to; by default the bounds, None for nothing.

        Returns
        -------
        array
            Shape (levels,).
        """
        make: Any = cls
        return np.array([make(level, bounds, clamp).delta(epsilon) for level in noise])

    @property
    @abstractmethod
    def deviation(self) -> float:
        """The standard deviation of the unclamped release, the smallest over the bounds."""

    @abstractmethod
    def curve(self, epsilon: ArrayLike) -> Array:
        """δ for many ε at once.

        Parameters
        ----------
        epsilon
            One ε or many, at least 0.

        Returns
        -------
        array
            Of the same shape.
        """

    @abstractmethod
    def bias_and_variance(self, values: Array) -> tuple[Array, Array]:
        """The bias and variance of a release, for values within the bounds."""

    @abstractmethod
    def distribution(self, value: float) -> tuple[exact_draws.Distribution, float]:
        """The ideal law of what is released for a value, and a number to add to it: a real draw."""

    @abstractmethod
    def noisy(self, values: Array, generator: np.random.Generator) -> Array:
        """Values with their noise, still to be rounded and clamped: a simulated draw.

        Parameters
        ----------
        values
            Within the bounds, shape (values,).
        generator
            Where the random numbers come from.

        Returns
        -------
        array
            Of the same shape.
        """


MECHANISMS: Registry[type[Mechanism]] = Registry("mechanism")
