"""The line search of updates with memory: the twin of `updates.line_search`."""

from __future__ import annotations

import numpy as np

from walklearn.simulation.kernels.arithmetic import U
from walklearn.simulation.kernels.compilation import by_type, helper, inlined
from walklearn.simulation.kernels.losses import (
    LOGISTIC,
    BuiltIn,
    FromFunctions,
    Rescaled,
    value_of,
)

# The constants of `updates.line_search`.
STEP_SHARE, ROUNDING, SLACK = 1.0 / 3.0, 1e-8, 1e-6
FEW_NODES, MAX_VISITS, HOPS_SHARE = 100, 1000, 1 / 8
MANY_VISITS = 35  # ln 2 / H < 0.02
SLOPES = 256  # in the table of growths


def _inverse_growths(slopes):
    """Return 1/Δ for slopes −p of the logistic loss.

    A step along which the margin grows by Δ halves the decrease that p promises. The loss falls by
    −ln(1 − p(1 − e^(−Δ))), relative to pΔ the less the longer the step, and the smaller p is.
    """
    low, high = np.full(slopes.shape, 1.0), np.full(slopes.shape, 100.0)
    for _ in range(60):
        middle = (low + high) / 2.0
        is_short = -np.log1p(slopes * np.expm1(-middle)) >= slopes * middle / 2.0
        low, high = np.where(is_short, middle, low), np.where(is_short, high, middle)
    return 1.0 / low


_INVERSE_GROWTHS = np.append(_inverse_growths(np.maximum(np.arange(SLOPES) / SLOPES, 1e-6)), 0.0)


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
    squared_norm, value = weight * slope * slope * square, weight * value_of(loss, score, target)
    return raise_by_row(loss, curvature, score, target, slope * square, weight, squared_norm, value)


@inlined
def raise_by_row(loss, curvature, score, target, along, weight, squared_norm, value):
    """Return L̂, doubled until a row of this value does not contradict it.

    along: the score of the gradient. squared_norm: that of the gradient.
    """
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


@by_type
def raise_by_bounds(loss, smoothness, slope, square):
    """Return L, doubled as `raise_by_row` does, but from bounds; 0 if they do not decide."""


@raise_by_bounds.version(FromFunctions, Rescaled)
def _undecided(loss, smoothness, slope, square):
    return 0.0


@raise_by_bounds.version(BuiltIn)
def _raise_by_bounds(loss, smoothness, slope, square):
    if loss.code != LOGISTIC or slope == 0.0 or not smoothness > 0.0:
        return 0.0
    p = abs(slope)
    index = U(np.int64(p * SLOPES)) if p < 1.0 else U(SLOPES - 1)
    enough = p * square * _INVERSE_GROWTHS[index]
    too_little = (1.0 - 10.0 * SLACK) * p * square * _INVERSE_GROWTHS[index + U(1)]
    while smoothness < too_little:
        smoothness *= 2.0
    return smoothness if smoothness >= enough else 0.0
