"""The interface between an algorithm and the function that it minimises."""

from __future__ import annotations

import copy
import math
from abc import ABC, abstractmethod
from functools import cached_property
from typing import TYPE_CHECKING, Any, Self

import numpy as np

from walklearn.arrays import Array, Specs, checked_specs
from walklearn.checks import check_number, check_whole

if TYPE_CHECKING:
    shared_property = cached_property
else:

    class shared_property(cached_property):
        """A cached property that does not depend on `draws`, so copies by `with_batch` share it."""

        def __get__(self, instance, owner=None):
            if instance is None:
                return self
            shared, name = instance.__dict__.setdefault("_shared", {}), self.attrname
            if name not in shared:
                shared[name] = self.func(instance)
            instance.__dict__[name] = shared[name]
            return shared[name]


class Objective(ABC):
    """A mean over nodes, f(w) = (1/N) Σ f_i(w) with f_i = φ_i + (penalty/2)‖w‖².

    A subclass sets `nodes` and `parameters` and defines `gradient` and `value`. It then works with
    `simulate`, with every walk that needs no smoothness constants, and with `Sgd`. A model w is one
    flat vector, the concatenation of its parameters. `Problem` is the objective of rows with linear
    scores.

    The following optional methods are capabilities. A walk, an update or a protection asks for the
    capabilities that it needs; if one is missing, a `CapabilityError` names a remedy:

    - `optimum() -> w*`, the minimiser. Traces then have `distance` and `gap`.
    - `smoothness(node) -> L_i`, the Lipschitz constant of ∇f_i.
    - `local_value(node, w, draws) -> φ_i(w)`.
    - `row_gradients(node, w) -> array of shape (rows, size)`, a gradient for each row of the node.
      ∇φ_i is `row_factor(node)` times their sum. If `count_rows(node)` is defined, too, it is
      called as `row_gradients(node, w, part)` with a slice of the rows, which bounds the memory.
    - `linear_rows(node, draws) -> (rows, x, slopes)` for scores that are linear in w. `rows` are
      the indices of the rows within the node, and ∇φ_i = slopes(w) @ x without draws.

    Attributes
    ----------
    nodes : int
        N, the number of nodes.
    parameters : tuple of ArraySpec
        Names and shapes of the parameters, all of one float dtype.
    penalty : float
        Factor of ½‖w‖², a public number. 0 by default.
    draws : int
        Number of uniform numbers that a gradient uses. 0 by default.

    Examples
    --------
    >>> import numpy as np
    >>> import walklearn as wl
    >>> class HuberCentre(wl.Objective):
    ...     def __init__(self, points):
    ...         self.points, self.nodes = points, len(points)
    ...         self.parameters = (wl.ArraySpec("centre", points.shape[1:]),)
    ...     def gradient(self, node, w, draws):
    ...         return np.clip(w - self.points[node], -1, 1)
    ...     def value(self, w):
    ...         r = abs(w - self.points)
    ...         return float(np.where(r < 1, r * r / 2, r - 0.5).sum(axis=1).mean())
    >>> objective = HuberCentre(np.array([[0.0, 1.0], [4.0, 1.5]]))
    >>> objective.size, objective.value(objective.start)
    (2, 2.5)
    """

    nodes: int
    parameters: Specs
    penalty: float = 0.0
    draws: int = 0

    @abstractmethod
    def gradient(self, node: int, w: Array, draws: Array) -> Array:
        """Compute ∇φ_i(w), without the penalty, or an unbiased estimate of it, as a flat array.

        node: i, from 0 to N − 1. w: the flat model, which must not be changed. draws: `self.draws`
        independent uniform numbers in [0, 1), the only source of randomness.
        """

    @abstractmethod
    def value(self, w: Array) -> float:
        """Compute f(w), for records; no node calls it."""

    def metrics(self, w: Array) -> dict[str, float]:
        """Compute further numbers for records, by name; none by default."""
        return {}

    def project(self, w: Array) -> Array:
        """Project w onto the domain; by default return w itself."""
        return w

    def row_factor(self, node: int) -> float:
        """Return c, a public number: ∇φ_i is c times the sum of `row_gradients`."""
        return 1.0

    @cached_property
    def size(self) -> int:
        """Number of entries of a model."""
        return sum(math.prod(spec.shape) for spec in self.parameters)

    @cached_property
    def dtype(self) -> np.dtype[Any]:
        """Type of the numbers of a model."""
        return np.dtype(self.parameters[0].dtype)

    @cached_property
    def start(self) -> Array:
        """Initial model: zeros."""
        start = np.zeros(self.size, self.dtype)
        start.setflags(write=False)
        return start

    def sample_start(self, rng: np.random.Generator) -> Array:
        """Draw the initial model, a flat array; by default return `start`."""
        return np.array(self.start)

    @property
    def is_exact(self) -> bool:
        """True if gradients use all rows and no draws."""
        return self.draws == 0

    @property
    def is_double(self) -> bool:
        """True if the numbers of a model are float64."""
        return self.dtype == np.float64

    def with_batch(self, batch: int) -> Self:
        """Return a copy whose gradients take `batch` uniform numbers, to select a mini-batch."""
        check_whole("batch", batch, minimum=0)
        self.__dict__.setdefault("_shared", {})  # shared with the copy
        result = copy.copy(self)
        object.__setattr__(result, "draws", int(batch))
        return result

    def check(self) -> None:
        """Raise a TypeError or ValueError for invalid fields of a subclass."""
        name = type(self).__name__
        for field in ("nodes", "parameters"):
            if not hasattr(self, field):
                raise TypeError(f"{name} has no {field}. Set self.{field} in its __init__.")
        check_whole(f"{name}.nodes", self.nodes)
        check_whole(f"{name}.draws", self.draws, minimum=0)
        check_number(f"{name}.penalty", self.penalty, minimum=0.0)
        specs = checked_specs(self.parameters, f"{name}.parameters")
        if not self.size:
            raise ValueError(f"{name}.parameters needs at least one entry, got {specs!r}.")
        if {np.dtype(spec.dtype) for spec in specs} - {self.dtype} or self.dtype.kind != "f":
            raise ValueError(f"{name}.parameters must have one float dtype, got {specs!r}.")
        if np.shape(self.start) != (self.size,):
            shape = np.shape(self.start)
            raise ValueError(f"{name}.start must have shape ({self.size},), got {shape}.")

    def __repr__(self) -> str:
        return f"{type(self).__name__}({f'draws={self.draws}' if self.draws else ''})"
