"""What a study's text says: its keys, their types and defaults, checked one by one.

What the tables of graphs, problems and methods mean is left to who makes them.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from walklearn.simulation.trace_files import ERRORS
from walklearn.studies.choices import (
    ChoiceError,
    Table,
    as_toml,
    check_keys,
    check_type,
    chosen,
    not_known,
    step_size_of,
)
from walklearn.studies.claims import read_claims
from walklearn.studies.methods import WHERE
from walklearn.studies.source import Source, StudyError
from walklearn.studies.view import read_view

# The keys of a study with what they are when left out; None where they must be given.
_COUNTS: dict[str, int | None] = {
    "seed": 1, "instances": 100, "replicates": 1, "updates": None, "records": 60,
}  # fmt: skip
_GRIDS = ("graphs", "problems", "methods", "step_sizes")
_KEYS = (
    "name", "question", *_COUNTS, "metric", "gaps", "facts", "quick", *_GRIDS, "claims", "figure",
)  # fmt: skip
_QUICK = ("instances", "replicates", "updates", "records", "tuning_instances")
_NAME = re.compile(r"[a-z0-9][a-z0-9-]*")
TUNING_INSTANCES = 10
MOST = 10**12  # of anything that is counted


def settings_of(source: Source) -> dict[str, Any]:
    """What `Study` is made from, with the defaults; what is wrong is said with its line."""
    with about(source):
        return _settings(source, source.table)


def _settings(source: Source, table: dict[str, Any]) -> dict[str, Any]:
    check_keys(table, _KEYS, "a study")
    settings: dict[str, Any] = {"question": "", "facts": False, **table}
    for key, kind in (("name", "str"), ("question", "str"), ("facts", "bool")):
        if key not in settings:
            raise ChoiceError(f"{source.name} needs {key}")
        check_type(settings, key, kind)
    if not _NAME.fullmatch(settings["name"]):
        raise ChoiceError(f"may have a-z, 0-9 and -; it is {as_toml(settings['name'])}", "name")
    for key, default in _COUNTS.items():
        if settings.setdefault(key, default) is None:
            raise ChoiceError(f"{source.name} needs {key}")
        _check_count(settings, key)
    if "gaps" in table:
        _check_count(table, "gaps")
    settings["metric"] = chosen({"metric": "average_gap", **table}, "metric", ERRORS)
    quick = settings.pop("quick", {})
    with about(source, "quick"):
        _check_quick(quick)
    for grid in _GRIDS:
        _check_grid(source, grid)
    for name, steps in table["step_sizes"].items():
        with about(source, "step_sizes", name):
            _check_steps(steps)
    _check_where(source)
    settings["claims"] = read_claims(source)
    settings.pop("figure", None)
    with about(source, "figure"):
        settings["view"] = read_view(table)
    return {**settings, "quick_changes": quick, "text": source.text}


def _check_count(table: Table, key: str) -> None:
    check_type(table, key, "int")
    least, most = (0, 2**128) if key == "seed" else (1, MOST)
    if not least <= table[key] <= most:
        bound = f"at least {least}" if table[key] < least else f"at most {most:,}"
        raise ChoiceError(f"must be {bound}; it is {table[key]}", key)


def _check_quick(table: Any) -> None:
    if not isinstance(table, dict):
        raise ChoiceError(f"must be a table; it is {as_toml(table)}")
    check_keys(table, _QUICK, "quick")
    for key in table:
        _check_count(table, key)


def _check_grid(source: Source, grid: str) -> None:
    tables = source.table.get(grid)
    if not isinstance(tables, dict) or not tables:
        raise source.error((grid,), f"must have at least one table, such as [{grid}.mine]")
    for name, table in tables.items():
        if not isinstance(table, dict):
            raise source.error((grid, name), f"must be a table, [{grid}.{name}]")


def _check_steps(table: Table) -> None:
    tuned = "constants" in table
    always = ("exponent", "relative")
    allowed = (
        ("constants", "tuning_instances", "tuning_updates", "metric") if tuned else ("constant",)
    )
    check_keys(table, (*allowed, *always), "a step size")
    if not tuned and "constant" not in table:
        raise ChoiceError("needs constant, or constants to be tuned over")
    check_type({"exponent": 0.75, **table}, "exponent", "float")
    check_type({"relative": False, **table}, "relative", "bool")
    if tuned:
        _check_count({"tuning_updates": 1, **table}, "tuning_updates")
        _check_count({"tuning_instances": TUNING_INSTANCES, **table}, "tuning_instances")
        chosen({"metric": "gap", **table}, "metric", ERRORS)
    constants = table["constants"] if tuned else [table["constant"]]
    key = "constants" if tuned else "constant"
    if not isinstance(constants, list) or not constants:
        raise ChoiceError(f"must be a list of numbers; it is {as_toml(constants)}", key)
    for constant in constants:
        check_type({key: constant}, key, "float")
        step_size_of(constant, table.get("exponent", 0.75))
    if constants != sorted(set(constants)):
        raise ChoiceError("must increase, so that its ends can be told", key)


def _check_where(source: Source) -> None:
    for name, method in source.table["methods"].items():
        for key in WHERE:
            names, known = method.get(key, []), source.table[key]
            if not isinstance(names, list) or (key in method and not names):
                raise source.error(("methods", name, key), "must be a list of names")
            for wanted in names:
                if wanted not in known:
                    raise source.error(("methods", name, key), not_known(wanted, known))


@contextmanager
def about(source: Source, *path: str, note: str = "") -> Iterator[None]:
    """Say of an error where in the text its cause stands."""
    try:
        yield
    except StudyError:
        raise
    except ChoiceError as error:
        raise source.error((*path, *error.path), str(error)) from error
    except (ValueError, TypeError, ArithmeticError, MemoryError) as error:
        table = source.table
        for part in path:
            table = table[part]
        named = [key for key in table if re.search(rf"\b{re.escape(key)}\b", str(error))]
        raise source.error((*path, *named[:1]), f": {error}{note}") from error
