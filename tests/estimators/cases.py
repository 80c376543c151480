"""Data and settings that several tests of the estimators share."""

from typing import Any

from sklearn.datasets import load_breast_cancer, load_diabetes, load_iris

CANCER = load_breast_cancer(return_X_y=True)
IRIS = load_iris(return_X_y=True)
DIABETES = load_diabetes(return_X_y=True)
# As in the paper, ε covers the constants L_i alone.
CONSTANTS_ALONE: dict[str, Any] = {
    "epsilon": 3.0,
    "delta": 0.03,
    "feature_bound": 8.0,
    "model": "in the clear",
}
