"""A walklearn model as a fitted scikit-learn estimator.

Linear models are the same everywhere: the weights become `coef_` and `intercept_` of the
estimator with the same loss. Shifts and scales of columns are folded into them, and columns of
text go through scikit-learn's own one-hot encoder with the categories of the model.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from walklearn.files.encoding import Encoding
from walklearn.files.extras import package

if TYPE_CHECKING:
    from walklearn.model.model import Model

Array = NDArray[Any]


def to_sklearn(model: Model) -> Any:
    """The estimator, in a pipeline with its one-hot encoder where there are columns of text."""
    package("sklearn", "sklearn", "to_sklearn needs")
    coefficients, intercepts = raw_weights(model)
    estimator = _estimator(model, coefficients, intercepts)
    if all(column.categories is None for column in model.encoding.columns):
        names = [column.name for column in model.encoding.columns]
        estimator.feature_names_in_ = np.array(names, dtype=object)
        return estimator
    from sklearn.pipeline import Pipeline

    return Pipeline([("encode", _one_hot(model.encoding)), ("model", estimator)])


def raw_weights(model: Model) -> tuple[Array, Array]:
    """Coefficients and intercepts for columns that are neither shifted nor scaled."""
    shifts, scales = [], []
    for column in model.encoding.columns:
        width = len(column.feature_names)
        shifts += [column.shift] * width
        scales += [column.scale] * width
    coefficients = model.coefficients / np.array(scales)
    return coefficients, model.intercepts - coefficients @ np.array(shifts)


def _estimator(model: Model, coefficients: Array, intercepts: Array) -> Any:
    from sklearn import linear_model, svm

    makers: dict[str, Any] = {
        "logistic": linear_model.LogisticRegression,
        "softmax": linear_model.LogisticRegression,
        "squared-hinge": svm.LinearSVC,
        "squared": linear_model.Ridge,
        "huber": linear_model.HuberRegressor,
    }
    if model.loss == "logistic" and len(coefficients) > 1:
        raise ValueError(
            "scikit-learn has no linear model of one logistic regression against the rest: train "
            "with the softmax loss, or export to ONNX."
        )
    # Of another loss, any linear model predicts the same from the same coefficients.
    other = linear_model.Ridge if model.kind == "regressor" else svm.LinearSVC
    estimator = makers.get(model.loss, other)()
    estimator.n_features_in_ = coefficients.shape[1]
    if model.kind == "regressor":
        estimator.coef_, estimator.intercept_ = coefficients[0], float(intercepts[0])
        estimator.scale_ = 1.0  # only HuberRegressor has it; prediction does not read it
        return estimator
    if len(coefficients) == 2:  # scikit-learn has one score for two classes: the log-odds
        coefficients, intercepts = np.diff(coefficients, axis=0), np.diff(intercepts)
    estimator.coef_, estimator.intercept_ = coefficients, intercepts
    estimator.classes_ = np.array(model.classes)
    return estimator


def _one_hot(encoding: Encoding) -> Any:
    """A transformer that needs no data: its categories are known."""
    import pandas as pd
    from sklearn.compose import ColumnTransformer
    from sklearn.preprocessing import OneHotEncoder

    steps = [
        (
            column.name,
            "passthrough"
            if column.categories is None
            else OneHotEncoder(categories=[list(column.categories)], sparse_output=False),
            [column.name],
        )
        for column in encoding.columns
    ]
    # Fitted on one row, which it checks and then forgets.
    row = {column.name: [(column.categories or (0.0,))[0]] for column in encoding.columns}
    return ColumnTransformer(steps, sparse_threshold=0.0).fit(pd.DataFrame(row))
