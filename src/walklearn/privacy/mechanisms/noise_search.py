"""Search for the smallest noise at which a curve δ(noise) reaches a target.

The curve need not be monotone. The search finds the first feasible point of a grid in ln(noise),
from little noise to much, then the bottom of every dip that the grid passes over before it, and
then narrows down the crossing in between by repeated division.

>>> theta = find_min_noise(lambda noise: 1.0 / noise, 0.25, np.log([1.0, 3.0, 9.0]))
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


def find_min_noise(curve: Curve, target: float, grid: Array) -> float | None:
    """Return the smallest noise with curve(noise) ≤ target; None if the grid reaches none."""
    values = np.empty(0)
    while values.size < grid.size and not (values <= target).any():
        chunk = grid[values.size : values.size + _CHUNK]
        values = np.append(values, curve(np.exp(chunk)))
    feasible = np.flatnonzero(values <= target)
    last = int(feasible[0]) if feasible.size else values.size - 1
    for dip in _dips(values[: last + 1], target):
        bottom, lowest = _find_bottom(curve, grid[dip - 1], grid[dip + 1])
        if lowest <= target:
            return _find_crossing(curve, target, grid[dip - 1], bottom)
    if not feasible.size:
        return None
    if last == 0:
        return math.exp(grid[0])
    return _find_crossing(curve, target, grid[last - 1], grid[last])


def find_minimum(curve: Curve, grid: Array) -> float:
    """Return the smallest value of the curve, also between the points of the grid."""
    values = curve(np.exp(grid))
    best = int(np.argmin(values))
    _, lowest = _find_bottom(curve, grid[max(best - 1, 0)], grid[min(best + 1, grid.size - 1)])
    return min(float(values[best]), lowest)


def log_grid(start: float, fine_until: float, until: float) -> Array:
    """Grid of ln(noise): steps of a tenth where the curve has its features, then of one."""
    return np.append(np.arange(start, fine_until, 0.1), np.arange(fine_until, until, 1.0))


def _dips(values: Array, target: float) -> list[int]:
    """Inner grid points that are local minima, if their curvature lets the target be reached."""
    left, middle, right = values[:-2], values[1:-1], values[2:]
    reach = middle - 4 * (left + right - 2 * middle)
    return (np.flatnonzero((left > middle) & (middle <= right) & (reach <= target)) + 1).tolist()


def _find_bottom(curve: Curve, low: float, high: float) -> tuple[float, float]:
    """Return the point between two others where the curve is lowest, and its value there."""
    for _ in range(5):
        points = np.linspace(low, high, _PARTS + 1)
        values = curve(np.exp(points))
        best = int(np.argmin(values))
        low, high = points[max(best - 1, 0)], points[min(best + 1, _PARTS)]
    return float(points[best]), float(values[best])


def _find_crossing(curve: Curve, target: float, low: float, high: float) -> float:
    """Return the first crossing between low, where the curve is above the target, and high."""
    for _ in range(12):
        points = np.linspace(low, high, _PARTS + 1)
        feasible = curve(np.exp(points)) <= target
        feasible[-1] = True
        first = max(int(np.argmax(feasible)), 1)
        low, high = points[first - 1], points[first]
    return math.exp(high)
