"""Resolve a request and the public facts about its data into a plan.

ε and δ are the total for the model and for the disclosures of L_i, if the walk makes any.
`plan_budget` splits them by public facts. The walk "auto" discloses nothing, so that the model gets
the whole budget. If the model is unprotected, ε covers the constants L_i alone, and the total is
ε = ∞.

If anything is private, nothing else may reveal a number computed from the rows: not the units, not
the step size, not the length of the walk. The number of rows of a node is public if the unit is a
row, and hidden if the unit is the node. In that case the total M is a public number (`total_rows`),
or all nodes have equal weight ("node-mean").
"""

from __future__ import annotations

import math
import warnings
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from walklearn.checks import check_kind, check_number
from walklearn.fitting.plan import FitPlan, Reason, loss_with_classes, noise_length, released
from walklearn.fitting.request import MEANS, FitRequest, walk_of
from walklearn.fitting.rounds import StoppingRule
from walklearn.graphs import Graph
from walklearn.objectives import Aggregate, Problem
from walklearn.objectives.linear.losses import LOSSES, Logistic, Loss, Softmax
from walklearn.objectives.linear.rows import is_sparse
from walklearn.privacy import (
    BudgetPlan,
    ModelNoise,
    PrivacySettings,
    PublicFacts,
    calibrate,
    compare,
    plan_budget,
    row_release,
    smoothness_bounds,
)
from walklearn.privacy.accounting.printing import format_claim
from walklearn.privacy.mechanisms.comparison import Comparison
from walklearn.privacy.protection import Protection
from walklearn.updates.finito import Finito
from walklearn.updates.saga import Saga
from walklearn.updates.sgd import Sgd
from walklearn.updates.step_choice import (
    FIRST_CHECK,
    choose_step,
    max_steps,
    public_step,
    public_steps,
)
from walklearn.updates.step_sizes import ConstantStep, StepSize
from walklearn.updates.update import UPDATES, Update
from walklearn.walks import Metropolis, Uniform, Walk
from walklearn.walks.disclosure import (
    check_disclosure_known,
    check_protectable,
    mechanism_of,
    reveals_rows,
)
from walklearn.wording import plural

LAZINESS = 0.1
# Default tolerances: of the change of the loss by a doubling of the walk, relative to the loss of
# zeros; and of the gradient of a walk with memory, relative to that of the penalty.
LOSS_TOLERANCE, GRADIENT_TOLERANCE = 3e-3, 1e-4
VISITS = 5  # updates for each node with new rows in a call of partial_fit
AS_ASKED = "as asked for."
ALTERNATES = (
    "the walk alternates between two sides of the graph, so it never mixes. Pass laziness=0.1 "
    "(--laziness 0.1)."
)
CHOICES = ("graph", "walk", "laziness", "model", "update", "step", "updates", "stop", "loss")
ABOUT_SAGA = (
    "Saga, because it converges to the minimiser, whereas SGD only comes close. Each node keeps "
    "one number per row and class, and the token carries the sum of gradients beside the model."
)
_TARGETS = {"number": "numbers", "sign": "one of two classes", "class": "one of several classes"}


def advise(
    graph: Graph,
    about: PublicFacts | Problem,
    privacy: PrivacySettings | None = None,
    *,
    loss: Loss | str | None = None,
    penalty: float = 1e-3,
    intercept: bool | None = None,
    laziness: float | None = 0.0,
) -> FitPlan:
    """Recommend a walk, an update, a protection, a step and a length, from public facts alone.

    Parameters
    ----------
    graph
        Communication graph.
    about
        Public facts about the data. Features and targets of a problem are not used, nor its numbers
        of rows if the node is the unit; it must then have aggregate="node-mean".
    privacy
        The total (ε, δ) for everything that leaves a node because of its rows, and its unit. It
        needs `PublicFacts.row_length` or `PrivacySettings.feature_bound`. By default nothing is
        protected.
    loss, penalty
        The objective; a problem brings its own. The default loss is the logistic one.
    intercept
        True if the model has an intercept. For public facts, which do not count it as a feature,
        the default is True. For a problem the default is False; True means that its last column
        is the intercept.
    laziness
        The probability that the token stays put; None chooses it by the spectral gap of the graph.

    Returns
    -------
    FitPlan
        The plan, with its reasons and the most useful changes.

    Examples
    --------
    >>> import walklearn as wl
    >>> facts = wl.PublicFacts(nodes=20, rows=5000, features=9, row_length=3.0)
    >>> total = wl.PrivacySettings(epsilon=1.0, delta=1e-5)
    >>> plan = wl.advise(wl.graphs.ring(20), facts, total, laziness=None)
    >>> plan.walk, plan.noise.max_contributions, round(plan.noise_to_signal, 2)
    (Uniform(laziness=0.1), 50, 0.02)
    """
    check_kind("graph", graph, Graph, "a Graph, such as graphs.ring(20)")
    check_kind("about", about, Problem | PublicFacts, "a PublicFacts or a Problem")
    check_kind("privacy", privacy, PrivacySettings | None, "a PrivacySettings or None")
    if graph.node_count != about.nodes:
        raise ValueError(
            f"the graph has {graph.node_count} nodes, and the {type(about).__name__} "
            f"{about.nodes}. Pass a graph with as many nodes."
        )
    privacy = privacy or PrivacySettings()
    if privacy.model is not None and privacy.epsilon is None:
        raise ValueError("model was given without epsilon. Pass both.")
    intercept = isinstance(about, PublicFacts) if intercept is None else bool(intercept)
    if loss is not None and not isinstance(loss, Loss):
        loss = LOSSES.by_name(loss)()
    if isinstance(about, PublicFacts) and loss == Softmax():
        raise ValueError(
            "loss='softmax' needs the number of classes. Use loss=losses.Softmax(3), or pass a "
            "Problem instead of PublicFacts."
        )
    check_number("penalty", penalty, minimum=0.0)
    aggregate: Aggregate = "mean"
    if isinstance(about, Problem):
        problem, facts = about, facts_of(about, intercept)
        loss, penalty, aggregate = loss_with_classes(about), about.penalty, about.aggregate
        if privacy.hides_row_counts:
            if aggregate != "node-mean":
                raise ValueError(
                    f'protect="node" hides the number of rows, on which aggregate="{aggregate}" '
                    'depends. Pass PublicFacts, or a problem with aggregate="node-mean".'
                )
            facts = replace(facts, rows=None)
    else:
        problem, facts, loss = None, about, loss or Logistic()
        if privacy.hides_row_counts and facts.rows is None:
            aggregate = "node-mean"
    walk = walk_of("auto", laziness, privacy.covers_constants_alone)
    request = FitRequest(
        walk, graph, laziness=laziness, penalty=penalty, intercept=intercept, aggregate=aggregate,
        privacy=privacy, row_length=facts.row_length, is_private=privacy.asks, is_auto_walk=True,
    )  # fmt: skip
    return resolve(request, loss, facts, graph, problem)


def facts_of(problem: Problem, intercept: bool, row_length: float | None = None) -> PublicFacts:
    """Return the public facts of a problem whose row counts are public."""
    features = int(problem.X.shape[1]) - intercept
    return PublicFacts(problem.nodes, problem.total_rows, features, row_length)


def resolve(
    request: FitRequest,
    loss: Loss,
    facts: PublicFacts,
    graph: Graph,
    problem: Problem | None = None,
    before: FitPlan | None = None,
    partial: bool = False,
) -> FitPlan:
    """Return the plan of a fit: everything that can be decided before its first update.

    problem: the data, if they are known; of private rows only public facts are used. before: the
    plan of an earlier call, which fixes the split of the total. partial: True for partial_fit.
    """
    case = _Resolver(request, loss, facts, graph, problem, partial)
    privacy, walk = request.privacy, request.walk
    if privacy.epsilon is not None or mechanism_of(walk) is not None:
        check_disclosure_known(walk)
    budget_plan = None if before is None else before.budget_plan
    if budget_plan is None and privacy.protects_model and privacy.noise is None:
        budget_plan = plan_budget(
            privacy, facts, loss, intercept=request.intercept, penalty=request.penalty,
            aggregate=request.aggregate,
            reveals_rows=reveals_rows(walk) and mechanism_of(walk) is None,
            updates=None if partial else request.steps, max_updates=request.max_steps,
        )  # fmt: skip
    noise = privacy.noise if budget_plan is None else budget_plan.noise
    walk, comparison = case.choose_walk(budget_plan)
    if noise is not None:
        check_protectable(walk)
    update = case.choose_update(walk, budget_plan)
    steps = case.choose_length(update, budget_plan)
    converges = update is not None and update.converges
    if converges and request.has_named_walk:
        walk = walk.unbiased(laziness=getattr(walk, "laziness", 0.0), has_memory=True)
    if not converges and case.alternates(walk):
        case.explain("laziness", f"none, but {ALTERNATES}")
        if before is None:
            warnings.warn(ALTERNATES, stacklevel=6)
    tolerance = GRADIENT_TOLERANCE if converges else LOSS_TOLERANCE
    average: Any = request.average
    if not getattr(update, "average", update is None):
        average = "none"
    elif average == "auto":  # with ε, steps are short, and an average lags behind the last model
        average = "tail" if privacy.epsilon is None or not privacy.protects_model else "none"
    stop = StoppingRule(
        steps=steps, max_steps=request.max_steps or max_steps(facts.nodes, converges),
        first=max(FIRST_CHECK, facts.nodes),
        tolerance=tolerance if request.tol is None else request.tol,
        average=average, is_stream=partial,
    )  # fmt: skip
    case.explain("graph", _about_graph(graph))
    case.explain("model", _about_model(privacy, noise, budget_plan))
    case.explain("stop", _about_stop(stop, converges, request.is_private))
    case.explain("loss", f"{loss!r} is for targets that are {_TARGETS[loss.takes]}.")
    return FitPlan(
        graph, walk, update, Protection() if noise is None else noise, stop, loss,
        request.penalty, request.domain, request.aggregate, request.intercept, request.batch,
        privacy, facts, tuple(Reason(choice, case.reasons[choice]) for choice in CHOICES),
        budget_plan, comparison,
        steps_asked=(None if partial else request.steps, request.max_steps),
    )  # fmt: skip


@dataclass(frozen=True, eq=False)
class _Resolver:
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

    def choose_walk(self, budget_plan: BudgetPlan | None) -> tuple[Walk, Comparison | None]:
        """Return the walk with its mechanism and laziness, and the comparison of mechanisms."""
        request, comparison, because = self.request, None, AS_ASKED
        privacy, walk, kind = request.privacy, request.walk, request.privacy.mechanism
        if privacy.covers_constants_alone and request.is_auto_walk and kind is None:
            kind, comparison, because = self.best_release()
            if kind is None:
                walk = Uniform(laziness=getattr(walk.innermost, "laziness", 0.0))
        elif privacy.covers_constants_alone and request.is_auto_walk:
            because = "weighted, because ε is about the L_i that it discloses."
        elif request.is_auto_walk:
            use = ", so that the whole budget goes to the model" * privacy.protects_model
            because = f"uniform, which discloses only the degrees of the nodes{use}."
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

    def choose_update(self, walk: Walk, budget_plan: BudgetPlan | None) -> Update | None:
        """Return the update; None for `Sgd` with a step that depends on the nodes' disclosures."""
        request, chosen = self.request, self.request.update
        self.explain("step", "found by the update on its walk.")
        if chosen == "auto":
            if request.is_private:
                because = "SGD, because memory would disclose gradients and curvature unprotected."
            elif self.partial:
                because = "SGD, because rows come as a stream, and Saga needs fixed rows."
            elif request.step_size is not None or request.average in MEANS:
                because = "SGD, because a step size or an average was asked for."
            else:
                self.explain("update", ABOUT_SAGA)
                return Saga()
            self.explain("update", because)
            return self.gradient_steps(walk, budget_plan)
        self.explain("update", AS_ASKED)
        if chosen == Sgd.name:
            return self.gradient_steps(walk, budget_plan)
        update: Update = UPDATES.by_name(chosen)() if isinstance(chosen, str) else chosen
        if isinstance(update, Finito) and request.steps is None:
            update = Finito(estimates_gradient=True)  # for the test of convergence
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


def _about_graph(graph: Graph) -> str:
    if not graph.family:
        return "as given, because the network is no choice of a plan."
    return f"of the family {graph.family[0]!r}, as asked for or by default."


def _about_stop(stop: StoppingRule, converges: bool, is_private: bool) -> str:
    if stop.steps is not None:
        why = ", because a check of convergence would reveal rows" * is_private
        return f"after {plural(stop.steps, 'update')}{why}."
    until = (
        f"the known gradient is at most {stop.tolerance:g} · penalty · ‖w‖ for a whole round"
        if converges
        else f"a doubling of the walk changes the loss by less than {stop.tolerance:g} of the "
        "loss of a model of zeros"
    )
    return f"when {until}, or after {plural(stop.max_steps, 'update')}."


def _about_model(
    privacy: PrivacySettings, noise: ModelNoise | None, budget_plan: BudgetPlan | None
) -> str:
    if noise is None:
        asked = "as asked for." if privacy.covers_constants_alone else "no ε was asked for."
        return f"unprotected, {asked}"
    if budget_plan is None:
        return f"noise {AS_ASKED}"
    return (
        f"noise of {noise.noise_multiplier:.3g} times the clip {noise.clip:.3g} at each visit, "
        f"and at most {plural(noise.max_contributions, 'contribution')} of a node. Together "
        f"they are within {format_claim(budget_plan.epsilon, budget_plan.delta)}."
    )
