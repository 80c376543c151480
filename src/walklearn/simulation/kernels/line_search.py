"""The line search of updates with memory: the twin of `updates.line_search`."""

from __future__ import annotations

import numpy as np

from walklearn.simulation.kernels.compilation import helper, inlined
from walklearn.simulation.kernels.losses import value_of

# The constants of `updates.line_search`.
STEP_SHARE, ROUNDING, SLACK = 1.0 / 3.0, 1e-8, 1e-6
FEW_NODES, MAX_VISITS, HOPS_SHARE = 100, 1000, 1 / 8
MANY_VISITS = 35  # ln 2 / H < 0.02


@inlined
def decay_curvature(curvature, n, ages, squared_ages, nodes, count, sample_size):
    """Return the factor min(1, n/τ̂) and L̂ · 2^(−factor/H); see `line_search.halving_visits`."""
    is_slow = 2.0 * n * ages < squared_ages
    step_factor = 2.0 * n * ages / squared_ages if is_slow else 1.0
    visits = np.float64(nodes)
    if count > 1:
        if nodes < FEW_NODES:
            visits = np.float64(min(max(nodes * sample_size, FEW_NODES), MAX_VISITS))
        if sample_size == count:
            visits = max(visits, HOPS_SHARE * ages / n)
    x = step_factor * (np.log(2.0) / visits)
    if visits < MANY_VISITS:
        return step_factor, curvature * np.exp(-x)
    x2 = x * x  # a short series is exact for small x
    even = 1.0 + x2 * (1.0 / 2.0 + x2 * (1.0 / 24.0 + x2 * (1.0 / 720.0)))
    odd = x * (1.0 + x2 * (1.0 / 6.0 + x2 * (1.0 / 120.0)))
    return step_factor, curvature * (even - odd)


@helper
def step_size(step_factor, curvature):
    """Return γ for a curvature L̂ + λ; 0 if there is none, since then there is no gradient."""
    return step_factor * STEP_SHARE / curvature if curvature > 0.0 else 0.0


@inlined
def search_row(loss, curvature, score, target, slope, weight, square):
    """Return L̂, doubled until the row does not contradict it; square: weight · ‖x‖²."""
    along, squared_norm = slope * square, weight * slope * slope * square
    value = weight * value_of(loss, score, target)
    if 0.0 < squared_norm < np.inf and value > 0.0:
        if curvature == 0.0:
            curvature = squared_norm / (2.0 * value)
        decrease = squared_norm / (2.0 * curvature)
        while decrease > ROUNDING * value:
            trial = weight * value_of(loss, score - along / curvature, target)
            if trial <= value - (1.0 - SLACK) * decrease:
                break
            curvature *= 2.0
            decrease *= 0.5
    return curvature
