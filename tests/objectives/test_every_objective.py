"""Contract of all objectives: `Problem` with each loss, and a user's own class."""

from __future__ import annotations

import pickle
from typing import Any

import numpy as np
import pytest
from scipy.sparse import csr_array

import walklearn as wl
from tests.objectives.cases import LOSSES, Case
from walklearn.errors import CAPABILITIES
from walklearn.privacy import ModelNoise


class HuberCentre(wl.Objective):
    """An objective of a user, with a number and a vector as parameters."""

    penalty = 0.3

    def __init__(self, points: Any) -> None:
        self.points, self.nodes = points, len(points)
        shape = (points.shape[1] - 1,)
        self.parameters = (wl.ArraySpec("centre", shape), wl.ArraySpec("offset"))

    def row_gradients(self, node: int, w: Any) -> Any:
        return np.clip(w - self.points[node], -1, 1)[None, :]

    def gradient(self, node: int, w: Any, draws: Any) -> Any:
        return self.row_gradients(node, w)[0]

    def local_value(self, node: int, w: Any, draws: Any = ()) -> Any:
        r = abs(w - self.points[node])
        return np.where(r < 1, r * r / 2, r - 0.5).sum()

    def value(self, w: Any) -> float:
        losses = [self.local_value(node, w) for node in range(self.nodes)]
        return float(np.mean(losses) + self.penalty / 2 * w @ w)


def centre() -> HuberCentre:
    return HuberCentre(np.random.default_rng(9).standard_cauchy((6, 4)))


def sparse_problem(loss: Any) -> wl.Problem:
    case = Case(loss, "node-mean")
    case.X[abs(case.X) < 0.7] = 0.0
    case.X = csr_array(case.X)
    problem: wl.Problem = case.problem()
    return problem


OBJECTIVES: dict[str, Any] = {"custom": centre}
for each in LOSSES:
    name = type(each).__name__
    OBJECTIVES[name] = lambda loss=each: Case(loss, "mean").problem()
    OBJECTIVES[f"{name}, float32"] = lambda loss=each: Case(loss, "sum").problem(dtype=np.float32)
    OBJECTIVES[f"{name}, sparse"] = lambda loss=each: sparse_problem(loss)
    OBJECTIVES[f"{name}, batch"] = lambda loss=each: Case(loss, "mean").problem().with_batch(2)

every_objective = pytest.mark.parametrize("name", OBJECTIVES)
every_problem = pytest.mark.parametrize("name", [name for name in OBJECTIVES if name != "custom"])


def model(objective: wl.Objective, seed: int = 1) -> Any:
    return np.random.default_rng(seed).standard_normal(objective.size).astype(objective.dtype)


@every_objective
def test_a_model_is_one_flat_vector(name: str) -> None:
    objective = OBJECTIVES[name]()
    objective.check()
    assert isinstance(objective, wl.Objective)
    shape, dtype = (objective.size,), objective.dtype
    assert sum(spec.nbytes for spec in objective.parameters) == objective.size * dtype.itemsize
    assert (objective.start.shape, objective.start.dtype) == (shape, dtype)
    assert not objective.start.flags.writeable
    w = model(objective)
    assert objective.project(w).shape == shape
    assert objective.gradient(0, w, np.full(objective.draws, 0.5)).shape == shape
    assert isinstance(objective.value(w), float)
    assert isinstance(objective.metrics(w), dict)


@every_objective
def test_values_and_gradients_agree(name: str) -> None:
    """Differences of f are those that gradients and local values of all nodes give."""
    objective = OBJECTIVES[name]()
    if objective.dtype != np.float64:
        pytest.skip("differences need doubles")
    w, nodes, penalty = model(objective), range(objective.nodes), objective.penalty
    local = np.mean([objective.local_value(node, w) for node in nodes])
    assert local + penalty / 2 * w @ w == pytest.approx(objective.value(w), rel=1e-12)
    gradient = np.mean([objective.gradient(node, w, ()) for node in nodes], axis=0) + penalty * w
    steps = 1e-6 * np.eye(objective.size)
    quotients = [(objective.value(w + h) - objective.value(w - h)) / 2e-6 for h in steps]
    np.testing.assert_allclose(gradient, quotients, atol=1e-6 * (1 + np.abs(gradient).max()))


@every_objective
def test_inputs_stay_unchanged(name: str) -> None:
    objective = OBJECTIVES[name]()
    w, draws = model(objective), np.full(max(objective.draws, 1), 0.3)
    w.setflags(write=False)
    draws.setflags(write=False)
    objective.gradient(1, w, draws)
    objective.local_value(1, w, draws)
    objective.value(w)
    objective.project(w)


@every_problem
def test_linear_rows_give_the_gradient(name: str) -> None:
    problem = OBJECTIVES[name]()
    w = model(problem)
    for node in range(problem.nodes):
        count = problem.count_rows(node)
        for draws in ([], [0.0, 0.999], [0.4, 0.4], [0.9]):
            rows, x, slopes = problem.linear_rows(node, np.array(draws))
            assert x.shape == (len(rows), problem.dimension)
            assert slopes(w).shape == ((len(rows), 3) if problem.outputs > 1 else (len(rows),))
            scale = count / max(len(rows), 1)
            gradient = scale * (slopes(w).T @ x).reshape(-1)
            expected = problem.gradient(node, w, np.array(draws))
            np.testing.assert_allclose(gradient, expected, rtol=1e-5, atol=1e-5)
            if draws and len(draws) < count:
                assert rows.tolist() == [int(draw * count) for draw in draws]
            else:
                assert rows.tolist() == list(range(count))


@every_problem
def test_row_gradients_give_the_gradient(name: str) -> None:
    problem = OBJECTIVES[name]()
    w = model(problem)
    for node in range(problem.nodes):
        gradients = problem.row_gradients(node, w)
        assert gradients.shape == (problem.count_rows(node), problem.size)
        whole = problem.row_factor(node) * gradients.sum(axis=0)
        np.testing.assert_allclose(whole, problem.gradient(node, w), rtol=1e-5, atol=1e-5)


@every_problem
def test_a_batch_selects_rows_and_shares_the_rest(name: str) -> None:
    whole = OBJECTIVES[name]()
    batch = whole.with_batch(3)
    assert (batch.draws, batch.is_exact, whole.with_batch(0).is_exact) == (3, False, True)
    assert batch.X is whole.X
    assert batch.solution is whole.solution  # solved by the copy, and once
    assert batch.smoothness_constants is whole.smoothness_constants
    assert batch != whole
    assert batch == whole.with_batch(3)
    assert np.array_equal(batch.optimum(), whole.optimum())
    with pytest.raises(ValueError, match="batch"):
        whole.with_batch(-1)


@every_objective
def test_an_objective_survives_a_process(name: str) -> None:
    objective = OBJECTIVES[name]()
    again = pickle.loads(pickle.dumps(objective))
    w, draws = model(objective), np.full(objective.draws, 0.7)
    assert (again.nodes, again.parameters) == (objective.nodes, objective.parameters)
    assert (again.draws, repr(again)) == (objective.draws, repr(objective))
    assert again.value(w) == objective.value(w)
    assert np.array_equal(again.gradient(1, w, draws), objective.gradient(1, w, draws))


def test_a_copy_with_a_batch_of_a_custom_objective() -> None:
    objective = centre()
    batch = objective.with_batch(4)
    assert (type(batch), batch.draws, objective.draws) == (HuberCentre, 4, 0)
    assert repr(batch) == "HuberCentre(draws=4)"
    assert batch.points is objective.points


def test_noise_protects_a_custom_objective() -> None:
    """Row gradients without a slice and the whole gradient are enough, and the clip holds."""
    objective = centre()
    w, normal = model(objective), np.zeros(4)
    for unit in ("rows", "node"):
        noise = ModelNoise(0.5, 1.0, max_contributions=3, protect=unit)  # type: ignore[arg-type]
        clipped = noise.protected(objective, 2, w, normal=normal)
        gradient = objective.gradient(2, w, ())
        np.testing.assert_allclose(clipped, gradient * min(1, 0.5 / np.linalg.norm(gradient)))
        assert np.linalg.norm(clipped) <= 0.5 * (1 + 1e-12)


def test_a_problem_has_all_capabilities() -> None:
    problem = OBJECTIVES["Logistic"]()
    for capability in set(CAPABILITIES) - {"answer", "has_rounds"}:
        assert getattr(problem, capability), capability
    assert not problem.with_batch(1).is_exact


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"nodes": 0}, "nodes"),
        ({"nodes": 2.0}, "nodes"),
        ({"draws": -1}, "draws"),
        ({"penalty": -0.5}, "penalty"),
        ({"penalty": "much"}, "penalty"),
        ({"parameters": ("centre", 3)}, "parameters .*wl.ArraySpec"),
        ({"parameters": ()}, "parameters .*one entry"),
        ({"parameters": (wl.ArraySpec("a"), wl.ArraySpec("a"))}, "the same name"),
        ({"parameters": (wl.ArraySpec("a", (2,), "<i8"),)}, "one float dtype"),
        ({"parameters": (wl.ArraySpec("a"), wl.ArraySpec("b", (), "<f4"))}, "one float dtype"),
        ({"start": np.zeros(5)}, r"start .*\(4,\).*\(5,\)"),
    ],
)
def test_fields_that_cannot_be_used_are_refused(changes: dict[str, Any], message: str) -> None:
    objective = centre()
    vars(objective).update(changes)
    with pytest.raises((TypeError, ValueError), match=message):
        objective.check()


def test_missing_fields_are_named() -> None:
    objective = centre()
    del objective.nodes
    with pytest.raises(TypeError, match=r"HuberCentre .*self\.nodes"):
        objective.check()
