"""A prepared call of `fit` or `partial_fit`, run: from its first draw to the end of its walk."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from dataclasses import replace
from typing import NamedTuple

import numpy as np
from sklearn.exceptions import ConvergenceWarning

from walklearn.arrays import Arrays
from walklearn.errors import InterruptedWarning
from walklearn.fitting.prepare import Posed, Prepared, blas_threads
from walklearn.fitting.rounds import Walked, run_walk, why_not_settled
from walklearn.fitting.training_state import State
from walklearn.objectives.linear.minimiser import NO_MINIMISER
from walklearn.visit import Setting
from walklearn.wording import plural

UNEVEN = 100.0  # times as large as another: a column that slows a walk down


class Ended(NamedTuple):
    """The result of a walk: the prepared call, its setting, the walk, and the state to keep."""

    prepared: Prepared
    setting: Setting
    walked: Walked
    state: State


def train(prepared: Prepared, callback: Callable[[int, float], object] | None) -> Ended:
    """Let the token walk over the rows, from where earlier calls left it."""
    plan, here, state = prepared.plan, prepared.posed, prepared.state
    if prepared.request.is_private:
        state.spend()
    seeds = prepared.seeds
    with blas_threads(here.problem.X.shape[1]):
        setting = plan.bind(here.problem, seeds.release)
    walked = run_walk(
        setting, plan.graph, seeds.streams, prepared.token, plan.stop, state.contributions,
        callback, prepared.draws_exactly, state.marks,
    )  # fmt: skip
    given_step = prepared.request.step_size is not None or getattr(
        prepared.request.update, "step_size", None
    )
    _check_finite(setting, walked.token.token.update, bool(given_step))
    is_public = not (prepared.request.is_private or prepared.partial)
    _warn_of_its_end(setting, walked, prepared, here if is_public else None)
    kept = replace(
        state, resumed=None, calls=state.calls + 1, units=here.units, network=here.network,
        token=walked.carried, ledger=prepared.ledger, contributions=walked.contributions,
        request=prepared.request, plan=plan, marks=walked.marks if prepared.partial else [],
        interrupted=state.interrupted or walked.interrupted, marked_rows=prepared.marked_rows,
        is_spent=False,
    )  # fmt: skip
    return Ended(prepared, setting, walked, kept)


def _check_finite(setting: Setting, token: Arrays, gives_steps: bool) -> None:
    """Raise an error if the model is infinite; the remedy depends on whether steps were given."""
    update, objective = setting.update, setting.visible
    vectors = update.model(objective, token), update.average_model(objective, token)
    if all(np.isfinite(vector).all() for vector in vectors):
        return
    raise ValueError(
        "the model diverged to infinity: the steps are too long. "
        + ("Use a smaller step or none" if gives_steps else
           "Bring the columns to one scale, or use a larger penalty")
        + ", or a bounded domain (in Python: domain=domains.Ball(10.0))."
    )  # fmt: skip


def _warn_of_its_end(
    setting: Setting, walked: Walked, prepared: Prepared, here: Posed | None
) -> None:
    """Warn if the training was interrupted or has not converged, or if there is no minimiser.

    here: None if the rows are private, or if more of them will come.
    """
    stopping = prepared.plan.stop
    model = setting.update.model(setting.visible, walked.token.token.update)
    if walked.interrupted:
        warnings.warn(
            f"interrupted after {plural(walked.token.token.updates, 'update')}: the model so far "
            "is kept. With warm_start=True another fit continues from it.",
            InterruptedWarning,
            stacklevel=6,
        )
    elif here is not None and here.problem.decreases_forever_along(model):
        warnings.warn(NO_MINIMISER, ConvergenceWarning, stacklevel=6)
    elif not walked.settled and stopping.steps is None:
        why = why_not_settled(walked, stopping) + ("" if here is None else _about_scales(here))
        warnings.warn(why, ConvergenceWarning, stacklevel=6)


def _about_scales(here: Posed) -> str:
    """Return a note if columns that were not rescaled differ in size by far, else nothing."""
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
