"""The weighted walk (Algorithm 2), and what it follows once nodes have released (Algorithm 3)."""

from __future__ import annotations

from dataclasses import dataclass, field, fields
from typing import TYPE_CHECKING, Any, ClassVar, Literal

import numpy as np

from walklearn.graphs import Graph
from walklearn.problem import Problem
from walklearn.problem.smoothness import check_exact
from walklearn.walks.disclosure import Shown
from walklearn.walks.metropolis import Metropolis, positive, smoothness_of_nodes
from walklearn.walks.walk import WALKS, Generators, Vector

if TYPE_CHECKING:
    from walklearn.privacy.mechanism import Mechanism

Reweight = Literal["released", "as-printed"]


@WALKS.register
@dataclass(frozen=True, eq=False, repr=False)
class Weighted(Metropolis):
    """Algorithm 2: nodes are visited in proportion to their importance.

    Parameters
    ----------
    importance
        Any positive number per node; by default L_i, the smoothness of f_i. The gradient is
        divided by it, so that the estimate stays unbiased.
    privacy
        A mechanism that releases the importance (Algorithm 3). Each node draws its R_i once,
        tells its neighbours that, and the walk follows R. `realise` makes that draw.
    reweight
        "released" divides the gradient by R_i, which is unbiased for every draw; "as-printed"
        divides by the true importance, as the paper has it, which for one draw minimises Σ (R_i
        / L_i) f_i instead.
    shrink
        Whether to follow released values that are moved towards the midpoint of the bounds
        (`privacy.shrunk`): the more noise there is, the farther. It costs no privacy, and a
        small R_i that is due to noise no longer makes the steps of its node long.
    bounds
        The public bounds agreed upon; a mechanism made for others is refused.
    public
        Your word that a given importance does not depend on the nodes' rows; without it no
        privacy is claimed for a walk that tells it.
    laziness
        The probability of staying put before anything is proposed, in [0, 1).

    Examples
    --------
    >>> from walklearn import graphs
    >>> Weighted(importance=[1.0, 2.0, 3.0]).stationary(graphs.ring(3)).round(3)
    array([0.167, 0.333, 0.5  ])
    """

    name: ClassVar[str] = "weighted"
    importance: Vector | None = None
    privacy: Mechanism | None = field(default=None, kw_only=True)
    reweight: Reweight = field(default="released", kw_only=True)
    shrink: bool = field(default=False, kw_only=True)
    bounds: tuple[float, float] | None = field(default=None, kw_only=True)
    public: bool = field(default=False, kw_only=True)
    announced_numbers: ClassVar[int] = 2  # the degree and the importance

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.importance is not None:
            object.__setattr__(self, "importance", positive(np.array(self.importance, float)))
        if self.reweight not in ("released", "as-printed"):
            raise ValueError(f'reweight must be "released" or "as-printed", got {self.reweight!r}.')
        if self.privacy is not None:
            _check_mechanism(self.privacy, self.bounds)
        elif type(self) is Weighted and (self.bounds or self.shrink or self.reweight != "released"):
            raise ValueError(
                "bounds, shrink and reweight are about a release: pass privacy=... with them."
            )
        if self.public and (self.importance is None or self.privacy is not None):
            raise ValueError("public=True is about a given importance that is told as it is.")

    @property
    def shown(self) -> Shown:
        """The importance, unless it is public; by the mechanism, if there is one."""
        return self._shown(self.privacy)

    def _shown(self, mechanism: Mechanism | None) -> Shown:
        scaled_by = 'reweight="as-printed"' if self.reweight == "as-printed" else ""
        return Shown(not self.public, mechanism, scaled_by, instead='reweight="released"')

    def weight(self, importance: float, degree: int) -> float:
        """The importance."""
        return importance

    @property
    def is_private(self) -> bool:
        """Whether the importance still has to be released; see `realise`."""
        return self.privacy is not None

    def realise(
        self, graph: Graph, problem: Problem | None, generator: Generators | None = None
    ) -> Metropolis:
        """The walk after every node has released its importance once.

        Without a generator the noise comes from the operating system's entropy; with a list of
        them, each node draws from its own.
        """
        if self.privacy is None:
            return self
        true = self._importance(graph, problem)
        if self.importance is None and problem is not None:
            # A relay has nothing of its own; another node's value must not be released again.
            held = np.diff(problem.offsets)
            if problem.is_sparse and getattr(self.privacy, "protect", "node") == "rows":
                check_exact(int(held.max()), problem.dimension)
            relays = held == 0
            true = np.where(relays, self.privacy.bounds[0], problem.exact_smoothness)
        released = _released(self.privacy, true, generator)
        if self.shrink:
            from walklearn.privacy.comparison import shrunk

            released = shrunk(self.privacy, released)
        return ReleasedWeighted(
            released,
            true_importance=true,
            mechanism=self.privacy,
            reweight=self.reweight,
            shrink=self.shrink,
            outside=self.privacy.outside(true),
            laziness=self.laziness,
        )

    def visit_weights(self, graph: Graph, problem: Problem | None = None) -> Vector:
        """The given importance, or L_i."""
        if self.is_private:
            raise TypeError(
                "this walk follows what the nodes will release, which has not been drawn yet: "
                "draw it first with walk.realise(graph, problem, generator)."
            )
        return self._importance(graph, problem)

    def _importance(self, graph: Graph, problem: Problem | None) -> Vector:
        if self.importance is None:
            return smoothness_of_nodes(graph, problem, "Weighted()")
        if self.importance.shape != (graph.node_count,):
            raise ValueError(
                f"importance must hold one number per node: the graph has {graph.node_count} "
                f"nodes, importance has shape {self.importance.shape}."
            )
        return self.importance

    def divisors(self, graph: Graph, problem: Problem | None = None) -> Vector:
        """v_i."""
        return self.visit_weights(graph, problem)

    def __setstate__(self, state: dict[str, Any]) -> None:
        """Freeze the arrays, after unpickling too, so that they cannot be written to."""
        self.__dict__.update(state)
        for value in state.values():
            if isinstance(value, np.ndarray):
                value.setflags(write=False)

    def __eq__(self, other: object) -> bool:
        return type(other) is type(self) and all(
            np.array_equal(mine, theirs)
            if isinstance(mine, np.ndarray)
            else mine is theirs
            if theirs is None or isinstance(theirs, np.ndarray)
            else mine == theirs
            for mine, theirs in zip(_values(self), _values(other), strict=True)
        )

    def __hash__(self) -> int:
        return hash(
            (type(self), *(v.tobytes() if isinstance(v, np.ndarray) else v for v in _values(self)))
        )


@dataclass(frozen=True, eq=False, repr=False)
class ReleasedWeighted(Weighted):
    """A private weighted walk after its one draw: `importance` is the released R.

    Parameters
    ----------
    true_importance
        What was released, which only "as-printed" looks at.
    mechanism
        What it was released by.
    outside
        How many nodes had a value outside the public bounds, clamped before the release.
    importance
        The released values R.
    laziness
        The probability of staying put before anything is proposed, in [0, 1).
    privacy
        The mechanism that the walk was made with.
    reweight
        As for `Weighted`.
    shrink
        As for `Weighted`.
    bounds
        As for `Weighted`.
    public
        As for `Weighted`.

    Examples
    --------
    >>> from walklearn import Problem, graphs, losses, privacy
    >>> problem = Problem([[1.0], [1.2], [1.4]], [1.0, 2.0, 3.0], loss=losses.Squared())
    >>> walk = Weighted(privacy=privacy.Laplace(0.1, bounds=(1.0, 9.0)))
    >>> drawn = walk.realise(graphs.ring(3), problem, np.random.default_rng(1))
    >>> type(drawn).__name__, bool(drawn.importance.min() >= 1.0), drawn.outside
    ('ReleasedWeighted', True, 0)
    """

    true_importance: Vector = field(kw_only=True)
    mechanism: Mechanism = field(kw_only=True)
    outside: int = field(default=0, kw_only=True)

    @property
    def shown(self) -> Shown:
        """What was released."""
        return self._shown(self.mechanism)

    def divisors(self, graph: Graph, problem: Problem | None = None) -> Vector:
        """R_i, or as printed L_i."""
        released = self.visit_weights(graph, problem)
        return released if self.reweight == "released" else self.true_importance


def _released(mechanism: Mechanism, values: Vector, generator: Generators | None) -> Vector:
    if generator is None or isinstance(generator, np.random.Generator):
        return mechanism.release(values, generator)
    each = zip(values, generator, strict=True)
    return np.array([mechanism.release(value, own) for value, own in each])


def _values(walk: Any) -> list[Any]:
    return [getattr(walk, item.name) for item in fields(walk)]


def _check_mechanism(mechanism: Mechanism, bounds: tuple[float, float] | None) -> None:
    from walklearn.privacy.mechanism import Mechanism

    if not isinstance(mechanism, Mechanism):
        raise TypeError(
            f"privacy must be a mechanism, such as privacy.calibrate(...) gives, got {mechanism!r}."
        )
    if bounds is not None and tuple(bounds) != tuple(mechanism.bounds):
        raise ValueError(
            f"the mechanism is made for values in {mechanism.bounds}, but the walk's public bounds "
            f"are {tuple(bounds)}. Calibrate the mechanism for the walk's bounds."
        )
    if mechanism.clamp is None and not mechanism.is_positive:
        raise ValueError(
            f"an unclamped {mechanism.name} mechanism can release values of 0 or less, which a "
            "walk cannot follow. Leave its clamp at the public bounds."
        )
