"""Advice: what is recommended where the right answer is known, and why."""

from __future__ import annotations

import json
from typing import Any

import numpy as np
import pytest

import walklearn as wl
from walklearn.fitting.advice import Advice, advise
from walklearn.walks import Uniform

GRAPH = wl.graphs.erdos_renyi(60, 0.2, seed=1)


def reason_of(advice: Advice, word: str) -> str:
    (found,) = [reason for reason in advice.reasons if reason.startswith(word)]
    return found


def problem_of(rows_of_node: list[int], seed: int, **settings: Any) -> wl.Problem:
    """Rows of random values, with the given number for each node."""
    generator, owners = np.random.default_rng(seed), np.repeat(range(60), rows_of_node)
    X = generator.normal(size=(len(owners), 5)) * generator.lognormal(size=(len(owners), 1))
    y = np.where(generator.random(len(owners)) < 0.5, -1.0, 1.0)
    settings = {"penalty": 0.6, "aggregate": "mean", **settings}
    return wl.Problem(X, y, node_of_row=owners, **settings)


def test_laziness_is_advised_exactly_where_the_walk_alternates() -> None:
    for graph, laziness in ((wl.graphs.ring(20), 0.1), (wl.graphs.ring(21), 0.1), (GRAPH, 0.0)):
        advice = advise(graph)
        assert advice.walk == Uniform(laziness=laziness), graph
        assert advice.laziness == laziness
        assert reason_of(advice, f"Laziness {laziness}" if laziness else "No laziness")
    gaps = [wl.theory.spectral_gap(wl.graphs.ring(20), Uniform(laziness=a)) for a in (0.0, 0.1)]
    assert gaps[0] == 0.0 < gaps[1]


def test_uniform_is_advised_where_privacy_costs_more_than_weighting_gains() -> None:
    target: Any = {"epsilon": 1.0, "delta": 0.01, "model": "in the clear"}
    advice = advise(GRAPH, feature_bound=2.0, penalty=1.0, **target)
    assert isinstance(advice.walk, Uniform)
    assert advice.mechanism is None
    comparison = advice.comparison
    assert comparison is not None
    assert comparison.rows[0].raw_error > comparison.constant_error
    reason = reason_of(advice, "Uniform: privacy would cost more than weighting gains")
    assert f"{comparison.rows[0].raw_error:.3g}" in reason
    # With hardly any noise the release is worth something again.
    generous = advise(
        GRAPH,
        feature_bound=1.5,
        penalty=0.6,
        aggregate="node-mean",
        epsilon=300.0,
        delta=0.01,
        model="in the clear",
    )
    assert generous.mechanism is not None
    assert generous.mechanism.delta(300.0) <= 0.01


def test_json_has_no_numbers_that_json_does_not_know() -> None:
    advice = advise(
        wl.graphs.ring(20), feature_bound=2.0, epsilon=3.0, delta=0.03, model="in the clear"
    )
    content = json.loads(json.dumps(advice.to_dict(), allow_nan=False))
    assert (content["epsilon"], content["model"]) == (None, "in the clear")
    assert content["laziness"] == 0.1
    assert content["mechanism"] is None
    assert str(advice).startswith("ε = ∞: nothing is protected")


PUBLIC: Any = {"features": 30, "row_length": 5.5, "aggregate": "mean", "intercept": True}


def test_a_total_is_answered_for_everything_that_leaves_a_node() -> None:
    advice = advise(GRAPH, epsilon=3.0, delta=1e-5, total_rows=5000, **PUBLIC)
    assert advice.walk == Uniform()
    assert advice.allotment is not None
    noise = advice.allotment.noise
    assert noise.delta(3.0) <= 1e-5
    content = json.loads(json.dumps(advice.to_dict(), allow_nan=False))
    assert (content["epsilon"], content["delta"], content["unit"]) == (3.0, 1e-5, "rows")
    assert content["max_contributions"] == noise.max_contributions
    assert str(advice).startswith("ε = 3 at δ = 1e-05 for everything")
    assert any(reason.startswith("Noise-to-signal ratio 0.") for reason in advice.reasons)
    poor = advise(GRAPH, epsilon=0.1, delta=1e-5, total_rows=60, protect="node", **PUBLIC)
    assert any("The model may be poor." in reason for reason in poor.reasons)


TOTAL: Any = {"epsilon": 3.0, "delta": 1e-5, "row_length": 2.2}
CONSTANTS: Any = {"epsilon": 3.0, "delta": 0.01, "model": "in the clear", "feature_bound": 1.5}


@pytest.mark.parametrize("asked", [{}, {"feature_bound": 1.5}, TOTAL, CONSTANTS])
def test_a_problem_contributes_public_facts_only(asked: dict[str, Any]) -> None:
    counts = [1, 2, 3] * 20
    one, other = (advise(GRAPH, problem_of(counts, seed), **asked) for seed in (1, 2))
    assert one.to_dict() == other.to_dict()
    facts: Any = {"features": 5, "total_rows": 120, "max_rows": 3, "penalty": 0.6}
    assert one.to_dict() == advise(GRAPH, aggregate="mean", **facts, **asked).to_dict()


@pytest.mark.parametrize("aggregate", ["mean", "sum", "node-mean"])
@pytest.mark.parametrize("asked", [TOTAL, CONSTANTS])
def test_numbers_of_rows_are_hidden_if_the_node_is_the_unit(
    asked: dict[str, Any], aggregate: Any
) -> None:
    public: Any = {"protect": "node", "max_rows": 9, "total_rows": 500}
    one, other = (
        advise(GRAPH, problem_of(counts, 1, aggregate=aggregate), **public, **asked)
        for counts in ([2] * 60, [1, 2, 6] * 20)
    )
    assert one.to_dict() == other.to_dict()


def test_a_hidden_number_of_rows_has_to_be_declared() -> None:
    problem = problem_of([2] * 60, 1)
    with pytest.raises(ValueError, match=r"protect=\"node\" hides .*pass max_rows"):
        advise(GRAPH, problem, protect="node", **CONSTANTS)
    with pytest.raises(ValueError, match=r"total_rows"):
        advise(GRAPH, problem, protect="node", max_rows=9, **CONSTANTS)
    with pytest.raises(ValueError, match=r"needs the public number of rows"):
        advise(GRAPH, problem_of([2] * 60, 1, aggregate="sum"), protect="node", **TOTAL)


@pytest.mark.parametrize("protect", ["rows", "node"])
def test_an_estimator_takes_the_advised_plan(protect: Any) -> None:
    X, y = wl.datasets.breast_cancer()
    asked: Any = {"epsilon": 3.0, "delta": 1e-5, "row_length": 5.5, "protect": protect}
    estimator = wl.RandomWalkClassifier(graph=GRAPH, random_state=1, **asked)
    nodes = np.arange(len(X)) % 60
    problem, graph = estimator.pose(X, y, nodes=nodes)
    advice = advise(graph, problem, intercept=True, **asked)
    estimator.fit(X, y, nodes=nodes)
    assert advice.allotment is not None
    assert estimator.allotment_ == advice.allotment
    assert estimator.walk_ == advice.walk


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"epsilon": 3.0}, r"epsilon was given without delta"),
        ({"delta": 0.1, "feature_bound": 1.0}, r"delta was given without epsilon"),
        (
            {"epsilon": 3.0, "delta": 0.1, "model": "in the clear"},
            r"public bound on the length of a row: pass feature_bound",
        ),
        ({"epsilon": 3.0, "delta": 0.1, "feature_bound": 1.0}, r"pass features, the number"),
        ({"epsilon": 3.0, "delta": 0.1, "features": 3, "total_rows": 9}, r"public length of the"),
        ({"model": "open"}, r"model must be None or"),
        ({"protect": "person"}, r'protect must be "rows"'),
        (
            {"problem": wl.Problem([[1.0], [2.0]], [1.0, -1.0])},
            r"the graph has 60 nodes, but the problem has 2\. Build",
        ),
        ({**CONSTANTS, "penalty": 0.0}, r"penalty = 0 .*public lower bound"),
    ],
)
def test_mistakes(settings: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        advise(GRAPH, **settings)


def test_memory_is_advised_unless_something_is_protected() -> None:
    graph = wl.graphs.erdos_renyi(12, 0.5, seed=1)
    open_advice = wl.advise(graph, feature_bound=1.5, penalty=0.6, aggregate="node-mean")
    assert open_advice.update == wl.updates.Saga()
    assert open_advice.to_dict()["update"] == "saga"
    assert open_advice.walk == Uniform()
    assert open_advice.step_size is None
    assert "step size  found on the way" in str(open_advice)
    released = wl.advise(graph, epsilon=3.0, delta=0.03, feature_bound=1.0, model="in the clear")
    assert released.update is None
    assert released.to_dict()["update"] == "sgd"
