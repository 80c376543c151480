"""Domains: closed convex sets W of models.

`project` maps a model to the nearest point of W. `sample` draws the initial model w¹ uniformly from
W, as in the paper, or returns 0 if W is unbounded.
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
    """Base class of domains. Models are flat vectors; a matrix is flattened.

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
        """Return the point of W nearest to the model, a flat vector."""

    @abstractmethod
    def sample(self, size: int, generator: np.random.Generator) -> Array:
        """Draw the initial model of `size` entries uniformly from W; 0 if W is unbounded."""


DOMAINS: Registry[type[Domain]] = Registry("domain")


@DOMAINS.register
@dataclass(frozen=True)
class Everywhere(Domain):
    """No constraint. The theorems assume a bounded domain; a penalty keeps the model bounded."""

    name: ClassVar[str] = "everywhere"
    bounded: ClassVar[bool] = False

    def project(self, model: Array) -> Array:
        """Return the model."""
        return model

    def sample(self, size: int, generator: np.random.Generator) -> Array:
        """Return 0, since there is no uniform distribution on all models."""
        return np.zeros(size)


@DOMAINS.register
@dataclass(frozen=True)
class Ball(Domain):
    """All models with ‖w‖ ≤ radius.

    Parameters
    ----------
    radius
        Largest norm of a model, for a matrix the Frobenius norm.

    Examples
    --------
    >>> Ball(1.0).project(np.array([3.0, 4.0]))
    array([0.6, 0.8])
    """

    name: ClassVar[str] = "ball"
    radius: float

    def __post_init__(self) -> None:
        radius = check_number("the radius of a Ball", self.radius, above=0.0)
        object.__setattr__(self, "radius", radius)

    def project(self, model: Array) -> Array:
        """Scale a model outside the ball onto its sphere."""
        squared_norm = float(np.dot(model, model))
        if squared_norm <= self.radius**2:
            return model
        return np.asarray(model * (self.radius / squared_norm**0.5))

    def sample(self, size: int, generator: np.random.Generator) -> Array:
        """Draw a uniform direction and the distance radius · U^(1/size)."""
        direction = generator.standard_normal(size)
        distance = self.radius * generator.random() ** (1.0 / size)
        return np.asarray(direction * (distance / np.linalg.norm(direction)))


@DOMAINS.register
@dataclass(frozen=True)
class Box(Domain):
    """All models with low ≤ w_a ≤ high for every entry.

    For sparse rows a ball is faster, because projection onto a box changes every entry.

    Parameters
    ----------
    low, high
        Bounds on each entry.

    Examples
    --------
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
        """Clip every entry to the bounds."""
        return np.clip(model, self.low, self.high)

    def sample(self, size: int, generator: np.random.Generator) -> Array:
        """Draw independent uniform entries."""
        return generator.uniform(self.low, self.high, size)
