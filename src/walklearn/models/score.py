"""How good predictions are: the share of right labels, or R² = 1 − Σ(y − ŷ)² / Σ(y − ȳ)².

>>> print(score_of("regressor", [1.0, 2.0, 3.0], [1.0, 2.0, 4.0]))
R² 0.7857 on 3 rows
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from walklearn.tables.encoding import texts_of
from walklearn.wording import plural


class Score(NamedTuple):
    """The name of the measure, its value, and on how many rows.

    value: None where there is nothing to compare with, such as one row for R². baseline: for a
    classifier, what always answering with the most frequent class would get.
    """

    measure: str
    value: float | None
    rows: int
    baseline: float | None = None

    def __str__(self) -> str:
        value = "unknown" if self.value is None else f"{self.value:.4g}"
        text = f"{self.measure} {value} on {plural(self.rows, 'row')}"
        if self.baseline is None:
            return text
        return f"{text} (the most frequent class alone: {self.baseline:.4g})"


def score_of(kind: str, predicted: ArrayLike, y: ArrayLike) -> Score:
    """How well a "classifier" or a "regressor" has predicted these targets."""
    found, true = np.asarray(predicted), np.asarray(y)
    if kind == "regressor":
        spread = float(np.sum((true - true.mean()) ** 2))
        error = float(np.sum((true - found) ** 2))
        return Score("R²", 1.0 - error / spread if spread else None, len(true))
    if found.dtype.kind in "US" or true.dtype.kind in "OUS":
        found, true = texts_of(found), texts_of(true)
    counts = np.unique(true, return_counts=True)[1]
    baseline = float(counts.max() / len(true))
    return Score("accuracy", float(np.mean(found == true)), len(true), baseline)
