"""The history-driven walk: it avoids nodes that it has visited too often.

Nodes count their visits x_i, starting from 1. For a Metropolis walk with stationary distribution μ,
the target becomes μ_i (x_i / μ_i)^(−α) (HDT-MCMC, ICML 2025):

    accept with min(1, [μ_j (x_j/μ_j)^−α / deg_j] / [μ_i (x_i/μ_i)^−α / deg_i])

The stationary distribution stays μ, and the variance of averages over visits falls like
1 / (2α + 1). The holder has to ask the proposed neighbour for its count: a question and an answer,
each counted as a message. A node counts the visits of each token apart.
"""

from __future__ import annotations

from typing import ClassVar

from walklearn.arrays import Arrays, ArraySpec, Specs, Vector, with_entry
from walklearn.checks import check_number
from walklearn.walks.composed import ComposedWalk
from walklearn.walks.metropolis import Metropolis, propose
from walklearn.walks.view import Hop, View
from walklearn.walks.walk import WALKS


@WALKS.register
class HistoryDriven(ComposedWalk):
    """A Metropolis walk that avoids nodes with more visits than expected.

    Parameters
    ----------
    walk
        The walk whose stationary distribution it keeps.
    alpha
        The strength of the avoidance. With 0 the walk hops like `walk`, and still asks questions.

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
    compiled: ClassVar[str | None] = "history"

    def __post_init__(self) -> None:
        super().__post_init__()
        if type(self.walk).hop is not Metropolis.hop:
            raise TypeError(
                f"{self.walk!r} has its own hop, which a history-driven walk ignores. Use "
                "a walk that overrides `visit_weight` or `announce` only."
            )
        check_number("alpha", self.alpha, minimum=0.0)

    def node_arrays(self, tokens: int) -> Specs:
        """The earlier visits of each token to the node, and the arrays of the inner walk."""
        return (*super().node_arrays(tokens), ArraySpec("visits", (tokens,), "<i8"))

    def hop(self, view: View, token: Arrays, state: Arrays, draws: Vector) -> Hop:
        """Ask the proposed neighbour for its count; accept by the counts and scores of both."""
        base, slot = self.walk, view.slot
        token, state = base.count_visit(view, token, state)
        visits = int(state["visits"][slot]) + 1
        state = {**state, "visits": with_entry(state["visits"], slot, visits)}
        proposal = propose(draws[0], len(view.neighbours), base.laziness)
        if proposal is None:
            return Hop(view.node, 0, token, state)
        index, threshold = proposal
        j = int(view.neighbours[index])
        visits, other_visits = visits + 1, int(view.ask(j)["visits"][slot]) + 1
        score, other_score = view.own_announcement[0], view.announced[index][0]
        degree, other_degree = len(view.neighbours), len(view.neighbours_of(j))
        # (x_i / μ_i) / (x_j / μ_j), where μ = score · degree
        excess = (visits * other_score * other_degree) / (other_visits * score * degree)
        moves = threshold <= float(excess) ** self.alpha * other_score / score
        return Hop(j if moves else view.node, int(moves), token, state, questions=2)
