"""A token that moves from one batch to another continues as if nothing had happened."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import walklearn as wl
from walklearn import walks
from walklearn.simulation.batches import Position, ReferenceWalks
from walklearn.simulation.compiled_batches import CompiledWalks
from walklearn.simulation.kernels.arithmetic import step_sizes
from walklearn.streams import generators
from walklearn.visit import Setting, init_token

RING = wl.graphs.ring(20)


def setting(walk: Any, loss: Any = None) -> Setting:
    generator = np.random.default_rng(3)
    X = generator.standard_normal((20, 3))
    y = np.arange(20) % 3 if isinstance(loss, wl.losses.Softmax) else np.sign(X[:, 0])
    problem = wl.Problem(X, y, loss=loss, penalty=0.1, domain=wl.domains.Ball(0.8))
    return Setting(problem, walk, wl.updates.Sgd(wl.PowerStep(0.05)))


def average(plan: Setting, position: Position) -> Any:
    return plan.update.average_model(plan.objective, position.token.update)


@pytest.mark.parametrize("batch_class", [CompiledWalks, ReferenceWalks])
@pytest.mark.parametrize("walk", [walks.Weighted(), walks.NonBacktracking()], ids=repr)
@pytest.mark.parametrize("loss", [None, wl.losses.Softmax()], ids=repr)
def test_a_token_continues(batch_class: Any, walk: Any, loss: Any) -> None:
    plan = setting(walk, loss)
    seeds = np.random.SeedSequence(7).spawn(2)
    whole = batch_class(plan, RING, [generators(seed) for seed in seeds])
    whole.advance(500)
    streams = [generators(seed) for seed in seeds]
    first = batch_class(plan, RING, streams)
    first.advance(180)
    second = batch_class(plan, RING, streams, first.positions)
    second.advance(320)
    for position, expected in zip(second.positions, whole.positions, strict=True):
        token = position.token
        assert token.updates == token.visits == expected.token.updates == 500
        assert (position.node, position.messages) == (expected.node, expected.messages)
        assert token.walk == expected.token.walk
        assert token.update.keys() == expected.token.update.keys()
        for name, array in token.update.items():
            np.testing.assert_allclose(array, expected.token.update[name], rtol=1e-11)
    np.testing.assert_array_equal(first.visits + second.visits, whole.visits)
    averages = [average(plan, position) for position in second.positions]
    np.testing.assert_allclose(second.averages[:, 0], averages)


def test_the_engines_hand_over_to_each_other() -> None:
    plan = setting(walks.Weighted())
    seed = np.random.SeedSequence(1)
    ends = {}
    for name, order in {
        "compiled first": (CompiledWalks, ReferenceWalks),
        "reference first": (ReferenceWalks, CompiledWalks),
    }.items():
        streams = [generators(seed)]
        before = order[0](plan, RING, streams)
        before.advance(100)
        after = order[1](plan, RING, streams, before.positions)
        after.advance(100)
        ends[name] = after.positions[0]
    one, other = ends.values()
    assert (one.node, one.messages) == (other.node, other.messages)
    np.testing.assert_allclose(average(plan, one), average(plan, other), rtol=1e-11)


def test_a_sender_that_is_the_holder_itself_counts_as_none() -> None:
    plan = setting(walks.NonBacktracking())
    for seed in np.random.SeedSequence(1).spawn(300):
        token = init_token(plan, np.zeros(3))
        start = Position(0, token._replace(walk={**token.walk, "sender": np.array(1)}))
        ends = []
        for batch_class in (CompiledWalks, ReferenceWalks):
            batch = batch_class(plan, RING, [generators(seed)], [start])
            batch.advance(1)
            ends.append(batch.positions[0].node)
        assert ends[0] == ends[1]


def test_tokens_of_one_batch_share_their_step_sizes() -> None:
    plan = setting(walks.Uniform())
    token = init_token(plan, np.zeros(3))
    starts = [Position(0, token), Position(1, token._replace(updates=5))]
    streams = [generators(seed) for seed in np.random.SeedSequence(1).spawn(2)]
    with pytest.raises(ValueError, match="updates"):
        CompiledWalks(plan, RING, streams, starts)


@pytest.mark.parametrize("batch_class", [CompiledWalks, ReferenceWalks])
def test_the_estimated_mean_continues_too(batch_class: Any) -> None:
    plan = setting(walks.Weighted())
    streams = [generators(np.random.SeedSequence(7)) for _ in range(2)]
    whole = batch_class(plan, RING, streams[:1], mean="estimated")
    whole.advance(50)
    first = batch_class(plan, RING, streams[1:], mean="estimated")
    first.advance(20)
    second = batch_class(plan, RING, streams[1:], first.positions, mean="estimated")
    second.advance(30)
    sums = [batch.positions[0].token.walk["inverse_sum"] for batch in (whole, second)]
    assert sums[0] == sums[1] > 0
    np.testing.assert_allclose(second.models, whole.models, rtol=1e-12)


@pytest.mark.parametrize("exponent", [0.0, 0.51, 0.75, 1.0])
def test_step_sizes_are_powers_wherever_they_begin(exponent: float) -> None:
    numbers = np.arange(1, 20_001)
    whole, sums = np.empty((2, len(numbers)))
    step_sizes(1.3, exponent, 0, 0.0, whole, sums)
    np.testing.assert_allclose(whole, 1.3 / numbers**exponent, rtol=1e-15)
    assert (sums == np.cumsum(whole)).all()  # one by one, wherever a call ends
    for done, count in ((0, 5000), (5000, 70), (5070, 14_930)):
        before = sums[done - 1] if done else 0.0
        part, part_sums = np.empty((2, count))
        step_sizes(1.3, exponent, done, before, part, part_sums)
        assert (part == whole[done : done + count]).all()
        assert (part_sums == sums[done : done + count]).all()
