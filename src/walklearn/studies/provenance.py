"""What else is known of an instance: distances, spread of L, theory, privacy.

What of it a reader of the results must know before believing them is told by `notes`.
"""

from __future__ import annotations

import json
import math
from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any

import numpy as np

from walklearn.objectives import Problem
from walklearn.objectives.linear.domains import Ball, Box
from walklearn.privacy import InfeasiblePrivacyError
from walklearn.privacy.accounting.printing import format_claim, format_lower, format_upper
from walklearn.simulation.averaging import Gossip
from walklearn.simulation.trace import Trace
from walklearn.streams import draw_start, generators, replicate_seed
from walklearn.studies.instances import World
from walklearn.studies.tables import Columns
from walklearn.theory import diagnose, residual
from walklearn.theory.spectrum import MAX_NODES_WITH_JUMPS
from walklearn.walks import Walk
from walklearn.walks.markov import stationary_or_nan
from walklearn.walks.walk import draw_walk

if TYPE_CHECKING:
    from walklearn.studies.results import Results

ROUNDING = 1e-6  # of a calibrated δ
MAX_EDGES = 100_000  # a larger graph is not kept to be drawn

_THEORY = ("sigma2", "spectral_gap", "mixing_time", "bound", "acceptance_rate")


def facts_of(
    world: World,
    method: Walk | Gossip | None,
    description: Mapping[str, Any],
    walks: np.random.SeedSequence,
    *,
    trace: Trace | None = None,
    refusal: InfeasiblePrivacyError | None = None,
) -> dict[str, Any]:
    """Make a row of facts: on the instance, the method, and the privacy it has or cannot have."""
    problem, optimum = world.problem, world.problem.solution
    constants = problem.smoothness_constants
    first, generator = _first(problem, walks)
    facts: dict[str, Any] = {
        "node_count": world.graph.node_count,
        "edge_count": world.graph.edge_count,
        "start_distance": float(np.linalg.norm(first - optimum.model)),
        "optimum_norm": float(np.linalg.norm(optimum.model)),
        "optimum_value": float(optimum.value),
        "optimum_unique": bool(optimum.unique),
        "smoothness_spread": float(constants.max() / constants.mean()),
        "boundary_share": math.nan,
        "diverged": False,
        "setup_messages": 0,
        "setup_bytes": 0,
        **dict.fromkeys(_THEORY, math.nan),
        **_privacy(description["method"], method, trace, refusal),
    }
    if trace is not None:
        models = trace.models.reshape(trace.replicates, -1)
        facts["boundary_share"] = _boundary_share(problem, models)
        facts["diverged"] = not bool(np.isfinite(models).all())
        facts["setup_messages"] = trace.announcements
        facts["setup_bytes"] = trace.announcement_bytes
    if description["facts"]:
        facts["sigma2"] = residual(problem, optimum.model)
        if isinstance(method, Walk):
            drawn = draw_walk(method, world.graph, problem, generator)
            facts.update(_theory(world, drawn))
    return facts


def _first(
    problem: Problem, walks: np.random.SeedSequence
) -> tuple[np.ndarray, np.random.Generator]:
    """The model that replicate 0 starts from, and its stream after that."""
    generator = generators(replicate_seed(walks, 0)).walk
    return draw_start(problem, generator)[1], generator


def _theory(world: World, walk: Walk) -> dict[str, float]:
    found = diagnose(world.graph, world.problem, walk)
    return {
        "sigma2": found.residual,
        "spectral_gap": found.spectral_gap,
        "mixing_time": found.mixing_time,
        "bound": math.nan if found.constant is None else found.constant.value,
        "acceptance_rate": found.acceptance_rate,
    }


def _boundary_share(problem: Problem, models: np.ndarray) -> float:
    """The share of the replicates whose last model lies on the boundary of W."""
    domain = problem.domain
    if isinstance(domain, Ball):
        on = np.linalg.norm(models, axis=1) >= domain.radius * (1 - 1e-9)
    elif isinstance(domain, Box):
        on = ((models <= domain.low) | (models >= domain.high)).any(axis=1)
    else:
        return math.nan
    return float(on.mean())


def _privacy(
    table: Mapping[str, Any],
    method: Walk | Gossip | None,
    trace: Trace | None,
    refusal: InfeasiblePrivacyError | None,
) -> dict[str, Any]:
    walk = method.innermost if isinstance(method, Walk) else None
    mechanism: Any = getattr(walk, "privacy", None)  # of any walk that releases
    asked = float(table.get("epsilon", math.nan))
    unknown = mechanism is None or math.isnan(asked)
    bounds = table.get("bounds", "")
    published = trace.privacy.get("out_of_bounds", [0]) if trace is not None else [0]
    return {
        "mechanism": table.get("mechanism", "") if mechanism is None else mechanism.name,
        "epsilon": asked,
        "delta": float(table.get("delta", math.nan)),
        "achieved_delta": math.nan if unknown else mechanism.delta(asked),
        "parameter": math.nan if mechanism is None else mechanism.noise,
        "bounds_from": "stated" if isinstance(bounds, list) else bounds,
        "bounds_low": math.nan if mechanism is None else mechanism.bounds[0],
        "bounds_high": math.nan if mechanism is None else mechanism.bounds[1],
        "out_of_bounds": int(np.max(published)),
        "infeasible": refusal is not None,
        "floor": math.nan if refusal is None else refusal.floor,
    }


def nodes_of(
    world: World, method: Walk | Gossip, walks: np.random.SeedSequence, trace: Trace
) -> Columns:
    """A row per node: what it is, how often it updated, how often theory says it does."""
    graph, problem = world.graph, world.problem
    nothing = np.full(graph.node_count, np.nan)
    return {
        "node": np.arange(graph.node_count),
        "degree": np.asarray(graph.degrees),
        "importance": np.asarray(problem.importance),
        "released": nothing if trace.released is None else trace.released[0],
        "visits": np.asarray(trace.visits),
        "stationary": _stationary(world, method, walks),
    }


def _stationary(world: World, method: Walk | Gossip, walks: np.random.SeedSequence) -> np.ndarray:
    too_large = (
        getattr(method, "slow_stationary", False) and world.graph.node_count > MAX_NODES_WITH_JUMPS
    )
    if not isinstance(method, Walk) or too_large:
        return np.full(world.graph.node_count, np.nan)
    _, generator = _first(world.problem, walks)
    drawn = draw_walk(method, world.graph, world.problem, generator)
    return stationary_or_nan(drawn, world.graph, world.problem)


def edges_of(world: World) -> Columns:
    """A row per edge, for a graph that can be drawn."""
    if world.graph.edge_count > MAX_EDGES:
        return {}
    edges = world.graph.edges()
    return {"source": edges[:, 0], "target": edges[:, 1]}


def notes(results: Results) -> list[str]:
    """Notes on runs that diverged, steps at the end of their grid, targets that no noise reaches, …

    One line for each cell and matter, in the order of the cells.
    """
    facts = results.facts()
    if facts.empty:
        return []
    groups = facts.groupby(["graph", "problem", "step_size", "method"], sort=False)
    return [note for names, rows in groups for note in _notes(", ".join(map(str, names)), rows)]


def _notes(cell: str, rows: Any) -> Iterator[str]:
    first, count = rows.iloc[0], len(rows)
    if (infeasible := int(rows["infeasible"].sum())) > 0:
        floor = rows["floor"].max()
        yield (
            f"{cell}: no noise reaches {format_claim(first['epsilon'], first['delta'])} on "
            f"{infeasible} of {count} instances, which were left out; δ is at least "
            f"{format_lower(floor, 3)}."
        )
    if (delta := rows["achieved_delta"].max()) > first["delta"] + ROUNDING:
        yield (
            f"{cell}: really has δ = {format_upper(delta, 3)} at ε = "
            f"{format_upper(first['epsilon'])}, not {format_upper(first['delta'])}; it is not "
            "private as asked."
        )
    if first["bounds_from"] == "instance":
        yield f"{cell}: bounds taken from the data, so its release is not private."
    if (outside := int((rows["out_of_bounds"] > 0).sum())) > 0:
        yield f"{cell}: on {outside} of {count} instances some L_i lay outside the public bounds."
    if bool(rows["at_edge"].any()):
        yield (
            f"{cell}: the best step constant, {json.loads(first['tuning'])['constant']:g}, is at "
            "the end of its grid; a better one may lie outside."
        )
    if (diverged := int(rows["diverged"].sum())) > 0:
        yield f"{cell}: {diverged} of {count} instances diverged; they count as infinitely bad."
    if (flat := int((~rows["optimum_unique"]).sum())) > 0:
        yield f"{cell}: w* is not unique on {flat} of {count} instances; distances are not defined."
