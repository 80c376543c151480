"""The next node of each walk: the twins of `Walk.hop`."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from walklearn.simulation.kernels.arithmetic import Array, U
from walklearn.simulation.kernels.compilation import by_type, inlined


class Chain(NamedTuple):
    """The graph and the Metropolis rule: propose a uniform neighbour, accept it by its score."""

    indptr: Array
    indices: Array
    score: Array  # (lines · nodes,), flat; of `Independent` the cumulative distribution
    stride: int  # the nodes, if each replicate has its own scores; else 0
    laziness: float
    jump_probability: float  # 0 unless the walk jumps


class Metropolis(NamedTuple):
    """The Metropolis walk; see `walks` for all walks."""

    chain: Chain


class NonBacktracking(NamedTuple):
    """The Metropolis walk, but not back to the previous node."""

    chain: Chain


class Jumping(NamedTuple):
    """The Metropolis walk with jumps of several hops."""

    chain: Chain
    stops: Array  # the probability that a jump ends after its first hop, its second, …


class HistoryDriven(NamedTuple):
    """The Metropolis walk with a preference for nodes with few visits."""

    chain: Chain
    alpha: float
    counts: Array  # (tokens, nodes), 1 + visits; changed in place


class Independent(NamedTuple):
    """Nodes drawn independently of the graph."""

    chain: Chain


@by_type
def hop(walk, b, i, previous, draws, k):
    """Return the next node of token b, the messages of the hop, and the questions among them."""


@inlined
def proposal(chain, i, u):
    """Return the place of the proposed neighbour in `indices`, and the number that decides."""
    u = max(u - chain.jump_probability, 0.0) / (1.0 - chain.jump_probability)
    stays = u < chain.laziness
    u = 0.0 if stays else (u - chain.laziness) / (1.0 - chain.laziness)
    first, degree = chain.indptr[i], chain.indptr[i + U(1)] - chain.indptr[i]
    index = min(np.int64(u * degree), degree - 1)
    return U(first + index), np.inf if stays else u * degree - index


@inlined
def _accept(chain, b, i, u):
    """Return the proposed neighbour if it is accepted, otherwise node i."""
    index, threshold = proposal(chain, i, u)
    j, line = U(chain.indices[index]), b * U(chain.stride)
    return j if threshold * chain.score[line + i] <= chain.score[line + j] else i


@hop.version(Metropolis)
def _metropolis(walk, b, i, previous, draws, k):
    j = _accept(walk.chain, b, i, draws[b, k, U(0)])
    return j, np.int64(j != i), np.int64(0)


@hop.version(NonBacktracking)
def _non_backtracking(walk, b, i, previous, draws, k):
    chain = walk.chain
    j = _accept(chain, b, i, draws[b, k, U(0)])
    # A token that stays is not at its previous node, so this need not check whether it moved.
    # Processors mispredict that check whenever a proposal is rejected.
    if j == previous:
        first, others = chain.indptr[i], chain.indptr[i + U(1)] - chain.indptr[i] - 1
        scaled = draws[b, k, U(1)] * others
        index = max(min(np.int64(scaled), others - 1), 0)
        # Neighbours are sorted: skip the previous node unless it is the only one.
        skips = np.int64(U(chain.indices[U(first + index)]) >= previous and others > 0)
        other, line = U(chain.indices[U(first + index + skips)]), b * U(chain.stride)
        score = chain.score[line + i]
        ratio = min(score, chain.score[line + other]) / min(score, chain.score[line + previous])
        j = other if scaled - index <= ratio * ratio else previous
    return j, np.int64(j != i), np.int64(0)


@hop.version(Jumping)
def _jumping(walk, b, i, previous, draws, k):
    chain, u, hops = walk.chain, draws[b, k, U(0)], np.int64(0)
    if u >= chain.jump_probability:
        j = _accept(chain, b, i, u)
        return j, np.int64(j != i), hops
    j, u, continues = i, u / chain.jump_probability, True
    while continues:
        first, degree = chain.indptr[j], chain.indptr[j + U(1)] - chain.indptr[j]
        scaled = u * degree
        index = min(np.int64(scaled), degree - 1)
        j = U(chain.indices[U(first + index)])
        continues = scaled - index >= walk.stops[U(hops)] and hops + 1 < walk.stops.size
        hops += 1
        u = draws[b, k, U(hops)] if continues else 0.0
    return j, hops, np.int64(0)


@hop.version(HistoryDriven)
def _history_driven(walk, b, i, previous, draws, k):
    chain = walk.chain
    index, threshold = proposal(chain, i, draws[b, k, U(0)])
    j, line, questions = i, b * U(chain.stride), np.int64(0)
    walk.counts[b, i] += 1
    if threshold < np.inf:
        other, questions = U(chain.indices[index]), np.int64(2)
        score, other_score = chain.score[line + i], chain.score[line + other]
        degree = chain.indptr[i + U(1)] - chain.indptr[i]
        other_degree = chain.indptr[other + U(1)] - chain.indptr[other]
        visits, other_visits = walk.counts[b, i], walk.counts[b, other]
        excess = (visits * other_score * other_degree) / (other_visits * score * degree)
        if threshold <= excess**walk.alpha * other_score / score:
            j = other
    return j, questions + np.int64(j != i), questions


@hop.version(Independent)
def _independent(walk, b, i, previous, draws, k):
    """Return the node whose part of the cumulative distribution contains u."""
    chain = walk.chain
    u, low, high = draws[b, k, U(0)], U(0), U(chain.indptr.size - 2)
    while low < high:
        middle = (low + high) // U(2)
        if chain.score[b * U(chain.stride) + middle] <= u:
            low = middle + U(1)
        else:
            high = middle
    return low, np.int64(low != i), np.int64(0)
