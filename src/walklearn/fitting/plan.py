"""The plan of a fit: all decisions before the first update, with the reasons.

Estimators run it, `walklearn train` runs and prints it, `walklearn advise` prints it, and
`walklearn plan new` writes it for a network of nodes.
"""

from __future__ import annotations

import json
import math
import warnings
from dataclasses import dataclass, field, fields, is_dataclass, replace
from functools import cached_property
from hashlib import sha256
from typing import Any, NamedTuple

import numpy as np

from walklearn.checks import check_kind
from walklearn.fitting.rounds import StoppingRule
from walklearn.fitting.units import Units
from walklearn.graphs import Graph
from walklearn.objectives import Aggregate, Objective, Problem
from walklearn.objectives.linear.domains import Domain
from walklearn.objectives.linear.losses import Loss
from walklearn.privacy import (
    BudgetPlan,
    Claim,
    Ledger,
    ModelNoise,
    PrivacySettings,
    PublicFacts,
    plan_budget,
)
from walklearn.privacy.accounting.budget import about_noise
from walklearn.privacy.accounting.printing import format_upper
from walklearn.privacy.mechanisms.comparison import Comparison
from walklearn.privacy.mechanisms.description import IN_THE_CLEAR
from walklearn.privacy.mechanisms.mechanism import Mechanism
from walklearn.privacy.protection import Protection
from walklearn.updates.finito import Finito
from walklearn.updates.sgd import Sgd
from walklearn.updates.step_choice import choose_step, public_step
from walklearn.updates.step_sizes import StepSize
from walklearn.updates.update import Update
from walklearn.visit import Setting
from walklearn.walks import Walk
from walklearn.walks.disclosure import mechanism_of, reveals_rows
from walklearn.walks.walk import draw_walk
from walklearn.wording import plural

THIS_FIT_ALONE = "ε is of this fit alone. Further runs on the same rows add to it (OwnerRecord)."
DIGITS = 6  # of numbers in a digest: the last bits depend on the machine


class Reason(NamedTuple):
    """A choice of a plan, and a sentence that justifies it."""

    choice: str
    because: str

    def __str__(self) -> str:
        return f"{self.choice}: {self.because}"


class Change(NamedTuple):
    """A change of the request, and the noise-to-signal ratio that would follow."""

    change: str
    noise_to_signal: float

    def __str__(self) -> str:
        return f"{self.change} ({self.noise_to_signal:.2g})"


@dataclass(frozen=True)
class FitPlan:
    """All decisions of a fit before its first update.

    Parameters
    ----------
    graph
        The graph that the token walks on.
    walk
        The rule for the next node. Its disclosures are protected by its mechanism, but not drawn.
    update
        The rule for the token; None for `Sgd` with a step that `bind` computes from disclosures.
    privacy
        The protection of the model: clip, noise and cap.
    stop
        The length of the walk.
    loss, penalty, domain, aggregate, intercept, batch
        The objective.
    budget
        The total (ε, δ) and its unit, as they were asked for.
    facts
        Public facts about the data.
    reasons
        A reason for each choice.
    budget_plan, comparison
        The split of the total, and the comparison of mechanisms if the plan chose one by its error.
    encoding, seeded, earlier
        Added by an estimator: the units of training; True if noise comes from a seed and protects
        nobody; the ledger of earlier calls.
    steps_asked
        The requested number of updates and its requested maximum.

    Examples
    --------
    >>> import walklearn as wl
    >>> facts = wl.PublicFacts(nodes=10, rows=100, features=5)
    >>> plan = wl.advise(wl.graphs.ring(10), facts)
    >>> plan.walk, plan.update, plan.claim.is_private
    (Uniform(), Saga(), False)
    """

    graph: Graph
    walk: Walk
    update: Update | None
    privacy: Protection
    stop: StoppingRule
    loss: Loss
    penalty: float
    domain: Domain | None
    aggregate: Aggregate
    intercept: bool
    batch: int | None
    budget: PrivacySettings
    facts: PublicFacts
    reasons: tuple[Reason, ...]
    budget_plan: BudgetPlan | None = None
    comparison: Comparison | None = None
    encoding: Units | None = field(default=None, compare=False, repr=False)
    seeded: bool = False
    earlier: Ledger | None = field(default=None, compare=False, repr=False)
    steps_asked: tuple[int | None, int | None] = field(
        default=(None, None), compare=False, repr=False
    )

    @property
    def claims(self) -> tuple[Claim, ...]:
        """The claims for everything that leaves a node; empty if noise comes from a seed."""
        return () if self.protects_nobody else (self.claim,)

    @cached_property
    def claim(self) -> Claim:
        """The claim for everything that leaves a node, with earlier calls; ε may be infinite."""
        return self.ledger().claim(self.budget.reported_delta)

    @cached_property
    def claim_without_seed(self) -> Claim:
        """The claim if no noise came from a seed."""
        return self.ledger().claim_without_seed(self.budget.reported_delta)

    @cached_property
    def protects_nobody(self) -> bool:
        """True if the noise comes from a seed, so that everybody can draw it again."""
        return self.ledger().has_seeded_noise

    @property
    def noise(self) -> ModelNoise | None:
        """The clip, noise and cap of what a visit adds to the model; None without protection."""
        return self.privacy if isinstance(self.privacy, ModelNoise) else None

    @property
    def mechanism(self) -> Mechanism | None:
        """The mechanism that releases L_i; None if nothing is released."""
        return mechanism_of(self.walk)

    @property
    def laziness(self) -> float:
        """The probability that the token stays put instead of proposing a neighbour."""
        return float(getattr(self.walk.innermost, "laziness", 0.0))

    @property
    def step_size(self) -> StepSize | None:
        """The step of the paper's update; None if the update or `bind` computes it."""
        return getattr(self.update, "step_size", None)

    @property
    def noise_to_signal(self) -> float | None:
        """The noise-to-signal ratio of the final model; None if no total protects it."""
        return None if self.budget_plan is None else self.budget_plan.noise_to_signal

    def bind(self, objective: Objective, generator: np.random.Generator | None = None) -> Setting:
        """Return the setting of a run of this plan on an objective with a node for each graph node.

        If the walk discloses L_i by a mechanism, this draws the release, which costs its share of
        ε: bind once, and reuse the setting. generator: the source of the release; None for the
        entropy of the operating system. `updates` of the setting is 0 for a walk until convergence.

        Examples
        --------
        >>> import walklearn as wl
        >>> problem = wl.Problem([[1.0], [2.0], [3.0]], [1.0, -1.0, 1.0], penalty=0.1)
        >>> setting = wl.advise(wl.graphs.complete(3), problem).bind(problem)
        >>> setting.update, setting.objective.nodes
        (Finito(estimates_gradient=True), 3)
        """
        self._check_objective(objective)
        walk = released(self.walk, objective, self.graph, generator)
        update = self.update or Sgd(self._step(objective, walk))
        if self.batch is not None:
            objective = objective.with_batch(self.batch)
        updates = self.stop.steps or 0
        return Setting(objective, walk, update, privacy=self.privacy, updates=updates)

    def _check_objective(self, objective: Any) -> None:
        """Refuse an objective for which the step or the claim of this plan does not hold."""
        check_kind("objective", objective, Objective, "an Objective, such as a Problem")
        facts = self.facts
        protects_rows = getattr(self.mechanism, "protect", "node") == "rows"
        expected: dict[str, Any] = {"nodes": self.graph.node_count, "penalty": self.penalty}
        if protects_rows or isinstance(objective, Problem):
            expected |= {"loss": self.loss, "aggregate": self.aggregate}
            if facts.features is not None:
                expected["dimension"] = facts.features + self.intercept
            # Step and noise-to-signal ratio depend on the number of rows.
            if facts.rows is not None and (protects_rows or self.budget.asks):
                expected["total_rows"] = facts.rows
        actual = {name: getattr(objective, name, None) for name in expected}
        if isinstance(objective, Problem):
            actual["loss"] = loss_with_classes(objective)
        wrong = [
            f"{name} of the plan is {value}, and of the objective {actual[name]}"
            for name, value in expected.items()
            if actual[name] != value
        ]
        if wrong:
            raise ValueError(f"{'; '.join(wrong)}. Resolve a plan for this objective.")
        bound = self.budget.feature_bound
        if protects_rows and bound is not None:
            rows = objective.X[:, : objective.X.shape[1] - self.intercept]
            longest = float(np.sqrt(np.einsum("ra,ra->r", rows, rows)).max(initial=0.0))
            if longest > bound * (1 + 1e-9):
                raise ValueError(
                    f"a row has length {longest:.4g}, and the feature_bound of this plan is "
                    f"{bound:g}. Shorten the rows to it (privacy.clip_features)."
                )

    def ledger(self) -> Ledger:
        """Return the ledger of earlier calls and of all releases of this plan.

        Raise a `BudgetExceededError` if that exceeds the budget.
        """
        nodes, earlier, mechanism = self.graph.node_count, self.earlier, self.mechanism
        charged = 0 if earlier is None else earlier.nodes
        if earlier is not None:
            ledger = _extended(earlier, nodes, self.seeded)
        else:
            total = self.budget_plan
            budget = None if total is None else (total.epsilon, total.delta)
            ledger = Ledger(nodes, budget, self.seeded)
        if mechanism is not None:  # a node that released L_i in an earlier call pays again
            ledger.charge("importance", mechanism, again=True)
        elif reveals_rows(self.walk):
            ledger.record_unprotected("importance")
        # The whole cap is charged, not the visits so far: an observer may choose when to stop, and
        # then a price for a number of visits that depends on the walk would not hold.
        if self.noise is None:
            ledger.record_unprotected("model")
        elif charged < nodes:
            times = self.noise.max_contributions
            ledger.charge("model", self.noise, nodes=np.arange(charged, nodes), times=times)
        is_claim = ledger.unit is not None and not ledger.simulated
        if is_claim and THIS_FIT_ALONE not in ledger.notes:
            ledger.notes.append(THIS_FIT_ALONE)
        return ledger

    def noise_draws(self, size: int) -> int:
        """Return the maximal number of noise draws for a model with this number of parameters."""
        if self.noise is None or self.stop.steps is None:
            return 0
        gradients = 1 if self.update is None else self.update.gradients
        cap = self.noise.max_contributions * self.graph.node_count
        return min(self.stop.steps * gradients, cap) * size

    def _step(self, objective: Any, walk: Walk) -> StepSize:
        """Return the step that follows from what the nodes disclose."""
        mechanism = mechanism_of(walk)
        if mechanism is None:
            return choose_step(objective, self.graph, walk, self.batch)
        return public_step(
            self.loss, self.penalty, self.graph, walk, mechanism.bounds,
            noise_length(self.noise, objective.size),
        )  # fmt: skip

    def changes(self) -> list[Change]:
        """Return single changes of the request that lower the noise, the best first."""
        if self.budget_plan is None or self.facts.features is None:
            return []
        budget, facts, features = self.budget, self.facts, self.facts.features
        assert budget.epsilon is not None
        double = replace(budget, epsilon=2 * budget.epsilon)
        epsilons = [format_upper(each) for each in (2 * budget.epsilon, budget.epsilon)]
        trials = {f"ε = {' instead of '.join(epsilons)}": (double, facts)}
        if features > 1:
            fewer = replace(facts, features=features // 2)
            trials[f"{plural(features // 2, 'feature')} instead of {features}"] = (budget, fewer)
        if budget.unit == "node":
            nodes = f"{2 * facts.nodes:,} nodes instead of {facts.nodes:,}"
            trials[nodes] = (budget, replace(facts, nodes=2 * facts.nodes))
        if facts.rows is not None:
            rows = facts.rows
            if budget.unit == "node":
                trials["rows as the unit instead of nodes, a weaker claim"] = (
                    replace(budget, protect="rows"), facts)  # fmt: skip
            else:
                more = replace(facts, rows=2 * rows)
                trials[f"{2 * rows:,.9g} rows instead of {rows:,.9g}"] = (budget, more)
        changes = []
        for change, (privacy, public) in trials.items():
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")  # nobody makes the claims of these trials
                budget_plan = plan_budget(
                    privacy, public, self.loss, intercept=self.intercept, penalty=self.penalty,
                    aggregate=self.aggregate, reveals_rows=self.budget_plan.constants is not None,
                    updates=self.steps_asked[0], max_updates=self.steps_asked[1],
                )  # fmt: skip
            if budget_plan.noise_to_signal < self.budget_plan.noise_to_signal:
                changes.append(Change(change, budget_plan.noise_to_signal))
        return sorted(changes, key=lambda each: each.noise_to_signal)

    def to_dict(self) -> dict[str, Any]:
        """Return plain JSON values."""
        content = {**self.claim.to_dict(), "simulated": self.ledger().simulated, **self._choices()}
        if self.protects_nobody:
            content["claim_without_seed"] = self.claim_without_seed.to_dict()
        if self.budget_plan is not None:
            content["noise_to_signal"] = self.noise_to_signal
            content["changes"] = [each._asdict() for each in self.changes()]
        content["reasons"] = [str(reason) for reason in self.reasons]
        return content

    def _choices(self) -> dict[str, Any]:
        """Return everything that was decided as plain JSON values."""
        step, noise, mechanism = self.step_size, self.noise, self.mechanism
        content = {
            "model": IN_THE_CLEAR if noise is None else "protected",
            "nodes": self.graph.node_count,
            "edges": self.graph.edge_count,
            "rows": self.facts.rows,
            "features": self.facts.features,
            "row_length": self.facts.row_length,
            "feature_bound": self.budget.feature_bound,
            "loss": repr(self.loss),
            "penalty": self.penalty,
            "domain": None if self.domain is None else repr(self.domain),
            "aggregate": self.aggregate,
            "intercept": self.intercept,
            "batch": self.batch,
            "walk": getattr(self.walk, "name", None) or repr(self.walk),
            "laziness": self.laziness,
            "mechanism": None if mechanism is None else mechanism.name,
            "update": getattr(self.update or Sgd, "name", None) or repr(self.update),
            "step_constant": None if step is None else step.constant,
            "step_exponent": None if step is None else step.exponent,
            "average": self.stop.average,
            "updates": self.stop.steps,
            "max_updates": self.stop.max_steps if self.stop.steps is None else None,
            "tolerance": None if self.stop.steps is not None else self.stop.tolerance,
        }
        if noise is not None:
            content |= {
                "clip": noise.clip,
                "noise_multiplier": noise.noise_multiplier,
                "max_contributions": noise.max_contributions,
            }
        return {
            name: value.item() if isinstance(value, np.generic) else value
            for name, value in content.items()
        }

    @property
    def settings(self) -> dict[str, Any]:
        """The choices that a resumed training must keep, as JSON values; without its length."""
        content = self._choices() | {"tolerance": self.stop.tolerance}
        for name in ("updates", "max_updates"):
            del content[name]
        update = self.update
        if isinstance(update, Finito):  # whether it tests convergence depends on the length
            update = replace(update, estimates_gradient=False)
        content |= {"walk": self.walk, "update": update}
        if self.budget.asks:
            content["budget"] = replace(self.budget, mechanism=None)  # the walk has the mechanism
        else:
            del content["row_length"]  # it matters for noise only
        return {name: _rounded(value) for name, value in content.items()}

    @cached_property
    def digest(self) -> str:
        """SHA-256 of the settings and of the graph in hex, without the rows and their units.

        An interrupted training may be resumed on the same rows under a plan with the same digest.
        """
        digest = sha256(json.dumps(self.settings, sort_keys=True).encode())
        digest.update(self.graph.indptr.tobytes() + self.graph.indices.tobytes())
        return digest.hexdigest()

    def rows_of_table(self) -> list[tuple[str, str]]:
        """Return the choices as a table of two columns of text."""
        step = self.step_size
        if step is None:
            steps = "from the disclosed L_i" if self.update is None else "found during the walk"
        else:
            steps = f"{step.constant:.3g}" + (f" / k^{step.exponent:g}" if step.exponent else "")
        undisclosed = IN_THE_CLEAR if reveals_rows(self.walk) else "not disclosed"
        until = f"until convergence, at most {self.stop.max_steps:,}"
        length = f"{self.stop.steps:,}" if self.stop.steps else until
        facts = self.facts
        known = [plural(facts.nodes, "node")]
        known += [] if facts.rows is None else [f"{facts.rows:,.9g} rows"]
        known += [] if facts.features is None else [plural(facts.features, "feature")]
        known += [] if facts.row_length is None else [f"row length {facts.row_length:.3g}"]
        return [
            ("facts", ", ".join(known)),
            ("graph", repr(self.graph)),
            ("walk", repr(self.walk)),
            ("model", IN_THE_CLEAR if self.noise is None else str(self.noise)),
            ("L_i", str(self.mechanism or undisclosed)),
            ("update", "Sgd" if self.update is None else type(self.update).__name__),
            ("step", steps),
            ("updates", length),
            ("loss", f"{self.loss!r}, penalty {self.penalty:g}, aggregate {self.aggregate!r}"),
        ]

    def advice(self) -> list[str]:
        """Return sentences on the noise-to-signal ratio and on the most useful changes."""
        if self.budget_plan is None:
            return []
        lines, changes = [about_noise(self.budget_plan)], self.changes()
        if changes:
            lines.append("Most useful changes: " + ", then ".join(map(str, changes)) + ".")
        return lines

    @property
    def headline(self) -> str:
        """The claim as a sentence; if noise comes from a seed, the claim without the seed."""
        alone = ", in this fit alone" if self.claim_without_seed.is_private else ""
        sentence = f"{self.claim_without_seed}{alone}."
        if not self.protects_nobody:
            return sentence
        return f"No privacy claim, because the noise comes from a seed. Without it: {sentence}"

    def __str__(self) -> str:
        rows = self.rows_of_table()
        width = max(len(name) for name, _ in rows) + 2
        table = [f"  {name:<{width}}{what}" for name, what in rows]
        because = [f"- {reason}" for reason in self.reasons]
        return "\n".join([self.headline, *table, *because, *self.advice()])


def _extended(earlier: Ledger, nodes: int, simulated: bool) -> Ledger:
    """Return the earlier ledger, extended to this number of nodes."""
    content = earlier.to_dict()
    for release in content["releases"]:
        times = np.broadcast_to(release["times"], earlier.nodes)
        release["times"] = np.pad(times, (0, nodes - earlier.nodes)).tolist()
    return Ledger.from_dict(
        {**content, "nodes": nodes, "simulated": simulated or earlier.simulated}
    )


def loss_with_classes(problem: Problem) -> Loss:
    """Return the loss of a problem, with the number of classes that its labels have."""
    return problem.loss.for_classes(problem.model_shape[0])


def released(
    walk: Walk, objective: Any, graph: Graph, generator: np.random.Generator | None
) -> Walk:
    """Return the walk with the disclosures of the nodes; each call draws and costs again.

    The same release for equal rows would reveal that they are equal.
    """
    draw = draw_walk if walk.has_random_announcements else type(walk).sample_release
    return draw(walk, graph, objective, generator)


def noise_length(noise: ModelNoise | None, size: int) -> float:
    """Return the expected norm of the noise of one contribution; 0 without noise."""
    return 0.0 if noise is None else noise.standard_deviation * math.sqrt(size)


def _rounded(value: Any) -> Any:
    """Return the value for JSON, with digits that do not depend on the machine."""
    if isinstance(value, float | np.floating):
        return f"{value:.{DIGITS}g}"
    if is_dataclass(value):
        each = {item.name: _rounded(getattr(value, item.name)) for item in fields(value)}
        return [type(value).__name__, each]
    if isinstance(value, np.ndarray):
        return [_rounded(each) for each in value.tolist()]
    return value if value is None or isinstance(value, bool | int | str) else repr(value)
