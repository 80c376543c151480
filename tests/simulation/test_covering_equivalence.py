"""The compiled twins of gap weights and of covering walks give the numbers of the reference."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from scipy.sparse import csr_array

import walklearn as wl
from tests.golden import cases
from tests.simulation.test_equivalence import LOSSES, assert_same, make_problem
from walklearn import updates, walks
from walklearn.objectives import Problem
from walklearn.simulation import compiled_batches
from walklearn.simulation.batches import Position, ReferenceWalks
from walklearn.simulation.compiled_batches import CompiledMemory, CompiledWalks
from walklearn.simulation.kernels.visits.sgd import SHORT
from walklearn.streams import generators
from walklearn.visit import Setting

GAPS = walks.Simple(reweight="gap")
COVERING: list[Any] = [walks.OldestFirst(), walks.Tour()]
WALKS: list[Any] = [
    *COVERING,
    GAPS,
    walks.Simple(reweight="gap", laziness=0.3),
    walks.NonBacktracking(GAPS),
    walks.Jumping(GAPS, probability=0.3),
    walks.HistoryDriven(GAPS, alpha=2.0),
]
GADGET = ((0, 1), (0, 3), (0, 4), (2, 3), (2, 4), (3, 5), (4, 5))


def chain_of_gadgets(copies: int) -> wl.Graph:
    """A graph on which the oldest neighbour alone takes exponential time."""
    inside = [(6 * copy + i, 6 * copy + j) for copy in range(copies) for i, j in GADGET]
    between = [(6 * copy + 2, 6 * copy + 9) for copy in range(copies - 1)]
    return wl.graphs.from_edges(inside + between)


GRAPHS = {
    "gadgets": chain_of_gadgets(10),
    "random": wl.graphs.erdos_renyi(25, 0.2, seed=1, connected="retry"),
    "grid": wl.graphs.grid(5, 6),
    "ring": wl.graphs.ring(9),
    "star": wl.graphs.star(12),
    "two cliques": wl.graphs.barbell(6, 3),
    "two nodes": wl.graphs.complete(2),
    "one node": wl.graphs.complete(1),
}


def problem_on(graph: wl.Graph) -> Problem:
    generator, nodes = np.random.default_rng(3), graph.node_count
    y = np.where(generator.random(nodes) < 0.5, -1.0, 1.0)
    return Problem(generator.standard_normal((nodes, 3)), y, penalty=0.5)


def batches(
    setting: Setting, graph: wl.Graph, starts: list[Position] | None = None, count: int = 2
) -> list[Any]:
    """Return batches of both engines with the same streams."""
    seeds = np.random.SeedSequence(5).spawn(count)
    compiled = CompiledMemory if setting.update.converges else CompiledWalks
    return [
        each(setting, graph, [generators(seed) for seed in seeds], starts)
        for each in (compiled, ReferenceWalks)
    ]


def assert_same_positions(one: Any, other: Any) -> None:
    """Nodes, messages and the walk's arrays are the same exactly; models up to rounding."""
    np.testing.assert_array_equal(one.visits, other.visits)
    for position, expected in zip(one.positions, other.positions, strict=True):
        assert (position.node, position.messages) == (expected.node, expected.messages)
        assert position.token.walk.keys() == expected.token.walk.keys()
        for name, array in expected.token.walk.items():
            assert position.token.walk[name].dtype == array.dtype
            np.testing.assert_array_equal(position.token.walk[name], array, err_msg=name)
    np.testing.assert_allclose(one.models, other.models, rtol=1e-10, atol=1e-10)


@pytest.mark.parametrize("graph", GRAPHS.values(), ids=GRAPHS)
@pytest.mark.parametrize("walk", WALKS, ids=repr)
def test_every_walk_on_every_graph(walk: Any, graph: wl.Graph) -> None:
    if graph.node_count == 1 and walk not in COVERING:
        walk = GAPS
    setting = Setting(problem_on(graph), walk, updates.Sgd(wl.PowerStep(0.05)))
    compiled, reference = batches(setting, graph)
    for _ in range(6):
        for batch in (compiled, reference):
            batch.advance(12 * graph.node_count)
        assert_same_positions(compiled, reference)


def test_tokens_continue_in_the_middle_of_a_search() -> None:
    """The parents are lost, so a search ends at the first node that needs one."""
    graph = GRAPHS["gadgets"]
    setting = Setting(problem_on(graph), walks.OldestFirst(), updates.Sgd(wl.PowerStep(0.05)))
    before, _ = batches(setting, graph, count=1)
    searches = 0
    for _ in range(12):
        before.advance(67)
        searches += bool(before.positions[0].token.walk["strict"])
        compiled, reference = batches(setting, graph, before.positions, count=1)
        for batch in (compiled, reference):
            batch.advance(150)
        assert_same_positions(compiled, reference)
    assert searches > 2


@pytest.mark.parametrize("graph", [GRAPHS["gadgets"], wl.graphs.grid(1, 30)], ids=repr)
@pytest.mark.parametrize("age", [0, 5, 40, 149])
def test_searches_that_no_walk_began(age: int, graph: wl.Graph) -> None:
    """Rounds go on after a search without parents, and after one that takes too long."""
    setting = Setting(problem_on(graph), walks.OldestFirst(), updates.Sgd(wl.PowerStep(0.05)))
    before, _ = batches(setting, graph)
    before.advance(150)
    starts = []
    for position in before.positions:
        changed = {"strict": np.bool_(True), "start": np.int32(150 - age)}
        token = position.token._replace(walk=position.token.walk | changed)
        starts.append(position._replace(token=token))
    pairs = batches(setting, graph, starts)
    for _ in range(8):
        for batch in pairs:
            batch.advance(20)
        assert_same_positions(*pairs)


@pytest.mark.parametrize("walk", [*COVERING, GAPS], ids=repr)
def test_tokens_continue_in_another_batch(walk: Any) -> None:
    graph = GRAPHS["random"]
    setting = Setting(problem_on(graph), walk, updates.Sgd(wl.PowerStep(0.05)))
    starts = None
    for steps in (1, 10, 57, 200):
        compiled, reference = batches(setting, graph, starts)
        for batch in (compiled, reference):
            batch.advance(steps)
        assert_same_positions(compiled, reference)
        starts = compiled.positions


@pytest.mark.parametrize("walk", COVERING, ids=repr)
def test_tokens_of_another_walk_start_with_an_ordinary_round(walk: Any) -> None:
    """They carry no stamps, but many visits."""
    graph = GRAPHS["random"]
    setting = Setting(problem_on(graph), walks.Uniform(), updates.Sgd(wl.PowerStep(0.05)))
    before, _ = batches(setting, graph)
    before.advance(200)
    setting = Setting(problem_on(graph), walk, setting.update)
    pairs = batches(setting, graph, before.positions)
    for steps in (1, 60):
        for batch in pairs:
            batch.advance(steps)
        assert_same_positions(*pairs)
        assert not any(each.token.walk.get("strict") for each in pairs[0].positions)


def test_stamps_keep_gap_weights_from_one_batch_to_the_next() -> None:
    graph = GRAPHS["random"]
    setting = Setting(problem_on(graph), walks.OldestFirst(), updates.Sgd(wl.PowerStep(0.05)))
    for batch_class in (CompiledWalks, ReferenceWalks):
        streams = [[generators(np.random.SeedSequence(7))] for _ in range(2)]
        whole = batch_class(setting, graph, streams[0])
        whole.advance(120)
        first = batch_class(setting, graph, streams[1])
        first.advance(70)
        second = batch_class(setting, graph, streams[1], first.positions)
        second.advance(50)
        np.testing.assert_allclose(second.models, whole.models, rtol=1e-12)


@pytest.mark.parametrize("columns", [4, 2 * SHORT])
@pytest.mark.parametrize("cache", [compiled_batches.CACHE_BYTES, 0])
@pytest.mark.parametrize("walk", WALKS, ids=repr)
def test_short_and_long_rows_in_and_out_of_the_cache(
    walk: Any, cache: int, columns: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each has a loop of its own."""
    monkeypatch.setattr(compiled_batches, "CACHE_BYTES", cache)
    assert_same(make_problem(columns=columns), walk)
    assert_same(make_problem(columns=columns), walk, streams="node")


@pytest.mark.parametrize("walk", [*COVERING, walks.NonBacktracking(GAPS)], ids=repr)
def test_every_kind_of_problem(walk: Any) -> None:
    """Many rows, mini-batches, classes, sparse rows, relays, a box and single precision."""
    dense = make_problem(rows=40)
    sparse = Problem(csr_array(np.where(np.abs(dense.X) < 0.5, 0.0, dense.X)), dense.y,
                     penalty=0.5, node_of_row=dense.node_of_row)  # fmt: skip
    for problem in (dense, sparse, make_problem(LOSSES[4], rows=40)):
        assert_same(problem, walk)
        assert_same(problem, walk, batch=2, streams="node")
    assert_same(cases.relays(), walk)
    assert_same(make_problem(domain=wl.domains.Box(-0.2, 0.3)), walk)
    assert_same(make_problem(dtype=np.float32), walk, tolerance=2e-4)


@pytest.mark.parametrize("walk", [*COVERING, GAPS], ids=repr)
def test_noise_on_the_model(walk: Any) -> None:
    """The weight scales the step, outside clip and noise; some nodes spend their budget."""
    for noise in (cases.NODE_NOISE, cases.ROW_NOISE):
        assert_same(make_problem(rows=40), walk, privacy=noise)
    assert_same(make_problem(), walk, privacy=cases.NODE_NOISE, streams="node")


@pytest.mark.parametrize("walk", COVERING, ids=repr)
@pytest.mark.parametrize("cache", [compiled_batches.CACHE_BYTES, 0])
def test_updates_with_memory(walk: Any, cache: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(compiled_batches, "CACHE_BYTES", cache)
    dense = make_problem(domain=wl.domains.Everywhere())
    sparse = Problem(csr_array(np.where(np.abs(dense.X) < 0.5, 0.0, dense.X)), dense.y, penalty=0.5)
    for problem in (dense, sparse, make_problem(rows=40)):
        assert_same(problem, walk, 1e-9, update=updates.Saga())


@settings(max_examples=25, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(seed=st.integers(0, 2**32), walk=st.sampled_from(WALKS), is_split=st.booleans())
def test_same_path_on_random_graphs(seed: int, walk: Any, is_split: bool) -> None:
    """Sparse graphs, on which rounds are overdue more often."""
    graph = wl.graphs.erdos_renyi(12, 0.2, seed=seed, connected="largest")
    if graph.node_count == 1:
        return
    setting = Setting(problem_on(graph), walk, updates.Sgd(wl.PowerStep(0.05)))
    pairs = batches(setting, graph)
    for batch in pairs:
        batch.advance(150)
    assert_same_positions(*pairs)
    if is_split:
        pairs = batches(setting, graph, pairs[0].positions)
        for batch in pairs:
            batch.advance(100)
        assert_same_positions(*pairs)
