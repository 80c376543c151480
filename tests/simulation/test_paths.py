"""Paths without a model are the paths of simulations with the same seed."""

from __future__ import annotations

from typing import Any, ClassVar

import numpy as np
import pytest

import walklearn as wl
from tests.walks.every_walk import GRAPHS, PROBLEMS
from walklearn import walks
from walklearn.simulation.paths import paths_of

STEPS = 60


class UncompiledOldestFirst(walks.OldestFirst):
    compiled: ClassVar[str | None] = None


class UncompiledTour(walks.Tour):
    compiled: ClassVar[str | None] = None


def paths(walk: Any, name: str, tokens: int = 2) -> Any:
    return paths_of(walk, GRAPHS[name], PROBLEMS[name], STEPS, tokens, np.random.SeedSequence(5))


@pytest.mark.parametrize("name", ["kite", "star", "random", "edge"])
@pytest.mark.parametrize(
    "walk",
    [
        walks.OldestFirst(),
        walks.Tour(),
        UncompiledOldestFirst(),
        walks.Simple(reweight="gap"),
        walks.NonBacktracking(walks.Simple(reweight="gap")),
        walks.HistoryDriven(),
        walks.Jumping(walks.Uniform()),
        walks.Weighted(),
    ],
    ids=repr,
)
def test_paths_are_those_of_simulations(walk: Any, name: str) -> None:
    path = paths(walk, name, tokens=1)[0]
    for steps in (1, 2, STEPS // 2, STEPS):
        run = wl.simulate(
            PROBLEMS[name], GRAPHS[name], walk, step_size=wl.PowerStep(0.1), steps=steps, seed=5,
            engine=None if walk.is_compiled else "reference",
        )  # fmt: skip
        visits = np.bincount(path[:steps], minlength=GRAPHS[name].node_count)
        assert run.visits.tolist() == visits.tolist()


@pytest.mark.parametrize("name", ["kite", "random"])
def test_both_engines_find_the_same_paths(name: str) -> None:
    assert walks.OldestFirst().is_compiled
    assert not UncompiledOldestFirst().is_compiled
    for compiled, reference in (
        (walks.OldestFirst(), UncompiledOldestFirst()),
        (walks.Tour(), UncompiledTour()),
        (walks.Tour(), walks.Tour(reweight="round")),
    ):
        assert np.array_equal(paths(compiled, name), paths(reference, name))
