"""The line search: none of these graphs and convex problems makes it diverge.

How many hops it takes beside the best constant step is measured by `benchmarks.memory`.
"""

from __future__ import annotations

from typing import Any

import networkx as nx
import numpy as np
import pytest

import walklearn as wl
from walklearn import updates, walks

GRAPHS = {
    "complete": wl.graphs.complete(30),
    "random": wl.graphs.erdos_renyi(40, 0.3, seed=1),
    "hubs": wl.graphs.barabasi_albert(40, 2, seed=1),
    "ring": wl.graphs.ring(101),
    "barbell": wl.graphs.as_graph(nx.barbell_graph(20, 10)),
    "lollipop": wl.graphs.as_graph(nx.lollipop_graph(25, 25)),
    "star": wl.graphs.star(30),
    "path": wl.graphs.as_graph(nx.path_graph(30)),
}
LOSSES: list[Any] = [
    wl.losses.Squared(),
    wl.losses.Logistic(),
    wl.losses.Huber(0.5),
    wl.losses.SquaredHinge(),
]


def uneven(nodes: int, loss: Any, spread: float = 1.0, scale: float = 1.0) -> wl.Problem:
    """Rows whose lengths are log-normal."""
    generator = np.random.default_rng(3)
    X = scale * generator.standard_normal((nodes, 5))
    X *= np.exp(spread * generator.standard_normal((nodes, 1)))
    y = X @ generator.standard_normal(5) / scale + 0.1 * generator.standard_normal(nodes)
    if loss.takes == "sign":
        y = np.where(y > 0, 1.0, -1.0)
    return wl.Problem(X, y, loss=loss, penalty=0.01 * scale**2, aggregate="mean")


@pytest.mark.parametrize("loss", LOSSES, ids=repr)
@pytest.mark.parametrize("name", GRAPHS)
def test_it_never_diverges(name: str, loss: Any) -> None:
    graph = GRAPHS[name]
    problem = uneven(graph.node_count, loss)
    scale = float(np.linalg.norm(problem.solution.model))
    run = wl.simulate(problem, graph, walks.Uniform(laziness=0.1), update=updates.Saga(),
                      replicates=2, steps=500_000, seed=1, gaps=False, progress=False)  # fmt: skip
    assert run.distance.max() < 100.0 * scale
    assert run.distance[:, -1].max() < 0.05 * scale


@pytest.mark.parametrize("scale", [1e-6, 1e6])
def test_the_units_of_the_rows_do_not_matter(scale: float) -> None:
    """L̂ starts from the first rows, so it need not halve many times."""
    runs = [
        wl.simulate(uneven(40, LOSSES[0], scale=each), GRAPHS["random"], walks.Uniform(),
                    update=updates.Saga(), steps=5000, seed=1, gaps=False)
        for each in (1.0, scale)
    ]  # fmt: skip
    np.testing.assert_allclose(runs[1].models * scale, runs[0].models, rtol=1e-3)


def test_a_fitted_row_does_not_raise_the_curvature_for_ever() -> None:
    """At a gradient of nearly 0 the test is lost in rounding, and is skipped."""
    X = np.eye(4)
    problem = wl.Problem(X, [1.0, 2.0, 3.0, 4.0], loss=wl.losses.Squared())
    run = wl.simulate(problem, wl.graphs.complete(4), walks.Uniform(), update=updates.Saga(),
                      steps=20_000, seed=1)  # fmt: skip
    np.testing.assert_allclose(run.models[0], [1.0, 2.0, 3.0, 4.0], rtol=1e-12)
