"""A node's own part: its share of the problem, its noise, its cap."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

import walklearn as wl
from tests.node.made_tokens import changed
from tests.running import PROJECT, python
from walklearn.node.agreement.plan import Plan
from walklearn.node.protocol.learner import DivergedError, Draws, Kept, Learner, own_problem
from walklearn.node.protocol.tokens import Line, Token, decode_token, encode_token
from walklearn.privacy.model_noise import ModelNoise

PLAN = """
name = "test"
nodes = 4
features = ["a", "b"]
target = "y"
loss = "squared"
penalty = 0.5
step_size = { constant = 0.01 }
updates = 1000
"""
WEIGHTED = 'walk = "weighted"\n[privacy]\nmechanism = "in the clear"'
RELEASED = """
walk = "weighted"
[privacy]
protect = "node"
model = "in the clear"
mechanism = "gamma"
epsilon = 3.0
delta = 0.05
feature_bound = 3.0
max_rows = 5
"""
X, Y = [[1.0, 2.0], [0.5, -1.0], [2.0, 0.0]], [1.0, -1.0, 0.5]
LINE = Line(0, 1, "ab" * 32, "cd" * 16)
DRAWS = Draws(np.array([0.5]))


def first(learner: Learner, model: Any = (1.0, -1.0)) -> Token:
    return learner.first_token(LINE, np.array(model))


@pytest.mark.parametrize("aggregate", ["sum", "mean", "node-mean"])
def test_a_node_knows_its_own_loss_without_the_others(aggregate: str) -> None:
    rows = "rows = 5" if aggregate == "mean" else ""
    plan = Plan.from_text(PLAN + f'aggregate = "{aggregate}"\n{rows}')
    learner = Learner.of_plan(plan, X, Y)
    whole = wl.Problem(
        [*X, [3.0, 3.0], [1.0, 1.0]], [*Y, 0.0, 1.0], loss=plan.loss, penalty=0.5,
        node_of_row=[0, 0, 0, 1, 2], nodes=4, aggregate=plan.aggregate, empty_nodes="relay",
    )  # fmt: skip
    assert learner.smoothness == whole.smoothness_constants[0]
    w = np.array([0.3, -0.7])
    np.testing.assert_array_equal(learner.problem.gradient(0, w), whole.gradient(0, w))


def test_the_first_scale_is_one_and_the_next_is_estimated() -> None:
    learner = Learner.of_plan(Plan.from_text(PLAN + WEIGHTED), X, Y, importance=8.0)
    token, *_ = learner.visit(first(learner), DRAWS)
    start, penalty = np.array([1.0, -1.0]), learner.problem.penalty
    gradient = learner.problem.gradient(0, start) + penalty * start
    np.testing.assert_allclose(token.model, start - 0.01 * gradient)
    assert token.payload.walk["inverse_sum"] == 1 / 8.0
    other = Learner.of_plan(Plan.from_text(PLAN + WEIGHTED), X, Y, importance=2.0)
    second, *_ = other.visit(token, DRAWS)
    scale = (2 / (1 / 8 + 1 / 2)) / 2.0
    assert learner.plan.step_size is not None
    gamma = learner.plan.step_size(2)
    gradient = scale * (learner.problem.gradient(0, token.model) + penalty * token.model)
    np.testing.assert_allclose(second.model, token.model - gamma * gradient)


def test_importance_is_what_was_released_or_l_or_one() -> None:
    weighted, uniform = Plan.from_text(PLAN + WEIGHTED), Plan.from_text(PLAN)
    assert Learner.of_plan(weighted, X, Y, importance=3.0).importance == 3.0
    learner = Learner.of_plan(weighted, X, Y)
    assert learner.importance == learner.smoothness
    assert Learner.of_plan(uniform, X, Y, importance=3.0).importance == 1.0


def test_only_the_weighted_walk_goes_by_what_neighbours_say_of_their_importance() -> None:
    """Or who says 1e300 would draw the token of a uniform walk to itself."""
    plan = Plan.from_text(PLAN)
    for walk, expected in (("simple", 1.0), ("uniform", 0.25), ("weighted", 2e300)):
        learner = Learner(own_problem(plan, X, Y), replace(plan, walk=walk))
        assert learner.plan.metropolis.announcement(8e300, 4)[0] == expected


@pytest.mark.parametrize("degree", [0, 3])
@pytest.mark.parametrize(
    ("more", "walk"),
    [
        ("", wl.walks.Uniform()),
        ('walk = "simple"', wl.walks.Simple()),
        (WEIGHTED, wl.walks.Weighted()),
    ],
)
def test_a_node_announces_what_it_announces_in_a_simulation(
    more: str, walk: wl.walks.Metropolis, degree: int
) -> None:
    learner = Learner.of_plan(Plan.from_text(PLAN + more), X, Y)
    view = learner.view(0, [(1.0, 1.0)] * degree)
    assert view.own_announcement == walk.announce(learner.problem, 0, degree, None)
    assert view.neighbours.tolist() == list(range(1, degree + 1))


def test_past_the_cap_a_node_adds_noise_only() -> None:
    noise = ModelNoise(clip=1.0, noise_multiplier=1.0, max_contributions=3, protect="node")
    learner = Learner.of_plan(Plan.from_text(PLAN), X, Y, noise=noise)
    other_rows = Learner.of_plan(Plan.from_text(PLAN), [[9.0, 9.0]], [7.0], noise=noise)
    draws = Draws(np.array([0.5]), np.array([25, -50]))
    for contributed in range(5):
        mine, count, *_ = learner.visit(first(learner), draws, contributed)
        theirs, *_ = other_rows.visit(first(learner), draws, contributed)
        assert count == contributed + (contributed < 3)
        told_apart = not np.array_equal(mine.model, theirs.model)
        assert told_apart == (contributed < 3)


def test_a_smaller_budget_is_a_smaller_cap() -> None:
    noise = ModelNoise(clip=1.0, noise_multiplier=1.0, max_contributions=3, protect="node")
    plan = Plan.from_text(PLAN)
    assert Learner.of_plan(plan, X, Y, noise=noise, may_contribute=1).may_contribute == 1
    assert Learner.of_plan(plan, X, Y, noise=noise, may_contribute=9).may_contribute == 3
    draws = Draws(np.array([0.5]), np.zeros(2, dtype=np.int64))
    none = Learner.of_plan(plan, X, Y, noise=noise, may_contribute=0)
    assert none.visit(first(none), draws)[1] == 0


def test_what_shows_lies_on_the_public_grid() -> None:
    """Noise on the grid gives gradients on the grid; other noise agrees within the rounding."""
    noise = ModelNoise(clip=1.0, noise_multiplier=1.0, max_contributions=3, protect="node")
    plan = Plan.from_text(PLAN.replace("penalty = 0.5", ""))
    steps = noise.draw(2)
    shown = {}
    learner = Learner.of_plan(plan, X, Y, noise=noise)
    for on_grid, drawn in ((True, steps), (False, steps * noise.clip_step)):
        token, *_ = learner.visit(first(learner, (0.0, 0.0)), Draws(np.array([0.5]), drawn))
        assert plan.step_size is not None
        shown[on_grid] = token.model / -plan.step_size(1) / noise.clip_step
    np.testing.assert_allclose(shown[True], np.rint(shown[True]), atol=1e-6)
    assert np.abs(shown[True] - shown[False]).max() <= 1 + 1e-6
    assert np.abs(shown[False] - np.rint(shown[False])).max() > 1e-3


def test_noise_has_to_be_given() -> None:
    noise = ModelNoise(clip=1.0, noise_multiplier=1.0, max_contributions=3, protect="node")
    learner = Learner.of_plan(Plan.from_text(PLAN), X, Y, noise=noise)
    with pytest.raises(ValueError, match="needs that noise"):
        learner.visit(first(learner), DRAWS)


def test_what_would_show_the_rows_is_refused() -> None:
    text = WEIGHTED + '\nreweight = "as-printed"'
    with pytest.raises(ValueError, match="reweight"):
        Learner.of_plan(Plan.from_text(PLAN + text), X, Y)
    noise = ModelNoise(clip=1.0, noise_multiplier=1.0, max_contributions=3, protect="node")
    with pytest.raises(ValueError, match="in the clear"):
        Learner.of_plan(Plan.from_text(PLAN + WEIGHTED), X, Y, noise=noise)


def test_an_update_beyond_all_numbers_is_told() -> None:
    plan = Plan.from_text(PLAN.replace("constant = 0.01", "constant = 1e200"))
    learner = Learner.of_plan(plan, X, Y)
    with pytest.raises(DivergedError, match="smaller step size"):
        learner.visit(first(learner), DRAWS)


def test_a_node_at_work_loads_nothing_heavy() -> None:
    code = """
import sys
from dataclasses import replace
from tests.node.test_learner import *
noise = ModelNoise(clip=1.0, noise_multiplier=1.0, max_contributions=3, protect="node")
learner = Learner.of_plan(Plan.from_text(PLAN + RELEASED), X, Y, 3.0, noise)
learner.visit(first(learner), Draws(np.array([0.5]), np.zeros(2, np.int64)))
import walklearn.node.protocol.protocol, walklearn.node.disk.store
heavy = {"scipy", "numba", "pandas", "matplotlib", "dp_accounting"}
print(sorted(heavy & sys.modules.keys()))
"""
    assert python(code, cwd=PROJECT).stdout.strip() == "[]"


MEMORY_PLAN = """
name = "memory"
nodes = 3
features = ["x"]
target = "y"
loss = "squared"
penalty = 1.0
update = "saga"
updates = 100
"""


def test_an_epoch_that_a_node_has_lost_its_gradient_of_is_not_gone_on_with() -> None:
    """Two lines took turns here; the token of the first has a gradient that nobody keeps."""
    learner = Learner.of_plan(Plan.from_text(MEMORY_PLAN), [[1.0]], [1.0])
    draws = [Draws(np.array([0.5]), epoch=f"{number:032x}") for number in range(4)]
    fresh = learner.first_token(Line(0, 1, "ab" * 32, "cd" * 16), np.zeros(1))
    one, _, kept, _ = learner.visit(fresh, draws[0])
    assert one.epoch == draws[0].epoch
    assert not one.payload.update["collects"]  # a walk that begins has no model to keep
    np.testing.assert_allclose(one.payload.update["gradient_sum"], [-3.0])
    other, _, kept, _ = learner.visit(replace(one, epoch=""), draws[1], kept=kept)
    assert other.payload.update["collects"]
    np.testing.assert_array_equal(other.model, one.model)  # until all nodes were visited
    assert kept is not None
    assert (kept.epoch, kept.past) == (draws[1].epoch, (draws[0].epoch,))
    again, _, kept, _ = learner.visit(one, draws[2], kept=kept)
    goes_on, *_ = learner.visit(again, draws[3], kept=kept)
    for each in (again, goes_on):
        assert (each.epoch, each.payload.update["nodes"]) == (draws[2].epoch, 1.0)


def kept_of(epoch: str, slope: float, updated: int) -> Kept:
    return Kept(epoch, {"slopes": np.array([slope]), "updated": np.array(updated)})


def remembering(learner: Learner, **arrays: Any) -> Token:
    """A token under way, after two nodes of the epoch "ef...", with these arrays."""
    fresh = learner.first_token(LINE, np.zeros(1))
    return changed(fresh, **{"updates": 1, "epoch": "ef" * 16, "nodes": 2.0} | arrays)


@pytest.mark.parametrize(
    ("wrong", "kept"),
    [
        ({"nodes": 3.0}, None),
        ({"nodes": 3.0}, kept_of("12" * 16, 1.0, 1)),
        ({"nodes": 3.0}, kept_of("ef" * 16, np.nan, 1)),
        ({}, kept_of("ef" * 16, 1.0, 50)),  # an age of -48
        ({}, kept_of("ef" * 16, 1.0, 1).forgotten()),
    ],
)
def test_a_memory_that_does_not_fit_the_node_is_begun_anew(
    wrong: dict[str, Any], kept: Kept | None
) -> None:
    learner = Learner.of_plan(Plan.from_text(MEMORY_PLAN), [[1.0]], [1.0])
    draws = Draws(np.array([0.5]), epoch="34" * 16)
    before = remembering(learner, **{"curvature": 1.0} | wrong)
    token, _, keeps, _ = learner.visit(before, draws, kept=kept)
    got = decode_token(encode_token(token), learner.limits)
    arrays = got.payload.update
    assert keeps is not None
    assert (got.epoch, arrays["nodes"], arrays["collects"]) == (keeps.epoch, 1.0, True)
    assert keeps.epoch == draws.epoch
    assert keeps.past == (() if kept is None else kept.given)
    np.testing.assert_array_equal(token.model, before.model)


def test_a_curvature_that_fades_away_is_found_anew() -> None:
    """Where no row has a gradient it halves every N visits, and neighbours refuse a tiny one."""
    learner = Learner.of_plan(Plan.from_text(MEMORY_PLAN), [[1.0]], [0.0])
    token, *_ = learner.visit(remembering(learner, curvature=1e-100), DRAWS)
    got = decode_token(encode_token(token), learner.limits)
    assert (got.epoch, got.payload.update["curvature"]) == ("ef" * 16, 0.0)


def test_a_plan_may_let_the_token_carry_the_model_alone() -> None:
    """Both walk the same way; what shows earlier models is not in the bytes."""
    tokens = []
    for more in ("", "average = false\n"):
        learner = Learner.of_plan(Plan.from_text(PLAN + more), X, Y)
        token = first(learner)
        for _ in range(3):
            token = learner.visit(token, DRAWS).token
        assert decode_token(token.encoded, learner.limits).updates == 3
        tokens.append(token)
    both, alone = tokens
    np.testing.assert_array_equal(both.model, alone.model)
    assert (set(both.payload.update), set(alone.payload.update)) == (
        {"model", "weighted_sum", "step_size_sum"}, {"model"},
    )  # fmt: skip
    np.testing.assert_array_equal(alone.average, alone.model)
    assert len(alone.encoded) < len(both.encoded)
