"""`CsvColumn`: the cells of one column of a CSV file, added block by block.

A block consists of numbers if all of its cells are numbers, otherwise of texts. All blocks together
determine the kind of the column and the first wrong cell, so the size of blocks has no effect.

>>> column = CsvColumn("age")
>>> column.add(["30", "41.5"]); column.add(["29"])
>>> column.finish(name_row="row {}".format)
array([30. , 41.5, 29. ])
"""

from __future__ import annotations

from array import array
from collections.abc import Sequence
from contextlib import suppress
from typing import Any

import numpy as np
from numpy.typing import NDArray

from walklearn.tables.table import RowNamer, check_cells, no_number, reads_as_number, unusable
from walklearn.wording import plural

Array = NDArray[Any]

MISSING = {"", "na", "n/a", "nan", "null", "nil", "?"}


class CsvColumn:
    """The cells of a column: all numbers or all texts.

    declared_text: all cells are texts, and no word among them stands for a missing value.
    """

    def __init__(self, name: str, declared_text: bool = False) -> None:
        self.name, self.declared_text = name, declared_text
        self._blocks: list[Any] = []  # arrays of Python for numbers, of NumPy for texts
        self._texts: dict[str, str] = {}  # equal texts share one object

    @property
    def has_texts(self) -> bool:
        """True if a cell is not a number, in any block."""
        return bool(self._texts)

    def add(self, cells: Sequence[str], chosen: Array | slice = slice(None)) -> None:
        """Append a block: these cells, or those at the positions in `chosen`."""
        numbers = None if self.declared_text else _numbers(cells)
        if numbers is not None:
            self.add_numbers(numbers[chosen])
            return
        stripped = (cell.strip() for cell in cells)
        texts = [self._texts.setdefault(cell, cell) for cell in stripped]
        self._blocks.append(np.array(texts, dtype=object)[chosen])

    def add_numbers(self, numbers: Array) -> None:
        """Append a block of numbers, which are copied."""
        if not len(numbers):  # a block of blank lines
            return
        if not self._blocks or not isinstance(self._blocks[-1], array):
            self._blocks.append(array("d"))
        self._blocks[-1].frombytes(np.ascontiguousarray(numbers).view(np.uint8))

    def finish(self, name_row: RowNamer) -> Array:
        """Return all cells of the column, or raise a DataError for the first wrong one."""
        if self.has_texts and not self.declared_text:
            self._check_text(name_row)
        cells = self.cells()
        if cells.dtype == object and "" not in self._texts:
            return cells
        return check_cells(self.name, cells, name_row)

    def cells(self) -> Array:
        """Return all cells, unchecked: numbers, or objects if any of them is a text."""
        # Replace the blocks by one array, to free their memory.
        parts = [np.asarray(block) for block in self._blocks] or [np.empty(0)]
        self._blocks = parts if len(parts) == 1 else [np.concatenate(parts)]
        cells: Array = self._blocks[0]
        return cells

    def _check_text(self, name_row: RowNamer) -> None:
        """Raise a DataError for a missing value, or for a text in a column of numbers."""
        numbers = [block for block in self._blocks if isinstance(block, array)]
        missing = {cell for cell in self._texts if _is_missing(cell)}
        not_numbers = {cell for cell in self._texts if not reads_as_number(cell)} - missing
        has_numbers = any(not np.isnan(block).all() for block in numbers) or (
            len(self._texts) > len(missing) + len(not_numbers)
        )
        wrong = missing | not_numbers if has_numbers else missing
        if not wrong and not numbers:
            return
        cells = self.cells()
        rows = [row for row, cell in enumerate(cells) if cell in wrong or cell != cell]
        row, cell = rows[0], cells[rows[0]]
        if cell in not_numbers:
            others = f", as others in this column are ({plural(len(rows), 'such row')})"
            remedy = f", or if the column is text, declare it (--text {self.name})"
            raise no_number(self.name, name_row(row), cell, others, remedy)
        word = "" if not cell or reads_as_number(cell) else f" ({cell!r})"
        raise unusable(self.name, name_row(row), f"missing{word}", len(rows))


def _is_missing(cell: str) -> bool:
    """True for a word that stands for a missing value, and for NaN in any notation."""
    return cell.lower() in MISSING or (reads_as_number(cell) and np.isnan(float(cell)))


def _numbers(cells: Sequence[str]) -> Array | None:
    """Return cells as numbers, or None if one is not. Python strips more spaces than NumPy."""
    with suppress(ValueError):
        return np.array(cells, dtype=np.float64)
    with suppress(ValueError):
        return np.array([cell.strip() for cell in cells], dtype=np.float64)
    return None
