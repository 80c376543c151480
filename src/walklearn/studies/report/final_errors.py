"""The error of the last records against a number that was known before: ε, a mixing time.

tradeoff    against a number of the methods: those that differ in it alone make a line, those
            without it are levels to compare with
scatter     against a fact of each cell, a point per graph
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from walklearn.checks import is_number
from walklearn.studies.report.bands import (
    INTERVAL,
    CellBands,
    centre_control,
    metric_control,
    panels,
)
from walklearn.studies.report.figures import Block, Figure, Series

if TYPE_CHECKING:
    import pandas

Tables = Mapping[str, Mapping[str, Any]]

#: Labels of the facts that figures and tables show.
FACTS = {
    "constant": "step constant c",
    "boundary_share": "ended on the boundary of W",
    "diverged": "diverged",
    "smoothness_spread": "max L / mean L",
    "spectral_gap": "spectral gap",
    "mixing_time": "mixing time, in steps",
    "acceptance_rate": "acceptance rate",
    "sigma2": "σ²",
    "bound": "the theorem's constant",
    "parameter": "noise",
    "epsilon": "ε",
    "achieved_delta": "δ it has",
    "outside": "values clamped",
}

# Keys of a method that say where it runs and not what it is.
_WHERE = ("graphs", "problems", "step_sizes", "infeasible")


def tradeoff(cells: Sequence[CellBands], methods: Tables, metric: str, x: str) -> Block:
    """Describe a figure of the final error against a number of the methods, such as ε."""
    families = method_families(methods, x)
    figures = []
    for title, shared, members in panels(cells):
        present = {cell.method: cell for cell in members}
        if not any(x in methods[name] for name in present):
            continue  # levels alone, and no axis to draw them along
        series = [
            _points(family, x, [(methods[name].get(x, np.nan), present[name]) for name in names])
            for family, wanted in families.items()
            if (names := [name for name in wanted if name in present])
        ]
        figures.append(Figure(title, series, of=shared))
    return Block(
        kind="lines",
        heading=f"Error against {axis_label(x)}",
        caption=f"Last record. Bar: {INTERVAL}. Level: a method without {axis_label(x)}.",
        controls=[metric_control(metric), centre_control()],
        figures=figures,
        options={"x": x, "x_label": axis_label(x), "mode": "lines+markers", "ticks": True},
    )


def axis_label(key: str) -> str:
    """What a key of a study or a column of the facts is called on an axis."""
    return {**FACTS, "delta": "δ"}.get(key, key.replace("_", " "))


def method_families(methods: Tables, x: str) -> dict[str, list[str]]:
    """Methods that differ in ``x`` alone, named by what their names have in common.

    >>> method_families({"laplace-1": {"epsilon": 1}, "laplace-10": {"epsilon": 10},
    ...                  "uniform": {"walk": "uniform"}}, "epsilon")
    {'laplace': ['laplace-1', 'laplace-10'], 'uniform': ['uniform']}
    """
    alike: dict[str, list[str]] = {}
    for name, table in methods.items():
        rest = {key: value for key, value in table.items() if key not in (x, *_WHERE)}
        alike.setdefault(repr((x in table, sorted(rest.items(), key=str))), []).append(name)
    families: dict[str, list[str]] = {}
    for members in alike.values():
        if len(members) == 1:
            families[members[0]] = members
            continue
        members.sort(key=lambda name: float(methods[name][x]))
        common = os.path.commonprefix(members)  # noqa: RUF071  (of names, not of paths)
        shared = common.rstrip("0123456789.-") or members[0]
        families[shared if shared not in families else members[0]] = members
    return families


def scatter(
    cells: Sequence[CellBands], facts: pandas.DataFrame, metric: str, x: str
) -> Block | None:
    """Describe a figure of the final error against a fact that is known before the run."""
    if x not in facts or facts[x].isna().all():
        return None
    known = facts.groupby("cell")[x].mean()
    cells = [cell for cell in cells if np.isfinite(known.get(cell.hash, np.nan))]
    figures = []
    for title, shared, members in panels(cells, ("problem", "step_size")):
        series = []
        for method in dict.fromkeys(cell.method for cell in members):
            own = [cell for cell in members if cell.method == method]
            own.sort(key=lambda cell: float(known[cell.hash]))
            placed = [(float(known[cell.hash]), cell) for cell in own]
            series.append(_points(method, x, placed, [cell.graph for cell in own]))
        figures.append(Figure(title, series, of=shared))
    return Block(
        kind="lines",
        heading=f"Measured error against {axis_label(x)}",
        caption=(
            f"A point per graph. Across: mean of {x} over the instances, from the facts of the "
            f"same cell. Up: the last record. Bar: {INTERVAL}."
        ),
        controls=[metric_control(metric), centre_control()],
        figures=figures,
        options={"x": x, "x_label": axis_label(x), "mode": "markers+text"},
    )


def _points(
    name: str, x: str, placed: Iterable[tuple[float, CellBands]], labels: Sequence[str] = ()
) -> Series:
    """Last records as points of one series, each with the file it comes from."""
    placed = list(placed)
    last = [cell.last for _, cell in placed]
    columns: dict[str, Iterable[Any]] = {x: [place for place, _ in placed]}
    for column in last[0]:
        columns[column] = np.concatenate([each[column] for each in last])
    columns["label"] = list(labels) or [cell.method for _, cell in placed]
    columns["file"] = [cell.file for _, cell in placed]
    return Series(name, columns, ", ".join(cell.file for _, cell in placed))


def tradeoff_axis(methods: Tables) -> str | None:
    """The number in which methods that are else alike differ, if there are three or more of them.

    >>> tradeoff_axis({f"jump-{p}": {"walk": "jumping", "probability": p} for p in (0.1, 0.2, 0.5)})
    'probability'
    """
    every = [pair for table in methods.values() for pair in table.items()]
    for key in dict.fromkeys(key for key, value in every if is_number(value)):
        if any(len(members) >= 3 for members in method_families(methods, key).values()):
            return key
    return None
