"""The time of a run: messages and updates that wait for each other."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import walklearn as wl
from tests.golden.cases import GRAPH, WALKS, problem_of
from walklearn import walks
from walklearn.simulation import averaging

SGD = wl.PowerStep(0.05, 0.75)


@pytest.mark.parametrize("engine", ["compiled", "reference"])
@pytest.mark.parametrize("columns", [4, 48])
@pytest.mark.parametrize("walk", WALKS.values(), ids=repr)
def test_a_token_updates_after_all_its_earlier_hops(walk: Any, columns: int, engine: Any) -> None:
    """An update ends after the messages of the earlier hops and after its own visit time."""
    run = wl.simulate(
        problem_of(columns=columns), GRAPH, walk, step_size=SGD, steps=60, seed=5, replicates=2,
        records=np.arange(1, 61), gaps=False, engine=engine, hop_time=2.5, visit_time=0.25,
    )  # fmt: skip
    earlier = np.column_stack([np.zeros(2), run.messages[:, :-1]])
    np.testing.assert_array_equal(run.time, 2.5 * earlier + 0.25 * run.updates)
    assert (run.spec["hop_time"], run.spec["visit_time"]) == (2.5, 0.25)


def test_exchanges_start_when_both_nodes_are_free() -> None:
    """On a ring of 4 nodes the chains of exchanges are counted by hand."""
    setting = averaging.GossipSetting(
        wl.Problem(np.eye(4), np.ones(4), penalty=1.0), wl.graphs.ring(4),
        wl.AsynchronousGossip(), wl.updates.Sgd(SGD),
    )  # fmt: skip
    network = averaging.init(setting, np.random.default_rng(1))
    # The fraction chooses among the neighbours in ascending order: below 1/2 the first.
    nodes = [0.125, 2.625, 1.625, 2.625, 0.125]  # 0-1 and 2-3; 1-2 waits for both; 2-3, 0-1
    chains = [[1, 1, 0, 0], [1, 1, 1, 1], [1, 2, 2, 1], [1, 2, 3, 3], [3, 3, 3, 3]]
    for node, expected in zip(nodes, chains, strict=True):
        network = averaging.step(setting, network, np.array([node / 4]))
        assert network.exchanges.tolist() == expected


@pytest.mark.parametrize(
    "gossip", [wl.AsynchronousGossip(), wl.SynchronousGossip(), wl.GradientTracking()], ids=repr
)
def test_gossip_takes_a_message_and_an_update_per_exchange(gossip: Any) -> None:
    options: dict[str, Any] = {"step_size": SGD, "steps": 600, "seed": 1, "records": 5}
    run = wl.simulate(problem_of(), GRAPH, gossip, **options, hop_time=2.0, visit_time=0.5)
    rounds = run.time / 2.5
    assert (rounds == np.rint(rounds)).all()
    if isinstance(gossip, wl.AsynchronousGossip):  # a node is in one exchange at a time
        busiest = run.visits.max()  # type: ignore[union-attr]
        assert busiest <= rounds[0, -1] <= 300
    else:
        np.testing.assert_array_equal(rounds[0], run.updates / 12)


def test_a_fit_counts_its_messages() -> None:
    """A message takes 1, and the last hop is not part of the time."""
    X, y = wl.datasets.two_gaussians(60, dimension=3, seed=1)
    fit = wl.RandomWalkClassifier(walk=walks.Uniform(), random_state=1).fit(X, y)
    waiting = fit.trace_.messages - fit.trace_.time
    assert set(waiting.ravel()) <= {0.0, 1.0}
    assert fit.trace_.time[0, -1] > 0
