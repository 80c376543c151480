"""`Table`: the columns of a file, and the name of each row in a message."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from walklearn.encoding import DataError, did_you_mean, listed

Array = NDArray[Any]


class Table(Mapping[str, Array]):
    """Columns of equal length: float64 for numbers, objects for text.

    source: the file, for messages. lines: the line that each row begins on, where there are lines.
    """

    def __init__(
        self, columns: Mapping[str, Array], source: str, lines: Sequence[int] | None = None
    ) -> None:
        self._columns = dict(columns)
        self.source = source
        self.lines = lines
        self.row_count = len(next(iter(self._columns.values()), ()))
        if not self.row_count:
            raise DataError(f"{source} has no rows of data.")

    def __getitem__(self, name: str) -> Array:
        try:
            return self._columns[name]
        except KeyError:
            known = list(self._columns)
            raise DataError(
                f"{self.source} has no column {name!r}{did_you_mean(name, known)} Its columns are "
                f"{listed(known)}."
            ) from None

    def __contains__(self, name: object) -> bool:
        return name in self._columns

    def __iter__(self) -> Iterator[str]:
        return iter(self._columns)

    def __len__(self) -> int:
        return len(self._columns)

    def place(self, row: int) -> str:
        """A row, counted from 0, as a person finds it: counted from 1, with its line."""
        return place(self.source, row, self.lines)

    def without(self, names: Sequence[str]) -> Table:
        """The other columns; those left out must exist."""
        for name in names:
            self[name]
        kept = {name: cells for name, cells in self._columns.items() if name not in names}
        return Table(kept, self.source, self.lines) if kept else _refuse_nothing_left(self, names)

    def rows(self, chosen: Array) -> Table:
        """Some of the rows, which keep their lines."""
        lines = None if self.lines is None else np.asarray(self.lines)[chosen].tolist()
        return Table({name: cells[chosen] for name, cells in self.items()}, self.source, lines)


def place(source: str, row: int, lines: Sequence[int] | None) -> str:
    """The name of a row in a message.

    >>> place("people.csv", 16, range(2, 100))
    'people.csv, row 17 (line 18)'
    """
    line = "" if lines is None else f" (line {lines[row]})"
    return f"{source}, row {row + 1}{line}"


def _refuse_nothing_left(table: Table, names: Sequence[str]) -> Table:
    raise DataError(
        f"{table.source} has no column to learn from besides {listed(list(names))}. If several "
        "columns were read as one, say what separates them (--delimiter)."
    )
