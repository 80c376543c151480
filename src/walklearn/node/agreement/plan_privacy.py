"""The plan's `[privacy]`: a total (ε, δ) for all that leaves a node because of its rows.

`protect` says what a claim is about, one row of a node or all of them. How the total is shared
between L_i, where the walk tells it, and the model, and how much noise that takes, follows from
public facts (`privacy.plan_budget`); each can be given. A plan without an ε protects nothing.
Where the
model is unprotected the total is ε = ∞, and a node is made only if its owner accepts that.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from walklearn.files.checked_table import CheckedTable
from walklearn.privacy.accounting.claim import Claim
from walklearn.privacy.mechanisms import MECHANISMS
from walklearn.privacy.mechanisms.description import IN_THE_CLEAR
from walklearn.privacy.settings import PrivacySettings, PublicFacts, declared_lengths

if TYPE_CHECKING:
    from walklearn.node.agreement.plan import Plan
    from walklearn.privacy.accounting.budget import BudgetPlan
    from walklearn.privacy.mechanisms.mechanism import Mechanism

_ROWS_NEED_NONE = (
    'is for protect = "node". For one row, Gaussian noise on L_i needs no bounds on it, only a '
    "feature_bound."
)


_KEYS = (
    "protect", "epsilon", "delta", "model", "mechanism", "bounds", "feature_bound", "max_rows",
    "lower", "constants_share", "clip", "max_contributions", "noise_multiplier",
)  # fmt: skip
_OF_THE_NOISE = ("clip", "max_contributions", "noise_multiplier", "constants_share")


def read(table: CheckedTable) -> PrivacySettings | None:
    """Read the table `privacy` of a plan, and check each key by itself."""
    inner = table.table("privacy", None)
    if inner is None:
        return None
    inner.only(_KEYS, "privacy")
    epsilon = inner.number("epsilon", None, above=0.0)
    delta = inner.number("delta", None, above=0.0, below=1.0)
    if epsilon is not None and delta is None:
        raise inner.error("delta", "is missing: epsilon and delta are a claim together.")
    if epsilon is None and delta is not None:
        raise inner.error(
            "delta", "needs an epsilon: without one nothing is protected. Give epsilon, or leave "
            "delta out.",
        )  # fmt: skip
    return PrivacySettings(
        epsilon,
        delta,
        "node" if inner.choice("protect", ("rows", "node"), "rows") == "node" else "rows",
        model=inner.choice("model", (IN_THE_CLEAR,), None),
        mechanism=inner.choice("mechanism", (*MECHANISMS, IN_THE_CLEAR), None),
        bounds=inner.pair("bounds", None),
        feature_bound=inner.number("feature_bound", None, above=0.0),
        max_rows=inner.count("max_rows", None),
        lower=inner.number("lower", None, above=0.0),
        constants_share=inner.number("constants_share", None, above=0.0, below=1.0),
        clip=inner.number("clip", None, above=0.0),
        max_contributions=inner.count("max_contributions", None),
        noise_multiplier=inner.number("noise_multiplier", None, above=0.0),
    )


def written(privacy: PrivacySettings) -> dict[str, Any]:
    """Return the keys of the table `privacy` with their values; None for absent ones."""
    return {name: getattr(privacy, name) for name in _KEYS}


def check(table: CheckedTable, plan: Plan) -> None:
    """Refuse what is right by itself and wrong together, with the walk or with itself."""
    privacy = plan.privacy
    if privacy is None:
        if plan.reveals_rows:
            raise table.error(
                "privacy", f"is missing: the {plan.walk} walk tells neighbours L_i. Say epsilon "
                f'and delta for the whole, or mechanism = "{IN_THE_CLEAR}" if L_i and the model '
                "are no secrets.",
            )  # fmt: skip
        return
    inner = table.table("privacy")
    if privacy.epsilon is None:
        _check_open(inner, privacy, plan)
        return
    if privacy.mechanism == IN_THE_CLEAR:
        raise inner.error(
            "mechanism", f'"{IN_THE_CLEAR}" tells L_i as it is: no epsilon can be claimed. Leave '
            "out epsilon, or use the uniform walk, which tells nothing of L_i.",
        )  # fmt: skip
    _check_model(inner, privacy, plan)
    _check_constants(inner, privacy, plan)


def _check_open(inner: CheckedTable, privacy: PrivacySettings, plan: Plan) -> None:
    """Refuse a plan without ε that does not say of what would be noisy that it is in the clear."""
    said = IN_THE_CLEAR in (privacy.model, privacy.mechanism)
    if not said or (plan.reveals_rows and privacy.mechanism != IN_THE_CLEAR):
        raise inner.error(
            "epsilon", "is missing: the total for all that leaves a node because of its rows. "
            "Without one nothing is protected; say so with "
            f'{"mechanism" if plan.reveals_rows else "model"} = "{IN_THE_CLEAR}".',
        )  # fmt: skip
    _refuse(inner, _OF_THE_NOISE, "needs an epsilon: without one nothing is protected.")


def _refuse(inner: CheckedTable, names: Iterable[str], problem: str) -> None:
    """Raise an error for the first of these keys that is present."""
    for name in names:
        if name in inner:
            raise inner.error(name, problem)


def _check_model(inner: CheckedTable, privacy: PrivacySettings, plan: Plan) -> None:
    if privacy.model == IN_THE_CLEAR:
        if not plan.reveals_rows:
            raise inner.error(
                "model", f'"{IN_THE_CLEAR}" with the {plan.walk} walk, which tells nothing else: '
                "epsilon would protect nothing. Leave out one of them.",
            )  # fmt: skip
        _refuse(inner, _OF_THE_NOISE, f'is about noise on the model, which is "{IN_THE_CLEAR}".')
        return
    if privacy.unit == "rows" and plan.batch is not None:
        raise inner.error(
            "protect", '= "rows" needs all rows of a node in a visit: a mini-batch may hold one of '
            'them several times. Leave out batch, or protect = "node".',
        )  # fmt: skip
    length = _facts(plan).public_length(_completed(plan), plan.intercept)
    if privacy.clip is None and length is None:
        raise inner.error(
            "clip", "does not follow from public facts: give a centre and a spread, or a range, "
            "for each column ([columns]), a feature_bound, or the clip itself.",
        )  # fmt: skip


def check_target(plan: Plan, error: type[ValueError]) -> None:
    """Refuse ε for targets that are numbers without their public scale, which the noise needs."""
    privacy = plan.privacy
    if privacy is None or not privacy.protects_model or plan.loss.takes != "number":
        return
    if plan.target_scale is None:
        raise error(
            f"target_scale is missing: epsilon = {privacy.epsilon:g} for the number "
            f"{plan.target!r} needs its public centre and spread, for the noise is made for "
            "targets of spread 1. "
            "Write target_scale = { centre = …, spread = … }: a typical target, and how far "
            "targets typically are from it, both known without looking at the rows."
        )


def _check_constants(inner: CheckedTable, privacy: PrivacySettings, plan: Plan) -> None:
    if privacy.unit == "rows" and plan.rows is None:
        raise inner.error(
            "protect", '= "rows" needs the public number of rows of all nodes together: rows = …'
        )
    if not plan.reveals_rows:
        problem = f"is about telling L_i, which the {plan.walk} walk does not: leave it."
        _refuse(inner, ("mechanism", "bounds", "lower", "constants_share"), problem)
        return
    if privacy.unit == "rows":
        _refuse(inner, ("mechanism", "bounds", "max_rows", "lower"), _ROWS_NEED_NONE)
        if privacy.feature_bound is None:
            raise inner.error(
                "feature_bound", f"is missing: the {plan.walk} walk tells L_i, which a row moves "
                "by no more than its length squared.",
            )  # fmt: skip
        return
    if privacy.mechanism is None:
        raise inner.error(
            "mechanism", f"is missing: L_i is told by one of {', '.join(MECHANISMS)}."
        )
    if (privacy.bounds is None) == (privacy.feature_bound is None):
        raise inner.error("bounds", "or feature_bound must be given, and not both.")
    if privacy.bounds is not None and privacy.lower is not None:
        raise inner.error("lower", "goes with feature_bound; the bounds have their own lower end.")
    if privacy.feature_bound is not None and privacy.max_rows is None:
        raise inner.error("max_rows", "is missing: the bounds need a public cap on a node's rows.")
    try:
        bounds = public_bounds(plan)
    except ValueError as error:
        raise inner.error("", f"gives no public bounds: {error}") from None
    if bounds is not None and bounds[0] <= 0:
        raise inner.error("bounds", f"must be positive; they are {list(bounds)}.")


def public_bounds(plan: Plan) -> tuple[float, float] | None:
    """The bounds of L_i for protect "node"; None where nothing is released under them."""
    privacy = plan.privacy
    if (
        privacy is None
        or privacy.epsilon is None
        or not plan.reveals_rows
        or privacy.unit != "node"
    ):
        return None
    if privacy.bounds is not None:
        return privacy.bounds
    from walklearn.privacy.mechanisms.bounds import smoothness_bounds

    assert privacy.feature_bound is not None
    return smoothness_bounds(
        plan.loss, plan.penalty, plan.nodes, privacy.feature_bound, privacy.max_rows or 1,
        plan.aggregate, plan.intercept, privacy.lower,
        plan.rows if plan.aggregate == "mean" else None,
    )  # fmt: skip


def mechanism(plan: Plan) -> Mechanism | None:
    """What L_i is told by, calibrated; None where it is not told, or in the clear."""
    privacy = plan.privacy
    if privacy is None or privacy.epsilon is None or not plan.reveals_rows:
        return None
    epsilon, delta = _for_the_constants(plan, privacy)
    if privacy.unit == "rows":
        from walklearn.privacy.mechanisms.row_gaussian import row_release

        assert privacy.feature_bound is not None
        assert plan.rows is not None
        return row_release(
            plan.loss, epsilon=epsilon, delta=delta, nodes=plan.nodes,
            feature_bound=privacy.feature_bound, total_rows=float(plan.rows), penalty=plan.penalty,
            aggregate=plan.aggregate, intercept=plan.intercept, features=plan.dimension,
        )  # fmt: skip
    from walklearn.privacy.mechanisms.calibration import calibrate

    bounds = public_bounds(plan)
    assert privacy.mechanism is not None
    assert bounds is not None
    return calibrate(privacy.mechanism, epsilon=epsilon, delta=delta, bounds=bounds)


def _for_the_constants(plan: Plan, privacy: PrivacySettings) -> tuple[float, float]:
    """The constants' share of (ε, δ), or all of it where nothing is spent on the model."""
    allotted = budget_plan(plan)
    if allotted is not None and allotted.constants is not None:
        return allotted.constants
    assert privacy.epsilon is not None
    assert privacy.delta is not None
    return privacy.epsilon, privacy.delta


def budget_plan(plan: Plan) -> BudgetPlan | None:
    """How the total is spent; None where the model is not protected."""
    privacy = plan.privacy
    if privacy is None or not privacy.protects_model:
        return None
    from walklearn.privacy.accounting.budget import plan_budget

    assert plan.step_size is not None  # an update that finds its own is refused with privacy
    return plan_budget(
        _completed(plan), _facts(plan), plan.training_loss, intercept=plan.intercept,
        aggregate=plan.aggregate if plan.rows is not None else "mean",
        reveals_rows=plan.reveals_rows,
        step=plan.step_size.constant, updates=plan.updates,
    )  # fmt: skip


def _facts(plan: Plan) -> PublicFacts:
    """Return the public facts that a plan declares."""
    length = declared_lengths(plan.encoding)["row_length"]
    return PublicFacts(plan.nodes, plan.rows, plan.encoding.feature_count, length)


def _completed(plan: Plan) -> PrivacySettings:
    """Return the settings with the bound on the length of a row that the columns declare."""
    assert plan.privacy is not None
    lengths = declared_lengths(plan.encoding, feature_bound=plan.privacy.feature_bound)
    return replace(plan.privacy, feature_bound=lengths["feature_bound"])


def claim_of(content: Mapping[str, Any]) -> Claim:
    """Return the claim that a plan's `privacy` makes, from plain values.

    >>> claim_of({"protect": "rows", "epsilon": 3.0, "delta": 1e-5}).unit
    'rows'
    >>> claim_of({"epsilon": 3.0, "delta": 1e-5, "model": "in the clear"}).is_private
    False
    """
    if "epsilon" not in content or content.get("model") == IN_THE_CLEAR:
        return Claim(math.inf, 0.0, "rows")
    return Claim(content["epsilon"], content["delta"], content.get("protect", "rows"))
