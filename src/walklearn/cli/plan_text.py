"""A plan as a text to agree on, and what it comes to in plain words."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from walklearn.objectives.linear.domains import Everywhere
from walklearn.privacy.mechanisms.description import IN_THE_CLEAR, UNPROTECTED_MODEL
from walklearn.tables.schema import toml_key, written_column
from walklearn.walks import WALKS
from walklearn.wording import either, often, plural

if TYPE_CHECKING:
    from walklearn.fitting.plan import FitPlan
    from walklearn.node.agreement.plan import Plan
    from walklearn.tables.encoding import Encoding
    from walklearn.tables.target_scale import TargetScale

# With memory so many updates left a gap f(w) − f* of at most 5e-6 on breast cancer data with 10 and
# with 30 features, diabetes and digits, over 2, 5, 20 and 100 nodes (columns of spread 1, penalty
# 0.001; a smaller one needs more). L̂ falls slowly on few nodes: hence a least number for them.
VISITS, MIN_UPDATES = 400, 5000
FEW_VISITS = 20
MANY_NODES = 6  # from here on a roster saves work


def default_updates(nodes: int) -> int:
    """The updates of a plan with memory, where nobody says how many.

    >>> default_updates(5), default_updates(100)
    (5000, 40000)
    """
    return max(VISITS * nodes, MIN_UPDATES)


def text_of(
    fit: FitPlan,
    encoding: Encoding,
    options: Mapping[str, Any],
    classes: Sequence[str] | None,
    target_scale: TargetScale | None,
) -> str:
    """The plan as TOML, with a word on each choice."""
    features = [column.name for column in encoding.columns]
    lines = [
        "# What everybody who takes part agrees on: give all of them this same file.",
        "# walklearn plan check explains it; docs/network.md has every key.",
        "version = 2",
        f"name = {_toml(options['name'])}",
        f"nodes = {fit.graph.node_count}",
        f"rows = {fit.facts.rows}  # of all nodes together, about; public",
        "",
        f"features = {_in_lines(features)}",
        f"target = {_toml(options['target'])}",
        *([f"classes = {_toml(list(classes))}"] if classes is not None else []),
        *_target_scale(target_scale),
        f"loss = {_toml(fit.loss.name)}",
        'aggregate = "mean"  # every row counts the same, whoever has it',
        f"penalty = {fit.penalty!r}",
        "intercept = true",
        "",
        *_walk(fit, options["updates"]),
        *(
            [f"roster_signer = {_toml(options['roster_signer'])}"]
            if options["roster_signer"]
            else []
        ),
        *_privacy(fit),
        *_time_limits(options["slowest_answer"]),
    ]
    for column in encoding.columns:
        lines += ["", f"[columns.{toml_key(column.name)}]"]
        lines += [f"{key} = {_toml(value)}" for key, value in written_column(column).items()]
    return "\n".join(lines) + "\n"


def _target_scale(scale: TargetScale | None) -> list[str]:
    if scale is None:
        return []
    inner = f"{{ centre = {scale.centre!r}, spread = {scale.spread!r} }}"
    return [f"target_scale = {inner}  # public; nodes train on (target - centre) / spread"]


def _walk(fit: FitPlan, updates: int | None) -> list[str]:
    """How the token walks, and what a visit does."""
    nodes, step = fit.graph.node_count, fit.step_size
    lines = [f"walk = {_toml(WALKS.name_of(fit.walk))}", f"laziness = {fit.laziness!r}"]
    if step is None:
        updates = updates or default_updates(nodes)
        return [
            'update = "saga"  # goes to the minimiser itself, and finds its step',
            f"updates = {updates}  # of the token: {_short(updates / nodes)} for each node",
            *lines,
        ]
    return [
        'update = "sgd"',
        f"updates = {fit.stop.steps}  # of the token, limited by the noise",
        f"step_size = {{ constant = {step.constant:.6g}, exponent = {step.exponent:g} }}",
        f"average = {_toml(fit.stop.average != 'none')}  # under noise the last model is the best",
        *lines,
    ]


def _privacy(fit: FitPlan) -> list[str]:
    if fit.noise is None:
        return ["", "[privacy]", f"model = {_toml(IN_THE_CLEAR)}  # unprotected: ε = ∞"]
    return [
        "",
        "[privacy]  # clip and noise follow from public facts",
        f"protect = {_toml(fit.budget.unit)}",
        f"epsilon = {fit.budget.epsilon!r}  # the total for everything that leaves a node",
        f"delta = {fit.budget.delta!r}",
        f"max_contributions = {fit.noise.max_contributions}  # of each node to the model",
    ]


def _short(number: float) -> str:
    return f"{number:,.0f}" if number >= 100 else f"{number:.3g}"


def _time_limits(slowest_answer: float | None) -> list[str]:
    """Waits that are long enough for whoever takes so long to answer; left out, nodes measure."""
    if slowest_answer is None:
        return []
    wait = max(2.0, 5.0 * slowest_answer)
    return [
        "",
        "[time_limits]",
        f"handover_timeout_seconds = {wait!r}",
        f"reclaim_after_seconds = {2 * wait!r}",
        f"resume_after_seconds = {4 * wait!r}",
    ]


def _toml(value: Any) -> str:
    """A text, a number or a list of them; JSON writes these as TOML does."""
    return json.dumps(value, ensure_ascii=False)


def _in_lines(names: Sequence[str]) -> str:
    """A list of names as TOML; where they are many, with a line for each."""
    short = _toml(list(names))
    long = "".join(f"\n    {_toml(name)}," for name in names)
    return short if len(short) <= 80 else f"[{long}\n]"


def explained(plan: Plan) -> list[tuple[str, str]]:
    """What the plan comes to, topic by topic."""
    what = "a number" if plan.classes is None else either(plan.classes)
    features = plan.encoding.feature_count
    visits = plan.updates / plan.nodes
    rows = "" if plan.rows is None else f" with {plural(plan.rows, 'row')}"
    numbers = plan.size * (1 if plan.memory is None and not plan.average else 2)
    return [
        ("who", f"{plural(plan.nodes, 'node')}{rows}"),
        ("learns", f"{plan.target!r}, {what}, from {plural(len(plan.features), 'column')} "
         f"({plural(features, 'feature')}): {plan.loss.name} loss, penalty {plan.penalty:g}"),
        ("walk", f"{plan.walk}{f', laziness {plan.laziness:g}' if plan.laziness else ''}; "
         f"{plural(plan.updates, 'update')}, about {_short(visits)} at each node"),
        ("visit", _visit(plan)),
        ("token", f"{numbers:,} numbers, {8 * numbers:,} bytes a message"),
        ("private", _private(plan)),
        ("time", _time(plan)),
    ]  # fmt: skip


def _visit(plan: Plan) -> str:
    if plan.memory is not None:
        return (
            f"{plan.update}: the node remembers its last gradients, so the walk goes to the "
            "minimiser itself, not only near it; the step finds itself"
        )
    assert plan.step_size is not None
    step = plan.step_size
    size = f"{step.constant:.3g}" + (f" / k^{step.exponent:g}" if step.exponent else "")
    rows = "all its rows" if plan.batch is None else f"{plan.batch} of its rows"
    return f"sgd: a gradient step of size {size} on {rows}"


def _private(plan: Plan) -> str:
    from walklearn.privacy.accounting.budget import about_noise

    allotted = plan.budget_plan
    if allotted is None:
        accept = "Each owner accepts this with walklearn node init --accept-unprotected."
        return f"{plan.claim}. {UNPROTECTED_MODEL} {accept}"
    noise = allotted.noise
    return (
        f"{plan.claim}. A gradient is clipped to {noise.clip:.3g} and gets noise of "
        f"{noise.noise_multiplier:.3g} times that; a node's rows influence the "
        f"model at most {often(noise.max_contributions)}, then it leaves the model unchanged. "
        f"{about_noise(allotted)}"
    )


def _time(plan: Plan) -> str:
    limits = plan.time_limits
    given = {
        "an answer is awaited for": limits.handover_timeout_seconds,
        "a sender goes on without it after": limits.reclaim_after_seconds,
        "a walk that nobody sees move is taken for lost after": limits.resume_after_seconds,
    }
    said = [f"{what} {seconds:g} s" for what, seconds in given.items() if seconds]
    if limits.resume_after_seconds == 0.0:
        said.append("a walk is never taken for lost")
    if len(said) < len(given):
        said.append("nodes measure how fast neighbours answer, and wait several times as long")
    return "; ".join(said)


def notes(plan: Plan) -> list[str]:
    """Notes on choices that are allowed and that the reader may not have meant."""
    found = []
    if plan.updates < FEW_VISITS * plan.nodes:
        found.append(
            f"{plan.updates} updates are about {plan.updates / plan.nodes:.2g} visits of each of "
            f"{plan.nodes} nodes: the model may be far from done. Raise updates."
        )
    if not plan.privacy.protects_model and not plan.reveals_rows and plan.memory is None:
        found.append(
            'nothing is protected, so visits may remember: with update = "saga" and without '
            "step_size the walk goes to the minimiser itself, not only near it."
        )
    plain = [c.name for c in plan.encoding.columns if c.categories is None and c.as_it_is]
    if plain:
        found.append(
            f"{len(plain)} columns ({', '.join(plain[:3])}{', …' if plain[3:] else ''}) are taken "
            "as they are: if they are not of one size, declare a centre and spread of each."
        )
    if plan.roster_signer is None and plan.nodes > MANY_NODES:
        found.append(
            f"among {plan.nodes} nodes a roster saves work: walklearn node roster new prints a "
            "line roster_signer = … for the plan."
        )
    if plan.penalty == 0.0 and isinstance(plan.domain, Everywhere):
        found.append(
            "without a penalty a model that separates the classes grows for ever: penalty = 0.001."
        )
    return found
