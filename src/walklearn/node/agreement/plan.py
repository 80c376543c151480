"""The plan: what all participants agree on before the first token walks.

It is a TOML file, the same on every node. Nodes compare its `digest` when they meet; a
difference is refused with the names of the keys that differ.

>>> plan = Plan.from_text('''
... name = "hospitals"
... nodes = 20
... features = ["age", "pressure"]
... target = "ill"
... classes = ["no", "yes"]
... loss = "logistic"
... penalty = 1.0
... domain = { ball = 10.0 }
... step_size = { constant = 0.01, exponent = 0.75 }
... updates = 10_000
... walk = "weighted"
...
... [privacy]
... protect = "node"
... epsilon = 3.0
... delta = 1e-5
... mechanism = "laplace"
... feature_bound = 2.0
... max_rows = 1
... ''')
>>> plan.loss, plan.domain, plan.size, plan.bounds
(Logistic(), Ball(radius=10.0), 2, (1.0, 21.0))
>>> from dataclasses import replace
>>> plan.differences(replace(plan, penalty=2.0, updates=5))
['penalty', 'updates']
>>> Plan.from_dict(plan.to_dict()) == plan
True
"""

from __future__ import annotations

import hashlib
import json
import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, fields, replace
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

from walklearn.errors import InputError
from walklearn.files.checked_table import CheckedTable, Source
from walklearn.node.agreement import plan_keys, plan_privacy
from walklearn.node.agreement.plan_keys import TimeLimits
from walklearn.objectives import Aggregate
from walklearn.objectives.linear.domains import Domain, Everywhere
from walklearn.objectives.linear.losses import Loss
from walklearn.privacy.accounting.claim import Claim
from walklearn.privacy.settings import PrivacySettings
from walklearn.tables.encoding import Column, Encoding
from walklearn.tables.target_scale import TargetScale
from walklearn.updates import UPDATES, Update
from walklearn.updates.step_sizes import StepSize
from walklearn.walks import WALKS, Metropolis
from walklearn.walks.disclosure import reveals_rows

if TYPE_CHECKING:
    from walklearn.privacy.accounting.budget import BudgetPlan
    from walklearn.privacy.mechanisms.mechanism import Mechanism
    from walklearn.privacy.model_noise import ModelNoise

__all__ = ["VERSION", "Plan", "PlanError", "TimeLimits", "differences"]

VERSION = plan_keys.VERSION


class PlanError(InputError):
    """A plan that cannot be used: what is wrong, at which key and line, and what to do.

    Parameters
    ----------
    problem, key, place
        As for `InputError`.

    Examples
    --------
    >>> Plan.from_text('name = "sensors"')
    Traceback (most recent call last):
        ...
    walklearn.node.agreement.plan.PlanError: plan: nodes is missing; it must be a ...
    """


@dataclass(frozen=True)
class Plan:
    """What the participants of a network have agreed on; docs/network.md explains every key.

    Parameters
    ----------
    name
        What the network is called.
    nodes
        The number of nodes N.
    features
        The columns that are learnt from, in this order.
    target
        The column that is predicted.
    loss
        The loss of a row.
    step_size
        The step of the paper's update; None for an update that finds it itself.
    updates
        How many updates the walk makes.
    classes
        The labels: for two-class losses −1 and +1 in this order, for softmax 0 to K − 1; None
        for numbers.
    target_scale
        The public centre and spread of a target that is a number. Nodes train on
        (target − centre) / spread, cut at ±3 where the model is protected; the model that is read
        from a node predicts the target itself. Under ε a plan for numbers needs it.
    columns
        The features that are not plain numbers: texts with their categories, or numbers that
        are shifted and scaled, both public. They must be the same everywhere, so no node may
        take them from its own rows.
    aggregate
        "sum", "mean" or "node-mean", as for `Problem`.
    rows
        How many rows all nodes have together, for `aggregate = "mean"` and for claims about
        rows.
    intercept
        Whether the model has an intercept.
    penalty
        The factor of ½‖w‖² in the objective.
    domain
        Where models may lie.
    average
        Whether the token carries Σ γ w, of which w̄ is made; without it, it carries the model
        alone, and nobody sees by it what the model was before.
    batch
        How many of its rows a node looks at in a visit; None for all.
    update
        What a visit does: "sgd", the paper's, by the step size, or "saga", which
        remembers gradients and finds its step itself.
    walk
        "simple", "uniform", "weighted" or one of your own.
    laziness
        The probability that the token stays put.
    privacy
        The total (ε, δ) for all that leaves a node because of its rows, and what overrides how
        it is spent.
    keeper
        The fingerprint of who signs the book of participants; None for none.
    time_limits
        How long nodes wait for each other.
    version
        The version of the plan's format.

    Examples
    --------
    >>> plan = Plan.from_text('''
    ... name = "sensors"
    ... nodes = 20
    ... features = ["warmth"]
    ... target = "wet"
    ... classes = ["no", "yes"]
    ... loss = "logistic"
    ... step_size = { constant = 0.01, exponent = 0.75 }
    ... updates = 10_000
    ... walk = "uniform"
    ... ''')
    >>> plan.nodes, plan.loss, plan.size
    (20, Logistic(), 1)
    """

    name: str
    nodes: int
    features: tuple[str, ...]
    target: str
    loss: Loss
    step_size: StepSize | None
    updates: int
    classes: tuple[str, ...] | None = None
    target_scale: TargetScale | None = None
    columns: tuple[Column, ...] = ()
    aggregate: Aggregate = "sum"
    rows: int | None = None
    intercept: bool = False
    penalty: float = 0.0
    domain: Domain = Everywhere()  # noqa: RUF009 — frozen, so it may be shared
    average: bool = True
    batch: int | None = None
    update: str = "sgd"
    walk: str = "uniform"
    laziness: float = 0.0
    privacy: PrivacySettings | None = None
    keeper: str | None = None
    time_limits: TimeLimits = TimeLimits()  # noqa: RUF009
    version: int = VERSION

    @classmethod
    def read(cls, path: str | Path) -> Plan:
        """Read the plan in a file.

        Parameters
        ----------
        path
            A TOML file.

        Returns
        -------
        Plan
            A `PlanError` is raised for what is wrong, with its key and line.
        """
        return cls._from_table(CheckedTable.read(path, PlanError))

    @classmethod
    def from_text(cls, text: str, where: str = "plan") -> Plan:
        """Read the plan in a TOML text.

        Parameters
        ----------
        text
            The text, as a plan's file has it.
        where
            What errors call the place that it came from.

        Returns
        -------
        Plan
            A `PlanError` is raised for what is wrong, with its key and line.
        """
        return cls._from_table(CheckedTable.parse(text, where, PlanError))

    @classmethod
    def from_dict(cls, content: Mapping[str, Any], where: str = "plan") -> Plan:
        """Make the plan that `to_dict` described.

        Parameters
        ----------
        content
            The plan's keys, as in its TOML.
        where
            What errors call the place that it came from.

        Returns
        -------
        Plan
            A `PlanError` is raised for what is missing, unknown or does not fit together.
        """
        return cls._from_table(CheckedTable(content, Source(where, error=PlanError)))

    @classmethod
    def _from_table(cls, table: CheckedTable) -> Plan:
        plan = cls(**plan_keys.read_all(table, [item.name for item in fields(cls)]))
        plan_keys.check_together(table, plan)
        return plan

    def to_dict(self) -> dict[str, Any]:
        """All keys as plain values, with their defaults."""
        return plan_keys.write_all(self)

    @cached_property
    def canonical(self) -> str:
        """The plan as the one JSON text that equal plans share."""
        return _as_json(self.to_dict())

    @property
    def digest_content(self) -> dict[str, Any]:
        """Keys and values for digests, which still call `aggregate` by its first name, "objective".

        A record recognises earlier releases by such digests. A changed digest would charge and
        draw a release again.
        """
        content = self.to_dict()
        return {"objective": content.pop("aggregate"), **content}

    @cached_property
    def digest(self) -> str:
        """SHA-256 of `digest_content` as JSON text, in hex."""
        return hashlib.sha256(_as_json(self.digest_content).encode()).hexdigest()

    def differences(self, other: Plan | Mapping[str, Any]) -> list[str]:
        """The names of the keys in which another plan differs."""
        theirs = other.to_dict() if isinstance(other, Plan) else other
        return differences(self.to_dict(), theirs)

    @cached_property
    def encoding(self) -> Encoding:
        """How the columns of a file become the numbers of a row."""
        special = {column.name: column for column in self.columns}
        return Encoding(tuple(special.get(name, Column(name)) for name in self.features))

    @cached_property
    def training_target(self) -> TargetScale:
        """Scale of the targets that nodes train on; cut only if the model is protected."""
        scale = self.target_scale or TargetScale()
        cuts = self.target_scale is not None and self.hides_the_model
        return scale if cuts else replace(scale, cut_off=math.inf)

    @cached_property
    def training_loss(self) -> Loss:
        """The loss of scaled targets."""
        return self.loss.rescaled(self.training_target.spread)

    @property
    def dimension(self) -> int:
        """How many numbers a row has, the intercept's 1 included."""
        return self.encoding.feature_count + self.intercept

    @property
    def outputs(self) -> int:
        """How many scores a row gets: 1, for softmax the number of classes."""
        return len(self.classes or ()) if self.loss.takes == "class" else 1

    @cached_property
    def memory(self) -> Update | None:
        """The update, where it remembers gradients; None for the paper's."""
        kind = UPDATES.by_name(self.update)
        return kind() if kind.converges else None

    @cached_property
    def metropolis(self) -> Metropolis:
        """The walk that the plan names."""
        walk = WALKS.by_name(self.walk)(laziness=self.laziness)
        assert isinstance(walk, Metropolis)
        return walk

    @property
    def reveals_rows(self) -> bool:
        """Whether neighbours are told L_i, released or in the clear."""
        return reveals_rows(self.metropolis)

    @property
    def size(self) -> int:
        """How many numbers a model has."""
        return self.outputs * self.dimension

    @property
    def bounds(self) -> tuple[float, float] | None:
        """The public bounds of L_i; None where nothing is released under them."""
        return plan_privacy.public_bounds(self)

    @property
    def claim(self) -> Claim:
        """The claim for everything that leaves a node by this plan."""
        return plan_privacy.claim_of(self.to_dict().get("privacy", {}))

    @property
    def delta(self) -> float | None:
        """δ of the plan's claim; None without one."""
        return self.privacy.delta if self.privacy is not None else None

    @property
    def hides_the_model(self) -> bool:
        """True if each contribution of a node to the model is clipped and noisy."""
        return self.privacy is not None and self.privacy.protects_model

    def calibrated_mechanism(self) -> Mechanism | None:
        """What L_i is released by; None where the walk releases none, or in the clear."""
        return plan_privacy.mechanism(self)

    def check_usable(self) -> None:
        """Raise a `PlanError` if nodes must not be made by this plan: it would only learn noise."""
        plan_privacy.check_target(self, PlanError)

    def budget_plan(self) -> BudgetPlan | None:
        """How the total (ε, δ) is spent; None where the model is not protected."""
        return plan_privacy.budget_plan(self)

    def calibrated_noise(self) -> ModelNoise | None:
        """The noise on what a visit adds to the model; None where there is none."""
        allotted = self.budget_plan()
        return None if allotted is None else allotted.noise


def differences(ours: Mapping[str, Any], theirs: Mapping[str, Any]) -> list[str]:
    """The dotted names of the keys in which two plans, as plain values, differ.

    >>> differences({"a": 1, "b": {"c": 2}}, {"a": 1, "b": {"c": 3}, "d": 4})
    ['b.c', 'd']
    """
    mine, other = dict(_flat(ours)), dict(_flat(theirs))
    missing = object()
    return sorted(
        key for key in mine.keys() | other.keys()
        if mine.get(key, missing) != other.get(key, missing)
    )  # fmt: skip


def _as_json(content: Mapping[str, Any]) -> str:
    return json.dumps(content, sort_keys=True, separators=(",", ":"), ensure_ascii=True)


def _flat(content: Mapping[str, Any], prefix: str = "") -> Iterator[tuple[str, Any]]:
    for key, value in content.items():
        if isinstance(value, Mapping):
            yield from _flat(value, f"{prefix}{key}.")
        else:
            yield f"{prefix}{key}", value
