"""Random graphs that grow: new nodes prefer nodes with many neighbours."""

import numpy as np
from numpy.typing import NDArray

from walklearn.checks import check_whole
from walklearn.graphs.draws import Seed, generator
from walklearn.graphs.graph import Graph, graph_from_pairs
from walklearn.graphs.sparse_rows import Integers


def barabasi_albert(nodes: int, attachments: int, *, seed: Seed = None) -> Graph:
    """Draw hubs: each new node joins distinct nodes with probabilities in proportion to degree.

    The graph starts from a star of attachments + 1 nodes and has exactly the distribution of the
    one in networkx: a new node draws until it has enough distinct nodes. It is always connected.

    Parameters
    ----------
    nodes
        The number of nodes.
    attachments
        The number of nodes that each new node joins.
    seed
        Source of random numbers: an integer, a SeedSequence, a Generator or None.

    Returns
    -------
    Graph

    Examples
    --------
    >>> barabasi_albert(1000, 2, seed=1)
    Graph(1,000 nodes, 1,996 edges)
    """
    nodes = check_whole("nodes", nodes, 2)
    attachments = check_whole("attachments", attachments, 1, nodes - 1)
    rng = generator(seed)
    # Row r lists the ends of the edges of new node r: itself `attachments` times, and those it
    # joins. A node fills as many slots as it has edges, so a uniform slot of the rows above is a
    # node drawn in proportion to degree.
    ends = np.empty((nodes - attachments, 2 * attachments), dtype=np.int64)
    ends[:, :attachments] = np.arange(attachments, nodes)[:, None]
    ends[0, attachments:] = np.arange(attachments)
    start = 1
    while start < len(ends):
        _attach(rng, ends, start, min(2 * start, len(ends)))
        start *= 2
    return graph_from_pairs(nodes, ends[:, :attachments].ravel(), ends[:, attachments:].ravel())


def _attach(rng: np.random.Generator, ends: Integers, start: int, stop: int) -> None:
    """Fill in the targets of a block of new nodes, all at once, as if they came in turn.

    Each new node has a list of drawn slots and takes the first distinct nodes in them. A slot may
    be the still unknown target of another node of the block, so all slots are read again until
    nothing changes. A node reads only from earlier ones, so there is just one such fixed point: the
    result of a loop over the nodes.
    """
    attachments = ends.shape[1] // 2
    slots, targets = ends.reshape(-1), ends[start:stop, attachments:]
    slot_counts = 2 * attachments * np.arange(start, stop)[:, None]
    draws = rng.integers(0, slot_counts, size=(stop - start, 2 * attachments))
    targets[:] = -1 - np.arange(targets.size).reshape(targets.shape)  # unknown, all different
    while True:
        taken = slots[draws[:, :attachments]]
        ordered = np.sort(taken, axis=1)
        repeating = np.flatnonzero((ordered[:, 1:] == ordered[:, :-1]).any(axis=1))
        is_new = _is_first_in_row(slots[draws[repeating]])
        if (is_new.sum(axis=1) < attachments).any():
            draws = np.hstack([draws, rng.integers(0, slot_counts, size=draws.shape)])
            continue
        chosen = is_new & (is_new.cumsum(axis=1) <= attachments)
        taken[repeating] = slots[draws[repeating][chosen]].reshape(-1, attachments)
        if np.array_equal(taken, targets):
            return
        targets[:] = taken


def _is_first_in_row(values: Integers) -> NDArray[np.bool_]:
    """Mark the entries that do not occur further left in their row."""
    order = values.argsort(axis=1, kind="stable")
    ordered = np.take_along_axis(values, order, axis=1)
    first = np.ones(values.shape, dtype=np.bool_)
    np.put_along_axis(first, order[:, 1:], ordered[:, 1:] != ordered[:, :-1], axis=1)
    return first
