"""Assign the rows of a table to the nodes of a graph.

An edge list and the node column of a table must use the same names: for example, the column
contains "oslo", and a line of the file is "oslo rome" or "oslo,rome". Names are compared as text.
"""

from __future__ import annotations

import os
from collections.abc import Collection, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from walklearn.checks import check_length
from walklearn.graphs.connectivity import DisconnectedGraphError
from walklearn.graphs.convert import as_graph, packages_of
from walklearn.graphs.draws import Seed
from walklearn.graphs.edge_files import read_pairs
from walklearn.graphs.graph import Graph, graph_from_pairs
from walklearn.graphs.names import is_family
from walklearn.tables.table import DataError, RowNamer
from walklearn.wording import did_you_mean, join_names

Names = tuple[Any, ...]
Owners = NDArray[np.int64]


class Network(NamedTuple):
    """A graph, the names of its nodes, and the node that owns each row.

    Parameters
    ----------
    graph
        The communication graph.
    names
        The names of the nodes; None if they are 0, 1, 2, …
    owners
        The node that owns each row.
    family
        The name of the graph family that the graph was drawn from; None for any other graph.

    Examples
    --------
    >>> from walklearn.graphs import place_rows
    >>> network = place_rows("ring", ["ada", "bob", "ada", "cy"], rows=4, seed=1)
    >>> network.names, network.owners, network.family, network.graph.node_count
    (('ada', 'bob', 'cy'), array([0, 1, 0, 2]), 'ring', 3)
    """

    graph: Graph
    names: Names | None
    owners: Owners
    family: str | None = None

    def __repr__(self) -> str:
        """Omit the owners of the rows, which must not appear in logs of an estimator."""
        return f"Network({self.graph!r})"


def read_network(
    path: str | os.PathLike[str], owners: ArrayLike, name_row: RowNamer = "row {}".format
) -> Network:
    """Read a graph from an edge list, and find the node of each row by its name.

    Parameters
    ----------
    path
        The edge list: two names on each line.
    owners
        The name of the node that owns each row.
    name_row
        Names a row, counted from 0, in a message.

    Returns
    -------
    Network
        Nodes without rows only forward the token.

    Examples
    --------
    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = Path(folder, "edges.txt")
    ...     _ = path.write_text("ada bob\\nbob cy\\n")
    ...     network = read_network(path, owners=["cy", "ada", "cy"])
    >>> network.names, network.owners
    (('ada', 'bob', 'cy'), array([2, 0, 2]))
    """
    labels = [str(owner) for owner in np.asarray(owners).tolist()]
    pairs, names = read_pairs(Path(path), set(labels))
    assert names is not None
    node_of_row = _owners_of(labels, names, str(path), name_row)
    hint = "Add edges, or leave out the rows and edges of some nodes."
    try:
        graph = graph_from_pairs(len(names), pairs[:, 0], pairs[:, 1], hint=hint, names=names)
    except DisconnectedGraphError as error:
        raise DataError(f"{path}: {error}") from error
    return Network(graph, tuple(names), node_of_row)


def place_rows(
    graph: Any,
    nodes: ArrayLike | None,
    rows: int,
    seed: Seed,
    previous: Network | None = None,
    name_row: RowNamer = "row {}".format,
) -> Network:
    """Assign each row to a node of the graph; by default row i belongs to node i.

    If `graph` is the name of a family, the graph has one node for each name in `nodes`, and it is
    drawn again when new names appear. The nodes of any other graph keep their names, or are called
    0 to N − 1. Nodes without rows only forward the token.

    Parameters
    ----------
    graph
        Anything that `as_graph` accepts, or a `Network`, which already assigns rows to nodes.
    nodes
        The name of the node that owns each row; None for a node per row.
    rows
        The number of rows.
    seed
        Source of random numbers for a family: an integer, a SeedSequence, a Generator or None.
    previous
        The network of an earlier call; its nodes keep their numbers.
    name_row
        Names a row, counted from 0, in a message.

    Returns
    -------
    Network

    Examples
    --------
    >>> network = place_rows("complete", ["north", "south", "north"], rows=3, seed=1)
    >>> network.names, network.owners, network.graph.edge_count
    (('north', 'south'), array([0, 1, 0]), 1)
    """
    if isinstance(graph, Network):
        if nodes is not None or len(graph.owners) != rows:
            raise ValueError(
                f"the network has {len(graph.owners)} rows, but X has {rows}. Pass the same rows "
                "in the same order, without nodes=."
            )
        _check_continues(previous, (None, graph.family), len(graph.graph))
        return graph
    labels = None if nodes is None else _labels_of(nodes, rows)
    if isinstance(graph, str) and is_family(graph):
        return _draw_network(graph, labels, rows, seed, previous)
    if labels is not None and _is_path(graph):
        network = read_network(graph, labels, name_row)
    else:
        new_graph, names = as_graph(graph, seed=seed), _names_of(graph)
        count, owners = new_graph.node_count, np.arange(rows)
        if labels is not None:
            owners = _owners_of(labels, names or range(count), "the graph", name_row)
        elif rows > count:
            raise ValueError(
                f"there are {rows} rows for the {count} nodes of the graph. Say which node owns "
                "each row with fit(X, y, nodes=...), or pass a graph with a node for each row."
            )
        network = Network(new_graph, names, owners)
    _check_continues(previous, (None,), len(network.graph))
    return network


def _draw_network(
    family: str, labels: list[Any] | None, rows: int, seed: Seed, previous: Network | None
) -> Network:
    """Return a graph of the family, with a node for each name that is previous or new."""
    previous_count = 0 if previous is None else len(previous.graph)
    _check_continues(previous, (family,), previous_count)
    if previous is not None and (previous.names is None) != (labels is None):
        preposition = "without" if previous.names is None else "with"
        raise ValueError(
            f"earlier rows came {preposition} nodes=…: pass these rows {preposition} it, too."
        )
    if labels is None:
        names, owners, count = None, np.arange(rows), max(rows, previous_count)
    else:
        number = {name: node for node, name in enumerate((previous and previous.names) or ())}
        for name in sorted(set(labels)):
            number.setdefault(name, len(number))
        names, count = tuple(number), len(number)
        owners = np.array([number[label] for label in labels], dtype=np.int64)
    if previous is not None and previous_count == count:
        return previous._replace(owners=owners)
    return Network(as_graph(family, count, seed=seed), names, owners, family)


def _check_continues(
    previous: Network | None, families: Collection[str | None], nodes: int
) -> None:
    """Raise a ValueError if training would continue on another network, or on fewer nodes."""
    if previous is not None and (previous.family not in families or nodes < len(previous.graph)):
        raise ValueError(
            f"training continues on its network of {len(previous.graph)} nodes. The graph may only "
            "gain nodes: pass the same graph as before."
        )


def _owners_of(labels: list[Any], names: Sequence[Any], source: str, name_row: RowNamer) -> Owners:
    """Return the node that each row's label names, or raise an error for an unknown one."""
    number = {name: node for node, name in enumerate(names)}
    owners = np.array([number.get(label, -1) for label in labels], dtype=np.int64)
    if (owners >= 0).all():
        return owners
    row = int((owners < 0).argmax())
    label = labels[row]
    text = f"{name_row(row)}: node {label!r} owns this row and is not in {source}, whose nodes are"
    if all(str(name).isdecimal() for name in (*labels, *names)):
        first, last = min(map(int, names)), max(map(int, names))
        remedy = "Add its edges, or leave its rows out."
        if first == 1 and min(map(int, labels)) == 0:
            remedy = "Rows number the nodes from 0, and edges from 1. Use the same numbers in both."
        raise DataError(f"{text} {first} to {last}. {remedy}")
    guess = did_you_mean(label, list(map(str, names)))
    raise DataError(f"{text} {join_names(names)}{guess} Rows and edges must use the same names.")


def _is_path(graph: Any) -> bool:
    """True if the graph is a path, whether or not the file exists."""
    if isinstance(graph, str):
        return Path(graph).is_file() or bool(Path(graph).suffix)
    return isinstance(graph, os.PathLike)


def _names_of(graph: Any) -> Names | None:
    """Return the names of the nodes in networkx or igraph, unless they are 0, 1, 2, …"""
    packages, names = packages_of(graph), ()
    if "networkx" in packages:
        names = tuple(graph.nodes)
    elif "igraph" in packages and "name" in graph.vs.attributes():
        names = tuple(graph.vs["name"])
    return names if names and names != tuple(range(len(names))) else None


def _labels_of(nodes: ArrayLike, rows: int) -> list[Any]:
    check_length("nodes", nodes, rows, "rows")
    labels: list[Any] = np.asarray(nodes).tolist()
    for row, label in enumerate(labels):
        if label is None or label != label:
            raise ValueError(f"nodes has no owner for row {row}. Name the node that owns it.")
    return labels
