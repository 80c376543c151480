"""Losses inside kernels, by the formulas of `objectives.linear.losses`.

A built-in loss is identified by a number, so that one kernel, cached on disk, serves all built-in
losses. A user's loss consists of two functions, for which Numba compiles the kernels in each
process.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from walklearn.simulation.kernels.arithmetic import Array, U, exp_of_minus, log_of_one_plus
from walklearn.simulation.kernels.compilation import by_type

LOGISTIC, SQUARED, HUBER, SQUARED_HINGE = range(4)
RANGE, PER_UNIT = 32, 16  # of scores in a table of slopes


class BuiltIn(NamedTuple):
    """A loss of one score that comes with the package."""

    code: int
    parameter: float  # the threshold of Huber's loss


class FromFunctions(NamedTuple):
    """A user's loss: two functions of (score, target), compiled by Numba."""

    value: Any
    slope: Any
    smoothness: float
    table: Array  # slopes at scores −RANGE to RANGE for target −1, then for +1; or empty
    code: int = -1  # no built-in loss


class Rescaled(NamedTuple):
    """A user's loss ℓ(unit · score, unit · target) / unit²."""

    value: Any
    slope: Any
    smoothness: float
    table: Array
    unit: float
    code: int = -1


class Softmax(NamedTuple):
    """Multinomial regression, with a score per class."""

    classes: int


@by_type
def outputs_of(loss):
    """Return the number of scores of a row."""


@by_type
def value_of(loss, score, target):
    """Return ℓ(score, target) of a loss with one score."""


@by_type
def slope_of(loss, score, target):
    """Return ∂ℓ/∂score of a loss with one score."""


@by_type
def may_contradict(loss, score, target, slope, square, curvature):
    """Return False only if one row does not contradict L̂; faster than the search."""


@by_type
def to_slopes(loss, scores, offset, target):
    """Replace the scores of a row, from scores[offset] on, by their slopes."""


@by_type
def value_along(loss, scores, along, step, offset, target):
    """Return ℓ at scores − step · along, both from index `offset` on."""


@outputs_of.version(BuiltIn, FromFunctions, Rescaled)
def _one_output(loss):
    return 1


@outputs_of.version(Softmax)
def _classes(loss):
    return loss.classes


@value_of.version(BuiltIn)
def _built_in_value(loss, score, target):
    if loss.code == LOGISTIC:
        size = abs(target * score)
        return 0.5 * (size - target * score) + log_of_one_plus(exp_of_minus(size))
    if loss.code == SQUARED:
        return 0.5 * (score - target) ** 2
    if loss.code == HUBER:
        size = abs(score - target)
        quadratic_part = min(size, loss.parameter)
        return quadratic_part * (size - 0.5 * quadratic_part)
    return 0.5 * max(0.0, 1.0 - target * score) ** 2


@slope_of.version(BuiltIn)
def _built_in_slope(loss, score, target):
    if loss.code == LOGISTIC:
        return -target / (1.0 + np.exp(target * score))
    if loss.code == SQUARED:
        return score - target
    if loss.code == HUBER:
        return min(max(score - target, -loss.parameter), loss.parameter)
    return -target * max(0.0, 1.0 - target * score)


@value_of.version(FromFunctions)
def _function_value(loss, score, target):
    return np.float64(loss.value(score, target))


@slope_of.version(FromFunctions)
def _function_slope(loss, score, target):
    return np.float64(loss.slope(score, target))


@value_of.version(Rescaled)
def _rescaled_value(loss, score, target):
    return loss.value(loss.unit * score, loss.unit * target) / loss.unit**2


@slope_of.version(Rescaled)
def _rescaled_slope(loss, score, target):
    return loss.slope(loss.unit * score, loss.unit * target) / loss.unit


@may_contradict.version(FromFunctions, Rescaled)
def _function_may_contradict(loss, score, target, slope, square, curvature):
    if not curvature > 0.0 or loss.smoothness * square <= curvature:
        return not curvature > 0.0
    # Over a step δ, ℓ decreases by at least δ times its slope at the end of the step or beyond.
    step = slope * square / curvature
    index = (score - step + RANGE) * PER_UNIT
    if loss.table.size > 0 and 0.0 <= index < 2 * RANGE * PER_UNIT:
        table_index = np.int64(index) + (1 if step < 0.0 else 0)
        if target > 0.0:
            table_index += 2 * RANGE * PER_UNIT + 1
        if step * loss.table[U(table_index)] >= 0.5 * step * slope:
            return False
    # ℓ is convex and β-smooth. Between the slopes p and e at both ends of a step δ it therefore
    # falls by at least δe + (p − e)²/(2β).
    end = slope_of(loss, score - step, target)
    decrease = step * end + (slope - end) ** 2 / (2.0 * loss.smoothness)
    return not decrease >= 0.5 * step * slope  # True if a number is NaN


@may_contradict.version(BuiltIn)
def _built_in_may_contradict(loss, score, target, slope, square, curvature):
    # A row does not contradict L̂ if ℓ stays below the parabola of curvature L̂/(c‖x‖²) along the
    # step. The margin m grows along the step, and with p = |slope| the curvature of the logistic
    # loss is at most p(1 − p) from m > 0 on. If that does not decide, the third derivative
    # −p(1 − p)(1 − 2p) may, with the fourth, which is at most p(1 − p) there. For m < 0 the
    # parabola of curvature (½ − p)/m decides (Jaakkola & Jordan).
    if loss.code == LOGISTIC:
        margin, p = target * score, abs(slope)
        if margin < 0.0:
            return (p - 0.5) * square > -curvature * margin
        if p * (1.0 - p) * square <= curvature:
            return False
        growth = p * square / curvature  # of the margin
        return not (
            (1.0 - p) * growth * (1.0 - growth * ((1.0 - 2.0 * p) / 3.0 - growth / 12.0)) <= 1.0
        )
    if loss.code == HUBER:
        return loss.parameter * square > curvature * max(abs(score - target), loss.parameter)
    return square > curvature


@to_slopes.version(BuiltIn, FromFunctions, Rescaled)
def _to_one_slope(loss, scores, offset, target):
    scores[offset] = slope_of(loss, scores[offset], target)


@to_slopes.version(Softmax)
def _to_softmax_slopes(loss, scores, offset, target):
    top, total = scores[offset], 0.0
    for c in range(loss.classes):
        top = max(top, scores[offset + U(c)])
        total += (
            0.0 * scores[offset + U(c)]
        )  # NaN if a score is NaN, which `exp_of_minus` would hide
    for c in range(loss.classes):
        scores[offset + U(c)] = exp_of_minus(top - scores[offset + U(c)])
    for c in range(loss.classes):
        total += scores[offset + U(c)]
    for c in range(loss.classes):
        scores[offset + U(c)] = scores[offset + U(c)] / total - (1.0 if c == target else 0.0)


@value_along.version(BuiltIn, FromFunctions, Rescaled)
def _one_value_along(loss, scores, along, step, offset, target):
    return value_of(loss, scores[offset] - step * along[offset], target)


@value_along.version(Softmax)
def _softmax_value_along(loss, scores, along, step, offset, target):
    top, total = -np.inf, 0.0
    for c in range(loss.classes):
        top = max(top, scores[offset + U(c)] - step * along[offset + U(c)])
    for c in range(loss.classes):
        total += np.exp(scores[offset + U(c)] - step * along[offset + U(c)] - top)
    target_score = offset + U(np.int64(target))
    return np.log(total) + (top - (scores[target_score] - step * along[target_score]))
