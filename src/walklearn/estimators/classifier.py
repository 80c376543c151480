"""`RandomWalkClassifier`: logistic or multinomial regression over a network."""

from __future__ import annotations

from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.base import ClassifierMixin
from sklearn.utils.metaestimators import available_if
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import validate_data

from walklearn.estimators.parameters import check_parameters, loss_of
from walklearn.estimators.random_walk import RandomWalk
from walklearn.problem.losses import LOSSES, Loss, Softmax

Array = NDArray[Any]


def _has_probabilities(estimator: RandomWalkClassifier) -> bool:
    loss: Any = estimator.loss
    known = LOSSES.get(loss or "logistic") if isinstance(loss, str | None) else loss
    if getattr(known, "gives_probabilities", False):
        return True
    raise AttributeError(f"there are no probabilities with loss={estimator.loss!r}.")


class RandomWalkClassifier(ClassifierMixin, RandomWalk):
    """A linear classifier trained by a model that walks over a graph.

    Two classes are told apart by the logistic loss, more by softmax. The objective is the mean loss
    over all rows plus (penalty/2)‖w‖², the intercept included.

    Examples
    --------
    >>> from sklearn.datasets import load_breast_cancer
    >>> X, y = load_breast_cancer(return_X_y=True)
    >>> classifier = RandomWalkClassifier(random_state=0).fit(X, y)
    >>> classifier.score(X, y) > 0.97
    True
    """

    classes_: Array

    def fit(
        self,
        X: ArrayLike,
        y: ArrayLike,
        nodes: ArrayLike | None = None,
        sample_weight: ArrayLike | None = None,
    ) -> Self:
        """Train on rows X with labels y; `nodes` names the owner of each row.

        By default every row has a node of its own. sample_weight: how many rows each counts as.
        """
        check_parameters(self)
        go_on = self.warm_start and hasattr(self, "_state")
        rows, labels = self._checked(X, y, go_on)
        classes = np.unique(labels)
        if go_on and not np.array_equal(classes, self.classes_):
            raise ValueError(
                f"with warm_start the classes must stay: they were {self.classes_}, now {classes}."
            )
        return self._learn(rows, labels, classes, nodes, sample_weight, go_on, one_call=False)

    def partial_fit(
        self,
        X: ArrayLike,
        y: ArrayLike,
        classes: ArrayLike | None = None,
        nodes: ArrayLike | None = None,
        sample_weight: ArrayLike | None = None,
    ) -> Self:
        """Let the token walk on over new rows by the paper's update: it keeps w, w̄ and k.

        A call makes `steps` updates, by default five for each node with new rows (under privacy one
        for each node). What predicts is by default the average over the last half of all updates so
        far. What the nodes release of the new rows is charged in the ledger once more.

        Parameters
        ----------
        classes
            All labels there will be, needed in the first call.
        """
        check_parameters(self)
        go_on = hasattr(self, "_state")
        rows, labels = self._checked(X, y, go_on)
        if not go_on and classes is None:
            raise ValueError("classes must be passed on the first call to partial_fit.")
        known = self.classes_ if go_on else np.unique(np.asarray(classes))
        if classes is not None and not np.array_equal(known, np.unique(np.asarray(classes))):
            raise ValueError(f"classes must be the same in every call: they were {known}.")
        unknown = np.setdiff1d(labels, known)
        if unknown.size:
            raise ValueError(f"y has labels {unknown} that are not among the classes {known}.")
        return self._learn(rows, labels, known, nodes, sample_weight, go_on, one_call=True)

    def _checked(self, X: ArrayLike, y: ArrayLike, go_on: bool) -> tuple[Array, Array]:
        rows, labels = validate_data(
            self, X, y, dtype=np.float64, accept_sparse="csr", reset=not go_on
        )
        check_classification_targets(labels)
        return rows, labels

    def _learn(
        self,
        X: Array,
        y: Array,
        classes: Array,
        nodes: ArrayLike | None,
        sample_weight: ArrayLike | None,
        go_on: bool,
        one_call: bool,
    ) -> Self:
        targets, loss = self._coded(y, classes)
        self._walk(X, targets, loss, nodes, sample_weight, go_on, one_call)
        self.classes_ = classes
        self.coef_, self.intercept_ = self._split()
        return self

    def _taken(self, X: ArrayLike, y: ArrayLike) -> tuple[Array, Array, Loss]:
        rows, labels = self._checked(X, y, go_on=False)
        return rows, *self._coded(labels, np.unique(labels))

    def _coded(self, labels: Array, classes: Array) -> tuple[Array, Loss]:
        """The labels as the loss takes them, and the loss."""
        if len(classes) < 2:
            raise ValueError(f"a classifier needs at least 2 classes, y has 1 class: {classes}.")
        loss, codes = self._loss(len(classes)), np.searchsorted(classes, labels)
        return (codes if loss.takes == "class" else 2 * codes - 1).astype(float), loss

    def _loss(self, classes: int) -> Loss:
        loss = loss_of(self.loss, "classifier", "logistic")
        if classes > 2 and self.loss in (None, "logistic"):
            loss = Softmax()
        if (classes > 2) != (loss.takes == "class"):
            raise ValueError(
                f"{loss!r} does not tell {classes} classes apart: use loss='logistic', which is "
                "softmax for more than two."
            )
        return loss.for_classes(classes)

    def decision_function(self, X: ArrayLike) -> Array:
        """Scores: above 0 for the second of two classes; one per class for more."""
        scores = self._scores(X)
        return scores[:, 0] if scores.shape[1] == 1 else scores

    def predict(self, X: ArrayLike) -> Array:
        """The most likely class of each row."""
        scores = self.decision_function(X)
        best = (scores > 0).astype(int) if scores.ndim == 1 else scores.argmax(axis=1)
        return np.asarray(self.classes_[best])

    @available_if(_has_probabilities)
    def predict_proba(self, X: ArrayLike) -> Array:
        """The probability of each class, in the order of `classes_`."""
        from scipy.special import expit, softmax

        scores = self.decision_function(X)
        if scores.ndim == 1:
            return np.column_stack([expit(-scores), expit(scores)])
        return np.asarray(softmax(scores, axis=1))

    @available_if(_has_probabilities)
    def predict_log_proba(self, X: ArrayLike) -> Array:
        """The logarithms of the probabilities."""
        from scipy.special import log_expit, log_softmax

        scores = self.decision_function(X)
        if scores.ndim == 1:
            return np.column_stack([log_expit(-scores), log_expit(scores)])
        return np.asarray(log_softmax(scores, axis=1))
