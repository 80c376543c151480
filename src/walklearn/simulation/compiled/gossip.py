"""Gossip: every node has a model of its own, updates it, and averages it with its neighbours'."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from walklearn.simulation.compiled.arithmetic import Array, Index, U, prefetch, slope_of
from walklearn.simulation.compiled.cached import inlined, kernel
from walklearn.simulation.compiled.rows import Data, descend, find_gradient


class Nodes(NamedTuple):
    """The state of a gossiping network, changed in place."""

    models: Array  # (nodes·size,), flat
    sums: Array
    step_size_sums: Array
    counts: Array
    trackers: Array  # (nodes·size,), flat; empty unless gradients are tracked
    gradients: Array


@inlined
def _meeting(indptr: Array, indices: Array, u: float) -> tuple[Index, Index]:
    """A uniform node, and from what is left of u a uniform neighbour."""
    nodes = indptr.size - 1
    stretched = u * nodes
    i = U(min(np.int64(stretched), nodes - 1))
    first = indptr[i]
    degree = indptr[i + U(1)] - first
    place = min(np.int64((stretched - i) * degree), degree - 1)
    return i, U(indices[U(first + place)])


@inlined
def _update(
    rows: Array, columns: Array, starts: Array, targets: Array, weights: Array, offsets: Array,
    node: Index, uniforms: Array, first_pick: Index, batch: int, loss: int, parameter: float,
    width: Index, outputs: int, form: tuple[int, ...], penalty: float, low: float, high: float,
    radius: float, models: Array, sums: Array, totals: Array, counts: Array, constant: float,
    exponent: float, scale: float, gradient: Array, scores: Array,
) -> None:  # fmt: skip
    """A node's own step on its own model, with its own step index."""
    counts[node] += 1
    gamma = constant / np.float64(counts[node]) ** exponent
    totals[node] += gamma
    size = width * U(outputs)
    at = node * size
    find_gradient(
        rows, columns, starts, targets, weights, offsets, node, uniforms, first_pick, batch, loss,
        parameter, width, outputs, form, models, at, gradient, scores, weights, 0.0,
    )  # fmt: skip
    descend(gamma, gamma * scale, penalty, low, high, radius, size, models, sums, at, gradient)


@inlined
def _mix(
    indptr: Array, indices: Array, shares: Array, size: Index, vectors: Array, mixed: Array
) -> None:
    """The average over each node's neighbours, by the weights of a CSR matrix."""
    mixed[:] = 0.0
    for n in range(indptr.size - 1):
        to = U(n) * size
        for link in range(indptr[n], indptr[n + 1]):
            share, at = shares[U(link)], U(indices[U(link)]) * size
            for a in range(size):
                mixed[to + U(a)] += share * vectors[at + U(a)]


@inlined
def _project(low: float, high: float, radius: float, size: Index, models: Array, at: Index) -> None:
    """Project a model onto W, for any domain."""
    squared_norm = 0.0
    for a in range(size):
        w = min(max(models[at + U(a)], low), high)
        models[at + U(a)] = w
        squared_norm += w * w
    if squared_norm > radius * radius:
        shrink = radius / np.sqrt(squared_norm)
        for a in range(size):
            models[at + U(a)] *= shrink


@kernel
def advance_asynchronous(
    indptr: Array, indices: Array, scale: Array, data: Data, network: Nodes, constant: float,
    exponent: float, uniforms: Array,
) -> None:  # fmt: skip
    """One meeting per line of `uniforms`: two neighbours update, then take the average."""
    width, outputs, batch = U(data.dimension), data.outputs, data.batch
    rows, columns, starts = data.rows, data.columns, data.starts
    targets, weights, offsets = data.targets, data.weights, data.offsets
    loss, parameter, penalty, form = data.loss, data.loss_parameter, data.penalty, data.form
    low, high, radius, size = data.low, data.high, data.radius, width * U(outputs)
    models, sums, totals, counts = (
        network.models, network.sums, network.step_size_sums, network.counts,
    )  # fmt: skip
    gradient = np.empty(data.dimension * outputs, dtype=np.float64)
    scores = np.empty(outputs, dtype=np.float64)
    drawn, draws = uniforms.reshape(-1), U(uniforms.shape[1])
    for t in range(uniforms.shape[0]):
        i, j = _meeting(indptr, indices, uniforms[t, 0])
        for end in range(2):
            node = j if end else i
            first_pick = U(t) * draws + U(1 + end * batch)
            _update(
                rows, columns, starts, targets, weights, offsets, node, drawn, first_pick,
                batch, loss, parameter, width, outputs, form, penalty, low, high, radius, models,
                sums, totals, counts, constant, exponent, scale[node], gradient, scores,
            )  # fmt: skip
        for a in range(size):
            mean = 0.5 * (models[i * size + U(a)] + models[j * size + U(a)])
            models[i * size + U(a)] = mean
            models[j * size + U(a)] = mean


@kernel
def advance_asynchronous_one_row(
    indptr: Array,
    indices: Array,
    scale: Array,
    data: Data,
    network: Nodes,
    constant: float,
    exponent: float,
    uniforms: Array,
    far: bool,
) -> None:
    """`advance_asynchronous` for one row per node, one score and no box: both ends at once."""
    size, steps, ahead = U(data.dimension), uniforms.shape[0], 4
    rows, targets, weights = data.rows, data.targets, data.weights
    models, sums, totals, counts = (
        network.models, network.sums, network.step_size_sums, network.counts,
    )  # fmt: skip
    penalty, loss, parameter, radius = data.penalty, data.loss, data.loss_parameter, data.radius
    for t in range(steps):
        if far and t + ahead < steps:
            for node in _meeting(indptr, indices, uniforms[t + ahead, 0]):
                for a in range(0, data.dimension, 8):
                    prefetch(rows, node * size + U(a))
                    prefetch(models, node * size + U(a))
                    prefetch(sums, node * size + U(a))
        i, j = _meeting(indptr, indices, uniforms[t, 0])
        at_i, at_j = i * size, j * size
        counts[i] += 1
        counts[j] += 1
        gamma_i = constant / np.float64(counts[i]) ** exponent
        gamma_j = constant / np.float64(counts[j]) ** exponent
        totals[i] += gamma_i
        totals[j] += gamma_j
        score_i = 0.0
        score_j = 0.0
        for a in range(size):
            score_i += models[at_i + U(a)] * rows[at_i + U(a)]
            score_j += models[at_j + U(a)] * rows[at_j + U(a)]
        step_i, step_j = gamma_i * scale[i], gamma_j * scale[j]
        push_i = step_i * weights[i] * slope_of(loss, parameter, score_i, targets[i])
        push_j = step_j * weights[j] * slope_of(loss, parameter, score_j, targets[j])
        keep_i, keep_j = 1.0 - step_i * penalty, 1.0 - step_j * penalty
        norm_i = 0.0
        norm_j = 0.0
        for a in range(size):
            v = models[at_i + U(a)]
            w = models[at_j + U(a)]
            sums[at_i + U(a)] += gamma_i * v
            sums[at_j + U(a)] += gamma_j * w
            v = keep_i * v - push_i * rows[at_i + U(a)]
            w = keep_j * w - push_j * rows[at_j + U(a)]
            models[at_i + U(a)] = v
            models[at_j + U(a)] = w
            norm_i += v * v
            norm_j += w * w
        share_i = 0.5 if norm_i <= radius * radius else 0.5 * radius / np.sqrt(norm_i)
        share_j = 0.5 if norm_j <= radius * radius else 0.5 * radius / np.sqrt(norm_j)
        for a in range(size):
            mean = share_i * models[at_i + U(a)] + share_j * models[at_j + U(a)]
            models[at_i + U(a)] = mean
            models[at_j + U(a)] = mean


@kernel
def advance_synchronous(
    indptr: Array, indices: Array, shares: Array, scale: Array, data: Data, network: Nodes,
    constant: float, exponent: float, uniforms: Array,
) -> None:  # fmt: skip
    """One round per line of `uniforms`: all update, then mix with the weights of a CSR matrix."""
    width, outputs, batch = U(data.dimension), data.outputs, data.batch
    rows, columns, starts = data.rows, data.columns, data.starts
    targets, weights, offsets = data.targets, data.weights, data.offsets
    loss, parameter, penalty, form = data.loss, data.loss_parameter, data.penalty, data.form
    low, high, radius, size = data.low, data.high, data.radius, width * U(outputs)
    models, sums, totals, counts = (
        network.models, network.sums, network.step_size_sums, network.counts,
    )  # fmt: skip
    gradient = np.empty(data.dimension * outputs, dtype=np.float64)
    scores = np.empty(outputs, dtype=np.float64)
    drawn, draws = uniforms.reshape(-1), U(uniforms.shape[1])
    mixed, nodes = np.empty_like(models), indptr.size - 1
    for t in range(uniforms.shape[0]):
        for n in range(nodes):
            first_pick = U(t) * draws + U(n * batch)
            _update(
                rows, columns, starts, targets, weights, offsets, U(n), drawn, first_pick,
                batch, loss, parameter, width, outputs, form, penalty, low, high, radius, models,
                sums, totals, counts, constant, exponent, scale[n], gradient, scores,
            )  # fmt: skip
        _mix(indptr, indices, shares, size, models, mixed)
        models[:] = mixed


@kernel
def track_gradients(
    indptr: Array, indices: Array, shares: Array, data: Data, network: Nodes, gammas: Array,
    begins: bool,
) -> None:  # fmt: skip
    """A round of gradient tracking for each of `gammas`; see `gossip_sgd`.

    begins: nobody has a gradient yet, so all trackers begin with them.
    """
    width, outputs = U(data.dimension), data.outputs
    rows, columns, starts = data.rows, data.columns, data.starts
    targets, weights, offsets = data.targets, data.weights, data.offsets
    loss, parameter, penalty, form = data.loss, data.loss_parameter, data.penalty, data.form
    low, high, radius, size = data.low, data.high, data.radius, width * U(outputs)
    models, sums, totals, counts = (
        network.models, network.sums, network.step_size_sums, network.counts,
    )  # fmt: skip
    trackers, gradients = network.trackers, network.gradients
    gradient = np.empty(data.dimension * outputs, dtype=np.float64)
    scores = np.empty(outputs, dtype=np.float64)
    nothing = np.empty(0, dtype=np.float64)
    mixed, tracked = np.empty_like(models), np.empty_like(trackers)
    for t in range(0 if begins else 1, gammas.size + 1):
        if t > 0:
            gamma = gammas[t - 1]
            _mix(indptr, indices, shares, size, models, mixed)
            _mix(indptr, indices, shares, size, trackers, tracked)
            for a in range(models.size):
                sums[U(a)] += gamma * models[U(a)]
                models[U(a)] = mixed[U(a)] - gamma * trackers[U(a)]
            trackers[:] = tracked
        for n in range(indptr.size - 1):
            at = U(n) * size
            if t > 0:
                counts[n] += 1
                totals[n] += gammas[t - 1]
                _project(low, high, radius, size, models, at)
            find_gradient(
                rows, columns, starts, targets, weights, offsets, U(n), nothing, U(0), 0, loss,
                parameter, width, outputs, form, models, at, gradient, scores, weights, 0.0,
            )  # fmt: skip
            for a in range(size):
                new = gradient[U(a)] + penalty * models[at + U(a)]
                trackers[at + U(a)] += new - gradients[at + U(a)]
                gradients[at + U(a)] = new
