"""Finito with several tokens: the newest sums of all tokens, at each token and at each node."""

from __future__ import annotations

from typing import NamedTuple

from walklearn.simulation.kernels.arithmetic import Array, U
from walklearn.simulation.kernels.compilation import inlined, kernel
from walklearn.simulation.kernels.events import events
from walklearn.simulation.kernels.visits import finito, finito_rows


class Shared(NamedTuple):
    """The sums that tokens and nodes know, changed in place.

    A sum is a line of b, σ, n and, if gradients are estimated, Σg_i.
    """

    sums: Array  # (tokens, tokens of a network, width of a line)
    versions: Array  # (tokens, tokens of a network)
    node_sums: Array  # (networks · nodes, tokens of a network, width of a line)
    node_versions: Array  # (networks · nodes, tokens of a network)
    moves: Array  # the recent moves of each token, (tokens, 7)
    start: Array  # the start model
    before: Array  # work space: the total before a visit, (width of a line,)


@inlined
def _exchange(shared, b, node):
    """Let a token and a node both take over the newer one of their sums of each token."""
    for v in range(shared.versions.shape[1]):
        version, node_version = shared.versions[b, v], shared.node_versions[node, v]
        if node_version > version:
            shared.versions[b, v] = node_version
            for a in range(shared.before.size):
                shared.sums[b, v, a] = shared.node_sums[node, v, a]
        elif version > node_version:
            shared.node_versions[node, v] = version
            for a in range(shared.before.size):
                shared.node_sums[node, v, a] = shared.sums[b, v, a]


@inlined
def _load_total(state, shared, r, b):
    """Load the total of all sums that token b knows as the sum of network r."""
    size = U(state.sums.size // state.sigmas.size)
    offset, squared_norm = r * size, 0.0
    for a in range(shared.before.size):
        number = 0.0
        for v in range(shared.versions.shape[1]):
            number += shared.sums[b, v, a]
        shared.before[a] = number
    for a in range(size):
        number = shared.before[a]
        state.sums[offset + U(a)] = number
        squared_norm += number * number
    if state.gradient_sums.size > 0:
        for a in range(size):
            state.gradient_sums[offset + U(a)] = shared.before[size + U(2) + U(a)]
    state.squared_norms[r] = squared_norm
    state.sigmas[r], state.counts[r] = shared.before[size], shared.before[size + U(1)]


@inlined
def merge(data, state, shared, r, b, i):
    """Return the numbers that a visit needs, of the newest sums of token b and node i."""
    _exchange(shared, b, r * U(data.offsets.size - 1) + i)
    _load_total(state, shared, r, b)
    for n, numbers in enumerate(
        (state.p, state.q, state.theta, state.q_min, state.age, state.n_last, state.since)
    ):
        numbers[r] = shared.moves[b, n]
    return 0.0, state.squared_norms[r], state.sigmas[r], state.counts[r]


@inlined
def merge_one_row(data, state, shared, r, b, i):
    """Merge; return also the score of the node's row."""
    score, squared_norm, sigma, n = merge(data, state, shared, r, b, i)
    size = U(data.rows.width)
    for a in range(size):
        score += state.sums[r * size + U(a)] * data.rows.entries[i * size + U(a)]
    return score, squared_norm, sigma, n


@inlined
def split(data, state, shared, r, b, i, carry):
    """Add the change of the total to the token's own sum, and store that at the node."""
    _, _, sigma, n = carry
    size, m = U(state.sums.size // state.sigmas.size), U(shared.versions.shape[1])
    node, v, offset = r * U(data.offsets.size - 1) + i, b - r * m, r * size
    for a in range(size):
        shared.sums[b, v, a] += state.sums[offset + U(a)] - shared.before[a]
    shared.sums[b, v, size] += sigma - shared.before[size]
    shared.sums[b, v, size + U(1)] += n - shared.before[size + U(1)]
    if state.gradient_sums.size > 0:
        for a in range(size):
            g = size + U(2) + U(a)
            shared.sums[b, v, g] += state.gradient_sums[offset + U(a)] - shared.before[g]
    shared.versions[b, v] += 1
    shared.node_versions[node, v] = shared.versions[b, v]
    for a in range(shared.before.size):
        shared.node_sums[node, v, a] = shared.sums[b, v, a]
    for n_, numbers in enumerate(
        (state.p, state.q, state.theta, state.q_min, state.age, state.n_last, state.since)
    ):
        shared.moves[b, n_] = numbers[r]


@inlined
def copy(data, state, shared, r, b, records, record):
    """Copy the model of token b, which is the start model until it knows a curvature."""
    _load_total(state, shared, r, b)
    finito.copy(data, state, r, records, record)
    if finito.waits(state, state.sigmas[r], state.counts[r]):  # the nodes may know one
        for a in range(shared.start.size):
            records.models[record, r, a] = shared.start[a]


@kernel
def events_one_row(walk, tokens, clock, draws, data, state, shared, records, updates):
    """Let tokens update by one row per node."""
    events(
        merge_one_row, finito.visit, split, copy, walk, tokens, clock, draws, data, state, shared,
        records, updates,
    )  # fmt: skip


@kernel
def events_rows(walk, tokens, clock, draws, data, state, shared, records, updates):
    """Let tokens update by any rows."""
    events(
        merge, finito_rows.visit, split, copy, walk, tokens, clock, draws, data, state, shared,
        records, updates,
    )  # fmt: skip
