"""Fit and predict: where the walk ends, how it stops, and how it sits in scikit-learn."""

from __future__ import annotations

import pickle
from typing import Any

import numpy as np
import pytest
import sklearn
from sklearn.base import clone
from sklearn.datasets import load_iris
from sklearn.exceptions import ConvergenceWarning
from sklearn.linear_model import LogisticRegression, Ridge
from sklearn.model_selection import GridSearchCV, cross_val_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

import walklearn as wl
from tests.estimators.cases import CANCER, DIABETES, IRIS
from walklearn import RandomWalkClassifier, RandomWalkRegressor
from walklearn.fitting import choices, rounds
from walklearn.objectives.linear.losses import Huber, Logistic, Softmax, Squared


def standard(X: Any) -> Any:
    scaled = (X - X.mean(axis=0)) / X.std(axis=0)
    return np.column_stack([scaled, np.ones(len(X))])


def optimum(X: Any, targets: Any, loss: Any, **options: Any) -> Any:
    """w* of what an estimator minimises, in the units it trains in."""
    problem = wl.Problem(standard(X), targets, loss=loss, penalty=0.01, aggregate="mean", **options)
    return problem, problem.solution.model.reshape(problem.model_shape)


# ============================================================== where it ends
# By the paper's update; test_memory.py has where walks end that remember.


@pytest.mark.parametrize("walk", ["weighted", "uniform", "simple"])
def test_a_classifier_walks_to_the_minimiser(walk: str) -> None:
    """With many steps the gap is below a thousandth of what there was at the start."""
    X, y = CANCER
    common: dict[str, Any] = {"penalty": 0.01, "steps": 400_000, "random_state": 1}
    model = RandomWalkClassifier(walk=walk, update="sgd", **common).fit(X, y)
    problem, best = optimum(X, 2.0 * y - 1.0, Logistic())
    gap = model.trace_.average_value[0, -1] - problem.solution.value
    assert 0 <= gap < 1e-3 * np.log(2)
    scores = standard(X) @ best
    assert np.corrcoef(scores, model.decision_function(X))[0, 1] > 0.999
    assert np.mean((scores > 0) == (model.decision_function(X) > 0)) > 0.99


@pytest.mark.parametrize("walk", ["oldest-first", "tour", wl.walks.Simple(reweight="gap")])
def test_a_walk_with_gap_weights_ends_at_the_minimiser(walk: Any) -> None:
    """Rows are sorted and the graph has hubs, so that equal weights matter."""
    X, y = CANCER
    nodes = np.argsort(np.argsort(y, kind="stable")) * 20 // len(y)
    model = RandomWalkClassifier(
        walk=walk, graph=wl.graphs.barabasi_albert(20, 2, seed=1), update="sgd", penalty=0.01,
        steps=400_000, random_state=1,
    )  # fmt: skip
    model.fit(X, y, nodes=nodes)
    problem, _ = optimum(X, 2.0 * y - 1.0, Logistic())
    assert 0 <= model.trace_.average_value[0, -1] - problem.solution.value < 1e-3 * np.log(2)
    assert model.trace_.expected_visits is None or walk == wl.walks.Simple(reweight="gap")


@pytest.mark.parametrize(
    ("walk", "options", "chosen"),
    [
        ("simple", {}, wl.walks.Simple()),
        ("simple", {"update": "finito"}, wl.walks.Simple()),
        ("simple", {"update": "sgd"}, wl.walks.Simple(reweight="degree")),
        ("simple", {"step_size": 0.1, "laziness": 0.2},
         wl.walks.Simple(reweight="degree", laziness=0.2)),
        (wl.walks.Simple(reweight="degree"), {}, wl.walks.Simple(reweight="degree")),
        ("oldest-first", {}, wl.walks.OldestFirst()),
        ("oldest-first", {"update": "sgd"}, wl.walks.OldestFirst()),
        ("tour", {"laziness": None}, wl.walks.Tour()),
        ("tour", {"epsilon": 3.0, "delta": 1e-3, "row_length": 2.0}, wl.walks.Tour()),
    ],
    ids=repr,
)  # fmt: skip
def test_a_walk_by_name_has_the_weights_of_its_update(
    walk: Any, options: dict[str, Any], chosen: Any
) -> None:
    assert RandomWalkClassifier(walk=walk, **options).resolve(*CANCER).walk == chosen


@pytest.mark.parametrize(
    ("walk", "laziness", "words"),
    [
        ("jumping", 0.0, "'jumping'"),  # composed walks need the walk that they build on
        ("oldest", 0.0, "oldest-first, tour.*'oldest'"),
        ("oldest-first", 0.1, "no laziness"),
        ("tour", 0.1, "no laziness"),
    ],
)
def test_other_names_of_walks_are_refused(walk: str, laziness: float, words: str) -> None:
    with pytest.raises(ValueError, match=words):
        RandomWalkClassifier(walk=walk, laziness=laziness).fit(*CANCER)


def test_many_classes_walk_to_the_minimiser() -> None:
    X, y = IRIS
    common: dict[str, Any] = {"penalty": 0.01, "steps": 400_000, "random_state": 1}
    model = RandomWalkClassifier(walk="weighted", update="sgd", **common).fit(X, y)
    problem, best = optimum(X, y, Softmax(3))
    assert 0 <= model.trace_.average_value[0, -1] - problem.solution.value < 1e-3 * np.log(3)
    np.testing.assert_allclose(model.decision_function(X), standard(X) @ best.T, atol=0.25)
    assert model.coef_.shape == (3, 4)
    assert model.intercept_.shape == (3,)


@pytest.mark.parametrize("loss", ["squared", Huber(30.0)], ids=repr)
def test_a_regressor_walks_to_the_minimiser(loss: Any) -> None:
    X, y = DIABETES
    common: dict[str, Any] = {"penalty": 0.01, "steps": 400_000, "random_state": 1}
    model = RandomWalkRegressor(loss=loss, walk="weighted", update="sgd", **common).fit(X, y)
    centre = y.mean()
    problem, best = optimum(X, y - centre, Squared() if loss == "squared" else loss)
    start = problem.value(np.zeros(problem.size))
    assert 0 <= model.trace_.average_value[0, -1] - problem.solution.value < 1e-3 * start
    np.testing.assert_allclose(model.predict(X), standard(X) @ best + centre, atol=0.05 * y.std())


def test_outliers_pull_less_with_huber() -> None:
    generator = np.random.default_rng(0)
    X = generator.standard_normal((300, 2))
    y = X @ [1.0, -2.0] + 0.1 * generator.standard_normal(300)
    y[:30] += 100.0
    robust = RandomWalkRegressor(loss=Huber(1.0), random_state=0).fit(X, y)
    squared = RandomWalkRegressor(random_state=0).fit(X, y)
    assert np.abs(robust.coef_ - [1.0, -2.0]).max() < 0.3
    assert abs(robust.intercept_) < 0.3 < abs(squared.intercept_)


def test_the_scale_of_columns_does_not_matter() -> None:
    """Standardised by hand or not, in thousands or thousandths: the same model."""
    X, y = CANCER
    raw = RandomWalkClassifier(random_state=0).fit(X, y).decision_function(X)
    scaled = make_pipeline(StandardScaler(), RandomWalkClassifier(random_state=0)).fit(X, y)
    np.testing.assert_allclose(raw, scaled.decision_function(X), rtol=1e-6, atol=1e-6)
    units = np.logspace(-6, 6, X.shape[1])
    other = RandomWalkClassifier(random_state=0).fit(X * units + units, y)
    np.testing.assert_allclose(raw, other.decision_function(X * units + units), rtol=1e-3)


def test_as_accurate_as_logistic_regression() -> None:
    """Mean accuracy over 5 folds within a point; benchmarks/README.md has more data."""
    X, y = CANCER
    theirs = cross_val_score(make_pipeline(StandardScaler(), LogisticRegression()), X, y).mean()
    ours = cross_val_score(RandomWalkClassifier(random_state=0), X, y).mean()
    assert 100 * ours > 100 * theirs - 1.0


def test_weighted_and_repeated_rows_lead_to_one_model() -> None:
    """Both ways end near the one w* that both have, as far as a walk of 400,000 updates does."""
    X, y = DIABETES
    weights = np.random.default_rng(0).integers(0, 4, len(X))
    again = np.repeat(np.arange(len(X)), weights)
    common: dict[str, Any] = {"penalty": 0.01, "steps": 400_000, "random_state": 0}
    weighted = RandomWalkRegressor(**common).fit(X, y, sample_weight=weights)
    repeated = RandomWalkRegressor(**common).fit(X[again], y[again])
    ridge = make_pipeline(StandardScaler(), Ridge(alpha=0.01 * len(again))).fit(X[again], y[again])
    tolerance = 0.1 * y.std()
    np.testing.assert_allclose(weighted.predict(X), repeated.predict(X), atol=tolerance)
    np.testing.assert_allclose(weighted.predict(X), ridge.predict(X), atol=tolerance)
    unweighted = RandomWalkRegressor(**common).fit(X, y)
    assert np.abs(unweighted.predict(X) - ridge.predict(X)).max() > 2 * tolerance


def test_no_intercept_and_a_domain() -> None:
    X, y = DIABETES
    model = RandomWalkRegressor(
        fit_intercept=False, domain=wl.domains.Ball(5.0), random_state=0
    ).fit(X, y)
    assert model.intercept_ == 0.0
    assert model.predict(np.zeros((1, 10)))[0] == 0.0
    scale = np.sqrt((X**2).mean(axis=0))
    assert np.linalg.norm(model.coef_ * scale) <= 5.0 * (1 + 1e-9)


def test_squared_hinge_has_no_probabilities() -> None:
    X, y = CANCER
    model = RandomWalkClassifier(loss="squared-hinge", random_state=0).fit(X, y)
    assert model.score(X, y) > 0.95
    assert not hasattr(model, "predict_proba")
    with pytest.raises(ValueError, match=r"SquaredHinge\(\) .*3 classes"):
        RandomWalkClassifier(loss="squared-hinge").fit(*IRIS)


def test_labels_and_probabilities() -> None:
    X, y = IRIS
    names = np.array(["setosa", "versicolor", "virginica"])[y]
    model = RandomWalkClassifier(random_state=0).fit(X, names)
    assert model.classes_.tolist() == ["setosa", "versicolor", "virginica"]
    assert set(model.predict(X)) <= set(names)
    probabilities = model.predict_proba(X)
    np.testing.assert_allclose(probabilities.sum(axis=1), 1.0)
    np.testing.assert_allclose(np.log(probabilities), model.predict_log_proba(X))
    two = RandomWalkClassifier(random_state=0).fit(X[:100], names[:100])
    assert two.coef_.shape == (1, 4)
    np.testing.assert_allclose(two.predict_proba(X).sum(axis=1), 1.0)


# ============================================================== how it stops


def test_it_stops_when_a_doubling_brings_little() -> None:
    X, y = CANCER
    common: dict[str, Any] = {"walk": "weighted", "update": "sgd", "random_state": 0}
    model = RandomWalkClassifier(tol=0.003, **common).fit(X, y)
    loss = model.trace_.average_value[0]
    change = np.abs(np.diff(loss)) / np.log(2)
    visited_mass = model.trace_.updates[1:] > 10 * len(X)  # before, some nodes are left out
    assert change[-1] <= 0.003
    assert (change[:-1] > 0.003)[visited_mass[:-1]].all()
    assert model.n_iter_ == model.trace_.updates[-1]
    np.testing.assert_allclose(model.trace_.updates[1:] / model.trace_.updates[:-1], 2.0, rtol=0.02)
    longer = RandomWalkClassifier(tol=1e-4, **common).fit(X, y)
    assert longer.n_iter_ > model.n_iter_
    assert longer.trace_.average_value[0, -1] < loss[-1]


@pytest.mark.parametrize("update", ["sgd", "saga"])
def test_the_warning_of_a_walk_that_has_not_converged_has_a_remedy(update: str) -> None:
    common: dict[str, Any] = {"update": update, "random_state": 0}
    with pytest.warns(ConvergenceWarning, match="8,?000 updates.*max_steps or tol"):
        RandomWalkClassifier(max_steps=8000, tol=1e-6, **common).fit(*CANCER)
    model = RandomWalkClassifier(steps=4000, **common).fit(*CANCER)  # asked for: no warning
    assert model.n_iter_ == 4000


def test_a_walk_with_little_coverage_has_not_converged() -> None:
    """Iris is sorted by class: on a ring the token at first sees one of them only."""
    X, y = IRIS
    model = RandomWalkClassifier(graph="ring", walk="uniform", random_state=0).fit(X, y)
    assert (model.trace_.visits > 0).mean() > 0.9
    assert model.score(X, y) > 0.9
    with pytest.warns(ConvergenceWarning, match=r"500 updates: .*\d+ % .*150 nodes"):
        model.set_params(update="saga", max_steps=500).fit(X, y)


@pytest.mark.parametrize("update", ["sgd", "saga"])
def test_a_slow_walk_on_raw_columns_hints_at_their_scales(update: str) -> None:
    X, y = CANCER
    given: dict[str, Any] = {"update": update, "max_steps": 4000, "tol": 1e-9, "random_state": 0}
    with pytest.warns(ConvergenceWarning, match='standardise="auto"'):
        RandomWalkClassifier(standardise=False, **given).fit(X, y)
    with pytest.warns(ConvergenceWarning, match=r"4,?000 updates.*max_steps") as warned:
        RandomWalkClassifier(**given).fit(X, y)
    assert "standardise" not in str(warned[0].message)


def test_a_step_that_is_a_number_falls_as_those_that_are_found() -> None:
    found = RandomWalkClassifier(update="sgd", steps=10).fit(*IRIS).step_size_
    given = RandomWalkClassifier(step_size=found.constant, steps=10).fit(*IRIS).step_size_
    assert given == found == wl.PowerStep(found.constant, 0.51)


def test_too_long_steps_are_named() -> None:
    for given in ({"step_size": 1e6}, {"update": wl.updates.Sgd(wl.ConstantStep(10.0))}):
        with pytest.raises(ValueError, match=r"infinity.*smaller step"):
            RandomWalkRegressor(**given, random_state=0).fit(*DIABETES)


def test_the_remedy_for_default_steps_is_another(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(choices, "choose_step", lambda *_: wl.ConstantStep(10.0))
    with pytest.raises(ValueError, match=r"infinity.*columns.*penalty"):
        RandomWalkRegressor(update="sgd", random_state=0).fit(*DIABETES)


def test_which_model_predicts() -> None:
    X, y = CANCER
    models = {
        average: RandomWalkClassifier(
            update="sgd", average=average, steps=5000, random_state=0
        ).fit(X, y)
        for average in ("tail", "all", "none")
    }
    last = models["none"].weights_
    for model in models.values():  # the walk is the same
        np.testing.assert_array_equal(model.weights_, last)
    np.testing.assert_array_equal(models["none"].coef_[0], last[:-1])
    for average in ("tail", "all"):
        model = models[average]
        np.testing.assert_array_equal(model.coef_[0], model.average_[:-1])
        np.testing.assert_array_equal(model.intercept_, model.average_[-1:])
    assert np.abs(models["tail"].average_ - models["all"].average_).max() > 0
    # Of 5000 updates the tail is the last 2500, and step sizes fall: 51 % of the weight is before.
    assert models["tail"]._state.token.token.update["step_size_sum"] == pytest.approx(
        models["tail"].step_size_(np.arange(2501, 5001)).sum()
    )
    assert models["all"]._state.token.token.update["step_size_sum"] == pytest.approx(
        models["all"].step_size_(np.arange(1, 5001)).sum()
    )


def test_a_seed_repeats_and_none_does_not() -> None:
    X, y = IRIS
    same = [RandomWalkClassifier(steps=2000, random_state=3).fit(X, y).coef_ for _ in range(2)]
    np.testing.assert_array_equal(*same)
    for state in (None, np.random.RandomState(1), np.random.default_rng(1)):
        model = RandomWalkClassifier(steps=2000, random_state=state)
        one, other = (model.fit(X, y).coef_ for _ in range(2))
        assert np.abs(one - other).max() > 0


def test_a_wrong_seed_is_refused_with_the_kinds_that_are_allowed() -> None:
    for state in (-1, 1.5, True, "one"):
        with pytest.raises(ValueError, match=r"random_state must be .*RandomState.*Generator"):
            RandomWalkClassifier(random_state=state).fit(*IRIS)


# ============================================================== the network


def test_rows_live_where_their_nodes_are() -> None:
    X, y = IRIS
    sites = np.array(["rome", "oslo", "lima"])[np.arange(len(X)) % 3]
    model = RandomWalkClassifier(graph="complete", random_state=0).fit(X, y, nodes=sites)
    assert model.graph_ == wl.graphs.complete(3)
    assert model.trace_.visits.sum() == model.n_iter_
    assert model.score(X, y) > 0.9


def test_nodes_without_rows_relay() -> None:
    X, y = IRIS
    graph = wl.graphs.erdos_renyi(200, 0.1, seed=1)
    model = RandomWalkClassifier(graph=graph, walk="uniform", random_state=0).fit(X, y)
    assert model.graph_ == graph
    assert (model.trace_.visits[150:] > 0).all()
    assert model.score(X, y) > 0.9
    owners = np.arange(len(X)) % 40
    scores = cross_val_score(
        RandomWalkClassifier(graph=wl.graphs.complete(60), random_state=0), X, y,
        params={"nodes": owners}, cv=3,
    )  # fmt: skip
    assert scores.min() > 0.85


@pytest.mark.parametrize("kind", ["networkx", "igraph", "scipy", "file", "names"])
def test_graphs_of_other_kinds(kind: str, tmp_path: Any) -> None:
    import networkx

    X, y = IRIS
    ring = wl.graphs.ring(5)
    nodes: Any = np.arange(len(X)) % 5
    graph: Any = networkx.cycle_graph(5)
    if kind == "igraph":
        graph = pytest.importorskip("igraph").Graph(edges=ring.edges().tolist())
    elif kind == "scipy":
        graph = ring.adjacency()
    elif kind == "file":
        graph = tmp_path / "edges.txt"
        graph.write_text("".join(f"{i} {j}\n" for i, j in ring.edges()))
    elif kind == "names":
        graph = networkx.relabel_nodes(graph, dict(enumerate("abcde")))
        nodes = np.array(list("abcde"))[nodes]
    model = RandomWalkClassifier(graph=graph, steps=2000, random_state=0).fit(X, y, nodes=nodes)
    assert model.graph_ == ring
    expected = RandomWalkClassifier(graph=ring, steps=2000, random_state=0).fit(
        X, y, nodes=np.arange(len(X)) % 5
    )
    np.testing.assert_array_equal(model.coef_, expected.coef_)


# ============================================================== in scikit-learn


def test_grid_search_and_pipelines() -> None:
    X, y = IRIS
    model = make_pipeline(StandardScaler(), RandomWalkClassifier(steps=3000, random_state=0))
    grid = {"randomwalkclassifier__walk": ["uniform", "weighted"]}
    search = GridSearchCV(model, grid, cv=3).fit(X, y)
    assert search.best_score_ > 0.85
    nodes = np.arange(len(X)) % 30
    direct = GridSearchCV(
        RandomWalkClassifier(steps=3000, random_state=0), {"walk": ["uniform", wl.walks.Weighted()]}
    )
    assert direct.fit(X, y, nodes=nodes).best_estimator_.graph_.node_count == 30


def test_nodes_and_weights_are_routed() -> None:
    X, y = IRIS
    nodes, weights = np.arange(len(X)) % 30, np.ones(len(X))
    with sklearn.config_context(enable_metadata_routing=True):
        model = RandomWalkClassifier(steps=3000, random_state=0).set_fit_request(
            nodes=True, sample_weight=True
        )
        model.set_score_request(sample_weight=False)
        search = GridSearchCV(model, {"walk": ["uniform", "weighted"]}, cv=3)
        search.fit(X, y, nodes=nodes, sample_weight=weights)
    assert search.best_estimator_.graph_.node_count == 30


def test_it_survives_pickling_and_cloning() -> None:
    X, y = IRIS
    model = RandomWalkClassifier(walk=wl.walks.Weighted(laziness=0.1), steps=2000, random_state=0)
    model.fit(X, y)
    again = pickle.loads(pickle.dumps(model))
    np.testing.assert_array_equal(again.predict_proba(X), model.predict_proba(X))
    assert again.trace_ == model.trace_
    assert again.ledger_ == model.ledger_
    again.partial_fit(X, y)
    assert again.n_iter_ == 4000
    assert not hasattr(clone(model), "coef_")


def test_pandas_columns_are_remembered() -> None:
    pandas = pytest.importorskip("pandas")
    X, y = IRIS
    frame = pandas.DataFrame(X, columns=["a", "b", "c", "d"])
    model = RandomWalkClassifier(steps=2000, random_state=0)
    model.fit(frame, pandas.Series(y), nodes=pandas.Series(np.arange(len(X)) % 10))
    assert model.feature_names_in_.tolist() == ["a", "b", "c", "d"]
    with pytest.raises(ValueError, match="feature names"):
        model.predict(frame[["b", "a", "c", "d"]])


@pytest.mark.parametrize(("update", "metric"), [("sgd", "average_value"), ("saga", "value")])
def test_the_trace_draws_and_is_kept(update: str, metric: str, tmp_path: Any) -> None:
    model = RandomWalkClassifier(update=update, penalty=0.01, random_state=0).fit(*CANCER)
    axes = model.trace_.plot()
    assert axes.get_ylabel() == wl.plots.METRICS[metric]
    axes.figure.savefig(tmp_path / "trace.png")
    model.trace_.save(tmp_path / "trace.npz")
    assert wl.Trace.load(tmp_path / "trace.npz") == model.trace_
    assert (np.diff(model.trace_.messages[0]) > 0).all()


def test_a_callback_hears_of_every_round() -> None:
    heard: list[tuple[int, float]] = []
    model = RandomWalkClassifier(
        random_state=0, callback=lambda updates, loss: heard.append((updates, loss))
    ).fit(*CANCER)
    assert heard == list(
        zip(model.trace_.updates.tolist(), model.trace_.average_value[0].tolist(), strict=True)
    )


@pytest.mark.parametrize("update", ["sgd", "saga"])
@pytest.mark.parametrize("numbers", [1, 100, 1_000_000])
def test_losses_without_a_callback_are_the_same(
    update: str, numbers: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """They are found together at the end, or as soon as so many numbers wait."""
    options: dict[str, Any] = {"update": update, "steps": 2000, "random_state": 0}
    heard = RandomWalkClassifier(callback=lambda updates, loss: None, **options).fit(*CANCER)
    monkeypatch.setattr(rounds, "NUMBERS_AT_ONCE", numbers)
    alone = RandomWalkClassifier(**options).fit(*CANCER)
    assert len(alone.trace_.updates) > 3
    for name in ("updates", "messages", "value", "average_value"):
        np.testing.assert_array_equal(getattr(alone.trace_, name), getattr(heard.trace_, name))


# ============================================================== bad input


@pytest.mark.parametrize(
    ("parameters", "message"),
    [
        ({"graph": "erdos"}, "'erdos' .*'erdos-renyi'"),
        ({"graph": wl.graphs.ring(5)}, "150 rows .*5 nodes"),
        ({"walk": "weighed"}, "walk .*'weighed'"),
        ({"walk": wl.walks.Uniform(), "laziness": 0.5}, r"laziness=0.5 .*Uniform\(laziness=0.5\)"),
        ({"loss": "hinge"}, "'hinge' .*classification.*'squared-hinge'"),
        ({"loss": Squared()}, r"Squared\(\) .*3 classes"),
        ({"penalty": -1.0}, r"penalty .*-1\.0"),
        ({"steps": 0}, "^steps .*got 0"),
        ({"steps": 1.5}, r"^steps .*1\.5"),
        ({"max_steps": -1}, "max_steps .*-1"),
        ({"batch": 0}, "batch .*got 0"),
        ({"tol": "small"}, "tol .*'small'"),
        ({"average": True}, 'average .*"tail".*True'),
        ({"step_size": "long"}, "step_size .*'long'"),
        ({"step_size": -1.0}, r"step constant c .*-1\.0"),
        ({"domain": 3.0}, r"domain .*Ball\(10.0\), got 3.0"),
        ({"standardise": "yes"}, "standardise .*'yes'"),
        ({"fit_intercept": "yes"}, "fit_intercept .*'yes'"),
        ({"random_state": -3}, "random_state .*-3"),
        ({"laziness": 2.0}, r"laziness .*2\.0"),
        ({"update": "saga", "step_size": wl.PowerStep(0.1)}, r"step_size .*update='saga'"),
        ({"update": "saga", "average": "tail"}, r"average='tail' .*update='saga'"),
        ({"update": "sagaa"}, "'sagaa'"),
        ({"update": 3}, r"update .*got 3"),
    ],
)
def test_bad_parameters_are_named(parameters: Any, message: str) -> None:
    with pytest.raises((TypeError, ValueError), match=message):
        RandomWalkClassifier(**parameters).fit(*IRIS)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"nodes": [1, 2]}, r"nodes .*150 rows.*\(2,\)"),
        ({"nodes": [None] * 150}, "nodes .*row 0"),
        ({"nodes": np.full(150, np.nan)}, "nodes .*row 0"),
        ({"nodes": [*range(149), 200]}, r"row 149: node 200 .* nodes are 0 to 149"),
        ({"sample_weight": np.full(150, -1.0)}, "sample_weight .*row 0 .*-1"),
    ],
)
def test_bad_arguments_are_named(arguments: Any, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        RandomWalkClassifier(graph=wl.graphs.ring(150)).fit(*IRIS, **arguments)
    with pytest.raises(ValueError, match=r"'logistic' .*regression.*'squared'"):
        RandomWalkRegressor(loss="logistic").fit(*IRIS)


def test_an_edge_list_may_name_its_nodes(tmp_path: Any) -> None:
    path = tmp_path / "edges.txt"
    path.write_text("oslo rome\nrome bern\n", encoding="utf-8")
    X, y = load_iris(return_X_y=True)
    names = np.array(["rome", "oslo", "bern"])[np.arange(len(X)) % 3]
    model = RandomWalkClassifier(graph=str(path), steps=300, random_state=0)
    model.fit(X, y, nodes=names)
    assert model.graph_ == wl.graphs.from_edges([(1, 2), (2, 0)], 3)
    assert model.partial_fit(X, y, nodes=names).n_iter_ == 600
    with pytest.raises(ValueError, match=r"row 0: node 'paris' .*edges.txt"):
        model.fit(X, y, nodes=np.where(names == "rome", "paris", names))


@pytest.mark.parametrize("walk", ["oldest-first", "tour", wl.walks.Simple(reweight="gap")])
def test_partial_fit_refuses_gap_weights_because_no_visit_is_stored_between_calls(
    walk: str | wl.Walk,
) -> None:
    X, y = wl.datasets.two_gaussians(20, dimension=3, seed=1)
    estimator = wl.RandomWalkClassifier(graph=wl.graphs.ring(20), walk=walk)
    with pytest.raises(ValueError, match=r"partial_fit .*last visits.* Use walk=\"uniform\""):
        estimator.partial_fit(X, y, classes=[-1, 1])
