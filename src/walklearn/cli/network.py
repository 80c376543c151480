"""From what the command line says of the graph, and who owns which row, to a graph of numbers."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

if TYPE_CHECKING:
    from walklearn.data_files import Network


def network_of(graph: str, owners: NDArray[Any] | None, rows: int, seed: int | None) -> Network:
    """The graph, its nodes' names, and the node of each row.

    graph: the path of an edge list, or the name of a family. owners: who owns each row, a name
    or a number; None where each row is a node of its own.
    """
    from walklearn.data_files import Network, read_network
    from walklearn.graphs import as_graph
    from walklearn.graphs.names import is_name

    if owners is not None and not is_name(graph) and Path(graph).is_file():
        return read_network(graph, owners)
    if owners is None:
        made = as_graph(graph, rows if is_name(graph) else None, seed=seed)
        if made.node_count != rows:
            raise ValueError(
                f"{graph} has {made.node_count} nodes and there are {rows} rows. Say which column "
                "names the node that owns a row (--node-column), or let the graph have a node for "
                "each row (--graph erdos-renyi)."
            )
        return Network(made, tuple(map(str, range(rows))), np.arange(rows))
    names, numbers = np.unique(owners, return_inverse=True)
    made = as_graph(graph, len(names), seed=seed)
    return Network(made, tuple(map(str, names.tolist())), numbers.astype(np.int64))
