"""The kernels of Finito give the numbers of the reference.

Paths must be the same exactly; models may differ by the rounding of sums in another order.
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
from tests.simulation.test_losses_from_functions import LOGISTIC
from tests.simulation.test_memory_equivalence import assert_close
from walklearn import walks
from walklearn.fitting.rounds import StoppingRule, run_walk
from walklearn.objectives import Problem
from walklearn.simulation import compiled_batches
from walklearn.simulation.batches import ReferenceWalks
from walklearn.simulation.compiled_finito import CompiledFinito
from walklearn.simulation.engines import batch_class_of
from walklearn.simulation.kernels.line_search import raise_by_bounds, raise_by_row
from walklearn.simulation.kernels.losses import BuiltIn
from walklearn.streams import generators, replicate_seed
from walklearn.updates import Finito
from walklearn.visit import Setting


def assert_same(problem: Problem, method: Any = None, update: Any = None, **options: Any) -> None:
    settings = {"steps": 150, "replicates": 3, "records": 7, **options}
    method, update = method or walks.Simple(), update or Finito()
    test_equivalence.assert_same(problem, method, 1e-10, update=update, **settings)


def thin(problem: Problem) -> Problem:
    """Return the problem with a third of the entries of its rows, in sparse form."""
    rows = csr_array(np.where(np.abs(problem.X) < 0.5, 0.0, problem.X))
    return Problem(rows, problem.y, penalty=0.5, node_of_row=problem.node_of_row)


@pytest.mark.parametrize("domain", DOMAINS, ids=repr)
@pytest.mark.parametrize("loss", [*LOSSES, LOGISTIC], ids=repr)
def test_every_loss_and_domain(loss: Any, domain: Any) -> None:
    assert_same(make_problem(loss, domain))
    assert_same(make_problem(loss, domain, rows=40, aggregate="mean"))


@pytest.mark.parametrize("cache", [compiled_batches.CACHE_BYTES, 0])
@pytest.mark.parametrize("method", [walks.Weighted(), walks.OldestFirst()], ids=repr)
def test_rows_in_and_out_of_the_cache(
    method: Any, cache: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(compiled_batches, "CACHE_BYTES", cache)
    assert_same(make_problem(columns=50), method, streams="node")
    assert_same(make_problem(columns=50), method)


def test_relays_sparse_rows_weights_and_rows_of_very_different_length() -> None:
    """A relay may be visited twice in a row, and its z is the model then, up to rounding."""
    assert_same(cases.relays(), replicates=9)
    assert_same(cases.relays(), walks.Uniform(), replicates=9)
    assert_same(cases.uneven_rows(), walks.Uniform(laziness=0.5), steps=400)
    assert_same(thin(make_problem()))
    assert_same(thin(make_problem(rows=40)), walks.Jumping(), streams="node")
    weights = np.linspace(0.1, 10.0, 40)
    assert_same(make_problem(rows=40, sample_weight=weights), steps=400)


def test_the_guard_on_a_ring_of_many_nodes() -> None:
    """The walk is so long that q sets minima, and so slow that it stops to."""
    problem, ring = cases.rows_on_a_ring(), wl.graphs.ring(60)
    assert_same(problem, graph=ring, steps=3000)
    ages = []
    for engine in (ReferenceWalks, CompiledFinito):
        streams = [generators(replicate_seed(np.random.SeedSequence(1), 0))]
        batch: Any = engine(Setting(problem, walks.Simple(), Finito()), ring, streams)
        batch.advance(9000)
        ages.append(float(batch.positions[0].token.update["age"]))
    assert ages[0] == ages[1] > 0


@pytest.mark.parametrize("rows", [12, 40])
@pytest.mark.parametrize("update", [Finito(), Finito(estimates_gradient=True)], ids=repr)
def test_positions_are_the_same_in_both_engines(update: Any, rows: int) -> None:
    """Calls may end anywhere, and a batch continues from the tokens of another."""
    setting = Setting(make_problem(rows=rows), walks.Uniform(), update)
    seeds = [replicate_seed(np.random.SeedSequence(3), r) for r in range(2)]
    lines = []
    for engine in (ReferenceWalks, CompiledFinito):
        streams, starts = list(map(generators, seeds)), None
        for _ in range(2):
            batch: Any = engine(setting, GRAPH, streams, starts)
            for hops in (30, 20, 30):
                batch.advance(hops)
            starts = batch.positions
        np.testing.assert_allclose(
            batch.models[:, 0], [update.model(setting.objective, s.token.update) for s in starts]
        )
        lines.append(starts)
    for one, other in zip(*lines, strict=True):
        assert one[:1] + one[2:] == other[:1] + other[2:]
        assert (one.token.visits, one.token.updates) == (160, 160)
        assert_close(one.token.update, other.token.update)


def test_the_number_of_cores_changes_no_bit() -> None:
    for problem in (make_problem(columns=50), make_problem(rows=40)):
        runs = [
            wl.simulate(problem, GRAPH, walks.Simple(), update=Finito(), steps=500, replicates=5,
                        seed=1, cores=cores)
            for cores in (1, 3)
        ]  # fmt: skip
        np.testing.assert_array_equal(runs[0].models, runs[1].models)
        np.testing.assert_array_equal(runs[0].gap, runs[1].gap)


def test_a_fit_in_rounds_converges_to_the_minimiser() -> None:
    problem = make_problem(rows=40, aggregate="mean")
    setting = Setting(problem, walks.Simple(), Finito(estimates_gradient=True))
    stopping = StoppingRule(steps=None, max_steps=50_000, first=100, tolerance=1e-6)
    assert batch_class_of(setting) is CompiledFinito
    result = run_walk(setting, GRAPH, generators(np.random.SeedSequence(1)), None, stopping)
    assert result.has_converged
    model = setting.update.model(problem, result.token.token.update)
    np.testing.assert_allclose(model, problem.solution.model, rtol=1e-4, atol=1e-5)


class OwnStart(Problem):
    """A problem whose walks do not begin at 0."""

    start = np.full(4, 0.3)  # type: ignore[assignment]


@pytest.mark.parametrize("rows", [{}, {"rows": 40, "aggregate": "mean"}])
@pytest.mark.parametrize("domain", DOMAINS, ids=repr)
def test_another_start_model(domain: Any, rows: Any) -> None:
    """A relay, or all nodes of a continued fit, are visited while w is the start model."""
    problem = make_problem(domain=domain, **rows)
    assert_same(problem, update=Finito(estimates_gradient=True).starting_from(np.full(4, 0.3)))
    zeros = np.where(np.arange(len(problem.y))[:, None] % 2, problem.X, 0.0)
    owners = problem.node_of_row
    assert_same(OwnStart(zeros, problem.y, penalty=0.5, node_of_row=owners, domain=domain))


@njit
def search(loss, smoothness, score, target, slope, square):  # type: ignore[no-untyped-def]
    """Return L by bounds, and by values of the loss."""
    value = np.logaddexp(0.0, -target * score)
    norm = slope * slope * square
    by_row = raise_by_row(loss, smoothness, score, target, slope * square, 1.0, norm, value)
    return raise_by_bounds(loss, smoothness, slope, square), by_row


def test_bounds_on_the_logistic_loss_decide_as_its_values_do() -> None:
    generator, square, undecided = np.random.default_rng(1), 2.5, 0
    scores = 2.0 * generator.standard_normal(20_000)
    targets = np.sign(generator.standard_normal(20_000))
    slopes = wl.losses.Logistic().slope(scores, targets)
    for score, target, slope in zip(scores, targets, slopes, strict=True):
        smoothness = square * np.exp(generator.uniform(-9.0, 1.0))
        found, expected = search(BuiltIn(0, 0.0), smoothness, score, target, slope, square)
        assert found in (0.0, expected)
        undecided += not found
    assert undecided < 500


def test_kernels_repeat_the_constants_of_the_reference() -> None:
    """A constant that is changed in one place only would show in few draws."""
    from walklearn.simulation.kernels import covering as hops
    from walklearn.simulation.kernels.visits import finito as kernel
    from walklearn.updates import finito
    from walklearn.walks import covering

    names = (
        "MAX_SHARE", "SMOOTHNESS_SHARE", "CURVATURE_SHARE", "MAX_THETA", "WAIT_COVERS",
        "MAX_AGE_COVERS", "MAX_GROWTH",
    )  # fmt: skip
    assert [getattr(kernel, name) for name in names] == [getattr(finito, name) for name in names]
    assert (hops.OVERDUE, hops.SEARCH) == (covering.OVERDUE, covering.SEARCH)
