"""Replicates under way: a batch of them is advanced, inspected, and advanced again.

Each replicate has its own random stream, so its numbers do not depend on its batch. A batch is
compiled or runs the reference; `simulation` does not see the difference:

    batch.advance(iterations)     batch.models, batch.averages   (replicates, holders, size)
    batch.messages  (replicates,) batch.values(models)           f of each model

`advance` also copies models and counts on the way, after given numbers of iterations.

A walk has one holder of a model per replicate, gossip one per node.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from walklearn.arrays import Array, Arrays, conform, zeros
from walklearn.graphs import Graph
from walklearn.privacy.protection import CONTRIBUTIONS
from walklearn.streams import Streams, draw_start
from walklearn.visit import Setting, Token, init_token
from walklearn.walks.walk import Walk, draw_walk

Counts = Sequence[int] | NDArray[np.int64]


class Snapshot(NamedTuple):
    """Copies made on the way: (records, replicates, holders, size); counts lack the last two."""

    models: Array
    averages: Array
    messages: Array
    questions: Array


class Position(NamedTuple):
    """A token between two visits: its node, and its costs so far.

    Parameters
    ----------
    node
        The node that holds the token.
    token
        The token.
    messages
        The number of messages so far, questions included.
    questions
        The number of questions and answers among them.
    """

    node: int
    token: Token
    messages: int = 0
    questions: int = 0


# The update's arrays at the nodes that were visited, by node.
NodeArrays = dict[int, Arrays]


class Batch(ABC):
    """A few replicates of one setting, advanced in place.

    released: the release of each node, (replicates, nodes); None if nothing is released.
    contributions: the contributions of each node to the model, (replicates, nodes).
    questions: the questions and answers of one number each among the messages.
    draws: the number of uniform numbers per iteration.
    """

    def __init__(
        self, objective: Any, graph: Graph, streams: Sequence[Streams], draws: int
    ) -> None:
        self.objective, self.graph, self.streams, self.draws = objective, graph, streams, draws
        self.messages = np.zeros(len(streams), dtype=np.int64)
        self.questions = np.zeros(len(streams), dtype=np.int64)
        self.visits = np.zeros(objective.nodes, dtype=np.int64)
        self.iterations = 0
        self._uniforms = np.empty((0, 0, 0))
        self.released: Array | None = None
        self.out_of_bounds = np.zeros(len(streams), dtype=np.int64)
        self.contributions: Array | None = None

    @property
    @abstractmethod
    def models(self) -> Array:
        """w of each replicate and holder."""

    @property
    @abstractmethod
    def averages(self) -> Array:
        """w̄ of each replicate and holder."""

    def advance(self, iterations: int, after: Counts = ()) -> Snapshot | None:
        """Advance by that many iterations, and copy the state after some of them."""
        copies, done = [], 0
        for count in after:
            self._advance(count - done)
            copies.append((self.models, self.averages, self.messages.copy(), self.questions.copy()))
            done = count
        if done < iterations:
            self._advance(iterations - done)
        return Snapshot(*map(np.stack, zip(*copies, strict=True))) if copies else None

    @abstractmethod
    def _advance(self, iterations: int) -> None:
        """Advance by that many iterations, at least one."""

    def values(self, models: Array) -> Array:
        """Return f of each model, shape (replicates, holders)."""
        values = np.array([self.objective.value(w) for w in models.reshape(-1, models.shape[-1])])
        if values.ndim != 1:
            raise TypeError(f"value of {self.objective!r} must return a number, got {values[0]!r}.")
        return values.reshape(models.shape[:-1])

    def draw(self, iterations: int) -> Array:
        """Return the next uniform numbers of each replicate: (replicates, iterations, draws).

        The next call overwrites them: new memory of this size would have to be asked for, page by
        page, each time.
        """
        shape = (len(self.streams), iterations, self.draws)
        if self._uniforms.shape != shape:
            self._uniforms = np.empty(shape)
        uniforms = self._uniforms
        for line, streams in zip(uniforms, self.streams, strict=True):
            streams.walk.random(out=line)
        return uniforms


class WalkBatch(Batch):
    """Replicates of a walk. Each draws its own releases.

    setting: with the walk as the user gave it, not bound to the graph.
    starts: the positions to start from; by default a uniform node with a new model. A token that
    has walked before continues: its updates are counted on.
    states: the update's arrays at the nodes of each replicate, from an earlier batch.
    mean: "exact" or "estimated", the mean importance that gradients are scaled by.
    """

    exact = False  # True draws noise exactly, from the operating system's entropy

    def __init__(
        self,
        setting: Setting,
        graph: Graph,
        streams: Sequence[Streams],
        starts: Sequence[Position] | None = None,
        states: Sequence[NodeArrays] | None = None,
        mean: str = "exact",
    ) -> None:
        super().__init__(setting.objective, graph, streams, setting.draws)
        self.mean = mean
        self.settings = self._bound(setting, streams, starts)
        self.setting = self.settings[0]
        self.messages[:] = [start.messages for start in self.starts]
        self.questions[:] = [start.questions for start in self.starts]
        counts = {start.token.updates for start in self.starts}
        if len(counts) != 1:
            raise ValueError("tokens of one batch must have made the same number of updates.")
        self.iterations = counts.pop()
        self.begun_with = [dict(each) for each in states] if states else [{} for _ in streams]
        walks = [each.walk.innermost for each in self.settings]
        released = [walk.release for walk in walks if walk.release is not None]
        if released:
            self.released = np.stack(released)
            self.out_of_bounds[:] = [walk.out_of_bounds for walk in walks]
        if CONTRIBUTIONS in setting.privacy.node_arrays(setting.objective):
            self.contributions = np.zeros((len(streams), setting.objective.nodes), dtype=np.int64)
        self._begin()

    @abstractmethod
    def _begin(self) -> None:
        """Build the state from which the batch advances."""

    def _bound(
        self, setting: Setting, streams: Sequence[Streams], starts: Sequence[Position] | None
    ) -> list[Setting]:
        """Draw starts, then releases, and bind the walk of each replicate to the graph."""
        objective, walk = self.objective, setting.walk
        begun = None if starts else [draw_start(objective, each.walk) for each in streams]
        if walk.is_private or walk.draws_announcements:
            settings = [replace(setting, walk=self._drawn(walk, each)) for each in streams]
        elif walk.scale is not None:  # bound already
            settings = [setting] * len(streams)
        else:
            settings = [replace(setting, walk=self._drawn(walk))] * len(streams)
        if begun is not None:
            pairs = zip(settings, begun, strict=True)
            self.starts = [Position(node, init_token(each, w)) for each, (node, w) in pairs]
        else:
            self.starts = [_with_arrays(start, settings[0]) for start in starts or ()]
        return settings

    def _drawn(self, walk: Walk, streams: Streams | None = None) -> Walk:
        """Draw the release and the announcements of a replicate, and bind them."""
        source: Any = None
        if streams is not None and not self.exact:
            nodes = streams.nodes
            source = streams.walk if nodes is None else [node.walk for node in nodes]
        drawn = draw_walk(walk, self.graph, self.objective, source)
        return drawn.bind(self.graph, self.objective, self.mean)

    @property
    @abstractmethod
    def positions(self) -> list[Position]:
        """The position of each replicate's token; another batch can continue from them."""

    @property
    def states(self) -> list[NodeArrays]:
        """The update's arrays at the visited nodes of each replicate; none by default."""
        return [{} for _ in self.streams]


def _with_arrays(start: Position, setting: Setting) -> Position:
    """Complete the walk's arrays of a token from another walk, and check the update's."""
    fresh, carried = zeros(setting.token_specs[0]), start.token.walk
    walk = {name: carried.get(name, zero) for name, zero in fresh.items()}
    update = conform(setting.token_specs[1], start.token.update, setting.update)
    return start._replace(token=start.token._replace(walk=walk, update=update))
