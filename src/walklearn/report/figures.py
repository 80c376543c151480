"""Figures as data: what is drawn, shown as a table and downloaded are the same numbers.

A `Block` is a heading with one or several `Figure` panels that share their legend and their
switches. A panel holds `Series`: named columns of numbers, each with the file it came from. The
page draws them in the browser; nothing here knows how.

>>> columns = {"updates": [1, 10], "gap mean": [0.5, float("nan")]}
>>> Series("uniform", columns, "cells/a.parquet").plain()["columns"]["gap mean"]
[0.5, None]
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

DIGITS = 4  # significant ones, of what the page carries


@dataclass(frozen=True)
class Series:
    """One line, one set of points or bars: columns of equal length, and where they come from.

    It is shown while the switches named in ``keys`` stand as they say.
    """

    name: str
    columns: Mapping[str, Iterable[Any]]
    source: str
    keys: Mapping[str, str] = field(default_factory=dict)

    def plain(self) -> dict[str, Any]:
        """Plain values for JSON, rounded; what is not finite becomes None."""
        return {
            "name": self.name,
            "source": self.source,
            "keys": dict(self.keys),
            "columns": {key: plain_numbers(values) for key, values in self.columns.items()},
        }


@dataclass(frozen=True)
class Control:
    """A switch above a block: its name, its label, its choices and the first one shown."""

    name: str
    label: str
    options: Mapping[str, str]
    first: str = ""

    @property
    def start(self) -> str:
        """The choice that is shown first."""
        return self.first if self.first in self.options else next(iter(self.options))

    def plain(self) -> dict[str, Any]:
        """Plain values for JSON."""
        return {"name": self.name, "options": dict(self.options), "start": self.start}


@dataclass(frozen=True)
class Figure:
    """One panel, and code that computes one of its numbers anew from the stored rows."""

    title: str
    series: Sequence[Series]
    recompute: str
    extra: Mapping[str, Any] = field(default_factory=dict)

    @property
    def sources(self) -> dict[str, list[str]]:
        """The files behind the panel, each with the names of what was read from it."""
        found: dict[str, list[str]] = {}
        for one in self.series:
            names = found.setdefault(one.source, [])
            if one.name not in names:
                names.append(one.name)
        return found

    def plain(self) -> dict[str, Any]:
        """Plain values for JSON."""
        return {"title": self.title, "series": [one.plain() for one in self.series],
                **self.extra}  # fmt: skip


@dataclass(frozen=True)
class Block:
    """A heading, what is to be seen, and panels of one kind."""

    kind: str  # lines | map | bars | network, the drawing functions of figures.js
    heading: str
    caption: str
    controls: Sequence[Control]
    figures: Sequence[Figure]
    legend: bool = True
    shown: int | None = None  # how many panels are seen at once; the others on demand
    options: Mapping[str, Any] = field(default_factory=dict)

    @property
    def names(self) -> list[str]:
        """The series of all panels, each once."""
        return list(dict.fromkeys(one.name for figure in self.figures for one in figure.series))

    def plain(self) -> dict[str, Any]:
        """Plain values for JSON."""
        return {
            "kind": self.kind,
            "controls": [control.plain() for control in self.controls],
            "figures": [figure.plain() for figure in self.figures],
            "styles": {name: place for place, name in enumerate(self.names)},
            "options": dict(self.options),
        }


def plain_numbers(values: Iterable[Any]) -> list[Any]:
    """Numbers rounded to what a reader can use, None for what has no value, texts as they are."""
    return [_plain(value) for value in values]


def _plain(value: Any) -> Any:
    if isinstance(value, str):
        return value
    number = float(value)
    if not math.isfinite(number):
        return None
    rounded = float(f"{number:.{DIGITS}g}")
    return int(rounded) if rounded.is_integer() and abs(rounded) < 1e15 else rounded
