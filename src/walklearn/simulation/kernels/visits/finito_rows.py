"""Visits of Finito to any rows: several per node, softmax, sparse rows; O(d) beside the rows."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from walklearn.simulation.kernels.arithmetic import Array, U
from walklearn.simulation.kernels.compilation import inlined, kernel
from walklearn.simulation.kernels.drivers import far, fetch_nothing
from walklearn.simulation.kernels.losses import outputs_of, to_slopes
from walklearn.simulation.kernels.rows import add, rows_of, set_scores, size_of
from walklearn.simulation.kernels.visits.finito import (
    NUMBERS,
    SIGMA,
    SMOOTHNESS,
    begin,
    copy,
    count_move,
    end,
    model_factor,
    share_of_way,
    sigma_of,
    waits,
)
from walklearn.simulation.kernels.visits.saga_rows import find_along, raise_by_rows


class Space(NamedTuple):
    """Work space of a visit: numbers of its rows, (rows of a node · outputs,), and of the model."""

    scores: Array
    slopes: Array
    along: Array  # scores of the gradient
    gradient: Array
    move: Array  # of z


@inlined
def _move(data, state, offset, z_offset, factor, share):
    """Move z by a share of the way to w; return the squared length of the move."""
    squares, has_box = 0.0, data.low > -np.inf
    for a in range(size_of(data)):
        w, z = factor * state.sums[offset + U(a)], state.z[z_offset + U(a)]
        if has_box:
            w = min(max(w, data.low), data.high)
        new_z = z + share * (w - z)
        move = new_z - z
        state.z[z_offset + U(a)], state.space.move[U(a)] = new_z, move
        squares += move * move
    return squares


@inlined
def _find_gradient(data, state, i, z_offset):
    """Compute the scores and slopes of all rows of node i at z, and the gradient."""
    first, count, _, _ = rows_of(data, i)
    outputs, space = U(outputs_of(data.loss)), state.space
    for a in range(size_of(data)):
        space.gradient[U(a)] = 0.0
    for step in range(count):
        row, index = U(first + step), U(step) * outputs
        set_scores(data, row, 1.0, state.z, z_offset, space.scores, index)
        for c in range(outputs):
            space.slopes[index + U(c)] = space.scores[index + U(c)]
        to_slopes(data.loss, space.slopes, index, data.targets[row])
        for c in range(outputs):
            push = data.weights[row] * space.slopes[index + U(c)]
            add(data.rows, row, push, space.gradient, U(c) * U(data.rows.width))


@inlined
def _change_of_gradient(data, state, z_offset):
    """Return the product of the move with the change of the gradient."""
    product, space = 0.0, state.space
    for a in range(size_of(data)):
        product += space.move[U(a)] * (space.gradient[U(a)] - state.g[z_offset + U(a)])
    return product


@inlined
def _replace(data, state, b, z_offset, old_sigma, sigma):
    """Replace the contribution of the node; return ‖b‖²."""
    size, squared_norm = size_of(data), 0.0
    offset = b * size
    for a in range(size):
        z, g = state.z[z_offset + U(a)], state.space.gradient[U(a)]
        old_z, change = z - state.space.move[U(a)], g - state.g[z_offset + U(a)]
        sum_ = state.sums[offset + U(a)] + (sigma * z - old_sigma * old_z - change)
        state.g[z_offset + U(a)], state.sums[offset + U(a)] = g, sum_
        squared_norm += sum_ * sum_
        if state.gradient_sums.size > 0:
            state.gradient_sums[offset + U(a)] += change
    return squared_norm


@inlined
def visit(data, state, b, i, j, k, carry):
    """Update by the rows of node i."""
    score, squared_norm, total, n = carry
    node = b * U(data.offsets.size - 1) + i
    index, z_offset, offset = NUMBERS * node, node * size_of(data), b * size_of(data)
    old_sigma, smoothness = state.numbers[index + SIGMA], state.numbers[index + SMOOTHNESS]
    is_first, is_start = old_sigma < 0.0, waits(state, total, n)
    if is_first:
        old_sigma = 0.0
        n += 1.0
    factor = model_factor(data, total, n, squared_norm)
    share = 1.0 if is_first else share_of_way(state, b, data.penalty, total, n, smoothness)
    if is_start:
        share = 0.0
    squared_length = _move(data, state, offset, z_offset, factor, share)
    _find_gradient(data, state, i, z_offset)
    change = _change_of_gradient(data, state, z_offset)
    squared_gradient, value = find_along(data, state, b, i, k)
    if squared_gradient > 0.0 and value != 0.0:
        smoothness = raise_by_rows(data, state, b, i, k, 0.5 * smoothness, squared_gradient, value)
    curvature = count_move(state, b, n, is_first, change, squared_length)
    sigma = sigma_of(smoothness, n, curvature)
    state.numbers[index + SIGMA], state.numbers[index + SMOOTHNESS] = sigma, smoothness
    squared_norm = _replace(data, state, b, z_offset, old_sigma, sigma)
    return score, squared_norm, total + (sigma - old_sigma), n


@kernel
def far_rows(path, visits, data, state, records):
    """Update along paths over any rows."""
    far(begin, visit, end, copy, fetch_nothing, path, visits, data, state, records, 1)
