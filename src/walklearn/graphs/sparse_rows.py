"""Compressed sparse rows: make and check the two arrays of a graph.

The neighbours of node i are `indices[indptr[i]:indptr[i + 1]]`. Both arrays are int32:
half the memory traffic of int64, and the type that SciPy's graph algorithms take.
"""

from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np
from numpy.typing import ArrayLike, NDArray

if TYPE_CHECKING:
    from scipy.sparse import csr_array

IndexArray: TypeAlias = NDArray[np.signedinteger[Any]]
Integers: TypeAlias = NDArray[np.int64]
SparseMatrix: TypeAlias = "csr_array[np.float64, tuple[int, int]]"

FEW_PAIRS = 100_000
MAX_NODES = 2**31 - 2  # node numbers are int32, and i * nodes + j fits int64
MAX_ENTRIES = 2**31 - 1  # of `indices`, two for each edge


def row_of_each_entry(indptr: IndexArray) -> IndexArray:
    """Return the row that each entry of `indices` belongs to."""
    return np.repeat(np.arange(indptr.size - 1, dtype=indptr.dtype), np.diff(indptr))


def symmetric_rows(
    nodes: int, sources: IndexArray, targets: IndexArray
) -> tuple[IndexArray, IndexArray]:
    """Return sorted rows that hold each pair in both directions, once.

    SciPy converts pairs to rows by counting, in linear time, and the rows are sorted if the pairs
    are ordered by target, as those of `pairs` are. Sorting few pairs takes less time than importing
    SciPy.
    """
    if sources.size <= FEW_PAIRS:
        keys = np.concatenate([sources, targets]).astype(np.int64) * nodes
        keys += np.concatenate([targets, sources])
        keys.sort()  # np.unique hashes such numbers first, which is slower
        once = np.diff(keys, prepend=-1) > 0
        rows, columns = np.divmod(keys[once], nodes)
        ends = np.cumsum(np.bincount(rows, minlength=nodes))
        return np.append(0, ends).astype(np.int32), columns.astype(np.int32)
    from scipy.sparse import coo_array

    both_ends = np.concatenate([targets, sources]), np.concatenate([sources, targets])
    marks = np.ones(2 * sources.size, dtype=np.bool_)
    matrix = coo_array((marks, both_ends), shape=(nodes, nodes)).tocsr()
    return matrix.indptr, matrix.indices


def adjacency_matrix(indptr: IndexArray, indices: IndexArray) -> SparseMatrix:
    """Return the adjacency matrix; its data is read-only, a single 1.0 that is broadcast."""
    from scipy.sparse import csr_array  # nodes of a network run without SciPy

    nodes, ones = indptr.size - 1, np.broadcast_to(np.float64(1.0), indices.shape)
    matrix: SparseMatrix = csr_array((ones, indices, indptr), shape=(nodes, nodes))
    return matrix


def check_size(nodes: int, entries: int = 0) -> None:
    """Raise a ValueError for more nodes or edges than int32 can number."""
    if nodes > MAX_NODES:
        raise ValueError(f"a graph can have {MAX_NODES} nodes at most, got {nodes}.")
    if entries > MAX_ENTRIES:
        raise ValueError(f"a graph can have {MAX_ENTRIES // 2} edges at most, got {entries // 2}.")


def checked_rows(indptr: ArrayLike, indices: ArrayLike) -> tuple[Integers, Integers]:
    """Return sorted copies of given rows, after all checks but that the graph is connected."""
    starts, columns = _whole_numbers("indptr", indptr), _whole_numbers("indices", indices)
    nodes = starts.size - 1
    if nodes < 1:
        raise ValueError("a graph needs at least one node: indptr must have N + 1 >= 2 entries.")
    falls = bool((np.diff(starts) < 0).any())
    if starts[0] != 0 or starts[-1] != columns.size or falls:
        raise ValueError(
            f"indptr must rise from 0 to {columns.size}, the number of indices; it runs from "
            f"{starts[0]} to {starts[-1]}{' and falls in between' if falls else ''}."
        )
    check_size(nodes, columns.size)
    rows = row_of_each_entry(starts)
    check_edges(nodes, rows, columns)
    keys, reverse_keys = np.sort(rows * nodes + columns), np.sort(columns * nodes + rows)
    rows, columns = np.divmod(keys, nodes)
    repeated = np.append(keys[1:] == keys[:-1], False)
    refuse_edges(repeated, rows, columns, "occurs twice; keep one (or use from_edges)")
    if not np.array_equal(keys, reverse_keys):
        one_way = np.isin(keys, reverse_keys, assume_unique=True, invert=True)
        what = "has no reverse; give both directions (A + A.T), or use from_edges"
        refuse_edges(one_way, rows, columns, what)
    return starts, columns


def check_edges(nodes: int, sources: IndexArray, targets: IndexArray) -> None:
    """Raise a ValueError for an edge with an unknown node, or from a node to itself."""
    outside = (np.minimum(sources, targets) < 0) | (np.maximum(sources, targets) >= nodes)
    what = f"has a node that is not in 0..{nodes - 1}; number the nodes from 0"
    refuse_edges(outside, sources, targets, what)
    what = "is a self loop; remove it (a walk can stay anyway)"
    refuse_edges(sources == targets, sources, targets, what)


def refuse_edges(
    wrong: NDArray[np.bool_], sources: IndexArray, targets: IndexArray, what: str
) -> None:
    """Raise a ValueError that names the first edge marked as wrong."""
    if wrong.any():
        first = int(wrong.argmax())
        raise ValueError(f"the edge ({sources[first]}, {targets[first]}) {what}.")


def _whole_numbers(name: str, values: ArrayLike) -> Integers:
    array = np.asarray(values)
    if array.ndim != 1 or (array.size and not np.issubdtype(array.dtype, np.integer)):
        raise ValueError(
            f"{name} must be a one-dimensional array of integers, "
            f"got {array.ndim} dimensions of {array.dtype}."
        )
    return array.astype(np.int64)
