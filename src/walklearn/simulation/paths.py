"""Paths of walks without a model: the nodes that tokens visit."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np

from walklearn.arrays import Array, Arrays
from walklearn.graphs import Graph
from walklearn.objectives import Problem
from walklearn.simulation.batches import ReferenceWalks
from walklearn.simulation.compiled_batches import CompiledWalks
from walklearn.streams import generators, replicate_seed
from walklearn.updates.update import Update, VisitContext, VisitResult
from walklearn.visit import Setting
from walklearn.walks import Tour, Walk


class _NoUpdate(Update):
    """Leave the model unchanged."""

    def visit(self, context: VisitContext, token: Arrays, state: Arrays) -> VisitResult:
        """Return the arrays as they are."""
        return VisitResult(token, state)


def paths_of(
    walk: Walk,
    graph: Graph,
    problem: Problem,
    steps: int,
    tokens: int,
    root: np.random.SeedSequence,
) -> Array:
    """Return the nodes that each token visits: (tokens, steps + 1), from random first nodes.

    A simulation with this seed follows the same paths if its gradients draw no random numbers.
    """
    if isinstance(walk, Tour) and walk.has_rounds:  # weights for updates that use rounds
        walk = replace(walk, reweight="gap")
    batch_class: Any = CompiledWalks if walk.is_compiled else ReferenceWalks
    streams = [generators(replicate_seed(root, number)) for number in range(tokens)]
    paths: Array = batch_class(Setting(problem, walk, _NoUpdate()), graph, streams).paths(steps)
    return paths
