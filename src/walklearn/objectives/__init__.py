"""Objectives to minimise: `Objective`, and `Problem` for linear models on rows of nodes.

>>> from walklearn.objectives import Problem

>>> from walklearn.objectives.linear import losses
>>> Problem([[1.0], [2.0]], [1.0, 3.0], loss=losses.Squared()).smoothness_constants
array([2., 8.])
"""

from walklearn.objectives import datasets
from walklearn.objectives.linear import domains, losses
from walklearn.objectives.linear.optimum import NoMinimiserError, Optimum
from walklearn.objectives.linear.problem import Problem
from walklearn.objectives.linear.rows import Aggregate
from walklearn.objectives.objective import Objective

__all__ = [
    "Aggregate", "NoMinimiserError", "Objective", "Optimum", "Problem", "datasets", "domains",
    "losses",
]  # fmt: skip
