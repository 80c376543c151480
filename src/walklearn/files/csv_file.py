"""CSV files, read with care: every row must fit the header and every column be of one kind.

A column whose cells are all numbers is numbers; one in which none is, is text. A mixture is an
error that names the first cell that does not fit, unless the column was declared as text.
Cells may be quoted, the file may begin with a byte order mark, and the separator is guessed
from the header among comma, semicolon, tab and bar.
"""

from __future__ import annotations

import csv
import re
from array import array
from collections.abc import Collection, Iterator, Sequence
from functools import partial
from itertools import islice
from pathlib import Path
from typing import Any, TextIO

import numpy as np
from numpy.typing import NDArray

from walklearn.files.table import DataError, Place, Table, check_cells, place, unusable
from walklearn.files.wording import did_you_mean, listed

Array = NDArray[Any]

DELIMITERS = (",", ";", "\t", "|")
MISSING = {"", "na", "n/a", "nan", "null", "nil", "?"}
ROWS_AT_ONCE = 20_000


def read_csv(path: Path, delimiter: str | None = None, text: Collection[str] = ()) -> Table:
    """The columns of a CSV file with a header.

    delimiter: what separates cells; guessed if None. text: columns that are text whatever
    they look like, and in which no word stands for a missing value.
    """
    try:
        with path.open(encoding=_encoding(path), newline="") as file:
            return _read(file, str(path), delimiter, text)
    except UnicodeDecodeError as error:
        raise DataError(
            f"{path} is not text in UTF-8 (byte {error.object[error.start]:#x} at position "
            f"{error.start}). Save it as 'CSV UTF-8', or convert it: "
            f"iconv -f latin1 -t utf-8 {path.name} > new.csv"
        ) from error


def _read(file: TextIO, source: str, delimiter: str | None, text: Collection[str]) -> Table:
    first = file.readline()
    if not first.strip():
        raise DataError(
            f"{source} is empty, or its first line is: the first line names the columns."
        )
    separator = delimiter or max(DELIMITERS, key=first.count)
    file.seek(0)
    reader = csv.reader(file, delimiter=separator, skipinitialspace=True, strict=True)
    try:
        names = _check_header(source, [name.strip() for name in next(reader)], separator)
        for name in text:
            if name not in names:
                raise DataError(
                    f"{source} has no column {name!r}{did_you_mean(name, names)} Its columns are "
                    f"{listed(names)}."
                )
        columns = [_Column(name, name in text) for name in names]
        lines = array("q")
        for block in _blocks(_checked(reader, source, names, lines)):
            for column, cells in zip(columns, zip(*block, strict=True), strict=True):
                column.add(cells)
    except csv.Error as error:
        raise DataError(
            f"{source}, line {reader.line_num}: {error}. Quotes come in pairs; one inside a "
            'quoted cell is doubled: "say ""hello"" to her".'
        ) from error
    found = {
        column.name: partial(column.finish, partial(place, source, lines)) for column in columns
    }
    return Table(found, len(lines), source, lines)


def _checked(
    reader: Any, source: str, names: Sequence[str], lines: array[int]
) -> Iterator[list[str]]:
    """The rows that are not blank, each as long as the header."""
    after = reader.line_num
    for row in reader:
        if row:
            lines.append(after + 1)
            if len(row) != len(names):
                raise DataError(
                    f"{place(source, lines, len(lines) - 1)} has {_count(len(row), 'cell')}, the "
                    f"header has {len(names)}: {reader.dialect.delimiter.join(row)[:80]!r}. Put a "
                    "cell that contains the separator in quotes, and give every column a cell."
                )
            yield row
        after = reader.line_num


def _blocks(rows: Iterator[list[str]]) -> Iterator[list[list[str]]]:
    while block := list(islice(rows, ROWS_AT_ONCE)):
        yield block


class _Column:
    """The cells of a column, as numbers as long as they are."""

    def __init__(self, name: str, declared_text: bool) -> None:
        self.name, self.declared_text = name, declared_text
        self.blocks: list[Array | list[str]] = []
        self.known: dict[str, str] = {}  # a text that occurs often is kept once

    def add(self, cells: Sequence[str]) -> None:
        if not self.declared_text:
            try:
                self.blocks.append(np.array(cells, dtype=np.float64))
                return
            except ValueError:
                pass
        stripped = (cell.strip() for cell in cells)
        self.blocks.append([self.known.setdefault(cell, cell) for cell in stripped])

    def finish(self, place: Place) -> Array:
        """All cells, or an error for the first that does not fit."""
        if all(isinstance(block, np.ndarray) for block in self.blocks):
            numbers = np.concatenate([np.empty(0), *self.blocks])
            return check_cells(self.name, numbers, place)
        if not self.declared_text:
            self._check_text(place)
        cells = np.array([cell for block in self.blocks for cell in block], dtype=object)
        return check_cells(self.name, cells, place) if "" in self.known else cells

    def _check_text(self, place: Place) -> None:
        """A column with any number in it is numbers, and the first other cell is wrong."""
        has_numbers = any(isinstance(block, np.ndarray) for block in self.blocks) or any(
            map(_is_number, self.known)
        )
        wrong = {
            cell
            for cell in self.known
            if cell.lower() in MISSING or (has_numbers and not _is_number(cell))
        }
        if not wrong:
            return
        rows = [row for row, cell in self._texts() if cell in wrong]
        cell = next(cell for row, cell in self._texts() if row == rows[0])
        if cell.lower() in MISSING:
            shown = f" ({cell!r})" if cell else ""
            raise unusable(self.name, place(rows[0]), f"the value is missing{shown}", len(rows))
        comma = " Write it with a decimal point." if re.fullmatch(r"-?\d+,\d+", cell) else ""
        raise DataError(
            f"{place(rows[0])}, column {self.name!r}: {cell!r} is not a number, as "
            f"others in this column are ({_count(len(rows), 'such row')}).{comma} Correct it, or "
            f"if the column is text, declare it (--text {self.name})."
        )

    def _texts(self) -> Iterator[tuple[int, str]]:
        """Row and cell of every block that is not all numbers."""
        row = 0
        for block in self.blocks:
            if isinstance(block, list):
                yield from enumerate(block, start=row)
            row += len(block)


def _check_header(source: str, names: list[str], delimiter: str) -> list[str]:
    if "" in names:
        raise DataError(
            f"{source}: column {names.index('') + 1} has no name in the first line. If pandas "
            "wrote the file, write it with to_csv(..., index=False)."
        )
    twice = sorted({name for name in names if names.count(name) > 1})
    if twice:
        places = [str(at + 1) for at, name in enumerate(names) if name == twice[0]]
        raise DataError(
            f"{source}: {twice[0]!r} is the name of columns {' and '.join(places)}. Give every "
            "column a name of its own."
        )
    if all(map(_is_number, names)):
        raise DataError(
            f"{source}: the first line should name the columns, but it is data: "
            f"{delimiter.join(names)[:80]!r}. Put a line with names above it."
        )
    return names


def _is_number(cell: str) -> bool:
    try:
        float(cell)
    except ValueError:
        return False
    return True


def _encoding(path: Path) -> str:
    """UTF-8, or the UTF-16 that spreadsheets write, told by its byte order mark."""
    with path.open("rb") as file:
        start = file.read(4)
    if start.startswith(b"PK\x03\x04"):
        raise DataError(
            f"{path} is not text: it looks like a spreadsheet or a zip file. Save it as CSV."
        )
    return "utf-16" if start.startswith((b"\xff\xfe", b"\xfe\xff")) else "utf-8-sig"


def _count(number: int, what: str) -> str:
    return f"{number} {what}" if number == 1 else f"{number} {what}s"
