"""Base of all walks: the rule by which the holder of the token chooses the next node.

A walk has no access to the model. Of its methods only `announce`, and the tables that a simulation
computes for all nodes at once, read the objective; so a path can be computed before the updates
along it, and what a walk reveals about rows is what it announces.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable, Sequence
from typing import Any, ClassVar, NamedTuple, Self

import numpy as np
from numpy.typing import NDArray

from walklearn.arrays import Arrays, Specs, Vector
from walklearn.graphs import Graph
from walklearn.graphs.sparse_rows import SparseMatrix
from walklearn.parts import Part, is_current
from walklearn.registry import Registry
from walklearn.walks.disclosure import Disclosure
from walklearn.walks.markov import StationaryUnknownError

# One generator for all nodes, or one for each.
Generators = np.random.Generator | Sequence[np.random.Generator]


class View(NamedTuple):
    """The holder's knowledge of the network during a visit.

    Parameters
    ----------
    node
        The holder of the token.
    nodes
        N, the number of nodes in the network.
    visits
        The number of earlier visits of this token, to any node.
    slot
        The number of the token; 0 if there is only one.
    neighbours
        The neighbours in ascending order. On a real node also those that do not answer: if the
        walk chooses one of them, the token stays.
    own_announcement
        The numbers that the holder announced before the walk.
    announced
        For each neighbour, in the same order, the numbers that it announced.
    ask
        Returns the walk's state at a neighbour, for a question and an answer. Simulations only.
    neighbours_of
        Returns the neighbours of any node, for jumps of several hops. Simulations only.

    Examples
    --------
    >>> from walklearn import graphs, walks
    >>> view = walks.view_of(walks.Uniform(), graphs.star(4), node=1)
    >>> view.neighbours, view.own_announcement, view.announced[0]
    (array([0], dtype=int32), (1.0,), (0.3333333333333333,))
    """

    node: int
    nodes: int
    visits: int
    slot: int
    neighbours: NDArray[Any]
    own_announcement: tuple[float, ...]
    announced: Sequence[tuple[float, ...]]
    ask: Callable[[int], Arrays]
    neighbours_of: Callable[[int], NDArray[Any]]


class Hop(NamedTuple):
    """The next node, and the walk's new arrays.

    Parameters
    ----------
    node
        The next node; the holder itself if the token stays.
    messages
        The number of messages that carry the token: 0 if it stays, more than 1 for a jump.
    token
        The walk's arrays on the token.
    state
        The walk's arrays at the holder.
    questions
        The number of other messages, questions and answers of one number each.

    Examples
    --------
    >>> from walklearn import graphs, walks
    >>> walk = walks.Uniform().bind(graphs.ring(5), None)
    >>> walk.hop(walks.view_of(walk, graphs.ring(5), node=0), {}, {}, np.array([0.9]))
    Hop(node=4, messages=1, token={}, state={}, questions=0)
    """

    node: int
    messages: int
    token: Arrays = {}  # noqa: RUF012 - never changed
    state: Arrays = {}  # noqa: RUF012 - never changed
    questions: int = 0


class Walk(Part):
    """Rule for the next node. A subclass needs `hop` only.

    Attributes
    ----------
    name
        The name in studies, plans and the command line, once the walk is registered in `WALKS`.
    compiled
        The name of the kernel for `hop`. It counts only if no subclass overrides `hop`, `weight` or
        the declared arrays.
    announced_numbers
        The numbers in an announcement that count as sent; by default all.

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
    announced_numbers: ClassVar[int | None] = None
    compiled: ClassVar[str | None] = None
    scale: ClassVar[Vector | None] = None  # the weight of each node, bound by a simulation
    table: ClassVar[Vector | None] = None  # the announcements of all nodes, bound by a simulation
    slow_stationary: ClassVar[bool] = False  # True if `stationary` may take longer than a run
    is_independent: ClassVar[bool] = False  # True if nodes are drawn without a graph
    is_biased: ClassVar[bool] = False  # True if weights do not correct its stationary distribution
    entrapment_cure: ClassVar[str] = "take walks.Simple(corrected=True), which never rejects"
    out_of_bounds = 0  # nodes whose value was outside the public bounds of a release

    def __init_subclass__(cls, **options: Any) -> None:
        for name in ("scale", "table"):  # bound by simulations
            if name in vars(cls).get("__annotations__", {}):
                raise TypeError(f"a walk cannot have a field named {name!r}. Use another name.")
        super().__init_subclass__(**options)

    @abstractmethod
    def hop(self, view: View, token: Arrays, state: Arrays, draws: Vector) -> Hop:
        """Choose the next node. Change no input array.

        Parameters
        ----------
        view
            The holder's knowledge of the network.
        token
            The arrays of `token_arrays`.
        state
            The arrays of `node_arrays`, at this node.
        draws
            Uniform numbers in [0, 1), as many as the property `draws` says.

        Returns
        -------
        Hop
            The next node, its cost and the new arrays.
        """

    @property
    def draws(self) -> int:
        """The number of uniform numbers per hop."""
        return 1

    def token_arrays(self, nodes: int) -> Specs:
        """Declare the walk's arrays on the token. They start at zero.

        Parameters
        ----------
        nodes
            N, the number of nodes.

        Returns
        -------
        tuple of ArraySpec
            None by default.
        """
        return ()

    def node_arrays(self, tokens: int) -> Specs:
        """Declare the walk's arrays at each node. They start at zero.

        Parameters
        ----------
        tokens
            The number of tokens.

        Returns
        -------
        tuple of ArraySpec
            None by default.
        """
        return ()

    def announce(
        self, objective: Any, node: int, degree: int, rng: np.random.Generator | None
    ) -> tuple[float, ...]:
        """Return the numbers that a node discloses to its neighbours, once, before the walk.

        Parameters
        ----------
        objective
            The objective, of which the node knows its own part.
        node
            The number of the node.
        degree
            The number of its neighbours.
        rng
            Source of simulated noise; None draws from the operating system's entropy.

        Returns
        -------
        tuple of float
            Empty by default.
        """
        return ()

    def weight(self, view: View, token: Arrays, state: Arrays) -> float:
        """Return the factor of the gradient at this visit; 0 if the node only forwards the token.

        Parameters
        ----------
        view, token, state
            As for `hop`, before the hop.

        Returns
        -------
        float
            1 by default, or the `gradient_scale` that a simulation has bound.
        """
        return 1.0 if self.scale is None else float(self.scale[view.node])

    def _announcements(self, graph: Graph, objective: Any, rng: Generators | None = None) -> Vector:
        """Return the announcements of all nodes: a line for each."""
        rngs = [rng] * graph.node_count if rng is None or isinstance(rng, GENERATOR) else rng
        lines = [
            self.announce(objective, node, int(degree), rngs[node])
            for node, degree in enumerate(graph.degrees)
        ]
        try:
            table = np.array(lines, dtype=np.float64)
        except (TypeError, ValueError):
            table = np.zeros(0)
        if table.ndim != 2 or not np.isfinite(table).all():
            raise ValueError(
                f"announce of {self!r} must return a tuple of finite numbers, as many at each "
                f"node. Node 0 announces {lines[0]!r}."
            )
        return table

    def bind(self, graph: Graph, objective: Any, mean: str = "exact") -> Walk:
        """Return the walk with the numbers that only a simulation knows; by default itself.

        Parameters
        ----------
        graph
            Communication graph.
        objective
            The objective.
        mean
            "exact" if gradients are scaled by the exact mean importance, "estimated" if the token
            estimates it.

        Returns
        -------
        Walk
            The walk, for use in this simulation only.
        """
        if type(self).gradient_scale is Walk.gradient_scale:
            return self
        return self.bound(scale=scale_of(self, graph, objective, mean))

    def gradient_scale(self, graph: Graph, objective: Any = None) -> Vector:
        """Return the exact weight of each node's gradient.

        Parameters
        ----------
        graph
            Communication graph.
        objective
            Source of L_i; walks that do not follow L_i need none.

        Returns
        -------
        array
            1 for each node by default.
        """
        return np.ones(graph.node_count)

    def stationary(self, graph: Graph, objective: Any = None) -> Vector:
        """Return the long-run share of the updates that each node makes.

        Parameters
        ----------
        graph
            Communication graph.
        objective
            Source of L_i; walks that do not follow L_i need none.

        Returns
        -------
        array
            One number for each node; they sum to one. A walk that does not know it raises a
            `StationaryUnknownError`.
        """
        raise StationaryUnknownError(f"the stationary distribution of {self!r} is not known.")

    def transition_matrix(self, graph: Graph, objective: Any = None) -> SparseMatrix:
        """Return P, the probability of each next node.

        Parameters
        ----------
        graph
            Communication graph.
        objective
            Source of L_i; walks that do not follow L_i need none.

        Returns
        -------
        csr_array
            Sparse, shape (N, N); rows sum to one. A walk without one raises a
            `StationaryUnknownError`: its
            next node depends on more than the present one, or can be any.
        """
        base = self.matrix_walk
        hint = "" if base is self else f" Ask its base walk instead: {base!r}."
        raise StationaryUnknownError(
            f"{self!r} has no sparse transition matrix over the nodes.{hint}"
        )

    def acceptance_rate(self, graph: Graph, objective: Any = None) -> float:
        """Return the long-run share of the steps that move the token: 1 − Σ π_i P_ii.

        Parameters
        ----------
        graph
            Communication graph.
        objective
            Source of L_i; walks that do not follow L_i need none.

        Returns
        -------
        float
            From 0 to 1.
        """
        walk = self.matrix_walk
        stays = walk.transition_matrix(graph, objective).diagonal()
        return float(walk.stationary(graph, objective) @ (1.0 - stays))

    @property
    def innermost(self) -> Walk:
        """The walk that this one builds on; itself if it stands alone."""
        return self

    @property
    def eigenvalue_note(self) -> str:
        """A sentence on the eigenvalues that stand for the walk; usually empty."""
        return ""

    @property
    def matrix_walk(self) -> Walk:
        """The walk whose transition matrix stands for this one; itself by default."""
        return self

    def with_innermost(self, inner: Walk) -> Walk:
        """Return the same walk, built on another one."""
        return inner

    def without_secrets(self) -> Walk:
        """Return the walk without numbers that depend on the rows and were not released."""
        return self

    def before_release(self) -> Walk:
        """Return the walk as it was before nodes released anything."""
        return self

    def bias_note(self, graph: Graph, has_noise: bool) -> str:
        """Return why the walk minimises another sum than f, if its weights do not correct it.

        Parameters
        ----------
        graph
            Communication graph.
        has_noise
            True if no model is best for every node.

        Returns
        -------
        str
            Empty if there is nothing to say.
        """
        return ""

    @property
    def disclosure(self) -> Disclosure | None:
        """The disclosure about the nodes' rows beside the model; None if it is not known.

        A walk that announces nothing discloses nothing. One that overrides a method with access to
        the objective has to say in the same class what it discloses.
        """
        return Disclosure()

    @property
    def disclosure_is_known(self) -> bool:
        """True if `disclosure` speaks for all methods that read the objective."""
        return self.disclosure is not None and is_current(type(self), "disclosure", *READ_OBJECTIVE)

    @property
    def is_private(self) -> bool:
        """True if the walk rests on a release that is still to be drawn."""
        return False

    @property
    def draws_announcements(self) -> bool:
        """True if announcements may be random: a subclass has overridden how they are made."""
        return not is_current(
            type(self), "_announcements", "announce", "announcement", "sample_release"
        )

    @property
    def numbers_sent(self) -> int:
        """The numbers that a node sends to each neighbour before the walk."""
        numbers = self.announced_numbers
        if numbers is None or not is_current(
            type(self), "announced_numbers", "announce", "announcement"
        ):
            return 0 if self.table is None else int(self.table.shape[1])
        return numbers

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

        Parameters
        ----------
        graph
            Communication graph.
        objective
            Source of L_i; walks that do not follow L_i take None.
        generator
            One for all nodes or a list with one for each, for a simulated release, which protects
            nobody. By default the noise comes from the operating system's entropy.

        Returns
        -------
        Walk
            A walk without a release to draw.
        """
        return self

    def with_announcements(self, table: Vector) -> Self:
        """Return the walk with the announcements of all nodes bound."""
        return self.bound(table=table)


GENERATOR = np.random.Generator
READ_OBJECTIVE = (
    "announce", "bind", "gradient_scale", "sample_release", "stationary", "_announcements",
    "_divisors", "_importance", "_own_importance",
)  # fmt: skip

# A class, or a function that makes a walk.
WALKS: Registry[Callable[..., Walk]] = Registry("walk")


class _Announced(Sequence[tuple[float, ...]]):
    """The announcements of some nodes, read from a table when they are asked for."""

    def __init__(self, table: Vector, nodes: NDArray[Any]) -> None:
        self._table, self._nodes = table, nodes

    def __getitem__(self, place: Any) -> Any:
        return tuple(self._table[self._nodes[place]].tolist())

    def __len__(self) -> int:
        return len(self._nodes)


def announcements_of(walk: Walk, graph: Graph, objective: Any) -> Vector:
    """Return the announcements that a simulation has bound to the walk, or announce now."""
    return walk._announcements(graph, objective) if walk.table is None else walk.table


def draw_walk(walk: Walk, graph: Graph, objective: Any, rng: Generators | None) -> Walk:
    """Return the walk with its release drawn and the announcements of all nodes bound.

    Parameters
    ----------
    walk
        The walk; one that is drawn already is returned itself.
    graph
        Communication graph.
    objective
        The objective.
    rng
        As for `sample_release`.

    Returns
    -------
    Walk
        The walk, for use on this graph only.
    """
    if walk.table is not None:
        return walk
    walk = walk.sample_release(graph, objective, rng)
    return walk.with_announcements(walk._announcements(graph, objective, rng))


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


def view_of(
    walk: Walk,
    graph: Graph,
    node: int,
    *,
    objective: Any = None,
    table: Vector | None = None,
    states: Callable[[int], Arrays] | None = None,
    visits: int = 0,
) -> View:
    """Return the view of a node in a simulation.

    Parameters
    ----------
    walk
        The walk, whose announcements are made unless `table` has them.
    graph
        Communication graph.
    node
        The holder.
    objective
        Source of the announcements.
    table
        The announcements of all nodes; by default those that a simulation has bound.
    states
        Returns the walk's state at a node; nothing by default.
    visits
        The number of earlier visits of the token.

    Returns
    -------
    View
        The holder's knowledge of the network.

    Examples
    --------
    >>> from walklearn import graphs, walks
    >>> view_of(walks.Simple(), graphs.ring(5), 0).neighbours
    array([1, 4], dtype=int32)
    """
    if table is None:
        table = announcements_of(walk, graph, objective)
    neighbours = graph.neighbours(node)
    return View(
        node,
        graph.node_count,
        visits,
        0,
        neighbours,
        tuple(table[node].tolist()),
        _Announced(table, neighbours),
        (lambda _: {}) if states is None else states,
        graph.neighbours,
    )
