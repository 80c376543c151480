"""Every walk hops by its matrix and its stationary distribution.

Statistical tests fix their seeds; the number in their comments is the chance that correct code
would fail under a fresh seed.
"""

import numpy as np
import pytest
from scipy.special import chdtrc

from tests.walks.every_walk import (
    GRAPHS,
    INDEPENDENT,
    JUMPING,
    METROPOLIS,
    WITH_MATRIX,
    hopper,
    jump_matrix_by_hand,
    setting,
    stationary_by_hand,
)
from walklearn.walks import Independent, Jumping, NonBacktracking, Simple, Uniform, Weighted

cases_of = pytest.mark.parametrize


@cases_of("graph_name", ["kite", "star"])
@cases_of("name", METROPOLIS)
def test_hop_covers_the_unit_interval_as_the_matrix_says(name, graph_name):
    """On a fine grid of the one uniform number the shares are P to a few grid points."""
    walk, graph, problem = setting(name, graph_name)
    assert walk.draws == 1
    make_hop = hopper(walk, graph, problem)
    P = walk.transition_matrix(graph, problem).toarray()
    points = 3000
    for node in range(graph.node_count):
        share = np.zeros(graph.node_count)
        for u in (np.arange(points) + 0.5) / points:
            share[make_hop(node, np.array([u])).node] += 1 / points
        # Each neighbour is accepted on one interval: two ends, each off by at most one point.
        assert np.abs(share - P[node]).max() <= 2 * (len(graph.neighbours(node)) + 1) / points


@cases_of("graph_name", ["kite", "star", "edge"])
@cases_of("name", WITH_MATRIX | INDEPENDENT)
def test_hop_is_drawn_from_the_matrix(name, graph_name):
    """χ² of 1500 hops from each node against the rows of P.

    57 cases at p < 1e-7: fails with probability below 1e-5.
    """
    walk, graph, problem = setting(name, graph_name)
    make_hop, N, hops = hopper(walk, graph, problem), graph.node_count, 1500
    if isinstance(walk, Independent):
        P = np.tile(walk.stationary(graph, problem), (N, 1))
    else:
        P = walk.transition_matrix(graph, problem).toarray()
    generator = np.random.default_rng(21)
    statistic, freedom = 0.0, 0
    for node in range(N):
        counts = np.zeros(N)
        for uniforms in generator.random((hops, walk.draws)):
            counts[make_hop(node, uniforms).node] += 1
        assert (counts[P[node] == 0] == 0).all(), "a hop that P calls impossible"
        expected = hops * P[node][P[node] > 0]
        statistic += float(((counts[P[node] > 0] - expected) ** 2 / expected).sum())
        freedom += len(expected) - 1
    assert freedom == 0 or chdtrc(freedom, statistic) > 1e-7


@cases_of("graph_name", ["kite", "star"])
@cases_of("name", JUMPING)
def test_a_jumping_walk_visits_by_its_stationary_distribution(name, graph_name):
    """A walk of 6000 hops against `stationary`, in units of the chain's own deviation.

    The share of a node is asymptotically normal with variance (2⟨f, Zf⟩ − ⟨f, f⟩) / hops,
    f = 1_i − π_i, Z the fundamental matrix. 60 nodes at 5.5 deviations: fails with
    probability below 1e-5. The start is drawn from the distribution.
    """
    walk, graph, problem = setting(name, graph_name)
    make_hop, shares = hopper(walk, graph, problem), walk.stationary(graph, problem)
    P, N, hops = jump_matrix_by_hand(walk, graph, problem), graph.node_count, 6000
    generator = np.random.default_rng(31)
    node, counts, messages, moved = int(generator.choice(N, p=shares)), np.zeros(N), 0, 0
    for uniforms in generator.random((hops, walk.draws)):
        counts[node] += 1
        hop = make_hop(node, uniforms)
        messages += hop.messages
        moved += hop.node != node
        node = hop.node
    Z = np.linalg.inv(np.eye(N) - P + shares)
    for i in range(N):
        f = (np.arange(N) == i) - shares[i]
        variance = (2 * (shares * f) @ (Z @ f) - (shares * f) @ f) / hops
        assert abs(counts[i] / hops - shares[i]) <= 5.5 * np.sqrt(max(variance, 0.0)) + 1e-12
    assert messages >= moved, "every hop of a jump costs a message"


def test_a_jump_costs_one_message_per_hop():
    """Mean messages of jumps alone: r is geometric(½) cut at 3, so E r = (4 + 2·2 + 3)/7.

    10,000 jumps, deviation .74/100: fails beyond 6 deviations, probability below 1e-8.
    """
    graph, walk = GRAPHS["complete"], Jumping(Uniform(), probability=0.5)
    make_hop, generator = hopper(walk, graph), np.random.default_rng(5)
    uniforms = generator.random((20_000, walk.draws))
    jumps = uniforms[uniforms[:, 0] < 0.5]
    lengths = [make_hop(0, row).messages for row in jumps]
    assert np.mean(lengths) == pytest.approx((4 + 4 + 3) / 7, abs=6 * 0.74 / 100)
    assert set(lengths) == {1, 2, 3}


@pytest.mark.parametrize("longest", [1, 3, 2000])
@pytest.mark.parametrize("stop", [1e-12, 0.5, 1.0])
def test_jumps_that_stop_hop_by_hop_have_their_lengths(stop, longest):
    """P(r) = stop_r Π (1 − stop_h) over the hops before, even where the last are impossible."""
    walk = Jumping(Uniform(), stop_probability=stop, max_hops=longest)
    stops = walk.stops
    assert stops[-1] == 1.0
    reached = np.cumprod(np.append(1.0, 1.0 - stops[:-1]))
    assert reached * stops == pytest.approx(walk.lengths, rel=1e-9, abs=1e-300)


# -------------------------------------------------- non-backtracking, exactly

# Where degrees are 1, 2, 3 and scores v/deg are 1, 2, 3, all the probabilities of a hop are
# fractions of 72, so the midpoints of a grid of 72 × 72 uniform pairs give the chain on
# (previous, node) exactly.
GRID = (np.arange(72) + 0.5) / 72
SCORES = np.array([1.0, 3.0, 2.0, 1.0, 2.0, 3.0])
EXACT = {
    "Uniform": Uniform(),
    "Simple": Simple(),
    "Simple corrected": Simple(reweight="degree"),
    "lazy Uniform": Uniform(laziness=0.5),
    "Weighted": Weighted(SCORES * GRAPHS["kite"].degrees),
    "lazy Weighted": Weighted(SCORES * GRAPHS["kite"].degrees, laziness=0.5),
}


@pytest.mark.parametrize("name", EXACT)
def test_a_non_backtracking_walk_keeps_the_distribution_of_its_walk(name):
    graph, walk = GRAPHS["kite"], NonBacktracking(EXACT[name])
    assert set(graph.degrees.tolist()) == {1, 2, 3}
    make_hop, base = hopper(walk, graph), walk.walk
    states = [(i, int(j)) for j in range(6) for i in graph.neighbours(j)]
    number = {state: s for s, state in enumerate(states)}
    chain = np.zeros((len(states), len(states)))
    for previous, node in states:
        s = number[previous, node]
        for u in GRID:
            for v in GRID:
                following = make_hop(node, np.array([u, v]), previous).node
                state = (previous, node) if following == node else (node, following)
                chain[s, number[state]] += 1 / GRID.size**2
    of_states = stationary_by_hand(chain)
    shares = np.bincount([node for _, node in states], of_states)
    assert np.linalg.matrix_rank(chain - np.eye(len(states)), tol=1e-9) == len(states) - 1
    assert np.allclose(shares, base.stationary(graph), rtol=0, atol=1e-10)
    assert np.allclose(shares, walk.stationary(graph), rtol=0, atol=1e-10)
    # It moves as often as its walk does, but turns back less often.
    moves = 1.0 - of_states @ np.diag(chain)
    assert walk.acceptance_rate(graph) == pytest.approx(moves, abs=1e-10)
    P = base.transition_matrix(graph).toarray()
    returns = [chain[number[i, j], number[j, i]] for i, j in states]
    plain_returns = [P[j, i] for i, j in states]
    assert of_states @ returns < 0.8 * (of_states @ plain_returns)


def test_a_non_backtracking_walk_never_turns_back_on_a_ring():
    graph, walk = GRAPHS["even ring"], NonBacktracking(Simple())
    make_hop, generator = hopper(walk, graph), np.random.default_rng(1)
    for uniforms in generator.random((300, 2)):
        assert make_hop(2, uniforms, previous=1).node == 3
