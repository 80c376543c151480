"""What an estimator claims of privacy is exact or refused, and rests on public facts alone."""

from __future__ import annotations

import pickle
from typing import Any

import numpy as np
import pytest
from sklearn.datasets import load_breast_cancer, load_diabetes

import walklearn as wl
from walklearn import RandomWalkClassifier, RandomWalkRegressor, privacy, walks

X, Y = load_breast_cancer(return_X_y=True)
X = (X - X.mean(axis=0)) / X.std(axis=0)
PRIVATE: dict[str, Any] = {"epsilon": 3.0, "delta": 0.03, "feature_bound": 8.0}


def private(**changes: Any) -> RandomWalkClassifier:
    return RandomWalkClassifier(**{**PRIVATE, "steps": 3000, "random_state": 0, **changes})


def test_the_claim_is_the_one_that_was_asked_for() -> None:
    model = private(steps=None).fit(X, Y)
    charges = {each.what: each for each in model.ledger_.charges(0)}
    assert charges["importance"].mechanism.delta(3.0) <= 0.03
    assert charges["importance"].times == 1
    assert charges["model"].mechanism is None  # in the clear: ε does not protect it
    assert model.ledger_.total(0, 0.03) == np.inf
    assert "model in the clear: nothing can be claimed for it" in str(model.ledger_)
    assert model.score(X, Y) > 0.95


@pytest.mark.parametrize("mechanism", ["laplace", "truncated-laplace", "gaussian", "clamped-gamma"])
def test_every_mechanism(mechanism: str) -> None:
    model = private(mechanism=mechanism, steps=20_000).fit(X, Y)
    assert model.walk_.mechanism.name == mechanism
    assert model.walk_.mechanism.delta(3.0) <= 0.03
    assert model.score(X, Y) > 0.93


def test_a_mechanism_that_cannot_is_refused_with_advice() -> None:
    with pytest.raises(privacy.InfeasiblePrivacyError, match="use clamped-gamma"):
        private(mechanism="gamma").fit(X, Y)


@pytest.mark.parametrize("missing", ["delta", "feature_bound"])
def test_epsilon_needs_delta_and_a_public_bound(missing: str) -> None:
    with pytest.raises(ValueError, match=f"needs {missing}: .* bounds taken from the rows would"):
        private(**{missing: None}).fit(X, Y)
    with pytest.raises(ValueError, match="delta and feature_bound"):
        RandomWalkClassifier(epsilon=3.0).fit(X, Y)
    with pytest.raises(ValueError, match="pass epsilon, too"):
        RandomWalkClassifier(delta=0.1).fit(X, Y)


def test_nothing_but_the_release_depends_on_the_rows() -> None:
    """Other rows, labels and signs: the same mechanism, length of the walk and, for the same
    released values, the same steps."""
    generator = np.random.default_rng(1)
    one = private(steps=None).fit(X, Y)
    other = private(steps=None).fit(
        5.0 * generator.standard_normal(X.shape), generator.permutation(Y)
    )
    assert one.walk_.mechanism == other.walk_.mechanism
    assert one.n_iter_ == other.n_iter_
    assert one.graph_ == other.graph_
    for model in (one, other):
        released = model.trace_.released[0]
        assert model.step_size_.constant == pytest.approx(
            min(8.0 / released.mean(), 1.0 / (1e-3 * released.mean() / released.min()))
        )
    uniform = [private(walk="uniform", steps=None).fit(rows, Y) for rows in (X, X[::-1] * 3.0)]
    assert uniform[0].step_size_ == uniform[1].step_size_
    assert np.array_equal(uniform[0]._state.units.scale, np.ones(30))


def test_the_bounds_hold_for_the_rows_and_their_weights() -> None:
    nodes = np.arange(len(X)) % 37
    weights = np.random.default_rng(2).uniform(0.1, 5.0, len(X))
    for arguments in ({}, {"nodes": nodes}, {"nodes": nodes, "sample_weight": weights}):
        model = private().fit(X, Y, **arguments)
        assert model.trace_.privacy["outside"] == [0]
    squeezed = private(max_rows=5).fit(X, Y, nodes=nodes, sample_weight=weights)
    assert squeezed.trace_.privacy["outside"][0] > 0  # clamped to the cap, counted, still private
    low, high = squeezed.walk_.mechanism.bounds
    assert squeezed.walk_.mechanism.delta(3.0) <= 0.03
    assert high == pytest.approx(1e-3 + 37 / weights.sum() * 0.25 * 5 * (8.0**2 + 1))
    assert low == pytest.approx(1e-3 + 37 / weights.sum() * 0.25)


def test_long_rows_are_shortened_and_counted() -> None:
    model = private(feature_bound=4.0).fit(X, Y)
    assert model.clipped_rows_ == np.count_nonzero(np.linalg.norm(X, axis=1) > 4.0)
    shortened = X * np.minimum(1.0, 4.0 / np.linalg.norm(X, axis=1))[:, None]
    expected = private(feature_bound=4.0).fit(shortened, Y)
    np.testing.assert_allclose(model.coef_, expected.coef_, rtol=1e-6)


def test_a_seed_repeats_releases_and_says_so() -> None:
    one, other = (private(random_state=5).fit(X, Y) for _ in range(2))
    np.testing.assert_array_equal(one.trace_.released, other.trace_.released)
    assert one.ledger_.simulated
    assert "simulated" in str(one.ledger_)
    free, again = (private(random_state=None).fit(X, Y) for _ in range(2))
    assert not free.ledger_.simulated
    assert not np.array_equal(free.trace_.released, again.trace_.released)
    assert free.trace_.spec["seed"] is None


def test_the_true_constants_are_not_carried_about() -> None:
    model = private().fit(X, Y)
    rows = np.column_stack([privacy.clip_features(X, 8.0)[0], np.ones(len(X))])
    problem = wl.Problem(rows, 2.0 * Y - 1.0, penalty=1e-3, objective="mean")
    true = problem.smoothness
    np.testing.assert_array_equal(model.walk_.true_importance, model.trace_.released[0])
    assert np.abs(model.walk_.true_importance - true).max() > 0.1
    content = pickle.dumps(model)
    assert model.coef_.tobytes() in content
    assert true[:8].tobytes() not in content
    assert X[:1].tobytes() not in content


def test_a_walk_that_tells_nothing_needs_no_release() -> None:
    model = private(walk="uniform").fit(X, Y)
    assert [each.what for each in model.ledger_.charges(0)] == ["model"]
    jumping = private(walk=walks.Jumping(walks.Weighted(), probability=0.1)).fit(X, Y)
    assert jumping.walk_.walk.mechanism.delta(3.0) <= 0.03
    public = walks.Weighted(np.ones(len(X)), public=True)
    assert [each.what for each in private(walk=public).fit(X, Y).ledger_.charges(0)] == ["model"]


def test_without_epsilon_the_ledger_says_what_is_in_the_clear() -> None:
    model = RandomWalkClassifier(steps=1000, random_state=0).fit(X, Y)
    assert {each.what: each.mechanism for each in model.ledger_.charges(0)} == {
        "importance": None,
        "model": None,
    }


def test_a_mechanism_of_ones_own() -> None:
    mechanism = privacy.calibrate("laplace", epsilon=1.0, delta=0.0, bounds=(0.25, 20.0))
    walk = walks.Weighted(privacy=mechanism)
    model = RandomWalkClassifier(walk=walk, steps=2000, random_state=0).fit(X, Y)
    assert model.walk_.mechanism == mechanism
    assert np.array_equal(model._state.units.scale, np.ones(30))  # not standardised
    with pytest.raises(ValueError, match="brings its own mechanism"):
        private(walk=walk).fit(X, Y)


def test_noise_on_the_model_protects_it() -> None:
    noise = privacy.ModelNoise.calibrate(epsilon=3.0, delta=0.01, clip=3.0, max_contributions=20)
    model = private(model_privacy=noise, epsilon=1.0, delta=0.0).fit(X, Y)
    total = model.ledger_.largest_total(0.01)[1]
    assert 3.0 < total <= 4.0 + 1e-6  # 1 for the release, 3 for 20 contributions
    assert model.ledger_.simulated
    assert model.trace_.contributions.max() <= 20
    alone = private(walk="uniform", model_privacy=noise, epsilon=None, delta=None).fit(X, Y)
    assert alone.ledger_.largest_total(0.01)[1] <= 3.0


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"standardise": True}, "takes the scale of every column from the rows, which would leak"),
        ({"walk": walks.Uniform(normalise=True)}, "scales steps by the true L_i"),
        ({"walk": walks.Weighted(np.ones(569))}, "not about a given importance"),
        (
            {"epsilon": None, "delta": None, "model_privacy": privacy.ModelNoise(1.0, 1.0, 5)},
            "tells the neighbours its importance in the clear",
        ),
        (
            {
                "epsilon": None,
                "delta": None,
                "feature_bound": None,
                "walk": "uniform",
                "model_privacy": privacy.ModelNoise(1.0, 1.0, 5),
            },
            "a step size that follows from the rows would leak",
        ),
        ({"model_privacy": 3.0}, "must be a privacy.ModelNoise"),
        (
            {"mechanism": "laplacian"},
            "no mechanism 'laplacian', .*'laplace'. Choose one of gamma",
        ),
        ({"feature_bound": -1.0}, "feature_bound must be a positive number"),
        ({"max_rows": 0}, "max_rows must be a positive number"),
        ({"penalty": 0.0, "fit_intercept": False}, "use a penalty"),
        ({"epsilon": -1.0}, "epsilon must be a number of at least 0"),
        ({"delta": 1.5}, "delta must be in"),
    ],
)
def test_claims_that_would_be_false_are_refused(changes: Any, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        private(**changes).fit(X, Y)


def test_private_steps_cannot_rest_on_earlier_units() -> None:
    model = RandomWalkClassifier(steps=500, random_state=0).partial_fit(X, Y, [0, 1])
    with pytest.raises(ValueError, match="begin with a new estimator"):
        model.set_params(**PRIVATE).partial_fit(X, Y)


def test_private_regression_learns() -> None:
    rows, targets = load_diabetes(return_X_y=True, scaled=False)
    rows = (rows - rows.mean(axis=0)) / rows.std(axis=0)
    plain = RandomWalkRegressor(random_state=0).fit(rows, targets).score(rows, targets)
    model = RandomWalkRegressor(**PRIVATE, random_state=0).fit(rows, targets)
    assert model.score(rows, targets) > plain - 0.05
