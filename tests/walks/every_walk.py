"""All walks on some graphs, and slow computations of their distributions and matrices."""

import numpy as np

from walklearn import graphs
from walklearn.arrays import zeros
from walklearn.objectives import Problem
from walklearn.objectives.linear.losses import Squared
from walklearn.walks import (
    HistoryDriven,
    Independent,
    Jumping,
    NonBacktracking,
    OldestFirst,
    Simple,
    Tour,
    Uniform,
    Weighted,
    view_of,
)

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
    "Simple corrected": lambda n: Simple(reweight="degree"),
    "Simple gap": lambda n: Simple(reweight="gap"),
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
    "Jumping far": lambda n: Jumping(Weighted(), probability=0.5, stop_probability=0.2, max_hops=6),
    "Jumping one hop": lambda n: Jumping(Simple(), probability=0.3, max_hops=1),
    "Jumping gap": lambda n: Jumping(Simple(reweight="gap"), probability=0.3),
    "Jumping lazy": lambda n: Jumping(Uniform(laziness=0.4), probability=0.2, stop_probability=1.0),
    "Jumping custom": lambda n: Jumping(Weighted(importance_for(n)), probability=0.9),
}
NON_BACKTRACKING = {
    "NonBacktracking": lambda n: NonBacktracking(),
    "NonBacktracking Simple": lambda n: NonBacktracking(Simple()),
    "NonBacktracking corrected": lambda n: NonBacktracking(Simple(reweight="degree")),
    "NonBacktracking gap": lambda n: NonBacktracking(Simple(reweight="gap")),
    "NonBacktracking Weighted": lambda n: NonBacktracking(Weighted()),
    "NonBacktracking lazy": lambda n: NonBacktracking(Weighted(importance_for(n), laziness=0.5)),
}
INDEPENDENT = {
    "Independent": lambda n: Independent(),
    "Independent Weighted": lambda n: Independent(Weighted()),
    "Independent gap": lambda n: Independent(Simple(reweight="gap")),
    "Independent Simple": lambda n: Independent(Simple(reweight="degree")),
    "Independent custom": lambda n: Independent(Weighted(importance_for(n))),
}
HISTORY_DRIVEN = {
    "HistoryDriven": lambda n: HistoryDriven(),
    "HistoryDriven Simple": lambda n: HistoryDriven(Simple(), alpha=3.0),
    "HistoryDriven gap": lambda n: HistoryDriven(Simple(reweight="gap"), alpha=2.0),
    "HistoryDriven lazy": lambda n: HistoryDriven(Weighted(laziness=0.3), alpha=2.0),
    "HistoryDriven custom": lambda n: HistoryDriven(Weighted(importance_for(n)), alpha=0.5),
}
COVERING = {
    "OldestFirst": lambda n: OldestFirst(),
    "Tour": lambda n: Tour(),
    "Tour round": lambda n: Tour(reweight="round"),
}
WITH_MATRIX = METROPOLIS | JUMPING
WITH_STATIONARY = WITH_MATRIX | NON_BACKTRACKING | INDEPENDENT | HISTORY_DRIVEN
WALKS = WITH_STATIONARY | COVERING
GAP_WEIGHTED = {name: make for name, make in WALKS.items() if make(2).has_gap_weights}


def setting(name, graph_name):
    graph = GRAPHS[graph_name]
    return WALKS[name](graph.node_count), graph, PROBLEMS[graph_name]


def hopper(walk, graph, problem=None):
    """Return a function that makes one hop of the walk, bound to the graph.

    It takes the node, the uniform numbers, the previous node, and the earlier visits to each node.
    """
    bound = walk.bind(graph, problem)
    table = bound.announcements(graph, problem)
    fresh = zeros(bound.token_arrays(graph.node_count))

    def hop(node, uniforms, previous=-1, visits=None):
        def states(other):
            state = zeros(bound.node_arrays(1))
            if "visits" in state and visits is not None:
                state["visits"] = np.array([visits[other]])
            return state

        token = fresh | ({"sender": np.array(previous + 1)} if "sender" in fresh else {})
        view = view_of(bound, graph, node, table=table, states=states)
        return bound.hop(view, token, states(node), uniforms)

    return hop


def weights_by_hand(walk, graph, problem):
    """Visit weights v_i: degrees, 1, L_i or the given importance."""
    if isinstance(walk, Simple):
        return graph.degrees.astype(float)
    if isinstance(walk, Uniform):
        return np.ones(graph.node_count)
    if walk.importance is not None:
        return np.asarray(walk.importance)
    return problem.smoothness_constants


def matrix_by_hand(walk, graph, problem):
    """Propose a uniform neighbour, accept with min(1, (v_j/v_i)(deg_i/deg_j))."""
    v, N = weights_by_hand(walk, graph, problem), graph.node_count
    P = np.zeros((N, N))
    for i in range(N):
        for j in graph.neighbours(i):
            a = 1.0
            if not isinstance(walk, Simple):
                a = (v[j] / v[i]) * (len(graph.neighbours(i)) / len(graph.neighbours(j)))
            P[i, j] = (1 - walk.laziness) * min(1.0, a) / len(graph.neighbours(i))
        P[i, i] = 1.0 - P[i].sum()
    return P


def jump_matrix_by_hand(walk, graph, problem):
    """A jump of r hops of the simple walk, r geometric and at most `max_hops`."""
    S = matrix_by_hand(Simple(), graph, problem)
    chances = np.array(
        [walk.stop_probability * (1 - walk.stop_probability) ** r for r in range(walk.max_hops)]
    )
    jumps = sum(
        chance * np.linalg.matrix_power(S, r + 1) for r, chance in enumerate(chances)
    ) / sum(chances)
    return (1 - walk.probability) * matrix_by_hand(walk.walk, graph, problem) + (
        walk.probability * jumps
    )


def stationary_by_hand(P):
    """Stationary distribution of a dense chain, by a linear system."""
    N = len(P)
    system = np.vstack([P.T - np.eye(N), np.ones(N)])
    return np.linalg.lstsq(system, np.append(np.zeros(N), 1.0), rcond=None)[0]
