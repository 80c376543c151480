"""The methods that a study compares: walks, with or without privacy, and gossip.

>>> from walklearn import Problem
>>> problem = Problem([[1.0], [2.0], [3.0]], [1.0, -1.0, 1.0], penalty=1.0)
>>> method_of({"walk": "uniform", "laziness": 0.1}, {}, problem)
Uniform(laziness=0.1)
>>> method_of({"walk": "jumping", "base": "weighted", "probability": 0.2}, {}, problem)
Jumping(probability=0.2)
>>> private = {"walk": "weighted", "mechanism": "laplace", "epsilon": 3.0, "delta": 0.0,
...            "bounds": [1.0, 50.0]}
>>> method_of(private, {}, problem)
Weighted(privacy=Laplace(scale=16.3333, bounds=(1, 50)))

A walk of one's own is named after `register_walk`; it must be importable by the workers.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable
from functools import lru_cache
from importlib import import_module
from typing import Any

from walklearn.files.checked_table import CheckedTable
from walklearn.graphs import Graph
from walklearn.privacy import MECHANISMS, Mechanism, calibrate, smoothness_bounds
from walklearn.problem import Problem
from walklearn.studies.choices import Table, arguments, table_of, typed
from walklearn.updates.gossip_sgd import AsynchronousGossip, Gossip, SynchronousGossip
from walklearn.updates.step_sizes import StepSize
from walklearn.walks import (
    Independent,
    Jumping,
    Metropolis,
    NonBacktracking,
    Simple,
    Uniform,
    Walk,
    Weighted,
)

GOSSIP: dict[str, Callable[..., Gossip]] = {
    "asynchronous": AsynchronousGossip,
    "synchronous": SynchronousGossip,
}
PLAIN: dict[str, type[Metropolis]] = {"simple": Simple, "uniform": Uniform, "weighted": Weighted}
DERIVED: dict[str, Callable[..., Walk]] = {
    "jumping": Jumping,
    "non-backtracking": NonBacktracking,
    "independent": Independent,
}
_DEFAULT_BASE = {"jumping": "weighted", "non-backtracking": "uniform", "independent": "uniform"}
# Keys about what a private walk releases, and arguments of walks that they stand for.
_NOISE = ("theta", "scale", "cut", "sigma")
PRIVACY = (
    "mechanism", "epsilon", "delta", "bounds", "clamp", "accounting", "reweight", "infeasible",
    *_NOISE,
)  # fmt: skip
_OURS = ("walk", "importance", "privacy", "reweight", "bounds", "public")
# Keys that say where a method is run; the study reads them.
WHERE = ("graphs", "problems", "step_sizes")

_registered: dict[str, str] = {}


def register_walk(name: str, home: str) -> None:
    """Let studies say `walk = name` for the walk at `home`, written "package.module:Class".

    A study's cells carry the home with them, so that workers import the walk themselves. A
    class with an argument `privacy` takes the keys about releases as "weighted" does.
    """
    if name in PLAIN or name in DERIVED or _registered.get(name, home) != home:
        raise ValueError(f"there is a walk named {name!r} already.")
    _registered[name] = home


def resolved(content: Table) -> CheckedTable:
    """The table with the home of a registered walk, and without where the method is run.

    A text cannot name a home itself: it would be a way to have any code run.
    """
    table = table_of(content)
    if "home" in table:
        raise table.error("home", "is no key of a method; a walk of one's own is registered first.")
    plain = {key: value for key, value in table.items() if key not in WHERE}
    if plain.get("walk") in _registered:
        plain["home"] = _registered[plain["walk"]]
    return CheckedTable(plain, table.source, table.path)


def method_of(content: Table, problem_table: Table, problem: Problem) -> Walk | Gossip:
    """The method that a table describes, for a problem. InfeasiblePrivacyError where none is."""
    table = table_of(content)
    if "gossip" in table:
        kind = GOSSIP[table.choice("gossip", GOSSIP)]
        return kind(**arguments(kind, table, ["gossip", *WHERE]))
    if "walk" not in table:
        raise table.error(
            "", f"needs walk (one of {', '.join(_walks())}) or gossip (one of {', '.join(GOSSIP)})."
        )
    if "home" in table:
        return _walk(_at_home(table["home"]), table, problem_table, problem)
    name = table.choice("walk", _walks())
    if name in PLAIN:
        return _walk(PLAIN[name], table, problem_table, problem)
    if name in _registered:
        return _walk(_at_home(_registered[name]), table, problem_table, problem)
    base = PLAIN[table.choice("base", PLAIN, _DEFAULT_BASE[name])]
    own = [key for key in inspect.signature(DERIVED[name]).parameters if key != "walk"]
    outer = arguments(DERIVED[name], table, ["walk", "base", *_keys(base), *WHERE], ours=["walk"])
    plain = {key: value for key, value in table.items() if key not in (*own, "base")}
    inner = CheckedTable(plain, table.source, table.path)
    return DERIVED[name](walk=_walk(base, inner, problem_table, problem), **outer)


def _at_home(home: str) -> Callable[..., Walk]:
    module, _, attribute = home.partition(":")
    try:
        walk: Callable[..., Walk] = getattr(import_module(module), attribute)
    except (ImportError, AttributeError) as error:
        raise ValueError(
            f"there is no walk {home}: {error}. Every worker must be able to import it: install "
            "it, or put it on PYTHONPATH."
        ) from error
    return walk


def _walks() -> list[str]:
    return [*PLAIN, *DERIVED, *_registered]


def _keys(walk: Callable[..., Walk]) -> list[str]:
    names = inspect.signature(walk).parameters
    return [
        *(name for name in names if name not in _OURS),
        *(PRIVACY if "privacy" in names else ()),
    ]


def _walk(
    walk: Callable[..., Walk], table: CheckedTable, problem_table: Table, problem: Problem
) -> Walk:
    keys = ["walk", "home", *WHERE, *(key for key in _keys(walk) if key in PRIVACY)]
    settings = arguments(walk, table, keys, ours=_OURS)
    privacy = [key for key in PRIVACY if key in table]
    if "mechanism" in privacy:
        settings["privacy"] = mechanism_of(table, problem_table, problem)
        if "reweight" in table:
            settings["reweight"] = table.choice("reweight", ("released", "as-printed"))
    elif privacy:
        told = f"is about a release: say mechanism = … with {privacy[0]}."
        raise table.error(privacy[0], told)
    made = walk(**settings)
    if not isinstance(made, Walk):
        raise TypeError(f"{walk.__module__}:{walk.__name__} makes no walk, but {made!r}.")
    return made


def step_smoothness(
    method: Walk | Gossip, graph: Graph, problem: Problem, step_size: StepSize
) -> float:
    """L of the method's steps, the largest (factor of ∇f_i in ĝ) × L_i; steps of 2 / L overshoot.

    A private walk's is that of the same walk without noise, L̄.
    """
    if not isinstance(method, Walk):
        scale = method.gradient_scale(graph, step_size)
    elif method.is_private:
        return float(problem.importance.mean())
    else:
        scale = method.gradient_scale(graph, problem)
    return float((scale * problem.smoothness).max())


def mechanism_of(table: CheckedTable, problem_table: Table, problem: Problem) -> Mechanism:
    """The mechanism with the stated noise, or calibrated to the stated (ε, δ)."""
    kind = table.choice("mechanism", MECHANISMS)
    for key in ("epsilon", "delta", *_NOISE):
        typed(table, key, "float", None)
    table.choice("infeasible", ("error", "skip"), "error")
    bounds = bounds_of(table, problem_table, problem)
    options: dict[str, Any] = {}
    if "clamp" in table:
        unclamped = table["clamp"] is False
        options["clamp"] = None if unclamped else table.pair("clamp", rising=False)
    noise = MECHANISMS[kind].noise_names
    if any(name in table for name in _NOISE):
        return _stated(table, kind, {"bounds": bounds, **options})
    for key in ("epsilon", "delta"):
        if key not in table:
            raise table.error("", f"needs {key}, or {' and '.join(noise)}, for {kind}.")
    if "accounting" in table:
        options["accounting"] = table.choice("accounting", ("tight", "lemma"))
    return _calibrated(kind, table["epsilon"], table["delta"], bounds, tuple(options.items()))


def _stated(table: CheckedTable, kind: str, options: dict[str, Any]) -> Mechanism:
    """The mechanism with the noise that the table states; what δ it has at ε is a fact."""
    noise = MECHANISMS[kind].noise_names
    named = " and ".join(noise)
    stated = [name for name in _NOISE if name in table]
    if set(stated) != set(noise):
        raise table.error(stated[0], f"does not fit: {kind} has the noise {named}.")
    if "delta" in table:
        raise table.error("delta", f"follows from {named} and epsilon: leave it out.")
    make: Callable[..., Mechanism] = MECHANISMS[kind]
    mechanism = make(**{name: table[name] for name in noise}, **options)
    if "epsilon" in table:
        mechanism.delta(table["epsilon"])  # raises what is wrong with it
    return mechanism


@lru_cache(maxsize=256)
def _calibrated(
    kind: str, epsilon: float, delta: float, bounds: tuple[float, float], options: Any
) -> Mechanism:
    return calibrate(kind, epsilon=epsilon, delta=delta, bounds=bounds, **dict(options))


def bounds_of(table: CheckedTable, problem_table: Table, problem: Problem) -> tuple[float, float]:
    """Public bounds of L_i: stated, from the problem's public feature bound, or the oracle's."""
    if isinstance(table.get("bounds"), list):
        return table.pair("bounds", rising=False)
    source = table.value(
        "bounds", fits=lambda value: value in ("public", "instance"),
        wanted='[low, high], "public" (from the problem\'s feature_bound) or "instance" (read from '
        "the data, not private)",
    )  # fmt: skip
    if source == "instance":  # not private: the report says so
        return float(problem.importance.min()), float(problem.importance.max())
    if "feature_bound" not in problem_table:
        raise table.error("bounds", '= "public" needs a feature_bound in every problem.')
    rows = len(problem.X)
    return smoothness_bounds(
        problem.loss, problem.penalty, problem.node_count, problem_table["feature_bound"],
        max_rows=-(-rows // problem.node_count), objective=problem.objective, total_rows=rows,
    )  # fmt: skip
