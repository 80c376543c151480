"""Rows and the nodes that own them: what comes in is checked here, at the edge.

Each check gives back what it checked as an array of its own, or says which row is wrong.

>>> check_weights([1.0, 2.0, -1.0], rows=3)
Traceback (most recent call last):
    ...
ValueError: sample_weight must be finite and not negative, but row 2 has weight -1.
"""

from __future__ import annotations

from typing import Any, Literal

import numpy as np
from numpy.typing import ArrayLike, NDArray

from walklearn.arrays import Array
from walklearn.checks import check_length
from walklearn.wording import plural

Aggregate = Literal["sum", "mean", "node-mean"]
EmptyNodes = Literal["error", "relay"]

LARGEST = 1e75  # of a value: its fourth power, times many rows, is a number yet


def check_rows(
    X: ArrayLike, y: ArrayLike, dtype: np.dtype[Any], assume_finite: bool, copy: bool = True
) -> tuple[Array, Array]:
    """Make arrays of X and y, and check that all are finite; sparse rows stay sparse."""
    rows = _sparse_rows(X, dtype, copy) if is_sparse(X) else _dense_rows(X, dtype, copy)
    try:
        targets = np.array(y, dtype=np.float64)
    except (TypeError, ValueError) as error:
        raise ValueError(
            f"y must hold numbers: {error}. Number your classes first, for example names, y = "
            "np.unique(label, return_inverse=True); RandomWalkClassifier takes any labels."
        ) from error
    if rows.ndim != 2 or 0 in rows.shape:
        raise ValueError(f"X must have shape (rows, features), both at least 1, got {rows.shape}.")
    count = rows.shape[0]
    check_length("y", targets, count, "rows of X")
    if assume_finite:
        return rows, targets
    check_finite(finite_rows(rows) & np.isfinite(targets))
    return rows, targets


def check_finite(finite: NDArray[np.bool_]) -> None:
    """Raise a ValueError that names the first row with a value that is NaN or infinite."""
    bad = np.flatnonzero(~finite)
    if bad.size:
        raise ValueError(
            f"row {bad[0]} has a value that is NaN or infinite "
            f"({plural(bad.size, 'such row')} in all). Drop these rows or fill the values in first."
        )


def check_sizes(X: Any, y: Array) -> None:
    """Refuse numbers that losses and their slopes would multiply beyond double precision.

    A fit of protected rows does not ask this: whether they are refused would tell of them.
    """
    for name, values in (("X", X.data if is_sparse(X) else X), ("y", y)):
        largest = max(float(values.max(initial=0.0)), -float(values.min(initial=0.0)))
        if largest > LARGEST:
            raise ValueError(
                f"{name} has a value of size {largest:.3g}, and powers of it are more than double "
                f"precision holds (from {LARGEST:g} on): divide it by a large number first."
            )


def is_sparse(X: Any) -> bool:
    """Whether these are rows of SciPy's sparse arrays, without loading SciPy to find out."""
    return hasattr(X, "tocsr") and hasattr(X, "nnz")


def with_entries_once(X: Any) -> Any:
    """Compressed rows whose entries are summed where a column has several; X stays as it is.

    >>> from scipy.sparse import csr_array
    >>> twice = csr_array(([1.0, 2.0], [0, 0], [0, 2]), shape=(1, 1))
    >>> twice.nnz, with_entries_once(twice).data
    (2, array([3.]))
    """
    if not X.has_canonical_format:
        X = X.copy()
        X.sum_duplicates()
    return X


def _sparse_rows(X: Any, dtype: np.dtype[Any], copy: bool) -> Any:
    """Compressed rows, each entry once and in the order of the columns."""
    from scipy.sparse import csr_array

    return with_entries_once(csr_array(X, dtype=dtype, copy=copy))


def _dense_rows(X: ArrayLike, dtype: np.dtype[Any], copy: bool) -> Array:
    try:
        return np.array(X, dtype=dtype, order="C", copy=copy or None)
    except (TypeError, ValueError) as error:
        raise ValueError(
            f"X must hold numbers in rows of equal length: {error}. Encode text as numbers first; "
            "walklearn train and walklearn.tables.read_rows do that."
        ) from error


def finite_rows(rows: Any) -> NDArray[np.bool_]:
    """Which rows hold finite numbers only."""
    if not is_sparse(rows):
        return np.asarray(np.isfinite(rows).all(axis=1))
    finite = np.ones(rows.shape[0], dtype=bool)
    wrong = np.flatnonzero(~np.isfinite(rows.data))
    finite[np.searchsorted(rows.indptr, wrong, side="right") - 1] = False
    return finite


def with_ones(X: Any) -> Any:
    """The rows with a last feature that is always 1: what an intercept is the weight of.

    >>> with_ones(np.array([[2.0], [3.0]]))
    array([[2., 1.],
           [3., 1.]])
    """
    if not is_sparse(X):
        return np.column_stack([X, np.ones(len(X))])
    from scipy.sparse import csr_array

    count, features = X.shape
    starts = X.indptr + np.arange(count + 1, dtype=X.indptr.dtype)
    given = np.ones(starts[-1], dtype=bool)
    given[starts[1:] - 1] = False
    data, indices = np.ones(given.size, X.dtype), np.full(given.size, features, X.indices.dtype)
    data[given], indices[given] = X.data, X.indices
    return csr_array((data, indices, starts), shape=(count, features + 1))


def check_owners(node_of_row: ArrayLike | None, rows: int) -> NDArray[np.int64]:
    """Check the node of each row; by default row i belongs to node i."""
    if node_of_row is None:
        return np.arange(rows)
    owners = np.array(node_of_row)
    check_length("node_of_row", owners, rows, "rows")
    if not np.issubdtype(owners.dtype, np.integer) or owners.min() < 0:
        raise ValueError("node_of_row must hold node numbers 0, 1, …, N-1.")
    return owners.astype(np.int64)


def check_weights(sample_weight: ArrayLike | None, rows: int) -> NDArray[np.float64]:
    """Check how many rows each row counts as; by default one."""
    if sample_weight is None:
        return np.ones(rows)
    weights = np.array(sample_weight, dtype=np.float64)
    check_length("sample_weight", weights, rows, "rows")
    wrong = np.flatnonzero(~(np.isfinite(weights) & (weights >= 0)))
    if wrong.size:
        raise ValueError(
            f"sample_weight must be finite and not negative, but row {wrong[0]} has weight "
            f"{weights[wrong[0]]:g}."
        )
    if not weights.any():
        raise ValueError("sample_weight is zero for every row: there is nothing to learn from.")
    return weights


def check_total(total_rows: float | None, here: float) -> float:
    """Check M, the rows of all nodes: at least those that are here, which is the default."""
    if total_rows is None:
        return here
    if not (np.isfinite(total_rows) and total_rows >= here):
        raise ValueError(
            f"total_rows counts the rows of all nodes, so it must be at least the {here:g} that "
            f"are here, got {total_rows!r}."
        )
    return float(total_rows)


def check_nodes(
    owners: NDArray[np.int64],
    weights: NDArray[np.float64],
    nodes: int,
    empty_nodes: EmptyNodes,
) -> None:
    """Raise if a row has no such node, or a node no rows that count, unless it may relay."""
    if owners.max() >= nodes:
        raise ValueError(
            f"row {int(np.argmax(owners))} belongs to node {owners.max()}, but there are only "
            f"{nodes} nodes (0..{nodes - 1})."
        )
    empty = np.flatnonzero(np.bincount(owners[weights > 0], minlength=nodes) == 0)
    if empty.size and empty_nodes == "error":
        raise ValueError(
            f"node {empty[0]} has no rows ({plural(empty.size, 'such node')} in all; rows of "
            'weight 0 do not count). Give it rows, or pass empty_nodes="relay" to let such nodes '
            "only pass the token on."
        )


def scores(rows: Any, model: Array) -> Array:
    """x·w of each row; of a flat model for several classes, the score of each class."""
    outputs = model.size // rows.shape[1]
    return np.asarray(rows @ (model if outputs == 1 else model.reshape(outputs, -1).T))
