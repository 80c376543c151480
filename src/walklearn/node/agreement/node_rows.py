"""The rows of a node: read from its file by the plan's columns, checked, kept as numbers.

Whatever the plan promises to others is made true here: columns are encoded as agreed, classes
are those of the plan, rows longer than the plan's feature bound are shortened to it, and there
are no more of them than the plan allows. The rows never leave the node.
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
from walklearn.wording import did_you_mean, listed

Array = NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class NodeRows:
    """The rows of a node as they are learnt from.

    Parameters
    ----------
    X
        The features, with the intercept's column of ones.
    y
        The targets as the loss takes them; numbers as the plan's target_scale has them.
    shortened
        How many rows were shortened to the feature bound.
    """

    X: Any  # an array, or a csr_array of SciPy's
    y: Array
    shortened: int = 0

    def to_bytes(self) -> bytes:
        """The file that a node keeps."""
        buffer, X = io.BytesIO(), self.X
        arrays = {"X": X}
        if is_sparse(X):
            arrays = {"data": X.data, "indices": X.indices, "starts": X.indptr, "shape": X.shape}
        np.savez(buffer, y=self.y, **arrays)
        return buffer.getvalue()

    @classmethod
    def load(cls, path: str | os.PathLike[str]) -> NodeRows:
        """Read back what `to_bytes` gave; a `DataError` if the file is damaged."""
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
                f"{path} is damaged: it does not hold the rows that the node was made with. Put it "
                "back from a copy of this one file; the rest of the directory must stay as it is."
            ) from None


def read_node_rows(path: str | os.PathLike[str], plan: Plan) -> NodeRows:
    """Read the rows in a file, as the plan has them; a `DataError` names row and column."""
    return node_rows_of(read_plan_table(path, plan), plan)


def read_plan_table(path: str | os.PathLike[str], plan: Plan) -> Table:
    """Read the columns of a file; categories and classes of the plan are texts."""
    texts = plan.encoding.text_columns
    if plan.classes is not None:
        texts.append(plan.target)
    return read_table(Path(path), text=sorted(texts))


def node_rows_of(table: Table, plan: Plan) -> NodeRows:
    """Return the rows of a table as the plan has them."""
    _check_count(table, plan)
    X, shortened = plan.encoding.encode(table), 0
    bound = plan.privacy.feature_bound if plan.privacy is not None else None
    if bound is not None:
        from walklearn.privacy.mechanisms.bounds import clip_features

        X, shortened = clip_features(X, bound)
    if plan.intercept:
        X = with_ones(X)
    return NodeRows(X, _targets(table, plan), shortened)


def _check_count(table: Table, plan: Plan) -> None:
    most = plan.privacy.max_rows if plan.privacy is not None else None
    if most is not None and table.row_count > most:
        raise DataError(
            f"{table.source} has {table.row_count} rows, and the plan's privacy.max_rows is "
            f"{most}, which the public bounds rest on. Leave rows out, or agree on another plan."
        )
    if plan.rows is not None and table.row_count > plan.rows:
        raise DataError(
            f"{table.source} has {table.row_count} rows, and the plan says that all nodes "
            f"together have {plan.rows} (rows). Agree on another plan."
        )


def _targets(table: Table, plan: Plan) -> Array:
    cells = table[plan.target]
    if plan.classes is None:
        targets = Column(plan.target).encode(cells, table.place, checked=True)[:, 0]
        return plan.training_target.to_training(targets)
    numbers = {name: number for number, name in enumerate(plan.classes)}
    for row, cell in enumerate(cells):
        if cell not in numbers:
            raise DataError(
                f"{table.place(row)}, column {plan.target!r}: the plan has no class "
                f"{cell!r}{did_you_mean(cell, plan.classes)} Its classes are "
                f"{listed(plan.classes)}."
            )
    codes = np.array([numbers[cell] for cell in cells], dtype=np.float64)
    return codes if plan.loss.takes == "class" else 2.0 * codes - 1.0
