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

from importlib import import_module
from typing import TYPE_CHECKING, Any

__version__ = "0.1.0"

# Public name -> the module that holds it. Modules load on first use (PEP 562), so that the
# command line and a node start without numba, SciPy's solvers or matplotlib.
_HOME = {
    "Advice": "advice",
    "Attack": "observer",
    "AsynchronousGossip": "gossip_sgd",
    "ConstantStep": "step_sizes",
    "DisconnectedGraphError": "graphs",
    "Graph": "graphs",
    "Model": "model",
    "ModelFileError": "model",
    "NoMinimiserError": "optimum",
    "PowerStep": "step_sizes",
    "Problem": "problem",
    "RandomWalkClassifier": "estimators",
    "RandomWalkRegressor": "estimators",
    "SynchronousGossip": "gossip_sgd",
    "Trace": "trace",
    "TraceFileError": "trace",
    "advise": "advice",
    "attack": "observer",
    "simulate": "simulation",
}
_MODULES = (
    "datasets", "domains", "graphs", "losses", "node", "plot", "privacy", "studies", "theory",
    "walks",
)  # fmt: skip

__all__ = [
    "Advice",
    "AsynchronousGossip",
    "Attack",
    "ConstantStep",
    "DisconnectedGraphError",
    "Graph",
    "Model",
    "ModelFileError",
    "NoMinimiserError",
    "PowerStep",
    "Problem",
    "RandomWalkClassifier",
    "RandomWalkRegressor",
    "SynchronousGossip",
    "Trace",
    "TraceFileError",
    "advise",
    "attack",
    "datasets",
    "domains",
    "graphs",
    "losses",
    "node",
    "plot",
    "privacy",
    "simulate",
    "studies",
    "theory",
    "walks",
]

if TYPE_CHECKING:
    from walklearn import (
        datasets,
        domains,
        graphs,
        losses,
        node,
        plot,
        privacy,
        studies,
        theory,
        walks,
    )  # fmt: skip
    from walklearn.advice import Advice, advise
    from walklearn.estimators import RandomWalkClassifier, RandomWalkRegressor
    from walklearn.gossip_sgd import AsynchronousGossip, SynchronousGossip
    from walklearn.graphs import DisconnectedGraphError, Graph
    from walklearn.model import Model, ModelFileError
    from walklearn.observer import Attack, attack
    from walklearn.optimum import NoMinimiserError
    from walklearn.problem import Problem
    from walklearn.simulation import simulate
    from walklearn.step_sizes import ConstantStep, PowerStep
    from walklearn.trace import Trace, TraceFileError


def __getattr__(name: str) -> Any:
    if name in _MODULES:
        return import_module(f"{__name__}.{name}")
    if name in _HOME:
        return getattr(import_module(f"{__name__}.{_HOME[name]}"), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted(__all__)
