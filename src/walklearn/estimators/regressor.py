"""`RandomWalkRegressor`: least squares or Huber regression over a network."""

from __future__ import annotations

from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.base import RegressorMixin
from sklearn.utils.validation import validate_data

from walklearn.estimators.random_walk import RandomWalk
from walklearn.estimators.statements import warn_about_score
from walklearn.fitting.request import loss_of
from walklearn.fitting.training import FitInput
from walklearn.tables.table import reads_as_number

Array = NDArray[Any]


class RandomWalkRegressor(RegressorMixin, RandomWalk):
    """A linear regression trained by a model that walks over a graph.

    The objective is the mean of ½(x·w − y)² over all rows plus (penalty/2)‖w‖², the intercept
    included.

    Examples
    --------
    >>> from sklearn.datasets import load_diabetes
    >>> X, y = load_diabetes(return_X_y=True)
    >>> RandomWalkRegressor(random_state=0).fit(X, y).score(X, y) > 0.5
    True
    """

    _predicts_numbers: ClassVar[bool] = True

    def partial_fit(
        self,
        X: ArrayLike,
        y: ArrayLike,
        nodes: ArrayLike | None = None,
        sample_weight: ArrayLike | None = None,
    ) -> Self:
        """Continue the walk over new rows with "sgd"; the token keeps w, w̄ and k.

        A call makes `steps` updates, by default five per node with new rows (one per node if
        something is private). By default, predictions use the average over the last half of all
        updates so far. The ledger charges each call for the releases of its rows.

        Parameters
        ----------
        X, y, nodes, sample_weight
            As for `fit`.

        Returns
        -------
        self
            The fitted estimator.
        """
        resumes = hasattr(self, "_state")
        return self.run(self._prepare(X, y, nodes, sample_weight, resumes, partial=True))

    def _checked(
        self, X: ArrayLike, y: ArrayLike, resumes: bool, classes: Array | None = None
    ) -> FitInput:
        try:
            rows, targets = validate_data(
                self, X, y, dtype=np.float64, accept_sparse="csr", y_numeric=True, reset=not resumes
            )
            numbers = np.asarray(targets, dtype=np.float64)
        except ValueError:
            _check_numbers(y)
            raise
        return FitInput(rows, numbers, loss_of(self.loss, classes=None))

    def predict(self, X: ArrayLike) -> Array:
        """Predict the target of each row.

        Parameters
        ----------
        X
            The rows, dense or sparse, of shape (rows, features).

        Returns
        -------
        ndarray of shape (rows,)
            The predicted numbers.
        """
        return np.asarray(self._scores(X)[:, 0])

    def score(self, X: ArrayLike, y: ArrayLike, sample_weight: ArrayLike | None = None) -> float:
        """Return the coefficient of determination R² of the predictions.

        A score on private rows is a release that ε does not cover. The first score of a private
        estimator in a process, also of one fitted with a seed, issues a `PrivacyWarning`.
        """
        score = float(super().score(X, y, sample_weight))
        warn_about_score(self)
        return score


def _check_numbers(y: Any) -> None:
    """Raise an error that names the first text in y; scikit-learn's error is less clear."""
    if np.asarray(y).dtype.kind in "biuf":
        return
    for number, target in enumerate(np.asarray(y, dtype=object).ravel()):
        if isinstance(target, str) and not reads_as_number(target):
            raise ValueError(
                f"row {number} of y is the text {str(target)!r}, and a regressor predicts numbers. "
                "Use RandomWalkClassifier for classes."
            )
