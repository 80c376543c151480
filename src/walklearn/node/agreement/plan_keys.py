"""The keys of a plan: how each is read from a table, written back, and what must fit together."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass, fields
from pathlib import Path
from typing import TYPE_CHECKING, Any

from walklearn.files.checked_table import CheckedTable, is_text
from walklearn.files.named_settings import read_named, written
from walklearn.node.agreement import plan_privacy
from walklearn.objectives.linear.domains import DOMAINS, Domain, Everywhere
from walklearn.objectives.linear.losses import LOSSES, Loss
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


@dataclass(frozen=True)
class TimeLimits:
    """How long to wait for what; None: several times what was measured of late.

    handover: for the answer to one attempt. retry: between attempts. reclaim: from the first
    attempt until the sender goes on with a new line. hello: between greetings. resume: until a
    walk that nobody sees move is taken for lost, 0 for never. most_updates_per_second: what a
    network can make at most; who claims more is not believed, and a faster walk is slowed to it.
    """

    handover_timeout_seconds: float | None = None
    retry_after_seconds: float = 1.0
    reclaim_after_seconds: float | None = None
    hello_every_seconds: float | None = None
    resume_after_seconds: float | None = None
    most_updates_per_second: float = 2_000.0


def read_all(table: CheckedTable, keys: Iterable[str]) -> dict[str, Any]:
    """Read the values of a plan's fields, and check each by itself."""
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
        "privacy": plan_privacy.read(table),
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
    """The plan as plain values that `read_all` reads back; keys without a value are left out."""
    content = {item.name: getattr(plan, item.name) for item in fields(plan)}
    content["loss"] = written(plan.loss, LOSSES)
    content["domain"] = written(plan.domain, DOMAINS)
    content["columns"] = {column.name: written_column(column) for column in plan.columns} or None
    scale = plan.target_scale
    content["target_scale"] = scale and {"centre": scale.centre, "spread": scale.spread}
    steps = plan.step_size
    content["step_size"] = steps and {"constant": steps.constant, "exponent": steps.exponent}
    if plan.privacy is not None:
        content["privacy"] = _plain(plan_privacy.written(plan.privacy))
    content["time_limits"] = _plain(asdict(plan.time_limits))
    return _plain(content)


def check_together(table: CheckedTable, plan: Plan) -> None:
    """Refuse keys that are right by themselves and wrong together."""
    if plan.target in plan.features:
        raise table.error("target", f'"{plan.target}" is also one of the features.')
    for column in plan.columns:
        if column.name not in plan.features:
            raise table.error(f"columns.{column.name}", "is not one of the features.")
    if plan.aggregate == "mean" and plan.rows is None:
        raise table.error("rows", 'is missing: aggregate "mean" divides by the rows of all nodes.')
    if plan.aggregate != "mean" and plan.rows is not None and plan.privacy is None:
        raise table.error(
            "rows", f'is for aggregate "mean" or for [privacy], not for "{plan.aggregate}" alone.'
        )
    _check_update(table, plan)
    _check_classes(table, plan)
    if plan.target_scale is not None:
        if plan.loss.takes != "number":
            raise table.error("target_scale", "is for targets that are numbers, not for classes.")
        try:
            plan.target_scale.check_intercept(plan.intercept, "Write intercept = true")
        except ValueError as error:
            raise table.error("target_scale", f": {error}") from None
    plan_privacy.check(table, plan)


def _check_update(table: CheckedTable, plan: Plan) -> None:
    """Check the update: the paper's needs a step size; one with memory has none, nor privacy."""
    if plan.memory is None:
        if plan.step_size is None:
            raise table.error("step_size", "is missing: { constant = … } of c / k^0.75.")
        return
    if plan.step_size is not None:
        raise table.error("step_size", f"must be left out: {plan.update} finds its own.")
    if plan.reveals_rows or (plan.privacy is not None and plan.privacy.asks):
        raise table.error(
            "update", f'"{plan.update}" remembers gradients and curvature, which the token would '
            'carry about unprotected: with privacy it must be "sgd".',
        )  # fmt: skip


def _check_classes(table: CheckedTable, plan: Plan) -> None:
    if plan.loss.takes == "sign" and len(plan.classes or ()) != 2:
        raise table.error("classes", "must be two texts for this loss: the class of −1, then +1.")
    if plan.loss.takes == "class" and len(plan.classes or ()) < 2:
        raise table.error("classes", f"must be two or more texts for the loss {plan.loss.name}.")
    if plan.loss.takes == "number" and plan.classes is not None:
        raise table.error("classes", "must be left out for this loss, whose target is a number.")


def _schema(table: CheckedTable) -> Schema:
    """Read what `columns` declares: a table, or the path of a schema beside the plan."""
    columns = table.get("columns", {})
    if is_text(columns):
        beside = Path(table.source.name).parent
        schema = Schema.of_table(CheckedTable.read(beside / columns, table.source.error))
    else:
        schema = Schema.of_table(table.table("columns", CheckedTable({})))
    if schema.from_rows:
        raise table.error("columns", f": {from_rows_message(schema)}")
    return schema


def _target_scale(table: CheckedTable, schema: Schema) -> TargetScale | None:
    """Read the target's centre and spread: their own key, or the target's entry in `columns`."""
    inner = table.table("target_scale", None)
    if inner is not None:
        inner.only(("centre", "spread"), "target_scale")
        return TargetScale(inner.number("centre"), inner.number("spread", above=0.0))
    target = table.label("target")
    if target in table.labels("features"):
        return None  # refused with the other keys that do not fit together
    try:
        return schema.target_scale(target)
    except ValueError as error:
        raise table.error("columns", f": {error}") from None


def _columns(table: CheckedTable, schema: Schema) -> tuple[Column, ...]:
    """The features that are not plain numbers, in the order of their names, as in a schema."""
    named = [name for name in sorted(schema.columns) if name != OTHERS]
    if OTHERS in schema.columns:
        named += sorted(set(table.labels("features")) - set(named))
    return tuple(column for name in named if (column := schema.of_column(name)) is not None)


def _walks(also: object) -> list[str]:
    """The walks that nodes can do, each from what it knows."""
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
    """The values without keys that have none; tuples as lists, as JSON and TOML give them back."""
    return {
        key: list(value) if isinstance(value, tuple) else value
        for key, value in content.items()
        if value is not None
    }
