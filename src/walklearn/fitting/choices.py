"""Choices of a fit, each with its reason: walk, update, step, length and laziness.

Without privacy the default is `Finito` on a `Tour`. It needs 0.18 times the updates of `Saga` on
`Uniform` and 0.36 times the time, as geometric means over 30 data sets with graphs
(`benchmarks/defaults.py`). On most of them `OldestFirst` is as fast, but on sparse text it needs
hundreds of times the updates, because its order is nearly periodic.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from walklearn.fitting.plan import noise_length, released
from walklearn.fitting.request import MEANS, FitRequest
from walklearn.graphs import Graph
from walklearn.objectives import Problem
from walklearn.objectives.linear.losses import Loss
from walklearn.objectives.linear.rows import is_sparse
from walklearn.privacy import (
    BudgetPlan,
    PublicFacts,
    calibrate,
    compare,
    row_release,
    smoothness_bounds,
)
from walklearn.privacy.accounting.printing import format_claim
from walklearn.privacy.mechanisms.comparison import Comparison
from walklearn.updates.finito import Finito
from walklearn.updates.saga import Saga
from walklearn.updates.sgd import Sgd
from walklearn.updates.step_choice import choose_step, max_steps, public_step, public_steps
from walklearn.updates.step_sizes import ConstantStep, StepSize
from walklearn.updates.update import UPDATES, Update
from walklearn.walks import Metropolis, Tour, Uniform, Walk
from walklearn.walks.disclosure import mechanism_of, reveals_rows

LAZINESS = 0.1
VISITS = 5  # updates for each node with new rows in a call of partial_fit
MAX_STATE = 50_000_000  # numbers in the points z_i of all nodes, above which Saga is the default
AS_ASKED = "as asked for."
ABOUT_FINITO = (
    "Finito, because it converges to the minimiser in the fewest updates. Each node keeps the "
    "point and the gradient of its last visit, and the token carries sums over the nodes."
)
ABOUT_TOUR = (
    "a tour, because it visits every node again after few hops, and Finito needs no weights. Nodes "
    "disclose nothing ahead."
)
ABOUT_SAGA = (
    "Saga, because it converges to the minimiser, whereas SGD only comes close. Each node keeps "
    "one number per row and class, and the token carries the sum of gradients beside the model."
)


@dataclass(frozen=True, eq=False)
class Choices:
    """The request, the known facts about the data, and the reasons of the choices so far."""

    request: FitRequest
    loss: Loss
    facts: PublicFacts
    graph: Graph
    problem: Problem | None
    partial: bool
    reasons: dict[str, str] = field(default_factory=dict)

    def explain(self, choice: str, because: str) -> None:
        """Add the reason for a choice."""
        self.reasons[choice] = because

    def choose_walk(
        self, update: Update | None, budget_plan: BudgetPlan | None
    ) -> tuple[Walk, Comparison | None]:
        """Return the walk with its mechanism and laziness, and the comparison of mechanisms."""
        request, comparison, because = self.request, None, AS_ASKED
        privacy, walk, kind = request.privacy, request.walk, request.privacy.mechanism
        if privacy.covers_constants_alone and request.is_auto_walk and kind is None:
            kind, comparison, because = self.best_release()
            if kind is None:
                walk = Uniform(laziness=getattr(walk.innermost, "laziness", 0.0))
        elif privacy.covers_constants_alone and request.is_auto_walk:
            because = "weighted, because ε is about the L_i that it discloses."
        elif request.is_auto_walk and isinstance(update, Finito) and not request.laziness:
            walk, because = Tour(), ABOUT_TOUR
        elif request.is_auto_walk:
            use = ", so that the whole budget goes to the model" * privacy.protects_model
            because = f"uniform, which discloses only the degrees of the nodes{use}."
        if self.partial and walk.has_gap_weights:
            raise ValueError(
                "partial_fit stores no last visits between its calls, so the gap weights of "
                f"{walk!r} would not make all nodes count equally. "
                'Use walk="uniform", or call fit.'
            )
        walk = self.with_mechanism(walk, budget_plan, kind or "laplace")
        self.explain("walk", because)
        inner: Any = walk.innermost
        if request.laziness is None and hasattr(inner, "laziness"):
            laziness, because = choose_laziness(self.graph)
            walk = walk.with_innermost(replace(inner, laziness=laziness))
        elif getattr(inner, "laziness", 0.0):
            because = AS_ASKED
        else:
            because = "none, because a token that stays reaches no other node."
        self.explain("laziness", because)
        return walk, comparison

    def alternates(self, walk: Walk) -> bool:
        """True if the graph is bipartite and the token never stays put."""
        graph = self.graph
        if not isinstance(walk, Metropolis) or walk.laziness or not graph.is_bipartite:
            return False
        if graph.node_count <= 2 or walk.has_random_announcements or mechanism_of(walk) is not None:
            return False  # noisy scores differ, so some moves are rejected and the token stays
        scores = walk.announcements(graph, self.problem)[:, 0]  # equal scores reject no move
        return bool(scores.min() == scores.max())

    def bounds(self) -> tuple[float, float]:
        """Return the bounds of L_i over all rows that the nodes could hold."""
        request, facts, problem = self.request, self.facts, self.problem
        privacy = request.privacy
        if privacy.bounds is not None:
            return privacy.bounds
        if privacy.feature_bound is None:
            raise ValueError(
                "steps and disclosures that follow from L_i need public bounds. Pass feature_bound "
                '(rows are shortened to it), or walk="uniform" and step_size.'
            )
        cap, fewest = privacy.max_rows, 1.0
        if cap is None and request.aggregate != "node-mean":
            if privacy.hides_row_counts:
                raise ValueError(
                    'protect="node" hides the number of rows of a node, on which the bounds of L_i '
                    "depend. Pass max_rows, or leave total_rows out."
                )
            if problem is not None:
                held = np.bincount(problem.node_of_row, problem.sample_weight)
                cap, fewest = float(held.max()), float(held[held > 0].min())
            elif facts.rows is not None:
                cap = float(math.ceil(facts.rows / facts.nodes))
        cap = cap or 1.0
        return smoothness_bounds(
            self.loss, request.penalty, facts.nodes, privacy.feature_bound, max_rows=cap,
            min_rows=min(fewest, cap), aggregate=request.aggregate, intercept=request.intercept,
            total_rows=facts.rows, lower=privacy.lower,
        )  # fmt: skip

    def best_release(self) -> tuple[str | None, Comparison, str]:
        """Return the best mechanism for L_i, if its release is better than a constant."""
        epsilon, delta = self.request.privacy.epsilon, self.request.privacy.delta
        assert epsilon is not None
        assert delta is not None
        comparison = compare(epsilon=epsilon, delta=delta, bounds=self.bounds())
        best = comparison.rows[0]
        target = format_claim(epsilon, delta)
        if best.mechanism is None:
            because = f"uniform, because no mechanism reaches {target}. {best.reason}"
            return None, comparison, because
        errors = (
            f"At {target} the error of the best release, by {best.kind}, is {best.raw_error:.3g} "
            "of the range, and that of a public constant, which reveals nothing, "
            f"{comparison.constant_error:.3g}."
        )
        if best.raw_error >= comparison.constant_error:
            because = f"uniform, because privacy would cost more than weighting gains. {errors}"
            return None, comparison, because
        because = f"weighted. {errors} Compare both walks with simulate() on data like yours."
        return best.kind, comparison, because

    def with_mechanism(self, walk: Walk, budget_plan: BudgetPlan | None, kind: str) -> Walk:
        """Return the walk with a mechanism for its disclosures of the rows, if ε asks for one."""
        request, facts, problem = self.request, self.facts, self.problem
        privacy, brought = request.privacy, mechanism_of(walk)
        if getattr(brought, "protect", "node") == "rows":
            raise ValueError(
                f"the sensitivity of {brought!r} rests on unknown facts about the rows. Pass "
                "epsilon, delta and feature_bound, or a mechanism with public bounds of L_i."
            )
        if privacy.epsilon is None or privacy.delta is None or not reveals_rows(walk):
            return walk
        if brought is not None:
            raise ValueError(
                f"{walk!r} has a mechanism. Leave epsilon and delta out, or the mechanism."
            )
        inner: Any = walk.innermost
        if not hasattr(inner, "privacy"):
            raise ValueError(
                f"{walk!r} takes no mechanism to protect its disclosure of the rows. Leave epsilon "
                "and delta out, or use another walk."
            )
        if getattr(inner, "importance", None) is not None:
            raise ValueError(
                "epsilon protects L_i, not a given importance. Leave epsilon out and pass Weighted("
                "importance, privacy=calibrate(...)), or Weighted(importance, public=True) if it "
                "does not depend on rows."
            )
        target = (privacy.epsilon, privacy.delta) if budget_plan is None else budget_plan.constants
        if target is None:
            raise ValueError(
                f"the first call gave all of ε to the model, and {walk!r} discloses L_i. Keep the "
                "walk of the first call, or start with a new estimator."
            )
        epsilon, delta = target
        # Gaussian noise for rows as the unit, if its claim is known to hold, else noise for nodes.
        for_rows = privacy.unit == "rows" and not privacy.covers_constants_alone
        if problem is not None:
            for_rows &= not is_sparse(problem.X) and bool((problem.sample_weight == 1.0).all())
        if not for_rows or privacy.feature_bound is None or facts.rows is None:
            mechanism: Any = calibrate(kind, epsilon=epsilon, delta=delta, bounds=self.bounds())
        else:
            assert facts.features is not None
            mechanism = row_release(
                self.loss, epsilon=epsilon, delta=delta, nodes=facts.nodes,
                feature_bound=privacy.feature_bound, total_rows=facts.rows,
                penalty=request.penalty, intercept=request.intercept,
                features=facts.features + request.intercept,
            )  # fmt: skip
        return walk.with_innermost(replace(inner, privacy=mechanism, shrink=True))

    def choose_update(self) -> Update | None:
        """Return the update; None for `Sgd`, whose step depends on the walk."""
        request, chosen = self.request, self.request.update
        self.explain("step", "found by the update on its walk.")
        update: Update | None = None
        because = AS_ASKED
        if chosen == "auto":
            because, update = self.default_update()
        elif chosen != Sgd.name:
            update = UPDATES.by_name(chosen)() if isinstance(chosen, str) else chosen
        self.explain("update", because)
        if isinstance(update, Finito) and request.steps is None:
            update = replace(update, estimates_gradient=True)  # for the test of convergence
        if update is None or chosen == "auto":
            return update
        if getattr(update, "step_size", None) is not None:
            self.explain("step", AS_ASKED)
        if self.partial and update.converges:
            raise ValueError(
                f"partial_fit takes gradient steps on a stream of rows, and {update!r} converges "
                'on fixed rows only. Leave update at "auto", or call fit.'
            )
        if request.is_private and (update.token_disclosure or update.needs):
            raise ValueError(
                f"update={chosen!r} stores gradients and curvature, which the token would carry "
                'unprotected. Leave update at "auto", or drop what is private.'
            )
        return update

    def default_update(self) -> tuple[str, Update | None]:
        """Return the reason for the default update, and the update; None for `Sgd`."""
        request, walk = self.request, self.request.walk.innermost
        if request.is_private:
            return "SGD, because memory would disclose gradients and curvature unprotected.", None
        if self.partial:
            return "SGD, because rows come as a stream, and memory needs fixed rows.", None
        if request.step_size is not None or request.average in MEANS:
            return "SGD, because a step size or an average was asked for.", None
        if isinstance(walk, Metropolis) and walk.has_gap_weights:
            return f"SGD, because {walk!r} has weights for gradients, and memory needs none.", None
        against = self.why_not_finito()
        if against:
            return f"{ABOUT_SAGA} It is not Finito, because {against}.", Saga()
        return ABOUT_FINITO, Finito()

    def why_not_finito(self) -> str:
        """Return the reason against Finito as the default, as a clause; empty without one."""
        problem = self.problem
        if problem is None:
            return "the nodes of a network cannot run it yet"
        if self.request.batch is not None:
            return "gradients use a part of the rows"
        if not problem.is_double:
            return "the model has single precision"
        if problem.is_sparse:
            return "it would use sparse rows as dense ones"
        if problem.nodes * problem.size > MAX_STATE:
            return f"the nodes would store points of more than {MAX_STATE:,} numbers"
        return ""

    def gradient_steps(self, walk: Walk, budget_plan: BudgetPlan | None) -> Update | None:
        """Return `Sgd` with its step; None if the step depends on the nodes' disclosures."""
        request, loss, facts, problem = self.request, self.loss, self.facts, self.problem
        step: StepSize | None = None
        if request.step_size is not None:
            step, because = request.step_size, AS_ASKED
        elif budget_plan is not None:
            step, because = ConstantStep(budget_plan.step), "limited by noise, curvature, penalty."
        elif mechanism_of(walk) is not None:
            because = "from the L_i that the nodes release."
        elif request.is_private:
            outputs = int(getattr(loss, "classes", None) or 1)
            size = outputs * ((facts.features or 0) + request.intercept)
            length = noise_length(request.privacy.noise, size)
            step = public_step(loss, request.penalty, self.graph, walk, self.bounds(), length)
            because = "from the public bounds of L_i."
        else:
            because = "from the constants L_i of the nodes."
            if problem is not None and not walk.has_random_announcements:
                known = released(walk, problem, self.graph, None)
                step = choose_step(problem, self.graph, known, request.batch)
        self.explain("step", because)
        return None if step is None else Sgd(step)

    def choose_length(self, update: Update | None, budget_plan: BudgetPlan | None) -> int | None:
        """Return the number of updates, public if anything is private; None until convergence."""
        request, nodes, noise = self.request, self.facts.nodes, self.request.privacy.noise
        gradients = 1 if update is None else update.gradients
        steps, because = request.steps, AS_ASKED
        if steps is not None:
            pass
        elif self.partial and request.is_private:
            steps, because = nodes, "one for each node, because the rows come as a stream."
        elif self.partial:
            assert self.problem is not None
            steps = VISITS * int(np.count_nonzero(np.diff(self.problem.offsets)))
            because = f"{VISITS} for each node with rows, which come as a stream."
        elif not request.is_private:
            because = "as many as convergence needs."
        else:
            steps = request.max_steps or max_steps(nodes, False)
            if budget_plan is None:
                because = "a public number, because convergence depends on the rows."
                steps = public_steps(nodes, steps)
                if noise is not None:
                    steps = min(steps, noise.max_contributions * nodes // gradients)
            elif (allowed := max(1, budget_plan.updates // gradients)) > steps:
                because = "the maximum that max_steps allows."
            else:
                steps, because = allowed, "the maximum that the cap on contributions allows."
        self.explain("updates", because)
        return steps


def choose_laziness(graph: Graph) -> tuple[float, str]:
    """Return 0, or 0.1 if that mixes faster, as on a bipartite graph; and the reason."""
    from walklearn import theory

    plain, lazy = (theory.spectral_gap(graph, Uniform(laziness=each)) for each in (0.0, LAZINESS))
    if lazy <= plain:
        return 0.0, f"none, which mixes best (spectral gap {plain:.3g}; {LAZINESS}: {lazy:.3g})."
    return LAZINESS, (
        f"{LAZINESS}, because it raises the spectral gap from {plain:.3g} to {lazy:.3g}: the walk "
        f"{'nearly ' * (plain > 0)}alternates between two sides of the graph."
    )
