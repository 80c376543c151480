"""Independent draws of nodes: a baseline that no network can run."""

from __future__ import annotations

from typing import Any, ClassVar, Self

import numpy as np

from walklearn.arrays import Arrays, Vector
from walklearn.graphs import Graph
from walklearn.walks.composed import ComposedWalk
from walklearn.walks.disclosure import Disclosure
from walklearn.walks.markov import checked_stationary
from walklearn.walks.view import Hop, View
from walklearn.walks.walk import WALKS


@WALKS.register
class Independent(ComposedWalk):
    """Independent draws: the node of each update is drawn from the stationary distribution.

    No network can do this. A message is counted if consecutive updates are at different
    nodes.

    Parameters
    ----------
    walk
        The walk whose stationary distribution is used: `Uniform()` for plain SGD, `Weighted()` for
        importance sampling.

    Examples
    --------
    >>> from walklearn import graphs, walks
    >>> walks.Independent(walks.Simple()).stationary(graphs.star(4)).round(3)
    array([0.5  , 0.167, 0.167, 0.167])
    """

    name: ClassVar[str] = "independent"
    cumulative: ClassVar[Vector | None] = None  # bound by a simulation
    compiled: ClassVar[str | None] = "independent"
    is_independent: ClassVar[bool] = True

    @property
    def disclosure(self) -> Disclosure | None:
        """The disclosure of the inner walk."""
        return self.walk.disclosure

    @property
    def declared_sent_length(self) -> int | None:  # type: ignore[override]
        """Zero, because there is no network."""
        return 0

    def bind(self, graph: Graph, objective: Any, mean: str = "exact") -> Self:
        """Bind the cumulative distribution, in which a uniform number is looked up."""
        cumulative = np.cumsum(checked_stationary(self, graph, objective))
        return super().bind(graph, objective, mean).bound(cumulative=cumulative)

    def hop(self, view: View, token: Arrays, state: Arrays, draws: Vector) -> Hop:
        """Draw a node from the stationary distribution."""
        assert self.cumulative is not None, "bind the walk first"
        index = int(np.searchsorted(self.cumulative, draws[0], side="right"))
        j = min(index, view.nodes - 1)
        return Hop(j, int(j != view.node), *self.walk.count_visit(view, token, state))

    def acceptance_rate(self, graph: Graph, objective: Any = None) -> float:
        """Return the probability that two draws differ, 1 − Σ π²."""
        return float(1.0 - np.sum(self.stationary(graph, objective) ** 2))
