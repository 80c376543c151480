"""What every walk offers."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import MISSING, dataclass, fields
from typing import TYPE_CHECKING, ClassVar, NamedTuple

import numpy as np
from numpy.typing import NDArray

from walklearn.files.registry import Registry
from walklearn.graphs import Graph
from walklearn.problem import Problem
from walklearn.walks.disclosure import Shown

if TYPE_CHECKING:
    from scipy.sparse import csr_array

Vector = NDArray[np.float64]
Generators = (
    np.random.Generator | Sequence[np.random.Generator]
)  # one for all nodes, or each its own


class Hop(NamedTuple):
    """Where the token goes, and how many messages that takes.

    Parameters
    ----------
    node
        Where the token goes; the same node if it stays.
    messages
        How many messages that takes.
    questions
        How many of these were questions and answers, of a number each, not the token.

    Examples
    --------
    >>> from walklearn import graphs, walks
    >>> graph, walk = graphs.ring(5), walks.Uniform()
    >>> score = walk.score(graph)
    >>> walk.hop(graph, score, 0, 4, np.array([0.9, 0.5]))
    Hop(node=4, messages=1, questions=0)
    """

    node: int
    messages: int
    questions: int = 0


@dataclass(frozen=True, repr=False)
class Walk(ABC):
    """What every walk offers.

    Attributes
    ----------
    name
        What studies, plans and the command line call the walk, once it is registered in
        `WALKS`.
    """

    name: ClassVar[str]
    reversible: ClassVar[bool] = True
    announced_numbers: ClassVar[int] = 0

    @abstractmethod
    def visit_weights(self, graph: Graph, problem: Problem | None = None) -> Vector:
        """v_i > 0, what the stationary law is proportional to.

        Parameters
        ----------
        graph
            Who can talk to whom.
        problem
            What L_i is taken from; walks that do not follow L_i need none.

        Returns
        -------
        array
            A number for each node. A TypeError is raised where the walk needs the problem and it is
            missing, or rests on a release that was not drawn yet.
        """

    @abstractmethod
    def gradient_scale(self, graph: Graph, problem: Problem | None = None) -> Vector:
        """The factor of ∇f_i in the gradient estimate ĝ, for each node.

        Parameters
        ----------
        graph
            Who can talk to whom.
        problem
            What L_i is taken from; walks that do not follow L_i need none.

        Returns
        -------
        array
            A number for each node.
        """

    @abstractmethod
    def transition_matrix(self, graph: Graph, problem: Problem | None = None) -> csr_array:
        """P, the probability of each next node.

        Parameters
        ----------
        graph
            Who can talk to whom.
        problem
            What L_i is taken from; walks that do not follow L_i need none.

        Returns
        -------
        csr_array
            Sparse, shape (N, N); rows sum to one. A TypeError is raised by walks that have none:
            the next node depends on more than the present one, or can be any.
        """

    @abstractmethod
    def hop(self, graph: Graph, score: Vector, node: int, previous: int, uniforms: Vector) -> Hop:
        """Make one step of the chain.

        Parameters
        ----------
        graph
            Who can talk to whom.
        score
            What `score` gives, computed once for the whole walk.
        node
            Where the token is.
        previous
            Where it was before its last move; −1 at the start.
        uniforms
            As many uniform numbers as `draws` says.

        Returns
        -------
        Hop
            Where the token goes, and how many messages that takes.
        """

    @property
    def draws(self) -> int:
        """How many uniform numbers a step uses."""
        return 1

    @property
    def innermost(self) -> Walk:
        """The walk that this one builds on; itself where it stands alone."""
        return self

    @property
    def shown(self) -> Shown | None:
        """What it shows of the nodes' rows beside the model; None where that is not known.

        Where privacy is claimed, a class's own word counts, not one that it has inherited.
        """
        return None

    @property
    def is_private(self) -> bool:
        """Whether the walk rests on a release that is still to be drawn."""
        return False

    def realise(
        self, graph: Graph, problem: Problem | None, generator: Generators | None = None
    ) -> Walk:
        """The walk with its release drawn; itself where there is nothing to release.

        Parameters
        ----------
        graph
            Who can talk to whom.
        problem
            What L_i is taken from; walks that do not follow L_i take None.
        generator
            One for all nodes or a list with one for each, for a simulated release, which protects
            nobody. By default the noise comes from the operating system's entropy.

        Returns
        -------
        Walk
            A walk that can be walked.
        """
        return self

    def score(self, graph: Graph, problem: Problem | None = None) -> Vector:
        """v / deg: a proposal from i to j is accepted with min(1, score_j / score_i).

        Parameters
        ----------
        graph
            Who can talk to whom.
        problem
            What L_i is taken from; walks that do not follow L_i need none.

        Returns
        -------
        array
            A number for each node.
        """
        return self.visit_weights(graph, problem) / np.maximum(graph.degrees, 1)

    def stationary(self, graph: Graph, problem: Problem | None = None) -> Vector:
        """The long-run share of the updates that each node makes.

        Parameters
        ----------
        graph
            Who can talk to whom.
        problem
            What L_i is taken from; walks that do not follow L_i need none.

        Returns
        -------
        array
            A number for each node; they sum to one.
        """
        importance = self.visit_weights(graph, problem)
        return np.asarray(importance / importance.sum())

    def acceptance_rate(self, graph: Graph, problem: Problem | None = None) -> float:
        """The long-run share of the steps that move the token: 1 − Σ π_i P_ii.

        Parameters
        ----------
        graph
            Who can talk to whom.
        problem
            What L_i is taken from; walks that do not follow L_i need none.

        Returns
        -------
        float
            From 0 to 1.
        """
        stays = self.transition_matrix(graph, problem).diagonal()
        return float(self.stationary(graph, problem) @ (1.0 - stays))

    def __repr__(self) -> str:
        """The settings that differ from their defaults; an array as …"""
        shown = []
        for item in fields(self):
            value = getattr(self, item.name)
            default = item.default if item.default_factory is MISSING else item.default_factory()
            if isinstance(value, np.ndarray):
                shown.append(f"{item.name}=…")
            elif value != default:
                shown.append(f"{item.name}={value!r}")
        return f"{type(self).__name__}({', '.join(shown)})"


# A class, or a function that makes a walk.
WALKS: Registry[Callable[..., Walk]] = Registry("walk")
