"""A walk or gossip × replicates → `Trace`: the reference, its compiled twins, and recording."""

from walklearn.simulation.observer import Attack, attack
from walklearn.simulation.simulation import simulate
from walklearn.simulation.trace import Trace, TraceFileError

__all__ = ["Attack", "Trace", "TraceFileError", "attack", "simulate"]
