"""Describe figures as data, which the page draws, tabulates and offers for download.

A `Block` is a heading with one or more `Figure` panels, which share a legend and controls. A panel
holds `Series`: named columns of numbers, and the file that they come from. Two renderers draw them:
the page (`templates/figures.js`) and matplotlib (`pictures`). Both read the ``options`` of a block:

    x, y, x_label, y_label   columns and labels of the axes; controls override them
    x_log, y_log             False for a linear axis
    mode                     lines, markers, text
    band                     True to draw intervals as bands instead of bars
    ticks                    True to put a tick at each value
    scale                    title, reach (in powers of two) and ticks of a colour scale

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

DIGITS = 4  # significant digits of numbers on the page


@dataclass(frozen=True)
class Series:
    """One line or one set of points or bars: columns of equal length, and their source.

    ``keys`` maps controls to values: the series is visible while all controls have these values.
    """

    name: str
    columns: Mapping[str, Iterable[Any]]
    source: str
    keys: Mapping[str, str] = field(default_factory=dict)

    def numbers(self, column: str) -> NDArray[np.float64]:
        """Return a column as floats; NaN for missing columns and values that are not finite."""
        length = len(list(next(iter(self.columns.values()))))
        values = np.array(list(self.columns.get(column, [np.nan] * length)), dtype=float)
        return np.where(np.isfinite(values), values, np.nan)

    def plain(self) -> dict[str, Any]:
        """Convert to JSON values; numbers are rounded, and None if not finite."""
        columns = {key: plain_numbers(values) for key, values in self.columns.items()}
        return {**vars(self), "columns": columns}


@dataclass(frozen=True)
class Control:
    """A selector above a block: its name, label and options, and the option selected first."""

    name: str
    label: str
    options: Mapping[str, str]
    first: str = ""

    @property
    def start(self) -> str:
        """The option that is selected first."""
        return self.first if self.first in self.options else next(iter(self.options))


@dataclass(frozen=True)
class Figure:
    """One panel. ``shared`` are the settings of all its series, such as graph and problem."""

    title: str
    series: Sequence[Series]
    shared: Mapping[str, str] = field(default_factory=dict)

    @property
    def sources(self) -> dict[str, list[str]]:
        """The files of the panel, each with the names of its series."""
        names: dict[str, dict[str, None]] = {}
        for one in self.series:
            names.setdefault(one.source, {})[one.name] = None
        return {source: list(each) for source, each in names.items()}


@dataclass(frozen=True)
class Block:
    """A heading, a caption, and panels of one kind.

    ``styles`` maps a series to a number, which selects its colour and dash in both renderers. By
    default series are numbered in order.
    """

    kind: str  # lines, map or bars
    heading: str
    caption: str
    controls: Sequence[Control]
    figures: Sequence[Figure]
    legend: bool = True
    shown: int | None = None  # number of panels that are unfolded at first; None for all
    options: Mapping[str, Any] = field(default_factory=dict)
    styles: Mapping[str, int] = field(default_factory=dict)

    @property
    def start(self) -> dict[str, str]:
        """The first value of each control."""
        return {control.name: control.start for control in self.controls}

    def visible(self, figure: Figure) -> list[Series]:
        """The series of a panel that are visible at first."""
        return [one for one in figure.series if one.keys.items() <= self.start.items()]

    @property
    def axes(self) -> tuple[str, str]:
        """The columns of x and y that are drawn at first; figures.js has the same rule."""
        state = self.start
        x, y = (state.get(name) or self.options.get(name, "") for name in ("x", "y"))
        return x, f"{y} {state['centre']}" if "centre" in state else y

    def label(self, axis: str) -> str:
        """Return the label of an axis before any control is changed."""
        for control in self.controls:
            if control.name == axis:
                return control.options[control.start]
        return str(self.options.get(f"{axis}_label", self.options.get(axis, "")))

    def style(self, name: str) -> int:
        """Return the style number of a series."""
        return self.styles[name] if name in self.styles else self.names.index(name)

    def panel(self, title: str, **shared: str) -> Figure:
        """Return the panel with these shared settings, such as graph="er", with another title."""
        figure = next(one for one in self.figures if shared.items() <= one.shared.items())
        return replace(figure, title=title)

    @property
    def names(self) -> list[str]:
        """The names of the series of all panels, each once."""
        return list(dict.fromkeys(one.name for figure in self.figures for one in figure.series))

    def plain(self) -> dict[str, Any]:
        """Plain values for JSON."""
        return {
            "kind": self.kind,
            "controls": [{**vars(one), "start": one.start} for one in self.controls],
            "figures": [
                {"title": one.title, "series": [each.plain() for each in one.series]}
                for one in self.figures
            ],
            "styles": {name: self.style(name) for name in self.names},
            "options": self.options,
        }


def computed_curves(table: pandas.DataFrame, file: str, note: str) -> list[Block]:
    """Make blocks of curves that were computed, not simulated: one block for each pair of axes.

    The table has a row per point: panel, series, style (a number), x, y, x_label, y_label and
    y_log, which is True if the vertical axis is logarithmic. The note states choices.
    """
    blocks = []
    by_axes = table.groupby(["x_label", "y_label", "y_log"], sort=False)
    for (x_label, y_label, y_log), rows in by_axes:
        figures = [
            Figure(
                str(panel),
                [
                    Series(str(name), {"x": line["x"].tolist(), "y": line["y"].tolist()}, file)
                    for name, line in lines.groupby("series", sort=False)
                ],
            )
            for panel, lines in rows.groupby("panel", sort=False)
        ]
        options = {"x": "x", "y": "y", "x_label": x_label, "y_label": y_label, "x_log": False}
        blocks.append(
            Block(
                kind="lines",
                heading=f"{y_label} against {x_label}",
                caption=f"Computed, not simulated: no interval. {note}",
                controls=[],
                figures=figures,
                options={**options, "y_log": bool(y_log)},
                styles=dict(zip(rows["series"], map(int, rows["style"]), strict=True)),
            )
        )
    return blocks


def plain_numbers(values: Iterable[Any]) -> list[Any]:
    """Round numbers to 4 digits, and replace those that are not finite by None; keep texts."""
    return [value if isinstance(value, str) else _rounded(float(value)) for value in values]


def _rounded(number: float) -> float | None:
    if not math.isfinite(number):
        return None
    rounded = float(f"{number:.{DIGITS}g}")
    return int(rounded) if rounded.is_integer() and abs(rounded) < 1e15 else rounded
