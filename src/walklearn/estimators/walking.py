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
from walklearn.estimators.accounts import Cost, ledger_of_call
from walklearn.estimators.parameters import Seeds, average_of, memory_of, seeds_of, step_of
from walklearn.estimators.places import Places
from walklearn.estimators.posing import Given, Posed, posed, terms_of
from walklearn.estimators.protection import Terms, released, walk_of
from walklearn.estimators.rounds import (
    Stopping,
    Walked,
    walk_on,
    why_not_settled,
)
from walklearn.estimators.state import State
from walklearn.files.wording import often, plural
from walklearn.privacy import Allotment, Ledger, ModelNoise
from walklearn.privacy.budget import about_weak_epsilon
from walklearn.privacy.protection import Protection
from walklearn.problem import Problem
from walklearn.problem.minimiser import NO_MINIMISER
from walklearn.problem.owned_rows import check_sizes
from walklearn.updates.sgd import Sgd
from walklearn.updates.step_choice import FIRST_LOOK, choose_step, most_steps, public_steps
from walklearn.updates.step_sizes import ConstantStep, StepSize
from walklearn.updates.update import UPDATES, Update
from walklearn.visit import Setting
from walklearn.walks import Walk
from walklearn.walks.disclosure import mechanism_of

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
    given_update = _given_update(estimator.update)
    if private and given_update is not None and type(given_update) is not Sgd:
        raise ValueError(
            f"no privacy can be claimed for {given_update!r}, an update that does not come with "
            'walklearn. Leave update at "auto".'
        )
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
        steps = _planned_steps(estimator, here.problem, private, partial, allotted)
        noisy = 0 if noise is None or steps is None else min(steps, noise.max_contributions * nodes)
        cost = Cost(ledger, allotted, noisy * here.problem.size)
        if draws_constants:
            _charge(estimator, state, cost, terms, private)
        setting = _setting(estimator, terms, walk_to_draw, here, allotted, noise, seeds, partial)
    stopping = _stopping(estimator, setting, steps, partial)
    token = state.token_for(here.problem, here.units, setting.update)
    _warn_if_spent(noise, state.contributions)
    if not draws_constants:  # only now, when nothing else can be wrong
        _charge(estimator, state, cost, terms, private)
    real = noise is not None and not seeds.simulated
    walked = walk_on(
        setting, here.network.graph, seeds.streams, token, stopping, state.contributions,
        estimator.callback, real, state.marks,
    )  # fmt: skip
    _check_finite(setting, walked.token.token.update, estimator)
    _warn_of_its_end(walked, stopping, None if private or partial else here)
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
    partial: bool,
) -> Setting:
    """The walk with what its nodes release, the update and the noise."""
    problem, graph, private = here.problem, here.network.graph, terms.are_private(walk)
    drawn = released(walk, problem, graph, seeds.release)
    update = (None if partial else memory_of(estimator, private)) or (
        _given_update(estimator.update) or Sgd(_step(estimator, terms, here, drawn, allotted))
    )
    if estimator.batch is not None:
        problem = problem.with_batch(estimator.batch)
    return Setting(problem, drawn, update, privacy=Protection() if noise is None else noise)


def _given_update(update: str | Update) -> Update | None:
    """Return an update without memory that is given or named; None for the paper's."""
    if update in ("auto", Sgd.name):
        return None
    given = update if isinstance(update, Update) else UPDATES.by_name(update)
    if given.converges:  # `partial_fit` does not use these
        return None
    return given if isinstance(given, Update) else given()


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
        return min(allotted.updates, most)
    steps, noise = public_steps(nodes, most), estimator.model_privacy
    return steps if noise is None else min(steps, noise.max_contributions * nodes)


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


def _warn_if_spent(noise: ModelNoise | None, contributions: Array | None) -> None:
    if noise is None or contributions is None:
        return
    if len(contributions) and int(contributions.min()) >= noise.max_contributions:
        warnings.warn(
            f"every node has added to the model {often(noise.max_contributions)}, as often as ε "
            "allows: further visits leave the model unchanged. Start with a new estimator, which "
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
    update, objective = setting.update, setting.objective
    vectors = update.model(objective, token), update.average_model(objective, token)
    if all(np.isfinite(vector).all() for vector in vectors):
        return
    own = estimator.step_size is not None or getattr(estimator.update, "step_size", None)
    raise ValueError(
        "the model diverged to infinity: the steps are too long. "
        + ("Leave step_size out, take a smaller one" if own else
           "Bring the columns to one scale, take a larger penalty")
        + ", or pass a bounded domain such as domains.Ball(10.0)."
    )  # fmt: skip


def _warn_of_its_end(walked: Walked, stopping: Stopping, here: Posed | None) -> None:
    """Say it where a walk was interrupted, should have settled and did not, or never can.

    here: None where the rows may not be looked at, or are not all that there will be.
    """
    if walked.interrupted:
        warnings.warn(
            f"interrupted after {plural(walked.token.token.updates, 'update')}: the model so far "
            "is kept. With warm_start=True another fit goes on from it.",
            stacklevel=6,
        )
    elif here is not None and here.problem.falls_for_ever_along(walked.token.token.update["model"]):
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
