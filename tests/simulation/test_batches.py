"""A token that is taken out of one batch and put into another walks on as if nothing had been."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

import walklearn as wl
from walklearn import walks
from walklearn.simulation.compiled_batches import CompiledWalks
from walklearn.simulation.kernels.arithmetic import step_sizes
from walklearn.simulation.reference_batches import ReferenceWalks
from walklearn.updates.random_streams import generators
from walklearn.updates.walk_sgd import WalkSetting, token_at


def setting(walk: Any, loss: Any = None) -> WalkSetting:
    generator = np.random.default_rng(3)
    X = generator.standard_normal((20, 3))
    y = np.arange(20) % 3 if isinstance(loss, wl.losses.Softmax) else np.sign(X[:, 0])
    problem = wl.Problem(X, y, loss=loss, penalty=0.1, domain=wl.domains.Ball(0.8))
    return WalkSetting(problem, wl.graphs.ring(20), walk, wl.updates.Sgd(wl.PowerStep(0.05)))


@pytest.mark.parametrize("batch_class", [CompiledWalks, ReferenceWalks])
@pytest.mark.parametrize("walk", [walks.Weighted(), walks.NonBacktracking()], ids=repr)
@pytest.mark.parametrize("loss", [None, wl.losses.Softmax()], ids=repr)
def test_a_token_walks_on(batch_class: Any, walk: Any, loss: Any) -> None:
    plan = setting(walk, loss)
    seeds = np.random.SeedSequence(7).spawn(2)
    whole = batch_class(plan, [generators(seed) for seed in seeds])
    whole.advance(500)
    streams = [generators(seed) for seed in seeds]
    first = batch_class(plan, streams)
    first.advance(180)
    second = batch_class(plan, streams, first.tokens)
    second.advance(320)
    for token, expected in zip(second.tokens, whole.tokens, strict=True):
        assert token.updates == expected.updates == 500
        assert (token.node, token.messages) == (expected.node, expected.messages)
        np.testing.assert_allclose(token.model, expected.model, rtol=1e-11)
        np.testing.assert_allclose(token.average, expected.average, rtol=1e-11)
    np.testing.assert_array_equal(first.visits + second.visits, whole.visits)
    np.testing.assert_allclose(second.averages[:, 0], [t.average for t in second.tokens])


def test_the_engines_hand_over_to_each_other() -> None:
    plan = setting(walks.Weighted())
    seed = np.random.SeedSequence(1)
    tokens = {}
    for name, order in {
        "compiled first": (CompiledWalks, ReferenceWalks),
        "reference first": (ReferenceWalks, CompiledWalks),
    }.items():
        streams = [generators(seed)]
        before = order[0](plan, streams)
        before.advance(100)
        after = order[1](plan, streams, before.tokens)
        after.advance(100)
        tokens[name] = after.tokens[0]
    one, other = tokens.values()
    assert (one.node, one.messages) == (other.node, other.messages)
    np.testing.assert_allclose(one.average, other.average, rtol=1e-11)


def test_a_token_that_comes_from_where_it_is_does_as_one_that_comes_from_nowhere() -> None:
    plan = setting(walks.NonBacktracking())
    for seed in np.random.SeedSequence(1).spawn(300):
        token = token_at(0, np.zeros(3))._replace(previous=0)
        ends = []
        for batch_class in (CompiledWalks, ReferenceWalks):
            batch = batch_class(plan, [generators(seed)], [token])
            batch.advance(1)
            ends.append(batch.tokens[0].node)
        assert ends[0] == ends[1]


def test_tokens_of_one_batch_share_their_step_sizes() -> None:
    plan = setting(walks.Uniform())
    new, old = token_at(0, np.zeros(3)), token_at(1, np.zeros(3))._replace(updates=5)
    streams = [generators(seed) for seed in np.random.SeedSequence(1).spawn(2)]
    with pytest.raises(ValueError, match="same number of updates"):
        CompiledWalks(plan, streams, [new, old])


@pytest.mark.parametrize("batch_class", [CompiledWalks, ReferenceWalks])
def test_the_estimated_mean_walks_on_too(batch_class: Any) -> None:
    plan = replace(setting(walks.Weighted()), mean_importance="estimated")
    streams = [generators(np.random.SeedSequence(7)) for _ in range(2)]
    whole = batch_class(plan, streams[:1])
    whole.advance(50)
    first = batch_class(plan, streams[1:])
    first.advance(20)
    second = batch_class(plan, streams[1:], first.tokens)
    second.advance(30)
    sums = [batch.tokens[0].inverse_importance_sum for batch in (whole, second)]
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
