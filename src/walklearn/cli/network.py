"""From what the command line says of the graph, and who owns which row, to a graph of numbers."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from walklearn.files import Rows
    from walklearn.graphs import Network


def network_of(graph: str, rows: Rows, seed: int | None) -> Network:
    """The graph, its nodes' names, and the node of each row.

    graph: the path of an edge list, or the name of a family. Without a node column every row is
    a node of its own.
    """
    from walklearn.files import DataError
    from walklearn.files.table import no_such_file
    from walklearn.graphs import Network, as_graph, read_network
    from walklearn.graphs.names import is_name

    if not is_name(graph) and (Path(graph).is_file() or Path(graph).suffix):
        if rows.nodes is not None:
            return read_network(graph, rows.nodes, rows.place)
        if not Path(graph).is_file():
            raise DataError(no_such_file(Path(graph)))
    count = len(rows.X)
    if rows.nodes is None:
        made = as_graph(graph, count if is_name(graph) else None, seed=seed)
        if made.node_count != count:
            raise DataError(
                f"{graph} has {made.node_count} nodes and there are {count} rows. Say which column "
                "names the node that owns a row (--node-column), or let the graph have a node for "
                "each row (--graph erdos-renyi)."
            )
        return Network(made, tuple(map(str, range(count))), np.arange(count))
    names, numbers = np.unique(rows.nodes, return_inverse=True)
    made = as_graph(graph, len(names), seed=seed)
    return Network(made, tuple(map(str, names.tolist())), numbers.astype(np.int64))
