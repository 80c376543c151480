"""The plan: the settings on which all nodes of a network agree before training.

A plan is a TOML file, the same on every node. Nodes compare its `digest` when they meet, and refuse
a neighbour with another plan, naming the keys that differ.

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
from walklearn.node.agreement import plan_keys
from walklearn.node.agreement.plan_keys import VERSION, TimeLimits
from walklearn.objectives import Aggregate
from walklearn.objectives.linear.domains import Domain, Everywhere
from walklearn.objectives.linear.losses import Loss
from walklearn.privacy.accounting.claim import Claim
from walklearn.privacy.settings import PrivacySettings, PublicFacts, declared_lengths
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

__all__ = ["Plan", "PlanError", "TimeLimits"]


class PlanError(InputError):
    """A plan cannot be used.

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
    """Settings that all nodes of a network share; docs/network.md explains every key.

    Parameters
    ----------
    name
        Name of the network.
    nodes
        The number of nodes N.
    features
        The columns to learn from, in this order.
    target
        The column to predict.
    loss
        The loss of a row.
    step_size
        The step of "sgd"; None for an update that finds its own.
    updates
        The number of updates of the walk.
    classes
        The labels: −1 and +1 for losses of two classes, 0 to K − 1 for softmax; None for numbers.
    target_scale
        Public centre and spread of a target that is a number. Nodes train on
        (target − centre) / spread, cut at ±3 if the model is protected.
    columns
        Features that are not plain numbers: texts with their categories, or numbers with a public
        scale. No node may take them from its own rows, since they must be equal everywhere.
    aggregate
        "sum", "mean" or "node-mean", as for `Problem`.
    rows
        The number of rows of all nodes together.
    intercept
        True if the model has an intercept.
    penalty
        λ of the penalty (λ/2)‖w‖².
    domain
        The domain of models.
    average
        True if the token carries the running sum for w̄. Without it the token reveals nothing
        about earlier models.
    batch
        The number of rows that a node uses in a visit; None for all.
    update
        "sgd", or "saga", which stores gradients and finds its own step.
    walk
        The name of the walk.
    laziness
        The probability that the token stays.
    privacy
        The total (ε, δ) for everything that leaves a node because of its rows, and settings of
        the noise.
    roster_signer
        The fingerprint of the roster signer; None for none.
    time_limits
        Timeouts of nodes.
    version
        The version of the format.

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
    privacy: PrivacySettings = PrivacySettings()  # noqa: RUF009
    roster_signer: str | None = None
    time_limits: TimeLimits = TimeLimits()  # noqa: RUF009
    version: int = VERSION

    @classmethod
    def read(cls, path: str | Path) -> Plan:
        """Read the plan in a TOML file; a `PlanError` names the key and line of a mistake."""
        return cls._from_table(CheckedTable.read(path, PlanError))

    @classmethod
    def from_text(cls, text: str, where: str = "plan") -> Plan:
        """Read the plan in a TOML text, which errors call `where`."""
        return cls._from_table(CheckedTable.parse(text, where, PlanError))

    @classmethod
    def from_dict(cls, content: Mapping[str, Any], where: str = "plan") -> Plan:
        """Make the plan that `to_dict` described."""
        return cls._from_table(CheckedTable(content, Source(where, error=PlanError)))

    @classmethod
    def _from_table(cls, table: CheckedTable) -> Plan:
        plan = cls(**plan_keys.read_all(table, [item.name for item in fields(cls)]))
        plan_keys.check_together(table, plan)
        return plan

    def to_dict(self) -> dict[str, Any]:
        """Return all keys as plain values, with their defaults."""
        return plan_keys.write_all(self)

    @cached_property
    def canonical(self) -> str:
        """JSON text of the plan, the same for equal plans."""
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
        """Return the dotted names of the keys in which another plan differs."""
        theirs = dict(_flat(other.to_dict() if isinstance(other, Plan) else other))
        ours = dict(_flat(self.to_dict()))
        return sorted(key for key in {*ours, *theirs} if ours.get(key) != theirs.get(key))

    @cached_property
    def encoding(self) -> Encoding:
        """Encoding of the columns of a file as the numbers of a row."""
        special = {column.name: column for column in self.columns}
        return Encoding(tuple(special.get(name, Column(name)) for name in self.features))

    @cached_property
    def training_target(self) -> TargetScale:
        """Scale of the targets that nodes train on; cut only if the model is protected."""
        scale = self.target_scale or TargetScale()
        cuts = self.target_scale is not None and self.privacy.protects_model
        return scale if cuts else replace(scale, cut_off=math.inf)

    @cached_property
    def training_loss(self) -> Loss:
        """The loss of scaled targets."""
        return self.loss.rescaled(self.training_target.spread)

    @property
    def size(self) -> int:
        """The number of parameters of the model."""
        outputs = len(self.classes or ()) if self.loss.takes == "class" else 1
        return outputs * (self.encoding.feature_count + self.intercept)

    @cached_property
    def memory(self) -> Update | None:
        """The update, if it has memory; None for "sgd"."""
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
        """True if nodes disclose L_i, with or without noise."""
        return reveals_rows(self.metropolis)

    @property
    def claim(self) -> Claim:
        """The claim for everything that leaves a node by this plan."""
        total = self.privacy
        if total.epsilon is None or total.delta is None or not total.protects_model:
            return Claim(math.inf, 0.0, "rows")
        return Claim(total.epsilon, total.delta, total.unit)

    @property
    def bounds(self) -> tuple[float, float] | None:
        """Public bounds of L_i for protect = "node"; None if no release needs them."""
        privacy = self.privacy
        if privacy.epsilon is None or not self.reveals_rows or privacy.unit != "node":
            return None
        if privacy.bounds is not None:
            return privacy.bounds
        from walklearn.privacy.mechanisms.bounds import smoothness_bounds

        assert privacy.feature_bound is not None
        return smoothness_bounds(
            self.loss, self.penalty, self.nodes, privacy.feature_bound, privacy.max_rows or 1,
            self.aggregate, self.intercept, privacy.lower,
            self.rows if self.aggregate == "mean" else None,
        )  # fmt: skip

    @cached_property
    def budget_plan(self) -> BudgetPlan | None:
        """The shares of the total (ε, δ), and the noise on the model; None if it is unprotected."""
        if not self.privacy.protects_model:
            return None
        from walklearn.privacy.accounting.budget import plan_budget

        assert self.step_size is not None  # an update that finds its own is refused with privacy
        lengths = declared_lengths(self.encoding, feature_bound=self.privacy.feature_bound)
        features = self.encoding.feature_count
        return plan_budget(
            replace(self.privacy, feature_bound=lengths["feature_bound"]),
            PublicFacts(self.nodes, self.rows, features, lengths["row_length"]),
            self.training_loss, intercept=self.intercept,
            aggregate=self.aggregate if self.rows is not None else "mean",
            reveals_rows=self.reveals_rows, step=self.step_size.constant, updates=self.updates,
        )  # fmt: skip

    @cached_property
    def noise(self) -> ModelNoise | None:
        """Noise on the contributions of a node to the model; None if it is unprotected."""
        return None if self.budget_plan is None else self.budget_plan.noise

    @cached_property
    def mechanism(self) -> Mechanism | None:
        """Calibrated mechanism that releases L_i; None if nothing is released by one."""
        privacy, budget = self.privacy, self.budget_plan
        if privacy.epsilon is None or not self.reveals_rows:
            return None
        share: Any = (privacy.epsilon, privacy.delta) if budget is None else budget.constants
        if privacy.unit == "rows":
            from walklearn.privacy.mechanisms.row_gaussian import row_release

            assert privacy.feature_bound is not None
            assert self.rows is not None
            return row_release(
                self.loss, epsilon=share[0], delta=share[1], nodes=self.nodes,
                feature_bound=privacy.feature_bound, total_rows=float(self.rows),
                penalty=self.penalty, aggregate=self.aggregate, intercept=self.intercept,
                features=self.encoding.feature_count + self.intercept,
            )  # fmt: skip
        from walklearn.privacy.mechanisms.calibration import calibrate

        assert privacy.mechanism is not None
        assert self.bounds is not None
        return calibrate(privacy.mechanism, epsilon=share[0], delta=share[1], bounds=self.bounds)

    def check_usable(self) -> None:
        """Raise a `PlanError` if the noise of the plan cannot be calibrated."""
        try:
            _ = self.noise, self.mechanism
        except ValueError as error:
            raise PlanError(str(error)) from None


def _as_json(content: Mapping[str, Any]) -> str:
    return json.dumps(content, sort_keys=True, separators=(",", ":"), ensure_ascii=True)


def _flat(content: Mapping[str, Any], prefix: str = "") -> Iterator[tuple[str, Any]]:
    for key, value in content.items():
        if isinstance(value, Mapping):
            yield from _flat(value, f"{prefix}{key}.")
        else:
            yield f"{prefix}{key}", value
