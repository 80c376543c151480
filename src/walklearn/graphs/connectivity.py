"""Whether a token can reach every node, and whether it then alternates between two sides.

scipy does the search but counts in int32 only; where that is too small the rows are searched
block by block.

>>> component_labels(np.array([0, 1, 2, 2]), np.array([1, 0])).tolist()
[0, 0, 1]
"""

from typing import TYPE_CHECKING, NoReturn

import numpy as np
from numpy.typing import NDArray

from walklearn.graphs.sparse_rows import (
    IndexArray,
    check_node_count,
    index_type,
    row_blocks,
    row_of_each_entry,
)

if TYPE_CHECKING:
    from scipy.sparse import csr_array


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
    check_node_count(indptr.size - 1)
    if indptr.size <= FEW_NODES and _all_reached(indptr, indices):
        return np.zeros(indptr.size - 1, dtype=np.int32)
    if index_type(indptr, indices) is np.int32:
        links = _links(*(array.astype(np.int32, copy=False) for array in (indptr, indices)))
        if _reached_from_first(links) == indptr.size - 1:  # far quicker than to number components
            return np.zeros(indptr.size - 1, dtype=np.int32)
        return _labels(links)
    return _labels_block_by_block(indptr, indices)


def _all_reached(indptr: IndexArray, indices: IndexArray) -> bool:
    """Whether a token that starts at node 0 can get everywhere; for a few nodes, without SciPy."""
    seen = np.zeros(indptr.size - 1, dtype=np.bool_)
    waiting = [0] if seen.size else []
    seen[waiting] = True
    while waiting:
        node = waiting.pop()
        near = indices[indptr[node] : indptr[node + 1]]
        new = near[~seen[near]]
        seen[new] = True
        waiting += new.tolist()
    return bool(seen.all())


def _labels_block_by_block(indptr: IndexArray, indices: IndexArray) -> NDArray[np.int32]:
    """Join what each block of rows joins; the components so far are the nodes of the next."""
    from scipy.sparse import csr_array

    nodes = indptr.size - 1
    labels = np.arange(nodes, dtype=np.int32)
    for start, stop in row_blocks(indptr):
        rows = labels[start + row_of_each_entry(indptr[start : stop + 1])]
        columns = labels[indices[indptr[start] : indptr[stop]]]
        ones = np.ones(rows.size, dtype=np.float64)
        labels = _labels(csr_array((ones, (rows, columns)), shape=(nodes, nodes)))[labels]
    # Numbers that no node has any more were skipped; close the gaps, in the same order.
    return np.unique(labels, return_inverse=True)[1].astype(np.int32)


def _links(indptr: IndexArray, indices: IndexArray) -> "csr_array[np.float64, tuple[int, int]]":
    """The rows as scipy searches them: each entry is 1, and all are the same number in memory."""
    from scipy.sparse import csr_array

    ones = np.broadcast_to(np.float64(1.0), indices.shape)
    links: csr_array[np.float64, tuple[int, int]]
    links = csr_array((ones, indices, indptr), shape=(indptr.size - 1, indptr.size - 1))
    return links


def _reached_from_first(links: "csr_array[np.float64, tuple[int, int]]") -> int:
    """How many nodes a token that starts at node 0 can get to."""
    from scipy.sparse.csgraph import breadth_first_order

    return int(breadth_first_order(links, 0, directed=True, return_predecessors=False).size)


def _labels(matrix: "csr_array[np.float64, tuple[int, int]]") -> NDArray[np.int32]:
    from scipy.sparse.csgraph import connected_components

    labels: NDArray[np.int32] = connected_components(matrix, directed=False)[1]
    return labels


def is_two_sided(indptr: IndexArray, indices: IndexArray) -> bool:
    """Whether a connected graph splits in two sides with all edges across."""
    if indices.dtype != np.int32:
        return _double_cover_is_in_two(indptr, indices)
    from scipy.sparse.csgraph import breadth_first_order

    # In a breadth-first tree every node takes the side opposite its parent's; the graph is
    # bipartite when the other edges cross too. Doubling jumps climb the tree in log(depth)
    # rounds, where a loop over levels would take a million on a long ring.
    _, parent = breadth_first_order(_links(indptr, indices), 0, directed=True)
    parent[0] = 0
    side = np.ones(parent.size, dtype=np.bool_)
    side[0] = False
    while parent.any():
        side ^= side[parent]
        parent = parent[parent]
    return bool((np.repeat(side, np.diff(indptr)) != side[indices]).all())


def _double_cover_is_in_two(indptr: IndexArray, indices: IndexArray) -> bool:
    """Whether a walk that changes sheets at every step never meets its start on the other sheet.

    This takes nothing but connected components, but up to ten times as long as the search above.
    """
    nodes = indptr.size - 1
    two_sheets = np.concatenate([indptr, indptr[1:] + indices.size])
    return bool(component_labels(two_sheets, np.concatenate([indices + nodes, indices])).any())
