"""Which network rows live on: the graph, what its nodes are called, and who owns each row.

>>> network = place_rows("complete", ["rome", "oslo", "rome"], rows=3, seed=1)
>>> network.graph, network.names, network.owners.tolist()
(Graph(2 nodes, 1 edge), ('oslo', 'rome'), [1, 0, 1])
"""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from walklearn.checks import check_length
from walklearn.graphs.convert import as_graph
from walklearn.graphs.draws import Seed
from walklearn.graphs.graph import Graph
from walklearn.graphs.named_edges import Names, Network, Owners, read_network
from walklearn.graphs.names import is_name
from walklearn.tables.table import Place


def place_rows(
    graph: Any,
    nodes: ArrayLike | None,
    rows: int,
    seed: Seed,
    known: Network | None = None,
    name_row: Place = "row {}".format,
) -> Network:
    """Find the network and the node of each row; by default row i is at node i.

    A family of graphs gets a node for each name in `nodes`, and is drawn anew when new names turn
    up. The nodes of any other graph, an edge list included, are called as it calls them, else 0
    to N − 1; those without rows relay.

    Parameters
    ----------
    graph
        Anything that `as_graph` accepts, or a `Network`, which already assigns rows to nodes.
    nodes
        The name of the node that owns each row; None for a node per row.
    rows
        How many rows there are.
    seed
        The seed of a family that is drawn at random.
    known
        The network of an earlier call, whose nodes keep their numbers.
    name_row
        Says in a message which row is meant, which is counted from 0.

    Returns
    -------
    Network
        The graph, the names of its nodes and the node of each row.

    Examples
    --------
    >>> network = place_rows("complete", ["north", "south", "north"], rows=3, seed=1)
    >>> network.names, network.owners, network.graph.edge_count
    (('north', 'south'), array([0, 1, 0]), 1)
    """
    if isinstance(graph, Network):
        if nodes is not None or len(graph.owners) != rows:
            raise ValueError(
                f"the network places {len(graph.owners)} rows, and there are {rows}: pass its rows "
                "in the same order, and no nodes."
            )
        _check_not_smaller(graph.graph, known, graph.family)
        return graph
    labels = None if nodes is None else _check_labels(nodes, rows)
    if isinstance(graph, str) and is_name(graph):
        return _drawn(graph, labels, rows, seed, known)
    if labels is not None and _is_path(graph):
        network = read_network(graph, labels, name_row)
        _check_not_smaller(network.graph, known)
        return network
    made, names = as_graph(graph, seed=seed), _names_of(graph)
    _check_not_smaller(made, known)
    return Network(made, names, _owners_of(made, names, labels, rows))


def _drawn(
    family: str, labels: NDArray[Any] | None, rows: int, seed: Seed, known: Network | None
) -> Network:
    """A graph of the family, with a node for each name that is known or new."""
    if known is not None and known.family != family:
        raise ValueError("a token that walks on stays in its network: the graph must not change.")
    names, owners, count = _joined(labels, rows, known)
    if known is not None and known.graph.node_count == count:
        return known._replace(owners=owners)
    return Network(as_graph(family, count, seed=seed), names, owners, family)


def _joined(
    labels: NDArray[Any] | None, rows: int, known: Network | None
) -> tuple[Names | None, Owners, int]:
    """Names, owners and the number of nodes, those that are known included."""
    if labels is None:
        if known is not None and known.names is not None:
            raise ValueError("earlier rows came with their nodes: pass nodes=... for these, too.")
        return None, np.arange(rows), max(rows, known.graph.node_count if known else 0)
    if known is not None and known.names is None:
        raise ValueError("earlier rows came one per node: leave nodes=... out for these, too.")
    found, place_of = np.unique(labels, return_inverse=True)
    number = {name: i for i, name in enumerate((known.names if known else None) or ())}
    for name in found.tolist():
        number.setdefault(name, len(number))
    of_found = np.array([number[name] for name in found.tolist()], dtype=np.int64)
    return tuple(number), of_found[place_of.reshape(-1)], len(number)


def _owners_of(graph: Graph, names: Names | None, labels: NDArray[Any] | None, rows: int) -> Owners:
    """The nodes of a given graph that the labels name."""
    count = graph.node_count
    if labels is None:
        if rows > count:
            raise ValueError(
                f"there are {rows} rows for the {count} nodes of the graph. Say which node owns "
                "each row with fit(X, y, nodes=...), or pass a graph with a node for each row."
            )
        return np.arange(rows)
    number = {name: i for i, name in enumerate(range(count) if names is None else names)}
    owners = np.array([number.get(label, -1) for label in labels.tolist()], dtype=np.int64)
    unknown = np.flatnonzero(owners < 0)
    if unknown.size:
        called = f"0..{count - 1}" if names is None else f"called {names[0]!r}, …"
        raise ValueError(
            f"row {unknown[0]} belongs to node {labels.tolist()[unknown[0]]!r}, which is not in "
            f"the graph: its {count} nodes are {called}."
        )
    return owners


def _check_not_smaller(graph: Graph, known: Network | None, family: str | None = None) -> None:
    if known is None:
        return
    if known.family not in (None, family) or len(graph) < len(known.graph):
        raise ValueError(
            f"a token that walks on stays in its network: the graph had {len(known.graph)} nodes "
            "and must not change, but for new nodes."
        )


def _is_path(graph: Any) -> bool:
    """Whether a file is meant, be it there or not."""
    if isinstance(graph, str):
        return Path(graph).is_file() or bool(Path(graph).suffix)
    return isinstance(graph, os.PathLike)


def _names_of(graph: Any) -> Names | None:
    """What networkx or igraph call the nodes, unless that is 0, 1, 2, …"""
    packages = {kind.__module__.partition(".")[0] for kind in type(graph).__mro__}
    names: Names = ()
    if "networkx" in packages:
        names = tuple(graph.nodes)
    elif "igraph" in packages and "name" in graph.vs.attributes():
        names = tuple(graph.vs["name"])
    return names if names and names != tuple(range(len(names))) else None


def _check_labels(nodes: ArrayLike, rows: int) -> NDArray[Any]:
    labels = np.asarray(nodes)
    check_length("nodes", labels, rows, "rows")
    missing = [row for row, label in enumerate(labels.tolist()) if label is None or label != label]
    if missing:
        raise ValueError(f"nodes does not say who owns row {missing[0]}.")
    return labels
