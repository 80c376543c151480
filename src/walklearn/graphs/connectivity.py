"""Whether a token can reach every node, and whether it then alternates between two sides.

>>> component_labels(np.array([0, 1, 2, 2]), np.array([1, 0])).tolist()
[0, 0, 1]
"""

from typing import NoReturn

import numpy as np
from numpy.typing import NDArray

from walklearn.graphs.sparse_rows import IndexArray, adjacency_matrix, check_size

FEW_NODES = 1000  # so many are searched sooner than SciPy's search is loaded


class DisconnectedGraphError(ValueError):
    """A graph that should be connected falls into pieces.

    Parameters
    ----------
    message
        What the user is told.
    component_count
        How many pieces there are.
    largest_component
        How many nodes the largest piece has.

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


def refuse_disconnected(labels: NDArray[np.int32], hint: str) -> NoReturn:
    """Say in how many pieces the graph falls, how big they are, and what to do."""
    sizes = np.bincount(labels)
    largest = int(sizes.max())
    message = (
        f"the graph is not connected: it has {sizes.size} pieces, "
        f"the largest with {largest} of {labels.size} nodes"
    )
    alone = np.flatnonzero(sizes[labels] == 1)
    if alone.size:
        more = ", ..." if alone.size > 5 else ""
        names = ", ".join(map(str, alone[:5])) + more
        message += f"; without any neighbour: {alone.size} of them (node {names})"
    raise DisconnectedGraphError(f"{message}. {hint}", sizes.size, largest)


def component_labels(indptr: IndexArray, indices: IndexArray) -> NDArray[np.int32]:
    """Number the connected component of every node; all 0 when there is only one."""
    check_size(indptr.size - 1, indices.size)
    connected = np.zeros(indptr.size - 1, dtype=np.int32)
    if indptr.size <= FEW_NODES and _all_reached(indptr, indices):
        return connected
    from scipy.sparse.csgraph import breadth_first_order, connected_components

    links = adjacency_matrix(*(array.astype(np.int32, copy=False) for array in (indptr, indices)))
    if breadth_first_order(links, 0, return_predecessors=False).size == connected.size:
        return connected  # much faster than numbering the components
    labels: NDArray[np.int32] = connected_components(links, directed=False)[1]
    return labels


def _all_reached(indptr: IndexArray, indices: IndexArray) -> bool:
    """True if every node can be reached from node 0; for a few nodes, without SciPy."""
    starts, seen, waiting = indptr.tolist(), {0}, [0]
    while waiting and len(seen) < len(starts) - 1:
        node = waiting.pop()
        new = set(indices[starts[node] : starts[node + 1]].tolist()) - seen
        seen |= new
        waiting += new
    return len(seen) == len(starts) - 1


def is_two_sided(indptr: IndexArray, indices: IndexArray) -> bool:
    """Whether a connected graph splits in two sides with all edges across."""
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
