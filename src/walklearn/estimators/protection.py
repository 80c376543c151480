"""What nodes show of their rows, what protects it, and what that costs.

ε is about the constants L_i, which a weighted walk tells the neighbours. They are released within
public bounds: a feature bound that rows are clipped to, the objective, and how many rows (or what
weight of rows) a node holds, which counts as public unless `max_rows` caps it. A value outside is
moved to the bounds before the release, so the claim holds whatever the rows and weights are.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from walklearn.graphs import Graph
from walklearn.privacy import Ledger, ModelNoise, calibrate, smoothness_bounds
from walklearn.privacy.ledger import IN_THE_CLEAR, describe
from walklearn.problem import Problem
from walklearn.run_arguments import mechanism_of
from walklearn.walks import Derived, Metropolis, Simple, Uniform, Walk, Weighted

Bounds = tuple[float, float]
WALKS: dict[str, Metropolis] = {
    "weighted": Weighted(),
    "uniform": Uniform(),
    "simple": Simple(corrected=True),
}


def walk_of(walk: str | Walk, laziness: float) -> Walk:
    """The walk with this name, or the walk itself."""
    if isinstance(walk, Walk):
        if laziness:
            raise ValueError(
                f"laziness={laziness!r} is for walks given by name: say {type(walk).__name__}"
                f"(laziness={laziness!r}) instead."
            )
        return walk
    if walk not in WALKS:
        raise ValueError(
            f"there is no walk named {walk!r}: choose one of {', '.join(WALKS)}, or pass a walk "
            "such as walks.Weighted()."
        )
    return replace(WALKS[walk], laziness=laziness)


def public_bounds(
    problem: Problem, feature_bound: float, intercept: bool, max_rows: float | None
) -> Bounds:
    """The bounds of L_i over all data that the nodes could hold."""
    held = np.bincount(problem.node_of_row, problem.sample_weight)
    held = held[held > 0]
    return smoothness_bounds(
        problem.loss,
        problem.penalty,
        problem.node_count,
        feature_bound,
        max_rows=float(held.max()) if max_rows is None else max_rows,
        min_rows=float(held.min()) if max_rows is None else min(1.0, max_rows),
        objective=problem.objective,
        intercept=intercept,
        total_rows=float(held.sum()),
    )


def with_privacy(walk: Walk, epsilon: float, delta: float, mechanism: str, bounds: Bounds) -> Walk:
    """The walk with its importance released (ε, δ)-privately; itself if it tells none."""
    inner = walk.innermost
    if not isinstance(inner, Weighted) or inner.public:
        return walk
    if mechanism_of(inner) is not None:
        raise ValueError(
            f"{walk!r} brings its own mechanism: leave epsilon and delta out, or the mechanism."
        )
    if inner.importance is not None:
        raise ValueError(
            "the public bounds are about L_i, not about a given importance. Pass "
            "Weighted(importance, privacy=calibrate(...)) with bounds of its own and leave epsilon "
            "out, or Weighted(importance, public=True) if it depends on no node's rows."
        )
    calibrated = calibrate(mechanism, epsilon=epsilon, delta=delta, bounds=bounds)
    private = replace(inner, privacy=calibrated, shrink=True)
    return replace(walk, walk=private) if isinstance(walk, Derived) else private


def published(walk: Walk, noise: ModelNoise | None, nodes: int, outside: int) -> dict[str, Any]:
    """What neighbours get to see and what protects it, as a trace keeps it."""
    shown: dict[str, Any] = {"nodes": nodes}
    shown["model"] = IN_THE_CLEAR if noise is None else describe(noise)
    inner = walk.innermost
    if isinstance(inner, Weighted):
        mechanism = mechanism_of(inner)
        if mechanism is not None:
            shown["importance"] = describe(mechanism)
            shown["reweight"] = inner.reweight
            shown["outside"] = [outside]
        elif not inner.public:
            shown["importance"] = IN_THE_CLEAR
    return shown


def charge(
    ledger: Ledger, walk: Walk, noise: ModelNoise | None, contributions: NDArray[Any] | None
) -> None:
    """Enter what this call published: a release of every node, and the model's updates.

    A node that released before has new rows now, so it pays again.
    """
    inner = walk.innermost
    if isinstance(inner, Weighted):
        mechanism = mechanism_of(inner)
        if mechanism is not None:
            ledger.charge("importance", mechanism, again=True)
        elif not inner.public:
            ledger.in_the_clear("importance")
    if noise is None or contributions is None:
        ledger.in_the_clear("model")
    else:
        ledger.charge("model", noise, times=contributions)


def ledger_for(graph: Graph, earlier: Ledger | None, simulated: bool) -> Ledger:
    """A ledger for the graph's nodes, with what they published earlier."""
    nodes = graph.node_count
    if earlier is None:
        return Ledger(nodes, simulated=simulated)
    content = earlier.to_dict()
    for release in content["releases"]:
        times = np.broadcast_to(release["times"], earlier.nodes)
        release["times"] = np.pad(times, (0, nodes - earlier.nodes)).tolist()
    return Ledger.from_dict(
        {**content, "nodes": nodes, "simulated": simulated or earlier.simulated}
    )
