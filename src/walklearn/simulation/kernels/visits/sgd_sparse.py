"""Visits of SGD to sparse rows, at the cost of the entries that are not 0.

A step changes all of w: by the penalty, by the projection onto the ball, and in the running sum.
They are therefore stored as factors. A model is w = a·v, and its running sum Σγw = u + s·v:

    Σγw += γ w                s += γ a
    w ← keep·w − push·x       a ← keep·a,  v += δ,  u −= s·δ    with δ = −(push / a)·x
    w ← Π(w)                  a ← a·radius / ‖w‖                with ‖w‖² = a²‖v‖²

From time to time, and before a becomes too small or too large to divide by, the factors are
multiplied into v and u. In the state v is `models`, u is `sums`, a is `factors`, s is `shares` and
‖v‖² is `squared_norms`.
"""

from __future__ import annotations

import numpy as np

from walklearn.simulation.kernels.arithmetic import U, prefetch
from walklearn.simulation.kernels.compilation import helper, inlined, kernel
from walklearn.simulation.kernels.drivers import AHEAD, far
from walklearn.simulation.kernels.losses import outputs_of, to_slopes
from walklearn.simulation.kernels.rows import ball_factor, row_at, rows_of, set_scores, size_of
from walklearn.simulation.kernels.visits.sgd import begin, end, step_length

SMALLEST, LARGEST = 1e-6, 1e6  # of a; beyond, digits are lost
RESCALE_EVERY = 10_000  # visits, or the number of parameters of a model if it is larger
CACHE_LINE = 16  # columns in a cache line, which holds half as many entries


@helper
def must_rescale(a, visit, size):
    """Return True if the factors should be multiplied into the arrays."""
    return not SMALLEST < abs(a) < LARGEST or visit % max(RESCALE_EVERY, size) == 0


@inlined
def _rescale(state, offset, size, a, s):
    """Multiply a into v and add s·v to u; return the new ‖v‖²."""
    squared_norm = 0.0
    for index in range(offset, offset + size):
        v = state.models[U(index)]
        state.sums[U(index)] += s * v
        state.models[U(index)] = a * v
        squared_norm += (a * v) * (a * v)
    return squared_norm


@inlined
def fetch_rows(data, state, path, b, k, later):
    """Prefetch the first row of a later node, or of the last node of the path."""
    rows, steps = data.rows, U(path.shape[1] - 1)
    prefetch(data.offsets, U(path[b, min(k + U(2 * AHEAD), steps)]))
    prefetch(rows.starts, U(data.offsets[U(path[b, min(k + U(AHEAD + 1), steps)])]))
    row = min(U(data.offsets[later]), U(data.targets.size - 1))
    prefetch(data.targets, row)
    prefetch(data.weights, row)
    for p in range(U(rows.starts[row]), U(rows.starts[row + U(1)]), U(CACHE_LINE)):
        prefetch(rows.entries, U(p))
        prefetch(rows.entries, U(p) + U(CACHE_LINE // 2))
        prefetch(rows.columns, U(p))


@inlined
def _add_row(data, state, row, push, s, offset):
    """Add push·x to v and −s·push·x to u; return the change of ‖v‖²."""
    rows, growth = data.rows, 0.0
    for p in range(U(rows.starts[row]), U(rows.starts[row + U(1)])):
        index = offset + U(rows.columns[U(p)])
        v = np.float64(state.models[index])
        state.models[index] = v + push * rows.entries[U(p)]
        change = state.models[index] - v  # as stored, in single precision too
        state.sums[index] -= s * change
        growth += change * (2.0 * v + change)
    return growth


@inlined
def visit(data, state, b, i, j, k, carry):
    """Update by the sparse rows of node i, in a ball or everywhere."""
    first, count, sample_size, share = rows_of(data, i)
    size, outputs, slopes = size_of(data), U(outputs_of(data.loss)), state.slopes
    offset, (score, a) = b * size, carry
    for step in range(sample_size):
        row, index = row_at(first, count, sample_size, step, state.draws, b, k), U(step) * outputs
        set_scores(data, row, a, state.models, offset, slopes, index)
        to_slopes(data.loss, slopes, index, data.targets[row])
    length = step_length(state, b, i, k)
    state.shares[b] += state.step_sizes[k] * a
    a *= 1.0 - length * data.penalty
    if must_rescale(a, state.done + np.int64(k) + 1, np.int64(size)):
        state.squared_norms[b] = _rescale(state, offset, size, a, state.shares[b])
        state.shares[b], a = 0.0, 1.0
    s, squared_norm = state.shares[b], state.squared_norms[b]
    for step in range(sample_size):
        row = row_at(first, count, sample_size, step, state.draws, b, k)
        factor = -length * share * data.weights[row] / a
        for c in range(outputs):
            push = factor * slopes[U(step) * outputs + U(c)]
            model = offset + U(c) * U(data.rows.width)
            squared_norm += _add_row(data, state, row, push, s, model)
    state.squared_norms[b] = max(squared_norm, 0.0)
    return score, a * ball_factor(a * a * squared_norm, data.radius)


@inlined
def copy(data, state, b, records, record):
    """Copy the model a·v and its running sum u + s·v."""
    size = size_of(data)
    for column in range(size):
        v = state.models[b * size + U(column)]
        records.models[record, b, column] = state.factors[b] * v
        records.sums[record, b, column] = state.sums[b * size + U(column)] + state.shares[b] * v


@kernel
def far_sparse(path, visits, data, state, records):
    """Update along paths over sparse rows."""
    far(begin, visit, end, copy, fetch_rows, path, visits, data, state, records, 1)
