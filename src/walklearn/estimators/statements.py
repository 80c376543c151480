"""Statements about a fit: what is protected, what is not, and what no claim protects.

A model repeats them, so that it says of itself what its training has revealed of the rows.
"""

from __future__ import annotations

import math
import warnings
from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from walklearn.errors import PrivacyWarning
from walklearn.fitting.plan import FitPlan
from walklearn.fitting.request import FitRequest
from walklearn.privacy import ModelNoise
from walklearn.privacy.accounting.budget import doubt_of_delta
from walklearn.privacy.accounting.claim import REPLACED, Claim
from walklearn.privacy.accounting.ledger import SEEDED
from walklearn.privacy.accounting.printing import format_claim
from walklearn.privacy.mechanisms.description import IN_THE_CLEAR, UNPROTECTED_MODEL
from walklearn.tables.encoding import Column
from walklearn.tables.target_scale import TargetScale
from walklearn.walks import Walk
from walklearn.walks.disclosure import disclosure_of, reveals_rows
from walklearn.wording import often, plural

if TYPE_CHECKING:
    from walklearn.estimators.random_walk import RandomWalk

_COLUMNS_LISTED = 100
SCORE_IS_A_RELEASE = (
    "a score on private rows is a release that ε does not cover. Do not publish it, and choose no "
    "model or parameter by it; scores on public rows are free. This warning appears once per "
    "process."
)
_warned = False


def request_of(estimator: RandomWalk) -> FitRequest:
    """The request of the fit, which parameters that were set since do not change."""
    request = estimator._state.request
    assert request is not None
    return request


def is_claimed(estimator: RandomWalk) -> bool:
    """Whether something is claimed to be protected, so that no more may be told of the rows."""
    released = estimator.walk_.innermost.release is not None
    asked = estimator.fit_plan_.budget.epsilon is not None
    return released or estimator.model_noise_ is not None or asked


def _warnings_of_delta(estimator: RandomWalk, claim: Claim) -> list[str]:
    """Return a sentence on a δ that is not small. If rows are the unit, their number is public."""
    nodes = estimator.graph_.node_count
    rows = estimator.trace_.spec["problem"]["rows"] if claim.unit == "rows" else nodes
    doubt = doubt_of_delta(claim.delta, rows, claim.unit)
    return [doubt] if doubt else []


def privacy_of(estimator: RandomWalk) -> dict[str, Any]:
    """What is protected, what is not, and what counts as public."""
    protected, exposed = _importance(estimator)
    noise, request = estimator.model_noise_, request_of(estimator)
    claim = estimator.ledger_.claim_without_seed(request.privacy.reported_delta)
    if noise is None:
        asked = "" if request.privacy.epsilon is None else ", as was asked for (in the clear)"
        exposed[:0] = [
            f"ε = ∞: the model is not protected{asked}.",
            f"{UNPROTECTED_MODEL} A total ε protects it (epsilon and delta).",
        ]
    else:
        protected.append(_of_the_model(noise))
    if claim.is_private:
        protected.insert(
            0,
            f"{claim}, in this fit alone. For each set of outcomes, P(outcome) ≤ "
            "e^ε · P(outcome with the other rows) + δ.",
        )
        exposed += _warnings_of_delta(estimator, claim)
    exposed.append(
        "Training ran on one machine that saw all rows, and the accuracy and loss that it tells "
        "are computed from them: they are for you, not for publishing."
    )
    if estimator._state.interrupted and is_claimed(estimator):
        exposed.append(
            "The training was interrupted by hand. If that was because of what the loss on the "
            "rows was, then when it ended tells of them, and no ε covers it."
        )
    released = estimator.walk_.innermost.release is not None
    simulated = bool(estimator.ledger_.simulated)
    unseeded: dict[str, Any] = {}
    if simulated and (noise is not None or released):  # everyone can draw the same noise again
        unseeded = {"claim_without_seed": claim.to_dict()}
        without = f"{SEEDED} Train without a seed for a claim."
        claim, protected, exposed = replace(claim, epsilon=math.inf), [], [without, *exposed]
    return claim.to_dict() | unseeded | {
        "simulated": simulated,
        "protected": protected,
        "not_protected": exposed,
        "taken_to_be_public": public_facts(
            estimator.fit_plan_, getattr(estimator, "classes_", None), request.total_rows
        ),
    }  # fmt: skip


def _of_the_model(noise: ModelNoise) -> str:
    if noise.protect == "rows":
        what = "each row's gradient is clipped and the sum noised"
    else:
        what = "the gradient of all rows of a node is clipped and noised"
    return (
        f"What the rows of a node add to the model, by {noise}: at each visit {what}, and a node "
        f"adds at most {often(noise.max_contributions)}."
    )


def _importance(estimator: RandomWalk) -> tuple[list[str], list[str]]:
    """What is said of L_i, or of another importance: what of it is protected, and what is not."""
    walk = estimator.walk_.innermost
    if not estimator.walk_.disclosure_is_known:
        return [], [f"What {name_of(estimator.walk_)} tells of the rows is not known here."]
    if disclosure_of(estimator.walk_).scaled_by:
        return [], ["Steps are scaled by the true L_i of each node, which the model then reveals."]
    in_the_clear = {
        each["mechanism"] == IN_THE_CLEAR
        for each in estimator.ledger_.to_dict()["releases"]
        if each["what"] == "importance"
    }
    if True in in_the_clear and not disclosure_of(estimator.walk_).is_unprotected:
        return [], ["In an earlier call every node told its neighbours its L_i in the clear."]
    if walk.release is not None:
        return [_release(estimator, walk)], []
    if in_the_clear and not reveals_rows(estimator.walk_):
        return ["The constant L_i of every node, released in an earlier call: see the ledger."], []
    if reveals_rows(estimator.walk_):
        what = "constant L_i" if getattr(walk, "importance", None) is None else "importance"
        return [], [
            f"The {what} of every node goes to its neighbours in the clear, and it depends on its "
            "rows. A uniform walk has none."
        ]
    if getattr(walk, "importance", None) is not None:
        return ["Nodes tell each other their degree and an importance declared to be public."], []
    return ["Nodes tell each other their degree and no constant of their rows."], []


def _release(estimator: RandomWalk, walk: Any) -> str:
    """What is claimed of a release: by a share of ε and δ, or by the walk's own mechanism."""
    low, high = walk.mechanism.bounds
    text = (
        f"The constant L_i of every node, released by {walk.mechanism} within the public bounds "
        f"{low:.4g} to {high:.4g}"
    )
    budget = estimator.fit_plan_.budget
    target: tuple[float | None, float | None] | None = (budget.epsilon, budget.delta)
    if estimator.budget_plan_ is not None:
        target = estimator.budget_plan_.constants
    times = max(
        charge.times
        for node in range(estimator.ledger_.nodes)
        for charge in estimator.ledger_.charges(node)
        if charge.what == "importance"
    )
    if times > 1:
        return f"{text}; it was released {times} times, and the ledger tells what that costs."
    if target is None or target[0] is None:
        return f"{text}; the ledger tells its cost."
    return (
        f"{text}: {format_claim(target[0], target[1] or 0.0)} of this number alone, if "
        f"{REPLACED[getattr(walk.mechanism, 'protect', 'node')]}."
    )


def name_of(walk: Walk) -> str:
    """The walk with what it was asked to do, without what was drawn."""
    return repr(walk.with_innermost(walk.innermost.before_release()))


def public_facts(
    plan: FitPlan, classes: Sequence[Any] | None, total_rows: float | None
) -> list[str]:
    """Return what is taken to be public of a fit: the network, the task and the settings.

    classes: the labels; None for a target that is a number.
    """
    budget = plan.budget
    counts = "the node of each row, the number of rows of each node and their total weight, "
    facts = [
        f"The graph ({plural(plan.graph.node_count, 'node')}), "
        f"{'' if budget.hides_row_counts else counts}and the position of the token.",
        f"The task: {'regression' if classes is None else 'classification'}.",
    ]
    if classes is not None:
        names = ", ".join(map(str, classes))
        facts.append(f"The classes, even if they were read from the rows: {names}.")
    numbers = {
        "the typical length of a row": plan.facts.row_length,
        "the bound on the length of a row": budget.feature_bound,
        "the number of rows of all nodes": total_rows,
        "the largest number of rows of a node": budget.max_rows,
    }
    given = [f"{what}: {value:.6g}" for what, value in numbers.items() if value is not None]
    if given:
        facts.append(f"Declared numbers: {', '.join(given)}.")
    facts.append(
        "The settings: loss, penalty, walk, step size, number of updates, clip, noise, and how "
        "often a node contributes at most."
    )
    return facts


def public_columns(
    columns: Sequence[Column], target: str, scale: TargetScale | None = None
) -> list[str]:
    """Return what is taken to be public of the columns, with their declared scales.

    scale: that of a target that is a number.

    >>> print(public_columns([Column("age", centre=50.0, spread=20.0, cut_off=3.0)], "ill")[0])
    The name of the target, 'ill', and the columns: age (centre 50, spread 20).
    """
    written = [_written(column) for column in columns[:_COLUMNS_LISTED]]
    if len(columns) > _COLUMNS_LISTED:
        written.append(f"and {len(columns) - _COLUMNS_LISTED:,} more, all of them in model.json")
    of_target = "" if scale is None else f" (centre {scale.centre:g}, spread {scale.spread:g})"
    return [
        f"The name of the target, {target!r}{of_target}, and the columns: {', '.join(written)}."
    ]


def _written(column: Column) -> str:
    if column.categories is not None:
        return f"{column.name} (categories {', '.join(column.categories)})"
    if column.as_it_is:
        return column.name
    return f"{column.name} (centre {column.centre:g}, spread {column.spread:g})"


def warn_about_score(estimator: RandomWalk) -> None:
    """Issue a `PrivacyWarning` at the first score of a private estimator in this process.

    A fit with a seed makes no claim, but it rehearses a private fit: it is warned of as well.
    """
    global _warned
    if not _warned and is_claimed(estimator):
        _warned = True
        warnings.warn(SCORE_IS_A_RELEASE, PrivacyWarning, stacklevel=3)
