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

import warnings
from dataclasses import replace
from typing import Any

from walklearn.checks import check_kind, check_number
from walklearn.fitting.choices import AS_ASKED, Choices
from walklearn.fitting.plan import FitPlan, Reason, loss_with_classes
from walklearn.fitting.request import FitRequest, walk_of
from walklearn.fitting.rounds import StoppingRule
from walklearn.graphs import Graph
from walklearn.objectives import Aggregate, Problem
from walklearn.objectives.linear.losses import LOSSES, Logistic, Loss, Softmax
from walklearn.privacy import (
    BudgetPlan,
    ModelNoise,
    PrivacySettings,
    PublicFacts,
    plan_budget,
)
from walklearn.privacy.accounting.printing import format_claim
from walklearn.privacy.protection import Protection
from walklearn.updates.step_choice import (
    FIRST_CHECK,
    max_steps,
)
from walklearn.walks.disclosure import (
    check_disclosure_known,
    check_protectable,
    mechanism_of,
    reveals_rows,
)
from walklearn.wording import plural

# Default tolerances: of the change of the loss by a doubling of the walk, relative to the loss of
# zeros; and of the gradient of a walk with memory, relative to that of the penalty.
LOSS_TOLERANCE, GRADIENT_TOLERANCE = 3e-3, 1e-4
ALTERNATES = (
    "the walk alternates between two sides of the graph, so it never mixes. Pass laziness=0.1 "
    "(--laziness 0.1)."
)
CHOICES = ("graph", "walk", "laziness", "model", "update", "step", "updates", "stop", "loss")
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
        Public facts about the data. Values of features and targets of a problem are not used, nor
        its numbers of rows if the node is the unit; it must then have aggregate="node-mean". The
        plan for a problem is that of a fit. The plan for public facts is for a network, whose nodes
        run "sgd" and "saga".
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
    case = Choices(request, loss, facts, graph, problem, partial)
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
    update = case.choose_update()
    walk, comparison = case.choose_walk(update, budget_plan)
    if noise is not None:
        check_protectable(walk)
    if update is None:
        update = case.gradient_steps(walk, budget_plan)
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
