"""Visits of SAGA to one sparse row per node, at the cost of the entries that are not 0.

A step changes all of w, by the penalty and by the sum s of stored gradients, but s changes only at
the entries of the row. With w = a·v − b·s,

    w ← keep·w − push·x − pull·s,  s ← s + change·x

becomes a ← keep·a,  b ← keep·b + pull,  v ← v + ((b·change − push) / a)·x. From time to time v is
set to w. In the state v and s are `pairs`, so that equal columns share a cache line; a is
`factors`, b is `shares`.
"""

from __future__ import annotations

import numpy as np

from walklearn.simulation.kernels.arithmetic import U
from walklearn.simulation.kernels.compilation import inlined, kernel
from walklearn.simulation.kernels.drivers import far
from walklearn.simulation.kernels.rows import size_of
from walklearn.simulation.kernels.visits.saga import begin, end, fetch_node, replace_slope
from walklearn.simulation.kernels.visits.sgd_sparse import fetch_rows, must_rescale


@inlined
def visit(data, state, b, i, j, k, carry):
    """Update by the sparse row of node i, without a domain."""
    _, factor, n, ages, squared_ages, curvature = carry
    rows, pairs, size, share = data.rows, state.pairs, size_of(data), state.shares[b]
    offset, start, stop = U(2) * b * size, U(rows.starts[i]), U(rows.starts[i + U(1)])
    dot_v = dot_s = 0.0
    for p in range(start, stop):
        x, index = rows.entries[U(p)], offset + U(2) * U(rows.columns[U(p)])
        dot_v += x * pairs[index]
        dot_s += x * pairs[index + U(1)]
    gamma, change, is_first, n, ages, squared_ages, curvature = replace_slope(
        data, state, b, i, k, factor * dot_v - share * dot_s, n, ages, squared_ages, curvature
    )
    keep, pull = 1.0 - gamma * data.penalty, 0.0 if is_first else gamma / n
    factor, share = keep * factor, keep * share + pull
    if must_rescale(factor, state.done + np.int64(k) + 1, np.int64(size)):
        for column in range(size):
            index = offset + U(2) * U(column)
            pairs[index] = factor * pairs[index] - share * pairs[index + U(1)]
        factor, share = 1.0, 0.0
    push = (share * change - gamma * change) / factor
    for p in range(start, stop):
        x, index = rows.entries[U(p)], offset + U(2) * U(rows.columns[U(p)])
        pairs[index] += push * x
        pairs[index + U(1)] += change * x
    state.shares[b] = share
    return 0.0, factor, n, ages, squared_ages, curvature


@inlined
def copy(data, state, b, records, record):
    """Copy the model a·v − b·s."""
    size = size_of(data)
    for column in range(size):
        index = U(2) * (b * size + U(column))
        v, s = state.pairs[index], state.pairs[index + U(1)]
        records.models[record, b, column] = state.factors[b] * v - state.shares[b] * s


@inlined
def fetch(data, state, path, b, k, later):
    """Prefetch the row of a later visit."""
    fetch_rows(data, state, path, b, k, later)
    fetch_node(data, state, b, later)


@kernel
def far_sparse(path, visits, data, state, records):
    """Update along paths over one sparse row per node."""
    far(begin, visit, end, copy, fetch, path, visits, data, state, records, 1)
