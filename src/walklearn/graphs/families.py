"""Fixed families: nothing is left to chance, and some have spectra in closed form.

>>> torus(3, 4)
Graph(12 nodes, 24 edges)
>>> hypercube(3).family
('hypercube', 3)
"""

import numpy as np

from walklearn.graphs.arguments import whole
from walklearn.graphs.graph import Family, Graph, connect, graph_from_pairs
from walklearn.graphs.pairs import pair_at


def ring(nodes: int) -> Graph:
    """Each node is joined to the next and the last to the first; ring(2) is a single edge.

    Examples
    --------
    >>> ring(5).edges().tolist()
    [[0, 1], [0, 4], [1, 2], [2, 3], [3, 4]]
    """
    nodes = whole("nodes", nodes, 1)
    return _lattice(1, nodes, wrap=True, family=("ring", nodes) if nodes >= 3 else ())


def grid(rows: int, columns: int) -> Graph:
    """A rectangle where node r * columns + c is joined to those left, right, above and below."""
    return _lattice(whole("rows", rows, 1), whole("columns", columns, 1), wrap=False)


def torus(rows: int, columns: int) -> Graph:
    """A grid whose opposite sides are joined; a side of 1 or 2 has nothing more to join."""
    rows, columns = whole("rows", rows, 1), whole("columns", columns, 1)
    family = ("torus", rows, columns) if min(rows, columns) >= 3 else ()
    return _lattice(rows, columns, wrap=True, family=family)


def complete(nodes: int) -> Graph:
    """Everybody is joined to everybody."""
    nodes = whole("nodes", nodes, 1)
    others = np.arange(nodes - 1)
    indices = others + (others >= np.arange(nodes)[:, None])  # row i skips i
    return connect(np.arange(nodes + 1) * (nodes - 1), indices.ravel(), ("complete", nodes))


def star(nodes: int) -> Graph:
    """Node 0 is joined to all the others, which have no other neighbour."""
    nodes = whole("nodes", nodes, 1)
    leaves = np.arange(1, nodes)
    return graph_from_pairs(nodes, np.zeros_like(leaves), leaves, ("star", nodes))


def hypercube(dimension: int) -> Graph:
    """The 2^dimension words of bits, joined where they differ in one bit."""
    dimension = whole("dimension", dimension, 0, 40)
    words, bits = np.arange(2**dimension), 2 ** np.arange(dimension)
    indices = np.sort(words[:, None] ^ bits, axis=1)
    indptr = np.arange(words.size + 1) * dimension
    return connect(indptr, indices.ravel(), ("hypercube", dimension))


def barbell(clique_size: int, path_length: int) -> Graph:
    """Two cliques joined by a path of `path_length` further nodes: the slowest to mix."""
    clique_size = whole("clique_size", clique_size, 2)
    path_length = whole("path_length", path_length, 0)
    second = clique_size + path_length
    i, j = pair_at(np.arange(clique_size * (clique_size - 1) // 2))
    path = np.arange(clique_size - 1, second)
    sources = np.concatenate([i, path, i + second])
    targets = np.concatenate([j, path + 1, j + second])
    return graph_from_pairs(second + clique_size, sources, targets)


def _lattice(rows: int, columns: int, wrap: bool, family: Family = ()) -> Graph:
    node = np.arange(rows * columns).reshape(rows, columns)
    right = np.roll(node, -1, axis=1)
    below = np.roll(node, -1, axis=0)
    if wrap:
        pairs = [(node, right), (node, below)]
    else:
        pairs = [(node[:, :-1], right[:, :-1]), (node[:-1], below[:-1])]
    sources = np.concatenate([source.ravel() for source, _ in pairs])
    targets = np.concatenate([target.ravel() for _, target in pairs])
    proper = sources != targets  # a side of 1 wraps onto itself
    return graph_from_pairs(node.size, sources[proper], targets[proper], family)
