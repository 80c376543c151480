"""Encoding of the columns of a table as the features of a row.

A column of numbers has one feature, (value − centre) / spread, clipped if a cut-off was declared.
A column of text has one feature per category: 1 if the text is that category, else 0. The encoding
is part of a model, so `predict` encodes rows as in training. An unknown category is an error.

>>> encoding = Encoding.of_table({"age": [30.0, 50.0], "city": ["Oslo", "Rome"]})
>>> encoding.feature_names
('age', 'city=Oslo', 'city=Rome')
>>> encoding.encode({"city": ["Rome"], "age": [41]})
array([[41.,  0.,  1.]])
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import repeat
from shlex import quote
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from walklearn.tables.table import (
    WITH_COMMA,
    DataError,
    RowNamer,
    Table,
    check_cells,
    check_known,
    no_number,
    reads_as_number,
    repeated,
)
from walklearn.tables.target_scale import check_scale, scale_numbers
from walklearn.wording import did_you_mean, join_names

Array = NDArray[Any]

MAX_CATEGORIES = 1000
MIN_DEVIATION = 1 / 8  # in units of the cut-off; that of a uniform distribution is 0.58
ROWS_AT_ONCE = 1024


@dataclass(frozen=True)
class Column:
    """One column of a table and its features.

    categories: the categories of text in the order of their features; None for numbers.
    centre, spread, cut_off: the feature of a number is (value − centre) / spread, clipped to
    ±cut_off.
    """

    name: str
    categories: tuple[str, ...] | None = None
    centre: float = 0.0
    spread: float = 1.0
    cut_off: float = math.inf

    def __post_init__(self) -> None:
        if self.categories is not None:
            _check_unique(f"column {self.name!r}", "categories", self.categories)
        else:
            check_scale(f"column {self.name!r}", self.centre, self.spread, self.cut_off)

    @property
    def feature_names(self) -> tuple[str, ...]:
        """Names of the features: the column, or "column=category" for each category."""
        if self.categories is None:
            return (self.name,)
        return tuple(f"{self.name}={category}" for category in self.categories)

    @property
    def is_identity(self) -> bool:
        """True if each feature equals its number."""
        return (self.centre, self.spread, self.cut_off) == (0.0, 1.0, math.inf)

    @property
    def has_cut_off(self) -> bool:
        """True if features are clipped."""
        return math.isfinite(self.cut_off)

    def to_dict(self) -> dict[str, Any]:
        """Return JSON values without the name, and without cut_off if it is infinite."""
        if self.categories is not None:
            return {"categories": list(self.categories)}
        scale = {"centre": self.centre, "spread": self.spread}
        return scale | ({"cut_off": self.cut_off} if self.has_cut_off else {})

    def features(self, numbers: ArrayLike) -> Array:
        """Return the features of numbers, scaled and clipped."""
        return scale_numbers(numbers, self.centre, self.spread, self.cut_off)

    def encode(self, cells: Array, name_row: RowNamer) -> Array:
        """Return the features of these cells, shape (rows, features).

        name_row: names a row, counted from 0, in a message.
        """
        if self.categories is None:
            numbers = _numbers(self.name, cells, name_row)
            features = numbers if self.is_identity else self.features(numbers)
            return check_cells(self.name, features, name_row)[:, None]
        number = {category: i for i, category in enumerate(self.categories)}
        texts = texts_of(cells)
        codes = np.fromiter(map(number.get, texts.tolist(), repeat(-1)), dtype=np.int64)
        if (codes < 0).any():
            check_cells(self.name, texts, name_row)
            row = int((codes < 0).argmax())
            raise DataError(
                f"{name_row(row)}, column {self.name!r}: {texts[row]!r} is not among its categories"
                f"{did_you_mean(texts[row], self.categories)} They are "
                f"{join_names(self.categories)}: leave such rows out, or declare it when "
                "training (--categories, or a schema)."
            )
        return np.eye(len(self.categories))[codes]


@dataclass(frozen=True)
class Encoding:
    """The columns that a model uses, in the order of its features."""

    columns: tuple[Column, ...]

    def __post_init__(self) -> None:
        _check_unique("an encoding", "columns", [column.name for column in self.columns])

    @classmethod
    def of_numbers(cls, names: Iterable[str] | int) -> Encoding:
        """Encode columns of numbers unchanged. An integer gives the columns x0, x1, …"""
        chosen = [f"x{i}" for i in range(names)] if isinstance(names, int) else list(names)
        return cls(tuple(Column(name) for name in chosen))

    @classmethod
    def of_table(
        cls, table: Mapping[str, Any], categories: Mapping[str, Sequence[str]] | None = None
    ) -> Encoding:
        """Encode numbers unchanged, and text by its categories, by default the sorted values."""
        declared, names, prefix = categories or {}, names_of(table), ""
        if isinstance(table, Table):
            prefix = f"{table.source}: "
            if not declared and table.sparse_rows(names) is not None:
                return cls.of_numbers(names)
        columns = []
        for name in names:
            chosen = declared.get(name) or _categories_of(name, np.asarray(table[name]), prefix)
            columns.append(Column(name, None if chosen is None else tuple(chosen)))
        return cls(tuple(columns))

    @property
    def feature_names(self) -> tuple[str, ...]:
        """Names of all features."""
        return tuple(name for column in self.columns for name in column.feature_names)

    @property
    def feature_count(self) -> int:
        """Number of features of a row, without an intercept."""
        return sum(len(column.categories or (1,)) for column in self.columns)

    @property
    def text_columns(self) -> list[str]:
        """Names of the columns of text."""
        return [column.name for column in self.columns if column.categories is not None]

    @property
    def longest(self) -> float:
        """Upper bound on ‖x‖; infinite if the cut-off of a column is.

        A column of text adds 1 to ‖x‖², a column of numbers the square of its cut-off.
        """
        # Slightly larger, because scaling may round a number past its cut-off.
        squares = (1.0 if c.categories is not None else c.cut_off**2 for c in self.columns)
        return math.sqrt(sum(squares)) * (1 + 2.0**-40)

    @property
    def typical_length(self) -> float | None:
        """Typical ‖x‖ if most columns of numbers are scaled by a typical spread, else None."""
        numbers = [c for c in self.columns if c.categories is None]
        spreads = sum(c.has_cut_off and c.cut_off > 1.0 for c in numbers)
        if not numbers or any(not c.has_cut_off for c in numbers) or 2 * spreads < len(numbers):
            return None
        return math.sqrt(len(self.columns))

    def narrow_columns(self, X: Any) -> list[str]:
        """Return the columns whose values fill only a small part of −cut_off..cut_off.

        A range is scaled to −1..1. If a few values are large and most are close together (such as
        word counts or incomes), the feature is nearly constant, and noise hides its influence. A
        typical spread separates the values better.
        """
        deviations = deviations_of(X)
        return [c.name for c, i in self._clipped() if is_narrow(deviations[i], c.cut_off)]

    def fully_clipped_columns(self, X: Any) -> list[str]:
        """Return the columns of numbers whose values are all clipped in these rows."""
        features = X if isinstance(X, np.ndarray) else X.tocsc()
        # A row without an entry in a sparse column has the value 0, which is not clipped.
        sizes = ((column, abs(features[:, [i]])) for column, i in self._clipped())
        return [column.name for column, size in sizes if size.min() >= column.cut_off]

    def _clipped(self) -> Iterator[tuple[Column, int]]:
        """Yield the clipped columns of numbers, and the positions of their features."""
        position = 0
        for column in self.columns:
            if column.has_cut_off:
                yield column, position
            position += len(column.feature_names)

    def encode(self, table: Mapping[str, Any]) -> Any:
        """Return the features of every row, shape (rows, features). Other columns are ignored.

        table: a dictionary or data frame, whose cells are checked, or a `Table`, whose cells were
        checked when the file was read. Sparse rows of a file stay sparse, unless a column has a
        centre other than 0.
        """
        name_row: RowNamer = "row {}".format
        names = [column.name for column in self.columns]
        if isinstance(table, Table):
            name_row = table.name_row
            check_known(table.source, names, table)
            if (sparse := self._encode_sparse(table)) is not None:
                return sparse
        check_known("the table", names, names_of(table))
        parts = [column.encode(np.asarray(table[column.name]), name_row) for column in self.columns]
        return _join_columns(parts)

    def _encode_sparse(self, table: Table) -> Any:
        """Return the features as sparse rows, or None if they are dense."""
        if any(column.categories is not None or column.centre for column in self.columns):
            return None
        rows = table.sparse_rows(column.name for column in self.columns)
        if rows is not None:
            rows.data /= np.array([column.spread for column in self.columns])[rows.indices]
            ends = np.array([column.cut_off for column in self.columns])[rows.indices]
            np.clip(rows.data, -ends, ends, out=rows.data)
            if not np.isfinite(rows.data).all():
                for column in self.columns:
                    column.encode(table[column.name], table.name_row)  # names the row
        return rows

    def to_dict(self) -> list[dict[str, Any]]:
        """Return one JSON object per column."""
        return [{"name": column.name, **column.to_dict()} for column in self.columns]

    @classmethod
    def from_dict(cls, content: Sequence[Mapping[str, Any]]) -> Encoding:
        """Restore an encoding from the result of `to_dict`."""
        columns = []
        for each in content:
            if (categories := each.get("categories")) is not None:
                column = Column(str(each["name"]), tuple(map(str, categories)))
            else:
                scale = each["centre"], each["spread"], each.get("cut_off", math.inf)
                column = Column(str(each["name"]), None, *map(float, scale))
            columns.append(column)
        return cls(tuple(columns))


def is_narrow(deviation: float, cut_off: float) -> bool:
    """True if values with this standard deviation fill only a small part of −cut_off..cut_off.

    >>> is_narrow(deviation=0.02, cut_off=1.0), is_narrow(deviation=0.3, cut_off=1.0)
    (True, False)
    """
    return 0.0 < deviation < MIN_DEVIATION * cut_off


def deviations_of(X: Any) -> Array:
    """Return the standard deviation of each feature; it overflows for values above 1e154."""
    with np.errstate(over="ignore", invalid="ignore"):
        if isinstance(X, np.ndarray):
            return np.asarray(X.std(axis=0))
        squares = np.asarray(X.multiply(X).mean(axis=0)).ravel()
        means = np.asarray(X.mean(axis=0)).ravel()
        return np.asarray(np.sqrt(np.maximum(0.0, squares - means**2)))


def _join_columns(parts: Sequence[Array]) -> Array:
    """Join columns into one array, in blocks of rows that fit into the cache."""
    if len({len(part) for part in parts}) > 1:
        raise ValueError(f"columns of different lengths: {[len(part) for part in parts]}.")
    whole = np.empty((len(parts[0]), sum(part.shape[1] for part in parts)))
    for start in range(0, len(whole), ROWS_AT_ONCE):
        rows = slice(start, start + ROWS_AT_ONCE)
        np.concatenate([part[rows] for part in parts], axis=1, out=whole[rows])
    return whole


def names_of(table: Mapping[str, Any]) -> list[str]:
    """Return the columns of a dictionary or a data frame."""
    return [str(name) for name in getattr(table, "columns", table)]


def is_text(cells: Array) -> bool:
    """True if these cells are categories rather than numbers."""
    return cells.dtype.kind not in "biuf"


def texts_of(cells: Array) -> Array:
    """Return cells as texts: whole numbers without a point, missing values as "".

    >>> texts_of(np.array([3.0, 0.5])).tolist()
    ['3', '0.5']
    """
    each = cells.tolist()
    if cells.dtype == object and set(map(type, each)) == {str}:
        return cells
    return np.array([_text(cell) for cell in each], dtype=object)


def _text(cell: Any) -> str:
    if cell is None or (isinstance(cell, float) and math.isnan(cell)):
        return ""
    return str(int(cell)) if isinstance(cell, float) and cell.is_integer() else str(cell)


def _numbers(name: str, cells: Array, name_row: RowNamer) -> Array:
    try:
        numbers = cells.astype(np.float64, copy=False)
    except (TypeError, ValueError):
        check_cells(name, texts_of(cells), name_row)
        row, cell = next((i, each) for i, each in enumerate(cells) if not reads_as_number(each))
        raise no_number(name, name_row(row), cell) from None
    if numbers.ndim != 1:
        raise DataError(f"column {name!r} must have one value per row, got shape {cells.shape}.")
    return numbers


def _categories_of(name: str, cells: Array, prefix: str) -> Sequence[str] | None:
    if not is_text(cells):
        return None
    texts = sorted(set(check_cells(name, texts_of(cells), "row {}".format).tolist()))
    if all(map(WITH_COMMA.fullmatch, texts)):
        raise DataError(
            f"{prefix}column {name!r} has numbers with a comma, such as {texts[0]!r}. Write them "
            f"with a point, as 36.5 or 1234.5, or leave the column out (--drop {quote(name)})."
        )
    if len(texts) > MAX_CATEGORIES or (len(texts) > 20 and 2 * len(texts) > len(cells)):
        raise DataError(
            f"{prefix}column {name!r} is text with {len(texts)} different values in {len(cells)} "
            f"rows, such as {join_names(texts, 2)}: these are names or numbers, not categories. "
            f"Leave the column out (--drop {quote(name)}), or write numbers as 1234.5."
        )
    return texts


def _check_unique(owner: str, kind: str, names: Sequence[str]) -> None:
    """Raise a DataError if there are no names, or an empty or a repeated one."""
    duplicate = repeated(names)
    if not names or "" in names or duplicate:
        wrong = f"{duplicate!r} occurs twice" if duplicate else "none, or an empty one, was given"
        raise DataError(f"{owner} needs different {kind}, at least one: {wrong}.")
