"""Compute the minimiser w* of an objective over its domain W, up to rounding errors.

Errors of a run are measured against w*, so w* must be far more accurate than any run. SciPy's
L-BFGS-B gives a first approximation. Projected Newton steps then reduce the gradient to rounding
errors: they move the coordinates that are not held at a bound, with a line search (Bertsekas 1982).
In high dimension conjugate gradients compute the step, at the cost of one gradient per iteration.
The minimiser over a ball is either inside it, or it is the minimiser of f(w) + (μ/2)‖w‖² for the
one μ that puts it on the sphere.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from walklearn.arrays import Array, Vector
from walklearn.objectives.linear.domains import Ball, Box, Everywhere
from walklearn.objectives.linear.rows import scores

if TYPE_CHECKING:
    from walklearn.objectives.linear.problem import Problem

# In higher dimension a dense Hessian is too expensive.
LARGEST_HESSIAN = 2000
# After a step this short, relative to the model, the next would be rounding.
ROUNDING = 1e-13
# Up to this dimension Newton steps alone minimise a strongly convex function, in less time than
# importing SciPy's solvers takes.
FEW_COORDINATES = 64
# An eigenvalue of a Hessian with unit diagonal below this counts as 0.
SINGULAR = 1e-10
# Conjugate gradients: Newton steps, iterations per step, relative tolerance of the residual, and
# the curvature that counts as 0.
MAX_NEWTON_CG, MAX_ITERATIONS, CG_TOLERANCE, FLAT = 50, 500, 1e-4, 1e-16


class NoMinimiserError(ValueError):
    """The objective has no minimiser: it keeps decreasing as the model grows.

    Examples
    --------
    >>> from walklearn import Problem, losses
    >>> Problem([[1.0], [2.0]], [1.0, 1.0], loss=losses.Logistic()).solution
    Traceback (most recent call last):
        ...
    walklearn.objectives.linear.optimum.NoMinimiserError: the objective has no minimiser: the ...
    """


@dataclass(frozen=True, eq=False)
class Optimum:
    """A minimiser, the minimum, and the uniqueness of the minimiser.

    Parameters
    ----------
    model
        w*, flat.
    value
        f* = f(w*).
    unique
        True if w* is the only minimiser.

    Examples
    --------
    >>> from walklearn import Problem, losses
    >>> optimum = Problem([[1.0], [1.0]], [1.0, 3.0], loss=losses.Squared()).solution
    >>> optimum.model, optimum.value, optimum.unique
    (array([2.]), 1.0, True)
    """

    model: Vector
    value: float
    unique: bool


def minimise(problem: Problem) -> Optimum:
    """Minimise an objective over its domain."""
    domain, size = problem.domain, problem.size
    if type(domain) not in (Ball, Box, Everywhere):  # a user's class may project otherwise
        raise TypeError(f"the optimum over {domain!r} is unknown. Use a Ball, a Box or Everywhere.")
    low, high = (domain.low, domain.high) if isinstance(domain, Box) else (-np.inf, np.inf)
    start = domain.project(np.zeros(size))
    model = _newton(problem, _approximate(problem, start, low, high), low, high)
    strictly_convex = problem  # it is, if the minimiser is unique
    if isinstance(domain, Ball) and np.linalg.norm(model) > domain.radius:
        model, strictly_convex = _minimise_over_ball(problem, domain.radius, start)
    _check_stationary(problem, model)
    model.setflags(write=False)
    unique = _is_unique(strictly_convex, model, start, _free(problem, model, low, high))
    return Optimum(model, problem.value(model), unique)


def refine_optimum(problem: Problem, near: Optimum, similar: Problem) -> Vector | None:
    """Compute w* from the minimiser `near` of a similar, cheaper problem and its Hessian H.

    Each step w − H⁻¹∇f(w) multiplies the error by the relative difference of the two Hessians,
    until it is a rounding error. Return None if the error does not fall, or if a step leaves W.
    """
    if not near.unique or near.model.size > LARGEST_HESSIAN:
        return None
    model, curvature, last_length = near.model, hessian(similar, near.model), np.inf
    while last_length > ROUNDING:
        step = _newton_direction(curvature, problem.full_gradient(model))
        length = float(np.linalg.norm(step)) / (1.0 + float(np.linalg.norm(model)))
        if length > 0.1 * last_length:
            if last_length > 1000 * ROUNDING:
                return None
            break
        model, last_length = model - step, length
        if not np.array_equal(problem.project(model), model):
            return None
    model.setflags(write=False)
    return model


def hessian(problem: Problem, model: Array) -> Array:
    """Compute ∇²f(w), a matrix of d × d, or Kd × Kd for K classes."""
    curvature = problem.loss.curvature(scores(problem.X, model), problem.y)
    weights = problem.row_weights / problem.nodes
    if problem.outputs == 1:
        data_part = _weighted_square(problem, weights * curvature)
    else:
        data_part = np.block(
            [
                [_weighted_square(problem, weights * column) for column in block.T]
                for block in curvature.transpose(1, 0, 2)
            ]
        )
    return np.asarray(data_part + problem.penalty * np.eye(problem.size))


def hessian_product(problem: Problem, model: Array) -> Callable[[Array], Array]:
    """Return the function v ↦ ∇²f(w) v, which needs no matrix of d × d."""
    curvature = problem.loss.curvature(scores(problem.X, model), problem.y)
    weights = problem.row_weights / problem.nodes

    def product(direction: Array) -> Array:
        change = scores(problem.X, direction)
        if problem.outputs == 1:
            slopes = weights * curvature * change
        else:
            slopes = np.einsum("rkl,rl->kr", curvature, change) * weights
        return np.asarray(slopes @ problem.X).reshape(-1) + problem.penalty * direction

    return product


def _weighted_square(problem: Problem, weights: Array) -> Array:
    """Compute Σ weight · x xᵀ over all rows."""
    if problem.is_sparse:
        return np.asarray((problem.X.T.multiply(weights).tocsr() @ problem.X).toarray())
    return np.asarray((problem.X.T * weights) @ problem.X)


def _approximate(problem: Problem, start: Vector, low: float, high: float) -> Vector:
    """Approximate the minimiser with SciPy's solver for smooth functions with bounds."""
    unbounded = not np.isfinite(low) and not np.isfinite(high)
    if start.size <= FEW_COORDINATES and problem.penalty > 0 and unbounded:
        return start
    from scipy.optimize import minimize

    result = minimize(problem.value, start, method="L-BFGS-B", jac=problem.full_gradient,
                     bounds=[(low, high)] * start.size,
                     options={"maxiter": 20_000, "maxfun": 40_000, "ftol": 1e-15,
                              "gtol": 1e-12, "maxcor": 30})  # fmt: skip
    return np.asarray(np.clip(result.x, low, high), dtype=float)


def _newton(problem: Problem, model: Vector, low: float, high: float) -> Vector:
    """Take Newton steps on the free coordinates until f stops decreasing."""
    if model.size > LARGEST_HESSIAN:
        return _newton_cg(problem, model, low, high)
    for _ in range(500):
        gradient, hessian_matrix = problem.full_gradient(model), hessian(problem, model)
        # A Newton step would push coordinates near a bound across it, so they take a gradient step.
        reach = np.abs(model - np.clip(model - gradient, low, high)).max()
        free = _free(problem, model, low, high, min(1e-3, float(reach)))
        curvature = np.diag(hessian_matrix)
        newton = gradient / np.where(curvature > 0, curvature, 1.0)
        newton[free] = _newton_direction(hessian_matrix[np.ix_(free, free)], gradient[free])
        candidate = _line_search(problem, model, gradient, newton, low, high)
        if candidate is None:
            descent = gradient / (float(np.linalg.norm(hessian_matrix)) or 1.0)
            candidate = _line_search(problem, model, gradient, descent, low, high)
        if candidate is None:
            break
        model = candidate
    return model


def _newton_cg(problem: Problem, model: Vector, low: float, high: float) -> Vector:
    """Take Newton steps computed by conjugate gradients; coordinates held at a bound stay there."""
    for _ in range(MAX_NEWTON_CG):
        gradient, free = problem.full_gradient(model), _free(problem, model, low, high)
        apply_hessian = hessian_product(problem, model)
        direction = _conjugate_gradients(apply_hessian, np.where(free, gradient, 0.0), free)
        candidate = _line_search(problem, model, gradient, direction, low, high)
        if candidate is None:
            break
        model = candidate
    return model


def _conjugate_gradients(
    apply_hessian: Callable[[Vector], Vector], gradient: Vector, free: NDArray[np.bool_]
) -> Vector:
    """Solve H v = g on the free coordinates up to `CG_TOLERANCE` ‖g‖, or until H is flat."""
    solution, residual = np.zeros_like(gradient), gradient.copy()
    direction, squared = residual.copy(), float(residual @ residual)
    tolerance = CG_TOLERANCE**2 * squared
    for _ in range(MAX_ITERATIONS):
        if squared <= tolerance:
            break
        product = np.where(free, apply_hessian(direction), 0.0)
        curvature = float(direction @ product)
        if curvature <= FLAT * float(direction @ direction):
            break
        length = squared / curvature
        solution += length * direction
        residual -= length * product
        previous, squared = squared, float(residual @ residual)
        direction = residual + squared / previous * direction
    return solution if solution.any() else gradient


def _newton_direction(hessian: Vector, gradient: Vector) -> Vector:
    """Compute H⁻¹g, or the pseudo-inverse times g if H is singular, scaled to a unit diagonal."""
    diagonal = np.diag(hessian)
    units = np.sqrt(np.where(diagonal > 0, diagonal, 1.0))
    scaled = hessian / np.outer(units, units)
    try:
        np.linalg.cholesky(scaled - SINGULAR * np.eye(len(scaled)))
        step = np.linalg.solve(scaled, gradient / units)
    except np.linalg.LinAlgError:
        step = np.linalg.lstsq(scaled, gradient / units, rcond=SINGULAR)[0]
    return np.asarray(step / units)


def _line_search(
    problem: Problem, model: Vector, gradient: Vector, direction: Vector, low: float, high: float
) -> Vector | None:
    """Return the model after the first of the steps 1, ½, ¼, … that lowers f enough, or None.

    Near the minimum f changes by less than its rounding error, so a full step that halves the
    gradient is accepted, too.
    """
    value, free = problem.value(model), _free(problem, model, low, high)
    gradient_norm = float(np.linalg.norm(gradient[free]))
    for halvings in range(50):
        candidate = np.clip(model - 0.5**halvings * direction, low, high)
        decrease = float(gradient @ (model - candidate))
        if decrease > 1e-12 * abs(value) and problem.value(candidate) < value - 1e-4 * decrease:
            return candidate
        if halvings == 0:
            new_gradient = problem.full_gradient(candidate)[_free(problem, candidate, low, high)]
            if np.linalg.norm(new_gradient) < 0.5 * gradient_norm:
                return candidate
    return None


def _free(
    problem: Problem, model: Vector, low: float, high: float, near: float = 0.0
) -> NDArray[np.bool_]:
    """Mark the coordinates that the gradient does not hold at (or near) a bound."""
    if not np.isfinite(low):
        return np.ones(model.size, dtype=np.bool_)
    gradient = problem.full_gradient(model)
    at_low = (model <= low + near) & (gradient > 0)
    at_high = (model >= high - near) & (gradient < 0)
    return ~(at_low | at_high)


def _minimise_over_ball(problem: Problem, radius: float, start: Vector) -> tuple[Vector, Problem]:
    """Return the minimiser over the ball if that of f is outside, and the problem with penalty + μ.

    ‖w(μ)‖ decreases in μ, 1/‖w(μ)‖ is nearly linear, and μ ≤ ‖∇f(0)‖ / radius by convexity. If w(μ)
    is inside the ball for a tiny μ, f has a shorter minimiser inside, and μ = 0.
    """
    from scipy.optimize import brentq

    warm_start = [start]

    def solve(multiplier: float) -> Problem:
        penalised = problem._copy_with(penalty=problem.penalty + multiplier, copy=False)
        warm_start[0] = _newton(penalised, warm_start[0], -np.inf, np.inf)
        return penalised

    def excess(multiplier: float) -> float:
        solve(multiplier)
        return 1.0 / radius - 1.0 / max(float(np.linalg.norm(warm_start[0])), 1e-300)

    largest = float(np.linalg.norm(problem.full_gradient(np.zeros_like(start)))) / radius
    highest, lowest = largest * (1 + 1e-9), 1e-12 * largest
    solve(highest)
    if excess(lowest) <= 0:
        return warm_start[0], problem
    penalised = solve(float(brentq(excess, lowest, highest, xtol=1e-15 * largest, rtol=1e-14)))
    return warm_start[0] * (radius / np.linalg.norm(warm_start[0])), penalised


def _check_stationary(problem: Problem, model: Vector) -> None:
    """Warn if a projected gradient step moves w, since none moves a minimiser over W."""
    gradient, origin = problem.full_gradient(model), problem.full_gradient(np.zeros_like(model))
    scale = float(np.linalg.norm(gradient) + np.linalg.norm(origin))
    if model.size <= LARGEST_HESSIAN:  # ‖∇f‖² ≤ 2 L f: the size of gradients near w
        zero = np.zeros_like(model)
        scale += float(np.trace(hessian(problem, zero)) * abs(problem.value(zero))) ** 0.5
    if scale == 0:
        return
    step = (1.0 + float(np.linalg.norm(model))) / scale
    residual = float(np.linalg.norm(model - problem.project(model - step * gradient))) / step
    if residual > 1e-6 * scale:
        warnings.warn(
            f"the optimum has a gradient of norm {residual:.1e}, so smaller distances and gaps are "
            "not meaningful. Scale the features or add a penalty.",
            stacklevel=2,
        )


def _is_unique(problem: Problem, model: Vector, start: Vector, free: NDArray[np.bool_]) -> bool:
    """True if f is known to be strictly convex at w along the free directions.

    Above `LARGEST_HESSIAN` only a penalty proves that. A curvature that almost vanished between
    start and w is taken as 0, because no distance may be measured from one of several minimisers.
    """
    if problem.penalty > 0 or not free.any():
        return True
    if model.size > LARGEST_HESSIAN:
        return False
    curvatures = hessian(problem, model)[np.ix_(free, free)]
    diagonal, at_start = np.diag(curvatures), np.diag(hessian(problem, start))[free]
    if (diagonal <= 1e-12 * at_start).any():
        return False
    units = np.sqrt(diagonal)
    return bool(np.linalg.eigvalsh(curvatures / np.outer(units, units))[0] > SINGULAR)
