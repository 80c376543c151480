"""A call of `fit` or `partial_fit`, from checked rows to the end of its walk.

A call goes one way: the problem is posed; the nodes release what the walk tells, and the ledger
charges it; the update and the length of the walk are chosen; and the token walks.
"""

from __future__ import annotations

import warnings
from functools import cache
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from sklearn.exceptions import ConvergenceWarning
from threadpoolctl import ThreadpoolController

from walklearn.arrays import Arrays
from walklearn.errors import InterruptedWarning
from walklearn.fitting.accounts import Cost, ledger_of_call
from walklearn.fitting.parameters import Seeds, average_of, seeds_of, step_of, update_of
from walklearn.fitting.places import Places
from walklearn.fitting.prepare import Given, Posed, posed, terms_of
from walklearn.fitting.rounds import Stopping, Walked, walk_on, why_not_settled
from walklearn.fitting.terms import Terms, released, walk_of
from walklearn.fitting.training_state import State
from walklearn.objectives import Problem
from walklearn.objectives.linear.minimiser import NO_MINIMISER
from walklearn.objectives.linear.rows import check_sizes
from walklearn.privacy import Allotment, Ledger, ModelNoise
from walklearn.privacy.accounting.budget import about_weak_epsilon
from walklearn.privacy.protection import Protection
from walklearn.updates.sgd import Sgd
from walklearn.updates.step_choice import FIRST_LOOK, choose_step, most_steps, public_steps
from walklearn.updates.step_sizes import ConstantStep, StepSize
from walklearn.updates.update import Update
from walklearn.visit import Setting
from walklearn.walks import Walk
from walklearn.walks.disclosure import mechanism_of
from walklearn.wording import often, plural

if TYPE_CHECKING:
    from walklearn.estimators.random_walk import RandomWalk

Array = NDArray[Any]

# With fewer, the eigenvalues that L_i comes from are found faster by one thread than by several.
MANY_FEATURES = 1000
# By default a walk ends when a doubling changes the loss by this share of what zeros lose, or, with
# memory, when the gradient that is left is this share of the penalty's.
SETTLED, ARRIVED = 3e-3, 1e-4
# Updates for each node with new rows in a call of partial_fit: as many would see 63 % of them.
VISITS = 5
UNEVEN = 100.0  # times as large as another: a column that slows a walk down


class Ended(NamedTuple):
    """A walk at its end: its setting, what was seen on the way, and what the next call needs."""

    setting: Setting
    walked: Walked
    posed: Posed
    seeds: Seeds
    ledger: Ledger
    state: State


def walk_over(estimator: RandomWalk, given: Given, state: State, partial: bool) -> Ended:
    """Let the token walk over these rows, from where `state` left it.

    partial: whether this is a call of partial_fit, one piece of a stream.
    """
    seeds, terms = seeds_of(estimator.random_state, state.calls), terms_of(estimator)
    walk = walk_of(estimator.walk, estimator.laziness, terms.about_constants)
    private = terms.are_private(walk)
    update = update_of(estimator, private, partial)
    gradients = 1 if update is None else update.gradients
    state.check_terms(terms, mechanism_of(walk), private)
    threads = 1 if given.X.shape[1] < MANY_FEATURES else None
    with _pools().limit(limits=threads, user_api="blas"):
        here = posed(estimator, given, terms, state, seeds.graph)
        if not private:
            check_sizes(here.problem.X, here.problem.y)
        places = _places(state, given, here.network.owners) if private else state.places
        updates = None if partial else estimator.steps
        allotted = state.allotted or terms.allotted(walk, here.problem, updates)
        walk_to_draw = terms.applied(walk, here.problem, allotted)
        noise = estimator.model_privacy if allotted is None else allotted.noise
        budget = None if allotted is None else (allotted.epsilon, allotted.delta)
        nodes = here.network.graph.node_count
        ledger = ledger_of_call(nodes, walk_to_draw, noise, state.ledger, seeds.simulated, budget)
        draws_constants = mechanism_of(walk_to_draw) is not None
        steps = _planned_steps(estimator, here.problem, private, partial, allotted, gradients)
        noisy = 0
        if noise is not None and steps is not None:
            noisy = min(steps * gradients, noise.max_contributions * nodes)
        cost = Cost(ledger, allotted, noisy * here.problem.size)
        if draws_constants:
            # Raises what is wrong with the parts; the step is not known before the draw.
            Setting(
                _with_batch(estimator, here.problem), walk_to_draw,
                update or Sgd(ConstantStep(1.0)),
                privacy=Protection() if noise is None else noise,
            )  # fmt: skip
            _charge(estimator, state, cost, terms, private)
        setting = _setting(
            estimator, terms, walk_to_draw, here, allotted, noise, seeds, update, steps
        )
    stopping = _stopping(estimator, setting, steps, partial)
    token = state.token_for(setting, here.units)
    _warn_if_spent(noise, state.contributions, gradients)
    if not draws_constants:  # only now, when nothing else can be wrong
        _charge(estimator, state, cost, terms, private)
    real = noise is not None and not seeds.simulated
    walked = walk_on(
        setting, here.network.graph, seeds.streams, token, stopping, state.contributions,
        estimator.callback, real, state.marks,
    )  # fmt: skip
    _check_finite(setting, walked.token.token.update, estimator)
    _warn_of_its_end(setting, walked, stopping, None if private or partial else here)
    kept = State(
        calls=state.calls + 1, units=here.units, network=here.network, token=walked.carried,
        ledger=ledger, contributions=walked.contributions, terms=terms,
        mechanism=mechanism_of(walk), allotted=allotted, marks=walked.marks if partial else [],
        interrupted=state.interrupted or walked.interrupted, places=places,
    )  # fmt: skip
    return Ended(setting, walked, here, seeds, ledger, kept)


def _charge(estimator: RandomWalk, state: State, cost: Cost, terms: Terms, private: bool) -> None:
    """Charge a call before it draws anything; warn of noise made by hand that protects little."""
    if terms.model_privacy is not None:  # `allot` warns of an ε that is given
        weak = about_weak_epsilon(cost.ledger.largest_total(terms.reported_delta)[1])
        if weak:
            warnings.warn(weak, stacklevel=6)
    if private:
        state.spend()
    if estimator._before_draw is not None:
        estimator._before_draw(cost)


@cache
def _pools() -> ThreadpoolController:
    """The pools of threads of this process, found once, because the search takes 6 ms."""
    return ThreadpoolController()


def _setting(
    estimator: RandomWalk,
    terms: Terms,
    walk: Walk,
    here: Posed,
    allotted: Allotment | None,
    noise: ModelNoise | None,
    seeds: Seeds,
    update: Update | None,
    steps: int | None,
) -> Setting:
    """The walk with what its nodes release, the update and the noise."""
    problem, graph = here.problem, here.network.graph
    drawn = released(walk, problem, graph, seeds.release)
    if update is None:
        update = Sgd(_step(estimator, terms, here, drawn, allotted))
    problem = _with_batch(estimator, problem)
    privacy = Protection() if noise is None else noise
    return Setting(problem, drawn, update, privacy=privacy, updates=steps or 0)


def _with_batch(estimator: RandomWalk, problem: Problem) -> Problem:
    """Return the problem with the mini-batch of the estimator, if it has one."""
    return problem if estimator.batch is None else problem.with_batch(estimator.batch)


def _step(
    estimator: RandomWalk, terms: Terms, here: Posed, walk: Walk, allotted: Allotment | None
) -> StepSize:
    """The step size of the paper's update that is given, or follows."""
    given, graph = step_of(estimator.step_size), here.network.graph
    if given is not None:
        return given
    if allotted is not None:
        return ConstantStep(allotted.step)
    if terms.are_private(walk):
        return terms.step(here.problem, graph, walk)
    return choose_step(here.problem, graph, walk, estimator.batch)


def _planned_steps(
    estimator: RandomWalk,
    problem: Problem,
    private: bool,
    partial: bool,
    allotted: Allotment | None,
    gradients: int,
) -> int | None:
    """Return the number of updates; None until convergence. Public if anything is private."""
    nodes, steps = problem.nodes, estimator.steps
    if steps is not None:
        return steps
    if partial:
        return nodes if private else VISITS * int(np.count_nonzero(np.diff(problem.offsets)))
    if not private:
        return None
    most = estimator.max_steps or most_steps(nodes, False)
    if allotted is not None:
        return max(1, min(allotted.updates // gradients, most))
    steps, noise = public_steps(nodes, most), estimator.model_privacy
    return steps if noise is None else min(steps, noise.max_contributions * nodes // gradients)


def _stopping(
    estimator: RandomWalk, setting: Setting, steps: int | None, partial: bool
) -> Stopping:
    """How long to walk; where something is private, by public numbers alone."""
    nodes, remembers = setting.objective.nodes, setting.update.converges
    default = ARRIVED if remembers else SETTLED
    return Stopping(
        steps=steps,
        most=estimator.max_steps or most_steps(nodes, remembers),
        first=max(FIRST_LOOK, nodes),
        tolerance=default if estimator.tol is None else estimator.tol,
        average=average_of(estimator, setting.update),
        go_on=partial,
    )


def _warn_if_spent(noise: ModelNoise | None, contributions: Array | None, gradients: int) -> None:
    if noise is None or contributions is None or not contributions.size:
        return
    if int(contributions.min()) + gradients > noise.max_contributions:
        warnings.warn(
            f"no node can add to the model again: ε allows {often(noise.max_contributions)} per "
            "node. Further visits leave the model unchanged. Start with a new estimator, which "
            "spends ε again.",
            stacklevel=6,
        )


def _places(state: State, given: Given, owners: Array) -> Places:
    """Return the node of each row so far; refuse a row that was at another node before.

    A row may influence the model as often as ε allows at each of its nodes, which no ledger counts.
    """
    places, moved = state.places.with_rows(given.X, given.targets, owners)
    if moved.size:
        raise ValueError(
            f"{moved.size} of {len(owners)} rows were at other nodes in an earlier call "
            f"(the first is row {moved[0] + 1}). Each of its nodes could use a row as often as ε "
            "allows, so that ε would be exceeded. Give a row the same node in every call "
            "(nodes=...). Rows of other people that happen to be equal cannot be told apart from "
            "rows that moved: fit them in one call, or with a new estimator, which spends ε again."
        )
    return places


def _check_finite(setting: Setting, token: Arrays, estimator: RandomWalk) -> None:
    """Raise where the model is infinite, with what to do about the steps, if they were given."""
    update, objective = setting.update, setting.visible
    vectors = update.model(objective, token), update.average_model(objective, token)
    if all(np.isfinite(vector).all() for vector in vectors):
        return
    own = estimator.step_size is not None or getattr(estimator.update, "step_size", None)
    raise ValueError(
        "the model diverged to infinity: the steps are too long. "
        + ("Use a smaller step or none" if own else
           "Bring the columns to one scale, or use a larger penalty")
        + ", or a bounded domain (in Python: domain=domains.Ball(10.0))."
    )  # fmt: skip


def _warn_of_its_end(
    setting: Setting, walked: Walked, stopping: Stopping, here: Posed | None
) -> None:
    """Warn if the training was interrupted or has not converged, or if there is no minimiser.

    here: None if the rows are private, or if more of them will come.
    """
    model = setting.update.model(setting.visible, walked.token.token.update)
    if walked.interrupted:
        warnings.warn(
            f"interrupted after {plural(walked.token.token.updates, 'update')}: the model so far "
            "is kept. With warm_start=True another fit continues from it.",
            InterruptedWarning,
            stacklevel=6,
        )
    elif here is not None and here.problem.falls_for_ever_along(model):
        warnings.warn(NO_MINIMISER, ConvergenceWarning, stacklevel=6)
    elif not walked.settled and stopping.steps is None:
        why = why_not_settled(walked, stopping) + ("" if here is None else _about_scales(here))
        warnings.warn(why, ConvergenceWarning, stacklevel=6)


def _about_scales(here: Posed) -> str:
    """A note that columns, which were left as they are, differ in size by far, if they do."""
    if not here.units.are_given:
        return ""
    X = here.problem.X
    summed = X.multiply(X).sum(axis=0) if here.problem.is_sparse else np.einsum("ra,ra->a", X, X)
    squares = np.asarray(summed)
    sizes = np.sqrt(squares[squares > 0])
    if sizes.max(initial=0.0) < UNEVEN * sizes.min(initial=np.inf):
        return ""
    return (
        f" Some columns are {sizes.max() / sizes.min():,.0f} times as large as others, which makes "
        'a walk slow: bring them to one scale (standardise="auto", or a schema).'
    )
