"""Visits of SAGA to one dense row per node with one score: the twin of `updates.saga.Saga`.

With c the change of the node's gradient, n the number of visited nodes and s the sum of the
gradients that nodes keep, a visit sets

    w ← Π((1 − γλ)w − γc − (γ/n)s),   s ← s + c,

without the term of s at the first visit of a node. As for SGD, a model is factor · models.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from walklearn.simulation.kernels.arithmetic import Array, U, prefetch
from walklearn.simulation.kernels.compilation import inlined, kernel
from walklearn.simulation.kernels.drivers import far, near
from walklearn.simulation.kernels.line_search import decayed, search_row, step_size
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
    wait: Array  # how many nodes must be visited before w moves
    slopes: Array  # of all rows, NaN before the first visit; for one row per node see `remember`
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
    """Write them back."""
    state.scores[b], state.factors[b], state.nodes[b] = carry[0], carry[1], carry[2]
    state.ages[b], state.squared_ages[b], state.curvature[b] = carry[3], carry[4], carry[5]


@inlined
def copy(data, state, b, records, record):
    """Copy the model."""
    size = size_of(data)
    for a in range(size):
        records.models[record, b, a] = state.factors[b] * state.models[b * size + U(a)]


@inlined
def remember(data, state, b, i, k, score, n, ages, squared_ages, curvature):
    """Replace the slope that node i stores, beside its last visit, and find the step size.

    Return γ, the change of the gradient, True at the first visit, and the new n, Σa, Σa² and L̂.
    """
    nodes = data.offsets.size - 1
    place = U(2) * (b * U(nodes) + i)
    before, last = state.slopes[place], state.slopes[place + U(1)]
    now, is_first = np.float64(state.done + np.int64(k) + 1), last == 0.0
    if is_first:
        before = 0.0
        n += 1.0
    else:
        ages += now - last
        squared_ages += (now - last) * (now - last)
    weight, target = data.weights[i], data.targets[i]
    slope = slope_of(data.loss, score, target)
    state.slopes[place], state.slopes[place + U(1)] = slope, now
    gamma = state.step
    if gamma == 0.0:
        pace, curvature = decayed(curvature, n, ages, squared_ages, nodes, 1, 1)
        square = state.squares[i]
        if may_contradict(data.loss, score, target, slope, square, curvature):
            curvature = search_row(data.loss, curvature, score, target, slope, weight, square)
        gamma = step_size(pace, curvature + data.penalty)
    if n < state.wait[b]:
        gamma = 0.0
    return gamma, weight * (slope - before), is_first, n, ages, squared_ages, curvature


@inlined
def _step(data, state, b, i, j, keep, push, pull, change):
    """Set w to keep·w − push·x − pull·s and s to s + change·x; return ‖w‖² and the next score."""
    rows, size = data.rows.entries, U(data.rows.width)
    at, row, following = b * size, i * size, j * size
    squared_norm, score, boxed = 0.0, 0.0, data.low > -np.inf
    for a in range(size):
        s, x = state.sums[at + U(a)], rows[row + U(a)]
        w = keep * state.models[at + U(a)] - push * x - pull * s
        state.sums[at + U(a)] = s + change * x
        if boxed:
            w = min(max(w, data.low), data.high)
        state.models[at + U(a)] = w
        squared_norm += w * w
        score += w * rows[following + U(a)]
    return squared_norm, score


@inlined
def visit(data, state, b, i, j, k, carry):
    """Update by the row of node i."""
    score, factor, n, ages, squared_ages, curvature = carry
    gamma, change, is_first, n, ages, squared_ages, curvature = remember(
        data, state, b, i, k, score, n, ages, squared_ages, curvature
    )
    keep, pull = (1.0 - gamma * data.penalty) * factor, 0.0 if is_first else gamma / n
    squared_norm, score = _step(data, state, b, i, j, keep, gamma * change, pull, change)
    factor = ball_factor(squared_norm, data.radius)
    return score * factor, factor, n, ages, squared_ages, curvature


@inlined
def fetch_node(data, state, b, later):
    """Prefetch the slope that node `later` keeps."""
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
