"""An estimator whose walk remembers ends at the minimiser of its objective, and says when not."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from sklearn.datasets import load_diabetes, load_digits
from sklearn.exceptions import ConvergenceWarning
from sklearn.linear_model import LogisticRegression
from threadpoolctl import threadpool_limits

from tests.estimators.cases import CANCER, CONSTANTS_ALONE
from walklearn import (
    Problem,
    RandomWalkClassifier,
    RandomWalkRegressor,
    domains,
    privacy,
    updates,
    walks,
)

LAPLACE = privacy.calibrate("laplace", epsilon=1.0, delta=0.0, bounds=(0.1, 40.0))
EIGHTS = np.full(569, 8.0)
RELEASED = walks.Weighted(EIGHTS).bound(mechanism=LAPLACE)


def uneven() -> tuple[Any, Any, Any]:
    """900 rows of 15 features on 30 nodes: 1 to 100 rows each, of log-normal length."""
    generator = np.random.default_rng(5)
    X = generator.standard_normal((900, 15)) * generator.lognormal(sigma=1.0, size=(900, 1))
    y = X @ generator.standard_normal(15) + generator.standard_normal(900) > 0
    shares = np.arange(1.0, 31.0) ** 2
    nodes = generator.choice(30, size=900, p=shares / shares.sum())
    return X, y, nodes


def minimiser(problem: Problem) -> Any:
    """w*, of ten classes as scikit-learn finds it with the tolerance that this takes."""
    if problem.outputs == 1:
        return problem.solution.model
    theirs = LogisticRegression(
        C=1.0 / (problem.penalty * problem.row_count), fit_intercept=False, tol=1e-12,
        max_iter=10_000,
    )  # fmt: skip
    with threadpool_limits(1):  # of so few rows several threads make several times the work
        return theirs.fit(problem.X, problem.y).coef_.reshape(-1)


@pytest.mark.parametrize(
    ("estimator", "rows"),
    [
        (RandomWalkClassifier(), CANCER),
        (RandomWalkClassifier(penalty=0.01), load_digits(return_X_y=True)),
        (RandomWalkRegressor(), load_diabetes(return_X_y=True)),
        (RandomWalkClassifier(), uneven()),
        (RandomWalkClassifier(loss="squared-hinge", batch=10), uneven()),
        (RandomWalkClassifier(domain=domains.Ball(1.0)), uneven()),
    ],
    ids=["breast cancer", "digits", "diabetes", "uneven", "uneven batches", "uneven in a ball"],
)
def test_coefficients_are_those_of_the_minimiser(estimator: Any, rows: Any) -> None:
    """In the units that it is trained in, to 1e-4 of their length; w* is solved for otherwise."""
    model = estimator.set_params(random_state=0).fit(*rows)
    problem, _ = estimator.prepare_problem(*rows)
    best = minimiser(problem)
    weights = model._state.token.token.update["model"]
    assert np.linalg.norm(weights - best) < 1e-4 * np.linalg.norm(best)
    back = np.atleast_2d(model._state.units.to_original(best.reshape(problem.model_shape)))
    np.testing.assert_allclose(
        np.atleast_2d(model.coef_), back[:, :-1], atol=1e-3 * np.abs(back[:, :-1]).max()
    )
    np.testing.assert_array_equal(model.average_, model.weights_)
    is_batch = model.batch is not None
    assert model.update_ == (updates.Saga() if is_batch else updates.Finito(True))
    assert model.walk_ == (walks.Uniform() if is_batch else walks.Tour())
    assert model.step_size_ is None


@pytest.mark.parametrize(("nodes", "batch"), [(1, None), (1, 1), (2, 1), (5, None), (5, 32)])
def test_few_nodes_with_many_rows_converge(nodes: int, batch: int | None) -> None:
    """L̂ must not fall, from one visit of a node to the next, below a curvature that rests."""
    X, y = CANCER
    model = RandomWalkClassifier(batch=batch, max_steps=200_000, random_state=0)
    rows = {"nodes": np.arange(len(y)) % nodes}
    best = model.prepare_problem(X, y, **rows)[0].solution.model
    model.fit(X, y, **rows)  # warns if the walk does not converge
    weights = model._state.token.token.update["model"]
    assert np.linalg.norm(weights - best) < 1e-4 * np.linalg.norm(best)


def test_a_warm_start_on_other_rows_resumes_from_the_model() -> None:
    X, y = CANCER
    model = RandomWalkClassifier(update="saga", penalty=0.1, warm_start=True, random_state=0)
    model.fit(X[:300], y[:300])
    first = model.n_iter_
    model.fit(X[200:], y[200:])
    assert model.n_iter_ > first
    assert model.score(X[200:], y[200:]) > 0.95


def test_a_walk_that_is_cut_short_says_so() -> None:
    model = RandomWalkClassifier(update="saga", max_steps=20_000, random_state=0)
    with pytest.warns(ConvergenceWarning, match="20,000 updates.*gradient"):
        model.fit(*CANCER)


@pytest.mark.parametrize(
    ("settings", "update"),
    [
        ({}, updates.Finito),
        ({"average": "none"}, updates.Finito),
        ({"walk": "weighted"}, updates.Finito),
        ({"average": "tail"}, updates.Sgd),
        ({"step_size": 0.1}, updates.Sgd),
        ({"epsilon": 3.0, "delta": 1e-5, "row_length": 5.5}, updates.Sgd),
        (CONSTANTS_ALONE, updates.Sgd),
        ({"model_privacy": privacy.ModelNoise(1.0, 5.0, 5), "feature_bound": 8.0}, updates.Sgd),
        ({"walk": walks.Weighted(privacy=LAPLACE)}, updates.Sgd),
        ({"walk": RELEASED}, updates.Sgd),
        ({"walk": walks.Jumping(RELEASED)}, updates.Sgd),
    ],
    ids=str,
)
def test_auto_has_memory_unless_something_is_private(settings: Any, update: Any) -> None:
    model = RandomWalkClassifier(steps=50, random_state=0, **settings).fit(*CANCER)
    assert isinstance(model.update_, update)
    discloses = "walk" in settings or settings.get("model") == "in the clear"
    assert (model.walk_ in (walks.Uniform(), walks.Tour())) != discloses


@pytest.mark.parametrize(
    "settings",
    [{"epsilon": 3.0, "delta": 1e-5, "row_length": 5.5}, {"walk": RELEASED},
     {"walk": walks.Jumping(RELEASED)}],
    ids=str,
)  # fmt: skip
def test_memory_is_refused_if_something_is_private(settings: Any) -> None:
    with pytest.raises(ValueError, match=r"^update='saga'"):
        RandomWalkClassifier(update="saga", random_state=0, **settings).fit(*CANCER)


def test_walks_on_rows_of_hidden_curvature_converge() -> None:
    """L̂ fell and rose for ever: 400,000 updates, 2,000,000 of the doubled rows, did not do."""
    generator = np.random.default_rng(173)
    nodes = np.arange(300) % 20
    X, y = generator.standard_t(2, size=(300, 5)), generator.normal(size=300)
    wide = RandomWalkRegressor(random_state=0, max_steps=50_000)
    generator = np.random.default_rng(0)
    few = generator.normal(size=(300, 5))[:10]
    signs = few[:, 0] + 0.5 * generator.normal(size=300)[:10] > 0
    doubled = RandomWalkClassifier(random_state=0, max_steps=50_000)
    for estimator, rows, targets in (
        (wide, X, y),
        (doubled, np.repeat(few, 30, axis=0), np.repeat(signs, 30)),
    ):
        problem, _ = estimator.prepare_problem(rows, targets, nodes=nodes)
        estimator.fit(rows, targets, nodes=nodes)
        found = estimator._state.units.to_training(estimator.weights_)
        wanted = problem.solution.model
        assert estimator.n_iter_ < 50_000
        assert np.linalg.norm(found - wanted) < 1e-4 * np.linalg.norm(wanted)


@pytest.mark.parametrize("settings", [{}, {"update": "sgd", "steps": 300}, {"steps": 300}])
def test_classes_that_are_apart_have_no_minimiser_without_a_penalty(settings: Any) -> None:
    """The walk ended as if it had arrived; its length was all that the coefficients told."""
    X = np.array([[-3.0], [-2.0], [2.0], [3.0]])
    apart = RandomWalkClassifier(penalty=0.0, random_state=0, **settings)
    with pytest.warns(ConvergenceWarning, match="no minimiser.*penalty"):
        apart.fit(X, [0, 0, 1, 1])
    for held in ({"penalty": 0.1}, {"domain": domains.Ball(2.0)}, {"loss": "squared-hinge"}):
        RandomWalkClassifier(**{**apart.get_params(), **held}).fit(X, [0, 0, 1, 1])
    RandomWalkClassifier(penalty=0.0, random_state=0, **settings).fit(X, [0, 1, 0, 1])
