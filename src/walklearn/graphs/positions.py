"""Positions of the nodes of a graph in a drawing.

The start is the two slowest modes of the graph's Laplacian, which unfold rings and grids. Then
Fruchterman and Reingold's springs move the nodes: neighbours attract each other with force d²/k,
all nodes repel each other with k²/d, and the longest move shrinks with every round.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from walklearn.graphs.graph import Graph

MAX_NODES = 1_500  # springs between all pairs take a second; more dots are unreadable
_ROUNDS = 120


def spring_layout(graph: Graph) -> NDArray[np.float64]:
    """Place nodes in [−1, 1]² by springs between neighbours; a graph always has one layout.

    Parameters
    ----------
    graph
        A graph with at most 1500 nodes.

    Returns
    -------
    NDArray[np.float64]
        The position of each node, shape (N, 2).

    Examples
    --------
    >>> from walklearn import graphs
    >>> radius = np.hypot(*spring_layout(graphs.ring(12)).T)  # a ring becomes a circle
    >>> bool(radius.std() < 0.05 * radius.mean())
    True
    """
    count = graph.node_count
    if count > MAX_NODES:
        raise ValueError(
            f"the graph has {count} nodes, and a drawing at most {MAX_NODES}. Draw a smaller graph "
            "of the same family."
        )
    if count == 1:
        return np.zeros((1, 2))
    adjacency = graph.adjacency().toarray()
    positions = _slowest_modes(adjacency)
    ideal = 1.0 / np.sqrt(count)
    for longest in np.linspace(0.1, 0.0, _ROUNDS, endpoint=False):
        difference = positions[:, None] - positions[None]
        distance = np.maximum(np.linalg.norm(difference, axis=2), 1e-3)
        force = ideal**2 / distance**2 - adjacency * distance / ideal
        move = np.einsum("ij,ijk->ik", force, difference)
        length = np.maximum(np.linalg.norm(move, axis=1, keepdims=True), 1e-12)
        positions = positions + move / length * np.minimum(length, longest)
    positions -= (positions.max(axis=0) + positions.min(axis=0)) / 2
    scaled: NDArray[np.float64] = positions / max(float(np.abs(positions).max()), 1e-12)
    return scaled


def _slowest_modes(adjacency: NDArray[np.float64]) -> NDArray[np.float64]:
    count = len(adjacency)
    laplacian = np.diag(adjacency.sum(axis=1)) - adjacency
    modes = np.linalg.eigh(laplacian)[1][:, 1:3]
    if modes.shape[1] < 2:
        modes = np.column_stack([modes, np.zeros(count)])
    # Equal nodes (such as those of a star) have one position, which no spring could separate.
    jitter: NDArray[np.float64] = np.random.default_rng(0).standard_normal((count, 2))
    scaled: NDArray[np.float64] = modes * np.sqrt(count) / 2 + 0.01 * jitter
    return scaled
