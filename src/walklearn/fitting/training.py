"""A call of `fit` or `partial_fit`: preparation and training.

`prepare` converts the rows to the units of training, shortens them to a public bound if there is
one, places them on the network, and resolves the plan. It draws no noise and spends no ε. `train`
runs the walk.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cache
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.exceptions import ConvergenceWarning
from threadpoolctl import ThreadpoolController

from walklearn.errors import InterruptedWarning
from walklearn.fitting.plan import FitPlan
from walklearn.fitting.request import FitRequest, Seeds, seeds_of
from walklearn.fitting.resolve import facts_of, resolve
from walklearn.fitting.rounds import WalkResult, run_walk, why_not_converged
from walklearn.fitting.training_state import TrainingState
from walklearn.fitting.units import Units
from walklearn.graphs import Network, place_rows
from walklearn.objectives import Problem
from walklearn.objectives.linear.losses import Loss
from walklearn.objectives.linear.minimiser import NO_MINIMISER
from walklearn.objectives.linear.rows import check_sizes, check_weights
from walklearn.privacy import Ledger
from walklearn.privacy.accounting.budget import about_noise, about_weak_epsilon
from walklearn.simulation.batches import Position
from walklearn.streams import generators
from walklearn.updates.sgd import Sgd
from walklearn.updates.step_sizes import ConstantStep
from walklearn.visit import Setting
from walklearn.wording import format_times, plural

# With fewer features, one thread finds the eigenvalues of L_i faster than several.
MANY_FEATURES = 1000


class FitInput(NamedTuple):
    """The input of a call: checked rows, targets in the form for the loss, owners and weights.

    classes: the labels of a classifier. names: the columns of a data frame.
    """

    X: Any
    targets: NDArray[Any]
    loss: Loss
    classes: NDArray[Any] | None = None
    names: NDArray[Any] | None = None
    nodes: ArrayLike | None = None
    sample_weight: ArrayLike | None = None


@dataclass(frozen=True, eq=False)
class PreparedFit:
    """A prepared call, which has drawn nothing yet.

    ledger: the releases of earlier calls and of this one. before: the state after earlier calls.
    state: the state after this call, but with the token from which the walk starts.
    """

    request: FitRequest
    rows: FitInput
    problem: Problem
    clipped_rows: int | None
    plan: FitPlan
    ledger: Ledger
    before: TrainingState
    state: TrainingState
    seeds: Seeds
    partial: bool

    def __reduce__(self) -> Any:
        """Refuse a copy: it would hold the rows, and could contribute past the cap."""
        raise TypeError("a prepared fit cannot be copied or pickled. Prepare it again.")

    @property
    def draws_exactly(self) -> bool:
        """True if noise on the model comes from the entropy of the operating system."""
        return self.plan.noise is not None and not self.seeds.simulated

    @property
    def summary(self) -> list[str]:
        """Sentences on the noise-to-signal ratio and on the time that exact draws take."""
        budget_plan, draws = self.plan.budget_plan, self.plan.noise_draws(self.problem.size)
        lines = [] if budget_plan is None else [about_noise(budget_plan)]
        if draws and self.draws_exactly:
            from walklearn.privacy.draws.exact_draws import seconds

            duration = seconds(draws)
            about = "less than 1 s" if duration < 1.0 else f"about {duration:.0f} s"
            lines.append(f"Drawing {draws:,} exact numbers of noise takes {about}.")
        return lines


class FitResult(NamedTuple):
    """The prepared call, its setting, the result of its walk, and the state to keep."""

    prepared: PreparedFit
    setting: Setting
    walk: WalkResult
    state: TrainingState


def prepare(
    request: FitRequest, rows: FitInput, state: TrainingState, random_state: Any, partial: bool
) -> PreparedFit:
    """Prepare a call on these rows, and refuse mistakes before any ε is spent.

    partial: True for a call of partial_fit.
    """
    seeds = seeds_of(random_state, state.calls)
    state.check_request(request)
    with blas_threads(rows.X.shape[1]):
        units, network, problem, clipped = prepare_problem(request, rows, state, seeds.graph)
        if not request.is_private:
            check_sizes(problem.X, problem.y)
        facts = facts_of(problem, request.intercept, request.row_length)
        if request.aggregate == "node-mean":
            facts = replace(facts, rows=None)
        graph, before = network.graph, state.plan
        plan = resolve(request, problem.loss, facts, graph, problem, before, partial)
    plan = replace(plan, encoding=units, seeded=seeds.simulated, earlier=state.ledger)
    last_token = state.last_token(problem, units)
    if last_token is not None and plan.update is not None:
        plan = replace(plan, update=plan.update.starting_from(last_token.token.update["model"]))
    marked_rows = state.marked_rows
    if request.is_private:
        marked_rows = marked_rows.with_rows(rows.X, rows.targets, network.owners)
    # Setting refuses parts that do not fit together; any step serves if it is not known yet.
    setting = Setting(
        problem if plan.batch is None else problem.with_batch(plan.batch), plan.walk,
        plan.update or Sgd(ConstantStep(1.0)), privacy=plan.privacy,
    )  # fmt: skip
    token, ledger = state.token_for(setting, units), plan.ledger()
    _warn_of_protection(plan, ledger, state)
    later = replace(
        state, resumed=None, calls=state.calls + 1, units=units, network=network, token=token,
        ledger=ledger, request=request, plan=plan, marked_rows=marked_rows, is_spent=False,
    )  # fmt: skip
    return PreparedFit(request, rows, problem, clipped, plan, ledger, state, later, seeds, partial)


def blas_threads(features: int) -> Any:
    """Limit BLAS to one thread if there are few features, where more threads are slower."""
    return _pools().limit(limits=1 if features < MANY_FEATURES else None, user_api="blas")


@cache
def _pools() -> ThreadpoolController:
    """Return the pools of threads of this process; the search for them takes 6 ms."""
    return ThreadpoolController()


def _warn_of_protection(plan: FitPlan, ledger: Ledger, state: TrainingState) -> None:
    """Warn if a `ModelNoise` protects little, or if all nodes have reached the cap."""
    if plan.budget.noise is not None:  # `plan_budget` warns of an ε that is given
        weak = about_weak_epsilon(ledger.largest_total(plan.budget.reported_delta)[1])
        if weak:
            warnings.warn(weak, stacklevel=6)
    contributions = state.contributions
    if plan.noise is None or contributions is None or not contributions.size:
        return
    cap, gradients = plan.noise.max_contributions, getattr(plan.update, "gradients", 1)
    if int(contributions.min()) + gradients > cap:
        warnings.warn(
            f"no node can add to the model again: ε allows {format_times(cap)} per node. Further "
            "visits leave the model unchanged. Start with a new estimator, which spends ε again.",
            stacklevel=6,
        )


def prepare_problem(
    request: FitRequest, rows: FitInput, state: TrainingState, seed: np.random.SeedSequence
) -> tuple[Units, Network, Problem, int | None]:
    """Return units, network and problem of these rows, and the number of shortened rows.

    Units and nodes of earlier calls stay.
    """
    count, clipped = rows.X.shape[0], None
    weights = check_weights(rows.sample_weight, count)
    units = state.units or _units(request, rows, weights)
    if request.is_private and units.from_rows:
        raise ValueError(
            "earlier rows were standardised by numbers computed from them, which a private "
            "training cannot rest on. Start with a new estimator."
        )
    X = units.rows(rows.X, request.feature_bound)
    if request.feature_bound is not None:
        X, clipped = X
    network = place_rows(request.graph, rows.nodes, count, seed, state.network)
    problem = Problem(
        X, units.target.to_training(rows.targets), loss=rows.loss.rescaled(units.target.spread),
        penalty=request.penalty, domain=request.domain, node_of_row=network.owners,
        nodes=network.graph.node_count, aggregate=request.aggregate, empty_nodes="relay",
        sample_weight=weights,
        total_rows=request.total_rows if request.aggregate == "mean" else None,
        assume_finite=True, copy=False,
    )  # fmt: skip
    return units, network, problem, clipped


def _units(request: FitRequest, rows: FitInput, weights: NDArray[Any]) -> Units:
    """Return the units of the first call, which later calls keep."""
    X, intercept, target = rows.X, request.intercept, None
    if request.privacy.protects_model:  # otherwise a public scale of the target has no effect
        target = request.target
    if request.columns is not None:
        return Units.declared(request.columns, intercept, target)
    if not request.standardise:
        return Units.unchanged(X.shape[1], intercept, target)
    counted = slice(None) if weights.all() else weights > 0
    targets = rows.targets[counted] if request.predicts_numbers else None
    return Units.standard(X[counted], weights[counted], intercept, targets)


def train(prepared: PreparedFit, callback: Callable[[int, float], object] | None) -> FitResult:
    """Run the walk of a prepared call, from the token of earlier calls if there is one."""
    plan, before, seeds = prepared.plan, prepared.before, prepared.seeds
    if prepared.request.is_private:
        before.spend()
    with blas_threads(prepared.problem.X.shape[1]):
        setting = plan.bind(prepared.problem, seeds.release)
    walk = run_walk(
        setting, plan.graph, generators(seeds.walk), prepared.state.token, plan.stop,
        before.contributions, callback, prepared.draws_exactly, before.marks,
    )  # fmt: skip
    _check_finite(setting, walk, prepared.request)
    _warn_of_the_end(setting, walk, prepared)
    state = replace(
        prepared.state, token=_with_model(setting, walk.resumable),
        contributions=walk.contributions, marks=walk.marks if prepared.partial else [],
        interrupted=before.interrupted or walk.interrupted,
    )  # fmt: skip
    return FitResult(prepared, setting, walk, state)


def _with_model(setting: Setting, position: Position) -> Position:
    """Return the token with its model among its arrays, from which a later call starts."""
    token, update = position.token, setting.update
    arrays = {"model": update.model(setting.objective_view, token.update)} | token.update
    return position._replace(token=token._replace(update=arrays))


def _check_finite(setting: Setting, walk: WalkResult, request: FitRequest) -> None:
    """Raise an error if the model is infinite; the remedy depends on whether steps were given."""
    update, objective, token = setting.update, setting.objective_view, walk.token.token.update
    vectors = update.model(objective, token), update.average_model(objective, token)
    if all(np.isfinite(vector).all() for vector in vectors):
        return
    remedy = "Bring the columns to one scale, or use a larger penalty"
    if request.step_size is not None or getattr(request.update, "step_size", None):
        remedy = "Use a smaller step or none"
    raise ValueError(
        f"the model diverged to infinity: the steps are too long. {remedy}, or a bounded domain "
        "(in Python: domain=domains.Ball(10.0))."
    )


def _warn_of_the_end(setting: Setting, walk: WalkResult, prepared: PreparedFit) -> None:
    """Warn if the training was interrupted or has not converged, or if there is no minimiser."""
    # Rows may be inspected if they are not private, and complete (not one part of a stream).
    inspects = not (prepared.request.is_private or prepared.partial)
    model = setting.update.model(setting.objective_view, walk.token.token.update)
    if walk.interrupted:
        warnings.warn(
            f"interrupted after {plural(walk.token.token.updates, 'update')}; the model so far "
            "is kept. Another fit with warm_start=True resumes it.",
            InterruptedWarning,
            stacklevel=6,
        )
    elif inspects and prepared.problem.decreases_forever_along(model):
        warnings.warn(NO_MINIMISER, ConvergenceWarning, stacklevel=6)
    elif not walk.has_converged and prepared.plan.stop.steps is None:
        why = why_not_converged(walk, prepared.plan.stop)
        units = prepared.state.units
        if inspects and units is not None and units.are_unchanged:
            why += ' If columns differ in size, use standardise="auto", or a schema.'
        warnings.warn(why, ConvergenceWarning, stacklevel=6)
