"""Losses, aggregates and raw data that several tests make problems of."""

import numpy as np
import pytest

from walklearn.objectives import Problem
from walklearn.objectives.linear.losses import Huber, Logistic, Softmax, Squared, SquaredHinge

LOSSES = [Logistic(), Squared(), Huber(0.7), SquaredHinge(), Softmax(3)]
MARGIN_LOSSES = (Logistic, SquaredHinge)
AGGREGATES = ["sum", "mean", "node-mean"]

every_loss = pytest.mark.parametrize("loss", LOSSES, ids=repr)
every_aggregate = pytest.mark.parametrize("aggregate", AGGREGATES)


class Case:
    """Raw data with rows in arbitrary order, some nodes with many rows, some with none."""

    def __init__(self, loss, aggregate, penalty=0.4, relays=True, seed=0, rows=17, d=3):
        generator = np.random.default_rng(seed)
        self.loss, self.aggregate, self.penalty = loss, aggregate, penalty
        self.X = generator.standard_normal((rows, d)) * np.exp(generator.standard_normal((rows, 1)))
        self.nodes = 7 if relays else 5
        held = np.concatenate([np.arange(5), np.zeros(6, int), np.full(rows - 11, 3)])
        self.owners = generator.permutation(held) + relays  # nodes 0 and 6 are relays
        self.y = targets_for(loss, rows, generator)
        self.K = 3 if isinstance(loss, Softmax) else 1
        self.shape = (3, d) if isinstance(loss, Softmax) else (d,)

    def problem(self, **changes):
        arguments = {
            "loss": self.loss, "penalty": self.penalty, "aggregate": self.aggregate,
            "node_of_row": self.owners, "nodes": self.nodes, "empty_nodes": "relay",
        }  # fmt: skip
        return Problem(self.X, self.y, **(arguments | changes))


def targets_for(loss, rows, generator, classes=3):
    if isinstance(loss, MARGIN_LOSSES):
        return generator.choice([-1.0, 1.0], rows)
    if isinstance(loss, Softmax):
        return generator.permutation(np.arange(rows) % classes).astype(float)
    return 2.0 * generator.standard_normal(rows)


def local_value(problem, node, w, draws=()):
    """f_i(w), with the penalty."""
    return problem.local_value(node, w, draws) + problem.penalty / 2 * np.sum(np.square(w))


def local_gradient(problem, node, w, draws=()):
    """∇f_i(w), with the penalty."""
    return problem.gradient(node, w, draws) + problem.penalty * np.ravel(w)
