"""Walks that are only needed for the paper's Figure 3.

**Unclamped releases.** Laplace noise can release R_i ≤ 0. As printed, a proposal is accepted with
probability min(1, (R_j / R_i)(deg_i / deg_j)): never if the signs differ. So nodes of positive and
of negative sign form two classes that the walk never crosses, and the rows of the other class do
not contribute. The gradient is weighted by L̄ / L_i, as printed: with R̄ / R_i it would ascend at
negative nodes.

**"Same noise variance."** The paper compares Laplace noise with Gamma noise of the same variance.
The variance of the Gamma noise is L θ, so `equal_variance_gamma` uses the θ for which they agree at
the middle of the bounds. Its `delta` gives the (ε, δ) of that.
"""

from __future__ import annotations

from dataclasses import field, replace
from typing import Any, ClassVar

import numpy as np

from walklearn.arrays import Arrays, Vector
from walklearn.graphs import Graph
from walklearn.privacy import Gamma, Laplace, Mechanism
from walklearn.walks import Hop, Metropolis, Weighted
from walklearn.walks.view import View
from walklearn.walks.walk import Generators
from walklearn.walks.weighted import Reweight


def equal_variance_gamma(*, privacy: Laplace, reweight: Reweight = "released") -> Weighted:
    """The weighted walk with Gamma noise of the variance that the Laplace noise has."""
    middle = 0.5 * (privacy.bounds[0] + privacy.bounds[1])
    theta = 2.0 * privacy.scale**2 / middle
    return Weighted(privacy=Gamma(theta, privacy.bounds), reweight=reweight)


class Unclamped(Metropolis):
    """Algorithm 3 with releases of either sign; `sample_release` draws them.

    released, true: the releases R and their L, after they are drawn.
    """

    privacy: Mechanism = field(kw_only=True)
    released: Vector | None = field(default=None, kw_only=True)
    true: Vector | None = field(default=None, kw_only=True)
    declared_sent_length: ClassVar[int | None] = 2  # the degree and the release

    @property
    def is_private(self) -> bool:
        """True until the releases are drawn."""
        return self.released is None

    def sample_release(
        self, graph: Graph, objective: Any, generator: Generators | None = None
    ) -> Unclamped:
        """Return the walk with one release of every L_i."""
        if self.released is not None:
            return self
        if objective is None or isinstance(generator, list | tuple):
            raise TypeError("Unclamped needs the problem, to take L_i from, and one generator.")
        assert generator is None or isinstance(generator, np.random.Generator)
        true = objective.importance
        return replace(self, released=self.privacy.release(true, generator), true=true)

    def with_announcements(self, table: Vector) -> Unclamped:
        """Bind the scores, which may have either sign."""
        return self.bound(table=table)

    def divisor(self, node: Any, degree: Any, announcement: Any) -> Any:
        """Return L_i, as the paper prints it."""
        return self._drawn(self.true)[node]

    def announce(
        self, objective: Any, node: int, degree: int, rng: np.random.Generator | None
    ) -> tuple[float, ...]:
        """Return the score R_i / degree, of either sign."""
        return (float(self._drawn(self.released)[node]) / max(degree, 1),)

    def hop(self, view: View, token: Arrays, state: Arrays, draws: Vector) -> Hop:
        """Hop by the sizes of the scores, and never between nodes whose scores differ in sign."""
        score, scores = view.own_announcement[0], view.announced
        sizes = [(abs(each[0]),) for each in scores]
        by_size = view._replace(own_announcement=(abs(score),), announced=sizes)
        hop = super().hop(by_size, token, state, draws)
        if hop.node == view.node:
            return hop
        place = int(np.searchsorted(view.neighbours, hop.node))
        same_sign = (score > 0) == (scores[place][0] > 0)
        return hop if same_sign else hop._replace(node=view.node, messages=0)

    def _drawn(self, values: Vector | None) -> Vector:
        if values is None:
            raise TypeError("draw the releases first, with walk.sample_release(graph, problem).")
        return values
