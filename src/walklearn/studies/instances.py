"""Instances of a study: draws of a graph and of a problem on its nodes.

Everything is drawn from `SeedSequence(seed, spawn_key=(stage, instance, purpose))`. Stage 0 are the
runs, 1 the tuning of steps; purpose 0 is the graph, 1 the data, 2 start and walk. No name enters
the key: all methods get the same instances, and a new method changes nothing for the others.
"""

from __future__ import annotations

import json
from collections import OrderedDict
from contextlib import AbstractContextManager
from functools import lru_cache
from typing import Any, NamedTuple, get_args

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
_DEFAULT_LOSSES = {"heterogeneous_rows": "squared", "diabetes": "squared", "digits": "softmax"}
_KEYS = ("data", "rows", "loss", "penalty", "domain", "split", "aggregate", "feature_bound")


class Instance(NamedTuple):
    """A graph, and the problem of its nodes."""

    graph: Graph
    problem: Problem

    @property
    def bytes(self) -> int:
        """Approximate memory."""
        return self.graph.indices.nbytes + self.problem.row_bytes + self.problem.y.nbytes


def stream(seed: int, stage: int, number: int, purpose: int) -> np.random.SeedSequence:
    """Seed of an instance's graph, data or walks."""
    return np.random.SeedSequence(seed, spawn_key=(stage, number, purpose))


def one_thread() -> AbstractContextManager[Any]:
    """Limit linear algebra to one thread: sums are then equal everywhere, and workers share."""
    threadpoolctl = package("threadpoolctl", "experiments", "studies need")
    limits: AbstractContextManager[Any] = threadpoolctl.threadpool_limits(limits=1, user_api="blas")
    return limits


def draw_instance(graph: Table, problem: Table, seed: int, stage: int, number: int) -> Instance:
    """Draw the instance with this number from two tables of a study."""
    drawn = graph_of(graph, stream(seed, stage, number, GRAPH))
    return Instance(drawn, draw_problem(problem, drawn, stream(seed, stage, number, DATA)))


_cache: OrderedDict[str, Instance] = OrderedDict()


def cached_instance(graph: Table, problem: Table, seed: int, stage: int, number: int) -> Instance:
    """Draw an instance, or take it with its optimum from the cache, for the next methods.

    The oldest instances are dropped when all together exceed `MAX_BYTES`.
    """
    key = json.dumps([graph, problem, seed, stage, number], sort_keys=True)
    instance = _cache.pop(key, None) or draw_instance(graph, problem, seed, stage, number)
    _cache[key] = instance
    while len(_cache) > 1 and sum(each.bytes for each in _cache.values()) > MAX_BYTES:
        _cache.popitem(last=False)
    return instance


def draw_problem(content: Table, graph: Graph, seed: Seed) -> Problem:
    """Draw the problem of a table, with its rows on the nodes of the graph."""
    table, nodes = table_of(content), graph.node_count
    name = table.choice("data", [*GENERATED, *COLLECTED])
    generator = np.random.default_rng(seed)
    if name in COLLECTED:
        table.only(_KEYS, name)
    settings = _settings(table, name)
    if name in COLLECTED and "rows" not in table:
        problem = _collected(name, **settings)
        owners = _row_owners(table, problem.X, problem.y, nodes, generator)
        return problem.with_owners(owners, nodes)
    X, y = _drawn_rows(table, name, nodes, generator)
    owners = _row_owners(table, X, y, nodes, generator)
    return _problem(X, y, node_of_row=owners, nodes=nodes, **settings)


@lru_cache(maxsize=4)
def _collected(name: str, **settings: Any) -> Problem:
    """All rows of a collected data set on one node; w* does not depend on their owners."""
    X, y = COLLECTED[name]()
    return _problem(X, y, node_of_row=np.zeros(len(y), dtype=int), **settings)


def _drawn_rows(
    table: CheckedTable, name: str, nodes: int, generator: np.random.Generator
) -> tuple[NDArray[Any], NDArray[Any]]:
    if name in GENERATED:
        with_rows = CheckedTable({"rows": nodes, **table}, table.source, table.path)
        settings = arguments(GENERATED[name], with_rows, _KEYS, excluded=["seed"])
        X, y = GENERATED[name](**settings, seed=generator)
        return X, y
    X, y = COLLECTED[name]()
    picked = generator.choice(len(X), table.count("rows", maximum=len(X)), replace=False)
    return X[picked], y[picked]


def _row_owners(
    table: CheckedTable,
    X: NDArray[Any],
    y: NDArray[Any],
    nodes: int,
    generator: np.random.Generator,
) -> NDArray[np.int64]:
    """The node of each row; the nodes of the parts of a split are drawn, too."""
    if "split" not in table:
        if len(X) != nodes:
            message = (
                f"has {len(X)} rows for {nodes} nodes. Add split = "
                '"similarity" (similar rows on the same node) or split = "random".'
            )
            raise table.error("", message)
        return np.arange(nodes)
    if table.choice("split", ("similarity", "random")) == "random":
        return datasets.split_evenly(len(X), nodes, generator)
    parts = datasets.split_by_similarity(X, nodes, y)
    return generator.permutation(nodes)[parts]


def _settings(table: CheckedTable, name: str) -> dict[str, Any]:
    """Read the keyword arguments of `_problem` that do not depend on the rows."""
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
