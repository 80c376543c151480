"""The graphs, data, losses, domains and step sizes that a study can name.

Every table of a study names one thing (`family`, `data`, `walk`, …); its other keys are the
arguments of that thing's function. So a new argument of the function needs no change here.
"""

from __future__ import annotations

import inspect
import warnings
from collections.abc import Callable, Iterable, Mapping
from typing import Any

import numpy as np

from walklearn.checks import is_whole
from walklearn.errors import InputError
from walklearn.files.checked_table import CheckedTable, Source, is_flag, is_text
from walklearn.files.named_settings import read_named
from walklearn.graphs import FAMILIES, Graph
from walklearn.objectives import datasets
from walklearn.objectives.linear.domains import DOMAINS, Ball, Domain, Everywhere
from walklearn.objectives.linear.losses import LOSSES, Loss
from walklearn.registry import Registry
from walklearn.updates.step_sizes import ConstantStep, PowerStep, StepSize

Table = Mapping[str, Any]
Seed = int | np.random.SeedSequence

GENERATED: dict[str, Callable[..., Any]] = {
    each.__name__: each for each in (datasets.two_gaussians, datasets.heterogeneous_rows)
}
COLLECTED: dict[str, Callable[..., Any]] = {
    each.__name__: each for each in (datasets.breast_cancer, datasets.digits, datasets.diabetes)
}
_TYPES: dict[str, tuple[str, Callable[[Any], bool]]] = {
    "int": ("a whole number", is_whole),
    "float": ("a number", lambda value: is_whole(value) or isinstance(value, float)),
    "bool": ("true or false", is_flag),
    "str": ("text", is_text),
}


class StudyError(InputError):
    """The text of a study is invalid: the error has the file, line and key.

    Parameters
    ----------
    problem, key, place
        As for `InputError`.
    """


def table_of(content: Table) -> CheckedTable:
    """Return a table with checks; one from a text has line numbers, one from a cell has none."""
    if isinstance(content, CheckedTable):
        return content
    return CheckedTable(content, Source(error=StudyError))


def arguments(
    function: Callable[..., Any],
    table: CheckedTable,
    also: Iterable[str],
    excluded: Iterable[str] = (),
) -> dict[str, Any]:
    """Read a function's arguments from a table.

    also: keys of the table that are no arguments. excluded: arguments that are not in the table.
    """
    name_of_function = getattr(function, "__name__", repr(function))
    known = dict(inspect.signature(function).parameters)
    for name in excluded:
        known.pop(name, None)
    table.only(dict.fromkeys([*also, *known]), name_of_function)
    anything = f"given, as {name_of_function} needs it", lambda _: True
    for name, parameter in known.items():
        annotation = getattr(parameter.annotation, "__name__", parameter.annotation)
        expected, fits = _TYPES.get(annotation, anything)
        needed = parameter.default is inspect.Parameter.empty
        table.value(name, *([] if needed else [None]), wanted=expected, fits=fits)
    return {name: table[name] for name in known if name in table}


def graph_of(content: Table, seed: Seed) -> Graph:
    """Make the graph of a table; a random graph is drawn until it is connected."""
    table = table_of(content)
    family = FAMILIES[table.choice("family", FAMILIES)]
    random = {"seed": seed, "connected": "retry"}
    settings = arguments(family, table, ["family"], excluded=random)
    parameters = inspect.signature(family).parameters
    return family(**settings, **{key: random[key] for key in random if key in parameters})


def read_kind(
    table: CheckedTable, key: str, registry: Registry[Any], default: str
) -> tuple[Any, CheckedTable]:
    """Return the class that a key names (itself or in a table) and the table of its settings."""
    if not isinstance(table.get(key), Mapping):
        kind = registry[table.choice(key, registry, default)]
        path = f"{table.path}.{key}" if table.path else key
        return kind, CheckedTable({}, table.source, path)
    inner = table.table(key)
    return registry[inner.choice("name", registry)], inner


def loss_of(table: CheckedTable, default: str = "logistic") -> Loss:
    """Read the key `loss`: "logistic", or { name = "huber", threshold = 0.5 }."""
    kind, inner = read_kind(table, "loss", LOSSES, default)
    loss: Loss = kind(**arguments(kind, inner, ["name"]))
    return loss


def domain_of(table: CheckedTable) -> tuple[Domain, float]:
    """Read the key `domain`. Return the domain and 0.

    For a ball whose radius is a multiple of ‖w*‖, return everywhere and that multiple.
    """
    if "domain" not in table:
        return Everywhere(), 0.0
    value = table.get("domain")
    if not isinstance(value, Mapping) or Ball.name not in value:
        return read_named(table, "domain", DOMAINS), 0.0
    inner = table.table("domain")
    inner.only(["ball", "relative"], "a ball")
    radius = inner.number("ball", above=0.0)
    return (Everywhere(), radius) if inner.flag("relative", False) else (Ball(radius), 0.0)


def step_size_of(constant: float, exponent: float) -> StepSize:
    """Return γ_k = constant / k^exponent."""
    if exponent == 0:
        return ConstantStep(constant)
    with warnings.catch_warnings():
        # A study may test exponents outside the theorems' range.
        warnings.simplefilter("ignore", UserWarning)
        return PowerStep(constant, exponent)
