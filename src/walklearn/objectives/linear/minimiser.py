"""Existence and computation of the minimiser w*: `Problem.solution`.

With a penalty, or over a bounded domain, there always is one. Without them a logistic loss falls
for ever along a direction in which every row is on its right side, if there is such a direction.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING

import numpy as np

from walklearn.arrays import Array
from walklearn.objectives.linear.optimum import NoMinimiserError, Optimum, Smooth, minimise, refined
from walklearn.objectives.linear.rows import check_sizes, scores

if TYPE_CHECKING:
    from walklearn.objectives.linear.problem import Problem


# Up to this many entries a linear program decides whether a minimiser exists.
LARGEST_PROGRAM = 5_000_000
# From so many rows on w* is first sought over a sample, of so many of them.
MANY_ROWS = 2**20
SAMPLED_ROWS = 2**18
NO_MINIMISER = (
    "the objective has no minimiser: the classes can be separated by a hyperplane, there is no "
    "penalty and the domain is unbounded, so the loss falls for ever as the model grows. Use a "
    "positive penalty or a bounded domain (in Python: domain=domains.Ball(10.0))."
)


def optimum_of(problem: Problem) -> Optimum:
    """w*, f* and whether w* is unique; NoMinimiserError if there is none."""
    if problem.penalty == 0 and not problem.domain.bounded:
        _check_minimiser_exists(problem)
    precise = problem if problem.dtype == np.float64 else problem._changed(dtype=np.float64)
    check_sizes(precise.X, precise.y)
    found = found_from_sample(precise) if problem.row_count > MANY_ROWS else None
    found = found or minimise(_function(precise), problem.domain, problem.size)
    if grows_forever(problem, found.model):
        raise NoMinimiserError(NO_MINIMISER)
    return found


def _function(problem: Problem) -> Smooth:
    """f with its derivatives, as the solvers take it."""
    return Smooth(
        problem.value, problem.full_gradient, partial(hessian, problem),
        partial(_curvature_along, problem), problem.penalty,
    )  # fmt: skip


def found_from_sample(problem: Problem) -> Optimum | None:
    """Find w* by steps over all rows from the w* of a sample; None if that does not do.

    Only with a penalty is it known to be the only one, whatever the loss.
    """
    if problem.penalty == 0:
        return None
    chosen = np.sort(np.random.default_rng(0).integers(problem.row_count, size=SAMPLED_ROWS))
    weights = problem.row_weights[chosen] * (problem.row_count / SAMPLED_ROWS / problem.nodes)
    owners = np.zeros(SAMPLED_ROWS, dtype=np.int64)
    sample = problem._changed(
        X=problem.X[chosen], y=problem.y[chosen], node_of_row=owners, nodes=1, aggregate="sum",
        sample_weight=weights, total_rows=None,
    )  # fmt: skip
    if sample.size != problem.size:  # a class that no row of the sample is of
        return None
    try:
        near = sample.solution
    except NoMinimiserError:
        return None
    model = refined(_function(problem), problem.domain, partial(hessian, sample), near)
    return None if model is None else Optimum(model, problem.value(model), unique=True)


def hessian(problem: Problem, model: Array) -> Array:
    """∇²f(w), a matrix of d × d, or Kd × Kd for K classes."""
    curvature = problem.loss.curvature(scores(problem.X, model), problem.y)
    weights = problem.row_weights / problem.nodes
    if problem.outputs == 1:
        data_part = _weighted_square(problem, weights * curvature)
    else:
        data_part = np.block(
            [
                [_weighted_square(problem, weights * column) for column in line.T]
                for line in curvature.transpose(1, 0, 2)
            ]
        )
    return np.asarray(data_part + problem.penalty * np.eye(problem.size))


def _curvature_along(problem: Problem, model: Array) -> Callable[[Array], Array]:
    """v ↦ ∇²f(w) v, which needs no matrix of d × d."""
    curvature = problem.loss.curvature(scores(problem.X, model), problem.y)
    weights = problem.row_weights / problem.nodes

    def along(direction: Array) -> Array:
        moved = scores(problem.X, direction)
        if problem.outputs == 1:
            slopes = weights * curvature * moved
        else:
            slopes = np.einsum("rkl,rl->kr", curvature, moved) * weights
        return np.asarray(slopes @ problem.X).reshape(-1) + problem.penalty * direction

    return along


def _weighted_square(problem: Problem, weights: Array) -> Array:
    """Σ weight · x xᵀ over all rows."""
    if problem.is_sparse:
        return np.asarray((problem.X.T.multiply(weights).tocsr() @ problem.X).toarray())
    return np.asarray((problem.X.T * weights) @ problem.X)


def _check_minimiser_exists(problem: Problem) -> None:
    """Refuse a problem with a direction that every row likes or ignores: there f falls for ever."""
    if not problem.loss.decreases_forever:
        return
    if problem.row_count * problem.outputs * problem.size > LARGEST_PROGRAM:
        return  # then only a model that separates the rows outright will tell
    from scipy.optimize import linprog

    likes = _directions_of_descent(problem)
    # In units in which the solver's tolerances mean the same for every feature.
    likes /= np.maximum(np.abs(likes).max(axis=0), 1e-300)
    likes /= np.maximum(np.abs(likes).max(axis=1, keepdims=True), 1e-300)
    best = linprog(-likes.sum(axis=0), A_ub=-likes, b_ub=np.zeros(len(likes)), bounds=(-1, 1))
    if best.fun is not None and -best.fun > 1e-9 * np.abs(likes).sum():
        raise NoMinimiserError(NO_MINIMISER)


def grows_forever(problem: Problem, model: Array) -> bool:
    """Whether f falls for ever as the model grows: it separates all rows, and nothing bounds it."""
    if problem.penalty > 0 or problem.domain.bounded or not problem.loss.decreases_forever:
        return False
    given = scores(problem.X, model)
    if problem.loss.takes == "class":
        own = np.take_along_axis(given, problem.y.astype(int)[:, None], axis=1)
        others = np.where(np.arange(problem.outputs) == problem.y[:, None], -np.inf, given)
        return bool((own[:, 0] > others.max(axis=1)).all())
    return bool((problem.y * given > 0).all())


def _directions_of_descent(problem: Problem) -> Array:
    """Rows v with v·w = margin of a row (for `Softmax`: over each other class)."""
    X = problem.X.toarray() if problem.is_sparse else problem.X
    if problem.outputs == 1:
        return np.asarray(problem.y[:, None] * X, dtype=float)
    own = np.eye(problem.outputs)[problem.y.astype(int)]
    others = own[:, None, :] - np.eye(problem.outputs)[None, :, :]
    margins = others[:, :, :, None] * X[:, None, None, :]
    return np.asarray(margins.reshape(-1, problem.size), dtype=float)
