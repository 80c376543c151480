"""Updates of users in estimators: they are run as they are, or refused before anything is spent."""

from __future__ import annotations

import pickle
from typing import Any

import numpy as np
import pytest

import walklearn as wl
from walklearn.updates import VisitResult

X, y = wl.datasets.two_gaussians(60, dimension=3, seed=1)
NODES = np.repeat(np.arange(10), 6)
BUDGET: dict[str, Any] = {"epsilon": 3.0, "delta": 1e-3, "row_length": 2.0, "random_state": 1}

pytestmark = pytest.mark.filterwarnings("ignore:.*has no kernel")


class Step(wl.Update):
    """A gradient step that records the number of planned updates."""

    def visit(self, context: Any, token: Any, state: Any) -> VisitResult:
        planned.add(context.planned)
        return VisitResult({"model": token["model"] - 0.01 * context.gradient(token["model"])})


class Two(Step):
    """Two gradients per visit."""

    gradients = 2

    def visit(self, context: Any, token: Any, state: Any) -> VisitResult:
        step = context.gradient(token["model"], 0) + context.gradient(token["model"], 1)
        return VisitResult({"model": token["model"] - 0.01 * step})


class Converging(Step):
    """Claims to converge, and knows a gradient."""

    converges = True

    def gradient_estimate(self, objective: Any, token: Any) -> Any:
        return np.zeros(objective.size)


class Dual(wl.Update):
    """Carries the negative of the model, under another name."""

    def token_arrays(self, objective: Any, tokens: int = 1) -> Any:
        return (wl.ArraySpec("dual", (objective.size,)),)

    def model(self, objective: Any, token: Any) -> Any:
        return -token["dual"]

    def visit(self, context: Any, token: Any, state: Any) -> VisitResult:
        return VisitResult({"dual": token["dual"] + 0.05 * context.gradient(-token["dual"])})


planned: set[int] = set()


def fit(update: wl.Update, **settings: Any) -> wl.RandomWalkClassifier:
    return wl.RandomWalkClassifier(update=update, **settings).fit(X, y > 0, nodes=NODES)


@pytest.mark.parametrize("budget", [{}, BUDGET], ids=["open", "private"])
def test_the_planned_number_of_updates_is_passed_on(budget: dict[str, Any]) -> None:
    planned.clear()
    fit(Step(), steps=20, **budget)
    assert planned == {20}


def test_a_model_of_an_own_update_is_made_and_reloaded() -> None:
    model = fit(Step(), steps=20).to_model()
    assert model.details["update"] == "Step()"
    assert pickle.loads(pickle.dumps(model)).weights.shape == model.weights.shape


def test_an_update_with_a_name_of_its_own_for_the_model() -> None:
    fitted = fit(Dual(), steps=200)
    assert fitted.score(X, y > 0) > 0.6
    with pytest.raises(ValueError, match=r'Dual\(\) .*"model"'):
        wl.RandomWalkClassifier(update=Dual(), steps=5).resume_from(fitted.to_model()).fit(
            X, y > 0, nodes=NODES
        )


def test_a_gradient_that_the_token_knows_needs_no_curvature() -> None:
    assert fit(Converging(), max_steps=2000).n_iter_ <= 2000


def test_a_converging_update_without_secrets_runs_under_epsilon() -> None:
    assert fit(Converging(), steps=20, **BUDGET).ledger_.claim_without_seed().is_private


@pytest.mark.parametrize("update", [Converging(), wl.updates.Saga(), "saga"], ids=repr)
def test_partial_fit_refuses_updates_that_need_fixed_rows(update: Any) -> None:
    with pytest.raises(ValueError, match=r"^partial_fit"):
        wl.RandomWalkClassifier(update=update).partial_fit(X, y > 0, classes=[False, True])


def test_a_cap_below_the_gradients_of_a_visit_is_refused_before_it_is_charged() -> None:
    with pytest.raises(ValueError, match=r"Two\(\) .*max_contributions"):
        fit(Two(), steps=4, **BUDGET)
    noise = wl.privacy.ModelNoise(1.0, 1.0, max_contributions=1)
    problem = wl.Problem(X, y, node_of_row=NODES)
    with pytest.raises(ValueError, match=r"Two\(\) .*max_contributions"):
        wl.simulate(problem, wl.graphs.ring(10), "uniform", update=Two(), privacy=noise, steps=5)


def test_a_refused_update_draws_and_charges_no_release() -> None:
    X_short = X / 10.0
    estimator = wl.RandomWalkClassifier(
        update=Two(), walk=wl.walks.Weighted(privacy=wl.privacy.Laplace(9.0, (0.1, 40.0))),
        model_privacy=wl.privacy.ModelNoise(1.0, 8.0, 1, "node"), steps=5, feature_bound=1.0,
        random_state=1,
    )  # fmt: skip
    with pytest.raises(ValueError, match=r"Two\(\) .*max_contributions"):
        estimator.prepare(X_short, y > 0, nodes=NODES)  # which draws and charges nothing


def test_a_cap_is_planned_in_gradients() -> None:
    one, two = (fit(update, **BUDGET) for update in (Step(), Two()))
    assert two.n_iter_ == one.n_iter_ // 2


def test_a_cap_that_is_too_small_for_another_visit_issues_a_warning() -> None:
    noise = wl.privacy.ModelNoise(1.0, 8.0, max_contributions=5)
    estimator = wl.RandomWalkClassifier(
        update=Two(), model_privacy=noise, steps=2000, warm_start=True, random_state=1
    )
    estimator.fit(X, y > 0, nodes=NODES)
    assert set(estimator.trace_.contributions[0].tolist()) == {4}  # two visits of two gradients
    with pytest.warns(UserWarning, match="ε allows 5 times"):
        estimator.fit(X, y > 0, nodes=NODES)
