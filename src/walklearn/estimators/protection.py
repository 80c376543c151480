"""The walk, and what protects what it shows of the nodes' rows.

ε is about the constants L_i, which a weighted walk tells the neighbours. They are released within
public bounds: a feature bound that rows are clipped to, the objective, and how many rows (or what
weight of rows) a node holds, which counts as public unless `max_rows` caps it. A value outside is
moved to the bounds before the release, so the claim holds whatever the rows and weights are.

Where something is private, nothing else may be computed from the rows and shown: neither units,
nor the step size, nor how long to walk.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import numpy as np

from walklearn.graphs import Graph
from walklearn.privacy import ModelNoise, calibrate, smoothness_bounds
from walklearn.problem import Problem
from walklearn.simulation.arguments import check_model_privacy
from walklearn.updates.step_choice import public_step
from walklearn.updates.step_sizes import StepSize
from walklearn.walks import (
    WALKS,
    Derived,
    Metropolis,
    ReleasedWeighted,
    Walk,
)
from walklearn.walks.disclosure import check_scale, is_known, mechanism_of, tells

Bounds = tuple[float, float]


def walk_of(walk: str | Walk, laziness: float) -> Walk:
    """The walk with this name, or the walk itself."""
    if isinstance(walk, Walk):
        if laziness:
            raise ValueError(
                f"laziness={laziness!r} is for walks given by name: say {type(walk).__name__}"
                f"(laziness={laziness!r}) instead."
            )
        return walk
    kind = WALKS.get(walk)
    if not (isinstance(kind, type) and issubclass(kind, Metropolis)):
        names = ", ".join(WALKS.names_of(Metropolis))
        raise ValueError(
            f"there is no walk named {walk!r}: choose one of {names}, or pass a walk such as "
            "walks.Weighted()."
        )
    return kind.unbiased(laziness=laziness)


class Release(NamedTuple):
    """A walk before and after its nodes released their constants, and of which rows."""

    asked: Walk
    rows: str  # a digest
    drawn: Walk


@dataclass(frozen=True)
class Terms:
    """What is to be protected, and within which public bounds."""

    epsilon: float | None
    delta: float | None
    mechanism: str
    feature_bound: float | None
    max_rows: float | None
    intercept: bool
    model_privacy: ModelNoise | None

    def are_private(self, walk: Walk) -> bool:
        """Whether anything is protected; a walk whose steps would give it away is refused."""
        if self.epsilon is None and self.model_privacy is None and not walk.is_private:
            return False
        check_scale(walk)
        return True

    def applied(self, walk: Walk, problem: Problem) -> Walk:
        """The walk with a mechanism for what it tells of the rows, where ε asks for one."""
        if self.epsilon is not None and self.delta is not None:
            walk = self._with_mechanism(walk, problem, self.epsilon, self.delta)
        if self.model_privacy is not None:
            check_model_privacy(walk, self.model_privacy)
        return walk

    def _with_mechanism(self, walk: Walk, problem: Problem, epsilon: float, delta: float) -> Walk:
        if not is_known(walk):
            raise ValueError(
                f"no privacy can be claimed for {walk!r}: it does not say what it shows of the "
                "rows (its property `shown`)."
            )
        if not tells(walk):
            return walk
        if mechanism_of(walk) is not None:
            raise ValueError(
                f"{walk!r} brings its own mechanism: leave epsilon and delta out, or the mechanism."
            )
        inner: Any = walk.innermost
        if not hasattr(inner, "privacy"):
            raise ValueError(
                f"{walk!r} tells neighbours what depends on the rows and takes no mechanism that "
                "would protect it: leave epsilon and delta out, or use another walk."
            )
        if getattr(inner, "importance", None) is not None:
            raise ValueError(
                "the public bounds are about L_i, not about a given importance. Pass "
                "Weighted(importance, privacy=calibrate(...)) with bounds of its own and leave "
                "epsilon out, or Weighted(importance, public=True) if it depends on no node's rows."
            )
        bounds = self.bounds(problem)
        mechanism = calibrate(self.mechanism, epsilon=epsilon, delta=delta, bounds=bounds)
        private = replace(inner, privacy=mechanism, shrink=True)
        return replace(walk, walk=private) if isinstance(walk, Derived) else private

    def bounds(self, problem: Problem) -> Bounds:
        """The bounds of L_i over all rows that the nodes could hold."""
        if self.feature_bound is None:
            raise ValueError(
                "a step size that follows from the rows would leak: pass feature_bound, from which "
                "one follows that does not, or step_size."
            )
        held = np.bincount(problem.node_of_row, problem.sample_weight)
        held, cap = held[held > 0], self.max_rows
        return smoothness_bounds(
            problem.loss,
            problem.penalty,
            problem.node_count,
            self.feature_bound,
            max_rows=float(held.max()) if cap is None else cap,
            min_rows=float(held.min()) if cap is None else min(1.0, cap),
            objective=problem.objective,
            intercept=self.intercept,
            total_rows=float(held.sum()),
        )

    def step(self, problem: Problem, graph: Graph, walk: Walk) -> StepSize:
        """The step size that follows from what was released and the public bounds."""
        inner = walk.innermost
        if isinstance(inner, ReleasedWeighted):
            bounds = inner.mechanism.bounds
        else:
            bounds = self.bounds(problem)
        noise = self.model_privacy
        length = 0.0 if noise is None else noise.standard_deviation * math.sqrt(problem.size)
        return public_step(problem.loss, problem.penalty, graph, walk, bounds, length)


def release(
    walk: Walk,
    problem: Problem,
    graph: Graph,
    generator: np.random.Generator | None,
    earlier: Release | None,
) -> Release:
    """Draw what the nodes tell; what they told of the same rows before is told again."""
    rows = str(problem.describe()["data_sha256"])
    if earlier is not None and (earlier.asked, earlier.rows) == (walk, rows):
        return earlier
    return Release(walk, rows, _forgetful(walk.realise(graph, problem, generator)))


def _forgetful(walk: Walk) -> Walk:
    """The walk without the true constants, which an estimator must not carry about."""
    inner = walk.innermost
    if not isinstance(inner, ReleasedWeighted) or inner.importance is None:
        return walk
    public = replace(inner, true_importance=inner.importance)
    return replace(walk, walk=public) if isinstance(walk, Derived) else public
