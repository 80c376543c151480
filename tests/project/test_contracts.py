"""One suite for every loss, every domain and every walk: what SPEC promises of all of them.

Expected values come from the formulas of the specification, written out here a second time
and slowly, never from the code under test. Statistical tests fix their seeds; the number in
their comments is the chance that correct code would fail under a fresh seed.
"""

import copy
import dataclasses
import itertools
import pickle

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.special import chdtrc
from scipy.stats import ks_2samp

from walklearn import graphs
from walklearn.problem import Problem
from walklearn.problem.domains import Ball, Box, Everywhere
from walklearn.problem.losses import Huber, Logistic, Softmax, Squared, SquaredHinge
from walklearn.walks import (
    Independent,
    Jumping,
    Metropolis,
    NonBacktracking,
    Simple,
    Uniform,
    Weighted,
)

# ============================================================================ losses

SCALAR_LOSSES = [Logistic(), Squared(), Huber(), Huber(0.3), Huber(5.0), SquaredHinge()]
LOSSES = [*SCALAR_LOSSES, Softmax(), Softmax(4)]
MARGIN_LOSSES = (Logistic, SquaredHinge)


def named(spec):
    return repr(spec)


def targets_for(loss, rows, generator):
    if isinstance(loss, MARGIN_LOSSES):
        return generator.choice([-1.0, 1.0], rows)
    if isinstance(loss, Softmax):
        return generator.integers(0, 4, rows).astype(float)
    return 3.0 * generator.standard_normal(rows)


def scores_for(loss, rows, generator, size=3.0):
    shape = (rows, 4) if isinstance(loss, Softmax) else (rows,)
    return size * generator.standard_normal(shape)


def along(loss, scores, direction, h):
    """The scores moved by h in a direction."""
    return scores + h * direction if isinstance(loss, Softmax) else scores + h


def distance_to_kink(loss, scores, targets):
    if isinstance(loss, Huber):
        return np.abs(np.abs(scores - targets) - loss.threshold)
    if isinstance(loss, SquaredHinge):
        return np.abs(1.0 - targets * scores)
    return np.full(len(scores), np.inf)


@pytest.mark.parametrize("loss", LOSSES, ids=named)
class TestLoss:
    @given(seed=st.integers(0, 2**32), size=st.sampled_from([0.1, 3.0, 20.0]))
    @settings(max_examples=20, deadline=None)
    def test_slope_is_the_derivative_of_the_value(self, loss, seed, size):
        generator = np.random.default_rng(seed)
        targets = targets_for(loss, 20, generator)
        scores = scores_for(loss, 20, generator, size)
        direction = generator.standard_normal(scores.shape)
        h = 1e-5
        rise = loss.value(along(loss, scores, direction, h), targets)
        fall = loss.value(along(loss, scores, direction, -h), targets)
        slope = loss.slope(scores, targets)
        assert slope.shape == scores.shape
        expected = (slope * direction).sum(axis=1) if slope.ndim == 2 else slope
        # At a kink of the slope a central difference is off by at most β h / 2 per unit.
        assert np.allclose((rise - fall) / (2 * h), expected, rtol=1e-6, atol=1e-4)

    @given(seed=st.integers(0, 2**32))
    @settings(max_examples=20, deadline=None)
    def test_curvature_is_the_derivative_of_the_slope(self, loss, seed):
        generator = np.random.default_rng(seed)
        targets = targets_for(loss, 20, generator)
        scores = scores_for(loss, 20, generator)
        smooth = distance_to_kink(loss, scores, targets) > 1e-3
        scores, targets = scores[smooth], targets[smooth]
        direction = generator.standard_normal(scores.shape)
        h = 1e-5
        rise = loss.slope(along(loss, scores, direction, h), targets)
        fall = loss.slope(along(loss, scores, direction, -h), targets)
        curvature = loss.curvature(scores, targets)
        if isinstance(loss, Softmax):
            assert curvature.shape == (len(scores), 4, 4)
            curvature = np.einsum("rkl,rl->rk", curvature, direction)
        assert np.allclose((rise - fall) / (2 * h), curvature, rtol=1e-6, atol=1e-7)

    @given(seed=st.integers(0, 2**32), near=st.booleans())
    @settings(max_examples=30, deadline=None)
    def test_smoothness_bounds_how_fast_the_slope_turns(self, loss, seed, near):
        generator = np.random.default_rng(seed)
        targets = targets_for(loss, 50, generator)
        here = scores_for(loss, 50, generator)
        there = here + scores_for(loss, 50, generator, 1e-3 if near else 3.0)
        turned = np.linalg.norm(
            (loss.slope(here, targets) - loss.slope(there, targets)).reshape(50, -1), axis=1
        )
        moved = np.linalg.norm((here - there).reshape(50, -1), axis=1)
        assert (turned <= loss.smoothness * moved * (1 + 1e-9) + 1e-13).all()

    def test_smoothness_is_the_least_such_bound(self, loss):
        if isinstance(loss, Softmax):
            scores = np.array(list(itertools.product([-50.0, 0.0], repeat=4)))
            targets = np.zeros(len(scores))
            steepest = np.linalg.eigvalsh(loss.curvature(scores, targets)).max()
        else:
            scores = np.linspace(-8.0, 8.0, 1601)
            steepest = loss.curvature(scores, np.ones_like(scores)).max()
        assert steepest == pytest.approx(loss.smoothness, rel=1e-12)

    @given(seed=st.integers(0, 2**32))
    @settings(max_examples=15, deadline=None)
    def test_value_is_convex_and_not_negative(self, loss, seed):
        generator = np.random.default_rng(seed)
        targets = targets_for(loss, 50, generator)
        a, b = scores_for(loss, 50, generator), scores_for(loss, 50, generator)
        ends = 0.5 * (loss.value(a, targets) + loss.value(b, targets))
        assert (loss.value(0.5 * (a + b), targets) <= ends + 1e-12).all()
        assert (loss.value(a, targets) >= 0).all()

    @pytest.mark.parametrize("dtype", [np.float64, np.float32])
    @pytest.mark.parametrize("target_dtype", [np.float64, np.float32])
    def test_nothing_overflows_at_huge_scores(self, loss, dtype, target_dtype):
        huge = np.array([1e4, -1e4, 1e4, -1e4], dtype=dtype)
        if isinstance(loss, Softmax):
            huge = np.stack([huge, -huge, 0 * huge, 0 * huge], axis=1)
            targets = np.array([0, 0, 1, 1], dtype=target_dtype)
        else:
            targets = np.array([1, 1, -1, -1], dtype=target_dtype)
        with np.errstate(over="raise", invalid="raise", divide="raise"):
            value = loss.value(huge, targets)
            slope = loss.slope(huge, targets)
            curvature = loss.curvature(huge, targets)
        for array in (value, slope, curvature):
            assert np.isfinite(array).all()
        if isinstance(loss, Softmax):
            assert np.allclose(value, [0.0, 2e4, 2e4, 0.0])
            assert np.allclose(slope[1], [-1, 1, 0, 0])
        if isinstance(loss, Logistic):
            assert np.allclose(value, [0.0, 1e4, 1e4, 0.0])
            assert np.allclose(slope, [0, -1, 1, 0])

    def test_targets_are_checked(self, loss):
        generator = np.random.default_rng(1)
        loss.check_targets(targets_for(loss, 10, generator))
        if isinstance(loss, MARGIN_LOSSES):
            wrong = [0.0, 2.0, np.nan, np.inf, 1.0000001]
        elif isinstance(loss, Softmax):
            wrong = [-1.0, 0.5, np.nan, np.inf]
            if loss.classes is not None:
                wrong.append(float(loss.classes))
        else:
            wrong = []
        for bad in wrong:
            with pytest.raises(ValueError, match="row 1 has label"):
                loss.check_targets(np.array([1.0, bad, 1.0]))

    def test_outputs(self, loss):
        targets = np.array([0.0, 3.0, 1.0])
        assert loss.outputs(targets) == (4 if isinstance(loss, Softmax) else 1)


# =========================================================================== domains

DOMAINS = [Everywhere(), Ball(2.0), Ball(0.5), Box(-1.0, 2.0), Box(0.5, 3.0), Box(-4.0, -3.5)]
BOUNDED = [domain for domain in DOMAINS if not isinstance(domain, Everywhere)]


def inside(domain, model, slack=1e-12):
    """Whether a model is in W, by W's definition."""
    if isinstance(domain, Ball):
        return bool(np.sqrt(np.sum(model**2)) <= domain.radius * (1 + slack))
    if isinstance(domain, Box):
        return bool((model >= domain.low - slack).all() and (model <= domain.high + slack).all())
    return True


def draw_by_rejection(domain, count, size, generator):
    """Uniform points of W, from a box around it."""
    if isinstance(domain, Everywhere):
        return 5.0 * generator.standard_normal((count, size))
    if isinstance(domain, Box):
        low, high = domain.low, domain.high
    else:
        low, high = -domain.radius, domain.radius
    points = np.empty((0, size))
    while len(points) < count:
        tries = low + (high - low) * generator.random((2 * count, size))
        kept = [point for point in tries if inside(domain, point, 0.0)]
        points = np.vstack([points, np.array(kept).reshape(-1, size)])
    return points[:count]


@pytest.mark.parametrize("size", [1, 2, 5])
@pytest.mark.parametrize("domain", DOMAINS, ids=named)
class TestDomain:
    @given(seed=st.integers(0, 2**32), scale=st.sampled_from([0.1, 1.0, 10.0, 1e6]))
    @settings(max_examples=15, deadline=None)
    def test_projection(self, domain, size, seed, scale):
        generator = np.random.default_rng(seed)
        u, v = scale * generator.standard_normal((2, size))
        before = u.copy()
        pu, pv = domain.project(u), domain.project(v)
        assert np.array_equal(u, before), "the argument was changed"
        assert pu.shape == u.shape
        assert inside(domain, pu)
        assert np.allclose(domain.project(pu), pu, rtol=1e-14, atol=0), "idempotent"
        distance = np.linalg.norm(u - v)
        assert np.linalg.norm(pu - pv) <= distance * (1 + 1e-12), "non-expansive"
        for point in draw_by_rejection(domain, 20, size, generator):
            # Nearest point of a convex set: the angle at Π(u) towards any other is obtuse.
            assert np.dot(u - pu, point - pu) <= 1e-9 * (1 + np.linalg.norm(u))
            assert np.linalg.norm(u - pu) <= np.linalg.norm(u - point) * (1 + 1e-12)

    def test_points_of_the_domain_stay_where_they_are(self, domain, size):
        for point in draw_by_rejection(domain, 30, size, np.random.default_rng(2)):
            assert np.array_equal(domain.project(point), point)

    def test_projection_keeps_single_precision(self, domain, size):
        for model in (np.full(size, 100.0), np.full(size, 1e-3)):
            assert domain.project(model.astype(np.float32)).dtype == np.float32

    def test_samples_are_inside_and_reproducible(self, domain, size):
        draws = [domain.sample(size, np.random.default_rng(seed)) for seed in (5, 5, 6)]
        assert all(draw.shape == (size,) and inside(domain, draw) for draw in draws)
        assert np.array_equal(draws[0], draws[1])
        if isinstance(domain, Everywhere):
            assert (draws[2] == 0).all()
        else:
            assert not np.array_equal(draws[0], draws[2])

    def test_bounded_says_so(self, domain, size):
        del size
        assert domain.bounded is not isinstance(domain, Everywhere)


@pytest.mark.parametrize("size", [1, 2, 5])
@pytest.mark.parametrize("domain", BOUNDED, ids=named)
def test_samples_are_uniform(domain, size):
    """Two-sample Kolmogorov-Smirnov against rejection sampling on fixed projections.

    5 features × 15 cases at p < 1e-7: fails with probability below 1e-5.
    """
    generator = np.random.default_rng(11)
    drawn = np.array([domain.sample(size, generator) for _ in range(3000)])
    expected = draw_by_rejection(domain, 3000, size, np.random.default_rng(12))
    assert all(inside(domain, point) for point in drawn)
    directions = np.random.default_rng(13).standard_normal((3, size))
    features = [lambda p, a=a: p @ a for a in directions]
    features += [lambda p: np.linalg.norm(p, axis=1), lambda p: p[:, 0] * p[:, -1]]
    for feature in features:
        assert ks_2samp(feature(drawn), feature(expected)).pvalue > 1e-7


def test_single_precision_survives_bounds_given_as_numpy_numbers():
    model = np.full(3, 100.0, dtype=np.float32)
    assert Ball(np.float64(2.0)).project(model).dtype == np.float32
    assert Box(np.float64(-1.0), np.float64(1.0)).project(model).dtype == np.float32


@pytest.mark.parametrize("radius", [0.0, -1.0, np.inf, np.nan])
def test_a_ball_needs_a_radius(radius):
    with pytest.raises(ValueError, match="radius"):
        Ball(radius)


@pytest.mark.parametrize("bounds", [(1.0, 1.0), (2.0, 1.0), (-np.inf, 1.0), (0.0, np.nan)])
def test_a_box_needs_bounds(bounds):
    with pytest.raises(ValueError, match="low < high"):
        Box(*bounds)


# ============================================================================= walks

GRAPHS = {
    # a triangle, a square and a tail: degrees 1, 2, 3, not bipartite
    "kite": graphs.from_edges([(0, 1), (0, 2), (1, 2), (2, 3), (3, 4), (4, 1), (3, 5)]),
    "star": graphs.star(6),
    "path": graphs.grid(1, 6),
    "even ring": graphs.ring(6),
    "complete": graphs.complete(6),
    "edge": graphs.ring(2),
    "random": graphs.erdos_renyi(25, 0.15, seed=3, connected="retry"),
}
IRREGULAR = ["kite", "star", "path", "random"]


def rows_for(graph):
    generator = np.random.default_rng(7)
    owners = np.concatenate([np.arange(graph.node_count), [0, 0, 1]])
    size = np.exp(generator.standard_normal(len(owners)))[:, None]
    return size * generator.standard_normal((len(owners), 3)), owners


def problem_on(graph):
    X, owners = rows_for(graph)
    y = np.random.default_rng(8).standard_normal(len(X))
    return Problem(X, y, loss=Squared(), penalty=0.3, node_of_row=owners)


def importance_for(nodes):
    return 0.5 + np.arange(nodes) % 4


PROBLEMS = {name: problem_on(graph) for name, graph in GRAPHS.items()}

METROPOLIS = {
    "Simple": lambda n: Simple(),
    "Simple corrected": lambda n: Simple(corrected=True),
    "Simple lazy": lambda n: Simple(laziness=0.3),
    "Uniform": lambda n: Uniform(),
    "Uniform lazy": lambda n: Uniform(laziness=0.25),
    "Uniform normalised": lambda n: Uniform(normalise=True),
    "Weighted": lambda n: Weighted(),
    "Weighted lazy": lambda n: Weighted(laziness=0.5),
    "Weighted custom": lambda n: Weighted(importance_for(n)),
    "Weighted custom lazy": lambda n: Weighted(importance_for(n), laziness=0.9),
}
JUMPING = {
    "Jumping": lambda n: Jumping(),
    "Jumping far": lambda n: Jumping(Weighted(), probability=0.5, stop=0.2, longest=6),
    "Jumping one hop": lambda n: Jumping(Simple(), probability=0.3, longest=1),
    "Jumping lazy": lambda n: Jumping(Uniform(laziness=0.4), probability=0.2, stop=1.0),
    "Jumping custom": lambda n: Jumping(Weighted(importance_for(n)), probability=0.9),
}
NON_BACKTRACKING = {
    "NonBacktracking": lambda n: NonBacktracking(),
    "NonBacktracking Simple": lambda n: NonBacktracking(Simple()),
    "NonBacktracking corrected": lambda n: NonBacktracking(Simple(corrected=True)),
    "NonBacktracking Weighted": lambda n: NonBacktracking(Weighted()),
    "NonBacktracking lazy": lambda n: NonBacktracking(Weighted(importance_for(n), laziness=0.5)),
}
INDEPENDENT = {
    "Independent": lambda n: Independent(),
    "Independent Weighted": lambda n: Independent(Weighted()),
    "Independent Simple": lambda n: Independent(Simple(corrected=True)),
    "Independent custom": lambda n: Independent(Weighted(importance_for(n))),
}
WITH_MATRIX = METROPOLIS | JUMPING
WALKS = WITH_MATRIX | NON_BACKTRACKING | INDEPENDENT

cases_of = pytest.mark.parametrize


def setting(name, graph_name):
    graph = GRAPHS[graph_name]
    return WALKS[name](graph.node_count), graph, PROBLEMS[graph_name]


def inner(walk):
    """The Metropolis walk inside a walk."""
    for attribute in ("walk", "law"):
        if hasattr(walk, attribute):
            return getattr(walk, attribute)
    return walk


def weights_by_spec(walk, graph, problem):
    """What SPEC §2 says the stationary law is proportional to."""
    if isinstance(walk, Simple):
        return graph.degrees.astype(float)
    if isinstance(walk, Uniform):
        return np.ones(graph.node_count)
    if walk.importance is not None:
        return np.asarray(walk.importance)
    return problem.smoothness


def matrix_by_spec(walk, graph, problem):
    """SPEC §2: propose a uniform neighbour, accept with min(1, (v_j/v_i)(deg_i/deg_j))."""
    v, N = weights_by_spec(walk, graph, problem), graph.node_count
    P = np.zeros((N, N))
    for i in range(N):
        for j in graph.neighbours(i):
            a = 1.0
            if not isinstance(walk, Simple):
                a = (v[j] / v[i]) * (len(graph.neighbours(i)) / len(graph.neighbours(j)))
            P[i, j] = (1 - walk.laziness) * min(1.0, a) / len(graph.neighbours(i))
        P[i, i] = 1.0 - P[i].sum()
    return P


def jump_matrix_by_spec(walk, graph, problem):
    """A jump of r hops of the simple walk, r geometric and at most `longest`."""
    S = matrix_by_spec(Simple(), graph, problem)
    chances = np.array([walk.stop * (1 - walk.stop) ** r for r in range(walk.longest)])
    jumps = sum(
        chance * np.linalg.matrix_power(S, r + 1) for r, chance in enumerate(chances)
    ) / sum(chances)
    return (1 - walk.probability) * matrix_by_spec(walk.walk, graph, problem) + (
        walk.probability * jumps
    )


def law_of(P):
    """The stationary law of a dense chain, by a linear system."""
    N = len(P)
    system = np.vstack([P.T - np.eye(N), np.ones(N)])
    return np.linalg.lstsq(system, np.append(np.zeros(N), 1.0), rcond=None)[0]


@cases_of("graph_name", GRAPHS)
@cases_of("name", WITH_MATRIX)
class TestTransitionMatrix:
    def test_it_is_the_one_of_the_specification(self, name, graph_name):
        walk, graph, problem = setting(name, graph_name)
        by_spec = matrix_by_spec if isinstance(walk, Metropolis) else jump_matrix_by_spec
        P = walk.transition_matrix(graph, problem).toarray()
        assert np.allclose(P, by_spec(walk, graph, problem), rtol=1e-13, atol=1e-14)

    def test_rows_are_probabilities(self, name, graph_name):
        walk, graph, problem = setting(name, graph_name)
        P = walk.transition_matrix(graph, problem)
        assert (P.data >= 0).all()
        assert np.allclose(P.sum(axis=1), 1.0, rtol=1e-14)

    def test_the_law_stays(self, name, graph_name):
        walk, graph, problem = setting(name, graph_name)
        P, law = walk.transition_matrix(graph, problem), walk.stationary(graph, problem)
        assert law.shape == (graph.node_count,)
        assert (law > 0).all()
        assert law.sum() == pytest.approx(1.0, abs=1e-14)
        assert np.allclose(P.T @ law, law, rtol=1e-10, atol=1e-13)
        assert np.allclose(law, law_of(P.toarray()), rtol=1e-9)

    def test_acceptance_rate_is_the_share_of_moves(self, name, graph_name):
        walk, graph, problem = setting(name, graph_name)
        P, law = walk.transition_matrix(graph, problem).toarray(), walk.stationary(graph, problem)
        expected = 1.0 - sum(law[i] * P[i, i] for i in range(graph.node_count))
        assert walk.acceptance_rate(graph, problem) == pytest.approx(expected, rel=1e-12, abs=1e-14)


@cases_of("graph_name", GRAPHS)
@cases_of("name", METROPOLIS)
class TestMetropolis:
    def test_moves_follow_the_graph(self, name, graph_name):
        walk, graph, problem = setting(name, graph_name)
        P = walk.transition_matrix(graph, problem).toarray()
        linked = graph.adjacency().toarray() > 0
        off_diagonal = ~np.eye(graph.node_count, dtype=bool)
        assert ((P > 0) == linked)[off_diagonal].all()

    def test_detailed_balance(self, name, graph_name):
        walk, graph, problem = setting(name, graph_name)
        assert walk.reversible
        flow = walk.stationary(graph, problem)[:, None] * (
            walk.transition_matrix(graph, problem).toarray()
        )
        assert np.allclose(flow, flow.T, rtol=1e-12, atol=1e-16)

    def test_law_of_the_specification(self, name, graph_name):
        walk, graph, problem = setting(name, graph_name)
        weights = weights_by_spec(walk, graph, problem)
        law = walk.stationary(graph, problem)
        assert np.allclose(law, weights / weights.sum(), rtol=1e-13)


@cases_of("graph_name", ["kite", "star", "random"])
@cases_of("name", WALKS)
class TestEveryWalk:
    def test_hop_takes_the_draws_it_asks_for(self, name, graph_name):
        """Exactly `draws` uniform numbers, more are ignored, fewer are too few."""
        walk, graph, problem = setting(name, graph_name)
        score = walk.score(graph, problem)
        generator = np.random.default_rng(4)
        for _ in range(200):
            node = int(generator.integers(graph.node_count))
            previous = int(generator.choice(graph.neighbours(node)))
            uniforms = generator.random(walk.draws)
            hop = walk.hop(graph, score, node, previous, uniforms)
            again = walk.hop(graph, score, node, previous, np.append(uniforms, 0.5))
            assert hop == again
            assert type(hop.node) is int
            assert 0 <= hop.node < graph.node_count
            if isinstance(walk, Metropolis | NonBacktracking):
                assert hop.node == node or hop.node in graph.neighbours(node)
                assert hop.messages == int(hop.node != node), "a token that stays costs nothing"
            if isinstance(walk, Independent):
                assert hop.messages == int(hop.node != node)
            if isinstance(walk, Jumping):
                assert 0 <= hop.messages <= walk.longest

    @pytest.mark.parametrize("u", [0.0, np.nextafter(1.0, 0.0)])
    def test_hop_at_the_ends_of_the_unit_interval(self, name, graph_name, u):
        walk, graph, problem = setting(name, graph_name)
        score = walk.score(graph, problem)
        for node in range(graph.node_count):
            hop = walk.hop(graph, score, node, -1, np.full(walk.draws, u))
            assert 0 <= hop.node < graph.node_count

    def test_the_gradient_estimate_is_unbiased_where_it_claims_to_be(self, name, graph_name):
        """Σ π_i scale_i ∇f_i(w) = ∇f(w), at any w."""
        walk, graph, problem = setting(name, graph_name)
        law, scale = walk.stationary(graph, problem), walk.gradient_scale(graph, problem)
        assert scale.shape == (graph.node_count,)
        assert (scale > 0).all()
        base = inner(walk)
        biased = (
            (isinstance(base, Simple) and not base.corrected)
            or (isinstance(base, Uniform) and base.normalise)
            or isinstance(walk, Jumping)
        )
        w = np.array([1.0, -2.0, 0.5])
        local = np.array([problem.local_gradient(i, w) for i in range(graph.node_count)])
        whole = problem.gradient(w)
        estimate = (law * scale) @ local
        if not biased:
            assert np.allclose(estimate, whole, rtol=1e-12)
        else:
            assert np.linalg.norm(estimate - whole) > 1e-3 * np.linalg.norm(whole)
        if isinstance(base, Simple) and not base.corrected and not isinstance(walk, Jumping):
            assert np.allclose(estimate, graph.degrees @ local / graph.degrees.sum(), rtol=1e-12)

    def test_pickles_compares_and_hashes(self, name, graph_name):
        walk, _, _ = setting(name, graph_name)
        twin = WALKS[name](GRAPHS[graph_name].node_count)
        for other in (twin, pickle.loads(pickle.dumps(walk)), copy.deepcopy(walk)):
            assert other == walk
            assert hash(other) == hash(walk)
            assert {walk: 1}[other] == 1

    def test_cannot_be_changed(self, name, graph_name):
        walk, _, _ = setting(name, graph_name)
        for spec in (walk, inner(walk)):
            for field in dataclasses.fields(spec):
                with pytest.raises(dataclasses.FrozenInstanceError):
                    setattr(spec, field.name, 0.5)

    def test_repr_is_short(self, name, graph_name):
        walk, _, _ = setting(name, graph_name)
        assert type(walk).__name__ in repr(walk)
        assert len(repr(walk)) <= 100
        assert "\n" not in repr(walk)


def test_different_walks_differ():
    walks = [factory(6) for factory in WALKS.values()]
    walks += [Weighted(importance_for(6) + 1), Jumping(longest=2), Jumping(stop=0.4)]
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


# ------------------------------------------------------------------- hop follows P


@cases_of("graph_name", ["kite", "star"])
@cases_of("name", METROPOLIS)
def test_hop_covers_the_unit_interval_as_the_matrix_says(name, graph_name):
    """On a fine grid of the one uniform number the shares are P to a few grid points."""
    walk, graph, problem = setting(name, graph_name)
    assert walk.draws == 1
    score, P = walk.score(graph, problem), walk.transition_matrix(graph, problem).toarray()
    points = 3000
    for node in range(graph.node_count):
        share = np.zeros(graph.node_count)
        for u in (np.arange(points) + 0.5) / points:
            share[walk.hop(graph, score, node, -1, np.array([u])).node] += 1 / points
        # Each neighbour is accepted on one interval: two ends, each off by at most one point.
        assert np.abs(share - P[node]).max() <= 2 * (len(graph.neighbours(node)) + 1) / points


@cases_of("graph_name", ["kite", "star", "edge"])
@cases_of("name", WITH_MATRIX | INDEPENDENT)
def test_hop_is_drawn_from_the_matrix(name, graph_name):
    """χ² of 1500 hops from each node against the rows of P.

    57 cases at p < 1e-7: fails with probability below 1e-5.
    """
    walk, graph, problem = setting(name, graph_name)
    score, N, hops = walk.score(graph, problem), graph.node_count, 1500
    if isinstance(walk, Independent):
        P = np.tile(walk.stationary(graph, problem), (N, 1))
    else:
        P = walk.transition_matrix(graph, problem).toarray()
    generator = np.random.default_rng(21)
    statistic, freedom = 0.0, 0
    for node in range(N):
        seen = np.zeros(N)
        for uniforms in generator.random((hops, walk.draws)):
            seen[walk.hop(graph, score, node, -1, uniforms).node] += 1
        assert (seen[P[node] == 0] == 0).all(), "a hop that P calls impossible"
        expected = hops * P[node][P[node] > 0]
        statistic += float(((seen[P[node] > 0] - expected) ** 2 / expected).sum())
        freedom += len(expected) - 1
    assert freedom == 0 or chdtrc(freedom, statistic) > 1e-7


@cases_of("graph_name", ["kite", "star"])
@cases_of("name", JUMPING)
def test_a_jumping_walk_visits_by_its_stationary_law(name, graph_name):
    """A walk of 6000 hops against `stationary`, in units of the chain's own deviation.

    The share of a node is asymptotically normal with variance (2⟨f, Zf⟩ − ⟨f, f⟩) / hops,
    f = 1_i − π_i, Z the fundamental matrix. 60 nodes at 5.5 deviations: fails with
    probability below 1e-5. The start is drawn from the law.
    """
    walk, graph, problem = setting(name, graph_name)
    score, law = walk.score(graph, problem), walk.stationary(graph, problem)
    P, N, hops = jump_matrix_by_spec(walk, graph, problem), graph.node_count, 6000
    generator = np.random.default_rng(31)
    node, seen, messages, moved = int(generator.choice(N, p=law)), np.zeros(N), 0, 0
    for uniforms in generator.random((hops, walk.draws)):
        seen[node] += 1
        hop = walk.hop(graph, score, node, -1, uniforms)
        messages += hop.messages
        moved += hop.node != node
        node = hop.node
    Z = np.linalg.inv(np.eye(N) - P + law)
    for i in range(N):
        f = (np.arange(N) == i) - law[i]
        variance = (2 * (law * f) @ (Z @ f) - (law * f) @ f) / hops
        assert abs(seen[i] / hops - law[i]) <= 5.5 * np.sqrt(max(variance, 0.0)) + 1e-12
    assert messages >= moved, "every hop of a jump costs a message"


def test_a_jump_costs_one_message_per_hop():
    """Mean messages of jumps alone: r is geometric(½) cut at 3, so E r = (4 + 2·2 + 3)/7.

    10,000 jumps, deviation .74/100: fails beyond 6 deviations, probability below 1e-8.
    """
    graph, walk = GRAPHS["complete"], Jumping(Uniform(), probability=0.5)
    score, generator = walk.score(graph), np.random.default_rng(5)
    uniforms = generator.random((20_000, walk.draws))
    jumps = uniforms[uniforms[:, 0] < 0.5]
    lengths = [walk.hop(graph, score, 0, -1, row).messages for row in jumps]
    assert np.mean(lengths) == pytest.approx((4 + 4 + 3) / 7, abs=6 * 0.74 / 100)
    assert set(lengths) == {1, 2, 3}


# -------------------------------------------------- non-backtracking, exactly

# Where degrees are 1, 2, 3 and scores v/deg are 1, 2, 3, all the probabilities of a hop are
# fractions of 72, so the midpoints of a grid of 72 × 72 uniform pairs give the chain on
# (previous, node) exactly.
GRID = (np.arange(72) + 0.5) / 72
SCORES = np.array([1.0, 3.0, 2.0, 1.0, 2.0, 3.0])
EXACT = {
    "Uniform": Uniform(),
    "Simple": Simple(),
    "Simple corrected": Simple(corrected=True),
    "lazy Uniform": Uniform(laziness=0.5),
    "Weighted": Weighted(SCORES * GRAPHS["kite"].degrees),
    "lazy Weighted": Weighted(SCORES * GRAPHS["kite"].degrees, laziness=0.5),
}


@pytest.mark.parametrize("name", EXACT)
def test_a_non_backtracking_walk_keeps_the_law_of_its_walk(name):
    graph, walk = GRAPHS["kite"], NonBacktracking(EXACT[name])
    assert set(graph.degrees.tolist()) == {1, 2, 3}
    score, base = walk.score(graph), walk.walk
    states = [(i, int(j)) for j in range(6) for i in graph.neighbours(j)]
    number = {state: s for s, state in enumerate(states)}
    chain = np.zeros((len(states), len(states)))
    returns = 0.0
    for previous, node in states:
        s = number[previous, node]
        for u in GRID:
            for v in GRID:
                following = walk.hop(graph, score, node, previous, np.array([u, v])).node
                state = (previous, node) if following == node else (node, following)
                chain[s, number[state]] += 1 / GRID.size**2
    law = law_of(chain)
    shares = np.zeros(6)
    for (_, node), share in zip(states, law, strict=True):
        shares[node] += share
    assert np.linalg.matrix_rank(chain - np.eye(len(states)), tol=1e-9) == len(states) - 1
    assert np.allclose(shares, base.stationary(graph), rtol=0, atol=1e-10)
    assert np.allclose(shares, walk.stationary(graph), rtol=0, atol=1e-10)
    # It moves as often as its walk does, but turns back less often.
    moves = 1.0 - law @ np.diag(chain)
    assert walk.acceptance_rate(graph) == pytest.approx(moves, abs=1e-10)
    P = base.transition_matrix(graph).toarray()
    plain_returns = 0.0
    for (previous, node), share in zip(states, law, strict=True):
        returns += share * chain[number[previous, node], number[node, previous]]
        plain_returns += share * P[node, previous]
    assert returns < 0.8 * plain_returns


def test_a_non_backtracking_walk_never_turns_back_on_a_ring():
    graph, walk = GRAPHS["even ring"], NonBacktracking(Simple())
    score, generator = walk.score(graph), np.random.default_rng(1)
    for uniforms in generator.random((300, 2)):
        assert walk.hop(graph, score, 2, 1, uniforms).node == 3


@cases_of("walk", [NonBacktracking(), Independent()], ids=named)
def test_walks_without_a_matrix_say_so(walk):
    with pytest.raises(TypeError, match="transition matrix"):
        walk.transition_matrix(GRAPHS["kite"])


def test_walks_that_are_not_reversible_say_so():
    assert not NonBacktracking().reversible
    assert not Jumping().reversible
    assert Simple().reversible


def test_independent_draws_differ_as_often_as_they_say():
    graph, walk = GRAPHS["kite"], Independent(Simple())
    law = graph.degrees / graph.degrees.sum()
    assert np.allclose(walk.stationary(graph), law, rtol=1e-14)
    different = sum(law[i] * law[j] for i, j in itertools.product(range(6), repeat=2) if i != j)
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
    local = np.array([problem.local_gradient(i, w) for i in range(6)])
    drift = (walk.stationary(graph, problem) * walk.gradient_scale(graph, problem)) @ local
    if noise == 0.0:
        assert np.abs(drift).max() < 1e-10
    else:
        assert np.abs(problem.gradient(w)).max() < 1e-10
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
    P, law = walk.transition_matrix(graph).toarray(), importance / importance.sum()
    assert (P >= 0).all()
    assert np.allclose(P.sum(axis=1), 1.0, rtol=1e-13)
    flow = law[:, None] * P
    assert np.allclose(flow, flow.T, rtol=1e-11, atol=1e-300)
    assert np.allclose(walk.stationary(graph), law, rtol=1e-13)
    assert np.allclose(law * walk.gradient_scale(graph), 1 / nodes, rtol=1e-12)
    assert (np.diag(P) >= laziness - 1e-12).all()
