"""Encoding of the columns of a table as the features of a row.

A column of numbers has one feature, (value − centre) / spread, cut off if that was declared.
A column of text has one feature per category: 1 if the text is that category, else 0. The encoding
is part of a model: `predict` encodes rows as the training did, and an unknown category is an error,
never a guess.

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
    Place,
    Table,
    check_cells,
    check_known,
    no_number,
    reads_as_number,
    repeated,
)
from walklearn.tables.target_scale import check_scale, scaled
from walklearn.wording import did_you_mean, listed

Array = NDArray[Any]

MAX_CATEGORIES = 1000
CRUSHED = 1 / 8  # share of the cut-off; a uniform distribution has a deviation of 0.58
ROWS_AT_ONCE = 1024


@dataclass(frozen=True)
class Column:
    """One column of a table and its features.

    categories: the categories of text in the order of their features; None for numbers.
    centre, spread, cut_off: the feature of a number is (value − centre) / spread, moved to
    ±cut_off if it is beyond.
    """

    name: str
    categories: tuple[str, ...] | None = None
    centre: float = 0.0
    spread: float = 1.0
    cut_off: float = math.inf

    def __post_init__(self) -> None:
        if self.categories is not None:
            _check_different(f"column {self.name!r}", "categories", self.categories)
        else:
            check_scale(f"column {self.name!r}", self.centre, self.spread, self.cut_off)

    @property
    def feature_names(self) -> tuple[str, ...]:
        """Names of the features: that of the column, or column=category."""
        if self.categories is None:
            return (self.name,)
        return tuple(f"{self.name}={category}" for category in self.categories)

    @property
    def as_it_is(self) -> bool:
        """True if numbers are their own features."""
        return (self.centre, self.spread, self.cut_off) == (0.0, 1.0, math.inf)

    @property
    def has_cut_off(self) -> bool:
        """True if numbers far from the centre are moved towards it."""
        return math.isfinite(self.cut_off)

    def to_dict(self) -> dict[str, Any]:
        """Return JSON values without the name, and without cut_off if it is infinite."""
        if self.categories is not None:
            return {"categories": list(self.categories)}
        scale = {"centre": self.centre, "spread": self.spread}
        return scale | ({"cut_off": self.cut_off} if self.has_cut_off else {})

    def features(self, numbers: ArrayLike) -> Array:
        """Return the features of numbers, scaled and cut off."""
        return scaled(numbers, self.centre, self.spread, self.cut_off)

    def encode(self, cells: Array, place: Place) -> Array:
        """Return the features of these cells, shape (rows, features).

        place: names a row, counted from 0, in a message.
        """
        if self.categories is None:
            numbers = _numbers(self.name, cells, place)
            features = numbers if self.as_it_is else self.features(numbers)
            return check_cells(self.name, features, place)[:, None]
        number = {category: at for at, category in enumerate(self.categories)}
        texts = texts_of(cells)
        codes = np.fromiter(map(number.get, texts.tolist(), repeat(-1)), dtype=np.int64)
        if (codes < 0).any():
            check_cells(self.name, texts, place)
            row = int((codes < 0).argmax())
            raise DataError(
                f"{place(row)}, column {self.name!r}: {texts[row]!r} is not among its categories"
                f"{did_you_mean(texts[row], self.categories)} They are {listed(self.categories)}: "
                "leave such rows out, or declare it when training (--categories, or a schema)."
            )
        return np.eye(len(self.categories))[codes]


@dataclass(frozen=True)
class Encoding:
    """The columns that a model uses, in the order of its features."""

    columns: tuple[Column, ...]

    def __post_init__(self) -> None:
        _check_different("an encoding", "columns", [column.name for column in self.columns])

    @classmethod
    def of_numbers(cls, names: Iterable[str] | int) -> Encoding:
        """Encode columns of numbers as they are; those of a count are called x0, x1, …"""
        chosen = [f"x{at}" for at in range(names)] if isinstance(names, int) else list(names)
        return cls(tuple(Column(name) for name in chosen))

    @classmethod
    def of_table(
        cls, table: Mapping[str, Any], categories: Mapping[str, Sequence[str]] | None = None
    ) -> Encoding:
        """Encode numbers as they are, and texts by the given categories, or the sorted texts."""
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
        """Bound on ‖x‖ for any cells; infinite if a number is not cut off.

        A text adds 1 to ‖x‖², a number the square of its cut-off.
        """
        # Slightly larger, because scaling may round a number past its cut-off.
        squares = (1.0 if c.categories is not None else c.cut_off**2 for c in self.columns)
        return math.sqrt(sum(squares)) * (1 + 2.0**-40)

    @property
    def typical_length(self) -> float | None:
        """Typical ‖x‖ if most numbers are in units of a typical spread, else None."""
        numbers = [c for c in self.columns if c.categories is None]
        spreads = sum(c.has_cut_off and c.cut_off > 1.0 for c in numbers)
        if not numbers or any(not c.has_cut_off for c in numbers) or 2 * spreads < len(numbers):
            return None
        return math.sqrt(len(self.columns))

    def crushed(self, X: Any) -> list[str]:
        """Return the columns of numbers that fill a small part of their cut-off in these rows.

        A range moves its ends to −1 and 1. If a few values are large and the others close together
        (such as word counts or incomes), the column is then nearly constant, and noise hides its
        part in a model. A typical spread keeps the values apart.
        """
        deviations = deviations_of(X)
        return [c.name for c, at in self._cut_off() if is_crushed(deviations[at], c.cut_off)]

    def wholly_cut_off(self, X: Any) -> list[str]:
        """Return the columns of numbers without a value within the cut-off in these rows."""
        features = X if isinstance(X, np.ndarray) else X.tocsc()
        # A row of a sparse column that has no entry is 0, and so within the cut-off.
        sizes = ((column, abs(features[:, [at]])) for column, at in self._cut_off())
        return [column.name for column, size in sizes if size.min() >= column.cut_off]

    def _cut_off(self) -> Iterator[tuple[Column, int]]:
        """Yield the columns of numbers that are cut off, and the positions of their features."""
        at = 0
        for column in self.columns:
            if column.has_cut_off:
                yield column, at
            at += len(column.feature_names)

    def encode(self, table: Mapping[str, Any]) -> Any:
        """Return the features of every row, shape (rows, features). Other columns are ignored.

        table: a dictionary or data frame, whose cells are checked here, or a `Table` of a file,
        whose cells were checked before. Sparse rows of a file stay sparse, unless a column has a
        centre other than 0.
        """
        place: Place = "row {}".format
        names = [column.name for column in self.columns]
        if isinstance(table, Table):
            place = table.place
            check_known(table.source, names, table)
            if (sparse := self._encode_sparse(table)) is not None:
                return sparse
        check_known("the table", names, names_of(table))
        parts = [column.encode(np.asarray(table[column.name]), place) for column in self.columns]
        return _side_by_side(parts)

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
                    column.encode(table[column.name], table.place)  # names the row
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


def is_crushed(deviation: float, reach: float) -> bool:
    """True if values with this deviation fill only a small part of −reach..reach.

    >>> is_crushed(deviation=0.02, reach=1.0), is_crushed(deviation=0.3, reach=1.0)
    (True, False)
    """
    return 0.0 < deviation < CRUSHED * reach


def deviations_of(X: Any) -> Array:
    """Return the deviation of every feature of dense or sparse rows; not finite beyond 1e154."""
    with np.errstate(over="ignore", invalid="ignore"):
        if isinstance(X, np.ndarray):
            return np.asarray(X.std(axis=0))
        squares = np.asarray(X.multiply(X).mean(axis=0)).ravel()
        means = np.asarray(X.mean(axis=0)).ravel()
        return np.asarray(np.sqrt(np.maximum(0.0, squares - means**2)))


def _side_by_side(parts: Sequence[Array]) -> Array:
    """Join columns into one array, a few rows at a time, which then stay in the cache."""
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


def _numbers(name: str, cells: Array, place: Place) -> Array:
    try:
        numbers = cells.astype(np.float64, copy=False)
    except (TypeError, ValueError):
        check_cells(name, texts_of(cells), place)
        row, cell = next((at, each) for at, each in enumerate(cells) if not reads_as_number(each))
        raise no_number(name, place(row), cell) from None
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
            f"rows, such as {listed(texts, 2)}: these are names or numbers, not categories. Leave "
            f"the column out (--drop {quote(name)}), or write numbers as 1234.5."
        )
    return texts


def _check_different(owner: str, things: str, names: Sequence[str]) -> None:
    """Raise a DataError unless there are names, and all of them differ and are not empty."""
    twice = repeated(names)
    if not names or "" in names or twice:
        wrong = f"{twice!r} occurs twice" if twice else "none, or an empty one, was given"
        raise DataError(f"{owner} needs different {things}, at least one: {wrong}.")
