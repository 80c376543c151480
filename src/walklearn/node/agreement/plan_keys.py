"""The keys of a plan: reading, writing, and checks of keys that exclude each other."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass, fields
from pathlib import Path
from typing import TYPE_CHECKING, Any

from walklearn.files.checked_table import CheckedTable, is_text
from walklearn.files.named_settings import read_named, written
from walklearn.objectives.linear.domains import DOMAINS, Domain, Everywhere
from walklearn.objectives.linear.losses import LOSSES, Loss
from walklearn.privacy.mechanisms import MECHANISMS
from walklearn.privacy.mechanisms.description import IN_THE_CLEAR
from walklearn.privacy.settings import PrivacySettings
from walklearn.registry import Registry
from walklearn.tables.encoding import Column
from walklearn.tables.schema import OTHERS, Schema, from_rows_message, written_column
from walklearn.tables.target_scale import TargetScale
from walklearn.updates.step_sizes import ConstantStep, PowerStep, StepSize
from walklearn.walks import WALKS, Metropolis

if TYPE_CHECKING:
    from walklearn.node.agreement.plan import Plan

VERSION = 2
UPDATES_OF_NODES = ("sgd", "saga")  # what the messages have room for


_NOISE_KEYS = ("clip", "max_contributions", "noise_multiplier", "constants_share")
_PRIVACY_KEYS = (
    "protect", "epsilon", "delta", "model", "mechanism", "bounds", "feature_bound", "max_rows",
    "lower", *_NOISE_KEYS,
)  # fmt: skip


@dataclass(frozen=True)
class TimeLimits:
    """Timeouts of a node, in seconds; None: several times the recently measured answer time.

    handover_timeout: for the answer to one attempt. retry_after: between attempts. reclaim_after:
    from the first attempt until the sender continues with a new generation. hello_every: between
    greetings. resume_after: until a walk without progress is presumed lost, 0 for never.
    """

    handover_timeout_seconds: float | None = None
    retry_after_seconds: float = 1.0
    reclaim_after_seconds: float | None = None
    hello_every_seconds: float | None = None
    resume_after_seconds: float | None = None


def read_all(table: CheckedTable, keys: Iterable[str]) -> dict[str, Any]:
    """Read the values of a plan's fields, and check each alone."""
    version = table.count("version", VERSION)
    if version != VERSION:
        raise table.error("version", f"is {version}, and this walklearn reads {VERSION} only.")
    table.only(keys, "a plan")
    content: dict[str, Any] = {
        "version": version,
        "name": table.name("name"),
        "nodes": table.count("nodes"),
        "features": table.labels("features"),
        "target": table.label("target"),
        "classes": table.labels("classes", None),
        "aggregate": table.choice("aggregate", ("sum", "mean", "node-mean"), "sum"),
        "rows": table.count("rows", None),
        "intercept": table.flag("intercept", False),
        "penalty": table.number("penalty", 0.0, minimum=0.0),
        "domain": _domain(table),
        "update": table.choice("update", UPDATES_OF_NODES, "sgd"),
        "step_size": _step_size(table),
        "updates": table.count("updates"),
        "average": table.flag("average", True),
        "batch": table.count("batch", None),
        "walk": table.choice("walk", _walks(table.get("walk")), "uniform"),
        "laziness": table.number("laziness", 0.0, minimum=0.0, below=1.0),
        "privacy": _privacy(table),
        "keeper": _keeper(table),
        "time_limits": _time_limits(table),
    }
    content["loss"] = _loss(table, content["classes"])
    schema = _schema(table)
    content["target_scale"] = _target_scale(table, schema)
    if content["target_scale"] is not None:
        schema = schema.without(content["target"])
    content["columns"] = _columns(table, schema)
    return content


def write_all(plan: Plan) -> dict[str, Any]:
    """Return the plan as plain values that `read_all` reads, without keys that are None."""
    content = {item.name: getattr(plan, item.name) for item in fields(plan)}
    content["loss"] = written(plan.loss, LOSSES)
    content["domain"] = written(plan.domain, DOMAINS)
    content["columns"] = {column.name: written_column(column) for column in plan.columns} or None
    scale = plan.target_scale
    content["target_scale"] = scale and {"centre": scale.centre, "spread": scale.spread}
    steps = plan.step_size
    content["step_size"] = steps and {"constant": steps.constant, "exponent": steps.exponent}
    privacy = {name: getattr(plan.privacy, name) for name in _PRIVACY_KEYS}
    content["privacy"] = None if plan.privacy == PrivacySettings() else _plain(privacy)
    content["time_limits"] = _plain(asdict(plan.time_limits))
    return _plain(content)


def check_together(table: CheckedTable, plan: Plan) -> None:
    """Refuse keys that exclude each other."""
    if plan.target in plan.features:
        raise table.error("target", f'"{plan.target}" is also one of the features.')
    for column in plan.columns:
        if column.name not in plan.features:
            raise table.error(f"columns.{column.name}", "is not one of the features.")
    if plan.aggregate == "mean" and plan.rows is None:
        raise table.error("rows", 'is missing: aggregate "mean" divides by the rows of all nodes.')
    if plan.aggregate != "mean" and plan.rows is not None and "privacy" not in table:
        raise table.error(
            "rows", f'is for aggregate "mean" or for [privacy], not for "{plan.aggregate}" alone.'
        )
    _check_update(table, plan)
    _check_classes(table, plan)
    if plan.target_scale is not None:
        if plan.loss.takes != "number":
            raise table.error("target_scale", "is for targets that are numbers, not for classes.")
        with table.explained("target_scale"):
            plan.target_scale.check_intercept(plan.intercept, "Write intercept = true")
    _check_privacy(table, plan)


def _privacy(table: CheckedTable) -> PrivacySettings:
    """Read the table `privacy`, and check each key alone."""
    inner = table.table("privacy", CheckedTable({}))
    inner.only(_PRIVACY_KEYS, "privacy")
    lengths = ("epsilon", "feature_bound", "lower", "clip", "noise_multiplier")
    given: dict[str, Any] = {name: inner.number(name, None, above=0.0) for name in lengths}
    given |= {name: inner.count(name, None) for name in ("max_rows", "max_contributions")}
    shares = ("delta", "constants_share")
    given |= {name: inner.number(name, None, above=0.0, below=1.0) for name in shares}
    for name, other in (("epsilon", "delta"), ("delta", "epsilon")):
        if given[name] is not None and given[other] is None:
            raise inner.error(other, f"is missing: {name} needs it. Give both, or neither.")
    return PrivacySettings(
        **given,
        protect=inner.choice("protect", ("rows", "node"), "rows"),  # type: ignore[arg-type]
        model=inner.choice("model", (IN_THE_CLEAR,), None),
        mechanism=inner.choice("mechanism", (*MECHANISMS, IN_THE_CLEAR), None),
        bounds=inner.pair("bounds", None),
    )


def _check_privacy(table: CheckedTable, plan: Plan) -> None:
    """Refuse settings of privacy that exclude each other, or the walk, or the target."""
    privacy, reveals = plan.privacy, plan.reveals_rows
    inner = table.table("privacy", CheckedTable({}))
    if privacy.epsilon is None:
        accepted = (privacy.mechanism, None if reveals else privacy.model)
        if (reveals or "privacy" in table) and IN_THE_CLEAR not in accepted:
            raise table.error(
                "privacy.epsilon", "is missing. Give the total ε and δ for everything that leaves "
                "a node because of its rows, or accept that nothing is protected: "
                f'{"mechanism" if reveals else "model"} = "{IN_THE_CLEAR}".',
            )  # fmt: skip
    elif privacy.mechanism == IN_THE_CLEAR or (privacy.model and not reveals):
        shared = "L_i unprotected" if reveals else "only the model, which is unprotected"
        raise inner.error(
            "epsilon", f"protects nothing, because the {plan.walk} walk discloses {shared}. Leave "
            f'out epsilon, or "{IN_THE_CLEAR}".',
        )  # fmt: skip
    for key, why in _unused_keys(plan).items():
        if key in inner:
            raise inner.error(key, f"is for {why}. Leave it out.")
    for key, why in _missing_keys(plan).items():
        raise table.error(key, f"is missing: {why}.")
    if privacy.protects_model and privacy.unit == "rows" and plan.batch is not None:
        raise table.error(
            "batch", "may draw a row several times in a visit, which the noise for "
            'protect = "rows" does not cover. Leave it out, or use protect = "node".',
        )  # fmt: skip
    with inner.explained():
        _ = plan.bounds


def _missing_keys(plan: Plan) -> dict[str, str]:
    """Missing keys that ε needs, and what they are."""
    privacy, missing = plan.privacy, dict[str, str]()
    if privacy.epsilon is None:
        return missing
    if privacy.unit == "rows" and plan.rows is None:
        missing["rows"] = 'protect = "rows" needs the public number of rows of all nodes'
    if privacy.model is None and plan.loss.takes == "number" and plan.target_scale is None:
        missing["target_scale"] = (
            "epsilon needs the public centre and spread of a target that is a number, such as "
            "{ centre = 150, spread = 80 }: a typical target and the typical distance from it, "
            "known without looking at the rows"
        )
    if not plan.reveals_rows:
        return missing
    if privacy.unit == "rows":
        needed = {"feature_bound": "a row changes L_i by at most its squared length"}
    else:
        needed = {"mechanism": f"choose one of {', '.join(MECHANISMS)} for L_i"}
        if privacy.bounds is None:
            needed["feature_bound"] = needed["max_rows"] = "the bounds of L_i depend on it"
    unset = (name for name in needed if getattr(privacy, name) is None)
    return missing | {f"privacy.{name}": needed[name] for name in unset}


def _unused_keys(plan: Plan) -> dict[str, str]:
    """Keys of the table `privacy` that would have no effect, and what they are for."""
    privacy, unused = plan.privacy, dict[str, str]()
    if not privacy.protects_model:
        unused |= dict.fromkeys(_NOISE_KEYS, "noise on the model, which is unprotected")
    if privacy.epsilon is None:
        return unused
    if not plan.reveals_rows:
        keys = ("mechanism", "bounds", "lower", "constants_share")
        return unused | dict.fromkeys(keys, f"a walk that discloses L_i, unlike {plan.walk}")
    if privacy.unit == "rows":
        return unused | dict.fromkeys(
            ("mechanism", "bounds", "max_rows", "lower"),
            'protect = "node": for rows, Gaussian noise on L_i needs a feature_bound only',
        )
    if privacy.bounds is not None:
        unused |= dict.fromkeys(("feature_bound", "lower"), "a plan without bounds of L_i")
    return unused


def _check_update(table: CheckedTable, plan: Plan) -> None:
    """Check the update: "sgd" needs a step size; one with memory needs none, and no privacy."""
    if plan.memory is None:
        if plan.step_size is None:
            raise table.error("step_size", "is missing: { constant = … } of c / k^0.75.")
        return
    if plan.step_size is not None:
        raise table.error("step_size", f"must be left out: {plan.update} finds its own.")
    if plan.reveals_rows or plan.privacy.asks:
        raise table.error(
            "update", f'"{plan.update}" stores gradients and curvature, which the token would '
            'carry unprotected. With privacy use "sgd".',
        )  # fmt: skip


def _check_classes(table: CheckedTable, plan: Plan) -> None:
    if plan.loss.takes == "sign" and len(plan.classes or ()) != 2:
        raise table.error("classes", "must be two texts for this loss: the class of −1, then +1.")
    if plan.loss.takes == "class" and len(plan.classes or ()) < 2:
        raise table.error("classes", f"must be two or more texts for the loss {plan.loss.name}.")
    if plan.loss.takes == "number" and plan.classes is not None:
        raise table.error("classes", "must be left out for this loss, whose target is a number.")


def _schema(table: CheckedTable) -> Schema:
    """Read `columns`: a table, or the path of a schema relative to the plan."""
    columns = table.get("columns", {})
    if is_text(columns):
        path = Path(table.source.name).parent / columns
        schema = Schema.of_table(CheckedTable.read(path, table.source.error))
    else:
        schema = Schema.of_table(table.table("columns", CheckedTable({})))
    if schema.from_rows:
        raise table.error("columns", f": {from_rows_message(schema)}")
    return schema


def _target_scale(table: CheckedTable, schema: Schema) -> TargetScale | None:
    """Read the target's centre and spread: `target_scale`, or the target's entry in `columns`."""
    inner = table.table("target_scale", None)
    if inner is not None:
        inner.only(("centre", "spread"), "target_scale")
        return TargetScale(inner.number("centre"), inner.number("spread", above=0.0))
    target = table.label("target")
    if target in table.labels("features"):
        return None  # refused later, with the other keys that exclude each other
    with table.explained("columns"):
        return schema.target_scale(target)


def _columns(table: CheckedTable, schema: Schema) -> tuple[Column, ...]:
    """Return the features that are not plain numbers, in the order of their names."""
    named = [name for name in sorted(schema.columns) if name != OTHERS]
    if OTHERS in schema.columns:
        named += sorted(set(table.labels("features")) - set(named))
    return tuple(column for name in named if (column := schema.of_column(name)) is not None)


def _walks(also: object) -> list[str]:
    """Names of the walks that need local knowledge only."""
    walks: Registry[Any] = WALKS
    return [name for name in walks.names_of(Metropolis, also) if walks[name].is_local()]


def _loss(table: CheckedTable, classes: tuple[str, ...] | None) -> Loss:
    if isinstance(table.get("loss"), Mapping):
        loss: Loss = read_named(table, "loss", LOSSES)
        return loss
    return LOSSES[table.choice("loss", LOSSES)]().for_classes(len(classes or ()))


def _domain(table: CheckedTable) -> Domain:
    domain: Domain = read_named(table, "domain", DOMAINS) if "domain" in table else Everywhere()
    return domain


def _step_size(table: CheckedTable) -> StepSize | None:
    inner = table.table("step_size", None)
    if inner is None:
        return None
    inner.only(("constant", "exponent"), "a step size")
    constant = inner.number("constant", above=0.0)
    exponent = inner.number("exponent", 0.75, minimum=0.0)
    if exponent == 0.0:
        return ConstantStep(constant)
    if not 0.5 < exponent < 1.0:
        raise inner.error(
            "exponent",
            f"must lie between 0.5 and 1, as the theorems need, or be 0; it is {exponent:g}.",
        )
    return PowerStep(constant, exponent)


def _keeper(table: CheckedTable) -> str | None:
    keeper: str | None = table.label("keeper", None)
    if keeper is not None and not re.fullmatch(r"[0-9a-f]{64}", keeper):
        raise table.error("keeper", "must be the 64 digits that `walklearn node book new` prints.")
    return keeper


def _time_limits(table: CheckedTable) -> TimeLimits:
    inner = table.table("time_limits", CheckedTable({}))
    defaults = asdict(TimeLimits())
    inner.only(defaults, "time_limits")
    resume = inner.number("resume_after_seconds", defaults.pop("resume_after_seconds"), minimum=0.0)
    others = {name: inner.number(name, default, above=0.0) for name, default in defaults.items()}
    return TimeLimits(resume_after_seconds=resume, **others)


def _plain(content: dict[str, Any]) -> dict[str, Any]:
    """Return the values that are not None; tuples as lists, as JSON and TOML return them."""
    return {
        key: list(value) if isinstance(value, tuple) else value
        for key, value in content.items()
        if value is not None
    }
