"""Cover time and longest gap of a walk, measured along its paths.

The *cover time* of a path is the number of steps until it has visited every node. A *gap* is the
number of steps between two visits to the same node. Gap weights scale a gradient by gap / N, so
the longest gap limits the step. Covering walks have proven bounds of both.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from walklearn.arrays import Vector
from walklearn.graphs import Graph
from walklearn.objectives import Problem
from walklearn.parts import is_current
from walklearn.simulation.paths import paths_of
from walklearn.walks import Walk

PATHS = 4
STEPS_PER_NODE = 100  # of each path
MAX_STEPS = 1_000_000  # of each path of a compiled walk: a second for all paths
MAX_REFERENCE_STEPS = 10_000  # of each path of a walk without a kernel: some seconds for all paths
SEED = 0


@dataclass(frozen=True)
class Coverage:
    """Cover time and longest gap of a walk, measured along paths from a fixed seed.

    Parameters
    ----------
    cover_time
        The steps until every node was visited, on the path that took longest; infinite if a path
        did not visit every node.
    longest_gap
        The largest number of steps between two visits to a node, over all nodes and paths. After
        the last visit to a node, the rest of the path counts as a gap, too.
    cover_bound, gap_bound
        Proven upper bounds of the two, on a connected graph in which every neighbour answers;
        infinite for walks without one.
    path_count, path_length
        The number of paths, each from a random node, and the steps of each.

    Examples
    --------
    >>> from walklearn import Problem, graphs, walks
    >>> problem = Problem([[1.0], [2.0], [3.0]], [1.0, -1.0, 1.0], penalty=1.0)
    >>> measure(graphs.ring(3), problem, walks.OldestFirst()).coverage
    Coverage(cover_time=2.0, longest_gap=3, cover_bound=13, gap_bound=26, path_count=4, \
path_length=300)
    """

    cover_time: float
    longest_gap: float
    cover_bound: float
    gap_bound: float
    path_count: int
    path_length: int


@dataclass(frozen=True, eq=False)
class Measurement:
    """Coverage of a walk with its longest gap at each node, and the share of steps that move."""

    coverage: Coverage
    longest_gaps: Vector
    acceptance_rate: float


def measure(graph: Graph, problem: Problem, walk: Walk) -> Measurement:
    """Measure cover time and gaps of a walk along `PATHS` paths from a fixed seed.

    Paths take 100 N steps, but at most `MAX_STEPS`, or `MAX_REFERENCE_STEPS` without a kernel.
    """
    nodes, limit = graph.node_count, MAX_STEPS if walk.is_compiled else MAX_REFERENCE_STEPS
    length = min(STEPS_PER_NODE * nodes, limit)
    paths = paths_of(walk, graph, problem, length, PATHS, np.random.SeedSequence(SEED))
    cover_times, gaps = zip(*(cover_time_and_gaps(path, nodes) for path in paths), strict=True)
    longest_gaps = np.max(gaps, axis=0)
    cover_bound, gap_bound = math.inf, math.inf
    if is_current(type(walk), "coverage_bounds", "hop"):
        cover_bound, gap_bound = walk.coverage_bounds(nodes)
    return Measurement(
        Coverage(max(cover_times), int(longest_gaps.max()), cover_bound, gap_bound, PATHS, length),
        longest_gaps,
        float(np.mean(paths[:, 1:] != paths[:, :-1])),
    )


def cover_time_and_gaps(path: NDArray[np.integer], nodes: int) -> tuple[float, Vector]:
    """Return the steps until the path has visited every node, and the longest gap of each node.

    The gap of a node without a visit is the whole path.
    """
    order = np.argsort(path, kind="stable")
    visited, starts = np.unique(path[order], return_index=True)
    first_visits, last_visits = order[starts], order[np.append(starts[1:], path.size) - 1]
    between = np.diff(order, prepend=0)
    between[starts] = path.size - 1 - last_visits  # in place of the distance to another node
    gaps = np.full(nodes, path.size - 1.0)
    gaps[visited] = np.maximum.reduceat(between, starts)
    return (float(first_visits.max()) if visited.size == nodes else math.inf), gaps
