"""One visit from a node's own knowledge: the estimated mean, state through bytes, and a network."""

from __future__ import annotations

import copy
from typing import Any

import numpy as np
import pytest

import walklearn as wl
from walklearn import walks
from walklearn.arrays import Specs, pack, unpack
from walklearn.privacy.protection import Protection
from walklearn.streams import generators, node_seed, replicate_seed
from walklearn.updates import Saga, Sgd, draw_start
from walklearn.visit import NodeState, Setting, Token, Walker, init_token, visit
from walklearn.walks import view_of

GRAPH = wl.graphs.erdos_renyi(12, 0.4, seed=4, connected="retry")
MECHANISM = wl.privacy.ClampedGamma(theta=4.0, bounds=(1.0, 8.0))
ROWS, BATCH, STEPS = 40, 2, 200
X, Y = wl.datasets.two_gaussians(ROWS, dimension=3, variance=2.0, seed=1)
OWNERS = np.r_[np.arange(12), np.random.default_rng(1).integers(0, 12, ROWS - 12)]
COMMON: dict[str, Any] = {"penalty": 1.0, "domain": wl.domains.Ball(3.0), "aggregate": "node-mean"}
PROBLEM = wl.Problem(X, Y, node_of_row=OWNERS, **COMMON)
STEP = wl.PowerStep(0.1, 0.75)
NOISE = wl.privacy.ModelNoise(clip=2.0, noise_multiplier=0.1, max_contributions=15, protect="node")
IMPORTANCE = np.linspace(1.0, 3.0, 12)
# One of every registered kind; the importance is public, so that the model can be protected.
WALKS: list[walks.Walk] = [
    walks.Simple(reweight="degree"),
    walks.Uniform(laziness=0.1),
    walks.Weighted(IMPORTANCE, public=True),
    walks.NonBacktracking(walks.Weighted(IMPORTANCE, public=True)),
    walks.Jumping(walks.Uniform()),
    walks.Independent(),
    walks.HistoryDriven(walks.Uniform(), alpha=3.0),
    walks.OldestFirst(),
    walks.Tour(),
]
GAP = walks.Simple(reweight="gap")
GAP_WEIGHTED = [GAP, *(wrap(GAP) for wrap in (walks.NonBacktracking, walks.Jumping))]
PARTS = [(Sgd(STEP), Protection()), (Sgd(STEP), NOISE), (Saga(), Protection())]
CASES = [(walk, *parts) for walk in WALKS for parts in PARTS]
CASES += [(walk, *parts) for walk in GAP_WEIGHTED for parts in PARTS[:2]]


def make_walker(
    walk: walks.Walk, update: Any, privacy: Any, objective: Any = PROBLEM, mean: str = "exact"
) -> Walker:
    bound = walk.bind(GRAPH, objective, "exact" if walk.has_gap_weights else mean)
    setting = Setting(objective, bound, update, privacy=privacy, updates=STEPS)
    node, model = draw_start(objective, np.random.default_rng(5))
    return Walker(setting, GRAPH, node, init_token(setting, model))


def through_bytes(specs: Specs, arrays: dict[str, Any]) -> dict[str, Any]:
    return unpack(specs, pack(specs, arrays))


def assert_equal_arrays(one: dict[str, Any], other: dict[str, Any]) -> None:
    assert one.keys() == other.keys()
    for name, array in one.items():
        assert array.dtype == other[name].dtype
        np.testing.assert_array_equal(array, other[name], err_msg=name)


def test_every_registered_walk_is_among_the_cases() -> None:
    shipped = {name for name in walks.WALKS.names if walks.WALKS.import_path_of(name) is None}
    assert {type(walk).name for walk in WALKS} == shipped


@pytest.mark.parametrize("mean", ["exact", "estimated"])
@pytest.mark.parametrize(("walk", "update", "privacy"), CASES, ids=repr)
def test_state_through_bytes_continues_bit_for_bit(
    walk: walks.Walk, update: Any, privacy: Any, mean: str
) -> None:
    """All state is in the declared arrays: packing them at every visit changes no bit."""
    kept = make_walker(walk, update, privacy, mean=mean)
    sent = make_walker(walk, update, privacy, mean=mean)
    setting = kept.setting
    streams = [generators(np.random.SeedSequence(9)) for _ in range(2)]
    for _ in range(60):
        walk_specs, update_specs = setting.token_specs
        token = sent.token
        sent.token = token._replace(
            walk=through_bytes(walk_specs, token.walk),
            update=through_bytes(update_specs, token.update),
        )
        for node, state in sent.states.items():
            parts = zip(setting.node_specs(node), state, strict=True)
            sent.states[node] = NodeState(*(through_bytes(*each) for each in parts))
        outcomes = [
            walker.visit(setting.draw(each.walk, each.noise))
            for walker, each in zip((kept, sent), streams, strict=True)
        ]
        assert outcomes[0][0].node == outcomes[1][0].node
        assert outcomes[0][1] == outcomes[1][1]
    assert (kept.node, kept.token[:3]) == (sent.node, sent.token[:3])
    assert_equal_arrays(kept.token.walk, sent.token.walk)
    assert_equal_arrays(kept.token.update, sent.token.update)
    assert kept.states.keys() == sent.states.keys()
    for node, state in kept.states.items():
        for one, other in zip(state, sent.states[node], strict=True):
            assert_equal_arrays(one, other)


@pytest.mark.parametrize("objective", [PROBLEM, PROBLEM.with_batch(2)], ids=["rows", "batch"])
@pytest.mark.parametrize(("walk", "update", "privacy"), CASES, ids=repr)
def test_a_visit_changes_no_input_and_returns_the_declared_arrays(
    walk: walks.Walk, update: Any, privacy: Any, objective: Any
) -> None:
    walker = make_walker(walk, update, privacy, objective, mean="estimated")
    setting, streams = walker.setting, generators(np.random.SeedSequence(9))
    table = setting.walk.announcements(GRAPH, objective)
    states: dict[int, NodeState] = {}
    node, token = walker.node, walker.token
    for _ in range(40):
        draws = setting.draw(streams.walk, streams.noise)
        assert draws.walk.shape == (walk.draws,)
        assert draws.gradients.shape == (update.gradients, objective.draws)
        state = states.get(node) or setting.init_node(node)

        def walk_state(other: int) -> Any:
            return (states.get(other) or setting.init_node(other)).walk

        view = view_of(
            setting.walk, GRAPH, node, table=table, states=walk_state, visits=token.visits
        )
        given = (token, state, draws)
        before = copy.deepcopy(given)
        new_token, new_state, hop, weight = visit(setting, view, *given)
        for one, other in zip(given[2], before[2], strict=True):
            np.testing.assert_array_equal(one, other)
        for one, other in zip((*token[3:], *state), (*before[0][3:], *before[1]), strict=True):
            assert_equal_arrays(one, other)
        assert weight > 0
        specs = (*setting.token_specs, *setting.node_specs(node))
        for declared, arrays in zip(specs, (*new_token[3:], *new_state), strict=True):
            shapes = [(name, array.shape, array.dtype.str) for name, array in arrays.items()]
            assert shapes == [tuple(spec) for spec in declared]
        assert (new_token.visits, new_token.updates) == (token.visits + 1, token.updates + 1)
        token, states[node], node = new_token, new_state, hop.node


def test_a_visit_of_weight_zero_forwards_the_token_unchanged() -> None:
    class Forward(walks.Uniform):
        def weight(self, view: Any, token: Any, state: Any) -> float:
            return float(view.node % 2)

    walker = make_walker(Forward(), Sgd(STEP), NOISE)
    setting, streams = walker.setting, generators(np.random.SeedSequence(9))
    for _ in range(50):
        node, before = walker.node, walker.token
        _, weight = walker.visit(setting.draw(streams.walk, streams.noise))
        assert walker.token.updates - before.updates == weight == node % 2
        if weight == 0:
            assert_equal_arrays(before.update, walker.token.update)
            assert walker.states[node].privacy["contributions"] == 0
    assert walker.token.visits == 50


def test_the_estimate_tends_to_the_mean_of_the_released_values() -> None:
    """Within 5 standard errors of the chain, exact by its fundamental matrix: fails by chance
    with a probability of 6e-7 (the seed is fixed)."""
    private, source = walks.Weighted(privacy=MECHANISM), np.random.default_rng(1)
    walk = private.sample_release(GRAPH, PROBLEM, source)
    setting = Setting(PROBLEM, walk.bind(GRAPH, PROBLEM, "estimated"), Sgd(STEP))
    generator = np.random.default_rng(2)
    node, model = draw_start(PROBLEM, generator)
    walker = Walker(setting, GRAPH, node, init_token(setting, model))
    for _ in range(20_000):
        walker.visit(setting.draw(generator, generator))
    token = walker.token

    released = walk.release
    shares = walk.stationary(GRAPH)
    P = walk.transition_matrix(GRAPH).toarray()
    centred = 1.0 / released - shares @ (1.0 / released)
    summed = np.linalg.solve(np.eye(12) - P + shares, centred)
    variance = 2.0 * (shares * centred) @ summed - shares @ centred**2
    error = token.walk["inverse_sum"] / token.updates - 1.0 / released.mean()
    assert abs(error) < 5 * np.sqrt(variance / token.updates)
    # The standard error is small beside the value, so that the comparison has power.
    assert 1.0 / released.mean() > 20 * np.sqrt(variance / token.updates)


def test_the_first_weight_is_one_and_a_constant_importance_needs_no_estimate() -> None:
    weighted = make_walker(walks.Weighted(), *PARTS[0], mean="estimated")
    view = view_of(weighted.setting.walk, GRAPH, 7, objective=PROBLEM)
    weight = weighted.setting.walk.weight(view, weighted.token.walk, {})
    assert weight == pytest.approx(1.0, rel=1e-15)
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
        (walks.OldestFirst(), "gaps"),
        (walks.NonBacktracking(GAP), "gaps"),
        (wl.SynchronousGossip(), "has no token"),
    ],
    ids=repr,
)
def test_means_that_no_token_can_estimate_are_refused(walk: Any, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        wl.simulate(PROBLEM, GRAPH, walk, steps=9, step_size=STEP, mean_importance="estimated",
                    engine="reference")  # fmt: skip


class LocalNode:
    """One device: it knows its rows, its number, its neighbours and what they announced."""

    def __init__(self, number: int, seed: np.random.SeedSequence, noise: Any) -> None:
        rows = number == OWNERS
        self.number = number
        problem = wl.Problem(X[rows], Y[rows], node_of_row=[number] * int(rows.sum()), nodes=12,
                             empty_nodes="relay", **COMMON)  # fmt: skip
        self.neighbours = GRAPH.neighbours(number)
        self.streams = generators(node_seed(seed, number))
        walk = walks.Weighted(privacy=MECHANISM)
        degree = len(self.neighbours)
        self.announcement = walk.announce(problem, number, degree, self.streams.walk)
        self.setting = Setting(problem.with_batch(BATCH), walk, Sgd(STEP), privacy=noise)
        self.state = self.setting.init_node(number)
        self.announced: list[tuple[float, ...]] = []

    def visit(self, token: Token) -> tuple[Token, int]:
        def refuse(node: int) -> Any:
            raise AssertionError("a Metropolis walk asks nobody")

        view = walks.View(self.number, 12, token.visits, token.slot, self.neighbours,
                          self.announcement, self.announced, refuse, refuse)  # fmt: skip
        draws = self.setting.draw(self.streams.walk, self.streams.noise)
        token, self.state, hop, _ = visit(self.setting, view, token, self.state, draws)
        return token, hop.node


def test_a_network_of_separate_nodes_gives_the_numbers_of_the_simulator() -> None:
    """Bit for bit: nodes that know only their own rows and their neighbours' announcements."""
    run = wl.simulate(PROBLEM, GRAPH, walks.Weighted(privacy=MECHANISM), steps=STEPS, batch=BATCH,
                      step_size=STEP, seed=6, replicates=2, privacy=NOISE, streams="node",
                      mean_importance="estimated", engine="reference")  # fmt: skip
    seed = replicate_seed(np.random.SeedSequence(6), 1)
    nodes = [LocalNode(number, seed, NOISE) for number in range(12)]
    for node in nodes:
        node.announced = [nodes[j].announcement for j in node.neighbours]
    holder, model = draw_start(PROBLEM, generators(seed).walk)
    setting, messages = nodes[0].setting, 0
    token = init_token(setting, model)
    for _ in range(STEPS):
        token, following = nodes[holder].visit(token)
        messages += following != holder
        holder = following

    assert run.released is not None
    assert run.contributions is not None
    assert run.released[1].tolist() == [node.announcement[1] for node in nodes]
    spent = [int(node.state.privacy["contributions"]) for node in nodes]
    assert run.contributions[1].tolist() == spent
    assert run.messages[1, -1] == messages
    np.testing.assert_array_equal(run.models[1], token.update["model"])
    average = setting.update.average_model(PROBLEM, token.update)
    np.testing.assert_array_equal(run.averages[1], average)


@pytest.mark.parametrize("engine", ["compiled", "reference"])
def test_a_token_may_carry_the_model_alone(engine: Any) -> None:
    X, y = wl.datasets.two_gaussians(6, dimension=2, seed=1)
    arguments: Any = {"steps": 30, "seed": 1, "records": [10, 30], "engine": engine}
    problem, graph, step = wl.Problem(X, y, penalty=1.0), wl.graphs.ring(6), wl.PowerStep(0.01)
    walk, alone = wl.walks.Uniform(), wl.updates.Sgd(step, average=False)
    averaged = wl.simulate(problem, graph, walk, update=wl.updates.Sgd(step), **arguments)
    single = wl.simulate(problem, graph, walk, update=alone, **arguments)
    np.testing.assert_array_equal(single.models, averaged.models)
    np.testing.assert_array_equal(single.averages, single.models)
    np.testing.assert_array_equal(single.average_gap, single.gap)
    assert (averaged.averages != averaged.models).any()
    assert [spec.name for spec in alone.token_arrays(problem)] == ["model"]
