"""A walk or gossip × replicates → `Trace`: the reference, its compiled twins, and recording."""

from walklearn.simulation.attack import Attack, attack
from walklearn.simulation.simulate import simulate
from walklearn.simulation.trace import Trace, TraceFileError
from walklearn.simulation.walk_audit import WalkAudit, audit_walk

__all__ = [
    "Attack",
    "Trace",
    "TraceFileError",
    "WalkAudit",
    "attack",
    "audit_walk",
    "simulate",
]
