"""The Metropolis walk, and two that do not depend on rows: simple and uniform (Algorithm 1)."""

from __future__ import annotations

from dataclasses import field
from typing import Any, ClassVar, Literal, Self

import numpy as np

from walklearn.arrays import Arrays, ArraySpec, Specs, Vector, with_entry
from walklearn.checks import check_choice, check_number
from walklearn.graphs import Graph
from walklearn.graphs.graph import check_node_count
from walklearn.graphs.sparse_rows import SparseMatrix
from walklearn.objectives import Problem
from walklearn.parts import is_current
from walklearn.walks.disclosure import Disclosure
from walklearn.walks.gap_weights import check_mean, gap_weight
from walklearn.walks.markov import StationaryUnknownError, stochastic_matrix
from walklearn.walks.view import Hop, View
from walklearn.walks.walk import WALKS, Generators, Walk, scale_of

NEEDS_SMOOTHNESS = {"smoothness": "Use walks.Uniform(), or give the importance of each node."}


def propose(u: float, degree: int, laziness: float = 0.0) -> tuple[int, float] | None:
    """Propose a uniform neighbour; return None if the token stays without a proposal.

    The second number is a uniform threshold: the proposal is accepted if threshold times the node's
    own score is at most the neighbour's score.
    """
    if u < laziness or not degree:
        return None
    return pick((u - laziness) / (1.0 - laziness), degree)


def pick(u: float, choices: int) -> tuple[int, float]:
    """Split u ∈ [0, 1) into a uniform index below `choices` and a new uniform number."""
    scaled = u * choices
    index = min(int(scaled), choices - 1)
    return index, scaled - index


class Metropolis(Walk):
    """The Metropolis walk for given visit weights: all the paper's walks are of this kind.

    A node announces its score v_i / degree, and a proposal from i to j is accepted with
    min(1, score_j / score_i). A subclass defines `visit_weight`.

    Parameters
    ----------
    laziness
        The probability of staying before anything is proposed, in [0, 1). The paper's walks have no
        laziness and can have period 2, for example on an even ring; a laziness above 0 prevents it.

    Examples
    --------
    >>> from walklearn.graphs import star
    >>> P = Uniform().transition_matrix(star(4))       # the hub has 3 neighbours, each leaf has 1
    >>> P.toarray().round(3)[1]
    array([0.333, 0.667, 0.   , 0.   ])
    """

    laziness: float = field(default=0.0, kw_only=True)
    compiled: ClassVar[str | None] = "metropolis"
    declared_sent_length: ClassVar[int | None] = 1  # the degree
    min_announcement_length: ClassVar[int] = 1  # of an announcement
    uncounted: ClassVar[tuple[str, ...]] = ("inverse_sum",)

    def __post_init__(self) -> None:
        check_number("laziness", self.laziness, minimum=0.0, below=1.0)

    @property
    def disclosure(self) -> Disclosure | None:
        """Nothing about the rows."""
        return Disclosure()

    @property
    def is_compiled(self) -> bool:
        """True if a kernel does what the walk does."""
        return super().is_compiled and is_current(type(self), "compiled", "count_visit")

    @classmethod
    def is_local(cls) -> bool:
        """True if the nodes of a network can run the walk, each with its own knowledge."""
        has_gap_weights = getattr(cls, "reweight", None) == "gap"  # nodes store no last visits
        fixed = cls.inherits(*FIXED_ON_NODES) and not has_gap_weights
        return fixed and not cls.inherits("visit_weight")

    @classmethod
    def inherits(cls, *names: str) -> bool:
        """True if these attributes are those of `Metropolis`."""
        return all(getattr(cls, name) is getattr(Metropolis, name) for name in names)

    @classmethod
    def unbiased(cls, laziness: float = 0.0, has_memory: bool = False) -> Self:
        """Return the walk, which minimises f itself, whatever the degrees."""
        return cls(laziness=laziness)

    def visit_weight(self, importance: Any, degree: Any) -> Any:
        """Return v_i > 0, from a node's own importance or an announced one, and its degree.

        The importance is L_i, or R_i if that was released; 1 if the walk follows neither. The
        degree is at least 1. Works on numbers and, element by element, on arrays. Walks that the
        nodes of a network cannot run raise a TypeError.
        """
        raise TypeError(f"{self!r} has no visit_weight. Define it in the class.")

    def announcement(self, importance: Any, degree: Any) -> tuple[Any, ...]:
        """Return the announcement of a node: the score v_i / degree, and more in subclasses.

        Works on numbers and, element by element, on arrays. A degree of 0 counts as 1.
        """
        degree = np.maximum(degree, 1)
        return (self.visit_weight(importance, degree) / degree,)

    def announce(
        self, objective: Any, node: int, degree: int, rng: np.random.Generator | None
    ) -> tuple[float, ...]:
        """Return the `announcement` of the node's importance and degree."""
        return self.announcement(self._own_importance(objective, node, rng), degree)

    def _announce_all(self, graph: Graph, objective: Any, rng: Generators | None) -> Vector:
        if self.has_random_announcements:  # a subclass has its own `announce`
            return super()._announce_all(graph, objective, rng)
        columns = self.announcement(self._importance(graph, objective), graph.degrees)
        return np.column_stack([np.broadcast_to(each, graph.node_count) for each in columns])

    def _own_importance(self, objective: Any, node: int, rng: np.random.Generator | None) -> float:
        return 1.0

    def _importance(self, graph: Graph, objective: Any) -> Any:
        """Return `_own_importance` of all nodes."""
        return 1.0

    def with_announcements(self, table: Vector) -> Self:
        """Return the walk with the announcements of all nodes bound."""
        scores = table[:, 0] if table.shape[1] >= self.min_announcement_length else np.zeros(1)
        if not (scores > 0.0).all():
            node = int(scores.argmin())
            raise ValueError(
                f"announce of {self!r} must return at least {self.min_announcement_length} "
                f"numbers, the first of them positive. Node {node} announces {table[node]}."
            )
        return super().with_announcements(table)

    def hop(self, view: View, token: Arrays, state: Arrays, draws: Vector) -> Hop:
        """Propose a uniform neighbour, accept with min(1, score_j / score_i), else stay."""
        token, state = self.count_visit(view, token, state)
        proposal = propose(draws[0], len(view.neighbours), self.laziness)
        if proposal is not None:
            index, threshold = proposal
            # A comparison with NaN is false, so the token stays.
            if threshold * view.own_announcement[0] <= view.announced[index][0]:
                return Hop(int(view.neighbours[index]), 1, token, state)
        return Hop(view.node, 0, token, state)

    def token_arrays(self, nodes: int) -> Specs:
        """The sum of 1/s_i over the visits, unless the exact mean is bound or not used."""
        is_used = self.scale is None and not self.has_gap_weights
        return (ArraySpec("inverse_sum"),) if is_used else ()

    def node_arrays(self, tokens: int) -> Specs:
        """The number of each token's last visit if weights are gaps."""
        return (ArraySpec("last", (tokens,), "<i8"),) if self.has_gap_weights else ()

    def weight(self, view: View, token: Arrays, state: Arrays) -> float:
        """Return s̄ / s_i, with the exact mean if it is bound and else the token's estimate.

        At visit k the token estimates s̄ by k / Σ 1/s over its visits, this one included. If the
        walk visits nodes in proportion to s, the estimate converges to the mean over all nodes,
        which no node knows. The first weight is 1. Gap weights are those of `gap_weight`.
        """
        if self.has_gap_weights:
            return gap_weight(view, state["last"][view.slot])
        if self.scale is not None:
            return float(self.scale[view.node])
        divisor = self._own_divisor(view)
        mean = (view.visits + 1) / (float(token["inverse_sum"]) + 1.0 / divisor)
        return mean / divisor

    def count_visit(self, view: View, token: Arrays, state: Arrays) -> tuple[Arrays, Arrays]:
        """Return the arrays of token and node with this visit counted, for weights."""
        if self.has_gap_weights:
            last = with_entry(state["last"], view.slot, view.visits + 1)
            return token, {**state, "last": last}
        if self.scale is not None:
            return token, state
        inverse_sum = token["inverse_sum"] + 1.0 / self._own_divisor(view)
        return {**token, "inverse_sum": inverse_sum}, state

    def divisor(self, node: Any, degree: Any, announcement: Any) -> Any:
        """Return s_i > 0, by which the gradient is divided: 1 by default.

        The arguments are the number of a node, its degree (at least 1) and its announcement. Works
        on numbers and, element by element, on arrays.
        """
        return 1.0

    def _own_divisor(self, view: View) -> float:
        degree = max(len(view.neighbours), 1)
        return float(self.divisor(view.node, degree, view.own_announcement))

    def divisors(self, graph: Graph, objective: Any) -> Vector:
        """Return s_i of all nodes."""
        divisors: Any = 1.0
        if not self.inherits("divisor"):
            table = self.announcements(graph, objective)
            degrees = np.maximum(graph.degrees, 1)
            divisors = self.divisor(np.arange(graph.node_count), degrees, tuple(table.T))
        return np.broadcast_to(np.asarray(divisors, np.float64), graph.node_count)

    def gradient_scale(self, graph: Graph, objective: Any = None) -> Vector:
        """Return s̄ / s_i, with the divisors s."""
        divisors = self.divisors(graph, objective)
        return np.asarray(divisors.mean() / divisors)

    def bind(self, graph: Graph, objective: Any, mean: str = "exact") -> Self:
        """Return the walk with the exact weights, unless the token estimates their mean."""
        check_mean(self, mean)
        if mean == "estimated" and self.inherits("gradient_scale"):
            return self
        return self.bound(scale=scale_of(self, graph, objective, mean))

    def transition_matrix(self, graph: Graph, objective: Any = None) -> SparseMatrix:
        """P_ij = (1 − laziness) min(1, score_j / score_i) / deg_i, the rest on the diagonal."""
        self._check_known("transition_matrix")
        degrees = graph.degrees
        rows = np.repeat(np.arange(graph.node_count), degrees)
        score = self.announcements(graph, objective)[:, 0]
        accept = np.minimum(1.0, score[graph.indices] / score[rows])
        return stochastic_matrix(graph, (1.0 - self.laziness) * accept / degrees[rows])

    def stationary(self, graph: Graph, objective: Any = None) -> Vector:
        """Return v_i / Σ v."""
        self._check_known("stationary")
        weights = self.announcements(graph, objective)[:, 0] * np.maximum(graph.degrees, 1)
        return np.asarray(weights / weights.sum())

    def _check_known(self, name: str) -> None:
        if not is_current(type(self), name, "hop"):
            raise StationaryUnknownError(f"{self!r} has its own hop. Override {name} as well.")


@WALKS.register
class Simple(Metropolis):
    """Every proposal is accepted, so hubs are visited more often.

    Parameters
    ----------
    reweight
        None leaves gradients as they are, biased by degree. "degree" scales them by (mean degree) /
        degree. "gap" scales them by (updates since the last visit to the node) / N, and by 1 at the
        first visit. Both remove the bias, and "gap" discloses nothing.
    laziness
        The probability of staying before anything is proposed, in [0, 1).

    Examples
    --------
    >>> from walklearn import graphs
    >>> Simple().stationary(graphs.star(4)).round(3)
    array([0.5  , 0.167, 0.167, 0.167])
    """

    name: ClassVar[str] = "simple"
    reweight: Literal["degree", "gap"] | None = None
    declared_sent_length: ClassVar[int | None] = 0  # every score is 1

    def __post_init__(self) -> None:
        super().__post_init__()
        check_choice("reweight", self.reweight, (None, "degree", "gap"))

    @classmethod
    def unbiased(cls, laziness: float = 0.0, has_memory: bool = False) -> Self:
        """Return the walk with gradients scaled by the degree, unless the update has memory.

        Gap weights vary more, so they amplify noise on the model, and have no bound. Without noise
        both end at about the same loss (measured).
        """
        return cls(reweight=None if has_memory else "degree", laziness=laziness)

    def visit_weight(self, importance: Any, degree: Any) -> Any:
        """Return the degree."""
        return degree

    def divisor(self, node: Any, degree: Any, announcement: Any) -> Any:
        """Return 1, or the degree with weights.

        The mean weight at a node is (mean degree) / degree with gap weights too (Kac's lemma).
        """
        return 1.0 if self.reweight is None else degree

    def check_run(self, nodes: int, update: Any, updates: int) -> None:
        """Refuse gap weights with an update that ignores weights."""
        if self.has_gap_weights and update.converges:
            raise ValueError(
                f"{update!r} does not scale gradients, so {self!r} gives weights without effect. "
                "Use Simple(), or updates.Sgd(step_size)."
            )


@WALKS.register
class Uniform(Metropolis):
    """Algorithm 1: every node is visited equally often.

    Parameters
    ----------
    normalise
        True to scale gradients by L̄ / L_i although visits are uniform. The walk converges fast and
        releases nothing, but to the minimiser only if one model fits every node (interpolation).
    laziness
        The probability of staying before anything is proposed, in [0, 1).

    Examples
    --------
    >>> from walklearn import graphs
    >>> Uniform().stationary(graphs.star(4)).tolist()
    [0.25, 0.25, 0.25, 0.25]
    """

    name: ClassVar[str] = "uniform"
    normalise: bool = False

    @property
    def needs(self) -> dict[str, str]:
        """L_i if steps are normalised."""
        return NEEDS_SMOOTHNESS if self.normalise else {}

    @property
    def disclosure(self) -> Disclosure | None:
        """Nothing about the rows, unless steps are normalised."""
        return Disclosure(scaled_by=f"{self!r}" if self.normalise else "", remedy="Uniform()")

    def visit_weight(self, importance: Any, degree: Any) -> Any:
        """Return 1, whatever neighbours announce."""
        return 1.0

    def divisors(self, graph: Graph, objective: Any) -> Vector:
        """Return L_i if steps are normalised, else 1 for every node."""
        if not self.normalise:
            return super().divisors(graph, objective)
        return smoothness_of_nodes(graph, objective, "Uniform(normalise=True)")

    def bind(self, graph: Graph, objective: Any, mean: str = "exact") -> Self:
        """Return the bound walk; a token cannot estimate the mean that normalised steps use."""
        if self.normalise and mean == "estimated":
            raise ValueError(
                "the token of a uniform walk estimates the harmonic mean of L_i, but normalise=True"
                ' scales by the arithmetic mean. Use mean_importance="exact", or Weighted().'
            )
        return super().bind(graph, objective, mean)


FIXED_ON_NODES = (
    "announce", "hop", "weight", "gradient_scale", "token_arrays", "node_arrays", "draws",
)  # fmt: skip


def smoothness_of_nodes(graph: Graph, objective: Any, walk: str) -> Vector:
    """Return L_i of the objective's nodes. `walk` is the walk's name for error messages."""
    if objective is None:
        raise TypeError(f"{walk} needs the objective, the source of L_i. Pass it after the graph.")
    check_node_count(graph, objective)
    if has_row_smoothness(objective):
        constants = objective.importance
    else:
        constants = np.array([objective.smoothness(node) for node in range(objective.nodes)])
    return checked_importance(np.array(constants, float))


def has_row_smoothness(objective: Any) -> bool:
    """True if L_i is that of a `Problem`, computed from its rows."""
    return isinstance(objective, Problem) and type(objective).smoothness is Problem.smoothness


def checked_importance(importance: Vector) -> Vector:
    """Return the importance of each node, checked and frozen."""
    invalid = np.flatnonzero(~(np.isfinite(importance) & (importance > 0)))
    if importance.ndim != 1 or invalid.size:
        example = f": node {invalid[0]} has {importance.flat[invalid[0]]:g}" if invalid.size else ""
        raise ValueError(
            f"importance must be one positive finite number per node{example}. (L_i is 0 for a "
            "node whose rows are all zero when there is no penalty.)"
        )
    importance.setflags(write=False)
    return importance
