"""The paths of tokens: who is next, for every walk.

The way of a token does not depend on its model, so it can be found before the updates along it, or
`hop` by hop on the way. Tokens of a group take turns, so that what one waits for in memory overlaps
with what another calculates.

Nothing in here raises; arguments are checked before.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from walklearn.simulation.compiled.arithmetic import Array, Index, U, next_uniform, prefetch
from walklearn.simulation.compiled.cached import inlined, kernel

METROPOLIS, NON_BACKTRACKING, JUMPING, INDEPENDENT, HISTORY = range(1, 6)
NEAR = 8  # tokens that take turns where all is in the cache


class Chain(NamedTuple):
    """The walk as arrays; see `walks`. Score and scale have one line, or one per replicate.

    scale: what the gradient is multiplied by, up to the mean importance where a token
    estimates that.
    """

    indptr: Array
    indices: Array
    score: Array
    scale: Array
    kind: tuple[int, ...]  # its length says which, so each has machine code of its own
    laziness: float
    jump_probability: float
    jump_stops: Array  # the chances that a jump ends after its first hop, its second, …
    alpha: float  # of a history-driven walk


class Tokens(NamedTuple):
    """The state of a batch of tokens, changed in place.

    A model is shrink · models: with one row per node a projection onto the ball is kept as a factor
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
    questions: Array  # how many of the messages asked or answered for counts
    visits: Array  # updates made by each node
    counts: Array  # (tokens, nodes), 1 + visits; no lines unless the walk goes by them


class Records(NamedTuple):
    """Copies of models and sums after some of the visits: `after` so many visits of a call."""

    after: Array  # (records,), increasing
    models: Array  # (records, tokens, size)
    sums: Array
    messages: Array  # (records, tokens)
    questions: Array


@inlined
def _turned_away(
    indptr: Array, score: Array, line: Index, counts: Array, b: Index, i: Index, j: Index,
    alpha: float, u: float,
) -> Index:  # fmt: skip
    """The proposed neighbour, unless it has been visited too often: see `HistoryDriven.hop`."""
    degree, their_degree = indptr[i + U(1)] - indptr[i], indptr[j + U(1)] - indptr[j]
    here, there = score[line + i], score[line + j]
    excess = (counts[b, i] * there * their_degree) / (counts[b, j] * here * degree)
    return j if u <= excess**alpha * there / here else i


@inlined
def _drawn(law: Array, line: Index, nodes: Index, u: float) -> Index:
    """The node whose part of a cumulative law u falls into."""
    low, high = U(0), nodes - U(1)
    while low < high:
        middle = (low + high) // U(2)
        if law[line + middle] <= u:
            low = middle + U(1)
        else:
            high = middle
    return low


@inlined
def _proposed(
    indptr: Array, node: Index, u: float, jumping: float, laziness: float
) -> tuple[Index, float]:
    """Where in `indices` the proposed neighbour is, and what its acceptance is decided by."""
    u = (max(u, jumping) - jumping) / (1.0 - jumping)
    stays = u < laziness
    u = 0.0 if stays else (u - laziness) / (1.0 - laziness)
    first = indptr[node]
    degree = indptr[node + U(1)] - first
    stretched = u * degree
    place = min(np.int64(stretched), degree - 1)
    return U(first + place), np.inf if stays else stretched - place


@inlined
def _redirected(
    indptr: Array, indices: Array, score: Array, line: Index, i: Index, previous: Index, u: float
) -> Index:
    """A second proposal, among the other neighbours, for a move straight back."""
    first, others = indptr[i], indptr[i + U(1)] - indptr[i] - 1
    stretched = u * others
    place = max(min(np.int64(stretched), others - 1), 0)
    # Neighbours are sorted: skip the previous one, unless there is no other.
    skips = np.int64(U(indices[U(first + place)]) >= previous and others > 0)
    other = U(indices[U(first + place + skips)])
    here = score[line + i]
    ratio = min(here, score[line + other]) / min(here, score[line + previous])
    return other if stretched - place <= ratio * ratio else previous


@inlined
def _jump_on(indptr: Array, indices: Array, i: Index, u: float, stop: float) -> tuple[Index, bool]:
    """A uniform neighbour, and whether the jump goes on from there."""
    first, degree = indptr[i], indptr[i + U(1)] - indptr[i]
    stretched = u * degree
    place = min(np.int64(stretched), degree - 1)
    return U(indices[U(first + place)]), stretched - place >= stop


@inlined
def hop(
    kind: int, indptr: Array, indices: Array, score: Array, line: Index, nodes: Index, i: Index,
    previous: Index, uniforms: Array, b: Index, k: Index, jumping: float, laziness: float,
    stops: Array, counts: Array, alpha: float,
) -> tuple[Index, int, int]:  # fmt: skip
    """Where the token b goes from node i, in how many messages, and how many of these ask.

    What only some hops do is a loop of one turn instead of a branch: Numba would count the
    references to the arrays that it uses, in every hop, which takes a third of it.
    """
    hops, asked, u = 0, 0, uniforms[b, k, U(0)]
    proposed, fraction = _proposed(indptr, i, u, jumping, laziness)
    j = U(indices[proposed])
    if kind == HISTORY:
        counts[b, i] += 1
        if fraction < np.inf:
            j = _turned_away(indptr, score, line, counts, b, i, j, alpha, fraction)
            asked = 2
        else:
            j = i
    else:
        j = j if fraction * score[line + i] <= score[line + j] else i
    # A token that stays is not where it came from, so this need not ask whether it moved: a
    # processor that has to guess that is wrong whenever a proposal is turned down.
    goes_back = kind == NON_BACKTRACKING and j == previous
    while goes_back:
        j = _redirected(indptr, indices, score, line, i, previous, uniforms[b, k, U(1)])
        goes_back = False
    jumps = kind == JUMPING and u < jumping
    j, u = (i, u / jumping) if jumps else (j, u)
    while jumps:
        j, jumps = _jump_on(indptr, indices, j, u, stops[U(hops)])
        hops += 1
        jumps = jumps and hops < stops.size
        u = uniforms[b, k, U(hops)] if jumps else 0.0
    if kind == INDEPENDENT:
        j = _drawn(score, line, nodes, u)
    return j, asked + max(hops, int(j != i)), asked  # Numba 0.61 compares numbers of one kind


@kernel
def find_paths(
    chain: Chain, tokens: Tokens, uniforms: Array, streams: Array, records: Records, far: bool
) -> Array:
    """Let every token hop once for each line of its uniforms: (tokens, visits + 1) nodes.

    streams: the nodes' own, which the uniforms are then drawn from; empty where they are given.
    far: the graph does not fit the cache, so all tokens ask for a neighbour, then for its score,
    then decide: they wait together.
    """
    count, steps, draws = uniforms.shape
    indptr, indices, score = chain.indptr, chain.indices, chain.score.reshape(-1)
    kind, laziness, jumping = len(chain.kind), chain.laziness, chain.jump_probability
    here, previous, messages = tokens.nodes, tokens.previous, tokens.messages
    stops, after = chain.jump_stops, records.after
    questions, counts, alpha = tokens.questions, tokens.counts, chain.alpha
    nodes, own = U(chain.score.shape[1]), streams.size > 0
    of_token = nodes if chain.score.shape[0] > 1 else U(0)
    group = count if far else NEAR
    path = np.empty((count, steps + 1), dtype=indices.dtype)
    path[:, 0] = here
    address = np.empty(count, dtype=np.uint64)  # where in `indices` the proposal is found
    for begin in range(0, count, group):
        end, record = min(count, begin + group), 0
        for t in range(steps):
            k = U(t)
            for token in range(begin, end if own else begin):
                for d in range(draws):
                    uniforms[token, k, d] = next_uniform(streams[token, here[token]])
            for token in range(begin, end if far else begin):
                b = U(token)
                address[b], _ = _proposed(
                    indptr, U(here[b]), uniforms[b, k, U(0)], jumping, laziness
                )  # fmt: skip
                prefetch(indices, address[b])
            for token in range(begin, end if far else begin):
                b = U(token)
                ahead = U(indices[address[b]])
                prefetch(score, b * of_token + ahead)
                prefetch(indptr, ahead)
            for token in range(begin, end):
                b = U(token)
                i = U(here[b])
                j, sent, asked = hop(
                    kind, indptr, indices, score, b * of_token, nodes, i, U(previous[b]), uniforms,
                    b, k, jumping, laziness, stops, counts, alpha,
                )  # fmt: skip
                messages[b] += sent
                questions[b] += asked
                if j != i:
                    previous[b] = i
                here[b] = j
                path[b, k + U(1)] = j
            if record < after.size and after[record] == t + 1:
                records.messages[record, begin:end] = messages[begin:end]
                records.questions[record, begin:end] = questions[begin:end]
                record += 1
    return path
