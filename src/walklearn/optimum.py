"""The minimiser w* of a smooth convex function over W, by SciPy's solvers, to rounding.

Errors of a run are measured against w*, so it must be far more accurate than any run.
SciPy's solver comes near; Newton steps, restricted to the coordinates that W leaves free,
then bring the gradient down to rounding. Over a ball the minimiser is either inside, or it
is the minimiser of f(w) + (μ/2)‖w‖² for the one μ that puts it on the sphere.

>>> import numpy as np
>>> from walklearn.domains import Ball
>>> bowl = Smooth(lambda w: 0.5 * float(w @ w) - w[0], lambda w: w - [1.0, 0.0],
...               lambda w: np.eye(2))
>>> minimise(bowl, Ball(0.5), size=2).model
array([0.5, 0. ])
"""

from __future__ import annotations

import warnings
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from walklearn.domains import Ball, Box, Domain

Vector = NDArray[Any]

# Past this many coordinates a dense Hessian costs more than it brings.
LARGEST_HESSIAN = 2000


class NoMinimiserError(ValueError):
    """The objective has no minimiser: it falls for ever as the model grows."""


@dataclass(frozen=True)
class Smooth:
    """A convex function with its first two derivatives and a known strong convexity."""

    value: Callable[[Vector], float]
    gradient: Callable[[Vector], Vector]
    hessian: Callable[[Vector], Vector]
    strong_convexity: float = 0.0


@dataclass(frozen=True, eq=False)
class Optimum:
    """A minimiser, the least value, and whether the minimiser is the only one."""

    model: Vector
    value: float
    unique: bool


def minimise(function: Smooth, domain: Domain, size: int) -> Optimum:
    """Minimise a smooth convex function over a domain."""
    start = domain.project(np.zeros(size))
    low, high = (domain.low, domain.high) if isinstance(domain, Box) else (-np.inf, np.inf)
    model = _solve(function, start, low, high)
    strengthened = function
    if isinstance(domain, Ball) and np.linalg.norm(model) > domain.radius:
        strengthened = _with_ridge(function, _multiplier(function, domain.radius, start))
        model = domain.project(_solve(strengthened, start, low, high))
    _check_stationary(function, domain, model)
    free = _free(strengthened, model, low, high)
    return Optimum(model, function.value(model), _is_unique(strengthened, model, free))


def _solve(function: Smooth, start: Vector, low: float, high: float) -> Vector:
    """SciPy first, then Newton steps as long as they halve the gradient on the free part."""
    from scipy.optimize import minimize

    if start.size <= LARGEST_HESSIAN and not np.isfinite(low):
        tolerance = 1e-9 * (1.0 + float(np.linalg.norm(function.gradient(start))))
        found = minimize(function.value, start, method="trust-exact", jac=function.gradient,
                         hess=function.hessian, options={"gtol": tolerance})  # fmt: skip
    else:
        found = minimize(function.value, start, method="L-BFGS-B", jac=function.gradient,
                         bounds=[(low, high)] * start.size,
                         options={"maxiter": 50_000, "maxfun": 100_000, "ftol": 1e-15,
                                  "gtol": 1e-12, "maxcor": 30})  # fmt: skip
    model: Vector = np.asarray(found.x, dtype=float)
    if start.size > LARGEST_HESSIAN:
        return model
    for _ in range(50):
        free = _free(function, model, low, high)
        gradient = function.gradient(model)[free]
        step = np.zeros_like(model)
        hessian = function.hessian(model)[np.ix_(free, free)]
        step[free] = np.linalg.lstsq(hessian, gradient, rcond=None)[0]
        candidate = np.clip(model - step, low, high)
        if np.linalg.norm(function.gradient(candidate)[free]) > 0.5 * np.linalg.norm(gradient):
            break
        model = candidate
    return model


def _free(function: Smooth, model: Vector, low: float, high: float) -> NDArray[np.bool_]:
    """The coordinates that are not held at a bound by the gradient."""
    gradient = function.gradient(model)
    return ~(((model <= low) & (gradient > 0)) | ((model >= high) & (gradient < 0)))


def _with_ridge(function: Smooth, multiplier: float) -> Smooth:
    return Smooth(
        lambda w: function.value(w) + 0.5 * multiplier * float(w @ w),
        lambda w: function.gradient(w) + multiplier * w,
        lambda w: function.hessian(w) + multiplier * np.eye(w.size),
        function.strong_convexity + multiplier,
    )


def _multiplier(function: Smooth, radius: float, start: Vector) -> float:
    """The μ > 0 for which the minimiser of f + (μ/2)‖w‖² has norm `radius`.

    1/‖w(μ)‖ is nearly linear in μ, and μ ≤ ‖∇f(0)‖ / radius by convexity.
    """
    from scipy.optimize import brentq

    def excess(multiplier: float) -> float:
        model = _solve(_with_ridge(function, multiplier), start, -np.inf, np.inf)
        return 1.0 / radius - 1.0 / max(float(np.linalg.norm(model)), 1e-300)

    largest = float(np.linalg.norm(function.gradient(np.zeros_like(start)))) / radius
    return float(brentq(excess, 0.0, largest * (1 + 1e-9), xtol=1e-14 * largest, rtol=1e-14))


def _check_stationary(function: Smooth, domain: Domain, model: Vector) -> None:
    """w minimises f over W exactly if a projected gradient step does not move it."""
    gradient = function.gradient(model)
    scale = 1.0 + float(np.linalg.norm(function.gradient(np.zeros_like(model))))
    step = 1.0 / scale
    residual = float(np.linalg.norm(model - domain.project(model - step * gradient))) / step
    if residual > 1e-6 * scale:
        warnings.warn(
            f"the optimum was found only to a gradient of {residual:.1e}; distances and gaps below "
            "that are not meaningful. Scale the features or add a penalty.",
            stacklevel=2,
        )


def _is_unique(function: Smooth, model: Vector, free: NDArray[np.bool_]) -> bool:
    """Whether f is strictly convex at w along the free directions.

    Past `LARGEST_HESSIAN` only a known strong convexity counts: a minimiser that is not
    known to be unique must not be used as the one to measure distances from.
    """
    if function.strong_convexity > 0 or not free.any():
        return True
    if model.size > LARGEST_HESSIAN:
        return False
    eigenvalues = np.linalg.eigvalsh(function.hessian(model)[np.ix_(free, free)])
    return bool(eigenvalues[0] > 1e-10 * max(eigenvalues[-1], 1e-300))
