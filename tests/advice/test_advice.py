"""Advice: what is recommended where the right answer is known, and why."""

from __future__ import annotations

import json
import math
from typing import Any

import numpy as np
import pytest

import walklearn as wl
from walklearn.advice import Advice, advise
from walklearn.walks import Uniform, Weighted

GRAPH = wl.graphs.erdos_renyi(60, 0.2, seed=1)


def reason_of(advice: Advice, word: str) -> str:
    (found,) = [reason for reason in advice.reasons if reason.startswith(word)]
    return found


def interpolated() -> wl.Problem:
    """Heterogeneous rows that one model fits: where weighting pays."""
    generator = np.random.default_rng(3)
    X = generator.normal(size=(60, 5)) * generator.lognormal(sigma=1.0, size=(60, 1))
    y = X @ generator.normal(size=5)
    return wl.Problem(X, y, loss=wl.losses.Squared(), objective="mean", domain=wl.domains.Ball(9.0))


def noisy() -> wl.Problem:
    X, y = wl.datasets.two_gaussians(60, dimension=3, variance=10.0, seed=1)
    return wl.Problem(X, y, penalty=1.0, domain=wl.domains.Ball(10.0))


def test_laziness_is_advised_exactly_where_the_walk_alternates() -> None:
    for graph, laziness in ((wl.graphs.ring(20), 0.1), (wl.graphs.ring(21), 0.1), (GRAPH, 0.0)):
        advice = advise(graph)
        assert advice.walk == Uniform(laziness=laziness), graph
        assert advice.laziness == laziness
        assert reason_of(advice, f"Laziness {laziness}" if laziness else "No laziness")
    gaps = [wl.theory.spectral_gap(wl.graphs.ring(20), Uniform(laziness=a)) for a in (0.0, 0.1)]
    assert gaps[0] == 0.0 < gaps[1]


def test_public_facts_need_no_data_and_are_told() -> None:
    advice = advise(GRAPH, feature_bound=2.0, penalty=1.0)
    assert advice.mode == "public"
    assert "no data were looked at" in str(advice)
    uniform, weighted = advice.candidates
    low, high = wl.privacy.smoothness_bounds(wl.losses.Logistic(), 1.0, 60, 2.0)
    assert uniform.numbers["step smoothness"] == pytest.approx(high, rel=0.1)
    assert weighted.numbers["step smoothness"] == pytest.approx((low + high) / 2, rel=0.1)
    assert uniform.numbers["noise factor"] == 1.0
    assert advice.without_memory is not None
    assert isinstance(advice.without_memory.walk, Uniform)
    assert advice.without_memory.step_size is not None


def test_weighting_is_advised_from_public_facts_where_the_range_is_narrow() -> None:
    advice = advise(GRAPH, feature_bound=1.5, penalty=0.6, objective="node-mean")
    assert advice.without_memory is not None
    assert isinstance(advice.without_memory.walk, Weighted)
    uniform, weighted = (each.numbers for each in advice.candidates)
    longer = uniform["step smoothness"] / weighted["step smoothness"]
    assert longer**2 > weighted["noise factor"]
    assert "in the clear" in reason_of(advice, "Weighted")


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
        objective="node-mean",
        epsilon=300.0,
        delta=0.01,
        model="in the clear",
    )
    assert generous.mechanism is not None
    assert generous.mechanism.delta(300.0) <= 0.01


def test_simulation_finds_where_weighting_pays_and_where_not() -> None:
    advice = advise(GRAPH, interpolated(), steps=6000, replicates=8)
    assert advice.mode == "simulation"
    assert "not private" in str(advice)
    assert advice.without_memory is not None
    assert isinstance(advice.without_memory.walk, Weighted)
    gap = {each.name: each.numbers["gap"] for each in advice.candidates}
    assert gap["weighted, in the clear"] < gap["uniform"]
    assert "95 % interval" in reason_of(advice, "Weighted")
    advice = advise(GRAPH, noisy(), steps=6000, replicates=8)
    assert advice.without_memory is not None
    assert isinstance(advice.without_memory.walk, Uniform)


def test_simulation_with_privacy_never_advises_a_walk_in_the_clear() -> None:
    advice = advise(
        GRAPH, interpolated(), epsilon=1.0, delta=0.01, feature_bound=30.0, lower=1e-3, steps=4000,
        replicates=8, model="in the clear",
    )  # fmt: skip
    names = [each.name for each in advice.candidates]
    assert names[:2] == ["uniform", "weighted, in the clear"]
    assert len(names) == 4
    assert isinstance(advice.walk, Uniform) or advice.mechanism is not None
    assert reason_of(advice, "Uniform: privacy costs more than weighting gains")


def test_a_diverging_walk_is_never_advised() -> None:
    from walklearn.simulation.intervals import plain_ratio_of_means

    diverged, fine = np.array([1.0, math.inf]), np.array([1.0, 1.0])
    assert plain_ratio_of_means(diverged, fine, 1)[2] == math.inf
    assert plain_ratio_of_means(fine, diverged, 1)[2] == 0.0


def test_same_seed_same_advice() -> None:
    one, other = (advise(GRAPH, noisy(), steps=500, replicates=3, seed=5) for _ in range(2))
    assert one.to_dict() == other.to_dict()


def test_json_has_no_numbers_that_json_does_not_know() -> None:
    advice = advise(
        wl.graphs.ring(20), feature_bound=2.0, epsilon=3.0, delta=0.03, model="in the clear"
    )
    content = json.loads(json.dumps(advice.to_dict(), allow_nan=False))
    assert content["looks_at_rows"] is False
    assert "private" not in content
    assert (content["epsilon"], content["model"]) == ("∞", "in the clear")
    assert content["laziness"] == 0.1
    assert content["mechanism"] is None
    assert str(advice).startswith("ε = ∞: the model is not protected")


PUBLIC: Any = {"features": 30, "row_length": 5.5, "objective": "mean", "intercept": True}


def test_a_total_is_answered_for_everything_that_leaves_a_node() -> None:
    advice = advise(GRAPH, epsilon=3.0, delta=1e-5, total_rows=5000, **PUBLIC)
    assert advice.walk == Uniform()
    assert advice.allotment is not None
    noise = advice.allotment.noise
    assert noise.delta(3.0) <= 1e-5
    content = json.loads(json.dumps(advice.to_dict(), allow_nan=False))
    assert (content["epsilon"], content["delta"], content["protect"]) == (3.0, 1e-5, "rows")
    assert content["max_contributions"] == noise.max_contributions
    assert str(advice).startswith("ε = 3, δ = 1e-05 for all that leaves a node, the unit is rows")
    assert any(reason.startswith("Noise-to-signal ratio 0.") for reason in advice.reasons)
    poor = advise(GRAPH, epsilon=0.1, delta=1e-5, total_rows=60, protect="node", **PUBLIC)
    assert any("The model may be poor." in reason for reason in poor.reasons)


def test_what_protection_costs_is_tried_on_data() -> None:
    X, y = wl.datasets.breast_cancer()
    nodes = np.arange(len(X)) % 60
    problem = wl.Problem(X, y, penalty=1e-3, objective="mean", node_of_row=nodes)
    advice = advise(GRAPH, problem, epsilon=3.0, delta=1e-5, row_length=5.5, replicates=4)
    assert advice.mode == "simulation"
    gap = {each.name: each.numbers["gap"] for each in advice.candidates}
    assert 0 < gap["uniform, in the clear"] < gap["uniform, protected"]
    assert "not private" in str(advice)


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"epsilon": 3.0}, r"epsilon was given without delta"),
        ({"delta": 0.1, "feature_bound": 1.0}, r"delta was given without epsilon"),
        (
            {"epsilon": 3.0, "delta": 0.1, "model": "in the clear"},
            r"public bound on the length of a row: pass feature_bound",
        ),
        ({"epsilon": 3.0, "delta": 0.1, "feature_bound": 1.0}, r"pass features, how many a row"),
        ({"epsilon": 3.0, "delta": 0.1, "features": 3, "total_rows": 9}, r"public length of the"),
        ({"model": "open"}, r"model must be None or"),
        ({"feature_bound": 1.0, "penalty": 0.0}, r"penalty = 0 .*public lower bound"),
    ],
)
def test_mistakes(settings: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        advise(GRAPH, **settings)


def test_memory_is_advised_unless_something_is_protected() -> None:
    graph = wl.graphs.erdos_renyi(12, 0.5, seed=1)
    open_advice = wl.advise(graph, feature_bound=1.5, penalty=0.6, objective="node-mean")
    assert open_advice.update == wl.updates.Saga()
    assert open_advice.to_dict()["update"] == "saga"
    assert open_advice.walk == Uniform()
    assert open_advice.step_size is None
    assert "step size  found on the way" in str(open_advice)
    paper = open_advice.without_memory
    assert paper is not None
    assert f"by SGD, it would be {paper.walk!r} with {paper.step_size}" in str(open_advice)
    released = wl.advise(graph, epsilon=3.0, delta=0.03, feature_bound=1.0, model="in the clear")
    assert released.update is None
    assert released.to_dict()["update"] == "sgd"
