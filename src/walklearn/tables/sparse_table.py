"""`SparseTable`: the table of an SVMlight file, which stores no zeros.

>>> import numpy, scipy.sparse
>>> X = scipy.sparse.csr_array([[0.0, 0.5, 2.0], [0.0, 0.0, 1.5]])
>>> table = SparseTable(X, {"y": numpy.array([1.0, -1.0])}, "rows.svm")
>>> list(table), table["x2"].tolist()              # most files number features from 1
(['x1', 'x2', 'y'], [2.0, 1.5])
>>> table.without(["y", "x1"]).sparse_rows(["x2", "x9"]).toarray().tolist()
[[2.0, 0.0], [1.5, 0.0]]
"""

from __future__ import annotations

import os
import re
from collections.abc import Collection, Iterable, Mapping, Sequence
from functools import cached_property, partial
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from walklearn.extras import package
from walklearn.tables.encoding import texts_of
from walklearn.tables.table import DataError, RowNamer, Table, check_cells, row_of

Array = NDArray[Any]


class SparseTable(Table):
    """The features x0, x1, … as sparse rows, and a few other columns.

    Features that a file does not mention are 0 in all of its rows.

    X: the features as a SciPy CSR matrix (`all_rows`). other_columns: target and query. without:
    names of columns that are left out.
    """

    def __init__(
        self,
        X: Any,
        other_columns: Mapping[str, Array],
        source: str,
        name_row: RowNamer | None = None,
        without: Collection[str] = (),
    ) -> None:
        self.all_rows, self.other_columns, self._without = X, other_columns, frozenset(without)
        first = 0 if (X.indices == 0).any() else 1
        names = (f"x{at}" for at in range(first, X.shape[1]))
        columns = {name: partial(self._feature, name) for name in names}
        name_row = name_row or partial(row_of, source)
        columns |= {
            name: partial(check_cells, name, other_columns[name], name_row)
            for name in other_columns
        }
        kept = {name: columns[name] for name in columns if name not in self._without}
        super().__init__(kept, X.shape[0], source, name_row)

    def __contains__(self, name: object) -> bool:
        return super().__contains__(name) or self._is_feature(name)

    def __getitem__(self, name: str) -> Array:
        if not super().__contains__(name) and self._is_feature(name):
            return np.zeros(self.row_count)
        return super().__getitem__(name)

    def without(self, names: Sequence[str]) -> Table:
        """Return a table of the other columns; those left out must exist."""
        super().without(names)
        left_out = self._without | set(names)
        return SparseTable(self.all_rows, self.other_columns, self.source, self.name_row, left_out)

    def rows(self, chosen: Array) -> Table:
        """Return a table of table of the rows, which keep their names in messages."""
        table = super().rows(chosen)
        other_columns = {name: cells[chosen] for name, cells in self.other_columns.items()}
        X = self.all_rows[chosen]
        return SparseTable(X, other_columns, self.source, table.name_row, self._without)

    def sparse_rows(self, names: Iterable[str]) -> Any:
        """Return these columns as sparse rows, or None if not all of them are features."""
        chosen = list(names)
        if not all(self._is_feature(name) for name in chosen):
            return None
        from scipy.sparse import csr_array

        positions = np.array([int(name[1:]) for name in chosen])
        is_stored = positions < self.all_rows.shape[1]
        kept = self._by_column[:, positions[is_stored]]
        if not np.isfinite(kept.data).all():
            for name in chosen:
                self[name]  # raises an error that names the row
        starts = np.zeros(len(chosen) + 1, dtype=kept.indptr.dtype)
        starts[1:][is_stored] = np.diff(kept.indptr)
        shape = (len(chosen), self.row_count)  # the transpose, whose rows are the columns
        return csr_array((kept.data, kept.indices, np.cumsum(starts)), shape=shape).T.tocsr()

    @cached_property
    def _by_column(self) -> Any:
        return self.all_rows.tocsc()

    def _feature(self, name: str) -> Array:
        cells = self._by_column[:, [int(name[1:])]].toarray()[:, 0]
        return check_cells(name, cells, self.name_row)

    def _is_feature(self, name: object) -> bool:
        known = isinstance(name, str) and re.fullmatch(r"x\d+", name) is not None
        return known and name not in self._without


def read_svmlight(path: Path, text: Collection[str]) -> SparseTable:
    """Read an SVMlight file into columns x0, x1, … of features, y of targets and qid of queries."""
    datasets = package("sklearn.datasets", "sklearn", "SVMlight files need")
    try:
        X, y, query = datasets.load_svmlight_file(os.fspath(path), query_id=True, zero_based=True)
    except (ValueError, OverflowError) as error:
        raise DataError(
            f"{path} is not an SVMlight file ({error}). A line is a target, then index:value "
            "pairs with rising indices: 1 3:0.5 7:2"
        ) from error
    other_columns = {"y": y} | ({"qid": query.astype(np.float64)} if query.any() else {})
    for name in other_columns.keys() & set(text):
        other_columns[name] = texts_of(other_columns[name])
    return SparseTable(X, other_columns, str(path))
