"""The network in memory is the simulator on the same seeds, and visits nodes by the law."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from scipy import stats

import walklearn as wl
from tests.node.memory_network import MemoryNetwork
from walklearn.node.agreement.plan import Plan
from walklearn.node.protocol.learner import Learner
from walklearn.node.protocol.record import Place, Record
from walklearn.privacy.model_noise import ModelNoise
from walklearn.streams import Streams, draw_start, generators, replicate_seed

NODES, UPDATES, SEED = 8, 400, 5
VISITS = 8_000
GRAPH = wl.graphs.erdos_renyi(NODES, 0.4, seed=2)
OWNERS = np.repeat(np.arange(NODES), [1, 2, 3, 1, 4, 1, 2, 1])
X, Y = wl.datasets.two_gaussians(len(OWNERS), dimension=3, variance=4.0, seed=7)
NOISE = ModelNoise(clip=1.0, noise_multiplier=0.5, max_contributions=20, protect="node")
MECHANISM = wl.privacy.calibrate("clamped-gamma", epsilon=3.0, delta=0.05, bounds=(1.0, 40.0))

STEPS = "step_size = { constant = 0.02, exponent = 0.75 }"
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
# Here a visit takes no time, so a walk that stays is faster than any real one.
"""
IN_THE_CLEAR = '[privacy]\nmechanism = "in the clear"'
RELEASED = (
    "[privacy]\nprotect = 'node'\nmodel = 'in the clear'\nmechanism = 'clamped-gamma'\n"
    "epsilon = 3.0\ndelta = 0.05\nbounds = [1.0, 40.0]"
)
WALKS: dict[str, tuple[wl.walks.Walk, str]] = {
    "simple": (wl.walks.Simple(laziness=0.2), 'walk = "simple"\nlaziness = 0.2'),
    "uniform": (wl.walks.Uniform(), 'walk = "uniform"'),
    "mini-batches": (wl.walks.Uniform(), 'walk = "uniform"\nbatch = 2'),
    "mean over rows": (wl.walks.Uniform(), 'aggregate = "mean"\nrows = 15'),
    "mean over nodes": (wl.walks.Uniform(), 'aggregate = "node-mean"'),
    "memory": (wl.walks.Uniform(), 'update = "saga"'),
    "memory, simple walk": (wl.walks.Simple(), 'update = "saga"\nwalk = "simple"'),
    "memory, mini-batches": (wl.walks.Uniform(), 'update = "saga"\nbatch = 2'),
    "weighted": (wl.walks.Weighted(), f'walk = "weighted"\n{IN_THE_CLEAR}'),
    "private weighted": (wl.walks.Weighted(privacy=MECHANISM), f'walk = "weighted"\n{RELEASED}'),
}


def network_of(plan: Plan, streams: Streams, noise: ModelNoise | None = None) -> MemoryNetwork:
    """Each node knows its own rows, and draws its release from its own stream before all else."""
    nodes = []
    for i in range(NODES):
        own = i == OWNERS
        learner = Learner.of_plan(plan, X[own], Y[own], noise=noise)
        if plan.mechanism is not None:
            released = float(MECHANISM.release(learner.smoothness, streams.of(i).walk))
            learner = Learner.of_plan(plan, X[own], Y[own], released, noise)
        nodes.append(learner)
    return MemoryNetwork(nodes, GRAPH, streams)


SAME = [(name, None) for name in WALKS]
# What the weighted walk tells in the clear is not protected by noise on the model: refused.
# Nor is what an update with memory carries.
SAME += [(name, NOISE) for name in WALKS if name != "weighted" and "memory" not in name]


@pytest.mark.parametrize(("name", "noise"), SAME)
def test_the_network_is_the_simulator_on_the_same_seeds(
    name: str, noise: ModelNoise | None
) -> None:
    walk, text = WALKS[name]
    plan = Plan.from_text((PLAN.replace(STEPS, "") if "update" in text else PLAN) + text)
    problem = wl.Problem(
        X, Y, penalty=1.0, domain=wl.domains.Ball(3.0), node_of_row=OWNERS, aggregate=plan.aggregate
    )
    run = wl.simulate(
        problem, GRAPH, walk, steps=UPDATES, update=plan.memory or wl.updates.Sgd(plan.step_size),
        seed=SEED, records=1, mean_importance="exact" if plan.memory else "estimated",
        streams="node", batch=plan.batch, privacy=noise, engine="reference", progress=False,
    )  # fmt: skip

    streams = generators(replicate_seed(np.random.SeedSequence(SEED), 0), NODES)
    network = network_of(plan, streams, noise)
    network.run(lambda: network.connected)
    first, model = draw_start(problem, streams.walk)
    network.start_walk(network.nodes[first], model)
    network.run(lambda: network.finished)

    for node in network.nodes:  # bit for bit
        final = node.state.record.final
        assert final is not None
        assert final.updates == UPDATES
        np.testing.assert_array_equal(final.model, run.models[0])
        np.testing.assert_array_equal(final.average, run.averages[0])
    np.testing.assert_array_equal([node.drawn for node in network.nodes], run.visits)
    if noise is not None:
        assert run.contributions is not None
        contributed = [node.state.record.contributions for node in network.nodes]
        np.testing.assert_array_equal(contributed, run.contributions[0])
        assert max(contributed) == noise.max_contributions


LAW_PLAN = f"""
name = "law"
nodes = 7
features = ["a"]
target = "y"
loss = "squared"
penalty = 1.0
domain = {{ ball = 3.0 }}
step_size = {{ constant = 0.001 }}
updates = {VISITS}
walk = "weighted"
[privacy]
mechanism = "in the clear"
"""


@pytest.mark.parametrize("silent", [None, 6], ids=["all answer", "one is silent"])
def test_visits_of_a_long_run_follow_the_law(silent: int | None) -> None:
    """A chi-square test that allows for the correlation of visits.

    The shares v of n visits of a chain with law π are asymptotically normal about π with the
    covariance Σ/n, Σ = ΠZ + ZᵀΠ − Π − ππᵀ, Z = (I − P + 1πᵀ)⁻¹; so n (v − π)ᵀ Σ⁺ (v − π) is
    chi-square. The bound is passed by chance once in a million.
    """
    graph = wl.graphs.erdos_renyi(7, 0.5, seed=3)
    importance = np.array([1.0, 2.0, 3.0, 4.0, 1.5, 2.5, 3.5])
    plan = Plan.from_text(LAW_PLAN)
    nodes = [Learner.of_plan(plan, [[1.0]], [1.0], each) for each in importance]
    network = MemoryNetwork(nodes, graph, generators(np.random.SeedSequence(11), 7))
    if silent is not None:
        network.crash(network.nodes[silent])
    live = [node for i, node in enumerate(network.nodes) if i != silent]
    network.run(lambda: network.now > 1.0)
    network.start_walk(network.nodes[0], np.zeros(1))
    network.run(lambda: any(node.state.record.final is not None for node in live))

    inside = np.array([i for i in range(7) if i != silent])
    moves = wl.walks.Weighted(importance).transition_matrix(graph).toarray()
    moves = moves[np.ix_(inside, inside)]
    moves[np.diag_indices(len(inside))] += 1.0 - moves.sum(axis=1)
    counts = np.array([node.drawn for node in live])
    assert counts.sum() == VISITS
    threshold = stats.chi2.isf(1e-6, len(inside) - 1)
    law = importance[inside] / importance[inside].sum()
    assert chi_square(counts, law, moves) < threshold
    # The test has teeth: the same counts at other nodes do not pass.
    assert chi_square(np.roll(counts, 1), law, moves) > 10 * threshold


def chi_square(counts: Any, law: Any, moves: Any) -> float:
    ones = np.ones_like(law)
    fundamental = np.linalg.inv(np.eye(len(law)) - moves + np.outer(ones, law))
    weighted = law[:, None] * fundamental
    covariance = weighted + weighted.T - np.diag(law) - np.outer(law, law)
    gap = counts / counts.sum() - law
    return float(counts.sum() * gap @ np.linalg.pinv(covariance, rcond=1e-10) @ gap)


def test_a_walk_that_remembers_arrives_whatever_happens_to_it() -> None:
    """Cut off, crashed and begun again from older copies on the way, it ends at w*."""
    plan = Plan.from_text(
        PLAN.replace(STEPS, 'update = "saga"').replace("updates = 400", "updates = 6000")
    )
    problem = wl.Problem(X, Y, penalty=1.0, domain=wl.domains.Ball(3.0), node_of_row=OWNERS)
    network = network_of(plan, generators(np.random.SeedSequence(3), NODES))
    network.run(lambda: network.connected)
    network.start_walk(network.nodes[0], np.zeros(3))
    epochs = set()
    for trouble in range(4):
        goal = 600 * (trouble + 1)
        network.run(lambda: network.connected)  # or the two from before would still be alone
        network.run(lambda goal=goal: furthest(network.nodes) >= goal)  # type: ignore[misc]
        # The token is at one of the two that saw it last.
        *others, one, two = sorted(network.nodes, key=lambda node: updates_of(node))
        links = {frozenset((a.fingerprint, b.fingerprint)) for a in (one, two) for b in others}
        network.cut |= links
        if trouble % 2:
            network.crash(one)
            network.crash(two)
        network.run(lambda nodes=others, goal=goal: furthest(nodes) >= goal + 200)  # type: ignore[misc]
        epochs |= {each.state.record.kept.epoch for each in others if each.state.record.kept}
        network.cut.clear()
        for each in (one, two):
            if each.running is None:
                network.restart(each)
    network.run(lambda: network.finished)
    assert len(epochs) > 1, "the walk was begun again on the way"
    for node in network.nodes:
        final = node.state.record.final
        assert final is not None
        error = np.linalg.norm(final.model - problem.solution.model)
        assert error < 1e-6 * np.linalg.norm(problem.solution.model)


@pytest.mark.parametrize("disk", ["new", "from before the first visit", "of the same epoch"])
def test_a_walk_that_remembers_arrives_though_a_node_has_forgotten(disk: str) -> None:
    """Its gradient is in the token's sum, and it does not know which: a new epoch begins."""
    plan = Plan.from_text(
        PLAN.replace(STEPS, 'update = "saga"').replace("updates = 400", "updates = 2500")
    )
    problem = wl.Problem(X, Y, penalty=1.0, domain=wl.domains.Ball(3.0), node_of_row=OWNERS)
    network = network_of(plan, generators(np.random.SeedSequence(3), NODES))
    network.run(lambda: network.connected)
    node = network.nodes[4]
    network.flush(node)
    backup = Record() if disk == "new" else node.written
    network.start_walk(network.nodes[0], np.zeros(3))
    if disk == "of the same epoch":
        network.run(lambda: node.drawn >= 2 and node.written.place is Place.GONE)
        backup = node.written
    network.run(lambda: furthest(network.nodes) >= 500 and node.written.place is Place.GONE)
    assert node.written.kept is not None
    if backup.kept is not None:
        assert backup.kept.epoch == node.written.kept.epoch
        assert np.any(backup.kept.state["slopes"] != node.written.kept.state["slopes"])
    network.crash(node)
    node.written = backup
    network.restart(node)
    visits = [each.drawn for each in network.nodes]
    network.run(lambda: network.finished)
    shares = np.array([each.drawn for each in network.nodes]) - visits
    assert shares.min() > 50  # the token went round as before
    final = node.state.record.final
    assert final is not None
    error = np.linalg.norm(final.model - problem.solution.model)
    assert error < 1e-6 * np.linalg.norm(problem.solution.model)


def test_a_walk_that_remembers_goes_on_without_a_node_that_is_gone_for_good() -> None:
    """It cannot wait for all nodes, and ends at the minimum of Σ f_i over the others."""
    plan = Plan.from_text(
        PLAN.replace(STEPS, 'update = "saga"').replace("updates = 400", "updates = 3000")
    )
    network = network_of(plan, generators(np.random.SeedSequence(3), NODES))
    network.run(lambda: network.connected)
    network.start_walk(network.nodes[0], np.zeros(3))
    network.run(lambda: furthest(network.nodes) >= 100)
    network.run(lambda: any(node.state.wants_visit for node in network.nodes))
    (gone,) = (number for number in range(NODES) if network.nodes[number].state.wants_visit)
    network.crash(network.nodes[gone])
    left = [node for node in network.nodes if node is not network.nodes[gone]]
    network.run(lambda: all(node.state.record.final is not None for node in left))
    there = gone != OWNERS
    problem = wl.Problem(
        X[there], Y[there], penalty=len(left) / NODES, domain=wl.domains.Ball(3.0),
        node_of_row=np.unique(OWNERS[there], return_inverse=True)[1],
    )  # fmt: skip
    for node in left:
        final = node.state.record.final
        assert final is not None
        assert final.line.counter > 1
        error = np.linalg.norm(final.model - problem.solution.model)
        assert error < 1e-6 * np.linalg.norm(problem.solution.model)


def updates_of(node: Any) -> int:
    token = node.state.record.newest_model
    return 0 if token is None else int(token.updates)


def furthest(nodes: Any) -> int:
    return max(map(updates_of, nodes))
