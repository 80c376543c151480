"""The step that updates with memory find on the way: the twins of `updates.found_step`."""

from __future__ import annotations

import numpy as np

from walklearn.simulation.compiled.arithmetic import HUBER, LOGISTIC, value_of
from walklearn.simulation.compiled.cached import helper

# As there.
SHARE, ROUNDING, SLACK = 1.0 / 3.0, 1e-8, 1e-6
FEW_NODES, MOST_VISITS, HOPS_SHARE = 100, 1000, 1 / 8
FEW = 0.02  # ln 2 / H from 35 visits on


@helper
def pace_of(nodes: float, ages: float, squared_ages: float) -> float:
    """min(1, n/τ̂)."""
    if 2.0 * nodes * ages < squared_ages:
        return 2.0 * nodes * ages / squared_ages
    return 1.0


@helper
def decay_of(nodes: int, held: int, looks: int, hops: float) -> float:
    """ln 2 / H, with the visits H of `found_step.halving_visits`."""
    if held <= 1:
        return np.log(2.0) / nodes
    least = nodes if nodes >= FEW_NODES else min(max(nodes * looks, FEW_NODES), MOST_VISITS)
    share = HOPS_SHARE if looks == held else 0.0
    return np.log(2.0) / max(np.float64(least), share * hops)


@helper
def decayed(curvature: float, pace: float, decay: float) -> float:
    """L̂ · 2^(−pace/H), with ln 2 / H as the decay; for large H a short series has all digits."""
    x = pace * decay
    if decay < FEW:
        x2 = x * x
        even = 1.0 + x2 * (1.0 / 2.0 + x2 * (1.0 / 24.0 + x2 * (1.0 / 720.0)))
        odd = x * (1.0 + x2 * (1.0 / 6.0 + x2 * (1.0 / 120.0)))
        return curvature * (even - odd)
    return curvature * np.exp(-x)


@helper
def _may_fail(
    loss: int, parameter: float, score: float, target: float, slope: float, square: float,
    curvature: float,
) -> bool:  # fmt: skip
    """Whether one row may contradict L̂, decided without an exponential; False is certain.

    It cannot where ℓ stays below the parabola of curvature L̂/(c‖x‖²) on its way down. The margin m
    grows on that way, and with p = |slope| the curvature of the logistic loss is at most p(1 − p)
    from m > 0 on. Where that does not decide it, the third derivative −p(1 − p)(1 − 2p) may, with
    the fourth, which is at most p(1 − p) there. Elsewhere the parabola of curvature (½ − p)/m will
    do (Jaakkola & Jordan).
    """
    if loss == LOGISTIC:
        margin, p = target * score, abs(slope)
        if margin < 0.0:
            return (p - 0.5) * square > -curvature * margin
        if p * (1.0 - p) * square <= curvature:
            return False
        way = p * square / curvature  # what the margin grows by
        return not (1.0 - p) * way * (1.0 - way * ((1.0 - 2.0 * p) / 3.0 - way / 12.0)) <= 1.0
    if loss == HUBER:
        return parameter * square > curvature * max(abs(score - target), parameter)
    return square > curvature


@helper
def _raised_by_one(
    curvature: float, loss: int, parameter: float, score: float, target: float, slope: float,
    weight: float, along: float, squared_norm: float,
) -> float:  # fmt: skip
    """L̂ after the test on one row; along: x·g."""
    value = weight * value_of(loss, parameter, score, target)
    if not (0.0 < squared_norm < np.inf and value > 0.0):
        return curvature
    if curvature == 0.0:
        curvature = squared_norm / (2.0 * value)
    fall = squared_norm / (2.0 * curvature)
    while fall > ROUNDING * value:
        trial = weight * value_of(loss, parameter, score - along / curvature, target)
        if trial <= value - (1.0 - SLACK) * fall:
            break
        curvature *= 2.0
        fall *= 0.5
    return curvature


@helper
def raised_curvature(
    curvature: float, loss: int, parameter: float, score: float, target: float, slope: float,
    weight: float, square: float,
) -> float:  # fmt: skip
    """L̂ after a visit to one row: doubled as long as the row contradicts it."""
    if _may_fail(loss, parameter, score, target, slope, square, curvature):
        along, squared_norm = slope * square, weight * slope * slope * square
        curvature = _raised_by_one(
            curvature, loss, parameter, score, target, slope, weight, along, squared_norm
        )
    return curvature
