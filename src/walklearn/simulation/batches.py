"""Replicates on their way: a batch of them is advanced, looked at, and advanced again.

Each replicate has a random stream of its own, so its numbers do not depend on the batch it is
in. A batch is compiled or runs the reference; `simulation` does not see the difference:

    batch.advance(iterations)     batch.models, batch.averages   (replicates, holders, size)
    batch.messages  (replicates,) batch.values(models)           f of each model

`advance` also copies what it meets on the way, after as many iterations as it is told.

A walk has one holder of a model per replicate, gossip one per node.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from walklearn.updates.gossip_sgd import GossipSetting
from walklearn.updates.random_streams import Streams
from walklearn.updates.update import Kept, Remembering
from walklearn.updates.walk_sgd import Token, WalkSetting, init
from walklearn.walks import HistoryDriven, ReleasedWeighted

Array = NDArray[Any]
Setting = WalkSetting | GossipSetting
Counts = Sequence[int] | NDArray[np.int64]


class Seen(NamedTuple):
    """Copies made on the way: (records, replicates, holders, size); counts lack the last two."""

    models: Array
    averages: Array
    messages: Array
    questions: Array


class Batch(ABC):
    """A few replicates of one setting, advanced in place.

    released: what each node released, (replicates, nodes); None where nothing is.
    contributions: how often each node's rows showed in the model, (replicates, nodes).
    questions: how many of the messages were questions and answers of a number each.
    """

    def __init__(self, setting: Setting, streams: Sequence[Streams]) -> None:
        self.setting = setting
        self.streams = streams
        self.messages = np.zeros(len(streams), dtype=np.int64)
        self.questions = np.zeros(len(streams), dtype=np.int64)
        self.visits = np.zeros(setting.problem.nodes, dtype=np.int64)
        self.iterations = 0
        self._uniforms = np.empty((0, 0, 0))
        self.released: Array | None = None
        self.outside = np.zeros(len(streams), dtype=np.int64)
        self.contributions: Array | None = None

    @property
    @abstractmethod
    def models(self) -> Array:
        """w of each replicate and holder."""

    @property
    @abstractmethod
    def averages(self) -> Array:
        """w̄ of each replicate and holder."""

    def advance(self, iterations: int, after: Counts = ()) -> Seen | None:
        """Go on by that many iterations, and copy what there is after some of them."""
        seen, done = [], 0
        for count in after:
            self._advance(count - done)
            seen.append((self.models, self.averages, self.messages.copy(), self.questions.copy()))
            done = count
        if done < iterations:
            self._advance(iterations - done)
        return Seen(*map(np.stack, zip(*seen, strict=True))) if seen else None

    @abstractmethod
    def _advance(self, iterations: int) -> None:
        """Go on by that many iterations; there is at least one."""

    @abstractmethod
    def values(self, models: Array) -> Array:
        """f of each model, shape (replicates, holders)."""

    def draw(self, iterations: int) -> Array:
        """The next uniform numbers of each replicate: (replicates, iterations, draws).

        They are gone with the next call, which has its own in the same place: new memory of this
        size would have to be asked for, page by page, each time.
        """
        shape = (len(self.streams), iterations, self.setting.draws)
        if self._uniforms.shape != shape:
            self._uniforms = np.empty(shape)
        uniforms = self._uniforms
        for line, streams in zip(uniforms, self.streams, strict=True):
            streams.walk.random(out=line)
        return uniforms


class WalkBatch(Batch):
    """What all walks share: each replicate releases once, in a world of its own.

    tokens: where each replicate starts from; by default at a uniform node with a new model. A
    token that has walked before goes on where it stopped: its updates are counted on.
    counts: 1 + the visits of each node, (replicates, nodes), where the walk goes by them.
    kept: what the nodes keep since then, where the update has memory.
    """

    setting: WalkSetting

    def __init__(
        self,
        setting: WalkSetting,
        streams: Sequence[Streams],
        tokens: Sequence[Token] | None = None,
        kept: Sequence[Kept] | None = None,
    ) -> None:
        super().__init__(setting, streams)
        self.starts = [init(setting, each.walk) for each in streams] if tokens is None else tokens
        self.messages[:] = [token.messages for token in self.starts]
        self.questions[:] = [token.questions for token in self.starts]
        counted = len(streams) if isinstance(setting.walk, HistoryDriven) else 0
        self.counts = np.ones((counted, setting.problem.nodes), dtype=np.int64)
        self.iterations = _same_updates(self.starts)
        self.begun_with = self._checked(tokens, kept)
        self.settings = [self._realised(each) for each in streams]
        walks = [each.walk.innermost for each in self.settings]
        drawn = [walk for walk in walks if isinstance(walk, ReleasedWeighted)]
        if drawn:
            self.released = np.stack([walk.visit_weights(setting.graph) for walk in drawn])
            self.outside[:] = [walk.outside for walk in drawn]
        if setting.model_noise is not None:
            shape = (len(streams), setting.problem.nodes)
            self.contributions = np.zeros(shape, dtype=np.int64)

    def counted(self, replicate: int, node: int) -> Array | None:
        """The counts with this visit counted in; None where nobody counts."""
        if not len(self.counts):
            return None
        self.counts[replicate, node] += 1
        return np.asarray(self.counts[replicate])

    def _checked(self, tokens: Sequence[Token] | None, kept: Sequence[Kept] | None) -> list[Kept]:
        """What the nodes of each replicate keep at the start; nobody does without memory."""
        update, problem = self.setting.update, self.setting.problem
        if not isinstance(update, Remembering):
            return []
        for token in tokens or ():
            update.check_memory(problem, token.memory)
            if token.updates and kept is None:
                raise ValueError(
                    f"a token of {update!r} goes on only with what its nodes keep: hand over the "
                    "batch's `kept`, too, or begin with a memory of update.begin(problem)."
                )
        if kept is None:
            return [Kept(problem, update, {}) for _ in self.streams]
        for each in kept:
            each.check(problem, update)
        return list(kept)

    def _realised(self, streams: Streams) -> WalkSetting:
        setting = self.setting
        if not setting.walk.is_private:
            return setting
        generator = streams.walk if streams.nodes is None else [own.walk for own in streams.nodes]
        walk = setting.walk.realise(setting.graph, setting.problem, generator)
        return replace(setting, walk=walk)

    @property
    @abstractmethod
    def tokens(self) -> list[Token]:
        """Each replicate's token as it is now; another batch can go on with them."""

    @property
    @abstractmethod
    def kept(self) -> list[Kept]:
        """What the nodes of each replicate keep; empty where the update has no memory."""


def _same_updates(tokens: Sequence[Token]) -> int:
    counts = {token.updates for token in tokens}
    if len(counts) != 1:
        raise ValueError("tokens of one batch must have made the same number of updates.")
    return counts.pop()
