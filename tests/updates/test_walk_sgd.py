"""A visit from what a node knows: the estimated mean, own streams, and a network played by hand."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import walklearn as wl
from walklearn import walks
from walklearn.updates import Sgd, walk_sgd
from walklearn.updates.random_streams import generators, node_seed, replicate_seed
from walklearn.updates.sgd import start
from walklearn.walks.proposal import accepts, propose, score

GRAPH = wl.graphs.erdos_renyi(12, 0.4, seed=4, connected="retry")
MECHANISM = wl.privacy.ClampedGamma(theta=4.0, bounds=(1.0, 8.0))
ROWS, BATCH, STEPS = 40, 2, 200
X, Y = wl.datasets.two_gaussians(ROWS, dimension=3, variance=2.0, seed=1)
OWNERS = np.r_[np.arange(12), np.random.default_rng(1).integers(0, 12, ROWS - 12)]
COMMON: dict[str, Any] = {"penalty": 1.0, "domain": wl.domains.Ball(3.0), "aggregate": "node-mean"}
PROBLEM = wl.Problem(X, Y, node_of_row=OWNERS, **COMMON)
STEP = wl.PowerStep(0.1, 0.75)


def test_the_estimate_tends_to_the_mean_of_what_was_released() -> None:
    """Within 5 standard errors of the chain, exact by its fundamental matrix: fails by chance
    with a probability of 6e-7 (the seed is fixed)."""
    walk = walks.Weighted(privacy=MECHANISM).realise(GRAPH, PROBLEM, np.random.default_rng(1))
    setting = walk_sgd.WalkSetting(PROBLEM, GRAPH, walk, Sgd(STEP), mean_importance="estimated")
    generator = np.random.default_rng(2)
    token = walk_sgd.init(setting, generator)
    for u in generator.random(20_000):
        token, _ = walk_sgd.step(setting, token, np.array([u]))

    released = walk.visit_weights(GRAPH)
    law = walk.stationary(GRAPH)
    P = walk.transition_matrix(GRAPH).toarray()
    centred = 1.0 / released - law @ (1.0 / released)
    summed = np.linalg.solve(np.eye(12) - P + law, centred)
    variance = 2.0 * (law * centred) @ summed - law @ centred**2
    error = token.inverse_importance_sum / token.updates - 1.0 / released.mean()
    assert abs(error) < 5 * np.sqrt(variance / token.updates)
    assert 1.0 / released.mean() > 20 * np.sqrt(variance / token.updates)  # and that says something


def test_the_first_scale_is_one_and_a_constant_importance_needs_no_estimate() -> None:
    token = walk_sgd.token_at(0, np.zeros(3))
    assert walk_sgd.estimated_scale(token, 7.0)[1] == pytest.approx(1.0, rel=1e-15)
    for walk in (walks.Uniform(), walks.Simple(), walks.NonBacktracking()):
        runs = [
            wl.simulate(PROBLEM, GRAPH, walk, steps=STEPS, step_size=STEP, seed=1,
                        mean_importance=mean)
            for mean in ("exact", "estimated")
        ]  # fmt: skip
        np.testing.assert_allclose(runs[0].models, runs[1].models, rtol=1e-12)
        assert runs[1].spec["mean_importance"] == "estimated"


@pytest.mark.parametrize(
    ("walk", "message"),
    [
        (walks.Uniform(normalise=True), "harmonic"),
        (walks.Weighted(privacy=MECHANISM, reweight="as-printed"), "true L_i"),
        (walks.Jumping(walks.Uniform(normalise=True)), "harmonic"),
        (wl.SynchronousGossip(), "has none"),
    ],
    ids=repr,
)
def test_means_that_no_token_can_estimate_are_refused(walk: Any, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        wl.simulate(PROBLEM, GRAPH, walk, steps=9, step_size=STEP, mean_importance="estimated")


class LocalNode:
    """One device: it knows its rows, its number, its neighbours and what they announced."""

    def __init__(self, number: int, seed: np.random.SeedSequence, noise: Any) -> None:
        own = number == OWNERS
        self.number = number
        self.problem = wl.Problem(X[own], Y[own], node_of_row=[number] * int(own.sum()), nodes=12,
                                  empty_nodes="relay", **COMMON)  # fmt: skip
        self.neighbours = GRAPH.neighbours(number).tolist()
        self.streams = generators(node_seed(seed, number))
        smoothness = self.problem.smoothness_constants[number]
        self.released = float(MECHANISM.release(smoothness, self.streams.walk))
        self.announced: dict[int, tuple[int, float]] = {}
        self.noise, self.contributions = noise, 0

    def visit(self, token: walk_sgd.Token) -> walk_sgd.Token:
        uniforms = self.streams.walk.random(1 + BATCH)
        token, scale = walk_sgd.estimated_scale(token, self.released)
        token, _ = walk_sgd.improve(self.problem, STEP, token, scale, uniforms[1:], self.protect)
        proposal = propose(uniforms[0], len(self.neighbours))
        if proposal is None:
            return token
        other = self.neighbours[proposal.place]
        degree, released = self.announced[other]
        own = score(self.released, len(self.neighbours))
        moves = accepts(proposal, own, score(released, degree))
        return token._replace(node=other, messages=token.messages + 1) if moves else token

    def protect(
        self, problem: wl.Problem, node: int, model: np.ndarray, draws: np.ndarray
    ) -> np.ndarray | None:
        normal = self.streams.noise.standard_normal(model.size)
        if self.contributions >= self.noise.max_contributions:
            return None
        self.contributions += 1
        return self.noise.protected(problem, node, model, draws, normal=normal)


def test_a_network_played_by_hand_is_the_simulator() -> None:
    """Bit for bit: nodes that know their own rows and their neighbours' announcements only."""
    noise = wl.privacy.ModelNoise(
        clip=2.0, noise_multiplier=0.1, max_contributions=15, protect="node"
    )
    run = wl.simulate(PROBLEM, GRAPH, walks.Weighted(privacy=MECHANISM), steps=STEPS, batch=BATCH,
                      step_size=STEP, seed=6, replicates=2, model_privacy=noise, streams="node",
                      mean_importance="estimated", engine="reference")  # fmt: skip
    seed = replicate_seed(np.random.SeedSequence(6), 1)
    nodes = [LocalNode(number, seed, noise) for number in range(12)]
    for node in nodes:
        for j in node.neighbours:
            node.announced[j] = (len(nodes[j].neighbours), nodes[j].released)
    token = walk_sgd.token_at(*start(PROBLEM, generators(seed).walk))
    for _ in range(STEPS):
        token = nodes[token.node].visit(token)

    assert run.released is not None
    assert run.contributions is not None
    assert run.released[1].tolist() == [node.released for node in nodes]
    assert run.contributions[1].tolist() == [node.contributions for node in nodes]
    assert run.messages[1, -1] == token.messages
    np.testing.assert_array_equal(run.models[1], token.model)
    np.testing.assert_array_equal(run.averages[1], token.average)


@pytest.mark.parametrize("engine", ["compiled", "reference"])
def test_a_token_may_carry_the_model_alone(engine):
    X, y = wl.datasets.two_gaussians(6, dimension=2, seed=1)
    arguments = {"steps": 30, "seed": 1, "records": [10, 30], "engine": engine}
    problem, graph, step = wl.Problem(X, y, penalty=1.0), wl.graphs.ring(6), wl.PowerStep(0.01)
    walk = wl.walks.Uniform()
    both = wl.simulate(problem, graph, walk, update=wl.updates.Sgd(step), **arguments)
    alone = wl.simulate(
        problem, graph, walk, update=wl.updates.Sgd(step, average=False), **arguments
    )
    np.testing.assert_array_equal(alone.models, both.models)
    np.testing.assert_array_equal(alone.averages, alone.models)
    np.testing.assert_array_equal(alone.average_gap, alone.gap)
    assert (both.averages != both.models).any()


def test_what_is_not_carried_is_not_in_the_token():
    X, y = wl.datasets.two_gaussians(6, dimension=2, seed=1)
    setting = walk_sgd.WalkSetting(
        wl.Problem(X, y), wl.graphs.ring(6), wl.walks.Uniform(),
        wl.updates.Sgd(wl.PowerStep(0.01), average=False),
    )  # fmt: skip
    token = walk_sgd.init(setting, np.random.default_rng(1))
    for _ in range(5):
        token, _ = walk_sgd.step(setting, token, np.array([0.7]))
    assert token.updates == 5
    assert not token.weighted_sum.any()
    assert token.step_size_sum == 0.0
