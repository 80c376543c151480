"""Read CSV files. Each row has as many cells as the header; a column is numbers or text.

If some cells of a column are numbers and others are not, the error names the first wrong cell,
unless the column was declared as text. Cells may be quoted, the file may
begin with a byte order mark, and the separator is guessed from the header among comma, semicolon,
tab and bar.
"""

from __future__ import annotations

import csv
from codecs import BOM_UTF8
from collections.abc import Collection, Iterable, Iterator, Sequence
from contextlib import suppress
from functools import partial
from importlib.util import find_spec
from itertools import islice
from pathlib import Path
from typing import Any, TextIO

from walklearn.progress import OnPosition, reading_bar
from walklearn.tables.compressed import open_bytes, open_text
from walklearn.tables.csv_blocks import NotPlainError, check_plain, read_blocks
from walklearn.tables.csv_column import CsvColumn
from walklearn.tables.table import DataError, Table, check_header, reads_as_number, row_of
from walklearn.wording import plural

DELIMITERS = (",", ";", "\t", "|")
ROWS_AT_ONCE = 20_000
Content = tuple[list[CsvColumn], int, str]  # columns, number of rows, separator
MIN_BYTES_FOR_ARROW = 2**22  # reading a smaller file takes less time than importing pyarrow


def read_csv(path: Path, delimiter: str | None = None, text: Collection[str] = ()) -> Table:
    """Read the columns of a CSV file with a header.

    delimiter: the separator of cells; guessed if None. text: columns that are text even if they
    look like numbers, and in which no word stands for a missing value. If pyarrow is installed, it
    reads large files, with the same results and messages.
    """
    content, encoding = None, _encoding_of(path)
    is_large = path.stat().st_size >= MIN_BYTES_FOR_ARROW and encoding == "utf-8-sig"
    try:
        with reading_bar(path) as on_position:
            if is_large and find_spec("pyarrow"):
                # After any error Python's reader starts again, because its messages are better.
                with suppress(NotPlainError, DataError, UnicodeDecodeError, csv.Error):
                    content = _read_blocks(path, delimiter, text, on_position)
            if content is None:
                with open_text(path, encoding, newline="") as file:
                    content = _read(file, str(path), delimiter, text, on_position)
    except UnicodeDecodeError as error:
        raise DataError(
            f"{path} is not text in UTF-8 (byte {error.object[error.start]:#x} at position "
            f"{error.start}). Save it as 'CSV UTF-8', or convert it: "
            f"iconv -f latin1 -t utf-8 {path.name} > new.csv"
        ) from error
    columns, count, separator = content
    name_row = partial(_row_with_line, path, encoding, separator)
    checked = {column.name: partial(column.finish, name_row) for column in columns}
    unchecked = {column.name: column.cells for column in columns}
    return Table(checked, count, str(path), name_row, unchecked)


def _read(
    file: TextIO, source: str, delimiter: str | None, text: Collection[str], on_position: OnPosition
) -> Content:
    """Read cell by cell with Python's reader, which accepts every dialect."""
    separator, count = _separator_of(source, file.readline(), delimiter), 0
    file.seek(0)
    reader = _reader(file, separator)
    try:
        columns = _columns(source, next(reader), separator, text)
        rows = _check_lengths(reader, source, len(columns))
        while block := list(islice(rows, ROWS_AT_ONCE)):
            count += len(block)
            for column, cells in zip(columns, zip(*block, strict=True), strict=True):
                column.add(cells)
            on_position(file.buffer.tell())
    except csv.Error as error:
        raise DataError(
            f"{source}, line {reader.line_num}: {error}. Quotes come in pairs; one inside a "
            'quoted cell is doubled: "say ""hello"" to her".'
        ) from error
    return columns, count, separator


def _read_blocks(
    path: Path, delimiter: str | None, text: Collection[str], on_position: OnPosition
) -> Content:
    """Read with pyarrow; raise `NotPlainError` if Python's reader might read another table."""
    with open_bytes(path) as file:
        header = file.readline().removeprefix(BOM_UTF8)
        separator = _separator_of(str(path), header.decode(), delimiter)
        if separator not in DELIMITERS:
            raise NotPlainError
        check_plain(header, separator)
        [names] = _reader([header.decode()], separator)
        columns = _columns(str(path), names, separator, text)
        return columns, read_blocks(file, columns, separator, on_position), separator


def _reader(lines: Iterable[str], separator: str) -> Any:
    return csv.reader(lines, delimiter=separator, skipinitialspace=True, strict=True)


def _separator_of(source: str, first_line: str, delimiter: str | None) -> str:
    """Return the delimiter if there is one, else the most frequent separator of the first line."""
    if not first_line.strip():
        raise DataError(
            f"{source} has an empty first line, or no lines: the first line names the columns."
        )
    return delimiter or max(DELIMITERS, key=first_line.count)


def _columns(
    source: str, header: Sequence[str], separator: str, text: Collection[str]
) -> list[CsvColumn]:
    names = [name.strip() for name in header]
    if "" in names:
        raise DataError(
            f"{source}: column {names.index('') + 1} has no name in the first line. If pandas "
            "wrote the file, write it with to_csv(..., index=False)."
        )
    if all(map(reads_as_number, names)):
        raise DataError(
            f"{source}: the first line should name the columns, but it is data: "
            f"{separator.join(names)[:80]!r}. Put a line with names above it."
        )
    check_header(source, names, text)
    return [CsvColumn(name, name in text) for name in names]


def _with_lines(reader: Any) -> Iterator[tuple[int, list[str]]]:
    """Yield the first line and the cells of each row that is not blank."""
    last_line = reader.line_num
    for row in reader:
        if row:
            yield last_line + 1, row
        last_line = reader.line_num


def _check_lengths(reader: Any, source: str, width: int) -> Iterator[list[str]]:
    """Yield the rows that are not blank; a DataError if one is not as long as the header."""
    for number, (line, row) in enumerate(_with_lines(reader), start=1):
        if len(row) != width:
            raise DataError(
                f"{source}, row {number} (line {line}) has {plural(len(row), 'cell')}, the header "
                f"has {width}: {reader.dialect.delimiter.join(row)[:80]!r}. Put a cell that "
                "contains the separator in quotes, and give every column a cell."
            )
        yield row


def _row_with_line(path: Path, encoding: str, separator: str, row: int) -> str:
    """Name a row and its line; the file is read again to find the line."""
    with suppress(OSError), open_text(path, encoding, newline="") as file:
        rows = _with_lines(_reader(file, separator))
        for line, _ in islice(rows, row + 1, None):  # after the header
            return f"{row_of(str(path), row)} (line {line})"
    return row_of(str(path), row)


def _encoding_of(path: Path) -> str:
    """Return the encoding: UTF-16 if the file begins with its byte order mark, else UTF-8."""
    with open_bytes(path) as file:
        start = file.read(4)
    if start.startswith(b"PK\x03\x04"):
        raise DataError(
            f"{path} is not text: it looks like a spreadsheet or a zip file. Save it as CSV."
        )
    return "utf-16" if start.startswith((b"\xff\xfe", b"\xfe\xff")) else "utf-8-sig"
