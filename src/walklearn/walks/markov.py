"""Stationary distributions of Markov chains, and of walks that know theirs.

>>> from scipy.sparse import csr_array
>>> stationary_of(csr_array([[0.5, 0.5], [0.25, 0.75]]), np.array([0.5, 0.5])).round(6)
array([0.333333, 0.666667])
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from walklearn.graphs import Graph

if TYPE_CHECKING:
    from scipy.sparse import csr_array

    from walklearn.walks.walk import Walk

Vector = NDArray[np.float64]

MAX_NODES_REDUCED = 500  # a dense matrix of more takes longer than iterating


class NotKnownError(TypeError):
    """A walk does not know its stationary distribution, or its transition matrix.

    Examples
    --------
    >>> from walklearn import graphs, walks
    >>> walks.NonBacktracking().transition_matrix(graphs.ring(5))
    Traceback (most recent call last):
        ...
    walklearn.walks.markov.NotKnownError: a non-backtracking walk has no transition matrix ...
    """


def known_stationary(walk: Walk, graph: Graph, objective: Any) -> Vector | None:
    """Return the stationary distribution of a walk, checked; None if it is not known."""
    try:
        shares = np.asarray(walk.stationary(graph, objective), dtype=np.float64)
    except NotKnownError:
        return None
    if shares.shape != (graph.node_count,) or not abs(shares.sum() - 1.0) < 1e-6:
        raise ValueError(
            f"stationary of {walk!r} must return a number for each of the {graph.node_count} "
            f"nodes, which sum to one, got {shares!r}."
        )
    return shares


def stationary_or_nan(walk: Walk, graph: Graph, objective: Any) -> Vector:
    """Return the stationary distribution of a walk; NaN for each node if it is not known."""
    shares = known_stationary(walk, graph, objective)
    return np.full(graph.node_count, np.nan) if shares is None else shares


def stationary_of(matrix: csr_array, start: Vector) -> Vector:
    """Return the stationary distribution of a chain: exact, for a large one by iteration.

    Parameters
    ----------
    matrix
        The transition matrix.
    start
        A distribution to start the iteration from.

    Returns
    -------
    array
        One number for each state; they sum to one.
    """
    if matrix.shape[0] <= MAX_NODES_REDUCED:
        return _reduce(matrix.toarray())
    transposed, shares = matrix.T.tocsr(), start
    for _ in range(100_000):
        # Averaging with the last distribution damps a period of 2 without changing the limit.
        following = 0.5 * (shares + transposed @ shares)
        change = float(np.abs(following - shares).sum())
        shares = following
        if change < 1e-14:
            break
    return np.asarray(shares / shares.sum())


def _reduce(P: Vector) -> Vector:
    """Return the stationary distribution of a dense chain by state reduction.

    The method is that of Grassmann, Taksar & Heyman (1985). It subtracts nothing, so no digit is
    lost however slowly the chain mixes. It changes P.
    """
    count = len(P)
    for last in range(count - 1, 0, -1):
        P[:last, last] /= P[last, :last].sum()
        P[:last, :last] += np.outer(P[:last, last], P[last, :last])
    shares = np.ones(count)
    for node in range(1, count):
        shares[node] = shares[:node] @ P[:node, node]
    return np.asarray(shares / shares.sum())
