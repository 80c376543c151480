"""Covering walks: bounds of their rounds and gaps, a simpler rule without bounds, lost state."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import walklearn as wl
from walklearn import graphs, walks
from walklearn.arrays import Arrays, zeros
from walklearn.updates import Sgd
from walklearn.visit import Setting
from walklearn.walks import Hop, OldestFirst, StationaryUnknownError, Tour, View
from walklearn.walks.covering import MAX_VISITS

GADGET = [(0, 1), (0, 3), (0, 4), (2, 3), (2, 4), (3, 5), (4, 5)]


def chain_of_gadgets(copies: int) -> wl.Graph:
    """Six-node gadgets in a row; node 2 is joined to node 3 of the next copy."""
    edges = [(6 * c + i, 6 * c + j) for c in range(copies) for i, j in GADGET]
    return graphs.from_edges(edges + [(6 * c + 2, 6 * c + 9) for c in range(copies - 1)])


def chain_of_diamonds(copies: int) -> wl.Graph:
    """Squares in a row, joined at opposite corners."""
    corners = [(0, 1), (0, 2), (1, 3), (2, 3)]
    return graphs.from_edges([(3 * c + i, 3 * c + j) for c in range(copies) for i, j in corners])


def random_tree(nodes: int, rng: np.random.Generator) -> wl.Graph:
    return graphs.from_edges([(int(rng.integers(i)), i) for i in range(1, nodes)])


def random_graph(nodes: int, rng: np.random.Generator) -> wl.Graph:
    """A random tree with up to 2 N more edges."""
    edges = {(int(rng.integers(i)), i) for i in range(1, nodes)}
    for _ in range(int(rng.integers(2 * nodes))):
        i, j = sorted(map(int, rng.integers(nodes, size=2)))
        edges |= {(i, j)} if i < j else set()
    return graphs.from_edges(sorted(edges))


class Path:
    """A walk alone: its arrays on the token and at every node, and the hops so far."""

    def __init__(self, walk: walks.Walk, graph: wl.Graph, seed: int = 0, node: int = 0) -> None:
        self.walk, self.graph, self.node, self.visits = walk, graph, node, 0
        self.rng = np.random.default_rng(seed)
        self.token = zeros(walk.token_arrays(graph.node_count))
        self.states = [zeros(walk.node_arrays(1)) for _ in range(graph.node_count)]

    def hop(self, answers: Callable[[int, int], bool] = lambda i, j: True) -> Hop:
        neighbours = self.graph.neighbours(self.node)
        neighbours = neighbours[[answers(self.node, int(j)) for j in neighbours]]
        view = View(self.node, self.graph.node_count, self.visits, 0, neighbours, (), [],
                    lambda j: {}, self.graph.neighbours)  # fmt: skip
        hop = self.walk.hop(view, self.token, self.states[self.node], self.rng.random(1))
        self.token = {name: np.asarray(array) for name, array in hop.token.items()}
        self.states[self.node], self.node = hop.state, hop.node
        self.visits += 1
        return hop


def longest_gap(path: Path, hops: int) -> int:
    """Return the largest number of hops without a visit to some node, stays not counted."""
    last, count, longest = np.zeros(path.graph.node_count, int), 0, 0
    while count < hops:
        longest = max(longest, count - last[path.node])
        last[path.node] = count
        count += path.hop().messages
    return max(longest, int((count - last).max()))


GRAPHS = {
    "random": random_graph,
    "tree": random_tree,
    "gadgets": lambda n, rng: chain_of_gadgets(max(1, n // 6)),
    "diamonds": lambda n, rng: chain_of_diamonds(max(1, n // 3)),
    "ring": lambda n, rng: graphs.ring(n),
    "star": lambda n, rng: graphs.star(n),
    "complete": lambda n, rng: graphs.complete(n),
}


@given(family=st.sampled_from(sorted(GRAPHS)), nodes=st.integers(2, 48), seed=st.integers(0, 2**32))
@settings(max_examples=40, deadline=None)
def test_oldest_first_visits_every_node_within_ten_hops_per_node(
    family: str, nodes: int, seed: int
) -> None:
    graph = GRAPHS[family](nodes, np.random.default_rng(seed))
    path = Path(OldestFirst(), graph, seed, node=seed % graph.node_count)
    assert longest_gap(path, 40 * graph.node_count) <= 10 * graph.node_count


@given(family=st.sampled_from(sorted(GRAPHS)), nodes=st.integers(2, 48), seed=st.integers(0, 2**32))
@settings(max_examples=40, deadline=None)
def test_a_tour_has_short_rounds_and_gaps(family: str, nodes: int, seed: int) -> None:
    """Rounds of at most 2N − 3 hops (1 for N = 2), and gaps of at most 4N − 6 (2)."""
    graph = GRAPHS[family](nodes, np.random.default_rng(seed))
    count = graph.node_count
    assert longest_gap(Path(Tour(), graph, seed), 20 * count) <= max(4 * count - 6, 2)
    path, new = Path(Tour(reweight="round"), graph, seed), 0.0
    hops, rounds = 0, 0
    while rounds < 5:
        view: Any = View(path.node, count, path.visits, 0, graph.neighbours(path.node), (), [],
                         lambda j: {}, graph.neighbours)  # fmt: skip
        new += path.walk.weight(view, path.token, path.states[path.node])
        moved = path.hop().messages
        hops += moved
        if not moved:  # the round is complete: every node had weight 1 once
            assert new == count
            assert hops <= max(2 * count - 3, 1)
            new, hops, rounds = 0.0, 0, rounds + 1


def plain_cover_time(graph: wl.Graph, seed: int, limit: int) -> int:
    """Return the cover time of oldest first without the search, in hops; at most the limit."""
    rng, stamps = np.random.default_rng(seed), np.zeros(graph.node_count, int)
    node = int(rng.integers(graph.node_count))
    for k in range(1, limit + 1):
        stamps[node] = k
        if stamps.all():
            return k - 1
        neighbours = graph.neighbours(node)
        oldest = neighbours[stamps[neighbours] == stamps[neighbours].min()]
        node = int(rng.choice(oldest))
    return limit


def test_the_search_bounds_a_walk_that_is_slow_without_it() -> None:
    """A chain of 16 gadgets: the plain rule takes 28 N hops in the mean of 400 draws.

    The seeds of six of them are fixed. Oldest first visits every node in any 10 N hops.
    """
    graph = chain_of_gadgets(16)
    nodes = graph.node_count
    plain = [plain_cover_time(graph, seed, 100 * nodes) for seed in range(6)]
    assert np.mean(plain) > 25 * nodes
    for seed in range(6):
        path = Path(OldestFirst(), graph, seed)
        assert longest_gap(path, 40 * nodes) <= 10 * nodes
        assert path.token["stamps"].min() > 30 * nodes


@pytest.mark.parametrize("walk", [OldestFirst(), Tour()], ids=repr)
@given(family=st.sampled_from(sorted(GRAPHS)), nodes=st.integers(2, 30), seed=st.integers(0, 2**32))
@settings(max_examples=25, deadline=None)
def test_silent_neighbours_and_lost_states_do_not_trap_the_token(
    walk: walks.Walk, family: str, nodes: int, seed: int
) -> None:
    """After links fail, copies restart and states are lost, it still covers the graph."""
    rng = np.random.default_rng(seed)
    graph = GRAPHS[family](nodes, rng)
    path, count = Path(walk, graph, seed), graph.node_count
    copy: tuple[int, int, Arrays] = path.node, path.visits, path.token
    for _ in range(10 * count):
        path.hop(lambda i, j: bool(rng.random() < 0.6))
        if rng.random() < 1 / count:
            copy = path.node, path.visits, path.token
        if rng.random() < 1 / count:
            path.node, path.visits, path.token = copy
        if rng.random() < 1 / count:
            path.states[int(rng.integers(count))] = zeros(walk.node_arrays(1))
    visited = np.zeros(count, bool)
    for _ in range(12 * count):
        visited[path.node] = True
        path.hop()
    assert visited.all()


def test_a_search_among_wrong_parents_ends() -> None:
    """Two nodes that are each other's parent cannot hold the token."""
    path = Path(OldestFirst(), graphs.grid(1, 40), node=20)
    path.hop()
    path.token |= {"start": np.int32(1), "strict": np.bool_(True)}
    path.token["stamps"] = np.where(np.arange(40) < 2, 0, 1).astype("<i4")
    for i in range(40):
        parent = np.array([i + 1 - 2 * (i % 2)], "<i4")
        path.states[i] = {"parent": parent, "start": np.array([1], "<i4")}
    visited = {path.node}
    for _ in range(20 * 40):
        path.hop()
        visited.add(path.node)
    assert len(visited) == 40


@pytest.mark.parametrize("walk", [OldestFirst(), Tour()], ids=repr)
def test_a_token_without_a_neighbour_that_answers_stays(walk: walks.Walk) -> None:
    path = Path(walk, graphs.ring(5))
    for _ in range(40):
        hop = path.hop(lambda i, j: False)
        assert (hop.node, hop.messages) == (0, 0)
    assert longest_gap(path, 60) <= 50
    problem, step = wl.Problem([[1.0]], [1.0], penalty=1.0), wl.PowerStep(0.5)
    single = wl.simulate(problem, graphs.complete(1), walk, step_size=step, steps=50, seed=1)
    assert single.visits.tolist() == [50]
    assert single.messages[0, -1] == 0


def test_oldest_first_refuses_stamps_that_are_too_long() -> None:
    nodes = 65_537
    large = wl.Problem(np.ones((nodes, 1)), np.ones(nodes), penalty=1.0)
    with pytest.raises(ValueError, match=r"65,537 nodes.*Tour\(\)"):
        Setting(large, OldestFirst(), Sgd(wl.PowerStep(0.1)))
    Setting(large, Tour(), Sgd(wl.PowerStep(0.1)))
    small = wl.Problem(np.ones((5, 1)), np.ones(5), penalty=1.0)
    for walk in (OldestFirst(), Tour()):
        Setting(small, walk, Sgd(wl.PowerStep(0.1)), updates=MAX_VISITS)
        with pytest.raises(ValueError, match="2,147,483,648 updates"):
            Setting(small, walk, Sgd(wl.PowerStep(0.1)), updates=MAX_VISITS + 1)


@pytest.mark.parametrize(("walk", "size"), [(OldestFirst(), 4 * 11 + 4 + 1), (Tour(), 2 + 4 + 4)])
def test_arrays_of_the_walk_count_in_a_message(walk: walks.Walk, size: int) -> None:
    problem = wl.Problem(np.ones((11, 3)), np.ones(11), penalty=1.0)
    setting = Setting(problem, walk, Sgd(wl.PowerStep(0.1)))
    assert setting.message_bytes == 8 * 3 + size


@pytest.mark.parametrize("walk", [OldestFirst(), Tour()], ids=repr)
def test_they_have_no_stationary_distribution(walk: walks.Walk) -> None:
    graph = graphs.ring(5)
    for compute in (walk.stationary, walk.transition_matrix, walk.acceptance_rate):
        with pytest.raises(StationaryUnknownError, match=type(walk).__name__):
            compute(graph)
    with pytest.raises(StationaryUnknownError):
        wl.theory.spectral_gap(graph, walk)
    problem = wl.Problem(np.ones((5, 1)), np.ones(5), penalty=1.0)
    run = wl.simulate(problem, graph, walk, step_size=wl.PowerStep(0.1), steps=50, seed=1)
    assert run.expected_visits is None
    assert run.announcements == 0
