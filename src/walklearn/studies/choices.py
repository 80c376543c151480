"""What a study may name: graphs, data, losses, domains, step sizes, and how they are made.

Every table of a study names one thing (`family`, `data`, `walk`, …); its other keys are the
arguments of that thing's function, so that a new argument there needs no change here.

>>> graph_of({"family": "ring", "nodes": 5}, seed=1)
Graph(5 nodes, 5 edges)
>>> graph_of({"family": "rnig", "nodes": 5}, seed=1)
Traceback (most recent call last):
    ...
walklearn.studies.choices.ChoiceError: is "rnig", which is not known; did you mean "ring"? ...
"""

from __future__ import annotations

import inspect
import warnings
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any

import numpy as np

from walklearn import graphs
from walklearn.files.wording import closest
from walklearn.graphs import Graph
from walklearn.problem import datasets, losses
from walklearn.problem.domains import Ball, Box, Domain, Everywhere
from walklearn.problem.losses import Loss
from walklearn.updates.step_sizes import ConstantStep, PowerStep, StepSize

Table = Mapping[str, Any]
Seed = int | np.random.SeedSequence

GRAPHS: dict[str, Callable[..., Graph]] = {
    function.__name__: function
    for function in (
        graphs.erdos_renyi, graphs.ring, graphs.grid, graphs.torus, graphs.complete, graphs.star,
        graphs.hypercube, graphs.barbell, graphs.random_regular, graphs.barabasi_albert,
        graphs.watts_strogatz, graphs.stochastic_block, graphs.geometric,
    )
}  # fmt: skip
GENERATED: dict[str, Callable[..., Any]] = {
    "two_gaussians": datasets.two_gaussians,
    "heterogeneous_rows": datasets.heterogeneous_rows,
}
COLLECTED: dict[str, Callable[..., Any]] = {
    "breast_cancer": datasets.breast_cancer,
    "digits": datasets.digits,
    "diabetes": datasets.diabetes,
}
LOSSES: dict[str, type[Loss]] = {
    "logistic": losses.Logistic,
    "squared": losses.Squared,
    "huber": losses.Huber,
    "squared-hinge": losses.SquaredHinge,
    "softmax": losses.Softmax,
}
_TYPES: dict[str, tuple[tuple[type, ...], str]] = {
    "int": ((int,), "a whole number"),
    "float": ((int, float), "a number"),
    "bool": ((bool,), "true or false"),
    "str": ((str,), "text"),
}


class ChoiceError(ValueError):
    """What a table says wrongly; `path` leads to the key of it that does, if it is one key."""

    def __init__(self, message: str, *path: str) -> None:
        super().__init__(message)
        self.path = path

    def __reduce__(self) -> tuple[Any, ...]:
        return type(self), (self.args[0], *self.path)


@contextmanager
def inside(key: str) -> Iterator[None]:
    """What is wrong in here is wrong under that key."""
    try:
        yield
    except ChoiceError as error:
        raise ChoiceError(str(error), key, *error.path) from error


def chosen(table: Table, key: str, allowed: Iterable[str]) -> str:
    """The name under `key`, which must be among the allowed ones."""
    names = list(allowed)
    if key not in table:
        raise ChoiceError(f"needs {key}: one of {', '.join(names)}")
    if table[key] not in names:
        raise ChoiceError(not_known(table[key], names), key)
    return str(table[key])


def not_known(name: Any, allowed: Iterable[str]) -> str:
    """What to say of a name that is not among the allowed ones."""
    names = list(allowed)
    near = closest(name, names) if isinstance(name, str) else None
    hint = f'; did you mean "{near}"?' if near else "."
    return f"is {as_toml(name)}, which is not known{hint} Choose one of {', '.join(names)}"


def check_keys(table: Table, allowed: Iterable[str], what: str) -> None:
    """Every key must be one of the allowed ones."""
    keys = list(allowed)
    for key in table:
        if key not in keys:
            near = closest(key, keys)
            hint = f"; did you mean {near}?" if near else "."
            raise ChoiceError(f"is no key of {what}{hint} Allowed: {', '.join(keys)}", key)


def check_type(table: Table, key: str, kind: str) -> None:
    """The value under `key` must be an "int", "float", "bool" or "str"."""
    types, text = _TYPES[kind]
    value = table[key]
    if not isinstance(value, types) or (isinstance(value, bool) and bool not in types):
        raise ChoiceError(f"must be {text}; it is {as_toml(value)}", key)


def as_toml(value: Any) -> str:
    """A value as a study writes it."""
    if isinstance(value, bool):
        return str(value).lower()
    return f'"{value}"' if isinstance(value, str) else str(value)


def arguments(
    function: Callable[..., Any], table: Table, also: Iterable[str], ours: Iterable[str] = ()
) -> dict[str, Any]:
    """The function's arguments, read from a table; whatever is wrong with them is said.

    also: keys of the table that are no arguments. ours: arguments that a study does not give.
    """
    ours = set(ours)
    known = {
        name: parameter
        for name, parameter in inspect.signature(function).parameters.items()
        if name not in ours
    }
    check_keys(table, [*also, *known], function.__name__)
    for name, parameter in known.items():
        if name not in table:
            if parameter.default is inspect.Parameter.empty:
                raise ChoiceError(f"needs {name} (of {function.__name__})")
        elif (kind := _name_of(parameter.annotation)) in _TYPES:
            check_type(table, name, kind)
    return {name: table[name] for name in known if name in table}


def _name_of(annotation: Any) -> str:
    return annotation if isinstance(annotation, str) else getattr(annotation, "__name__", "")


def graph_of(table: Table, seed: Seed) -> Graph:
    """The graph that a table describes; a random one is drawn again until it is connected."""
    family = GRAPHS[chosen(table, "family", GRAPHS)]
    settings = arguments(family, table, ["family"], ours=("seed", "connected"))
    parameters = inspect.signature(family).parameters
    if "seed" in parameters:
        settings["seed"] = seed
    if "connected" in parameters:
        settings["connected"] = "retry"
    return family(**settings)


def loss_of(value: Any) -> Loss:
    """`"logistic"`, or `{ name = "huber", threshold = 0.5 }`."""
    if isinstance(value, Mapping):
        kind = LOSSES[chosen(value, "name", LOSSES)]
        return kind(**arguments(kind, value, ["name"]))
    if value not in list(LOSSES):
        raise ChoiceError(not_known(value, LOSSES))
    return LOSSES[value]()


def domain_of(value: Any) -> tuple[Domain, float]:
    """The domain and 0, or everywhere and how many times ‖w*‖ the ball's radius is to be.

    >>> domain_of({"ball": 10.0})
    (Ball(radius=10.0), 0.0)
    >>> domain_of({"ball": 2, "relative": True})
    (Everywhere(), 2.0)
    """
    if value == "everywhere":
        return Everywhere(), 0.0
    if isinstance(value, Mapping) and "ball" in value:
        check_keys(value, ["ball", "relative"], "a ball")
        check_type(value, "ball", "float")
        check_type({"relative": False, **value}, "relative", "bool")
        ball = Ball(value["ball"])
        return (Everywhere(), ball.radius) if value.get("relative") else (ball, 0.0)
    if isinstance(value, Mapping) and "box" in value:
        check_keys(value, ["box"], "a box")
        return Box(*pair(value, "box")), 0.0
    raise ChoiceError(
        'must be "everywhere", { ball = 10.0 }, { ball = 2.0, relative = true } or '
        f"{{ box = [-1.0, 1.0] }}; it is {as_toml(value)}"
    )


def pair(table: Table, key: str) -> tuple[float, float]:
    """Two numbers."""
    value = table[key]
    if not isinstance(value, list) or len(value) != 2:
        raise ChoiceError(f"must be two numbers, [low, high]; it is {as_toml(value)}", key)
    for number in value:
        check_type({key: number}, key, "float")
    return float(value[0]), float(value[1])


def step_size_of(constant: float, exponent: float) -> StepSize:
    """γ_k = constant / k^exponent."""
    if exponent == 0:
        return ConstantStep(constant)
    with warnings.catch_warnings():
        # A study may well ask what happens outside the theorems' range.
        warnings.simplefilter("ignore", UserWarning)
        return PowerStep(constant, exponent)
