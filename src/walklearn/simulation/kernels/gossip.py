"""Gossip: every node updates its own model and averages it with those of its neighbours."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from walklearn.simulation.kernels.arithmetic import Array, U, prefetch
from walklearn.simulation.kernels.compilation import inlined, kernel
from walklearn.simulation.kernels.losses import slope_of
from walklearn.simulation.kernels.rows import ball_factor, descend, find_gradient, project_onto_ball

AHEAD = 4  # meetings between a prefetch and its use


class Nodes(NamedTuple):
    """The state of a gossiping network, changed in place."""

    models: Array  # (nodes · size,), flat
    sums: Array  # Σγw
    step_size_sums: Array
    counts: Array  # updates of each node
    trackers: Array  # (nodes · size,), flat; empty unless gradients are tracked
    gradients: Array
    exchanges: Array  # the longest chain of exchanges, each after the one before, up to each node
    mixed: Array  # work space, (nodes · size,)
    gradient: Array  # work space, (size,)
    slopes: Array  # work space, (outputs,)


@inlined
def _meeting(indptr, indices, u):
    """Return a uniform node and, from the rest of u, a uniform neighbour."""
    nodes = indptr.size - 1
    scaled = u * nodes
    i = U(min(np.int64(scaled), nodes - 1))
    first, degree = indptr[i], indptr[i + U(1)] - indptr[i]
    index = min(np.int64((scaled - i) * degree), degree - 1)
    return i, U(indices[U(first + index)])


@inlined
def _count_exchange(network, i, j):
    """Append an exchange to the longer chain of its two nodes: it starts when both are free."""
    network.exchanges[i] = max(network.exchanges[i], network.exchanges[j]) + 1
    network.exchanges[j] = network.exchanges[i]


@inlined
def _count_update(network, node, constant, exponent):
    """Count an update of a node and return its step size."""
    network.counts[node] += 1
    gamma = constant / np.float64(network.counts[node]) ** exponent
    network.step_size_sums[node] += gamma
    return gamma


@inlined
def _find_gradient(data, network, node, draws, b, k):
    find_gradient(
        data, node, draws, b, k, network.models, node * U(network.gradient.size),
        network.gradient, network.slopes, data.weights, 0.0,
    )  # fmt: skip


@inlined
def _update(data, network, node, draws, b, k, scale, constant, exponent):
    """Update the model of a node; draws[b, k] pick its mini-batch."""
    gamma = _count_update(network, node, constant, exponent)
    _find_gradient(data, network, node, draws, b, k)
    offset = node * U(network.gradient.size)
    descend(data, gamma, gamma * scale, network.models, network.sums, offset, network.gradient)


@inlined
def _mix(mixing, network, vectors):
    """Average the vectors of the neighbours of each node, in place; mixing: sparse rows."""
    size, mixed = U(network.gradient.size), network.mixed
    mixed[:] = 0.0
    for n in range(mixing.starts.size - 1):
        out = U(n) * size
        for link in range(mixing.starts[n], mixing.starts[n + 1]):
            weight, offset = mixing.entries[U(link)], U(mixing.columns[U(link)]) * size
            for a in range(size):
                mixed[out + U(a)] += weight * vectors[offset + U(a)]
    for a in range(vectors.size):
        vectors[U(a)] = mixed[U(a)]


@kernel
def meet(indptr, indices, scale, data, network, constant, exponent, uniforms, draws):
    """Let two neighbours update and average their models, once for each of `uniforms`."""
    models, size = network.models, U(network.gradient.size)
    for t in range(uniforms.size):
        i, j = _meeting(indptr, indices, uniforms[t])
        _count_exchange(network, i, j)
        for end in range(2):
            node = j if end else i
            _update(data, network, node, draws, t, end, scale[node], constant, exponent)
        for a in range(size):
            mean = 0.5 * (models[i * size + U(a)] + models[j * size + U(a)])
            models[i * size + U(a)] = mean
            models[j * size + U(a)] = mean


@kernel
def meet_one_row(indptr, indices, scale, data, network, constant, exponent, uniforms, far):
    """Run `meet` for one dense row per node, one score and no box; prefetch rows if `far`."""
    size, rows, models, sums = U(data.rows.width), data.rows.entries, network.models, network.sums
    for t in range(uniforms.size):
        if far and t + AHEAD < uniforms.size:
            for node in _meeting(indptr, indices, uniforms[t + AHEAD]):
                for a in range(0, data.rows.width, 8):
                    prefetch(rows, node * size + U(a))
                    prefetch(models, node * size + U(a))
                    prefetch(sums, node * size + U(a))
        i, j = _meeting(indptr, indices, uniforms[t])
        _count_exchange(network, i, j)
        offset_i, offset_j = i * size, j * size
        gamma_i = _count_update(network, i, constant, exponent)
        gamma_j = _count_update(network, j, constant, exponent)
        score_i, score_j, norm_i, norm_j = 0.0, 0.0, 0.0, 0.0
        for a in range(size):
            score_i += models[offset_i + U(a)] * rows[offset_i + U(a)]
            score_j += models[offset_j + U(a)] * rows[offset_j + U(a)]
        step_i, step_j = gamma_i * scale[i], gamma_j * scale[j]
        push_i = step_i * data.weights[i] * slope_of(data.loss, score_i, data.targets[i])
        push_j = step_j * data.weights[j] * slope_of(data.loss, score_j, data.targets[j])
        keep_i, keep_j = 1.0 - step_i * data.penalty, 1.0 - step_j * data.penalty
        for a in range(size):
            v, w = models[offset_i + U(a)], models[offset_j + U(a)]
            sums[offset_i + U(a)] += gamma_i * v
            sums[offset_j + U(a)] += gamma_j * w
            v = keep_i * v - push_i * rows[offset_i + U(a)]
            w = keep_j * w - push_j * rows[offset_j + U(a)]
            models[offset_i + U(a)] = v
            models[offset_j + U(a)] = w
            norm_i += v * v
            norm_j += w * w
        share_i = 0.5 * ball_factor(norm_i, data.radius)
        share_j = 0.5 * ball_factor(norm_j, data.radius)
        for a in range(size):
            mean = share_i * models[offset_i + U(a)] + share_j * models[offset_j + U(a)]
            models[offset_i + U(a)] = mean
            models[offset_j + U(a)] = mean


@kernel
def mix_all(mixing, scale, data, network, constant, exponent, draws):
    """Let all nodes update and mix their models, once per round; draws: (rounds, nodes, batch)."""
    for t in range(draws.shape[0]):
        for n in range(draws.shape[1]):
            _update(data, network, U(n), draws, t, n, scale[n], constant, exponent)
        _mix(mixing, network, network.models)


@kernel
def track_gradients(mixing, data, network, gammas, draws, is_start):
    """Make a round of gradient tracking for each of `gammas`; set the trackers at the start."""
    models, trackers, size = network.models, network.trackers, U(network.gradient.size)
    for t in range(0 if is_start else 1, gammas.size + 1):
        if t > 0:
            gamma = gammas[t - 1]
            for a in range(models.size):
                network.sums[U(a)] += gamma * models[U(a)]
            _mix(mixing, network, models)
            for a in range(models.size):
                models[U(a)] -= gamma * trackers[U(a)]
            _mix(mixing, network, trackers)
        for n in range(mixing.starts.size - 1):
            offset = U(n) * size
            if t > 0:
                network.counts[n] += 1
                network.step_size_sums[n] += gammas[t - 1]
                _project(data, size, models, offset)
            _find_gradient(data, network, U(n), draws, 0, 0)
            for a in range(size):
                new = network.gradient[U(a)] + data.penalty * models[offset + U(a)]
                trackers[offset + U(a)] += new - network.gradients[offset + U(a)]
                network.gradients[offset + U(a)] = new


@inlined
def _project(data, size, models, offset):
    """Project a model onto the domain."""
    squared_norm = 0.0
    for a in range(size):
        w = min(max(models[offset + U(a)], data.low), data.high)
        models[offset + U(a)] = w
        squared_norm += w * w
    project_onto_ball(data, squared_norm, models, offset)
