"""`Table`: the columns of a file, and the name of each row in a message.

Readers check every cell with `check_cells` before it is in a table, so that whoever takes a column
from one need not look for missing or infinite values again.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from walklearn.errors import InputError
from walklearn.wording import did_you_mean, listed, plural

Array = NDArray[Any]
Place = Callable[[int], str]  # names a row, counted from 0, in a message


class DataError(InputError):
    """The data cannot be used as they are; the message says where and what to do.

    Parameters
    ----------
    problem, key, place
        As for `InputError`.

    Examples
    --------
    >>> from walklearn.tables import read_table
    >>> read_table("no-such-file.csv")
    Traceback (most recent call last):
        ...
    walklearn.tables.table.DataError: no-such-file.csv does not exist.
    """


class Table(Mapping[str, Array]):
    """Columns of equal length: float64 for numbers, objects for text.

    A column is checked when it is first asked for, so that a missing value in one that nobody
    needs does no harm.

    Parameters
    ----------
    columns
        A function for each column that gives its values.
    row_count
        How many rows there are.
    source
        The file, as messages call it.
    lines
        The line that each row of the file begins on, where there are lines.
    numbers
        Which rows of the file these are, counted from 0; all by default.
    unchecked
        A function for each column that gives its cells as the file has them, which may be an
        array, a list or a column of pyarrow; those of `columns` by default.

    Examples
    --------
    >>> table = Table({"age": lambda: np.array([30.0, 41.0])}, row_count=2, source="people.csv")
    >>> table["age"], table.row_count, table.place(1)
    (array([30., 41.]), 2, 'people.csv, row 2')
    """

    def __init__(
        self,
        columns: Mapping[str, Callable[[], Array]],
        row_count: int,
        source: str,
        lines: Sequence[int] | None = None,
        numbers: Array | None = None,
        unchecked: Mapping[str, Callable[[], Any]] | None = None,
    ) -> None:
        if not row_count:
            raise DataError(f"{source} has no rows of data.")
        self._columns = dict(columns)
        self._checked: dict[str, Array] = {}
        self._unchecked = self._columns if unchecked is None else unchecked
        self.row_count, self.source = row_count, source
        self.lines, self.numbers = lines, numbers

    def __getitem__(self, name: str) -> Array:
        if name not in self._columns:
            raise no_column(self.source, name, list(self._columns))
        if name not in self._checked:
            self._checked[name] = self._columns[name]()
        return self._checked[name]

    def __contains__(self, name: object) -> bool:
        return name in self._columns

    def __iter__(self) -> Iterator[str]:
        return iter(self._columns)

    def __len__(self) -> int:
        return len(self._columns)

    def place(self, row: int) -> str:
        """A row, counted from 0, as a person finds it: counted from 1, with its line."""
        number = row if self.numbers is None else int(self.numbers[row])
        return place(self.source, self.lines, number)

    def unchecked(self) -> list[tuple[str, Any]]:
        """Return the names and cells of all columns, also of those that nobody can learn from."""
        return [(name, cells()) for name, cells in self._unchecked.items()]

    def sparse_rows(self, names: Iterable[str]) -> Any:
        """These columns as sparse rows, where the file has them so; else None."""
        del names

    def without(self, names: Sequence[str]) -> Table:
        """The other columns; those left out must exist."""
        for name in names:
            if name not in self:
                self[name]
        kept = {name: partial(self.__getitem__, name) for name in self if name not in names}
        if not kept:
            raise DataError(
                f"{self.source} has no column to learn from besides {listed(list(names))}. If "
                "several columns were read as one, say what separates them (--delimiter)."
            )
        return Table(kept, self.row_count, self.source, self.lines, self.numbers)

    def rows(self, chosen: Array) -> Table:
        """Some of the rows, which keep their numbers and lines."""
        columns = {name: partial(self._some, name, chosen) for name in self}
        numbers = chosen if self.numbers is None else self.numbers[chosen]
        return Table(columns, len(chosen), self.source, self.lines, numbers)

    def _some(self, name: str, chosen: Array) -> Array:
        cells: Array = self[name][chosen]
        return cells


def place(source: str, lines: Sequence[int] | None, row: int) -> str:
    """The name of a row in a message.

    >>> place("people.csv", range(2, 100), 16)
    'people.csv, row 17 (line 18)'
    """
    line = "" if lines is None else f" (line {lines[row]})"
    return f"{source}, row {row + 1}{line}"


def check_cells(name: str, cells: Array, place: Place) -> Array:
    """Return the cells of a column, once none of them is missing or infinite."""
    bad = cells == "" if cells.dtype == object else ~np.isfinite(cells)
    if np.any(bad):
        row, count = int(np.argmax(bad)), int(np.sum(bad))
        infinite = cells.dtype != object and np.isinf(cells[row])
        what = f"the value is {'infinite' if infinite else 'missing'}"
        raise unusable(name, place(row), what, count)
    return cells


def no_column(source: str, name: str, known: Sequence[str]) -> DataError:
    """Return the error for a missing column, with the columns that exist."""
    return DataError(
        f"{source} has no column {name!r}{did_you_mean(name, known)} Its columns are "
        f"{listed(known)}."
    )


def reads_as_number(cell: Any) -> bool:
    """Whether Python reads a number in this cell.

    >>> reads_as_number(" 1e5 "), reads_as_number("1,5"), reads_as_number(None)
    (True, False, False)
    """
    try:
        float(cell)
    except (TypeError, ValueError):
        return False
    return True


def unusable(name: str, where: str, what: str, count: int) -> DataError:
    """The error that a value is unusable, with how many such rows its column has."""
    return DataError(
        f"{where}, column {name!r}: {what} ({plural(count, 'such row')} in this column). Fill it "
        "in, or leave the row out."
    )
