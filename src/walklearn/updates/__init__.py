"""The change of the token in a visit: the SGD of Algorithms 1 to 3, and SAGA, which has memory."""

from walklearn.streams import draw_start
from walklearn.updates.saga import Saga
from walklearn.updates.sgd import Sgd
from walklearn.updates.step_sizes import ConstantStep, PowerStep, StepSize
from walklearn.updates.update import UPDATES, Update, VisitContext, VisitResult

__all__ = [
    "UPDATES",
    "ConstantStep",
    "PowerStep",
    "Saga",
    "Sgd",
    "StepSize",
    "Update",
    "VisitContext",
    "VisitResult",
    "draw_start",
]
