"""The kernels of updates with memory give the numbers of the reference.

The path of a token must be the same exactly; models may differ by the rounding of sums that are
added up in another order.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from numba import njit
from scipy.sparse import csr_array

import walklearn as wl
from tests.golden import cases
from tests.simulation import test_equivalence
from tests.simulation.test_equivalence import DOMAINS, GRAPH, LOSSES, make_problem
from walklearn import updates, walks
from walklearn.objectives import Problem
from walklearn.simulation import compiled_batches
from walklearn.simulation.batches import Position, ReferenceWalks
from walklearn.simulation.compiled_batches import CompiledMemory
from walklearn.simulation.kernels.line_search import search_row
from walklearn.simulation.kernels.losses import BuiltIn, may_contradict
from walklearn.simulation.kernels.visits.sgd import SHORT
from walklearn.streams import generators, replicate_seed
from walklearn.visit import Setting

UPDATES: list[Any] = [updates.Saga(), updates.Saga(0.01)]  # type: ignore[arg-type]


def assert_same(
    problem: Problem, update: Any, method: Any = None, tolerance: float = 1e-9, **options: Any
) -> None:
    settings = {"steps": 120, "replicates": 2, "records": 7, **options}
    test_equivalence.assert_same(
        problem, method or walks.Simple(), tolerance, update=update, **settings
    )


@pytest.mark.parametrize("loss", LOSSES, ids=repr)
@pytest.mark.parametrize("update", UPDATES, ids=repr)
def test_every_loss(update: Any, loss: Any) -> None:
    assert_same(make_problem(loss, DOMAINS[0]), update)


@pytest.mark.parametrize("columns", [4, 2 * SHORT])
@pytest.mark.parametrize("cache", [compiled_batches.CACHE_BYTES, 0])
@pytest.mark.parametrize(
    "method", [walks.Weighted(), walks.NonBacktracking(), walks.Jumping(), walks.HistoryDriven()],
    ids=repr,
)  # fmt: skip
@pytest.mark.parametrize("update", UPDATES, ids=repr)
def test_short_and_long_rows_in_and_out_of_the_cache(
    update: Any, method: Any, cache: int, columns: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each has a loop of its own."""
    monkeypatch.setattr(compiled_batches, "CACHE_BYTES", cache)
    assert_same(make_problem(columns=columns), update, method, streams="node")
    assert_same(make_problem(columns=columns), update, method)


@pytest.mark.parametrize("domain", DOMAINS[1:], ids=repr)
@pytest.mark.parametrize("loss", [LOSSES[0], LOSSES[4]], ids=repr)
@pytest.mark.parametrize("update", UPDATES, ids=repr)
def test_every_domain(update: Any, loss: Any, domain: Any) -> None:
    assert_same(make_problem(loss, domain), update)
    assert_same(make_problem(loss, domain, rows=40), update, batch=3)


@pytest.mark.parametrize("loss", [LOSSES[1], LOSSES[4]], ids=repr)
@pytest.mark.parametrize("batch", [None, 1, 3])
@pytest.mark.parametrize("update", UPDATES, ids=repr)
def test_many_rows_and_mini_batches(update: Any, batch: int | None, loss: Any) -> None:
    assert_same(make_problem(loss, rows=40, aggregate="mean"), update, batch=batch)


@pytest.mark.parametrize("update", UPDATES, ids=repr)
def test_relays_own_streams_sparse_rows_and_single_precision(update: Any) -> None:
    assert_same(cases.relays(), update, walks.Weighted())
    assert_same(make_problem(rows=40), update, walks.Jumping(), streams="node", batch=2)
    assert_same(make_problem(), update, walks.Uniform(), streams="node")
    dense = make_problem(rows=40)
    sparse = Problem(csr_array(np.where(np.abs(dense.X) < 0.5, 0.0, dense.X)), dense.y, penalty=0.5,
                     node_of_row=dense.node_of_row)  # fmt: skip
    assert_same(sparse, update)
    assert_same(make_problem(dtype=np.float32), update, tolerance=2e-4)
    assert_same(make_problem(rows=40, dtype=np.float32), update, tolerance=2e-4)


@pytest.mark.parametrize("loss", LOSSES[:4], ids=repr)
@pytest.mark.parametrize("update", UPDATES, ids=repr)
def test_one_sparse_row_per_node_costs_its_entries_and_gives_the_same(
    update: Any, loss: Any
) -> None:
    dense = make_problem(loss)
    thinned = csr_array(np.where(np.abs(dense.X) < 0.5, 0.0, dense.X))
    for penalty in (0.0, 0.5):
        assert_same(Problem(thinned, dense.y, loss=loss, penalty=penalty + 1e-3), update)


def test_factors_are_taken_in_now_and_then_wherever_a_call_ends() -> None:
    """The step is so long that the factor of w falls by a tenth, or leaves it, in every visit."""
    dense = make_problem()
    rows = csr_array(np.where(np.abs(dense.X) < 0.5, 0.0, dense.X))
    problem = Problem(rows, dense.y, penalty=2.0)
    for step in (0.05, 0.5):  # at 0.5 nothing is kept of w
        assert_same(problem, updates.Saga(step), steps=400, tolerance=1e-8)
    setting = Setting(problem, walks.Uniform(), updates.Saga())
    whole, part = (
        CompiledMemory(setting, GRAPH, [generators(np.random.SeedSequence(3))]) for _ in range(2)
    )
    whole.advance(25_000)
    for hops in (7, 9_993, 5_000, 10_000):
        part.advance(hops)
    np.testing.assert_array_equal(part.models, whole.models)
    reached = whole.models[0, 0]
    np.testing.assert_allclose(reached, problem.solution.model, rtol=1e-9, atol=1e-12)


@njit
def tried(loss, curvature, score, target, slope, square):  # type: ignore[no-untyped-def]
    """Return True if a row with weight 1 may contradict L̂, and the result of the search."""
    is_tried = may_contradict(loss, score, target, slope, square, curvature)
    return is_tried, search_row(loss, curvature, score, target, slope, 1.0, square)


def assert_short_test_agrees(loss: Any, compiled: Any, spread: float) -> None:
    """Wherever the short test skips a row, the full test leaves L̂ unchanged."""
    generator = np.random.default_rng(1)
    scores, square = spread * generator.standard_normal(4000), 2.5
    targets = np.sign(generator.standard_normal(4000))
    untried = 0
    for score, target, slope in zip(scores, targets, loss.slope(scores, targets), strict=True):
        curvature = square * np.exp(generator.uniform(-6.0, 1.0))
        is_tried, found = tried(compiled, curvature, score, target, slope, square)
        assert is_tried or found == curvature
        untried += not is_tried
    assert untried > 100


@pytest.mark.parametrize("loss", LOSSES[:4], ids=repr)
def test_a_row_that_is_not_tried_would_not_have_contradicted(loss: Any) -> None:
    built_in = BuiltIn(LOSSES.index(loss), getattr(loss, "threshold", 0.0))
    assert_short_test_agrees(loss, built_in, 8.0)


@pytest.mark.parametrize("update", UPDATES, ids=repr)
def test_rows_of_very_different_length(update: Any) -> None:
    """The curvature has to double on the way, and the token comes round slowly."""
    assert_same(cases.uneven_rows(), update, walks.Uniform(laziness=0.8), steps=400)


@pytest.mark.parametrize("update", UPDATES, ids=repr)
def test_a_ring_of_many_nodes(update: Any) -> None:
    """The token comes round slowly, so that the pace is below 1."""
    problem, ring = cases.rows_on_a_ring(), wl.graphs.ring(60)
    assert_same(problem, update, walks.Uniform(), 1e-10, graph=ring, steps=2000)


@pytest.mark.parametrize("rows", [12, 40])
@pytest.mark.parametrize("update", UPDATES, ids=repr)
def test_positions_are_the_same_in_both_engines(update: Any, rows: int) -> None:
    """Calls may end anywhere."""
    setting = Setting(make_problem(rows=rows), walks.Uniform(), update)
    seeds = [replicate_seed(np.random.SeedSequence(3), r) for r in range(2)]
    slow, fast = (
        engine(setting, GRAPH, list(map(generators, seeds)))
        for engine in (ReferenceWalks, CompiledMemory)
    )
    slow.advance(80)
    for hops in (30, 20, 30):
        fast.advance(hops)
    np.testing.assert_allclose(fast.models, slow.models, rtol=1e-10, atol=1e-10)
    for one, other in zip(fast.positions, slow.positions, strict=True):
        assert (one.node, *one[2:]) == (other.node, *other[2:])
        assert (one.token.visits, one.token.updates) == (80, 80)
        assert_close(one.token.update, other.token.update)


def assert_close(one: dict[str, Any], other: dict[str, Any]) -> None:
    """Same arrays, of the same types; numbers equal up to rounding."""
    assert one.keys() == other.keys()
    for name, array in one.items():
        assert (array.dtype, array.shape) == (other[name].dtype, other[name].shape)
        np.testing.assert_allclose(array, other[name], rtol=1e-8, atol=1e-8, err_msg=name)


def test_a_restarted_token_collects_gradients_before_it_moves() -> None:
    problem, update = make_problem(), updates.Saga()
    setting = Setting(problem, walks.Uniform(), update)
    made = []
    engines: tuple[type[Any], ...] = (ReferenceWalks, CompiledMemory)
    for engine in engines:
        streams = [generators(replicate_seed(np.random.SeedSequence(3), 0))]
        node, token, *_ = engine(setting, GRAPH, streams).positions[0]
        restarted = token._replace(update=update.restart(problem, token.update, 1))
        batch = engine(setting, GRAPH, streams, [Position(node, restarted)])
        batch.advance(10)
        np.testing.assert_array_equal(batch.models[0, 0], token.update["model"])
        batch.advance(90)
        made.append(batch.models)
    np.testing.assert_allclose(*made, rtol=1e-10)
