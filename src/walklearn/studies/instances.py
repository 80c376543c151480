"""A world: a graph, and a problem on its nodes. An instance of a study is a draw of one.

Everything drawn comes from `SeedSequence(seed, spawn_key=(stage, instance, purpose))`: stage 0
are the runs, 1 those that tune the step; purpose 0 is the graph, 1 the data, 2 start and walk.
No name enters, so all methods of a study meet the same worlds, and a method added later changes
nothing for the others.

>>> graph = {"family": "erdos_renyi", "nodes": 20, "probability": 0.3}
>>> problem = {"data": "two_gaussians", "dimension": 2, "penalty": 1.0,
...            "domain": {"ball": 2.0, "relative": True}}
>>> world = draw_world(graph, problem, seed=1, stage=RUN, instance=0)
>>> norm = float(np.linalg.norm(world.problem.solution.model))
>>> world.graph.node_count, round(world.problem.domain.radius / norm, 6)
(20, 2.0)
"""

from __future__ import annotations

import json
from collections import OrderedDict
from contextlib import AbstractContextManager
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, get_args

import numpy as np
from numpy.typing import NDArray

from walklearn.extras import package
from walklearn.files.checked_table import CheckedTable
from walklearn.graphs import Graph
from walklearn.objectives import Aggregate, Problem, datasets
from walklearn.objectives.linear.domains import Ball, Domain
from walklearn.privacy import clip_features
from walklearn.studies.options import (
    COLLECTED,
    GENERATED,
    Seed,
    Table,
    arguments,
    domain_of,
    graph_of,
    loss_of,
    table_of,
)

RUN, TUNE = 0, 1  # stages
GRAPH, DATA, WALK = 0, 1, 2  # purposes
MAX_BYTES = 2**28
SPLITS = ("similarity", "random")
_DEFAULT_LOSSES = {"heterogeneous_rows": "squared", "diabetes": "squared", "digits": "softmax"}
_KEYS = ("data", "rows", "loss", "penalty", "domain", "split", "aggregate", "feature_bound")


@dataclass(frozen=True, eq=False)
class World:
    """A graph and the problem that its nodes solve together."""

    graph: Graph
    problem: Problem

    @property
    def bytes(self) -> int:
        """About how much memory it takes."""
        return self.graph.indices.nbytes + self.problem.row_bytes + self.problem.y.nbytes


def stream(seed: int, stage: int, instance: int, purpose: int) -> np.random.SeedSequence:
    """What an instance's graph, data or walks are drawn from."""
    return np.random.SeedSequence(seed, spawn_key=(stage, instance, purpose))


def one_thread() -> AbstractContextManager[Any]:
    """Keep linear algebra to one thread: sums are then the same everywhere, and workers share."""
    threadpoolctl = package("threadpoolctl", "experiments", "studies need")
    limits: AbstractContextManager[Any] = threadpoolctl.threadpool_limits(limits=1, user_api="blas")
    return limits


def draw_world(graph: Table, problem: Table, seed: int, stage: int, instance: int) -> World:
    """Draw the world that two tables of a study describe, for this instance."""
    drawn = graph_of(graph, stream(seed, stage, instance, GRAPH))
    return World(drawn, draw_problem(problem, drawn, stream(seed, stage, instance, DATA)))


_kept: OrderedDict[str, World] = OrderedDict()


def kept_world(graph: Table, problem: Table, seed: int, stage: int, instance: int) -> World:
    """Draw a world as `draw_world` does, and keep it with its optimum for the methods to come.

    The oldest worlds go when all together exceed `MAX_BYTES`.
    """
    key = json.dumps([graph, problem, seed, stage, instance], sort_keys=True)
    world = _kept.pop(key, None) or draw_world(graph, problem, seed, stage, instance)
    _kept[key] = world
    while len(_kept) > 1 and sum(each.bytes for each in _kept.values()) > MAX_BYTES:
        _kept.popitem(last=False)
    return world


def draw_problem(content: Table, graph: Graph, seed: Seed) -> Problem:
    """Draw the problem that a table describes, its rows spread over the nodes of the graph."""
    table, nodes = table_of(content), graph.node_count
    name = table.choice("data", [*GENERATED, *COLLECTED])
    generator = np.random.default_rng(seed)
    if name in COLLECTED:
        table.only(_KEYS, name)
    settings = _settings(table, name)
    if name in COLLECTED and "rows" not in table:
        everywhere = _collected(name, **settings)
        owners = _owners(table, everywhere.X, everywhere.y, nodes, generator)
        return everywhere.with_owners(owners, nodes)
    X, y = _drawn_rows(table, name, nodes, generator)
    owners = _owners(table, X, y, nodes, generator)
    return _problem(X, y, node_of_row=owners, nodes=nodes, **settings)


@lru_cache(maxsize=4)
def _collected(name: str, **settings: Any) -> Problem:
    """All rows of a collected data set on one node: where they go later does not move w*."""
    X, y = COLLECTED[name]()
    return _problem(X, y, node_of_row=np.zeros(len(y), dtype=int), **settings)


def _drawn_rows(
    table: CheckedTable, name: str, nodes: int, generator: np.random.Generator
) -> tuple[NDArray[Any], NDArray[Any]]:
    if name in GENERATED:
        with_rows = CheckedTable({"rows": nodes, **table}, table.source, table.path)
        settings = arguments(GENERATED[name], with_rows, _KEYS, ours=["seed"])
        X, y = GENERATED[name](**settings, seed=generator)
        return X, y
    X, y = COLLECTED[name]()
    picked = generator.choice(len(X), table.count("rows", maximum=len(X)), replace=False)
    return X[picked], y[picked]


def _owners(
    table: CheckedTable,
    X: NDArray[Any],
    y: NDArray[Any],
    nodes: int,
    generator: np.random.Generator,
) -> NDArray[np.int64]:
    """Who holds each row. Which node gets which part of a split is drawn too."""
    if "split" not in table:
        if len(X) != nodes:
            raise table.error(
                "",
                f"spreads {len(X)} rows over {nodes} nodes: say how, with "
                'split = "similarity" (like rows sit together) or split = "random".',
            )
        return np.arange(nodes)
    if table.choice("split", SPLITS) == "random":
        return datasets.split_evenly(len(X), nodes, generator)
    parts = datasets.split_by_similarity(X, nodes, y)
    return generator.permutation(nodes)[parts]


def _settings(table: CheckedTable, name: str) -> dict[str, Any]:
    """Read loss, penalty, domain and aggregate as keyword arguments of `_problem`."""
    domain, multiple = domain_of(table)
    return {
        "loss": loss_of(table, _DEFAULT_LOSSES.get(name, "logistic")),
        "penalty": table.number("penalty", 0.0, minimum=0.0),
        "domain": domain,
        "multiple": multiple,
        "aggregate": table.choice("aggregate", get_args(Aggregate), "sum"),
        "feature_bound": table.number("feature_bound", None, above=0.0),
    }


def _problem(
    X: NDArray[Any],
    y: NDArray[Any],
    *,
    domain: Domain,
    multiple: float,
    feature_bound: float | None,
    **settings: Any,
) -> Problem:
    """Return the problem on these rows.

    If `multiple` is not 0, W is a ball of radius multiple · ‖w*‖.
    """
    if feature_bound is not None:
        X, _ = clip_features(X, feature_bound)
    if multiple:
        unconstrained = Problem(X, y, domain=domain, **settings).solution.model
        domain = Ball(multiple * float(np.linalg.norm(unconstrained)))
    return Problem(X, y, domain=domain, **settings)
