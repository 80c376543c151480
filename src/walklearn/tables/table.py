"""`Table`: the columns of a file, and the words for a row in a message.

The cells of a table are checked by `check_cells`, so none of them is missing or infinite.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from walklearn.errors import InputError
from walklearn.wording import did_you_mean, join_names, plural

Array = NDArray[Any]
RowNamer = Callable[[int], str]  # names a row, counted from 0, in a message
WITH_COMMA = re.compile(r"[-+]?[\d.]*,\d+")  # a number as it is written in much of Europe


class DataError(InputError):
    """The data cannot be used; the message says where, why and what to do.

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

    A column is checked when it is first used: a missing value in an unused column does no harm.

    Parameters
    ----------
    columns
        A function for each column that returns its checked cells.
    row_count
        The number of rows.
    source
        The name of the file in messages.
    name_row
        Names a row, counted from 0, in a message; by default "people.csv, row 1" for row 0.
    unchecked
        A function for each column that returns the cells of the file, as an array, a list or a
        column of pyarrow; those of `columns` by default.

    Examples
    --------
    >>> table = Table({"age": lambda: np.array([30.0, 41.0])}, row_count=2, source="people.csv")
    >>> table["age"], table.row_count, table.name_row(1)
    (array([30., 41.]), 2, 'people.csv, row 2')
    """

    def __init__(
        self,
        columns: Mapping[str, Callable[[], Array]],
        row_count: int,
        source: str,
        name_row: RowNamer | None = None,
        unchecked: Mapping[str, Callable[[], Any]] | None = None,
    ) -> None:
        if not row_count:
            raise DataError(f"{source} has no rows of data.")
        self._columns = dict(columns)
        self._checked: dict[str, Array] = {}
        self._unchecked = self._columns if unchecked is None else unchecked
        self.row_count, self.source = row_count, source
        self.name_row = name_row or partial(row_of, source)

    def __getitem__(self, name: str) -> Array:
        check_known(self.source, [name], self._columns)
        if name not in self._checked:
            self._checked[name] = self._columns[name]()
        return self._checked[name]

    def __contains__(self, name: object) -> bool:
        return name in self._columns

    def __iter__(self) -> Iterator[str]:
        return iter(self._columns)

    def __len__(self) -> int:
        return len(self._columns)

    def unchecked(self) -> list[tuple[str, Any]]:
        """Return the names and unchecked cells of all columns."""
        return [(name, cells()) for name, cells in self._unchecked.items()]

    def sparse_rows(self, names: Iterable[str]) -> Any:
        """Return these columns as sparse rows, or None if the file is not sparse."""
        del names

    def without(self, names: Sequence[str]) -> Table:
        """Return a table of the other columns; those left out must exist."""
        check_known(self.source, names, self)
        remaining = {name: partial(self.__getitem__, name) for name in self if name not in names}
        if not remaining:
            raise DataError(
                f"{self.source} has no column to learn from besides {join_names(list(names))}. If "
                "several columns were read as one, say what separates them (--delimiter)."
            )
        return Table(remaining, self.row_count, self.source, self.name_row)

    def rows(self, chosen: Array) -> Table:
        """Return a table of some of the rows, which keep their names in messages."""
        columns = {name: partial(self._some, name, chosen) for name in self}
        return Table(columns, len(chosen), self.source, lambda row: self.name_row(int(chosen[row])))

    def _some(self, name: str, chosen: Array) -> Array:
        cells: Array = self[name][chosen]
        return cells


def row_of(source: str, row: int) -> str:
    """Return the words for a row, counted from 0, in a message: 'people.csv, row 17'."""
    return f"{source}, row {row + 1}"


def check_cells(name: str, cells: Array, name_row: RowNamer) -> Array:
    """Return the cells of a column, or raise a DataError if one of them is missing or infinite."""
    bad = cells == "" if cells.dtype == object else ~np.isfinite(cells)
    if np.any(bad):
        row, count = int(np.argmax(bad)), int(np.sum(bad))
        infinite = cells.dtype != object and np.isinf(cells[row])
        raise unusable(name, name_row(row), "infinite" if infinite else "missing", count)
    return cells


def check_header(source: str, names: Sequence[str], used: Iterable[str] = ()) -> None:
    """Raise a DataError if two columns have one name, or if a used column is not there."""
    if twice := repeated(names):
        numbers = [str(at) for at, name in enumerate(names, start=1) if name == twice]
        raise DataError(
            f"{source}: {twice!r} is the name of columns {' and '.join(numbers)}. Give every "
            "column a name of its own."
        )
    check_known(source, used, names)


def check_known(source: str, names: Iterable[str], known: Collection[str]) -> None:
    """Raise a DataError for the first of these columns that is not there."""
    for name in names:
        if name not in known:
            raise DataError(
                f"{source} has no column {name!r}{did_you_mean(name, known)} Its columns are "
                f"{join_names(list(known))}."
            )


def repeated(names: Iterable[str]) -> str | None:
    """Return the first of the names that occurs more than once."""
    return next((name for name, count in Counter(names).items() if count > 1), None)


def reads_as_number(cell: Any) -> bool:
    """True if Python reads this cell as a number.

    >>> reads_as_number(" 1e5 "), reads_as_number("1,5"), reads_as_number(None)
    (True, False, False)
    """
    try:
        float(cell)
    except (TypeError, ValueError):
        return False
    return True


def unusable(name: str, where: str, what: str, count: int) -> DataError:
    """Return the error for a value that is missing or infinite, with the number of such rows."""
    return DataError(
        f"{where}, column {name!r}: the value is {what} ({plural(count, 'such row')} in this "
        "column). Fill it in, or leave the row out."
    )


def no_number(name: str, where: str, cell: object, others: str = "", remedy: str = "") -> DataError:
    """Return the error for a cell that is no number, with more about other cells and remedies."""
    comma = " Write it with a decimal point." if WITH_COMMA.fullmatch(str(cell)) else ""
    return DataError(
        f"{where}, column {name!r}: {cell!r} is not a number{others}.{comma} Correct it{remedy}."
    )
