"""What the command line declares of columns: text, categories, ranges.

Where privacy is asked for, nothing may be taken from the data silently: the categories of a
column, and what its numbers are scaled by, are public and declared.

>>> declared = Schema.of_options(["city=Oslo,Rome"], ["age=0,100"], None)
>>> declared.categories, declared.ranges
({'city': ('Oslo', 'Rome')}, {'age': (0.0, 100.0)})
"""

from __future__ import annotations

import math
import tomllib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any


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
            read[name] = {"categories": [value.strip() for value in values.split(",")]}
        for option in ranges:
            name, values = _split(option, "--range", "age=0,100")
            read[name] = {"range": [_number(option, value) for value in values.split(",")]}
        return cls(
            {
                name: tuple(each["categories"])
                for name, each in read.items()
                if "categories" in each
            },
            {name: _range(name, each["range"]) for name, each in read.items() if "range" in each},
        )

    def undeclared(self, columns: Sequence[str]) -> list[str]:
        """The columns of which nothing is declared."""
        return [name for name in columns if name not in self.categories and name not in self.ranges]


def _read(path: Path) -> dict[str, dict[str, Any]]:
    try:
        content = tomllib.loads(path.read_text(encoding="utf-8"))
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise ValueError(f"{path} is not TOML: {error}.") from error
    for name, declared in content.items():
        keys = set(declared) if isinstance(declared, dict) else set()
        texts = isinstance(declared, dict) and all(
            isinstance(each, str) for each in declared.get("categories", ())
        )
        if len(keys) != 1 or not keys <= {"categories", "range"} or not texts:
            raise ValueError(
                f'{path}: the column {name!r} needs either categories = ["a", "b"] or range = '
                f"[low, high], got {declared!r}."
            )
    return content


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


def _range(name: str, ends: Sequence[float]) -> tuple[float, float]:
    numbers = len(ends) == 2 and all(isinstance(end, int | float) for end in ends)
    if not numbers or not all(map(math.isfinite, ends)) or ends[0] >= ends[1]:
        raise ValueError(
            f"the range of {name!r} must be two numbers, low < high, got {list(ends)!r}."
        )
    return float(ends[0]), float(ends[1])
