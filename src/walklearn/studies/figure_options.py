"""The table `[figure]` of a study, which selects the first figure of its report.

    kind = "convergence"   error against cost; nothing else
    kind = "map"           ratios of errors over two numbers of the problems, `x` and `y`
    kind = "tradeoff"      the last error against a number of the methods, `x`, such as epsilon
    kind = "scatter"       the last error against a fact of the instances, `x`, such as bound
    kind = "cost"          the cost of reaching the targets of its claims

Without the table, the grid and the claims determine the figures.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from walklearn.checks import is_number
from walklearn.files.checked_table import CheckedTable

#: Facts that a scatter can be drawn against.
FACTS = (
    "bound", "mixing_time", "spectral_gap", "acceptance_rate", "smoothness_spread", "sigma2",
    "start_distance", "boundary_share",
)  # fmt: skip
_KEYS = {
    "convergence": (),
    "map": ("x", "y"),
    "tradeoff": ("x",),
    "scatter": ("x",),
    "cost": (),
}


@dataclass(frozen=True)
class View:
    """The first figure; an empty kind if the study does not select one."""

    kind: str = ""
    x: str = ""
    y: str = ""


def read_view(study: CheckedTable) -> View:
    """Read the view from a whole study's table."""
    figure = study.table("figure", CheckedTable({}))
    if not figure:
        return View()
    kind = figure.choice("kind", _KEYS)
    figure.only(("kind", *_KEYS[kind]), f"a figure of kind {kind}")
    return View(kind, *(_axis(study, figure, axis) for axis in _KEYS[kind]))


def _axis(study: CheckedTable, figure: CheckedTable, axis: str) -> str:
    """Read the number of an axis, which every problem, or any method, must have."""
    name: str = figure.text(axis)
    if figure["kind"] == "scatter":
        return figure.choice(axis, FACTS)
    if figure["kind"] == "map":
        known = {f"problem {key}": _numbers(table) for key, table in study["problems"].items()}
    else:
        known = {"a method": [key for each in study["methods"].values() for key in _numbers(each)]}
    for owner, names in known.items():
        if name not in names:
            choices = ", ".join(dict.fromkeys(names)) or "none"
            raise figure.error(axis, f"is no number of {owner}; choose one of {choices}.")
    return name


def _numbers(table: Mapping[str, Any]) -> list[str]:
    return [key for key, value in table.items() if is_number(value)]
