"""The settings of a fit, which are checked once.

A `random_state` makes a fit reproducible, including its releases: they then protect nobody, and the
ledger says "simulated". Without it, releases come from the operating system's entropy.

>>> seeds_of(7, call=0).walk.spawn_key, seeds_of(None, call=0).simulated
((0, 1), False)
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import numpy as np

from walklearn.checks import (
    check_choice,
    check_kind,
    check_number,
    check_whole,
    is_number,
    is_whole,
    seed_error,
)
from walklearn.objectives import Aggregate
from walklearn.objectives.linear.domains import Domain
from walklearn.objectives.linear.losses import LOSSES, Loss, Softmax
from walklearn.privacy import MECHANISMS, ModelNoise, PrivacySettings
from walklearn.privacy.mechanisms.description import IN_THE_CLEAR
from walklearn.privacy.settings import declared_lengths
from walklearn.tables.encoding import Column, Encoding
from walklearn.tables.schema import Schema, from_rows_message
from walklearn.tables.target_scale import TargetScale
from walklearn.updates.sgd import Sgd
from walklearn.updates.step_choice import EXPONENT
from walklearn.updates.step_sizes import ConstantStep, PowerStep, StepSize
from walklearn.updates.update import UPDATES, Update
from walklearn.walks import WALKS, Walk
from walklearn.walks.composed import single_walks
from walklearn.walks.disclosure import check_scale, mechanism_of
from walklearn.wording import format_value, join_names

MEANS = ("tail", "all")
_CHOICES: dict[str, tuple[Any, ...]] = {
    "average": ("auto", *MEANS, "none"), "model": (None, IN_THE_CLEAR),
    "fit_intercept": (True, False), "warm_start": (True, False),
    "standardise": ("auto", True, False),
}  # fmt: skip


@dataclass(frozen=True, eq=False)
class FitRequest:
    """The settings of a fit, independent of the rows.

    laziness: None to choose it by the graph. privacy: its feature_bound includes the bound that
    the columns declare; feature_bound: the bound to which rows are shortened. columns: the columns
    of X as the schema declares them; None without a schema. target: the public centre and spread
    of a numeric target. is_private: True if something is protected; then nothing unprotected may
    depend on the rows.
    """

    walk: Walk
    graph: Any = "erdos-renyi"
    laziness: float | None = 0.0
    update: str | Update = "auto"
    step_size: StepSize | None = None
    batch: int | None = None
    average: str = "auto"
    steps: int | None = None
    max_steps: int | None = None
    tol: float | None = None
    penalty: float = 1e-3
    domain: Domain | None = None
    intercept: bool = True
    aggregate: Aggregate = "mean"
    privacy: PrivacySettings = PrivacySettings()  # noqa: RUF009 — frozen
    row_length: float | None = None
    feature_bound: float | None = None
    total_rows: float | None = None
    standardise: bool = True
    columns: tuple[Column, ...] | None = None
    target: TargetScale | None = None
    predicts_numbers: bool = False
    is_private: bool = False
    is_auto_walk: bool = False
    has_named_walk: bool = False

    @classmethod
    def of(
        cls,
        settings: Mapping[str, Any],
        columns: Sequence[str],
        target: str | None,
        predicts_numbers: bool,
    ) -> FitRequest:
        """Read the parameters of an estimator; a `ValueError` names the wrong parameter.

        columns: the names of the columns of X. target: the name of a numeric target.
        """
        given = {
            name: value.item() if isinstance(value, np.generic) else value
            for name, value in settings.items()
        }
        _check_parameters(given)
        privacy = PrivacySettings(
            given["epsilon"], given["delta"], given["protect"], model=given["model"],
            mechanism=given["mechanism"], noise=given["model_privacy"], max_rows=given["max_rows"],
        )  # fmt: skip
        _check_public_facts(given, privacy)
        schema = None if given["schema"] is None else Schema.of(given["schema"])
        scale = _target_scale(given, schema, target, predicts_numbers)
        declared = None if schema is None else _declared(schema, columns, target)
        encoding = None if declared is None else Encoding(declared)
        lengths = declared_lengths(encoding, given["row_length"], given["feature_bound"])
        undeclared = [] if schema is None else schema.undeclared(list(columns))
        if undeclared and given["epsilon"] is not None and not any(lengths.values()):
            raise ValueError(
                f"epsilon = {given['epsilon']:g} needs a public scale of every column, and the "
                f"schema declares none of {join_names(undeclared)}. Add a centre and spread, or a "
                "range, known without looking at the rows ('*' stands for all other columns)."
            )
        privacy = replace(privacy, feature_bound=lengths["feature_bound"])
        walk = walk_of(given["walk"], given["laziness"], privacy.covers_constants_alone)
        # A walk may contain earlier releases of the nodes.
        private = privacy.asks or walk.is_private or mechanism_of(walk) is not None
        if private:
            check_scale(walk)
        _check_standardise(given["standardise"], schema, private)
        hidden = privacy.hides_row_counts and given["total_rows"] is None
        same = (
            "graph", "update", "batch", "average", "steps", "max_steps", "tol",
            "penalty", "domain", "feature_bound", "total_rows",
        )  # fmt: skip
        return cls(
            walk, **{name: given[name] for name in same}, step_size=step_of(given["step_size"]),
            laziness=given["laziness"] if isinstance(given["walk"], str) else 0.0,
            intercept=bool(given["fit_intercept"]), aggregate="node-mean" if hidden else "mean",
            privacy=privacy, row_length=lengths["row_length"],
            standardise=not private and schema is None and given["standardise"] is not False,
            columns=declared, target=scale, predicts_numbers=predicts_numbers, is_private=private,
            is_auto_walk=given["walk"] == "auto", has_named_walk=isinstance(given["walk"], str),
        )  # fmt: skip

    @property
    def terms(self) -> tuple[Any, ...]:
        """The protection and the public facts it depends on, which later calls must not change."""
        facts = self.row_length, self.total_rows, self.intercept, self.target
        return self.privacy, mechanism_of(self.walk), facts


def walk_of(
    walk: str | Walk, laziness: float | None = 0.0, covers_constants_alone: bool = False
) -> Walk:
    """Return the walk with this name, or the walk itself.

    "auto" is the uniform walk, which discloses only degrees, or the weighted walk if ε covers only
    the constants L_i. With Finito, `Choices.choose_walk` replaces it.
    """
    if isinstance(walk, Walk):
        if laziness:
            raise ValueError(
                f"laziness={laziness!r} is for walks given by name. Use {type(walk).__name__}"
                f"(laziness={laziness!r})."
            )
        return walk
    name = ("weighted" if covers_constants_alone else "uniform") if walk == "auto" else walk
    kind = WALKS.get(name)
    if not (isinstance(kind, type) and issubclass(kind, Walk)) or name not in single_walks():
        names = ", ".join(single_walks())
        raise ValueError(
            f"walk must be one of auto, {names}, or a walk such as walks.Weighted(), got "
            f"{format_value(walk)}."
        )
    return kind.unbiased(laziness=laziness or 0.0)


def _declared(schema: Schema, columns: Sequence[str], target: str | None) -> tuple[Column, ...]:
    """Return the columns of X as the schema declares them; others are unchanged."""
    if target is not None and target not in columns:
        schema = schema.without(target)
    if schema.categories:
        raise ValueError(
            f"the schema declares categories of {join_names(list(schema.categories))}, and X has "
            "numbers only. Encode columns of text first (files.read_rows(..., schema=...))."
        )
    return tuple(schema.apply_to(Encoding.of_numbers(list(columns))).columns)


def _check_standardise(standardise: Any, schema: Schema | None, is_private: bool) -> None:
    """Refuse scales that come from the rows if they would leak, or if the schema declares them."""
    if is_private and standardise is True:
        raise ValueError(
            "standardise=True takes scales from the rows, which would leak. Declare public scales "
            "(schema=...), and leave standardise out."
        )
    if is_private and schema is not None and schema.from_rows:
        raise ValueError(from_rows_message(schema))
    if schema is not None and standardise is True:
        raise ValueError(
            "standardise=True takes scales from the rows, and the schema declares them. Leave one "
            "of the two out."
        )


def _target_scale(
    given: Mapping[str, Any], schema: Schema | None, target: str | None, predicts_numbers: bool
) -> TargetScale | None:
    """Return the public centre and spread of the target; None if they are not declared.

    Refuse a centre without a spread, a scale for classes, and private regression without a scale.
    """
    centre, spread = given["target_centre"], given["target_spread"]
    if (centre is None) != (spread is None):
        one, other = ("target_centre", "target_spread")[:: 1 if spread is None else -1]
        raise ValueError(f"{one} was given without {other}. Pass both.")
    is_private = given["epsilon"] is not None or given["model_privacy"] is not None
    scale = None
    if spread is not None:
        if not predicts_numbers:
            raise ValueError(
                "target_centre and target_spread are for RandomWalkRegressor. Leave them out."
            )
        centre = check_number("target_centre", centre)
        scale = TargetScale(centre, check_number("target_spread", spread, above=0.0))
    elif schema is not None and target is not None:
        scale = schema.target_scale(target)
    if scale is not None and (spread is not None or is_private):
        scale.check_intercept(bool(given["fit_intercept"]), "Pass fit_intercept=True")
    if scale is None and predicts_numbers and is_private and given["model"] is None:
        option = "model_privacy" if given["epsilon"] is None else "epsilon"
        raise ValueError(
            f"{option} for regression needs a public centre and spread of the target, because the "
            "noise is for targets of spread 1. Pass target_centre, a typical target, and "
            "target_spread, the typical deviation from it, both known without looking at the rows."
        )
    return scale


def _check_parameters(given: Mapping[str, Any]) -> None:
    """Check each parameter separately."""
    for name in ("steps", "max_steps", "batch"):
        if given[name] is not None:
            check_whole(name, given[name])
    for name in ("row_length", "feature_bound", "max_rows", "total_rows"):
        if given[name] is not None:
            check_number(name, given[name], above=0.0)
    check_number("penalty", given["penalty"], minimum=0.0)
    if given["tol"] is not None:
        check_number("tol", given["tol"], minimum=0.0)
    for name, choices in _CHOICES.items():
        check_choice(name, given[name], choices)
    wanted = "None or a domain such as domains.Ball(10.0)"
    check_kind("domain", given["domain"], Domain | None, wanted)
    _check_update(given["update"], given["step_size"], given["average"])
    if given["mechanism"] is not None:
        MECHANISMS.by_name(given["mechanism"])
    if given["model_privacy"] is not None and type(given["model_privacy"]) is not ModelNoise:
        raise ValueError(
            "model_privacy must be a privacy.ModelNoise itself, got "
            f"{type(given['model_privacy']).__name__}."
        )
    if given["epsilon"] is None and given["model"] is not None:
        raise ValueError("model was given without epsilon. Pass both.")


def step_of(step_size: Any) -> StepSize | None:
    """Return a step size unchanged, and a number as the constant of a `PowerStep`."""
    if step_size is None or isinstance(step_size, PowerStep | ConstantStep):
        return step_size
    if is_number(step_size):
        return PowerStep(float(step_size), EXPONENT)
    raise ValueError(
        f"step_size must be None, a number (the constant c of c / k^{EXPONENT}), a PowerStep or a "
        f"ConstantStep, got {step_size!r}."
    )


def _check_update(update: Any, step_size: Any, average: str) -> None:
    if isinstance(update, str) and update != "auto":
        UPDATES.by_name(update)
    elif not isinstance(update, str | Update):
        raise ValueError(
            f'update must be "auto", one of {", ".join(UPDATES.names)}, or an update such as '
            f"updates.Saga(), got {format_value(update)}."
        )
    if step_size is not None and update not in ("auto", Sgd.name):
        raise ValueError(
            f"step_size is for update='sgd', and not for update={update!r}. Leave it out, or give "
            "the update a step, such as updates.Saga(ConstantStep(0.1))."
        )
    if average in MEANS and not (update in ("auto", Sgd.name) or getattr(update, "average", False)):
        raise ValueError(
            f"average={average!r} is for update='sgd'; with update={update!r} the last model "
            "converges. Leave average out."
        )


class Seeds(NamedTuple):
    """Seeds of the graph and the walk, and the source of releases (None: the system's entropy)."""

    graph: np.random.SeedSequence
    walk: np.random.SeedSequence
    release: np.random.Generator | None

    @property
    def simulated(self) -> bool:
        """True if releases come from a seed."""
        return self.release is not None


def seeds_of(random_state: Any, call: int) -> Seeds:
    """Return the seeds of this call, from an integer, a RandomState, a Generator or None."""
    root = np.random.SeedSequence()
    if isinstance(random_state, np.random.RandomState):
        root = np.random.SeedSequence(random_state.randint(2**32, size=4, dtype=np.uint64).tolist())
    elif isinstance(random_state, np.random.Generator):
        root = np.random.SeedSequence(random_state.integers(2**32, size=4).tolist())
    elif random_state is not None:
        if not is_whole(random_state) or random_state < 0:
            raise seed_error(random_state, "a RandomState, a Generator", "random_state")
        root = np.random.SeedSequence(int(random_state), spawn_key=(call,))
    graph, walk, release = root.spawn(3)
    return Seeds(graph, walk, None if random_state is None else np.random.default_rng(release))


def loss_of(loss: Any, classes: int | None) -> Loss:
    """Return the loss for this number of classes, or for numbers if `classes` is None.

    A regression loss also separates two classes, but only if it is passed as an object.
    """
    numbers = classes is None
    takes, default = (("number",), "squared") if numbers else (("sign", "class"), "logistic")
    chosen = default if loss is None else loss
    if chosen == "logistic" and classes is not None and classes > 2:
        chosen = Softmax()
    if isinstance(chosen, str) and chosen in LOSSES and LOSSES[chosen].takes in takes:
        chosen = LOSSES[chosen]()
    if not isinstance(chosen, Loss) or (numbers and chosen.takes != "number"):
        kind = "regression" if numbers else "classification"
        such = "Huber(10.0)" if numbers else "SquaredHinge()"
        names = ", ".join(repr(name) for name, known in LOSSES.items() if known.takes == takes[0])
        raise ValueError(
            f"{format_value(loss)} is not a {kind} loss. Use {names}, or a loss such as "
            f"losses.{such}."
        )
    if classes is None:
        return chosen
    if (classes > 2) != (chosen.takes == "class"):
        raise ValueError(
            f"{chosen!r} cannot separate {classes} classes. Use the logistic loss, which is "
            "softmax for more than two."
        )
    return chosen.for_classes(classes)


def check_cap(privacy: PrivacySettings, total_rows: float | None) -> None:
    """Refuse max_rows if it does not hide the number of rows of a node."""
    if privacy.max_rows is None or total_rows is not None:
        return
    if privacy.asks and privacy.unit == "rows":
        raise ValueError(
            "max_rows does not hide the number of rows of a node if rows are the unit. Pass "
            'protect="node", which hides it; or also total_rows; or leave max_rows out.'
        )


def _check_public_facts(given: Mapping[str, Any], privacy: PrivacySettings) -> None:
    """Refuse a cap that hides nothing, and ε for the model without public facts."""
    check_cap(privacy, given["total_rows"])
    if privacy.epsilon is None or not privacy.protects_model:
        return
    if not privacy.delta:
        raise ValueError("Gaussian noise on the model excludes delta = 0. Pass one such as 1e-5.")
    if all(given[name] is None for name in ("schema", "row_length", "feature_bound")):
        raise ValueError(
            f"epsilon = {privacy.epsilon:g} needs public facts about the rows; numbers computed "
            "from the rows would leak. Declare typical values of the columns by "
            "schema={'*': {'centre': 0, 'spread': 1}}; or, if rows are in such units, pass "
            "row_length, their typical length; or feature_bound, a length that rows are "
            "shortened to."
        )
