"""Connectedness of graphs, and bipartite graphs."""

from collections.abc import Sequence
from typing import Any, NoReturn

import numpy as np
from numpy.typing import NDArray

from walklearn.graphs.sparse_rows import IndexArray, adjacency_matrix, check_size
from walklearn.wording import join_names

FEW_NODES = 1000  # so few are searched faster than SciPy loads


class DisconnectedGraphError(ValueError):
    """A graph is not connected.

    Parameters
    ----------
    message
        The message for the user.
    component_count, largest_component
        The number of connected components, and the number of nodes of the largest one.

    Examples
    --------
    >>> from walklearn.graphs import from_edges
    >>> from_edges([(0, 1), (2, 3)])
    Traceback (most recent call last):
        ...
    walklearn.graphs.connectivity.DisconnectedGraphError: the graph is not ...
    """

    def __init__(self, message: str, component_count: int = 0, largest_component: int = 0) -> None:
        super().__init__(message)
        self.component_count = component_count
        self.largest_component = largest_component


def refuse_disconnected(
    labels: NDArray[np.int32], hint: str, names: Sequence[Any] | None = None
) -> NoReturn:
    """Raise a DisconnectedGraphError that names the nodes outside the largest component."""
    sizes = np.bincount(labels)
    called: Sequence[Any] = range(labels.size) if names is None else names
    inside = labels == sizes.argmax()
    apart = [called[node] for node in np.flatnonzero(~inside).tolist()]
    raise DisconnectedGraphError(
        f"the graph is not connected: it has {sizes.size} components, the largest with "
        f"{sizes.max()} of {labels.size} nodes. No path leads from node "
        f"{called[int(inside.argmax())]!r} to {join_names(apart, 5)}. {hint}",
        sizes.size,
        int(sizes.max()),
    )


def component_labels(indptr: IndexArray, indices: IndexArray) -> NDArray[np.int32]:
    """Number the connected component of every node; all 0 when there is only one."""
    check_size(indptr.size - 1, indices.size)
    connected = np.zeros(indptr.size - 1, dtype=np.int32)
    if indptr.size <= FEW_NODES and _reaches_all(indptr, indices):
        return connected
    from scipy.sparse.csgraph import breadth_first_order, connected_components

    links = adjacency_matrix(*(array.astype(np.int32, copy=False) for array in (indptr, indices)))
    if breadth_first_order(links, 0, return_predecessors=False).size == connected.size:
        return connected  # much faster than numbering the components
    labels: NDArray[np.int32] = connected_components(links, directed=False)[1]
    return labels


def _reaches_all(indptr: IndexArray, indices: IndexArray) -> bool:
    """True if every node can be reached from node 0; for a few nodes, without SciPy."""
    starts, reached, waiting = indptr.tolist(), {0}, [0]
    while waiting and len(reached) < len(starts) - 1:
        node = waiting.pop()
        new = set(indices[starts[node] : starts[node + 1]].tolist()) - reached
        reached |= new
        waiting += new
    return len(reached) == len(starts) - 1


def is_two_sided(indptr: IndexArray, indices: IndexArray) -> bool:
    """True if a connected graph splits into two sides with all edges between them."""
    from scipy.sparse.csgraph import breadth_first_order

    # In a breadth-first tree every node takes the side opposite its parent's; the graph is
    # bipartite when the other edges cross too. Doubling jumps climb the tree in log(depth)
    # rounds, where a loop over levels would take a million on a long ring.
    _, parent = breadth_first_order(adjacency_matrix(indptr, indices), 0)
    parent[0] = 0
    side = np.ones(parent.size, dtype=np.bool_)
    side[0] = False
    while parent.any():
        side ^= side[parent]
        parent = parent[parent]
    return bool((np.repeat(side, np.diff(indptr)) != side[indices]).all())
