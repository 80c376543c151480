"""`Graph`: an undirected graph, stored as two read-only arrays.

The public constructor checks everything. Generators use `graph_from_pairs`, which only checks that
the graph is connected.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Literal, Self, TypeAlias

import numpy as np
from numpy.typing import ArrayLike

from walklearn.checks import check_choice
from walklearn.graphs.connectivity import component_labels, is_two_sided, refuse_disconnected
from walklearn.graphs.sparse_rows import (
    IndexArray,
    SparseMatrix,
    adjacency_matrix,
    check_size,
    checked_rows,
    row_of_each_entry,
    symmetric_rows,
)
from walklearn.wording import plural

Family: TypeAlias = tuple[str | int, ...]
WhenDisconnected: TypeAlias = Literal["error", "largest"]

LARGEST_HINT = (
    "Add edges, or keep its largest component only (in Python: graphs.as_graph or "
    'graphs.from_edges with connected="largest").'
)


@dataclass(frozen=True, init=False, eq=False, repr=False)
class Graph:
    """A simple, undirected, connected graph on nodes 0 to N − 1, as compressed sparse rows.

    The arrays are copied, sorted and checked. `from_edges`, `as_graph` and the families are the
    usual ways to make one.

    Parameters
    ----------
    indptr
        N + 1 positions in `indices`, at which the neighbours of each node begin.
    indices
        The neighbours of node 0, then those of node 1, and so on.
    family
        Name and arguments of the family, such as ("ring", 5), for spectra in closed form. Equality
        ignores it.

    Examples
    --------
    >>> path = Graph(indptr=[0, 1, 3, 4], indices=[1, 0, 2, 1])
    >>> path.degrees.tolist(), path.neighbours(1).tolist(), path.is_bipartite
    ([1, 2, 1], [0, 2], True)
    """

    indptr: IndexArray
    indices: IndexArray
    family: Family = ()

    def __init__(self, indptr: ArrayLike, indices: ArrayLike, family: Family = ()) -> None:
        checked = checked_rows(indptr, indices)
        labels = component_labels(*checked)
        if labels.any():
            refuse_disconnected(labels, LARGEST_HINT)
        self.__setstate__((*checked, tuple(family)))

    @classmethod
    def _from_checked(cls, indptr: IndexArray, indices: IndexArray, family: Family) -> Self:
        """Wrap arrays that are known to be correct."""
        graph = object.__new__(cls)
        graph.__setstate__((indptr, indices, family))
        return graph

    def __getstate__(self) -> tuple[IndexArray, IndexArray, Family]:
        return self.indptr, self.indices, self.family  # caches are cheaper to rebuild than to send

    def __setstate__(self, state: tuple[IndexArray, IndexArray, Family]) -> None:
        indptr, indices, family = state
        check_size(indptr.size - 1, indices.size)
        for name, array in (("indptr", indptr), ("indices", indices)):
            narrow = np.ascontiguousarray(array, dtype=np.int32)
            narrow.flags.writeable = False
            object.__setattr__(self, name, narrow)
        object.__setattr__(self, "family", family)

    @property
    def node_count(self) -> int:
        """Number of nodes."""
        return self.indptr.size - 1

    @property
    def edge_count(self) -> int:
        """Number of undirected edges."""
        return self.indices.size // 2

    @cached_property
    def degrees(self) -> IndexArray:
        """Number of neighbours of every node."""
        degrees: IndexArray = np.diff(self.indptr)
        degrees.flags.writeable = False
        return degrees

    @cached_property
    def is_bipartite(self) -> bool:
        """True if the nodes form two sides with all edges between them."""
        return is_two_sided(self.indptr, self.indices)

    def neighbours(self, node: int) -> IndexArray:
        """Return the neighbours of a node in ascending order, as a read-only view."""
        if not 0 <= node < self.node_count:
            raise IndexError(f"node {node} is not in 0..{self.node_count - 1}.")
        return self.indices[self.indptr[node] : self.indptr[node + 1]]

    def adjacency(self) -> SparseMatrix:
        """Return the adjacency matrix, with entries 1.0."""
        return adjacency_matrix(self.indptr, self.indices).copy()

    def edges(self) -> IndexArray:
        """Return every edge once, as rows (i, j) with i < j, in lexicographic order."""
        rows = row_of_each_entry(self.indptr)
        is_first = rows < self.indices
        return np.column_stack([rows[is_first], self.indices[is_first]])

    def __len__(self) -> int:
        return self.node_count

    def __repr__(self) -> str:
        return f"Graph({plural(self.node_count, 'node')}, {plural(self.edge_count, 'edge')})"

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Graph):
            return NotImplemented
        return self is other or (
            np.array_equal(self.indptr, other.indptr)
            and np.array_equal(self.indices, other.indices)
        )

    @cached_property
    def _hash(self) -> int:
        return hash((self.indptr.tobytes(), self.indices.tobytes()))

    def __hash__(self) -> int:
        return self._hash


def check_node_count(graph: Graph, objective: Any) -> None:
    """Raise a ValueError unless the graph has a node for each node of the objective."""
    count, wanted = graph.node_count, objective.nodes
    if count == wanted:
        return
    remedies = [f"Use a graph with {wanted} nodes"]
    if hasattr(objective, "node_of_row"):
        remedies.append(f"spread the rows over {count} nodes with node_of_row=…")
        if count > wanted:
            remedies.append(f'pass nodes={count} and empty_nodes="relay"')
    raise ValueError(
        f"the graph has {count} nodes, but the objective has {wanted}. {', or '.join(remedies)}."
    )


def graph_from_pairs(
    nodes: int,
    sources: IndexArray,
    targets: IndexArray,
    family: Family = (),
    connected: WhenDisconnected = "error",
    hint: str = LARGEST_HINT,
    names: Sequence[Any] | None = None,
) -> Graph:
    """Build a graph from pairs in range and without self loops; repeated pairs count once."""
    check_size(nodes)
    return graph_from_rows(*symmetric_rows(nodes, sources, targets), family, connected, hint, names)


def graph_from_rows(
    indptr: IndexArray,
    indices: IndexArray,
    family: Family = (),
    connected: WhenDisconnected = "error",
    hint: str = LARGEST_HINT,
    names: Sequence[Any] | None = None,
) -> Graph:
    """Build a graph from simple, symmetric rows, and check that it is connected.

    If it is not, raise an error, or keep the largest connected component, renumbered in order.
    hint, names: the remedy and the names of the nodes in the error.
    """
    check_choice("connected", connected, WhenDisconnected)
    labels = component_labels(indptr, indices)
    if not labels.any():
        return Graph._from_checked(indptr, indices, family)
    if connected == "error":
        refuse_disconnected(labels, hint, names)
    is_kept = labels == np.bincount(labels).argmax()
    degrees = np.diff(indptr)
    new_label = np.cumsum(is_kept) - 1
    indices = new_label[indices[np.repeat(is_kept, degrees)]]
    return Graph._from_checked(np.concatenate([[0], np.cumsum(degrees[is_kept])]), indices, ())
