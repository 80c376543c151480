"""Check rows, targets, weights and owners, and convert them to arrays."""

from __future__ import annotations

from typing import Any, Literal

import numpy as np
from numpy.typing import ArrayLike, NDArray

from walklearn.arrays import Array
from walklearn.checks import check_length
from walklearn.wording import plural

Aggregate = Literal["sum", "mean", "node-mean"]
EmptyNodes = Literal["error", "relay"]

MAX_VALUE = 1e75  # the sum of fourth powers over many rows is still finite


def check_rows(
    X: Any, y: ArrayLike, dtype: np.dtype[Any], assume_finite: bool, copy: bool = True
) -> tuple[Array, Array]:
    """Return X and y as arrays of finite numbers; sparse rows stay sparse."""
    if is_sparse(X):
        from scipy.sparse import csr_array

        rows = with_entries_once(csr_array(X, dtype=dtype, copy=copy))
    else:
        remedy = "Encode text as numbers first; walklearn train and tables.read_rows do that."
        rows = _numbers("X", X, remedy, dtype=dtype, order="C", copy=copy or None)
    remedy = (
        "Number your classes first, for example names, y = np.unique(label, return_inverse=True); "
        "RandomWalkClassifier takes any labels."
    )
    targets = _numbers("y", y, remedy, dtype=np.float64)
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
    """Raise a ValueError for numbers whose products in a loss exceed double precision.

    A fit under ε does not call this, because an error would reveal something about the rows.
    """
    for name, values in (("X", X.data if is_sparse(X) else X), ("y", y)):
        largest = max(float(values.max(initial=0.0)), -float(values.min(initial=0.0)))
        if largest > MAX_VALUE:
            raise ValueError(
                f"{name} has a value of size {largest:.3g}, more than {MAX_VALUE:g}, so its powers "
                "exceed double precision: divide it by a large number first."
            )


def is_sparse(X: Any) -> bool:
    """True for a sparse array or matrix of SciPy, without loading SciPy."""
    return hasattr(X, "tocsr") and hasattr(X, "nnz")


def with_entries_once(X: Any) -> Any:
    """Return sparse rows in which duplicate entries are added up; X does not change."""
    if not X.has_canonical_format:
        X = X.copy()
        X.sum_duplicates()
    return X


def _numbers(name: str, values: ArrayLike, remedy: str, **settings: Any) -> Array:
    try:
        return np.array(values, **settings)
    except (TypeError, ValueError) as error:
        raise ValueError(f"{name} must hold numbers: {error}. {remedy}") from error


def finite_rows(rows: Any) -> NDArray[np.bool_]:
    """Return a mask of the rows that contain only finite numbers."""
    if not is_sparse(rows):
        return np.asarray(np.isfinite(rows).all(axis=1))
    finite = np.ones(rows.shape[0], dtype=bool)
    wrong = np.flatnonzero(~np.isfinite(rows.data))
    finite[np.searchsorted(rows.indptr, wrong, side="right") - 1] = False
    return finite


def with_ones(X: Any) -> Any:
    """Append a feature that is always 1, whose weight is the intercept.

    >>> with_ones(np.array([[2.0], [3.0]]))
    array([[2., 1.],
           [3., 1.]])
    """
    if not is_sparse(X):
        return np.column_stack([X, np.ones(len(X))])
    from scipy.sparse import csr_array, hstack

    ones = csr_array(np.ones((X.shape[0], 1), X.dtype))
    return csr_array(hstack([X, ones], format="csr"))


def check_owners(node_of_row: ArrayLike | None, rows: int) -> NDArray[np.int64]:
    """Return the node of each row; by default row i belongs to node i."""
    if node_of_row is None:
        return np.arange(rows)
    owners = np.array(node_of_row)
    check_length("node_of_row", owners, rows, "rows")
    if not np.issubdtype(owners.dtype, np.integer) or owners.min() < 0:
        raise ValueError("node_of_row must hold node numbers 0, 1, …, N-1.")
    return owners.astype(np.int64)


def check_weights(sample_weight: ArrayLike | None, rows: int) -> NDArray[np.float64]:
    """Return the number of rows that each row counts as; by default one."""
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
        raise ValueError(
            "sample_weight is zero for every row. Give at least one row a positive weight."
        )
    return weights


def check_nodes(
    owners: NDArray[np.int64],
    weights: NDArray[np.float64],
    nodes: int,
    empty_nodes: EmptyNodes,
) -> None:
    """Raise a ValueError for a row of an unknown node, or for a node without rows."""
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
            "only forward the token."
        )


def scores(rows: Any, model: Array) -> Array:
    """Return x·w for each row, or one score per class if the model has several classes."""
    outputs = model.size // rows.shape[1]
    return np.asarray(rows @ (model if outputs == 1 else model.reshape(outputs, -1).T))
