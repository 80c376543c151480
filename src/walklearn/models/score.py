"""Class scores, and measures of predictions: accuracy, or R² = 1 − Σ(y − ŷ)² / Σ(y − ȳ)².

>>> print(score_of("regressor", [1.0, 2.0, 3.0], [1.0, 2.0, 4.0]))
R² 0.7857 on 3 rows
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from walklearn.tables.encoding import texts_of
from walklearn.wording import plural


class Score(NamedTuple):
    """The value of a measure on a number of rows.

    value: None if it is undefined, such as R² of one row. baseline: the accuracy of always
    predicting the majority class.
    """

    measure: str
    value: float | None
    rows: int
    baseline: float | None = None

    def __str__(self) -> str:
        value = "unknown" if self.value is None else f"{self.value:.4g}"
        base = self.baseline
        more = "" if base is None else f" (majority class: {base:.4g})"
        return f"{self.measure} {value} on {plural(self.rows, 'row')}{more}"


def score_of(kind: str, predicted: ArrayLike, y: ArrayLike) -> Score:
    """Return the accuracy of a "classifier", or R² of a "regressor"."""
    guess, true = np.asarray(predicted), np.asarray(y)
    if kind == "regressor":
        spread = float(np.sum((true - true.mean()) ** 2))
        error = float(np.sum((true - guess) ** 2))
        return Score("R²", 1.0 - error / spread if spread else None, len(true))
    if guess.dtype.kind in "US" or true.dtype.kind in "OUS":
        guess, true = texts_of(guess), texts_of(true)
    counts = np.unique(true, return_counts=True)[1]
    baseline = float(counts.max() / len(true))
    return Score("accuracy", float(np.mean(guess == true)), len(true), baseline)


def score_each_class(scores: NDArray[Any]) -> NDArray[Any]:
    """Return one score per class; a single score belongs to the second class, the first has 0."""
    return np.column_stack([np.zeros(len(scores)), scores]) if scores.shape[1] == 1 else scores


def class_probabilities(scores: NDArray[Any], one_against_rest: bool = False) -> NDArray[Any]:
    """Return probabilities from log-odds, of each class or of each class against the rest."""
    from scipy.special import expit, softmax  # imported late: loading a model needs no SciPy

    if one_against_rest and scores.shape[1] > 1:
        each = expit(scores)
        return np.asarray(each / each.sum(axis=1, keepdims=True))
    return np.asarray(softmax(score_each_class(scores), axis=1))
