"""Base of all updates: the rule that changes the token during a visit.

    Sgd(step_size)   w ← Π(w − γ_k · weight · ∇f_i(w))      the paper's; nothing is stored
    Saga()           a step along a mean of gradients that token and nodes store (`saga`)
    Finito()         the minimiser of a sum of quadratic models, one of each node (`finito`)

An update declares the arrays that the token carries and those that each node keeps. A visit makes
new ones from these, from the node's part of the objective and from random numbers. It reads
nothing else, so a node of a real network makes the same visit.
"""

from __future__ import annotations

from abc import abstractmethod
from typing import Any, ClassVar, NamedTuple, Self

import numpy as np

from walklearn.arrays import Array, Arrays, ArraySpec, Specs, zeros
from walklearn.parts import Part, is_current
from walklearn.registry import Registry


class VisitContext(NamedTuple):
    """The input of an update beside its arrays.

    Parameters
    ----------
    objective
        The objective as this visit may access it: clipped and noisy under a protection.
    node
        The number of the node.
    slot
        The number of the token.
    weight
        The walk's factor of the gradient. Updates with memory ignore it.
    updates
        The number of updates of this token before this visit.
    planned
        The number of updates planned for this token; 0 if that is not known.
    draws
        Uniform numbers, shape (gradients of the update, draws of the objective).

    Examples
    --------
    >>> import numpy as np
    >>> from walklearn import Problem, updates
    >>> problem = Problem([[1.0], [2.0]], [1.0, -1.0])
    >>> context = VisitContext(problem, 0, 0, 1.0, 0, 100, np.zeros((1, 0)))
    >>> context.gradient(np.zeros(1))
    array([-1.])
    """

    objective: Any
    node: int
    slot: int
    weight: float
    updates: int
    planned: int
    draws: Array

    def gradient(self, w: Array, index: int = 0) -> Array:
        """Return ∇φ_i(w) or an estimate of it, flat and without the penalty.

        `index` is the number of the gradient in this visit; each has its own random numbers.
        """
        if index >= len(self.draws):
            raise ValueError(
                f"gradient {index} is not declared. Set `gradients` of the update to {index + 1}."
            )
        gradient: Array = self.objective.gradient(self.node, w, self.draws[index])
        if np.shape(gradient) != w.shape:
            raise ValueError(
                f"gradient of node {self.node} must have the shape of the model, {w.shape}, got "
                f"{np.shape(gradient)}."
            )
        return gradient


class VisitResult(NamedTuple):
    """The arrays after a visit.

    Parameters
    ----------
    token
        The update's arrays on the token.
    state
        The update's arrays at the node.

    Examples
    --------
    >>> import numpy as np
    >>> VisitResult({"model": np.zeros(1)}).state
    {}
    """

    token: Arrays
    state: Arrays = {}  # noqa: RUF012 - never changed


class Update(Part):
    """Rule that changes the token and the node's state. A subclass needs `visit` only.

    Attributes
    ----------
    name
        The name in files, plans and the command line, once the update is registered in `UPDATES`.
    gradients
        The number of gradients per visit.
    converges
        True if the model converges to the minimiser at a constant step, whatever the walk.
    shares_sum
        True if several tokens help each other, because the model follows from a sum over nodes.
    token_disclosure
        A clause that names the information about L_i on the token; empty if there is none.
    compiled
        The name of the kernel for `visit`. It counts only if no subclass overrides `visit` or the
        declared arrays.

    Examples
    --------
    >>> import walklearn as wl
    >>> class SignStep(wl.Update):
    ...     step: float = 0.01
    ...     def visit(self, context, token, state):
    ...         import numpy as np
    ...         w = token["model"]
    ...         return wl.updates.VisitResult(
    ...             {"model": w - self.step * np.sign(context.gradient(w))})
    >>> X, y = wl.datasets.two_gaussians(10, dimension=2, seed=1)
    >>> run = wl.simulate(wl.Problem(X, y, penalty=1.0), wl.graphs.ring(10), "uniform",
    ...                   update=SignStep(), steps=100, seed=1, engine="reference")
    >>> run.label
    'Uniform(), SignStep()'
    """

    name: ClassVar[str]
    gradients: ClassVar[int] = 1
    converges: ClassVar[bool] = False
    shares_sum: ClassVar[bool] = False
    token_disclosure: ClassVar[str] = ""
    compiled: ClassVar[str | None] = None

    @abstractmethod
    def visit(self, context: VisitContext, token: Arrays, state: Arrays) -> VisitResult:
        """Return the arrays after a visit. Change no input array.

        `token` and `state` are the arrays that `token_arrays` and `node_arrays` declare.
        """

    def token_arrays(self, objective: Any, tokens: int = 1) -> Specs:
        """Declare the arrays that the token carries: the model by default."""
        return (ArraySpec("model", (objective.size,), objective.parameters[0].dtype),)

    def node_arrays(self, objective: Any, node: int, tokens: int = 1) -> Specs:
        """Declare the arrays that a node keeps between visits. They start at zero."""
        return ()

    def init_token(self, objective: Any, tokens: int = 1) -> Arrays:
        """Return the token's first arrays: zeros, and the objective's start as "model"."""
        arrays = zeros(self.token_arrays(objective, tokens))
        return arrays | {"model": objective.start} if "model" in arrays else arrays

    def restart(self, objective: Any, token: Arrays, generation: int) -> Arrays:
        """Return the arrays of a token that replaces a lost one and continues from a copy of it.

        By default the copy itself; `generation` is the number of restarts. Nodes have no state,
        unless the update shares a sum: then they keep theirs, and the token has a new slot.
        """
        return token

    def starting_from(self, model: Array) -> Self:
        """Return the update for a new token that starts from a model, on nodes without state.

        By default itself, because the token carries the model.
        """
        return self

    def model(self, objective: Any, token: Arrays) -> Array:
        """Return the model that the token carries, flat."""
        return token["model"]

    def average_model(self, objective: Any, token: Arrays) -> Array:
        """Return the running average w̄; the model if the token carries none."""
        return self.model(objective, token)

    def gradient_estimate(self, objective: Any, token: Arrays) -> Array | None:
        """Return the token's estimate of ∇f; None without one, or before all nodes were visited."""
        return None

    def curvature_estimate(self, token: Arrays) -> float:
        """Return the token's estimate of the curvature of f: its array "curvature", or else 1."""
        return float(token.get("curvature", 1.0))

    def with_average_since(self, before: Arrays, token: Arrays) -> Arrays:
        """Return the token's arrays with the average of the updates since an earlier copy.

        `token` itself if it carries no average.
        """
        return token

    def message_bytes(self, objective: Any, tokens: int = 1) -> int:
        """Return the bytes of the arrays that a message has to carry.

        A header, and arrays that are kept for records only, do not count.
        """
        specs = self.token_arrays(objective, tokens)
        return sum(spec.nbytes for spec in specs if spec.name not in self.uncounted)

    def node_bytes(self, objective: Any, tokens: int = 1) -> int:
        """Return the bytes that the update keeps at the node with the most rows.

        It is node 0 if the objective does not say how many rows each node has.
        """
        offsets = getattr(objective, "offsets", None)  # of a Problem: the first row of each node
        largest_node = 0 if offsets is None else int(np.diff(offsets).argmax())
        return sum(spec.nbytes for spec in self.node_arrays(objective, largest_node, tokens))

    @property
    def label(self) -> str:
        """The update's part of a trace's label."""
        return repr(self)

    @property
    def is_compiled(self) -> bool:
        """True if a kernel does exactly what `visit` does."""
        names = ("visit", "token_arrays", "node_arrays", "gradients", "model", "average_model")
        return self.compiled is not None and is_current(type(self), "compiled", *names)


UPDATES: Registry[type[Update]] = Registry("update")
