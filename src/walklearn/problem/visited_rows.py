"""Scores of rows."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

Array = NDArray[Any]


def scores(rows: Any, model: Array) -> Array:
    """x·w of each row; of a flat model for several classes, the score of each class."""
    outputs = model.size // rows.shape[1]
    return np.asarray(rows @ (model if outputs == 1 else model.reshape(outputs, -1).T))
