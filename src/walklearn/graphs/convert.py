"""Graphs from outside, and back: edge lists, scipy matrices, networkx, igraph, text files, names.

All of them refuse what is not a simple, undirected, connected graph and say where it is not;
`connected="largest"` keeps the largest component instead, relabelled 0.. in the old order.

>>> from_edges([(0, 1), (1, 2), (2, 0)])
Graph(3 nodes, 3 edges)
>>> from_edges([(0, 1), (2, 3), (3, 4)], connected="largest").edges().tolist()
[[0, 1], [1, 2]]
>>> as_graph("star", nodes=4)
Graph(4 nodes, 3 edges)
"""

import os
import warnings
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from walklearn.checks import check_choice
from walklearn.extras import extra
from walklearn.graphs.draws import Seed
from walklearn.graphs.edge_files import read_pairs
from walklearn.graphs.graph import LARGEST_HINT, Graph, WhenDisconnected, connect, graph_from_pairs
from walklearn.graphs.names import choices_near, is_name, named
from walklearn.graphs.sparse_rows import Integers, checked_rows
from walklearn.wording import as_given, listed

if TYPE_CHECKING:
    import networkx


def as_graph(
    graph: Any,
    nodes: int | None = None,
    *,
    seed: Seed = None,
    connected: WhenDisconnected = "error",
) -> Graph:
    """Make a graph from whatever stands for one.

    Parameters
    ----------
    graph
        A walklearn, networkx or igraph graph; a square adjacency matrix of SciPy's or NumPy's;
        the path of an edge list; or the name of a family (see `names`), which is then drawn
        with as many nodes as `nodes` says. Give a `pathlib.Path` for a file whose name is also
        that of a family.
    nodes
        How many nodes the graph should have; one with more or fewer is refused.
    seed
        The seed of a family that is drawn at random.
    connected
        What to do with a graph in pieces: refuse it ("error"), or keep its largest piece
        ("largest").

    Returns
    -------
    Graph
        The graph, connected and without loops.

    Examples
    --------
    >>> as_graph("ring", 5)
    Graph(5 nodes, 5 edges)
    """
    made = _as_graph(graph, nodes, seed, connected)
    if nodes is not None and made.node_count != nodes:
        raise ValueError(
            f"the graph has {made.node_count} nodes, but there should be {nodes}: each takes part "
            "in the walk. Add or remove nodes, or name a family, such as graph='erdos-renyi'."
        )
    return made


def _as_graph(graph: Any, nodes: int | None, seed: Seed, connected: WhenDisconnected) -> Graph:
    if isinstance(graph, Graph):
        return graph
    if isinstance(graph, str) and is_name(graph):
        if nodes is None:
            raise ValueError(f"the graph {graph!r} needs a number of nodes (nodes, --nodes).")
        return named(graph, nodes, seed)
    if isinstance(graph, str | os.PathLike):
        if isinstance(graph, str) and not Path(graph).exists():
            raise ValueError(
                f"{graph!r} is neither a family of graphs nor a file that is there."
                f'{choices_near(graph)} A file has an edge such as "3 7" on each line.'
            )
        return read_edge_list(graph, connected=connected)
    packages = {kind.__module__.partition(".")[0] for kind in type(graph).__mro__}
    if "networkx" in packages:
        return from_networkx(graph, connected=connected)
    if "igraph" in packages:
        return from_igraph(graph, connected=connected)
    if packages & {"scipy", "numpy"} and np.ndim(graph) == 2:
        return from_scipy(graph, connected=connected)
    raise TypeError(
        "a graph is a walklearn, networkx or igraph graph, an adjacency matrix, the path of an "
        f"edge list or a name such as 'erdos-renyi', got {type(graph).__name__}. For a list of "
        "edges use graphs.from_edges."
    )


def from_edges(
    edges: ArrayLike, nodes: int | None = None, *, connected: WhenDisconnected = "error"
) -> Graph:
    """Build a graph from pairs of node numbers; repeated edges count once.

    Parameters
    ----------
    edges
        Integers of shape (E, 2), an edge per row.
    nodes
        How many nodes there are; by default the largest number in `edges` plus one.
    connected
        What to do with a graph in pieces: refuse it ("error"), or keep its largest piece
        ("largest").

    Returns
    -------
    Graph
        The graph, connected and without loops.

    Examples
    --------
    >>> from_edges([(0, 1), (1, 2), (2, 0)])
    Graph(3 nodes, 3 edges)
    """
    check_choice("connected", connected, WhenDisconnected)
    pairs = _integer_pairs(edges)
    if nodes is None:
        if not len(pairs):
            raise ValueError("there are no edges; say how many nodes there are with nodes=1")
        nodes = int(pairs.max()) + 1
    if nodes < 1:
        raise ValueError(f"a graph needs at least one node, got nodes={nodes}")
    outside = (pairs.min(axis=1) < 0) | (pairs.max(axis=1) >= nodes)
    _refuse_edge(pairs, outside, f"has a node that is not in 0..{nodes - 1}; number them from 0")
    loop = pairs[:, 0] == pairs[:, 1]
    _refuse_edge(pairs, loop, "is a self loop; remove it (a walk can stay anyway)")
    hint = LARGEST_HINT
    if len(pairs) and (first := pairs.min()) > 0:
        hint = f"Nodes are numbered from 0, but the edges begin at {first}: subtract it. {hint}"
    return graph_from_pairs(nodes, pairs[:, 0], pairs[:, 1], connected=connected, hint=hint)


def from_scipy(matrix: Any, *, connected: WhenDisconnected = "error") -> Graph:
    """Build a graph from an adjacency matrix, sparse or dense: every nonzero is an edge.

    Its pattern must be symmetric and its diagonal empty; the values do not matter.

    Parameters
    ----------
    matrix
        A square adjacency matrix, a sparse one of SciPy's or a NumPy array.
    connected
        What to do with a graph in pieces: refuse it ("error"), or keep its largest piece
        ("largest").

    Returns
    -------
    Graph
        The graph, connected and without loops.

    Examples
    --------
    >>> import numpy as np
    >>> from_scipy(np.array([[0, 1, 0], [1, 0, 1], [0, 1, 0]]))
    Graph(3 nodes, 2 edges)
    """
    from scipy.sparse import csr_array

    check_choice("connected", connected, WhenDisconnected)
    rows = csr_array(matrix, copy=True)
    if rows.ndim != 2 or rows.shape[0] != rows.shape[1]:
        raise ValueError(
            f"an adjacency matrix is square, got shape {rows.shape}; for edges use from_edges"
        )
    rows.sum_duplicates()
    rows.eliminate_zeros()
    if (rows.data != rows.data).any():
        raise ValueError(
            "the adjacency matrix has NaN in it, which is neither an edge nor none: put 0 where "
            "there is no edge"
        )
    return connect(*checked_rows(rows.indptr, rows.indices), connected=connected)


def from_networkx(graph: "networkx.Graph[Any]", *, connected: WhenDisconnected = "error") -> Graph:
    """Build a graph from a networkx one; node k is the k-th of `graph.nodes`.

    Parameters
    ----------
    graph
        An undirected networkx graph.
    connected
        What to do with a graph in pieces: refuse it ("error"), or keep its largest piece
        ("largest").

    Returns
    -------
    Graph
        The graph, connected and without loops.

    Examples
    --------
    >>> import networkx
    >>> from_networkx(networkx.karate_club_graph())
    Graph(34 nodes, 78 edges)
    """
    if graph.is_directed():
        raise ValueError("the graph is directed; pass graph.to_undirected()")
    if graph.is_multigraph():
        raise ValueError(
            "the graph is a multigraph; pass networkx.Graph(graph), which merges edges"
        )
    number = {label: position for position, label in enumerate(graph.nodes)}
    for label in graph.nodes:
        if graph.has_edge(label, label):
            raise ValueError(
                f"node {label!r} has a self loop; remove them with "
                "graph.remove_edges_from(list(networkx.selfloop_edges(graph)))"
            )
    edges = [(number[one], number[other]) for one, other in graph.edges()]
    return from_edges(edges, len(number), connected=connected)


def from_igraph(graph: Any, *, connected: WhenDisconnected = "error") -> Graph:
    """Build a graph from an igraph one; node k is its vertex k.

    Parameters
    ----------
    graph
        An undirected igraph graph.
    connected
        What to do with a graph in pieces: refuse it ("error"), or keep its largest piece
        ("largest").

    Returns
    -------
    Graph
        The graph, connected and without loops.

    Examples
    --------
    >>> import igraph
    >>> from_igraph(igraph.Graph.Ring(5))
    Graph(5 nodes, 5 edges)
    """
    if graph.is_directed():
        raise ValueError("the graph is directed; pass graph.as_undirected()")
    if not graph.is_simple():
        raise ValueError(
            "the graph has self loops or multiple edges; call graph.simplify() first, which "
            "removes the loops and merges the edges"
        )
    return from_edges(graph.get_edgelist(), graph.vcount(), connected=connected)


def to_networkx(graph: Graph) -> "networkx.Graph[int]":
    """Hand a graph to networkx, for drawing or for its algorithms.

    Parameters
    ----------
    graph
        The graph to hand over.

    Returns
    -------
    networkx.Graph[int]
        The same nodes and edges; nodes are called 0 to N − 1.

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
        "i j" or "i,j" on each line, names or numbers; # and % begin comments. It may be
        compressed (.gz). Columns past the second and edges from a node to itself are left
        out with a warning; repeated edges count once.
    connected : {"error", "largest"}
        What to do with a graph in pieces: refuse it, or keep its largest piece.

    Returns
    -------
    Graph
        Nodes that are not called 0 to N − 1 are numbered in the order of their numbers or
        names, with a warning that says so. `read_network` keeps names.

    Examples
    --------
    >>> import tempfile
    >>> from pathlib import Path
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = Path(folder, "edges.txt")
    ...     _ = path.write_text("# a path\\n0 1\\n1 2\\n")
    ...     graph = read_edge_list(path)
    >>> graph.node_count, graph.edges()
    (3, array([[0, 1],
           [1, 2]], dtype=int32))
    """
    check_choice("connected", connected, WhenDisconnected)
    pairs, names = read_pairs(Path(path))
    if names is not None:
        warnings.warn(
            f"{path}: nodes are numbered 0 to {len(names) - 1} in the order of what they are "
            f"called there: {listed(names, 3)}.",
            stacklevel=2,
        )
    nodes = len(names) if names is not None else int(pairs.max(initial=0)) + 1
    return graph_from_pairs(nodes, pairs[:, 0], pairs[:, 1], connected=connected)


def _integer_pairs(edges: ArrayLike) -> Integers:
    array = np.asarray(edges)
    if array.size == 0:
        return np.empty((0, 2), dtype=np.int64)
    if array.ndim != 2 or array.shape[1] != 2:
        more = array.ndim == 2 and array.shape[1] > 2
        raise ValueError(
            f"edges must be pairs (i, j) of node numbers, got {as_given(array[0].tolist())}"
            + ("; weights are not used: leave them out" if more else "")
        )
    if not np.issubdtype(array.dtype, np.integer):
        raise ValueError(
            "edges must be pairs (i, j) of whole numbers from 0, got "
            f"{as_given(array[0].tolist())}. "
            "Nodes with names: graphs.from_networkx(networkx.Graph(edges)), or a file for "
            "graphs.read_edge_list"
        )
    return array.astype(np.int64)


def _refuse_edge(pairs: Integers, wrong: NDArray[np.bool_], complaint: str) -> None:
    if wrong.any():
        row = int(wrong.argmax())
        raise ValueError(f"edge {row}, ({pairs[row, 0]}, {pairs[row, 1]}), {complaint}")
