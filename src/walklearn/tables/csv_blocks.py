"""Rows of a large CSV file, read in blocks with pyarrow: many times as fast as with care.

pyarrow is given only what it and Python's reader surely read alike: lines that end in \\n or
\\r\\n, and quotes around whole cells. What it takes for finite numbers are the same numbers to
Python; `CsvColumn` looks at all other cells as texts. At anything else (a row that is too short, a
stray quote, bytes that are not UTF-8) `NotPlain` is raised: then the file is to be read with care,
which accepts it after all or says what is wrong.

>>> import io, pyarrow
>>> columns = [CsvColumn("age"), CsvColumn("city")]
>>> read_blocks(io.BytesIO(b'30,"Rome, Italy"\\n\\n41,Oslo'), columns, ",", lambda position: None)
array('q', [2, 4])
>>> columns[1].finish("row {}".format)
array(['Rome, Italy', 'Oslo'], dtype=object)
"""

from __future__ import annotations

import csv
from array import array
from codecs import BOM_UTF8
from collections.abc import Container, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, BinaryIO

import numpy as np
from numpy.typing import NDArray

from walklearn.extras import arrow_memory, package
from walklearn.progress import OnPosition
from walklearn.tables.csv_column import CsvColumn

Array = NDArray[Any]

BYTES_AT_ONCE = 2**22
BYTES_AT_FIRST = 2**16  # enough to see which columns are text
BYTES_FOR_A_CORE = 2**20


class NotPlain(Exception):
    """Python's reader and pyarrow might not agree on this file."""


def read_blocks(
    file: BinaryIO, columns: Sequence[CsvColumn], separator: str, on_position: OnPosition
) -> array[int]:
    """Read the rows after the header into the columns; return the line of each row.

    on_position: called with the position in the file after each block.
    """
    lines, reader, first_line = array("q"), _Reader(columns, separator), 2
    for block in _blocks(file, separator):
        rows = reader.add(block)
        lines.frombytes((first_line + block.lines_of_rows(rows)).tobytes())
        first_line += len(block.breaks)
        on_position(file.tell())
    return lines


@dataclass(frozen=True, eq=False)
class _Block:
    """Whole lines, whose rows are whole too. quotes: where they are."""

    content: bytes
    quotes: Array

    @cached_property
    def breaks(self) -> Array:
        """Where lines end."""
        return _positions(self.content, b"\n")

    @property
    def has_breaks_in_cells(self) -> bool:
        """Whether a quoted cell goes over several lines."""
        return len(self.quotes) > 0 and bool(self._in_cells(self.breaks).any())

    def lines_of_rows(self, count: int) -> Array:
        """The line on which each row begins, counted from 0: blank lines are no rows."""
        if count == len(self.breaks):
            return np.arange(count)
        starts = np.concatenate([[0], self.breaks[:-1] + 1])
        first = np.frombuffer(self.content, dtype=np.uint8)[starts]
        is_blank = (first == ord("\n")) | (first == ord("\r"))
        lines = np.flatnonzero(~is_blank & ~self._in_cells(starts))
        if len(lines) != count:
            raise NotPlain
        return lines

    def _in_cells(self, positions: Array) -> Array:
        inside: Array = np.searchsorted(self.quotes, positions) % 2 == 1
        return inside


def _blocks(file: BinaryIO, separator: str) -> Iterator[_Block]:
    rest, size = b"", BYTES_AT_FIRST
    while chunk := file.read(size):
        content, size = rest + chunk, BYTES_AT_ONCE
        end = _end_of_rows(content)
        if not end and len(content) > BYTES_AT_ONCE:  # a row that does not end
            raise NotPlain
        rest, content = content[end:], content[:end]
        if end:
            yield _Block(content, check_plain(content, separator))
    if rest:
        content = rest if rest.endswith(b"\n") else rest + b"\n"
        yield _Block(content, check_plain(content, separator))


def _end_of_rows(content: bytes) -> int:
    """The position after the last line break that is not inside a quoted cell."""
    quotes, end = _positions(content, b'"'), content.rfind(b"\n") + 1
    while (before := int(np.searchsorted(quotes, end))) % 2:
        end = content.rfind(b"\n", 0, int(quotes[before - 1])) + 1
    return end


def _positions(content: bytes, character: bytes) -> Array:
    if character not in content:
        return np.empty(0, dtype=np.int64)
    return np.flatnonzero(np.frombuffer(content, dtype=np.uint8) == ord(character))


def check_plain(content: bytes, separator: str) -> Array:
    """Find the quotes in these lines; `NotPlain` if there is more than one way to read them.

    Quotes by turns open a cell, right behind a separator or line break, and close it, right before
    one. A doubled quote inside a cell closes and opens it, which comes to the same.
    """
    # pyarrow takes a byte order mark away, whichever block begins with it.
    odd = b"\0" in content or content.startswith(BOM_UTF8) or not content.endswith(b"\n")
    if odd or (b"\r" in content and content.count(b"\r") != content.count(b"\r\n")):
        raise NotPlain
    quotes = _positions(content, b'"')
    if len(quotes):
        bytes_ = np.frombuffer(b"\n" + content, dtype=np.uint8)
        beside = [*b'\n"', *separator.encode()]
        opened = np.isin(bytes_[quotes[::2]], beside).all()
        closed = np.isin(bytes_[quotes[1::2] + 2], [*b"\r", *beside]).all()
        if len(quotes) % 2 or not opened or not closed:
            raise NotPlain
    # Python's reader refuses longer cells. Half of one would fill such a stretch.
    stretch, ends = csv.field_size_limit() // 2, (separator.encode(), b"\n")
    for start in range(0, len(content) - stretch, stretch):
        if all(content.find(end, start, start + stretch) < 0 for end in ends):
            raise NotPlain
    return quotes


class _Reader:
    """Adds blocks to columns, and learns which of these are not plain numbers."""

    def __init__(self, columns: Sequence[CsvColumn], separator: str) -> None:
        self.columns, self.separator = columns, separator
        self.names = [column.name for column in columns]
        self.texts = {column.name for column in columns if column.declared_text}
        self.arrow = package("pyarrow", "tables", "reading in blocks needs")
        self.csv = package("pyarrow.csv", "tables", "reading in blocks needs")

    def add(self, block: _Block) -> int:
        """Add the rows of a block to the columns; return how many there are."""
        texts, found = self._parsed(block)
        for column, cells in zip(self.columns, found.columns, strict=True):
            for chunk in cells.chunks:
                if column.name not in texts:
                    column.add_numbers(np.from_dlpack(chunk))
                    continue
                different = chunk.dictionary.to_pylist()
                if max(map(len, different), default=0) > csv.field_size_limit():
                    raise NotPlain
                column.add(different, np.from_dlpack(chunk.indices))
        self.texts |= {column.name for column in self.columns if column.has_texts}
        return int(found.num_rows)

    def _parsed(self, block: _Block) -> tuple[Container[str], Any]:
        """The columns that are given as texts, and pyarrow's table of all."""
        try:
            found = self._table(block, self.texts)
            odd = self._not_finite(found)  # pyarrow knows more ways than Python to write NaN
            if odd:
                self.texts |= odd
                found = self._table(block, self.texts)
            return self.texts, found
        except self.arrow.ArrowInvalid:
            pass  # in some column there is a cell that is no number: they find out themselves
        try:
            return self.names, self._table(block, self.names)
        except self.arrow.ArrowInvalid:
            raise NotPlain from None

    def _not_finite(self, found: Any) -> set[str]:
        return {
            name
            for name in self.names
            if name not in self.texts
            and not all(np.isfinite(np.from_dlpack(chunk)).all() for chunk in found[name].chunks)
        }

    def _table(self, block: _Block, texts: Container[str]) -> Any:
        """Numbers, and texts as the different ones and which of them each cell is."""
        number = self.arrow.float64()
        text = self.arrow.dictionary(self.arrow.int32(), self.arrow.string())
        return self.csv.read_csv(
            arrow_memory(block.content),
            self.csv.ReadOptions(column_names=self.names, block_size=BYTES_FOR_A_CORE),
            self.csv.ParseOptions(
                delimiter=self.separator, newlines_in_values=block.has_breaks_in_cells
            ),
            self.csv.ConvertOptions(
                column_types={name: text if name in texts else number for name in self.names},
                null_values=[],
            ),
        )
