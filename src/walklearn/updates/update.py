"""What a visit does, as a thing of its own: the walk says who is next, the update what it does.

    Sgd(step_size)   w ← Π(w − γ_k · scale_i · ∇f_i(w))      the paper's; nothing is remembered
    Saga             a step along a mean gradient that token and nodes remember (`memory`)

An update that remembers splits its memory in two. The token carries one part, each node keeps
another, and a visit makes of both, of the node's own rows and of random numbers the next of
both:

    update.visit(problem, token, kept, uniforms) → Visited(token, kept, …)

Nothing else is looked at, so that a node of a real network makes the same visit. With memory the
walk says only who is next: gradients are not scaled, and the fixed point is w = Π(w − γ∇f(w))
however often each node is visited.

>>> from walklearn import updates
>>> updates.UPDATES.names[:2]
('sgd', 'saga')
>>> updates.Saga()
Saga()
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar, NamedTuple

import numpy as np
from numpy.typing import NDArray

from walklearn.files.registry import Registry
from walklearn.files.wording import as_given
from walklearn.problem import Problem
from walklearn.updates.step_sizes import ConstantStep, PowerStep, StepSize

if TYPE_CHECKING:
    from walklearn.updates.walk_sgd import Token

Array = NDArray[Any]


class Visited(NamedTuple):
    """What a visit leaves behind: the token, what the node keeps, and what was done to w.

    Parameters
    ----------
    token
        The token after the visit.
    kept
        What the node keeps until the next visit.
    step_size
        The step that was made.
    gradient
        The direction of the step.

    Examples
    --------
    >>> from walklearn import Problem, graphs, walks
    >>> from walklearn.updates import Saga
    >>> from walklearn.updates.walk_sgd import token_at
    >>> problem, saga = Problem([[1.0], [2.0]], [1.0, -1.0], penalty=1.0), Saga()
    >>> token = token_at(0, np.zeros(1))._replace(memory=saga.begin(problem))
    >>> visited = saga.visit(problem, token, saga.unvisited(problem, 0), np.zeros(0))
    >>> visited.token.updates, visited.step_size > 0
    (1, True)
    """

    token: Token
    kept: Any
    step_size: float
    gradient: Array


class Update(ABC):
    """What every update offers.

    Attributes
    ----------
    name
        What files, plans and the command line call the update, once it is registered in
        `UPDATES`.
    step_size
        The step size that was given; None where the update finds it itself, or needs none.
    tells
        What the token shows of the nodes' rows beside the model, in words; empty for nothing.
    """

    name: ClassVar[str]
    tells: ClassVar[str] = ""
    step_size: Any

    def check(self, problem: Problem) -> None:
        """Raise what the update cannot do to this problem, and why."""
        del problem

    @abstractmethod
    def token_bytes(self, problem: Problem) -> int:
        """How many bytes a message has: the model and what the token carries beside it."""

    @abstractmethod
    def node_bytes(self, problem: Problem) -> NDArray[np.int64]:
        """How many bytes each node keeps between its visits."""


class Remembering(Update):
    """An update with memory: what the token carries, what a node keeps, and a visit."""

    @abstractmethod
    def begin(self, problem: Problem) -> Any:
        """What the token carries beside the model before its first visit."""

    @abstractmethod
    def unvisited(self, problem: Problem, node: int) -> Any:
        """What a node keeps before its first visit.

        Parameters
        ----------
        problem
            The problem, with the node's rows.
        node
            The number of the node.

        Returns
        -------
        What `visit` takes as `kept`.
        """

    def check_memory(self, problem: Problem, memory: Any) -> None:
        """Raise a ValueError unless this update makes such a memory of such a problem.

        Parameters
        ----------
        problem
            The problem of the walk that goes on.
        memory
            What its token carries beside the model.
        """
        begun = self.begin(problem)
        fits = type(memory) is type(begun) and all(
            np.shape(part) == np.shape(new) for part, new in zip(memory, begun, strict=True)
        )
        if not fits:
            raise ValueError(
                f"the token's memory is not one of {self!r} on {problem!r}: begin with "
                "update.begin(problem), which keeps the model and forgets the rest."
            )

    @abstractmethod
    def visit(self, problem: Problem, token: Token, kept: Any, uniforms: Array) -> Visited:
        """The visit of the token to its node, of whose rows alone the problem is asked.

        Parameters
        ----------
        problem
            The problem, with this node's rows; others are not looked at.
        token
            The token as it came: its node, model, count of updates and memory.
        kept
            What the node keeps since its last visit, or `unvisited`.
        uniforms
            A number for each row of a mini-batch; empty for all rows.

        Returns
        -------
        Visited
            The token with its new model and memory, not yet handed on, and what the node keeps
            from now on.
        """


class Kept(NamedTuple):
    """What the nodes of a walk keep.

    Parameters
    ----------
    problem
        What the walk learns.
    update
        What its visits do.
    nodes
        What each node keeps, by its number; those that are missing were not visited yet.
    """

    problem: Problem
    update: Remembering
    nodes: dict[int, Any]

    def of(self, node: int) -> Any:
        """What this node keeps."""
        kept = self.nodes.get(node)
        return self.update.unvisited(self.problem, node) if kept is None else kept

    def check(self, problem: Problem, update: Update) -> None:
        """Raise a ValueError unless this was made with that problem and that update.

        Parameters
        ----------
        problem
            The problem of the walk that goes on.
        update
            Its update.
        """
        if update != self.update or (problem is not self.problem and problem != self.problem):
            raise ValueError(
                f"what the nodes keep was made by {self.update!r} on {self.problem!r}, and says "
                f"nothing about {update!r} on {problem!r}. Begin anew, without it."
            )


UPDATES: Registry[type[Update]] = Registry("update")


@UPDATES.register
@dataclass(frozen=True)
class Sgd(Update):
    """The paper's update: one projected step along the node's own gradient, scaled by the walk.

    Parameters
    ----------
    step_size
        γ_k: a `PowerStep` or a `ConstantStep`. `simulate(..., step_size=…)` is its short form.
    average
        Whether the token carries Σ γ w, of which w̄ is made, beside w. Without
        it a token is half as long, and the averages of a run are the models themselves.

    Examples
    --------
    >>> from walklearn import PowerStep, updates
    >>> updates.Sgd(PowerStep(0.1))
    Sgd(step_size=PowerStep(constant=0.1, exponent=0.75), average=True)
    """

    name: ClassVar[str] = "sgd"
    step_size: StepSize
    average: bool = True

    def __post_init__(self) -> None:
        if not isinstance(self.step_size, PowerStep | ConstantStep):
            raise TypeError(
                f"step_size must be a PowerStep or a ConstantStep, got {self.step_size!r}."
            )
        if not isinstance(self.average, bool):
            raise TypeError(f"average must be True or False, got {self.average!r}.")

    def token_bytes(self, problem: Problem) -> int:
        """The bytes of one model, as the paper counts; the sum for w̄ is as large again."""
        return problem.model_bytes

    def node_bytes(self, problem: Problem) -> NDArray[np.int64]:
        """The node keeps nothing."""
        return np.zeros(problem.nodes, dtype=np.int64)


def as_update(update: object, step_size: Any) -> Update:
    """The update of a run: as given, or `Sgd` of a step size, its short form; not both.

    Parameters
    ----------
    update
        An update, or None.
    step_size
        γ_k, or None.

    Returns
    -------
    Update
        A TypeError or ValueError is raised where both are given, or none, or what is no update.
    """
    if update is None:
        if step_size is None:
            raise TypeError(
                "say what a visit does: step_size=PowerStep(…), which is short for "
                "update=updates.Sgd(PowerStep(…)), or update=updates.Saga(), which needs no step."
            )
        return Sgd(step_size)
    if not isinstance(update, Update):
        if isinstance(update, str):
            UPDATES.by_name(update)
        raise TypeError(
            f"update must be an update such as updates.Saga() or updates.Sgd(step_size), got "
            f"{as_given(update)}."
        )
    if step_size is not None:
        raise ValueError(
            f"step_size= is short for update=updates.Sgd(step_size) and would say nothing to "
            f"{update!r}. Leave it out: Saga finds its step itself, or takes one of its own as "
            "Saga(ConstantStep(…))."
        )
    return update
