"""Fixed families: nothing is left to chance, and some have spectra in closed form.

>>> torus(3, 4)
Graph(12 nodes, 24 edges)
>>> hypercube(3).family
('hypercube', 3)
"""

import numpy as np

from walklearn.checks import check_whole
from walklearn.graphs.graph import Family, Graph, connect, graph_from_pairs
from walklearn.graphs.pairs import pair_at


def ring(nodes: int) -> Graph:
    """Make a ring: each node is joined to the next, the last to the first; ring(2) is an edge.

    Parameters
    ----------
    nodes
        How many nodes there are.

    Returns
    -------
    Graph
        The graph, connected and without loops.

    Examples
    --------
    >>> ring(5).edges().tolist()
    [[0, 1], [0, 4], [1, 2], [2, 3], [3, 4]]
    """
    nodes = check_whole("nodes", nodes)
    return _lattice(1, nodes, wrap=True, family=("ring", nodes) if nodes >= 3 else ())


def grid(rows: int, columns: int) -> Graph:
    """Make a rectangle of nodes, each joined to those left, right, above and below.

    The node in row r and column c is number r * columns + c.

    Parameters
    ----------
    rows
        How many rows the rectangle has.
    columns
        How many columns it has.

    Returns
    -------
    Graph
        The graph, connected and without loops.

    Examples
    --------
    >>> grid(2, 3).edges().tolist()
    [[0, 1], [0, 3], [1, 2], [1, 4], [2, 5], [3, 4], [4, 5]]
    """
    return _lattice(check_whole("rows", rows), check_whole("columns", columns), wrap=False)


def torus(rows: int, columns: int) -> Graph:
    """Make a grid whose opposite sides are joined.

    A side of length 1 or 2 has nothing more to join.

    Parameters
    ----------
    rows
        How many rows the torus has.
    columns
        How many columns it has.

    Returns
    -------
    Graph
        The graph, connected and without loops.

    Examples
    --------
    >>> torus(3, 4)
    Graph(12 nodes, 24 edges)
    """
    rows, columns = check_whole("rows", rows), check_whole("columns", columns)
    family = ("torus", rows, columns) if min(rows, columns) >= 3 else ()
    return _lattice(rows, columns, wrap=True, family=family)


def complete(nodes: int) -> Graph:
    """Make a complete graph: every node is joined to every other.

    Parameters
    ----------
    nodes
        How many nodes there are.

    Returns
    -------
    Graph
        The graph, connected and without loops.

    Examples
    --------
    >>> complete(5)
    Graph(5 nodes, 10 edges)
    """
    nodes = check_whole("nodes", nodes)
    others = np.arange(nodes - 1)
    indices = others + (others >= np.arange(nodes)[:, None])  # row i skips i
    return connect(np.arange(nodes + 1) * (nodes - 1), indices.ravel(), ("complete", nodes))


def star(nodes: int) -> Graph:
    """Make a star: node 0 is joined to all the others, which have no other neighbour.

    Parameters
    ----------
    nodes
        How many nodes there are. Node 0 is the centre.

    Returns
    -------
    Graph
        The graph, connected and without loops.

    Examples
    --------
    >>> star(4).degrees.tolist()
    [3, 1, 1, 1]
    """
    nodes = check_whole("nodes", nodes)
    leaves = np.arange(1, nodes)
    return graph_from_pairs(nodes, np.zeros_like(leaves), leaves, ("star", nodes))


def hypercube(dimension: int) -> Graph:
    """Make a hypercube: nodes are words of bits, joined where they differ in one bit.

    Parameters
    ----------
    dimension
        How many bits the number of a node has; there are 2^dimension nodes.

    Returns
    -------
    Graph
        The graph, connected and without loops.

    Examples
    --------
    >>> hypercube(3).neighbours(0).tolist()
    [1, 2, 4]
    """
    dimension = check_whole("dimension", dimension, 0, 40)
    words, bits = np.arange(2**dimension), 2 ** np.arange(dimension)
    indices = np.sort(words[:, None] ^ bits, axis=1)
    indptr = np.arange(words.size + 1) * dimension
    return connect(indptr, indices.ravel(), ("hypercube", dimension))


def barbell(clique_size: int, path_length: int) -> Graph:
    """Make two cliques that a path joins: among connected graphs one of the slowest to mix.

    Parameters
    ----------
    clique_size
        How many nodes each of the two cliques has.
    path_length
        How many nodes lie on the path between them; 0 joins the cliques by an edge.

    Returns
    -------
    Graph
        The graph, connected and without loops.

    Examples
    --------
    >>> barbell(5, 3)
    Graph(13 nodes, 24 edges)
    """
    clique_size = check_whole("clique_size", clique_size, 2)
    path_length = check_whole("path_length", path_length, 0)
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
