"""`Model`: the weights of a trained model, their encoding, and predictions."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import KW_ONLY, InitVar, dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
from numpy.typing import ArrayLike, NDArray

from walklearn.checks import check_choice
from walklearn.models.score import class_probabilities, score_each_class
from walklearn.objectives.linear.losses import LOSSES
from walklearn.objectives.linear.rows import finite_rows, is_sparse
from walklearn.privacy.accounting.claim import Claim
from walklearn.tables.encoding import Encoding
from walklearn.wording import plural

if TYPE_CHECKING:
    import onnx

Array = NDArray[Any]
Iterate = Literal["average", "last"]
Label = str | int | float | bool


@dataclass(frozen=True, eq=False, repr=False)
class Model:
    """A trained linear model. It cannot be changed: its claim holds for these weights only.

    Parameters
    ----------
    weights, average
        The last iterate w and the average w̄, of shape (features,), or (K, features) for K classes
        (softmax or one against the rest), or flattened row by row. With an intercept, the last
        feature is the constant 1.
    loss
        A name in `losses.LOSSES`, such as "logistic".
    columns
        An `Encoding`, the names of columns of numbers, or None for x0, x1, …
    classes
        The labels in the order of the scores; a single score is that of the second class.
    intercept
        True if the last feature is an intercept.
    penalty
        The factor of ½‖w‖² in the objective.
    updates
        The number of updates.
    iterate
        The iterate that predicts, "average" (of the theorems) or "last".
    target
        The name of the column that is predicted.
    walk, privacy, ledger, details, report
        The training and what it disclosed, for people and for `model.json`, `ledger.json` and
        `report.md`.

    Examples
    --------
    >>> model = Model([2.0, -1.0], [2.0, -1.0], loss="squared")
    >>> model.predict([[1.0, 1.0]]).tolist()
    [1.0]
    """

    weights: Any
    average: Any
    _: KW_ONLY
    loss: str
    columns: InitVar[Encoding | Sequence[str] | None] = None
    encoding: Encoding = field(init=False)
    classes: Sequence[Label] | None = None
    intercept: bool = False
    penalty: float = 0.0
    updates: int = 0
    iterate: Iterate = "average"
    target: str = "target"
    walk: str = ""
    privacy: Mapping[str, Any] = field(default_factory=dict)
    ledger: Mapping[str, Any] = field(default_factory=dict)
    details: Mapping[str, Any] = field(default_factory=dict)
    report: str = ""

    def __post_init__(self, columns: Encoding | Sequence[str] | None) -> None:
        known = vars(self)  # the fields themselves are frozen
        kinds = {"intercept": bool, "penalty": float, "updates": int, "target": str}
        for name, kind in kinds.items():
            known[name] = kind(known[name])
        for name in ("privacy", "ledger", "details"):  # the maker may change its dictionaries
            known[name] = dict(known[name] or {})
        check_choice("iterate", self.iterate, Iterate)
        rows = 1
        if self.classes is not None:
            known["classes"] = tuple(np.array(self.classes).tolist())
            several = len(self.classes) > 2 or self._scores_each_class
            rows = len(self.classes) if several else 1
        self._check_classes()
        arrays = {name: np.array(known[name], dtype=np.float64) for name in ("weights", "average")}
        if not isinstance(columns, Encoding):
            count = max(1, arrays["weights"].size // rows - self.intercept)
            columns = Encoding.of_numbers(count if columns is None else columns)
        known["encoding"] = columns
        size = columns.feature_count + self.intercept
        shape = (size,) if rows == 1 else (rows, size)
        for name, array in arrays.items():
            if array.shape not in (shape, (rows * size,)):
                raise ValueError(
                    f"{name} must have shape {shape} ({columns.feature_count} features"
                    f"{' and the intercept' * self.intercept}), got {array.shape}."
                )
            if not np.isfinite(array).all():
                raise ValueError(f"{name} has values that are NaN or infinite.")
            known[name] = array.reshape(shape)
            known[name].setflags(write=False)

    def _check_classes(self) -> None:
        classes = self.classes
        if self.kind == "regressor":
            if classes is not None:
                raise ValueError(f"a regressor has no classes, got {list(classes)!r}.")
            return
        if classes is None or len(set(classes)) != len(classes) or len(classes) < 2:
            given = None if classes is None else list(classes)
            raise ValueError(
                f"a classifier needs at least 2 classes, all different, got {given!r}."
            )
        for label in classes:
            if not isinstance(label, Label):
                raise TypeError(f"a class must be a text or a number, got {label!r}.")

    @property
    def kind(self) -> Literal["classifier", "regressor"]:
        """A classifier or a regressor, by the loss."""
        return "regressor" if LOSSES.by_name(self.loss).takes == "number" else "classifier"

    @property
    def _scores_each_class(self) -> bool:
        """True if two classes have a score each."""
        return LOSSES.by_name(self.loss).takes == "class"

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
        """The weight of the constant for each score; 0 if the model has none."""
        return self.used[:, -1] if self.intercept else np.zeros(len(self.used))

    @property
    def gives_probabilities(self) -> bool:
        """True if the scores are log-odds."""
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
        X
            As for `scores`.

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
        X
            As for `scores`.

        Returns
        -------
        ndarray of shape (rows, classes)
            The probabilities, in the order of `classes`.
        """
        return self.probabilities(self.scores(X))

    def decide(self, scores: Array) -> Array:
        """Return the prediction for each row of scores."""
        if self.classes is None:
            return scores[:, 0]
        return np.asarray(np.array(self.classes)[score_each_class(scores).argmax(axis=1)])

    def probabilities(self, scores: Array) -> Array:
        """Return the probability of each class for each row of scores."""
        if not self.gives_probabilities:
            raise ValueError(
                f"a model with the loss {self.loss!r} gives scores, not probabilities. Train with "
                "the logistic loss, or use the labels or scores."
            )
        return class_probabilities(scores, one_against_rest=not self._scores_each_class)

    def with_details(self, more: Mapping[str, Any]) -> Model:
        """Return the same model with more details of its training."""
        return replace(self, columns=self.encoding, details={**self.details, **more})

    def save(self, path: str | os.PathLike[str], overwrite: bool = False) -> None:
        """Save the model in a directory; a failure leaves no partial directory.

        Parameters
        ----------
        path
            The directory; missing parents are made.
        overwrite
            True to replace an existing directory, which must hold a model.
        """
        from walklearn.models.directory import save

        save(self, Path(path), overwrite)

    @classmethod
    def load(cls, path: str | os.PathLike[str]) -> Model:
        """Read a model directory; a `ModelFileError` names what is wrong with it.

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
