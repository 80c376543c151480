"""The rows of a file as their owner wrote them, a digest of each: by it a row is known again.

It is of all cells of the row and of nothing else, so it is the same whatever is made of them: which
columns are used, how they are scaled, whether they are read as numbers or as text. Neither the
order of rows and columns nor the columns' names matter, nor how a number is written; a cell that
was changed, added or left out does. Sparse rows keep the places of their numbers, which are most of
what they say.

>>> import pathlib, tempfile
>>> with tempfile.TemporaryDirectory() as folder:
...     one, other = pathlib.Path(folder, "one.csv"), pathlib.Path(folder, "other.csv")
...     _ = one.write_text("age,name\\n30,Ann\\n41,Bo\\n")
...     _ = other.write_text("called;years\\nBo;41.0\\nCy;\\n")
...     len(set(raw_rows(one)) & set(raw_rows(other)))
1
"""

from __future__ import annotations

import csv
import hashlib
import os
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

import numpy as np

from walklearn.files.compressed import open_text, suffix_of
from walklearn.files.csv_file import encoding_of, separator_of
from walklearn.files.extras import package
from walklearn.files.sparse_table import read_svmlight


def raw_rows(path: str | os.PathLike[str]) -> list[bytes]:
    """A digest of each row of a file that `read_table` reads."""
    source = Path(path)
    kind = suffix_of(source)
    if kind == ".parquet":
        return [_digest(row) for row in _parquet_rows(source)]
    if kind == ".npz":
        return [_digest(row) for row in _npz_rows(source)]
    if kind in (".svmlight", ".libsvm", ".svm"):
        table = read_svmlight(source, None, ())
        beside = [table[name].tolist() for name in table.beside]
        return digests_of(table.all_rows, zip(*beside, strict=True))
    return [_digest(row) for row in _csv_rows(source)]


def digests_of(X: Any, beside: Iterable[Iterable[object]]) -> list[bytes]:
    """A digest of each row of numbers and of what stands beside it, such as its target."""
    if not hasattr(X, "indptr"):
        rows: Iterable[list[object]] = np.asarray(X, dtype=np.float64).tolist()
    else:
        rows = (_entries(X, at) for at in range(X.shape[0]))
    return [_digest([*row, *others]) for row, others in zip(rows, beside, strict=True)]


def _entries(X: Any, row: int) -> list[object]:
    """The numbers of a sparse row that are not 0, with their places."""
    here = slice(X.indptr[row], X.indptr[row + 1])
    pairs = zip(X.indices[here].tolist(), X.data[here].tolist(), strict=True)
    return [f"{place}:{_canonical(value)}" for place, value in pairs if value]


def _digest(cells: Iterable[object]) -> bytes:
    texts = sorted(map(_canonical, cells))
    return hashlib.sha256("".join(f"{len(text)}:{text}" for text in texts).encode()).digest()


def _canonical(cell: object) -> str:
    """The same text for a number however it is written; other texts lose the space around them."""
    text = "" if cell is None else str(cell).strip()
    try:
        return repr(float(text) + 0.0)  # 0 and -0 are one number
    except ValueError:
        return text


def _csv_rows(path: Path) -> Iterator[list[str]]:
    with open_text(path, encoding_of(path), newline="") as file:
        separator = separator_of(str(path), file.readline(), None)
        file.seek(0)
        reader = csv.reader(file, delimiter=separator, skipinitialspace=True, strict=True)
        next(reader)
        yield from filter(None, reader)


def _parquet_rows(path: Path) -> Iterator[tuple[object, ...]]:
    parquet = package("pyarrow.parquet", "tables", "Parquet files need")
    columns = parquet.read_table(path).columns
    return zip(*(column.to_pylist() for column in columns), strict=True)


def _npz_rows(path: Path) -> Iterator[tuple[object, ...]]:
    with path.open("rb") as file, np.load(file, allow_pickle=False) as archive:
        arrays = [archive[name] for name in archive.files if name != "columns"]
    columns = [column for array in arrays for column in np.atleast_2d(array.T).tolist()]
    return zip(*columns, strict=True)
