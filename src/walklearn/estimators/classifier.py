"""`RandomWalkClassifier`: logistic or multinomial regression over a network."""

from __future__ import annotations

from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.base import ClassifierMixin
from sklearn.utils.metaestimators import available_if
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import validate_data

from walklearn.estimators.random_walk import RandomWalk
from walklearn.estimators.statements import warn_about_score
from walklearn.fitting.request import loss_of
from walklearn.fitting.training import FitInput
from walklearn.models.score import class_probabilities, score_each_class
from walklearn.objectives.linear.losses import LOSSES

Array = NDArray[Any]


def _has_probabilities(estimator: RandomWalkClassifier) -> bool:
    loss: Any = estimator.loss
    known = LOSSES.get(loss or "logistic") if isinstance(loss, str | None) else loss
    if getattr(known, "gives_probabilities", False):
        return True
    raise AttributeError(f"loss={estimator.loss!r} gives no probabilities. Use 'logistic'.")


class RandomWalkClassifier(ClassifierMixin, RandomWalk):
    """A linear classifier trained by a model that walks over a graph.

    The loss is logistic for two classes and softmax for more. The objective is the mean loss over
    all rows plus (penalty/2)‖w‖², the intercept included.

    Examples
    --------
    >>> from sklearn.datasets import load_breast_cancer
    >>> X, y = load_breast_cancer(return_X_y=True)
    >>> classifier = RandomWalkClassifier(random_state=0).fit(X, y)
    >>> classifier.score(X, y) > 0.97
    True
    """

    classes_: Array

    def partial_fit(
        self,
        X: ArrayLike,
        y: ArrayLike,
        classes: ArrayLike | None = None,
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
        classes
            All labels of the stream, needed in the first call.

        Returns
        -------
        self
            The fitted estimator.
        """
        resumes = hasattr(self, "_state")
        if not resumes and classes is None:
            raise ValueError("classes must be passed on the first call to partial_fit.")
        known = self.classes_ if resumes else np.unique(np.asarray(classes))
        if classes is not None and not np.array_equal(known, np.unique(np.asarray(classes))):
            raise ValueError(f"classes must be the same in every call: they were {known}.")
        return self.run(self._prepare(X, y, nodes, sample_weight, resumes, known, partial=True))

    def _checked(
        self, X: ArrayLike, y: ArrayLike, resumes: bool, classes: Array | None = None
    ) -> FitInput:
        rows, labels = validate_data(
            self, X, y, dtype=np.float64, accept_sparse="csr", reset=not resumes
        )
        check_classification_targets(labels)
        known = np.unique(labels) if classes is None else classes
        if resumes and not np.array_equal(known, self.classes_):
            raise ValueError(
                f"warm_start needs the same classes: they were {self.classes_}, now {known}."
            )
        unknown = np.setdiff1d(labels, known)
        if unknown.size:
            raise ValueError(f"y has labels {unknown} that are not among the classes {known}.")
        resumed = getattr(self, "_resumed", None)
        earlier = None if resumes or resumed is None else resumed.classes
        if earlier is not None and earlier != tuple(known.tolist()):
            raise ValueError(
                f"the model to continue has the classes {earlier}, and y has "
                f"{tuple(known.tolist())}. Pass rows of all its classes and of no other."
            )
        if len(known) < 2:
            raise ValueError(f"a classifier needs at least 2 classes, y has 1 class: {known}.")
        loss, codes = loss_of(self.loss, len(known)), np.searchsorted(known, labels)
        targets = (codes if loss.takes == "class" else 2 * codes - 1).astype(float)
        return FitInput(rows, targets, loss, known)

    def decision_function(self, X: ArrayLike) -> Array:
        """Compute the scores of rows.

        Parameters
        ----------
        X
            The rows, dense or sparse, of shape (rows, features).

        Returns
        -------
        ndarray of shape (rows,) or (rows, classes)
            Positive for the second of two classes; a score for each of more classes.
        """
        scores = self._scores(X)
        return scores[:, 0] if scores.shape[1] == 1 else scores

    def predict(self, X: ArrayLike) -> Array:
        """Predict the most likely class of each row.

        Parameters
        ----------
        X
            The rows, dense or sparse, of shape (rows, features).

        Returns
        -------
        ndarray of shape (rows,)
            The labels.
        """
        best = score_each_class(self._scores(X)).argmax(axis=1)
        return np.asarray(self.classes_[best])

    @available_if(_has_probabilities)
    def predict_proba(self, X: ArrayLike) -> Array:
        """Predict the probability of each class.

        Parameters
        ----------
        X
            The rows, dense or sparse, of shape (rows, features).

        Returns
        -------
        ndarray of shape (rows, classes)
            The probabilities, in the order of `classes_`.
        """
        return class_probabilities(self._scores(X))

    @available_if(_has_probabilities)
    def predict_log_proba(self, X: ArrayLike) -> Array:
        """Predict the logarithm of the probability of each class.

        Parameters
        ----------
        X
            The rows, dense or sparse, of shape (rows, features).

        Returns
        -------
        ndarray of shape (rows, classes)
            The logarithms, in the order of `classes_`.
        """
        from scipy.special import log_softmax

        return np.asarray(log_softmax(score_each_class(self._scores(X)), axis=1))

    def score(self, X: ArrayLike, y: ArrayLike, sample_weight: ArrayLike | None = None) -> float:
        """Return the accuracy of the predictions.

        A score on private rows is a release that ε does not cover. The first score of a private
        estimator in a process, also of one fitted with a seed, issues a `PrivacyWarning`.
        """
        score = float(super().score(X, y, sample_weight))
        warn_about_score(self)
        return score
