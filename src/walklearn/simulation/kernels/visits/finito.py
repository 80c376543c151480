"""Visits of Finito to one dense row per node with one score: the twin of `updates.finito.Finito`.

Gradients are multiples of rows, so all of a node's numbers are scalars, except for z. With
D = σ + λn, w = Π(b/D), and t the share of the way from z to w, a visit sets

    z' ← z + t(w − z),   b ← b + σ'z' − σz − c(slope' − slope)x.

A first pass over b and z computes ‖w − z‖². It needs no slope, so the processor does not wait for
one. A second pass moves z and b, and sums the score b·x of the next row.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from walklearn.simulation.kernels.arithmetic import Array, U, prefetch
from walklearn.simulation.kernels.compilation import helper, inlined, kernel
from walklearn.simulation.kernels.drivers import far, near
from walklearn.simulation.kernels.line_search import raise_by_bounds, raise_by_row
from walklearn.simulation.kernels.losses import slope_of, value_of
from walklearn.simulation.kernels.rows import ball_factor, fetch_row, size_of

# The constants of `updates.finito`.
MAX_SHARE, SMOOTHNESS_SHARE, CURVATURE_SHARE, MAX_THETA = 0.75, 0.5, 2.0, 2.0
WAIT_COVERS, MAX_AGE_COVERS, MAX_GROWTH = 3.0, 100.0, 10_000.0

SCORE, SLOPE, SIGMA, SMOOTHNESS = map(U, range(4))  # of a node; its σ is negative before it counts
NUMBERS = U(4)


class Finito(NamedTuple):
    """The arrays of Finito; those of tokens and nodes are changed in place."""

    sums: Array  # b, (tokens · size,), flat
    gradient_sums: Array  # Σg_i, (tokens · size,); or empty
    scores: Array  # b·x of the next row, (tokens,)
    squared_norms: Array  # ‖b‖²
    sigmas: Array  # σ of the sum
    counts: Array  # n of the sum
    p: Array  # the recent moves, see `updates.finito`
    q: Array
    theta: Array
    q_min: Array
    age: Array
    n_last: Array
    since: Array
    z: Array  # z of each node, (tokens · nodes · size,)
    g: Array  # its gradient there; empty for one row per node
    tokens: Array  # that share the sum, a number for each; as one number it would cost 5 ns
    min_count: float  # n from which w is the minimiser; until then w and all z are the start model
    numbers: Array  # score, slope, σ and L of each node, (tokens · nodes · 4,)
    squares: Array  # ‖x‖² of each row
    draws: Array  # (tokens, visits, 0)
    space: Any  # work space, see `finito_rows`


@inlined
def begin(state, b):
    """Return the numbers of a token that change at every visit."""
    return state.scores[b], state.squared_norms[b], state.sigmas[b], state.counts[b]


@inlined
def end(state, b, carry):
    """Write the numbers of a token back."""
    state.scores[b], state.squared_norms[b], state.sigmas[b], state.counts[b] = carry


@helper
def waits(state, sigma, n):
    """Return True while w is the start model, for n nodes in the sum."""
    return n < state.min_count or not sigma > 0.0


@helper
def inverse_of(sigma, penalty, n):
    """Return 1/D, or 0 while no node has curvature."""
    return 1.0 / (sigma + penalty * n) if sigma > 0.0 else 0.0


@inlined
def model_factor(data, sigma, n, squared_norm):
    """Return the factor of b in w, which projects onto a ball."""
    inverse = inverse_of(sigma, data.penalty, n)
    return inverse * ball_factor(squared_norm * inverse * inverse, data.radius)


@inlined
def copy(data, state, b, records, record):
    """Copy the model."""
    size, has_box = size_of(data), data.low > -np.inf
    factor = model_factor(data, state.sigmas[b], state.counts[b], state.squared_norms[b])
    is_start = waits(state, state.sigmas[b], state.counts[b])
    first_z = b * size * U(data.offsets.size - 1)
    for a in range(size):
        w = factor * state.sums[b * size + U(a)]
        if has_box:
            w = min(max(w, data.low), data.high)
        records.models[record, b, a] = state.z[first_z + U(a)] if is_start else w


@inlined
def share_of_way(state, b, penalty, sigma, n, smoothness):
    """Return the share of the way from z to w that z moves."""
    D = sigma + penalty * n
    return min(MAX_SHARE, D / (D + state.theta[b] * smoothness)) if D > 0.0 else MAX_SHARE


@inlined
def count_move(state, b, n, is_first, change, squared_length):
    """Add a move to the recent ones, except at a first visit, watch their length, and return p/q.

    `change` is the product of the move with the change of the gradient.
    """
    p, q, keep = state.p[b], state.q[b], max(0.0, 1.0 - state.tokens[b] / n)
    if not is_first:
        p, q = keep * p + change, keep * q + squared_length
        state.p[b], state.q[b] = p, q
    since = state.since[b] + 1.0 if n == state.n_last[b] else 0.0
    state.since[b], state.n_last[b] = since, n
    if since >= WAIT_COVERS * n and q > 0.0:
        q_min, age, theta = state.q_min[b], state.age[b] + 1.0, state.theta[b]
        if q < q_min:
            q_min, age = q, 0.0
        if theta < MAX_THETA and (q > MAX_GROWTH * q_min or age > MAX_AGE_COVERS * n):
            state.theta[b], q_min, age = 2.0 * theta, q, 0.0
        state.q_min[b], state.age[b] = q_min, age
    return p / q if q > 0.0 else 0.0


@helper
def sigma_of(smoothness, n, curvature):
    """Return σ of a node."""
    return max(smoothness / (SMOOTHNESS_SHARE * n), curvature / CURVATURE_SHARE)


@inlined
def _distance(data, state, offset, z_offset, factor):
    """Return ‖w − z‖² for w = factor · b."""
    squares = 0.0
    for a in range(U(data.rows.width)):
        move = factor * state.sums[offset + U(a)] - state.z[z_offset + U(a)]
        squares += move * move
    return squares


@inlined
def _step(data, state, b, i, j, z_offset, factor, share, old_sigma, sigma, push):
    """Move z and b; return the next score and ‖b‖²."""
    rows, size = data.rows.entries, U(data.rows.width)
    offset, row, next_row = b * size, i * size, j * size
    squared_norm, score = 0.0, 0.0
    for a in range(size):
        total, z = state.sums[offset + U(a)], state.z[z_offset + U(a)]
        new_z = z + share * (factor * total - z)
        total += sigma * new_z - old_sigma * z - push * rows[row + U(a)]
        state.z[z_offset + U(a)], state.sums[offset + U(a)] = new_z, total
        squared_norm += total * total
        score += total * rows[next_row + U(a)]
    return score, squared_norm


@inlined
def _halve_and_raise(loss, smoothness, score, target, slope, weight, square):
    """Return half of L, doubled until the row does not contradict it; L without a slope or loss."""
    result = raise_by_bounds(loss, 0.5 * smoothness, slope, square)
    if result == 0.0:
        result, value = smoothness, weight * value_of(loss, score, target)
        if slope != 0.0 and value != 0.0:
            along, squared_norm = slope * square, weight * slope * slope * square
            result = raise_by_row(
                loss, 0.5 * smoothness, score, target, along, weight, squared_norm, value
            )
    return result


@inlined
def visit(data, state, b, i, j, k, carry):
    """Update by the row of node i, without a box."""
    score, squared_norm, total, n = carry
    node, size = b * U(data.offsets.size - 1) + i, U(data.rows.width)
    index, z_offset = NUMBERS * node, node * size
    old_score, old_slope = state.numbers[index + SCORE], state.numbers[index + SLOPE]
    old_sigma, smoothness = state.numbers[index + SIGMA], state.numbers[index + SMOOTHNESS]
    share, is_first, squared_length = 1.0, old_sigma < 0.0, 0.0
    is_start = waits(state, total, n)
    if is_first:
        old_sigma = 0.0
        n += 1.0
    factor = model_factor(data, total, n, squared_norm)
    if not is_first:
        share = share_of_way(state, b, data.penalty, total, n, smoothness)
        squared_length = share * share * _distance(data, state, b * size, z_offset, factor)
    if is_start:
        share = squared_length = 0.0
    move = share * (factor * score - old_score)
    new_score, target, weight = old_score + move, data.targets[i], data.weights[i]
    slope = slope_of(data.loss, new_score, target)
    push = weight * (slope - old_slope)
    smoothness = _halve_and_raise(
        data.loss, smoothness, new_score, target, slope, weight, weight * state.squares[i]
    )
    curvature = count_move(state, b, n, is_first, move * push, squared_length)
    sigma = sigma_of(smoothness, n, curvature)
    state.numbers[index + SCORE], state.numbers[index + SLOPE] = new_score, slope
    state.numbers[index + SIGMA], state.numbers[index + SMOOTHNESS] = sigma, smoothness
    score, squared_norm = _step(
        data, state, b, i, j, z_offset, factor, share, old_sigma, sigma, push
    )
    if state.gradient_sums.size > 0:
        for a in range(size):
            state.gradient_sums[b * size + U(a)] += push * data.rows.entries[i * size + U(a)]
    return score, squared_norm, total + (sigma - old_sigma), n


@inlined
def fetch(data, state, path, b, k, later):
    """Prefetch the row of a later visit, and the numbers of its node."""
    node = b * U(data.offsets.size - 1) + later
    prefetch(state.squares, later)
    prefetch(state.numbers, NUMBERS * node)
    prefetch(state.z, node * U(data.rows.width))
    prefetch(state.z, node * U(data.rows.width) + U(8))
    fetch_row(data, later)


@kernel
def near_one_row(walk, tokens, draws, data, state, records):
    """Walk over one row per node in the cache."""
    near(begin, visit, end, copy, walk, tokens, draws, data, state, records)


@kernel
def far_one_row(path, visits, data, state, records, group):
    """Update along paths over one row per node."""
    far(begin, visit, end, copy, fetch, path, visits, data, state, records, group)
