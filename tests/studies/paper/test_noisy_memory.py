"""Memory under noise on the model, as the study of its limit has it."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import walklearn as wl
from walklearn.studies.paper.noisy_memory import NoisySaga, NoisySgd
from walklearn.updates import draw_start
from walklearn.visit import Setting, Walker, init_token

X, Y = wl.datasets.two_gaussians(24, dimension=3, seed=1)
PROBLEM = wl.Problem(X, Y, penalty=0.1, aggregate="mean", node_of_row=np.arange(24) % 4)
GRAPH = wl.graphs.complete(4)
STEP = wl.ConstantStep(0.2)


def nearly_without_noise(kind: Any) -> Any:
    """Noise of 1e-10 times the clip, and a clip that no gradient reaches."""
    return kind(1e15, 0.01, clip=100.0, contributions=1000, step_size=STEP)


def walk(update: Any, steps: int) -> Walker:
    setting = Setting(PROBLEM, wl.walks.Uniform().bind(GRAPH, PROBLEM), update)
    generator = np.random.default_rng(5)
    node, model = draw_start(PROBLEM, generator)
    walker = Walker(setting, GRAPH, node, init_token(setting, model))
    for _ in range(steps):
        walker.visit(setting.draw(generator, generator))
    return walker


@pytest.mark.parametrize(
    ("noisy", "plain"),
    [(NoisySgd, wl.updates.Sgd(STEP)), (NoisySaga, wl.updates.Saga(STEP))],
)
def test_without_noise_they_are_sgd_and_saga(noisy: Any, plain: Any) -> None:
    ours, theirs = (
        wl.simulate(PROBLEM, GRAPH, wl.walks.Uniform(), update=update, steps=200, seed=1, records=1,
                    engine="reference", progress=False).models
        for update in (nearly_without_noise(noisy), plain)
    )  # fmt: skip
    np.testing.assert_allclose(ours, theirs, atol=1e-4)


@pytest.mark.parametrize("kind", [NoisySgd, NoisySaga])
def test_a_node_releases_as_often_as_its_budget_allows(kind: Any) -> None:
    update = kind(3.0, 1e-5, clip=1.0, contributions=3, step_size=STEP)
    assert update.noise.max_contributions == 3
    assert update.noise.delta(3.0) <= 1e-5
    walker = walk(update, 100)
    states = [state.update for state in walker.states.values()]
    assert {int(state["times"]) for state in states} == {3}
    released = sum(state["gradient"] for state in states)
    np.testing.assert_allclose(walker.token.update["gradient_sum"], released, atol=1e-9)
    later = walk(update, 101).token.update["model"]
    moves = not np.array_equal(later, walker.token.update["model"])
    assert moves == (kind is not NoisySgd)  # with memory the last release is used again


def test_all_updates_get_the_same_noise() -> None:
    first = [
        walk(kind(3.0, 1e-5, 1.0, 3, STEP), 1).token.update["model"]
        for kind in (NoisySgd, NoisySaga)
    ]
    np.testing.assert_array_equal(*first)


def test_elsewhere_memory_with_noise_is_refused() -> None:
    noise = wl.privacy.ModelNoise.calibrate(epsilon=3, delta=1e-5, clip=1, max_contributions=3)
    with pytest.raises(wl.CapabilityError) as caught:
        wl.simulate(PROBLEM, GRAPH, wl.walks.Uniform(), update=wl.updates.Saga(), steps=3,
                    privacy=noise)  # fmt: skip
    assert (caught.value.capability, caught.value.needed_by) == ("linear_rows", wl.updates.Saga())
