"""The change of the token in a visit: SGD of Algorithms 1 to 3; SAGA and Finito with memory."""

from walklearn.streams import draw_start
from walklearn.updates.finito import Finito
from walklearn.updates.saga import Saga
from walklearn.updates.sgd import Sgd
from walklearn.updates.step_sizes import ConstantStep, PowerStep, StepSize
from walklearn.updates.update import UPDATES, Update, VisitContext, VisitResult

__all__ = [
    "UPDATES",
    "ConstantStep",
    "Finito",
    "PowerStep",
    "Saga",
    "Sgd",
    "StepSize",
    "Update",
    "VisitContext",
    "VisitResult",
    "draw_start",
]
