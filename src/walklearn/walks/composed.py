"""Base of walks that build on a Metropolis walk and inherit its importance and releases."""

from __future__ import annotations

from dataclasses import field
from typing import Any, Self

import numpy as np

from walklearn.arrays import Arrays, Specs, Vector
from walklearn.checks import check_kind
from walklearn.graphs import Graph
from walklearn.walks.disclosure import Disclosure
from walklearn.walks.metropolis import Metropolis, Uniform
from walklearn.walks.view import View
from walklearn.walks.walk import WALKS, Generators, Walk, scale_of


class ComposedWalk(Walk):
    """Base of walks that build on another one; each has its own `hop`.

    Parameters
    ----------
    walk
        The Metropolis walk that it builds on; by default `Uniform()`.
    """

    walk: Metropolis = field(default_factory=Uniform)

    def __post_init__(self) -> None:
        wanted = "a walk such as walks.Weighted() or walks.Uniform()"
        check_kind("walk", self.walk, Metropolis, wanted)

    @property
    def innermost(self) -> Metropolis:
        """The inner walk."""
        return self.walk

    def with_innermost(self, inner: Any) -> Self:
        """Return the same walk, built on another one."""
        return self.bound(walk=inner)

    @property
    def uncounted(self) -> tuple[str, ...]:  # type: ignore[override]
        """The receiver knows the sender."""
        return (*self.walk.uncounted, "sender")

    @property
    def needs(self) -> dict[str, str]:
        """The needs of the inner walk."""
        return self.walk.needs

    @property
    def is_compiled(self) -> bool:
        """True if kernels run both this walk and the inner walk."""
        return super().is_compiled and self.walk.is_compiled

    @property
    def disclosure(self) -> Disclosure | None:
        """The disclosure of the inner walk."""
        return self.walk.disclosure

    @property
    def disclosure_is_known(self) -> bool:
        """True if both walks state what they disclose."""
        return super().disclosure_is_known and self.walk.disclosure_is_known

    @property
    def declared_sent_length(self) -> int | None:  # type: ignore[override]
        """The length of the announcement that the inner walk sends."""
        return self.walk.sent_length

    def announce(
        self, objective: Any, node: int, degree: int, rng: np.random.Generator | None
    ) -> tuple[float, ...]:
        """Return the announcement of the inner walk."""
        return self.walk.announce(objective, node, degree, rng)

    def _announce_all(self, graph: Graph, objective: Any, rng: Generators | None) -> Vector:
        if super().has_random_announcements:  # a subclass has its own `announce`
            return super()._announce_all(graph, objective, rng)
        return self.walk._announce_all(graph, objective, rng)

    @property
    def has_random_announcements(self) -> bool:
        """True if either walk overrides the computation of announcements."""
        return super().has_random_announcements or self.walk.has_random_announcements

    def with_announcements(self, table: Vector) -> Self:
        """Return the walk with these announcements bound to it and to the inner walk."""
        return self.bound(table=table, walk=self.walk.with_announcements(table))

    def token_arrays(self, nodes: int) -> Specs:
        """The arrays of its walk."""
        return self.walk.token_arrays(nodes)

    def node_arrays(self, tokens: int) -> Specs:
        """The arrays of its walk."""
        return self.walk.node_arrays(tokens)

    def check_run(self, nodes: int, update: Any, updates: int) -> None:
        """Check the inner walk."""
        self.walk.check_run(nodes, update, updates)

    def weight(self, view: View, token: Arrays, state: Arrays) -> float:
        """Return the weight of the inner walk."""
        return self.walk.weight(view, token, state)

    def bind(self, graph: Graph, objective: Any, mean: str = "exact") -> Self:
        """Bind the inner walk, with the weights of a subclass that overrides `gradient_scale`."""
        if type(self).gradient_scale is ComposedWalk.gradient_scale:
            return self.with_innermost(self.walk.bind(graph, objective, mean))
        scale = scale_of(self, graph, objective, mean)
        return self.with_innermost(self.walk.bound(scale=scale))

    def gradient_scale(self, graph: Graph, objective: Any = None) -> Vector:
        """Return the gradient scale of the inner walk."""
        return self.walk.gradient_scale(graph, objective)

    def stationary(self, graph: Graph, objective: Any = None) -> Vector:
        """Return the stationary distribution of the inner walk."""
        return self.walk.stationary(graph, objective)

    @property
    def is_private(self) -> bool:
        """True if the release of the inner walk is still to be drawn."""
        return self.walk.is_private

    def sample_release(
        self, graph: Graph, objective: Any, generator: Generators | None = None
    ) -> Self:
        """Return the walk with the release of the inner walk drawn."""
        return self.with_innermost(self.walk.sample_release(graph, objective, generator))


def single_walks() -> list[str]:
    """Return the names of the walks that do not build on another one."""
    composed = WALKS.names_of(ComposedWalk)
    return [name for name in WALKS.names_of(Walk) if name not in composed]
