"""Random graphs made by rewiring: edges are drawn, and those that must not stay are moved."""

import numpy as np

from walklearn.checks import check_number, check_whole
from walklearn.graphs.draws import Connected, Seed, drawn, generator
from walklearn.graphs.graph import Graph
from walklearn.graphs.pairs import Pairs, contains, is_new_edge, pair_at, pair_keys
from walklearn.graphs.sparse_rows import Integers

REPAIR_ROUNDS = 200  # rounds of switches before random_regular starts from a new pairing


def random_regular(
    nodes: int, degree: int, *, seed: Seed = None, connected: Connected = "error"
) -> Graph:
    """Draw a graph in which every node has the same degree, and which is otherwise random.

    From degree 3 on it is connected almost surely. Every node gets `degree` stubs and the stubs are
    paired at random. Up to degree 3 a pairing with a loop or a double edge is rejected, which is
    uniform over all such graphs. Above, rejection would take too long, so bad edges are switched:
    ab and a random edge cd become ac and bd where these are new. The number of bad edges does not
    grow with the graph, so large graphs are close to uniform; small ones of degree 4 and more are
    not exactly uniform.

    Parameters
    ----------
    nodes
        The number of nodes.
    degree
        The number of neighbours of each node.
    seed
        Source of random numbers: an integer, a SeedSequence, a Generator or None.
    connected
        If it is not connected: raise an "error", "retry", or keep the "largest" component.

    Returns
    -------
    Graph

    Examples
    --------
    >>> random_regular(10, 3, seed=1).degrees.tolist()
    [3, 3, 3, 3, 3, 3, 3, 3, 3, 3]
    """
    nodes = check_whole("nodes", nodes)
    degree = check_whole("degree", degree, 0, nodes - 1)
    if nodes * degree % 2:
        raise ValueError(
            f"nodes * degree must be even, got {nodes} * {degree}: change one of them by one."
        )
    rng = generator(seed)
    if 2 * degree < nodes:
        return drawn(nodes, lambda: _regular_pairs(rng, nodes, degree), connected)

    def complement() -> Pairs:  # switches fail for dense edges, not for their sparse complement
        i, j = _regular_pairs(rng, nodes, nodes - 1 - degree)
        low, high = np.minimum(i, j), np.maximum(i, j)
        remains = np.ones(nodes * (nodes - 1) // 2, dtype=np.bool_)
        remains[high * (high - 1) // 2 + low] = False
        return pair_at(np.flatnonzero(remains))

    return drawn(nodes, complement, connected)


def _regular_pairs(rng: np.random.Generator, nodes: int, degree: int) -> Pairs:
    rounds = 1 if degree <= 3 else REPAIR_ROUNDS  # one round: correct at once, or a new pairing
    while True:
        stubs = rng.permutation(np.repeat(np.arange(nodes), degree))
        i, j = stubs[0::2].copy(), stubs[1::2].copy()
        if _repair_by_switches(rng, nodes, i, j, rounds):
            return i, j


def _repair_by_switches(
    rng: np.random.Generator, nodes: int, i: Integers, j: Integers, rounds: int
) -> bool:
    """Switch bad edges with good ones, in place, all at once; return True if none is left."""
    for _ in range(rounds):
        keys = pair_keys(nodes, i, j)
        ordered = np.sort(keys)
        is_bad = (i == j) | contains(ordered[1:][ordered[1:] == ordered[:-1]], keys)
        bad, good = np.flatnonzero(is_bad), np.flatnonzero(~is_bad)
        if not bad.size:
            return True
        count = min(bad.size, good.size)
        bad = rng.permutation(bad)[:count]
        good = rng.choice(good, size=count, replace=False)
        turn = rng.random(count) < 0.5
        a, b = i[bad], j[bad]
        c, d = np.where(turn, j[good], i[good]), np.where(turn, i[good], j[good])
        fresh = is_new_edge(nodes, ordered, np.concatenate([a, b]), np.concatenate([c, d]))
        accepted = fresh[:count] & fresh[count:]
        bad, good = bad[accepted], good[accepted]
        i[bad], j[bad] = a[accepted], c[accepted]
        i[good], j[good] = b[accepted], d[accepted]
    return False


def watts_strogatz(
    nodes: int,
    degree: int,
    rewiring: float,
    *,
    seed: Seed = None,
    connected: Connected = "error",
) -> Graph:
    """Draw a small world: a ring of `degree` nearest neighbours with some edges rewired.

    Each edge keeps its first end and, with probability `rewiring`, moves the other to a uniform
    node, avoiding loops and existing edges. All moves happen at once and clashes are drawn again;
    the original paper moves one edge after the other. A node joined to all others keeps its edges.

    Parameters
    ----------
    nodes
        The number of nodes.
    degree
        The number of nearest neighbours of a node before rewiring; an even number.
    rewiring
        The probability that an edge is rewired.
    seed
        Source of random numbers: an integer, a SeedSequence, a Generator or None.
    connected
        If it is not connected: raise an "error", "retry", or keep the "largest" component.

    Returns
    -------
    Graph

    Examples
    --------
    >>> watts_strogatz(100, 4, 0.1, seed=1)
    Graph(100 nodes, 200 edges)
    """
    nodes = check_whole("nodes", nodes)
    degree = check_whole("degree", degree, 0, nodes - 1)
    rewiring = check_number("rewiring", rewiring, minimum=0.0, maximum=1.0)
    if degree % 2:
        raise ValueError(f"degree must be even, half on each side of the ring, got {degree}.")
    rng = generator(seed)

    def draw() -> Pairs:
        sources = np.tile(np.arange(nodes), degree // 2)
        targets = (sources + np.repeat(np.arange(1, degree // 2 + 1), nodes)) % nodes
        moving = np.flatnonzero(rng.random(sources.size) < rewiring)
        _move_targets(rng, nodes, sources, targets, moving)
        return sources, targets

    return drawn(nodes, draw, connected)


def _move_targets(
    rng: np.random.Generator, nodes: int, sources: Integers, targets: Integers, moving: Integers
) -> None:
    """Give the edges at the positions `moving` new targets, in place.

    If nearly all pairs are edges, many rounds move few or none, so the sorted list of edges is
    updated rather than sorted again.
    """
    ordered = np.sort(pair_keys(nodes, sources, targets))
    degrees = np.bincount(sources, minlength=nodes) + np.bincount(targets, minlength=nodes)
    while (moving := moving[degrees[sources[moving]] < nodes - 1]).size:
        proposed = rng.integers(nodes, size=moving.size)
        accepted = is_new_edge(nodes, ordered, sources[moving], proposed)
        moved, moving = moving[accepted], moving[~accepted]
        degrees -= np.bincount(targets[moved], minlength=nodes)
        old = pair_keys(nodes, sources[moved], targets[moved])
        targets[moved] = proposed[accepted]
        degrees += np.bincount(targets[moved], minlength=nodes)
        new = np.sort(pair_keys(nodes, sources[moved], targets[moved]))
        ordered = np.delete(ordered, np.searchsorted(ordered, old))
        ordered = np.insert(ordered, np.searchsorted(ordered, new), new)
