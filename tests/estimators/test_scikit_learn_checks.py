"""The estimators pass scikit-learn's own checks, with the one failure that its SGD has, too."""

from __future__ import annotations

from typing import Any

import pytest
from sklearn.utils.estimator_checks import parametrize_with_checks

from walklearn import RandomWalkClassifier, RandomWalkRegressor

# The checks ask for accuracy on a hundred rows, which no honest ε leaves: this one is for the code.
PRIVATE: dict[str, Any] = {"epsilon": 1000.0, "delta": 1e-5, "feature_bound": 8.0}
ESTIMATORS = [
    RandomWalkClassifier(),
    RandomWalkRegressor(),
    RandomWalkClassifier(**PRIVATE),
    RandomWalkRegressor(**PRIVATE, target_centre=0.0, target_spread=1.0),
]
EXPECTED = {
    f"check_sample_weight_equivalence_on_{kind}_data": "a repeated row is at another node, so the "
    "token goes another way; tests/objectives/test_sample_weight.py shows that f and w* agree"
    for kind in ("dense", "sparse")
}


def expected_failures(estimator: Any) -> dict[str, str]:
    """A regressor on dense rows agrees to 1e-8, because its walk ends after some covers more."""
    is_close = isinstance(estimator, RandomWalkRegressor) and estimator.epsilon is None
    return {name: why for name, why in EXPECTED.items() if not (is_close and "dense" in name)}


@pytest.mark.filterwarnings("ignore:ε = 1000 offers little protection")
@parametrize_with_checks(ESTIMATORS, expected_failed_checks=expected_failures)
def test_scikit_learns_own_checks(estimator: Any, check: Any) -> None:
    check(estimator)
