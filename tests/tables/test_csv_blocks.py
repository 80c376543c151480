"""pyarrow and Python's reader give the same tables and the same messages."""

from __future__ import annotations

import csv
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from walklearn import progress
from walklearn.tables import DataError, csv_blocks, csv_file
from walklearn.tables.csv_blocks import NotPlainError
from walklearn.tables.csv_file import read_csv


@contextmanager
def reading(*, in_blocks: bool, size: int = 60) -> Iterator[None]:
    """Every file counts as large, or none; blocks of few bytes."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(csv_file, "MIN_BYTES_FOR_ARROW", 0 if in_blocks else sys.maxsize)
        patch.setattr(csv_file, "ROWS_AT_ONCE", 3)
        patch.setattr(csv_blocks, "BYTES_AT_FIRST", size)
        patch.setattr(csv_blocks, "BYTES_AT_ONCE", size)
        patch.setattr(csv_blocks, "BYTES_FOR_A_CORE", max(size, 64))
        yield


def outcome(path: Path, delimiter: str | None, text: list[str]) -> Any:
    """Return the visible parts of a table, with messages in place of refused parts."""
    try:
        table = read_csv(path, delimiter, text)
    except DataError as error:
        return str(error)
    columns: dict[str, Any] = {}
    for name in table:
        try:
            cells = table[name]
            columns[name] = cells.dtype, [(type(cell), repr(cell)) for cell in cells.tolist()]
        except DataError as error:
            columns[name] = str(error)
    return columns, [table.name_row(row) for row in range(table.row_count)]


def check_same(content: bytes, delimiter: str | None = None, text: tuple[str, ...] = ()) -> Any:
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "t.csv")
        path.write_bytes(content)
        with reading(in_blocks=False):
            expected = outcome(path, delimiter, list(text))
        for size in (60, 200, 2**22):
            with reading(in_blocks=True, size=size):
                assert outcome(path, delimiter, list(text)) == expected
    return expected


NUMBERS = [
    "0", "-0", "1e5", "1_000", " 3 ", "+7", ".5", "1.", "٣", "1e400", "1e-400", "3.14\t", "1E+05",
    "00012", "0.1234567890123456789", "2.2250738585072011e-308", "9007199254740993",
]  # fmt: skip
ODD = ["", " ", "nan", "NaN", "-nan", "nan(1)", "inf", "-Infinity", "NA", "null", "?", "0x1", "1e"]
TEXTS = [
    "Oslo", " São Paulo ", "a, b", "a;b|c\td", "two\nlines", "two\r\nlines", 'say "hi"', '"',
    "True", "1,5", "\u00a0x\u2003", "\ufeffx", "#", "\x0b", "\x1c", "\x85", "\u2028", "=", "'",
]  # fmt: skip
WRITTEN = [*NUMBERS, *ODD, *TEXTS]
RAW = [
    '"', '""', '"a"b', 'a"b', ' "x"', '"x" ', "\r", "\0", "\\", '"a""b"', "a\rb", '"a\rb"', '"""',
    '""""', "1",
]  # fmt: skip
NAMES = ["a", "b", "c", "a", "", "1", "x y", '"q"', "n,m", " s "]


@st.composite
def files(draw: st.DrawFn) -> tuple[bytes, str | None, tuple[str, ...]]:
    """Files as people and programs write them, and some that nobody should."""
    separator = draw(st.sampled_from([*",;\t|" * 3, *": "]))
    newline = draw(st.sampled_from(["\n", "\r\n"] * 4 + ["\r"]))
    plain_names = draw(st.integers(0, 5)) > 0
    width = draw(st.integers(1, 3))
    names = ["a", "b", "c"][:width] if plain_names else draw(
        st.lists(st.sampled_from(NAMES), min_size=width, max_size=width)
    )  # fmt: skip
    kinds = [draw(st.sampled_from([NUMBERS, TEXTS, WRITTEN] * 3 + [RAW])) for _ in names]
    quoting = draw(st.sampled_from([csv.QUOTE_MINIMAL, csv.QUOTE_ALL]))
    lines = [written(names, separator, quoting)]
    for _ in range(draw(st.integers(0, 12))):
        cells = [draw(st.sampled_from(kind)) for kind in kinds]
        shape = draw(st.integers(0, 60))
        if shape == 0:
            lines.append("")
        elif shape == 1:
            cells = cells[:-1] if draw(st.booleans()) else [*cells, "1"]
        if any(kind is RAW for kind in kinds):
            lines.append(separator.join(cells))
        else:
            lines.append(written(cells, separator, quoting))
    text = newline.join(lines) + draw(st.sampled_from(["", newline, newline * 2]))
    encoding = draw(st.sampled_from(["utf-8"] * 8 + ["utf-8-sig", "utf-16", "latin1"]))
    delimiter = separator if draw(st.booleans()) or separator in ": " else None
    declared = tuple(draw(st.sets(st.sampled_from(["a", "b"]), max_size=1))) if plain_names else ()
    return text.encode(encoding, errors="replace"), delimiter, declared


def written(cells: list[str], separator: str, quoting: Any) -> str:
    """A line as Python's writer has it."""
    pieces: list[str] = []

    class File:
        write = staticmethod(pieces.append)

    csv.writer(File, delimiter=separator, quoting=quoting, lineterminator="").writerow(cells)
    return "".join(pieces)


@given(files())
@example((b"a,b\n1,x\n\n2,y\n\r\n3,z", None, ()))
@example((b'a,b\n1,"x\ny"\n2,"z"\n', None, ()))
@example((b"a\nnan(1)\nnan(2)\n", None, ()))
@example((b"a,b\n1,2\n\xef\xbb\xbf3,4\n", None, ()))
@example((b"a\n\nOslo", None, ()))
@example((b"a\nnan\nnan\nnan\nx\n", None, ()))
@settings(max_examples=400, deadline=None)
def test_the_two_readers_agree(
    case: tuple[bytes, str | None, tuple[str, ...]],
) -> None:
    check_same(*case)


@given(st.binary(max_size=80))
@settings(max_examples=150, deadline=None)
def test_any_bytes(content: bytes) -> None:
    check_same(b"a,b\n1,2\n" + content)


@pytest.mark.parametrize("where", [1, 40, 199])
@pytest.mark.parametrize(
    "wrong", ["NA", "", "nan", "inf", "abc", '"1,5"', "2,3", '"', "\xff", "x\ry"]
)
def test_the_same_messages_wherever_the_cell_is(where: int, wrong: str) -> None:
    lines = [f"{k},{k / 7},c{k % 3}" for k in range(200)]
    lines[where] = f"1,{wrong},c1"
    content = "\n".join(["a,b,c", *lines]).encode("latin1")
    assert f"row {where + 1} (line {where + 2})" in str(check_same(content)) or wrong in '"\xff'
    assert "is missing ('NA') (2 such rows" in str(check_same(b"a\n1\nNA\n2\nnan\n3\n"))


def test_long_cells_are_left_to_pythons_reader() -> None:
    limit = csv.field_size_limit()
    for cell in (
        "9" * limit,
        "9" * (limit + 1),
        '"' + "a, " * limit + '"',
        '"' + "a\n" * limit + '"',
    ):
        check_same(f"a,b\n1,2\n{cell},3\n4,5\n".encode(), ",")


@pytest.mark.parametrize("newline", ["\n", "\r\n"])
def test_usual_files_are_read_by_pyarrow(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, newline: str
) -> None:
    """Quoted names and texts, line breaks and quotes in these, blank lines, missing values."""
    rows = ['1.5,"Rome, Italy",NA', '2,"two\nlines",3', '"3","say ""hi""",nan', "", "4,Oslo,"]
    path = tmp_path / "t.csv"
    path.write_bytes(newline.join(['"number","text","broken"', *rows * 50]).encode())

    def refuse(*_: object) -> None:
        raise AssertionError("read by Python")

    monkeypatch.setattr(csv_file, "_read", refuse)
    with reading(in_blocks=True, size=128):
        table = read_csv(path)
    assert table["number"].tolist() == [1.5, 2.0, 3.0, 4.0] * 50
    assert table["text"].tolist() == ["Rome, Italy", "two\nlines", 'say "hi"', "Oslo"] * 50
    assert [table.name_row(row).partition("(")[2] for row in range(6)] == [
        "line 2)", "line 3)", "line 5)", "line 7)", "line 8)", "line 9)"
    ]  # fmt: skip
    with pytest.raises(DataError, match=r"row 1 .*is missing \('NA'\) \(150 such rows"):
        table["broken"]


def test_without_pyarrow_pythons_reader_is_used(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "t.csv").write_text("a,b\n1,x\n")
    monkeypatch.setattr(csv_file, "find_spec", lambda name: None)
    monkeypatch.setattr(csv_file, "read_blocks", None)
    with reading(in_blocks=True):
        assert read_csv(tmp_path / "t.csv")["a"].tolist() == [1.0]


def test_files_that_are_not_plain_are_refused() -> None:
    for content in (b"a\rb\n", b'a"b"\n', b'"a" ,b\n', b'a, "b"\n', b"a\0\n", b'"a\n', b"a"):
        with pytest.raises(NotPlainError):
            csv_blocks.check_plain(content, ",")
    assert csv_blocks.check_plain(b'"a","b ""c"", d"\r\n', ",").tolist()[:3] == [0, 2, 4]


def test_a_line_of_progress_in_a_terminal_only(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "large.csv"
    path.write_text("a,b\n" + "1,2\n" * 100)
    monkeypatch.setattr(progress, "MIN_BYTES", 0)
    monkeypatch.setattr(progress, "BAR_DELAY", 0.0)
    for in_blocks in (True, False):
        with reading(in_blocks=in_blocks):
            read_csv(path)
            assert capsys.readouterr().err == ""
            monkeypatch.setattr(sys.stderr, "isatty", lambda: True, raising=False)
            assert np.sum(read_csv(path)["a"]) == 100.0
        text = capsys.readouterr().err
        assert "reading large.csv: 100%" in text
        assert "404/404" in text
        monkeypatch.undo()
        monkeypatch.setattr(progress, "MIN_BYTES", 0)
        monkeypatch.setattr(progress, "BAR_DELAY", 0.0)
