"""Instances are drawn from the seed alone, as their tables describe."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import combinations
from typing import ClassVar

import numpy as np
import pytest

from walklearn import datasets
from walklearn.objectives.linear.domains import Ball, Box, Everywhere
from walklearn.objectives.linear.losses import LOSSES, Huber, Softmax, Squared
from walklearn.studies import instances
from walklearn.studies.instances import RUN, TUNE, Instance, cached_instance, draw_instance
from walklearn.studies.options import StudyError

ER = {"family": "erdos_renyi", "nodes": 20, "probability": 0.3}
GAUSSIANS = {"data": "two_gaussians", "dimension": 3, "penalty": 1.0}


def drawn(problem: dict | None = None, graph: dict | None = None, **place: int) -> Instance:
    place = {"seed": 1, "stage": RUN, "number": 0, **place}
    return draw_instance(graph or ER, {**GAUSSIANS, **(problem or {})}, **place)


def test_number_seed_and_stage_change_the_instance() -> None:
    instances = [drawn(), drawn(number=1), drawn(stage=TUNE), drawn(seed=2)]
    for one, other in combinations(instances, 2):
        assert not np.array_equal(one.problem.X, other.problem.X)
        assert one.graph != other.graph
    assert drawn().problem == drawn().problem
    assert drawn().graph == drawn().graph


def test_another_problem_sees_the_same_graph() -> None:
    assert drawn({"variance": 9.0}).graph == drawn().graph
    ring = {"family": "ring", "nodes": 20}
    assert np.array_equal(drawn(graph=ring).problem.X, drawn().problem.X)


def test_a_loss_that_needs_an_argument_is_not_named_alone() -> None:
    @dataclass(frozen=True)
    class Scaled(Squared):
        factor: float
        name: ClassVar[str] = "scaled"

    LOSSES.register(Scaled)
    try:
        assert drawn({"loss": {"name": "scaled", "factor": 2.0}}).problem.loss == Scaled(2.0)
        with pytest.raises(StudyError, match=r"loss\.factor is missing"):
            drawn({"loss": "scaled"})
    finally:
        LOSSES.remove("scaled")


def test_settings_of_a_table() -> None:
    table = {
        "data": "heterogeneous_rows", "rows": 45, "split": "random", "penalty": 0.5,
        "spread": 0.1, "loss": {"name": "huber", "threshold": 2.0}, "aggregate": "node-mean",
        "domain": {"box": [-1.0, 2.0]},
    }  # fmt: skip
    problem = drawn(table).problem
    assert problem.loss == Huber(2.0)
    assert problem.domain == Box(-1.0, 2.0)
    assert (problem.aggregate, problem.penalty, len(problem.X)) == ("node-mean", 0.5, 45)
    assert sorted(np.diff(problem.offsets)) == [2] * 15 + [3] * 5
    assert drawn({"domain": "everywhere"}).problem.domain == Everywhere()
    assert drawn({"data": "heterogeneous_rows", "loss": "squared"}).problem.loss == Squared()


def test_a_relative_ball_is_measured_by_the_optimum_without_it() -> None:
    for multiple in (0.5, 2.0):
        free = np.linalg.norm(drawn().problem.solution.model)
        domain = drawn({"domain": {"ball": multiple, "relative": True}}).problem.domain
        assert isinstance(domain, Ball)
        assert domain.radius == pytest.approx(multiple * free)


def test_features_are_clipped_to_a_public_bound() -> None:
    norms = np.linalg.norm(drawn({"feature_bound": 1.5}).problem.X, axis=1)
    assert norms.max() == pytest.approx(1.5)
    assert np.linalg.norm(drawn().problem.X, axis=1).max() > 1.5


@pytest.mark.parametrize(
    ("name", "rows", "loss"), [("breast_cancer", 569, "logistic"), ("diabetes", 442, "squared")]
)
def test_collected_data_get_new_owners(name: str, rows: int, loss: str) -> None:
    table = {"data": name, "penalty": 0.1, "aggregate": "mean", "split": "similarity"}
    first, second = (draw_instance(ER, table, 1, RUN, instance).problem for instance in (0, 1))
    assert len(first.X) == len(second.X) == rows
    assert type(first.loss).__name__.lower() == loss
    assert not np.array_equal(first.X, second.X)  # other nodes hold them
    assert np.array_equal(np.sort(first.X.sum(axis=1)), np.sort(second.X.sum(axis=1)))
    assert first.solution is second.solution  # solved once
    assert first.full_gradient(first.solution.model) == pytest.approx(0, abs=1e-10)


def test_a_similar_split_makes_nodes_that_differ() -> None:
    def spread(split: str) -> float:
        table = {"data": "breast_cancer", "penalty": 1.0, "split": split}
        problem = draw_instance(ER, table, 1, RUN, 0).problem
        return float(np.std([problem.y[problem.node_of_row == i].mean() for i in range(20)]))

    assert spread("similarity") > 3 * spread("random")


def test_some_rows_of_collected_data() -> None:
    table = {"data": "digits", "rows": 60, "penalty": 1.0, "split": "random"}
    first, second = (draw_instance(ER, table, 1, RUN, instance).problem for instance in (0, 1))
    assert isinstance(first.loss, Softmax)
    assert first.X.shape == (60, 64)
    everything = {tuple(row) for row in datasets.digits()[0]}
    assert {tuple(row) for row in first.X} <= everything
    assert not np.array_equal(first.X, second.X)
    with pytest.raises(StudyError, match=r"rows .*1,797.* 2000"):
        draw_instance(ER, {**table, "rows": 2000}, 1, RUN, 0)


def test_instances_are_cached_while_there_is_room(monkeypatch: pytest.MonkeyPatch) -> None:
    graph, problem = {"family": "ring", "nodes": 5}, {"data": "two_gaussians", "penalty": 1}
    monkeypatch.setattr(instances, "_cache", type(instances._cache)())
    kept = cached_instance(graph, problem, 1, RUN, 0)
    assert cached_instance(graph, problem, 1, RUN, 0) is kept
    other = cached_instance(graph, problem, 1, RUN, 1)
    assert other is not kept
    monkeypatch.setattr(instances, "MAX_BYTES", kept.bytes + other.bytes)
    third = cached_instance(graph, problem, 1, RUN, 2)
    assert cached_instance(graph, problem, 1, RUN, 2) is third
    assert cached_instance(graph, problem, 1, RUN, 1) is other
    assert cached_instance(graph, problem, 1, RUN, 0) is not kept  # the oldest had to go
