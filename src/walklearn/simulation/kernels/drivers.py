"""Drivers: loops over tokens and visits, into which a kernel inlines its walk and its visit.

A visit is a set of inlined functions (see `visits`):

    carry = begin(state, b)                          numbers of token b that stay in registers
    carry = visit(data, state, b, i, j, k, carry)    update token b at node i in visit k of the call
    end(state, b, carry)                             write the numbers back
    copy(data, state, b, records, record)            copy the model and its running sum
    fetch(data, state, path, b, k, later)            prefetch the rows of a later node

j is the next node: a visit computes the score of its row in the same pass over the model, and
passes it on as part of `carry`. `data` is the problem, `state` the arrays of the update.

`near` is for rows in the cache: the processor overlaps the next hop with the update. In
`near_in_turns` the tokens of a group take turns, because a long row takes longer than a hop. `far`
follows paths from `find_paths`, which do not depend on the model, and prefetches rows. `events` is
for several tokens in one network (`kernels.events`). Nothing in this package raises: arguments are
checked before.
"""

from __future__ import annotations

from typing import NamedTuple

from walklearn.simulation.kernels.arithmetic import Array, U, next_uniform, prefetch
from walklearn.simulation.kernels.compilation import inlined, kernel
from walklearn.simulation.kernels.hops import hop, proposal

AHEAD = 2  # visits between the prefetch of a row and its use
GROUP = 8  # tokens that take turns in `find_paths` if the graph fits the cache


class Tokens(NamedTuple):
    """Positions and messages of a batch of tokens, changed in place."""

    nodes: Array
    previous: Array
    messages: Array
    questions: Array  # messages that ask or answer for counts
    arrivals: Array  # messages before the last hop: until the token arrived where it updated last
    visits: Array  # visits to each node by all tokens


class Draws(NamedTuple):
    """Uniform numbers of all visits."""

    uniforms: Array  # (tokens, visits, draws)
    streams: Array  # of nodes, (tokens, nodes, 4), from which `uniforms` are filled; or empty


class Records(NamedTuple):
    """Copies of models and running sums after some of the visits of a call."""

    after: Array  # the numbers of these visits, increasing
    models: Array  # (records, tokens, size)
    sums: Array
    messages: Array  # (records, tokens)
    questions: Array
    arrivals: Array


@inlined
def _draw(draws, b, i, k):
    """Draw the numbers of a visit from the stream of node i if nodes have their own."""
    if draws.streams.size > 0:
        for d in range(draws.uniforms.shape[2]):
            draws.uniforms[b, k, d] = next_uniform(draws.streams[b, i])


@inlined
def is_due(records, record, visits):
    """Return True if the next record is after this number of visits of the call."""
    return record < records.after.size and records.after[record] == visits


@inlined
def _record_counts(tokens, b, records, record):
    """Record the messages of a token."""
    records.messages[record, b] = tokens.messages[b]
    records.questions[record, b] = tokens.questions[b]
    records.arrivals[record, b] = tokens.arrivals[b]


@inlined
def near(begin, visit, end, copy, walk, tokens, draws, data, state, records):
    """Run the tokens one after another; each hops and updates."""
    for token in range(draws.uniforms.shape[0]):
        b, record, carry = U(token), 0, begin(state, U(token))
        i, previous = U(tokens.nodes[b]), U(tokens.previous[b])
        messages, questions = tokens.messages[b], tokens.questions[b]
        arrival = tokens.arrivals[b]
        for t in range(draws.uniforms.shape[1]):
            k = U(t)
            _draw(draws, b, i, k)
            j, hop_messages, hop_questions = hop(walk, b, i, previous, draws.uniforms, k)
            arrival = messages
            messages += hop_messages
            questions += hop_questions
            tokens.visits[i] += 1
            carry = visit(data, state, b, i, j, k, carry)
            previous = i if j != i else previous
            i = j
            if is_due(records, record, t + 1):
                tokens.messages[b], tokens.questions[b] = messages, questions
                tokens.arrivals[b] = arrival
                _record_counts(tokens, b, records, record)
                end(state, b, carry)
                copy(data, state, b, records, record)
                record += 1
        end(state, b, carry)
        tokens.nodes[b], tokens.previous[b] = i, previous
        tokens.messages[b], tokens.questions[b] = messages, questions
        tokens.arrivals[b] = arrival


@inlined
def near_in_turns(begin, visit, end, copy, walk, tokens, draws, data, state, records, group):
    """Let the tokens of a group take turns; their models should fit the first-level cache."""
    count = draws.uniforms.shape[0]
    for first in range(0, count, group):
        last, record = min(count, first + group), 0
        for t in range(draws.uniforms.shape[1]):
            k = U(t)
            if is_due(records, record, t + 1) or t + 1 == draws.uniforms.shape[1]:
                for token in range(first, last):
                    tokens.arrivals[U(token)] = tokens.messages[U(token)]
            for token in range(first, last):
                b = U(token)
                i = U(tokens.nodes[b])
                _draw(draws, b, i, k)
                j, hop_messages, hop_questions = hop(
                    walk, b, i, U(tokens.previous[b]), draws.uniforms, k
                )
                tokens.messages[b] += hop_messages
                tokens.questions[b] += hop_questions
                tokens.visits[i] += 1
                end(state, b, visit(data, state, b, i, j, k, begin(state, b)))
                # Written last: before the row is read, these two take 7 of 45 ns.
                tokens.previous[b] = i if j != i else U(tokens.previous[b])
                tokens.nodes[b] = j
            if is_due(records, record, t + 1):
                for token in range(first, last):
                    _record_counts(tokens, U(token), records, record)
                    copy(data, state, U(token), records, record)
                record += 1


@inlined
def far(begin, visit, end, copy, fetch, path, visits, data, state, records, group):
    """Let the tokens of a group update in turns along their paths, (tokens, visits + 1) nodes."""
    count = path.shape[0]
    for first in range(0, count, group):
        last, record = min(count, first + group), 0
        for t in range(path.shape[1] - 1):
            k = U(t)
            for token in range(first, last):
                b = U(token)
                i, j = U(path[b, k]), U(path[b, k + U(1)])
                later = U(path[b, min(k + U(AHEAD), U(path.shape[1] - 1))])
                prefetch(visits, later)
                fetch(data, state, path, b, k, later)
                visits[i] += 1
                end(state, b, visit(data, state, b, i, j, k, begin(state, b)))
            if is_due(records, record, t + 1):
                for token in range(first, last):
                    copy(data, state, U(token), records, record)
                record += 1


@inlined
def fetch_nothing(data, state, path, b, k, later):
    """Prefetch nothing: a visit to many rows reads them one after the other."""


@kernel
def find_paths(walk, tokens, draws, records, path, proposals, far):
    """Compute the path of every token, (tokens, visits + 1) nodes, and count messages.

    If the graph is far from the cache, all tokens request a neighbour, then its score, then decide,
    so that they wait for memory together. `places` is work space, one per token.
    """
    count, steps = path.shape[0], path.shape[1] - 1
    uniforms, group = draws.uniforms, count if far else GROUP
    for token in range(count):
        path[token, 0] = tokens.nodes[token]
    for first in range(0, count, group):
        last, record = min(count, first + group), 0
        for t in range(steps):
            k = U(t)
            for token in range(first, last):
                _draw(draws, U(token), U(tokens.nodes[token]), k)
            for token in range(first, last if far else first):
                b = U(token)
                proposals[b], _ = proposal(walk.chain, U(tokens.nodes[b]), uniforms[b, k, U(0)])
                prefetch(walk.chain.indices, proposals[b])
            for token in range(first, last if far else first):
                neighbour = U(walk.chain.indices[proposals[U(token)]])
                prefetch(walk.chain.score, U(token) * U(walk.chain.stride) + neighbour)
                prefetch(walk.chain.indptr, neighbour)
            for token in range(first, last):
                b = U(token)
                i = U(tokens.nodes[b])
                j, hop_messages, hop_questions = hop(walk, b, i, U(tokens.previous[b]), uniforms, k)
                tokens.arrivals[b] = tokens.messages[b]
                tokens.messages[b] += hop_messages
                tokens.questions[b] += hop_questions
                if j != i:
                    tokens.previous[b] = i
                tokens.nodes[b] = j
                path[b, k + U(1)] = j
            if is_due(records, record, t + 1):
                for token in range(first, last):
                    _record_counts(tokens, U(token), records, record)
                record += 1
