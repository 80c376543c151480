"""Communication graphs.

A `Graph` is a simple, undirected, connected graph on the nodes 0 to N − 1, stored as two read-only
arrays (compressed sparse rows). Families (`ring`, `erdos_renyi`, …) generate graphs; `from_edges`,
`from_scipy`, `from_networkx`, `from_igraph` and `read_edge_list` convert them; `as_graph` accepts
any of these. A graph that is not connected is refused: a token could never visit all nodes.
"""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
