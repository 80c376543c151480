"""The text of a plan, and an explanation of it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from walklearn.files.checked_table import toml_text
from walklearn.objectives.linear.domains import Everywhere
from walklearn.privacy.mechanisms.description import IN_THE_CLEAR, UNPROTECTED_MODEL
from walklearn.tables.schema import column_to_dict, toml_key
from walklearn.walks import WALKS
from walklearn.wording import format_times, join_choices, plural

if TYPE_CHECKING:
    from walklearn.fitting.plan import FitPlan
    from walklearn.node.agreement.plan import Plan
    from walklearn.tables.encoding import Encoding
    from walklearn.tables.target_scale import TargetScale

# With memory, this many updates left a gap f(w) − f* of at most 5e-6 on breast cancer data (10 and
# 30 features), diabetes and digits, over 2, 5, 20 and 100 nodes (columns of spread 1, penalty
# 0.001; a smaller penalty needs more). On few nodes L̂ falls slowly, so there is a minimum.
VISITS_PER_NODE, MIN_UPDATES = 400, 5000
MIN_VISITS = 20  # fewer visits per node get a note
MANY_NODES = 6  # with more nodes a roster saves work
_HEADER = """\
# The plan that all nodes share: give this file to each of them.
# `walklearn plan check` explains it; docs/network.md lists every key.
"""
_COMMENTS = {
    "rows": "of all nodes together, approximately; public",
    "target_scale": "public; nodes train on (target - centre) / spread",
    "aggregate": "every row has the same weight",
    "updates": "in total, over all nodes",
    "average": "with noise, the last model is better than an average",
    "model": "unprotected: ε = ∞",
    "epsilon": "the total for everything that leaves a node; clip and noise follow",
    "max_contributions": "of each node to the model",
}


def default_updates(nodes: int) -> int:
    """Return the updates of a plan with memory.

    >>> default_updates(5), default_updates(100)
    (5000, 40000)
    """
    return max(VISITS_PER_NODE * nodes, MIN_UPDATES)


def text_of(
    fit: FitPlan,
    encoding: Encoding,
    options: Mapping[str, Any],
    classes: Sequence[str] | None,
    scale: TargetScale | None,
) -> str:
    """Return the plan as TOML, with comments."""
    nodes, step, total, updates = fit.graph.node_count, fit.step_size, fit.budget, fit.stop.steps
    wait = options["slowest_answer"] and max(2.0, 5.0 * options["slowest_answer"])
    tables: dict[str, dict[str, Any]] = {
        "": {
            "version": 2,
            "name": options["name"],
            "nodes": nodes,
            "rows": fit.facts.rows,
            "features": [column.name for column in encoding.columns],
            "target": options["target"],
            "classes": classes,
            "target_scale": scale and {"centre": scale.centre, "spread": scale.spread},
            "loss": fit.loss.name,
            "aggregate": "mean",
            "penalty": fit.penalty,
            "intercept": True,
            "update": "saga" if step is None else "sgd",
            "updates": (options["updates"] or default_updates(nodes)) if step is None else updates,
            "step_size": step
            and {"constant": float(f"{step.constant:.6g}"), "exponent": step.exponent},
            "average": None if step is None else fit.stop.average != "none",
            "walk": WALKS.name_of(fit.walk),
            "laziness": fit.laziness,
            "roster_signer": options["roster_signer"],
        },
        "privacy": {"model": IN_THE_CLEAR}
        if fit.noise is None
        else {
            "protect": total.unit,
            "epsilon": total.epsilon,
            "delta": total.delta,
            "max_contributions": fit.noise.max_contributions,
        },
        "time_limits": wait
        and {
            "handover_timeout_seconds": wait,
            "reclaim_after_seconds": 2 * wait,
            "resume_after_seconds": 4 * wait,
        },
        **{f"columns.{toml_key(each.name)}": column_to_dict(each) for each in encoding.columns},
    }
    lines = [_HEADER]
    for name, table in tables.items():
        lines += [f"\n[{name}]\n"] if name and table else []
        for key, value in (table or {}).items():
            comment = "" if name.startswith("columns.") else _COMMENTS.get(key, "")
            if value is not None:
                lines.append(f"{key} = {toml_text(value)}{comment and f'  # {comment}'}\n")
    return "".join(lines)


def explanation_of(plan: Plan) -> list[tuple[str, str]]:
    """Return an explanation of the plan, topic by topic."""
    target = "a number" if plan.classes is None else join_choices(plan.classes)
    features = plural(plan.encoding.feature_count, "feature")
    columns, nodes = plural(len(plan.features), "column"), plural(plan.nodes, "node")
    numbers = plan.size * (1 if plan.memory is None and not plan.average else 2)
    lazy = f", laziness {plan.laziness:g}" if plan.laziness else ""
    return [
        ("nodes", nodes if plan.rows is None else f"{nodes} with {plural(plan.rows, 'row')}"),
        ("model", f"{plan.target!r}, {target}, from {columns} ({features}): {plan.loss.name} "
         f"loss, penalty {plan.penalty:g}"),
        ("walk", f"{plan.walk}{lazy}; {plural(plan.updates, 'update')}, about "
         f"{plan.updates / plan.nodes:,.3g} at each node"),
        ("visit", _visit(plan)),
        ("token", f"{numbers:,} numbers, {8 * numbers:,} bytes a message"),
        ("privacy", _privacy(plan)),
        ("timeouts", _timeouts(plan)),
    ]  # fmt: skip


def _visit(plan: Plan) -> str:
    if (step := plan.step_size) is None:
        return (
            f"{plan.update}: the node stores its last gradients, so the walk converges to the "
            "minimiser and finds its own step"
        )
    size = f"{step.constant:.3g}" + (f" / k^{step.exponent:g}" if step.exponent else "")
    rows = "all its rows" if plan.batch is None else f"{plan.batch} of its rows"
    return f"sgd: a gradient step of size {size} on {rows}"


def _privacy(plan: Plan) -> str:
    from walklearn.privacy.accounting.budget import about_noise

    if plan.budget_plan is None:
        accept = "Each owner accepts this with walklearn node init --accept-unprotected."
        return f"{plan.claim}. {UNPROTECTED_MODEL} {accept}"
    noise = plan.budget_plan.noise
    return (
        f"{plan.claim}. Gradients are clipped to {noise.clip:.3g}, and the noise is "
        f"{noise.noise_multiplier:.3g} times as large; a node's rows influence the model at most "
        f"{format_times(noise.max_contributions)}. {about_noise(plan.budget_plan)}"
    )


def _timeouts(plan: Plan) -> str:
    limits = plan.time_limits
    seconds = {
        "a sender waits for an answer": limits.handover_timeout_seconds,
        "it continues without the answer after": limits.reclaim_after_seconds,
        "a walk without progress is presumed lost after": limits.resume_after_seconds,
    }
    texts = [f"{what} {value:g} s" for what, value in seconds.items() if value]
    if limits.resume_after_seconds == 0.0:
        texts.append("a walk is never presumed lost")
    if len(texts) < len(seconds):
        texts.append("otherwise nodes wait several times the answer time that they measure")
    return "; ".join(texts)


def notes(plan: Plan) -> list[str]:
    """Return notes on choices that may be mistakes."""
    visits, plain = plan.updates / plan.nodes, [
        c.name for c in plan.encoding.columns if c.categories is None and c.is_identity
    ]  # fmt: skip
    is_open = not plan.privacy.protects_model and not plan.reveals_rows
    remarks = {
        f"{plan.updates} updates are about {visits:.2g} visits of each of {plan.nodes} nodes, too "
        "few for most data. Raise updates.": visits < MIN_VISITS,
        'nothing is protected, so the nodes can use update = "saga" without a step_size, which '
        "converges to the minimiser.": is_open and plan.memory is None,
        f"these columns are not scaled: {', '.join(plain[:3])}{', …' if plain[3:] else ''}. If "
        "their magnitudes differ, declare a centre and spread of each.": bool(plain),
        f"with {plan.nodes} nodes a roster saves work. Add the line roster_signer = … that "
        "`walklearn node roster new` prints.": plan.roster_signer is None
        and plan.nodes > MANY_NODES,
        "without a penalty, a model that separates the classes grows without bound. Use penalty = "
        "0.001.": plan.penalty == 0.0 and isinstance(plan.domain, Everywhere),
    }
    return [note for note, applies in remarks.items() if applies]
