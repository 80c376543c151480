"""Base of all mechanisms: a noisy release in place of a value, its cost and its error."""

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
    """Base of all mechanisms. `clamp` is None if releases are not clamped.

    Attributes
    ----------
    name
        The name in files, plans and the command line, once the class is registered in
        `MECHANISMS`.
    noise_names
        The parameters of the noise. A larger last one means more noise.
    is_positive
        True if unclamped releases are positive as well.
    """

    name: ClassVar[str]
    noise_names: ClassVar[tuple[str, ...]]
    is_positive: ClassVar[bool] = False
    bounds: Bounds
    clamp: Bounds | None

    def __post_init__(self) -> None:
        bounds = check_bounds(self.bounds)
        checked: dict[str, Any] = {"bounds": bounds}
        for name in self.noise_names:
            checked[name] = check_number(name, getattr(self, name), above=0.0)
        if "clamp" in self.__dict__:
            checked["clamp"] = check_clamp(self.clamp, bounds)
        for name, value in checked.items():
            object.__setattr__(self, name, value)

    @property
    def is_accounted(self) -> bool:
        """True if the class that draws a release also states its cost, in `curve`."""
        drawing = ("release", "distribution", "noisy", "grid_step", "_cell_range", "_within_bounds")
        return is_current(type(self), "curve", *drawing)

    @property
    def noise(self) -> float:
        """The noise level: the last parameter in `noise_names`."""
        return float(getattr(self, self.noise_names[-1]))

    def delta(self, epsilon: float) -> float:
        """Return the smallest δ for which the release is (ε, δ) private; ε may be infinite."""
        return float(self.curve(min(check_epsilon(epsilon), curves.LARGEST_EPSILON)))

    def epsilon(self, delta: float) -> float:
        """Return the smallest ε for which the release is (ε, δ) private; infinite if none is."""
        return curves.smallest_epsilon(self.delta, check_delta(delta))

    def mean(self, value: ArrayLike) -> Array:
        """Return the mean of the releases of each value; values are moved into the bounds."""
        values = self._within_bounds(value)
        return np.asarray(values + self.bias_and_variance(values)[0])[()]

    def variance(self, value: ArrayLike) -> Array:
        """Return the variance of the releases of each value; values are moved into the bounds."""
        return np.asarray(self.bias_and_variance(self._within_bounds(value))[1])[()]

    def count_out_of_bounds(self, values: ArrayLike) -> int:
        """Return the number of values outside the public bounds, which a release clamps."""
        array = check_values(values)
        return int(np.count_nonzero((array < self.bounds[0]) | (array > self.bounds[1])))

    def release(self, values: ArrayLike, generator: np.random.Generator | None = None) -> Array:
        """Draw a noisy value for each value, exactly.

        Release a value once and keep the result: a second draw costs a second time.

        Parameters
        ----------
        values
            One or many, of any shape. Those outside the bounds are moved to the nearer bound.
        generator
            For a simulated release, which protects nobody. By default the noise comes from the
            operating system's entropy.

        Returns
        -------
        array
            Of the same shape: multiples of `grid_step` within the clamp.
        """
        inputs, step = self._within_bounds(values), self.grid_step
        if generator is None:
            distributions = [self.distribution(float(value)) for value in inputs.flat]
            released = np.array(exact_draws.rounded(distributions, step, *self._cell_range))
        else:
            released = self.noisy(np.atleast_1d(inputs), generator)
            released /= step
            np.rint(released, out=released)
            largest = sampling.LARGEST_MULTIPLE
            np.clip(released, -largest, largest, out=released)
            released *= step
        lowest = step if self.is_positive else -math.inf
        np.clip(released, *(self.clamp or (lowest, math.inf)), out=released)
        return released.reshape(inputs.shape)

    @property
    def grid_step(self) -> float:
        """Public step: releases are multiples of it, or an end of the clamp."""
        low, high = self.clamp or self.bounds
        length = min(self.deviation, high - low)
        if self.clamp is None and self.is_positive:  # releases are at least one step
            length = min(length, low)
        return sampling.grid_step(length)

    @property
    def _cell_range(self) -> tuple[int | None, int | None]:
        """The first and the last grid cell that a release must be distinguished from."""
        if self.clamp is None:
            return 1 if self.is_positive else None, None
        low, high = (end / self.grid_step for end in self.clamp)  # exact: a power of two
        return math.floor(low), math.ceil(high)

    def __repr__(self) -> str:
        parts = [f"{name}={getattr(self, name):.6g}" for name in self.noise_names]
        parts.append(f"bounds=({self.bounds[0]:.6g}, {self.bounds[1]:.6g})")
        if "clamp" in self.__dict__ and self.clamp != self.bounds:
            ends = self.clamp and f"({self.clamp[0]:.6g}, {self.clamp[1]:.6g})"
            parts.append(f"clamp={ends}")
        return f"{type(self).__name__}({', '.join(parts)})"

    def _within_bounds(self, values: ArrayLike) -> Array:
        return np.clip(check_values(values), *self.bounds)

    @property
    @abstractmethod
    def deviation(self) -> float:
        """Smallest standard deviation of an unclamped release over all values in the bounds."""

    @abstractmethod
    def curve(self, epsilon: ArrayLike) -> Array:
        """Return δ for each ε, in the shape of `epsilon`."""

    @abstractmethod
    def bias_and_variance(self, values: Array) -> tuple[Array, Array]:
        """Return the bias and the variance of a release, for values within the bounds."""

    @abstractmethod
    def distribution(self, value: float) -> tuple[exact_draws.Distribution, float]:
        """Return the ideal noise of an exact release of a value, and a number to add to it."""

    @abstractmethod
    def noisy(self, values: Array, generator: np.random.Generator) -> Array:
        """Return values with simulated noise, before rounding and clamping.

        The values lie within the bounds; the result has their shape.
        """


MECHANISMS: Registry[type[Mechanism]] = Registry("mechanism")
