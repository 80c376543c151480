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

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
