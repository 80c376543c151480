"""An estimator whose walk remembers ends at the minimiser of its objective, and says when not."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from sklearn.datasets import load_breast_cancer, load_diabetes, load_wine
from sklearn.exceptions import ConvergenceWarning

from walklearn import (
    PowerStep,
    RandomWalkClassifier,
    RandomWalkRegressor,
    privacy,
    updates,
    walks,
)

CANCER = load_breast_cancer(return_X_y=True)


@pytest.mark.parametrize(
    ("estimator", "load"),
    [
        (RandomWalkClassifier, load_breast_cancer),
        (RandomWalkClassifier, load_wine),
        (RandomWalkRegressor, load_diabetes),
    ],
    ids=["breast cancer", "wine", "diabetes"],
)
def test_it_arrives_at_the_minimiser(estimator: Any, load: Any) -> None:
    """The model, in the units it is trained in, is w* to 1e-4."""
    X, y = load(return_X_y=True)
    model = estimator(penalty=0.01, random_state=0).fit(X, y)
    problem, _ = estimator(penalty=0.01, random_state=0).pose(X, y)
    best = problem.optimum.model
    assert np.linalg.norm(model._state.token.model - best) < 1e-4 * np.linalg.norm(best)
    np.testing.assert_array_equal(model.average_, model.weights_)
    assert model.update_ == updates.Saga()
    assert model.walk_ == walks.Uniform()
    assert model.step_size_ is None


def test_other_rows_are_learnt_from_a_model_that_is_kept() -> None:
    X, y = CANCER
    model = RandomWalkClassifier(update="saga", penalty=0.1, warm_start=True, random_state=0)
    model.fit(X[:300], y[:300])
    first = model.n_iter_
    model.fit(X[200:], y[200:])
    assert model.n_iter_ > first
    problem, _ = RandomWalkClassifier(penalty=0.1, random_state=0).pose(X[:300], y[:300])
    assert problem.size == model._state.token.model.size


def test_a_walk_that_is_cut_short_says_so() -> None:
    model = RandomWalkClassifier(update="saga", max_steps=20_000, random_state=0)
    with pytest.warns(ConvergenceWarning, match="gradient, as the token knows"):
        model.fit(*CANCER)


def test_what_does_not_go_together_is_refused() -> None:
    X, y = CANCER
    with pytest.raises(ValueError, match="would say nothing to update='saga'"):
        RandomWalkClassifier(update="saga", step_size=PowerStep(0.1)).fit(X, y)
    with pytest.raises(ValueError, match="saga"):
        RandomWalkClassifier(update="sagaa").fit(X, y)
    with pytest.raises(ValueError, match="average='tail' is for the paper's update"):
        RandomWalkClassifier(update="saga", average="tail").fit(X, y)
    with pytest.raises(ValueError, match="update must be"):
        RandomWalkClassifier(update=3).fit(X, y)


@pytest.mark.parametrize(
    ("settings", "update"),
    [
        ({}, updates.Saga),
        ({"average": "none"}, updates.Saga),
        ({"walk": "weighted"}, updates.Saga),
        ({"average": "tail"}, updates.Sgd),
        ({"step_size": 0.1}, updates.Sgd),
        ({"epsilon": 3.0, "delta": 1e-5, "row_length": 5.5}, updates.Sgd),
        (
            {"epsilon": 3.0, "delta": 0.0, "feature_bound": 8.0, "model": "in the clear"},
            updates.Sgd,
        ),
        ({"model_privacy": privacy.ModelNoise(1.0, 1.0, 5), "feature_bound": 8.0}, updates.Sgd),
        (
            {
                "walk": walks.Weighted(
                    privacy=privacy.calibrate("laplace", epsilon=1.0, delta=0.0, bounds=(0.1, 40.0))
                )
            },
            updates.Sgd,
        ),
    ],
    ids=str,
)
def test_auto_remembers_unless_something_is_private(settings: Any, update: Any) -> None:
    model = RandomWalkClassifier(steps=50, random_state=0, **settings).fit(*CANCER)
    assert isinstance(model.update_, update)
    tells = "walk" in settings or settings.get("model") == "in the clear"
    assert (model.walk_ == walks.Uniform()) != tells
    with pytest.raises(ValueError, match="remembers gradients"):
        RandomWalkClassifier(
            update="saga", epsilon=3.0, delta=1e-5, row_length=5.5, random_state=0
        ).fit(*CANCER)
