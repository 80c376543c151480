"""Memory under noise on the model, as the study of its limit has it."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import walklearn as wl
from walklearn.experiments.noisy_memory import NoisySaga, NoisySgd
from walklearn.updates.update import Kept
from walklearn.updates.walk_sgd import WalkSetting, init, step

X, Y = wl.datasets.two_gaussians(24, dimension=3, seed=1)
PROBLEM = wl.Problem(X, Y, penalty=0.1, aggregate="mean", node_of_row=np.arange(24) % 4)
GRAPH = wl.graphs.complete(4)
STEP = wl.ConstantStep(0.2)


def nearly_without_noise(kind: Any) -> Any:
    """Noise of 1e-10 times the clip, and a clip that no gradient reaches."""
    return kind(1e15, 0.01, clip=100.0, contributions=1000, step_size=STEP)


def walked(update: Any, steps: int) -> tuple[Any, Kept]:
    setting = WalkSetting(PROBLEM, GRAPH, wl.walks.Uniform(), update)
    generator = np.random.default_rng(5)
    token, kept = init(setting, generator), Kept(PROBLEM, update, {})
    for _ in range(steps):
        node = token.node
        token, visit = step(setting, token, generator.random(setting.draws), kept=kept.of(node))
        kept.nodes[node] = visit.kept
    return token, kept


@pytest.mark.parametrize(
    ("noisy", "plain"),
    [(NoisySgd, wl.updates.Sgd(STEP)), (NoisySaga, wl.updates.Saga(STEP))],
)
def test_without_noise_they_are_what_they_are_named_after(noisy: Any, plain: Any) -> None:
    ours, theirs = (
        wl.simulate(PROBLEM, GRAPH, wl.walks.Uniform(), update=update, steps=200, seed=1, records=1,
                    engine="reference", progress=False).models
        for update in (nearly_without_noise(noisy), plain)
    )  # fmt: skip
    np.testing.assert_allclose(ours, theirs, atol=1e-4)


@pytest.mark.parametrize("kind", [NoisySgd, NoisySaga])
def test_a_node_tells_something_as_often_as_it_was_priced_for(kind: Any) -> None:
    update = kind(3.0, 1e-5, clip=1.0, contributions=3, step_size=STEP)
    assert update.noise.max_contributions == 3
    assert update.noise.delta(3.0) <= 1e-5
    token, kept = walked(update, 100)
    assert {told.times for told in kept.nodes.values()} == {3}
    told = sum(each.gradient for each in kept.nodes.values())
    np.testing.assert_allclose(token.memory.gradient_sum, told, atol=1e-9)
    later, _ = walked(update, 101)
    moves = not np.array_equal(later.model, token.model)
    assert moves == (kind is not NoisySgd)  # memory lends what was told, without it w stays


def test_every_arm_meets_the_same_noise() -> None:
    first = [walked(kind(3.0, 1e-5, 1.0, 3, STEP), 1)[0].model for kind in (NoisySgd, NoisySaga)]
    np.testing.assert_array_equal(*first)


def test_elsewhere_memory_with_noise_is_refused() -> None:
    noise = wl.privacy.ModelNoise.calibrate(epsilon=3, delta=1e-5, clip=1, max_contributions=3)
    with pytest.raises(ValueError, match="memory would gain nothing"):
        wl.simulate(PROBLEM, GRAPH, wl.walks.Uniform(), update=wl.updates.Saga(), steps=3,
                    model_privacy=noise)  # fmt: skip
