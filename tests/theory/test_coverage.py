"""Cover times and gaps: by counting, against proven bounds and measured tables, in diagnoses."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.theory.test_theory import chains, flat_problem, problem_on, text
from walklearn import ConstantStep, PowerStep, Walk, graphs, walks
from walklearn.theory import diagnose, mixing_time, spectral_gap
from walklearn.theory.coverage import cover_time_and_gaps

GAP = walks.Simple(reweight="gap")


def lollipop(nodes: int) -> graphs.Graph:
    """Half of the nodes in a clique, half on a path that begins in it."""
    half = nodes // 2
    clique = [(i, j) for i in range(half) for j in range(i)]
    return graphs.from_edges([*clique, *((i - 1, i) for i in range(half, nodes))])


def random_tree(nodes: int) -> graphs.Graph:
    """Each node joined to a random earlier one."""
    generator = np.random.default_rng(1)
    return graphs.from_edges([(int(generator.integers(i)), i) for i in range(1, nodes)])


@settings(max_examples=200, deadline=None)
@given(st.lists(st.integers(0, 4), min_size=1, max_size=30))
def test_cover_time_and_gaps_by_counting(path: list[int]) -> None:
    last, gaps, cover_time = dict[int, int](), [0] * 5, math.inf
    for k, node in enumerate(path):
        gaps[node] = max(gaps[node], k - last.get(node, k))
        last[node] = k
        if len(last) == 5:
            cover_time = min(cover_time, k)
    for node in range(5):
        gaps[node] = max(gaps[node], len(path) - 1 - last.get(node, 0))
    result, longest = cover_time_and_gaps(np.array(path), 5)
    assert (result, longest.tolist()) == (cover_time, gaps)


@settings(max_examples=40, deadline=None)
@given(chains(), st.sampled_from([walks.OldestFirst(), walks.Tour()]))
def test_coverage_is_within_the_proven_bounds(chain: Any, walk: Walk) -> None:
    graph, _ = chain
    coverage = diagnose(graph, flat_problem(graph.node_count), walk).coverage
    assert coverage is not None
    assert graph.node_count - 1 <= coverage.cover_time <= coverage.cover_bound
    assert graph.node_count <= coverage.longest_gap <= coverage.gap_bound < math.inf


# Longest gap / N and the largest cover time / N, measured before the two walks were part of this
# package: over 4 to 10 draws, 100 N to 200 N hops and other ties. All are maxima, so they differ.
TABLE = {
    "ER": (graphs.erdos_renyi(100, 0.3, seed=1), (1.1, 1.1), (2.4, 1.2)),
    "ring": (graphs.ring(100), (1.0, 1.0), (1.0, 1.0)),
    "star": (graphs.star(100), (2.0, 2.0), (4.0, 2.0)),
    "lollipop": (lollipop(100), (1.5, 1.5), (2.8, 1.9)),
    "tree": (random_tree(1000), (2.0, 2.0), (4.0, 2.0)),
    "grid": (graphs.grid(32, 32), (6.1, 4.9), (4.0, 2.0)),
}


@pytest.mark.parametrize("name", TABLE)
def test_coverage_of_graph_families(name: str) -> None:
    graph, *rows = TABLE[name]
    nodes, problem = graph.node_count, flat_problem(graph.node_count)
    for walk, expected in zip((walks.OldestFirst(), walks.Tour()), rows, strict=True):
        diagnosis = diagnose(graph, problem, walk)
        measured = diagnosis.longest_gap / nodes, diagnosis.cover_time / nodes
        assert measured == pytest.approx(expected, rel=0.12)


@pytest.mark.parametrize("walk", [walks.OldestFirst(), walks.Tour()], ids=repr)
def test_a_covering_walk_has_coverage_instead_of_a_spectrum(walk: Walk) -> None:
    graph, problem = graphs.star(20), problem_on(20)
    diagnosis = diagnose(graph, problem, walk, PowerStep(1e-3))
    assert diagnosis.method == "measured"
    for name in ("lambda_2", "lambda_N", "lambda_P", "spectral_gap", "relaxation_time"):
        assert math.isnan(getattr(diagnosis, name))
    assert math.isnan(diagnosis.mixing_time)
    assert diagnosis.constant is None
    assert diagnosis.setup_messages == 0
    assert diagnosis.warnings == ()
    coverage = diagnosis.coverage
    assert coverage is not None
    assert diagnosis.cover_time == coverage.cover_time
    assert diagnosis.longest_gap == coverage.longest_gap
    assert coverage.path_length == 2000
    stays = 0 if isinstance(walk, walks.OldestFirst) else 1 / 37.5  # once in a round
    assert diagnosis.acceptance_rate == pytest.approx(1.0 - stays, abs=2e-3)
    table = str(diagnosis)
    for number in (coverage.cover_time, coverage.longest_gap, coverage.gap_bound):
        assert f" {number:,.0f} " in table
    assert f"{coverage.path_count} paths of {coverage.path_length:,} steps" in table
    assert "λ" not in table
    again = diagnose(graph, problem, walk, PowerStep(1e-3), seed=1)
    assert (again.coverage, str(again)) == (coverage, table)  # the paths have a fixed seed


def test_spectra_of_covering_walks_are_refused() -> None:
    for function in (spectral_gap, mixing_time):
        with pytest.raises(walks.StationaryUnknownError, match="OldestFirst"):
            function(graphs.ring(5), walks.OldestFirst())


def test_gap_weights_limit_the_step() -> None:
    """On a star the hub is at most 2 steps away, and a leaf nearly 2 N."""
    graph, problem = graphs.star(50), problem_on(50)
    L = problem.smoothness_constants
    diagnosis = diagnose(graph, problem, walks.OldestFirst())
    expected = max(L[0], diagnosis.longest_gap / 50 * L[1:].max())
    assert diagnosis.effective_smoothness == pytest.approx(expected, rel=0.02)
    # L_i of the leaves counts nearly twice at a constant step, and once at a decreasing one.
    flat = flat_problem(50)
    c = 2.0 / flat.smoothness_constants[0]
    constant = text(graph, flat, walks.OldestFirst(), ConstantStep(0.9 * c))
    assert "at 49 of 50 nodes" in constant
    assert "overshoot" not in text(graph, flat, walks.OldestFirst(), ConstantStep(0.5 * c))
    assert "overshoot" not in text(graph, flat, walks.OldestFirst(), PowerStep(0.9 * c))
    assert "overshoot" in text(graph, flat, walks.OldestFirst(), PowerStep(1.1 * c))


@pytest.mark.parametrize(
    "walk",
    [GAP, walks.NonBacktracking(GAP), walks.HistoryDriven(GAP), walks.Jumping(GAP)],
    ids=repr,
)
def test_gap_weights_of_markov_walks_add_coverage_to_the_spectrum(walk: Any) -> None:
    graph, problem = graphs.barabasi_albert(30, 2, seed=1), problem_on(30)
    diagnosis = diagnose(graph, problem, walk)
    plain = diagnose(graph, problem, walk.with_innermost(walks.Simple()))
    assert plain.coverage is None
    assert math.isnan(plain.longest_gap)
    assert "another sum" in " ".join(plain.warnings)
    assert "another sum" not in " ".join(diagnosis.warnings)
    assert diagnosis.spectral_gap == plain.spectral_gap
    assert diagnosis.acceptance_rate == plain.acceptance_rate
    assert diagnosis.constant is None
    assert diagnosis.effective_smoothness > plain.effective_smoothness
    assert diagnosis.longest_gap > 30
    assert "cover time" in str(diagnosis)
    assert "spectral gap" in str(diagnosis)


def test_coverage_says_where_a_covering_walk_helps() -> None:
    """On the lollipop the simple walk mixes slowly, and the walk of the remedy covers the graph."""
    graph, problem = lollipop(100), flat_problem(100)
    simple = diagnose(graph, problem, GAP)
    assert "mixes slowly" in " ".join(simple.warnings)
    assert "walks.OldestFirst()" in " ".join(simple.warnings)
    covering = diagnose(graph, problem, walks.OldestFirst())
    assert 10 * covering.longest_gap < simple.longest_gap
    assert covering.warnings == ()


class Around(Walk):
    """Around a ring."""

    stops: bool = False  # at the last node

    def hop(self, view: Any, token: Any, state: Any, draws: Any) -> walks.Hop:
        if self.stops and view.node == view.nodes - 1:
            return walks.Hop(view.node, 0)
        return walks.Hop((view.node + 1) % view.nodes, 1)


def test_walks_of_unknown_distribution_are_measured() -> None:
    graph, problem = graphs.ring(12), problem_on(12)
    diagnosis = diagnose(graph, problem, Around())
    assert diagnosis.method == "measured"
    assert (diagnosis.cover_time, diagnosis.longest_gap) == (11, 12)
    assert diagnosis.coverage is not None
    assert diagnosis.coverage.gap_bound == math.inf
    assert "unknown" in " ".join(diagnosis.warnings)
    stuck = diagnose(graph, problem, Around(stops=True))
    assert stuck.cover_time == math.inf
    assert "> 1,200" in str(stuck)
    assert "did not visit all of the 12 nodes" in " ".join(stuck.warnings)
