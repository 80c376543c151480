"""Before anything is timed: do the contestants do the same work?"""

from __future__ import annotations

import ctypes
import math
from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from benchmarks.c_loops import CWalk
from benchmarks.numpy_loop import NumpyWalk
from walklearn.graphs import Graph
from walklearn.simulation.batches import Batch
from walklearn.simulation.compiled_batches import CompiledWalks
from walklearn.simulation.runner import BLOCK_NUMBERS
from walklearn.streams import Streams
from walklearn.updates.update import VisitContext
from walklearn.visit import Setting

Array = NDArray[Any]

SEED = 2024


def generators(count: int) -> list[np.random.Generator]:
    return [np.random.default_rng(seed) for seed in np.random.SeedSequence(SEED).spawn(count)]


def streams_of(walks: Sequence[np.random.Generator]) -> list[Streams]:
    return [Streams(walk, np.random.default_rng(SEED)) for walk in walks]  # no noise is drawn


def batch_of(setting: Setting, graph: Graph, walks: Sequence[np.random.Generator]) -> CompiledWalks:
    return CompiledWalks(setting, graph, streams_of(walks))


def advance(batch: Batch, iterations: int) -> None:
    """In blocks, as `simulate` does."""
    block = max(1, BLOCK_NUMBERS // (len(batch.streams) * batch.draws))
    while iterations > 0:
        count = min(block, iterations)
        batch.advance(count)
        iterations -= count


def verify_update(library: ctypes.CDLL, setting: Setting, graph: Graph, hops: int = 300) -> None:
    """Hop by hop, C must do what walklearn's reference update does, and go to a neighbour."""
    problem, update = setting.objective, setting.update
    c, scale = CWalk(library, setting, graph, SEED), setting.walk.gradient_scale(graph, problem)
    total = np.zeros_like(c.model)
    for k in range(1, hops + 1):
        i = int(c.token.node)
        total += update.step_size(k) * c.model
        token = update.init_token(problem) | {"model": c.model.copy()}
        c.run(1)
        context = VisitContext(problem, i, 0, float(scale[i]), k - 1, 0, c.picks[None])
        expected = update.visit(context, token, {}).token["model"]
        tolerance = {"rtol": 1e-9, "atol": 1e-9 * problem.domain.radius}
        np.testing.assert_allclose(c.model, expected, **tolerance)
        np.testing.assert_allclose(c.sum, total, **tolerance)
        if c.token.node != i and c.token.node not in graph.neighbours(i):
            raise AssertionError(f"the C loop went from {i} to {c.token.node}, no neighbour")


def verify_law(
    library: ctypes.CDLL, setting: Setting, graph: Graph, hops: int, replicates: int = 64
) -> None:
    """C and walklearn must visit by the same law, and come as near to the optimum.

    Both are compared to within 5 standard errors, taken from independent replicates.
    """
    ours = [batch_of(setting, graph, [g]) for g in generators(replicates)]
    theirs = [CWalk(library, setting, graph, SEED + r) for r in range(replicates)]
    for batch, c in zip(ours, theirs, strict=True):
        advance(batch, hops)
        c.run(hops)
    optimum = setting.objective.solution.model
    stationary = setting.walk.stationary(graph, setting.objective)
    expected_moves = setting.walk.acceptance_rate(graph, setting.objective)

    visits = np.array([[b.visits for b in ours], [c.visits for c in theirs]]) / hops
    moves = np.array([[b.messages[0] for b in ours], [c.token.messages for c in theirs]]) / hops
    averages = np.array([[b.averages[0, 0] for b in ours], [c.average for c in theirs]])
    models = np.array([[b.models[0, 0] for b in ours], [c.model for c in theirs]])
    distances, last_distances = (np.linalg.norm(w - optimum, axis=2) for w in (averages, models))
    for observed, expected in ((visits, stationary), (moves, expected_moves)):
        for lines in observed:
            _agree(lines - expected)
    _agree(distances[0] - distances[1])
    _agree(last_distances[0] - last_distances[1])


def _agree(differences: Array) -> None:
    """Fail if a mean over the first axis is more than 5 standard errors from 0."""
    error = differences.std(axis=0, ddof=1) / math.sqrt(len(differences))
    if np.any(np.abs(differences.mean(axis=0)) > 5.0 * error):
        raise AssertionError("the C loop and walklearn do not run the same walk")


def verify_numpy(setting: Setting, graph: Graph, hops: int = 20_000) -> None:
    """From the same stream the NumPy loop must give walklearn's numbers."""
    ours = batch_of(setting, graph, [np.random.default_rng(SEED)])
    theirs = NumpyWalk(setting, graph, np.random.default_rng(SEED))
    advance(ours, hops)
    theirs.run(hops)
    np.testing.assert_array_equal(ours.visits, theirs.visits)
    np.testing.assert_allclose(theirs.model, ours.models[0, 0], rtol=1e-7, atol=1e-9)
    np.testing.assert_allclose(theirs.sum, ours._state.sums, rtol=1e-7, atol=1e-9)
