"""The rows of one node that a visit looks at, and what it computes of them."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

Array = NDArray[Any]


def scores(rows: Any, model: Array) -> Array:
    """x·w of each row; of a flat model for several classes, the score of each class."""
    outputs = model.size // rows.shape[1]
    return np.asarray(rows @ (model if outputs == 1 else model.reshape(outputs, -1).T))


class VisitedRows(NamedTuple):
    """Rows of one node that a visit looks at, φ_i(w) ≈ share · Σ weight · ℓ over them.

    share: n_i / |B|, where a mini-batch B stands for the n_i rows of the node; else 1.
    """

    X: Any
    y: Array
    weights: NDArray[np.float64]
    share: float

    def scores(self, model: Array) -> Array:
        """x·w of each row; of a matrix model, the score of each class."""
        return scores(self.X, model)

    def gradient(self, slopes: Array) -> Array:
        """Σ weight · slope · x, flat."""
        return np.asarray((slopes.T * self.weights) @ self.X).reshape(-1)
