"""Schemas declare the categories of text columns and public scales of columns of numbers.

Private training must not compute anything from the data without spending budget. The categories of
a column and the scale of its numbers are therefore declared, from public knowledge. A column of
numbers has a *typical* centre and spread, or a range:

    [income]                        # (value − 40000) / 12000, cut off at ±3
    centre = 40000
    spread = 12000

    [age]                           # 0 → −1, 100 → 1, cut off there
    range = [0, 100]

    [city]
    categories = ["Oslo", "Rome"]

    ["*"]                           # every other column of numbers, but not the target
    spread = 1

A target that is a number has a separate entry, with a centre and a spread (`TargetScale`).

The file of `--schema` and `[columns]` in a plan have the same format. A typical spread is better
than a range: the noise on the model is the same, but it hides the influence of numbers that fill a
small part of their range.

>>> schema = Schema.of({"age": {"range": (0, 100)}, "*": {"centre": 5, "spread": 2}})
>>> schema.of_column("age").features([0.0, 75.0, 120.0])       # cut off at the ends
array([-1. ,  0.5,  1. ])
>>> schema.of_column("height").features([5.0, 8.0, 99.0])
array([0. , 1.5, 3. ])
"""

from __future__ import annotations

import json
import os
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from walklearn.errors import InputError
from walklearn.files.checked_table import CheckedTable, Source
from walklearn.tables.encoding import Column, Encoding
from walklearn.tables.table import DataError
from walklearn.tables.target_scale import CUT_OFF as CUT_OFF
from walklearn.tables.target_scale import TargetScale
from walklearn.wording import join_names

OTHERS = "*"  # all columns of numbers without an entry

_EXPECTED = (
    'needs either spread = 12 (with centre = 50), range = [low, high] or categories = ["a", "b"].'
)


@dataclass(frozen=True)
class Schema:
    """Public declarations about the columns of a table.

    Parameters
    ----------
    columns
        The declaration of each column by name; "*" stands for the other columns of numbers.
    from_rows
        Columns whose scales `walklearn schema` computed from rows. Such a scale is not public:
        replace it, then remove the column from this list.

    Examples
    --------
    >>> schema = Schema.of({"age": {"range": [0, 100]}, "sex": {"categories": ["f", "m"]}})
    >>> schema.categories, schema.undeclared(["age", "weight"])
    ({'sex': ('f', 'm')}, ['weight'])
    """

    columns: Mapping[str, Column]
    from_rows: tuple[str, ...] = ()

    @classmethod
    def of(cls, declared: Schema | Mapping[str, Any] | str | os.PathLike[str] | None) -> Schema:
        """Return a schema from a TOML file, its content or a schema; None gives an empty schema.

        An error is an `InputError` with the key and, in a file, the line.
        """
        if isinstance(declared, Schema):
            return declared
        if declared is None or isinstance(declared, Mapping):
            return cls.of_table(CheckedTable(declared or {}, Source("schema")))
        return cls.of_table(CheckedTable.read(declared, InputError))

    @classmethod
    def of_table(cls, table: CheckedTable) -> Schema:
        """Read a schema from a TOML table that contains one table per column."""
        read = {name: table.table(name) for name in table}
        return cls(
            {name: read_column(name, each) for name, each in read.items()},
            tuple(name for name, each in read.items() if each.flag("from_rows", False)),
        )

    @classmethod
    def typical(
        cls, centre: ArrayLike, spread: ArrayLike, names: Iterable[str] | None = None
    ) -> Schema:
        """Return a schema with a typical centre and spread for each column, or one for all.

        Values farther than three spreads from the centre are cut off. Names are x0, x1, … by
        default.

        >>> Schema.typical([50.0, 170.0], [20.0, 10.0], ["age", "height"]).columns["height"]
        Column(name='height', categories=None, centre=170.0, spread=10.0, cut_off=3.0)
        """
        pairs = np.broadcast_arrays(np.atleast_1d(centre), np.atleast_1d(spread))
        centres, spreads = (np.asarray(each, dtype=np.float64).tolist() for each in pairs)
        chosen = [f"x{i}" for i in range(len(spreads))] if names is None else list(names)
        columns = zip(chosen, centres, spreads, strict=True)
        return cls({name: Column(name, None, c, s, CUT_OFF) for name, c, s in columns})

    def with_columns(self, columns: Iterable[Column]) -> Schema:
        """Return the schema with these columns added or replaced."""
        added = {column.name: column for column in columns}
        remaining = tuple(name for name in self.from_rows if name not in added)
        return Schema({**self.columns, **added}, remaining)

    @property
    def categories(self) -> dict[str, tuple[str, ...]]:
        """Declared categories of columns of text."""
        return {name: c.categories for name, c in self.columns.items() if c.categories is not None}

    def of_column(self, name: str) -> Column | None:
        """Return the declaration of a column, by name or by "*"; None if there is none."""
        column = self.columns.get(name, self.columns.get(OTHERS))
        return None if column is None else replace(column, name=name)

    def target_scale(self, target: str) -> TargetScale | None:
        """Return the scale in the entry of the target, or None; "*" applies to features only.

        >>> Schema.of({"price": {"centre": 200, "spread": 80}}).target_scale("price")
        TargetScale(centre=200.0, spread=80.0, cut_off=3.0)
        """
        column = self.columns.get(target)
        if column is None or column.categories is not None:
            return None
        if column.cut_off != CUT_OFF:
            raise DataError(
                f"the schema declares a range or a cut_off of the target {target!r}. Write a "
                f"typical centre = … and spread = …; it is cut off at {CUT_OFF:g} spreads."
            )
        return TargetScale(column.centre, column.spread)

    def without(self, name: str) -> Schema:
        """Return the schema without the entry of one column, such as the target."""
        columns = {each: column for each, column in self.columns.items() if each != name}
        return Schema(columns, tuple(each for each in self.from_rows if each != name))

    def undeclared(self, columns: Sequence[str]) -> list[str]:
        """Return the columns without a declaration."""
        return [name for name in columns if self.of_column(name) is None]

    def apply_to(self, encoding: Encoding) -> Encoding:
        """Return the encoding with the declared scales of numbers; text columns do not change."""
        known = {column.name: column for column in encoding.columns}
        for name, column in self.columns.items():
            is_text = column.categories is not None
            if name == OTHERS or (is_text and name in known):
                continue
            if name not in known or known[name].categories is not None:
                what = "is text" if name in known else "is not a feature"
                entry = "categories" if is_text else "a scale"
                raise DataError(
                    f"the schema declares {entry} for {name!r}, which {what}. Correct it."
                )
        return Encoding(
            tuple(
                column if column.categories else self.of_column(column.name) or column
                for column in encoding.columns
            )
        )


def from_rows_message(schema: Schema) -> str:
    """Return the message that a schema with scales computed from rows is not private."""
    return (
        f"the schema has numbers of {join_names(schema.from_rows)} that were computed from rows "
        "(from_rows = true), so features scaled by them are not private. Put public numbers there, "
        "then remove that line."
    )


def read_column(name: str, table: CheckedTable) -> Column:
    """Read the declaration of one column."""
    table.only(("categories", "range", "centre", "spread", "cut_off", "from_rows"), "a column")
    kinds = [key for key in ("categories", "range", "spread") if key in table]
    if len(kinds) != 1:
        raise table.error("", _EXPECTED)
    (kind,) = kinds
    if kind != "spread" and ({"centre", "cut_off"} & set(table)):
        raise table.error("", f"{_EXPECTED[:-1]}; centre and cut_off belong to spread.")
    if kind == "range":
        return column_of_range(name, *table.pair("range"))
    if kind == "spread":
        centre, spread = table.number("centre", 0.0), table.number("spread", above=0.0)
        return Column(name, None, centre, spread, table.number("cut_off", CUT_OFF, above=0.0))
    if name == OTHERS:
        raise table.error("categories", f'belong to one column; "{OTHERS}" is for numbers.')
    return Column(name, table.labels("categories"))


def column_of_range(name: str, low: float, high: float) -> Column:
    """Return a column whose numbers from low to high are scaled to −1..1."""
    return Column(name, None, low / 2 + high / 2, high / 2 - low / 2, 1.0)


def column_to_dict(column: Column) -> dict[str, Any]:
    """Return the column as plain values for `read_column`."""
    if column.categories is None and not column.has_cut_off:
        raise ValueError(f"column {column.name!r} needs a cut_off, such as {CUT_OFF:g} spreads.")
    return column.to_dict()


def toml_key(name: str) -> str:
    """Return the name of a column as a key of TOML.

    >>> toml_key("age"), toml_key("blood pressure")
    ('age', '"blood pressure"')
    """
    return name if re.fullmatch(r"[A-Za-z0-9_-]+", name) else json.dumps(name, ensure_ascii=False)
