"""Figures as data: what is drawn, shown as a table and downloaded are the same numbers.

A `Block` is a heading with one or several `Figure` panels that share their legend and their
switches. A panel holds `Series`: named columns of numbers, each with the file it came from. Two
renderers draw them, the page in the browser (`templates/figures.js`) and matplotlib (`pictures`);
nothing here knows how. What both go by are the block's ``options``:

    x, y, x_label, y_label   columns and labels of the axes, where no switch chooses them
    x_log, y_log             whether they are logarithmic, as they are unless this says no
    mode                     lines, markers, text; band: intervals as bands and not as bars
    ticks                    marks at the values themselves
    scale                    of colours: its title, its reach in powers of two, its marks

>>> columns = {"updates": [1, 10], "gap mean": [0.5, float("nan")]}
>>> Series("uniform", columns, "cells/a.parquet").plain()["columns"]["gap mean"]
[0.5, None]
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

if TYPE_CHECKING:
    import pandas

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

    def numbers(self, column: str) -> NDArray[np.float64]:
        """A column, NaN where it has no finite value or is not there at all."""
        length = len(list(next(iter(self.columns.values()))))
        values = np.array(list(self.columns.get(column, [np.nan] * length)), dtype=float)
        return np.where(np.isfinite(values), values, np.nan)

    def is_shown(self, state: Mapping[str, str]) -> bool:
        """Whether it is to be seen while the switches stand like this."""
        return all(state.get(name) == value for name, value in self.keys.items())

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
    """One panel. ``of`` holds the keys that its series share, such as graph and problem."""

    title: str
    series: Sequence[Series]
    extra: Mapping[str, Any] = field(default_factory=dict)
    of: Mapping[str, str] = field(default_factory=dict)

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
    """A heading, what is to be seen, and panels of one kind.

    ``styles`` gives series numbers, from which both renderers take colour and dash; without it
    they are counted in their order.
    """

    kind: str  # lines | map | bars, drawing functions of both renderers; network: the page alone
    heading: str
    caption: str
    controls: Sequence[Control]
    figures: Sequence[Figure]
    legend: bool = True
    shown: int | None = None  # how many panels are seen at once; the others on demand
    options: Mapping[str, Any] = field(default_factory=dict)
    styles: Mapping[str, int] = field(default_factory=dict)

    @property
    def start(self) -> dict[str, str]:
        """How the switches stand at first."""
        return {control.name: control.start for control in self.controls}

    @property
    def axes(self) -> tuple[str, str]:
        """The columns that are then drawn, across and up; figures.js does likewise."""
        state = self.start
        x, y = (state.get(name) or self.options.get(name, "") for name in ("x", "y"))
        return x, f"{y} {state['centre']}" if "centre" in state else y

    def label(self, axis: str) -> str:
        """What an axis is then called."""
        for control in self.controls:
            if control.name == axis:
                return control.options[control.start]
        return str(self.options.get(f"{axis}_label", self.options.get(axis, "")))

    def style(self, name: str) -> int:
        """The number of a series."""
        return self.styles[name] if name in self.styles else self.names.index(name)

    def panel(self, title: str, **of: str) -> Figure:
        """The panel of a graph, a problem, …, by another title."""
        found = next(one for one in self.figures if of.items() <= one.of.items())
        return replace(found, title=title)

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
            "styles": {name: self.style(name) for name in self.names},
            "options": dict(self.options),
        }


def computed_curves(table: pandas.DataFrame, file: str, note: str) -> list[Block]:
    """Curves that were computed and not simulated: a block of panels for each pair of axes.

    The table has a row per point: panel, series, x, y, x_label, y_label and y_log, whether the
    vertical axis is logarithmic. The note says what was chosen.
    """
    blocks = []
    by_axes = table.groupby(["x_label", "y_label", "y_log"], sort=False)
    for (x_label, y_label, y_log), rows in by_axes:
        figures = []
        for panel, lines in rows.groupby("panel", sort=False):
            series = [
                Series(str(name), {"x": line["x"].tolist(), "y": line["y"].tolist()}, file)
                for name, line in lines.groupby("series", sort=False)
            ]
            figures.append(Figure(str(panel), series))
        caption = f"Computed, not simulated: no interval. {note}"
        axes = str(x_label), str(y_label), bool(y_log)
        blocks.append(curves_block(f"{y_label} against {x_label}", caption, figures, axes))
    return blocks


def curves_block(
    heading: str,
    caption: str,
    figures: Sequence[Figure],
    axes: tuple[str, str, bool],
    styles: Mapping[str, int] | None = None,
) -> Block:
    """Return a block of lines. axes: labels of x and y, and True if y is logarithmic."""
    x_label, y_label, y_log = axes
    labels = {"x": "x", "y": "y", "x_label": x_label, "y_label": y_label}
    options = {**labels, "x_log": False, "y_log": y_log}
    return Block("lines", heading, caption, [], figures, options=options, styles=styles or {})


def plain_numbers(values: Iterable[Any]) -> list[Any]:
    """Numbers rounded to what a reader can use, None for what has no value, texts as they are."""
    return [_rounded(value) for value in values]


def _rounded(value: Any) -> Any:
    if isinstance(value, str):
        return value
    number = float(value)
    if not math.isfinite(number):
        return None
    rounded = float(f"{number:.{DIGITS}g}")
    return int(rounded) if rounded.is_integer() and abs(rounded) < 1e15 else rounded
