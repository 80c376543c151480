"""Tests of single walks: hand computations, periods, relays, and refusals."""

import numpy as np
import pytest

from tests.objectives.cases import local_gradient
from tests.walks.every_walk import hopper
from walklearn import graphs
from walklearn.objectives import Problem
from walklearn.objectives.linear.losses import Squared
from walklearn.walks import Hop, Independent, Jumping, NonBacktracking, Simple, Uniform, Weighted
from walklearn.walks.metropolis import propose


def eigenvalues(walk, graph, problem=None):
    """Ascending; of the symmetrised chain, so they are real."""
    P = walk.transition_matrix(graph, problem).toarray()
    root = np.sqrt(walk.stationary(graph, problem))
    return np.linalg.eigvalsh(root[:, None] * P / root)


class TestByHand:
    def test_uniform_on_a_star(self):
        """The hub proposes a leaf, accepted always (deg 4 → 1); a leaf is accepted with ¼."""
        P = Uniform().transition_matrix(graphs.star(5)).toarray()
        expected = np.diag([0.0, *4 * [0.75]])
        expected[0, 1:] = expected[1:, 0] = 0.25
        assert np.allclose(P, expected, atol=1e-15)
        assert Uniform().acceptance_rate(graphs.star(5)) == pytest.approx(0.4)

    def test_simple_on_a_star(self):
        P = Simple().transition_matrix(graphs.star(5)).toarray()
        assert np.allclose(P[0], [0, 0.25, 0.25, 0.25, 0.25])
        assert np.allclose(P[1:, 0], 1.0)
        assert np.allclose(Simple().stationary(graphs.star(5)), [0.5] + [0.125] * 4)
        assert Simple().acceptance_rate(graphs.star(5)) == 1.0

    def test_simple_corrected_on_a_star(self):
        """Mean degree 8/5 over degrees 4 and 1."""
        scale = Simple(reweight="degree").gradient_scale(graphs.star(5))
        assert np.allclose(scale, [0.4, 1.6, 1.6, 1.6, 1.6])

    def test_weighted_on_a_path(self):
        """0 - 1 - 2 with importance 1, 2, 4: a(0,1) = 2·½ = 1, a(1,2) = 2·2 = 4, and back."""
        walk, graph = Weighted([1.0, 2.0, 4.0]), graphs.grid(1, 3)
        expected = [[0, 1, 0], [0.5, 0, 0.5], [0, 0.25, 0.75]]
        assert np.allclose(walk.transition_matrix(graph).toarray(), expected, atol=1e-15)
        assert np.allclose(walk.stationary(graph), [1 / 7, 2 / 7, 4 / 7])
        assert np.allclose(walk.gradient_scale(graph), [7 / 3, 7 / 6, 7 / 12])

    def test_weighted_by_the_papers_constants(self):
        """L_i = 1 + N‖x‖²/4 on an edge: 1 + 2·1/4 and 1 + 2·9/4."""
        problem = Problem([[1.0], [3.0]], [1.0, -1.0], penalty=1.0)
        walk, edge = Weighted(), graphs.ring(2)
        assert np.allclose(walk.stationary(edge, problem), np.array([1.5, 5.5]) / 7)
        assert np.allclose(walk.gradient_scale(edge, problem), [3.5 / 1.5, 3.5 / 5.5])

    def test_a_node_without_neighbours(self):
        assert propose(0.5, degree=0) is None
        assert Weighted().announcement(2.0, degree=0) == (2.0, 2.0)

    def test_a_hop_of_the_uniform_walk(self):
        """A leaf proposes the hub and is accepted with ¼: u < ¼ moves, u > ¼ stays."""
        graph, walk = graphs.star(5), Uniform()
        make_hop = hopper(walk, graph)
        assert make_hop(1, np.array([0.249])) == Hop(0, 1)
        assert make_hop(1, np.array([0.251])) == Hop(1, 0)


PERIODIC = {"ring": graphs.ring(8), "torus": graphs.torus(4, 6), "cube": graphs.hypercube(4)}


class TestPeriod:
    @pytest.mark.parametrize("name", PERIODIC)
    def test_the_uniform_walk_has_period_two_on_a_regular_bipartite_graph(self, name):
        graph = PERIODIC[name]
        for walk in (Uniform(), Simple(), Weighted(np.full(graph.node_count, 3.0))):
            assert (walk.transition_matrix(graph).diagonal() == 0).all()
            assert eigenvalues(walk, graph)[0] == pytest.approx(-1.0, abs=1e-12)

    @pytest.mark.parametrize("graph", [graphs.star(6), graphs.grid(3, 4), graphs.ring(6)])
    def test_the_simple_walk_has_it_on_every_bipartite_graph(self, graph):
        assert eigenvalues(Simple(), graph)[0] == pytest.approx(-1.0, abs=1e-12)
        by_degree = Weighted(graph.degrees.astype(float))
        assert eigenvalues(by_degree, graph)[0] == pytest.approx(-1.0, abs=1e-12)

    def test_not_elsewhere(self):
        assert eigenvalues(Uniform(), graphs.ring(7))[0] > -0.99
        assert eigenvalues(Uniform(), graphs.star(6))[0] > -0.99
        assert eigenvalues(Weighted([1.0, 2.0, 1.0, 1.0]), graphs.ring(4))[0] > -0.99

    @pytest.mark.parametrize("name", PERIODIC)
    @pytest.mark.parametrize("laziness", [0.05, 0.5])
    def test_laziness_cures_it(self, name, laziness):
        """λ becomes ℓ + (1 − ℓ)λ: −1 becomes 2ℓ − 1."""
        for walk in (Uniform(laziness=laziness), Simple(laziness=laziness)):
            lowest = eigenvalues(walk, PERIODIC[name])[0]
            assert lowest == pytest.approx(2 * laziness - 1, abs=1e-12)

    def test_a_hub_that_never_stays_has_no_loop_by_rounding(self):
        """1 − Σ 1/deg over 100,003 neighbours is not exactly 0, but must look so."""
        for nodes in (1_000, 100_004):
            for walk in (Simple(), Uniform()):
                assert walk.transition_matrix(graphs.star(nodes)).diagonal()[0] == 0.0


class TestRelays:
    def problem(self, penalty):
        return Problem(
            [[1.0], [2.0], [0.5]], [1.0, 2.0, 3.0], loss=Squared(), penalty=penalty,
            node_of_row=[0, 2, 4], nodes=5, empty_nodes="relay",
        )  # fmt: skip

    @pytest.mark.parametrize("penalty", [0.0, 1.0])
    def test_a_relay_is_as_important_as_the_least_of_the_others(self, penalty):
        problem, graph = self.problem(penalty), graphs.ring(5)
        L = penalty + 5 * np.array([1.0, 0.25, 4.0, 0.25, 0.25])
        assert np.allclose(Weighted().stationary(graph, problem), L / L.sum())

    @pytest.mark.parametrize("walk", [Uniform(), Weighted(), Simple(reweight="degree")])
    def test_relays_leave_the_estimate_unbiased(self, walk):
        problem, graph = self.problem(1.0), graphs.star(5)
        w = np.array([0.7])
        local = np.array([local_gradient(problem, i, w) for i in range(5)])
        estimate = walk.stationary(graph, problem) * walk.gradient_scale(graph, problem) @ local
        assert np.allclose(estimate, problem.full_gradient(w), rtol=1e-12)


class TestOneNode:
    @pytest.mark.parametrize(
        "walk", [Simple(), Uniform(), Weighted([2.0]), NonBacktracking(), Jumping(Uniform()),
                 Independent()],
        ids=repr,
    )  # fmt: skip
    def test_the_token_stays(self, walk):
        graph = graphs.ring(1)
        assert walk.stationary(graph).tolist() == [1.0]
        for u in (0.0, 0.05, 0.99):
            assert hopper(walk, graph)(0, np.full(walk.draws, u))[:2] == (0, 0)
        assert walk.acceptance_rate(graph) == 0.0


class TestRefusals:
    @pytest.mark.parametrize("laziness", [-0.1, 1.0, np.nan])
    @pytest.mark.parametrize("kind", [Simple, Uniform, Weighted])
    def test_laziness(self, kind, laziness):
        with pytest.raises(ValueError, match="laziness"):
            kind(laziness=laziness)

    @pytest.mark.parametrize("importance", [[1.0, 0.0], [1.0, -2.0], [np.nan, 1.0], [np.inf, 1.0]])
    def test_importance_that_is_not_positive(self, importance):
        with pytest.raises(ValueError, match="positive"):
            Weighted(importance)

    def test_importance_of_the_wrong_shape(self):
        with pytest.raises(ValueError, match="one positive"):
            Weighted([[1.0, 2.0]])
        with pytest.raises(ValueError, match="3 nodes"):
            Weighted([1.0, 2.0]).stationary(graphs.ring(3))

    @pytest.mark.parametrize("walk", [Weighted(), Jumping(Weighted()), Independent(Weighted())])
    def test_a_walk_by_smoothness_needs_the_problem(self, walk):
        with pytest.raises(TypeError, match="needs the objective"):
            walk.stationary(graphs.ring(3))

    def test_a_problem_on_another_number_of_nodes(self):
        problem = Problem([[1.0], [3.0]], [1.0, -1.0], penalty=1.0)
        with pytest.raises(ValueError, match="nodes"):
            Weighted().stationary(graphs.ring(5), problem)
        with pytest.raises(ValueError, match="nodes"):
            Uniform(normalise=True).gradient_scale(graphs.ring(5), problem)

    @pytest.mark.parametrize("walk", [Weighted(), Uniform(normalise=True)], ids=repr)
    def test_a_node_whose_smoothness_is_zero(self, walk):
        """L̄ / L_i has no meaning there; an infinite scale times a zero gradient is NaN."""
        problem = Problem([[0.0], [1.0]], [1.0, -1.0])
        with pytest.raises(ValueError, match="node 0"):
            walk.gradient_scale(graphs.ring(2), problem)

    @pytest.mark.parametrize(
        ("name", "value"),
        [("probability", 0.0), ("probability", 1.0), ("stop_probability", 0.0),
         ("stop_probability", 1.1), ("max_hops", 0), ("max_hops", 3.0), ("max_hops", 2.5),
         ("max_hops", "3")],
    )  # fmt: skip
    def test_jumps(self, name, value):
        with pytest.raises(ValueError, match=name):
            Jumping(**{name: value})
