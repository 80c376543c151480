"""What a visit does to the model: step sizes, the SGD of Algorithms 1 to 3, and gossip's.

>>> from walklearn.updates import PowerStep
>>> PowerStep(1.0, 0.75)(16)
0.125
"""

from walklearn.updates.gossip_sgd import (
    GOSSIP,
    AsynchronousGossip,
    Gossip,
    GradientTracking,
    SynchronousGossip,
)
from walklearn.updates.step_sizes import ConstantStep, PowerStep, StepSize

__all__ = [
    "GOSSIP",
    "AsynchronousGossip",
    "ConstantStep",
    "Gossip",
    "GradientTracking",
    "PowerStep",
    "StepSize",
    "SynchronousGossip",
]
