"""Public bounds for the constants L_i, from a public bound on the features.

The bounds in every privacy claim cover all data that a node *could* hold. They follow from a
public bound B on ‖x‖ (rows are clipped to it, `clip_features`), a public cap on the rows of a
node, and `aggregate`: with β the smoothness of the loss, N nodes and M rows in total,

    "sum"        λ ≤ L_i ≤ λ + N β · rows · B²
    "mean"       λ ≤ L_i ≤ λ + (N/M) β · rows · B²      (M must be public)
    "node-mean"  λ ≤ L_i ≤ λ + β B²

An intercept is a feature that is always 1. It adds 1 to ‖x‖², at the lower end too, since then
λ_max(XᵀX) is at least the number of rows. If rows have weights, "rows" and M are the sums of
their weights. These sums are then public, or capped by a public number, as the counts are.

>>> from walklearn.objectives.linear.losses import Logistic
>>> smoothness_bounds(Logistic(), penalty=1.0, nodes=100, feature_bound=2.0)
(1.0, 101.0)
>>> clip_features([[3.0, 4.0], [0.3, 0.4]], bound=1.0)[1]
1
"""

from __future__ import annotations

from functools import partial
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from walklearn.checks import check_choice, check_kind, check_number, check_whole
from walklearn.objectives.linear.losses import Loss
from walklearn.objectives.linear.rows import Aggregate, check_finite, is_sparse
from walklearn.privacy.limits import Array, Bounds, check_bounds


def smoothness_bounds(
    loss: Loss,
    penalty: float,
    nodes: int,
    feature_bound: float,
    max_rows: float = 1,
    aggregate: str = "sum",
    intercept: bool = False,
    lower: float | None = None,
    total_rows: float | None = None,
    min_rows: float = 1,
) -> Bounds:
    """Bound the smoothness L_i over all data that a node could hold.

    Parameters
    ----------
    loss
        The loss of a row.
    penalty
        The factor of ½‖w‖² in the objective.
    nodes
        The number of nodes N.
    feature_bound
        A public bound on ‖x‖, without the intercept.
    max_rows
        A public cap on the rows of a node, or on the sum of their weights.
    aggregate
        "sum", "mean" or "node-mean", as for `Problem`.
    intercept
        True if the model has an intercept, a further feature that is 1 in every row.
    lower
        A public lower bound of your choice. It is needed without penalty and intercept, because
        L_i may then be 0, which cannot be protected. Constants below it are lifted to it before
        the release.
    total_rows
        The number of all rows M, for "mean" only.
    min_rows
        The smallest sum of the weights of a node's rows, which is below 1 only with weights.

    Returns
    -------
    Bounds
        (lo, hi) with lo ≤ L_i ≤ hi for all such data.
    """
    check_kind("loss", loss, Loss, "a loss such as losses.Logistic()")
    check_whole("nodes", nodes)
    for name, rows in (("max_rows", max_rows), ("min_rows", min_rows)):
        check_number(name, rows, above=0.0)
    if min_rows > max_rows:
        raise ValueError(f"min_rows = {min_rows!r} exceeds max_rows = {max_rows!r}.")
    check_number("penalty", penalty, minimum=0.0)
    check_number("feature_bound", feature_bound, above=0.0)
    weight = row_weight(aggregate, nodes, total_rows)
    smallest, largest = (1, 1) if aggregate == "node-mean" else (min_rows, max_rows)
    scale = loss.smoothness * weight
    low = penalty + (scale * smallest if intercept else 0.0)
    high = penalty + scale * largest * (feature_bound**2 + (1.0 if intercept else 0.0))
    if lower is not None:
        low = max(low, check_number("lower", lower, above=0.0))
    if low == 0:
        raise ValueError(
            "with penalty = 0 the smallest possible constant is 0, which no noise can protect. "
            "Pass a positive public lower bound (lower=...), or use a penalty."
        )
    if low >= high:
        raise ValueError(
            f"lower = {lower!r} leaves nothing to protect: no constant exceeds {high:g}."
        )
    return check_bounds((low, high))


def clip_features(X: ArrayLike, bound: float) -> tuple[Array, int]:
    """Shorten rows that are longer than a bound; sparse rows stay sparse.

    Parameters
    ----------
    X
        The rows, shape (M, d).
    bound
        The largest norm of a row.

    Returns
    -------
    X : array
        The rows, each with ‖x‖ ≤ bound.
    shortened : int
        The number of rows that were longer.
    """
    check_number("bound", bound, above=0.0)
    rows: Any = X
    if is_sparse(X):
        from scipy.sparse import csr_array

        rows = csr_array(rows, dtype=np.float64, copy=True)
        rows.sum_duplicates()
        values, counts = rows.data, np.diff(rows.indptr)
        owner = np.repeat(np.arange(len(counts)), counts)
        largest = np.zeros(len(counts))
        np.maximum.at(largest, owner, np.abs(values))
        spread = partial(np.take, indices=owner)  # from a number per row to one per entry
    else:
        values = rows = np.array(X, dtype=np.float64)
        if rows.ndim != 2:
            raise ValueError(f"X must have shape (rows, features), got {rows.shape}.")
        largest = np.abs(rows).max(axis=1, initial=0.0)
        spread = partial(np.expand_dims, axis=1)
    check_finite(np.isfinite(largest))
    # Scaled by the largest entry first, so that squares neither overflow nor underflow.
    unit = values / spread(np.where(largest > 0, largest, 1.0))
    if is_sparse(X):
        norms = np.sqrt(np.bincount(owner, unit**2, len(counts)))
    else:
        norms = np.linalg.norm(unit, axis=1)
    long = largest * norms > bound
    # Slightly shorter than the bound, so that rounding does not push a row over it again.
    unit *= spread(bound * (1 - 2.0**-50) / np.where(long, norms, 1.0))
    np.copyto(values, unit, where=spread(long))
    return rows, int(np.count_nonzero(long))


def row_weight(aggregate: str, nodes: int, total_rows: float | None) -> float:
    """Return c_r, the weight of a row in its node's loss (for "node-mean", of all its rows)."""
    check_choice("aggregate", aggregate, Aggregate)
    if aggregate == "sum":
        return float(nodes)
    if aggregate == "node-mean":
        return 1.0
    if total_rows is None:
        raise ValueError(
            'aggregate "mean" divides by the number of all rows. Pass the public total_rows.'
        )
    return nodes / check_number("total_rows", total_rows, above=0.0)
