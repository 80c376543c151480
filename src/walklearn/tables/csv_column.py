"""`CsvColumn`: the cells of one column of a CSV file, taken in block by block.

A block is numbers where all of its cells are, otherwise texts; what the column is, and which cell
is wrong, is told of all blocks together, so that it does not matter where one ends.

>>> column = CsvColumn("age")
>>> column.add(["30", "41.5"]); column.add(["29"])
>>> column.finish(place="row {}".format)
array([30. , 41.5, 29. ])
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from contextlib import suppress
from typing import Any

import numpy as np
from numpy.typing import NDArray

from walklearn.tables.table import DataError, Place, check_cells, reads_as_number, unusable
from walklearn.wording import plural

Array = NDArray[Any]

MAX_ROOM = 2**20  # numbers in one piece of memory; many small ones, freed, would leave holes
MISSING = {"", "na", "n/a", "nan", "null", "nil", "?"}


class CsvColumn:
    """The cells of a column, as numbers as long as they are.

    declared_text: whatever they look like they are text, and no word among them stands for a
    missing value.
    """

    def __init__(self, name: str, declared_text: bool = False) -> None:
        self.name, self.declared_text = name, declared_text
        self._blocks: list[Array] = []  # float64 for numbers, objects for texts
        self._room, self._filled = np.empty(0), 0  # where numbers lie
        self._known: dict[str, str] = {}  # a text that occurs often is kept once

    @property
    def has_texts(self) -> bool:
        """Whether there has been a block that is not all numbers."""
        return bool(self._known)

    def add(self, cells: Sequence[str], chosen: Array | slice = slice(None)) -> None:
        """Append a block: these cells, or for each number in `chosen` the cell at that place."""
        numbers = None if self.declared_text else _numbers(cells)
        if numbers is not None:
            self.add_numbers(numbers[chosen])
            return
        stripped = (cell.strip() for cell in cells)
        texts = [self._known.setdefault(cell, cell) for cell in stripped]
        self._blocks.append(np.array(texts, dtype=object)[chosen])

    def add_numbers(self, numbers: Array) -> None:
        """Append a block of cells that were found to be numbers; they are copied."""
        if not len(numbers):  # of a block of blank lines
            return
        if self._filled + len(numbers) > len(self._room):
            size = max(len(numbers), min(2 * len(self._room), MAX_ROOM))
            self._room, self._filled = np.empty(size), 0
        start, end = self._filled, self._filled + len(numbers)
        self._room[start:end] = numbers
        self._filled = end
        if self._blocks and self._blocks[-1].base is self._room:  # one block with the last
            start -= len(self._blocks.pop())
        self._blocks.append(self._room[start:end])

    def finish(self, place: Place) -> Array:
        """Give all cells of the column, or raise an error for the first that does not fit."""
        if all(block.dtype != object for block in self._blocks):
            return check_cells(self.name, self.cells(), place)
        if not self.declared_text:
            self._check_text(place)
        cells = self.cells()
        return check_cells(self.name, cells, place) if "" in self._known else cells

    def cells(self) -> Array:
        """Return all cells, unchecked: numbers, or objects if any of them is a text."""
        # One array takes the place of the blocks in memory.
        if len(self._blocks) != 1:
            self._blocks = [np.concatenate(self._blocks or [np.empty(0)])]
            self._room = np.empty(0)
        return self._blocks[0]

    def _check_text(self, place: Place) -> None:
        """Raise an error for a missing value, or for a text in a column that holds numbers too."""
        numbers = [block for block in self._blocks if block.dtype != object]
        has_numbers = any(not np.isnan(block).all() for block in numbers) or any(
            reads_as_number(cell) and not _is_missing(cell) for cell in self._known
        )
        wrong = {
            cell
            for cell in self._known
            if _is_missing(cell) or (has_numbers and not reads_as_number(cell))
        }
        if not wrong and not numbers:
            return
        rows = list(self._rows_of(wrong))
        row, cell = rows[0]
        if _is_missing(cell):
            shown = "" if not cell or reads_as_number(cell) else f" ({cell!r})"
            raise unusable(self.name, place(row), f"the value is missing{shown}", len(rows))
        comma = " Write it with a decimal point." if re.fullmatch(r"-?\d+,\d+", cell) else ""
        raise DataError(
            f"{place(row)}, column {self.name!r}: {cell!r} is not a number, as others in this "
            f"column are ({plural(len(rows), 'such row')}).{comma} Correct it, or if the column "
            f"is text, declare it (--text {self.name})."
        )

    def _rows_of(self, wrong: set[str]) -> Iterator[tuple[int, str]]:
        """Row and cell of what is wrong: these texts, and NaN among numbers."""
        start = 0
        for block in self._blocks:
            if block.dtype == object:
                found = [at for at, cell in enumerate(block) if cell in wrong]
            else:
                found = np.flatnonzero(np.isnan(block)).tolist()
            yield from ((start + at, str(block[at])) for at in found)
            start += len(block)


def _is_missing(cell: str) -> bool:
    """Whether the cell is a word for a missing value, or NaN however it is written."""
    return cell.lower() in MISSING or (reads_as_number(cell) and np.isnan(float(cell)))


def _numbers(cells: Sequence[str]) -> Array | None:
    """The cells as numbers; None if any is none. Python strips more kinds of space than NumPy."""
    with suppress(ValueError):
        return np.array(cells, dtype=np.float64)
    with suppress(ValueError):
        return np.array([cell.strip() for cell in cells], dtype=np.float64)
    return None
