"""The default walk and update of a fit, for each kind of request."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from scipy import sparse

import walklearn as wl
from walklearn import RandomWalkClassifier, RandomWalkRegressor
from walklearn.fitting import choices
from walklearn.updates import Finito, Saga, Sgd
from walklearn.walks import Jumping, NonBacktracking, OldestFirst, Simple, Tour, Uniform, Weighted

X = np.random.default_rng(1).normal(size=(60, 3))
Y = X[:, 0] > 0
TOTAL = {"epsilon": 3.0, "delta": 1e-5, "row_length": 2.0}


@pytest.mark.parametrize(
    ("settings", "update", "walk"),
    [
        ({}, Finito, Tour()),
        ({"loss": "squared-hinge", "warm_start": True, "laziness": None}, Finito, Tour()),
        ({"laziness": 0.1}, Finito, Uniform(laziness=0.1)),
        ({"batch": 1}, Saga, Uniform()),
        ({"step_size": 0.1}, Sgd, Uniform()),
        ({"average": "tail"}, Sgd, Uniform()),
        (TOTAL, Sgd, Uniform()),
        ({"update": "finito"}, Finito, Tour()),
        ({"update": "saga"}, Saga, Uniform()),
        ({"update": "sgd"}, Sgd, Uniform()),
        ({"walk": "uniform"}, Finito, Uniform()),
        ({"walk": "weighted"}, Finito, Weighted()),
        ({"walk": "simple"}, Finito, Simple()),
        ({"walk": OldestFirst()}, Finito, OldestFirst()),
        ({"walk": Jumping(Simple())}, Finito, Jumping(Simple())),
        ({"walk": Simple("gap")}, Sgd, Simple("gap")),
        ({"walk": NonBacktracking(Simple("gap"))}, Sgd, NonBacktracking(Simple("gap"))),
    ],
    ids=repr,
)
def test_a_request_has_a_default(settings: dict[str, Any], update: Any, walk: Any) -> None:
    plan = RandomWalkClassifier(graph=wl.graphs.complete(60), **settings).resolve(X, Y)
    assert (type(plan.update), plan.walk) == (update, walk)


def test_rows_that_finito_does_not_suit_keep_saga(monkeypatch: pytest.MonkeyPatch) -> None:
    plans = [RandomWalkRegressor().resolve(sparse.csr_array(X), X[:, 0])]
    graph = wl.graphs.ring(60)
    problem = wl.Problem(X, X[:, 0], loss=wl.losses.Squared(), aggregate="mean")
    single = wl.Problem(X, X[:, 0], loss=wl.losses.Squared(), aggregate="mean", dtype=np.float32)
    plans += [wl.advise(graph, single), wl.advise(graph, wl.PublicFacts(60, 60, 3))]
    assert isinstance(wl.advise(graph, problem).update, Finito)
    monkeypatch.setattr(choices, "MAX_STATE", 60 * 3 - 1)
    plans.append(wl.advise(graph, problem))
    for plan in plans:
        assert (plan.update, plan.walk) == (Saga(), Uniform())
        (because,) = (each.because for each in plan.reasons if each.choice == "update")
        assert "Finito" in because


def test_later_calls_have_the_default_of_their_kind() -> None:
    model = RandomWalkClassifier(warm_start=True, penalty=0.1, random_state=0).fit(X, Y)
    for _ in range(2):
        assert model.partial_fit(X, Y).walk_ == Uniform()
        assert isinstance(model.update_, Sgd)
        model.fit(X, Y)
        assert (model.update_, model.walk_) == (Finito(estimates_gradient=True), Tour())


@pytest.mark.parametrize(("nodes", "graph"), [(1, "ring"), (2, "ring"), (3, wl.graphs.ring(9))])
def test_the_default_converges_on_few_nodes_and_with_relays(nodes: int, graph: Any) -> None:
    owners = np.arange(60) % nodes
    model = RandomWalkClassifier(graph=graph, penalty=0.1, random_state=0)
    best = model.prepare_problem(X, Y, nodes=owners)[0].optimum()
    model.fit(X, Y, nodes=owners)  # warns if it does not converge
    assert model.walk_ == Tour()
    found = model._state.token.token.update["model"]
    assert np.linalg.norm(found - best) < 1e-4 * np.linalg.norm(best)
