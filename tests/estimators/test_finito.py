"""Fits with Finito stop at the minimiser, soon after they have reached it, and can be continued."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.datasets import load_diabetes, load_digits, load_iris, load_wine

import walklearn as wl
from tests.estimators.cases import CANCER
from walklearn import RandomWalkClassifier, RandomWalkRegressor, graphs, losses, updates, walks

FINITO: dict[str, Any] = {"update": "finito", "walk": walks.OldestFirst(), "random_state": 0}


def fit(model: Any, X: Any, y: Any) -> Any:
    """Fit with neighbouring rows on the nodes, the same number on each."""
    return model.fit(X, y, nodes=owners(model, y))


def owners(model: Any, y: Any) -> Any:
    return np.arange(len(y)) * model.graph.node_count // len(y)


def model_of(model: Any) -> Any:
    """The model in units of training."""
    return model._state.token.token.update["model"]


def log_normal() -> tuple[Any, Any]:
    generator = np.random.default_rng(8)
    X = generator.normal(size=(200, 6)) * generator.lognormal(sigma=1.5, size=(200, 1))
    return X, X @ generator.normal(size=6) + generator.normal(size=200) > 0


def sorted_by_target(rows: tuple[Any, Any]) -> tuple[Any, Any]:
    order = np.argsort(rows[1], kind="stable")
    return rows[0][order], rows[1][order]


SETTINGS: dict[str, tuple[Any, Any, wl.Graph, dict[str, Any]]] = {
    "cancer, ring": (RandomWalkClassifier(), sorted_by_target(CANCER), graphs.ring(60),
                     {"penalty": 1e-2}),
    "cancer, cubic": (RandomWalkClassifier(), CANCER, graphs.random_regular(40, 3, seed=1),
                      {"penalty": 1e-2, "loss": "squared-hinge"}),
    "digits, hubs": (RandomWalkClassifier(),
                     (load_digits().data[:400], load_digits().target[:400] % 2),
                     graphs.barabasi_albert(50, 2, seed=1), {"penalty": 0.1}),
    "wine, barbell": (RandomWalkClassifier(), sorted_by_target(load_wine(return_X_y=True)),
                      graphs.barbell(15, 0), {"penalty": 1e-2}),
    "iris, grid": (RandomWalkClassifier(), load_iris(return_X_y=True), graphs.grid(5, 6),
                   {"penalty": 1e-2}),
    "iris, star": (RandomWalkClassifier(), load_iris(return_X_y=True), graphs.star(150),
                   {"penalty": 0.1}),
    "diabetes, tree": (RandomWalkRegressor(), sorted_by_target(load_diabetes(return_X_y=True)),
                       graphs.barabasi_albert(30, 1, seed=2), {"penalty": 1e-2}),
    "diabetes, two rings": (RandomWalkRegressor(loss=losses.Huber(0.5)),
                            load_diabetes(return_X_y=True),
                            graphs.watts_strogatz(40, 4, 0.0, seed=1), {"penalty": 0.1}),
    "log-normal, lollipop": (RandomWalkClassifier(), log_normal(),
                             graphs.from_edges([*((i, j) for i in range(10) for j in range(i)),
                                                *((i, i + 1) for i in range(9, 19))]),
                             {"penalty": 0.1}),
    "few nodes": (RandomWalkRegressor(), load_diabetes(return_X_y=True), graphs.complete(3),
                  {"penalty": 1e-3}),
    "ball": (RandomWalkClassifier(), CANCER, graphs.ring(30), {"domain": wl.domains.Ball(0.5)}),
    "no penalty": (RandomWalkRegressor(), load_diabetes(return_X_y=True), graphs.ring(20),
                   {"penalty": 0.0}),
    "simple walk": (RandomWalkClassifier(), load_wine(return_X_y=True),
                    graphs.erdos_renyi(30, 0.3, seed=1, connected="retry"),
                    {"penalty": 1e-2, "walk": walks.Simple()}),
}  # fmt: skip


@pytest.mark.parametrize("name", SETTINGS)
def test_a_fit_stops_soon_after_it_has_reached_the_tolerance(name: str) -> None:
    """Never too early: the error of the coefficients is below tol = 1e-4. Never twice too late.

    Checks are rare, and two are needed, so short walks are longer by some hundred updates.
    """
    estimator, rows, graph, settings = SETTINGS[name]
    estimator = estimator.set_params(**FINITO | {"graph": graph} | settings)
    problem, _ = estimator.prepare_problem(*rows, nodes=owners(estimator, rows[1]))
    best = problem.optimum()
    fit(estimator, *rows)  # warns if it does not converge
    assert np.linalg.norm(model_of(estimator) - best) < 1e-4 * np.linalg.norm(best)
    assert estimator.update_ == updates.Finito(estimates_gradient=True)
    length = estimator.n_iter_
    run = wl.simulate(problem, graph, estimator.walk_, update=updates.Finito(), steps=length,
                      records=np.arange(50, length, 50), seed=1, progress=False)  # fmt: skip
    is_small = run.distance[0] < 1e-4 * np.linalg.norm(best)
    first = run.updates[is_small.argmax()] if is_small.any() else length
    assert length < 2 * first + 1000 + 2 * graph.node_count


def test_other_lengths_and_tolerances() -> None:
    model = RandomWalkClassifier(graph=graphs.ring(20), penalty=0.01, **FINITO)
    fixed = fit(clone(model).set_params(steps=100), *CANCER)
    assert (fixed.update_, fixed.n_iter_) == (updates.Finito(), 100)
    rough, fine = (fit(clone(model).set_params(tol=tol), *CANCER) for tol in (0.1, 1e-6))
    assert rough.n_iter_ < fine.n_iter_


def test_a_warm_start_keeps_the_model_until_every_node_was_visited() -> None:
    """The nodes' contributions are gone: none may count twice, and the model must not be lost."""
    X, y = load_diabetes(return_X_y=True)
    settings = {"graph": graphs.random_regular(40, 3, seed=1), "penalty": 1e-2, **FINITO}
    model = fit(RandomWalkRegressor(warm_start=True, **settings), X, y)
    first, weights = model.n_iter_, model.weights_
    assert fit(model, X, y).n_iter_ - first <= 1000  # two checks
    np.testing.assert_allclose(model.weights_, weights, rtol=1e-3)
    weights = fit(model.set_params(steps=3), X, y).weights_
    resumed = RandomWalkRegressor(**settings | {"steps": 5}).resume_from(model.to_model())
    np.testing.assert_allclose(fit(resumed, X, y).weights_, weights, rtol=1e-9)
    model.set_params(steps=None)
    nodes = owners(model, y)[200:]
    best = model.prepare(X[200:], y[200:], nodes=nodes).problem.optimum()
    model.fit(X[200:], y[200:], nodes=nodes)
    assert np.linalg.norm(model_of(model) - best) < 1e-4 * np.linalg.norm(best)


@pytest.mark.parametrize("update", ["saga", "sgd"])
def test_another_update_continues_from_its_model(update: str) -> None:
    settings = {"graph": graphs.ring(10), "penalty": 0.1, "warm_start": True, **FINITO}
    model = fit(RandomWalkClassifier(**settings), *CANCER)
    weights = model_of(model)
    fit(model.set_params(update=update, steps=1, walk="auto"), *CANCER)
    assert np.linalg.norm(model_of(model) - weights) < 0.1 * np.linalg.norm(weights)
    weights = model_of(model)
    fit(model.set_params(update="finito", steps=1), *CANCER)
    np.testing.assert_array_equal(model_of(model), weights)


def test_what_is_refused() -> None:
    model = RandomWalkClassifier(**FINITO)
    with pytest.raises(ValueError, match="partial_fit"):
        model.partial_fit(*CANCER)
    with pytest.raises(wl.CapabilityError, match=r"mini-batch.*Saga"):
        model.set_params(batch=3).fit(*CANCER)
    private = RandomWalkClassifier(update="finito", epsilon=3.0, delta=1e-5, row_length=5.5)
    with pytest.raises(ValueError, match="finito"):
        private.fit(*CANCER)
