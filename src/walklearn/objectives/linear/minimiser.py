"""Existence of the minimiser w*, and its computation for many rows: `Problem.solution`.

With a penalty, or over a bounded domain, there is a minimiser. Otherwise a logistic loss keeps
decreasing along a direction that classifies every row correctly, if there is one.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from walklearn.arrays import Array
from walklearn.objectives.linear.optimum import NoMinimiserError, Optimum, minimise, refine_optimum
from walklearn.objectives.linear.rows import check_sizes, scores

if TYPE_CHECKING:
    from walklearn.objectives.linear.problem import Problem


# Up to this many entries a linear program decides whether a minimiser exists.
LARGEST_PROGRAM = 5_000_000
# For more rows, w* is first computed for a sample of this size.
MANY_ROWS = 2**20
SAMPLED_ROWS = 2**18
NO_MINIMISER = (
    "the objective has no minimiser: the classes can be separated by a hyperplane, there is no "
    "penalty and the domain is unbounded, so the loss keeps decreasing as the model grows. "
    "Use a positive penalty or a bounded domain (in Python: domain=domains.Ball(10.0))."
)


def optimum_of(problem: Problem) -> Optimum:
    """Compute w*, f* and whether w* is unique. NoMinimiserError if there is none."""
    if problem.penalty == 0 and not problem.domain.bounded:
        _check_minimiser_exists(problem)
    precise = problem if problem.dtype == np.float64 else problem._copy_with(dtype=np.float64)
    check_sizes(precise.X, precise.y)
    optimum = optimum_from_sample(precise) if problem.row_count > MANY_ROWS else None
    optimum = optimum or minimise(precise)
    if decreases_forever(problem, optimum.model):
        raise NoMinimiserError(NO_MINIMISER)
    return optimum


def optimum_from_sample(problem: Problem) -> Optimum | None:
    """Compute w* by steps over all rows from the w* of a sample; None if that fails.

    It needs a penalty, with which w* is unique for every loss.
    """
    if problem.penalty == 0:
        return None
    chosen = np.sort(np.random.default_rng(0).integers(problem.row_count, size=SAMPLED_ROWS))
    weights = problem.row_weights[chosen] * (problem.row_count / SAMPLED_ROWS / problem.nodes)
    owners = np.zeros(SAMPLED_ROWS, dtype=np.int64)
    sample = problem._copy_with(
        X=problem.X[chosen], y=problem.y[chosen], node_of_row=owners, nodes=1, aggregate="sum",
        sample_weight=weights, total_rows=None,
    )  # fmt: skip
    if sample.size != problem.size:  # the sample lacks a class
        return None
    try:
        near = sample.solution
    except NoMinimiserError:
        return None
    model = refine_optimum(problem, near, sample)
    return None if model is None else Optimum(model, problem.value(model), unique=True)


def _check_minimiser_exists(problem: Problem) -> None:
    """Raise a NoMinimiserError if f keeps decreasing along a direction that no row opposes."""
    if not problem.loss.decreases_forever:
        return
    if problem.row_count * problem.outputs * problem.size > LARGEST_PROGRAM:
        return  # then only a model that separates all rows shows it
    from scipy.optimize import linprog

    margins = _margins(problem)
    # In units in which the solver's tolerances mean the same for every feature.
    margins /= np.maximum(np.abs(margins).max(axis=0), 1e-300)
    margins /= np.maximum(np.abs(margins).max(axis=1, keepdims=True), 1e-300)
    best = linprog(-margins.sum(axis=0), A_ub=-margins, b_ub=np.zeros(len(margins)), bounds=(-1, 1))
    if best.fun is not None and -best.fun > 1e-9 * np.abs(margins).sum():
        raise NoMinimiserError(NO_MINIMISER)


def decreases_forever(problem: Problem, model: Array) -> bool:
    """True if f keeps decreasing as the model grows, since the model separates all rows."""
    if problem.penalty > 0 or problem.domain.bounded or not problem.loss.decreases_forever:
        return False
    outputs = scores(problem.X, model)
    if problem.loss.takes == "class":
        right = np.take_along_axis(outputs, problem.y.astype(int)[:, None], axis=1)
        others = np.where(np.arange(problem.outputs) == problem.y[:, None], -np.inf, outputs)
        return bool((right[:, 0] > others.max(axis=1)).all())
    return bool((problem.y * outputs > 0).all())


def _margins(problem: Problem) -> Array:
    """Return rows v with v·w = margin of a row (for `Softmax`: over each other class)."""
    X = problem.X.toarray() if problem.is_sparse else problem.X
    if problem.outputs == 1:
        return np.asarray(problem.y[:, None] * X, dtype=float)
    right = np.eye(problem.outputs)[problem.y.astype(int)]
    others = right[:, None, :] - np.eye(problem.outputs)[None, :, :]
    margins = others[:, :, :, None] * X[:, None, None, :]
    return np.asarray(margins.reshape(-1, problem.size), dtype=float)
