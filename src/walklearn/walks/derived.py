"""Walks that build on a Metropolis walk, whose importance, weights and releases they take over.

Two are not reversible and improve it, by memory (`NonBacktracking`) or by jumps (`Jumping`). One is
what walks emulate, and no network can do: independent draws from its law (`Independent`).

>>> from walklearn import graphs, walks
>>> walks.Independent(walks.Simple()).stationary(graphs.star(4)).round(3)
array([0.5  , 0.167, 0.167, 0.167])
"""

from __future__ import annotations

from dataclasses import field, replace
from typing import TYPE_CHECKING, Any, ClassVar, Self

import numpy as np

from walklearn.arrays import Arrays, ArraySpec, Specs
from walklearn.files.wording import as_given
from walklearn.graphs import Graph
from walklearn.graphs.arguments import whole
from walklearn.walks.disclosure import Shown
from walklearn.walks.metropolis import Metropolis, Simple, Uniform, pick
from walklearn.walks.walk import WALKS, Generators, Hop, Vector, View, Walk, scale_of
from walklearn.walks.weighted import Weighted

if TYPE_CHECKING:
    from scipy.sparse import csr_array

MOST_NODES_REDUCED = 500  # a dense matrix of more takes longer than iterating


class Derived(Walk):
    """What walks built on another share; each has its own `hop`.

    Parameters
    ----------
    walk
        The Metropolis walk that it is built on; by default `Uniform()`.
    """

    walk: Metropolis = field(default_factory=Uniform)

    def __post_init__(self) -> None:
        if not isinstance(self.walk, Metropolis):
            raise TypeError(
                "needs a walk such as walks.Weighted() or walks.Uniform(), got "
                f"{as_given(self.walk)}."
            )

    @property
    def innermost(self) -> Metropolis:
        """The walk it builds on."""
        return self.walk

    @property
    def uncounted(self) -> tuple[str, ...]:  # type: ignore[override]
        """The receiver knows the sender."""
        return (*self.walk.uncounted, "sender")

    @property
    def needs(self) -> dict[str, str]:
        """The needs of its walk."""
        return self.walk.needs

    @property
    def is_compiled(self) -> bool:
        """True if kernels do what this walk and the one that it builds on do."""
        return super().is_compiled and self.walk.is_compiled

    @property
    def discloses_known(self) -> bool:
        """True if both walks say what they disclose."""
        return super().discloses_known and self.walk.discloses_known

    @property
    def announced_numbers(self) -> int | None:  # type: ignore[override]
        """It announces what its walk announces."""
        return self.walk.numbers_sent

    def announce(
        self, objective: Any, node: int, degree: int, rng: np.random.Generator | None
    ) -> tuple[float, ...]:
        """Announce what its walk announces."""
        return self.walk.announce(objective, node, degree, rng)

    def _announcements(self, graph: Graph, objective: Any, rng: Generators | None = None) -> Vector:
        """Announce what its walk announces, unless a subclass has its own `announce`."""
        if super().draws_announcements:
            return super()._announcements(graph, objective, rng)
        return self.walk._announcements(graph, objective, rng)

    @property
    def draws_announcements(self) -> bool:
        """True if either walk overrides how announcements are made."""
        return super().draws_announcements or self.walk.draws_announcements

    def token_arrays(self, nodes: int) -> Specs:
        """The arrays of its walk."""
        return self.walk.token_arrays(nodes)

    def node_arrays(self, tokens: int) -> Specs:
        """The arrays of its walk."""
        return self.walk.node_arrays(tokens)

    def weight(self, view: View, token: Arrays, state: Arrays) -> float:
        """The weight of its walk."""
        return self.walk.weight(view, token, state)

    def bind(self, graph: Graph, objective: Any, mean: str = "exact") -> Self:
        """Bind its walk; the weights are its own if it has overridden `gradient_scale`."""
        if type(self).gradient_scale is Derived.gradient_scale:
            return self.bound(walk=self.walk.bind(graph, objective, mean))
        if mean == "estimated":
            raise ValueError(
                f"{self!r} has its own gradient_scale, which the token cannot estimate. Use "
                'mean_importance="exact".'
            )
        return self.bound(walk=self.walk.bound(scale=scale_of(self, graph, objective)))

    def stationary(self, graph: Graph, objective: Any = None) -> Vector:
        """The stationary distribution of its walk."""
        return self.walk.stationary(graph, objective)

    @property
    def is_private(self) -> bool:
        """True if the release of its base walk is still to be drawn."""
        return self.walk.is_private

    def realise(self, graph: Graph, objective: Any, generator: Generators | None = None) -> Self:
        """The same walk, built on one whose release is drawn."""
        return self.bound(walk=self.walk.realise(graph, objective, generator))

    def with_table(self, table: Vector) -> Self:
        """Return the walk, and the one that it builds on, with the same announcements."""
        return self.bound(table=table, walk=self.walk.with_table(table))

    def with_innermost(self, inner: Any) -> Self:
        """Return the same walk, built on another one."""
        walk: Any = self.walk.with_innermost(inner)
        return replace(self, walk=walk)

    def without_secrets(self) -> Self:
        """Return the walk, built on one without numbers that were not released."""
        return self.bound(walk=self.walk.without_secrets())

    def before_release(self) -> Self:
        """Return the walk, built on one before its release."""
        return self.bound(walk=self.walk.before_release(), table=None)

    def gradient_scale(self, graph: Graph, objective: Any = None) -> Vector:
        """The gradient scale of the walk it builds on."""
        return self.walk.gradient_scale(graph, objective)


@WALKS.register
class NonBacktracking(Derived):
    """A Metropolis walk that avoids going straight back (Lee, Xu & Eun 2012, MHDA).

    An accepted move back to the previous node is put to a second proposal among the other
    neighbours, accepted with min(1, (a(i, j') / a(i, j))²). The stationary law is that of the
    `walk` it improves; the chain lives on (previous node, node), so it has no transition
    matrix over nodes and is not reversible.

    Parameters
    ----------
    walk
        The walk that it improves; by default `Uniform()`.

    Examples
    --------
    >>> from walklearn import graphs, walks
    >>> NonBacktracking(walks.Uniform()).stationary(graphs.star(4)).tolist()
    [0.25, 0.25, 0.25, 0.25]
    """

    name: ClassVar[str] = "non-backtracking"
    compiled: ClassVar[str | None] = "non-backtracking"
    reversible: ClassVar[bool] = False

    @property
    def shown(self) -> Shown | None:
        """It shows what its walk shows: where the token came from is no secret."""
        return self.walk.shown

    @property
    def draws(self) -> int:
        """One more than the walk: the second proposal."""
        return self.walk.draws + 1

    @property
    def matrix_walk(self) -> Walk:
        """Its base walk."""
        return self.walk

    @property
    def eigenvalue_note(self) -> str:
        """The eigenvalues are those of its base walk."""
        return (
            "A non-backtracking walk is not reversible and has no matrix over the nodes: the "
            f"eigenvalues, times and constant are those of its base walk {self.walk!r}. Measure "
            "its visits in a simulation to see what it gains."
        )

    def token_arrays(self, nodes: int) -> Specs:
        """1 + the node before the last move, 0 at the start, and the arrays of its walk."""
        return (*super().token_arrays(nodes), ArraySpec("sender", (), "<i8"))

    def hop(self, view: View, token: Arrays, state: Arrays, draws: Vector) -> Hop:
        """Make a Metropolis hop; one that goes straight back may be redirected."""
        previous, neighbours = int(token["sender"]) - 1, view.neighbours
        first = self.walk.hop(view, _without_sender(token), state, draws[:-1])
        if first.messages == 0:
            return first._replace(token={**first.token, "sender": token["sender"]})
        token = {**first.token, "sender": np.array(view.node + 1)}
        if first.node != previous or len(neighbours) < 2:
            return first._replace(token=token)
        places = np.flatnonzero(neighbours != previous)
        place, p = pick(draws[-1], len(places))
        place, back = int(places[place]), int(np.searchsorted(neighbours, previous))
        # a(i, j') / a(i, j), both capped at 1, times score_i above and below
        own = view.own_announcement[0]
        ratio = min(own, view.announced[place][0]) / min(own, view.announced[back][0])
        end = int(neighbours[place]) if p <= ratio * ratio else first.node
        return first._replace(node=end, token=token)

    def transition_matrix(self, graph: Graph, objective: Any = None) -> csr_array:
        """Refused: the next node depends on the previous one too, so there is no matrix."""
        raise TypeError(
            "a non-backtracking walk has no transition matrix over the nodes: the next node "
            f"depends on the previous one too. Ask its walk instead: {self.walk!r}."
        )

    def acceptance_rate(self, graph: Graph, objective: Any = None) -> float:
        """The acceptance rate of the walk it builds on: a redirected move still moves."""
        return self.walk.acceptance_rate(graph, objective)


@WALKS.register
class Jumping(Derived):
    """A Metropolis walk with random jumps against entrapment (MHLJ, Liu et al. 2024).

    In a jump the token ignores the importance and is passed on along r uniform neighbours; each hop
    is a message, and only the last node updates. The jumps bend the stationary law away from the
    importance, a bias that grows with `probability`; the gradient is weighted as for the `walk`.

    Parameters
    ----------
    walk
        The walk between jumps; by default `Weighted()`.
    probability
        The probability of a jump.
    stop
        The parameter of the geometric law of r.
    longest
        The largest r.

    Examples
    --------
    >>> from walklearn import walks
    >>> Jumping(walks.Uniform(), probability=0.2).longest
    3
    """

    name: ClassVar[str] = "jumping"
    compiled: ClassVar[str | None] = "jumping"
    slow_stationary: ClassVar[bool] = True
    is_biased: ClassVar[bool] = True
    walk: Metropolis = field(default_factory=Weighted)
    probability: float = 0.1
    stop: float = 0.5
    longest: int = 3
    reversible: ClassVar[bool] = False

    def __post_init__(self) -> None:
        super().__post_init__()
        if not 0.0 < self.probability < 1.0:
            raise ValueError(f"the jump probability must be in (0, 1), got {self.probability!r}.")
        if not 0.0 < self.stop <= 1.0:
            raise ValueError(f"stop must be in (0, 1], got {self.stop!r}.")
        object.__setattr__(self, "longest", whole("longest", self.longest, least=1))

    @property
    def shown(self) -> Shown | None:
        """It shows what its walk shows: jumps look at no rows."""
        return self.walk.shown

    @property
    def draws(self) -> int:
        """One for each hop of a jump, or those of the walk; the first decides between them."""
        return max(self.longest, self.walk.draws)

    @property
    def lengths(self) -> Vector:
        """The probabilities of a jump of 1, 2, …, `longest` hops."""
        weights = self.stop * (1.0 - self.stop) ** np.arange(self.longest)
        return np.asarray(weights / weights.sum())

    @property
    def stops(self) -> Vector:
        """The probabilities that a jump of 1, 2, …, `longest` hops so far goes no further."""
        further = np.cumsum(self.lengths[::-1])[::-1]
        return np.divide(self.lengths, further, out=np.ones(self.longest), where=further > 0.0)

    @property
    def eigenvalue_note(self) -> str:
        """The eigenvalues say less than those of a reversible walk."""
        return (
            "A jumping walk is not reversible: λ_2 is the second largest modulus, and no bound of "
            "the mixing time follows from it. Measure its visits in a simulation."
        )

    def hop(self, view: View, token: Arrays, state: Arrays, draws: Vector) -> Hop:
        """Jump with `probability`, else do as the walk does."""
        u = draws[0]
        if u >= self.probability or view.nodes == 1:
            rest = np.array(draws[: self.walk.draws])
            rest[:1] = (u - self.probability) / (1.0 - self.probability)
            return self.walk.hop(view, token, state, rest)
        node, neighbours, hops = view.node, view.neighbours, 0
        for v, stop in zip([u / self.probability, *draws[1:]], self.stops, strict=False):
            place, p = pick(v, len(neighbours))
            node, hops = int(neighbours[place]), hops + 1
            if p < stop:
                break
            neighbours = view.neighbours_of(node)
        return Hop(node, hops, self.walk.count_visit(view, token), state)

    def transition_matrix(self, graph: Graph, objective: Any = None) -> csr_array:
        """(1 − probability) P + probability Σ_r P(r) Sʳ, with S the simple walk.

        Its rows reach `longest` hops far, so it is dense on a small world.
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
        """The law that the chain leaves unchanged: exact, for a large graph by iteration."""
        matrix = self.transition_matrix(graph, objective)
        if graph.node_count <= MOST_NODES_REDUCED:
            return _reduced(matrix.toarray())
        transposed = matrix.T.tocsr()
        law = self.walk.stationary(graph, objective)
        for _ in range(100_000):
            # Averaging with the last law damps a period of 2 without changing the limit.
            following = 0.5 * (law + transposed @ law)
            change = float(np.abs(following - law).sum())
            law = following
            if change < 1e-14:
                break
        return np.asarray(law / law.sum())


@WALKS.register
class Independent(Derived):
    """What a walk emulates: the node of each update is drawn afresh, from anywhere.

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
    def shown(self) -> Shown | None:
        """It shows what its walk shows."""
        return self.walk.shown

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

    def transition_matrix(self, graph: Graph, objective: Any = None) -> csr_array:
        """Refused: every row is the stationary law, and nothing is sparse."""
        raise TypeError(
            "independent draws have no sparse transition matrix: every row is the stationary law."
        )

    def acceptance_rate(self, graph: Graph, objective: Any = None) -> float:
        """The chance that two draws differ, 1 − Σ π²."""
        return float(1.0 - np.sum(self.stationary(graph, objective) ** 2))


def _without_sender(token: Arrays) -> Arrays:
    return {name: array for name, array in token.items() if name != "sender"}


def _reduced(P: Vector) -> Vector:
    """The stationary law of a dense chain by state reduction (Grassmann, Taksar & Heyman 1985).

    Nothing is subtracted, so no digit is lost however slowly the chain mixes. Changes P.
    """
    count = len(P)
    for last in range(count - 1, 0, -1):
        P[:last, last] /= P[last, :last].sum()
        P[:last, :last] += np.outer(P[:last, last], P[last, :last])
    law = np.ones(count)
    for node in range(1, count):
        law[node] = law[:node] @ P[:node, node]
    return np.asarray(law / law.sum())
