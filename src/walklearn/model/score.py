"""How good predictions are: the share of right labels, or R² = 1 − Σ(y − ŷ)² / Σ(y − ȳ)².

>>> from walklearn.model import Model
>>> model = Model([1.0], [1.0], kind="regressor", loss="squared")
>>> score_of(model, [[1.0], [2.0], [3.0]], [1.0, 2.0, 4.0])
('R²', 0.785...)
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import ArrayLike

if TYPE_CHECKING:
    from walklearn.model.model import Model


def score_of(model: Model, X: ArrayLike, y: ArrayLike) -> tuple[str, float]:
    """The name of the measure and its value."""
    found, true = model.predict(X), np.asarray(y)
    if model.classes is None:
        spread = float(np.sum((true - true.mean()) ** 2))
        error = float(np.sum((true - found) ** 2))
        return "R²", 1.0 - error / spread if spread else math.nan
    if found.dtype.kind in "US" or true.dtype.kind in "OUS":
        found, true = found.astype(str), true.astype(str)
    return "accuracy", float(np.mean(found == true))
