"""`Model`: weights, what they mean, and how to predict with them."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from copy import copy
from dataclasses import FrozenInstanceError
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
from numpy.typing import ArrayLike, NDArray

from walklearn.checks import check_choice
from walklearn.objectives.linear.losses import LOSSES
from walklearn.objectives.linear.rows import finite_rows, is_sparse
from walklearn.privacy.accounting.claim import Claim
from walklearn.tables.encoding import Encoding
from walklearn.wording import plural

if TYPE_CHECKING:
    import onnx

Array = NDArray[Any]
Kind = Literal["classifier", "regressor"]
Iterate = Literal["average", "last"]
Label = str | int | float | bool


def kind_of(loss: str) -> Kind:
    """Whether a loss with this name makes a classifier or a regressor."""
    return "regressor" if LOSSES.by_name(loss).takes == "number" else "classifier"


class Model:
    """A linear model that a walk has trained, with all that is needed to use it.

    Parameters
    ----------
    weights, average
        The last iterate w and the average w̄, shape (features,), or (K, features) for K classes
        (`softmax`, or one against the rest), also flat, row by row. With an intercept, the last
        feature is the one that is always 1.
    kind
        "classifier" or "regressor".
    loss
        A name in `losses.LOSSES`, such as "logistic".
    columns
        An `Encoding`, the names of columns of numbers, or None for x0, x1, …
    classes
        The labels in the order of the scores; of two classes with one score, the second is the
        positive one.
    intercept
        Whether the last feature is an intercept.
    penalty
        The factor of ½‖w‖² it was trained with.
    updates
        How many updates were made.
    iterate
        The iterate that predicts, "average" (the theorems are about it) or "last".
    target
        The name of the column that is predicted.
    walk, privacy, ledger, details, report
        How it was trained and what that revealed, for people and for `model.json`,
        `ledger.json` and `report.md`.

    Examples
    --------
    >>> model = Model([2.0, -1.0], [2.0, -1.0], kind="regressor", loss="squared")
    >>> model.predict([[1.0, 1.0]]).tolist()
    [1.0]
    """

    def __init__(
        self,
        weights: ArrayLike,
        average: ArrayLike,
        *,
        kind: Kind,
        loss: str,
        columns: Encoding | Sequence[str] | None = None,
        classes: ArrayLike | None = None,
        intercept: bool = False,
        penalty: float = 0.0,
        updates: int = 0,
        iterate: Iterate = "average",
        target: str = "target",
        walk: str = "",
        privacy: Mapping[str, Any] | None = None,
        ledger: Mapping[str, Any] | None = None,
        details: Mapping[str, Any] | None = None,
        report: str = "",
    ) -> None:
        labels = None if classes is None else tuple(map(_checked_label, np.array(classes).tolist()))
        rows = len(labels) if labels and (len(labels) > 2 or _scores_each_class(loss)) else 1
        self.weights, self.average = _frozen_rows(weights, rows), _frozen_rows(average, rows)
        if columns is None:
            columns = Encoding.of_numbers(self.weights.shape[-1] - bool(intercept))
        elif not isinstance(columns, Encoding):
            columns = Encoding.of_numbers(columns)
        self.encoding: Encoding = columns
        self.kind, self.loss, self.classes = kind, loss, labels
        self.intercept = bool(intercept)
        self.penalty = float(penalty)
        self.updates = int(updates)
        self.iterate = iterate
        self.target = str(target)
        self.walk, self.report = walk, report
        self.privacy = dict(privacy or {})
        self.ledger = dict(ledger or {})
        self.details = dict(details or {})
        _check(self)
        self._is_made = True

    @property
    def claim(self) -> Claim:
        """The claim for everything that left a node in this training."""
        return Claim.from_dict(self.privacy)

    @property
    def used(self) -> Array:
        """The iterate that predicts, one row of weights for each score."""
        return np.atleast_2d(self.average if self.iterate == "average" else self.weights)

    @property
    def coefficients(self) -> Array:
        """The weights of the features, shape (scores, features)."""
        return self.used[:, : self.encoding.feature_count]

    @property
    def intercepts(self) -> Array:
        """The weight of the constant, one for each score; 0 where the model has none."""
        return self.used[:, -1] if self.intercept else np.zeros(len(self.used))

    @property
    def gives_probabilities(self) -> bool:
        """Whether the scores are log-odds."""
        return LOSSES.by_name(self.loss).gives_probabilities

    def scores(self, X: ArrayLike | Mapping[str, Any]) -> Array:
        """Compute x·w + intercept.

        Parameters
        ----------
        X : array-like, mapping or data frame
            A table (a dictionary or data frame with the columns of training, or a `Table` from
            a file), or encoded features of shape (rows, features), which may be sparse.

        Returns
        -------
        ndarray of shape (rows, scores)
            One score for two classes or a number, else one for each class.
        """
        return np.asarray(self._features(X) @ self.coefficients.T + self.intercepts)

    def predict(self, X: ArrayLike | Mapping[str, Any]) -> Array:
        """Predict the label with the highest score, or the number, for each row.

        Parameters
        ----------
        X : array-like, mapping or data frame
            A table (a dictionary or data frame with the columns of training, or a `Table` from
            a file), or encoded features of shape (rows, features), which may be sparse.

        Returns
        -------
        ndarray of shape (rows,)
            Labels of a classifier, numbers of a regressor.
        """
        return self.decide(self.scores(X))

    def predict_proba(self, X: ArrayLike | Mapping[str, Any]) -> Array:
        """Predict the probability of each class.

        Parameters
        ----------
        X : array-like, mapping or data frame
            A table (a dictionary or data frame with the columns of training, or a `Table` from
            a file), or encoded features of shape (rows, features), which may be sparse.

        Returns
        -------
        ndarray of shape (rows, classes)
            The probabilities, in the order of `classes`.
        """
        return self.probabilities(self.scores(X))

    def decide(self, scores: Array) -> Array:
        """Decide from scores what to predict for each row.

        Parameters
        ----------
        scores
            What `scores` gave, shape (rows, scores).

        Returns
        -------
        array
            The label with the highest score, or the number, of each row.
        """
        if self.classes is None:
            return scores[:, 0]
        alone = scores.shape[1] == 1  # a single score is that of the second class
        best = (scores[:, 0] > 0).astype(np.intp) if alone else scores.argmax(axis=1)
        return np.asarray(np.array(self.classes)[best])

    def probabilities(self, scores: Array) -> Array:
        """Compute the probability of each class from scores.

        Parameters
        ----------
        scores
            What `scores` gave, shape (rows, scores).

        Returns
        -------
        array
            Shape (rows, classes); a ValueError is raised for a loss that gives none.
        """
        if not self.gives_probabilities:
            raise ValueError(
                f"a model with the loss {self.loss!r} gives scores, not probabilities. Train with "
                "the logistic loss, or use the labels or scores."
            )
        if scores.shape[1] == 1:
            positive = _sigmoid(scores[:, 0])
            return np.column_stack([_sigmoid(-scores[:, 0]), positive])
        if not _scores_each_class(self.loss):  # one against the rest
            each = _sigmoid(scores)
            return np.asarray(each / each.sum(axis=1, keepdims=True))
        weights = np.exp(scores - scores.max(axis=1, keepdims=True))
        return np.asarray(weights / weights.sum(axis=1, keepdims=True))

    def __setattr__(self, name: str, value: Any) -> None:
        """Refuse to change a model: its privacy claim holds for these weights only."""
        if hasattr(self, "_is_made"):
            raise FrozenInstanceError(f"{name} of a model cannot be changed: make a new Model.")
        super().__setattr__(name, value)

    def __delattr__(self, name: str) -> None:
        self.__setattr__(name, None)

    def with_details(self, more: Mapping[str, Any]) -> Model:
        """The same model with more details of its training."""
        known = copy(self)
        known.__dict__["details"] = {**self.details, **more}
        return known

    def save(self, path: str | os.PathLike[str], overwrite: bool = False) -> None:
        """Keep the model in a directory, which appears whole or not at all.

        Parameters
        ----------
        path
            The directory; those above it are made.
        overwrite
            Whether to replace a directory that is there, which must hold a model.
        """
        from walklearn.models.directory import save

        save(self, Path(path), overwrite)

    @classmethod
    def load(cls, path: str | os.PathLike[str]) -> Model:
        """Read a model directory; `ModelFileError` says what is wrong with a bad one.

        Parameters
        ----------
        path
            The directory.

        Returns
        -------
        Model
            The model that was saved there.
        """
        from walklearn.models.directory import load

        return load(Path(path))

    def to_sklearn(self) -> Any:
        """Make a fitted scikit-learn estimator that predicts the same from the same columns."""
        from walklearn.models.sklearn_export import to_sklearn

        return to_sklearn(self)

    def to_onnx(self) -> onnx.ModelProto:
        """Make an ONNX model for other languages and servers; `onnx.save` writes it."""
        from walklearn.models.onnx_export import to_onnx

        return to_onnx(self)

    def __repr__(self) -> str:
        classes = "" if self.classes is None else f" of {len(self.classes)} classes"
        return (
            f"Model({self.kind}{classes}, {plural(self.encoding.feature_count, 'feature')}, "
            f"{self.loss}, {plural(self.updates, 'update')})"
        )

    def _features(self, X: Any) -> Any:
        if isinstance(X, Mapping) or hasattr(X, "columns"):
            return self.encoding.encode(X)
        features = X.tocsr() if is_sparse(X) else np.asarray(X, dtype=np.float64)
        expected = self.encoding.feature_count
        if features.ndim != 2 or features.shape[1] != expected:
            raise ValueError(
                f"X must have shape (rows, {expected}), a column for each feature of the model, "
                f"got {features.shape}."
            )
        finite = finite_rows(features)
        if not finite.all():
            raise ValueError(
                f"row {int(finite.argmin())} of X has a value that is NaN or infinite."
            )
        return features


def _sigmoid(scores: Array) -> Array:
    """1 / (1 + e^(−s)), by way of e^(−|s|), which cannot overflow."""
    small = np.exp(-np.abs(scores))
    return np.asarray(np.where(scores >= 0, 1.0, small) / (1.0 + small))


def _frozen_rows(weights: ArrayLike, rows: int) -> Array:
    array = np.array(weights, dtype=np.float64)
    if rows > 1 and array.ndim == 1 and array.size % rows == 0:
        array = array.reshape(rows, -1)
    array.setflags(write=False)
    return array


def _scores_each_class(loss: str) -> bool:
    return loss in LOSSES and LOSSES[loss].takes == "class"


def _checked_label(label: Any) -> Label:
    """The label, if it is a value that JSON has."""
    if not isinstance(label, str | int | float | bool):
        raise TypeError(f"a class must be a text or a number, got {label!r}.")
    return label


def _check(model: Model) -> None:
    if model.loss not in LOSSES or kind_of(model.loss) != model.kind:
        known = ", ".join(f"{loss} ({kind_of(loss)})" for loss in LOSSES)
        raise ValueError(f"there is no {model.kind} with the loss {model.loss!r}: {known}.")
    check_choice("iterate", model.iterate, Iterate)
    shapes = _shapes(model)
    for name, array in (("weights", model.weights), ("average", model.average)):
        if array.shape not in shapes:
            raise ValueError(
                f"{name} must have shape {' or '.join(map(str, shapes))} "
                f"({model.encoding.feature_count} features{' and the intercept' * model.intercept})"
                f", got {array.shape}."
            )
        if not np.isfinite(array).all():
            raise ValueError(f"{name} has values that are NaN or infinite: the training diverged.")
    if model.weights.shape != model.average.shape:
        raise ValueError("weights and average must have the same shape.")


def _shapes(model: Model) -> list[tuple[int, ...]]:
    """The shapes that the weights may have."""
    size = model.encoding.feature_count + model.intercept
    if model.kind == "regressor":
        if model.classes is not None:
            raise ValueError("a regressor has no classes.")
        return [(size,)]
    if model.classes is None or len(set(model.classes)) != len(model.classes):
        raise ValueError("a classifier needs its classes, all different.")
    count = len(model.classes)
    if count < 2:
        raise ValueError(f"a classifier needs at least two classes, got {list(model.classes)!r}.")
    return [(count, size)] if count > 2 or _scores_each_class(model.loss) else [(size,)]
