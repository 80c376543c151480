"""Real nodes that talk only to their neighbours: the plan they share, keys, wire and walk."""

import os

# gRPC prints each handshake it refuses; a node logs and counts refusals in its own way.
os.environ.setdefault("GRPC_VERBOSITY", "NONE")
