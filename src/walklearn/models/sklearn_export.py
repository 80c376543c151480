"""A walklearn model as a fitted scikit-learn estimator.

The weights become `coef_` and `intercept_` of the linear model with the same loss, and include the
centres and spreads of the columns. Cut-offs and the one-hot encoding of text columns are earlier
steps of a pipeline.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from walklearn.extras import package
from walklearn.models.model import Array, Model
from walklearn.tables.encoding import Column, Encoding


def to_sklearn(model: Model) -> Any:
    """Return the estimator, in a pipeline if columns are text or have a cut-off."""
    package("sklearn", "sklearn", "to_sklearn needs")
    columns = model.encoding.columns
    widths = [len(column.feature_names) for column in columns]
    coefficients = model.coefficients / np.repeat([column.spread for column in columns], widths)
    centres = np.repeat([column.centre for column in columns], widths)
    estimator = _estimator(model, coefficients, model.intercepts - coefficients @ centres)
    if all(column.categories is None and not column.has_cut_off for column in columns):
        names = [column.name for column in columns]
        estimator.feature_names_in_ = np.array(names, dtype=object)
        return estimator
    from sklearn.pipeline import Pipeline

    return Pipeline([("encode", _encoder(model.encoding)), ("model", estimator)])


def _estimator(model: Model, coefficients: Array, intercepts: Array) -> Any:
    from sklearn import linear_model, svm

    if model.loss == "logistic" and len(coefficients) > 1:
        raise ValueError(
            "scikit-learn has no linear model of one logistic regression against the rest. Train "
            "with the softmax loss, or export to ONNX."
        )
    # With another loss, any linear model predicts the same from the same coefficients.
    if model.kind == "regressor":
        estimator = linear_model.HuberRegressor() if model.loss == "huber" else linear_model.Ridge()
    else:
        has_log_odds = model.loss in ("logistic", "softmax")
        estimator = linear_model.LogisticRegression() if has_log_odds else svm.LinearSVC()
    estimator.n_features_in_ = coefficients.shape[1]
    if model.kind == "regressor":
        estimator.coef_, estimator.intercept_ = coefficients[0], float(intercepts[0])
        estimator.scale_ = 1.0  # only HuberRegressor has it; prediction does not read it
        return estimator
    if len(coefficients) == 2:  # scikit-learn has one score for two classes
        coefficients, intercepts = np.diff(coefficients, axis=0), np.diff(intercepts)
    estimator.coef_, estimator.intercept_ = coefficients, intercepts
    estimator.classes_ = np.array(model.classes)
    return estimator


def _encoder(encoding: Encoding) -> Any:
    """Return a transformer with known cut-offs and categories."""
    import pandas as pd
    from sklearn.compose import ColumnTransformer

    steps = [(column.name, _step(column), [column.name]) for column in encoding.columns]
    # fit() only checks this row.
    row = {column.name: [(column.categories or (0.0,))[0]] for column in encoding.columns}
    return ColumnTransformer(steps, sparse_threshold=0.0).fit(pd.DataFrame(row))


def _step(column: Column) -> Any:
    """Return the transformer of a column."""
    from sklearn.preprocessing import FunctionTransformer, OneHotEncoder

    if column.categories is not None:
        return OneHotEncoder(categories=[list(column.categories)], sparse_output=False)
    if not column.has_cut_off:
        return "passthrough"
    reach = column.cut_off * column.spread
    ends = {"a_min": column.centre - reach, "a_max": column.centre + reach}
    return FunctionTransformer(np.clip, kw_args=ends, feature_names_out="one-to-one")
