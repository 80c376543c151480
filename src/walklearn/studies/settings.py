"""What a study's text says: its keys, their types and defaults, checked one by one.

What the tables of graphs, problems and methods mean is left to who makes them.
"""

from __future__ import annotations

import re
from typing import Any

from walklearn.files.checked_table import CheckedTable, is_number, shown
from walklearn.simulation.trace_files import ERRORS
from walklearn.studies.claims import read_claims
from walklearn.studies.methods import WHERE
from walklearn.studies.view import read_view

_GRIDS = ("graphs", "problems", "methods", "step_sizes")
_KEYS = (
    "name", "question", "seed", "instances", "replicates", "updates", "records", "metric", "gaps",
    "facts", "quick", *_GRIDS, "claims", "figure",
)  # fmt: skip
_QUICK = ("instances", "replicates", "updates", "records", "tuning_instances")
TUNING_INSTANCES = 10


def settings_of(study: CheckedTable) -> dict[str, Any]:
    """What `Study` is made from, with the defaults; what is wrong is said with its line."""
    study.only(_KEYS, "a study")
    return {
        "name": _name(study),
        "question": study.text("question", ""),
        "seed": study.count("seed", 1, least=0, most=2**128),
        "instances": study.count("instances", 100),
        "replicates": study.count("replicates", 1),
        "updates": study.count("updates"),
        "records": study.count("records", 60),
        "gaps": study.count("gaps", None),
        "facts": study.flag("facts", False),
        "metric": study.choice("metric", ERRORS, "average_gap"),
        "quick_changes": _quick(study.table("quick", CheckedTable({}))),
        **{grid: _grid(study, grid) for grid in _GRIDS},
        "claims": read_claims(study),
        "view": read_view(study),
        "text": study.source.text,
    }


def _name(study: CheckedTable) -> str:
    name: str = study.text("name")
    if not re.fullmatch(r"[a-z0-9][a-z0-9-]*", name):
        raise study.error("name", f"may have a-z, 0-9 and -; it is {shown(name)}.")
    return name


def _quick(table: CheckedTable) -> dict[str, int]:
    table.only(_QUICK, "quick")
    return {key: table.count(key) for key in table}


def _grid(study: CheckedTable, grid: str) -> dict[str, Any]:
    """The tables of a grid as they are; what is in graphs, problems and methods is left to who
    makes them."""
    tables = study.table(grid)
    if not tables:
        raise study.error(grid, f"must have at least one table, such as [{grid}.mine].")
    for table in map(tables.table, tables):
        if grid == "step_sizes":
            _check_steps(table)
        if grid == "methods":
            for key in WHERE:
                table.names(key, study.get(key, ()), None)
    return dict(tables)


def _check_steps(table: CheckedTable) -> None:
    if not table.keys() & {"constant", "constants"}:
        raise table.error("", "needs constant, or constants to be tuned over.")
    tuned = "constants" in table
    own = ("constants", "tuning_instances", "tuning_updates", "metric") if tuned else ("constant",)
    table.only((*own, "exponent", "relative"), "a step size")
    table.number("exponent", 0.75, least=0.0)
    table.flag("relative", False)
    table.number("constant", None, above=0.0)
    table.count("tuning_instances", None)
    table.count("tuning_updates", None)
    table.choice("metric", ERRORS, None)
    table.value(
        "constants", None, fits=_increases,
        wanted="a list of positive numbers that increase, so that its ends can be told",
    )  # fmt: skip


def _increases(values: Any) -> bool:
    numbers = isinstance(values, list) and values and all(map(is_number, values))
    return bool(numbers) and values[0] > 0 and values == sorted(set(values))
