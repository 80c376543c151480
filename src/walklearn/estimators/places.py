"""At which node each row of a private training was, from one call to the next.

ε is about a row of one node, and so is the cap on how often it adds to the model. Whoever gives the
same row again at another node, as one does who shuffles rows that have a node each, lets it add
at both, which no ledger counts. A row is known again by a mark of 64 bits of its numbers. Marks
tell who has a row whether it was there, so a pickled estimator is without them.

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
    """The marks of all rows so far, and those of rows with their nodes, both sorted."""

    rows: Marks = field(default_factory=lambda: np.zeros(0, np.uint64))
    at_nodes: Marks = field(default_factory=lambda: np.zeros(0, np.uint64))

    def __reduce__(self) -> tuple[type[Places], tuple[()]]:
        return Places, ()

    def with_rows(self, X: Any, y: Array, nodes: Array) -> tuple[Places, Array]:
        """Enter these rows as well; also tell which of them were at other nodes before."""
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
            total += _mixed(_bits(X[:, at]) + column)
        return total
    owners = np.repeat(np.arange(X.shape[0]), np.diff(X.indptr))
    np.add.at(total, owners, _mixed(_bits(X.data) + columns[X.indices]))
    return total


def _bits(numbers: Array) -> Marks:
    return (np.ascontiguousarray(numbers, dtype=np.float64) + 0.0).view(np.uint64)


def _mixed(marks: Marks) -> Marks:
    """Stir 64 bits, so that numbers that differ in few of them differ in all (SplitMix64)."""
    marks = (marks ^ (marks >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    marks = (marks ^ (marks >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return marks ^ (marks >> np.uint64(31))
