"""Sparse rows give what the same rows give with all their zeros, up to rounding."""

from __future__ import annotations

import pickle

import numpy as np
import pytest
from scipy import sparse

import walklearn as wl
from tests.objectives.cases import local_gradient
from walklearn import Problem, domains, losses, theory, walks

NODES, ROWS, DIMENSION = 12, 36, 9
ERRORS = ("distance", "average_distance", "gap", "average_gap")
X = sparse.random_array((ROWS, DIMENSION), density=0.3, format="csr", rng=1)
OWNERS = np.repeat(np.arange(NODES), ROWS // NODES)
GRAPH = wl.graphs.erdos_renyi(NODES, 0.5, seed=1)
LOSSES = {
    losses.Logistic(): np.where(np.arange(ROWS) % 2, 1.0, -1.0),
    losses.Squared(): np.linspace(-1.0, 1.0, ROWS),
    losses.Huber(0.3): np.linspace(-1.0, 1.0, ROWS),
    losses.SquaredHinge(): np.where(np.arange(ROWS) % 3, 1.0, -1.0),
    losses.Softmax(3): np.arange(ROWS) % 3,
}
DOMAINS = (domains.Ball(0.5), domains.Everywhere(), domains.Box(-0.2, 0.3))


def twins(
    loss: losses.Loss, domain: domains.Domain = DOMAINS[0], **options: object
) -> list[Problem]:
    """The same problem with sparse and with dense rows."""
    settings = {"loss": loss, "penalty": 0.1, "domain": domain, "aggregate": "mean", **options}
    settings.setdefault("node_of_row", OWNERS)
    return [Problem(rows, LOSSES[loss], **settings) for rows in (X, X.toarray())]


def assert_alike(one: wl.Trace, other: wl.Trace) -> None:
    assert (one.messages == other.messages).all()
    for name in ERRORS:
        np.testing.assert_allclose(
            getattr(one, name), getattr(other, name), rtol=1e-9, atol=1e-12, err_msg=name
        )


def runs_of(problems: list[Problem], method: object, **options: object) -> list[wl.Trace]:
    """Runs of each problem with the same settings."""
    settings = {"step_size": wl.PowerStep(0.5), "seed": 3, **options}
    return [wl.simulate(problem, GRAPH, method, **settings) for problem in problems]


@pytest.mark.parametrize("batch", [None, 2])
@pytest.mark.parametrize("domain", DOMAINS, ids=str)
@pytest.mark.parametrize("loss", LOSSES, ids=str)
def test_walks(loss: losses.Loss, domain: domains.Domain, batch: int | None) -> None:
    settings = {"steps": 300, "step_size": wl.PowerStep(0.5), "replicates": 2, "seed": 3}
    settings |= {"batch": batch, "records": [1, 7, 100, 300]}
    of_sparse, of_dense = twins(loss, domain)
    runs = [
        wl.simulate(problem, GRAPH, walks.Weighted(), engine=engine, **settings)
        for problem, engine in (
            (of_sparse, "compiled"), (of_dense, "compiled"), (of_sparse, "reference"),
        )
    ]  # fmt: skip
    assert_alike(runs[0], runs[1])
    assert_alike(runs[0], runs[2])


def test_factors_are_multiplied_in_before_digits_are_lost() -> None:
    """A long walk whose penalty alone would shrink a model by 1e-87."""
    problems = twins(losses.Logistic(), domains.Everywhere())
    assert_alike(*runs_of(problems, walks.Uniform(), steps=20_000, replicates=2, seed=1,
                       step_size=wl.ConstantStep(0.1), records=[1000, 20_000]))  # fmt: skip


def test_in_single_precision_the_average_is_that_of_the_models() -> None:
    """Rounding of stored numbers must not enter the average a million times enlarged."""
    problems = twins(losses.Logistic(), domains.Everywhere(), dtype=np.float32)
    one, other = runs_of(
        problems, walks.Uniform(), steps=5_000, seed=1, step_size=wl.ConstantStep(0.1)
    )
    np.testing.assert_allclose(one.averages, other.averages, rtol=1e-5, atol=1e-6)
    np.testing.assert_allclose(one.models, other.models, rtol=1e-5, atol=1e-6)


def test_a_step_that_takes_all_of_the_model_away() -> None:
    """γλ = 1: the factor is 0, which nothing can be divided by."""
    problems, step = twins(losses.Logistic(), domains.Ball(1.0)), wl.ConstantStep(10.0)
    assert_alike(*runs_of(problems, walks.Uniform(), steps=50, seed=1, step_size=step))


@pytest.mark.parametrize("method", [wl.AsynchronousGossip(), wl.SynchronousGossip()], ids=repr)
def test_gossip(method: object) -> None:
    assert_alike(*runs_of(twins(losses.Logistic()), method, steps=300))


@pytest.mark.parametrize("unit", ["rows", "node"])
def test_as_a_network_does_it_and_with_noise_on_the_model(unit: str) -> None:
    noise = wl.privacy.ModelNoise(clip=0.3, noise_multiplier=0.5, max_contributions=3, protect=unit)
    problems, settings = twins(losses.Logistic()), {"steps": 200, "streams": "node"}
    assert_alike(*runs_of(problems, walks.Uniform(), privacy=noise, **settings))
    assert_alike(*runs_of(problems, walks.Weighted(), mean_importance="estimated", **settings))


@pytest.mark.parametrize("aggregate", ["sum", "mean", "node-mean"])
@pytest.mark.parametrize("loss", LOSSES, ids=str)
def test_the_problem_itself(loss: losses.Loss, aggregate: str) -> None:
    """f, ∇f, f_i, L_i, w* and what theory makes of them."""
    weights = 1.0 + np.arange(ROWS) % 3
    one, other = twins(loss, aggregate=aggregate, sample_weight=weights, penalty=0.2)
    w = np.linspace(-1.0, 1.0, one.size)
    np.testing.assert_allclose(one.value(w), other.value(w))
    np.testing.assert_allclose(one.full_gradient(w), other.full_gradient(w), atol=1e-14)
    np.testing.assert_allclose(local_gradient(one, 3, w), local_gradient(other, 3, w), atol=1e-14)
    np.testing.assert_allclose(one.smoothness_constants, other.smoothness_constants)
    np.testing.assert_allclose(one.solution.model, other.solution.model, atol=1e-9)
    np.testing.assert_allclose(theory.residual(one, w), theory.residual(other, w))


def test_one_row_per_node_and_rows_without_entries() -> None:
    rows = sparse.csr_array(np.array([[0.0, 0.0], [3.0, 4.0], [0.0, 1.0]]))
    problem = Problem(rows, [1.0, -1.0, 1.0], penalty=1.0)
    assert problem.smoothness_constants.tolist() == [1.0, 1.0 + 3 * 25 / 4, 1.0 + 3 / 4]


def test_nodes_with_many_rows() -> None:
    """The largest eigenvalue alone, where the rows are too many for all."""
    rows = sparse.random_array((1200, 2000), density=0.01, format="csr", rng=2)
    y = np.where(np.arange(1200) % 2, 1.0, -1.0)
    one, other = (Problem(X, y, node_of_row=np.zeros(1200, int)) for X in (rows, rows.toarray()))
    np.testing.assert_allclose(one.smoothness_constants, other.smoothness_constants, rtol=1e-9)


def test_many_rows_that_add_up_to_nothing() -> None:
    """A search that starts at Σ x_r would have nowhere to go."""
    empty = sparse.csr_array((1200, 1500))
    assert Problem(
        empty, np.ones(1200), node_of_row=[0] * 1200, penalty=1.0
    ).smoothness_constants == [1.0]
    half = np.rint(np.random.default_rng(0).normal(size=(600, 1500)))
    half[:, 75:] = 0.0
    both = sparse.csr_array(np.vstack([half, -half]))
    problem = Problem(both, np.ones(1200), node_of_row=[0] * 1200, aggregate="mean")
    expected = np.linalg.eigvalsh(half.T @ half * 2 / 1200)[-1] / 4
    np.testing.assert_allclose(problem.smoothness_constants, [expected], rtol=1e-9)


def test_entries_that_are_named_twice_are_added_and_rows_are_copied() -> None:
    entries = ([1.0, 2.0, 5.0], ([0, 0, 1], [1, 1, 0]))
    rows = sparse.coo_array(entries, shape=(2, 2))
    problem = Problem(rows, [1.0, -1.0])
    assert problem.X.toarray().tolist() == [[0.0, 3.0], [5.0, 0.0]]
    with pytest.raises(ValueError, match="read-only"):
        problem.X.data[0] = 1.0
    assert pickle.loads(pickle.dumps(problem)) == problem
    assert problem == Problem(rows, [1.0, -1.0])
    assert problem != Problem(2 * rows, [1.0, -1.0])


def test_rows_on_their_owners_whatever_their_order() -> None:
    mixed = np.random.default_rng(1).permutation(OWNERS)
    one, other = twins(losses.Logistic(), node_of_row=mixed)
    np.testing.assert_allclose(one.X.toarray(), other.X)


def test_values_that_are_not_finite_are_named() -> None:
    rows = X.copy()
    rows.data[rows.indptr[20]] = np.nan
    with pytest.raises(ValueError, match=r"row 20 .*NaN .*\(1 such"):
        Problem(rows, LOSSES[losses.Logistic()])


def test_zeros_take_no_memory() -> None:
    rows = sparse.random_array((2000, 20_000), density=0.001, format="csr", rng=1)
    problem = Problem(rows, np.where(np.arange(2000) % 2, 1.0, -1.0), penalty=0.1)
    given = rows.data.nbytes + rows.indices.nbytes + rows.indptr.nbytes
    held = problem.row_bytes + problem.y.nbytes + problem.row_weights.nbytes
    held += problem.node_of_row.nbytes + problem.offsets.nbytes + problem.sample_weight.nbytes
    assert held < 1.5 * given
