"""The walks: which neighbour gets the token next, and how its gradient is weighted.

A Metropolis walk proposes a uniform neighbour j of i and accepts with probability
min(1, a(i, j)), a = (v_j / v_i)(deg_i / deg_j); otherwise the token stays and the node does
another update. Its stationary law is ∝ v, the *visit weights*:

    Simple    v = deg     a = 1                   ĝ = ∇f_i, biased by degree
    Uniform   v = 1       a = deg_i / deg_j       ĝ = ∇f_i                    (Algorithm 1)
    Weighted  v = L       as above                ĝ = (L̄ / L_i) ∇f_i          (Algorithm 2)

Only the ratio of `score` = v / deg matters: a(i, j) = score_j / score_i.

One uniform number drives a whole Metropolis step: its part below `laziness` keeps the token,
the rest is stretched to [0, degree), whose whole part picks the neighbour and whose fraction
decides on acceptance. (53 bits are enough for both: the fraction keeps 53 − log₂ degree.)

>>> import numpy as np
>>> from walklearn import graphs
>>> star = graphs.star(4)
>>> Uniform().stationary(star)
array([0.25, 0.25, 0.25, 0.25])
>>> Simple().stationary(star)
array([0.5       , 0.16666667, 0.16666667, 0.16666667])
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, ClassVar, NamedTuple

import numpy as np
from numpy.typing import NDArray

from walklearn.graphs import Graph
from walklearn.problem import Problem

if TYPE_CHECKING:
    from scipy.sparse import csr_array

Vector = NDArray[np.float64]


class Hop(NamedTuple):
    """Where the token goes, and how many messages that takes."""

    node: int
    messages: int


@dataclass(frozen=True)
class Walk(ABC):
    """What every walk offers."""

    reversible: ClassVar[bool] = True
    announced_numbers: ClassVar[int] = 0

    @abstractmethod
    def visit_weights(self, graph: Graph, problem: Problem | None = None) -> Vector:
        """v_i > 0, what the stationary law is proportional to."""

    @abstractmethod
    def gradient_scale(self, graph: Graph, problem: Problem | None = None) -> Vector:
        """The factor of ∇f_i in the gradient estimate ĝ, for each node."""

    @abstractmethod
    def transition_matrix(self, graph: Graph, problem: Problem | None = None) -> csr_array:
        """P, sparse, rows summing to one."""

    @abstractmethod
    def hop(self, graph: Graph, score: Vector, node: int, previous: int, uniforms: Vector) -> Hop:
        """One step of the chain from `node`, driven by `draws` uniform numbers.

        `previous` is the node before the last move, −1 at the start.
        """

    @property
    def draws(self) -> int:
        """How many uniform numbers a step uses."""
        return 1

    def score(self, graph: Graph, problem: Problem | None = None) -> Vector:
        """v / deg: a proposal from i to j is accepted with min(1, score_j / score_i)."""
        return self.visit_weights(graph, problem) / np.maximum(graph.degrees, 1)

    def stationary(self, graph: Graph, problem: Problem | None = None) -> Vector:
        """The long-run share of the updates that each node makes."""
        importance = self.visit_weights(graph, problem)
        return np.asarray(importance / importance.sum())

    def acceptance_rate(self, graph: Graph, problem: Problem | None = None) -> float:
        """The long-run share of the steps that move the token: 1 − Σ π_i P_ii."""
        stays = self.transition_matrix(graph, problem).diagonal()
        return float(self.stationary(graph, problem) @ (1.0 - stays))


@dataclass(frozen=True)
class Metropolis(Walk):
    """The Metropolis walk for given visit weights: all the paper's walks are of this kind.

    laziness: the probability of staying put before anything is proposed, in [0, 1). The
    paper's walks have none and then can have period 2 (on an even ring, say); any laziness
    above 0 cures that.
    """

    laziness: float = field(default=0.0, kw_only=True)

    def __post_init__(self) -> None:
        if not 0.0 <= self.laziness < 1.0:
            raise ValueError(f"laziness must be in [0, 1), got {self.laziness!r}.")

    def hop(self, graph: Graph, score: Vector, node: int, previous: int, uniforms: Vector) -> Hop:
        """Propose a uniform neighbour, accept with min(1, score_j / score_i), else stay."""
        del previous
        neighbours = graph.neighbours(node)
        u = uniforms[0]
        if u < self.laziness or not len(neighbours):
            return Hop(node, 0)
        place, p = _pick((u - self.laziness) / (1.0 - self.laziness), len(neighbours))
        j = int(neighbours[place])
        return Hop(j, 1) if p * score[node] <= score[j] else Hop(node, 0)

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


@dataclass(frozen=True)
class Simple(Metropolis):
    """Every proposal is accepted: hubs are visited more.

    corrected: weight the gradient by (mean degree) / degree, which takes the bias out.
    """

    corrected: bool = False

    def visit_weights(self, graph: Graph, problem: Problem | None = None) -> Vector:
        """The degrees."""
        del problem
        return np.maximum(graph.degrees, 1).astype(np.float64)

    def gradient_scale(self, graph: Graph, problem: Problem | None = None) -> Vector:
        """1, or mean degree / degree if corrected."""
        importance = self.visit_weights(graph, problem)
        return _mean_over(importance) if self.corrected else np.ones(graph.node_count)


@dataclass(frozen=True)
class Uniform(Metropolis):
    """Algorithm 1: every node is visited equally often.

    normalise: step by (L̄ / L_i) ∇f_i all the same. That is exact only where one model fits
    every node (interpolation), releases nothing, and is fast there.
    """

    normalise: bool = False
    announced_numbers: ClassVar[int] = 1  # the degree

    def visit_weights(self, graph: Graph, problem: Problem | None = None) -> Vector:
        """1 for every node."""
        del problem
        return np.ones(graph.node_count)

    def gradient_scale(self, graph: Graph, problem: Problem | None = None) -> Vector:
        """1, or L̄ / L_i if normalised."""
        if not self.normalise:
            return np.ones(graph.node_count)
        return _mean_over(_smoothness(problem, "Uniform(normalise=True)"))


@dataclass(frozen=True, eq=False)
class Weighted(Metropolis):
    """Algorithm 2: nodes are visited in proportion to their importance.

    importance: any positive number per node; by default L_i, the smoothness of f_i. The
    gradient is divided by it, so that the estimate stays unbiased.
    """

    importance: Vector | None = None
    announced_numbers: ClassVar[int] = 2  # the degree and the importance

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.importance is not None:
            object.__setattr__(self, "importance", _positive(np.array(self.importance, float)))

    def visit_weights(self, graph: Graph, problem: Problem | None = None) -> Vector:
        """The given importance, or L_i."""
        if self.importance is None:
            return _positive(_smoothness(problem, "Weighted()"))
        if self.importance.shape != (graph.node_count,):
            raise ValueError(
                f"importance must hold one number per node: the graph has {graph.node_count} "
                f"nodes, importance has shape {self.importance.shape}."
            )
        return self.importance

    def gradient_scale(self, graph: Graph, problem: Problem | None = None) -> Vector:
        """v̄ / v_i."""
        return _mean_over(self.visit_weights(graph, problem))

    def __eq__(self, other: object) -> bool:
        return (
            type(other) is type(self)
            and isinstance(other, Weighted)
            and self.laziness == other.laziness
            and np.array_equal(
                np.asarray(self.importance, dtype=float),
                np.asarray(other.importance, dtype=float),
                equal_nan=True,  # None becomes NaN
            )
        )

    def __hash__(self) -> int:
        given = b"" if self.importance is None else self.importance.tobytes()
        return hash((type(self), self.laziness, given))

    def __repr__(self) -> str:
        given = "" if self.importance is None else "importance=…"
        lazy = f"laziness={self.laziness:g}" if self.laziness else ""
        return f"Weighted({', '.join(filter(None, (given, lazy)))})"


@dataclass(frozen=True)
class NonBacktracking(Walk):
    """A Metropolis walk that avoids going straight back (Lee, Xu & Eun 2012, MHDA).

    An accepted move back to the previous node is put to a second proposal among the other
    neighbours, accepted with min(1, (a(i, j') / a(i, j))²). The stationary law is that of the
    `walk` it improves; the chain lives on (previous node, node), so it has no transition
    matrix over nodes and is not reversible.
    """

    walk: Metropolis = Uniform()
    reversible: ClassVar[bool] = False

    @property
    def draws(self) -> int:
        """One more than the walk: the second proposal."""
        return 2

    @property
    def announced_numbers(self) -> int:  # type: ignore[override]
        """What the walk announces."""
        return self.walk.announced_numbers

    def visit_weights(self, graph: Graph, problem: Problem | None = None) -> Vector:
        """That of the walk."""
        return self.walk.visit_weights(graph, problem)

    def gradient_scale(self, graph: Graph, problem: Problem | None = None) -> Vector:
        """That of the walk."""
        return self.walk.gradient_scale(graph, problem)

    def hop(self, graph: Graph, score: Vector, node: int, previous: int, uniforms: Vector) -> Hop:
        """A Metropolis hop; one that goes straight back may be redirected."""
        first = self.walk.hop(graph, score, node, previous, uniforms)
        neighbours = graph.neighbours(node)
        if first.messages == 0 or first.node != previous or len(neighbours) < 2:
            return first
        others = neighbours[neighbours != previous]
        place, p = _pick(uniforms[1], len(others))
        other = int(others[place])
        # a(i, j') / a(i, j), both capped at 1, times score_i above and below
        ratio = min(score[node], score[other]) / min(score[node], score[previous])
        return Hop(other, 1) if p <= ratio * ratio else first

    def transition_matrix(self, graph: Graph, problem: Problem | None = None) -> csr_array:
        """There is none over the nodes: the next node depends on the previous one too."""
        raise TypeError(
            "a non-backtracking walk has no transition matrix over the nodes: the next node "
            f"depends on the previous one too. Ask its walk instead: {self.walk!r}."
        )

    def acceptance_rate(self, graph: Graph, problem: Problem | None = None) -> float:
        """That of the walk: a redirected move still moves."""
        return self.walk.acceptance_rate(graph, problem)


@dataclass(frozen=True)
class Jumping(Walk):
    """A Metropolis walk with random jumps against entrapment (MHLJ, Liu et al. 2024).

    With `probability` the token ignores the importance and is passed on along r uniform
    neighbours, r geometric with parameter `stop` cut at `longest`; one message per hop, and
    only the last node updates. The jumps bend the stationary law away from the importance,
    a bias that grows with `probability`; the gradient is weighted as for the `walk`.
    """

    walk: Metropolis = Weighted()
    probability: float = 0.1
    stop: float = 0.5
    longest: int = 3
    reversible: ClassVar[bool] = False

    def __post_init__(self) -> None:
        if not 0.0 < self.probability < 1.0:
            raise ValueError(f"the jump probability must be in (0, 1), got {self.probability!r}.")
        if not 0.0 < self.stop <= 1.0:
            raise ValueError(f"stop must be in (0, 1], got {self.stop!r}.")
        if self.longest < 1:
            raise ValueError(f"longest must be at least 1 hop, got {self.longest!r}.")

    @property
    def draws(self) -> int:
        """The walk's, one for the length of a jump, one for each of its hops."""
        return 2 + self.longest

    @property
    def announced_numbers(self) -> int:  # type: ignore[override]
        """What the walk announces."""
        return self.walk.announced_numbers

    @property
    def lengths(self) -> Vector:
        """The probabilities of a jump of 1, 2, …, `longest` hops."""
        weights = self.stop * (1.0 - self.stop) ** np.arange(self.longest)
        return np.asarray(weights / weights.sum())

    def visit_weights(self, graph: Graph, problem: Problem | None = None) -> Vector:
        """That of the walk, which the jumps only follow roughly; see `stationary`."""
        return self.walk.visit_weights(graph, problem)

    def gradient_scale(self, graph: Graph, problem: Problem | None = None) -> Vector:
        """That of the walk."""
        return self.walk.gradient_scale(graph, problem)

    def hop(self, graph: Graph, score: Vector, node: int, previous: int, uniforms: Vector) -> Hop:
        """Jump with `probability`, else do as the walk does."""
        u = uniforms[0]
        if u >= self.probability or graph.node_count == 1:
            rest = np.array([(u - self.probability) / (1.0 - self.probability)])
            return self.walk.hop(graph, score, node, previous, rest)
        hops = 1 + int(np.sum(uniforms[1] >= np.cumsum(self.lengths)[:-1]))
        for h in range(hops):
            neighbours = graph.neighbours(node)
            node = int(neighbours[_pick(uniforms[2 + h], len(neighbours))[0]])
        return Hop(node, hops)

    def transition_matrix(self, graph: Graph, problem: Problem | None = None) -> csr_array:
        """(1 − probability) P + probability Σ_r P(r) Sʳ, with S the simple walk.

        Its rows reach `longest` hops far, so it is dense on a small world.
        """
        from scipy.sparse import csr_array

        simple = Simple().transition_matrix(graph)
        matrix = (1.0 - self.probability) * self.walk.transition_matrix(graph, problem)
        power = simple
        for share in self.lengths:
            matrix = matrix + self.probability * share * power
            power = power @ simple
        return csr_array(matrix)

    def stationary(self, graph: Graph, problem: Problem | None = None) -> Vector:
        """The law that the chain leaves unchanged, by iteration from the walk's own."""
        transposed = self.transition_matrix(graph, problem).T.tocsr()
        law = self.walk.stationary(graph, problem)
        for _ in range(100_000):
            # Averaging with the last law damps a period of 2 without changing the limit.
            following = 0.5 * (law + transposed @ law)
            change = float(np.abs(following - law).sum())
            law = following
            if change < 1e-14:
                break
        return np.asarray(law / law.sum())


@dataclass(frozen=True)
class Independent(Walk):
    """What a walk emulates: the node of each update is drawn afresh, from anywhere.

    law: the walk whose stationary law is drawn from: `Uniform()` for plain SGD, `Weighted()`
    for importance sampling. No network can do this; a message is counted whenever two
    updates in a row are made by different nodes.
    """

    law: Metropolis = Uniform()

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


def _pick(u: float, choices: int) -> tuple[int, float]:
    """Split u ∈ [0, 1) into one of `choices` places and a fresh uniform number."""
    stretched = u * choices
    place = min(int(stretched), choices - 1)
    return place, stretched - place


def _mean_over(importance: Vector) -> Vector:
    return np.asarray(importance.mean() / importance)


def _smoothness(problem: Problem | None, walk: str) -> Vector:
    if problem is None:
        raise TypeError(f"{walk} needs the problem, to take L_i from: pass it after the graph.")
    return problem.importance


def _positive(importance: Vector) -> Vector:
    wrong = np.flatnonzero(~(np.isfinite(importance) & (importance > 0)))
    if importance.ndim != 1 or wrong.size:
        where = f": node {wrong[0]} has {importance.flat[wrong[0]]!r}" if wrong.size else ""
        raise ValueError(
            f"importance must be one positive finite number per node{where}. (L_i is 0 for a node "
            "whose rows are all zero when there is no penalty.)"
        )
    importance.setflags(write=False)
    return importance
