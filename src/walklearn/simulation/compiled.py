"""The compiled twins of `walk_sgd` and `gossip_sgd`: the same numbers, at the speed of C.

They repeat the formulas of `losses`, `domains` and the walks' `hop` because Numba's disk cache
watches one file: a helper edited elsewhere would leave stale machine code behind, silently.
tests/simulation/test_equivalence.py holds every one of them against its original.

There are two ways through a walk. The general one, for every walk, loss, domain and number of
rows, first finds the paths of all tokens (`find_paths`), then updates along them
(`update_along`): the way of a token does not depend on its model. The fast one,
`advance_metropolis`, is for the common case of a Metropolis walk with one row per node. It
advances a *group* of tokens in phases (look up proposals, update, accept), so that the memory
misses of different tokens overlap; it keeps all that it needs of a node in one cache line; and
since it knows the next row, it sums the next score x'·w in the same pass over w that makes the
update.

Nothing in here raises; arguments are checked before. Arrays are indexed with unsigned integers,
which spares Numba's test for negative indices, and taken out of their tuples once, which spares
counting references in every step.
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
_BELOW_ONE = 1.0 - 2.0**-53


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


class Chain(NamedTuple):
    """The walk as arrays; see `walks`. Score and scale have one line, or one per replicate.

    scale: what the gradient is multiplied by, up to the mean importance where a token
    estimates that.
    """

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

    A model is shrink · models: `advance_metropolis` keeps a projection onto the ball as a factor
    until the next update. `scores` is x·w for the row that is next. Both are kept between
    calls, so that the numbers do not depend on where a call ends.
    """

    nodes: Array
    previous: Array
    models: Array  # (tokens·size,), flat
    sums: Array
    scores: Array
    shrink: Array
    messages: Array
    visits: Array  # updates made by each node


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
def _data_gradient(
    data: Data,
    node: Index,
    models: Array,
    at: Index,
    picks: Array,
    gradient: Array,
    scores: Array,
) -> None:
    """The part of ∇f_i(w) that depends on the rows, for any loss and number of rows."""
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


@njit(nogil=True, fastmath=_FAST)
def _descend(
    data: Data,
    gamma: float,
    scale: float,
    models: Array,
    sums: Array,
    at: Index,
    gradient: Array,
) -> None:
    """sum += γ w, then w ← Π_W(w − γ scale (gradient + λw)), for any domain."""
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
def _hop(
    chain: Chain, line: Index, node: Index, previous: Index, draws: Array
) -> tuple[Index, Index]:
    """Where the token goes, and how many messages that takes."""
    if chain.kind == INDEPENDENT:
        law = chain.score[line]
        j = _U(min(np.searchsorted(law, draws[0], side="right"), law.size - 1))
        return j, np.int64(j != node)
    u = draws[0]
    if chain.kind == METROPOLIS:
        j = _metropolis_hop(chain, line, node, u)
        return j, np.int64(j != node)
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


@njit(nogil=True)
def _next_uniform(stream: Array) -> float:
    """The next number of NumPy's PCG64 generator: state ← state · M + increment, modulo 2¹²⁸.

    stream: the halves of the state and of the increment, high before low; changed in place.
    """
    half, mask = _U(32), _U(0xFFFFFFFF)
    high, low = stream[0], stream[1]
    m_high, m_low = _U(2549297995355413924), _U(4865540595714422341)
    # The upper half of low · m_low, by products of 32 bits.
    a, b, c, d = low >> half, low & mask, m_low >> half, m_low & mask
    middle = (b * d >> half) + (a * d & mask) + (b * c & mask)
    carried = a * c + (a * d >> half) + (b * c >> half) + (middle >> half)
    high = carried + high * m_low + low * m_high + stream[2]
    low = low * m_low + stream[3]
    high += _U(low < stream[3])
    stream[0], stream[1] = high, low
    bits, turn = high ^ low, high >> _U(58)
    bits = (bits >> turn) | (bits << ((_U(64) - turn) & _U(63)))
    return np.float64(bits >> _U(11)) * 2.0**-53


# The columns of a node's record: 8 numbers, one cache line.
SCORE, SCALE, TARGET, WEIGHT, FIRST, DEGREE = range(6)
RECORD = 8


@njit(nogil=True, fastmath=_FAST)
def _proposal(u: float, laziness: float, first: float, degree: float) -> tuple[Index, float]:
    """Where in `indices` the proposed neighbour is, and what its acceptance is decided by."""
    if laziness > 0.0:
        if u < laziness:
            return _U(np.int64(first)), np.inf  # nothing is accepted: the token stays
        u = min((u - laziness) / (1.0 - laziness), _BELOW_ONE)
    stretched = u * degree  # below the degree, since u ≤ 1 − 2⁻⁵³
    place = np.floor(stretched)
    return _U(np.int64(first + place)), stretched - place


@njit(nogil=True, cache=True, fastmath=_FAST)
def advance_metropolis(
    records: Array,
    chain: Chain,
    data: Data,
    tokens: Tokens,
    gammas: Array,
    uniforms: Array,
    group: int,
    far: bool,
) -> None:
    """Advance every token by len(gammas) visits; `uniforms` is (tokens, visits, 1).

    records: (lines, nodes, 8), with one line, or one per token.
    group: how many tokens take turns; their models should fit the first-level cache.
    far: rows and records do not fit the cache, so prefetch them.
    """
    count, steps = uniforms.shape[0], uniforms.shape[1]
    size, record = _U(data.dimension), _U(RECORD)
    line = _U(records.shape[1] * RECORD if records.shape[0] > 1 else 0)
    table, indices, rows = records.reshape(-1), chain.indices, data.rows
    models, sums, scores, shrink = tokens.models, tokens.sums, tokens.scores, tokens.shrink
    messages, visits = tokens.messages, tokens.visits
    laziness, penalty, loss, parameter = (
        chain.laziness, data.penalty, data.loss, data.loss_parameter,
    )  # fmt: skip
    squared_radius = data.radius * data.radius

    here = np.empty(count, dtype=np.uint64)  # the node of visit t
    there = tokens.nodes.astype(np.uint64)  # the node of visit t + 1
    address = np.empty(count, dtype=np.uint64)  # where the proposal from `there` is found
    fraction = np.empty(count, dtype=np.float64)  # what its acceptance is decided by
    proposal = np.empty(count, dtype=np.uint64)

    for begin in range(0, count, group):
        end = min(count, begin + group)
        for token in range(begin, end):
            b = _U(token)
            r = b * line + there[b] * record
            address[b], fraction[b] = _proposal(
                uniforms[b, _U(0), _U(0)], laziness, table[r + _U(FIRST)], table[r + _U(DEGREE)]
            )
        for t in range(-1, steps):
            if t + 1 < steps:
                for token in range(begin, end):
                    b = _U(token)
                    proposal[b] = _U(indices[address[b]])
                    if far:
                        _prefetch(table, b * line + proposal[b] * record)
            if t >= 0:
                gamma = gammas[_U(t)]
                for token in range(begin, end):
                    b = _U(token)
                    i = here[b]
                    visits[i] += 1
                    r = b * line + i * record
                    step_length = gamma * table[r + _U(SCALE)]
                    slope = _slope(loss, parameter, scores[b], table[r + _U(TARGET)])
                    push = step_length * table[r + _U(WEIGHT)] * slope
                    keep = (1.0 - step_length * penalty) * shrink[b]
                    share = gamma * shrink[b]
                    at, row, following = b * size, i * size, there[b] * size
                    squared_norm = 0.0
                    next_score = 0.0
                    for a in range(size):
                        w = models[at + _U(a)]
                        sums[at + _U(a)] += share * w
                        w = keep * w - push * rows[row + _U(a)]
                        models[at + _U(a)] = w
                        squared_norm += w * w
                        next_score += w * rows[following + _U(a)]
                    factor = 1.0
                    if squared_norm > squared_radius:
                        factor = np.sqrt(squared_radius / squared_norm)
                    shrink[b] = factor
                    scores[b] = next_score * factor
            if t + 1 < steps:
                upcoming = min(t + 2, steps - 1)
                for token in range(begin, end):
                    b = _U(token)
                    i, j = there[b], proposal[b]
                    accepted = (
                        fraction[b] * table[b * line + i * record] <= table[b * line + j * record]
                    )
                    j = j if accepted else i
                    messages[b] += j != i
                    here[b] = i
                    there[b] = j
                    r = b * line + j * record
                    address[b], fraction[b] = _proposal(
                        uniforms[b, _U(upcoming), _U(0)], laziness,
                        table[r + _U(FIRST)], table[r + _U(DEGREE)],
                    )  # fmt: skip
                    if far:  # the hardware fetches the rest of a row once it sees two lines
                        _prefetch(indices, address[b])
                        _prefetch(rows, j * size)
                        _prefetch(rows, j * size + _U(8))
        for token in range(begin, end):
            tokens.nodes[token] = there[token]


@njit(nogil=True, cache=True, fastmath=_FAST)
def find_paths(chain: Chain, tokens: Tokens, uniforms: Array, streams: Array) -> Array:
    """Let every token hop once for each line of its uniforms: (tokens, visits + 1) nodes.

    streams: the nodes' own, which the uniforms are then drawn from; empty where they are given.
    """
    count, steps = uniforms.shape[0], uniforms.shape[1]
    path = np.empty((count, steps + 1), dtype=chain.indices.dtype)
    for b in range(count):
        line = _U(b if chain.score.shape[0] > 1 else 0)
        i = _U(tokens.nodes[b])
        path[b, 0] = i
        for k in range(steps):
            if streams.size:
                for d in range(uniforms.shape[2]):
                    uniforms[b, k, d] = _next_uniform(streams[_U(b), i])
            j, messages = _hop(chain, line, i, tokens.previous[b], uniforms[b, k])
            tokens.messages[b] += messages
            if j != i:
                tokens.previous[b] = i
            i = j
            path[b, k + 1] = i
        tokens.nodes[b] = i
    return path


class Noise(NamedTuple):
    """What protects the model; see `privacy.ModelNoise`. A clip of 0 stands for no protection."""

    clip: float
    deviation: float
    most: int  # contributions per node
    normals: Array  # (tokens, visits, size)
    contributions: Array  # (tokens, nodes), changed in place


@njit(nogil=True, fastmath=_FAST)
def _protect(noise: Noise, gradient: Array, normal: Array, contributed: int) -> None:
    """Clip the gradient, or drop it where the node has contributed enough; then add noise."""
    squared_norm = 0.0
    for a in range(gradient.size):
        squared_norm += gradient[a] * gradient[a]
    shows = contributed < noise.most and np.isfinite(squared_norm)
    factor = noise.clip / max(np.sqrt(squared_norm), noise.clip)
    for a in range(gradient.size):
        gradient[a] = (factor * gradient[a] if shows else 0.0) + noise.deviation * normal[a]


@njit(nogil=True, cache=True, fastmath=_FAST)
def update_along(
    path: Array,
    scale: Array,
    means: Array,
    data: Data,
    tokens: Tokens,
    gammas: Array,
    picks: Array,
    noise: Noise,
) -> None:
    """Let every node of a path update the model; `picks` are the mini-batches' uniforms.

    means: the mean importance that each token knows of at each visit; empty where the scale
    has it already.
    """
    size = _U(data.dimension * data.outputs)
    gradient = np.empty(data.dimension * data.outputs, dtype=np.float64)
    scores = np.empty(data.outputs, dtype=np.float64)
    for b in range(path.shape[0]):
        line = _U(b if scale.shape[0] > 1 else 0)
        for t in range(gammas.size):
            i = _U(path[b, t])
            tokens.visits[i] += 1
            at = _U(b) * size
            _data_gradient(data, i, tokens.models, at, picks[b, t], gradient, scores)
            if noise.clip > 0.0:
                _protect(noise, gradient, noise.normals[b, t], noise.contributions[b, i])
                noise.contributions[b, i] += noise.contributions[b, i] < noise.most
            factor = scale[line, i] * means[b, t] if means.size else scale[line, i]
            _descend(data, gammas[t], factor, tokens.models, tokens.sums, at, gradient)


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
    _data_gradient(data, node, network.models, at, picks, gradient, scores)
    _descend(data, gamma, scale, network.models, network.sums, at, gradient)


@njit(nogil=True, fastmath=_FAST)
def _meeting(indptr: Array, indices: Array, u: float) -> tuple[Index, Index]:
    """A uniform node, and from what is left of u a uniform neighbour."""
    nodes = indptr.size - 1
    stretched = u * nodes
    i = _U(min(np.int64(stretched), nodes - 1))
    first = indptr[i]
    degree = indptr[i + _U(1)] - first
    place = min(np.int64((stretched - i) * degree), degree - 1)
    return i, _U(indices[_U(first + place)])


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
    models = network.models
    for t in range(uniforms.shape[0]):
        i, j = _meeting(indptr, indices, uniforms[t, 0])
        picks_i = uniforms[t, 1 : 1 + data.batch]
        picks_j = uniforms[t, 1 + data.batch :]
        _node_update(data, network, i, constant, exponent, scale[i], picks_i, gradient, scores)
        _node_update(data, network, j, constant, exponent, scale[j], picks_j, gradient, scores)
        for a in range(size):
            mean = 0.5 * (models[i * size + _U(a)] + models[j * size + _U(a)])
            models[i * size + _U(a)] = mean
            models[j * size + _U(a)] = mean


@njit(nogil=True, cache=True, fastmath=_FAST)
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
    size, steps, ahead = _U(data.dimension), uniforms.shape[0], 4
    rows, targets, weights = data.rows, data.targets, data.weights
    models, sums, totals, counts = (
        network.models, network.sums, network.step_size_sums, network.counts,
    )  # fmt: skip
    penalty, loss, parameter, radius = data.penalty, data.loss, data.loss_parameter, data.radius
    for t in range(steps):
        if far and t + ahead < steps:
            for node in _meeting(indptr, indices, uniforms[t + ahead, 0]):
                for a in range(0, data.dimension, 8):
                    _prefetch(rows, node * size + _U(a))
                    _prefetch(models, node * size + _U(a))
                    _prefetch(sums, node * size + _U(a))
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
            score_i += models[at_i + _U(a)] * rows[at_i + _U(a)]
            score_j += models[at_j + _U(a)] * rows[at_j + _U(a)]
        step_i, step_j = gamma_i * scale[i], gamma_j * scale[j]
        push_i = step_i * weights[i] * _slope(loss, parameter, score_i, targets[i])
        push_j = step_j * weights[j] * _slope(loss, parameter, score_j, targets[j])
        keep_i, keep_j = 1.0 - step_i * penalty, 1.0 - step_j * penalty
        norm_i = 0.0
        norm_j = 0.0
        for a in range(size):
            v = models[at_i + _U(a)]
            w = models[at_j + _U(a)]
            sums[at_i + _U(a)] += gamma_i * v
            sums[at_j + _U(a)] += gamma_j * w
            v = keep_i * v - push_i * rows[at_i + _U(a)]
            w = keep_j * w - push_j * rows[at_j + _U(a)]
            models[at_i + _U(a)] = v
            models[at_j + _U(a)] = w
            norm_i += v * v
            norm_j += w * w
        share_i = 0.5 if norm_i <= radius * radius else 0.5 * radius / np.sqrt(norm_i)
        share_j = 0.5 if norm_j <= radius * radius else 0.5 * radius / np.sqrt(norm_j)
        for a in range(size):
            mean = share_i * models[at_i + _U(a)] + share_j * models[at_j + _U(a)]
            models[at_i + _U(a)] = mean
            models[at_j + _U(a)] = mean


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
