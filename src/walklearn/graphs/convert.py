"""Graphs from edge lists, SciPy matrices, networkx, igraph and text files, and back to networkx.

A graph must be simple, undirected and connected; otherwise an error names the wrong edge or node.
`connected="largest"` keeps the largest connected component, with nodes renumbered from 0 in order.

>>> from_edges([(0, 1), (2, 3), (3, 4)], connected="largest").edges().tolist()
[[0, 1], [1, 2]]
"""

import os
import warnings
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike

from walklearn.extras import extra
from walklearn.graphs.draws import Seed
from walklearn.graphs.edge_files import read_pairs
from walklearn.graphs.graph import (
    LARGEST_HINT,
    Graph,
    WhenDisconnected,
    graph_from_pairs,
    graph_from_rows,
)
from walklearn.graphs.names import draw_family, is_family, suggest_families
from walklearn.graphs.sparse_rows import Integers, check_edges, checked_rows
from walklearn.wording import format_value, join_names

if TYPE_CHECKING:
    import networkx


def as_graph(
    graph: Any,
    nodes: int | None = None,
    *,
    seed: Seed = None,
    connected: WhenDisconnected = "error",
) -> Graph:
    """Make a graph from a graph of another package, a matrix, a file or the name of a family.

    Parameters
    ----------
    graph
        A walklearn, networkx or igraph graph; a square adjacency matrix of SciPy's or NumPy's;
        the path of an edge list; or the name of a family, from which a graph with `nodes` nodes is
        drawn. If a file has the name of a family, pass a `pathlib.Path`.
    nodes
        The number of nodes; a graph with more or fewer is refused.
    seed
        Source of random numbers for a family: an integer, a SeedSequence, a Generator or None.
    connected
        For a disconnected graph: "error", or "largest" to keep the largest connected component.

    Returns
    -------
    Graph

    Examples
    --------
    >>> as_graph("ring", 5)
    Graph(5 nodes, 5 edges)
    """
    packages = packages_of(graph)
    if isinstance(graph, Graph):
        result = graph
    elif isinstance(graph, str) and is_family(graph):
        if nodes is None:
            raise ValueError(f"the graph {graph!r} needs a number of nodes (nodes, --nodes).")
        result = draw_family(graph, nodes, seed)
    elif isinstance(graph, str | os.PathLike):
        if isinstance(graph, str) and not Path(graph).exists():
            raise ValueError(
                f"{graph!r} is neither a family of graphs nor an existing file."
                f'{suggest_families(graph)} A file has an edge such as "3 7" on each line.'
            )
        result = read_edge_list(graph, connected=connected)
    elif "networkx" in packages:
        result = from_networkx(graph, connected=connected)
    elif "igraph" in packages:
        result = from_igraph(graph, connected=connected)
    elif packages & {"scipy", "numpy"} and np.ndim(graph) == 2:
        result = from_scipy(graph, connected=connected)
    else:
        raise TypeError(
            "a graph is a walklearn, networkx or igraph graph, an adjacency matrix, the path of an "
            f"edge list or a name such as 'erdos-renyi', got {type(graph).__name__}. For a list of "
            "edges use graphs.from_edges."
        )
    if nodes is not None and result.node_count != nodes:
        raise ValueError(
            f"the graph has {result.node_count} nodes, but there should be {nodes}, because "
            "the walk visits each node. Add or remove nodes, or name a family, such as "
            "graph='erdos-renyi'."
        )
    return result


def packages_of(graph: Any) -> set[str]:
    """Return the names of the packages that define the type of a graph."""
    return {kind.__module__.partition(".")[0] for kind in type(graph).__mro__}


def from_edges(
    edges: ArrayLike, nodes: int | None = None, *, connected: WhenDisconnected = "error"
) -> Graph:
    """Build a graph from pairs of node numbers; repeated edges count once.

    Parameters
    ----------
    edges
        Integers of shape (E, 2), an edge per row.
    nodes
        The number of nodes; by default the largest number in `edges` plus one.
    connected
        For a disconnected graph: "error", or "largest" to keep the largest connected component.

    Returns
    -------
    Graph

    Examples
    --------
    >>> from_edges([(0, 1), (1, 2), (2, 0)])
    Graph(3 nodes, 3 edges)
    """
    pairs = _integer_pairs(edges)
    if nodes is None:
        if not len(pairs):
            raise ValueError("there are no edges. Pass the number of nodes, such as nodes=1.")
        nodes = int(pairs.max()) + 1
    if nodes < 1:
        raise ValueError(f"a graph needs at least one node, got nodes={nodes}.")
    sources, targets = pairs.T
    check_edges(nodes, sources, targets)
    hint = LARGEST_HINT
    if len(pairs) and (first := pairs.min()) > 0:
        hint = f"Nodes are numbered from 0, but the edges begin at {first}: subtract it. {hint}"
    return graph_from_pairs(nodes, sources, targets, connected=connected, hint=hint)


def from_scipy(matrix: Any, *, connected: WhenDisconnected = "error") -> Graph:
    """Build a graph from an adjacency matrix, sparse or dense: every nonzero entry is an edge.

    The nonzero pattern must be symmetric, with an empty diagonal. The values are ignored.

    Parameters
    ----------
    matrix
        A square adjacency matrix, a sparse one of SciPy's or a NumPy array.
    connected
        For a disconnected graph: "error", or "largest" to keep the largest connected component.

    Returns
    -------
    Graph

    Examples
    --------
    >>> from_scipy(np.array([[0, 1, 0], [1, 0, 1], [0, 1, 0]]))
    Graph(3 nodes, 2 edges)
    """
    from scipy.sparse import csr_array

    rows = csr_array(matrix, copy=True)
    if rows.ndim != 2 or rows.shape[0] != rows.shape[1]:
        raise ValueError(
            f"an adjacency matrix is square, got shape {rows.shape}. For edges use from_edges."
        )
    rows.sum_duplicates()
    rows.eliminate_zeros()
    if (rows.data != rows.data).any():
        raise ValueError("the adjacency matrix contains NaN. Put 0 where there is no edge.")
    return graph_from_rows(*checked_rows(rows.indptr, rows.indices), connected=connected)


def from_networkx(graph: "networkx.Graph[Any]", *, connected: WhenDisconnected = "error") -> Graph:
    """Build a graph from a networkx graph; node k is the k-th of `graph.nodes`.

    Parameters
    ----------
    graph
        An undirected networkx graph.
    connected
        For a disconnected graph: "error", or "largest" to keep the largest connected component.

    Returns
    -------
    Graph

    Examples
    --------
    >>> import networkx
    >>> from_networkx(networkx.karate_club_graph())
    Graph(34 nodes, 78 edges)
    """
    if graph.is_directed():
        raise ValueError("the graph is directed. Pass graph.to_undirected().")
    if graph.is_multigraph():
        raise ValueError("the graph has multiple edges. Pass networkx.Graph(graph).")
    for label in graph.nodes:
        if graph.has_edge(label, label):
            raise ValueError(
                f"node {label!r} has a self loop. Remove such edges with "
                "graph.remove_edges_from(list(networkx.selfloop_edges(graph)))."
            )
    number = {label: position for position, label in enumerate(graph.nodes)}
    edges = [(number[source], number[target]) for source, target in graph.edges()]
    return from_edges(edges, len(number), connected=connected)


def from_igraph(graph: Any, *, connected: WhenDisconnected = "error") -> Graph:
    """Build a graph from an igraph graph; node k is its vertex k.

    Parameters
    ----------
    graph
        An undirected igraph graph.
    connected
        For a disconnected graph: "error", or "largest" to keep the largest connected component.

    Returns
    -------
    Graph

    Examples
    --------
    >>> import igraph
    >>> from_igraph(igraph.Graph.Ring(5))
    Graph(5 nodes, 5 edges)
    """
    if graph.is_directed():
        raise ValueError("the graph is directed. Pass graph.as_undirected().")
    if not graph.is_simple():
        raise ValueError("the graph has self loops or multiple edges. Pass graph.simplify().")
    return from_edges(graph.get_edgelist(), graph.vcount(), connected=connected)


def to_networkx(graph: Graph) -> "networkx.Graph[int]":
    """Convert a graph to networkx, for drawing or for its algorithms.

    Parameters
    ----------
    graph
        The graph to convert.

    Returns
    -------
    networkx.Graph[int]
        The same nodes and edges.

    Examples
    --------
    >>> import networkx
    >>> from walklearn import graphs
    >>> networkx.diameter(to_networkx(graphs.ring(6)))
    3
    """
    with extra("networkx", "to_networkx needs"):
        import networkx
    result: networkx.Graph[int] = networkx.Graph()
    result.add_nodes_from(range(graph.node_count))
    result.add_edges_from(graph.edges().tolist())
    return result


def read_edge_list(path: str | os.PathLike[str], *, connected: WhenDisconnected = "error") -> Graph:
    """Read a text file with an edge on each line, as SNAP and others publish them.

    Parameters
    ----------
    path : path
        A text file, or one compressed by gzip (.gz). Each line is "i j" or "i,j", with names or
        numbers; # and % begin comments. Further columns and edges from a node to itself are
        left out with a warning; repeated edges count once.
    connected : {"error", "largest"}
        For a disconnected graph: "error", or "largest" to keep the largest connected component.

    Returns
    -------
    Graph
        If the names are not 0 to N − 1, nodes are numbered in the order of their names, with a
        warning. `read_network` keeps the names.

    Examples
    --------
    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = Path(folder, "edges.txt")
    ...     _ = path.write_text("# a path\\n0 1\\n1 2\\n")
    ...     read_edge_list(path)
    Graph(3 nodes, 2 edges)
    """
    pairs, names = read_pairs(Path(path))
    if names is not None:
        warnings.warn(
            f"{path}: nodes are numbered 0 to {len(names) - 1} in the order of their names "
            f"{join_names(names, 3)}.",
            stacklevel=2,
        )
    nodes = len(names) if names is not None else int(pairs.max(initial=0)) + 1
    return graph_from_pairs(nodes, pairs[:, 0], pairs[:, 1], connected=connected)


def _integer_pairs(edges: ArrayLike) -> Integers:
    array = np.asarray(edges)
    if array.size == 0:
        return np.empty((0, 2), dtype=np.int64)
    if array.ndim != 2 or array.shape[1] != 2:
        raise ValueError(
            "edges must be pairs (i, j) of node numbers without weights, got "
            f"{format_value(array[0].tolist())}."
        )
    if not np.issubdtype(array.dtype, np.integer):
        raise ValueError(
            "edges must be pairs (i, j) of whole numbers from 0, got "
            f"{format_value(array[0].tolist())}. For nodes with names use "
            "graphs.from_networkx(networkx.Graph(edges)), or a file and graphs.read_edge_list."
        )
    return array.astype(np.int64)
