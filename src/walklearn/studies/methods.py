"""Make the methods that a study compares: walks, with or without noise, and gossip.

To use your own walk, register it in `WALKS` or by `register_walk`.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable
from functools import lru_cache
from typing import Any

from walklearn.files.checked_table import CheckedTable
from walklearn.graphs import Graph
from walklearn.objectives import Problem
from walklearn.privacy import MECHANISMS, Mechanism, calibrate, smoothness_bounds
from walklearn.simulation.averaging import GOSSIP, Gossip
from walklearn.studies.options import Table, arguments, read_kind, table_of
from walklearn.updates import UPDATES, Sgd, StepSize, Update
from walklearn.walks import WALKS, ComposedWalk, Metropolis, Walk

# Keys about the releases of a private walk, and the arguments of its class that they replace.
_RELEASE = ("mechanism", "epsilon", "delta", "bounds", "clamp", "reweight", "infeasible")
_REPLACED = ("importance", "privacy", "reweight", "bounds", "public")
# The study itself reads these keys: they select the cells of a method, and set its own steps.
CELL_KEYS = ("graphs", "problems", "step_sizes")
STEPS = "steps"
_STUDY_KEYS = (*CELL_KEYS, STEPS)
# The keys of a walk's table that are no arguments of its class.
_BESIDE_WALK = ("walk", "update", "tokens", *_STUDY_KEYS)


def method_of(content: Table, problem_table: Table, problem: Problem) -> Walk | Gossip:
    """Make the method of a table; an InfeasiblePrivacyError if no noise reaches (ε, δ)."""
    table = table_of(content)
    if "gossip" in table:
        kind = GOSSIP[table.choice("gossip", GOSSIP)]
        return kind(**arguments(kind, table, ["gossip", *_STUDY_KEYS]))
    if "walk" not in table:
        message = f"needs walk (one of {', '.join(WALKS)}) or gossip (one of {', '.join(GOSSIP)})."
        raise table.error("", message)
    walk: Any = WALKS[table.choice("walk", WALKS)]
    if not (isinstance(walk, type) and issubclass(walk, ComposedWalk)):
        return _walk(walk, table, problem_table, problem)
    bases = WALKS.names_of(Metropolis, to_load=table.get("base"))
    base = WALKS[table.choice("base", bases, walk().walk.name)]
    outer_keys = [key for key in inspect.signature(walk).parameters if key != "walk"]
    outer = arguments(walk, table, [*_BESIDE_WALK, "base", *_walk_keys(base)],
                      excluded=["walk"])  # fmt: skip
    plain = {key: value for key, value in table.items() if key not in (*outer_keys, "base")}
    inner = CheckedTable(plain, table.source, table.path)
    inner_walk: Any = _walk(base, inner, problem_table, problem)
    return walk(walk=inner_walk, **outer)


def update_of(content: Table, step_size: StepSize | None = None) -> Update:
    """Make the update of a method; without a step size, the update computes its own.

    >>> update_of({"walk": "uniform", "update": "saga"})
    Saga()
    >>> from walklearn import PowerStep
    >>> update_of({"update": {"name": "sgd", "average": False}}, PowerStep(0.1))
    Sgd(step_size=PowerStep(constant=0.1, exponent=0.75), average=False)
    """
    kind, table = read_kind(table_of(content), "update", UPDATES, Sgd.name)
    settings = arguments(kind, table, ["name"], excluded=["step_size"])
    if step_size is not None:
        settings["step_size"] = step_size
    update: Update = kind(**settings)
    return update


def tokens_of(content: Table) -> int:
    """Return the number of tokens of a method; 1 by default.

    >>> tokens_of({"walk": "oldest-first", "update": "finito", "tokens": 4})
    4
    """
    return table_of(content).count("tokens", 1)


def finds_step(content: Table) -> bool:
    """True if the method's update computes its own step size."""
    kind, _ = read_kind(table_of(content), "update", UPDATES, Sgd.name)
    step_size = inspect.signature(kind).parameters.get("step_size")
    return step_size is None or step_size.default is not inspect.Parameter.empty


def _noise() -> list[str]:
    """The names of the parameters of noise."""
    return list(dict.fromkeys(name for kind in MECHANISMS.values() for name in kind.noise_names))


def _release_keys(walk: Callable[..., Walk]) -> list[str]:
    """Return the keys about a release; none for a walk that releases nothing."""
    return [*_RELEASE, *_noise()] if "privacy" in inspect.signature(walk).parameters else []


def _excluded(walk: Callable[..., Walk]) -> list[str]:
    """Return the arguments of a walk that are no keys."""
    return ["walk", *(_REPLACED if _release_keys(walk) else ())]


def _walk_keys(walk: Callable[..., Walk]) -> list[str]:
    """Return the keys allowed in a walk's table: its arguments and those of a release."""
    excluded = _excluded(walk)
    names = [name for name in inspect.signature(walk).parameters if name not in excluded]
    return [*names, *_release_keys(walk)]


def _walk(
    walk: Callable[..., Walk], table: CheckedTable, problem_table: Table, problem: Problem
) -> Walk:
    keys = [*_BESIDE_WALK, *_walk_keys(walk)]
    settings = arguments(walk, table, keys, excluded=_excluded(walk))
    privacy = [key for key in _release_keys(walk) if key in table]
    if "mechanism" in privacy:
        settings["privacy"] = mechanism_of(table, problem_table, problem)
        if "reweight" in table:
            settings["reweight"] = table.choice("reweight", ("released", "as-printed"))
    elif privacy:
        raise table.error(privacy[0], "is about a release. Add mechanism = ….")
    result = walk(**settings)
    if not isinstance(result, Walk):
        raise TypeError(
            f"{walk.__module__}:{walk.__name__} returns {result!r}, which is not a walk."
        )
    return result


def step_smoothness(
    method: Walk | Gossip, graph: Graph, problem: Problem, step_size: StepSize
) -> float:
    """Return L = max_i (factor of ∇f_i in ĝ) × L_i; steps of 2 / L or more overshoot.

    For a private walk, return L̄, that of the same walk without noise.
    """
    if not isinstance(method, Walk):
        scale = method.gradient_scale(graph, step_size)
    elif method.is_private:
        return float(problem.importance.mean())
    else:
        scale = method.gradient_scale(graph, problem)
    return float((scale * problem.smoothness_constants).max())


def mechanism_of(table: CheckedTable, problem_table: Table, problem: Problem) -> Mechanism:
    """Make the mechanism with the stated noise, or calibrated to the stated (ε, δ)."""
    name = table.choice("mechanism", MECHANISMS)
    kind: Any = MECHANISMS[name]
    noise = " and ".join(kind.noise_names)
    for key in ("epsilon", "delta", *_noise()):
        table.number(key, None)
    table.choice("infeasible", ("error", "skip"), "error")
    bounds = bounds_of(table, problem_table, problem)
    options: dict[str, Any] = {}
    if "clamp" in table:
        unclamped = table["clamp"] is False
        options["clamp"] = None if unclamped else table.pair("clamp", rising=False)
    stated = {key: table[key] for key in _noise() if key in table}
    if stated:
        if stated.keys() != set(kind.noise_names):
            raise table.error(next(iter(stated)), f"does not fit. The noise of {name} is {noise}.")
        if "delta" in table:
            raise table.error("delta", f"follows from {noise} and epsilon. Remove it.")
        mechanism: Mechanism = kind(**stated, bounds=bounds, **options)
        if "epsilon" in table:
            mechanism.delta(table["epsilon"])  # raises an error if epsilon is invalid
        return mechanism
    for key in ("epsilon", "delta"):
        if key not in table:
            raise table.error("", f"needs {key}, or {noise}, for {name}.")
    return _calibrated(name, table["epsilon"], table["delta"], bounds, tuple(options.items()))


@lru_cache(maxsize=256)
def _calibrated(
    kind: str, epsilon: float, delta: float, bounds: tuple[float, float], options: Any
) -> Mechanism:
    return calibrate(kind, epsilon=epsilon, delta=delta, bounds=bounds, **dict(options))


def bounds_of(table: CheckedTable, problem_table: Table, problem: Problem) -> tuple[float, float]:
    """Read the bounds of L_i: stated, from the public feature bound, or from the data."""
    if isinstance(table.get("bounds"), list):
        return table.pair("bounds", rising=False)
    source = table.value(
        "bounds", fits=lambda value: value in ("public", "instance"),
        wanted='[low, high], "public" (from the problem\'s feature_bound) or "instance" (read from '
        "the data, not private)",
    )  # fmt: skip
    if source == "instance":  # not private; the report warns
        return float(problem.importance.min()), float(problem.importance.max())
    if "feature_bound" not in problem_table:
        raise table.error("bounds", '= "public" needs a feature_bound in every problem.')
    rows = problem.row_count
    return smoothness_bounds(
        problem.loss, problem.penalty, problem.nodes, problem_table["feature_bound"],
        max_rows=-(-rows // problem.nodes), aggregate=problem.aggregate, total_rows=rows,
    )  # fmt: skip
