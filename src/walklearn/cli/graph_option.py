"""The graph of --graph and --nodes, where no rows say how many nodes there are."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from walklearn.graphs import Graph


def described_graph(
    said: str, nodes: int | None, seed: int | None, usual: int | None = None
) -> Graph:
    """A family with so many nodes, or an edge list, whose nodes may have names.

    usual: how many nodes a family has where --nodes does not say; None to ask for it.
    """
    from walklearn.graphs import as_graph, read_network

    if not Path(said).is_file():
        return as_graph(said, usual if nodes is None else nodes, seed=seed)
    graph = read_network(said, []).graph
    if nodes not in (None, graph.node_count):
        raise ValueError(
            f"--nodes is {nodes}, and {said} has {graph.node_count} nodes: pass --nodes "
            f"{graph.node_count}, or leave it out."
        )
    return graph
