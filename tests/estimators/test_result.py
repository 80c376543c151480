"""Results of a fitted estimator: a model that predicts the same, and the problem it solved."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from sklearn.datasets import load_iris
from sklearn.exceptions import NotFittedError

import walklearn as wl
from tests.estimators.cases import CANCER, CONSTANTS_ALONE, DIABETES, IRIS
from walklearn import Model, RandomWalkClassifier, RandomWalkRegressor
from walklearn.estimators import random_walk
from walklearn.estimators.result import trace_of

MECHANISM = wl.privacy.calibrate("laplace", epsilon=3.0, delta=0.0, bounds=(0.1, 40.0))


@pytest.mark.parametrize(
    ("estimator", "data"),
    [
        (RandomWalkClassifier(), IRIS),
        (RandomWalkClassifier(average="none", fit_intercept=False), CANCER),
        (RandomWalkClassifier(loss="squared-hinge"), CANCER),
        (RandomWalkRegressor(), DIABETES),
        (RandomWalkRegressor(loss=wl.losses.Huber(10.0), graph="ring"), DIABETES),
    ],
)
def test_the_model_predicts_as_the_estimator(estimator: Any, data: Any, tmp_path: Path) -> None:
    X, y = data
    estimator.set_params(steps=500, random_state=0).fit(X, y)
    estimator.to_model(target="what").save(tmp_path / "model")
    model = Model.load(tmp_path / "model")
    np.testing.assert_array_equal(model.predict(X), estimator.predict(X))
    assert model.target == "what"
    assert model.updates == estimator.n_iter_
    assert model.details["rows"] == len(X)
    assert model.ledger == estimator.ledger_.to_dict()


def test_columns_are_those_of_the_frame_or_the_encoding() -> None:
    X, y = load_iris(return_X_y=True, as_frame=True)
    fitted = RandomWalkClassifier(steps=100, random_state=0).fit(X, y)
    assert fitted.to_model().encoding.feature_names == tuple(X.columns)
    assert fitted.to_model("abcd").encoding.feature_names == ("a", "b", "c", "d")
    bare = RandomWalkClassifier(steps=100, random_state=0).fit(*IRIS)
    assert bare.to_model().encoding.feature_names == ("x0", "x1", "x2", "x3")
    with pytest.raises(ValueError, match="2 features"):
        bare.to_model(["a", "b"])
    with pytest.raises(NotFittedError):
        RandomWalkClassifier().to_model()


def test_a_table_goes_through_the_encoding() -> None:
    table = pd.DataFrame({"city": ["Oslo", "Rome"] * 20, "age": np.linspace(20, 60, 40)})
    encoding = wl.tables.encoding.Encoding.of_table(table)
    y = np.where(table["city"] == "Rome", "yes", "no")
    fitted = RandomWalkClassifier(steps=2000, random_state=0).fit(encoding.encode(table), y)
    assert (fitted.to_model(encoding).predict(table) == y).all()


@pytest.mark.parametrize(
    ("settings", "protected", "exposed"),
    [
        ({"walk": "weighted"}, "", r"L_i of every node, .* its neighbours unprotected"),
        ({}, "nothing", "the model, so ε = ∞"),
        ({"walk": "uniform"}, "only their degree", "the model, so ε = ∞"),
        ({"walk": wl.walks.HistoryDriven(wl.walks.Simple())},
         "their degree and, when asked, how often", "the model, so ε = ∞"),
        ({"update": "finito"}, "", r"the token carries p/q and Σσ_i"),
        ({"update": "saga"}, "", "the token carries L̂"),
        (CONSTANTS_ALONE, r"\(ε, δ\) = \(3, 0.03\) of this number", "the model .*ε = ∞"),
        ({"walk": wl.walks.Jumping(wl.walks.Weighted(privacy=MECHANISM)), "step_size": 0.1},
         r"released by Laplace.*0\.1 to 40", "the model, so ε = ∞"),
        ({"walk": wl.walks.Weighted(np.ones(150))}, "", "importance of every node, .* disclosed"),
        ({"walk": wl.walks.Weighted(np.ones(150), public=True)},
         "public importance", "the model, so ε = ∞"),
    ],
)  # fmt: skip
def test_disclosures_are_stated(settings: Any, protected: str, exposed: str) -> None:
    fitted = RandomWalkClassifier(steps=50, **settings).fit(*IRIS)
    privacy = fitted.to_model().privacy
    for pattern, kind in ((protected, "protected"), (exposed, "not_protected")):
        assert not pattern or any(re.search(pattern, each) for each in privacy[kind])


def test_the_walk_is_named_as_it_was_asked_for() -> None:
    walk = wl.walks.Jumping(wl.walks.Weighted(privacy=MECHANISM))
    fitted = RandomWalkClassifier(walk=walk, step_size=0.1, steps=50, random_state=0).fit(*IRIS)
    assert fitted.to_model().walk == repr(walk)


@pytest.mark.parametrize("settings", [{}, CONSTANTS_ALONE, {"feature_bound": 8.0, "graph": "ring"}])
def test_the_prepared_problem_is_the_one_that_is_solved(
    settings: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    solved: list[wl.Problem] = []

    def record(estimator: Any, result: Any) -> Any:
        solved.append(result.setting.objective)
        return trace_of(estimator, result)

    monkeypatch.setattr(random_walk, "trace_of", record)
    X, y = CANCER
    nodes = np.arange(len(X)) % 20
    estimator = RandomWalkClassifier(steps=50, random_state=0, **settings)
    problem, graph = estimator.prepare_problem(X, y, nodes=nodes)
    assert not hasattr(estimator, "n_features_in_")
    estimator.fit(X, y, nodes=nodes)
    assert solved == [problem]
    assert estimator.trace_.spec["problem"] == problem.facts()
    assert graph == estimator.graph_


def test_a_file_with_the_name_of_a_family_is_meant_by_a_path(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("ring").write_text("a b\nb c\n")
    named = wl.graphs.place_rows("ring", ["a", "b", "c"], 3, seed=None)
    read = wl.graphs.place_rows(Path("ring"), ["a", "b", "c"], 3, seed=None)
    assert (named.graph.edge_count, read.graph.edge_count) == (3, 2)
