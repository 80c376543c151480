"""Objectives and parts from outside: what is overridden takes effect, and mistakes are named."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest

import walklearn as wl

X, Y = wl.datasets.two_gaussians(8, dimension=2, seed=1)
RING = wl.graphs.ring(8)
SETTINGS: dict[str, Any] = {"steps": 30, "step_size": wl.ConstantStep(0.1), "seed": 1}


class Still(wl.Problem):
    """Overrides methods that kernels replace."""

    def gradient(self, node: int, w: Any, draws: Any = ()) -> Any:
        return np.zeros(self.size)


class KnownOptimum(wl.Problem):
    """Overrides a capability that records use."""

    def optimum(self) -> Any:
        return np.full(self.size, 7.0)


class Slow(wl.PowerStep):
    """Overrides the step size itself."""

    def __call__(self, k: Any) -> Any:
        return 0.0


def test_an_overridden_method_of_a_problem_takes_effect() -> None:
    with pytest.warns(UserWarning, match="has no kernel"):
        trace = wl.simulate(Still(X, Y, penalty=1.0), RING, "uniform", **SETTINGS)
    np.testing.assert_array_equal(trace.models[0], 0.0)
    trace = wl.simulate(KnownOptimum(X, Y, penalty=1.0), RING, "uniform", **SETTINGS)
    assert trace.distance[0, -1] == pytest.approx(np.linalg.norm(trace.models[0] - 7.0))
    settings = {**SETTINGS, "step_size": Slow(0.1)}
    with pytest.warns(UserWarning, match="has no kernel"):
        trace = wl.simulate(wl.Problem(X, Y, penalty=1.0), RING, "uniform", **settings)
    np.testing.assert_array_equal(trace.models[0], 0.0)


class Centre(wl.Objective):
    """The mean of some points."""

    nodes, parameters = 8, (wl.ArraySpec("centre", (2,)),)

    def gradient(self, node: int, w: Any, draws: Any) -> Any:
        return w - X[node]

    def value(self, w: Any) -> float:
        return float(0.5 * ((w - X) ** 2).sum(axis=1).mean())


@pytest.mark.parametrize("name", ["value", "gap", "average_error", "label", "not a name"])
def test_names_of_metrics_that_are_taken_are_refused(name: str) -> None:
    class Measured(Centre):
        def metrics(self, w: Any) -> dict[str, float]:
            return {name: 1.0}

    with pytest.raises(ValueError, match=name):
        wl.simulate(Measured(), RING, "uniform", **SETTINGS)


def test_metrics_and_values_of_another_form_are_refused() -> None:
    class NoDict(Centre):
        def metrics(self, w: Any) -> Any:
            return 1.0

    class Changing(Centre):
        def metrics(self, w: Any) -> Any:
            return {"small" if w[0] < 0.05 else "large": 1.0}

    class Vector(Centre):
        def value(self, w: Any) -> Any:
            return w

    for objective in (NoDict(), Changing(), Vector()):
        with pytest.raises(TypeError, match=rf"of {type(objective).__name__}\(\) must return"):
            wl.simulate(objective, RING, "uniform", **SETTINGS)


def test_a_start_of_whole_numbers_is_no_reason_to_round() -> None:
    objective = Centre()
    objective.__dict__["start"] = np.array([3, 3])
    trace = wl.simulate(objective, RING, "uniform", **{**SETTINGS, "steps": 1})
    assert (trace.models[0] != np.rint(trace.models[0])).any()


def test_an_optimum_of_the_wrong_size_is_refused() -> None:
    class Wrong(Centre):
        def optimum(self) -> Any:
            return np.zeros(1)

    with pytest.raises(ValueError, match="optimum"):
        wl.simulate(Wrong(), RING, "uniform", **SETTINGS)


class Leaping(wl.Walk):
    """Hops to the opposite node, which is no neighbour."""

    def hop(self, view: Any, token: Any, state: Any, draws: Any) -> wl.walks.Hop:
        return wl.walks.Hop((view.node + 4) % view.nodes, 1)


class Backwards(Leaping):
    """Has a weight that makes no sense."""

    def weight(self, view: Any, token: Any, state: Any) -> float:
        return -1.0


class Scaled(wl.walks.Walk):
    """Weighs gradients by a table."""

    def hop(self, view: Any, token: Any, state: Any, draws: Any) -> wl.walks.Hop:
        return wl.walks.Hop((view.node + 1) % view.nodes, 1)

    def gradient_scale(self, graph: Any, objective: Any = None) -> Any:
        return np.full(graph.node_count, 1e-12)


def test_hops_and_weights_that_make_no_sense_are_refused() -> None:
    with pytest.raises(ValueError, match="neighbours"):
        wl.simulate(Centre(), RING, Leaping(), **SETTINGS)
    with pytest.raises(ValueError, match="weight"):
        wl.simulate(Centre(), RING, Backwards(), **SETTINGS)


def test_a_gradient_scale_of_a_users_own_walk_takes_effect() -> None:
    trace = wl.simulate(Centre(), RING, Scaled(), **SETTINGS)
    assert np.abs(trace.models).max() < 1e-9


def clamped_value(score: float, target: float) -> float:
    return math.log1p(math.exp(-abs(score))) + max(0.0, -target * score)


def clamped_slope(score: float, target: float) -> float:
    return -target / (1.0 + math.exp(min(target * score, 700.0)))


def test_the_first_visit_of_saga_finds_a_curvature_for_every_loss() -> None:
    """An infinite step to a slope that is not 0 once counted as no contradiction."""
    loss = wl.losses.from_functions(
        clamped_value, clamped_slope, takes="sign", smoothness=0.25, name="clamped"
    )
    fast, slow = (
        wl.simulate(wl.Problem(X, Y, loss=loss, penalty=0.1), RING, "simple", steps=500, seed=1,
                    engine=engine, progress=False)
        for engine in ("compiled", "reference")
    )  # fmt: skip
    np.testing.assert_allclose(fast.models, slow.models, rtol=1e-8, atol=1e-8)


class Returns(wl.Walk):
    """Returns what it is made with."""

    result: Any = None

    def hop(self, view: Any, token: Any, state: Any, draws: Any) -> Any:
        return self.result


class Broken(wl.Update):
    """Returns no result."""

    def visit(self, context: Any, token: Any, state: Any) -> Any:
        return token


@pytest.mark.parametrize("result", [3, None, (1, 1)])
def test_a_hop_that_is_no_hop_is_refused(result: Any) -> None:
    with pytest.raises(TypeError, match=r"walks\.Hop"):
        wl.simulate(Centre(), RING, Returns(result), **SETTINGS)


@pytest.mark.parametrize("node", [3.5, 77, -1])
@pytest.mark.parametrize("messages", [1, 2])
def test_a_hop_outside_the_network_is_refused(node: Any, messages: int) -> None:
    with pytest.raises(ValueError, match="neighbours"):
        wl.simulate(Centre(), RING, Returns(wl.walks.Hop(node, messages)), **SETTINGS)


def test_a_visit_without_a_result_is_refused() -> None:
    with pytest.raises(TypeError, match="VisitResult"):
        wl.simulate(Centre(), RING, "uniform", update=Broken(), steps=2)


def test_a_capability_is_missed_where_it_could_be() -> None:
    objective = Centre()
    with pytest.raises(wl.CapabilityError) as caught:
        wl.simulate(objective, RING, "uniform", update="saga", steps=2)
    assert caught.value.missing_in is objective


class Negative(Centre):
    """Has a local value that the search for a step cannot use."""

    def linear_rows(self, node: int, draws: Any) -> Any:
        return np.arange(1), np.ones((1, 2)), lambda w: np.array([w.sum() - 1.0])

    def local_value(self, node: int, w: Any) -> float:
        return -1.0


def test_a_negative_local_value_is_refused_where_the_step_is_searched() -> None:
    with pytest.raises(ValueError, match="local_value is -1"):
        wl.simulate(Negative(), RING, "uniform", steps=2)
    wl.simulate(Negative(), RING, "uniform", update=wl.updates.Saga(0.1), steps=2)


class Shift(Broken):
    """Has an array among its settings."""

    by: Any = None


def test_arrays_of_parts_are_copied_and_read_only() -> None:
    given = np.zeros(2)
    part = Shift(given)
    with pytest.raises(ValueError, match="read-only"):
        part.by[0] = 1.0
    given[0] = 1.0
    assert part == Shift(np.zeros(2))


class Ration(wl.privacy.Protection):
    """Has an array that is named like the count of contributions, but is none."""

    def node_arrays(self, objective: Any) -> Any:
        return (wl.ArraySpec("contributions", 3),)


def test_only_a_count_of_contributions_is_recorded_as_one() -> None:
    trace = wl.simulate(Centre(), RING, "uniform", privacy=Ration(), **SETTINGS)
    assert trace.contributions is None


@pytest.mark.parametrize("nodes", [7, 9])
def test_a_graph_of_another_size_is_refused_without_options_of_problems(nodes: int) -> None:
    with pytest.raises(ValueError, match="graph with 8 nodes") as caught:
        wl.simulate(Centre(), wl.graphs.ring(nodes), "uniform", **SETTINGS)
    assert "node_of_row" not in str(caught.value)
    with pytest.raises(ValueError, match="node_of_row") as caught:
        wl.simulate(wl.Problem(X, Y), wl.graphs.ring(nodes), "uniform", **SETTINGS)
    assert ("empty_nodes" in str(caught.value)) == (nodes > 8)


def test_declared_arrays_are_a_tuple() -> None:
    objective = Centre()
    objective.__dict__["parameters"] = list(objective.parameters)
    with pytest.raises(TypeError, match="as a tuple"):
        wl.simulate(objective, RING, "uniform", **SETTINGS)


def test_the_shape_of_a_declared_array_is_checked() -> None:
    assert wl.ArraySpec("a", 3) == wl.ArraySpec("a", (3,)) == ("a", (3,), "<f8")
    for shape in ((1.5,), (-1,), -2):
        with pytest.raises(ValueError, match="shape of 'a'"):
            wl.ArraySpec("a", shape)  # type: ignore[arg-type]
