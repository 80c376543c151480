"""One suite for every walk: matrix, stationary distribution, gradient scale, and value semantics.

Expected values come from the formulas written out in `every_walk`, never from the code under test.
"""

import copy
import dataclasses
import itertools
import pickle

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.objectives.cases import local_gradient
from tests.walks.every_walk import (
    GRAPHS,
    METROPOLIS,
    WALKS,
    WITH_MATRIX,
    WITH_STATIONARY,
    hopper,
    importance_for,
    jump_matrix_by_hand,
    matrix_by_hand,
    setting,
    stationary_by_hand,
    weights_by_hand,
)
from walklearn import graphs
from walklearn.objectives import Problem
from walklearn.objectives.linear.losses import Squared
from walklearn.walks import WALKS as REGISTRY
from walklearn.walks import (
    HistoryDriven,
    Independent,
    Jumping,
    Metropolis,
    NonBacktracking,
    Simple,
    Tour,
    Uniform,
    Weighted,
)

cases_of = pytest.mark.parametrize


@cases_of("graph_name", GRAPHS)
@cases_of("name", WITH_MATRIX)
class TestTransitionMatrix:
    def test_it_is_the_one_of_the_formulas(self, name, graph_name):
        walk, graph, problem = setting(name, graph_name)
        by_hand = matrix_by_hand if isinstance(walk, Metropolis) else jump_matrix_by_hand
        P = walk.transition_matrix(graph, problem).toarray()
        assert np.allclose(P, by_hand(walk, graph, problem), rtol=1e-13, atol=1e-14)

    def test_the_stationary_distribution_stays(self, name, graph_name):
        walk, graph, problem = setting(name, graph_name)
        P, shares = walk.transition_matrix(graph, problem), walk.stationary(graph, problem)
        assert shares.shape == (graph.node_count,)
        assert (shares > 0).all()
        assert shares.sum() == pytest.approx(1.0, abs=1e-14)
        assert np.allclose(P.T @ shares, shares, rtol=1e-10, atol=1e-13)
        assert np.allclose(shares, stationary_by_hand(P.toarray()), rtol=1e-9)

    def test_acceptance_rate_is_the_share_of_moves(self, name, graph_name):
        walk, graph, problem = setting(name, graph_name)
        P, shares = (
            walk.transition_matrix(graph, problem).toarray(),
            walk.stationary(graph, problem),
        )
        expected = 1.0 - sum(shares[i] * P[i, i] for i in range(graph.node_count))
        assert walk.acceptance_rate(graph, problem) == pytest.approx(expected, rel=1e-12, abs=1e-14)


@cases_of("graph_name", GRAPHS)
@cases_of("name", METROPOLIS)
class TestMetropolis:
    def test_detailed_balance(self, name, graph_name):
        walk, graph, problem = setting(name, graph_name)
        assert walk.reversible
        flow = walk.stationary(graph, problem)[:, None] * (
            walk.transition_matrix(graph, problem).toarray()
        )
        assert np.allclose(flow, flow.T, rtol=1e-12, atol=1e-16)

    def test_the_stationary_distribution_is_the_one_of_the_formulas(self, name, graph_name):
        walk, graph, problem = setting(name, graph_name)
        weights = weights_by_hand(walk, graph, problem)
        shares = walk.stationary(graph, problem)
        assert np.allclose(shares, weights / weights.sum(), rtol=1e-13)


@cases_of("graph_name", ["kite", "star", "random"])
@cases_of("name", WALKS)
class TestEveryWalk:
    def test_hop_takes_the_draws_it_asks_for(self, name, graph_name):
        """Exactly `draws` uniform numbers decide, and hops obey the graph."""
        walk, graph, problem = setting(name, graph_name)
        make_hop = hopper(walk, graph, problem)
        generator = np.random.default_rng(4)
        for _ in range(200):
            node = int(generator.integers(graph.node_count))
            previous = int(generator.choice(graph.neighbours(node)))
            uniforms = generator.random(walk.draws)
            hop = make_hop(node, uniforms, previous)
            again = make_hop(node, uniforms.copy(), previous)
            np.testing.assert_equal(hop._asdict(), again._asdict())
            assert type(hop.node) is int
            assert 0 <= hop.node < graph.node_count
            if isinstance(walk, Jumping):
                assert 0 <= hop.messages <= walk.max_hops
            else:
                assert hop.messages == int(hop.node != node), "a token that stays costs nothing"
            if not isinstance(walk, Independent | Jumping):
                assert hop.node == node or hop.node in graph.neighbours(node)
            # A proposal of a history-driven walk is a question and an answer.
            assert hop.questions in ((0, 2) if isinstance(walk, HistoryDriven) else (0,))

    @pytest.mark.parametrize("u", [0.0, np.nextafter(1.0, 0.0)])
    def test_hop_at_the_ends_of_the_unit_interval(self, name, graph_name, u):
        walk, graph, problem = setting(name, graph_name)
        make_hop = hopper(walk, graph, problem)
        for node in range(graph.node_count):
            hop = make_hop(node, np.full(walk.draws, u))
            assert 0 <= hop.node < graph.node_count

    def test_pickles_compares_and_hashes(self, name, graph_name):
        walk, _, _ = setting(name, graph_name)
        twin = WALKS[name](GRAPHS[graph_name].node_count)
        for other in (twin, pickle.loads(pickle.dumps(walk)), copy.deepcopy(walk)):
            assert other == walk
            assert hash(other) == hash(walk)
            assert {walk: 1}[other] == 1

    def test_cannot_be_changed(self, name, graph_name):
        walk, _, _ = setting(name, graph_name)
        for spec in (walk, walk.innermost):
            for field in dataclasses.fields(spec):
                with pytest.raises(dataclasses.FrozenInstanceError):
                    setattr(spec, field.name, 0.5)

    def test_repr_is_short(self, name, graph_name):
        walk, _, _ = setting(name, graph_name)
        assert type(walk).__name__ in repr(walk)
        assert len(repr(walk)) <= 100
        assert "\n" not in repr(walk)


@cases_of("graph_name", ["kite", "star", "random"])
@cases_of("name", WITH_STATIONARY)
def test_the_gradient_estimate_is_unbiased_if_it_claims_to_be(name, graph_name):
    """Σ π_i scale_i ∇f_i(w) = ∇f(w), at any w."""
    walk, graph, problem = setting(name, graph_name)
    shares, scale = walk.stationary(graph, problem), walk.gradient_scale(graph, problem)
    assert scale.shape == (graph.node_count,)
    assert (scale > 0).all()
    base = walk.innermost
    biased = (
        (isinstance(base, Simple) and base.reweight is None)
        or (isinstance(base, Uniform) and base.normalise)
        or (isinstance(walk, Jumping) and not walk.has_gap_weights)
    )
    w = np.array([1.0, -2.0, 0.5])
    local = np.array([local_gradient(problem, i, w) for i in range(graph.node_count)])
    whole = problem.full_gradient(w)
    estimate = (shares * scale) @ local
    if not biased:
        assert np.allclose(estimate, whole, rtol=1e-12)
    else:
        assert np.linalg.norm(estimate - whole) > 1e-3 * np.linalg.norm(whole)
    if isinstance(base, Simple) and base.reweight is None and not isinstance(walk, Jumping):
        assert np.allclose(estimate, graph.degrees @ local / graph.degrees.sum(), rtol=1e-12)


def test_every_registered_walk_is_among_the_cases():
    shipped = {name for name in REGISTRY.names if REGISTRY.import_path_of(name) is None}
    assert {type(factory(6)).name for factory in WALKS.values()} == shipped


def test_different_walks_differ():
    walks = [factory(6) for factory in WALKS.values()]
    walks += [Weighted(importance_for(6) + 1), Jumping(max_hops=2), Jumping(stop_probability=0.4)]
    for a, b in itertools.combinations(walks, 2):
        assert a != b, (a, b)
    assert Weighted([1.0, 2.0]) != Weighted([1.0, 2.0], laziness=0.1)
    assert Weighted([1.0, 2.0]) != Weighted()
    assert Weighted([1, 2]) == Weighted(np.array([1.0, 2.0]))


@pytest.mark.parametrize(
    "again", [lambda w: w, copy.deepcopy, lambda w: pickle.loads(pickle.dumps(w))]
)
def test_the_importance_of_a_walk_cannot_be_changed(again):
    given = np.array([1.0, 2.0])
    walk = again(Weighted(given))
    given[0] = 5.0
    assert walk.importance[0] == 1.0
    with pytest.raises(ValueError, match="read-only"):
        walk.importance[0] = 5.0


@cases_of("walk", [NonBacktracking(), Independent(), HistoryDriven(), Tour()], ids=repr)
def test_walks_without_a_matrix_raise_an_error(walk):
    with pytest.raises(TypeError, match="transition matrix"):
        walk.transition_matrix(GRAPHS["kite"])


def test_only_metropolis_walks_and_independent_draws_are_reversible():
    for factory in WALKS.values():
        assert factory(6).reversible == isinstance(factory(6), Metropolis | Independent)


def test_independent_draws_differ_as_often_as_they_say():
    graph, walk = GRAPHS["kite"], Independent(Simple())
    shares = graph.degrees / graph.degrees.sum()
    assert np.allclose(walk.stationary(graph), shares, rtol=1e-14)
    different = sum(
        shares[i] * shares[j] for i, j in itertools.product(range(6), repeat=2) if i != j
    )
    assert walk.acceptance_rate(graph) == pytest.approx(different, rel=1e-12)


# ----------------------------------------------------- the normalised uniform walk


@cases_of("noise", [0.0, 0.5])
def test_normalised_steps_are_exact_only_under_interpolation(noise):
    """At the minimiser the mean step is 0 if one model fits all rows, and only then."""
    graph, walk = GRAPHS["kite"], Uniform(normalise=True)
    generator = np.random.default_rng(9)
    X = np.exp(generator.standard_normal(12))[:, None] * generator.standard_normal((12, 3))
    truth = np.array([1.0, -1.0, 2.0])
    y = X @ truth + noise * generator.standard_normal(12)
    problem = Problem(X, y, loss=Squared(), node_of_row=np.arange(12) % 6)
    w = np.linalg.lstsq(X, y, rcond=None)[0]
    local = np.array([local_gradient(problem, i, w) for i in range(6)])
    drift = (walk.stationary(graph, problem) * walk.gradient_scale(graph, problem)) @ local
    if noise == 0.0:
        assert np.abs(drift).max() < 1e-10
    else:
        assert np.abs(problem.full_gradient(w)).max() < 1e-10
        assert np.abs(drift).max() > 1e-2


# ------------------------------------------------------------ properties at random


@given(
    nodes=st.integers(2, 12),
    seed=st.integers(0, 2**32),
    laziness=st.sampled_from([0.0, 0.1, 0.99]),
    spread=st.sampled_from([0.1, 2.0, 8.0]),
)
@settings(max_examples=60, deadline=None)
def test_weighted_walks_on_random_graphs(nodes, seed, laziness, spread):
    generator = np.random.default_rng(seed)
    graph = graphs.erdos_renyi(nodes, 0.5, seed=generator, connected="retry")
    importance = np.exp(spread * generator.standard_normal(nodes))
    walk = Weighted(importance, laziness=laziness)
    P, shares = walk.transition_matrix(graph).toarray(), importance / importance.sum()
    assert (P >= 0).all()
    assert np.allclose(P.sum(axis=1), 1.0, rtol=1e-13)
    flow = shares[:, None] * P
    assert np.allclose(flow, flow.T, rtol=1e-11, atol=1e-300)
    assert np.allclose(walk.stationary(graph), shares, rtol=1e-13)
    assert np.allclose(shares * walk.gradient_scale(graph), 1 / nodes, rtol=1e-12)
    assert (np.diag(P) >= laziness - 1e-12).all()
