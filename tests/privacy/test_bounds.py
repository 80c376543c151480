"""Public bounds hold for every data set within the public limits, and are reached."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import walklearn as wl
from walklearn import losses
from walklearn.privacy import clip_features, smoothness_bounds

LOSSES = [losses.Logistic(), losses.Squared(), losses.Huber(), losses.SquaredHinge(),
          losses.Softmax(3)]  # fmt: skip
NODES, ROWS, LIMIT = 6, 4, 1.5


def problem(loss: Any, aggregate: Any, X: np.ndarray, owners: np.ndarray) -> wl.Problem:
    labels = np.arange(len(X)) % 2
    y = labels if isinstance(loss, losses.Softmax) else 2.0 * labels - 1.0
    return wl.Problem(
        X, y, loss=loss, penalty=0.5, node_of_row=owners, nodes=NODES, aggregate=aggregate
    )


@pytest.mark.parametrize("loss", LOSSES, ids=repr)
@pytest.mark.parametrize("aggregate", ["sum", "mean", "node-mean"])
@pytest.mark.parametrize("intercept", [False, True])
def test_bounds_hold_and_are_reached(loss: Any, aggregate: str, intercept: bool) -> None:
    owners = np.concatenate([np.arange(NODES), np.zeros(ROWS - 1, dtype=int)])
    lo, hi = smoothness_bounds(
        loss, 0.5, NODES, LIMIT, max_rows=ROWS, aggregate=aggregate, intercept=intercept,
        total_rows=len(owners),
    )  # fmt: skip
    generator = np.random.default_rng(1)
    ones = np.ones((len(owners), 1))
    for scale in (1e-9, 0.5, 3.0):
        X, _ = clip_features(scale * generator.standard_normal((len(owners), 3)), LIMIT)
        rows = np.hstack([X, ones]) if intercept else X
        constants = problem(loss, aggregate, rows, owners).smoothness_constants
        assert constants.min() >= lo * (1 - 1e-12)
        assert constants.max() <= hi * (1 + 1e-12)
    # All rows of node 0 at the limit, all others 0.
    X = np.zeros((len(owners), 3))
    X[owners == 0, 0] = LIMIT
    rows = np.hstack([X, ones]) if intercept else X
    constants = problem(loss, aggregate, rows, owners).smoothness_constants
    assert constants.max() == pytest.approx(hi)
    assert constants.min() == pytest.approx(lo)


def test_the_paper() -> None:
    """L_i = 1 + N‖x_i‖²/4 for one row and penalty 1."""
    assert smoothness_bounds(losses.Logistic(), 1.0, 20, 3.0) == (1.0, 1.0 + 20 * 9 / 4)


def test_a_node_of_light_rows_is_within_the_bounds() -> None:
    """With an intercept the constant is at least what the rows of a node weigh."""
    lo, _ = smoothness_bounds(
        losses.Squared(), 0.5, 2, 1.0, max_rows=2.0, min_rows=0.25, intercept=True
    )
    constants = wl.Problem(
        [[0.0, 1.0], [0.0, 1.0]], [1.0, 1.0], loss=losses.Squared(), penalty=0.5,
        sample_weight=[0.25, 2.0],
    ).smoothness_constants  # fmt: skip
    assert constants.min() == pytest.approx(lo)


def test_a_lower_bound_is_asked_for() -> None:
    with pytest.raises(ValueError, match=r"lower=\.\.\."):
        smoothness_bounds(losses.Squared(), 0.0, 10, 1.0)
    assert smoothness_bounds(losses.Squared(), 0.0, 10, 1.0, lower=0.1) == (0.1, 10.0)
    assert smoothness_bounds(losses.Squared(), 2.0, 10, 1.0, lower=0.1) == (2.0, 12.0)
    # An intercept keeps the constant away from 0 by itself.
    assert smoothness_bounds(losses.Squared(), 0.0, 10, 1.0, intercept=True) == (10.0, 20.0)


@pytest.mark.parametrize("aggregate", ["sum", "mean", "node-mean"])
@pytest.mark.parametrize("intercept", [False, True])
def test_bounds_hold_for_weighted_rows(aggregate: Any, intercept: bool) -> None:
    """Rows on the sphere of the feature bound, pointing alike: the worst that a node can hold."""
    generator = np.random.default_rng(5)
    owners = np.repeat(np.arange(4), 3)
    X = 2.0 * np.tile(np.eye(3)[:1], (12, 1)) * generator.uniform(0.0, 1.0, (12, 1)) ** 0.1
    X[owners == 0] = [2.0, 0.0, 0.0]
    if intercept:
        X = np.column_stack([X, np.ones(12)])
    weights = generator.uniform(0.1, 4.0, 12)
    weights[owners == 0] = 4.0
    totals = np.bincount(owners, weights)
    problem = wl.Problem(
        X, np.ones(12), penalty=0.1, aggregate=aggregate, node_of_row=owners, sample_weight=weights
    )
    low, high = smoothness_bounds(
        losses.Logistic(), 0.1, 4, 2.0, max_rows=totals.max(), min_rows=totals.min(),
        aggregate=aggregate, intercept=intercept, total_rows=totals.sum(),
    )  # fmt: skip
    assert low <= problem.smoothness_constants.min() * (1 + 1e-12)
    assert problem.smoothness_constants.max() == pytest.approx(high)  # node 0 reaches it


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"penalty": -1.0}, "penalty"),
        ({"feature_bound": 0.0}, "feature_bound"),
        ({"feature_bound": np.inf}, "feature_bound"),
        ({"nodes": 0}, "nodes"),
        ({"max_rows": 0.0}, "^max_rows"),
        ({"max_rows": 0.5}, r"min_rows = 1 .*max_rows = 0\.5"),
        ({"aggregate": "mean", "total_rows": -1.0}, "total_rows .*-1"),
        ({"aggregate": "total"}, '"sum", "mean" or "node-mean"'),
        ({"aggregate": "mean"}, "total_rows"),
        ({"lower": 99.0}, "nothing to protect"),
        ({"lower": -1.0}, "lower .*-1"),
    ],
)
def test_bad_bounds(change: dict[str, Any], message: str) -> None:
    options = {"penalty": 1.0, "nodes": 10, "feature_bound": 1.0, **change}
    with pytest.raises(ValueError, match=message):
        smoothness_bounds(losses.Squared(), **options)


def test_bad_loss() -> None:
    with pytest.raises(TypeError, match=r"losses.Logistic\(\)"):
        smoothness_bounds("logistic", 1.0, 10, 1.0)  # type: ignore[arg-type]


def test_clip_features() -> None:
    generator = np.random.default_rng(0)
    X = generator.standard_normal((500, 7)) * np.logspace(-3, 3, 500)[:, None]
    clipped, count = clip_features(X, 2.0)
    norms = np.linalg.norm(X, axis=1)
    assert count == np.count_nonzero(norms > 2.0)
    assert np.array_equal(clipped[norms <= 2.0], X[norms <= 2.0])
    assert np.linalg.norm(clipped, axis=1).max() <= 2.0
    # The direction is kept, and clipping twice changes nothing.
    long = norms > 2.0
    assert np.allclose(clipped[long] / 2.0, X[long] / norms[long, None])
    again, second = clip_features(clipped, 2.0)
    assert second == 0
    assert np.array_equal(again, clipped)
    huge, count = clip_features([[1e300, 1e300], [0.0, 0.0]], 1.0)
    assert count == 1
    assert np.allclose(huge, [[0.5**0.5, 0.5**0.5], [0, 0]])


@pytest.mark.parametrize(
    ("X", "bound", "message"),
    [
        ([[np.nan, 1.0]], 1.0, "row 0 .*NaN"),
        ([1.0, 2.0], 1.0, r"shape \(rows, features\)"),
        ([[1.0]], 0.0, "bound"),
    ],
)
def test_bad_features(X: Any, bound: float, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        clip_features(X, bound)
