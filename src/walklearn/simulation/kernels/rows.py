"""The rows of a problem inside kernels, and the gradient of a node."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numba._dispatcher import compute_fingerprint
from numba.extending import typeof_impl

from walklearn.simulation.kernels.arithmetic import Array, U, prefetch
from walklearn.simulation.kernels.compilation import by_type, helper, inlined
from walklearn.simulation.kernels.losses import FromFunctions, Rescaled, outputs_of, to_slopes


class DenseRows(NamedTuple):
    """Rows with all their entries."""

    entries: Array  # (rows · width,), flat
    width: int


class SparseRows(NamedTuple):
    """Rows in compressed form (CSR)."""

    entries: Array  # the nonzero entries
    columns: Array  # of the entries
    starts: Array  # where each row begins, and the last one ends
    width: int


class Data(NamedTuple):
    """A problem as arrays; see `Problem`."""

    rows: Any  # DenseRows or SparseRows
    loss: Any  # see `losses`
    targets: Array
    weights: Array
    offsets: Array  # the first row of each node
    penalty: float
    batch: int  # rows of a visit; 0 for all
    radius: float  # infinite unless the domain is a ball
    low: float  # infinite unless the domain is a box
    high: float


_TYPES: dict[tuple[Any, ...], Any] = {}  # of data with a user's loss


@typeof_impl.register(Data)
def _type_of(data, context):
    """Return Numba's type. For a user's loss it is cached, because computing it takes 0.3 ms."""
    default = typeof_impl.dispatch(tuple)
    if not isinstance(data.loss, FromFunctions | Rescaled):
        return default(data, context)
    key = (type(data.loss), *data.loss[:2], compute_fingerprint(data._replace(loss=None)))
    return _TYPES.setdefault(key, _TYPES.get(key) or default(data, context))


@by_type
def dot(rows, row, vector, offset):
    """Return the product of a row with the vector that begins at vector[offset]."""


@by_type
def add(rows, row, factor, vector, offset):
    """Add factor · row to the vector that begins at vector[offset]."""


@dot.version(DenseRows)
def _dense_dot(rows, row, vector, offset):
    total, first = 0.0, row * U(rows.width)
    for a in range(U(rows.width)):
        total += rows.entries[first + U(a)] * vector[offset + U(a)]
    return total


@dot.version(SparseRows)
def _sparse_dot(rows, row, vector, offset):
    total = 0.0
    for p in range(U(rows.starts[row]), U(rows.starts[row + U(1)])):
        total += rows.entries[U(p)] * vector[offset + U(rows.columns[U(p)])]
    return total


@add.version(DenseRows)
def _dense_add(rows, row, factor, vector, offset):
    first = row * U(rows.width)
    for a in range(U(rows.width)):
        vector[offset + U(a)] += factor * rows.entries[first + U(a)]


@add.version(SparseRows)
def _sparse_add(rows, row, factor, vector, offset):
    for p in range(U(rows.starts[row]), U(rows.starts[row + U(1)])):
        vector[offset + U(rows.columns[U(p)])] += factor * rows.entries[U(p)]


@inlined
def size_of(data):
    """Return the number of parameters of a model."""
    return U(data.rows.width) * U(outputs_of(data.loss))


@inlined
def fetch_row(data, row):
    """Prefetch a dense row; the processor fetches the rest of it after two lines."""
    prefetch(data.targets, row)
    prefetch(data.weights, row)
    prefetch(data.rows.entries, row * U(data.rows.width))
    prefetch(data.rows.entries, row * U(data.rows.width) + U(8))


@inlined
def rows_of(data, node):
    """Return the first row of a node, its number of rows, the number per visit, and their ratio."""
    first = data.offsets[node]
    count = data.offsets[node + U(1)] - first
    sample_size = data.batch if 0 < data.batch < count else count
    return first, count, sample_size, count / sample_size if sample_size < count else 1.0


@inlined
def row_at(first, count, sample_size, step, draws, b, k):
    """Return row number `step` of a visit: the next one, or a random one of a mini-batch."""
    index = min(np.int64(draws[b, k, U(step)] * count), count - 1) if sample_size < count else step
    return U(first + index)


@inlined
def set_scores(data, row, factor, models, offset, scores, out):
    """Compute the scores of a row for the model factor · models[offset …], from scores[out] on."""
    for c in range(outputs_of(data.loss)):
        model = offset + U(c) * U(data.rows.width)
        scores[out + U(c)] = factor * dot(data.rows, row, models, model)


@helper
def clip_factor(factor, length, clip):
    """Return a factor by which a vector is at most as long as the clip; 0 if it is not finite."""
    size = abs(factor) * length
    if size <= clip:
        return factor
    return factor * (clip / size) if size < np.inf else 0.0


@inlined
def find_gradient(data, node, draws, b, k, models, offset, gradient, slopes, lengths, clip):
    """Compute ∇f_i(w) without the penalty, of all rows of a node or of a mini-batch.

    The model begins at models[offset]. If the clip is above 0, no row adds more
    than the clip. `lengths` are the norms of the rows.
    """
    first, count, sample_size, share = rows_of(data, node)
    for a in range(size_of(data)):
        gradient[U(a)] = 0.0
    for step in range(sample_size):
        row = row_at(first, count, sample_size, step, draws, b, k)
        set_scores(data, row, 1.0, models, offset, slopes, U(0))
        to_slopes(data.loss, slopes, U(0), data.targets[row])
        weight = share * data.weights[row]
        if clip > 0.0:
            squares = 0.0
            for c in range(outputs_of(data.loss)):
                squares += slopes[U(c)] * slopes[U(c)]
            weight = clip_factor(weight, np.sqrt(squares) * lengths[row], clip)
        for c in range(outputs_of(data.loss)):
            factor = weight * slopes[U(c)] if weight != 0.0 else 0.0
            add(data.rows, row, factor, gradient, U(c) * U(data.rows.width))


@helper
def ball_factor(squared_norm, radius):
    """Return the factor that projects a vector onto the ball."""
    return radius / np.sqrt(squared_norm) if squared_norm > radius * radius else 1.0


@inlined
def project_onto_ball(data, squared_norm, models, offset):
    """Project the model that begins at models[offset], whose squared norm is known."""
    if squared_norm > data.radius * data.radius:
        factor = ball_factor(squared_norm, data.radius)
        for a in range(size_of(data)):
            models[offset + U(a)] *= factor


@inlined
def descend(data, step_size, step_length, models, sums, offset, gradient):
    """Add γw to the sum, then set w to the projection of w − step_length · (gradient + λw)."""
    keep, has_box, squared_norm = 1.0 - step_length * data.penalty, data.low > -np.inf, 0.0
    for a in range(gradient.size):
        w = models[offset + U(a)]
        sums[offset + U(a)] += step_size * w
        w = keep * w - step_length * gradient[U(a)]
        if has_box:
            w = min(max(w, data.low), data.high)
        models[offset + U(a)] = w
        squared_norm += w * w
    project_onto_ball(data, squared_norm, models, offset)
