"""Several tokens in one network: the twin of `simulation.events`, for updates that share a sum.

A visit of `visits` knows one token per network. So `events` loads what a token knows into the
arrays of its network, lets the visit change them, and adds the change to the token's own sum:

    carry = merge(data, state, shared, r, b, i)         newest sums of token b and node i, and total
    split(data, state, shared, r, b, i, carry)          the change of the total belongs to token b
    copy(data, state, shared, r, b, records, record)    copy the model of token b

r is the network, a replicate, and b = r · m + v is its token v. `visit` is called with r in place
of the token.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from walklearn.simulation.kernels.arithmetic import Array, U, next_uniform
from walklearn.simulation.kernels.compilation import inlined, plain_helper
from walklearn.simulation.kernels.drivers import is_due
from walklearn.simulation.kernels.hops import hop


class Clock(NamedTuple):
    """The times of all tokens and nodes, changed in place."""

    hop: float
    visit: float
    times: Array  # of the next event of each token: its arrival, or the end of its update
    waits: Array  # True until the token updates
    left: Array  # the updates of each token that are left
    free: Array  # the end of the last update at each node, (networks, nodes)
    now: Array  # the end of the last update, (networks,)


class TokenDraws(NamedTuple):
    """The random numbers of each visit, and the streams that they come from."""

    uniforms: Array  # of the current visit, (tokens, 1, draws)
    streams: Array  # (networks, nodes or tokens of a network, 4)
    by_node: bool  # True if each node has its own stream, else each token


class TokenRecords(NamedTuple):
    """Copies after some of the updates of a call."""

    after: Array  # the numbers of these updates, increasing
    models: Array  # (records · tokens of a network, networks, size)
    messages: Array  # (records, networks)
    questions: Array
    times: Array


# Without fused or reordered sums, so that ties are ties in both engines.
@plain_helper
def _end(arrival, free, duration):
    return max(arrival, free) + duration


@plain_helper
def _arrival(end, duration, messages):
    return end + duration * messages


@inlined
def _next_token(clock, tokens, r, m):
    """Advance the clock of a network to the end of its next update; return the token's number.

    The first of several tokens with the same time is next. Without an update left, return m.
    """
    found, chosen = False, m
    while not found:
        chosen, time = m, np.inf
        for v in range(m):
            b = r * m + U(v)
            if clock.left[b] > 0 and clock.times[b] < time:
                chosen, time = U(v), clock.times[b]
        found = True
        if chosen < m:
            b, end = r * m + chosen, time
            if clock.waits[b]:
                i = U(tokens.nodes[b])
                end = _end(time, clock.free[r, i], clock.visit)
                clock.free[r, i], clock.times[b], clock.waits[b] = end, end, False
            found = end == time
            clock.now[r] = time
    return chosen


@inlined
def events(merge, visit, split, copy, walk, tokens, clock, draws, data, state, shared,
           records, updates):  # fmt: skip
    """Let the tokens of each network make this many updates together, in order of their ends."""
    networks = clock.now.size
    m = U(tokens.nodes.size // networks)
    for network in range(networks):
        r, record = U(network), 0
        for t in range(updates):
            slot = _next_token(clock, tokens, r, m)
            if slot == m:
                break
            b = r * m + slot
            i = U(tokens.nodes[b])
            for d in range(draws.uniforms.shape[2]):
                line = i if draws.by_node else slot
                draws.uniforms[b, U(0), U(d)] = next_uniform(draws.streams[r, line])
            j, hop_messages, hop_questions = hop(
                walk, b, i, U(tokens.previous[b]), draws.uniforms, U(0)
            )
            tokens.messages[r] += hop_messages
            tokens.questions[r] += hop_questions
            tokens.visits[i] += 1
            carry = merge(data, state, shared, r, b, i)
            split(data, state, shared, r, b, i, visit(data, state, r, i, i, U(0), carry))
            tokens.previous[b] = i if j != i else U(tokens.previous[b])
            tokens.nodes[b] = j
            clock.left[b] -= 1
            clock.times[b] = _arrival(clock.now[r], clock.hop, np.float64(hop_messages))
            clock.waits[b] = True
            if is_due(records, record, t + 1):
                for v in range(m):
                    line = U(record) * m + U(v)
                    copy(data, state, shared, r, r * m + U(v), records, line)
                records.messages[record, r] = tokens.messages[r]
                records.questions[record, r] = tokens.questions[r]
                records.times[record, r] = clock.now[r]
                record += 1
