"""A call of `fit` or `partial_fit`, prepared: its problem, its plan, and what it will publish.

The rows are brought to the units to train in, shortened where a public length is given, and placed
on the network. What is to be protected decides which of that may depend on the rows themselves.
Nothing is drawn or spent here: `fitting.training` runs what is prepared.
"""

from __future__ import annotations

import warnings
from dataclasses import dataclass, replace
from functools import cache
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray
from threadpoolctl import ThreadpoolController

from walklearn.fitting.plan import FitPlan
from walklearn.fitting.request import FitRequest, Seeds, seeds_of
from walklearn.fitting.resolve import facts_of, resolve
from walklearn.fitting.training_state import MarkedRows, State
from walklearn.fitting.units import AS_GIVEN, Units
from walklearn.graphs import Network, place_rows
from walklearn.objectives import Problem
from walklearn.objectives.linear.losses import Loss
from walklearn.objectives.linear.rows import check_sizes, check_weights
from walklearn.privacy import Ledger
from walklearn.privacy.accounting.budget import about_noise, about_weak_epsilon
from walklearn.simulation.batches import Position
from walklearn.updates.sgd import Sgd
from walklearn.updates.step_sizes import ConstantStep
from walklearn.visit import Setting
from walklearn.wording import often

Array = NDArray[Any]

# With fewer, the eigenvalues that L_i comes from are found faster by one thread than by several.
MANY_FEATURES = 1000


class Given(NamedTuple):
    """The input of a call: checked rows, targets as the loss takes them, owners and weights.

    classes: the labels of a classifier. names: those of the columns of a data frame.
    """

    X: Array
    targets: Array
    loss: Loss
    classes: Array | None
    names: Array | None
    nodes: ArrayLike | None
    sample_weight: ArrayLike | None


class Posed(NamedTuple):
    """The problem that a walk trains on, the nodes of its rows, and the units of its columns."""

    problem: Problem
    network: Network
    units: Units
    clipped_rows: int | None


@dataclass(frozen=True, eq=False)
class Prepared:
    """A call before its first draw.

    state: the state after earlier calls. token: the token to continue with; None for a new one.
    ledger, marked_rows: those of earlier calls and this one together.
    """

    request: FitRequest
    given: Given
    plan: FitPlan
    posed: Posed
    state: State
    seeds: Seeds
    token: Position | None
    ledger: Ledger
    marked_rows: MarkedRows
    partial: bool

    def __reduce__(self) -> Any:
        """Refuse a copy: it would hold the rows, and could contribute past the cap."""
        raise TypeError("a prepared fit cannot be copied or pickled: prepare it again.")

    @property
    def draws_exactly(self) -> bool:
        """True if noise on the model comes from the entropy of the operating system."""
        return self.plan.noise is not None and not self.seeds.simulated

    @property
    def summary(self) -> list[str]:
        """Sentences on the noise-to-signal ratio and on the time that exact draws take."""
        budget_plan, draws = self.plan.budget_plan, self.plan.noise_draws(self.posed.problem.size)
        lines = [] if budget_plan is None else [about_noise(budget_plan)]
        if draws and self.draws_exactly:
            from walklearn.privacy.draws.exact_draws import seconds

            duration = seconds(draws)
            about = "less than 1 s" if duration < 1.0 else f"about {duration:.0f} s"
            lines.append(f"Drawing {draws:,} exact numbers of noise takes {about}.")
        return lines


def prepare(
    request: FitRequest, given: Given, state: State, random_state: Any, partial: bool
) -> Prepared:
    """Prepare a call on these rows; raise what is wrong with it before anything is spent.

    partial: True for a call of partial_fit, one piece of a stream.
    """
    seeds = seeds_of(random_state, state.calls)
    state.check_request(request)
    with blas_threads(given.X.shape[1]):
        here = posed(request, given, state, seeds.graph)
        problem, graph = here.problem, here.network.graph
        if not request.is_private:
            check_sizes(problem.X, problem.y)
        facts = facts_of(problem, request.intercept, request.row_length)
        if request.aggregate == "node-mean":
            facts = replace(facts, rows=None)
        plan = resolve(request, problem.loss, facts, graph, problem, state.plan, partial)
    plan = replace(plan, encoding=here.units, seeded=seeds.simulated, earlier=state.ledger)
    marked_rows = state.marked_rows
    if request.is_private:
        marked_rows = marked_rows.with_rows(given.X, given.targets, here.network.owners)
    # This raises what is wrong with the parts; of a step that is not known yet any value will do.
    setting = Setting(
        problem if plan.batch is None else problem.with_batch(plan.batch), plan.walk,
        plan.update or Sgd(ConstantStep(1.0)), privacy=plan.privacy,
    )  # fmt: skip
    prepared = Prepared(
        request, given, plan, here, state, seeds, state.token_for(setting, here.units),
        plan.ledger(), marked_rows, partial,
    )  # fmt: skip
    _warn(prepared)
    return prepared


def blas_threads(features: int) -> Any:
    """Limit the threads of BLAS while few features would only keep them waiting for each other."""
    limits = 1 if features < MANY_FEATURES else None
    return _pools().limit(limits=limits, user_api="blas")


@cache
def _pools() -> ThreadpoolController:
    """The pools of threads of this process, found once, because the search takes 6 ms."""
    return ThreadpoolController()


def _warn(prepared: Prepared) -> None:
    """Warn of noise made by hand that protects little, and of a cap that is used up."""
    plan, contributions = prepared.plan, prepared.state.contributions
    if plan.budget.noise is not None:  # `plan_budget` warns of an ε that is given
        weak = about_weak_epsilon(prepared.ledger.largest_total(plan.budget.reported_delta)[1])
        if weak:
            warnings.warn(weak, stacklevel=6)
    if plan.noise is None or contributions is None or not contributions.size:
        return
    most = plan.noise.max_contributions
    gradients = 1 if plan.update is None else plan.update.gradients
    if int(contributions.min()) + gradients > most:
        warnings.warn(
            f"no node can add to the model again: ε allows {often(most)} per "
            "node. Further visits leave the model unchanged. Start with a new estimator, which "
            "spends ε again.",
            stacklevel=6,
        )


def posed(request: FitRequest, given: Given, state: State, seed: np.random.SeedSequence) -> Posed:
    """Return the problem of these rows, with the units and nodes of earlier calls."""
    weights, clipped = check_weights(given.sample_weight, given.X.shape[0]), None
    units = state.units or _units(request, given, weights)
    if request.is_private and units.from_rows:
        raise ValueError(
            "earlier rows were standardised by their own scale, which what is private now "
            "would rest on: begin with a new estimator."
        )
    if request.feature_bound is None:
        rows = units.rows(given.X)
    else:  # in the units that it is trained in: there the claims take it to hold
        rows, clipped = units.clipped(given.X, request.feature_bound)
    network = place_rows(request.graph, given.nodes, given.X.shape[0], seed, state.network)
    problem = Problem(
        rows, units.target.to_training(given.targets),
        loss=given.loss.rescaled(units.target.spread), penalty=request.penalty,
        domain=request.domain, node_of_row=network.owners, nodes=network.graph.node_count,
        aggregate=request.aggregate, empty_nodes="relay", sample_weight=weights,
        total_rows=request.total_rows if request.aggregate == "mean" else None,
        assume_finite=True, copy=False,
    )  # fmt: skip
    return Posed(problem, network, units, clipped)


def _units(request: FitRequest, given: Given, weights: Array) -> Units:
    """Return the units of the first call, which later calls keep."""
    # A public scale of the target is for noise on the model: without any, it changes nothing.
    target = request.target if request.privacy.protects_model else None
    target, intercept = target or AS_GIVEN, request.intercept
    if request.columns is not None:
        return replace(Units.declared(request.columns, intercept), target=target)
    if not request.standardise:
        return replace(Units.given(given.X.shape[1], intercept), target=target)
    counted = slice(None) if weights.all() else weights > 0
    targets = given.targets[counted] if request.predicts_numbers else None
    return Units.standard(given.X[counted], weights[counted], intercept, targets)
