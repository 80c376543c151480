"""Sentences that each model contains: what its training protected, and which facts are public."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from walklearn.errors import PrivacyWarning
from walklearn.fitting.plan import FitPlan
from walklearn.fitting.request import FitRequest
from walklearn.privacy.accounting.budget import about_large_delta
from walklearn.privacy.accounting.claim import REPLACED
from walklearn.privacy.accounting.ledger import SEEDED
from walklearn.privacy.accounting.printing import format_claim
from walklearn.privacy.mechanisms.description import IN_THE_CLEAR, UNPROTECTED_MODEL
from walklearn.tables.encoding import Column
from walklearn.tables.target_scale import TargetScale
from walklearn.walks import HistoryDriven, Walk
from walklearn.walks.disclosure import disclosure_of
from walklearn.wording import format_times, plural

if TYPE_CHECKING:
    from walklearn.estimators.random_walk import RandomWalk

_COLUMNS_LISTED = 100
SCORE_IS_A_RELEASE = (
    "a score on private rows is a release that ε does not cover. Do not publish it, and do not "
    "choose a model or a parameter by it. Scores on public rows cost nothing. This warning appears "
    "once per process."
)
_warned = False


def request_of(estimator: RandomWalk) -> FitRequest:
    """Return the request of the last fit; later changes of parameters do not affect it."""
    request = estimator._state.request
    assert request is not None
    return request


def is_claimed(estimator: RandomWalk) -> bool:
    """True if the fit has a privacy claim; no other facts about the rows may then be published."""
    asked = estimator.fit_plan_.budget.epsilon is not None
    released = estimator.walk_.innermost.release is not None
    return asked or released or estimator.model_noise_ is not None


def privacy_of(estimator: RandomWalk) -> dict[str, Any]:
    """Return the claim, and statements on what is protected, unprotected and public."""
    plan, noise, request = estimator.fit_plan_, estimator.model_noise_, request_of(estimator)
    protected, exposed = _importance(estimator)
    claim = plan.claim_without_seed
    if noise is None:
        asked = " (in the clear, as requested)" * (request.privacy.epsilon is not None)
        exposed[:0] = [
            f"the model{asked}, so ε = ∞.",
            f"{UNPROTECTED_MODEL} Pass epsilon and delta to protect it.",
        ]
        if token_disclosure := estimator.update_.token_disclosure:
            exposed.insert(2, f"With {estimator.update_.name}, {token_disclosure}.")
    else:
        part = "each row's gradient" if noise.protect == "rows" else "the gradient of all its rows"
        protected.append(
            f"Contributions of a node to the model, by {noise}: at each visit {part} is clipped, "
            f"noise is added, and a node contributes at most "
            f"{format_times(noise.max_contributions)}."
        )
    if claim.is_private:
        protected.insert(
            0,
            f"{claim}, in this fit alone. For each set of outcomes, P(outcome) ≤ "
            "e^ε · P(outcome with the other rows) + δ.",
        )
        # If rows are the unit, their number is public.
        rows = estimator.trace_.spec["problem"]["rows"]
        units = rows if claim.unit == "rows" else plan.graph.node_count
        large_delta = about_large_delta(claim.delta, units, claim.unit)
        exposed += [large_delta] if large_delta else []
    exposed.append(
        "Training ran on one machine with access to all rows. The printed accuracy and loss are "
        "computed from the rows: do not publish them."
    )
    if estimator._state.interrupted and is_claimed(estimator):
        exposed.append(
            "A user interrupted the training. If the loss on the rows was the reason, the time of "
            "the interruption reveals something about the rows that ε does not cover."
        )
    unseeded: dict[str, Any] = {}
    if plan.protects_nobody:
        unseeded = {"claim_without_seed": claim.to_dict()}
        claim, protected = plan.claim, []
        exposed.insert(0, f"{SEEDED} Train without a seed for a claim.")
    return claim.to_dict() | unseeded | {
        "simulated": bool(estimator.ledger_.simulated),
        "protected": protected,
        "not_protected": exposed,
        "taken_to_be_public": public_facts(
            plan, getattr(estimator, "classes_", None), request.total_rows
        ),
    }  # fmt: skip


def _importance(estimator: RandomWalk) -> tuple[list[str], list[str]]:
    """Return two lists of sentences on L_i or another importance: protected, and not protected."""
    walk, disclosure = estimator.walk_.innermost, disclosure_of(estimator.walk_)
    if not estimator.walk_.disclosure_is_known:
        return [], [f"The disclosures of {name_of(estimator.walk_)} are unknown."]
    if disclosure.scaled_by:
        return [], ["The model reveals the L_i of each node, because L_i scales the steps."]
    unprotected = [
        each["mechanism"] == IN_THE_CLEAR
        for each in estimator.ledger_.to_dict()["releases"]
        if each["what"] == "importance"
    ]
    if any(unprotected) and not disclosure.is_unprotected:
        return [], ["In an earlier call every node disclosed its L_i to neighbours unprotected."]
    if walk.release is not None:
        return [_release(estimator, walk)], []
    if unprotected and not disclosure.reveals_rows:
        return ["The constant L_i of every node, released in an earlier call: see the ledger."], []
    given = getattr(walk, "importance", None) is not None
    if disclosure.reveals_rows:
        return [], [
            f"The {'importance' if given else 'constant L_i'} of every node, which depends on its "
            "rows, is disclosed to its neighbours unprotected. A uniform walk discloses none."
        ]
    if given:
        return ["Nodes disclose their degree and a public importance to their neighbours."], []
    if isinstance(estimator.walk_, HistoryDriven):
        return [
            "Nodes disclose to their neighbours their degree and, when asked, how often the token "
            "visited them."
        ], []
    if walk.declared_sent_length == walk.sent_length == 0:
        return ["Nodes disclose nothing to their neighbours beside the token."], []
    return ["Nodes disclose only their degree to their neighbours."], []


def _release(estimator: RandomWalk, walk: Any) -> str:
    """Return the sentence on the release of L_i, with its ε and δ if they are known."""
    low, high = walk.mechanism.bounds
    text = (
        f"The constant L_i of every node, released by {walk.mechanism} within the public bounds "
        f"{low:.4g} to {high:.4g}"
    )
    budget, ledger = estimator.fit_plan_.budget, estimator.ledger_
    target: tuple[float | None, float | None] | None = (budget.epsilon, budget.delta)
    if estimator.budget_plan_ is not None:
        target = estimator.budget_plan_.constants
    charges = (charge for node in range(ledger.nodes) for charge in ledger.charges(node))
    times = max(charge.times for charge in charges if charge.what == "importance")
    if times > 1:
        return f"{text}; it was released {times} times. The ledger states the cost."
    if target is None or target[0] is None:
        return f"{text}. The ledger states the cost."
    return (
        f"{text}: {format_claim(target[0], target[1] or 0.0)} of this number alone, if "
        f"{REPLACED[getattr(walk.mechanism, 'protect', 'node')]}."
    )


def name_of(walk: Walk) -> str:
    """Return the walk as text, without its release."""
    return repr(walk.with_innermost(walk.innermost.without_release()))


def public_facts(
    plan: FitPlan, classes: Sequence[Any] | None, total_rows: float | None
) -> list[str]:
    """Return sentences on the facts that count as public: network, task and settings.

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
        "typical length of a row": plan.facts.row_length,
        "maximum length of a row": budget.feature_bound,
        "number of rows of all nodes": total_rows,
        "maximum number of rows of a node": budget.max_rows,
    }
    given = [f"{what} {value:.6g}" for what, value in numbers.items() if value is not None]
    if given:
        facts.append(f"Declared numbers: {', '.join(given)}.")
    facts.append(
        "The settings: loss, penalty, walk, step size, number of updates, clip, noise, and the cap "
        "on contributions of a node."
    )
    return facts


def public_columns(
    columns: Sequence[Column], target: str, scale: TargetScale | None = None
) -> list[str]:
    """Return a sentence on the public facts about the columns, with their declared scales.

    scale: the declared scale of a numeric target.

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
    if column.is_identity:
        return column.name
    return f"{column.name} (centre {column.centre:g}, spread {column.spread:g})"


def warn_about_score(estimator: RandomWalk) -> None:
    """Issue a `PrivacyWarning` at the first score of a private estimator in this process.

    A fit with a seed makes no claim, but it rehearses a private fit and warns as well.
    """
    global _warned
    if not _warned and is_claimed(estimator):
        _warned = True
        warnings.warn(SCORE_IS_A_RELEASE, PrivacyWarning, stacklevel=3)
