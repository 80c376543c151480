"""Random streams: streams of nodes change only the numbers, and are independent."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import walklearn as wl
from walklearn.streams import generators, node_seed, replicate_seed

GRAPH = wl.graphs.ring(9)
X, Y = wl.datasets.two_gaussians(9, dimension=2, seed=1)
PROBLEM = wl.Problem(X, Y, penalty=1.0, domain=wl.domains.Ball(3.0))


def run(**options: Any) -> wl.Trace:
    walk = options.pop("walk", wl.walks.Weighted())
    return wl.simulate(PROBLEM, GRAPH, walk, steps=300, step_size=wl.PowerStep(0.02), seed=3,
                       **options)  # fmt: skip


def test_all_streams_differ_and_only_the_seed_decides() -> None:
    root = np.random.SeedSequence(1)
    root.spawn(3)  # what was spawned before does not matter
    seeds = [replicate_seed(root, 0), replicate_seed(root, 1)]
    seeds += [node_seed(seed, node) for seed in seeds for node in range(3)]
    pairs = [generators(seed) for seed in seeds]
    first = {stream.random() for pair in pairs for stream in (pair.walk, pair.noise)}
    assert len(first) == 2 * len(seeds)
    again = generators(replicate_seed(np.random.SeedSequence(1), 1), nodes=3)
    assert again.of(2).walk.random() in first
    assert again.of(2) is again.of(2)  # a node's stream continues


def test_a_node_that_does_not_exist() -> None:
    streams = generators(np.random.SeedSequence(1), nodes=3)
    with pytest.raises(IndexError, match=r"nodes are 0\.\.2"):
        streams.of(3)


def test_cores_records_and_replicates_change_nothing() -> None:
    wanted = run(streams="node", replicates=3)
    assert wanted == run(streams="node", replicates=3, cores=1)
    np.testing.assert_array_equal(
        wanted.models[:2], run(streams="node", replicates=2, records=1).models
    )


def test_streams_of_nodes_begin_like_that_of_the_replicate() -> None:
    """The start is the replicate's in both; after one update the average is the start."""
    of_nodes, shared = (
        run(streams=streams, records=[1, 300], replicates=2) for streams in ("node", "replicate")
    )
    np.testing.assert_array_equal(of_nodes.average_distance[:, 0], shared.average_distance[:, 0])
    assert (of_nodes.models != shared.models).all()
    assert (of_nodes.spec["streams"], shared.spec["streams"]) == ("node", "replicate")


def test_a_node_releases_from_its_own_stream() -> None:
    mechanism = wl.privacy.Laplace(2.0, (1.0, 20.0))
    released = run(walk=wl.walks.Weighted(privacy=mechanism), streams="node").released
    assert released is not None
    source = generators(node_seed(replicate_seed(np.random.SeedSequence(3), 0), 4)).walk
    assert released[0, 4] == mechanism.release(PROBLEM.smoothness_constants[4], source)


def test_visits_keep_their_distribution() -> None:
    """Own streams are as good as one: 400 replicates of the uniform walk, each node's share within
    5 standard deviations over replicates, which fails by chance with a probability below 1e-5."""
    trace = run(walk=wl.walks.Uniform(laziness=0.3), streams="node", replicates=400)
    assert trace.visits is not None
    shares = trace.visits / trace.visits.sum()
    # λ_2 = .3 + .7 cos 40° = .836: (1 + λ_2) / (1 − λ_2) = 11.2 steps are worth one draw at least.
    allowed = 5 * np.sqrt((1 / 9) * (8 / 9) / (400 * 300 / 11.2))
    assert np.abs(shares - 1 / 9).max() < allowed
