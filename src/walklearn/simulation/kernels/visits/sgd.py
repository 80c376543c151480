"""Visits of SGD to dense rows: one row per node with one score, or any rows.

With one row per node a model is factor · models: the factor projects onto the ball, and is applied
at the next update. `scores` holds the score of the next row.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from walklearn.simulation.kernels.arithmetic import Array, U, prefetch
from walklearn.simulation.kernels.compilation import inlined, kernel
from walklearn.simulation.kernels.drivers import far, fetch_nothing, near, near_in_turns
from walklearn.simulation.kernels.losses import slope_of
from walklearn.simulation.kernels.rows import (
    ball_factor,
    descend,
    fetch_row,
    find_gradient,
    size_of,
)

SHORT = 24  # below this many entries, the next score is summed before the slope is known


class Noise(NamedTuple):
    """Protection of the model; see `privacy.ModelNoise`. A clip of 0 stands for no protection."""

    clip: float
    by_row: bool  # True if each row is clipped, False if their sum is
    deviation: float
    max_contributions: int  # of a node
    factors: Array  # of clip and noise at each node
    lengths: Array  # ‖x‖ of each row
    normals: Array  # (tokens, visits, size)
    contributions: Array  # (tokens, nodes), changed in place


class Sgd(NamedTuple):
    """The arrays of SGD; those of tokens are changed in place."""

    models: Array  # (tokens · size,), flat
    sums: Array  # Σγw
    scores: Array  # of the next row, (tokens,)
    factors: Array  # of the models, (tokens,)
    shares: Array  # of the models in the sums; see `sgd_sparse`
    squared_norms: Array  # of the models
    inverses: Array  # Σ 1/L_i of each token; empty unless the token estimates L̄
    weights: Array  # of each node's gradient, (lines · nodes,), flat
    stride: int  # the nodes, if each replicate has its own weights; else 0
    has_gaps: bool  # True if `weights` are the last visits, 0 for none, from which gaps are found
    step_sizes: Array  # of the visits of this call
    done: int  # visits before this call
    draws: Array  # (tokens, visits, batch), which pick mini-batches
    gradient: Array  # work space, (size,)
    slopes: Array  # work space, (rows of a node · outputs,)
    noise: Noise


@inlined
def step_length(state, b, i, k):
    """Return the step size times the weight of node i."""
    visit, index = np.float64(state.done + np.int64(k) + 1), b * U(state.stride) + i
    weight = state.weights[index]
    if state.has_gaps:
        state.weights[index] = visit
        weight = (visit - weight) / state.stride if weight > 0.0 else 1.0
    elif state.inverses.size > 0:
        state.inverses[b] += weight
        weight *= visit / state.inverses[b]
    return state.step_sizes[k] * weight


@inlined
def begin(state, b):
    """Return the score of the next row and the factor of the model."""
    return state.scores[b], state.factors[b]


@inlined
def end(state, b, carry):
    """Write the score and the factor back."""
    state.scores[b], state.factors[b] = carry


@inlined
def copy(data, state, b, records, record):
    """Copy the model and its running sum."""
    size = size_of(data)
    for a in range(size):
        records.models[record, b, a] = state.factors[b] * state.models[b * size + U(a)]
        records.sums[record, b, a] = state.sums[b * size + U(a)]


@inlined
def _short_step(data, state, b, i, j, keep, push, share):
    """Set w to keep·w − push·x for a short row x; return ‖w‖² and the score of the next row x'.

    Both products of the score x'·(keep·w₀ − push·x) can be summed before the slope is known.
    """
    rows, size = data.rows.entries, U(data.rows.width)
    offset, row, next_row = b * size, i * size, j * size
    squared_norm, score, overlap = 0.0, 0.0, 0.0
    for a in range(size):
        w, x, later = state.models[offset + U(a)], rows[row + U(a)], rows[next_row + U(a)]
        state.sums[offset + U(a)] += share * w
        score += later * w
        overlap += later * x
        w = keep * w - push * x
        state.models[offset + U(a)] = w
        squared_norm += w * w
    return squared_norm, keep * score - push * overlap


@inlined
def _long_step(data, state, b, i, j, keep, push, share):
    """Set w to keep·w − push·x for a long row or in a box; the next score uses the new w."""
    rows, size = data.rows.entries, U(data.rows.width)
    offset, row, next_row = b * size, i * size, j * size
    squared_norm, score, has_box = 0.0, 0.0, data.low > -np.inf
    for a in range(size):
        w = state.models[offset + U(a)]
        state.sums[offset + U(a)] += share * w
        w = keep * w - push * rows[row + U(a)]
        if has_box:
            w = min(max(w, data.low), data.high)
        state.models[offset + U(a)] = w
        squared_norm += w * w
        score += w * rows[next_row + U(a)]
    return squared_norm, score


@inlined
def _visit(step, data, state, b, i, j, k, carry):
    score, factor = carry
    length = step_length(state, b, i, k)
    push = length * data.weights[i] * slope_of(data.loss, score, data.targets[i])
    keep, share = (1.0 - length * data.penalty) * factor, state.step_sizes[k] * factor
    squared_norm, score = step(data, state, b, i, j, keep, push, share)
    factor = ball_factor(squared_norm, data.radius)
    return score * factor, factor


@inlined
def visit_short(data, state, b, i, j, k, carry):
    """Update by one short row."""
    return _visit(_short_step, data, state, b, i, j, k, carry)


@inlined
def visit_long(data, state, b, i, j, k, carry):
    """Update by one long row, or in a box."""
    return _visit(_long_step, data, state, b, i, j, k, carry)


@inlined
def fetch(data, state, path, b, k, later):
    """Prefetch the row of a later visit."""
    prefetch(state.weights, b * U(state.stride) + later)
    fetch_row(data, later)


@inlined
def _protect(noise, b, i, k, gradient):
    """Clip the gradient of a node, unless its rows are clipped, and add noise.

    Return False if the budget is spent. The gradient counts as 0 if it is not finite.
    """
    squared_norm, contributes = 0.0, noise.contributions[b, i] < noise.max_contributions
    noise.contributions[b, i] += contributes
    for a in range(gradient.size):
        squared_norm += gradient[U(a)] * gradient[U(a)]
    clip = noise.factors[i] * noise.clip
    factor = 1.0 if noise.by_row else clip / max(np.sqrt(squared_norm), clip)
    deviation, is_finite = noise.factors[i] * noise.deviation, np.isfinite(squared_norm)
    for a in range(gradient.size):
        entry = factor * gradient[U(a)] if is_finite else 0.0
        gradient[U(a)] = entry + deviation * noise.normals[b, k, U(a)] if contributes else 0.0
    return contributes


@inlined
def visit_rows(data, state, b, i, j, k, carry):
    """Update by any rows of node i, protected or not."""
    noise, offset = state.noise, b * U(state.gradient.size)
    row_clip = noise.factors[i] * noise.clip if noise.by_row else 0.0
    find_gradient(
        data, i, state.draws, b, k, state.models, offset, state.gradient, state.slopes,
        noise.lengths, row_clip,
    )  # fmt: skip
    length = step_length(state, b, i, k)
    if noise.clip > 0.0 and not _protect(noise, b, i, k, state.gradient):
        length = 0.0  # leaves w unchanged
    descend(data, state.step_sizes[k], length, state.models, state.sums, offset, state.gradient)
    return carry


@kernel
def near_short(walk, tokens, draws, data, state, records):
    """Walk over one short row per node in the cache."""
    near(begin, visit_short, end, copy, walk, tokens, draws, data, state, records)


@kernel
def near_long(walk, tokens, draws, data, state, records, group):
    """Walk over one long row per node in the cache."""
    near_in_turns(begin, visit_long, end, copy, walk, tokens, draws, data, state, records, group)


@kernel
def far_short(path, visits, data, state, records, group):
    """Update along paths over one short row per node."""
    far(begin, visit_short, end, copy, fetch, path, visits, data, state, records, group)


@kernel
def far_long(path, visits, data, state, records, group):
    """Update along paths over one long row per node."""
    far(begin, visit_long, end, copy, fetch, path, visits, data, state, records, group)


@kernel
def far_rows(path, visits, data, state, records):
    """Update along paths over any rows."""
    far(begin, visit_rows, end, copy, fetch_nothing, path, visits, data, state, records, 1)
