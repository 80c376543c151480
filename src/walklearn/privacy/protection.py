"""Base of all protections, and the views of an objective that they give to a visit.

A protection stands between an update and the rows. Under it an update has access to the rows
through `context.gradient(w)` only; clipping, noise and the cap are hidden from it. The penalty is a
public number and stays outside.
"""

from __future__ import annotations

from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from walklearn.arrays import Arrays, ArraySpec, Specs
from walklearn.parts import Part, is_current

Array = NDArray[Any]

# The number of contributions of a node. Simulations record it for protections that declare it.
CONTRIBUTIONS = ArraySpec("contributions", (), "<i8")


class Protection(Part):
    """Base of protections, which limit the access of a visit to the objective. It limits nothing.

    Attributes
    ----------
    adds_noise
        True if each gradient takes noise, one number for each number of the model.
    compiled
        The name of its kernel. A subclass that overrides a method that the kernel replaces does not
        use the kernel.

    Examples
    --------
    >>> import walklearn as wl
    >>> problem = wl.Problem([[1.0], [2.0]], [1.0, -1.0])
    >>> Protection().view(problem, 0, {}, np.zeros((1, 0))) is problem
    True
    """

    adds_noise: ClassVar[bool] = False
    compiled: ClassVar[str | None] = "none"

    @property
    def is_compiled(self) -> bool:
        """True if kernels do exactly what `view` does."""
        written_for = ("view", "draw_noise", "node_arrays", "adds_noise")
        return self.compiled is not None and is_current(type(self), "compiled", *written_for)

    def node_arrays(self, objective: Any) -> Specs:
        """Declare the arrays of the budget that a node has spent; they start at zero."""
        del objective
        return ()

    def view(self, objective: Any, node: int, state: Arrays, noise: Array) -> Any:
        """Return the objective for one visit of a node, and charge `state` for it.

        `state` has the arrays of `node_arrays`: entries are replaced, arrays are not changed.
        `noise` is the result of `draw_noise`, a line for each gradient. Once the budget is spent,
        the objective that is returned contributes nothing.
        """
        del node, state, noise
        return objective

    def draw_noise(
        self, gradients: int, size: int, rng: np.random.Generator | None
    ) -> NDArray[Any]:
        """Draw the noise of one visit: a line of `size` numbers per gradient, by default empty.

        `rng` is the source of simulated noise, which protects nobody. None draws exactly, from the
        operating system's entropy.
        """
        del size, rng
        return np.zeros((gradients, 0))


class ObjectiveView:
    """The public part of an objective, without rows, so that updates that need rows are refused."""

    def __init__(self, objective: Any, protection: object) -> None:
        self._protection = protection
        self.nodes, self.size, self.draws = objective.nodes, objective.size, objective.draws
        self.parameters, self.penalty = objective.parameters, objective.penalty
        self.dtype, self.start, self.is_exact = objective.dtype, objective.start, objective.is_exact
        self._project = objective.project

    def __repr__(self) -> str:
        return f"an objective under {self._protection!r}"

    def project(self, w: Array) -> Array:
        """Return the nearest point of the objective's feasible set."""
        projected: Array = self._project(w)
        return projected


class NoContribution(ObjectiveView):
    """View for a node whose budget is spent: it leaves the model unchanged."""

    def __init__(self, objective: Any, protection: object) -> None:
        super().__init__(objective, protection)
        self.penalty = 0.0

    def project(self, w: Array) -> Array:
        """Return the model itself."""
        return w

    def gradient(self, node: int, w: Array, draws: Array) -> Array:
        """Return 0 for all rows."""
        del node, draws
        return np.zeros_like(w)


class ProtectedObjective(ObjectiveView):
    """View with clipped and noisy gradients of the visited node; those of others are refused.

    `noise` has a line for each gradient: integers if they were drawn exactly, else normal numbers.
    """

    def __init__(self, objective: Any, protection: Any, visited: int, noise: Array) -> None:
        super().__init__(objective, protection)
        lines = iter(noise)

        # A closure keeps the rows out of reach of the update.
        def gradient(node: int, w: Array, draws: Array) -> Array:
            if node != visited:
                raise ValueError(
                    f"an update at node {visited} asks for a gradient of node {node}, whose budget "
                    "would not be charged. Use context.gradient(w)."
                )
            line = next(lines, None)
            if line is None:
                raise ValueError(
                    f"gradient {len(noise)} is not declared. Set `gradients` of the update to more "
                    f"than {len(noise)}."
                )
            if noise.dtype.kind == "i":
                exact: Array = protection.released(objective, node, w, draws, steps=line)
                return exact
            simulated: Array = protection.protected(objective, node, w, draws, normal=line)
            return simulated

        self._gradient = gradient

    def gradient(self, node: int, w: Array, draws: Array) -> Array:
        """Return the clipped and noisy gradient."""
        return self._gradient(node, w, draws)
