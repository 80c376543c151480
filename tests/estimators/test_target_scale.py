"""A private regression is trained on publicly scaled targets, and predicts in their own units."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
import pytest
from sklearn.datasets import load_diabetes, load_linnerud, make_friedman1, make_regression

import walklearn as wl
from walklearn import RandomWalkClassifier, RandomWalkRegressor
from walklearn.objectives.linear.losses import Huber
from walklearn.tables import Schema

pytestmark = pytest.mark.filterwarnings("ignore:δ = .* is large")
X, Y = load_diabetes(return_X_y=True, scaled=False)
NODES = np.arange(len(Y)) % 20
PUBLIC = Schema.typical(np.round(X.mean(axis=0), 1), np.round(X.std(axis=0), 1))
PRIVATE: dict[str, Any] = {"epsilon": 3.0, "delta": 1e-5, "schema": PUBLIC, "random_state": 0}
SCALE: dict[str, Any] = {"target_centre": 150.0, "target_spread": 80.0}


def made() -> tuple[np.ndarray, np.ndarray]:
    return make_regression(3000, 20, n_informative=8, noise=30.0, bias=500.0, random_state=1)


def curved() -> tuple[np.ndarray, np.ndarray]:
    return make_friedman1(2000, noise=1.0, random_state=2)


def heavy_tails() -> tuple[np.ndarray, np.ndarray]:
    """House prices: positive, skewed, in the hundred thousands, with a few far out."""
    generator = np.random.default_rng(5)
    rows = generator.gamma(2.0, 1.0, (4000, 8))
    logs = 12.0 + 0.25 * (rows[:, :4] - 2.0).sum(axis=1) + 0.3 * generator.standard_t(4, 4000)
    return rows, np.exp(np.minimum(logs, 16.0))


# R² at ε = 3 over the seeds 0 to 9, measured: diabetes 0.43 ± 0.03 (least 0.36), made 0.95,
# curved 0.73, heavy tails 0.26 (without privacy 0.36). The limits are 4 deviations and more below
# the mean of two seeds.
@pytest.mark.parametrize(
    ("rows", "centre", "spread", "least"),
    [
        (lambda: (X, Y), 150.0, 80.0, 0.33),
        (made, 500.0, 130.0, 0.9),
        (curved, 14.0, 5.0, 0.65),
        (heavy_tails, 200_000.0, 150_000.0, 0.2),
    ],
    ids=["diabetes", "made", "curved", "heavy tails"],
)
def test_regression_under_epsilon_learns(
    rows: Any, centre: float, spread: float, least: float
) -> None:
    X, y = rows()
    schema = Schema.typical(X.mean(axis=0).round(1), X.std(axis=0).round(1) + 0.1)
    scores = [
        RandomWalkRegressor(
            epsilon=3.0, delta=1e-5, schema=schema, random_state=seed,
            target_centre=centre, target_spread=spread,
        ).fit(X, y, nodes=np.arange(len(y)) % 20).score(X, y)
        for seed in range(2)
    ]  # fmt: skip
    assert np.mean(scores) > least


@pytest.mark.parametrize(
    ("given", "words"),
    [
        ({}, "epsilon .*target_centre.*target_spread"),
        ({"target_centre": 150.0}, "target_centre .*without target_spread"),
        ({"target_spread": 80.0}, "target_spread .*without target_centre"),
        ({"target_centre": 150.0, "target_spread": 0.0}, r"target_spread .*0\.0"),
        ({"target_centre": 150.0, "target_spread": "80"}, "target_spread .*'80'"),
        ({"target_centre": float("nan"), "target_spread": 1.0}, "target_centre .*nan"),
        ({**SCALE, "fit_intercept": False}, "150 .*fit_intercept=True"),
    ],
)
def test_epsilon_without_a_public_scale_is_refused(given: dict[str, Any], words: str) -> None:
    with pytest.raises(ValueError, match=words):
        RandomWalkRegressor(**PRIVATE, **given).fit(X, Y, nodes=NODES)


def test_noise_made_by_hand_needs_a_public_scale_too() -> None:
    noise = wl.privacy.ModelNoise.calibrate(epsilon=3.0, delta=1e-5, clip=1.0, max_contributions=5)
    by_hand: dict[str, Any] = {
        "model_privacy": noise, "schema": PUBLIC, "random_state": 0, "steps": 20, "step_size": 0.1,
    }  # fmt: skip
    with pytest.raises(ValueError, match=r"model_privacy .*target_centre.*target_spread"):
        RandomWalkRegressor(**by_hand).fit(X, Y, nodes=NODES)
    model = RandomWalkRegressor(**by_hand, **SCALE).fit(X, Y, nodes=NODES)
    scaled = np.clip((Y - 150.0) / 80.0, -3.0, 3.0)
    unit: dict[str, Any] = {"target_centre": 0.0, "target_spread": 1.0}
    same = RandomWalkRegressor(**by_hand, **unit).fit(X, scaled, nodes=NODES)
    np.testing.assert_allclose(model.coef_, 80.0 * same.coef_)


def test_where_no_scale_is_needed() -> None:
    record_unprotected = {"model": "in the clear", "walk": "weighted", "feature_bound": 9.0}
    RandomWalkRegressor(**PRIVATE, **record_unprotected, steps=20).fit(X, Y, nodes=NODES)
    with pytest.raises(ValueError, match="for RandomWalkRegressor"):
        RandomWalkClassifier(**SCALE).fit(X, Y > 150)


def test_the_model_is_the_one_of_targets_that_were_scaled_before() -> None:
    """Scaling by hand, cutting by hand and folding by hand give the same predictions."""
    model = RandomWalkRegressor(**PRIVATE, **SCALE).fit(X, Y, nodes=NODES)
    scaled = np.clip((Y - 150.0) / 80.0, -3.0, 3.0)
    unit: dict[str, Any] = {"target_centre": 0.0, "target_spread": 1.0}
    by_hand = RandomWalkRegressor(**PRIVATE, **unit).fit(X, scaled, nodes=NODES)
    np.testing.assert_allclose(model.predict(X), 150.0 + 80.0 * by_hand.predict(X))
    np.testing.assert_allclose(model.coef_, 80.0 * by_hand.coef_)
    np.testing.assert_array_equal(model.trace_.value, by_hand.trace_.value)


def test_extreme_targets_are_cut_at_three_spreads() -> None:
    far, cut = Y.copy(), Y.copy()
    far[::7], cut[::7] = 1e9, 150.0 + 3 * 80.0
    models = [RandomWalkRegressor(**PRIVATE, **SCALE).fit(X, y, nodes=NODES) for y in (far, cut)]
    np.testing.assert_array_equal(models[0].coef_, models[1].coef_)


@pytest.mark.parametrize("loss", ["squared", Huber(40.0)], ids=["squared", "huber"])
@pytest.mark.parametrize("options", [{}, {"schema": PUBLIC}, {"standardise": False}], ids=str)
def test_without_protection_a_scale_changes_nothing(loss: Any, options: dict[str, Any]) -> None:
    common = {"loss": loss, "random_state": 0, "steps": 500, **options}
    plain = RandomWalkRegressor(**common).fit(X, Y, nodes=NODES)
    scaled = RandomWalkRegressor(**common, **SCALE).fit(X, Y, nodes=NODES)
    np.testing.assert_array_equal(plain.coef_, scaled.coef_)
    assert plain.intercept_ == scaled.intercept_


def test_the_threshold_of_huber_is_in_the_units_of_the_target() -> None:
    model = RandomWalkRegressor(**PRIVATE, **SCALE, loss=Huber(40.0)).fit(X, Y, nodes=NODES)
    assert model.loss_ == Huber(40.0)
    problem, _ = model.prepare_problem(X, Y, nodes=NODES)
    assert problem.loss == Huber(0.5)
    score, target = np.array([100.0, 300.0]), np.array([120.0, 150.0])
    np.testing.assert_allclose(
        Huber(40.0).value(score, target),
        80.0**2 * Huber(40.0).rescaled(80.0).value(score / 80.0, target / 80.0),
    )


# R² without privacy: 0.89 and, for a spread of 1000, −0.97, for there the penalty outweighs slopes
# of 0.001. Measured over the seeds 0 and 1: 0.89 and 0.73 to 0.74; it was 0.61 to 0.71 and −0.06 to
# 0.14 while the clip ignored the threshold. The seeds are fixed.
@pytest.mark.parametrize(("spread", "least"), [(1.0, 0.88), (100.0, 0.88), (1000.0, 0.65)])
def test_huber_learns_whatever_the_units_of_the_target(spread: float, least: float) -> None:
    generator = np.random.default_rng(1)
    rows, weights = generator.normal(size=(3000, 5)), generator.normal(size=5)
    scores = 0.95 * rows @ (weights / np.linalg.norm(weights))
    y = spread * (2.0 + scores + 0.23 * generator.standard_t(4, 3000))
    model = RandomWalkRegressor(
        loss=Huber(1.0), epsilon=3.0, delta=1e-5, schema={"*": {"spread": 1.0}}, random_state=0,
        target_centre=2.0 * spread, target_spread=spread,
    ).fit(rows, y, nodes=np.arange(3000) % 10)  # fmt: skip
    assert model.score(rows, y) > least


def test_models_on_disk_and_exports_predict_in_the_target_units(tmp_path: Any) -> None:
    fitted = RandomWalkRegressor(**PRIVATE, **SCALE).fit(X, Y, nodes=NODES)
    fitted.to_model(target="progress").save(tmp_path / "model")
    model = wl.Model.load(tmp_path / "model")
    table = {f"x{at}": X[:, at] for at in range(X.shape[1])}
    np.testing.assert_allclose(model.predict(table), fitted.predict(X))
    np.testing.assert_allclose(model.to_sklearn().predict(pd.DataFrame(table)), fitted.predict(X))
    no_schema: dict[str, Any] = {**PRIVATE, "schema": None, "row_length": 3.0}
    standard = (X - X.mean(axis=0)) / X.std(axis=0)
    fitted = RandomWalkRegressor(**no_schema, **SCALE).fit(standard, Y, nodes=NODES)
    np.testing.assert_allclose(fitted.to_model().predict(standard), fitted.predict(standard))


def test_weights_sparse_rows_and_streams_use_the_same_scale() -> None:
    from scipy.sparse import csr_array

    around_zero: dict[str, Any] = {**PRIVATE, "schema": {"*": {"spread": 1.0}}}
    standard = (X - X.mean(axis=0)) / X.std(axis=0)
    sparse = RandomWalkRegressor(**around_zero, **SCALE).fit(csr_array(standard), Y, nodes=NODES)
    dense = RandomWalkRegressor(**around_zero, **SCALE).fit(standard, Y, nodes=NODES)
    np.testing.assert_allclose(sparse.coef_, dense.coef_, rtol=1e-6)
    ones = RandomWalkRegressor(**around_zero, **SCALE)
    ones.fit(standard, Y, nodes=NODES, sample_weight=np.ones(len(Y)))
    np.testing.assert_allclose(ones.coef_, dense.coef_)
    stream = RandomWalkRegressor(**around_zero, **SCALE, steps=30)
    for _ in range(3):
        stream.partial_fit(standard, Y, nodes=NODES)
    assert 100.0 < stream.intercept_ < 200.0
    stream.set_params(target_spread=90.0)
    with pytest.raises(ValueError, match=r"protection .*first call"):
        stream.partial_fit(standard, Y, nodes=NODES)


def test_without_an_intercept_a_centre_of_zero_is_folded() -> None:
    rows, targets = load_linnerud(return_X_y=True)
    model = RandomWalkRegressor(
        epsilon=3.0, delta=1e-3, schema={"*": {"spread": 100.0}}, fit_intercept=False,
        target_centre=0.0, target_spread=50.0, random_state=0, steps=5,
    ).fit(rows, targets[:, 0])  # fmt: skip
    assert model.intercept_ == 0.0
    table = {f"x{at}": rows[:, at] for at in range(rows.shape[1])}
    np.testing.assert_allclose(model.predict(rows), model.to_model().predict(table))


def test_a_schema_declares_the_scale_of_a_target_with_a_name() -> None:
    rows = pd.DataFrame(X, columns=[f"x{at}" for at in range(X.shape[1])])
    target, entry = pd.Series(Y, name="progress"), {"centre": 150.0, "spread": 80.0}
    columns = {
        name: {"centre": column.centre, "spread": column.spread}
        for name, column in PUBLIC.columns.items()
    }
    private: dict[str, Any] = {**PRIVATE, "schema": {**columns, "progress": entry}}
    declared = RandomWalkRegressor(**private).fit(rows, target, nodes=NODES)
    given = RandomWalkRegressor(**PRIVATE, **SCALE).fit(rows, target, nodes=NODES)
    np.testing.assert_array_equal(declared.coef_, given.coef_)
    np.testing.assert_allclose(declared.to_model().predict(rows), declared.predict(rows))
    problem, _ = RandomWalkRegressor(**private).prepare_problem(rows, target, nodes=NODES)
    assert np.abs(problem.y).max() <= 3.0
    with pytest.raises(ValueError, match=r"epsilon .*target_centre.*target_spread"):
        RandomWalkRegressor(**private).fit(rows, Y, nodes=NODES)
    private["schema"]["progress"] = {**entry, "from_rows": True}
    with pytest.raises(ValueError, match=r"'progress' .*from_rows = true"):
        RandomWalkRegressor(**private).fit(rows, target, nodes=NODES)
