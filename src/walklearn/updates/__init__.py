"""What a visit does to the model: the SGD of Algorithms 1 to 3, updates with memory, and gossip's.

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
from walklearn.updates.random_streams import draw_start
from walklearn.updates.saga import Saga
from walklearn.updates.sgd import Sgd
from walklearn.updates.step_sizes import ConstantStep, PowerStep, StepSize
from walklearn.updates.update import UPDATES, Update, VisitContext, VisitResult

__all__ = [
    "GOSSIP",
    "UPDATES",
    "AsynchronousGossip",
    "ConstantStep",
    "Gossip",
    "GradientTracking",
    "PowerStep",
    "Saga",
    "Sgd",
    "StepSize",
    "SynchronousGossip",
    "Update",
    "VisitContext",
    "VisitResult",
    "draw_start",
]
