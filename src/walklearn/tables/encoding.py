"""From the columns of a table to the numbers of a row, the same way every time.

A column of numbers gives one feature, (value − centre) / spread, cut off where that was asked for.
A column of text gives one feature for each of its categories, 1 where the text is that category
and 0 elsewhere. The
encoding is part of a model: what `predict` is given goes through it as the training data did,
and a category that was not known then is an error, never a guess.

>>> encoding = Encoding.of_table({"age": [30.0, 50.0], "city": ["Oslo", "Rome"]})
>>> encoding.feature_names
('age', 'city=Oslo', 'city=Rome')
>>> encoding.encode({"city": ["Rome"], "age": [41]})
array([[41.,  0.,  1.]])
>>> encoding.encode({"city": ["Rom"], "age": [41]})
Traceback (most recent call last):
    ...
walklearn.tables.table.DataError: row 0, column 'city': 'Rom' is not among its categories, did you
mean 'Rome'? They are 'Oslo' and 'Rome': leave such rows out, or declare it when training
(--categories, or a schema).
"""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import repeat
from shlex import quote
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from walklearn.tables.table import DataError, Place, Table, check_cells, reads_as_number
from walklearn.wording import did_you_mean, listed

Array = NDArray[Any]

_WITH_COMMA = re.compile(r"[-+]?[\d.]*,\d+")  # a number as it is written in much of Europe
MAX_CATEGORIES = 1000
CRUSHED = 1 / 8  # a deviation below this share of the way to the ends; of a uniform law it is .58
ROWS_AT_ONCE = 1024


@dataclass(frozen=True)
class Column:
    """One column of a table and what becomes of it.

    categories: None for numbers, for text the categories in the order of their features.
    centre, spread, cut_off: of numbers, the feature is (value − centre) / spread, and what is
    beyond ±cut_off is moved there.
    """

    name: str
    categories: tuple[str, ...] | None = None
    centre: float = 0.0
    spread: float = 1.0
    cut_off: float = math.inf

    def __post_init__(self) -> None:
        if self.categories is not None:
            _check_categories(self.name, self.categories)
        elif not (math.isfinite(self.centre) and 0 < self.spread < math.inf and self.cut_off > 0):
            raise DataError(
                f"column {self.name!r}: centre must be finite, spread and cut_off positive, got "
                f"{self.centre!r}, {self.spread!r} and {self.cut_off!r}."
            )

    @property
    def feature_names(self) -> tuple[str, ...]:
        """A name for each feature: the column's, or column=category."""
        if self.categories is None:
            return (self.name,)
        return tuple(f"{self.name}={category}" for category in self.categories)

    @property
    def as_it_is(self) -> bool:
        """Whether numbers are their own features."""
        return (self.centre, self.spread, self.cut_off) == (0.0, 1.0, math.inf)

    @property
    def has_cut_off(self) -> bool:
        """Whether numbers far from the centre are moved towards it."""
        return math.isfinite(self.cut_off)

    def to_dict(self) -> dict[str, Any]:
        """Return JSON values without the name, and without cut_off if it is infinite."""
        if self.categories is not None:
            return {"categories": list(self.categories)}
        scale = {"centre": self.centre, "spread": self.spread}
        return scale | ({"cut_off": self.cut_off} if self.has_cut_off else {})

    def features(self, numbers: ArrayLike) -> Array:
        """Numbers as features: scaled, and cut off."""
        with np.errstate(over="ignore"):
            scaled = (np.asarray(numbers, dtype=np.float64) - self.centre) / self.spread
        return np.clip(scaled, -self.cut_off, self.cut_off)

    def encode(self, cells: Array, place: Place, checked: bool = False) -> Array:
        """The features of these cells, shape (rows, features).

        place: names a row, counted from 0, in a message. checked: numbers among the cells are
        known to be finite.
        """
        if self.categories is None:
            numbers = _numbers(self.name, cells, place)
            checked = checked and cells.dtype == np.float64
            if not self.as_it_is:
                numbers, checked = self.features(numbers), False  # may overflow
            return (numbers if checked else check_cells(self.name, numbers, place))[:, None]
        number = {category: at for at, category in enumerate(self.categories)}
        texts = texts_of(cells)
        codes = np.fromiter(map(number.get, texts.tolist(), repeat(-1)), dtype=np.int64)
        if (codes < 0).any():
            row = int((codes < 0).argmax())
            raise DataError(f"{place(row)}, column {self.name!r}: {self._unknown(texts[row])}")
        return np.eye(len(self.categories))[codes]

    def _unknown(self, text: str) -> str:
        assert self.categories is not None
        if not text:
            return "the value is missing. Fill it in or leave the row out."
        return (
            f"{text!r} is not among its categories{did_you_mean(text, self.categories)} They are "
            f"{listed(self.categories)}: leave such rows out, or declare it when training "
            "(--categories, or a schema)."
        )


@dataclass(frozen=True)
class Encoding:
    """The columns that a model reads, in the order of its features."""

    columns: tuple[Column, ...]

    def __post_init__(self) -> None:
        names = [column.name for column in self.columns]
        twice = sorted(name for name, count in Counter(names).items() if count > 1)
        if not names or twice:
            wrong = f"{twice[0]!r} occurs twice" if twice else "there are none"
            raise DataError(f"an encoding needs different columns, at least one: {wrong}.")

    @classmethod
    def of_numbers(cls, names: Iterable[str] | int) -> Encoding:
        """Columns of numbers as they are; from a count, x0, x1, …"""
        chosen = [f"x{at}" for at in range(names)] if isinstance(names, int) else list(names)
        return cls(tuple(Column(name) for name in chosen))

    @classmethod
    def of_table(
        cls, table: Mapping[str, Any], categories: Mapping[str, Sequence[str]] | None = None
    ) -> Encoding:
        """Numbers as they are, texts by the categories given, or else those that occur, sorted."""
        declared = categories or {}
        names = names_of(table)
        if isinstance(table, Table) and not declared and table.sparse_rows(names) is not None:
            return cls.of_numbers(names)
        return cls(
            tuple(
                Column(name, _categories_of(name, np.asarray(table[name]), declared.get(name)))
                for name in names
            )
        )

    @property
    def feature_names(self) -> tuple[str, ...]:
        """The names of all features."""
        return tuple(name for column in self.columns for name in column.feature_names)

    @property
    def feature_count(self) -> int:
        """How many features a row has, without an intercept."""
        return sum(len(column.categories or (1,)) for column in self.columns)

    @property
    def text_columns(self) -> list[str]:
        """The names of the columns of text."""
        return [column.name for column in self.columns if column.categories is not None]

    @property
    def longest(self) -> float:
        """What ‖x‖ is at most, whatever the cells: a text adds 1 to ‖x‖², a number its cut-off's
        square; infinite where a number is not cut off.
        """
        # A hair longer: scaling may round what is cut off past its end.
        squares = (1.0 if c.categories is not None else c.cut_off**2 for c in self.columns)
        return math.sqrt(sum(squares)) * (1 + 2.0**-40)

    @property
    def typical_length(self) -> float | None:
        """What ‖x‖ is about, where most numbers are in units of a typical spread; None else."""
        numbers = [c for c in self.columns if c.categories is None]
        spreads = sum(c.has_cut_off and c.cut_off > 1.0 for c in numbers)
        if not numbers or any(not c.has_cut_off for c in numbers) or 2 * spreads < len(numbers):
            return None
        return math.sqrt(len(self.columns))

    def crushed(self, X: Any) -> list[str]:
        """Columns of numbers that fill a small part of what they are cut off at, in these rows.

        A range brings its ends to −1 and 1. Where a few values are large and the rest close
        together (how often a word occurs, an income), the column is then nearly constant, and
        its part in a model drowns in the noise. A typical spread keeps the values apart.
        """
        widths = [len(column.feature_names) for column in self.columns]
        deviations = deviations_of(X)[np.cumsum(widths) - widths]
        return [
            column.name
            for column, deviation in zip(self.columns, deviations, strict=True)
            if column.has_cut_off and is_crushed(deviation, column.cut_off)
        ]

    def wholly_cut_off(self, X: Any) -> list[str]:
        """Columns of numbers of which these rows have no value within the cut-off."""
        columns = X if isinstance(X, np.ndarray) else X.tocsc()
        widths = [len(column.feature_names) for column in self.columns]
        found = []
        for column, at in zip(self.columns, np.cumsum(widths) - widths, strict=True):
            if column.has_cut_off:
                values = columns[:, [at]]
                dense = values if isinstance(values, np.ndarray) else values.toarray()
                if (np.abs(dense) >= column.cut_off).all():
                    found.append(column.name)
        return found

    def encode(self, table: Mapping[str, Any]) -> Any:
        """The features of every row, shape (rows, features). Other columns are left alone.

        table: a dictionary or data frame, whose cells are checked here; or a `Table`, whose cells
        were checked when it was read, and whose rows have names in a message. Sparse rows of a
        file stay sparse, unless a column of theirs has a centre other than 0.
        """
        of_file, known = isinstance(table, Table), names_of(table)
        place = table.place if isinstance(table, Table) else "row {}".format
        for column in self.columns:
            if column.name not in table:
                where = table.source if isinstance(table, Table) else "the table"
                raise DataError(
                    f"{where} has no column {column.name!r}{did_you_mean(column.name, known)} The "
                    f"model needs {listed([each.name for each in self.columns])}; there are "
                    f"{listed(known)}."
                )
        if isinstance(table, Table) and (sparse := self._encode_sparse(table)) is not None:
            return sparse
        parts = [
            column.encode(np.asarray(table[column.name]), place, of_file) for column in self.columns
        ]
        return _side_by_side(parts)

    def _encode_sparse(self, table: Table) -> Any:
        """The features as sparse rows; None where they are not, or would not stay so."""
        if any(column.categories is not None or column.centre for column in self.columns):
            return None
        rows = table.sparse_rows(column.name for column in self.columns)
        if rows is not None:
            rows.data /= np.array([column.spread for column in self.columns])[rows.indices]
            ends = np.array([column.cut_off for column in self.columns])[rows.indices]
            np.clip(rows.data, -ends, ends, out=rows.data)
            if not np.isfinite(rows.data).all():
                for column in self.columns:
                    column.encode(table[column.name], table.place)  # which says where
        return rows

    def to_dict(self) -> list[dict[str, Any]]:
        """Return one JSON object per column."""
        return [{"name": column.name, **column.to_dict()} for column in self.columns]

    @classmethod
    def from_dict(cls, content: Sequence[Mapping[str, Any]]) -> Encoding:
        """Read back what `to_dict` gave."""
        columns = []
        for each in content:
            name, categories = str(each["name"]), each.get("categories")
            if categories is not None:
                columns.append(Column(name, tuple(map(str, categories))))
                continue
            scale = each["centre"], each["spread"], each.get("cut_off", math.inf)
            columns.append(Column(name, None, *map(float, scale)))
        return cls(tuple(columns))


def is_crushed(deviation: float, reach: float) -> bool:
    """Whether values with this deviation fill only a small part of −reach..reach.

    >>> is_crushed(deviation=0.02, reach=1.0), is_crushed(deviation=0.3, reach=1.0)
    (True, False)
    """
    return 0.0 < deviation < CRUSHED * reach


def deviations_of(X: Any) -> Array:
    """The deviation of every feature, infinite or NaN beyond 1e154; rows may be sparse."""
    with np.errstate(over="ignore", invalid="ignore"):
        if isinstance(X, np.ndarray):
            return np.asarray(X.std(axis=0))
        squares = np.asarray(X.multiply(X).mean(axis=0)).ravel()
        means = np.asarray(X.mean(axis=0)).ravel()
        return np.asarray(np.sqrt(np.maximum(0.0, squares - means**2)))


def _side_by_side(parts: Sequence[Array]) -> Array:
    """Join columns to one array, a few rows at a time, which then stay in the cache."""
    if len({len(part) for part in parts}) > 1:
        raise ValueError(f"columns of different lengths: {[len(part) for part in parts]}.")
    whole = np.empty((len(parts[0]), sum(part.shape[1] for part in parts)))
    for start in range(0, len(whole), ROWS_AT_ONCE):
        rows = slice(start, start + ROWS_AT_ONCE)
        np.concatenate([part[rows] for part in parts], axis=1, out=whole[rows])
    return whole


def names_of(table: Mapping[str, Any]) -> list[str]:
    """The columns of a dictionary or a data frame."""
    return [str(name) for name in getattr(table, "columns", table)]


def is_text(cells: Array) -> bool:
    """Whether these cells are categories rather than numbers."""
    return cells.dtype.kind not in "biuf"


def texts_of(cells: Array) -> Array:
    """Cells as texts; a number that is whole as whole, a missing one as nothing.

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
        row, cell = next((at, each) for at, each in enumerate(cells) if not reads_as_number(each))
        missing = cell is None or cell != cell
        what = "the value is missing" if missing else f"{cell!r} is not a number"
        if _WITH_COMMA.fullmatch(str(cell)):
            what += ", for numbers are written with a point, as 36.5"
        raise DataError(f"{place(row)}, column {name!r}: {what}.") from None
    if numbers.ndim != 1:
        raise DataError(f"column {name!r} must have one value per row, got shape {cells.shape}.")
    return numbers


def _categories_of(
    name: str, cells: Array, declared: Sequence[str] | None
) -> tuple[str, ...] | None:
    if declared is not None:
        return tuple(declared)
    if not is_text(cells):
        return None
    texts = texts_of(cells).tolist()
    if "" in texts:
        raise DataError(
            f"row {texts.index('')}, column {name!r}: the value is missing. Fill it in or leave "
            "the row out."
        )
    found = sorted(set(texts))
    if all(map(_WITH_COMMA.fullmatch, found)):
        raise DataError(
            f"column {name!r} holds numbers with a comma, such as {found[0]!r}. Write them with a "
            f"point, as 36.5 or 1234.5, or leave the column out (--drop {quote(name)})."
        )
    if len(found) > MAX_CATEGORIES or (len(found) > 20 and 2 * len(found) > len(cells)):
        raise DataError(
            f"column {name!r} is text with {len(found)} different values in {len(cells)} rows, "
            f"such as {listed(found, 2)}: that is a name or a number in disguise, not a category. "
            f"Leave the column out (--drop {quote(name)}), or write numbers as 1234.5."
        )
    return tuple(found)


def _check_categories(name: str, categories: tuple[str, ...]) -> None:
    twice = sorted({each for each in categories if categories.count(each) > 1})
    if not categories or "" in categories or twice:
        wrong = f"{twice[0]!r} occurs twice" if twice else "none, or an empty one, was given"
        raise DataError(f"column {name!r} needs different categories, at least one: {wrong}.")
