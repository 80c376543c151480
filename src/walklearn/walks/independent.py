"""Independent draws, which walks emulate and no network can make.

>>> from walklearn import graphs, walks
>>> walks.Independent(walks.Simple()).stationary(graphs.star(4)).round(3)
array([0.5  , 0.167, 0.167, 0.167])
"""

from __future__ import annotations

from typing import Any, ClassVar, Self

import numpy as np

from walklearn.arrays import Arrays, Vector
from walklearn.graphs import Graph
from walklearn.walks.composed import ComposedWalk
from walklearn.walks.disclosure import Disclosure
from walklearn.walks.walk import WALKS, Hop, View


@WALKS.register
class Independent(ComposedWalk):
    """Independent draws: the node of each update is drawn anew from the stationary distribution.

    No network can do this. A message is counted whenever two updates in a row are made by different
    nodes.

    Parameters
    ----------
    walk
        The walk whose stationary law is drawn from: `Uniform()` for plain SGD, `Weighted()` for
        importance sampling.

    Examples
    --------
    >>> from walklearn import graphs, walks
    >>> Independent(walks.Uniform()).stationary(graphs.star(4)).tolist()
    [0.25, 0.25, 0.25, 0.25]
    """

    name: ClassVar[str] = "independent"
    cumulative: ClassVar[Vector | None] = None  # bound by a simulation
    compiled: ClassVar[str | None] = "independent"
    is_independent: ClassVar[bool] = True

    @property
    def disclosure(self) -> Disclosure | None:
        """It shows what its walk shows."""
        return self.walk.disclosure

    @property
    def announced_numbers(self) -> int | None:  # type: ignore[override]
        """It announces nothing: there is no network."""
        return 0

    def bind(self, graph: Graph, objective: Any, mean: str = "exact") -> Self:
        """Bind the cumulative distribution, which a uniform number is looked up in."""
        bound = super().bind(graph, objective, mean)
        law = np.asarray(self.stationary(graph, objective), dtype=np.float64)
        if law.shape != (graph.node_count,) or not (law >= 0.0).all():
            raise ValueError(
                f"stationary of {self.walk!r} must return a number of at least 0 for each of the "
                f"{graph.node_count} nodes, got {law!r}."
            )
        return bound.bound(cumulative=np.cumsum(law))

    def hop(self, view: View, token: Arrays, state: Arrays, draws: Vector) -> Hop:
        """Draw a node from the stationary distribution."""
        assert self.cumulative is not None, "bind the walk first"
        found = int(np.searchsorted(self.cumulative, draws[0], side="right"))
        j = min(found, view.nodes - 1)
        return Hop(j, int(j != view.node), self.walk.count_visit(view, token), state)

    def acceptance_rate(self, graph: Graph, objective: Any = None) -> float:
        """The chance that two draws differ, 1 − Σ π²."""
        return float(1.0 - np.sum(self.stationary(graph, objective) ** 2))
