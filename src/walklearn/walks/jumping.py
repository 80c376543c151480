"""A Metropolis walk with random jumps, against entrapment."""

from __future__ import annotations

from dataclasses import field
from typing import Any, ClassVar

import numpy as np

from walklearn.arrays import Arrays, Vector
from walklearn.checks import check_number, check_whole
from walklearn.graphs import Graph
from walklearn.graphs.sparse_rows import SparseMatrix
from walklearn.walks.composed import ComposedWalk
from walklearn.walks.disclosure import Disclosure
from walklearn.walks.markov import stationary_of
from walklearn.walks.metropolis import Metropolis, Simple, pick
from walklearn.walks.view import Hop, View
from walklearn.walks.walk import WALKS
from walklearn.walks.weighted import Weighted


@WALKS.register
class Jumping(ComposedWalk):
    """A Metropolis walk with random jumps against entrapment (MHLJ, Liu et al. 2024).

    In a jump the token ignores the importance and is passed along r uniform neighbours. Each hop is
    a message, and only the last node updates. Jumps move the stationary distribution away from the
    importance, a bias that grows with `probability`. The gradient has the weights of `walk`.

    Parameters
    ----------
    walk
        The walk between jumps; by default `Weighted()`.
    probability
        The probability of a jump.
    stop_probability
        The parameter of the geometric distribution of r.
    max_hops
        The largest r.

    Examples
    --------
    >>> from walklearn import walks
    >>> Jumping(walks.Uniform(), probability=0.2).max_hops
    3
    """

    name: ClassVar[str] = "jumping"
    compiled: ClassVar[str | None] = "jumping"
    slow_stationary: ClassVar[bool] = True
    is_biased: ClassVar[bool] = True
    walk: Metropolis = field(default_factory=Weighted)
    probability: float = 0.1
    stop_probability: float = 0.5
    max_hops: int = 3
    reversible: ClassVar[bool] = False

    def __post_init__(self) -> None:
        super().__post_init__()
        check_number("probability", self.probability, above=0.0, below=1.0)
        check_number("stop_probability", self.stop_probability, above=0.0, maximum=1.0)
        object.__setattr__(self, "max_hops", check_whole("max_hops", self.max_hops))

    @property
    def disclosure(self) -> Disclosure | None:
        """The disclosure of the inner walk: jumps read no rows."""
        return self.walk.disclosure

    @property
    def draws(self) -> int:
        """One per hop of a jump, or the draws of the inner walk; the first one chooses."""
        return max(self.max_hops, self.walk.draws)

    @property
    def lengths(self) -> Vector:
        """The probabilities of a jump of 1, 2, …, `max_hops` hops."""
        weights = self.stop_probability * (1.0 - self.stop_probability) ** np.arange(self.max_hops)
        return np.asarray(weights / weights.sum())

    @property
    def stops(self) -> Vector:
        """The probabilities that a jump ends after 1, 2, …, `max_hops` hops."""
        tail_sums = np.cumsum(self.lengths[::-1])[::-1]
        return np.divide(self.lengths, tail_sums, out=np.ones(self.max_hops), where=tail_sums > 0.0)

    def hop(self, view: View, token: Arrays, state: Arrays, draws: Vector) -> Hop:
        """Jump with `probability`, otherwise hop like the inner walk."""
        u = draws[0]
        if u >= self.probability or view.nodes == 1:
            walk_draws = np.array(draws[: self.walk.draws])
            walk_draws[:1] = (u - self.probability) / (1.0 - self.probability)
            return self.walk.hop(view, token, state, walk_draws)
        node, neighbours, hops = view.node, view.neighbours, 0
        for v, stop in zip([u / self.probability, *draws[1:]], self.stops, strict=False):
            index, p = pick(v, len(neighbours))
            node, hops = int(neighbours[index]), hops + 1
            if p < stop:
                break
            neighbours = view.neighbours_of(node)
        return Hop(node, hops, *self.walk.count_visit(view, token, state))

    def transition_matrix(self, graph: Graph, objective: Any = None) -> SparseMatrix:
        """Return (1 − probability) P + probability Σ_r P(r) Sʳ, with S the simple walk.

        Its entries connect nodes up to `max_hops` hops apart, so it is dense on a small world.
        """
        from scipy.sparse import csr_array

        simple = Simple().transition_matrix(graph)
        matrix = (1.0 - self.probability) * self.walk.transition_matrix(graph, objective)
        power = simple
        for share in self.lengths:
            matrix = matrix + self.probability * share * power
            power = power @ simple
        return csr_array(matrix)

    def stationary(self, graph: Graph, objective: Any = None) -> Vector:
        """Return the distribution that the jumping chain leaves unchanged."""
        matrix = self.transition_matrix(graph, objective)
        return stationary_of(matrix, self.walk.stationary(graph, objective))
