"""The problem that `walklearn train` would solve, for the simulations of `walklearn advise`."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from walklearn.cli.task import task_of
from walklearn.estimators.units import Units
from walklearn.privacy import clip_features
from walklearn.problem import Problem
from walklearn.problem.losses import Logistic, Loss, Softmax, Squared

if TYPE_CHECKING:
    from walklearn.files import Rows
    from walklearn.graphs import Network


def problem_of(
    rows: Rows, network: Network, task: str, penalty: float, bound: float | None, private: bool
) -> Problem:
    """Rows as the estimators train on them: standardised, under privacy clipped instead."""
    loss: Loss = Squared()
    targets = rows.y
    if task_of(rows.y, rows.target, task) == "classification":
        labels = np.searchsorted(rows.classes, rows.y)
        two = len(rows.classes) == 2
        loss, targets = (Logistic(), 2 * labels - 1) if two else (Softmax(), labels)
    X = rows.X if bound is None else clip_features(rows.X, bound)[0]
    y = targets.astype(np.float64)
    units = Units.given(X.shape[1], True)
    if not private:
        units = Units.standard(X, np.ones(len(X)), True, y if isinstance(loss, Squared) else None)
    return Problem(
        units.rows(X),
        y - units.target_shift,
        loss=loss,
        penalty=penalty,
        node_of_row=network.owners,
        nodes=network.graph.node_count,
        objective="mean",
        empty_nodes="relay",
    )
