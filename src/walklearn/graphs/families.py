"""Deterministic families of graphs; the spectra of some are known in closed form."""

import numpy as np

from walklearn.checks import check_whole
from walklearn.graphs.graph import Family, Graph, graph_from_pairs, graph_from_rows
from walklearn.graphs.pairs import pair_at


def ring(nodes: int) -> Graph:
    """Make a ring: each node is joined to the next, and the last to the first. ring(2) is one edge.

    Parameters
    ----------
    nodes
        The number of nodes.

    Returns
    -------
    Graph

    Examples
    --------
    >>> ring(5).edges().tolist()
    [[0, 1], [0, 4], [1, 2], [2, 3], [3, 4]]
    """
    nodes = check_whole("nodes", nodes)
    return _lattice(1, nodes, wrap=True, family=("ring", nodes) if nodes >= 3 else ())


def grid(rows: int, columns: int) -> Graph:
    """Make a rectangular grid: nodes are joined to their neighbours left, right, above and below.

    The node in row r and column c is number r * columns + c.

    Parameters
    ----------
    rows, columns
        The numbers of rows and columns.

    Returns
    -------
    Graph

    Examples
    --------
    >>> grid(2, 3).edges().tolist()
    [[0, 1], [0, 3], [1, 2], [1, 4], [2, 5], [3, 4], [4, 5]]
    """
    return _lattice(check_whole("rows", rows), check_whole("columns", columns), wrap=False)


def torus(rows: int, columns: int) -> Graph:
    """Make a grid with opposite sides joined; a side of length 2 gets no second edge.

    Parameters
    ----------
    rows, columns
        The numbers of rows and columns.

    Returns
    -------
    Graph

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
        The number of nodes.

    Returns
    -------
    Graph

    Examples
    --------
    >>> complete(5)
    Graph(5 nodes, 10 edges)
    """
    nodes = check_whole("nodes", nodes)
    others = np.arange(nodes - 1)
    indices = others + (others >= np.arange(nodes)[:, None])  # row i skips i
    return graph_from_rows(np.arange(nodes + 1) * (nodes - 1), indices.ravel(), ("complete", nodes))


def star(nodes: int) -> Graph:
    """Make a star: node 0 is joined to all others, which have no other neighbour.

    Parameters
    ----------
    nodes
        The number of nodes.

    Returns
    -------
    Graph

    Examples
    --------
    >>> star(4).degrees.tolist()
    [3, 1, 1, 1]
    """
    nodes = check_whole("nodes", nodes)
    leaves = np.arange(1, nodes)
    return graph_from_pairs(nodes, np.zeros_like(leaves), leaves, ("star", nodes))


def hypercube(dimension: int) -> Graph:
    """Make a hypercube: nodes are bit strings, joined if they differ in one bit.

    Parameters
    ----------
    dimension
        The number of bits; there are 2^dimension nodes.

    Returns
    -------
    Graph

    Examples
    --------
    >>> hypercube(3).neighbours(0).tolist()
    [1, 2, 4]
    """
    dimension = check_whole("dimension", dimension, 0, 40)
    words, bits = np.arange(2**dimension), 2 ** np.arange(dimension)
    indices = np.sort(words[:, None] ^ bits, axis=1)
    indptr = np.arange(words.size + 1) * dimension
    return graph_from_rows(indptr, indices.ravel(), ("hypercube", dimension))


def barbell(clique_size: int, path_length: int) -> Graph:
    """Make two cliques joined by a path, on which walks mix very slowly.

    Parameters
    ----------
    clique_size
        The number of nodes of each clique.
    path_length
        The number of nodes between the cliques; if 0, one edge joins them.

    Returns
    -------
    Graph

    Examples
    --------
    >>> barbell(5, 3)
    Graph(13 nodes, 24 edges)
    """
    clique_size = check_whole("clique_size", clique_size, 2)
    path_length = check_whole("path_length", path_length, 0)
    second_clique = clique_size + path_length
    i, j = pair_at(np.arange(clique_size * (clique_size - 1) // 2))
    path = np.arange(clique_size - 1, second_clique)
    sources = np.concatenate([i, path, i + second_clique])
    targets = np.concatenate([j, path + 1, j + second_clique])
    return graph_from_pairs(second_clique + clique_size, sources, targets)


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
    is_edge = sources != targets  # a side of length 1 would join a node to itself
    return graph_from_pairs(node.size, sources[is_edge], targets[is_edge], family)
