"""Independent draws: what the walks emulate, and no network can do."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, ClassVar

import numpy as np

from walklearn.graphs import Graph
from walklearn.problem import Problem
from walklearn.walks.derived import Derived
from walklearn.walks.disclosure import Shown
from walklearn.walks.metropolis import Metropolis, Uniform
from walklearn.walks.walk import WALKS, Hop, Vector

if TYPE_CHECKING:
    from scipy.sparse import csr_array


@WALKS.register
@dataclass(frozen=True, repr=False)
class Independent(Derived):
    """What a walk emulates: the node of each update is drawn afresh, from anywhere.

    walk: the walk whose stationary law is drawn from: `Uniform()` for plain SGD, `Weighted()`
    for importance sampling. No network can do this; a message is counted whenever two
    updates in a row are made by different nodes.
    """

    name: ClassVar[str] = "independent"
    walk: Metropolis = field(default_factory=Uniform)

    @property
    def shown(self) -> Shown | None:
        """As the walk does."""
        return self.walk.shown

    @property
    def announced_numbers(self) -> int:  # type: ignore[override]
        """Nothing: there is no network."""
        return 0

    def score(self, graph: Graph, problem: Problem | None = None) -> Vector:
        """The cumulative law, which a uniform number is looked up in."""
        return np.cumsum(self.stationary(graph, problem))

    def hop(self, graph: Graph, score: Vector, node: int, previous: int, uniforms: Vector) -> Hop:
        """A node drawn from the law."""
        del previous
        last = graph.node_count - 1
        j = min(int(np.searchsorted(score, uniforms[0], side="right")), last)
        return Hop(j, int(j != node))

    def transition_matrix(self, graph: Graph, problem: Problem | None = None) -> csr_array:
        """Refused: every row is the stationary law, and nothing is sparse."""
        raise TypeError(
            "independent draws have no sparse transition matrix: every row is the stationary law."
        )

    def acceptance_rate(self, graph: Graph, problem: Problem | None = None) -> float:
        """The chance that two draws differ, 1 − Σ π²."""
        return float(1.0 - np.sum(self.stationary(graph, problem) ** 2))
