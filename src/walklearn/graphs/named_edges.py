"""Edge lists in the words of the data: who talks to whom, by the names that own the rows.

The node column of a table says "oslo", or 17; the edge list says so too, on lines "oslo rome" or
"oslo,rome". Names are matched as they are written, so nodes may be numbered from 1 or with gaps.
A first line whose words occur nowhere else is a header. Nodes that own no rows relay.

>>> import tempfile, pathlib
>>> with tempfile.TemporaryDirectory() as folder:
...     file = pathlib.Path(folder, "edges.csv")
...     _ = file.write_text("source,target\\noslo,rome\\nrome,bern\\n")
...     network = read_network(file, ["rome", "oslo", "rome"])
>>> network.graph, network.names, network.owners.tolist()
(Graph(3 nodes, 2 edges), ('bern', 'oslo', 'rome'), [2, 1, 2])
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from walklearn.graphs.connectivity import DisconnectedGraphError, component_labels
from walklearn.graphs.convert import from_edges
from walklearn.graphs.edge_files import named_pairs, ordered, tell_of_loops
from walklearn.graphs.graph import Graph
from walklearn.graphs.sparse_rows import symmetric_rows
from walklearn.tables.table import DataError, Place
from walklearn.wording import did_you_mean, listed, no_such_file

Names = tuple[Any, ...]
Owners = NDArray[np.int64]


class Network(NamedTuple):
    """A graph, what its nodes are called, and the node that owns each row.

    Parameters
    ----------
    graph
        Who can talk to whom.
    names
        What the nodes are called; None where they are called 0, 1, 2, …
    owners
        The node that owns each row.
    family
        The name of the family that the graph was drawn from, if it was.

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
        """Show the graph alone: logs of an estimator must not contain the owners of its rows."""
        return f"Network({self.graph!r})"


def read_network(
    path: str | os.PathLike[str], owners: ArrayLike, place: Place = "row {}".format
) -> Network:
    """Read the graph in an edge list of names, for rows with these owners.

    Parameters
    ----------
    path
        The edge list: two names on each line.
    owners
        The name of the node that owns each row.
    place
        Says in a message which row is meant, which is counted from 0.

    Returns
    -------
    Network
        The graph, the names of its nodes and the node of each row.

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
    source, labels = Path(path), [str(owner) for owner in np.asarray(owners).tolist()]
    if not source.is_file():
        raise DataError(no_such_file(source))
    pairs = named_pairs(source, set(labels))
    tell_of_loops(source, sum(one == other for one, other in pairs))
    names = ordered({name for pair in pairs for name in pair})
    number = {name: at for at, name in enumerate(names)}
    for row, label in enumerate(labels):
        if label not in number:
            raise DataError(f"{place(row)}: {_unknown(label, labels, names, source)}")
    edges = [(number[one], number[other]) for one, other in pairs if one != other]
    try:
        graph = from_edges(edges, len(names))
    except DisconnectedGraphError as error:
        raise DataError(f"{source}: {_pieces(names, edges)}") from error
    return Network(graph, tuple(names), np.array([number[label] for label in labels]))


def _unknown(label: str, labels: Sequence[str], names: Sequence[str], source: Path) -> str:
    """Why a row's owner is not in the graph, and what may be wrong."""
    text = f"node {label!r} owns this row and has no edge in {source}, whose nodes are"
    if all(name.isdecimal() for name in (*labels, *names)):
        of_rows, of_edges = sorted(map(int, set(labels))), sorted(map(int, names))
        text += f" {of_edges[0]} to {of_edges[-1]}"
        if of_rows[0] == 0 and of_edges[0] == 1:
            return (
                f"{text}: the rows count nodes from 0 and the edges from 1. Let both do the same."
            )
        return f"{text}. Add its edges, or leave its rows out."
    return f"{text} {listed(names)}{did_you_mean(label, names)} Both files must use the same names."


def _pieces(names: Sequence[str], edges: list[tuple[int, int]]) -> str:
    """Which nodes are cut off, by name."""
    sources, targets = np.array(edges, dtype=np.int64).reshape(-1, 2).T
    labels = component_labels(*symmetric_rows(len(names), sources, targets))
    in_largest = labels == np.bincount(labels).argmax()
    apart = [name for name, near in zip(names, in_largest, strict=True) if not near]
    return (
        f"the graph is not connected: it has {labels.max() + 1} pieces, and no path leads from "
        f"{names[int(in_largest.argmax())]!r} to {listed(apart, 5)}. A token could never visit all "
        "nodes: add edges, or leave the rows and edges of some out."
    )
