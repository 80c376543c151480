"""The input and the output of a hop: the holder's view of the network, and the next node."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

from numpy.typing import NDArray

from walklearn.arrays import Arrays, Vector
from walklearn.graphs import Graph

if TYPE_CHECKING:
    from walklearn.walks.walk import Walk


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
        The neighbours in ascending order. If one does not answer a real node, the token stays.
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
    >>> import numpy as np
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


class _Announced(Sequence[tuple[float, ...]]):
    """The announcements of some nodes, read from a table on demand."""

    def __init__(self, table: Vector, nodes: NDArray[Any]) -> None:
        self._table, self._nodes = table, nodes

    def __getitem__(self, index: Any) -> Any:
        return tuple(self._table[self._nodes[index]].tolist())

    def __len__(self) -> int:
        return len(self._nodes)


def view_of(
    walk: Walk,
    graph: Graph,
    node: int,
    *,
    objective: Any = None,
    table: Vector | None = None,
    states: Callable[[int], Arrays] = lambda _: {},
    visits: int = 0,
    slot: int = 0,
) -> View:
    """Return the view of a node in a simulation.

    Parameters
    ----------
    walk
        The walk.
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
    visits, slot
        The number of earlier visits of the token, and the number of the token.

    Returns
    -------
    View
        The holder's knowledge of the network.

    Examples
    --------
    >>> from walklearn import graphs, walks
    >>> walks.view_of(walks.Simple(), graphs.ring(5), 0).neighbours
    array([1, 4], dtype=int32)
    """
    if table is None:
        table = walk.announcements(graph, objective)
    neighbours = graph.neighbours(node)
    own_announcement, announced = tuple(table[node].tolist()), _Announced(table, neighbours)
    return View(
        node, graph.node_count, visits, slot, neighbours, own_announcement, announced, states,
        graph.neighbours,
    )  # fmt: skip
