"""Batches that run the reference, one visit after the other."""

from __future__ import annotations

from typing import Any

import numpy as np

from walklearn.arrays import Array
from walklearn.simulation import averaging
from walklearn.simulation.batches import GossipBatch, Position, WalkBatch
from walklearn.visit import Walker


class ReferenceWalks(WalkBatch):
    """Tokens moved by `visit`."""

    def _begin(self) -> None:
        pairs = zip(self.settings, self.starts, strict=True)
        self.walkers = [Walker(each, self.graph, start.node, start.token) for each, start in pairs]

    @property
    def positions(self) -> list[Position]:
        """The tokens, with their nodes and costs."""
        costs = zip(self.walkers, self.messages.tolist(), self.questions.tolist(), strict=True)
        return [Position(each.node, each.token, *sent) for each, *sent in costs]

    @property
    def models(self) -> Array:
        """w of each token."""
        return self._stacked(self.setting.update.model)

    @property
    def averages(self) -> Array:
        """w̄ of each token."""
        return self._stacked(self.setting.update.average_model)

    def _stacked(self, vector: Any) -> Array:
        tokens = [walker.token.update for walker in self.walkers]
        vectors = [vector(self.setting.visible, token) for token in tokens]
        if np.shape(vectors[0]) != (self.objective.size,):
            raise TypeError(
                f"model and average_model of {self.setting.update!r} must return an array of "
                f"{self.objective.size} numbers, got {vectors[0]!r}."
            )
        return np.stack(vectors)[:, None, :]

    def _advance(self, iterations: int) -> None:
        for replicate, walker in enumerate(self.walkers):
            for _ in range(iterations):
                self._visit(replicate, walker)
        self.iterations += iterations

    def _visit(self, replicate: int, walker: Walker) -> None:
        node, setting = walker.node, walker.setting
        streams, counts = self.streams[replicate].of(node), self.contributions
        if counts is not None:  # a fit sets those of its earlier calls
            state, spent = walker.state(node), np.asarray(counts[replicate, node])
            privacy = state.privacy | {"contributions": spent}
            walker.states[node] = state._replace(privacy=privacy)
        hop, _ = walker.visit(setting.draw(streams.walk, None if self.exact else streams.noise))
        self.visits[node] += 1
        self.messages[replicate] += hop.messages + hop.questions
        self.questions[replicate] += hop.questions
        if counts is not None:
            counts[replicate, node] = walker.states[node].privacy["contributions"]


class ReleasedWalks(ReferenceWalks):
    """Tokens that may be published: their noise is exact, from the system's entropy."""

    exact = True


class ReferenceGossip(GossipBatch):
    """Networks moved by `averaging.step`."""

    def _run(self, network: averaging.Network, uniforms: Array) -> averaging.Network:
        for line in uniforms:
            network = averaging.step(self.setting, network, line)
        return network
