"""walklearn: train one model over a network of devices with no server.

The model walks from neighbour to neighbour as a token; each node it visits improves it with
its own data. This package simulates such walks, gossip, and what they emulate, and tells
what theory says of them.

>>> import walklearn as wl
>>> graph = wl.graphs.erdos_renyi(30, 0.3, seed=1)
>>> X, y = wl.datasets.two_gaussians(30, dimension=3, variance=10.0, seed=1)
>>> problem = wl.Problem(X, y, penalty=1.0, domain=wl.domains.Ball(10.0))
>>> run = wl.simulate(problem, graph, wl.walks.Weighted(), steps=2_000,
...                   step_size=wl.PowerStep(0.01, 0.75), replicates=4, seed=1)
>>> run.distance.shape
(4, 200)
"""

import lazy_loader

__version__ = "0.2.0"

# The public names are declared once, in __init__.pyi, and load on first use: the command line and
# a node start without Numba, SciPy's solvers or matplotlib.
__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
