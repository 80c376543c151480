"""The minimiser w* of a smooth convex function over W, to rounding.

Errors of a run are measured against w*, so it must be far more accurate than any run. SciPy's
L-BFGS-B comes near; projected Newton steps (Bertsekas 1982: on the coordinates that the bounds
leave free, with a line search) then bring the gradient down to rounding. With many coordinates
the Hessian is not written down: conjugate gradients find the step from its products with vectors,
each at the cost of a gradient. Over a ball the
minimiser is either inside, or it is the minimiser of f(w) + (μ/2)‖w‖² for the one μ that puts
it on the sphere.

>>> import numpy as np
>>> from walklearn.objectives.linear.domains import Ball
>>> bowl = Smooth(lambda w: 0.5 * float(w @ w) - w[0], lambda w: w - [1.0, 0.0],
...               lambda w: np.eye(2), lambda w: lambda v: v)
>>> minimise(bowl, Ball(0.5), size=2).model
array([0.5, 0. ])
"""

from __future__ import annotations

import warnings
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from walklearn.arrays import Vector
from walklearn.objectives.linear.domains import Ball, Box, Domain, Everywhere

# Past this many coordinates a dense Hessian costs more than it brings.
LARGEST_HESSIAN = 2000
# After a step this short, relative to the model, the next would be rounding.
ROUNDING = 1e-13
# A strongly convex function of so few coordinates is minimised by Newton's steps alone, sooner than
# SciPy's solvers are loaded.
FEW_COORDINATES = 64
# An eigenvalue of a Hessian with unit diagonal below this counts as 0.
SINGULAR = 1e-10
# Of steps by conjugate gradients: how many, products for each, what they leave over, and what
# curvature counts as 0.
MAX_NEWTON_CG, MAX_PRODUCTS, LEFT_OVER, FLAT = 50, 500, 1e-4, 1e-16


class NoMinimiserError(ValueError):
    """The objective has no minimiser: it falls for ever as the model grows.

    Examples
    --------
    >>> from walklearn import Problem, losses
    >>> Problem([[1.0], [2.0]], [1.0, 1.0], loss=losses.Logistic()).solution
    Traceback (most recent call last):
        ...
    walklearn.objectives.linear.optimum.NoMinimiserError: the objective has no minimiser: the ...
    """


@dataclass(frozen=True)
class Smooth:
    """A convex function with its first two derivatives and a known strong convexity."""

    value: Callable[[Vector], float]
    gradient: Callable[[Vector], Vector]
    hessian: Callable[[Vector], Vector]
    curvature_along: Callable[[Vector], Callable[[Vector], Vector]]  # w ↦ v ↦ ∇²f(w) v
    strong_convexity: float = 0.0


@dataclass(frozen=True, eq=False)
class Optimum:
    """A minimiser, the least value, and whether the minimiser is the only one.

    Parameters
    ----------
    model
        w*, flat.
    value
        f* = f(w*).
    unique
        Whether w* is the only minimiser.

    Examples
    --------
    >>> from walklearn import Problem, losses
    >>> found = Problem([[1.0], [1.0]], [1.0, 3.0], loss=losses.Squared()).solution
    >>> found.model, found.value, found.unique
    (array([2.]), 1.0, True)
    """

    model: Vector
    value: float
    unique: bool


def minimise(function: Smooth, domain: Domain, size: int) -> Optimum:
    """Minimise a smooth convex function over a domain."""
    if type(domain) not in (Ball, Box, Everywhere):  # a class of one's own may project otherwise
        raise TypeError(
            f"the optimum over {domain!r} is not known; take a Ball, Box or Everywhere."
        )
    low, high = (domain.low, domain.high) if isinstance(domain, Box) else (-np.inf, np.inf)
    start = domain.project(np.zeros(size))
    model = _newton(function, _near(function, start, low, high), low, high)
    curved = function  # what is strictly convex where the minimiser is the only one
    if isinstance(domain, Ball) and np.linalg.norm(model) > domain.radius:
        model, multiplier = _on_the_sphere(function, domain.radius, start)
        curved = _with_ridge(function, multiplier)
    _check_stationary(function, domain, model)
    model.setflags(write=False)
    unique = _is_unique(curved, model, start, _free(function, model, low, high))
    return Optimum(model, function.value(model), unique)


def refined(
    function: Smooth, domain: Domain, hessian: Callable[[Vector], Vector], near: Optimum
) -> Vector | None:
    """Find w* inside W, from the minimiser of a function much like this one but cheaper.

    Steps w − H⁻¹∇f(w), with the other's Hessian at its minimiser, each shorten the error by as much
    as the two Hessians differ, until rounding is all there is. None where that is not so, or
    where a step leaves W.

    >>> bend = (lambda w: 2.0 * np.eye(1), lambda w: lambda v: 2.0 * v)
    >>> like = Smooth(lambda w: float(w @ w), lambda w: 2.0 * w, *bend)
    >>> bowl = Smooth(lambda w: float(w @ w) - w[0], lambda w: 2.0 * w - 1.0, *bend)
    >>> refined(bowl, Everywhere(), like.hessian, minimise(like, Everywhere(), size=1))
    array([0.5])
    """
    if not near.unique or near.model.size > LARGEST_HESSIAN:
        return None
    model, curvature, before = near.model, hessian(near.model), np.inf
    while before > ROUNDING:
        step = _newton_direction(curvature, function.gradient(model))
        length = float(np.linalg.norm(step)) / (1.0 + float(np.linalg.norm(model)))
        if length > 0.1 * before:
            if before > 1000 * ROUNDING:
                return None
            break
        model, before = model - step, length
        if not np.array_equal(domain.project(model), model):
            return None
    model.setflags(write=False)
    return model


def _near(function: Smooth, start: Vector, low: float, high: float) -> Vector:
    """Come near the minimiser with SciPy's solver for smooth functions with bounds."""
    unbounded = not np.isfinite(low) and not np.isfinite(high)
    if start.size <= FEW_COORDINATES and function.strong_convexity > 0 and unbounded:
        return start
    from scipy.optimize import minimize

    found = minimize(function.value, start, method="L-BFGS-B", jac=function.gradient,
                     bounds=[(low, high)] * start.size,
                     options={"maxiter": 20_000, "maxfun": 40_000, "ftol": 1e-15,
                              "gtol": 1e-12, "maxcor": 30})  # fmt: skip
    return np.asarray(np.clip(found.x, low, high), dtype=float)


def _newton(function: Smooth, model: Vector, low: float, high: float) -> Vector:
    """Make Newton steps on the free coordinates, as long as they bring anything."""
    if model.size > LARGEST_HESSIAN:
        return _newton_cg(function, model, low, high)
    for _ in range(500):
        gradient, hessian = function.gradient(model), function.hessian(model)
        # A coordinate about to be stopped by its bound would bend a Newton step: leave it out.
        reach = np.abs(model - np.clip(model - gradient, low, high)).max()
        free = _free(function, model, low, high, min(1e-3, float(reach)))
        curvature = np.diag(hessian)
        newton = gradient / np.where(curvature > 0, curvature, 1.0)
        newton[free] = _newton_direction(hessian[np.ix_(free, free)], gradient[free])
        candidate = _line_search(function, model, gradient, newton, low, high)
        if candidate is None:
            descent = gradient / (float(np.linalg.norm(hessian)) or 1.0)
            candidate = _line_search(function, model, gradient, descent, low, high)
        if candidate is None:
            break
        model = candidate
    return model


def _newton_cg(function: Smooth, model: Vector, low: float, high: float) -> Vector:
    """Make Newton steps by conjugate gradients; coordinates held at a bound stay there."""
    for _ in range(MAX_NEWTON_CG):
        gradient, free = function.gradient(model), _free(function, model, low, high)
        along = function.curvature_along(model)
        direction = _conjugate_gradients(along, np.where(free, gradient, 0.0), free)
        candidate = _line_search(function, model, gradient, direction, low, high)
        if candidate is None:
            break
        model = candidate
    return model


def _conjugate_gradients(
    along: Callable[[Vector], Vector], gradient: Vector, free: NDArray[np.bool_]
) -> Vector:
    """H⁻¹g on the free coordinates, but for a share `LEFT_OVER` of g; along a flat it stops."""
    solution, residual = np.zeros_like(gradient), gradient.copy()
    direction, squared = residual.copy(), float(residual @ residual)
    enough = LEFT_OVER**2 * squared
    for _ in range(MAX_PRODUCTS):
        if squared <= enough:
            break
        product = np.where(free, along(direction), 0.0)
        curvature = float(direction @ product)
        if curvature <= FLAT * float(direction @ direction):
            break
        length = squared / curvature
        solution += length * direction
        residual -= length * product
        before, squared = squared, float(residual @ residual)
        direction = residual + squared / before * direction
    return solution if solution.any() else gradient


def _newton_direction(hessian: Vector, gradient: Vector) -> Vector:
    """H⁻¹g, in units in which the diagonal of H is 1; nothing along directions where H is flat."""
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
    function: Smooth, model: Vector, gradient: Vector, direction: Vector, low: float, high: float
) -> Vector | None:
    """The first of the steps 1, ½, ¼, … that lowers f enough; None if none does.

    Near the minimum f no longer shows progress through its rounding: there a full step that
    halves the gradient is good enough.
    """
    value, free = function.value(model), _free(function, model, low, high)
    size = float(np.linalg.norm(gradient[free]))
    for halvings in range(50):
        candidate = np.clip(model - 0.5**halvings * direction, low, high)
        decrease = float(gradient @ (model - candidate))
        if decrease > 1e-12 * abs(value) and function.value(candidate) < value - 1e-4 * decrease:
            return candidate
        if halvings == 0:
            left = function.gradient(candidate)[_free(function, candidate, low, high)]
            if np.linalg.norm(left) < 0.5 * size:
                return candidate
    return None


def _free(
    function: Smooth, model: Vector, low: float, high: float, near: float = 0.0
) -> NDArray[np.bool_]:
    """The coordinates that are not held at (or near) a bound by the gradient."""
    if not np.isfinite(low):
        return np.ones(model.size, dtype=np.bool_)
    gradient = function.gradient(model)
    held_low = (model <= low + near) & (gradient > 0)
    held_high = (model >= high - near) & (gradient < 0)
    return ~(held_low | held_high)


def _with_ridge(function: Smooth, multiplier: float) -> Smooth:
    return Smooth(
        lambda w: function.value(w) + 0.5 * multiplier * float(w @ w),
        lambda w: function.gradient(w) + multiplier * w,
        lambda w: function.hessian(w) + multiplier * np.eye(w.size),
        lambda w: _plus_ridge(function.curvature_along(w), multiplier),
        function.strong_convexity + multiplier,
    )


def _plus_ridge(along: Callable[[Vector], Vector], multiplier: float) -> Callable[[Vector], Vector]:
    return lambda v: along(v) + multiplier * v


def _on_the_sphere(function: Smooth, radius: float, start: Vector) -> tuple[Vector, float]:
    """The minimiser over the ball and its multiplier μ, when one minimiser lies outside.

    ‖w(μ)‖ falls with μ, 1/‖w(μ)‖ nearly linearly, and μ ≤ ‖∇f(0)‖ / radius by convexity. If
    ‖w(μ)‖ is within the ball for next to no μ, a shorter minimiser lies inside: μ = 0.
    """
    from scipy.optimize import brentq

    last = [start]

    def solve(multiplier: float) -> Vector:
        last[0] = _newton(_with_ridge(function, multiplier), last[0], -np.inf, np.inf)
        return last[0]

    def excess(multiplier: float) -> float:
        return 1.0 / radius - 1.0 / max(float(np.linalg.norm(solve(multiplier))), 1e-300)

    largest = float(np.linalg.norm(function.gradient(np.zeros_like(start)))) / radius
    highest, lowest = largest * (1 + 1e-9), 1e-12 * largest
    solve(highest)
    if excess(lowest) <= 0:
        return last[0], 0.0
    multiplier = float(brentq(excess, lowest, highest, xtol=1e-15 * largest, rtol=1e-14))
    model = solve(multiplier)
    return model * (radius / np.linalg.norm(model)), multiplier


def _check_stationary(function: Smooth, domain: Domain, model: Vector) -> None:
    """Check that a projected gradient step does not move w: exactly then it minimises f over W."""
    gradient, origin = function.gradient(model), function.gradient(np.zeros_like(model))
    scale = float(np.linalg.norm(gradient) + np.linalg.norm(origin))
    if model.size <= LARGEST_HESSIAN:  # ‖∇f‖² ≤ 2 L f: the size that gradients have hereabouts
        zero = np.zeros_like(model)
        scale += float(np.trace(function.hessian(zero)) * abs(function.value(zero))) ** 0.5
    if scale == 0:
        return
    step = (1.0 + float(np.linalg.norm(model))) / scale
    residual = float(np.linalg.norm(model - domain.project(model - step * gradient))) / step
    if residual > 1e-6 * scale:
        warnings.warn(
            f"the optimum was found only to a gradient of {residual:.1e}; distances and gaps below "
            "that are not meaningful. Scale the features or add a penalty.",
            stacklevel=2,
        )


def _is_unique(function: Smooth, model: Vector, start: Vector, free: NDArray[np.bool_]) -> bool:
    """Whether f is strictly convex at w along the free directions.

    Past `LARGEST_HESSIAN` only a known strong convexity counts, and a curvature that has all
    but vanished since the start does not: a minimiser that is not known to be the only one
    must not be used to measure distances from.
    """
    if function.strong_convexity > 0 or not free.any():
        return True
    if model.size > LARGEST_HESSIAN:
        return False
    hessian = function.hessian(model)[np.ix_(free, free)]
    diagonal, before = np.diag(hessian), np.diag(function.hessian(start))[free]
    if (diagonal <= 1e-12 * before).any():
        return False
    units = np.sqrt(diagonal)
    return bool(np.linalg.eigvalsh(hessian / np.outer(units, units))[0] > SINGULAR)
