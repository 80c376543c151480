"""How strongly the loss of a node can be curved: λ_max(Σ c_r x_r x_rᵀ) over its rows.

`Problem.smoothness` makes L_i of it. It is the largest eigenvalue of a matrix that has as many rows
and columns as the node has rows, or features, whichever is less. Of large nodes with sparse rows it
may be iterated, by Lanczos' method, for all nodes in the same few products with all their rows:
that is next to certain to find the largest, and a claim of privacy may not rest on it.

>>> X, offsets = np.array([[1.0, 0.0], [0.0, 2.0], [0.0, 1.0]]), np.array([0, 1, 3])
>>> largest_eigenvalues(X, np.array([2.0, 1.0, 1.0]), (X**2).sum(axis=1), offsets)
array([2., 5.])
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from walklearn.arrays import Array, Vector
from walklearn.objectives.linear.rows import is_sparse

# Dense rows that are passed over at a time, so that what is made of them stays in the cache.
ROWS_AT_ONCE = 2**16
# Up to this many rows or features of a node all eigenvalues are computed, beyond the largest alone.
LARGEST_GRAM = 1000
# Up to this many entries the sparse rows of a node are multiplied faster with all their zeros.
SMALL_BLOCK = 100_000
# Lanczos' method is for nodes with more rows and features than this, while its vectors have no more
# numbers than that. Now and then it is looked at: nodes whose value is as exact as PRECISE are
# done, and all are given up where after the first look most are not even as exact as ROUGH.
FEW, LONGEST = 32, 2**22
LOOKS = (6, 12, 16, 24, 32)
PRECISE, ROUGH = 1e-11, 1e-4


def largest_eigenvalues(
    X: Any, weights: Vector, squares: Vector, offsets: NDArray[np.int64], iterate: bool = True
) -> Vector:
    """λ_max(Σ c_r x_r x_rᵀ) of each node, which has rows offsets[i] to offsets[i + 1].

    squares: ‖x_r‖² of each row. iterate: False only iterates beyond LARGEST_GRAM.
    """
    if is_sparse(X):
        return _of_sparse(X, weights, squares, offsets, iterate)
    return _of_dense(X, weights, offsets)


def check_exact(rows: int, columns: int) -> None:
    """Refuse sparse rows of a node that are iterated, where a claim needs L_i to the last digits.

    >>> check_exact(rows=500, columns=100_000)
    """
    if min(rows, columns) > LARGEST_GRAM:
        raise ValueError(
            f"of {rows} sparse rows with {columns} columns L_i is only iterated to, and what "
            'protect = "rows" claims for its release needs it to the last digits. Use the uniform '
            f"walk, which tells no L_i, or at most {LARGEST_GRAM} rows or columns."
        )


def _of_dense(X: Array, weights: Vector, offsets: NDArray[np.int64]) -> Vector:
    counts = np.diff(offsets)
    largest = np.zeros(len(counts))
    for count in np.unique(counts[counts > 0]):
        alike = np.flatnonzero(counts == count)
        for nodes in np.split(alike, np.arange(0, alike.size, ROWS_AT_ONCE // count + 1)[1:]):
            rows = offsets[nodes][:, None] + np.arange(count)
            largest[nodes] = _of_blocks(X[rows] * np.sqrt(weights[rows])[:, :, None])
    return largest


def _of_blocks(blocks: Array) -> Vector:
    """The largest eigenvalue of each node's XᵀX, for nodes that have the same number of rows."""
    if blocks.shape[1] > blocks.shape[2]:
        blocks = blocks.transpose(0, 2, 1)
    gram = np.asarray(blocks @ blocks.transpose(0, 2, 1), dtype=np.float64)
    if gram.shape[1] == 1:
        return np.asarray(gram[:, 0, 0])
    return np.asarray(np.linalg.eigvalsh(gram)[:, -1])


def _of_sparse(
    X: Any, weights: Vector, squares: Vector, offsets: NDArray[np.int64], iterate: bool
) -> Vector:
    from scipy.sparse import csr_array

    counts, dimension = np.diff(offsets), X.shape[1]
    largest = np.zeros(len(counts))
    alone = offsets[:-1][counts == 1]
    largest[counts == 1] = squares[alone] * weights[alone]
    if (counts <= 1).all():
        return largest
    roots = np.repeat(np.sqrt(weights), np.diff(X.indptr))
    weighted = csr_array((X.data * roots, X.indices, X.indptr), X.shape)
    large = np.flatnonzero(counts > FEW)
    if iterate and dimension > FEW and 0 < large.size * dimension <= LONGEST:
        largest[large] = _by_lanczos(weighted, large, offsets)
    for node in np.flatnonzero((counts > 1) & ~(largest > 0.0)):
        largest[node] = _of_one(weighted[int(offsets[node]) : int(offsets[node + 1])])
    return largest


def _of_one(block: Any) -> float:
    """The largest eigenvalue of one node's XᵀX, for sparse rows; exact unless XᵀX is large."""
    if block.shape[0] * block.shape[1] <= SMALL_BLOCK:
        block = block.toarray()
    gram = block @ block.T if block.shape[0] <= block.shape[1] else block.T @ block
    if gram.shape[0] <= LARGEST_GRAM:
        full = gram if isinstance(gram, np.ndarray) else gram.toarray()
        return float(np.linalg.eigvalsh(full)[-1])
    from scipy.sparse.linalg import eigsh

    if not gram.count_nonzero():
        return 0.0
    start = np.random.default_rng(0).standard_normal(gram.shape[0])  # the same answer every time
    return float(eigsh(gram, k=1, which="LA", v0=start, return_eigenvectors=False)[0])


def _by_lanczos(weighted: Any, nodes: Array, offsets: NDArray[np.int64]) -> Vector:
    """The largest eigenvalue of the XᵀX of several nodes at once; 0 where it did not converge.

    Each node has a copy of all columns for itself, so that one product is that of every node with
    a vector of its own. Nodes do not see each other: what is found for one depends on its rows
    alone, to the last bit.
    """
    from scipy.sparse import csr_array

    counts, dimension = np.diff(offsets)[nodes], weighted.shape[1]
    chosen = np.repeat(offsets[nodes] - np.cumsum(counts) + counts, counts) + np.arange(
        counts.sum()
    )
    rows = weighted if len(chosen) == weighted.shape[0] else weighted[chosen]
    entries = np.diff(rows.indptr[np.append(0, np.cumsum(counts))])
    columns = rows.indices + dimension * np.repeat(np.arange(len(nodes)), entries)
    spread = csr_array((rows.data, columns, rows.indptr), (len(chosen), dimension * len(nodes)))
    first = np.random.default_rng(0).standard_normal(dimension)
    vector = np.tile(first / np.linalg.norm(first), (len(nodes), 1))
    before, length = np.zeros_like(vector), np.zeros(len(nodes))
    diagonal, beside = [], []
    found = np.zeros(len(nodes))
    for step in range(1, LOOKS[-1] + 1):
        image = (spread.T @ (spread @ vector.reshape(-1))).reshape(vector.shape)
        diagonal.append(np.einsum("na,na->n", vector, image))
        image -= diagonal[-1][:, None] * vector + length[:, None] * before
        length = np.sqrt(np.einsum("na,na->n", image, image))
        beside.append(length)
        before, vector = vector, image / np.maximum(length, np.finfo(float).tiny)[:, None]
        if step in LOOKS:
            values, missing = _largest_of_tridiagonal(diagonal, beside)
            found = np.where((found == 0.0) & (missing <= PRECISE * values), values, found)
            slow = step > LOOKS[0] and np.median(missing - ROUGH * values) > 0.0
            if slow or (found > 0.0).all():
                break
    return found


def _largest_of_tridiagonal(diagonal: list[Vector], beside: list[Vector]) -> tuple[Vector, Vector]:
    """The largest eigenvalues so far, and how far from one of the node's each is at most."""
    count = len(diagonal)
    matrices = np.zeros((len(diagonal[0]), count, count))
    at = np.arange(count)
    matrices[:, at, at] = np.stack(diagonal, axis=1)
    matrices[:, at[1:], at[:-1]] = np.stack(beside, axis=1)[:, :-1]  # eigh reads the lower half
    values, vectors = np.linalg.eigh(matrices)
    return values[:, -1], np.abs(vectors[:, -1, -1]) * beside[-1]
