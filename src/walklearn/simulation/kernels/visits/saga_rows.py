"""Visits of SAGA to any rows: several per node, mini-batches, softmax, sparse rows in a domain."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from walklearn.simulation.kernels.arithmetic import Array, U
from walklearn.simulation.kernels.compilation import inlined, kernel
from walklearn.simulation.kernels.drivers import far, fetch_nothing
from walklearn.simulation.kernels.line_search import ROUNDING, SLACK, decay_curvature, step_size
from walklearn.simulation.kernels.losses import outputs_of, to_slopes, value_along
from walklearn.simulation.kernels.rows import (
    add,
    project_onto_ball,
    row_at,
    rows_of,
    set_scores,
    size_of,
)
from walklearn.simulation.kernels.visits.saga import begin, copy, end


class Space(NamedTuple):
    """Work space of a visit: numbers of its rows, (rows of a node · outputs,), and of the model."""

    scores: Array
    slopes: Array
    along: Array  # scores of the gradient
    gradient: Array
    correction: Array  # estimate of the gradient minus the stored one
    change: Array  # of the stored gradient


@inlined
def _compare_rows(data, state, b, i, k):
    """Compute scores, slopes, the gradient and its correction.

    Return the share of rows that were not visited before, and a bound on the curvature.
    """
    first, count, sample_size, share = rows_of(data, i)
    size, outputs, space = size_of(data), U(outputs_of(data.loss)), state.space
    for a in range(size):
        space.gradient[U(a)] = space.correction[U(a)] = 0.0
    new, bound = 0.0, 0.0
    for step in range(sample_size):
        row, index = row_at(first, count, sample_size, step, state.draws, b, k), U(step) * outputs
        set_scores(data, row, 1.0, state.models, b * size, space.scores, index)
        for c in range(outputs):
            space.slopes[index + U(c)] = space.scores[index + U(c)]
        to_slopes(data.loss, space.slopes, index, data.targets[row])
        slopes_offset, weight = (
            (b * U(data.targets.size) + row) * outputs,
            share * data.weights[row],
        )
        is_new = np.isnan(state.slopes[slopes_offset])
        new += is_new
        bound += share * state.smoothness * state.squares[row]
        for c in range(outputs):
            slope, out = space.slopes[index + U(c)], U(c) * U(data.rows.width)
            change = slope - (0.0 if is_new else state.slopes[slopes_offset + U(c)])
            if state.step == 0.0:
                add(data.rows, row, weight * slope, space.gradient, out)
            add(data.rows, row, weight * change, space.correction, out)
    return new / max(sample_size, 1), bound


@inlined
def _replace_slopes(data, state, b, i, k):
    """Store the new slopes, compute the change of the gradient, and return the share of new rows.

    A row that a mini-batch contains twice changes once.
    """
    first, count, sample_size, _ = rows_of(data, i)
    outputs, space = U(outputs_of(data.loss)), state.space
    for a in range(size_of(data)):
        space.change[U(a)] = 0.0 if sample_size < count else space.correction[U(a)]
    new = 0.0
    for step in range(sample_size):
        row, index = row_at(first, count, sample_size, step, state.draws, b, k), U(step) * outputs
        slopes_offset = (b * U(data.targets.size) + row) * outputs
        is_new = np.isnan(state.slopes[slopes_offset])
        new += is_new / count
        for c in range(outputs):
            slope = space.slopes[index + U(c)]
            change = slope - (0.0 if is_new else state.slopes[slopes_offset + U(c)])
            state.slopes[slopes_offset + U(c)] = slope
            if sample_size < count:
                push, out = data.weights[row] * change, U(c) * U(data.rows.width)
                add(data.rows, row, push, space.change, out)
    return new


@inlined
def _value_along(data, state, b, i, k, step_length):
    """Return the value of the used rows at w − step_length · gradient."""
    first, count, sample_size, share = rows_of(data, i)
    outputs, space, value = U(outputs_of(data.loss)), state.space, 0.0
    for step in range(sample_size):
        row = row_at(first, count, sample_size, step, state.draws, b, k)
        value += share * data.weights[row] * value_along(
            data.loss, space.scores, space.along, step_length, U(step) * outputs, data.targets[row]
        )  # fmt: skip
    return value


@inlined
def find_along(data, state, b, i, k):
    """Compute the scores of the gradient; return its squared norm and the value of the rows."""
    first, count, sample_size, _ = rows_of(data, i)
    outputs, space, squared_norm = U(outputs_of(data.loss)), state.space, 0.0
    for a in range(size_of(data)):
        squared_norm += space.gradient[U(a)] * space.gradient[U(a)]
    for step in range(sample_size):
        row = row_at(first, count, sample_size, step, state.draws, b, k)
        set_scores(data, row, 1.0, space.gradient, U(0), space.along, U(step) * outputs)
    return squared_norm, _value_along(data, state, b, i, k, 0.0)


@inlined
def raise_by_rows(data, state, b, i, k, curvature, squared_norm, value):
    """Return L̂, doubled until the rows do not contradict it."""
    if 0.0 < squared_norm < np.inf and value > 0.0:
        if curvature == 0.0:
            curvature = squared_norm / (2.0 * value)
        decrease = squared_norm / (2.0 * curvature)
        while decrease > ROUNDING * value:
            trial = _value_along(data, state, b, i, k, 1.0 / curvature)
            if trial <= value - (1.0 - SLACK) * decrease:
                break
            curvature *= 2.0
            decrease *= 0.5
    return curvature


@inlined
def _step(data, state, b, gamma, mean):
    """Set w to Π((1 − γλ)w − γ·correction − mean·s) and s to s + change."""
    size, space, squared_norm = size_of(data), state.space, 0.0
    offset, keep, has_box = b * size, 1.0 - gamma * data.penalty, data.low > -np.inf
    for a in range(size):
        w, s = state.models[offset + U(a)], state.sums[offset + U(a)]
        state.sums[offset + U(a)] = s + space.change[U(a)]
        w = keep * w - gamma * space.correction[U(a)] - mean * s
        if has_box:
            w = min(max(w, data.low), data.high)
        state.models[offset + U(a)] = w
        squared_norm += w * w
    project_onto_ball(data, squared_norm, state.models, offset)


@inlined
def visit(data, state, b, i, j, k, carry):
    """Update by the rows of node i, or by a mini-batch of them."""
    _, count, sample_size, _ = rows_of(data, i)
    score, factor, n, ages, squared_ages, curvature = carry
    nodes = data.offsets.size - 1
    last_visit, visit_number = (
        state.visited[b * U(nodes) + i],
        np.float64(state.done + np.int64(k) + 1),
    )
    state.visited[b * U(nodes) + i] = visit_number
    new, bound = _compare_rows(data, state, b, i, k)
    n += _replace_slopes(data, state, b, i, k)
    if count == 0 and last_visit == 0.0:
        n += 1.0  # a relay, whose gradient is known to be 0
    if last_visit > 0.0:
        ages += visit_number - last_visit
        squared_ages += (visit_number - last_visit) * (visit_number - last_visit)
    gamma = state.step
    if gamma == 0.0:
        step_factor, curvature = decay_curvature(
            curvature, n, ages, squared_ages, nodes, count, sample_size
        )
        if curvature < bound:
            squared_norm, value = find_along(data, state, b, i, k)
            curvature = raise_by_rows(data, state, b, i, k, curvature, squared_norm, value)
        gamma = step_size(step_factor, curvature + data.penalty)
    if n < state.wait[b]:
        gamma = 0.0
    _step(data, state, b, gamma, (1.0 - new) * gamma / n)
    return score, factor, n, ages, squared_ages, curvature


@kernel
def far_rows(path, visits, data, state, records):
    """Update along paths over any rows."""
    far(begin, visit, end, copy, fetch_nothing, path, visits, data, state, records, 1)
