"""The smallest noise at which a curve δ(noise) reaches a target, the curve not being monotone.

Three steps: the first feasible point of a grid in ln(noise), from little noise to much; the
bottom of every dip that the grid passes over before it; and the crossing in between, by
repeated division.

>>> theta = least_noise(lambda noise: 1.0 / noise, 0.25, np.log([1.0, 3.0, 9.0]))
>>> round(theta, 12)
4.0
"""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np

from walklearn.privacy.limits import Array

Curve = Callable[[Array], Array]

_CHUNK = 64
_PARTS = 32


def least_noise(curve: Curve, target: float, grid: Array) -> float | None:
    """The least noise with curve(noise) ≤ target; None if there is none on the grid."""
    values = np.empty(0)
    while values.size < grid.size and not (values <= target).any():
        chunk = grid[values.size : values.size + _CHUNK]
        values = np.append(values, curve(np.exp(chunk)))
    feasible = np.flatnonzero(values <= target)
    last = int(feasible[0]) if feasible.size else values.size - 1
    for dip in _dips(values[: last + 1], target):
        bottom, lowest = _bottom(curve, grid[dip - 1], grid[dip + 1])
        if lowest <= target:
            return _crossing(curve, target, grid[dip - 1], bottom)
    if not feasible.size:
        return None
    return math.exp(grid[0]) if last == 0 else _crossing(curve, target, grid[last - 1], grid[last])


def lowest(curve: Curve, grid: Array) -> float:
    """The least value of the curve, between the grid's points too."""
    values = curve(np.exp(grid))
    best = int(np.argmin(values))
    near = _bottom(curve, grid[max(best - 1, 0)], grid[min(best + 1, grid.size - 1)])[1]
    return min(float(values[best]), near)


def log_grid(start: float, fine_until: float, until: float) -> Array:
    """ln(noise): steps of a tenth where the curve has its features, then of one."""
    return np.append(np.arange(start, fine_until, 0.1), np.arange(fine_until, until, 1.0))


def _dips(values: Array, target: float) -> list[int]:
    """Inner grid points that are local minima, and deep enough beside their curvature."""
    left, middle, right = values[:-2], values[1:-1], values[2:]
    reach = middle - 4 * (left + right - 2 * middle)
    return [int(i) + 1 for i in np.flatnonzero((left > middle) & (middle <= right))
            if reach[i] <= target]  # fmt: skip


def _bottom(curve: Curve, low: float, high: float) -> tuple[float, float]:
    """Where the curve is lowest between two points, and how low."""
    for _ in range(5):
        points = np.linspace(low, high, _PARTS + 1)
        values = curve(np.exp(points))
        best = int(np.argmin(values))
        low, high = points[max(best - 1, 0)], points[min(best + 1, _PARTS)]
    return float(points[best]), float(values[best])


def _crossing(curve: Curve, target: float, low: float, high: float) -> float:
    """The first crossing between low, where the curve is above the target, and high."""
    for _ in range(12):
        points = np.linspace(low, high, _PARTS + 1)
        feasible = curve(np.exp(points)) <= target
        feasible[-1] = True
        first = max(int(np.argmax(feasible)), 1)
        low, high = points[first - 1], points[first]
    return math.exp(high)
