"""A row of weight 2 is the row twice: in f, its gradient, L_i and w*; a row of weight 0 is absent.

Compared are a weighted problem and one whose rows are repeated in the data, so nothing expected
comes from the code that weighs.
"""

from __future__ import annotations

import pickle
from typing import Any

import numpy as np
import pytest

import walklearn as wl
from tests.objectives.cases import every_aggregate, every_loss, local_gradient, targets_for
from walklearn import walks
from walklearn.objectives import Problem
from walklearn.objectives.linear.losses import Logistic, Softmax, Squared

NODES = 6
OWNERS = np.array([2, 0, 1, 2, 2, 4, 5, 5, 1, 0, 2, 4, 5])  # node 3 is a relay
WEIGHTS = np.array([1, 3, 2, 0, 1, 5, 2, 1, 1, 4, 2, 1, 3])


def rows_for(loss: Any, seed: int = 0) -> tuple[Any, Any]:
    generator = np.random.default_rng(seed)
    X = generator.standard_normal((len(OWNERS), 3)) * np.exp(
        generator.standard_normal((len(OWNERS), 1))
    )
    return X, targets_for(loss, len(OWNERS), generator)


def weighted_and_repeated(loss: Any, aggregate: Any) -> tuple[Problem, Problem]:
    X, y = rows_for(loss)
    common: dict[str, Any] = {
        "loss": loss, "penalty": 0.4, "aggregate": aggregate, "nodes": NODES,
        "empty_nodes": "relay",
    }  # fmt: skip
    again = np.repeat(np.arange(len(X)), WEIGHTS)
    weighted = Problem(X, y, node_of_row=OWNERS, sample_weight=WEIGHTS, **common)
    return weighted, Problem(X[again], y[again], node_of_row=OWNERS[again], **common)


@every_loss
@every_aggregate
def test_a_weight_is_a_number_of_rows(loss: Any, aggregate: Any) -> None:
    weighted, repeated = weighted_and_repeated(loss, aggregate)
    for seed in range(3):
        w = np.random.default_rng(seed).standard_normal(weighted.size)
        assert weighted.value(w) == pytest.approx(repeated.value(w), rel=1e-12)
        np.testing.assert_allclose(weighted.full_gradient(w), repeated.full_gradient(w), rtol=1e-9)
        for node in range(NODES):
            assert weighted.local_value(node, w) == pytest.approx(repeated.local_value(node, w))
            mine, theirs = local_gradient(weighted, node, w), local_gradient(repeated, node, w)
            np.testing.assert_allclose(mine, theirs, rtol=1e-9, atol=1e-12)
    np.testing.assert_allclose(
        weighted.smoothness_constants, repeated.smoothness_constants, rtol=1e-12
    )
    np.testing.assert_allclose(weighted.importance, repeated.importance, rtol=1e-12)
    np.testing.assert_allclose(weighted.solution.model, repeated.solution.model, rtol=1e-7)
    assert wl.theory.diagnose(
        wl.graphs.complete(NODES), weighted, walks.Uniform()
    ).residual == pytest.approx(
        wl.theory.diagnose(wl.graphs.complete(NODES), repeated, walks.Uniform()).residual
    )


@every_aggregate
def test_a_row_of_weight_0_is_absent(aggregate: Any) -> None:
    X, y = rows_for(Logistic())
    kept = WEIGHTS > 0
    common: dict[str, Any] = {"nodes": NODES, "empty_nodes": "relay", "aggregate": aggregate}
    with_zeros = Problem(X, y, node_of_row=OWNERS, sample_weight=WEIGHTS, **common)
    without = Problem(
        X[kept], y[kept], node_of_row=OWNERS[kept], sample_weight=WEIGHTS[kept], **common
    )
    assert with_zeros == without
    np.testing.assert_array_equal(with_zeros.X, without.X)
    np.testing.assert_array_equal(with_zeros.smoothness_constants, without.smoothness_constants)


def test_fractional_weights_scale_the_loss() -> None:
    X, y = rows_for(Squared())
    half, whole = (
        Problem(X, y, loss=Squared(), sample_weight=np.full(len(X), s)) for s in (0.5, 1.0)
    )
    w = np.ones(3)
    assert half.value(w) == pytest.approx(0.5 * whole.value(w))
    np.testing.assert_allclose(half.smoothness_constants, 0.5 * whole.smoothness_constants)
    mean, same = (
        Problem(X, y, loss=Squared(), sample_weight=np.full(len(X), s), aggregate="mean")
        for s in (0.5, 1.0)
    )
    assert mean.value(w) == pytest.approx(same.value(w))


METHODS: list[Any] = [
    walks.Weighted(),
    walks.NonBacktracking(walks.Weighted()),
    wl.AsynchronousGossip(),
    wl.SynchronousGossip(),
]


@pytest.mark.parametrize("method", METHODS, ids=repr)
@pytest.mark.parametrize("owners", ["one row per node", "several"])
@pytest.mark.parametrize("loss", [Logistic(), Softmax(3)], ids=repr)
def test_the_compiled_twins_weigh_as_the_reference(method: Any, owners: str, loss: Any) -> None:
    X, y = rows_for(loss)
    weights = np.maximum(WEIGHTS, 0.5)
    one = owners == "one row per node"
    problem = Problem(
        X, y, loss=loss, penalty=0.5, aggregate="mean", sample_weight=weights,
        node_of_row=None if one else OWNERS, empty_nodes="relay",
    )  # fmt: skip
    graph = wl.graphs.erdos_renyi(problem.nodes, 0.6, seed=4)
    runs = [
        wl.simulate(
            problem, graph, method, steps=120, step_size=wl.PowerStep(0.3), seed=3, records=6,
            batch=None if one else 2, engine=engine,
        )
        for engine in ("compiled", "reference")
    ]  # fmt: skip
    for name in ("models", "averages", "gap", "average_gap"):
        fast, slow = (getattr(run, name) for run in runs)
        np.testing.assert_allclose(fast, slow, rtol=1e-9, atol=1e-11, err_msg=name)


def test_a_mini_batch_is_unbiased() -> None:
    """The mean over every single pick of a node's rows is ∇f_i, with weights as without."""
    weighted, _ = weighted_and_repeated(Logistic(), "sum")
    w = np.array([0.3, -1.0, 0.5])
    for node in (0, 1, 2, 4, 5):
        rows = int(np.diff(weighted.offsets)[node])
        draws = (np.arange(rows)[:, None] + 0.5) / rows
        picked = [local_gradient(weighted, node, w, one) for one in draws]
        np.testing.assert_allclose(np.mean(picked, axis=0), local_gradient(weighted, node, w))


def test_problems_with_other_weights_differ() -> None:
    X, y = rows_for(Logistic())
    plain, ones = Problem(X, y), Problem(X, y, sample_weight=np.ones(len(X)))
    heavy = Problem(X, y, sample_weight=np.full(len(X), 2.0))
    assert plain == ones
    assert plain != heavy
    assert pickle.loads(pickle.dumps(heavy)) == heavy
    single = Problem(X, y, sample_weight=np.full(len(X), 2.0), dtype=np.float32, penalty=1.0)
    double = Problem(X, y, sample_weight=np.full(len(X), 2.0), penalty=1.0)
    np.testing.assert_allclose(single.solution.model, double.solution.model, rtol=1e-4)


@pytest.mark.parametrize(
    ("weights", "message"),
    [
        ([1.0, 2.0], r"sample_weight .* 13 rows.*\(2,\)"),
        (-np.ones(13), "row 0 .*-1"),
        (np.full(13, np.nan), "row 0 .*nan"),
        (np.zeros(13), "sample_weight .*zero"),
        (np.r_[0.0, np.ones(12)], "node 0 .*weight 0"),
    ],
)
def test_bad_weights_are_refused(weights: Any, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        Problem(*rows_for(Logistic()), sample_weight=weights)
