"""From the columns of a table to the numbers of a row, the same way every time.

A column of numbers gives one feature, (value − shift) / scale. A column of text gives one
feature for each of its categories, 1 where the text is that category and 0 elsewhere. The
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
walklearn.files.table.DataError: row 0, column 'city': 'Rom' is not among its categories, did you
mean 'Rome'? They are 'Oslo' and 'Rome'.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import repeat
from typing import Any

import numpy as np
from numpy.typing import NDArray

from walklearn.files.table import DataError, Place, Table, check_cells
from walklearn.files.wording import did_you_mean, listed

Array = NDArray[Any]

MOST_CATEGORIES = 1000
ROWS_AT_ONCE = 1024


@dataclass(frozen=True)
class Column:
    """One column of a table and what becomes of it.

    categories: None for numbers, for text the categories in the order of their features.
    shift, scale: of numbers, the feature is (value − shift) / scale.
    """

    name: str
    categories: tuple[str, ...] | None = None
    shift: float = 0.0
    scale: float = 1.0

    def __post_init__(self) -> None:
        if self.categories is not None:
            _check_categories(self.name, self.categories)
        elif not (math.isfinite(self.shift) and math.isfinite(self.scale) and self.scale > 0):
            raise DataError(
                f"column {self.name!r}: shift must be finite and scale positive, got "
                f"{self.shift!r} and {self.scale!r}."
            )

    @property
    def feature_names(self) -> tuple[str, ...]:
        """A name for each feature: the column's, or column=category."""
        if self.categories is None:
            return (self.name,)
        return tuple(f"{self.name}={category}" for category in self.categories)

    def encode(self, cells: Array, place: Place, checked: bool = False) -> Array:
        """The features of these cells, shape (rows, features).

        place: names a row, counted from 0, in a message. checked: numbers among the cells are
        known to be finite.
        """
        if self.categories is None:
            numbers = _numbers(self.name, cells, place)
            checked = checked and cells.dtype == np.float64
            if (self.shift, self.scale) != (0.0, 1.0):
                numbers, checked = (numbers - self.shift) / self.scale, False  # may overflow
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
            f"{listed(self.categories)}."
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

    def scaled(self, ranges: Mapping[str, tuple[float, float]]) -> Encoding:
        """Numbers within these ranges brought to −1..1, by public numbers instead of the data."""
        known = {column.name: column for column in self.columns}
        for name in ranges:
            if name not in known or known[name].categories is not None:
                what = "is text" if name in known else "is not a column that is learnt from"
                raise DataError(f"a range was declared for {name!r}, which {what}.")
        return Encoding(
            tuple(
                replace(column, shift=sum(ends) / 2, scale=(ends[1] - ends[0]) / 2)
                if (ends := ranges.get(column.name))
                else column
                for column in self.columns
            )
        )

    def encode(self, table: Mapping[str, Any]) -> Any:
        """The features of every row, shape (rows, features). Other columns are left alone.

        table: a dictionary or data frame, whose cells are checked here; or a `Table`, whose cells
        were checked when it was read, and whose rows have names in a message. Sparse rows of a
        file stay sparse, unless a column of theirs is shifted.
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
        if any(column.categories is not None or column.shift for column in self.columns):
            return None
        rows = table.sparse_rows(column.name for column in self.columns)
        if rows is not None:
            rows.data /= np.array([column.scale for column in self.columns])[rows.indices]
            if not np.isfinite(rows.data).all():
                for column in self.columns:
                    column.encode(table[column.name], table.place)  # which says where
        return rows

    def to_dict(self) -> list[dict[str, Any]]:
        """Plain JSON values, a column each."""
        return [
            {"name": column.name, "shift": column.shift, "scale": column.scale}
            if column.categories is None
            else {"name": column.name, "categories": list(column.categories)}
            for column in self.columns
        ]

    @classmethod
    def from_dict(cls, content: Sequence[Mapping[str, Any]]) -> Encoding:
        """Read back what `to_dict` gave."""
        columns = []
        for each in content:
            categories = each.get("categories")
            columns.append(
                Column(str(each["name"]), shift=float(each["shift"]), scale=float(each["scale"]))
                if categories is None
                else Column(str(each["name"]), tuple(map(str, categories)))
            )
        return cls(tuple(columns))


def _side_by_side(parts: Sequence[Array]) -> Array:
    """One array of rows; few at a time, so that they are in the cache until they are complete."""
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
        row, cell = next((at, each) for at, each in enumerate(cells) if not _is_number(each))
        missing = cell is None or cell != cell
        what = "the value is missing" if missing else f"{cell!r} is not a number"
        raise DataError(f"{place(row)}, column {name!r}: {what}.") from None
    if numbers.ndim != 1:
        raise DataError(f"column {name!r} must have one value per row, got shape {cells.shape}.")
    return numbers


def _is_number(cell: Any) -> bool:
    try:
        float(cell)
    except (TypeError, ValueError):
        return False
    return True


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
    if len(found) > MOST_CATEGORIES or (len(found) > 20 and 2 * len(found) > len(cells)):
        raise DataError(
            f"column {name!r} is text with {len(found)} different values in {len(cells)} rows, "
            f"such as {listed(found, 2)}: that is a name or a number in disguise, not a category. "
            f"Leave the column out (--drop {name}), or write numbers as 1234.5."
        )
    return tuple(found)


def _check_categories(name: str, categories: tuple[str, ...]) -> None:
    twice = sorted({each for each in categories if categories.count(each) > 1})
    if not categories or "" in categories or twice:
        wrong = f"{twice[0]!r} occurs twice" if twice else "none, or an empty one, was given"
        raise DataError(f"column {name!r} needs different categories, at least one: {wrong}.")
