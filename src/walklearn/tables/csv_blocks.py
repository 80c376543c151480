"""Read a large CSV file in blocks with pyarrow, many times as fast as with Python's reader.

pyarrow gets only files that both readers read alike: lines end in \\n or \\r\\n, and quotes enclose
whole cells. Finite numbers are the same in both; `CsvColumn` receives all other cells as text.
Anything else (a row that is too short, a stray quote, bytes that are not UTF-8) raises
`NotPlainError`: Python's reader then accepts the file or names the mistake.

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
BYTES_AT_FIRST = 2**16  # usually enough to find the columns of text
BYTES_FOR_A_CORE = 2**20


class NotPlainError(Exception):
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
        if not end and len(content) > BYTES_AT_ONCE:  # a row longer than a block
            raise NotPlainError
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
    """Return the positions of quotes; raise `NotPlainError` if readers may differ on these lines.

    Quotes alternately open a cell, right after a separator or line break, and close it, right
    before one. A doubled quote inside a cell counts as closing and opening it.
    """
    # pyarrow removes a byte order mark at the start of any block.
    is_unusual = b"\0" in content or content.startswith(BOM_UTF8) or not content.endswith(b"\n")
    if is_unusual or (b"\r" in content and content.count(b"\r") != content.count(b"\r\n")):
        raise NotPlainError
    quotes = _positions(content, b'"')
    if len(quotes):
        codes = np.frombuffer(b"\n" + content, dtype=np.uint8)
        neighbours = [*b'\n"', *separator.encode()]
        all_open = np.isin(codes[quotes[::2]], neighbours).all()
        all_close = np.isin(codes[quotes[1::2] + 2], [*b"\r", *neighbours]).all()
        if len(quotes) % 2 or not all_open or not all_close:
            raise NotPlainError
    # Python's reader refuses longer cells. Such a cell would fill at least one whole window.
    window, ends = csv.field_size_limit() // 2, (separator.encode(), b"\n")
    for start in range(0, len(content) - window, window):
        if all(content.find(end, start, start + window) < 0 for end in ends):
            raise NotPlainError
    return quotes


class _Reader:
    """Adds blocks to columns, and stores which columns are not only numbers."""

    def __init__(self, columns: Sequence[CsvColumn], separator: str) -> None:
        self.columns, self.separator = columns, separator
        self.names = [column.name for column in columns]
        self.texts = {column.name for column in columns if column.declared_text}
        self.arrow = package("pyarrow", "tables", "reading in blocks needs")
        self.csv = package("pyarrow.csv", "tables", "reading in blocks needs")

    def add(self, content: bytes, quotes: Array) -> int:
        """Add the rows of a block to the columns, and return their number."""
        breaks_in_cells = np.searchsorted(quotes, _positions(content, b"\n")) % 2
        texts, table = self._parse(content, bool(breaks_in_cells.any()))
        for column, cells in zip(self.columns, table.columns, strict=True):
            for chunk in cells.chunks:
                if column.name not in texts:
                    column.add_numbers(np.from_dlpack(chunk))
                    continue
                distinct = chunk.dictionary.to_pylist()
                if max(map(len, distinct), default=0) > csv.field_size_limit():
                    raise NotPlainError
                column.add(distinct, np.from_dlpack(chunk.indices))
        self.texts |= {column.name for column in self.columns if column.has_texts}
        return int(table.num_rows)

    def _parse(self, content: bytes, breaks_in_cells: bool) -> tuple[Container[str], Any]:
        """Return the columns that are read as texts, and pyarrow's table of all columns.

        If a cell of another column is not a finite number, all columns are read as text.
        """
        with suppress(self.arrow.ArrowInvalid):
            table = self._table(content, breaks_in_cells, self.texts)
            not_finite = {  # pyarrow accepts more notations of NaN than Python
                name
                for name in self.names
                if name not in self.texts
                and not all(np.isfinite(np.from_dlpack(part)).all() for part in table[name].chunks)
            }
            if not not_finite:
                return self.texts, table
            self.texts |= not_finite
        with suppress(self.arrow.ArrowInvalid):
            return self.names, self._table(content, breaks_in_cells, self.names)
        raise NotPlainError

    def _table(self, content: bytes, breaks_in_cells: bool, texts: Container[str]) -> Any:
        """Return numbers as floats, and texts as a dictionary with an index for each cell."""
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
