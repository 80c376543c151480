"""Random graphs whose pairs are joined independently: by chance, or by distance."""

from collections.abc import Sequence

import numpy as np
from numpy.typing import ArrayLike, NDArray

from walklearn.checks import check_number, check_whole
from walklearn.graphs.draws import Connected, Seed, drawn, generator
from walklearn.graphs.graph import Graph
from walklearn.graphs.pairs import Pairs, narrow_pairs_at, pair_at
from walklearn.graphs.sparse_rows import Integers


def erdos_renyi(
    nodes: int, probability: float, *, seed: Seed = None, connected: Connected = "error"
) -> Graph:
    """Draw G(n, p): each pair is an edge with the same probability, independently of the others.

    The distribution is exact. Below a probability of about ln(n)/n some node has no neighbour.

    Parameters
    ----------
    nodes
        The number of nodes.
    probability
        The probability of each edge.
    seed
        Source of random numbers: an integer, a SeedSequence, a Generator or None.
    connected
        If it is not connected: raise an "error", "retry", or keep the "largest" component.

    Returns
    -------
    Graph

    Examples
    --------
    >>> erdos_renyi(20, 0.3, seed=1)
    Graph(20 nodes, 47 edges)
    """
    nodes = check_whole("nodes", nodes)
    probability = check_number("probability", probability, minimum=0.0, maximum=1.0)
    rng = generator(seed)
    pairs = nodes * (nodes - 1) // 2
    return drawn(nodes, lambda: narrow_pairs_at(_successes(rng, pairs, probability)), connected)


def stochastic_block(
    sizes: Sequence[int],
    probabilities: ArrayLike,
    *,
    seed: Seed = None,
    connected: Connected = "error",
) -> Graph:
    """Draw communities: the probability of an edge depends on the communities of its nodes.

    Nodes are numbered community by community. The distribution is exact.

    Parameters
    ----------
    sizes
        The number of nodes of each community.
    probabilities
        A symmetric matrix: the probability of an edge between a node of community a and one of
        community b.
    seed
        Source of random numbers: an integer, a SeedSequence, a Generator or None.
    connected
        If it is not connected: raise an "error", "retry", or keep the "largest" component.

    Returns
    -------
    Graph

    Examples
    --------
    >>> stochastic_block([50, 50], [[0.3, 0.01], [0.01, 0.3]], seed=1)
    Graph(100 nodes, 752 edges)
    """
    sizes = [check_whole(f"sizes[{block}]", size) for block, size in enumerate(sizes)]
    chances = _block_probabilities(probabilities, len(sizes))
    starts = np.concatenate([[0], np.cumsum(sizes)])
    rng = generator(seed)

    def block(a: int, b: int) -> Pairs:
        if a == b:
            i, j = pair_at(_successes(rng, sizes[a] * (sizes[a] - 1) // 2, chances[a, a]))
        else:
            i, j = np.divmod(_successes(rng, sizes[a] * sizes[b], chances[a, b]), sizes[b])
        return i + starts[a], j + starts[b]

    def draw() -> Pairs:
        blocks = [block(a, b) for b in range(len(sizes)) for a in range(b + 1)]
        return np.concatenate([i for i, _ in blocks]), np.concatenate([j for _, j in blocks])

    return drawn(sum(sizes), draw, connected)


def geometric(
    nodes: int, radius: float, *, seed: Seed = None, connected: Connected = "error"
) -> Graph:
    """Draw nodes uniformly on the unit square, and join those within `radius` of each other.

    Parameters
    ----------
    nodes
        The number of nodes.
    radius
        The distance up to which two nodes are joined.
    seed
        Source of random numbers: an integer, a SeedSequence, a Generator or None.
    connected
        If it is not connected: raise an "error", "retry", or keep the "largest" component.

    Returns
    -------
    Graph

    Examples
    --------
    >>> geometric(50, 0.4, seed=1).node_count
    50
    """
    from scipy.spatial import cKDTree  # slow to import

    nodes = check_whole("nodes", nodes)
    check_number("radius", radius, above=0.0)
    rng = generator(seed)

    def draw() -> Pairs:
        pairs = cKDTree(rng.random((nodes, 2))).query_pairs(radius, output_type="ndarray")
        i, j = pairs.astype(np.int64).T
        return i, j

    return drawn(nodes, draw, connected)


def _successes(rng: np.random.Generator, trials: int, probability: float) -> Integers:
    """Draw the ascending numbers of the trials that succeed, at a cost of the successes only.

    The gaps between successes are geometric, so each is drawn in place of the trials in it.
    """
    parts: list[Integers] = []
    last = -1
    while probability > 0 and last < trials - 1:
        expected = (trials - 1 - last) * probability
        count = int(expected + 4 * expected**0.5) + 10
        # A gap beyond the end may be cut there, so that the sum cannot overflow.
        positions = rng.geometric(probability, size=count)  # still gaps; all is done in place
        np.minimum(positions, trials + 1, out=positions)
        positions[0] += last
        np.cumsum(positions, out=positions)
        last = int(positions[-1])
        parts.append(positions[: np.searchsorted(positions, trials)])
    return parts[0] if len(parts) == 1 else np.concatenate([np.empty(0, np.int64), *parts])


def _block_probabilities(probabilities: ArrayLike, blocks: int) -> NDArray[np.float64]:
    chances = np.asarray(probabilities, dtype=np.float64)
    if blocks == 0 or chances.shape != (blocks, blocks):
        raise ValueError(
            f"probabilities must have a row and a column for each of the {blocks} sizes, "
            f"got shape {chances.shape}."
        )
    if not ((chances >= 0) & (chances <= 1)).all():
        raise ValueError("probabilities must all be between 0 and 1.")
    if not np.array_equal(chances, chances.T):
        raise ValueError("probabilities must be symmetric: edges have no direction.")
    return chances
