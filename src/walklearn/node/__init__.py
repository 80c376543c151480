"""Real nodes that talk only to their neighbours: the plan they share, keys, wire and walk.

The way of a program through it: `create_node` makes a directory, `NodeDirectory` adds neighbours,
`Node` runs it inside an event loop, `ask` speaks to one that runs in another process, and
`newest_model` takes the model. The command line does no more than this.

>>> from walklearn.node import Plan
>>> Plan.from_text('name = "x"')
Traceback (most recent call last):
    ...
walklearn.node.plan_table.PlanError: plan: nodes is missing.
"""

import os
from importlib import import_module
from typing import TYPE_CHECKING, Any

# gRPC prints each handshake it refuses; a node logs and counts refusals in its own way.
os.environ.setdefault("GRPC_VERBOSITY", "NONE")

# Public name -> the module that holds it, loaded on first use.
_HOME = {
    "Invite": "identity",
    "Node": "service",
    "NodeDirectory": "directory",
    "NodeRows": "rows",
    "Options": "service",
    "Plan": "plan",
    "PlanError": "plan",
    "ask": "control",
    "create_node": "creation",
    "newest_model": "trained",
    "serve": "service",
}

__all__ = [
    "Invite",
    "Node",
    "NodeDirectory",
    "NodeRows",
    "Options",
    "Plan",
    "PlanError",
    "ask",
    "create_node",
    "newest_model",
    "serve",
]

if TYPE_CHECKING:
    from walklearn.node.control import ask
    from walklearn.node.creation import create_node
    from walklearn.node.directory import NodeDirectory
    from walklearn.node.identity import Invite
    from walklearn.node.plan import Plan, PlanError
    from walklearn.node.rows import NodeRows
    from walklearn.node.service import Node, Options, serve
    from walklearn.node.trained import newest_model


def __getattr__(name: str) -> Any:
    if name in _HOME:
        return getattr(import_module(f"{__name__}.{_HOME[name]}"), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted(__all__)
