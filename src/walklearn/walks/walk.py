"""Base of all walks: the rule by which the holder of the token chooses the next node.

A walk has no access to the model. Of its methods only `announce`, and the tables that a simulation
computes for all nodes at once, read the objective. So a path can be computed before the updates
along it, and a walk reveals nothing about the rows beyond its announcements.
"""

from __future__ import annotations

import math
from abc import abstractmethod
from collections.abc import Callable, Sequence
from typing import Any, ClassVar, Self

import numpy as np

from walklearn.arrays import Arrays, Specs, Vector
from walklearn.graphs import Graph
from walklearn.graphs.sparse_rows import SparseMatrix
from walklearn.parts import Part, is_current
from walklearn.registry import Registry
from walklearn.walks.disclosure import Disclosure
from walklearn.walks.gap_weights import check_mean
from walklearn.walks.markov import StationaryUnknownError
from walklearn.walks.view import Hop, View

# One generator for all nodes, or one for each.
Generators = np.random.Generator | Sequence[np.random.Generator]

METHODS_WITH_OBJECTIVE = (
    "announce", "bind", "divisors", "gradient_scale", "sample_release", "stationary",
    "_announce_all", "_importance", "_own_importance",
)  # fmt: skip


class Walk(Part):
    """Rule for the next node. A subclass needs `hop` only.

    Attributes
    ----------
    name
        The name in studies, plans and the command line, once the walk is registered in `WALKS`.
    compiled
        The name of the kernel for `hop`. It counts only if no subclass overrides `hop`, `weight` or
        the declared arrays.
    declared_sent_length
        The length of the part of an announcement that counts as sent; all of it by default.

    Examples
    --------
    >>> import walklearn as wl
    >>> class Clockwise(wl.Walk):
    ...     def hop(self, view, token, state, draws):
    ...         return wl.walks.Hop((view.node + 1) % view.nodes, 1)
    >>> X, y = wl.datasets.two_gaussians(10, dimension=2, seed=1)
    >>> run = wl.simulate(wl.Problem(X, y, penalty=1.0), wl.graphs.ring(10), Clockwise(),
    ...                   step_size=wl.PowerStep(0.1), steps=100, seed=1, engine="reference")
    >>> run.visits
    array([10, 10, 10, 10, 10, 10, 10, 10, 10, 10])
    """

    name: ClassVar[str]
    reversible: ClassVar[bool] = True
    declared_sent_length: ClassVar[int | None] = None
    compiled: ClassVar[str | None] = None
    scale: ClassVar[Vector | None] = None  # the weight of each node, bound by a simulation
    table: ClassVar[Vector | None] = None  # the announcements of all nodes, bound by a simulation
    slow_stationary: ClassVar[bool] = False  # True if `stationary` may take longer than a run
    is_independent: ClassVar[bool] = False  # True if nodes are drawn without a graph
    is_biased: ClassVar[bool] = False  # True if weights do not correct its stationary distribution
    out_of_bounds = 0  # the number of nodes whose value is outside the public bounds of a release

    def __init_subclass__(cls, **options: Any) -> None:
        for name in ("scale", "table"):  # bound by simulations
            if name in vars(cls).get("__annotations__", {}):
                raise TypeError(f"a walk cannot have a field named {name!r}. Use another name.")
        super().__init_subclass__(**options)

    @abstractmethod
    def hop(self, view: View, token: Arrays, state: Arrays, draws: Vector) -> Hop:
        """Choose the next node. Change no input array.

        `token` and `state` are the arrays that `token_arrays` and `node_arrays` declare. `draws`
        are uniform numbers in [0, 1), as many as the property `draws` says.
        """

    @property
    def draws(self) -> int:
        """The number of uniform numbers per hop."""
        return 1

    def token_arrays(self, nodes: int) -> Specs:
        """Declare the walk's arrays on the token: none by default. They start at zero."""
        return ()

    def node_arrays(self, tokens: int) -> Specs:
        """Declare the walk's arrays at each node: none by default. They start at zero."""
        return ()

    def announce(
        self, objective: Any, node: int, degree: int, rng: np.random.Generator | None
    ) -> tuple[float, ...]:
        """Return the numbers that a node discloses to its neighbours, once, before the walk.

        By default there are none. `degree` is the number of neighbours. `rng` is the source of
        simulated noise; if it is None, the operating system's entropy is used.
        """
        return ()

    def weight(self, view: View, token: Arrays, state: Arrays) -> float:
        """Return the factor of the gradient at this visit; 0 if the node only forwards the token.

        By default it is 1, or the `gradient_scale` that a simulation has bound. The arguments are
        those of `hop`, before the hop.
        """
        return 1.0 if self.scale is None else float(self.scale[view.node])

    def announcements(self, graph: Graph, objective: Any, rng: Generators | None = None) -> Vector:
        """Return the announcements of all nodes, one line each. Compute them if none are bound."""
        return self._announce_all(graph, objective, rng) if self.table is None else self.table

    def _announce_all(self, graph: Graph, objective: Any, rng: Generators | None) -> Vector:
        rngs = [rng] * graph.node_count if rng is None or isinstance(rng, GENERATOR) else rng
        announcements = [
            self.announce(objective, node, int(degree), rngs[node])
            for node, degree in enumerate(graph.degrees)
        ]
        try:
            table = np.array(announcements, dtype=np.float64)
        except (TypeError, ValueError):
            table = np.zeros(0)
        if table.ndim != 2 or not np.isfinite(table).all():
            raise ValueError(
                f"announce of {self!r} must return a tuple of finite numbers, as many at each "
                f"node. Node 0 announces {announcements[0]!r}."
            )
        return table

    @classmethod
    def unbiased(cls, laziness: float = 0.0, has_memory: bool = False) -> Self:
        """Return the walk with weights that make it minimise f itself, whatever the degrees.

        has_memory: True for an update with memory, which ignores weights.
        """
        if laziness:
            raise ValueError(f"{cls.__name__} has no laziness, got {laziness!r}. Leave it out.")
        return cls()

    def bind(self, graph: Graph, objective: Any, mean: str = "exact") -> Walk:
        """Return the walk with the numbers that only a simulation knows; by default itself.

        `mean` is "exact" if gradients are scaled by the exact mean importance, and "estimated" if
        the token estimates it.
        """
        check_mean(self, mean)
        if type(self).gradient_scale is Walk.gradient_scale:
            return self
        return self.bound(scale=scale_of(self, graph, objective, mean))

    def gradient_scale(self, graph: Graph, objective: Any = None) -> Vector:
        """Return the exact weight of each node's gradient: 1 by default."""
        return np.ones(graph.node_count)

    def stationary(self, graph: Graph, objective: Any = None) -> Vector:
        """Return the long-run share of the updates that each node makes.

        The objective is the source of L_i; walks that do not follow L_i need none. A walk without
        a known stationary distribution raises a `StationaryUnknownError`.
        """
        raise StationaryUnknownError(f"the stationary distribution of {self!r} is not known.")

    def coverage_bounds(self, nodes: int) -> tuple[float, float]:
        """Return proven upper bounds of the hops until every node is visited, and of a gap.

        A gap is the number of hops between two visits to a node. The bounds hold on connected
        graphs in which every neighbour answers. By default they are infinite.
        """
        return math.inf, math.inf

    def transition_matrix(self, graph: Graph, objective: Any = None) -> SparseMatrix:
        """Return P, sparse and of shape (N, N): the probability of each next node.

        Walks without a sparse P raise a `StationaryUnknownError`: their next node depends on
        earlier nodes, or can be any node.
        """
        base = self.matrix_walk
        hint = "" if base is self else f" Ask its base walk instead: {base!r}."
        raise StationaryUnknownError(
            f"{self!r} has no sparse transition matrix over the nodes.{hint}"
        )

    def acceptance_rate(self, graph: Graph, objective: Any = None) -> float:
        """Return the long-run share of the steps that move the token: 1 − Σ π_i P_ii."""
        walk = self.matrix_walk
        stays = walk.transition_matrix(graph, objective).diagonal()
        return float(walk.stationary(graph, objective) @ (1.0 - stays))

    @property
    def innermost(self) -> Walk:
        """The walk that this one builds on; itself if it stands alone."""
        return self

    def with_innermost(self, inner: Walk) -> Walk:
        """Return the same walk, built on another one."""
        return inner

    @property
    def has_gap_weights(self) -> bool:
        """True if a gradient is scaled by the gap since the last visit, see `gap_weights`."""
        return getattr(self.innermost, "reweight", None) == "gap"

    def check_run(self, nodes: int, update: Any, updates: int) -> None:
        """Raise a ValueError if the walk does not suit the network's size, or the update.

        `updates` is the number of planned updates; 0 if unknown.
        """

    @property
    def matrix_walk(self) -> Walk:
        """The walk whose transition matrix stands for this one: itself if it has a matrix."""
        has_matrix = type(self).transition_matrix is not Walk.transition_matrix
        return self if has_matrix else self.innermost

    def without_release(self) -> Walk:
        """Return the walk without its release."""
        return self

    @property
    def disclosure(self) -> Disclosure | None:
        """The information about rows that the walk discloses beside the model; None if unknown.

        A walk that announces nothing discloses nothing. One that overrides a method with access to
        the objective has to state in the same class what it discloses.
        """
        return Disclosure()

    @property
    def disclosure_is_known(self) -> bool:
        """True if `disclosure` covers all methods that read the objective."""
        return self.disclosure is not None and is_current(
            type(self), "disclosure", *METHODS_WITH_OBJECTIVE
        )

    @property
    def is_private(self) -> bool:
        """True if the walk depends on a release that is still to be drawn."""
        return False

    @property
    def has_random_announcements(self) -> bool:
        """True if announcements may be random, because a subclass overrides their computation."""
        return not is_current(
            type(self), "_announce_all", "announce", "announcement", "sample_release"
        )

    @property
    def sent_length(self) -> int:
        """The length of the announcement that a node sends to each neighbour before the walk."""
        length = self.declared_sent_length
        if length is None or not is_current(
            type(self), "declared_sent_length", "announce", "announcement"
        ):
            return 0 if self.table is None else int(self.table.shape[1])
        return length

    @property
    def release(self) -> Vector | None:
        """The numbers that the nodes have released; None if they released none."""
        return None

    @property
    def is_compiled(self) -> bool:
        """True if a kernel does exactly what `hop` and `weight` do."""
        written_for = ("hop", "weight", "token_arrays", "node_arrays", "draws")
        return self.compiled is not None and is_current(type(self), "compiled", *written_for)

    def sample_release(
        self, graph: Graph, objective: Any, generator: Generators | None = None
    ) -> Walk:
        """Return the walk with its release drawn; itself if there is nothing to release.

        A generator for all nodes, or a list with one for each, makes a simulated release, which
        protects nobody. By default the noise comes from the operating system's entropy.
        """
        return self

    def with_announcements(self, table: Vector) -> Self:
        """Return the walk with the announcements of all nodes bound."""
        return self.bound(table=table)


GENERATOR = np.random.Generator

# A class, or a function that makes a walk.
WALKS: Registry[Callable[..., Walk]] = Registry("walk")


def draw_walk(walk: Walk, graph: Graph, objective: Any, rng: Generators | None) -> Walk:
    """Return the walk with its release drawn and the announcements of all nodes bound.

    A walk with bound announcements is returned unchanged. `rng` is as for `sample_release`.
    """
    if walk.table is not None:
        return walk
    walk = walk.sample_release(graph, objective, rng)
    return walk.with_announcements(walk.announcements(graph, objective, rng))


def scale_of(walk: Walk, graph: Graph, objective: Any, mean: str = "exact") -> Vector:
    """Return the `gradient_scale` of a walk, checked."""
    if mean == "estimated":
        raise ValueError(
            f"{walk!r} has its own gradient_scale, which the token cannot estimate. Use "
            'mean_importance="exact", or override `weight` instead.'
        )
    scale = np.asarray(walk.gradient_scale(graph, objective), dtype=np.float64)
    if scale.shape != (graph.node_count,) or not ((scale > 0.0) & np.isfinite(scale)).all():
        raise ValueError(
            f"gradient_scale of {walk!r} must return a positive finite number for each of the "
            f"{graph.node_count} nodes, got {scale!r}. Override `weight` for weights of 0."
        )
    return scale
