"""Gap weights: their sum for each node, the limit of the iterates, and refusals."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import walklearn as wl
from tests.walks.every_walk import GAP_WEIGHTED
from walklearn import graphs, walks
from walklearn.updates import Saga, Sgd, VisitResult
from walklearn.visit import Setting, Walker, init_token

STEP = wl.PowerStep(0.1)
GAP = walks.Simple(reweight="gap")
FAMILIES = {
    "complete": graphs.complete(9),
    "erdos-renyi": graphs.erdos_renyi(40, 0.15, seed=3, connected="retry"),
    "ring": graphs.ring(11),
    "star": graphs.star(8),
    "grid": graphs.grid(3, 4),
    "barabasi-albert": graphs.barabasi_albert(30, 2, seed=1),
    "barbell": graphs.barbell(4, 2),
    "edge": graphs.ring(2),
}


def problem_on(graph: wl.Graph) -> wl.Problem:
    X, y = wl.datasets.two_gaussians(graph.node_count, dimension=2, seed=1)
    return wl.Problem(X, y, penalty=1.0)


def walker_on(graph: wl.Graph, walk: walks.Walk, update: Any = None) -> Walker:
    problem = problem_on(graph)
    setting = Setting(problem, walk.bind(graph, problem), update or Sgd(STEP))
    return Walker(setting, graph, 0, init_token(setting))


@pytest.mark.parametrize("family", FAMILIES)
@pytest.mark.parametrize("name", list(GAP_WEIGHTED))
def test_the_weights_of_a_node_telescope(name: str, family: str) -> None:
    """1 + (k_r − k_1) / N after visits at k_1 < … < k_r, whatever the walk."""
    graph = FAMILIES[family]
    walker = walker_on(graph, GAP_WEIGHTED[name](graph.node_count))
    generator, nodes = np.random.default_rng(2), graph.node_count
    total, first, last = np.zeros(nodes), np.zeros(nodes, int), np.zeros(nodes, int)
    for k in range(1, 501):
        node = walker.node
        _, weight = walker.visit(walker.setting.draw(generator, generator))
        total[node] += weight
        first[node], last[node] = first[node] or k, k
    assert walker.token.visits == 500
    np.testing.assert_allclose(total, (first > 0) + (last - first) / nodes, rtol=1e-12)


@pytest.mark.parametrize(
    "walk", [GAP, walks.NonBacktracking(GAP), walks.OldestFirst(), walks.Tour()], ids=repr
)
def test_gap_weights_remove_the_bias_of_a_hub(walk: walks.Walk) -> None:
    """The centre of a star has half of the visits and counts as one of ten nodes.

    The runs end within 0.05 of the mean; unweighted ones end 0.4 away from it (the seed is fixed).
    """
    graph, y = graphs.star(10), np.r_[1.0, np.zeros(9)]
    problem = wl.Problem(np.ones((10, 1)), y, loss=wl.losses.Squared(), aggregate="mean")
    options: Any = {"steps": 20_000, "seed": 1, "step_size": wl.PowerStep(0.5), "records": 1}
    weighted = wl.simulate(problem, graph, walk, **options)
    assert weighted.averages[0] == pytest.approx(0.1, abs=0.05)
    plain = wl.simulate(problem, graph, walks.Simple(), **options)
    assert plain.averages[0] == pytest.approx(0.5, abs=0.1)


class SumOfRounds(wl.Update):
    """Counts the gradients of each round; it needs rounds."""

    @property
    def needs(self) -> dict[str, str]:
        return {"has_rounds": "Use walks.Tour(reweight='round')."}

    def visit(self, context: Any, token: Any, state: Any) -> VisitResult:
        return VisitResult({"model": token["model"] + context.weight})


@pytest.mark.parametrize(
    ("walk", "update", "error", "words"),
    [
        (GAP, Saga(), ValueError, "Saga.*Simple"),
        (walks.NonBacktracking(GAP), Saga(), ValueError, "Saga.*Simple"),
        (walks.Tour(reweight="round"), Sgd(STEP), ValueError, r"Sgd.*rounds.*Tour\(\)"),
        (walks.Tour(reweight="round"), Saga(), ValueError, "rounds"),
        (walks.Tour(), SumOfRounds(), wl.CapabilityError, "once per round.*reweight='round'"),
        (walks.OldestFirst(), SumOfRounds(), wl.CapabilityError, "once per round"),
        (walks.Uniform(), SumOfRounds(), wl.CapabilityError, "once per round"),
    ],
    ids=repr,
)
def test_weights_without_a_use_are_refused(
    walk: Any, update: Any, error: type[Exception], words: str
) -> None:
    with pytest.raises(error, match=words):
        Setting(problem_on(graphs.ring(5)), walk, update)


@pytest.mark.parametrize("walk", [GAP, walks.OldestFirst(), walks.Tour()], ids=repr)
def test_weights_scale_a_contribution_outside_its_clip_and_noise(walk: walks.Walk) -> None:
    """The clipped gradient has the length of the clip whatever the weight, and the cap counts it.

    The noise is a billionth of the clip, to see what it is added to.
    """
    graph, clip, cap = graphs.star(8), 0.01, 5
    problem = problem_on(graph)
    noise = wl.privacy.ModelNoise(clip, 1e-9, max_contributions=cap, protect="node")
    update = Sgd(wl.ConstantStep(0.1))
    setting = Setting(problem, walk.bind(graph, problem), update, privacy=noise)
    walker, generator = Walker(setting, graph, 0, init_token(setting)), np.random.default_rng(1)
    visits, weights = np.zeros(8, int), set()
    for _ in range(120):
        node, before = walker.node, walker.token.update["model"]
        _, weight = walker.visit(setting.draw(generator, generator))
        visits[node] += 1
        weights.add(weight)
        contribution = (before - walker.token.update["model"]) / (0.1 * weight)
        if visits[node] <= cap:
            length = np.linalg.norm(contribution - problem.penalty * before)
            assert length == pytest.approx(clip, rel=1e-6)
        else:
            np.testing.assert_array_equal(contribution, 0.0)
    assert max(weights) > 1.0 > min(weights)
    spent = [int(walker.state(node).privacy["contributions"]) for node in range(8)]
    assert spent == np.minimum(visits, cap).tolist()


def test_covering_walks_serve_updates_with_memory_which_ignore_their_weights() -> None:
    graph = graphs.star(12)
    for walk in (walks.OldestFirst(), walks.Tour()):
        run = wl.simulate(problem_on(graph), graph, walk, update=Saga(), steps=3000, seed=1)
        assert run.gap[0, -1] < 1e-9


@pytest.mark.parametrize("update", [Sgd(STEP), Saga()], ids=repr)
@pytest.mark.parametrize("walk", [walks.OldestFirst(), walks.Uniform()], ids=repr)
def test_several_tokens_need_a_shared_sum(walk: Any, update: Any) -> None:
    with pytest.raises(ValueError, match=r"2 tokens.*tokens=1"):
        Setting(problem_on(graphs.ring(5)), walk, update, tokens=2)


def test_only_the_simple_walk_has_a_choice_of_weights() -> None:
    assert walks.Simple(reweight="gap") != walks.Simple(reweight="degree") != walks.Simple()
    for reweight in (True, "round", "gaps"):
        with pytest.raises(ValueError, match='"degree" or "gap"'):
            walks.Simple(reweight=reweight)  # type: ignore[arg-type]
    for kind in (walks.Uniform, walks.OldestFirst):
        with pytest.raises(TypeError, match="reweight"):
            kind(reweight="gap")  # type: ignore[call-arg]
    with pytest.raises(ValueError, match="reweight"):
        walks.Tour(reweight="degree")  # type: ignore[arg-type]
