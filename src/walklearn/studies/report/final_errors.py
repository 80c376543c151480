"""Figures of the last error against a number that is known before the run: ε, a mixing time.

tradeoff    against a number of the methods: a line joins methods that differ in it alone;
            methods without it are drawn as levels
scatter     against a fact of each cell, a point per graph
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import numpy as np

from walklearn.checks import is_number
from walklearn.studies.methods import CELL_KEYS
from walklearn.studies.report.bands import INTERVAL, CellBands, controls, panels
from walklearn.studies.report.figures import Block, Series

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
    "achieved_delta": "δ achieved",
}


def tradeoff(cells: Sequence[CellBands], methods: Tables, metric: str, x: str) -> Block:
    """Describe a figure of the last error against a number of the methods, such as ε."""
    families = method_families(methods, x)

    def series(members: list[CellBands]) -> list[Series]:
        present = {cell.method: cell for cell in members}
        if not any(x in methods[name] for name in present):
            return []  # only levels, and no axis to draw them along
        return [
            _points(family, x, [(methods[name].get(x, np.nan), present[name]) for name in known])
            for family, names in families.items()
            if (known := [name for name in names if name in present])
        ]

    return Block(
        kind="lines",
        heading=f"Error against {axis_label(x)}",
        caption=f"Last record. Bar: {INTERVAL}. Level: a method without {axis_label(x)}.",
        controls=controls(metric),
        figures=panels(cells, series),
        options={"x": x, "x_label": axis_label(x), "mode": "lines+markers", "ticks": True},
    )


def axis_label(key: str) -> str:
    """The label of a key of a study, or of a column of the facts."""
    return {**FACTS, "delta": "δ"}.get(key, key.replace("_", " "))


def method_families(methods: Tables, x: str) -> dict[str, list[str]]:
    """Group methods that differ in ``x`` alone, under the common start of their names.

    >>> method_families({"laplace-1": {"epsilon": 1}, "laplace-10": {"epsilon": 10},
    ...                  "uniform": {"walk": "uniform"}}, "epsilon")
    {'laplace': ['laplace-1', 'laplace-10'], 'uniform': ['uniform']}
    """
    alike: dict[str, list[str]] = {}
    for name, table in methods.items():
        rest = {k: value for k, value in table.items() if k not in (x, *CELL_KEYS, "infeasible")}
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


def scatter(cells: Sequence[CellBands], metric: str, x: str) -> Block | None:
    """Describe a figure of the last error against a fact that is known before the run."""
    known = {cell.file: float(fact.mean()) for cell in cells if (fact := cell.fact(x)) is not None}
    if not known:
        return None

    def series(members: list[CellBands]) -> list[Series]:
        placed = sorted(((known[cell.file], cell) for cell in members), key=lambda pair: pair[0])
        return [
            _points(method, x, [pair for pair in placed if pair[1].method == method], "graph")
            for method in dict.fromkeys(cell.method for cell in members)
        ]

    return Block(
        kind="lines",
        heading=f"Measured error against {axis_label(x)}",
        caption=(
            f"A point per graph. Across: mean of {x} over the instances, from the facts of the "
            f"same cell. Up: the last record. Bar: {INTERVAL}."
        ),
        controls=controls(metric),
        figures=panels(
            [cell for cell in cells if np.isfinite(known.get(cell.file, np.nan))],
            series,
            ("problem", "step_size"),
        ),
        options={"x": x, "x_label": axis_label(x), "mode": "markers+text"},
    )


def _points(
    name: str, x: str, placed: Sequence[tuple[float, CellBands]], label: str = "method"
) -> Series:
    """Last records as points of one series, each with its file and a label."""
    cells = [cell for _, cell in placed]
    columns: dict[str, Iterable[Any]] = {x: [place for place, _ in placed]}
    for column in cells[0].columns:
        columns[column] = [cell.columns[column][-1] for cell in cells]
    columns["label"] = [cell.names[label] for cell in cells]
    columns["file"] = [cell.file for cell in cells]
    return Series(name, columns, ", ".join(cell.file for cell in cells))


def tradeoff_axis(methods: Tables) -> str | None:
    """The number in which three or more otherwise equal methods differ, if there is one.

    >>> tradeoff_axis({f"jump-{p}": {"walk": "jumping", "probability": p} for p in (0.1, 0.2, 0.5)})
    'probability'
    """
    pairs = [pair for table in methods.values() for pair in table.items()]
    for key in dict.fromkeys(key for key, value in pairs if is_number(value)):
        if any(len(members) >= 3 for members in method_families(methods, key).values()):
            return key
    return None
