"""Real nodes that talk only to their neighbours: the plan they share, keys, wire and walk.

The way of a program through it: `create_node` makes a directory, `NodeDirectory` adds neighbours,
`Node` runs it inside an event loop, `send_command` speaks to one that runs in another process, and
`newest_model` takes the model. The command line does no more than this.

>>> from walklearn.node import Plan
>>> Plan.from_text('name = "x"')
Traceback (most recent call last):
    ...
walklearn.node.agreement.plan.PlanError: plan: nodes is missing; it must be a whole number of
at least 1.
"""

import os

import lazy_loader

# gRPC prints each handshake it refuses; a node logs and counts refusals in its own way.
os.environ.setdefault("GRPC_VERBOSITY", "NONE")

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
