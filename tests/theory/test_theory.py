"""Eigenvalues against dense ones, bounds that bound, constants by hand, every warning."""

import dataclasses
import math
import warnings as python_warnings
from itertools import pairwise

import networkx
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.objectives.cases import local_gradient
from walklearn import ConstantStep, PowerStep, Problem, domains, graphs, losses, privacy, walks
from walklearn.theory import Constant, diagnose, mixing_time, residual, spectral_gap, spectrum

BALL = domains.Ball(10.0)


def problem_on(nodes, *, seed=0, spread=1.0, domain=BALL, noise=1.0, penalty=1.0):
    """Least squares, one row per node, rows of different size."""
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((nodes, 2)) * np.exp(spread * rng.standard_normal((nodes, 1)))
    y = X @ np.array([1.0, -1.0]) + noise * rng.standard_normal(nodes)
    return Problem(X, y, loss=losses.Squared(), penalty=penalty, domain=domain, aggregate="mean")


def flat_problem(nodes, domain=BALL):
    """All L_i equal, with noise."""
    signs = np.where(np.arange(nodes) % 2, 1.0, -1.0)
    return Problem(np.ones((nodes, 1)), signs, loss=losses.Squared(), penalty=1.0, domain=domain)


def dense_ends(P, shares):
    """1 − λ_2 and 1 + λ_N by dense algebra."""
    root = np.sqrt(shares)
    values = np.linalg.eigvalsh(root[:, None] * P.toarray() / root)
    return 1.0 - values[-2], 1.0 + values[0]


def unnamed(graph):
    """The same graph without its family, so that no closed form applies."""
    return graphs.Graph(graph.indptr, graph.indices)


def text(graph, problem, walk, step_size=None):
    return " ".join(diagnose(graph, problem, walk, step_size).warnings)


@st.composite
def chains(draw):
    """A connected graph of up to 60 nodes (a random tree with extra edges) and a walk on it."""
    nodes, seed = draw(st.integers(2, 60)), draw(st.integers(0, 10_000))
    rng = np.random.default_rng(seed)
    edges = [(int(rng.integers(i)), i) for i in range(1, nodes)]
    for i, j in rng.integers(nodes, size=(draw(st.integers(0, 2 * nodes)), 2)):
        if i != j:
            edges.append((int(i), int(j)))
    laziness = draw(st.sampled_from([0.0, 0.0, 0.3]))
    importance = np.exp(draw(st.sampled_from([0.1, 1.0, 3.0])) * rng.standard_normal(nodes))
    kinds = walks.Simple(), walks.Uniform(), walks.Weighted(importance)
    walk = dataclasses.replace(draw(st.sampled_from(kinds)), laziness=laziness)
    return graphs.from_edges(edges), walk


@settings(max_examples=80, deadline=None)
@given(chains())
def test_eigenvalues_equal_dense_ones(chain):
    graph, walk = chain
    P, shares = walk.transition_matrix(graph), walk.stationary(graph)
    gap_2, gap_N = dense_ends(P, shares)
    result = spectrum.spectrum_of(graph, walk)
    assert result.method == "eigenvalues"
    assert result.gap_2[0] == result.gap_2[1] == pytest.approx(gap_2, rel=1e-6, abs=1e-12)
    assert result.gap_N[0] == result.gap_N[1] == pytest.approx(gap_N, rel=1e-6, abs=1e-12)
    assert spectral_gap(graph, walk) == min(result.gap_2[0], result.gap_N[0])


@settings(max_examples=80, deadline=None)
@given(chains())
def test_bounds_hold_on_both_sides(chain):
    graph, walk = chain
    P, shares = walk.transition_matrix(graph), walk.stationary(graph)
    gap_2, gap_N = dense_ends(P, shares)
    assert 0.0 < spectrum.poincare_bound(P, shares) <= gap_2 * (1 + 1e-9) + 1e-14
    assert 0.0 <= spectrum.odd_path_bound(P, shares) <= gap_N * (1 + 1e-9) + 1e-14
    cut_short = spectrum.reversible_spectrum(P, shares, graph.is_bipartite, limit=3)
    assert cut_short.gap_2[0] <= gap_2 * (1 + 1e-6) + 1e-12
    assert gap_2 <= cut_short.gap_2[1] * (1 + 1e-6) + 1e-12
    assert cut_short.gap_N[0] <= gap_N * (1 + 1e-6) + 1e-12
    assert gap_N <= cut_short.gap_N[1] * (1 + 1e-6) + 1e-12


@settings(max_examples=80, deadline=None)
@given(chains())
def test_period_two_exactly_where_the_last_eigenvalue_is_minus_one(chain):
    graph, walk = chain
    _, gap_N = dense_ends(walk.transition_matrix(graph), walk.stationary(graph))
    diagnosis = diagnose(graph, flat_problem(graph.node_count), walk)
    assert ("period 2" in " ".join(diagnosis.warnings)) == (gap_N < 1e-11)
    assert (diagnosis.lambda_N == -1.0) == (gap_N < 1e-11)


def test_bounds_on_a_path_of_three_nodes():
    """λ_2 = 1/2 and λ_N = −1/2."""
    P, shares = walks.Uniform().transition_matrix(graphs.grid(1, 3)), np.full(3, 1 / 3)
    assert spectrum.poincare_bound(P, shares) == pytest.approx(0.5)
    assert spectrum.odd_path_bound(P, shares) == pytest.approx(0.25)


def test_poincare_is_the_sum_over_all_paths():
    """Against the definition, path by path, on a tree (where all trees agree)."""
    rng = np.random.default_rng(3)
    nodes = 25
    tree = graphs.from_edges([(int(rng.integers(i)), i) for i in range(1, nodes)])
    walk = walks.Weighted(importance=np.exp(rng.standard_normal(nodes)))
    P, shares = walk.transition_matrix(tree), walk.stationary(tree)
    load = {}
    for x, paths in networkx.all_pairs_shortest_path(graphs.to_networkx(tree)):
        for y, path in paths.items():
            for edge in pairwise(path):
                load[edge] = load.get(edge, 0.0) + (len(path) - 1) * shares[x] * shares[y]
    K = max(total / (shares[i] * P[i, j]) for (i, j), total in load.items())
    assert spectrum.poincare_bound(P, shares) == pytest.approx(1 / K, rel=1e-10)


@pytest.mark.parametrize("laziness", [0.0, 0.25])
@pytest.mark.parametrize("walk", [walks.Simple, walks.Uniform, walks.Weighted])
@pytest.mark.parametrize(
    "graph",
    [
        *(graphs.ring(n) for n in (3, 4, 5, 8, 31)),
        *(graphs.torus(*sides) for sides in ((3, 3), (3, 4), (4, 6), (5, 8), (7, 5))),
        *(graphs.hypercube(d) for d in (1, 2, 3, 5)),
        *(graphs.complete(n) for n in (2, 3, 6, 33)),
        *(graphs.star(n) for n in (2, 3, 4, 10)),
    ],
    ids=lambda graph: "-".join(map(str, graph.family)),
)
def test_closed_forms(graph, walk, laziness):
    chain = walk(laziness=laziness)
    problem = flat_problem(graph.node_count)
    result = spectrum.spectrum_of(graph, chain, problem)
    assert result.method == "closed form"
    P, shares = chain.transition_matrix(graph, problem), chain.stationary(graph, problem)
    assert (result.gap_2[0], result.gap_N[0]) == pytest.approx(dense_ends(P, shares), abs=1e-12)
    by_iteration = spectrum.spectrum_of(unnamed(graph), chain, problem)
    assert by_iteration.method == "eigenvalues"
    assert by_iteration.gap_2[0] == pytest.approx(result.gap_2[0], rel=1e-6)
    assert by_iteration.gap_N[0] == pytest.approx(result.gap_N[0], rel=1e-6, abs=1e-12)


def test_no_closed_form_for_unequal_importance():
    graph = graphs.ring(9)
    walk = walks.Weighted(importance=np.arange(1.0, 10.0))
    result = spectrum.spectrum_of(graph, walk)
    assert result.method == "eigenvalues"
    ends = dense_ends(walk.transition_matrix(graph), walk.stationary(graph))
    assert (result.gap_2[0], result.gap_N[0]) == pytest.approx(ends, rel=1e-6)


class Slow(walks.Uniform):
    """The uniform walk, which stays half of the time although it does not declare a laziness."""

    def hop(self, view, token, state, draws):
        if draws[0] < 0.5:
            return walks.Hop(view.node, 0, token, state)
        return super().hop(view, token, state, [2 * draws[0] - 1, *draws[1:]])


class KnownSlow(Slow):
    def transition_matrix(self, graph, objective=None):
        return walks.Uniform(laziness=0.5).transition_matrix(graph)

    def stationary(self, graph, objective=None):
        return walks.Uniform().stationary(graph)


def test_no_closed_form_for_a_subclass_with_its_own_hop():
    graph = graphs.ring(9)
    lazy = spectrum.spectrum_of(graph, walks.Uniform(laziness=0.5))
    assert spectrum.spectrum_of(graph, KnownSlow()).gap == pytest.approx(lazy.gap)
    with pytest.raises(walks.StationaryUnknownError):
        spectrum.spectrum_of(graph, Slow())
    assert spectrum.closed_form(graph, walks.Uniform()) is not None
    assert spectrum.closed_form(graph, KnownSlow()) is None


def test_eigenvalues_agree_with_arpack():
    from scipy.sparse import diags_array
    from scipy.sparse.linalg import eigsh

    graph = graphs.barabasi_albert(3000, 3, seed=1)
    walk = walks.Uniform()
    result = spectrum.spectrum_of(graph, walk)
    root = np.sqrt(walk.stationary(graph))
    S = diags_array(root) @ walk.transition_matrix(graph) @ diags_array(1 / root)
    top = eigsh(S, k=2, which="LA", v0=np.ones(3000), return_eigenvectors=False)
    bottom = eigsh(S, k=1, which="SA", v0=np.ones(3000), return_eigenvectors=False)
    assert result.gap_2[0] == pytest.approx(1 - top.min(), rel=1e-6)
    assert result.gap_N[0] == pytest.approx(1 + bottom[0], rel=1e-6)


def test_a_wide_spread_of_the_importance():
    """π over 24 orders of magnitude; the truth by a chain of two nodes, 1 − λ_2 = P_01 + P_10."""
    walk = walks.Weighted(importance=np.array([1e-12, 1e12]))
    result = spectrum.spectrum_of(graphs.from_edges([(0, 1)]), walk)
    assert result.gap_2[0] == pytest.approx(1.0 + 1e-24, rel=1e-12)
    spread = walks.Weighted(importance=10.0 ** np.linspace(-12, 12, 40))
    assert 0.0 < spectral_gap(graphs.grid(1, 40), spread) < 1.0


def test_ring_of_10001_weighted_converges():
    rng = np.random.default_rng(0)
    walk = walks.Weighted(importance=np.exp(rng.standard_normal(10_001)))
    result = spectrum.spectrum_of(graphs.ring(10_001), walk)
    assert result.method == "eigenvalues"
    P, shares = walk.transition_matrix(graphs.ring(10_001)), walk.stationary(graphs.ring(10_001))
    assert spectrum.poincare_bound(P, shares) < result.gap_2[0]


def test_out_of_budget_gives_a_bound_around_the_truth():
    graph, problem = graphs.ring(100_001), flat_problem(100_001)
    truth = spectrum.spectrum_of(graph, walks.Uniform(laziness=0.2)).gap[0]
    diagnosis = diagnose(unnamed(graph), problem, walks.Uniform(laziness=0.2))
    low, high = diagnosis.gap_bounds
    assert diagnosis.method == "bound"
    assert 0.0 < low < truth < high
    assert diagnosis.spectral_gap == low
    assert low > 0.1 * truth
    warnings = " ".join(diagnosis.warnings)
    assert f"between {low:.3g} and {high:.3g}" in warnings
    assert "bound: between" in str(diagnosis)


def test_independent_draws_and_a_single_node():
    graph = graphs.ring(6)
    independent = diagnose(graph, flat_problem(6), walks.Independent())
    assert (independent.lambda_2, independent.lambda_N, independent.lambda_P) == (0.0, 0.0, 0.5)
    assert independent.mixing_time == 1.0
    assert independent.acceptance_rate == pytest.approx(5 / 6)
    assert not independent.warnings
    for walk in (walks.Uniform(), walks.Weighted(), walks.Simple(), walks.NonBacktracking(),
                 walks.Jumping(), walks.Independent(), walks.HistoryDriven()):  # fmt: skip
        alone = diagnose(graphs.ring(1), flat_problem(1), walk)
        assert alone.spectral_gap == 1.0
        assert alone.setup_messages == 0
        assert "Entrapment" not in " ".join(alone.warnings)
        assert str(alone)


@pytest.mark.parametrize("nodes", [12, 60])
def test_jumps_have_the_second_largest_modulus(nodes):
    graph, problem = graphs.erdos_renyi(nodes, 0.3, seed=2), problem_on(nodes)
    walk = walks.Jumping(walks.Weighted(), probability=0.2)
    diagnosis = diagnose(graph, problem, walk)
    values = np.linalg.eigvals(walk.transition_matrix(graph, problem).toarray())
    assert diagnosis.lambda_2 == pytest.approx(np.sort(np.abs(values))[-2], rel=1e-6)
    assert diagnosis.spectral_gap == pytest.approx(1 - diagnosis.lambda_2)
    assert not diagnosis.reversible
    assert math.isnan(diagnosis.lambda_N)
    assert math.isnan(diagnosis.mixing_time)
    assert diagnosis.constant is None
    assert diagnosis.acceptance_rate == pytest.approx(walk.acceptance_rate(graph, problem))
    warnings = " ".join(diagnosis.warnings)
    assert "not reversible" in warnings
    assert "lower jump probability" in warnings
    assert "not reversible" in str(diagnosis)


def test_jumps_on_a_large_graph_are_unknown():
    diagnosis = diagnose(graphs.ring(3001), flat_problem(3001), walks.Jumping(walks.Uniform()))
    assert diagnosis.method == "unknown"
    assert math.isnan(diagnosis.spectral_gap)
    assert "unknown" in " ".join(diagnosis.warnings)
    assert "unknown" in str(diagnosis)


def test_single_hop_jumps_keep_the_period():
    graph, problem = graphs.ring(6), flat_problem(6)
    with_period = walks.Jumping(walks.Uniform(), max_hops=1)
    assert "period 2" in text(graph, problem, with_period)
    assert "period 2" not in text(graph, problem, walks.Jumping(walks.Uniform()))


def test_non_backtracking_reports_its_base_walk():
    graph, problem = graphs.erdos_renyi(30, 0.3, seed=1), problem_on(30)
    base = diagnose(graph, problem, walks.Weighted())
    diagnosis = diagnose(graph, problem, walks.NonBacktracking(walks.Weighted()))
    assert not diagnosis.reversible
    assert base.reversible
    assert diagnosis.spectral_gap == base.spectral_gap
    assert diagnosis.constant == base.constant
    assert diagnosis.setup_messages == base.setup_messages == 2 * graph.edge_count
    assert "base walk Weighted()" in " ".join(diagnosis.warnings)


@settings(max_examples=40, deadline=None)
@given(chains(), st.sampled_from([0.25, 0.01]))
def test_mixing_time_really_bounds(chain, distance):
    graph, walk = chain
    steps = mixing_time(graph, walk, distance=distance)
    if steps > 1e6:
        return
    power = np.linalg.matrix_power(walk.transition_matrix(graph).toarray(), math.ceil(steps))
    total_variation = 0.5 * np.abs(power - walk.stationary(graph)).sum(axis=1)
    assert total_variation.max() <= distance


def test_mixing_time_by_hand_and_its_refusal():
    graph = graphs.complete(5)
    assert mixing_time(graph, walks.Uniform()) == pytest.approx(math.log(20) / 0.75)
    assert mixing_time(graphs.ring(4), walks.Uniform()) == math.inf
    with pytest.raises(ValueError, match="distance"):
        mixing_time(graph, walks.Uniform(), distance=0.0)


def test_residual_is_the_mean_over_local_gradients():
    rng = np.random.default_rng(1)
    X = rng.standard_normal((12, 3))
    owners = [0, 0, 0, 1, 1, 3, 3, 3, 3, 4, 4, 4]  # node 2 is a relay, and so is 5
    for loss, y in ((losses.Logistic(), rng.choice([-1.0, 1.0], 12)),
                    (losses.Softmax(), rng.integers(3, size=12)),
                    (losses.Squared(), rng.standard_normal(12))):  # fmt: skip
        for aggregate in ("sum", "mean"):
            problem = Problem(X, y, loss=loss, penalty=0.5, node_of_row=owners, nodes=6,
                              empty_nodes="relay", aggregate=aggregate)  # fmt: skip
            model = rng.standard_normal(problem.size)
            by_node = [np.sum(local_gradient(problem, i, model) ** 2) for i in range(6)]
            assert residual(problem, model) == pytest.approx(np.mean(by_node))


def test_residual_in_blocks(monkeypatch):
    problem = problem_on(50)
    model = np.array([0.3, -2.0])
    whole = residual(problem, model)
    monkeypatch.setattr("walklearn.theory.constants.NUMBERS_AT_ONCE", 7)
    assert residual(problem, model) == pytest.approx(whole)


def test_residual_does_not_depend_on_which_minimiser():
    rng = np.random.default_rng(2)
    X = np.column_stack([rng.standard_normal(9), np.zeros(9)])  # the second weight is free
    problem = Problem(X, rng.standard_normal(9), loss=losses.Squared(), domain=BALL)
    assert not problem.solution.unique
    model = problem.solution.model
    assert residual(problem, model) == pytest.approx(
        residual(problem, model + np.array([0.0, 3.0]))
    )
    diagnosis = diagnose(graphs.ring(9), problem, walks.Uniform())
    assert diagnosis.residual == residual(problem, model)


def test_constants_by_hand():
    graph, problem = graphs.erdos_renyi(20, 0.4, seed=3), problem_on(20)
    L = problem.smoothness_constants
    w = problem.solution.model
    σ2 = np.mean([np.sum(local_gradient(problem, i, w) ** 2) for i in range(20)])

    def expect(walk, theorem, noise, smoothness):
        diagnosis = diagnose(graph, problem, walk)
        mixing = 1 / math.log(1 / diagnosis.lambda_P)
        result = diagnosis.constant
        assert result.theorem == theorem
        assert result.noise == pytest.approx(noise)
        assert result.smoothness == pytest.approx(smoothness)
        assert result.mixing == pytest.approx(mixing)
        assert result.value == max(result.noise, result.smoothness, result.mixing)

    expect(walks.Uniform(), "Theorem 1", σ2, L.max() ** 2)
    expect(walks.Weighted(), "Theorem 2", L.mean() / L.min() * σ2, L.mean() ** 2)
    expect(walks.Weighted(importance=2 * L), "Theorem 2", L.mean() / L.min() * σ2, L.mean() ** 2)
    expect(walks.Independent(walks.Uniform()), "Theorem 1", σ2, L.max() ** 2)
    v = np.arange(1.0, 21.0)
    expect(walks.Weighted(importance=v), "Theorem 2 with importance v",
           v.mean() / v.min() * σ2, (v.mean() * np.max(L / v)) ** 2)  # fmt: skip
    d = graph.degrees.astype(float)
    expect(walks.Simple(reweight="degree"), "Theorem 2 with importance v",
           d.mean() / d.min() * σ2, (d.mean() * np.max(L / d)) ** 2)  # fmt: skip
    assert diagnose(graph, problem, walks.Simple()).constant is None
    assert diagnose(graph, problem, walks.Uniform(normalise=True)).constant is None


def test_numbers_of_a_diagnosis():
    graph, problem = graphs.erdos_renyi(20, 0.4, seed=3), problem_on(20)
    diagnosis = diagnose(graph, problem, walks.Weighted())
    λ = max(abs(diagnosis.lambda_2), abs(diagnosis.lambda_N))
    assert diagnosis.spectral_gap == pytest.approx(1 - λ)
    assert diagnosis.lambda_P == pytest.approx((λ + 1) / 2)
    assert diagnosis.relaxation_time == pytest.approx(1 / (1 - λ))
    assert diagnosis.gap_bounds == (diagnosis.spectral_gap, diagnosis.spectral_gap)
    expected = walks.Weighted().acceptance_rate(graph, problem)
    assert diagnosis.acceptance_rate == pytest.approx(expected)
    assert diagnosis.effective_smoothness == pytest.approx(problem.smoothness_constants.mean())
    assert diagnosis.largest_step == pytest.approx(2 / problem.smoothness_constants.mean())
    assert diagnose(graph, problem, walks.Simple()).setup_messages == 0
    assert diagnosis == diagnose(graph, problem, walks.Weighted())


def test_the_table_contains_the_numbers():
    diagnosis = diagnose(graphs.erdos_renyi(20, 0.4, seed=3), problem_on(20), walks.Weighted(),
                         ConstantStep(100.0))  # fmt: skip
    table = str(diagnosis)
    for number in (diagnosis.spectral_gap, diagnosis.mixing_time, diagnosis.residual,
                   diagnosis.acceptance_rate, diagnosis.largest_step, diagnosis.constant.value,
                   diagnosis.constant.mixing, diagnosis.relaxation_time):  # fmt: skip
        assert f"{number:.4g}" in table
    assert f"λ_2 = {diagnosis.lambda_2:.6g}" in table
    assert f"{diagnosis.setup_messages} " in table
    assert "compare walks only" in table
    assert all(warning in table for warning in diagnosis.warnings)
    assert math.isnan(Constant("Theorem 1", math.nan, 1.0, math.inf).value)


def test_a_good_choice_has_no_warnings():
    graph, problem = graphs.erdos_renyi(20, 0.4, seed=3), problem_on(20, spread=0.1)
    largest = diagnose(graph, problem, walks.Uniform()).largest_step
    for walk in (walks.Uniform(), walks.Weighted(), walks.Simple(reweight="degree")):
        result = diagnose(graph, problem, walk, PowerStep(0.5 * largest, 0.75))
        assert result.warnings == ()
        assert "Warnings" not in str(result)


def test_sizes_must_agree():
    with pytest.raises(ValueError, match=r"5 nodes, .* 6"):
        diagnose(graphs.ring(5), flat_problem(6), walks.Uniform())


@pytest.mark.parametrize("walk", [walks.Uniform, walks.Simple, walks.Weighted])
def test_warns_of_period_two(walk):
    assert "laziness=0.1" in text(graphs.ring(6), flat_problem(6), walk())
    assert "period 2" not in text(graphs.ring(6), flat_problem(6), walk(laziness=0.1))
    assert "period 2" not in text(graphs.ring(7), flat_problem(7), walk())


def test_warns_of_slow_mixing():
    warnings = text(graphs.ring(101), flat_problem(101), walks.Uniform())
    assert "mixes slowly" in warnings
    assert "Pass laziness=0.1" in warnings
    assert "walks.OldestFirst(), which visits every node again within 1010 steps" in warnings
    assert "404 bytes" in warnings
    lazy = text(graphs.ring(301), flat_problem(301), walks.Uniform(laziness=0.1))
    assert "add edges" in lazy
    assert "laziness" not in lazy
    assert "mixes slowly" not in text(graphs.complete(101), flat_problem(101), walks.Uniform())
    large = text(graphs.ring(70_001), flat_problem(70_001), walks.Uniform())
    assert "walks.Tour(), which visits every node again within 280004 steps" in large
    assert "8751 bytes" in large


def test_warns_of_entrapment():
    importance = np.ones(10)
    importance[4] = 100.0
    graph, problem = graphs.complete(10), flat_problem(10)
    walk = walks.Weighted(importance=importance)
    stay = 1 / (1 - walk.transition_matrix(graph)[4, 4])
    warnings = text(graph, problem, walk)
    assert f"1 node holds the token for more than 20 steps on average; the worst is node 4 with " \
           f"{stay:.4g} steps" in warnings  # fmt: skip
    assert "Jumping" in warnings
    assert "clip" in warnings
    importance[4] = 15.0
    assert "Entrapment" not in text(graph, problem, walks.Weighted(importance=importance))
    star = text(graphs.star(40), flat_problem(40), walks.Uniform())
    assert "39 nodes hold" in star
    assert "Simple(reweight='gap')" in star
    assert "walks.OldestFirst()" in star
    # Laziness of one's own choice is no entrapment.
    assert "Entrapment" not in text(graph, problem, walks.Uniform(laziness=0.99))


def test_warns_of_bias():
    irregular, problem = graphs.star(5), problem_on(5)
    simple = text(irregular, problem, walks.Simple())  # of degrees 1 and 4, 1.6 on average
    assert "another sum" in simple
    assert "0.62 to 2.5 times" in simple
    assert "Simple(reweight='gap')" in simple
    assert "another sum" not in text(irregular, problem, walks.Simple(reweight="degree"))
    assert "another sum" not in text(graphs.complete(5), problem, walks.Simple())
    normalised = walks.Uniform(normalise=True)
    assert "Use Uniform()." in text(graphs.complete(5), problem, normalised)
    exact = problem_on(5, noise=0.0, penalty=0.0)
    for walk in (normalised, walks.Simple()):
        assert "another sum" not in text(irregular, exact, walk)
    mechanism = privacy.ClampedGamma(4.0, (1.0, 8.0))
    printed = walks.Weighted(privacy=mechanism, reweight="as-printed")
    assert 'Use reweight="released".' in text(irregular, problem, printed)


def test_warns_of_an_unbounded_domain_and_of_no_optimum():
    everywhere = problem_on(5, domain=domains.Everywhere())
    assert "W is bounded" in text(graphs.complete(5), everywhere, walks.Uniform())
    assert "bounded" not in text(graphs.complete(5), problem_on(5), walks.Uniform())
    separable = Problem([[1.0], [-1.0], [2.0]], [1.0, -1.0, 1.0])
    diagnosis = diagnose(graphs.complete(3), separable, walks.Uniform(), ConstantStep(0.1))
    assert math.isnan(diagnosis.residual)
    assert math.isnan(diagnosis.constant.value)
    assert "no minimiser" in " ".join(diagnosis.warnings)
    assert "neighbourhood" not in " ".join(diagnosis.warnings)
    assert "unknown" in str(diagnosis)


def test_warns_of_a_constant_step_with_noise():
    graph = graphs.complete(5)
    noisy, exact = problem_on(5), problem_on(5, noise=0.0, penalty=0.0)
    step = ConstantStep(1e-3)
    assert "neighbourhood" in text(graph, noisy, walks.Uniform(), step)
    assert "neighbourhood" not in text(graph, exact, walks.Uniform(), step)
    assert "neighbourhood" not in text(graph, noisy, walks.Uniform(), PowerStep(1e-3))


@pytest.mark.parametrize(("q", "warned"), [(0.4, True), (0.5, True), (0.51, False), (1.0, True)])
def test_warns_of_the_exponent(q, warned):
    with python_warnings.catch_warnings():
        python_warnings.simplefilter("ignore")  # PowerStep itself warns too
        step = PowerStep(1e-3, q)
    warnings = text(graphs.complete(5), problem_on(5), walks.Uniform(), step)
    assert ("outside (0.5, 1)" in warnings) == warned


def test_warns_of_steps_that_overshoot():
    graph, inside = graphs.complete(5), flat_problem(5)
    largest = diagnose(graph, inside, walks.Uniform()).largest_step
    assert "overshoot" not in text(graph, inside, walks.Uniform(), PowerStep(0.99 * largest))
    bounded = text(graph, inside, walks.Uniform(), PowerStep(8 * largest, 0.75))
    assert "8 times" in bounded
    assert "until about k = 16 " in bounded  # 8^(1/0.75)
    assert "at 5 of 5 nodes" in bounded
    assert "bounces" in bounded
    assert "many more steps" in bounded
    assert "Use c" not in bounded  # a decreasing step becomes short enough
    anywhere = flat_problem(5, domains.Everywhere())
    assert "grow exponentially" in text(
        graph, anywhere, walks.Uniform(), PowerStep(8 * largest, 0.75)
    )
    assert "Use c" in text(graph, anywhere, walks.Uniform(), PowerStep(8 * largest, 0.75))
    assert "does not converge" in text(graph, inside, walks.Uniform(), ConstantStep(2 * largest))
    assert "not converge" not in text(graph, inside, walks.Uniform(), ConstantStep(largest))


def test_a_hundred_thousand_nodes():
    graph = graphs.erdos_renyi(100_000, 1e-4, seed=1, connected="largest")
    problem = problem_on(graph.node_count, spread=0.3)
    diagnosis = diagnose(graph, problem, walks.Weighted(), PowerStep(1e-3))
    assert diagnosis.method == "eigenvalues"
    assert 0.0 < diagnosis.spectral_gap < 1.0
