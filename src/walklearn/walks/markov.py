"""Stationary distributions of Markov chains and of walks."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from walklearn.arrays import Vector
from walklearn.graphs import Graph
from walklearn.graphs.sparse_rows import SparseMatrix

if TYPE_CHECKING:
    from walklearn.walks.walk import Walk


MAX_NODES_REDUCED = 500  # beyond this, iterating is faster than reducing a dense matrix


class StationaryUnknownError(TypeError):
    """A walk does not know its stationary distribution, or its transition matrix."""


def checked_stationary(walk: Walk, graph: Graph, objective: Any) -> Vector:
    """Return the stationary distribution of a walk, checked."""
    shares = np.asarray(walk.stationary(graph, objective), dtype=np.float64)
    is_valid = shares.shape == (graph.node_count,) and (shares >= 0.0).all()
    if not is_valid or not abs(shares.sum() - 1.0) < 1e-6:
        raise ValueError(
            f"stationary of {walk!r} must return a number of at least 0 for each of the "
            f"{graph.node_count} nodes, which sum to one, got {shares!r}."
        )
    return shares


def known_stationary(walk: Walk, graph: Graph, objective: Any) -> Vector | None:
    """Return the stationary distribution of a walk, checked; None if it is not known."""
    try:
        return checked_stationary(walk, graph, objective)
    except StationaryUnknownError:
        return None


def stationary_or_nan(walk: Walk, graph: Graph, objective: Any) -> Vector:
    """Return the stationary distribution of a walk; NaN for each node if it is not known."""
    shares = known_stationary(walk, graph, objective)
    return np.full(graph.node_count, np.nan) if shares is None else shares


def stochastic_matrix(graph: Graph, shares: Vector) -> SparseMatrix:
    """Return the sparse transition matrix with these probabilities of moving to neighbours.

    `shares` has an entry for each of `graph.indices`. The diagonal holds the remainder to one.
    """
    from scipy.sparse import csr_array, diags_array

    links = csr_array(
        (shares, graph.indices, graph.indptr), shape=(graph.node_count, graph.node_count)
    )
    # Rounding must not give a node that never stays a positive probability of staying.
    stay_probabilities = np.maximum(1.0 - links.sum(axis=1), 0.0)
    stay_probabilities[stay_probabilities < 1e-14] = 0.0
    return csr_array(links + diags_array(stay_probabilities))


def stationary_of(matrix: SparseMatrix, start: Vector) -> Vector:
    """Return the stationary distribution of a chain: exact, or for a large one by iteration.

    The iteration begins at the distribution `start`.
    """
    if matrix.shape[0] <= MAX_NODES_REDUCED:
        return _reduce(matrix.toarray())
    transposed, shares = matrix.T.tocsr(), start
    for _ in range(100_000):
        # Averaging with the last distribution damps a period of 2 without changing the limit.
        next_shares = 0.5 * (shares + transposed @ shares)
        change = float(np.abs(next_shares - shares).sum())
        shares = next_shares
        if change < 1e-14:
            break
    return np.asarray(shares / shares.sum())


def _reduce(P: Vector) -> Vector:
    """Return the stationary distribution of a dense chain by state reduction.

    The method is that of Grassmann, Taksar & Heyman (1985). It subtracts nothing, so no digit is
    lost, even if the chain mixes slowly. P is changed in place.
    """
    count = len(P)
    for last in range(count - 1, 0, -1):
        P[:last, last] /= P[last, :last].sum()
        P[:last, :last] += np.outer(P[:last, last], P[last, :last])
    shares = np.ones(count)
    for node in range(1, count):
        shares[node] = shares[:node] @ P[:node, node]
    return np.asarray(shares / shares.sum())
