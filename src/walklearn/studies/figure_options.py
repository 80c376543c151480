"""What a study is best looked at as, where its table `[figure]` says so.

    kind = "convergence"   error against what was spent; nothing else
    kind = "map"           who wins where, over two numbers of the problems, `x` and `y`
    kind = "tradeoff"      the final error against a number of the methods, `x`, such as epsilon
    kind = "scatter"       the final error against a fact of the instances, `x`, such as bound
    kind = "cost"          what was spent to reach the targets of its claims

A study without it is looked at as its grid and its claims suggest.

>>> figure = {"kind": "map", "x": "nois", "y": "noise"}
>>> read_view(CheckedTable({"problems": {"a": {"noise": 0.0}}, "figure": figure}))
Traceback (most recent call last):
walklearn.errors.InputError: figure.x is no number of problem a; those are noise.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from walklearn.checks import is_number
from walklearn.files.checked_table import CheckedTable

#: Facts that a scatter may be drawn against.
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
    """The figure that comes first; an empty kind leaves it to the grid and the claims."""

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
    """Read what is on that axis, which must be a number that the study has."""
    name: str = figure.text(axis)
    if figure["kind"] == "scatter":
        return figure.choice(axis, FACTS)
    if figure["kind"] == "map":
        for problem, table in study["problems"].items():
            if name not in (known := _numbers(table)):
                message = f"is no number of problem {problem}; those are {_list(known)}."
                raise figure.error(axis, message)
        return name
    every = dict.fromkeys(key for each in study["methods"].values() for key in _numbers(each))
    if name not in every:
        raise figure.error(axis, f"is no number of a method; those are {_list(every)}.")
    return name


def _numbers(table: Mapping[str, Any]) -> list[str]:
    return [key for key, value in table.items() if is_number(value)]


def _list(names: Any) -> str:
    return ", ".join(names) or "none"
