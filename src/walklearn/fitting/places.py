"""The node of each row of a private training, from one call to the next.

ε is about a row of one node, and so is the cap on how often it influences the model. A row that
comes back at another node, as when rows with a node each are shuffled, could influence the model
from both, which no ledger counts. Rows are recognised by their marks (`tables.row_marks`) under a
key of their own. Whoever has key and marks can look a row up, so a pickled estimator has neither
and cannot continue a private training.

>>> first, moved = Places().with_rows(np.array([[1.0], [2.0]]), np.ones(2), np.array([0, 1]))
>>> first.with_rows(np.array([[2.0], [3.0]]), np.ones(2), np.array([0, 1]))[1]     # 2 was at 1
array([0])
"""

from __future__ import annotations

import secrets
from dataclasses import dataclass, field
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from walklearn.tables.row_marks import ROWS_AT_ONCE, Marks, RowBlock, RowMarks, mixed

Array = NDArray[Any]


@dataclass(frozen=True, eq=False)
class Places:
    """The marks of all rows so far, and those of rows with their nodes, both sorted.

    key: the secret key of the marks. are_lost: True after pickling, if there were any marks.
    """

    rows: Marks = field(default_factory=lambda: np.zeros(0, np.uint64))
    at_nodes: Marks = field(default_factory=lambda: np.zeros(0, np.uint64))
    key: bytes = field(default_factory=partial(secrets.token_bytes, 32), repr=False)
    are_lost: bool = False

    def __reduce__(self) -> Any:
        return _restored, (self.are_lost or self.rows.size > 0,)

    def with_rows(self, X: Any, y: Array, nodes: Array) -> tuple[Places, Array]:
        """Add these rows; also return those that were at other nodes before."""
        if self.are_lost:
            raise ValueError(
                "a private training cannot continue in a copy or after pickling: the nodes of its "
                "rows are left out, so that nobody can look rows up. Start with a new estimator, "
                "which spends ε again."
            )
        rows = self._marks(X, y)
        at_nodes = mixed(rows + mixed(nodes.astype(np.uint64)))
        moved = np.isin(rows, self.rows) & ~np.isin(at_nodes, self.at_nodes)
        all_rows, all_at_nodes = np.union1d(self.rows, rows), np.union1d(self.at_nodes, at_nodes)
        return Places(all_rows, all_at_nodes, self.key), np.flatnonzero(moved)

    def _marks(self, X: Any, y: Array) -> Marks:
        """Return the mark of each row; a dense row has the mark of the same row in sparse form."""
        from scipy.sparse import csr_array

        marks = RowMarks(self.key)
        starts = range(0, len(y), ROWS_AT_ONCE)
        slices = [slice(start, start + ROWS_AT_ONCE) for start in starts]
        parts = [marks.of_block(RowBlock([y[some]], csr_array(X[some]))) for some in slices]
        return np.concatenate(parts) if parts else np.zeros(0, np.uint64)


def _restored(are_lost: bool) -> Places:
    return Places(are_lost=are_lost)
