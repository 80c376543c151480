"""Unordered pairs of nodes as numbers, so that arrays of pairs can be sorted and searched.

>>> i, j = pair_at(np.arange(4))
>>> list(zip(i.tolist(), j.tolist()))
[(0, 1), (0, 2), (1, 2), (0, 3)]
"""

from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from walklearn.graphs.sparse_rows import IndexArray, Integers

Pairs: TypeAlias = tuple[IndexArray, IndexArray]

BLOCK = 2**16  # positions per pass, which fit in the cache


def pair_at(position: Integers) -> tuple[Integers, Integers]:
    """Return the pairs i < j at positions of the list (0, 1), (0, 2), (1, 2), (0, 3), ..."""
    j = ((1 + np.sqrt(1 + 8.0 * position)) / 2).astype(np.int64)
    j -= j * (j - 1) // 2 > position  # the root may be rounded up or down by one
    j += j * (j + 1) // 2 <= position
    return position - j * (j - 1) // 2, j


def narrow_pairs_at(positions: Integers) -> Pairs:
    """Return `pair_at` of ascending positions as int32, without computing a root for each."""
    i, j = (np.empty(positions.size, dtype=np.int32) for _ in range(2))
    for begin in range(0, positions.size, BLOCK):
        block = positions[begin : begin + BLOCK]
        first, last = pair_at(block[[0, -1]])[1]
        larger = np.arange(first, last + 1)
        starts = larger * (larger - 1) // 2
        counts = np.diff(np.searchsorted(block, starts), append=block.size)
        i[begin : begin + BLOCK] = block - np.repeat(starts, counts)
        j[begin : begin + BLOCK] = np.repeat(larger, counts)
    return i, j


def pair_keys(nodes: int, i: Integers, j: Integers) -> Integers:
    """Return a number for each unordered pair."""
    return np.minimum(i, j) * nodes + np.maximum(i, j)


def contains(ordered: Integers, values: Integers) -> NDArray[np.bool_]:
    """Mark the values that occur in an ascending list."""
    if not ordered.size:
        return np.zeros(values.shape, dtype=np.bool_)
    place = np.minimum(np.searchsorted(ordered, values), ordered.size - 1)
    present: NDArray[np.bool_] = ordered[place] == values
    return present


def is_new_edge(nodes: int, ordered: Integers, i: Integers, j: Integers) -> NDArray[np.bool_]:
    """Mark the pairs that are no loop, not in the ascending keys, and not proposed before."""
    keys = pair_keys(nodes, i, j)
    first = np.zeros(keys.size, dtype=np.bool_)
    first[np.unique(keys, return_index=True)[1]] = True
    first &= (i != j) & ~contains(ordered, keys)
    return first
