"""The set W that the model lives in: where to start, and how to return after a step.

W is closed and convex. `project` maps a model to the nearest point of W, `sample` draws
the start w¹ uniformly from W (the paper's choice), or gives 0 where W is everything.

>>> import numpy as np
>>> Ball(1.0).project(np.array([3.0, 4.0]))
array([0.6, 0.8])
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from walklearn.arrays import Array
from walklearn.checks import check_number
from walklearn.registry import Registry


class Domain(ABC):
    """Base class of domains. Models are flat vectors; a matrix model is its entries.

    Attributes
    ----------
    name
        Name of the domain in files, plans and on the command line.
    bounded
        True if W is bounded, as the theorems assume.
    """

    name: ClassVar[str]
    bounded: ClassVar[bool] = True

    @abstractmethod
    def project(self, model: Array) -> Array:
        """The point of W nearest to the model, a flat vector."""

    @abstractmethod
    def sample(self, size: int, generator: np.random.Generator) -> Array:
        """Draw the start w¹ uniformly from W; where W is unbounded, it is 0.

        Parameters
        ----------
        size
            How many numbers the model has.
        generator
            Where the random numbers come from.

        Returns
        -------
        array
            A flat vector of doubles.
        """


DOMAINS: Registry[type[Domain]] = Registry("domain")


@DOMAINS.register
@dataclass(frozen=True)
class Everywhere(Domain):
    """No constraint. The theorems do not cover it; a penalty keeps the model in reach."""

    name: ClassVar[str] = "everywhere"
    bounded: ClassVar[bool] = False

    def project(self, model: Array) -> Array:
        """The model itself."""
        return model

    def sample(self, size: int, generator: np.random.Generator) -> Array:
        """Start from zero, since there is no uniform law on everything."""
        return np.zeros(size)


@DOMAINS.register
@dataclass(frozen=True)
class Ball(Domain):
    """All models with ‖w‖ ≤ radius.

    Parameters
    ----------
    radius
        The largest norm a model may have; for a matrix model it is the Frobenius norm.

    Examples
    --------
    >>> import numpy as np
    >>> Ball(1.0).project(np.array([3.0, 4.0]))
    array([0.6, 0.8])
    """

    name: ClassVar[str] = "ball"
    radius: float

    def __post_init__(self) -> None:
        radius = check_number("the radius of a Ball", self.radius, above=0.0)
        object.__setattr__(self, "radius", radius)

    def project(self, model: Array) -> Array:
        """Shrink towards 0 onto the sphere, if outside."""
        squared_norm = float(np.dot(model, model))
        if squared_norm <= self.radius**2:
            return model
        return np.asarray(model * (self.radius / squared_norm**0.5))

    def sample(self, size: int, generator: np.random.Generator) -> Array:
        """Draw a uniform direction, and go radius · U^(1/size) far."""
        direction = generator.standard_normal(size)
        distance = self.radius * generator.random() ** (1.0 / size)
        return np.asarray(direction * (distance / np.linalg.norm(direction)))


@DOMAINS.register
@dataclass(frozen=True)
class Box(Domain):
    """All models with low ≤ w_a ≤ high for every entry.

    A step touches every entry, also where rows are sparse: for them a ball is faster.

    Parameters
    ----------
    low
        The smallest value of an entry.
    high
        The largest value of an entry.

    Examples
    --------
    >>> import numpy as np
    >>> Box(-1.0, 1.0).project(np.array([3.0, 0.5]))
    array([1. , 0.5])
    """

    name: ClassVar[str] = "box"
    low: float
    high: float

    def __post_init__(self) -> None:
        if not (np.isfinite(self.low) and np.isfinite(self.high) and self.low < self.high):
            raise ValueError(
                f"Box needs finite bounds with low < high, got low={self.low!r}, "
                f"high={self.high!r}."
            )
        object.__setattr__(self, "low", float(self.low))
        object.__setattr__(self, "high", float(self.high))

    def project(self, model: Array) -> Array:
        """Cut every entry to the bounds."""
        return np.clip(model, self.low, self.high)

    def sample(self, size: int, generator: np.random.Generator) -> Array:
        """Draw independent uniform entries."""
        return generator.uniform(self.low, self.high, size)
