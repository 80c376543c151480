"""What a study is best looked at as, where its table `[figure]` says so.

    kind = "convergence"   error against what was spent; nothing else
    kind = "map"           who wins where, over two numbers of the problems, `x` and `y`
    kind = "tradeoff"      the final error against a number of the methods, `x`, such as epsilon
    kind = "scatter"       the final error against a fact of the instances, `x`, such as bound
    kind = "cost"          what was spent to reach the targets of its claims

A study without it is looked at as its grid and its claims suggest.

>>> figure = {"kind": "map", "x": "nois", "y": "noise"}
>>> read_view({"problems": {"a": {"noise": 0.0}}, "figure": figure})
Traceback (most recent call last):
walklearn.studies.choices.ChoiceError: is no number of problem a; those are noise
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from walklearn.studies.choices import ChoiceError, Table, as_toml, check_keys, chosen

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


def read_view(table: Table) -> View:
    """The view of a whole study's table; a ChoiceError says what is wrong with it."""
    figure = table.get("figure", {})
    if not isinstance(figure, dict):
        raise ChoiceError(f"must be a table; it is {as_toml(figure)}")
    if not figure:
        return View()
    kind = chosen(figure, "kind", _KEYS)
    check_keys(figure, ("kind", *_KEYS[kind]), f"a figure of kind {kind}")
    for axis in _KEYS[kind]:
        if axis not in figure:
            raise ChoiceError(f"needs {axis}: what a {kind} has on that axis")
        _check_axis(table, kind, axis, figure[axis])
    return View(**figure)


def _check_axis(table: Table, kind: str, axis: str, value: Any) -> None:
    if kind == "scatter":
        chosen({axis: value}, axis, FACTS)
    elif kind == "map":
        for name, problem in table["problems"].items():
            if value not in (known := _numbers(problem)):
                raise ChoiceError(f"is no number of problem {name}; those are {_list(known)}", axis)
    else:
        every = dict.fromkeys(key for each in table["methods"].values() for key in _numbers(each))
        if value not in every:
            raise ChoiceError(f"is no number of a method; those are {_list(every)}", axis)


def _numbers(table: Mapping[str, Any]) -> list[str]:
    return [
        key
        for key, value in table.items()
        if isinstance(value, int | float) and not isinstance(value, bool)
    ]


def _list(names: Any) -> str:
    return ", ".join(names) or "none"
