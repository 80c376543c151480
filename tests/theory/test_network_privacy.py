"""The claim against single nodes, beside direct evaluation over all paths of small graphs."""

from __future__ import annotations

import math

import numpy as np
import pytest

import walklearn as wl
from walklearn.theory import network_privacy
from walklearn.theory.network_privacy import NetworkPrivacy

SMALL = {
    "path": wl.graphs.from_edges([(0, 1), (1, 2)]),
    "triangle": wl.graphs.complete(3),
    "paw": wl.graphs.from_edges([(0, 1), (1, 2), (0, 2), (2, 3)]),
}


def least_cost(visits_before: list[int]) -> float:
    """Σ a² of the best way to bring contributions in, b visits before the observer sees them.

    The last b noises must take at least what was contributed within them, so the least sum of
    squares is that of the slopes of the least concave majorant of the count of contributions.
    """
    points = [(0, 0), *((b, number) for number, b in enumerate(sorted(visits_before), start=1))]
    cost, at = 0.0, 0
    while at < len(points) - 1:
        b, count = points[at]
        slopes = [(n - count) / (end - b) for end, n in points[at + 1 :]]
        steepest = max(range(len(slopes)), key=lambda k: (slopes[k], k))
        length = points[at + 1 + steepest][0] - b
        cost += slopes[steepest] ** 2 * length
        at += 1 + steepest
    return cost


def expectation_over_paths(
    graph: wl.Graph, source: int, observer: int, kappa: float, cap: int, length: int
) -> float:
    """E[exp(κ A)] over all paths from the source's first visit, as far as `length` hops show it.

    What is still under way then counts as free, so this is a lower bound.
    """
    matrix = wl.walks.Uniform().transition_matrix(graph).toarray()
    total = 0.0

    def go_on(
        node: int, hop: int, chance: float, pending: list[int], left: int, cost: float
    ) -> None:
        nonlocal total
        if node == source and left:
            pending, left = [*pending, hop], left - 1
        if node == observer and pending:
            cost, pending = cost + least_cost([hop - made for made in pending]), []
        if hop == length or (not left and not pending):
            total += chance * math.exp(kappa * cost)
            return
        for following in np.flatnonzero(matrix[node]):
            further = chance * matrix[node, following]
            go_on(int(following), hop + 1, further, pending, left, cost)

    go_on(source, 0, 1.0, [], cap, 0.0)
    return total


def bound(graph: wl.Graph, source: int, observer: int, kappa: float, cap: int) -> float:
    matrix = wl.walks.Uniform().transition_matrix(graph)
    legs = network_privacy._Legs.of(matrix, observer, np.array([source]), horizon=64)
    return math.exp(float(network_privacy._log_expectation(legs, kappa, cap)[0]))


@pytest.mark.parametrize("name", SMALL)
@pytest.mark.parametrize("kappa", [0.05, 0.5, 2.0])
@pytest.mark.parametrize("cap", [1, 2, 3])
def test_no_path_costs_more_than_is_claimed(name: str, kappa: float, cap: int) -> None:
    graph, length = SMALL[name], 12 if name == "path" else 11
    for source, observer in ((0, 1), (0, 2), (2, 0)):
        seen = expectation_over_paths(graph, source, observer, kappa, cap, length)
        claimed = bound(graph, source, observer, kappa, cap)
        assert seen <= claimed
        assert math.log(claimed) < 1.8 * math.log(seen) + 0.02


def test_a_single_contribution_is_weighed_exactly() -> None:
    """Then nothing is bounded but the paths that enumeration leaves out."""
    graph = SMALL["triangle"]
    seen = expectation_over_paths(graph, 0, 2, 0.7, 1, 14)
    assert bound(graph, 0, 2, 0.7, 1) == pytest.approx(seen, abs=2e-3)


def test_two_contributions_in_a_row_cost_more_than_their_sum() -> None:
    """They shift the model by 2 through two noises: 4/2. Seen apart they would be 1/1 + 1/2."""
    assert least_cost([1, 2]) == 2.0
    assert least_cost([2, 4]) == 1.0
    assert least_cost([1, 10]) == pytest.approx(1 + 1 / 9)


def test_of_two_nodes_each_sees_all_that_the_other_does() -> None:
    noise = wl.privacy.ModelNoise(1.0, 5.0, 10)
    claim = NetworkPrivacy(wl.graphs.complete(2), noise)
    assert claim.epsilon(1e-5, 0, 1) == claim.local(1e-5)


def test_far_nodes_learn_less_and_none_more_than_all_together() -> None:
    noise = wl.privacy.ModelNoise.calibrate(epsilon=3.0, delta=1e-5, clip=1.0, max_contributions=30)
    claim = NetworkPrivacy(wl.graphs.ring(15), noise)
    found = claim.epsilons(1e-5, observer=0)
    assert found[0] == math.inf
    assert (found[1:] <= claim.local(1e-5)).all()
    assert (np.diff(found[1:8]) < 0).all()
    np.testing.assert_allclose(found[1:8], found[:7:-1], rtol=1e-9)


def test_a_shorter_horizon_claims_no_less() -> None:
    noise = wl.privacy.ModelNoise(1.0, 10.0, 12)
    graph = wl.graphs.erdos_renyi(20, 0.3, seed=2)
    short, long = (NetworkPrivacy(graph, noise, horizon=h).epsilons(1e-5, 3) for h in (16, 128))
    assert (short >= long).all()


GOOD = {
    "walk": wl.walks.Uniform(), "step_size": wl.ConstantStep(0.1), "loss": wl.losses.Logistic(),
    "largest_smoothness": 20.0, "objective": "mean", "size": 5, "rows": 10, "average": False,
}  # fmt: skip


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"walk": wl.walks.Simple()}, "Uniform"),
        ({"walk": wl.walks.Uniform(normalise=True)}, "scales no gradient"),
        ({"walk": wl.walks.Weighted()}, "depend on no rows"),
        ({"step_size": wl.PowerStep(0.1)}, "constant"),
        ({"largest_smoothness": 20.1}, "γ L = 2.01"),
        ({"loss": wl.losses.Softmax(3)}, "one slope"),
        ({"average": True}, "earlier models"),
        ({"objective": "node-mean"}, "less noise"),
        ({"relays": True}, "without noise"),
    ],
)
def test_without_a_condition_nothing_is_claimed(change: dict[str, object], words: str) -> None:
    noise = wl.privacy.ModelNoise(1.0, 5.0, 10, protect="rows")
    graph = wl.graphs.ring(5)
    assert network_privacy.seen_from_one_node(graph, noise, **GOOD).rounding > 0
    with pytest.raises(ValueError, match=words):
        network_privacy.seen_from_one_node(graph, noise, **{**GOOD, **change})


def test_a_clip_of_whole_nodes_is_refused() -> None:
    noise = wl.privacy.ModelNoise(1.0, 5.0, 10, protect="node")
    with pytest.raises(ValueError, match="single rows"):
        network_privacy.seen_from_one_node(wl.graphs.ring(5), noise, **GOOD)


def test_a_node_that_is_not_there() -> None:
    with pytest.raises(ValueError, match="no node 9"):
        NetworkPrivacy(wl.graphs.ring(5), wl.privacy.ModelNoise(1.0, 5.0, 10)).epsilon(1e-5, 9, 0)
