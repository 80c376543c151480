"""Independent draws: what the walks emulate, and no network can do."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

import numpy as np

from walklearn.graphs import Graph
from walklearn.problem import Problem
from walklearn.walks.metropolis import Metropolis, Uniform, require_metropolis
from walklearn.walks.walk import Hop, Vector, Walk

if TYPE_CHECKING:
    from scipy.sparse import csr_array


@dataclass(frozen=True, repr=False)
class Independent(Walk):
    """What a walk emulates: the node of each update is drawn afresh, from anywhere.

    law: the walk whose stationary law is drawn from: `Uniform()` for plain SGD, `Weighted()`
    for importance sampling. No network can do this; a message is counted whenever two
    updates in a row are made by different nodes.
    """

    law: Metropolis = field(default_factory=Uniform)

    def __post_init__(self) -> None:
        require_metropolis(self.law)

    @property
    def innermost(self) -> Metropolis:
        """The walk whose law it draws from."""
        return self.law

    @property
    def is_private(self) -> bool:
        """Whether the law is."""
        return self.law.is_private

    def realise(
        self, graph: Graph, problem: Problem | None, generator: np.random.Generator | None = None
    ) -> Independent:
        """The same with the law's release drawn."""
        return replace(self, law=self.law.realise(graph, problem, generator))

    def visit_weights(self, graph: Graph, problem: Problem | None = None) -> Vector:
        """That of the law."""
        return self.law.visit_weights(graph, problem)

    def gradient_scale(self, graph: Graph, problem: Problem | None = None) -> Vector:
        """That of the law."""
        return self.law.gradient_scale(graph, problem)

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
