"""Mistakes in parts of users: each is named, with the part and the remedy."""

from __future__ import annotations

import pickle
import sys
from typing import Any

import numpy as np
import pytest

import walklearn as wl
from walklearn.updates import VisitResult

PROBLEM = wl.Problem(*wl.datasets.two_gaussians(6, dimension=2, seed=1), penalty=1.0)
RING = wl.graphs.ring(6)


class Step(wl.Update):
    """A gradient step."""

    def visit(self, context: Any, token: Any, state: Any) -> VisitResult:
        return VisitResult({"model": token["model"] - 0.01 * context.gradient(token["model"])})


@pytest.mark.parametrize(
    ("changes", "error", "message"),
    [
        ({"gradients": -1}, ValueError, "gradients of"),
        ({"gradients": 1.5}, ValueError, "gradients of"),
        ({"node_arrays": lambda *_: None}, TypeError, "tuple of wl.ArraySpec"),
        ({"token_arrays": lambda *_: wl.ArraySpec("model", (2,))}, TypeError, "tuple of wl.Array"),
    ],
)
def test_updates(changes: dict[str, Any], error: type[Exception], message: str) -> None:
    update: Any = type("Wrong", (Step,), changes)
    with pytest.raises(error, match=message):
        wl.simulate(PROBLEM, RING, "uniform", update=update(), steps=5, engine="reference")


@pytest.mark.parametrize("method", ["model", "average_model"])
def test_models_of_the_wrong_kind(method: str) -> None:
    update: Any = type("Wrong", (Step,), {method: lambda *_: None})
    with pytest.raises(TypeError, match="array of 2"):
        wl.simulate(PROBLEM, RING, "uniform", update=update(), steps=5, engine="reference")


def test_needs_that_are_no_dict() -> None:
    update: Any = type("Wrong", (Step,), {"needs": ["smoothness"]})
    with pytest.raises(TypeError, match="needs"):
        wl.simulate(PROBLEM, RING, "uniform", update=update(), steps=5, engine="reference")


class Own(wl.Problem):
    """Starts at its own model."""

    start = np.array([3.0, -2.0])


def test_an_overridden_start_is_where_the_token_begins() -> None:
    data = wl.datasets.two_gaussians(6, dimension=2, seed=1)
    still = wl.updates.Sgd(wl.ConstantStep(1e-300))
    trace = wl.simulate(Own(*data, penalty=1.0), RING, "uniform", update=still, steps=5)
    np.testing.assert_array_equal(trace.models[0], Own.start)


@pytest.mark.parametrize("metrics", [{"a": np.ones(2)}, {"a": None}, 3.0])
def test_metrics_that_are_no_numbers(metrics: Any) -> None:
    objective: Any = type("Wrong", (wl.Problem,), {"metrics": lambda *_: metrics})
    data = wl.datasets.two_gaussians(6, dimension=2, seed=1)
    with pytest.raises(TypeError, match="dict of numbers"):
        wl.simulate(objective(*data, penalty=1.0), RING, "uniform", update=Step(), steps=5,
                    engine="reference")  # fmt: skip


@pytest.mark.parametrize("name", ["scale", "table"])
def test_names_that_simulations_bind_are_no_fields_of_a_walk(name: str) -> None:
    with pytest.raises(TypeError, match=f"field named '{name}'"):
        type("Wrong", (wl.walks.Uniform,), {"__annotations__": {name: float}, name: 2.0})


def test_a_walk_that_raises_not_known_error_has_no_law() -> None:
    class Unknown(wl.walks.Uniform):
        def stationary(self, graph: Any, objective: Any = None) -> Any:
            raise wl.walks.StationaryUnknownError("not known")

    trace = wl.simulate(
        PROBLEM, RING, Unknown(), step_size=wl.PowerStep(0.1), steps=20, engine="reference"
    )
    assert trace.expected_visits is None


def test_a_walk_with_a_length_of_0_is_a_walk() -> None:
    class Route(wl.walks.Uniform):
        def __len__(self) -> int:
            return 0

    trace = wl.simulate(PROBLEM, RING, Route(), step_size=wl.PowerStep(0.1), steps=20, seed=1)
    assert trace.updates[-1] == 20


def test_a_refusal_under_noise_can_be_pickled() -> None:
    noise = wl.privacy.ModelNoise(1.0, 2.0, 5)
    with pytest.raises(wl.CapabilityError) as caught:
        wl.simulate(PROBLEM, RING, "uniform", update="saga", privacy=noise, steps=5)
    restored = pickle.loads(pickle.dumps(caught.value))
    assert str(restored) == str(caught.value)
    assert restored.capability == "linear_rows"


def test_only_runs_with_few_rows_stay_on_one_core(monkeypatch: pytest.MonkeyPatch) -> None:
    module, asked = sys.modules["walklearn.simulation.simulate"], []
    monkeypatch.setattr(module, "usable_cores", lambda: asked.append(True) or 2)
    rows = np.random.default_rng(1).normal(size=(40_000, 3))
    many = wl.Problem(rows, np.sign(rows[:, 0]), penalty=1.0, node_of_row=np.arange(40_000) % 6)
    settings: dict[str, Any] = {"step_size": wl.PowerStep(0.1), "steps": 60, "replicates": 2}
    wl.simulate(PROBLEM, RING, "uniform", **settings)
    assert not asked
    wl.simulate(many, RING, "uniform", **settings)
    assert asked
