"""L_i at the level of rows: how far one row moves it, and what releasing it so costs."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.sparse import eye_array

import walklearn as wl
from walklearn.privacy import (
    ModelNoise,
    PrivacySettings,
    PublicFacts,
    RowGaussian,
    plan_budget,
    row_release,
)
from walklearn.privacy.accounting.composition import Charge, compose
from walklearn.privacy.accounting.ledger import Ledger
from walklearn.privacy.mechanisms.description import describe, from_description

BOUND, NODES, ROWS = 2.0, 4, 24
OWNERS = np.arange(ROWS) % NODES
FACTS: dict[str, Any] = {"nodes": NODES, "feature_bound": BOUND, "total_rows": float(ROWS)}


def sensitivity(loss: Any, **facts: Any) -> float:
    return row_release(loss, epsilon=1.0, delta=1e-6, **{**FACTS, **facts}).sensitivity


def smoothness(X: np.ndarray, weights: np.ndarray, loss: Any, aggregate: Any, one: bool) -> Any:
    rows = wl.privacy.clip_features(X, BOUND)[0]
    rows = np.column_stack([rows, np.ones(len(rows))]) if one else rows
    return wl.Problem(
        rows, np.ones(len(rows)), loss=loss, node_of_row=OWNERS, aggregate=aggregate, penalty=0.3,
        sample_weight=weights,
    ).smoothness_constants  # fmt: skip


@given(
    st.integers(0, 2**32 - 1),
    st.sampled_from(["sum", "mean", "node-mean"]),
    st.sampled_from([wl.losses.Logistic(), wl.losses.Squared()]),
    st.booleans(),
    st.sampled_from([1e-3, 1.0, 1e3]),
)
@settings(max_examples=150, deadline=None)
def test_no_row_moves_the_constant_further(
    seed: int, aggregate: Any, loss: Any, one: bool, size: float
) -> None:
    """Weights of a row keep the sums that the aggregate divides by, which are public."""
    generator = np.random.default_rng(seed)
    X = size * generator.standard_normal((ROWS, 3))
    weights = generator.uniform(0.2, 1.8, ROWS)
    for node in range(NODES):  # a public sum of weights: 6 for each node
        weights[node == OWNERS] *= 6.0 / weights[node == OWNERS].sum()
    other = X.copy()
    other[5] = generator.choice([0.0, 1.0, 1e3]) * generator.standard_normal(3)
    moved = sensitivity(loss, aggregate=aggregate, intercept=one, min_rows=6.0,
                        largest_weight=float(weights.max()))  # fmt: skip
    before, after = (smoothness(rows, weights, loss, aggregate, one) for rows in (X, other))
    change = after - before
    assert np.abs(change).max() <= moved
    assert np.count_nonzero(change) <= 1


@pytest.mark.parametrize("aggregate", ["sum", "mean", "node-mean"])
def test_some_row_moves_it_that_far(aggregate: Any) -> None:
    X = np.zeros((ROWS, 3))
    other = X.copy()
    other[5] = 99.0
    ones, loss = np.ones(ROWS), wl.losses.Logistic()
    before, after = (smoothness(rows, ones, loss, aggregate, False) for rows in (X, other))
    change = after - before
    moved = sensitivity(loss, aggregate=aggregate, min_rows=6.0)
    assert np.abs(change).max() == pytest.approx(moved, rel=1e-9)


def test_an_intercept_lets_a_row_turn_the_constant_further() -> None:
    """Of rows that all point one way, with the intercept, one is replaced by its opposite."""
    X = np.zeros((ROWS, 3))
    X[:, 0] = 1.0
    other = X.copy()
    other[5] *= -1.0
    ones, loss = np.ones(ROWS), wl.losses.Logistic()
    before, after = (smoothness(rows, ones, loss, "mean", True) for rows in (X, other))
    moved = sensitivity(loss, intercept=True, feature_bound=1.0)
    assert np.abs(after - before).max() == pytest.approx(moved, rel=1e-9)


def test_a_clamp_makes_no_claim_smaller() -> None:
    """It is public and comes after the noise."""
    for clamp in (None, (1.0, 2.0), (1.4, 1.5)):
        release = RowGaussian(3.0, (1.0, 2.0), clamp, sensitivity=1.0)
        assert release.delta(0.5) == pytest.approx(ModelNoise(1.0, 6.0, 1).delta(0.5), rel=1e-9)


def test_no_release_is_below_the_penalty_which_is_public() -> None:
    release = row_release(wl.losses.Logistic(), epsilon=1.0, delta=1e-6, penalty=50.0, **FACTS)
    assert release.bounds[0] == release.clamp[0] == 50.0


def test_the_noise_is_that_of_the_gaussian_and_little() -> None:
    loss = wl.losses.Logistic()
    facts = {"nodes": 20, "feature_bound": 7.0, "total_rows": 5000.0, "penalty": 1e-3}
    release = row_release(loss, epsilon=0.3, delta=1e-6, intercept=True, **facts)
    assert release.delta(0.3) <= 1e-6 < release.delta(0.299)
    once = ModelNoise(1.0, 2 * release.sigma / release.sensitivity, 1)
    assert release.delta(0.3) == pytest.approx(once.delta(0.3), rel=1e-6)
    # A node of 250 rows of that length has an L_i of up to 12.5: less than a tenth of it is noise.
    assert release.sigma < 1.0 < release.bounds[1]
    assert release.bounds[0] == pytest.approx(release.sensitivity)
    values = release.release(np.full(50, 6.0), np.random.default_rng(1))
    assert values.std() == pytest.approx(release.sigma, rel=0.5)  # 5 standard errors
    whole = wl.privacy.calibrate("laplace", epsilon=0.3, delta=1e-6, bounds=release.bounds)
    assert release.deviation < whole.deviation / 100


def test_it_walks_is_charged_and_composes_with_the_model() -> None:
    """A weighted walk releases R_i with a claim for rows, within the total."""
    X, y = wl.datasets.two_gaussians(60, dimension=3, seed=1)
    X = wl.privacy.clip_features(X, BOUND)[0]
    problem = wl.Problem(X, y, node_of_row=np.arange(60) % 6, aggregate="mean", penalty=0.1)
    loss = problem.loss
    facts = PublicFacts(nodes=6, rows=60, features=3, row_length=BOUND)
    shared = plan_budget(
        PrivacySettings(3.0, 1e-5), facts, loss, intercept=False, reveals_rows=True
    )
    assert shared.constants is not None
    epsilon, delta = shared.constants
    release = row_release(loss, epsilon=epsilon, delta=delta, nodes=6, feature_bound=BOUND,
                          total_rows=60.0, penalty=0.1)  # fmt: skip
    charges = [Charge("importance", release, 1),
               Charge("model", shared.noise, shared.noise.max_contributions)]  # fmt: skip
    assert compose(charges).within(3.0, 1e-5)
    run = wl.simulate(problem, wl.graphs.complete(6), wl.walks.Weighted(privacy=release),
                      steps=shared.updates, step_size=wl.ConstantStep(shared.step), seed=1,
                      replicates=2, privacy=shared.noise)  # fmt: skip
    ledger = run.ledger[0]
    assert ledger.unit == "rows"
    assert "one row" in str(ledger)
    assert ledger.largest_total(1e-5)[1] <= 3.0
    assert Ledger.from_dict(ledger.to_dict()) == ledger


def test_units_of_a_ledger() -> None:
    laplace = wl.privacy.Laplace(9.0, (1.0, 10.0))
    ledger = Ledger(2)
    assert ledger.unit is None
    ledger.charge("importance", laplace)
    assert ledger.unit == "node"
    ledger.charge("model", ModelNoise(1.0, 5.0, 3))
    assert ledger.unit == "rows"


def test_it_is_described_and_read_back() -> None:
    release = RowGaussian(0.5, (0.1, 9.0), sensitivity=0.02)
    assert from_description(describe(release)) == release
    assert repr(release) == "RowGaussian(sigma=0.5, bounds=(0.1, 9), sensitivity=0.02)"


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"nodes": 0}, "nodes"),
        ({"feature_bound": 0.0}, "feature_bound"),
        ({"total_rows": np.inf}, "total_rows"),
        ({"min_rows": 0.0}, "min_rows"),
        ({"largest_weight": -1.0}, "largest_weight"),
        ({"aggregate": "median"}, "aggregate"),
    ],
)
def test_bad_input_is_refused(changes: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        sensitivity(wl.losses.Logistic(), **changes)
    with pytest.raises(ValueError, match="sensitivity"):
        RowGaussian(0.5, (0.1, 9.0))


@pytest.mark.parametrize("penalty", [0.0, 1e6, 1e8])
def test_the_last_digit_of_a_large_penalty_is_in_the_sensitivity(penalty: float) -> None:
    """λ cancels in L_i − L_i', but not in how each of them was rounded."""
    release = row_release(
        wl.losses.Logistic(), epsilon=1.0, delta=1e-5, nodes=2, feature_bound=1.0, total_rows=10,
        penalty=penalty, features=1,
    )  # fmt: skip
    generator, owners, moved = np.random.default_rng(0), [0] * 5 + [1] * 5, []
    for _ in range(200):
        X = np.append(generator.random(5), np.zeros(5))[:, None]
        ends = []
        for end in (0.0, 1.0):
            X[0] = end
            problem = wl.Problem(
                X, np.ones(10), penalty=penalty, node_of_row=owners, aggregate="mean"
            )
            ends.append(problem.exact_smoothness[0])
        moved.append(ends[1] - ends[0])
    assert 0.9 * release.sensitivity < max(moved) <= release.sensitivity


def test_a_constant_that_is_only_iterated_is_not_released_for_single_rows() -> None:
    X = eye_array(1001, format="csr")
    problem = wl.Problem(X, np.ones(1001), node_of_row=np.zeros(1001, int), aggregate="mean")
    facts: dict[str, Any] = {"nodes": 1, "feature_bound": 1.0, "total_rows": 1001.0}
    for_rows = row_release(wl.losses.Logistic(), epsilon=1.0, delta=1e-5, **facts)
    graph = wl.graphs.complete(1)
    with pytest.raises(ValueError, match="1001 sparse rows with 1001 columns"):
        wl.walks.Weighted(privacy=for_rows).sample_release(graph, problem)
    for_nodes = wl.privacy.calibrate("laplace", epsilon=1.0, delta=0.0, bounds=(1e-4, 1.0))
    wl.walks.Weighted(privacy=for_nodes).sample_release(graph, problem)  # holds for every value
