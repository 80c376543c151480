"""At which node each row of a private training was, from one call to the next.

ε is about a row of one node, and so is the cap on how often it influences the model. A row that
comes back at another node, as when rows with a node each are shuffled, could influence the model
from both, which no ledger counts. A row is recognised by a 64-bit mark of its numbers. Whoever has
a row can look its mark up, so a pickled estimator is without marks and cannot continue a private
training.

>>> first, moved = Places().with_rows(np.array([[1.0], [2.0]]), np.ones(2), np.array([0, 1]))
>>> first.with_rows(np.array([[2.0], [3.0]]), np.ones(2), np.array([0, 1]))[1]     # 2 was at 1
array([0])
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from walklearn.problem.owned_rows import is_sparse

Array = NDArray[Any]
Marks = NDArray[np.uint64]


@dataclass(frozen=True, eq=False)
class Places:
    """The marks of all rows so far, and those of rows with their nodes, both sorted.

    are_lost: True after pickling, if there were any.
    """

    rows: Marks = field(default_factory=lambda: np.zeros(0, np.uint64))
    at_nodes: Marks = field(default_factory=lambda: np.zeros(0, np.uint64))
    are_lost: bool = False

    def __reduce__(self) -> tuple[type[Places], tuple[Marks, Marks, bool]]:
        none = np.zeros(0, np.uint64)
        return Places, (none, none, self.are_lost or self.rows.size > 0)

    def with_rows(self, X: Any, y: Array, nodes: Array) -> tuple[Places, Array]:
        """Add these rows; also return those that were at other nodes before."""
        if self.are_lost:
            raise ValueError(
                "a private training cannot continue in a copy or after pickling: the nodes of its "
                "rows are left out, so that nobody can look rows up. Start with a new estimator, "
                "which spends ε again."
            )
        rows = _marks(X, y)
        at_nodes = _mixed(rows + _mixed(nodes.astype(np.uint64)))
        moved = np.isin(rows, self.rows) & ~np.isin(at_nodes, self.at_nodes)
        places = Places(np.union1d(self.rows, rows), np.union1d(self.at_nodes, at_nodes))
        return places, np.flatnonzero(moved)


def _marks(X: Any, y: Array) -> Marks:
    """A mark of each row: the sum of its cells' bits, stirred with the number of their column."""
    columns = _mixed(np.arange(1, X.shape[1] + 2, dtype=np.uint64))
    total = _mixed(_bits(y) + columns[-1])
    if not is_sparse(X):
        for at, column in enumerate(columns[:-1]):
            # Zeros count nothing, as in sparse rows: the same row may come in either form.
            total += _mixed(_bits(X[:, at]) + column) * (X[:, at] != 0)
        return total
    owners = np.repeat(np.arange(X.shape[0]), np.diff(X.indptr))
    np.add.at(total, owners, _mixed(_bits(X.data) + columns[X.indices]) * (X.data != 0))
    return total


def _bits(numbers: Array) -> Marks:
    """Return the bits of numbers in single precision, so that such a copy of a row is known too."""
    with np.errstate(over="ignore"):
        single = np.asarray(numbers).astype(np.float32) + np.float32(0.0)  # −0 becomes 0
    return single.view(np.uint32).astype(np.uint64)


def _mixed(marks: Marks) -> Marks:
    """Stir 64 bits, so that numbers that differ in few of them differ in all (SplitMix64)."""
    marks = (marks ^ (marks >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    marks = (marks ^ (marks >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return marks ^ (marks >> np.uint64(31))
