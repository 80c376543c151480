"""What the command line declares of columns: text, categories, ranges.

Where privacy is asked for, nothing may be taken from the data silently: the categories of a
column, and what its numbers are scaled by, are public and declared.

>>> declared = Schema.of_options(["city=Oslo,Rome"], ["age=0,100"], None)
>>> declared.categories, declared.ranges
({'city': ('Oslo', 'Rome')}, {'age': (0.0, 100.0)})
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from walklearn.files.checked_table import CheckedTable, Source, is_text


@dataclass(frozen=True)
class Schema:
    """Columns with their categories, or with the range of their numbers."""

    categories: Mapping[str, tuple[str, ...]]
    ranges: Mapping[str, tuple[float, float]]

    @classmethod
    def of_options(
        cls, categories: Sequence[str], ranges: Sequence[str], path: Path | None
    ) -> Schema:
        """From --categories column=a,b, --range column=low,high and a --schema file."""
        read = {} if path is None else _read(path)
        for option in categories:
            name, values = _split(option, "--categories", "city=Oslo,Rome")
            read[name] = {"categories": tuple(value.strip() for value in values.split(","))}
        for option in ranges:
            name, values = _split(option, "--range", "age=0,100")
            ends = [_number(option, value) for value in values.split(",")]
            said = CheckedTable({name: ends}, Source(f"--range {option}"))
            read[name] = {"range": said.pair(name)}
        return cls(
            {name: each["categories"] for name, each in read.items() if "categories" in each},
            {name: each["range"] for name, each in read.items() if "range" in each},
        )

    def undeclared(self, columns: Sequence[str]) -> list[str]:
        """The columns of which nothing is declared."""
        return [name for name in columns if name not in self.categories and name not in self.ranges]


def _read(path: Path) -> dict[str, dict[str, Any]]:
    columns = CheckedTable.read(path, ValueError)
    return {name: _column(columns.table(name)) for name in columns}


def _column(table: CheckedTable) -> dict[str, Any]:
    table.only(("categories", "range"), "a column")
    if len(table) != 1:
        raise table.error("", 'needs either categories = ["a", "b"] or range = [low, high].')
    if "range" in table:
        return {"range": table.pair("range")}
    categories = table.value(
        "categories", wanted='a list of texts, such as ["a", "b"]',
        fits=lambda value: isinstance(value, list) and all(map(is_text, value)),
    )  # fmt: skip
    return {"categories": tuple(categories)}


def _split(option: str, name: str, example: str) -> tuple[str, str]:
    column, equals, values = option.partition("=")
    if not (column and equals and values):
        raise ValueError(
            f"{name} takes a column and its values, such as {example}, got {option!r}."
        )
    return column.strip(), values


def _number(option: str, value: str) -> float:
    try:
        return float(value)
    except ValueError:
        raise ValueError(f"--range {option}: {value!r} is not a number.") from None
