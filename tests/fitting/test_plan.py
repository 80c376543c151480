"""Plans of fits: what is resolved where the right answer is known, and why."""

from __future__ import annotations

import copy
import json
import pickle
import warnings
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

import walklearn as wl
from tests.running import invoke_ok
from walklearn import FitPlan, PrivacySettings, PublicFacts, advise
from walklearn.node.agreement.plan import Plan
from walklearn.walks import Uniform

GRAPH = wl.graphs.erdos_renyi(60, 0.2, seed=1)
FACTS = PublicFacts(nodes=60, rows=5000, features=30, row_length=5.5)
TOTAL: Any = {"epsilon": 3.0, "delta": 1e-5}
CONSTANTS: Any = {"epsilon": 3.0, "delta": 0.01, "model": "in the clear", "feature_bound": 1.5}


def reason_of(plan: FitPlan, choice: str) -> str:
    (found,) = [reason.because for reason in plan.reasons if reason.choice == choice]
    return found


def problem_of(rows_of_node: list[int], seed: int, **settings: Any) -> wl.Problem:
    """Rows of random values, with the given number for each node."""
    generator, owners = np.random.default_rng(seed), np.repeat(range(60), rows_of_node)
    X = generator.normal(size=(len(owners), 5)) * generator.lognormal(size=(len(owners), 1))
    y = np.where(generator.random(len(owners)) < 0.5, -1.0, 1.0)
    settings = {"penalty": 0.6, "aggregate": "mean", **settings}
    return wl.Problem(X, y, node_of_row=owners, **settings)


@pytest.mark.parametrize(
    "asked", [{}, {"update": "sgd"}, {"walk": "weighted", "steps": 5}, {"laziness": 0.2}, TOTAL]
)
def test_every_choice_has_a_reason_and_the_facts_are_shown(asked: dict[str, Any]) -> None:
    settings: Any = {"graph": GRAPH, "row_length": 5.5, **asked}
    X, y = wl.datasets.breast_cancer()
    plan = wl.RandomWalkClassifier(**settings).resolve(X, y, np.arange(len(X)) % 60)
    assert [each.choice for each in plan.reasons] == [
        "graph", "walk", "laziness", "model", "update", "step", "updates", "stop", "loss",
    ]  # fmt: skip
    text = str(plan)
    assert "60 nodes, 569 rows, 30 features, row length 5.5" in text
    for reason in plan.reasons:
        assert str(reason) in text
        assert reason.because.endswith(".")


def test_laziness_is_chosen_exactly_where_the_walk_alternates() -> None:
    for graph, laziness in ((wl.graphs.ring(20), 0.1), (wl.graphs.ring(21), 0.1), (GRAPH, 0.0)):
        plan = advise(graph, PublicFacts(graph.node_count), laziness=None)
        assert plan.walk == Uniform(laziness=laziness), graph
        assert reason_of(plan, "laziness").startswith(str(laziness or "none"))
    gaps = [wl.theory.spectral_gap(wl.graphs.ring(20), Uniform(laziness=a)) for a in (0.0, 0.1)]
    assert gaps[0] == 0.0 < gaps[1]


def test_the_walk_is_uniform_where_privacy_costs_more_than_weighting_gains() -> None:
    facts = PublicFacts(60, 60, 5)
    plan = advise(GRAPH, facts, PrivacySettings(**{**CONSTANTS, "epsilon": 1.0}), penalty=1.0)
    assert isinstance(plan.walk, Uniform)
    assert plan.mechanism is None
    comparison = plan.comparison
    assert comparison is not None
    assert comparison.rows[0].raw_error > comparison.constant_error
    assert f"{comparison.rows[0].raw_error:.3g}" in reason_of(plan, "walk")
    # With hardly any noise the release is worth something again.
    generous = advise(
        GRAPH, facts, PrivacySettings(**{**CONSTANTS, "epsilon": 300.0}), penalty=1e-3
    )
    assert generous.mechanism is not None
    assert generous.mechanism.delta(300.0) <= 0.01
    assert generous.update is None
    assert not generous.claim.is_private


def test_json_has_no_numbers_that_json_does_not_know() -> None:
    facts, privacy = PublicFacts(20, 20, 5), PrivacySettings(**CONSTANTS)
    plan = advise(wl.graphs.ring(20), facts, privacy, laziness=None)
    content = json.loads(json.dumps(plan.to_dict(), allow_nan=False))
    assert (content["private"], content["epsilon"], content["model"]) == (
        False, None, "in the clear",
    )  # fmt: skip
    assert content["laziness"] == 0.1


def test_a_total_covers_everything_that_leaves_a_node() -> None:
    plan = advise(GRAPH, FACTS, PrivacySettings(**TOTAL))
    assert plan.walk == Uniform()
    assert plan.noise is not None
    assert plan.noise.delta(3.0) <= 1e-5
    assert plan.claims == (wl.privacy.Claim(3.0, 1e-5, "rows"),)
    content = json.loads(json.dumps(plan.to_dict(), allow_nan=False))
    assert (content["epsilon"], content["delta"], content["unit"]) == (3.0, 1e-5, "rows")
    assert content["max_contributions"] == plan.noise.max_contributions
    assert content["updates"] == plan.stop.steps
    assert str(plan).startswith(str(plan.claim))


def test_what_to_change_first_lowers_the_noise_most() -> None:
    poor = advise(
        GRAPH, replace(FACTS, rows=600), PrivacySettings(epsilon=0.1, delta=1e-5, protect="node")
    )
    changes = poor.changes()
    assert changes[0].change.startswith("rows as the unit")
    ratios = [each.noise_to_signal for each in changes]
    assert ratios == sorted(ratios)
    assert ratios[-1] < poor.noise_to_signal
    few = advise(GRAPH, replace(FACTS, rows=10), PrivacySettings(**TOTAL, protect="node"))
    assert all(each.noise_to_signal < few.noise_to_signal for each in few.changes())
    assert not any(each.change.startswith("rows as the unit") for each in few.changes())
    followed = advise(GRAPH, replace(FACTS, rows=600), PrivacySettings(0.1, 1e-5))
    assert followed.noise_to_signal == changes[0].noise_to_signal
    assert "poor" in poor.advice()[0]
    assert advise(GRAPH, FACTS).changes() == []


@pytest.mark.parametrize(
    "asked", [{}, {"feature_bound": 1.5}, {**TOTAL, "feature_bound": 2.2}, CONSTANTS]
)
def test_a_problem_contributes_public_facts_only(asked: dict[str, Any]) -> None:
    counts, privacy = [1, 2, 3] * 20, PrivacySettings(**asked)
    one, other = (advise(GRAPH, problem_of(counts, seed), privacy) for seed in (1, 2))
    assert one == other
    capped = replace(privacy, max_rows=3)
    same = advise(GRAPH, PublicFacts(60, 120, 5), capped, penalty=0.6, intercept=False)
    assert one.step_size == same.step_size
    assert (one.walk == same.walk) == privacy.asks  # nodes of a network cannot make a tour


@pytest.mark.parametrize("asked", [{**TOTAL, "feature_bound": 2.2}, CONSTANTS])
def test_numbers_of_rows_are_hidden_if_the_node_is_the_unit(asked: dict[str, Any]) -> None:
    privacy = PrivacySettings(**asked, protect="node", max_rows=9)
    one, other = (
        advise(GRAPH, problem_of(counts, 1, aggregate="node-mean"), privacy)
        for counts in ([2] * 60, [1, 2, 6] * 20)
    )
    assert one == other


@pytest.mark.parametrize("protect", ["rows", "node"])
def test_an_estimator_resolves_the_same_plan(protect: Any) -> None:
    X, y = wl.datasets.breast_cancer()
    asked: Any = {"epsilon": 3.0, "delta": 1e-5, "protect": protect}
    estimator = wl.RandomWalkClassifier(graph=GRAPH, random_state=1, row_length=5.5, **asked)
    nodes = np.arange(len(X)) % 60
    resolved = estimator.resolve(X, y, nodes=nodes)
    assert not hasattr(estimator, "fit_plan_")
    rows = float(len(X)) if protect == "rows" else None
    plan = advise(GRAPH, PublicFacts(60, rows, X.shape[1], 5.5), PrivacySettings(**asked))
    assert estimator.fit(X, y, nodes=nodes).fit_plan_ == resolved
    assert estimator.fit_plan_.digest == resolved.digest == plan.digest
    assert estimator.budget_plan_ == plan.budget_plan
    assert (estimator.walk_, estimator.update_) == (plan.walk, plan.update)
    assert estimator.n_iter_ == plan.stop.steps
    assert estimator.model_noise_ == plan.privacy
    assert estimator.ledger_.to_dict() == replace(plan, seeded=True).ledger().to_dict()
    assert pickle.loads(pickle.dumps(plan)) == plan
    # Noise from the seed of the estimator protects nobody.
    assert plan.claim.is_private
    assert not resolved.claim.is_private
    assert resolved.claims == ()
    assert resolved.to_dict()["simulated"]
    assert resolved.headline != plan.headline


@pytest.mark.parametrize("epsilon", [None, 3.0])
@pytest.mark.parametrize("family", ["ring", "star", "erdos-renyi"])
def test_the_same_request_gives_the_same_plan_everywhere(
    family: str, epsilon: float | None, tmp_path: Path
) -> None:
    """A graph with two sides gets a warning wherever gradient steps are planned on it."""
    graph = wl.graphs.as_graph(family, 20, seed=1)
    table = pd.DataFrame(np.random.default_rng(1).normal(size=(200, 4)), columns=list("abcd"))
    y, nodes = np.where(table["a"] > 0, 1, 0), np.arange(200) % 20
    table.assign(y=y, site=nodes).to_csv(tmp_path / "rows.csv", index=False)
    (tmp_path / "edges").write_text("".join(f"{i} {j}\n" for i, j in graph.edges()))
    (tmp_path / "schema").write_text("".join(f"[{name}]\nspread = 1\n" for name in "abcd"))
    total: Any = {} if epsilon is None else {"epsilon": epsilon, "delta": 1e-5}
    asked = [f"--{name}={value}" for name, value in total.items()]
    asked += ["--graph", tmp_path / "edges", "--schema", tmp_path / "schema", "--target", "y"]
    data = (tmp_path / "rows.csv", *asked, "--node-column", "site", "--task", "classification")
    facts, privacy = PublicFacts(20, 200, 4, 2.0), PrivacySettings(**total, feature_bound=6.0)
    estimator = wl.RandomWalkClassifier(graph=graph, schema={"*": {"spread": 1}}, **total)
    alternates = family == "ring" and epsilon is not None
    plans = []
    for resolve in (
        lambda: estimator.resolve(table, y, nodes), lambda: advise(graph, facts, privacy)
    ):  # fmt: skip
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            plans.append(resolve().to_dict())
        assert any("laziness=0.1" in str(each.message) for each in caught) == alternates
    for command in (("advise", *asked, "--rows", 200), ("advise", *data)):
        result = invoke_ok(*command, "--json")
        assert ("--laziness 0.1" in result.stderr) == alternates
        plans.append(json.loads(result.stdout))
    # Without privacy, the nodes of a network cannot run the default of a fit.
    fit, network = {"walk": "tour", "update": "finito"}, {"walk": "uniform", "update": "saga"}
    if epsilon is not None:
        fit = network = {"walk": "uniform", "update": "sgd"}
    names = ("laziness", "step_constant", "updates", "average", "clip", "noise_multiplier",
             "max_contributions", "loss")  # fmt: skip
    for plan, method in zip(plans, (fit, network, network, fit), strict=True):
        assert plan | method == plan
        assert {name: plan.get(name) for name in names} == pytest.approx(
            {name: plans[0].get(name) for name in names}
        )
        reasons = [
            [each for each in one["reasons"][1:] if not each.startswith(("walk:", "update:"))]
            for one in (plan, plans[0])
        ]
        assert reasons[0] == reasons[1]
        assert epsilon is None or plan["reasons"][1:] == plans[0]["reasons"][1:]
    result = invoke_ok("train", *data, "--max-steps", 2000, "--out", tmp_path / "m", "--json")
    assert ("--laziness 0.1" in result.stderr) == alternates
    assert json.loads(result.stdout)["reasons"][1:3] == plans[0]["reasons"][1:3]
    invoke_ok("plan", "new", *asked, "--classes", "0,1", "--rows", 200, "--out", tmp_path / "plan")
    agreed = Plan.read(tmp_path / "plan")
    assert (agreed.walk, agreed.update) == (network["walk"], network["update"])
    assert agreed.laziness == plans[0]["laziness"]
    assert epsilon is None or agreed.updates == plans[0]["updates"]


def test_the_digest_covers_what_is_learnt_and_not_for_how_long() -> None:
    X, y = wl.datasets.breast_cancer()
    base: Any = {"graph": wl.graphs.ring(len(X)), "random_state": 1}
    plan = wl.RandomWalkClassifier(**base).resolve(X, y)
    same: Any = (  # without noise the last two change nothing
        {"steps": 5}, {"max_steps": 9}, {"row_length": 2.0}, {"protect": "node"},
    )  # fmt: skip
    for change in same:
        assert wl.RandomWalkClassifier(**base, **change).resolve(X, y).digest == plan.digest
    others: Any = (
        {"penalty": 1e-2}, {"tol": 1e-3}, {"walk": "weighted"}, {"laziness": 0.1},
        {"update": "sgd"}, {"batch": 5}, {"fit_intercept": False}, {"loss": "squared-hinge"},
        {"domain": wl.domains.Ball(1.0)}, {"graph": wl.graphs.complete(len(X))},
    )  # fmt: skip
    digests = {wl.RandomWalkClassifier(**{**base, **each}).resolve(X, y).digest for each in others}
    assert len(digests | {plan.digest}) == len(others) + 1


def test_a_bound_plan_is_what_a_visit_takes() -> None:
    problem = problem_of([2] * 60, 1)
    plan = advise(GRAPH, problem, PrivacySettings(**TOTAL, feature_bound=2.2))
    setting = plan.bind(problem)
    assert (setting.objective, setting.update) == (problem, plan.update)
    assert (setting.privacy, setting.updates) == (plan.noise, plan.stop.steps)
    with pytest.raises(ValueError, match=r"nodes .* 60, .* 2[.;]"):
        plan.bind(wl.Problem([[1.0], [2.0]], [1.0, -1.0]))


def test_the_release_of_a_bound_plan_sets_its_step() -> None:
    problem = problem_of([2] * 60, 1)
    privacy = PrivacySettings(**{**CONSTANTS, "epsilon": 300.0, "feature_bound": 9.0})
    plan = advise(GRAPH, problem, privacy)
    assert plan.update is None
    one, other = (plan.bind(problem, np.random.default_rng(seed)) for seed in (1, 1))
    assert one.update == other.update
    assert isinstance(one.update, wl.updates.Sgd)


@pytest.mark.parametrize(
    ("about", "settings", "named"),
    [
        (FACTS, {"epsilon": 3.0}, "delta"),
        (FACTS, {"delta": 0.1}, "epsilon"),
        (FACTS, {"epsilon": 3.0, "delta": 0.1, "model": "in the clear"}, "feature_bound"),
        (PublicFacts(60, 9), {"epsilon": 3.0, "delta": 0.1, "feature_bound": 1.0}, "features"),
        (PublicFacts(60, 9, 3), {"epsilon": 3.0, "delta": 0.1}, "row_length"),
        (PublicFacts(60, None, 3, 1.0), TOTAL, "rows"),
        (FACTS, {"model": "open"}, "model"),
        (FACTS, {"protect": "person"}, "protect"),
        (wl.Problem([[1.0], [2.0]], [1.0, -1.0]), {}, "60 nodes"),
        (replace(FACTS, nodes=59), {}, "60 nodes"),
        (FACTS, {**CONSTANTS, "protect": "node"}, "max_rows"),
        (problem_of([2] * 60, 1), {**CONSTANTS, "protect": "node"}, "aggregate"),
        (
            problem_of([2] * 60, 1, aggregate="sum"),
            {**TOTAL, "protect": "node", "feature_bound": 2.0},
            "aggregate",
        ),
        (replace(FACTS, features=30), {"model": "in the clear"}, "epsilon"),
        (FACTS, {"protect": "node", "noise": wl.privacy.ModelNoise(1.0, 1.0, 5)}, "protect"),
        (FACTS, {"epsilon": "1", "delta": 1e-5}, "epsilon"),
        (FACTS, {**TOTAL, "feature_bound": -2.0}, "feature_bound"),
    ],
)
def test_mistakes_are_named(about: Any, settings: dict[str, Any], named: str) -> None:
    with pytest.raises(ValueError, match=named):
        advise(GRAPH, about, PrivacySettings(**settings))
    with pytest.raises(TypeError, match="PublicFacts"):
        advise(GRAPH, 60)  # type: ignore[arg-type]


@pytest.mark.parametrize("loss", ["softmax", wl.losses.Softmax()])
def test_a_plan_for_classes_needs_their_number(loss: Any) -> None:
    with pytest.raises(ValueError, match=r"number of classes.*Softmax\(3\)"):
        advise(GRAPH, FACTS, loss=loss)
    plan = advise(GRAPH, PublicFacts(60, 60, 5), loss=wl.losses.Softmax(3), intercept=False)
    rows = np.random.default_rng(1).normal(size=(60, 5))
    labels, softmax = np.arange(60.0) % 3, wl.losses.Softmax()
    problem = wl.Problem(rows, labels, loss=softmax, penalty=1e-3, aggregate="mean")
    assert plan.bind(problem).objective == problem
    private = PrivacySettings(**TOTAL, feature_bound=3.0)
    known = wl.Problem(rows, labels, loss=wl.losses.Softmax(3), penalty=1e-3, aggregate="mean")
    assert advise(GRAPH, problem, private) == advise(GRAPH, known, private)
    assert advise(GRAPH, problem, private).bind(problem).objective == problem


def test_without_privacy_the_update_has_memory() -> None:
    plan = advise(GRAPH, FACTS)
    assert plan.update == wl.updates.Saga()
    assert plan.to_dict()["update"] == "saga"
    assert plan.step_size is None
    assert plan.stop.steps is None
    assert not plan.claim.is_private


def test_settings_keep_their_unit_when_replaced() -> None:
    settings = PrivacySettings(1.0, 1e-5, protect="node")
    assert replace(settings, epsilon=2.0).unit == "node"
    assert replace(settings, protect="rows").unit == "rows"
    assert (PrivacySettings().unit, PrivacySettings().asks) == ("rows", False)
    assert pickle.loads(pickle.dumps(settings)) == settings


def private(**settings: Any) -> wl.RandomWalkClassifier:
    return wl.RandomWalkClassifier(
        graph=COMPLETE, epsilon=3.0, delta=1e-5, row_length=2.0, **settings
    )


COMPLETE = wl.graphs.complete(6)
ROWS = np.random.default_rng(1).normal(size=(24, 3))
LABELS, OWNERS = ROWS[:, 0] > 0, np.arange(24) % 6


@pytest.mark.parametrize("copied", [pickle.dumps, copy.copy, copy.deepcopy])
def test_a_prepared_fit_cannot_be_copied(copied: Any) -> None:
    """Each copy would contribute up to the cap."""
    with pytest.raises(TypeError, match="prepared"):
        copied(private().prepare(ROWS, LABELS, nodes=OWNERS))


def test_preparing_leaves_an_estimator_as_it_was() -> None:
    generator = np.random.default_rng(1)
    estimator = private(random_state=1).fit(ROWS, LABELS, nodes=OWNERS)
    before = dict(vars(estimator))
    estimator.prepare(ROWS[:, :2], LABELS, nodes=OWNERS)
    assert vars(estimator) == before
    drawing = private(random_state=generator)
    drawing.resolve(ROWS, LABELS, nodes=OWNERS)
    assert generator.random() == np.random.default_rng(1).random()
    with pytest.raises(ValueError, match="RandomWalkRegressor"):
        wl.RandomWalkRegressor().run(estimator.prepare(ROWS, LABELS, nodes=OWNERS))


def test_a_plan_claims_what_the_ledger_does_in_later_calls_too() -> None:
    noise = wl.privacy.ModelNoise.calibrate(epsilon=1.0, delta=1e-7, clip=1.0, max_contributions=9)
    walk = wl.walks.Weighted(privacy=wl.privacy.Laplace(5.0, bounds=(0.1, 10.0)))
    estimator = wl.RandomWalkClassifier(
        graph=COMPLETE, walk=walk, model_privacy=noise, delta=1e-7, feature_bound=3.0
    )
    epsilons = []
    for _ in range(3):
        estimator.partial_fit(ROWS, LABELS, classes=[False, True], nodes=OWNERS)
        assert estimator.fit_plan_.claims == (estimator.ledger_.claim(1e-7),)
        epsilons.append(estimator.fit_plan_.claim.epsilon)
    assert epsilons[0] < epsilons[1] < epsilons[2]
    seeded = private(random_state=1, warm_start=True, steps=10).fit(ROWS, LABELS, nodes=OWNERS)
    seeded.set_params(random_state=None).fit(ROWS, LABELS, nodes=OWNERS)
    assert seeded.ledger_.claims == seeded.fit_plan_.claims == ()
    assert not seeded.fit_plan_.to_dict()["private"]


class Other(wl.Objective):
    """An objective without linear rows."""

    def __init__(self, nodes: int, penalty: float) -> None:
        self.nodes, self.penalty = nodes, penalty
        self.parameters = (wl.ArraySpec("w", (4,)),)

    def gradient(self, node: int, w: Any, draws: Any = ()) -> Any:
        return np.zeros(4)

    def value(self, w: Any) -> float:
        return 0.0


def test_a_plan_binds_only_to_its_own_kind_of_objective() -> None:
    estimator = private(walk="weighted", feature_bound=9.0)
    problem, _ = estimator.prepare_problem(ROWS, LABELS, nodes=OWNERS)
    plan = estimator.resolve(ROWS, LABELS, nodes=OWNERS)
    plan.bind(problem)

    def changed(rows: Any = problem.X, **settings: Any) -> wl.Problem:
        given = {"penalty": problem.penalty, "aggregate": "mean", "loss": problem.loss, **settings}
        return wl.Problem(rows, problem.y, node_of_row=OWNERS, **given)

    for other, named in (
        (changed(penalty=5.0), "penalty"),
        (changed(loss=wl.losses.Squared()), "loss"),
        (changed(aggregate="sum"), "aggregate"),
        (changed(problem.X[:, 1:]), "dimension"),
        (changed(total_rows=99.0), "total_rows"),
        (changed(50.0 * problem.X), "feature_bound"),
    ):
        with pytest.raises(ValueError, match=named):
            plan.bind(other)
    # The sensitivity of what the nodes disclose is known for linear rows only.
    with pytest.raises(ValueError, match=r"dimension .* 4, .* None"):
        plan.bind(Other(6, problem.penalty))
    with pytest.raises(TypeError, match="Objective"):
        plan.bind(problem.X)


def test_a_plan_for_many_rows_does_not_bind_to_few() -> None:
    """Its step would be too long for the noise."""
    plan = advise(GRAPH, problem_of([9] * 60, 1), PrivacySettings(**TOTAL, feature_bound=2.2))
    with pytest.raises(ValueError, match=r"total_rows .* 540.*, .* 60"):
        plan.bind(problem_of([1] * 60, 1))


def test_numbers_of_numpy_are_written_as_json() -> None:
    settings: Any = {
        "steps": np.int64(50), "max_steps": np.int64(99), "penalty": np.float32(0.1),
        "feature_bound": np.int64(3), "tol": np.float32(0.1),
    }  # fmt: skip
    plan = private(**settings).resolve(ROWS, LABELS, nodes=OWNERS)
    assert json.loads(json.dumps(plan.to_dict()))["updates"] == 50
    assert len(plan.digest) == 64


@pytest.mark.parametrize("steps", [50, 5000, None])
def test_changes_are_what_another_plan_would_reach(steps: int | None) -> None:
    plan = private(steps=steps).resolve(ROWS, LABELS, nodes=OWNERS)
    (twice,) = [each for each in plan.changes() if each.change.startswith("ε")]
    other = private(steps=steps).set_params(epsilon=6.0).resolve(ROWS, LABELS, nodes=OWNERS)
    assert twice.noise_to_signal == other.noise_to_signal


def test_a_chosen_mechanism_is_the_walk_that_its_name_gives() -> None:
    settings: Any = {**CONSTANTS, "epsilon": 300.0, "graph": GRAPH, "penalty": 0.01}
    rows = np.random.default_rng(1).normal(size=(120, 3))
    owners = np.repeat(np.arange(60), 2)

    def resolved(mechanism: str | None) -> FitPlan:
        estimator = wl.RandomWalkClassifier(mechanism=mechanism, **settings)
        return estimator.resolve(rows, rows[:, 0] > 0, owners)

    chosen = resolved(None)
    assert chosen.mechanism is not None
    assert chosen.walk.shrink  # type: ignore[attr-defined]
    assert resolved(chosen.mechanism.name).walk == chosen.walk


def test_a_maximum_of_updates_is_planned_with() -> None:
    """The noise is that of the walk which is run, and so is the noise-to-signal ratio."""
    long, short, fixed = (
        private(**settings).resolve(ROWS, LABELS, nodes=OWNERS)
        for settings in ({}, {"max_steps": 10}, {"steps": 10})
    )
    assert long.stop.steps > 10 == short.stop.steps
    assert (short.noise, short.noise_to_signal) == (fixed.noise, fixed.noise_to_signal)
    assert short.noise != long.noise


def test_nodes_help_and_rows_do_not_if_the_node_is_the_unit() -> None:
    settings = PrivacySettings(**TOTAL, protect="node")
    plans = [advise(GRAPH, replace(FACTS, rows=rows), settings) for rows in (None, 10, 10**6)]
    assert len({plan.noise_to_signal for plan in plans}) == 1
    assert any(each.change.startswith("120 nodes") for each in plans[0].changes())
    assert "nodes" in plans[0].advice()[0]


@pytest.mark.parametrize(
    "wrong", [{"nodes": 2.5}, {"nodes": -1}, {"rows": "50"}, {"row_length": -1.0}, {"features": -2}]
)
def test_public_facts_are_checked(wrong: dict[str, Any]) -> None:
    (name,) = wrong
    with pytest.raises(ValueError, match=name):
        PublicFacts(**{"nodes": 5, **wrong})
