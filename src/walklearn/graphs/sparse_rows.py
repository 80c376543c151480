"""Compressed sparse rows: the two arrays a graph is kept in, and what rows from outside must be.

The neighbours of node i are `indices[indptr[i]:indptr[i + 1]]`. Both arrays are of int32, which
halves what a walk reads from memory and is what SciPy searches.

>>> row_of_each_entry(np.array([0, 1, 3, 4])).tolist()
[0, 1, 1, 2]
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
MAX_NODES = 2**31 - 2  # numbers and counts are int32; i * nodes + j then fits int64
MAX_ENTRIES = 2**31 - 1  # of `indices`, two for each edge


def row_of_each_entry(indptr: IndexArray) -> IndexArray:
    """The row each entry of `indices` belongs to."""
    return np.repeat(np.arange(indptr.size - 1, dtype=indptr.dtype), np.diff(indptr))


def symmetric_rows(
    nodes: int, sources: IndexArray, targets: IndexArray
) -> tuple[IndexArray, IndexArray]:
    """The rows in which each of these pairs is found from either end, once, in ascending order.

    SciPy puts entries into rows by counting them, in linear time. Pairs that come ordered by
    target, as those of `pairs` do, are in their places at once. A few pairs are sorted sooner than
    SciPy is loaded.
    """
    if sources.size <= FEW_PAIRS:
        places = np.concatenate([sources, targets]).astype(np.int64) * nodes
        places += np.concatenate([targets, sources])
        places.sort()  # np.unique hashes such numbers first, which is slower
        once = np.diff(places, prepend=-1) > 0
        rows, columns = np.divmod(places[once], nodes)
        ends = np.cumsum(np.bincount(rows, minlength=nodes))
        return np.append(0, ends).astype(np.int32), columns.astype(np.int32)
    from scipy.sparse import coo_array

    both_ends = np.concatenate([targets, sources]), np.concatenate([sources, targets])
    marks = np.ones(2 * sources.size, dtype=np.bool_)
    both_ways = coo_array((marks, both_ends), shape=(nodes, nodes)).tocsr()
    return both_ways.indptr, both_ways.indices


def adjacency_matrix(indptr: IndexArray, indices: IndexArray) -> SparseMatrix:
    """Return the adjacency matrix. Its data is one broadcast 1.0 and cannot be written to."""
    from scipy.sparse import csr_array  # a node of a network has no graph, and no scipy

    nodes, ones = indptr.size - 1, np.broadcast_to(np.float64(1.0), indices.shape)
    matrix: SparseMatrix = csr_array((ones, indices, indptr), shape=(nodes, nodes))
    return matrix


def check_size(nodes: int, entries: int = 0) -> None:
    """Refuse more nodes or edges than int32 can number."""
    if nodes > MAX_NODES:
        raise ValueError(f"a graph can have {MAX_NODES} nodes at most, got {nodes}")
    if entries > MAX_ENTRIES:
        raise ValueError(f"a graph can have {MAX_ENTRIES // 2} edges at most, got {entries // 2}")


def checked_rows(indptr: ArrayLike, indices: ArrayLike) -> tuple[Integers, Integers]:
    """Sort the rows from outside and check all but connectedness, naming the first culprit."""
    starts, columns = _whole_numbers("indptr", indptr), _whole_numbers("indices", indices)
    _check_starts(starts, columns.size)
    nodes = starts.size - 1
    check_size(nodes, columns.size)
    rows = row_of_each_entry(starts)
    _check_neighbours(nodes, rows, columns)
    keys = np.sort(rows * nodes + columns)
    _check_pairs(nodes, keys, columns * nodes + rows)
    return starts, keys % nodes


def _whole_numbers(name: str, values: ArrayLike) -> Integers:
    """Copy a flat list of integers from outside into an int64 array."""
    array = np.asarray(values)
    if array.ndim != 1 or (array.size and not np.issubdtype(array.dtype, np.integer)):
        raise ValueError(
            f"{name} must be a one-dimensional array of integers, "
            f"got {array.ndim} dimensions of {array.dtype}"
        )
    return array.astype(np.int64)


def _check_starts(starts: Integers, entries: int) -> None:
    if starts.size < 2:
        raise ValueError("a graph needs at least one node: indptr must have N + 1 >= 2 entries")
    falls = bool((np.diff(starts) < 0).any())
    if starts[0] != 0 or starts[-1] != entries or falls:
        raise ValueError(
            f"indptr must rise from 0 to {entries}, the number of indices; it runs from "
            f"{starts[0]} to {starts[-1]}{' and falls in between' if falls else ''}"
        )


def _check_neighbours(nodes: int, rows: IndexArray, columns: Integers) -> None:
    first = _first_true((columns < 0) | (columns >= nodes))
    if first is not None:
        raise ValueError(
            f"node {rows[first]} has neighbour {columns[first]}, which is not in 0..{nodes - 1}; "
            "number the nodes from 0"
        )
    first = _first_true(rows == columns)
    if first is not None:
        raise ValueError(f"node {rows[first]} has a self loop; remove it (a walk can stay anyway)")


def _check_pairs(nodes: int, keys: Integers, reverse_keys: Integers) -> None:
    """Check the entries (i, j), as ascending keys i * nodes + j, against their reverses (j, i)."""
    first = _first_true(keys[1:] == keys[:-1])
    if first is not None:
        i, j = divmod(int(keys[first]), nodes)
        raise ValueError(f"node {i} lists neighbour {j} twice; keep one (or use from_edges)")
    if not np.array_equal(keys, np.sort(reverse_keys)):
        one_way = np.setdiff1d(keys, reverse_keys, assume_unique=True)
        i, j = divmod(int(one_way[0]), nodes)
        raise ValueError(
            f"the adjacency is not symmetric: node {i} lists {j} but {j} does not list {i}; "
            "give both directions (A + A.T), or use from_edges"
        )


def _first_true(mask: NDArray[np.bool_]) -> int | None:
    position = int(mask.argmax()) if mask.size else 0
    return position if mask.size and mask[position] else None
