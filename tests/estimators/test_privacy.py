"""What an estimator claims of privacy is exact or refused, and rests on public facts alone."""

from __future__ import annotations

import copy
import pickle
from typing import Any

import numpy as np
import pytest
from scipy.sparse import csr_array
from sklearn.datasets import load_breast_cancer

import walklearn as wl
from tests.estimators.cases import CONSTANTS_ALONE
from walklearn import RandomWalkClassifier, privacy, walks
from walklearn.fitting.training_state import MarkedRows
from walklearn.tables import Schema

X, Y = load_breast_cancer(return_X_y=True)
RAW = X
X = (X - X.mean(axis=0)) / X.std(axis=0)
TOTAL: dict[str, Any] = {"epsilon": 3.0, "delta": 1e-5}
NODES = np.arange(len(X)) % 20
LAPLACE = privacy.calibrate("laplace", epsilon=1.0, delta=0.0, bounds=(0.25, 20.0))
BY_HAND: dict[str, Any] = dict.fromkeys(["epsilon", "delta", "model"]) | {
    "model_privacy": privacy.ModelNoise(1.0, 1.0, 5)
}
FROM_ROWS = {"*": {"spread": 1, "from_rows": True}}


def private(**changes: Any) -> RandomWalkClassifier:
    return RandomWalkClassifier(**{**CONSTANTS_ALONE, "steps": 3000, "random_state": 0, **changes})


def total(**changes: Any) -> RandomWalkClassifier:
    return RandomWalkClassifier(**{**TOTAL, "row_length": 5.5, "random_state": 0, **changes})


def test_epsilon_is_the_total_of_everything_and_the_model_learns() -> None:
    model = total().fit(X, Y, nodes=NODES)
    assert [each.what for each in model.ledger_.charges(0)] == ["model"]
    assert isinstance(model.walk_, walks.Uniform)  # tells nothing, so all of ε is the model's
    assert 2.9 < model.ledger_.largest_total(1e-5)[1] <= 3.0
    assert model.ledger_.budget == (3.0, 1e-5)
    assert model.model_noise_.protect == "rows"
    assert model.score(X, Y) > 0.9
    real = total(random_state=None, steps=30).fit(X, Y, nodes=NODES).to_model().privacy
    assert (real["epsilon"], real["delta"], real["unit"]) == (3.0, 1e-5, "rows")
    assert "for everything that leaves a node" in real["protected"][0]
    assert "claim_without_seed" not in real


def test_seeded_noise_claims_nothing() -> None:
    noise = privacy.ModelNoise.calibrate(epsilon=3.0, delta=1e-5, clip=3.0, max_contributions=20)
    by_hand = RandomWalkClassifier(model_privacy=noise, step_size=0.1, random_state=0, steps=30)
    for seeded in (total(steps=30), by_hand):
        stated = seeded.fit(X, Y, nodes=NODES).to_model().privacy
        assert (stated["epsilon"], stated["delta"], stated["unit"]) == (None, None, None)
        assert stated["claim_without_seed"] == wl.privacy.Claim(3.0, 1e-5, "rows").to_dict()
        assert stated["protected"] == []
        assert stated["not_protected"][0].startswith("No privacy claim")


def test_a_large_delta_is_stated_with_the_claim() -> None:
    with pytest.warns(UserWarning, match="δ = 0.01 .*569 rows"):
        large = total(delta=0.01, random_state=None, steps=3).fit(X, Y, nodes=NODES)
    stated = large.to_model().privacy
    assert stated["epsilon"] == 3.0
    assert any("5.69 of them without noise" in sentence for sentence in stated["not_protected"])
    small = total(random_state=None, steps=3).fit(X, Y, nodes=NODES).to_model().privacy
    assert not any("is large" in sentence for sentence in small["not_protected"])


def test_under_a_total_the_last_model_predicts() -> None:
    """Its steps are short, so an average lags; without noise the average is the better one."""
    last, tail = (total(average=how).fit(X, Y, nodes=NODES) for how in ("auto", "tail"))
    np.testing.assert_array_equal(last.coef_, last.weights_[None, :-1])
    np.testing.assert_array_equal(tail.coef_, last.average_[None, :-1])
    assert (last.to_model().iterate, tail.to_model().iterate) == ("last", "average")
    assert private().fit(X, Y, nodes=NODES).to_model().iterate == "average"


def test_a_disclosing_walk_is_charged_to_the_same_total() -> None:
    model = total(walk="weighted", feature_bound=8.0).fit(X, Y, nodes=NODES)
    assert {each.what for each in model.ledger_.charges(0)} == {"importance", "model"}
    assert model.ledger_.largest_total(1e-5)[1] <= 3.0
    assert model.walk_.mechanism.protect == "rows"
    node = total(walk="weighted", feature_bound=8.0, protect="node").fit(X, Y, nodes=NODES)
    assert node.ledger_.unit == "node"
    assert node.ledger_.largest_total(1e-5)[1] <= 3.0


def test_the_cap_is_charged_for_any_number_of_visits() -> None:
    """Who sees the tokens may choose when to stop, so the visits so far are no measure."""
    model = total(steps=5).fit(X, Y, nodes=NODES)
    cap = model.model_noise_.max_contributions
    assert {each.times for node in range(20) for each in model.ledger_.charges(node)} == {cap}
    assert 1 <= model.trace_.contributions.sum() <= 5


def test_public_scales_come_from_a_schema_and_predictions_are_cut_off_alike() -> None:
    schema = Schema.typical(RAW.mean(axis=0), RAW.std(axis=0))
    model = RandomWalkClassifier(**TOTAL, schema=schema, random_state=0).fit(RAW, Y, nodes=NODES)
    assert model.score(RAW, Y) > 0.9
    scaled = np.clip((RAW - RAW.mean(axis=0)) / RAW.std(axis=0), -3.0, 3.0)
    same = total(row_length=np.sqrt(30), standardise=False).fit(scaled, Y, nodes=NODES)
    np.testing.assert_allclose(model.decision_function(RAW), same.decision_function(scaled))
    kept = model.to_model()
    far = RAW * 10.0
    np.testing.assert_array_equal(
        kept.predict({f"x{at}": far[:, at] for at in range(30)}), model.predict(far)
    )
    with pytest.raises(ValueError, match=r"schema .*encoding"):
        model.to_model([f"c{at}" for at in range(30)])
    sparse = csr_array(np.abs(RAW))
    wide = RandomWalkClassifier(schema={"*": {"spread": 100}}, steps=500, random_state=0)
    wide.set_params(update="saga")  # the default depends on whether rows are sparse
    np.testing.assert_allclose(
        wide.fit(sparse, Y).decision_function(sparse),
        wide.fit(sparse.toarray(), Y).decision_function(sparse.toarray()),
    )


def test_without_a_seed_the_release_is_real_and_exact() -> None:
    one, other = (total(random_state=None, steps=30).fit(X, Y, nodes=NODES) for _ in range(2))
    assert not one.ledger_.simulated
    assert not np.array_equal(one.coef_, other.coef_)
    assert "this fit alone" in one.to_model().privacy["protected"][0]
    assert "this fit alone" in str(one.ledger_)
    assert not any("from a seed" in each for each in one.to_model().privacy["not_protected"])
    seeded = total(steps=30).fit(X, Y, nodes=NODES)
    assert seeded.ledger_.simulated
    assert any("from a seed" in each for each in seeded.to_model().privacy["not_protected"])
    assert "No privacy claim" in str(seeded.ledger_)
    assert str(seeded.ledger_).count("seed") == 1
    assert "this fit alone" not in str(seeded.ledger_)
    assert "this fit alone" not in str(RandomWalkClassifier(steps=30).fit(X, Y).ledger_)


def test_an_epsilon_above_10_is_called_weak() -> None:
    with pytest.warns(UserWarning, match="ε = 12 .*162,756"):
        total(epsilon=12.0, steps=3).fit(X, Y, nodes=NODES)
    noise = privacy.ModelNoise.calibrate(epsilon=15.0, delta=1e-5, clip=1.0, max_contributions=10)
    by_hand = RandomWalkClassifier(model_privacy=noise, step_size=0.1, random_state=0, steps=3)
    with pytest.warns(UserWarning, match="ε = 15 .*3,269,018"):
        by_hand.fit(X, Y, nodes=NODES)


def test_the_cost_of_a_call_counts_its_draws() -> None:
    """Every update draws as many numbers as the model has, up to the cap of every node."""
    noise = privacy.ModelNoise.calibrate(epsilon=3.0, delta=1e-5, clip=1.0, max_contributions=2)
    by_hand: dict[str, Any] = {"model_privacy": noise, "step_size": 0.1}
    nodes, size = len(np.unique(NODES)), X.shape[1] + 1
    for options, updates in (
        ({**by_hand, "steps": 7}, 7),
        ({**by_hand, "steps": 1000}, 2 * nodes),
        (by_hand, 2 * nodes),
        ({"epsilon": 3.0, "delta": 1e-5, "row_length": 5.6, "steps": 9}, 9),
        ({"steps": 9, "update": "sgd"}, 0),
    ):
        prepared = RandomWalkClassifier(**options).prepare(X, Y, nodes=NODES)
        assert prepared.plan.noise_draws(size) == updates * size
        assert len(prepared.summary) == (2 if "epsilon" in options else int(updates > 0))


def test_the_number_of_rows_has_no_effect_if_it_is_hidden() -> None:
    """Two and three rows of a node: the same noise, steps and bounds, and as many updates."""
    nodes = np.repeat(np.arange(10), [3, *[2] * 9])
    for changes in (
        {},
        {"total_rows": 100.0},
        {"walk": "weighted", "feature_bound": 8.0},
        {"walk": "weighted", "feature_bound": 8.0, "model": "in the clear"},
        {"walk": "weighted", "max_rows": 4, "feature_bound": 8.0, "total_rows": 100.0},
    ):
        changes = {"protect": "node", **changes}
        many = total(**changes).fit(X[:21], Y[:21], nodes=nodes)
        few = total(**changes).fit(X[1:21], Y[1:21], nodes=nodes[1:])
        assert many.n_iter_ == few.n_iter_
        assert many.model_noise_ == few.model_noise_
        assert many.ledger_.to_dict() == few.ledger_.to_dict()
        assert getattr(many.walk_, "mechanism", None) == getattr(few.walk_, "mechanism", None)
        if "model" not in changes:
            assert many.step_size_ == few.step_size_
        assert "rows" not in many.to_model().details
        assert "number of rows" not in many.to_model().privacy["taken_to_be_public"][0]


def test_a_cap_does_not_hide_row_counts_if_rows_are_the_unit() -> None:
    capped = total(max_rows=40, total_rows=600.0, steps=30).fit(X, Y, nodes=NODES)
    stated = capped.to_model().privacy["taken_to_be_public"][0]
    assert "the number of rows of each node" in stated
    noise = privacy.ModelNoise(1.0, 1.0, 5)
    by_hand = RandomWalkClassifier(model_privacy=noise, max_rows=40)
    for refused in (total(max_rows=40), private(max_rows=40), by_hand):
        with pytest.raises(ValueError, match=r'^max_rows .*protect="node".*total_rows'):
            refused.fit(X, Y, nodes=NODES)


@pytest.mark.parametrize("sparse", [False, True])
@pytest.mark.parametrize("intercept", [False, True])
def test_a_bound_holds_in_the_units_of_the_schema(sparse: bool, intercept: bool) -> None:
    """There L_i and its sensitivity are computed: rows of 0.03 are 3 spreads long."""
    schema = {"*": {"centre": 0, "spread": 0.01}}
    rows = np.clip(X[:40, :3] * 0.01, -0.03, 0.03)
    given = csr_array(rows) if sparse else rows
    model = total(
        schema=schema, feature_bound=0.1, walk="weighted", steps=30, row_length=None,
        fit_intercept=intercept,
    )  # fmt: skip
    problem, _ = model.prepare_problem(given, Y[:40], nodes=np.arange(40) % 4)
    trained = problem.X.toarray() if sparse else problem.X
    assert np.linalg.norm(trained[:, :3], axis=1).max() <= 0.1
    if intercept:
        np.testing.assert_array_equal(trained[:, 3], 1.0)
    fitted = model.fit(given, Y[:40], nodes=np.arange(40) % 4)
    assert fitted.clipped_rows_ == np.count_nonzero(np.linalg.norm(rows, axis=1) > 0.001)


def test_the_sensitivity_that_is_claimed_covers_a_row_that_is_replaced() -> None:
    model = total(
        schema={"*": {"centre": 0, "spread": 0.01}}, feature_bound=0.1, walk="weighted", steps=30,
        row_length=None, fit_intercept=False,
    )  # fmt: skip
    rows, nodes = np.zeros((40, 3)), np.arange(40) % 4
    claimed = model.fit(rows, Y[:40], nodes=nodes).walk_.mechanism.sensitivity
    before = model.prepare_problem(rows, Y[:40], nodes=nodes)[0].smoothness_constants
    rows[0] = 0.03
    after = model.prepare_problem(rows, Y[:40], nodes=nodes)[0].smoothness_constants
    assert 0.0 < np.abs(after - before).max() <= claimed


def test_the_directory_of_a_protected_model_has_no_other_facts_about_rows(tmp_path: Any) -> None:
    kept = total(steps=100).fit(X, Y, nodes=NODES).to_model()
    kept.save(tmp_path / "model")
    content = "".join(path.read_text(errors="replace") for path in (tmp_path / "model").iterdir())
    assert "loss" not in kept.details
    assert "score" not in content
    clear = RandomWalkClassifier(steps=100, random_state=0).fit(X, Y, nodes=NODES).to_model()
    assert "loss" in clear.details


def test_one_row_a_node_costs_the_same_by_either_unit() -> None:
    rows, node = (total(protect=unit).fit(X, Y) for unit in ("rows", "node"))
    assert rows.model_noise_.noise_multiplier == node.model_noise_.noise_multiplier
    assert (rows.n_iter_, rows.step_size_) == (node.n_iter_, node.step_size_)
    np.testing.assert_allclose(rows.coef_, node.coef_)


def test_a_model_in_the_clear_has_infinite_epsilon() -> None:
    model = private(steps=None).fit(X, Y)
    charges = {each.what: each for each in model.ledger_.charges(0)}
    assert charges["importance"].mechanism.delta(3.0) <= 0.03
    assert charges["importance"].times == 1
    assert charges["model"].mechanism is None
    assert model.ledger_.total(0, 0.03) == np.inf
    assert "ε = ∞, model in the clear: nothing can be claimed for it" in str(model.ledger_)
    stated = model.to_model().privacy
    assert stated["epsilon"] is None
    assert stated["not_protected"][1].startswith("the model (in the clear, as requested), so ε = ∞")
    assert model.score(X, Y) > 0.95


@pytest.mark.parametrize("mechanism", ["laplace", "truncated-laplace", "gaussian", "clamped-gamma"])
def test_every_mechanism(mechanism: str) -> None:
    model = private(mechanism=mechanism, steps=20_000).fit(X, Y)
    assert model.walk_.mechanism.name == mechanism
    assert model.walk_.mechanism.delta(3.0) <= 0.03
    assert model.score(X, Y) > 0.93


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"epsilon": 3.0}, "epsilon = 3 .*delta"),
        (TOTAL, "epsilon = 3 .*schema=.*row_length.*feature_bound"),
        ({"delta": 0.1}, "delta .*without epsilon"),
        ({"model": "in the clear"}, "^model .*epsilon"),
        ({**TOTAL, "model": "clear"}, "^model .*'clear'"),
        ({**TOTAL, "delta": 0.0, "row_length": 5.5}, "delta = 0"),
        ({**TOTAL, "protect": "row"}, "protect .*'row'"),
        ({**TOTAL, "row_length": 5.5, "walk": "weighted"}, "L_i.*feature_bound.*step_size"),
        ({**BY_HAND, **TOTAL, "row_length": 5.5}, "epsilon .*model_privacy, --model-noise"),
        ({"schema": {"*": {"spread": 1}}, "standardise": True}, "^standardise.*, and the schema"),
        ({"schema": {"x0": {"categories": ["a"]}}}, "'x0', .*read_rows"),
        ({"schema": {"age": {"spread": 1}}}, "scale .*'age'"),
        ({**TOTAL, "schema": FROM_ROWS}, r"'\*' .*from_rows = true"),
        ({"walk": walks.Weighted(privacy=LAPLACE), "schema": FROM_ROWS}, "from_rows = true"),
        (
            {**TOTAL, "walk": "weighted", "feature_bound": 8.0, "protect": "node",
             "total_rows": 600.0},
            'protect="node" .*L_i .*max_rows.*total_rows',
        ),
    ],
)  # fmt: skip
def test_epsilon_needs_public_facts(settings: Any, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        RandomWalkClassifier(**settings).fit(X, Y, nodes=NODES)


def test_mini_batches_of_protected_rows_are_refused() -> None:
    with pytest.raises(wl.CapabilityError) as caught:
        RandomWalkClassifier(**TOTAL, row_length=5.5, batch=3).fit(X, Y, nodes=NODES)
    assert caught.value.capability == "is_exact"


def test_nothing_but_the_release_depends_on_the_rows() -> None:
    """Other rows, labels and signs: the same mechanism, length of the walk and, for the same
    released values, the same steps."""
    generator = np.random.default_rng(1)
    one = private(steps=None).fit(X, Y)
    other = private(steps=None).fit(
        5.0 * generator.standard_normal(X.shape), generator.permutation(Y)
    )
    assert one.walk_.mechanism == other.walk_.mechanism
    assert one.n_iter_ == other.n_iter_
    assert one.graph_ == other.graph_
    for model in (one, other):
        released = model.trace_.released[0]
        assert model.step_size_.constant == pytest.approx(
            min(8.0 / released.mean(), 1.0 / (1e-3 * released.mean() / released.min()))
        )
    uniform = [total(steps=None).fit(rows, Y) for rows in (X, X[::-1] * 3.0)]
    assert uniform[0].step_size_ == uniform[1].step_size_
    assert uniform[0].n_iter_ == uniform[1].n_iter_
    assert np.array_equal(uniform[0]._state.units.scale, np.ones(30))


def test_the_bounds_hold_for_the_rows_and_their_weights() -> None:
    nodes = np.arange(len(X)) % 37
    weights = np.random.default_rng(2).uniform(0.1, 5.0, len(X))
    for arguments in ({}, {"nodes": nodes}, {"nodes": nodes, "sample_weight": weights}):
        model = private().fit(X, Y, **arguments)
        assert model.trace_.privacy["out_of_bounds"] == [0]
    squeezed = private(max_rows=5, total_rows=weights.sum()).fit(
        X, Y, nodes=nodes, sample_weight=weights
    )
    # Clamped to the cap, counted, still private.
    assert squeezed.trace_.privacy["out_of_bounds"][0] > 0
    low, high = squeezed.walk_.mechanism.bounds
    assert squeezed.walk_.mechanism.delta(3.0) <= 0.03
    assert high == pytest.approx(1e-3 + 37 / weights.sum() * 0.25 * 5 * (8.0**2 + 1))
    assert low == pytest.approx(1e-3 + 37 / weights.sum() * 0.25)


def test_long_rows_are_shortened_and_counted() -> None:
    model = private(feature_bound=4.0).fit(X, Y)
    assert model.clipped_rows_ == np.count_nonzero(np.linalg.norm(X, axis=1) > 4.0)
    shortened = X * np.minimum(1.0, 4.0 / np.linalg.norm(X, axis=1))[:, None]
    expected = private(feature_bound=4.0).fit(shortened, Y)
    np.testing.assert_allclose(model.coef_, expected.coef_, rtol=1e-6)


def test_a_seed_repeats_releases_and_says_so() -> None:
    one, other = (private(random_state=5).fit(X, Y) for _ in range(2))
    np.testing.assert_array_equal(one.trace_.released, other.trace_.released)
    assert "drawn from a seed" in str(one.ledger_)
    free, again = (private(random_state=None).fit(X, Y) for _ in range(2))
    assert not np.array_equal(free.trace_.released, again.trace_.released)
    assert free.trace_.spec["seed"] is None


def test_a_pickle_has_no_true_constants() -> None:
    model = private().fit(X, Y)
    rows = np.column_stack([privacy.clip_features(X, 8.0)[0], np.ones(len(X))])
    problem = wl.Problem(rows, 2.0 * Y - 1.0, penalty=1e-3, aggregate="mean")
    true = problem.smoothness_constants
    assert model.walk_.true_importance is None
    content = pickle.dumps(model)
    assert model.coef_.tobytes() in content
    assert true[:8].tobytes() not in content
    assert X[:1].tobytes() not in content


def test_a_pickle_has_no_marks_of_rows() -> None:
    """Whoever has a row could look its mark up in a pickled estimator."""
    rows, targets, nodes = X[:3], Y[:3], np.arange(3)
    marked = MarkedRows().with_rows(rows, targets, nodes)
    again = pickle.loads(pickle.dumps(marked))
    assert (marked.rows.size, again.rows.size, again.at_nodes.size) == (3, 0, 0)
    with pytest.raises(ValueError, match="pickling"):
        again.with_rows(rows, targets, nodes)
    assert pickle.loads(pickle.dumps(MarkedRows())).with_rows(rows, targets, nodes).rows.size == 3


def test_a_row_that_moved_is_recognised_dense_or_sparse_and_by_its_columns() -> None:
    rows, targets = np.array([[0.0, 1.0], [2.0, 3.0]]), np.array([1.0, -1.0])
    marked = MarkedRows().with_rows(rows, targets, np.array([0, 1]))
    for form in (rows, csr_array(rows), rows.astype(np.float32)):
        assert marked.with_rows(form, targets, np.array([0, 1])).rows.size == 2
        with pytest.raises(ValueError, match=r"^1 of 2 rows .* row 2\)"):
            marked.with_rows(form, targets, np.array([0, 2]))
    assert marked.with_rows(rows[:, ::-1], targets, np.array([5, 6])).rows.size == 4


def test_two_copies_of_a_private_training_do_not_both_continue() -> None:
    """Each would contribute up to the cap."""
    model = total(steps=30, warm_start=True).fit(X, Y, nodes=NODES)
    twin, deep = copy.copy(model), copy.deepcopy(model)
    with pytest.raises(ValueError, match="pickling"):
        deep.fit(X, Y, nodes=NODES)
    with pytest.raises(ValueError, match="512 of 569 rows"):
        model.fit(X, Y, nodes=NODES[::-1])
    assert model.fit(X, Y, nodes=NODES).fit(X, Y, nodes=NODES).n_iter_ == 90
    with pytest.raises(ValueError, match="was continued before, by a copy"):
        twin.fit(X, Y, nodes=NODES)


def test_a_pickled_private_training_does_not_continue() -> None:
    model = total(steps=30, warm_start=True).fit(X, Y, nodes=NODES)
    again = pickle.loads(pickle.dumps(model))
    assert (again.predict(X) == model.predict(X)).all()
    with pytest.raises(ValueError, match="pickling"):
        again.fit(X, Y, nodes=NODES)
    free = RandomWalkClassifier(steps=30, warm_start=True).fit(X, Y)
    assert pickle.loads(pickle.dumps(free)).fit(X, Y).n_iter_ == 60


def test_charges_follow_the_disclosures_of_the_walk() -> None:
    model = private(walk="uniform").fit(X, Y)
    assert [each.what for each in model.ledger_.charges(0)] == ["model"]
    jumping = private(walk=walks.Jumping(walks.Weighted(), probability=0.1)).fit(X, Y)
    assert jumping.walk_.walk.mechanism.delta(3.0) <= 0.03
    clear = RandomWalkClassifier(walk="weighted", steps=1000, random_state=0).fit(X, Y)
    charges = {each.what: each.mechanism for each in clear.ledger_.charges(0)}
    assert charges == {"importance": None, "model": None}
    public = walks.Weighted(np.ones(len(X)), public=True)
    assert [each.what for each in private(walk=public).fit(X, Y).ledger_.charges(0)] == ["model"]


def test_a_mechanism_of_ones_own() -> None:
    mechanism = privacy.calibrate("laplace", epsilon=1.0, delta=0.0, bounds=(0.25, 20.0))
    walk = walks.Weighted(privacy=mechanism)
    model = RandomWalkClassifier(walk=walk, steps=2000, random_state=0).fit(X, Y)
    assert model.walk_.mechanism == mechanism
    assert np.array_equal(model._state.units.scale, np.ones(30))  # not standardised
    with pytest.raises(ValueError, match=r"^Weighted\(privacy=.*epsilon and delta"):
        private(walk=walk).fit(X, Y)


def test_noise_of_ones_own() -> None:
    noise = privacy.ModelNoise.calibrate(epsilon=3.0, delta=0.01, clip=3.0, max_contributions=20)
    own = BY_HAND | {"model_privacy": noise}
    alone = private(**own).fit(X, Y)
    assert isinstance(alone.walk_, walks.Uniform)
    assert alone.ledger_.largest_total(0.01)[1] <= 3.0
    assert alone.trace_.contributions.max() <= 20
    real = private(**own | {"delta": 0.01}, steps=30, random_state=None).fit(X, Y).to_model()
    assert (real.privacy["epsilon"], real.privacy["delta"]) == (3.0, 0.01)
    assert real.claim == wl.privacy.Claim(3.0, 0.01, "rows")
    assert real.privacy["protected"][0].startswith("ε = 3 at δ = 0.01 for everything that leaves")
    usual = private(**own, steps=30, random_state=None).fit(X, Y)
    epsilon, stated = usual.ledger_.largest_total(1e-5)[1], usual.to_model().privacy["epsilon"]
    assert epsilon <= stated <= epsilon * (1 + 1e-5)
    mechanism = privacy.calibrate("laplace", epsilon=1.0, delta=0.0, bounds=(0.25, 20.0))
    both = private(**own, walk=walks.Weighted(privacy=mechanism)).fit(X, Y)
    assert 3.0 < both.ledger_.largest_total(0.01)[1] <= 4.0 + 1e-6


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"standardise": True}, "standardise=True .*schema="),
        ({"walk": walks.Uniform(normalise=True)}, r"Uniform\(normalise=True\) .*L_i"),
        ({"walk": walks.Weighted(np.ones(569))}, r"L_i, .*Weighted\(importance, public=True\)"),
        ({**BY_HAND, "walk": "weighted"}, r"weighted walk .*noise .*Weighted\(privacy=\.\.\.\)"),
        ({**BY_HAND, "feature_bound": None}, "L_i.*feature_bound.*step_size"),
        ({"mechanism": "gamma"}, r"epsilon = 3 .*clamped-gamma"),
        ({"model_privacy": 3.0}, r"model_privacy .*ModelNoise .*float"),
        ({"mechanism": "laplacian"}, "'laplacian', .*'laplace'.*gamma, clamped-gamma"),
        ({"feature_bound": -1.0}, r"feature_bound .*-1\.0"),
        ({"max_rows": 0}, "max_rows .*got 0"),
        ({"penalty": 0.0, "fit_intercept": False}, "penalty = 0 .*lower="),
        ({"epsilon": -1.0}, r"epsilon .*-1\.0"),
        ({"delta": 1.5}, r"delta .*1\.5"),
    ],
)
def test_claims_that_would_be_false_are_refused(changes: Any, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        private(**changes).fit(X, Y)


def test_claims_are_those_of_the_fit_after_parameters_changed() -> None:
    """Claims that were read off the parameters could be talked down after the release."""
    clear = private(random_state=None, walk="weighted", steps=30).fit(X, Y, nodes=NODES)
    private_total = total(random_state=None, steps=30).fit(X, Y, nodes=NODES)
    said = clear.to_model().privacy
    clear.set_params(epsilon=0.01, delta=1e-9, protect="node", fit_intercept=False)
    assert clear.to_model().privacy == said
    assert any("(ε, δ) = (3, 0.03) of this number alone" in each for each in said["protected"])
    stated = private_total.to_model()
    private_total.set_params(protect="node", epsilon=None, average="all", model="in the clear")
    assert private_total.to_model().privacy == stated.privacy
    assert private_total.to_model().iterate == stated.iterate == "last"
    assert "the number of rows of each node" in stated.privacy["taken_to_be_public"][0]
    assert private_total.to_model().details == stated.details


def test_a_repeated_release_is_not_claimed_as_one() -> None:
    twice = private(random_state=None, walk="weighted", steps=30, warm_start=True)
    for _ in range(2):
        twice.fit(X, Y, nodes=NODES)
    (stated,) = (each for each in twice.to_model().privacy["protected"] if "L_i" in each)
    assert "of this number alone" not in stated
    assert "released 2 times" in stated


def test_a_disclosing_walk_cannot_follow_one_with_the_whole_budget() -> None:
    model = total(steps=30, warm_start=True, feature_bound=5.5).fit(X, Y, nodes=NODES)
    with pytest.raises(ValueError, match=r"first call.*ε .*Weighted\(\).*L_i"):
        model.set_params(walk="weighted").fit(X, Y, nodes=NODES)
