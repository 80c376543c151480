"""CSV files, read with care: every row must fit the header and every column be of one kind.

A column whose cells are all numbers is numbers; one in which none is, is text. A mixture is an
error that names the first cell that does not fit, unless the column was declared as text.
Cells may be quoted, the file may begin with a byte order mark, and the separator is guessed
from the header among comma, semicolon, tab and bar.
"""

from __future__ import annotations

import csv
from array import array
from codecs import BOM_UTF8
from collections.abc import Collection, Iterator, Sequence
from contextlib import suppress
from functools import partial
from importlib.util import find_spec
from itertools import islice
from pathlib import Path
from typing import Any, TextIO

from walklearn.progress import OnPosition, reading_bar
from walklearn.tables.compressed import open_bytes, open_text
from walklearn.tables.csv_blocks import NotPlain, check_plain, read_blocks
from walklearn.tables.csv_column import CsvColumn
from walklearn.tables.table import DataError, Table, no_column, place, reads_as_number
from walklearn.wording import plural

DELIMITERS = (",", ";", "\t", "|")
ROWS_AT_ONCE = 20_000
Columns = tuple[list[CsvColumn], "array[int]"]  # with the line of each row
LARGE = 2**22  # bytes: a smaller file is read before pyarrow is imported


def read_csv(path: Path, delimiter: str | None = None, text: Collection[str] = ()) -> Table:
    """Read the columns of a CSV file with a header.

    delimiter: what separates cells; guessed if None. text: columns that are text whatever
    they look like, and in which no word stands for a missing value. A large file is read with
    pyarrow where that is installed; it makes no difference to the table or to a message.
    """
    columns, lines = _read_columns(path, delimiter, text)
    where = partial(place, str(path), lines)
    found = {column.name: partial(column.finish, where) for column in columns}
    unchecked = {column.name: column.cells for column in columns}
    return Table(found, len(lines), str(path), lines, unchecked=unchecked)


def _read_columns(path: Path, delimiter: str | None, text: Collection[str]) -> Columns:
    encoding, is_large = encoding_of(path), path.stat().st_size >= LARGE
    try:
        with reading_bar(path) as on_position:
            if is_large and encoding == "utf-8-sig" and find_spec("pyarrow"):
                # Whatever is wrong, the careful reader knows best how to say it.
                with suppress(NotPlain, DataError, UnicodeDecodeError, csv.Error):
                    return _read_blocks(path, delimiter, text, on_position)
            with open_text(path, encoding, newline="") as file:
                return _read(file, str(path), delimiter, text, on_position)
    except UnicodeDecodeError as error:
        raise DataError(
            f"{path} is not text in UTF-8 (byte {error.object[error.start]:#x} at position "
            f"{error.start}). Save it as 'CSV UTF-8', or convert it: "
            f"iconv -f latin1 -t utf-8 {path.name} > new.csv"
        ) from error


def _read(
    file: TextIO, source: str, delimiter: str | None, text: Collection[str], on_position: OnPosition
) -> Columns:
    """Read cell by cell with Python's reader, which allows for everything."""
    separator = separator_of(source, file.readline(), delimiter)
    file.seek(0)
    reader = csv.reader(file, delimiter=separator, skipinitialspace=True, strict=True)
    try:
        columns = _columns(source, next(reader), separator, text)
        lines = array("q")
        for block in _blocks(_checked(reader, source, len(columns), lines)):
            for column, cells in zip(columns, zip(*block, strict=True), strict=True):
                column.add(cells)
            on_position(file.buffer.tell())
    except csv.Error as error:
        raise DataError(
            f"{source}, line {reader.line_num}: {error}. Quotes come in pairs; one inside a "
            'quoted cell is doubled: "say ""hello"" to her".'
        ) from error
    return columns, lines


def _read_blocks(
    path: Path, delimiter: str | None, text: Collection[str], on_position: OnPosition
) -> Columns:
    """Read with pyarrow; `NotPlain` where only the careful reader can be relied on."""
    with open_bytes(path) as file:
        header = file.readline().removeprefix(BOM_UTF8)
        separator = separator_of(str(path), header.decode(), delimiter)
        if separator not in DELIMITERS:
            raise NotPlain
        check_plain(header, separator)
        [names] = csv.reader(
            [header.decode()], delimiter=separator, skipinitialspace=True, strict=True
        )
        columns = _columns(str(path), names, separator, text)
        return columns, read_blocks(file, columns, separator, on_position)


def separator_of(source: str, first_line: str, delimiter: str | None) -> str:
    """What separates cells: what was said, or what the first line has most of."""
    if not first_line.strip():
        raise DataError(
            f"{source} is empty, or its first line is: the first line names the columns."
        )
    return delimiter or max(DELIMITERS, key=first_line.count)


def _columns(
    source: str, header: Sequence[str], separator: str, text: Collection[str]
) -> list[CsvColumn]:
    names = _check_header(source, [name.strip() for name in header], separator)
    for name in text:
        if name not in names:
            raise no_column(source, name, names)
    return [CsvColumn(name, name in text) for name in names]


def _checked(reader: Any, source: str, width: int, lines: array[int]) -> Iterator[list[str]]:
    """The rows that are not blank, each as long as the header."""
    after = reader.line_num
    for row in reader:
        if row:
            lines.append(after + 1)
            if len(row) != width:
                raise DataError(
                    f"{place(source, lines, len(lines) - 1)} has {plural(len(row), 'cell')}, the "
                    f"header has {width}: {reader.dialect.delimiter.join(row)[:80]!r}. Put a "
                    "cell that contains the separator in quotes, and give every column a cell."
                )
            yield row
        after = reader.line_num


def _blocks(rows: Iterator[list[str]]) -> Iterator[list[list[str]]]:
    while block := list(islice(rows, ROWS_AT_ONCE)):
        yield block


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
    if all(map(reads_as_number, names)):
        raise DataError(
            f"{source}: the first line should name the columns, but it is data: "
            f"{delimiter.join(names)[:80]!r}. Put a line with names above it."
        )
    return names


def encoding_of(path: Path) -> str:
    """UTF-8, or the UTF-16 that spreadsheets write, told by its byte order mark."""
    with open_bytes(path) as file:
        start = file.read(4)
    if start.startswith(b"PK\x03\x04"):
        raise DataError(
            f"{path} is not text: it looks like a spreadsheet or a zip file. Save it as CSV."
        )
    return "utf-16" if start.startswith((b"\xff\xfe", b"\xfe\xff")) else "utf-8-sig"
