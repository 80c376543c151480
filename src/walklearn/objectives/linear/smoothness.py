"""Largest eigenvalues λ_max(Σ c_r x_r x_rᵀ) over the rows of each node.

`Problem.smoothness` is L_i, which depends on it. The matrix has one row and column per row or per
feature of the node, whichever is less. For large nodes with sparse rows Lanczos' method may iterate
all nodes together, in a few products with all rows. It almost certainly finds the largest
eigenvalue, but a privacy claim must not rely on it.

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

# Dense rows that are processed at a time, so that the results stay in the cache.
ROWS_AT_ONCE = 2**16
# Up to this many rows or features of a node all eigenvalues are computed, else only the largest.
LARGEST_GRAM = 1000
# Up to this many entries the sparse rows of a node are multiplied faster as dense ones.
SMALL_BLOCK = 100_000
# Lanczos' method is for nodes with more rows and features than FEW, if its vectors have at most
# LONGEST numbers. After the steps CHECKS, nodes with a value as exact as PRECISE are done; it is
# given up if after the first check most values are less exact than ROUGH.
FEW, LONGEST = 32, 2**22
CHECKS = (6, 12, 16, 24, 32)
PRECISE, ROUGH = 1e-11, 1e-4


def largest_eigenvalues(
    X: Any, weights: Vector, squares: Vector, offsets: NDArray[np.int64], iterate: bool = True
) -> Vector:
    """Compute λ_max(Σ c_r x_r x_rᵀ) of each node i, which has rows offsets[i] to offsets[i + 1].

    squares: ‖x_r‖² of each row. iterate: False uses iteration only above LARGEST_GRAM.
    """
    if is_sparse(X):
        return _of_sparse(X, weights, squares, offsets, iterate)
    return _of_dense(X, weights, offsets)


def check_exact(rows: int, columns: int) -> None:
    """Raise a ValueError for sparse rows of a node for which L_i would only be iterated."""
    if min(rows, columns) > LARGEST_GRAM:
        raise ValueError(
            f"for {rows} sparse rows with {columns} columns L_i is only iterated, but the claim of "
            'protect = "rows" for its release needs all digits. Use the uniform walk, which '
            f"reveals no L_i, or at most {LARGEST_GRAM} rows or columns."
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
    """Compute the largest eigenvalue of each node's XᵀX, for nodes with equally many rows."""
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
    """Compute the largest eigenvalue of XᵀX for sparse rows, exactly unless XᵀX is large."""
    if block.shape[0] * block.shape[1] <= SMALL_BLOCK:
        block = block.toarray()
    gram = block @ block.T if block.shape[0] <= block.shape[1] else block.T @ block
    if gram.shape[0] <= LARGEST_GRAM:
        full = gram if isinstance(gram, np.ndarray) else gram.toarray()
        return float(np.linalg.eigvalsh(full)[-1])
    from scipy.sparse.linalg import eigsh

    if not gram.count_nonzero():
        return 0.0
    start = np.random.default_rng(0).standard_normal(gram.shape[0])  # the same result every time
    return float(eigsh(gram, k=1, which="LA", v0=start, return_eigenvectors=False)[0])


def _by_lanczos(weighted: Any, nodes: Array, offsets: NDArray[np.int64]) -> Vector:
    """Compute the largest eigenvalues of XᵀX of several nodes; 0 without convergence.

    Each node has a separate copy of all columns, so one product multiplies every node by its
    vector. The result of a node depends on its rows only, to the last bit.
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
    largest = np.zeros(len(nodes))
    for step in range(1, CHECKS[-1] + 1):
        image = (spread.T @ (spread @ vector.reshape(-1))).reshape(vector.shape)
        diagonal.append(np.einsum("na,na->n", vector, image))
        image -= diagonal[-1][:, None] * vector + length[:, None] * before
        length = np.sqrt(np.einsum("na,na->n", image, image))
        beside.append(length)
        before, vector = vector, image / np.maximum(length, np.finfo(float).tiny)[:, None]
        if step in CHECKS:
            values, missing = _largest_of_tridiagonal(diagonal, beside)
            largest = np.where((largest == 0.0) & (missing <= PRECISE * values), values, largest)
            slow = step > CHECKS[0] and np.median(missing - ROUGH * values) > 0.0
            if slow or (largest > 0.0).all():
                break
    return largest


def _largest_of_tridiagonal(diagonal: list[Vector], beside: list[Vector]) -> tuple[Vector, Vector]:
    """Return the largest eigenvalues so far, and a bound on their distance from the node's."""
    count = len(diagonal)
    matrices = np.zeros((len(diagonal[0]), count, count))
    at = np.arange(count)
    matrices[:, at, at] = np.stack(diagonal, axis=1)
    matrices[:, at[1:], at[:-1]] = np.stack(beside, axis=1)[:, :-1]  # eigh reads the lower half
    values, vectors = np.linalg.eigh(matrices)
    return values[:, -1], np.abs(vectors[:, -1, -1]) * beside[-1]
