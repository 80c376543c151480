"""Rows of a large CSV file, read in blocks with pyarrow, many times as fast as by Python's reader.

pyarrow is given only what both readers read alike: lines that end in \\n or \\r\\n, and quotes
around whole cells. Cells that it reads as finite numbers are the same numbers in Python;
`CsvColumn` receives all other cells as texts. Anything else (a row that is too short, a stray
quote, bytes that are not UTF-8) raises `NotPlain`: Python's reader then accepts the file or names
the mistake.

>>> import io, pyarrow
>>> columns = [CsvColumn("age"), CsvColumn("city")]
>>> read_blocks(io.BytesIO(b'30,"Rome, Italy"\\n\\n41,Oslo'), columns, ",", lambda position: None)
2
>>> columns[1].finish("row {}".format)
array(['Rome, Italy', 'Oslo'], dtype=object)
"""

from __future__ import annotations

import csv
from codecs import BOM_UTF8
from collections.abc import Container, Iterator, Sequence
from contextlib import suppress
from typing import Any, BinaryIO

import numpy as np
from numpy.typing import NDArray

from walklearn.extras import arrow_memory, package
from walklearn.progress import OnPosition
from walklearn.tables.csv_column import CsvColumn

Array = NDArray[Any]

BYTES_AT_ONCE = 2**22
BYTES_AT_FIRST = 2**16  # enough to find the columns of text
BYTES_FOR_A_CORE = 2**20


class NotPlain(Exception):
    """Python's reader and pyarrow might read this file differently."""


def read_blocks(
    file: BinaryIO, columns: Sequence[CsvColumn], separator: str, on_position: OnPosition
) -> int:
    """Read the rows after the header into the columns, and return their number.

    on_position: called with the position in the file after each block.
    """
    reader, count = _Reader(columns, separator), 0
    for content in _blocks(file):
        count += reader.add(content, check_plain(content, separator))
        on_position(file.tell())
    return count


def _blocks(file: BinaryIO) -> Iterator[bytes]:
    """Yield the file in blocks of whole rows."""
    rest, size = b"", BYTES_AT_FIRST
    while chunk := file.read(size):
        content, size = rest + chunk, BYTES_AT_ONCE
        end = _end_of_rows(content)
        if not end and len(content) > BYTES_AT_ONCE:  # a row that does not end
            raise NotPlain
        rest = content[end:]
        if end:
            yield content[:end]
    if rest:
        yield rest if rest.endswith(b"\n") else rest + b"\n"


def _end_of_rows(content: bytes) -> int:
    """Return the position after the last line break that is not inside a quoted cell."""
    quotes, end = _positions(content, b'"'), content.rfind(b"\n") + 1
    while (before := int(np.searchsorted(quotes, end))) % 2:
        end = content.rfind(b"\n", 0, int(quotes[before - 1])) + 1
    return end


def _positions(content: bytes, character: bytes) -> Array:
    if character not in content:
        return np.empty(0, dtype=np.int64)
    return np.flatnonzero(np.frombuffer(content, dtype=np.uint8) == ord(character))


def check_plain(content: bytes, separator: str) -> Array:
    """Return the positions of quotes; raise `NotPlain` if readers may differ on these lines.

    Quotes by turns open a cell, right after a separator or line break, and close it, right before
    one. A doubled quote inside a cell closes and opens it, which makes no difference.
    """
    # pyarrow removes a byte order mark at the start of any block.
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
    # Python's reader refuses longer cells; half of such a cell would fill a stretch.
    stretch, ends = csv.field_size_limit() // 2, (separator.encode(), b"\n")
    for start in range(0, len(content) - stretch, stretch):
        if all(content.find(end, start, start + stretch) < 0 for end in ends):
            raise NotPlain
    return quotes


class _Reader:
    """Adds blocks to columns, and remembers the columns that are not plain numbers."""

    def __init__(self, columns: Sequence[CsvColumn], separator: str) -> None:
        self.columns, self.separator = columns, separator
        self.names = [column.name for column in columns]
        self.texts = {column.name for column in columns if column.declared_text}
        self.arrow = package("pyarrow", "tables", "reading in blocks needs")
        self.csv = package("pyarrow.csv", "tables", "reading in blocks needs")

    def add(self, content: bytes, quotes: Array) -> int:
        """Add the rows of a block to the columns, and return their number."""
        breaks_in_cells = np.searchsorted(quotes, _positions(content, b"\n")) % 2
        texts, table = self._parsed(content, bool(breaks_in_cells.any()))
        for column, cells in zip(self.columns, table.columns, strict=True):
            for chunk in cells.chunks:
                if column.name not in texts:
                    column.add_numbers(np.from_dlpack(chunk))
                    continue
                different = chunk.dictionary.to_pylist()
                if max(map(len, different), default=0) > csv.field_size_limit():
                    raise NotPlain
                column.add(different, np.from_dlpack(chunk.indices))
        self.texts |= {column.name for column in self.columns if column.has_texts}
        return int(table.num_rows)

    def _parsed(self, content: bytes, breaks_in_cells: bool) -> tuple[Container[str], Any]:
        """Return the columns that are read as texts, and pyarrow's table of all columns.

        If a cell of another column is no finite number, all columns are read as texts.
        """
        with suppress(self.arrow.ArrowInvalid):
            table = self._table(content, breaks_in_cells, self.texts)
            odd = {  # pyarrow accepts more notations of NaN than Python
                name
                for name in self.names
                if name not in self.texts
                and not all(np.isfinite(np.from_dlpack(part)).all() for part in table[name].chunks)
            }
            if not odd:
                return self.texts, table
            self.texts |= odd
        with suppress(self.arrow.ArrowInvalid):
            return self.names, self._table(content, breaks_in_cells, self.names)
        raise NotPlain

    def _table(self, content: bytes, breaks_in_cells: bool, texts: Container[str]) -> Any:
        """Return numbers as such, and texts as a dictionary with an index for each cell."""
        number = self.arrow.float64()
        text = self.arrow.dictionary(self.arrow.int32(), self.arrow.string())
        return self.csv.read_csv(
            arrow_memory(content),
            self.csv.ReadOptions(column_names=self.names, block_size=BYTES_FOR_A_CORE),
            self.csv.ParseOptions(delimiter=self.separator, newlines_in_values=breaks_in_cells),
            self.csv.ConvertOptions(
                column_types={name: text if name in texts else number for name in self.names},
                null_values=[],
            ),
        )
