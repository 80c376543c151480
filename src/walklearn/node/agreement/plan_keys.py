"""The keys of a plan: reading, writing, and checks of keys that exclude each other."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import asdict, dataclass, fields
from pathlib import Path
from typing import TYPE_CHECKING, Any

from walklearn.checks import is_number
from walklearn.files.checked_table import CheckedTable
from walklearn.files.named_settings import read_named, written
from walklearn.objectives.linear.domains import DOMAINS, Everywhere
from walklearn.objectives.linear.losses import LOSSES
from walklearn.privacy.mechanisms import MECHANISMS
from walklearn.privacy.mechanisms.description import IN_THE_CLEAR
from walklearn.privacy.settings import PrivacySettings
from walklearn.registry import Registry
from walklearn.tables.schema import OTHERS, Schema, column_to_dict, from_rows_message
from walklearn.tables.target_scale import TargetScale
from walklearn.updates.step_sizes import ConstantStep, PowerStep, StepSize
from walklearn.updates.update import UPDATES
from walklearn.walks import WALKS, Metropolis

if TYPE_CHECKING:
    from walklearn.node.agreement.plan import Plan

VERSION = 2
UPDATES_OF_NODES = ("sgd", "saga")  # messages have fields for these

_NOISE_KEYS = ("clip", "max_contributions", "noise_multiplier", "constants_share")
_NOT_KEYS = ("noise", "unit")  # fields of PrivacySettings: by hand, and the value of protect
_PRIVACY_KEYS = ["protect", *(f.name for f in fields(PrivacySettings) if f.name not in _NOT_KEYS)]

_SIGNER = "the 64 digits that `walklearn node roster new` prints"


@dataclass(frozen=True)
class TimeLimits:
    """Timeouts of a node, in seconds; None means several times the measured answer time.

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
        "domain": read_named(table, "domain", DOMAINS) if "domain" in table else Everywhere(),
        "update": _part_of_nodes(table, "update", UPDATES, UPDATES_OF_NODES, "sgd"),
        "step_size": _step_size(table),
        "updates": table.count("updates"),
        "average": table.flag("average", True),
        "batch": table.count("batch", None),
        "walk": _part_of_nodes(table, "walk", WALKS, _walks(table.get("walk")), "uniform"),
        "laziness": table.number("laziness", 0.0, minimum=0.0, below=1.0),
        "privacy": _privacy(table),
        "roster_signer": table.value("roster_signer", None, wanted=_SIGNER, fits=_is_fingerprint),
        "time_limits": _time_limits(table),
    }
    content["loss"] = read_named(table, "loss", LOSSES).for_classes(len(content["classes"] or ()))
    return content | _columns_and_target(table)


def write_all(plan: Plan) -> dict[str, Any]:
    """Return the plan as plain values that `read_all` reads, without keys that are None."""
    content = {item.name: getattr(plan, item.name) for item in fields(plan)}
    content["loss"] = written(plan.loss, LOSSES)
    content["domain"] = written(plan.domain, DOMAINS)
    content["columns"] = {column.name: column_to_dict(column) for column in plan.columns} or None
    scale = plan.target_scale
    content["target_scale"] = scale and {"centre": scale.centre, "spread": scale.spread}
    steps = plan.step_size
    content["step_size"] = steps and {"constant": steps.constant, "exponent": steps.exponent}
    privacy = {name: getattr(plan.privacy, name) for name in _PRIVACY_KEYS}
    content["privacy"] = None if plan.privacy == PrivacySettings() else _plain(privacy)
    content["time_limits"] = _plain(asdict(plan.time_limits))
    return _plain(content)


def check_together(table: CheckedTable, plan: Plan) -> None:
    """Refuse keys that exclude each other, and keys whose companion is missing."""
    wrong = _mistakes_of_privacy(plan, table.get("privacy"))
    for key, problem in (*_mistakes(table, plan), *wrong):
        raise table.error(key, problem)
    with table.name_errors("privacy"):
        _ = plan.bounds
    if plan.target_scale is not None:
        with table.name_errors("target_scale"):
            plan.target_scale.check_intercept(plan.intercept, "Write intercept = true")


def _mistakes(table: CheckedTable, plan: Plan) -> Iterator[tuple[str, str]]:
    """Yield keys with problems, apart from privacy."""
    if plan.target in plan.features:
        yield "target", f'"{plan.target}" is also one of the features.'
    for column in plan.columns:
        if column.name not in plan.features:
            yield f"columns.{column.name}", "is not one of the features."
    if plan.aggregate == "mean" and plan.rows is None:
        yield "rows", 'is missing: aggregate "mean" divides by the rows of all nodes.'
    if plan.aggregate != "mean" and plan.rows is not None and "privacy" not in table:
        yield "rows", f'is for aggregate "mean" or for [privacy], not for "{plan.aggregate}" alone.'
    if plan.memory is None and plan.step_size is None:
        yield "step_size", "is missing: { constant = … } of c / k^0.75."
    if plan.memory is not None and plan.step_size is not None:
        yield "step_size", f"must be left out: {plan.update} finds its own."
    if plan.memory is not None and (plan.reveals_rows or plan.privacy.asks):
        carried = "stores gradients and curvature, which the token would carry unprotected"
        yield "update", f'"{plan.update}" {carried}. With privacy use "sgd".'
    takes, classes = plan.loss.takes, plan.classes or ()
    if takes == "sign" and len(classes) != 2:
        yield "classes", "must be two texts for this loss: the class of −1, then +1."
    if takes == "class" and len(classes) < 2:
        yield "classes", f"must be two or more texts for the loss {plan.loss.name}."
    if takes == "number" and plan.classes is not None:
        yield "classes", "must be left out for this loss, whose target is a number."
    if takes != "number" and plan.target_scale is not None:
        yield "target_scale", "is for targets that are numbers, not for classes."


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


def _mistakes_of_privacy(plan: Plan, given: Any) -> Iterator[tuple[str, str]]:
    """Yield keys with problems among the settings of privacy; given: its table, if there is one."""
    privacy, reveals, is_for_rows = plan.privacy, plan.reveals_rows, plan.privacy.unit == "rows"
    unused: dict[str, str] = {}
    if not privacy.protects_model:
        unused |= dict.fromkeys(_NOISE_KEYS, "noise on the model, which is unprotected")
    if privacy.epsilon is None:
        accepted = (privacy.mechanism, None if reveals else privacy.model)
        if (reveals or given is not None) and IN_THE_CLEAR not in accepted:
            yield (
                "privacy.epsilon",
                "is missing. Give the total ε and δ for everything that leaves a node because of "
                "its rows, or accept that nothing is protected: "
                f'{"mechanism" if reveals else "model"} = "{IN_THE_CLEAR}".',
            )  # fmt: skip
    elif privacy.mechanism == IN_THE_CLEAR or (privacy.model and not reveals):
        shared = "L_i unprotected" if reveals else "only the model, which is unprotected"
        yield (
            "privacy.epsilon",
            f"protects nothing, because the {plan.walk} walk discloses {shared}. Leave out "
            f'epsilon, or "{IN_THE_CLEAR}".',
        )  # fmt: skip
    elif not reveals:
        keys = ("mechanism", "bounds", "lower", "constants_share")
        unused |= dict.fromkeys(keys, f"a walk that discloses L_i, unlike {plan.walk}")
    elif is_for_rows:
        why = 'protect = "node": for rows, Gaussian noise on L_i needs a feature_bound only'
        unused |= dict.fromkeys(("mechanism", "bounds", "max_rows", "lower"), why)
    elif privacy.bounds is not None:
        unused |= dict.fromkeys(("feature_bound", "lower"), "a plan without bounds of L_i")
    for key, why in unused.items():
        if key in (given or ()):
            yield f"privacy.{key}", f"is for {why}. Leave it out."
    if privacy.epsilon is None:
        return
    if is_for_rows and plan.rows is None:
        yield "rows", 'is missing: protect = "rows" needs the public number of rows of all nodes.'
    if privacy.model is None and plan.loss.takes == "number" and plan.target_scale is None:
        yield (
            "target_scale",
            "is missing: epsilon needs the public centre and spread of a target that is a number, "
            "such as { centre = 150, spread = 80 }: a typical target and the typical distance "
            "from it, known without looking at the rows.",
        )  # fmt: skip
    if reveals and privacy.feature_bound is None and privacy.bounds is None:
        yield "privacy.feature_bound", "is missing: the bounds of L_i depend on it."
    if reveals and not is_for_rows and privacy.max_rows is None and privacy.bounds is None:
        yield "privacy.max_rows", "is missing: the bounds of L_i depend on it."
    if reveals and not is_for_rows and privacy.mechanism is None:
        yield "privacy.mechanism", f"is missing. Choose one of {', '.join(MECHANISMS)} for L_i."
    if privacy.protects_model and is_for_rows and plan.batch is not None:
        yield (
            "batch",
            'may draw a row several times in a visit, which noise for protect = "rows" does not '
            'cover. Leave it out, or use protect = "node".',
        )  # fmt: skip


def _columns_and_target(table: CheckedTable) -> dict[str, Any]:
    """Read `columns`, a table or the path of a schema, and `target_scale` or the target's entry."""
    features, target = table.labels("features"), table.label("target")
    if isinstance(table.get("columns"), str):
        path = Path(table.source.name).parent / table["columns"]
        schema = Schema.of_table(CheckedTable.read(path, table.source.error))
    else:
        schema = Schema.of_table(table.table("columns", CheckedTable({})))
    if schema.from_rows:
        raise table.error("columns", f": {from_rows_message(schema)}")
    scale = None
    if (inner := table.table("target_scale", None)) is not None:
        inner.only(("centre", "spread"), "target_scale")
        scale = TargetScale(inner.number("centre"), inner.number("spread", above=0.0))
    elif target not in features:  # otherwise it is refused later
        with table.name_errors("columns"):
            scale = schema.target_scale(target)
    if scale is not None:
        schema = schema.without(target)
    named = [name for name in sorted(schema.columns) if name != OTHERS]
    if OTHERS in schema.columns:
        named += sorted(set(features) - set(named))
    declared = tuple(column for name in named if (column := schema.of_column(name)) is not None)
    return {"columns": declared, "target_scale": scale}


def _part_of_nodes(
    table: CheckedTable, key: str, parts: Registry[Any], allowed: Sequence[str], default: str
) -> str:
    """Read the name of a walk or an update; refuse those that only simulations can run."""
    name = table.get(key)
    if isinstance(name, str) and name in parts and name not in allowed:
        choices = ", ".join(f'"{each}"' for each in allowed)
        raise table.error(
            key, f'= "{name}" runs in simulations and estimators, not on nodes. Use {choices}.'
        )
    return table.choice(key, allowed, default)


def _walks(also: object) -> list[str]:
    """Return the names of the walks that need only local knowledge."""
    walks: Registry[Any] = WALKS
    return [name for name in walks.names_of(Metropolis, also) if walks[name].is_local()]


def _step_size(table: CheckedTable) -> StepSize | None:
    inner = table.table("step_size", None)
    if inner is None:
        return None
    inner.only(("constant", "exponent"), "a step size")
    constant = inner.number("constant", above=0.0)
    exponent = inner.value(
        "exponent", 0.75, wanted="0, or between 0.5 and 1 as the theorems need",
        fits=lambda value: is_number(value) and (value == 0.0 or 0.5 < value < 1.0),
    )  # fmt: skip
    return PowerStep(constant, float(exponent)) if exponent else ConstantStep(constant)


def _time_limits(table: CheckedTable) -> TimeLimits:
    inner = table.table("time_limits", CheckedTable({}))
    defaults = asdict(TimeLimits())
    inner.only(defaults, "time_limits")
    resume = inner.number("resume_after_seconds", defaults.pop("resume_after_seconds"), minimum=0.0)
    others = {name: inner.number(name, default, above=0.0) for name, default in defaults.items()}
    return TimeLimits(resume_after_seconds=resume, **others)


def _is_fingerprint(value: object) -> bool:
    return isinstance(value, str) and re.fullmatch(r"[0-9a-f]{64}", value) is not None


def _plain(content: dict[str, Any]) -> dict[str, Any]:
    """Return the values that are not None; tuples as lists, as JSON and TOML return them."""
    return {
        key: list(value) if isinstance(value, tuple) else value
        for key, value in content.items()
        if value is not None
    }
