"""The network: who can talk to whom.

A `Graph` is a simple, undirected, connected graph on the nodes 0..N-1, kept as two read-only
arrays (compressed sparse rows): the neighbours of node i are
`indices[indptr[i]:indptr[i + 1]]`, in ascending order. Walks read nothing else.

Graphs come from a generator (`ring`, `erdos_renyi`, ...) or from outside (`from_edges`,
`from_scipy`, `from_networkx`, `from_igraph`, `read_edge_list`); `as_graph` takes what any of these
take, or the name of a family. Whatever the way in, a graph that is not connected is refused: a
token could never visit all nodes.

>>> from walklearn import graphs
>>> graph = graphs.erdos_renyi(100, 0.3, seed=1)
>>> graph
Graph(100 nodes, 1,480 edges)
>>> graphs.ring(5).neighbours(0).tolist()
[1, 4]
"""

from walklearn.graphs.connectivity import DisconnectedGraphError
from walklearn.graphs.convert import (
    as_graph,
    from_edges,
    from_igraph,
    from_networkx,
    from_scipy,
    read_edge_list,
    to_networkx,
)
from walklearn.graphs.draws import Seed
from walklearn.graphs.families import barbell, complete, grid, hypercube, ring, star, torus
from walklearn.graphs.graph import Graph
from walklearn.graphs.independent_edges import erdos_renyi, geometric, stochastic_block
from walklearn.graphs.named_edges import Network, read_network
from walklearn.graphs.names import FAMILIES
from walklearn.graphs.placement import place_rows
from walklearn.graphs.positions import spring_layout
from walklearn.graphs.preferential_attachment import barabasi_albert
from walklearn.graphs.rewired_edges import random_regular, watts_strogatz

__all__ = [
    "FAMILIES",
    "DisconnectedGraphError",
    "Graph",
    "Network",
    "Seed",
    "as_graph",
    "barabasi_albert",
    "barbell",
    "complete",
    "erdos_renyi",
    "from_edges",
    "from_igraph",
    "from_networkx",
    "from_scipy",
    "geometric",
    "grid",
    "hypercube",
    "place_rows",
    "random_regular",
    "read_edge_list",
    "read_network",
    "ring",
    "spring_layout",
    "star",
    "stochastic_block",
    "to_networkx",
    "torus",
    "watts_strogatz",
]
