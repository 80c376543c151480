"""Rows of a node: read from its file, checked and encoded by the plan.

The rows satisfy the plan, on which other nodes rely: columns are encoded as agreed, classes are
those of the plan, longer rows are shortened to its feature bound, and their number is within its
cap. The rows never leave the node.
"""

from __future__ import annotations

import io
import os
import zipfile
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from walklearn.arrays import read_npz
from walklearn.node.agreement.plan import Plan
from walklearn.objectives.linear.rows import is_sparse, with_ones
from walklearn.tables import DataError, Table, read_table
from walklearn.tables.encoding import Column
from walklearn.wording import did_you_mean, join_names

Array = NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class NodeRows:
    """Encoded rows of a node.

    Parameters
    ----------
    X
        The features, with the intercept's column of ones.
    y
        The targets as the loss takes them; numbers in units of the plan's target_scale.
    shortened
        The number of rows that were shortened to the feature bound.
    """

    X: Any  # an array, or a csr_array of SciPy's
    y: Array
    shortened: int = 0

    def to_bytes(self) -> bytes:
        """Return the content of the file that a node stores."""
        buffer, X = io.BytesIO(), self.X
        arrays = {"X": X}
        if is_sparse(X):
            arrays = {"data": X.data, "indices": X.indices, "starts": X.indptr, "shape": X.shape}
        np.savez(buffer, y=self.y, **arrays)
        return buffer.getvalue()

    @classmethod
    def load(cls, path: str | os.PathLike[str]) -> NodeRows:
        """Read a file that `to_bytes` made; a `DataError` if it is damaged."""
        try:
            with open(path, "rb") as file:
                arrays = read_npz(file)
            if "X" in arrays:
                return cls(arrays["X"], arrays["y"])
            from scipy.sparse import csr_array

            parts = (arrays["data"], arrays["indices"], arrays["starts"])
            return cls(csr_array(parts, shape=tuple(arrays["shape"])), arrays["y"])
        except (EOFError, ValueError, KeyError, TypeError, AttributeError, zipfile.BadZipFile):
            raise DataError(
                f"{path} is damaged: it does not contain the rows of the node. Restore only this "
                "file from a backup, and leave the rest of the directory unchanged."
            ) from None


def read_node_rows(path: str | os.PathLike[str], plan: Plan) -> NodeRows:
    """Read and encode the rows in a file; a `DataError` names row and column."""
    return node_rows_of(read_plan_table(path, plan), plan)


def read_plan_table(path: str | os.PathLike[str], plan: Plan) -> Table:
    """Read the columns of a file; categories and classes of the plan are texts."""
    texts = plan.encoding.text_columns
    if plan.classes is not None:
        texts.append(plan.target)
    return read_table(Path(path), text=sorted(texts))


def node_rows_of(table: Table, plan: Plan) -> NodeRows:
    """Encode the rows of a table by the plan."""
    _check_count(table, plan)
    X, shortened = plan.encoding.encode(table), 0
    if (bound := plan.privacy.feature_bound) is not None:
        from walklearn.privacy.mechanisms.bounds import clip_features

        X, shortened = clip_features(X, bound)
    if plan.intercept:
        X = with_ones(X)
    return NodeRows(X, _targets(table, plan), shortened)


def _check_count(table: Table, plan: Plan) -> None:
    for key, limit in (("privacy.max_rows", plan.privacy.max_rows), ("rows", plan.rows)):
        if limit is not None and table.row_count > limit:
            raise DataError(
                f"{table.source} has {table.row_count} rows, and {key} of the plan is {limit}. "
                "Leave rows out, or agree on another plan."
            )


def _targets(table: Table, plan: Plan) -> Array:
    cells = table[plan.target]
    if plan.classes is None:
        targets = Column(plan.target).encode(cells, table.name_row)[:, 0]
        return plan.training_target.to_training(targets)
    numbers = {name: number for number, name in enumerate(plan.classes)}
    for row, cell in enumerate(cells):
        if cell not in numbers:
            raise DataError(
                f"{table.name_row(row)}, column {plan.target!r}: the plan has no class "
                f"{cell!r}{did_you_mean(cell, plan.classes)} Its classes are "
                f"{join_names(plan.classes)}."
            )
    codes = np.array([numbers[cell] for cell in cells], dtype=np.float64)
    return codes if plan.loss.takes == "class" else 2.0 * codes - 1.0
