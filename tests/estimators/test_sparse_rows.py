"""Sparse rows are trained on as they are, and give what the same rows give with their zeros."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from scipy import sparse

import walklearn as wl
from walklearn import RandomWalkClassifier, RandomWalkRegressor
from walklearn.fitting.units import Units
from walklearn.privacy import clip_features

ROWS, FEATURES = 120, 9
X = sparse.random_array((ROWS, FEATURES), density=0.3, format="csr", rng=1)
DENSE = X.toarray()
SCORES = DENSE @ np.linspace(-3.0, 3.0, FEATURES)
LABELS = (SCORES > 0).astype(int)
SITES = np.arange(ROWS) % 20
PRIVATE = {"epsilon": 3.0, "delta": 1e-5, "feature_bound": 1.0}


def alike(one: Any, other: Any) -> None:
    np.testing.assert_allclose(one.coef_, other.coef_, rtol=1e-8, atol=1e-10)
    np.testing.assert_allclose(one.intercept_, other.intercept_, rtol=1e-8, atol=1e-10)
    np.testing.assert_allclose(one.trace_.value, other.trace_.value)


@pytest.mark.parametrize(
    ("estimator", "y"),
    [
        (RandomWalkClassifier(standardise=False), LABELS),
        (RandomWalkClassifier(standardise=False, fit_intercept=False), LABELS),
        (RandomWalkClassifier(standardise=False), np.digitize(SCORES, [-0.5, 0.5])),
        (RandomWalkClassifier(standardise=False, loss="squared-hinge", batch=2), LABELS),
        (RandomWalkClassifier(standardise=False, domain=wl.domains.Ball(1.0)), LABELS),
        (RandomWalkClassifier(**PRIVATE), LABELS),
        (RandomWalkRegressor(standardise=False), SCORES),
        (RandomWalkRegressor(standardise=False, loss="huber", batch=3), SCORES),
    ],
    ids=lambda each: repr(each) if hasattr(each, "fit") else "",
)
def test_the_same_model_as_of_dense_rows(estimator: Any, y: Any) -> None:
    estimator = estimator.set_params(steps=2000, random_state=1)
    if estimator.epsilon is None:
        estimator.set_params(update="saga")  # the default depends on whether rows are sparse
    weights = 1.0 + np.arange(ROWS) % 3
    weights[5] = 0.0
    one, other = (
        type(estimator)(**estimator.get_params()).fit(rows, y, nodes=SITES, sample_weight=weights)
        for rows in (X, DENSE)
    )
    alike(one, other)
    np.testing.assert_allclose(one.predict(X), one.predict(DENSE))
    assert getattr(one, "clipped_rows_", None) == getattr(other, "clipped_rows_", None)
    for each in (one, other):
        each.set_params(update="auto")
    alike(one.partial_fit(X, y, nodes=SITES), other.partial_fit(DENSE, y, nodes=SITES))


@pytest.mark.parametrize("kind", ["csr", "csc", "coo", "lil", "dok", "bsr"])
@pytest.mark.parametrize("container", [sparse.csr_array, sparse.csr_matrix])
def test_every_kind_of_scipy(kind: str, container: Any) -> None:
    rows = container(X).asformat(kind)
    model = RandomWalkClassifier(steps=300, random_state=1)
    expected = RandomWalkClassifier(steps=300, random_state=1).fit(X, LABELS)
    np.testing.assert_array_equal(model.fit(rows, LABELS).coef_, expected.coef_)
    np.testing.assert_array_equal(model.predict_proba(rows), expected.predict_proba(X))


def test_units_leave_zeros_alone() -> None:
    """The largest entry of a column becomes 1; predictions are in given units."""
    rows = X * (10.0 ** np.arange(FEATURES))[None, :]
    units = Units.standard(rows.tocsr(), np.ones(ROWS), intercept=True)
    trained = units.rows(rows.tocsr())
    assert trained.nnz == X.nnz + ROWS
    np.testing.assert_allclose(np.abs(trained.toarray()).max(axis=0), 1.0)
    np.testing.assert_allclose(trained.toarray()[:, :-1] * units.scale, rows.toarray())
    one = RandomWalkClassifier(random_state=1).fit(rows, LABELS)
    other = RandomWalkClassifier(random_state=1).fit(X, LABELS)
    np.testing.assert_allclose(one.decision_function(rows), other.decision_function(X))
    assert one.score(rows, LABELS) > 0.9


def test_the_problem_that_is_posed_is_sparse_and_the_rows_stay_as_they_are() -> None:
    before = X.copy()
    for intercept in (True, False):
        model = RandomWalkClassifier(fit_intercept=intercept, standardise=False)
        problem, _ = model.prepare_problem(X, LABELS)
        assert problem.is_sparse
        assert problem.dimension == FEATURES + intercept
    X.data[0] *= 1.0  # can still be written to
    assert (before != X).nnz == 0
    shuffled = X.copy()
    shuffled.indices[: shuffled.indptr[1]] = shuffled.indices[: shuffled.indptr[1]][::-1]
    shuffled.data[: shuffled.indptr[1]] = shuffled.data[: shuffled.indptr[1]][::-1]
    shuffled.has_sorted_indices = False
    assert model.prepare_problem(shuffled, LABELS)[0] == model.prepare_problem(X, LABELS)[0]


def test_dense_units_do_not_suit_sparse_rows() -> None:
    model = RandomWalkClassifier(steps=100, random_state=1).fit(DENSE, LABELS)
    with pytest.raises(ValueError, match=r"X\.toarray\(\)"):
        model.partial_fit(X, LABELS)


def test_long_rows_are_shortened() -> None:
    rows = X.copy()
    rows.data[rows.indptr[3] : rows.indptr[4]] *= 1e200
    ours, count = clip_features(rows, 0.7)
    theirs, expected = clip_features(rows.toarray(), 0.7)
    assert count == expected > 0
    np.testing.assert_allclose(ours.toarray(), theirs)
    assert np.linalg.norm(ours.toarray(), axis=1).max() <= 0.7
    rows.data[rows.indptr[7]] = np.inf
    with pytest.raises(ValueError, match=r"row 7 .*NaN"):
        clip_features(rows, 0.7)


def test_a_model_predicts_sparse_rows_too(tmp_path: Any) -> None:
    fitted = RandomWalkClassifier(steps=300, random_state=1).fit(X, LABELS)
    fitted.to_model().save(tmp_path / "model")
    model = wl.Model.load(tmp_path / "model")
    np.testing.assert_array_equal(model.predict(X), fitted.predict(X))
    np.testing.assert_allclose(model.predict_proba(X.tocsc()), fitted.predict_proba(X))
    with pytest.raises(ValueError, match=r"X .*\(rows, 9\).*\(120, 4\)"):
        model.predict(X[:, :4])
    wrong = X.copy()
    wrong.data[wrong.indptr[4]] = np.nan
    with pytest.raises(ValueError, match=r"row 4 of X .*NaN"):
        model.predict(wrong)


def test_batches_of_big_nodes_lead_to_the_same_place() -> None:
    """400 rows on 4 nodes: 20 of 100 rows at a time end where all do, within a thousandth."""
    generator = np.random.default_rng(0)
    rows = generator.standard_normal((400, 5))
    y = rows @ np.arange(5.0) + generator.standard_normal(400)
    for estimator, targets in ((RandomWalkClassifier, y > 0), (RandomWalkRegressor, y)):
        common = {"graph": "complete", "penalty": 0.01, "steps": 100_000, "random_state": 0}
        common["update"] = "sgd"
        whole, some = (
            estimator(batch=batch, **common).fit(rows, targets, nodes=np.arange(400) % 4)
            for batch in (None, 20)
        )
        losses = [float(each.trace_.average_value[0, -1]) for each in (whole, some)]
        assert losses[1] == pytest.approx(losses[0], rel=1e-3)
        assert some.step_size_.constant < whole.step_size_.constant


@pytest.mark.parametrize("settings", [{}, {"schema": {"*": {"centre": 0, "spread": 1}}}])
def test_a_column_that_has_several_entries_in_a_row_has_their_sum(settings: Any) -> None:
    """They were scaled and cut off one by one, so that their sum was something else."""
    entries = ([2.0, 2.5, 1.0, 1.0], [0, 0, 1, 1], [0, 2, 4])
    several = sparse.csr_array(entries, shape=(2, 2))
    once = sparse.csr_array(several.toarray())
    models = [
        RandomWalkClassifier(random_state=0, **settings).fit(rows, [0, 1])
        for rows in (several, once)
    ]
    np.testing.assert_array_equal(models[0].coef_, models[1].coef_)
    scores = [models[0].decision_function(rows) for rows in (several, once)]
    np.testing.assert_allclose(*scores, rtol=1e-12)
    assert several.nnz == 4  # what was passed stays as it is
