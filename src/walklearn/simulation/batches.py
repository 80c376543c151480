"""Batches, which advance a few replicates of one setting together, for the reference engine.

Each replicate has its own random streams, so its numbers do not depend on its batch. Models have
the shape (replicates, holders, size): a walk has one holder of a model, gossip one per node.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from walklearn.arrays import Array, conform, zeros
from walklearn.graphs import Graph
from walklearn.privacy.protection import CONTRIBUTIONS
from walklearn.simulation import averaging
from walklearn.simulation.averaging import GossipSetting
from walklearn.streams import Streams, draw_start, start_nodes
from walklearn.visit import Setting, Token, Walker, init_token
from walklearn.walks.view import Hop
from walklearn.walks.walk import Walk, draw_walk

Counts = Sequence[int] | NDArray[np.int64]


class Snapshot(NamedTuple):
    """Copies of the state, (records, replicates, holders, size); counts have two axes."""

    models: Array
    averages: Array
    messages: Array
    questions: Array
    times: Array


class Schedule(NamedTuple):
    """The time that a message takes, and that of an update at its node; all tokens' updates."""

    hop: float = 1.0
    visit: float = 0.0
    updates: int = 0

    def total(self, messages: Any, updates: Any) -> Any:
        """Return the time of this many messages and updates, one after another."""
        return self.hop * messages + self.visit * updates

    def share(self, slot: int, tokens: int) -> int:
        """Return the updates of one token: ⌊updates/m⌋, the first (updates mod m) one more."""
        return self.updates // tokens + (slot < self.updates % tokens)


class Position(NamedTuple):
    """A token between two visits: its node and its costs so far. Questions count as messages.

    `arrival` is the number of messages until it arrived at the node of its last visit.
    """

    node: int
    token: Token
    messages: int = 0
    questions: int = 0
    arrival: int = 0


class Batch(ABC):
    """Replicates of one setting, advanced in place."""

    contributions: Array | None = None  # of each node to the model, (replicates, nodes)

    def __init__(
        self,
        setting: Any,
        graph: Graph,
        streams: Sequence[Streams],
        mean: str = "exact",
        schedule: Schedule = Schedule(),  # noqa: B008 - never changed
    ) -> None:
        self.setting, self.objective, self.mean = setting, setting.objective, mean
        self.schedule = schedule
        self.graph, self.streams, self.draws = graph, streams, setting.draws
        self.messages = np.zeros(len(streams), dtype=np.int64)
        self.questions = np.zeros(len(streams), dtype=np.int64)
        self.visits = np.zeros(self.objective.nodes, dtype=np.int64)
        self.iterations = 0
        self._uniforms = np.empty((0, 0, 0))

    @property
    @abstractmethod
    def models(self) -> Array:
        """w of each replicate and holder."""

    @property
    @abstractmethod
    def averages(self) -> Array:
        """w̄ of each replicate and holder."""

    @property
    @abstractmethod
    def times(self) -> Array:
        """The time at which the last update of each replicate ended."""

    def advance(self, iterations: int, after: Counts = ()) -> Snapshot | None:
        """Advance by that many iterations; copy the state after some of them."""
        copies, advanced = [], 0
        for count in after:
            self._advance(count - advanced)
            counts = self.messages.copy(), self.questions.copy()
            copies.append((self.models, self.averages, *counts, self.times))
            advanced = count
        if advanced < iterations:
            self._advance(iterations - advanced)
        return Snapshot(*map(np.stack, zip(*copies, strict=True))) if copies else None

    @abstractmethod
    def _advance(self, iterations: int) -> None:
        """Advance by that many iterations, at least one."""

    def values(self, models: Array) -> Array:
        """Return f of each model, shape (replicates, holders)."""
        values = [value_of(self.objective, w) for w in models.reshape(-1, models.shape[-1])]
        return np.array(values).reshape(models.shape[:-1])

    def draw(self, iterations: int) -> Array:
        """Return the next uniform numbers of each replicate: (replicates, iterations, draws).

        The next call overwrites them, because new memory costs time for each page.
        """
        shape = (len(self.streams), iterations, self.draws)
        if self._uniforms.shape != shape:
            self._uniforms = np.empty(shape)
        for line, streams in zip(self._uniforms, self.streams, strict=True):
            streams.walk.random(out=line)
        return self._uniforms


class WalkBatch(Batch):
    """Replicates of a walk. Each draws its own releases, unless the walk is already bound.

    Tokens start at `starts` with its update counts, by default at a random node with a new model.
    The tokens of a replicate, one after another in all lists, share the start model, and their
    first nodes are evenly spread (`start_nodes`).
    `mean` is the mean importance that scales gradients: "exact" or "estimated".
    """

    has_exact_noise = False  # True if noise is exact, from the operating system's entropy

    def __init__(
        self,
        setting: Setting,
        graph: Graph,
        streams: Sequence[Streams],
        starts: Sequence[Position] | None = None,
        mean: str = "exact",
        schedule: Schedule = Schedule(),  # noqa: B008 - never changed
    ) -> None:
        super().__init__(setting, graph, streams, mean, schedule)
        initial = [] if starts else [draw_start(self.objective, each.walk) for each in streams]
        self.settings = self._bind_walks(setting, streams)  # one per replicate
        self.setting = self.settings[0]
        self.starts = [_add_missing_arrays(start, self.setting) for start in starts or ()]
        for each, (first, model) in zip(self.settings, initial, strict=False):
            token = init_token(each, model)
            for slot, node in enumerate(start_nodes(first, self.objective.nodes, setting.tokens)):
                self.starts.append(Position(node, token._replace(slot=slot)))
        first_starts = self.starts[:: setting.tokens]
        self.messages[:] = [start.messages for start in first_starts]
        self.questions[:] = [start.questions for start in first_starts]
        self.arrivals = np.array([start.arrival for start in first_starts], dtype=np.int64)
        counts = {start.token.updates for start in self.starts}
        if len(counts) != 1:
            raise ValueError("tokens of one batch must have made the same number of updates.")
        self.iterations = counts.pop()
        if CONTRIBUTIONS in setting.privacy.node_arrays(self.objective):
            self.contributions = np.zeros((len(streams), self.objective.nodes), dtype=np.int64)
        self._init_state()

    @abstractmethod
    def _init_state(self) -> None:
        """Build the state from which the batch advances."""

    def _bind_walks(self, setting: Setting, streams: Sequence[Streams]) -> list[Setting]:
        walk = setting.walk
        if walk.is_private or walk.has_random_announcements:
            return [replace(setting, walk=self._draw_and_bind(walk, each)) for each in streams]
        if walk.scale is None:
            setting = replace(setting, walk=self._draw_and_bind(walk))
        return [setting] * len(streams)

    def _draw_and_bind(self, walk: Walk, streams: Streams | None = None) -> Walk:
        """Draw the release and the announcements of a replicate, and bind them."""
        source: Any = None
        if streams is not None and not self.has_exact_noise:
            nodes = range(self.graph.node_count)
            has_node_streams = streams.nodes is not None
            source = [streams.of(node).walk for node in nodes] if has_node_streams else streams.walk
        drawn_walk = draw_walk(walk, self.graph, self.objective, source)
        return drawn_walk.bind(self.graph, self.objective, self.mean)

    @property
    def times(self) -> Array:
        """The time at which the last update of each token ended, before its next hop."""
        return np.asarray(self.schedule.total(self.arrivals, self.iterations), dtype=np.float64)

    @property
    @abstractmethod
    def positions(self) -> list[Position]:
        """The position of each replicate's token; another batch can continue from them."""


class ReferenceWalks(WalkBatch):
    """Tokens moved by `visit`."""

    def _init_state(self) -> None:
        pairs = zip(self.settings, self.starts, strict=True)
        self.walkers = [Walker(each, self.graph, start.node, start.token) for each, start in pairs]

    @property
    def positions(self) -> list[Position]:
        """The tokens, with their nodes and costs."""
        counts = np.stack([self.messages, self.questions, self.arrivals], axis=1).tolist()
        pairs = zip(self.walkers, counts, strict=True)
        return [Position(walker.node, walker.token, *costs) for walker, costs in pairs]

    @property
    def models(self) -> Array:
        """w of each token."""
        return self._stack(self.setting.update.model)

    @property
    def averages(self) -> Array:
        """w̄ of each token."""
        return self._stack(self.setting.update.average_model)

    def _stack(self, vector: Any) -> Array:
        tokens = [walker.token.update for walker in self.walkers]
        vectors = [vector(self.setting.objective_view, token) for token in tokens]
        if np.shape(vectors[0]) != (self.objective.size,):
            raise TypeError(
                f"model and average_model of {self.setting.update!r} must return an array of "
                f"{self.objective.size} numbers, got {vectors[0]!r}."
            )
        return np.stack(vectors).reshape(len(self.streams), -1, self.objective.size)

    def paths(self, iterations: int) -> Array:
        """Advance all tokens; return the nodes that they visit, (replicates, iterations + 1)."""
        nodes = np.empty((len(self.walkers), iterations + 1), dtype=np.int64)
        for replicate, walker in enumerate(self.walkers):
            for k in range(iterations):
                nodes[replicate, k] = walker.node
                self._visit(replicate, walker)
            nodes[replicate, iterations] = walker.node
        self.iterations += iterations
        return nodes

    def _advance(self, iterations: int) -> None:
        for replicate, walker in enumerate(self.walkers):
            for _ in range(iterations):
                self._visit(replicate, walker)
        self.iterations += iterations

    def _visit(self, replicate: int, walker: Walker) -> Hop:
        node, setting, slot = walker.node, walker.setting, walker.token.slot
        streams, counts = self.streams[replicate].of(node, slot), self.contributions
        if counts is not None:  # a fit restores the counts of its earlier calls
            state, spent = walker.state(node), np.asarray(counts[replicate, node])
            privacy = state.privacy | {"contributions": spent}
            walker.states[node] = state._replace(privacy=privacy)
        hop, _ = walker.visit(
            setting.draw(streams.walk, None if self.has_exact_noise else streams.noise)
        )
        self.visits[node] += 1
        self.arrivals[replicate] = self.messages[replicate]
        self.messages[replicate] += hop.messages + hop.questions
        self.questions[replicate] += hop.questions
        if counts is not None:
            counts[replicate, node] = walker.states[node].privacy["contributions"]
        return hop


class ReleasedWalks(ReferenceWalks):
    """Tokens that may be published: their noise is exact, from the system's entropy."""

    has_exact_noise = True


class ReferenceGossip(Batch):
    """Replicates of gossip, each a network moved by `averaging.step`."""

    setting: GossipSetting

    def __init__(self, *arguments: Any, **options: Any) -> None:
        super().__init__(*arguments, **options)
        self._networks = [averaging.init(self.setting, each.walk) for each in self.streams]

    @property
    def models(self) -> Array:
        """w of every node."""
        return np.stack([network.models for network in self._networks])

    @property
    def averages(self) -> Array:
        """w̄ of every node; before its first update, its model."""
        sums = np.stack([network.weighted_sums for network in self._networks])
        steps = np.stack([network.step_size_sums for network in self._networks])
        is_unused = steps == 0.0
        return np.where(is_unused, self.models, sums / np.where(is_unused, 1.0, steps))

    @property
    def times(self) -> Array:
        """The time at which all exchanges have ended; an exchange is an update and a message."""
        exchanges = np.array([network.exchanges.max() for network in self._networks])
        return np.asarray(self.schedule.total(exchanges, exchanges), dtype=np.float64)

    def _advance(self, iterations: int) -> None:
        for number, uniforms in enumerate(self.draw(iterations)):
            self._networks[number] = self._run(self._networks[number], uniforms)
        self.messages += iterations * self.setting.gossip.messages_per_iteration(self.graph)
        self.visits[:] = np.sum([network.counts for network in self._networks], axis=0)
        self.iterations += iterations

    def _run(self, network: averaging.Network, uniforms: Array) -> averaging.Network:
        """Make one iteration per line of uniform numbers."""
        for line in uniforms:
            network = averaging.step(self.setting, network, line)
        return network


def value_of(objective: Any, model: Array) -> float:
    """Return f of a model, checked."""
    value = objective.value(model)
    if value is None or np.ndim(value):
        raise TypeError(f"value of {objective!r} must return a number, got {value!r}.")
    return float(value)


def _add_missing_arrays(start: Position, setting: Setting) -> Position:
    """Add the walk's missing arrays to a token of another walk, and check the update's arrays."""
    blank_arrays, token_arrays = zeros(setting.token_specs[0]), start.token.walk
    walk = {name: token_arrays.get(name, zero) for name, zero in blank_arrays.items()}
    update = conform(setting.token_specs[1], start.token.update, setting.update)
    return start._replace(token=start.token._replace(walk=walk, update=update))
