"""The next node of walks that cover the graph in rounds: the twins of `OldestFirst` and `Tour`.

Each token has its own line of every table. `simulation.covering_tables` converts the tables to the
declared arrays of the walks and back.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from walklearn.simulation.kernels.arithmetic import Array, U
from walklearn.simulation.kernels.compilation import inlined
from walklearn.simulation.kernels.hops import Chain, hop

SHIFT = 16  # bits of a node's number in a key, enough for `OldestFirst.max_nodes`
NEVER = 1 << SHIFT  # keys of nodes without a visit are below
LARGEST_KEY = 2**63 - 1
OVERDUE, SEARCH = 3, 2  # as in `walks.covering`


class OldestFirst(NamedTuple):
    """The least recently visited neighbour; see `walks.OldestFirst`.

    The smallest key among the neighbours is that of the oldest one. The number of nodes that are
    due replaces the minimum over all stamps.
    """

    chain: Chain
    keys: Array  # (tokens, nodes): stamp · 2^SHIFT + node
    parents: Array  # (tokens, nodes), from depth-first searches; −1 if an earlier batch searched
    visits: Array  # the visits of each token so far
    starts: Array  # the visit at which the round began; 0 before the first visit
    strict: Array  # True during a depth-first search
    due: Array  # the number of nodes that the round has not visited
    choices: Array  # work space, as long as the largest degree


class Tour(NamedTuple):
    """Depth-first rounds; see `walks.Tour`.

    The bit of a node is set if its mark is 1 + the number of the round, so a new round clears all.
    """

    chain: Chain
    marks: Array  # (tokens, nodes)
    parents: Array  # (tokens, nodes), −1 for none
    rounds: Array  # the number of complete rounds of each token
    visited: Array  # the number of nodes whose bit is set
    choices: Array  # work space, as long as the largest degree


@inlined
def _oldest(chain, keys, b, i):
    """Return the smallest key among the neighbours of node i."""
    smallest = np.int64(LARGEST_KEY)
    for p in range(U(chain.indptr[i]), U(chain.indptr[i + U(1)])):
        smallest = min(smallest, keys[b, U(chain.indices[U(p)])])
    return smallest


@hop.version(OldestFirst)
def _oldest_first(walk, b, i, previous, draws, k):
    keys, nodes, visit = walk.keys, np.int64(walk.keys.shape[1]), walk.visits[b] + 1
    start, strict, due = walk.starts[b], walk.strict[b], walk.due[b]
    start = visit if start == 0 else start
    if keys[b, i] < start << SHIFT:
        due -= 1
        if strict:
            walk.parents[b, i] = np.int64(previous)
    keys[b, i] = (visit << SHIFT) + np.int64(i)
    if due == 0:
        start, strict, due = visit, False, nodes - 1
    elif visit - start >= (SEARCH if strict else OVERDUE) * nodes:
        start, strict, due = visit, not strict, nodes - 1
    key = _oldest(walk.chain, keys, b, i)
    j = U(key & np.int64(NEVER - 1))
    if strict and key >= start << SHIFT:  # all neighbours are visited: back to the parent
        parent = np.int64(walk.parents[b, i])
        if parent >= 0:
            j = U(parent)
        else:  # a search that began in this batch ends at its last new node
            start, strict, due = visit, False, nodes - 1
    elif key < NEVER:  # other stamps are all different
        chain, count = walk.chain, np.int64(0)
        for p in range(U(chain.indptr[i]), U(chain.indptr[i + U(1)])):
            neighbour = U(chain.indices[U(p)])
            walk.choices[U(count)] = neighbour
            count += keys[b, neighbour] < NEVER
        j = U(walk.choices[U(min(np.int64(draws[b, k, U(0)] * count), count - 1))])
    walk.visits[b], walk.starts[b], walk.strict[b], walk.due[b] = visit, start, strict, due
    return j, np.int64(j != i), np.int64(0)


@hop.version(Tour)
def _tour(walk, b, i, previous, draws, k):
    chain, marks, mark = walk.chain, walk.marks, walk.rounds[b] + 1
    visited = walk.visited[b]
    is_root = visited == 0
    if marks[b, i] != mark:
        marks[b, i], walk.parents[b, i] = mark, -1 if is_root else np.int64(previous)
        visited += 1
    first, last = U(chain.indptr[i]), U(chain.indptr[i + U(1)])
    # At the start of a round not straight back, unless that is the only way.
    avoided = U(previous) if is_root and last - first > U(1) else i
    count = np.int64(0)
    for p in range(first, last):
        neighbour = U(chain.indices[U(p)])
        walk.choices[U(count)] = neighbour
        count += (marks[b, neighbour] != mark) & (neighbour != avoided)
    parent, j = np.int64(walk.parents[b, i]), i
    if visited == marks.shape[1] or (count == 0 and parent < 0):  # complete, or without a way back
        walk.rounds[b], visited = mark, 0
    elif count > 0:
        j = U(walk.choices[U(min(np.int64(draws[b, k, U(0)] * count), count - 1))])
    else:
        j = U(parent)
    walk.visited[b] = visited
    return j, np.int64(j != i), np.int64(0)
