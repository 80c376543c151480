"""Which network the rows live on: the graph, and who owns each row.

>>> network, owners = place("complete", ["rome", "oslo", "rome"], rows=3, seed=1)
>>> network.graph, network.names, owners.tolist()
(Graph(2 nodes, 1 edge), ('oslo', 'rome'), [1, 0, 1])
"""

from __future__ import annotations

import os
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from walklearn import graphs
from walklearn.graphs import Graph

Owners = NDArray[np.int64]
Seed = int | np.random.SeedSequence | None


class Network(NamedTuple):
    """A graph, and what its nodes are called where they are not called 0, 1, 2, …

    named: the graph was given by name and is drawn for as many nodes as there are.
    """

    graph: Graph
    names: tuple[Any, ...] | None
    named: bool


def place(
    graph: Any, nodes: ArrayLike | None, rows: int, seed: Seed, known: Network | None = None
) -> tuple[Network, Owners]:
    """The network, and the node of each row; by default row i is at node i.

    A graph that is given by name gets a node for each name in `nodes`, and is drawn anew when
    new ones turn up. The nodes of any other graph are 0..N-1; those without rows relay.
    known: the network of an earlier call, which this one goes on with.
    """
    labels = None if nodes is None else _check_labels(nodes, rows)
    if _is_name(graph):
        names, owners, count = _named(labels, rows, known)
        if known is not None and known.graph.node_count == count:
            return known._replace(names=names), owners
        return Network(_drawn(graph, count, seed), names, True), owners
    found = known.graph if known is not None else _given(graph)
    owners = np.arange(rows) if labels is None else _check_numbers(labels)
    beyond = np.flatnonzero((owners < 0) | (owners >= found.node_count))
    if beyond.size and labels is None:
        raise ValueError(
            f"there are {rows} rows for the {found.node_count} nodes of the graph. Say which node "
            "owns each row with fit(X, y, nodes=...), or pass a graph with a node for each row."
        )
    if beyond.size:
        raise ValueError(
            f"row {beyond[0]} belongs to node {owners[beyond[0]]}, but the nodes of the graph are "
            f"0..{found.node_count - 1}."
        )
    return Network(found, None, False), owners


def _named(
    labels: NDArray[Any] | None, rows: int, known: Network | None
) -> tuple[tuple[Any, ...] | None, Owners, int]:
    """Names, owners and the number of nodes; nodes that are known keep their numbers."""
    before = 0 if known is None else known.graph.node_count
    if labels is None:
        if known is not None and known.names is not None:
            raise ValueError("earlier rows came with their nodes: pass nodes=... for these, too.")
        return None, np.arange(rows), max(rows, before)
    if known is not None and known.names is None:
        raise ValueError("earlier rows came one per node: leave nodes=... out for these, too.")
    found, place_of = np.unique(labels, return_inverse=True)
    names = () if known is None or known.names is None else known.names
    number = {name: i for i, name in enumerate(names)}
    for name in found.tolist():
        number.setdefault(name, len(number))
    of_found = np.array([number[name] for name in found.tolist()], dtype=np.int64)
    return tuple(number), of_found[place_of.reshape(-1)], len(number)


def _check_labels(nodes: ArrayLike, rows: int) -> NDArray[Any]:
    labels = np.asarray(nodes)
    if labels.shape != (rows,):
        raise ValueError(
            f"nodes must name the owner of each row: there are {rows} rows, nodes has shape "
            f"{labels.shape}."
        )
    missing = np.flatnonzero(labels != labels)  # NaN, and None in an array of objects is fine
    if missing.size:
        raise ValueError(f"nodes does not say who owns row {missing[0]}.")
    return labels


def _check_numbers(labels: NDArray[Any]) -> Owners:
    if not np.issubdtype(labels.dtype, np.integer):
        raise ValueError(
            "the nodes of this graph are numbers from 0, so nodes must hold such numbers, "
            f"got {labels.dtype} such as {labels.flat[0]!r}."
        )
    return labels.astype(np.int64)


def _is_name(graph: Any) -> bool:
    return isinstance(graph, str) and graph in _FAMILIES


def _given(graph: Any) -> Graph:
    if isinstance(graph, Graph):
        return graph
    if isinstance(graph, str | os.PathLike):
        if not os.path.exists(graph):
            raise ValueError(
                f"there is no graph named {graph!r} and no such file: pass one of "
                f"{', '.join(_FAMILIES)}, the path of an edge list, or a graph."
            )
        return graphs.read_edge_list(graph)
    if hasattr(graph, "is_multigraph"):
        return graphs.from_networkx(graph)
    return graphs.from_scipy(graph)


def _drawn(name: str, nodes: int, seed: Seed) -> Graph:
    if nodes <= 3:
        return graphs.complete(nodes)
    return _FAMILIES[name](nodes, seed)


def _erdos_renyi(nodes: int, seed: Seed) -> Graph:
    degree = max(10.0, 2.0 * np.log(nodes))  # twice what keeps it in one piece
    probability = min(1.0, degree / (nodes - 1))
    return graphs.erdos_renyi(nodes, probability, seed=seed, connected="retry")


_FAMILIES: dict[str, Callable[[int, Seed], Graph]] = {
    "erdos-renyi": _erdos_renyi,
    "complete": lambda nodes, seed: graphs.complete(nodes),
    "ring": lambda nodes, seed: graphs.ring(nodes),
}
