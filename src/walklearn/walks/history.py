"""The history-driven walk: nodes that were visited too often are proposed in vain.

Nodes count their visits x_i, from 1 on. A Metropolis walk with the law μ then aims at
μ_i (x_i / μ_i)^(−α) instead (HDT-MCMC, ICML 2025):

    accept with min(1, [μ_j (x_j/μ_j)^−α / deg_j] / [μ_i (x_i/μ_i)^−α / deg_i])

The law stays μ, and the variance of averages over visits falls like 1 / (2α + 1). The holder has
to ask the proposed neighbour for its count: a question and an answer, each counted as a message.

>>> import numpy as np
>>> from walklearn import graphs
>>> walk, ring = HistoryDriven(alpha=2.0), graphs.ring(4)
>>> score, counts = walk.score(ring), np.array([2, 5, 1, 2])
>>> walk.hop(ring, score, 0, -1, np.array([0.1]), counts)    # (2/5)² = 0.16 against 0.2
Hop(node=0, messages=2, questions=2)
>>> walk.hop(ring, score, 0, -1, np.array([0.07]), counts)
Hop(node=1, messages=3, questions=2)
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from walklearn.graphs import Graph
from walklearn.problem import Problem
from walklearn.walks.derived import Derived
from walklearn.walks.disclosure import Shown
from walklearn.walks.proposal import propose
from walklearn.walks.walk import WALKS, Hop, Vector

if TYPE_CHECKING:
    from scipy.sparse import csr_array


@WALKS.register
@dataclass(frozen=True, repr=False)
class HistoryDriven(Derived):
    """A Metropolis walk that turns away from nodes which it has visited more than its law says.

    Parameters
    ----------
    walk
        The walk whose law it keeps.
    alpha
        How strongly it turns away; 0 is the walk itself, whose questions are then in vain.

    Examples
    --------
    >>> from walklearn import graphs, walks
    >>> walk = walks.HistoryDriven(walks.Simple(), alpha=20.0)
    >>> walk.stationary(graphs.star(4)).round(3)
    array([0.5  , 0.167, 0.167, 0.167])
    """

    name: ClassVar[str] = "history-driven"
    reversible: ClassVar[bool] = False
    alpha: float = 20.0

    def __post_init__(self) -> None:
        super().__post_init__()
        if not 0.0 <= self.alpha < np.inf:
            raise ValueError(f"alpha must be a number of at least 0, got {self.alpha!r}.")

    @property
    def shown(self) -> Shown | None:
        """What the walk shows: the counts tell where the token has been, not what the rows are."""
        return self.walk.shown

    def hop(
        self,
        graph: Graph,
        score: Vector,
        node: int,
        previous: int,
        uniforms: Vector,
        counts: NDArray[Any] | None = None,
    ) -> Hop:
        """Ask the proposed neighbour for its count, and accept by both.

        Parameters
        ----------
        counts
            x_i, this visit included; left out, nobody has been visited yet.
        """
        neighbours = graph.neighbours(node)
        proposal = propose(uniforms[0], len(neighbours), self.walk.laziness)
        if proposal is None:
            return Hop(node, 0)
        j = int(neighbours[proposal.place])
        own, theirs = (1, 1) if counts is None else (counts[node], counts[j])
        degree, their_degree = len(neighbours), len(graph.neighbours(j))
        # (x_i / μ_i) / (x_j / μ_j), where μ = score · degree
        excess = (own * score[j] * their_degree) / (theirs * score[node] * degree)
        accepted = proposal.decider <= float(excess) ** self.alpha * score[j] / score[node]
        return Hop(j if accepted else node, 2 + int(accepted), questions=2)

    def transition_matrix(self, graph: Graph, problem: Problem | None = None) -> csr_array:
        """Refused: the next node depends on all visits so far, so there is no matrix."""
        raise TypeError(
            "a history-driven walk has no transition matrix: the next node depends on all visits "
            f"so far. Ask its walk instead: {self.walk!r}."
        )

    def acceptance_rate(self, graph: Graph, problem: Problem | None = None) -> float:
        """The rate of the walk it builds on, to which it tends as the visits follow the law."""
        return self.walk.acceptance_rate(graph, problem)
