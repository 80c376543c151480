"""The compiled twins of `walk_sgd` and `gossip_sgd`: the same numbers, at the speed of C.

They repeat the formulas of `losses`, `domains` and the walks' `hop` because Numba's disk cache
watches one file: a helper edited elsewhere would leave stale machine code behind, silently.
tests/test_equivalence.py holds every one of them against its original.

A batch of tokens (replicates) advances together. In each step all tokens of a *group* first
hop, then all update: the memory misses of different tokens overlap, and γ_k is computed once.
Since the way of a token does not depend on its model, it hops `ahead` of its updates; so the
score x'·w of the next row can be summed in the same pass over w that makes the update, and a
row that is far away in memory can be prefetched.

Nothing in here raises; arguments are checked before. Arrays are indexed with unsigned integers
throughout, which spares Numba's test for negative indices.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from llvmlite import ir
from numba import njit
from numba.core import cgutils, types
from numba.extending import intrinsic
from numba.np.arrayobj import make_array
from numpy.typing import NDArray

Array = NDArray[Any]
Index = Any  # np.uint64

LOGISTIC, SQUARED, HUBER, SQUARED_HINGE, SOFTMAX = range(5)
METROPOLIS, NON_BACKTRACKING, JUMPING, INDEPENDENT = range(4)

# Sums may be reordered and products fused; NaN and infinity keep their meaning.
_FAST = {"reassoc", "contract", "nsz", "arcp"}
_U = np.uint64


class Data(NamedTuple):
    """The problem as arrays; see `Problem`."""

    rows: Array  # (M·d,), flat
    targets: Array
    weights: Array
    offsets: Array
    penalty: float
    loss: int
    loss_parameter: float
    dimension: int
    outputs: int
    batch: int  # 0 for all rows
    radius: float  # infinite unless W is a ball
    low: float  # infinite unless W is a box
    high: float
    one_row: bool  # one row per node, one score, no box, no mini-batch: the fast way is open


class Chain(NamedTuple):
    """The walk as arrays; see `walks`. Score and scale have one line, or one per replicate."""

    indptr: Array
    indices: Array
    score: Array
    scale: Array
    kind: int
    laziness: float
    jump_probability: float
    jump_lengths: Array  # cumulative


class Tokens(NamedTuple):
    """The state of a batch of tokens, changed in place.

    A model is shrink · models: a projection onto the ball is kept as a factor until the next
    update. `scores` is x·w for the row that is next. Both are used with one row per node only,
    and kept between calls so that the numbers do not depend on where a call ends.
    """

    nodes: Array
    previous: Array
    models: Array  # (tokens·size,), flat
    sums: Array
    scores: Array
    shrink: Array
    messages: Array
    visits: Array  # per node; empty to leave them uncounted


@intrinsic
def _prefetch(typing_context, array, index):  # type: ignore[no-untyped-def]
    """Ask for the cache line of array[index], without waiting for it."""
    del typing_context

    def generate(context, builder, signature, arguments):  # type: ignore[no-untyped-def]
        data = make_array(signature.args[0])(context, builder, arguments[0]).data
        byte = ir.IntType(8).as_pointer()
        whole = ir.IntType(32)
        function = cgutils.get_or_insert_function(
            builder.module,
            ir.FunctionType(ir.VoidType(), [byte, whole, whole, whole]),
            "llvm.prefetch.p0",
        )
        address = builder.bitcast(builder.gep(data, [arguments[1]]), byte)
        read, keep_close, is_data = (ir.Constant(whole, flag) for flag in (0, 3, 1))
        builder.call(function, [address, read, keep_close, is_data])
        return context.get_dummy_value()

    return types.void(array, types.uint64), generate


@njit(nogil=True, fastmath=_FAST)
def _value(loss: int, parameter: float, score: float, target: float) -> float:
    if loss == LOGISTIC:
        margin = target * score
        if margin > 0:
            return np.log1p(np.exp(-margin))
        return np.log1p(np.exp(margin)) - margin
    if loss == SQUARED:
        return 0.5 * (score - target) ** 2
    if loss == HUBER:
        size = abs(score - target)
        inside = min(size, parameter)
        return inside * (size - 0.5 * inside)
    return 0.5 * max(0.0, 1.0 - target * score) ** 2


@njit(nogil=True, fastmath=_FAST)
def _slope(loss: int, parameter: float, score: float, target: float) -> float:
    if loss == LOGISTIC:
        return -target / (1.0 + np.exp(target * score))
    if loss == SQUARED:
        return score - target
    if loss == HUBER:
        return min(max(score - target, -parameter), parameter)
    return -target * max(0.0, 1.0 - target * score)


@njit(nogil=True, fastmath=_FAST)
def _score(data: Data, row: Index, models: Array, at: Index) -> float:
    """x_row · w, for the w that starts at models[at]."""
    width = _U(data.dimension)
    base = row * width
    score = 0.0
    for a in range(width):
        score += data.rows[base + _U(a)] * models[at + _U(a)]
    return score


@njit(nogil=True, fastmath=_FAST)
def _softmax_scores(data: Data, row: Index, models: Array, at: Index, scores: Array) -> float:
    """Fill in the scores of all classes; return their log-sum-exp."""
    top = -np.inf
    for c in range(data.outputs):
        scores[c] = _score(data, row, models, at + _U(c * data.dimension))
        top = max(top, scores[c])
    total = 0.0
    for c in range(data.outputs):
        total += np.exp(scores[c] - top)
    return top + np.log(total)


@njit(nogil=True, fastmath=_FAST)
def _add_row(
    data: Data, row: Index, weight: float, models: Array, at: Index, gradient: Array, scores: Array
) -> None:
    """gradient += weight · ∇ℓ of the row."""
    width = _U(data.dimension)
    base = row * width
    if data.loss == SOFTMAX:
        level = _softmax_scores(data, row, models, at, scores)
        for c in range(data.outputs):
            scores[c] = np.exp(scores[c] - level) - (1.0 if c == data.targets[row] else 0.0)
    else:
        score = _score(data, row, models, at)
        scores[0] = _slope(data.loss, data.loss_parameter, score, data.targets[row])
    for c in range(data.outputs):
        push = weight * scores[c]
        to = _U(c) * width
        for a in range(width):
            gradient[to + _U(a)] += push * data.rows[base + _U(a)]


@njit(nogil=True, fastmath=_FAST)
def _update(
    data: Data,
    node: Index,
    gamma: float,
    scale: float,
    models: Array,
    sums: Array,
    at: Index,
    picks: Array,
    gradient: Array,
    scores: Array,
) -> None:
    """sum += γ w, then w ← Π_W(w − γ scale ∇f_i(w)), for any loss, domain and number of rows."""
    first = data.offsets[node]
    count = data.offsets[node + _U(1)] - first
    gradient[:] = 0.0
    if 0 < data.batch < count:
        for pick in range(data.batch):
            row = _U(first + min(np.int64(picks[pick] * count), count - 1))
            weight = data.weights[row] * count / data.batch
            _add_row(data, row, weight, models, at, gradient, scores)
    else:
        for step in range(count):
            row = _U(first + step)
            _add_row(data, row, data.weights[row], models, at, gradient, scores)

    step_length = gamma * scale
    keep = 1.0 - step_length * data.penalty
    squared_norm = 0.0
    for a in range(gradient.size):
        w = models[at + _U(a)]
        sums[at + _U(a)] += gamma * w
        w = min(max(keep * w - step_length * gradient[_U(a)], data.low), data.high)
        models[at + _U(a)] = w
        squared_norm += w * w
    if squared_norm > data.radius * data.radius:
        shrink = data.radius / np.sqrt(squared_norm)
        for a in range(gradient.size):
            models[at + _U(a)] *= shrink


@njit(nogil=True, fastmath=_FAST)
def _neighbour(chain: Chain, node: Index, u: float) -> Index:
    """A uniform neighbour of the node."""
    first = chain.indptr[node]
    degree = chain.indptr[node + _U(1)] - first
    return _U(chain.indices[_U(first + min(np.int64(u * degree), degree - 1))])


@njit(nogil=True, fastmath=_FAST)
def _metropolis_hop(chain: Chain, line: Index, node: Index, u: float) -> Index:
    """Propose a uniform neighbour, accept with min(1, score_j / score_i), else stay."""
    if u < chain.laziness:
        return node
    if chain.laziness > 0.0:
        u = (u - chain.laziness) / (1.0 - chain.laziness)
    first = chain.indptr[node]
    degree = chain.indptr[node + _U(1)] - first
    stretched = u * degree
    place = min(np.int64(stretched), degree - 1)
    j = _U(chain.indices[_U(first + place)])
    accepted = (stretched - place) * chain.score[line, node] <= chain.score[line, j]
    return j if accepted else node


@njit(nogil=True, fastmath=_FAST)
def _redirected(chain: Chain, line: Index, node: Index, previous: Index, u: float) -> Index:
    """A second proposal, among the other neighbours, for a move straight back."""
    first = chain.indptr[node]
    degree = chain.indptr[node + _U(1)] - first
    if degree < 2:
        return previous
    stretched = u * (degree - 1)
    place = min(np.int64(stretched), degree - 2)
    fraction = stretched - place
    other = _U(chain.indices[_U(first + place)])
    if other >= previous:  # neighbours are sorted: skip the previous one
        other = _U(chain.indices[_U(first + place + 1)])
    here = chain.score[line, node]
    ratio = min(here, chain.score[line, other]) / min(here, chain.score[line, previous])
    return other if fraction <= ratio * ratio else previous


@njit(nogil=True, fastmath=_FAST)
def _other_hop(
    chain: Chain, line: Index, node: Index, previous: Index, draws: Array
) -> tuple[Index, Index]:
    """The hop and its messages, for the walks that are not plain Metropolis."""
    if chain.kind == INDEPENDENT:
        law = chain.score[line]
        j = _U(min(np.searchsorted(law, draws[0], side="right"), law.size - 1))
        return j, np.int64(j != node)
    u = draws[0]
    if chain.kind == NON_BACKTRACKING:
        j = _metropolis_hop(chain, line, node, u)
        if j != node and np.int64(j) == previous:
            j = _redirected(chain, line, node, _U(previous), draws[1])
        return j, np.int64(j != node)
    if u >= chain.jump_probability:
        rest = (u - chain.jump_probability) / (1.0 - chain.jump_probability)
        j = _metropolis_hop(chain, line, node, rest)
        return j, np.int64(j != node)
    hops = 1
    while hops < chain.jump_lengths.size and draws[1] >= chain.jump_lengths[hops - 1]:
        hops += 1
    for h in range(hops):
        node = _neighbour(chain, node, draws[2 + h])
    return node, np.int64(hops)


@njit(nogil=True, cache=True, fastmath=_FAST)
def advance_walks(
    chain: Chain,
    data: Data,
    tokens: Tokens,
    gammas: Array,
    uniforms: Array,
    group: int,
    far: bool,
) -> None:
    """Advance every token by len(gammas) visits; `uniforms` is (tokens, visits, draws).

    group: how many tokens take turns; their models should fit the first-level cache.
    far: the rows do not fit the cache, so prefetch them.
    """
    count, steps = uniforms.shape[0], uniforms.shape[1]
    size = _U(data.dimension * data.outputs)
    draws = uniforms.shape[2] - data.batch
    private = chain.score.shape[0] > 1
    path = np.empty((count, steps + 1), dtype=chain.indices.dtype)
    path[:, 0] = tokens.nodes
    class_scores = np.empty(data.outputs, dtype=np.float64)
    gradient = np.empty(data.dimension * data.outputs, dtype=np.float64)
    ahead = 2 if group == 1 else 1

    for begin in range(0, count, group):
        end = min(count, begin + group)
        for t in range(-ahead, steps):
            k = t + ahead
            if k < steps:
                for b in range(begin, end):
                    line = _U(b if private else 0)
                    i = _U(path[b, k])
                    if chain.kind == METROPOLIS:
                        j = _metropolis_hop(chain, line, i, uniforms[b, k, 0])
                        tokens.messages[b] += j != i
                    else:
                        j, messages = _other_hop(chain, line, i, tokens.previous[b], uniforms[b, k])
                        tokens.messages[b] += messages
                        if j != i:
                            tokens.previous[b] = i
                    path[b, k + 1] = j
                    if far:
                        _prefetch_node(chain, data, line, j)
            if t >= 0:
                for b in range(begin, end):
                    i = _U(path[b, t])
                    if tokens.visits.size:
                        tokens.visits[i] += 1
                    scale = chain.scale[_U(b if private else 0), i]
                    if data.one_row:
                        _update_one_row(
                            data, i, _U(path[b, t + 1]), gammas[t], scale,
                            tokens.models, tokens.sums, _U(b), size, tokens.scores, tokens.shrink,
                        )  # fmt: skip
                    else:
                        _update(
                            data, i, gammas[t], scale, tokens.models, tokens.sums,
                            _U(b) * size, uniforms[b, t, draws:], gradient, class_scores,
                        )  # fmt: skip
        for b in range(begin, end):
            tokens.nodes[b] = path[b, steps]


@njit(nogil=True, fastmath=_FAST)
def _prefetch_node(chain: Chain, data: Data, line: Index, node: Index) -> None:
    """Ask for everything that an update at the node will read (one row per node)."""
    base = node * _U(data.dimension)
    for a in range(0, data.dimension, 64 // data.rows.itemsize):
        _prefetch(data.rows, base + _U(a))
    _prefetch(data.targets, node)
    _prefetch(data.weights, node)
    _prefetch(chain.scale, line * _U(chain.scale.shape[1]) + node)


@njit(nogil=True, fastmath=_FAST)
def _update_one_row(
    data: Data,
    node: Index,
    following: Index,
    gamma: float,
    scale: float,
    models: Array,
    sums: Array,
    b: Index,
    size: Index,
    scores: Array,
    shrink: Array,
) -> None:
    """`_update` for one row per node, one score and no box, in a single pass over w.

    scores[b] comes in as x·w and leaves as the next row's. A projection onto the ball is a
    common factor, shrink[b], which the next pass puts in.
    """
    step_length = gamma * scale
    slope = _slope(data.loss, data.loss_parameter, scores[b], data.targets[node])
    push = step_length * data.weights[node] * slope
    keep = (1.0 - step_length * data.penalty) * shrink[b]
    share = gamma * shrink[b]
    at, here, there = b * size, node * size, following * size
    squared_norm = 0.0
    next_score = 0.0
    for a in range(size):
        w = models[at + _U(a)]
        sums[at + _U(a)] += share * w
        w = keep * w - push * data.rows[here + _U(a)]
        models[at + _U(a)] = w
        squared_norm += w * w
        next_score += w * data.rows[there + _U(a)]
    shrink[b] = 1.0
    if squared_norm > data.radius * data.radius:
        shrink[b] = data.radius / np.sqrt(squared_norm)
    scores[b] = next_score * shrink[b]


@njit(nogil=True, cache=True, fastmath=_FAST)
def values(data: Data, models: Array) -> Array:
    """f(w) for each of the models, shape (models, size)."""
    size = _U(data.dimension * data.outputs)
    flat = models.reshape(-1)
    nodes = data.offsets.size - 1
    result = np.zeros(models.shape[0])
    scores = np.empty(data.outputs, dtype=np.float64)
    for r in range(data.targets.size):
        row = _U(r)
        weight = data.weights[row] / nodes
        for m in range(models.shape[0]):
            at = _U(m) * size
            if data.loss == SOFTMAX:
                level = _softmax_scores(data, row, flat, at, scores)
                result[m] += weight * (level - scores[np.int64(data.targets[row])])
            else:
                score = _score(data, row, flat, at)
                result[m] += weight * _value(
                    data.loss, data.loss_parameter, score, data.targets[row]
                )
    for m in range(models.shape[0]):
        squared_norm = 0.0
        for a in range(size):
            squared_norm += flat[_U(m) * size + _U(a)] ** 2
        result[m] += 0.5 * data.penalty * squared_norm
    return result


class Nodes(NamedTuple):
    """The state of a gossiping network, changed in place."""

    models: Array  # (nodes·size,), flat
    sums: Array
    step_size_sums: Array
    counts: Array


@njit(nogil=True, fastmath=_FAST)
def _node_update(
    data: Data,
    network: Nodes,
    node: Index,
    constant: float,
    exponent: float,
    scale: float,
    picks: Array,
    gradient: Array,
    scores: Array,
) -> None:
    """A node's own step on its own model, with its own step index."""
    network.counts[node] += 1
    gamma = constant / np.float64(network.counts[node]) ** exponent
    network.step_size_sums[node] += gamma
    at = node * _U(gradient.size)
    _update(data, node, gamma, scale, network.models, network.sums, at, picks, gradient, scores)


@njit(nogil=True, cache=True, fastmath=_FAST)
def advance_asynchronous(
    indptr: Array,
    indices: Array,
    scale: Array,
    data: Data,
    network: Nodes,
    constant: float,
    exponent: float,
    uniforms: Array,
) -> None:
    """One meeting per line of `uniforms`: two neighbours update, then take the average."""
    size = _U(data.dimension * data.outputs)
    gradient = np.empty(data.dimension * data.outputs, dtype=np.float64)
    scores = np.empty(data.outputs, dtype=np.float64)
    nodes = indptr.size - 1
    models = network.models
    for t in range(uniforms.shape[0]):
        stretched = uniforms[t, 0] * nodes
        i = _U(min(np.int64(stretched), nodes - 1))
        first = indptr[i]
        degree = indptr[i + _U(1)] - first
        place = min(np.int64((stretched - i) * degree), degree - 1)
        j = _U(indices[_U(first + place)])
        picks_i = uniforms[t, 1 : 1 + data.batch]
        picks_j = uniforms[t, 1 + data.batch :]
        _node_update(data, network, i, constant, exponent, scale[i], picks_i, gradient, scores)
        _node_update(data, network, j, constant, exponent, scale[j], picks_j, gradient, scores)
        for a in range(size):
            mean = 0.5 * (models[i * size + _U(a)] + models[j * size + _U(a)])
            models[i * size + _U(a)] = mean
            models[j * size + _U(a)] = mean


@njit(nogil=True, cache=True, fastmath=_FAST)
def advance_synchronous(
    indptr: Array,
    indices: Array,
    shares: Array,
    data: Data,
    network: Nodes,
    constant: float,
    exponent: float,
    uniforms: Array,
) -> None:
    """One round per line of `uniforms`: all update, then mix with the weights of a CSR matrix."""
    size = _U(data.dimension * data.outputs)
    gradient = np.empty(data.dimension * data.outputs, dtype=np.float64)
    scores = np.empty(data.outputs, dtype=np.float64)
    nodes = indptr.size - 1
    mixed = np.empty_like(network.models)
    for t in range(uniforms.shape[0]):
        for n in range(nodes):
            picks = uniforms[t, n * data.batch : (n + 1) * data.batch]
            _node_update(data, network, _U(n), constant, exponent, 1.0, picks, gradient, scores)
        mixed[:] = 0.0
        for n in range(nodes):
            to = _U(n) * size
            for link in range(indptr[n], indptr[n + 1]):
                share = shares[link]
                at = _U(indices[link]) * size
                for a in range(size):
                    mixed[to + _U(a)] += share * network.models[at + _U(a)]
        network.models[:] = mixed
