"""The compiled twins give the numbers of the reference, for every method and kind of problem.

The path of a token (nodes, messages) must be the same exactly; models may differ by the rounding
of sums in another order.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import walklearn as wl
from tests.golden import cases
from tests.golden.cases import GAMMA as MECHANISM
from tests.golden.cases import GRAPH, IMPORTANCE
from walklearn import walks
from walklearn.objectives import Problem
from walklearn.simulation import compiled_batches
from walklearn.simulation.batches import ReferenceWalks
from walklearn.simulation.compiled_batches import CompiledWalks
from walklearn.simulation.kernels.visits.sgd import SHORT
from walklearn.streams import generators
from walklearn.visit import Setting

LOSSES: list[Any] = list(cases.LOSSES.values())
DOMAINS: list[Any] = list(cases.DOMAINS.values())
METHODS: list[Any] = list(cases.METHODS.values())


def make_problem(
    loss: wl.losses.Loss = LOSSES[0],
    domain: wl.domains.Domain = DOMAINS[1],
    rows: int = 12,
    columns: int = 4,
    **options: Any,
) -> Problem:
    generator = np.random.default_rng(7)
    X = generator.standard_normal((rows, columns))
    if isinstance(loss, wl.losses.Softmax):
        y = np.arange(rows) % 3
    else:
        y = np.where(generator.random(rows) < 0.5, -1.0, 1.0)
    owners = None if rows == 12 else np.r_[np.arange(12), generator.integers(0, 12, rows - 12)]
    return Problem(X, y, loss=loss, penalty=0.5, domain=domain, node_of_row=owners, **options)


def both_engines(problem: Problem, graph: wl.Graph, method: Any, **options: Any) -> list[wl.Trace]:
    """Return the compiled run and that of the reference."""
    settings = {
        "steps": 150,
        "replicates": 3,
        "records": 9,
        "seed": 5,
        "visit_time": 0.3,
        **options,
    }
    if "update" not in settings:
        settings.setdefault("step_size", wl.PowerStep(0.05, 0.75))
    engines = ("compiled", "reference")
    return [wl.simulate(problem, graph, method, engine=each, **settings) for each in engines]


def assert_same(
    problem: Problem, method: Any, tolerance: float = 1e-11, graph: wl.Graph = GRAPH, **options: Any
) -> None:
    fast, slow = both_engines(problem, graph, method, **options)
    assert (fast.privacy, fast.spec) == (slow.privacy, slow.spec)
    exact = ("messages", "bytes", "time", "visits", "updates", "released", "contributions")
    for name in exact:
        np.testing.assert_array_equal(getattr(fast, name), getattr(slow, name), err_msg=name)
    for name in ("models", "averages", "distance", "average_distance", "gap", "average_gap"):
        np.testing.assert_allclose(
            getattr(fast, name), getattr(slow, name), rtol=tolerance, atol=tolerance, err_msg=name
        )


@pytest.mark.parametrize("method", METHODS, ids=repr)
def test_every_method(method: Any) -> None:
    assert_same(make_problem(), method)


@pytest.mark.parametrize("columns", [4, 2 * SHORT])
@pytest.mark.parametrize("cache", [compiled_batches.CACHE_BYTES, 0])
@pytest.mark.parametrize("method", cases.WALKS.values(), ids=repr)
def test_short_and_long_rows_in_and_out_of_the_cache(
    method: Any, cache: int, columns: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each has a loop of its own."""
    monkeypatch.setattr(compiled_batches, "CACHE_BYTES", cache)
    assert_same(make_problem(columns=columns), method)
    assert_same(make_problem(columns=columns), method, streams="node")


@pytest.mark.parametrize("domain", DOMAINS, ids=repr)
@pytest.mark.parametrize("loss", LOSSES, ids=repr)
@pytest.mark.parametrize(
    "method", [walks.Weighted(), wl.AsynchronousGossip(), wl.GradientTracking()], ids=repr
)
def test_every_loss_and_domain(method: Any, loss: Any, domain: Any) -> None:
    assert_same(make_problem(loss, domain), method)


@pytest.mark.parametrize("batch", [None, 1, 3])
@pytest.mark.parametrize(
    "method", [walks.Jumping(), wl.AsynchronousGossip(), wl.SynchronousGossip()], ids=repr
)
def test_many_rows_and_mini_batches(method: Any, batch: int | None) -> None:
    assert_same(make_problem(rows=40), method, batch=batch)


@pytest.mark.parametrize("aggregate", ["sum", "mean", "node-mean"])
def test_every_aggregate(aggregate: Any) -> None:
    assert_same(make_problem(rows=30, aggregate=aggregate), walks.Weighted())


def test_relays_pass_the_token_on() -> None:
    for method in (walks.Weighted(), wl.SynchronousGossip(), wl.GradientTracking()):
        assert_same(cases.relays(), method)


@pytest.mark.parametrize(
    "method", [walks.Weighted(), wl.AsynchronousGossip(), wl.GradientTracking()], ids=repr
)
def test_single_precision(method: Any) -> None:
    assert_same(make_problem(dtype=np.float32), method, tolerance=2e-4)


@pytest.mark.parametrize("reweight", ["released", "as-printed"])
@pytest.mark.parametrize(
    "wrap",
    [
        lambda walk: walk,
        walks.NonBacktracking,
        walks.Jumping,
        walks.Independent,
        walks.HistoryDriven,
    ],
)
def test_private_walks(wrap: Any, reweight: Any) -> None:
    """Every replicate follows its own draw."""
    assert_same(make_problem(), wrap(walks.Weighted(privacy=MECHANISM, reweight=reweight)))


@pytest.mark.parametrize("batch", [None, 2])
@pytest.mark.parametrize(
    "method",
    [walks.Uniform(), walks.NonBacktracking(), walks.Weighted(IMPORTANCE, public=True)],
    ids=repr,
)
def test_noise_on_the_model(method: Any, batch: int | None) -> None:
    """Clipping, noise and the cap, which nodes reach here: 150 visits of 12 nodes."""
    assert_same(make_problem(), method, privacy=cases.NODE_NOISE)
    assert_same(make_problem(rows=40), method, privacy=cases.NODE_NOISE, batch=batch)


@pytest.mark.parametrize("aggregate", ["sum", "mean", "node-mean"])
@pytest.mark.parametrize("loss", LOSSES, ids=repr)
def test_noise_on_the_model_for_each_row(loss: Any, aggregate: Any) -> None:
    """The clip cuts some rows and leaves others; weights, and the cap, which nodes reach."""
    noise = cases.ROW_NOISE
    weights = np.linspace(0.1, 2.0, 40)
    problem = make_problem(loss, rows=40, aggregate=aggregate, sample_weight=weights)
    lengths = np.linalg.norm(problem.row_gradients(3, np.zeros(problem.size)), axis=1)
    assert lengths.min() < 0.7 < lengths.max()
    assert_same(problem, walks.Uniform(), privacy=noise)
    assert_same(problem, walks.Weighted(IMPORTANCE, public=True), privacy=noise,
                streams="node", mean_importance="estimated")  # fmt: skip


def test_rows_that_overflow_leave_the_others_what_they_are() -> None:
    """Of a row that is too long to be measured nothing is added, in both engines."""
    noise = wl.privacy.ModelNoise(clip=1.0, noise_multiplier=0.1, max_contributions=30)
    X = np.random.default_rng(7).standard_normal((36, 4))
    X[5] = 1e200
    owners = np.arange(36) % 12
    for loss in (wl.losses.Squared(), wl.losses.Softmax()):
        problem = Problem(X, np.arange(36) % 3, loss=loss, penalty=0.5, node_of_row=owners,
                          domain=wl.domains.Ball(0.4), aggregate="mean")  # fmt: skip
        update = wl.updates.Sgd(wl.PowerStep(0.05))
        setting = Setting(problem, walks.Uniform(), update, privacy=noise)
        batches = [
            engine(setting, GRAPH, [generators(np.random.SeedSequence(5))])
            for engine in (CompiledWalks, ReferenceWalks)
        ]
        for batch in batches:
            batch.advance(150)
        assert np.isfinite(batches[0].models).all()
        np.testing.assert_allclose(batches[0].models, batches[1].models, rtol=1e-11, atol=1e-11)


@pytest.mark.parametrize(
    "method",
    [
        walks.Simple(reweight="degree"),
        walks.Uniform(),
        walks.Weighted(laziness=0.1),
        walks.Weighted(privacy=MECHANISM),
        walks.Jumping(walks.Weighted(privacy=MECHANISM)),
    ],
    ids=repr,
)
def test_a_mean_that_the_token_estimates(method: Any) -> None:
    """Also over several calls: the records split the run, and the sums go on."""
    assert_same(make_problem(), method, mean_importance="estimated")


@pytest.mark.parametrize(
    "method",
    [
        walks.Uniform(),
        walks.Weighted(privacy=MECHANISM, laziness=0.1),
        walks.Weighted(privacy=cases.LAPLACE),
        walks.NonBacktracking(),
        walks.Jumping(),
        walks.Independent(),
        walks.HistoryDriven(),
    ],
    ids=repr,
)
def test_nodes_with_streams_of_their_own(method: Any) -> None:
    assert_same(make_problem(), method, streams="node")
    assert_same(make_problem(rows=40), method, streams="node", batch=2)


def test_as_a_network_does_it() -> None:
    """Everything at once: own streams, an estimated mean, mini-batches, noise and its cap."""
    assert_same(make_problem(rows=40), walks.Weighted(privacy=MECHANISM), batch=3, streams="node",
                privacy=cases.NODE_NOISE, mean_importance="estimated")  # fmt: skip


@pytest.mark.parametrize("name", ["weighted", "jumping", "non-backtracking", "history-driven"])
def test_constant_steps_and_a_single_node(name: str) -> None:
    problem, step = cases.one_row(), wl.ConstantStep(0.1)
    fast, slow = both_engines(
        problem, wl.graphs.complete(1), cases.WALKS[name], steps=50, step_size=step
    )
    assert fast.messages[0, -1] == 0
    np.testing.assert_allclose(fast.models, slow.models, rtol=1e-12)
    np.testing.assert_allclose(fast.models[0], problem.solution.model, rtol=1e-3)


@settings(max_examples=25, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(
    seed=st.integers(0, 2**32),
    laziness=st.sampled_from([0.0, 1e-9, 0.5, 0.99]),
    spread=st.floats(0.0, 6.0),
    kind=st.sampled_from(["plain", "non-backtracking", "jumping", "history-driven"]),
)
def test_same_path_on_random_graphs(seed: int, laziness: float, spread: float, kind: str) -> None:
    """Nodes visited and messages agree exactly, also where acceptance is rare."""
    generator = np.random.default_rng(seed)
    nodes = int(generator.integers(2, 9))
    graph = wl.graphs.erdos_renyi(nodes, 0.6, seed=seed, connected="largest")
    nodes = graph.node_count
    importance = np.exp(spread * generator.standard_normal(nodes))
    walk: Any = walks.Weighted(importance, laziness=laziness)
    if kind == "non-backtracking":
        walk = walks.NonBacktracking(walk)
    elif kind == "history-driven":
        walk = walks.HistoryDriven(walk, alpha=2.0)
    elif kind == "jumping":
        walk = walks.Jumping(walk, probability=0.3, max_hops=4)
    problem = Problem(generator.standard_normal((nodes, 2)), np.ones(nodes), penalty=1.0,
                      domain=wl.domains.Ball(1.0))  # fmt: skip
    step = wl.PowerStep(0.01)
    runs = both_engines(problem, graph, walk, steps=80, replicates=1, seed=seed, step_size=step)
    np.testing.assert_array_equal(runs[0].visits, runs[1].visits)
    np.testing.assert_array_equal(runs[0].messages, runs[1].messages)
    np.testing.assert_allclose(runs[0].models, runs[1].models, rtol=1e-9, atol=1e-9)
