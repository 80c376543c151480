"""Facts about an instance: distances, spread of L, theory, privacy; and warnings from them."""

from __future__ import annotations

import json
import math
from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any

import numpy as np

from walklearn.graphs import Graph
from walklearn.objectives import Problem
from walklearn.objectives.linear.domains import Ball, Box
from walklearn.privacy import InfeasiblePrivacyError
from walklearn.privacy.accounting.printing import format_claim, format_lower, format_upper
from walklearn.simulation.averaging import Gossip
from walklearn.simulation.trace import Trace
from walklearn.streams import draw_start, generators, replicate_seed
from walklearn.studies.instances import Instance
from walklearn.studies.tables import Columns
from walklearn.theory import diagnose, residual
from walklearn.theory.spectrum import MAX_NODES_WITH_JUMPS
from walklearn.walks import Walk
from walklearn.walks.markov import stationary_or_nan
from walklearn.walks.walk import draw_walk

if TYPE_CHECKING:
    from walklearn.studies.results import Results

ROUNDING = 1e-6  # of a calibrated δ
MAX_EDGES = 100_000  # edges of larger graphs are not stored

_THEORY = ("sigma2", "spectral_gap", "mixing_time", "bound", "acceptance_rate")


def facts_of(
    instance: Instance,
    method: Walk | Gossip | None,
    description: Mapping[str, Any],
    walks: np.random.SeedSequence,
    trace: Trace | None,
    refusal: InfeasiblePrivacyError | None,
) -> dict[str, Any]:
    """Return the facts about an instance, a method and its privacy; method None if refused."""
    graph, problem = instance
    optimum, constants = problem.solution, problem.smoothness_constants
    start, generator = _start(problem, walks)
    facts: dict[str, Any] = {
        "node_count": graph.node_count,
        "edge_count": graph.edge_count,
        "start_distance": float(np.linalg.norm(start - optimum.model)),
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
            theory = diagnose(graph, problem, draw_walk(method, graph, problem, generator))
            for name in ("spectral_gap", "mixing_time", "acceptance_rate"):
                facts[name] = getattr(theory, name)
            facts["bound"] = math.nan if theory.constant is None else theory.constant.value
    return facts


def _start(
    problem: Problem, walks: np.random.SeedSequence
) -> tuple[np.ndarray, np.random.Generator]:
    """The first model of replicate 0, and its stream after that."""
    generator = generators(replicate_seed(walks, 0)).walk
    return draw_start(problem, generator)[1], generator


def _boundary_share(problem: Problem, models: np.ndarray) -> float:
    """The share of the replicates whose last model is on the boundary of W."""
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
    epsilon, bounds = float(table.get("epsilon", math.nan)), table.get("bounds", "")
    facts = {
        "mechanism": table.get("mechanism", ""),
        "epsilon": epsilon,
        "delta": float(table.get("delta", math.nan)),
        "achieved_delta": math.nan,
        "parameter": math.nan,
        "bounds_from": "stated" if isinstance(bounds, list) else bounds,
        "bounds_low": math.nan,
        "bounds_high": math.nan,
        "out_of_bounds": 0 if trace is None else int(np.max(trace.privacy.get("out_of_bounds", 0))),
        "infeasible": refusal is not None,
        "floor": math.nan if refusal is None else refusal.floor,
    }
    if mechanism is not None:
        facts |= {"mechanism": mechanism.name, "parameter": mechanism.noise}
        facts["bounds_low"], facts["bounds_high"] = mechanism.bounds
        if not math.isnan(epsilon):
            facts["achieved_delta"] = mechanism.delta(epsilon)
    return facts


def nodes_of(
    instance: Instance, method: Walk | Gossip, walks: np.random.SeedSequence, trace: Trace
) -> Columns:
    """A row per node: degree, L_i, release, visits and their expected share."""
    graph, problem = instance
    unknown = np.full(graph.node_count, np.nan)
    is_slow = getattr(method, "slow_stationary", False)
    stationary = unknown
    if isinstance(method, Walk) and not (is_slow and graph.node_count > MAX_NODES_WITH_JUMPS):
        drawn = draw_walk(method, graph, problem, _start(problem, walks)[1])
        stationary = stationary_or_nan(drawn, graph, problem)
    return {
        "node": np.arange(graph.node_count),
        "degree": np.asarray(graph.degrees),
        "importance": np.asarray(problem.importance),
        "released": unknown if trace.released is None else trace.released[0],
        "visits": np.asarray(trace.visits),
        "stationary": stationary,
    }


def edges_of(graph: Graph) -> Columns:
    """A row per edge; none for a large graph."""
    if graph.edge_count > MAX_EDGES:
        return {}
    source, target = graph.edges().T
    return {"source": source, "target": target}


def notes(results: Results) -> list[str]:
    """Warnings about runs that diverged, steps at the end of their grid, infeasible targets, …

    There is one for each cell and subject, in the order of the cells.
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
            f"{infeasible} of {count} instances, which were skipped; δ is at least "
            f"{format_lower(floor, 3)}."
        )
    if (delta := rows["achieved_delta"].max()) > first["delta"] + ROUNDING:
        yield (
            f"{cell}: δ is {format_upper(delta, 3)} at ε = {format_upper(first['epsilon'])}, not "
            f"{format_upper(first['delta'])} as requested."
        )
    if first["bounds_from"] == "instance":
        yield f"{cell}: bounds were read from the data, so the releases are not private."
    if (outside := int((rows["out_of_bounds"] > 0).sum())) > 0:
        yield f"{cell}: on {outside} of {count} instances some L_i are outside the public bounds."
    if bool(rows["at_edge"].any()):
        yield (
            f"{cell}: the best step constant, {json.loads(first['tuning'])['constant']:g}, is at "
            "the end of its grid; a better one may lie outside."
        )
    if (diverged := int(rows["diverged"].sum())) > 0:
        yield f"{cell}: {diverged} of {count} instances diverged; their errors count as infinite."
    if (flat := int((~rows["optimum_unique"]).sum())) > 0:
        yield f"{cell}: w* is not unique on {flat} of {count} instances; distances are not defined."
