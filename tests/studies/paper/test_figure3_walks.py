"""The walks that only Figure 3 has."""

from __future__ import annotations

import numpy as np
import pytest

import walklearn as wl
from tests.walks.every_walk import hopper
from walklearn.privacy import Laplace
from walklearn.studies.paper.figure3_walks import Unclamped, equal_variance_gamma

BOUNDS = (1.0, 50.0)
NOISE = Laplace(scale=30.0, bounds=BOUNDS, clamp=None)


def drawn(released: list[float]) -> Unclamped:
    return Unclamped(privacy=NOISE, released=np.array(released), true=np.ones(len(released)))


def test_a_hop_follows_the_printed_rule() -> None:
    """min(1, (R_j / R_i)(deg_i / deg_j)), where a negative ratio is never accepted."""
    graph = wl.graphs.from_edges([(0, 1), (0, 2), (1, 2), (2, 3), (0, 3)])
    released = [4.0, -3.0, 1.0, -6.0]
    hop = hopper(drawn(released), graph)
    uniforms = (np.arange(3000) + 0.5) / 3000
    for i in range(4):
        ends = [hop(i, np.array([u])).node for u in uniforms]
        shares = np.bincount(ends, minlength=4) / len(uniforms)
        for j in graph.neighbours(i):
            ratio = released[j] / released[i] * graph.degrees[i] / graph.degrees[j]
            assert shares[j] == pytest.approx(max(0, min(1, ratio)) / graph.degrees[i], abs=1e-3)


def test_the_classes_are_never_crossed() -> None:
    graph = wl.graphs.complete(6)
    X, y = wl.datasets.two_gaussians(6, dimension=2, seed=1)
    problem = wl.Problem(X, y, penalty=1.0, domain=wl.domains.Ball(1.0))
    released = np.array([1.0, -1.0, 2.0, -2.0, 3.0, -3.0])
    walk = Unclamped(privacy=NOISE, released=released, true=problem.importance)
    run = wl.simulate(
        problem, graph, walk, steps=300, step_size=wl.PowerStep(0.1), seed=1, engine="reference"
    )
    assert run.visits is not None
    positive, negative = run.visits[released > 0], run.visits[released < 0]
    assert min(positive.sum(), negative.sum()) == 0
    assert max(positive.min(), negative.min()) > 0  # all of its own class are visited


def test_with_positive_releases_it_is_the_weighted_walk() -> None:
    graph = wl.graphs.erdos_renyi(12, 0.5, seed=1)
    released = np.random.default_rng(1).uniform(1.0, 9.0, 12)
    one, twin = hopper(drawn(released.tolist()), graph), hopper(wl.walks.Weighted(released), graph)
    for node in range(12):
        for u in np.linspace(0.0, 0.999, 40):
            uniforms = np.array([u])
            assert one(node, uniforms) == twin(node, uniforms)


def test_releases_are_drawn_once_and_may_be_negative() -> None:
    X, y = wl.datasets.two_gaussians(200, dimension=2, seed=1)
    problem = wl.Problem(X / 4.0, y, penalty=1.0, aggregate="mean")
    graph = wl.graphs.complete(200)
    walk = Unclamped(privacy=NOISE)
    assert walk.is_private
    release_walk = walk.sample_release(graph, problem, np.random.default_rng(1))
    assert not release_walk.is_private
    # Laplace of scale 30 around values below 5 is negative 4 times in 10: none of 200, 1e-40.
    assert (release_walk.released < 0).any()
    assert release_walk.gradient_scale(graph) == pytest.approx(
        problem.importance.mean() / problem.importance
    )
    with pytest.raises(TypeError, match="releases"):
        walk.gradient_scale(graph)


def test_equal_variance() -> None:
    walk = equal_variance_gamma(privacy=NOISE, reweight="as-printed")
    assert walk.reweight == "as-printed"
    assert walk.privacy is not None
    middle = 0.5 * sum(BOUNDS)
    assert float(walk.privacy.variance(middle)) == pytest.approx(2.0 * 30.0**2)
    assert walk.privacy.delta(3.0) > 0.8  # far from the (3, 0.03) of the caption
