"""The history-driven walk: its rule, its stationary distribution, and the variance of visits.

Statistical tests fix their seeds; the number in their comments is the chance that correct code
would fail under a fresh seed.
"""

import numpy as np
import pytest

import walklearn as wl
from tests.walks.every_walk import GRAPHS, HISTORY_DRIVEN, hopper, importance_for, setting
from walklearn import walks

cases_of = pytest.mark.parametrize


@cases_of("graph_name", ["kite", "star"])
@cases_of("name", HISTORY_DRIVEN)
def test_it_accepts_by_the_rule_as_printed(name, graph_name):
    """The share of a fine grid that is accepted, against [μ_j (x_j/μ_j)^−α / deg_j] / […]_i."""
    walk, graph, problem = setting(name, graph_name)
    make_hop, shares = hopper(walk, graph, problem), walk.stationary(graph, problem)
    counts = np.random.default_rng(3).integers(2, 30, graph.node_count)
    aim = shares * (counts / shares) ** -walk.alpha / graph.degrees
    points = 3000
    for i in range(graph.node_count):
        share = np.zeros(graph.node_count)
        visits = counts - 1 - (np.arange(graph.node_count) == i)  # x counts from 1, and this visit
        for u in (np.arange(points) + 0.5) / points:
            share[make_hop(i, np.array([u]), visits=visits).node] += 1 / points
        for j in graph.neighbours(i):
            chance = (1 - walk.walk.laziness) * min(1.0, aim[j] / aim[i]) / graph.degrees[i]
            assert share[j] == pytest.approx(chance, abs=2 / points)


def visits_of(walk, graph, steps, replicates, seed):
    """Visits to each node, (replicates, nodes)."""
    problem = wl.Problem(np.ones((graph.node_count, 1)), np.ones(graph.node_count), penalty=1.0)
    runs = [
        wl.simulate(problem, graph, walk, steps=steps, step_size=wl.PowerStep(0.01), records=1,
                    seed=seed + replicate, gaps=False)
        for replicate in range(replicates)
    ]  # fmt: skip
    return np.array([run.visits for run in runs])


@cases_of("base", [walks.Uniform(), walks.Simple(), walks.Weighted(importance_for(25))], ids=repr)
def test_it_visits_by_the_distribution_of_its_walk_and_varies_less(base):
    """80 walks of 20,000 hops: shares to 1e-3, variances to 1/(2α+1) of the walk's, α = 5.

    The mean share of a node has a deviation below 1e-4, so 1e-3 fails with probability below
    1e-9. Σ of 25 sample variances of 80 each is within 40 % of its mean (5 deviations); the ratio
    of two within a factor of 2.3.
    """
    graph, steps, alpha = GRAPHS["random"], 20_000, 5.0
    driven = visits_of(walks.HistoryDriven(base, alpha=alpha), graph, steps, 80, 1) / steps
    plain = visits_of(base, graph, steps, 80, 1001) / steps
    assert np.abs(driven.mean(axis=0) - base.stationary(graph)).max() < 1e-3
    ratio = driven.var(axis=0).sum() / plain.var(axis=0).sum() * (2 * alpha + 1)
    assert 1 / 2.3 < ratio < 2.3


def test_questions_are_messages_of_a_number():
    graph, steps = wl.graphs.ring(9), 500
    X, y = wl.datasets.two_gaussians(9, dimension=3, seed=1)
    problem = wl.Problem(X, y, penalty=1.0)
    options = {"steps": steps, "step_size": wl.PowerStep(0.01), "replicates": 2, "seed": 2}
    run = wl.simulate(problem, graph, walks.HistoryDriven(), **options)
    assert (run.questions[:, -1] == 2 * steps).all(), "a lazy walk would ask less"
    moves = run.messages - run.questions
    assert (moves[:, -1] < steps).all()
    assert (run.bytes == moves * run.message_bytes + run.questions * 8).all()
    assert wl.simulate(problem, graph, walks.Uniform(), **options).questions is None


def test_a_trace_with_questions_survives_its_file(tmp_path):
    problem = wl.Problem([[1.0], [2.0], [3.0]], [1.0, -1.0, 1.0], penalty=1.0)
    run = wl.simulate(problem, wl.graphs.ring(3), walks.HistoryDriven(), steps=50, seed=1,
                      step_size=wl.PowerStep(0.01))  # fmt: skip
    run.save(tmp_path / "run.npz")
    assert wl.Trace.load(tmp_path / "run.npz") == run
