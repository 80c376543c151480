"""The Metropolis walk, and two that ask nothing of the rows: simple, and uniform (Algorithm 1)."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, ClassVar, Self

import numpy as np

from walklearn.graphs import Graph
from walklearn.problem import Problem
from walklearn.walks.disclosure import Shown
from walklearn.walks.proposal import accepts, propose
from walklearn.walks.walk import WALKS, Generators, Hop, Vector, Walk

if TYPE_CHECKING:
    from scipy.sparse import csr_array


@dataclass(frozen=True, repr=False)
class Metropolis(Walk):
    """The Metropolis walk for given visit weights: all the paper's walks are of this kind.

    Parameters
    ----------
    laziness
        The probability of staying put before anything is proposed, in [0, 1). The paper's walks
        have none and then can have period 2 (on an even ring, say); any laziness above 0 cures
        that.

    Examples
    --------
    >>> from walklearn.graphs import star
    >>> P = Uniform().transition_matrix(star(4))       # the hub has 3 neighbours, each leaf has 1
    >>> P.toarray().round(3)[1]
    array([0.333, 0.667, 0.   , 0.   ])
    """

    laziness: float = field(default=0.0, kw_only=True)

    def __post_init__(self) -> None:
        if not 0.0 <= self.laziness < 1.0:
            raise ValueError(f"laziness must be in [0, 1), got {self.laziness!r}.")

    def weight(self, importance: float, degree: int) -> float:
        """v_i from what a node knows of itself, or was told by a neighbour; see `visit_weights`.

        Only walks that say so can be done by the nodes of a network; of others a TypeError is
        raised.

        Parameters
        ----------
        importance
            L_i, or R_i where that was released.
        degree
            How many neighbours the node has.

        Returns
        -------
        float
            A positive number.
        """
        raise TypeError(f"{self!r} does not say how a node weighs itself against its neighbours.")

    @classmethod
    def is_local(cls) -> bool:
        """Whether nodes can do the walk, each from what it knows."""
        return cls.weight is not Metropolis.weight and cls.hop is Metropolis.hop

    @classmethod
    def unbiased(cls, laziness: float = 0.0) -> Self:
        """The walk as an estimator wants it: minimising f itself, whatever the degrees."""
        return cls(laziness=laziness)

    def realise(
        self, graph: Graph, problem: Problem | None, generator: Generators | None = None
    ) -> Metropolis:
        """This walk itself: there is nothing to release."""
        return self

    def hop(self, graph: Graph, score: Vector, node: int, previous: int, uniforms: Vector) -> Hop:
        """Propose a uniform neighbour, accept with min(1, score_j / score_i), else stay."""
        neighbours = graph.neighbours(node)
        proposal = propose(uniforms[0], len(neighbours), self.laziness)
        if proposal is None:
            return Hop(node, 0)
        j = int(neighbours[proposal.place])
        return Hop(j, 1) if accepts(proposal, score[node], score[j]) else Hop(node, 0)

    def divisors(self, graph: Graph, problem: Problem | None = None) -> Vector:
        """s_i in ĝ = (s̄ / s_i) ∇f_i: here 1.

        Parameters
        ----------
        graph
            Who can talk to whom.
        problem
            What L_i is taken from; walks that do not follow L_i need none.

        Returns
        -------
        array
            A positive number for each node.
        """
        return np.ones(graph.node_count)

    def gradient_scale(self, graph: Graph, problem: Problem | None = None) -> Vector:
        """s̄ / s_i, with the divisors s."""
        divisors = self.divisors(graph, problem)
        return np.asarray(divisors.mean() / divisors)

    def transition_matrix(self, graph: Graph, problem: Problem | None = None) -> csr_array:
        """P_ij = (1 − laziness) min(1, score_j / score_i) / deg_i, the rest on the diagonal."""
        from scipy.sparse import csr_array, diags_array

        degrees = graph.degrees
        rows = np.repeat(np.arange(graph.node_count), degrees)
        score = self.score(graph, problem)
        accept = np.minimum(1.0, score[graph.indices] / score[rows])
        moves = csr_array(
            ((1.0 - self.laziness) * accept / degrees[rows], graph.indices, graph.indptr),
            shape=(graph.node_count, graph.node_count),
        )
        # Rounding must not make a node that never stays look as if it did.
        stays = np.maximum(1.0 - moves.sum(axis=1), 0.0)
        stays[stays < 1e-14] = 0.0
        return csr_array(moves + diags_array(stays))


@WALKS.register
@dataclass(frozen=True, repr=False)
class Simple(Metropolis):
    """Every proposal is accepted, so hubs are visited more.

    Parameters
    ----------
    corrected
        Whether to weight the gradient by (mean degree) / degree, which takes the bias out.
    laziness
        The probability of staying put before anything is proposed, in [0, 1).

    Examples
    --------
    >>> from walklearn import graphs
    >>> Simple().stationary(graphs.star(4)).round(3)
    array([0.5  , 0.167, 0.167, 0.167])
    """

    name: ClassVar[str] = "simple"
    corrected: bool = False

    @classmethod
    def unbiased(cls, laziness: float = 0.0) -> Self:
        """The simple walk with corrected gradients."""
        return cls(corrected=True, laziness=laziness)

    @property
    def shown(self) -> Shown:
        """It shows nothing of the rows."""
        return Shown()

    def weight(self, importance: float, degree: int) -> float:
        """The degree."""
        return float(max(degree, 1))

    def visit_weights(self, graph: Graph, problem: Problem | None = None) -> Vector:
        """The degree of each node."""
        return np.maximum(graph.degrees, 1).astype(np.float64)

    def divisors(self, graph: Graph, problem: Problem | None = None) -> Vector:
        """1 for every node, or its degree if corrected."""
        return (self.visit_weights if self.corrected else super().divisors)(graph, problem)


@WALKS.register
@dataclass(frozen=True, repr=False)
class Uniform(Metropolis):
    """Algorithm 1: every node is visited equally often.

    Parameters
    ----------
    normalise
        Whether to step by (L̄ / L_i) ∇f_i all the same. That is exact only where one model fits
        every node (interpolation), releases nothing, and is fast there.
    laziness
        The probability of staying put before anything is proposed, in [0, 1).

    Examples
    --------
    >>> from walklearn import graphs
    >>> Uniform().stationary(graphs.star(4)).tolist()
    [0.25, 0.25, 0.25, 0.25]
    """

    name: ClassVar[str] = "uniform"
    normalise: bool = False
    announced_numbers: ClassVar[int] = 1  # the degree

    @property
    def shown(self) -> Shown:
        """It shows nothing of the rows, unless steps are normalised."""
        return Shown(scaled_by=f"{self!r}" if self.normalise else "", instead="Uniform()")

    def weight(self, importance: float, degree: int) -> float:
        """The weight 1, whatever neighbours say."""
        return 1.0

    def visit_weights(self, graph: Graph, problem: Problem | None = None) -> Vector:
        """1 for every node."""
        return np.ones(graph.node_count)

    def divisors(self, graph: Graph, problem: Problem | None = None) -> Vector:
        """1 for every node, or L_i if normalised."""
        if not self.normalise:
            return super().divisors(graph, problem)
        return smoothness_of_nodes(graph, problem, "Uniform(normalise=True)")


def smoothness_of_nodes(graph: Graph, problem: Problem | None, walk: str) -> Vector:
    """L_i of the problem's nodes, for a walk of that name, which needs them."""
    if problem is None:
        raise TypeError(f"{walk} needs the problem, to take L_i from: pass it after the graph.")
    if problem.nodes != graph.node_count:
        raise ValueError(
            f"the graph has {graph.node_count} nodes, but the problem has {problem.nodes}."
        )
    return positive(problem.importance)


def positive(importance: Vector) -> Vector:
    """The importance of each node, checked, and not to be written to any more."""
    wrong = np.flatnonzero(~(np.isfinite(importance) & (importance > 0)))
    if importance.ndim != 1 or wrong.size:
        where = f": node {wrong[0]} has {importance.flat[wrong[0]]:g}" if wrong.size else ""
        raise ValueError(
            f"importance must be one positive finite number per node{where}. (L_i is 0 for a node "
            "whose rows are all zero when there is no penalty.)"
        )
    importance.setflags(write=False)
    return importance
