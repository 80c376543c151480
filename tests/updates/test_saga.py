"""Saga converges to the minimiser whatever the walk, and its arrays are what they claim to be."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import walklearn as wl
from walklearn import updates, walks
from walklearn.objectives import Problem
from walklearn.simulation.batches import Position, ReferenceWalks
from walklearn.streams import generators, replicate_seed
from walklearn.updates.line_search import ReturnTimes
from walklearn.visit import Setting

GRAPH = wl.graphs.barabasi_albert(12, 2, seed=3)
LOSSES: list[Any] = [
    wl.losses.Logistic(), wl.losses.Squared(), wl.losses.Huber(0.3), wl.losses.SquaredHinge(),
    wl.losses.Softmax(),
]  # fmt: skip


def make_problem(loss: Any = LOSSES[0], rows: int = 12, **options: Any) -> Problem:
    generator = np.random.default_rng(7)
    X = generator.standard_normal((rows, 4))
    y = np.where(generator.random(rows) < 0.5, -1.0, 1.0)
    if isinstance(loss, wl.losses.Softmax):
        y = np.arange(rows) % 3
    owners = None if rows == 12 else np.r_[np.arange(12), generator.integers(0, 12, rows - 12)]
    return Problem(X, y, loss=loss, node_of_row=owners, **{"penalty": 0.5, **options})


def batch_of(problem: Problem, update: Any, batch: int | None = None) -> ReferenceWalks:
    objective = problem if batch is None else problem.with_batch(batch)
    streams = generators(replicate_seed(np.random.SeedSequence(3), 0))
    return ReferenceWalks(Setting(objective, walks.Simple(), update), GRAPH, [streams])


@pytest.mark.parametrize("loss", LOSSES, ids=repr)
def test_the_minimiser_without_any_correction(loss: Any) -> None:
    """The simple walk visits hubs more often; with memory that does not matter."""
    problem = make_problem(loss)
    run = wl.simulate(problem, GRAPH, walks.Simple(), update=updates.Saga(), engine="reference",
                      steps=2500, seed=1)  # fmt: skip
    assert run.distance[0, -1] < 1e-3 * np.linalg.norm(problem.solution.model)
    np.testing.assert_array_equal(run.averages, run.models)


def test_the_boundary_of_the_domain() -> None:
    problem = make_problem(LOSSES[1], domain=wl.domains.Ball(0.1))
    run = wl.simulate(problem, GRAPH, walks.Uniform(), update=updates.Saga(), engine="reference",
                      steps=2500, seed=1)  # fmt: skip
    assert np.isclose(np.linalg.norm(run.models), 0.1)
    assert run.distance[0, -1] < 1e-7


@pytest.mark.parametrize("batch", [None, 2])
def test_many_rows_and_relays(batch: int | None) -> None:
    generator = np.random.default_rng(2)
    X, y = generator.standard_normal((30, 3)), generator.standard_normal(30)
    problem = Problem(X, y, loss=wl.losses.Squared(), penalty=0.1, aggregate="mean",
                      node_of_row=generator.integers(0, 8, 30), nodes=12,
                      empty_nodes="relay")  # fmt: skip
    run = wl.simulate(problem, GRAPH, walks.Uniform(), update=updates.Saga(), engine="reference",
                      steps=6000, batch=batch, seed=1)  # fmt: skip
    assert run.distance[0, -1] < 1e-5


@pytest.mark.parametrize("batch", [None, 2])
@pytest.mark.parametrize("loss", [LOSSES[0], LOSSES[4]], ids=repr)
def test_the_token_carries_the_sum_of_the_stored_gradients(loss: Any, batch: int | None) -> None:
    problem = make_problem(loss, rows=40)
    walking = batch_of(problem, updates.Saga(), batch)
    walking.advance(77)
    token, states = walking.positions[0].token.update, walking.walkers[0].states
    gradients, nodes = np.zeros(problem.size), 0.0
    for node, state in states.items():
        _, x, _ = problem.linear_rows(node, ())
        slopes = state.update["slopes"]
        gradients += np.asarray(np.nan_to_num(slopes).T @ x).reshape(-1)
        nodes += 1.0 - np.isnan(slopes).mean()
    np.testing.assert_allclose(token["gradient_sum"], gradients, atol=1e-9)
    assert np.isclose(token["nodes"], nodes)


def test_the_equations_written_out() -> None:
    """One row each, a given step: the formula, on whole gradients."""
    problem = make_problem()
    walking = batch_of(problem, updates.Saga(0.01))  # type: ignore[arg-type]
    h, s = np.zeros((12, 4)), np.zeros(4)
    visited: set[int] = set()
    for _ in range(60):
        position = walking.positions[0]
        w, i = position.token.update["model"], position.node
        first = i not in visited
        visited.add(i)
        g = problem.gradient(i, w)
        direction = g if first else g - h[i] + s / len(visited)
        s, h[i] = s + g - h[i], g
        walking.advance(1)
        expected = w - 0.01 * (direction + 0.5 * w)
        np.testing.assert_allclose(walking.models[0, 0], expected, atol=1e-12)


def test_a_restarted_token_leaves_the_model_until_every_node_was_visited() -> None:
    problem, update = make_problem(), updates.Saga()
    walking = batch_of(problem, update)
    walking.advance(50)
    node, token, *_ = walking.positions[0]
    restarted = update.restart(problem, token.update | {"model": np.ones(4)}, generation=1)
    assert update.gradient_estimate(problem, token.update) is not None
    assert update.gradient_estimate(problem, restarted) is None
    start = Position(node, token._replace(update=restarted))
    walking = ReferenceWalks(walking.setting, GRAPH, walking.streams, [start])
    while not walking.visits.all():
        assert (walking.models == 1.0).all()
        walking.advance(1)
    assert not (walking.models == 1.0).any()


def test_the_known_gradient_is_that_of_the_objective_once_the_model_has_converged() -> None:
    problem, update = make_problem(), updates.Saga()
    walking = batch_of(problem, update)
    assert update.gradient_estimate(problem, walking.positions[0].token.update) is None
    walking.advance(4000)
    token = walking.positions[0].token.update
    known = update.gradient_estimate(problem, token)
    assert known is not None
    np.testing.assert_allclose(known, problem.full_gradient(token["model"]), atol=1e-5)


def test_arrays_of_another_objective_are_refused() -> None:
    """A token with a model of another length does not conform to the declared arrays."""
    walking = batch_of(make_problem(), updates.Saga())
    walking.advance(5)
    wider = Problem(np.ones((12, 9)), np.ones(12), penalty=1.0)
    setting = Setting(wider, walks.Simple(), updates.Saga())
    with pytest.raises(ValueError, match=r"shape|mismatch|dimension"):
        ReferenceWalks(setting, GRAPH, walking.streams, walking.positions).advance(1)


def test_saga_is_refused_where_it_would_disclose_or_has_no_rows() -> None:
    noise = wl.privacy.ModelNoise(clip=1.0, noise_multiplier=1.0, max_contributions=2)
    with pytest.raises(wl.CapabilityError) as caught:
        Setting(make_problem(), walks.Uniform(), updates.Saga(), privacy=noise)
    assert caught.value.capability == "linear_rows"
    mechanism = wl.privacy.ClampedGamma(theta=4.0, bounds=(1.0, 8.0))
    with pytest.raises(ValueError, match=r"Sgd\(step_size\)"):
        Setting(make_problem(), walks.Weighted(privacy=mechanism), updates.Saga())


def test_costs_are_counted() -> None:
    problem = make_problem(rows=40)
    max_rows = int(np.diff(problem.offsets).max())
    run = wl.simulate(problem, GRAPH, walks.Uniform(), update=updates.Saga(), engine="reference",
                      steps=9, seed=1)  # fmt: skip
    assert run.message_bytes == 8 * (4 + 4 + 4)
    assert run.spec["node_bytes"] == 8 * (max_rows + 1)
    assert run.spec["update"] == "Saga()"
    assert run.label == "Uniform(), Saga()"


def test_step_size_is_short_for_sgd() -> None:
    options: Any = {"steps": 50, "seed": 1}
    step = wl.PowerStep(0.01)
    short = wl.simulate(make_problem(), GRAPH, walks.Uniform(), step_size=step, **options)
    long = wl.simulate(make_problem(), GRAPH, walks.Uniform(), update=updates.Sgd(step), **options)
    assert short == long


def test_the_step_is_shorter_if_the_token_returns_slowly() -> None:
    quick, slow = ReturnTimes(), ReturnTimes()
    for visit in range(200):
        quick = quick.with_visit(float(visit < 10), 10 if visit >= 10 else 0)
        slow = slow.with_visit(float(visit < 10), (100 if visit % 10 == 0 else 1) * (visit >= 10))
    assert quick.factor == 1.0
    assert slow.factor < 0.25
