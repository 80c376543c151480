"""Updates with memory: they arrive at w*, whoever is next, and remember what they say."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import walklearn as wl
from walklearn import updates, walks
from walklearn.problem import Problem
from walklearn.simulation.reference_batches import ReferenceWalks
from walklearn.updates.found_step import Pace
from walklearn.updates.random_streams import generators, replicate_seed
from walklearn.updates.walk_sgd import WalkSetting

GRAPH = wl.graphs.barabasi_albert(12, 2, seed=3)
LOSSES: list[Any] = [
    wl.losses.Logistic(),
    wl.losses.Squared(),
    wl.losses.Huber(0.3),
    wl.losses.SquaredHinge(),
    wl.losses.Softmax(),
]


def make_problem(loss: Any = LOSSES[0], rows: int = 12, **options: Any) -> Problem:
    generator = np.random.default_rng(7)
    X = generator.standard_normal((rows, 4))
    y = np.where(generator.random(rows) < 0.5, -1.0, 1.0)
    if isinstance(loss, wl.losses.Softmax):
        y = np.arange(rows) % 3
    owners = None if rows == 12 else np.r_[np.arange(12), generator.integers(0, 12, rows - 12)]
    return Problem(X, y, loss=loss, node_of_row=owners, **{"penalty": 0.5, **options})


def batch_of(problem: Problem, update: Any, batch: int | None = None) -> ReferenceWalks:
    setting = WalkSetting(problem, GRAPH, walks.Simple(), update, batch)
    streams = generators(replicate_seed(np.random.SeedSequence(3), 0))
    return ReferenceWalks(setting, [streams])


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
def test_the_token_carries_the_sum_of_what_nodes_keep(loss: Any, batch: int | None) -> None:
    problem = make_problem(loss, rows=40)
    walking = batch_of(problem, updates.Saga(), batch)
    walking.advance(77)
    memory, kept = walking.tokens[0].memory, walking.kept[0]
    gradients, nodes = np.zeros(problem.size), 0.0
    for node in range(12):
        slopes = kept.of(node).slopes
        gradients += problem.rows_of(node).gradient(np.nan_to_num(slopes))
        nodes += 1.0 - np.isnan(slopes).mean()
    np.testing.assert_allclose(memory.gradient_sum, gradients, atol=1e-9)
    assert np.isclose(memory.pace.nodes, nodes)


def test_the_equations_written_out() -> None:
    """One row each, a given step: the formula, on whole gradients."""
    problem = make_problem()
    walking = batch_of(problem, updates.Saga(0.01))  # type: ignore[arg-type]
    h, s = np.zeros((12, 4)), np.zeros(4)
    seen: set[int] = set()
    for _ in range(60):
        token = walking.tokens[0]
        w, i = token.model, token.node
        first = i not in seen
        seen.add(i)
        g = problem.gradient(i, w)
        direction = g if first else g - h[i] + s / len(seen)
        s, h[i] = s + g - h[i], g
        walking.advance(1)
        np.testing.assert_allclose(
            walking.tokens[0].model, w - 0.01 * (direction + 0.5 * w), atol=1e-12
        )


def test_collecting_leaves_the_model_until_every_node_was_seen() -> None:
    problem, update = make_problem(), updates.Saga()
    walking = batch_of(problem, update)
    begun = walking.tokens[0]._replace(model=np.ones(4), memory=update.begin(problem, True))
    walking = ReferenceWalks(walking.setting, walking.streams, [begun])
    while not walking.visits.all():
        assert (walking.tokens[0].model == 1.0).all()
        walking.advance(1)
    assert not (walking.tokens[0].model == 1.0).any()


def test_a_batch_goes_on_where_another_stopped() -> None:
    problem = make_problem(rows=40)
    whole, first = batch_of(problem, updates.Saga(), 2), batch_of(problem, updates.Saga(), 2)
    whole.advance(100)
    first.advance(40)
    rest = ReferenceWalks(first.setting, first.streams, first.tokens, first.kept)
    rest.advance(60)
    np.testing.assert_array_equal(rest.models, whole.models)


def test_memory_of_another_problem_is_refused() -> None:
    problem, other = make_problem(), make_problem(LOSSES[1])
    walking = batch_of(problem, updates.Saga())
    walking.advance(5)
    setting, streams = walking.setting, walking.streams
    elsewhere = WalkSetting(other, GRAPH, setting.walk, setting.update)
    with pytest.raises(ValueError, match="made by Saga"):
        ReferenceWalks(elsewhere, streams, walking.tokens, walking.kept)
    with pytest.raises(ValueError, match="goes on only with what its nodes keep"):
        ReferenceWalks(setting, streams, walking.tokens)
    wider = Problem(np.ones((12, 9)), np.ones(12), penalty=1.0)
    with pytest.raises(ValueError, match="memory is not one of"):
        ReferenceWalks(WalkSetting(wider, GRAPH, setting.walk, setting.update), streams,
                       walking.tokens, walking.kept)  # fmt: skip


def test_costs_are_counted() -> None:
    problem = make_problem(rows=40)
    most = int(np.diff(problem.offsets).max())
    run = wl.simulate(
        problem, GRAPH, walks.Uniform(), update=updates.Saga(), engine="reference", steps=9, seed=1
    )
    assert run.message_bytes == 8 * (4 + 4 + 4)
    assert run.spec["node_bytes"] == 8 * (most + 1)
    assert run.spec["update"] == "Saga()"
    assert run.label == "Uniform(), Saga()"


def test_step_size_is_short_for_sgd() -> None:
    options: Any = {"steps": 50, "seed": 1}
    step = wl.PowerStep(0.01)
    short = wl.simulate(make_problem(), GRAPH, walks.Uniform(), step_size=step, **options)
    long = wl.simulate(make_problem(), GRAPH, walks.Uniform(), update=updates.Sgd(step), **options)
    assert short == long


def test_the_pace_slows_where_the_token_comes_round_slowly() -> None:
    quick, slow = Pace(), Pace()
    for visit in range(200):
        quick = quick.counted(float(visit < 10), 10 if visit >= 10 else 0)
        slow = slow.counted(float(visit < 10), (100 if visit % 10 == 0 else 1) * (visit >= 10))
    assert quick.factor == 1.0
    assert slow.factor < 0.25
