"""Visits of SAGA to one dense row per node with one score: the twin of `updates.saga.Saga`.

With c the change of the node's gradient, n the number of visited nodes and s the sum of the
gradients that nodes store, a visit sets

    w ← Π((1 − γλ)w − γc − (γ/n)s),   s ← s + c,

without the term of s at the first visit of a node. As for SGD, a model is factor · models.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from walklearn.simulation.kernels.arithmetic import Array, U, prefetch
from walklearn.simulation.kernels.compilation import inlined, kernel
from walklearn.simulation.kernels.drivers import far, near
from walklearn.simulation.kernels.line_search import decay_curvature, search_row, step_size
from walklearn.simulation.kernels.losses import may_contradict, slope_of
from walklearn.simulation.kernels.rows import ball_factor, fetch_row, size_of


class Saga(NamedTuple):
    """The arrays of SAGA; those of tokens and nodes are changed in place."""

    models: Array  # (tokens · size,), flat
    sums: Array  # s
    scores: Array  # of the next row, (tokens,)
    factors: Array  # of the models, (tokens,)
    shares: Array  # of the sums in the models; see `saga_sparse`
    pairs: Array  # see `saga_sparse`
    nodes: Array  # n of each token
    ages: Array  # Σa, over returns to a node a hops after its last visit
    squared_ages: Array  # Σa²
    curvature: Array  # L̂ of each token
    wait: Array  # the number of nodes to visit before w moves
    slopes: (
        Array  # of all rows, NaN before the first visit; for one row per node see `replace_slope`
    )
    visited: Array  # the last visit of each node, (tokens · nodes,); empty for one row per node
    squares: Array  # c_r ‖x_r‖² of each row
    smoothness: float
    step: float  # γ; 0 if it is found by line search
    done: int  # visits before this call
    draws: Array  # (tokens, visits, batch), which pick mini-batches
    space: Any  # work space, see `saga_rows`


@inlined
def begin(state, b):
    """Return the numbers of a token that change at every visit."""
    return (
        state.scores[b], state.factors[b], state.nodes[b], state.ages[b], state.squared_ages[b],
        state.curvature[b],
    )  # fmt: skip


@inlined
def end(state, b, carry):
    """Write the numbers of a token back."""
    state.scores[b], state.factors[b], state.nodes[b] = carry[0], carry[1], carry[2]
    state.ages[b], state.squared_ages[b], state.curvature[b] = carry[3], carry[4], carry[5]


@inlined
def copy(data, state, b, records, record):
    """Copy the model."""
    size = size_of(data)
    for a in range(size):
        records.models[record, b, a] = state.factors[b] * state.models[b * size + U(a)]


@inlined
def replace_slope(data, state, b, i, k, score, n, ages, squared_ages, curvature):
    """Replace the stored slope and last visit of node i, and find the step size.

    Return γ, the change of the gradient, True at the first visit, and the new n, Σa, Σa² and L̂.
    """
    nodes = data.offsets.size - 1
    index = U(2) * (b * U(nodes) + i)
    old_slope, last_visit = state.slopes[index], state.slopes[index + U(1)]
    visit_number, is_first = np.float64(state.done + np.int64(k) + 1), last_visit == 0.0
    if is_first:
        old_slope = 0.0
        n += 1.0
    else:
        ages += visit_number - last_visit
        squared_ages += (visit_number - last_visit) * (visit_number - last_visit)
    weight, target = data.weights[i], data.targets[i]
    slope = slope_of(data.loss, score, target)
    state.slopes[index], state.slopes[index + U(1)] = slope, visit_number
    gamma = state.step
    if gamma == 0.0:
        step_factor, curvature = decay_curvature(curvature, n, ages, squared_ages, nodes, 1, 1)
        square = state.squares[i]
        if may_contradict(data.loss, score, target, slope, square, curvature):
            curvature = search_row(data.loss, curvature, score, target, slope, weight, square)
        gamma = step_size(step_factor, curvature + data.penalty)
    if n < state.wait[b]:
        gamma = 0.0
    return gamma, weight * (slope - old_slope), is_first, n, ages, squared_ages, curvature


@inlined
def _step(data, state, b, i, j, keep, push, pull, change):
    """Set w to keep·w − push·x − pull·s and s to s + change·x; return ‖w‖² and the next score."""
    rows, size = data.rows.entries, U(data.rows.width)
    offset, row, next_row = b * size, i * size, j * size
    squared_norm, score, has_box = 0.0, 0.0, data.low > -np.inf
    for a in range(size):
        s, x = state.sums[offset + U(a)], rows[row + U(a)]
        w = keep * state.models[offset + U(a)] - push * x - pull * s
        state.sums[offset + U(a)] = s + change * x
        if has_box:
            w = min(max(w, data.low), data.high)
        state.models[offset + U(a)] = w
        squared_norm += w * w
        score += w * rows[next_row + U(a)]
    return squared_norm, score


@inlined
def visit(data, state, b, i, j, k, carry):
    """Update by the row of node i."""
    score, factor, n, ages, squared_ages, curvature = carry
    gamma, change, is_first, n, ages, squared_ages, curvature = replace_slope(
        data, state, b, i, k, score, n, ages, squared_ages, curvature
    )
    keep, pull = (1.0 - gamma * data.penalty) * factor, 0.0 if is_first else gamma / n
    squared_norm, score = _step(data, state, b, i, j, keep, gamma * change, pull, change)
    factor = ball_factor(squared_norm, data.radius)
    return score * factor, factor, n, ages, squared_ages, curvature


@inlined
def fetch_node(data, state, b, later):
    """Prefetch the stored slope of node `later`."""
    prefetch(state.squares, later)
    prefetch(state.slopes, U(2) * (b * U(data.offsets.size - 1) + later))


@inlined
def fetch(data, state, path, b, k, later):
    """Prefetch the row of a later visit."""
    fetch_node(data, state, b, later)
    fetch_row(data, later)


@kernel
def near_one_row(walk, tokens, draws, data, state, records):
    """Walk over one row per node in the cache."""
    near(begin, visit, end, copy, walk, tokens, draws, data, state, records)


@kernel
def far_one_row(path, visits, data, state, records, group):
    """Update along paths over one row per node."""
    far(begin, visit, end, copy, fetch, path, visits, data, state, records, group)
