"""What is minimised: rows and their owners, losses, domains, and the `Problem` they make.

>>> from walklearn.problem import Problem, losses
>>> Problem([[1.0], [2.0]], [1.0, 3.0], loss=losses.Squared()).smoothness_constants
array([2., 8.])
"""

from walklearn.problem import datasets, domains, losses
from walklearn.problem.objective import Objective
from walklearn.problem.optimum import NoMinimiserError, Optimum
from walklearn.problem.problem import Aggregate, Problem

__all__ = [
    "Aggregate", "NoMinimiserError", "Objective", "Optimum", "Problem", "datasets", "domains",
    "losses",
]  # fmt: skip
