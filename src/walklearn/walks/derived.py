"""Walks that build on a Metropolis walk: they take its importance, weights and releases over."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import Self

from walklearn.graphs import Graph
from walklearn.problem import Problem
from walklearn.walks.metropolis import Metropolis, Uniform
from walklearn.walks.walk import Generators, Vector, Walk


@dataclass(frozen=True, repr=False)
class Derived(Walk):
    """What walks built on another share; each has its own `hop`."""

    walk: Metropolis = field(default_factory=Uniform)

    def __post_init__(self) -> None:
        if not isinstance(self.walk, Metropolis):
            raise TypeError(
                f"needs a walk such as walks.Weighted() or walks.Uniform(), got {self.walk!r}."
            )

    @property
    def innermost(self) -> Metropolis:
        """The walk it builds on."""
        return self.walk

    @property
    def announced_numbers(self) -> int:  # type: ignore[override]
        """What the walk announces."""
        return self.walk.announced_numbers

    @property
    def is_private(self) -> bool:
        """Whether the walk is."""
        return self.walk.is_private

    def realise(
        self, graph: Graph, problem: Problem | None, generator: Generators | None = None
    ) -> Self:
        """The same with the walk's release drawn."""
        return replace(self, walk=self.walk.realise(graph, problem, generator))

    def visit_weights(self, graph: Graph, problem: Problem | None = None) -> Vector:
        """Those of the walk."""
        return self.walk.visit_weights(graph, problem)

    def divisors(self, graph: Graph, problem: Problem | None = None) -> Vector:
        """Those of the walk."""
        return self.walk.divisors(graph, problem)

    def gradient_scale(self, graph: Graph, problem: Problem | None = None) -> Vector:
        """That of the walk."""
        return self.walk.gradient_scale(graph, problem)
