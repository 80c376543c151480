"""`read_table`, and the readers of binary formats."""

from __future__ import annotations

import gzip
import os
import zipfile
import zlib
from collections.abc import Callable, Collection, Iterable, Mapping
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from walklearn.extras import package
from walklearn.tables.compressed import suffix_of
from walklearn.tables.csv_file import read_csv
from walklearn.tables.sparse_table import read_svmlight
from walklearn.tables.table import DataError, Table, check_cells, check_header, row_of, unusable
from walklearn.wording import join_names, no_such_file

Array = NDArray[Any]


def read_table(
    path: str | os.PathLike[str], *, delimiter: str | None = None, text: Collection[str] = ()
) -> Table:
    """Read the columns of a .csv (.tsv, .txt, .csv.gz), .parquet, .npz or .svmlight (.libsvm) file.

    Each column is checked when it is first used. In an .npz file the array X has the columns
    x0, x1, … (or those named in an array `columns`), and every other array of one dimension is a
    column of that name. In an SVMlight file the feature with index 7 is the column x7, the
    target is y, and the query, if rows have one, is qid.

    Parameters
    ----------
    path
        The file.
    delimiter
        Separator of the cells of a CSV file; guessed if None.
    text
        Columns that are text even if they look like numbers.

    Returns
    -------
    Table
        The columns by name.

    Examples
    --------
    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = Path(folder, "people.csv")
    ...     _ = path.write_text("name,age\\nAda,36\\nAlan,41\\n")
    ...     table = read_table(path)
    >>> list(table), table["age"], table["name"]
    (['name', 'age'], array([36., 41.]), array(['Ada', 'Alan'], dtype=object))
    """
    source = Path(path)
    if not source.is_file():
        raise DataError(no_such_file(source))
    is_csv, reader = suffix_of(source) in _CSV, _BINARY.get(source.suffix.lower())
    if not is_csv and reader is None:
        raise DataError(
            f"{source} has an unknown suffix. Save the data as "
            f"{', '.join([*_CSV, *_BINARY])} or .csv.gz."
        )
    if not is_csv and delimiter is not None:
        raise DataError(f"{source} is not CSV and has no delimiter. Leave out delimiter.")
    if source.stat().st_size == 0:
        raise DataError(f"{source} is empty.")
    try:
        return reader(source, text) if reader else read_csv(source, delimiter, text)
    except (EOFError, gzip.BadGzipFile, zlib.error) as error:
        raise DataError(
            f"{source} is compressed by gzip, and cut off or damaged ({error}). Copy it again."
        ) from error


def _read_parquet(path: Path, text: Collection[str]) -> Table:
    parquet = package("pyarrow.parquet", "tables", "Parquet files need")
    try:
        content = parquet.read_table(path)
    except (OSError, ValueError) as error:
        raise DataError(f"{path} is not a Parquet file, or is damaged: {error}") from error
    names = content.column_names
    check_header(str(path), names, text)
    checked = {name: partial(_from_arrow, path, name, content[name], text) for name in names}
    unchecked = {name: partial(content.column, name) for name in names}
    return Table(checked, content.num_rows, str(path), unchecked=unchecked)


def _from_arrow(path: Path, name: str, cells: Any, text: Collection[str]) -> Array:
    arrow = package("pyarrow", "tables", "Parquet files need")
    kind = arrow.types
    if kind.is_dictionary(cells.type):
        cells = cells.cast(cells.type.value_type)
    if cells.null_count:
        row = cells.is_null().to_pylist().index(True)
        raise unusable(name, row_of(str(path), row), "missing", cells.null_count)
    if kind.is_string(cells.type) or kind.is_large_string(cells.type):
        return _checked(path, name, _stripped(cells.to_pylist()))
    numeric = (kind.is_integer, kind.is_floating, kind.is_boolean, kind.is_decimal)
    if not any(is_of(cells.type) for is_of in numeric):
        raise DataError(
            f"{path}: column {name!r} is of type {cells.type}. Turn it into numbers or text, or "
            "leave it out."
        )
    # True and False are text in a CSV file, and a model may be used on both kinds of file.
    if name in text or kind.is_boolean(cells.type):
        return _stripped(cells.to_pylist())
    return _checked(path, name, cells.cast(arrow.float64(), safe=False).to_numpy())


def _read_npz(path: Path, text: Collection[str]) -> Table:
    try:
        with path.open("rb") as file, np.load(file, allow_pickle=False) as archive:
            arrays = {name: archive[name] for name in archive.files}
    except (OSError, ValueError, zipfile.BadZipFile, AttributeError) as error:
        raise DataError(
            f"{path} is not a file of np.savez, is damaged, or has Python objects, which are "
            f"never loaded ({error}). Save plain arrays: np.savez(file, X=X, y=y)."
        ) from error
    X, names = arrays.pop("X", None), arrays.pop("columns", None)
    columns: dict[str, Array] = {}
    if X is not None:
        if X.ndim != 2:
            raise DataError(f"{path}: X must have shape (rows, features), got {X.shape}.")
        labels = [f"x{at}" for at in range(X.shape[1])] if names is None else names.astype(str)
        if len(labels) != X.shape[1]:
            raise DataError(
                f"{path}: `columns` must hold {X.shape[1]} names, one per column of X, got "
                f"{join_names(list(labels))}."
            )
        check_header(str(path), labels)
        columns = dict(zip(labels, X.T, strict=True))
    for name, values in arrays.items():
        if values.ndim != 1 or name in columns:
            raise DataError(
                f"{path}: the array {name!r} has shape {values.shape}. Arrays other than X must "
                "have one value per row."
            )
        columns[name] = values
    lengths = {name: len(cells) for name, cells in columns.items()}
    if len(set(lengths.values())) > 1:
        raise DataError(f"{path}: the arrays have different numbers of rows: {lengths}.")
    checked = {name: partial(_from_npz, path, name, cells, text) for name, cells in columns.items()}
    unchecked = {name: partial(np.asarray, cells) for name, cells in columns.items()}
    return Table(checked, max(lengths.values(), default=0), str(path), unchecked=unchecked)


def _from_npz(path: Path, name: str, cells: Array, text: Collection[str]) -> Array:
    if cells.dtype.kind in "biuf" and name not in text:
        return _checked(path, name, cells.astype(np.float64))
    if cells.dtype.kind in "biufU":
        return _checked(path, name, _stripped(cells.tolist()))
    raise DataError(f"{path}: the array {name!r} is of type {cells.dtype}. Save numbers or text.")


def _checked(path: Path, name: str, cells: Array) -> Array:
    return check_cells(name, cells, partial(row_of, str(path)))


def _stripped(cells: Iterable[Any]) -> Array:
    return np.array([str(cell).strip() for cell in cells], dtype=object)


_CSV = (".csv", ".tsv", ".txt")
_BINARY: Mapping[str, Callable[[Path, Collection[str]], Table]] = {
    ".parquet": _read_parquet, ".npz": _read_npz, ".svmlight": read_svmlight,
    ".libsvm": read_svmlight, ".svm": read_svmlight,
}  # fmt: skip
