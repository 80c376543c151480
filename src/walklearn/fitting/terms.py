"""The walk, and what protects all that leaves a node because of its rows.

ε and δ are the total: the model, and what the walk tells of L_i where it tells anything. `allot`
shares them out from public facts (how long rows typically are, N, M, the size of the model), and
the walk "auto" tells nothing, so that the whole budget goes to the model. Where the model is said
to be in the clear, ε is about the constants L_i alone, and the total is ε = ∞.

Where something is private, nothing else may be computed from the rows and shown: neither units,
nor the step size, nor how long to walk. How many rows a node holds is public where rows are the
unit, and hidden where the whole node is. M is then a public number that is given (`total_rows`),
or every node counts the same ("node-mean").
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from walklearn.graphs import Graph
from walklearn.objectives import Aggregate, Problem
from walklearn.objectives.linear.rows import is_sparse
from walklearn.privacy import (
    Allotment,
    Mechanism,
    ModelNoise,
    allot,
    calibrate,
    row_release,
    smoothness_bounds,
)
from walklearn.privacy.accounting.public_rows import RowLength
from walklearn.privacy.model_noise import Unit
from walklearn.tables.target_scale import TargetScale
from walklearn.updates.step_choice import public_step
from walklearn.updates.step_sizes import StepSize
from walklearn.walks import (
    WALKS,
    Metropolis,
    Walk,
)
from walklearn.walks.disclosure import (
    check_disclosure_known,
    check_protectable,
    check_scale,
    mechanism_of,
    tells,
)
from walklearn.walks.walk import draw_walk
from walklearn.wording import as_given

Bounds = tuple[float, float]
REPORTED_DELTA = 1e-5


def walk_of(walk: str | Walk, laziness: float, about_constants: bool = False) -> Walk:
    """The walk with this name, or the walk itself; "auto" is uniform, which tells only degrees.

    about_constants: ε is about the L_i alone, and so about a walk that tells them.
    """
    if isinstance(walk, Walk):
        if laziness:
            raise ValueError(
                f"laziness={laziness!r} is for walks given by name: say {type(walk).__name__}"
                f"(laziness={laziness!r}) instead."
            )
        return walk
    kind = WALKS.get(("weighted" if about_constants else "uniform") if walk == "auto" else walk)
    if not (isinstance(kind, type) and issubclass(kind, Metropolis)):
        names = ", ".join(WALKS.names_of(Metropolis))
        raise ValueError(
            f"walk must be one of auto, {names}, or a walk such as walks.Weighted(), got "
            f"{as_given(walk)}."
        )
    return kind.unbiased(laziness=laziness)


@dataclass(frozen=True)
class Terms:
    """What is to be protected, and which public facts that rests on."""

    epsilon: float | None
    delta: float | None
    protect: Unit
    in_the_clear: bool
    mechanism: str
    row_length: float | None
    feature_bound: float | None
    max_rows: float | None
    total_rows: float | None
    intercept: bool
    model_privacy: ModelNoise | None
    target: TargetScale | None

    @property
    def reported_delta(self) -> float:
        """The δ at which ε is reported; noise made by hand may come without one."""
        return self.delta or REPORTED_DELTA

    @property
    def protects_model(self) -> bool:
        """True if what rows add to the model is clipped and noised."""
        return self.model_privacy is not None or (
            self.epsilon is not None and not self.in_the_clear
        )

    @property
    def about_constants(self) -> bool:
        """Whether ε is about the L_i alone, which a weighted walk tells."""
        return self.epsilon is not None and self.in_the_clear

    @property
    def hides_counts(self) -> bool:
        """Whether the number of rows of a node must not show: only where the node is the unit.

        Where rows are, the noise on a node's mean, or the sum over its rows, tells their number.
        """
        asked = self.epsilon is not None or self.model_privacy is not None
        unit = self.protect if self.model_privacy is None else self.model_privacy.protect
        return asked and unit == "node"

    @property
    def aggregate(self) -> Aggregate:
        """The mean over all rows, or over nodes where their number is not public."""
        return "node-mean" if self.hides_counts and self.total_rows is None else "mean"

    def are_private(self, walk: Walk) -> bool:
        """Whether anything is protected; a walk whose steps would give it away is refused.

        A walk may also bring what its nodes have released already.
        """
        releases = walk.is_private or mechanism_of(walk) is not None
        if self.epsilon is None and self.model_privacy is None and not releases:
            return False
        check_scale(walk)
        return True

    def allotted(self, walk: Walk, problem: Problem, updates: int | None) -> Allotment | None:
        """What becomes of ε; None where there is none, or the model is in the clear."""
        if self.epsilon is None or self.delta is None or self.in_the_clear:
            return None
        check_disclosure_known(walk)
        length = RowLength(self.row_length, self.feature_bound)
        return allot(
            self.epsilon,
            self.delta,
            loss=problem.loss,
            nodes=problem.nodes,
            size=problem.size,
            length=length.with_intercept(self.intercept),
            rows=problem.total_rows if self.aggregate == "mean" else float(problem.nodes),
            protect=self.protect,
            aggregate=problem.aggregate,
            penalty=problem.penalty,
            typical=length.is_typical,
            tells=tells(walk) and mechanism_of(walk) is None,
            updates=updates,
        )

    def applied(self, walk: Walk, problem: Problem, allotted: Allotment | None) -> Walk:
        """The walk with a mechanism for what it tells of the rows, where ε asks for one."""
        noise, brought = self.model_privacy, mechanism_of(walk)
        if getattr(brought, "protect", "node") == "rows":
            raise ValueError(
                f"the sensitivity of {brought!r} rests on facts about the rows that are not known "
                "here. Pass epsilon, delta and feature_bound, from which a release follows, or a "
                "mechanism with public bounds of L_i."
            )
        if self.epsilon is not None and self.delta is not None:
            target = (self.epsilon, self.delta) if allotted is None else allotted.constants
            walk = self._with_mechanism(walk, problem, target)
        if allotted is not None:
            noise = allotted.noise
        if mechanism_of(walk) is not None:
            check_disclosure_known(walk)
        if noise is not None:
            check_protectable(walk)
        return walk

    def _with_mechanism(
        self, walk: Walk, problem: Problem, target: tuple[float, float] | None
    ) -> Walk:
        check_disclosure_known(walk)
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
        if target is None:
            raise ValueError(
                "all of ε went to the model in the first call, whose walk told nothing of L_i: "
                f"nothing of it is left for {walk!r}, which does. Keep the walk, or begin with a "
                "new estimator."
            )
        mechanism = self._mechanism_for(problem, *target)
        private = replace(inner, privacy=mechanism, shrink=True)
        return walk.with_innermost(private)

    def _mechanism_for(self, problem: Problem, epsilon: float, delta: float) -> Mechanism:
        """What releases L_i: for rows as the unit, where that is known to hold, else for nodes."""
        plain = bool((problem.sample_weight == 1.0).all()) and not is_sparse(problem.X)
        rows = self.protect == "rows" and not self.hides_counts and not self.in_the_clear
        if not (plain and rows) or self.feature_bound is None:
            bounds = self.bounds(problem)
            return calibrate(self.mechanism, epsilon=epsilon, delta=delta, bounds=bounds)
        return row_release(
            problem.loss,
            epsilon=epsilon,
            delta=delta,
            nodes=problem.nodes,
            feature_bound=self.feature_bound,
            total_rows=problem.total_rows,
            penalty=problem.penalty,
            intercept=self.intercept,
            features=problem.X.shape[1],
        )

    def bounds(self, problem: Problem) -> Bounds:
        """The bounds of L_i over all rows that the nodes could hold."""
        if self.feature_bound is None:
            raise ValueError(
                "what a walk tells of L_i, and steps that follow from it, need public bounds: pass "
                "feature_bound, a length that rows are shortened to, or a walk that tells nothing "
                '(walk="uniform") and step_size.'
            )
        cap, least = self.max_rows, 1.0
        if problem.aggregate == "mean" and cap is None:
            if self.hides_counts:
                raise ValueError(
                    "the bounds of L_i need a public cap on the rows of a node: pass max_rows, or "
                    "leave total_rows out, so that every node counts the same."
                )
            held = np.bincount(problem.node_of_row, problem.sample_weight)
            held = held[held > 0]
            cap, least = float(held.max()), float(held.min())
        most = 1.0 if cap is None else cap
        return smoothness_bounds(
            problem.loss,
            problem.penalty,
            problem.nodes,
            self.feature_bound,
            max_rows=most,
            min_rows=min(least, most),
            aggregate=problem.aggregate,
            intercept=self.intercept,
            total_rows=problem.total_rows,
        )

    def step(self, problem: Problem, graph: Graph, walk: Walk) -> StepSize:
        """The step size that follows from what was released and the public bounds."""
        mechanism = mechanism_of(walk)
        bounds = self.bounds(problem) if mechanism is None else mechanism.bounds
        noise = self.model_privacy
        length = 0.0 if noise is None else noise.standard_deviation * math.sqrt(problem.size)
        return public_step(problem.loss, problem.penalty, graph, walk, bounds, length)


def released(
    walk: Walk, problem: Problem, graph: Graph, generator: np.random.Generator | None
) -> Walk:
    """Draw what the nodes tell about their rows; every call draws anew, and pays for it.

    To repeat what an earlier call told where the rows are the same would tell that they are.
    """
    draw = draw_walk if walk.draws_announcements else type(walk).realise
    return draw(walk, graph, problem, generator).without_secrets()
