"""The network in memory is the simulator on the same seeds, and visits nodes by the law."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import walklearn as wl
from walklearn.node.local_update import LocalUpdate
from walklearn.node.memory_network import MemoryNetwork
from walklearn.node.plan import Plan
from walklearn.node_update import start
from walklearn.privacy.model_noise import ModelNoise
from walklearn.random_streams import Streams, generators, replicate_seed

NODES, UPDATES, SEED = 8, 400, 5
GRAPH = wl.graphs.erdos_renyi(NODES, 0.4, seed=2)
OWNERS = np.repeat(np.arange(NODES), [1, 2, 3, 1, 4, 1, 2, 1])
X, Y = wl.datasets.two_gaussians(len(OWNERS), dimension=3, variance=4.0, seed=7)
NOISE = ModelNoise(clip=1.0, noise_multiplier=0.5, max_contributions=20)
MECHANISM = wl.privacy.calibrate("clamped-gamma", epsilon=3.0, delta=0.05, bounds=(1.0, 40.0))

PLAN = """
name = "test"
nodes = 8
features = ["a", "b", "c"]
target = "y"
classes = ["no", "yes"]
loss = "logistic"
penalty = 1.0
domain = { ball = 3.0 }
step_size = { constant = 0.02, exponent = 0.75 }
updates = 400
"""
IN_THE_CLEAR = '[privacy]\nmechanism = "in the clear"'
RELEASED = (
    "[privacy]\nmechanism = 'clamped-gamma'\nepsilon = 3.0\ndelta = 0.05\nbounds = [1.0, 40.0]"
)
WALKS: dict[str, tuple[wl.walks.Walk, str]] = {
    "simple": (wl.walks.Simple(laziness=0.2), 'walk = "simple"\nlaziness = 0.2'),
    "uniform": (wl.walks.Uniform(), 'walk = "uniform"'),
    "mini-batches": (wl.walks.Uniform(), 'walk = "uniform"\nbatch = 2'),
    "mean over rows": (wl.walks.Uniform(), 'objective = "mean"\nrows = 15'),
    "mean over nodes": (wl.walks.Uniform(), 'objective = "node-mean"'),
    "weighted": (wl.walks.Weighted(), f'walk = "weighted"\n{IN_THE_CLEAR}'),
    "private weighted": (wl.walks.Weighted(privacy=MECHANISM), f'walk = "weighted"\n{RELEASED}'),
}


def network_of(plan: Plan, streams: Streams, noise: ModelNoise | None = None) -> MemoryNetwork:
    """Each node knows its own rows, and draws its release from its own stream before all else."""
    nodes = []
    for i in range(NODES):
        own = i == OWNERS
        local = LocalUpdate.of_plan(plan, X[own], Y[own], noise=noise, on_grid=False)
        if plan.calibrated_mechanism() is not None:
            released = float(MECHANISM.release(local.smoothness, streams.of(i).walk))
            local = LocalUpdate.of_plan(plan, X[own], Y[own], released, noise, on_grid=False)
        nodes.append(local)
    return MemoryNetwork(nodes, GRAPH, streams)


@pytest.mark.parametrize("noise", [None, NOISE], ids=["exact", "noisy"])
@pytest.mark.parametrize("name", WALKS)
def test_the_network_is_the_simulator_on_the_same_seeds(
    name: str, noise: ModelNoise | None
) -> None:
    if name == "weighted" and noise:
        pytest.skip("refused: what is told in the clear is not protected by noise on the model")
    walk, text = WALKS[name]
    plan = Plan.from_text(PLAN + text)
    problem = wl.Problem(
        X, Y, penalty=1.0, domain=wl.domains.Ball(3.0), node_of_row=OWNERS, objective=plan.objective
    )
    options: dict[str, Any] = {"batch": plan.batch, "model_privacy": noise, "engine": "reference"}
    run = wl.simulate(
        problem, GRAPH, walk, steps=UPDATES, step_size=plan.step_size, seed=SEED,
        mean_importance="estimated", streams="node", records=1, progress=False, **options,
    )  # fmt: skip

    streams = generators(replicate_seed(np.random.SeedSequence(SEED), 0), NODES)
    network = network_of(plan, streams, noise)
    network.run(lambda: network.connected)
    first, model = start(problem, streams.walk)
    network.start_walk(network.nodes[first], model)
    network.run(lambda: network.finished)

    for node in network.nodes:
        final = node.state.record.final
        assert final is not None
        assert final.updates == UPDATES
        # The same numbers in the same order; a matrix product may round by the size of its block.
        np.testing.assert_allclose(final.model, run.models[0], rtol=1e-12, atol=1e-14)
        np.testing.assert_allclose(final.average, run.averages[0], rtol=1e-12, atol=1e-14)
    np.testing.assert_array_equal([node.drawn for node in network.nodes], run.visits)
    if noise is not None:
        contributed = [node.state.record.contributions for node in network.nodes]
        np.testing.assert_array_equal(contributed, run.contributions[0])
        assert max(contributed) == noise.max_contributions
