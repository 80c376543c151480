"""Batches that run the reference, visit by readable visit."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from walklearn.arrays import Array
from walklearn.graphs import Graph
from walklearn.simulation import averaging
from walklearn.simulation.averaging import GossipSetting
from walklearn.simulation.batches import Batch, NodeArrays, Position, WalkBatch
from walklearn.streams import Streams
from walklearn.visit import Walker


class ReferenceWalks(WalkBatch):
    """Tokens moved by `visit`."""

    def _begin(self) -> None:
        self._walkers = []
        for setting, start, begun in zip(self.settings, self.starts, self.begun_with, strict=True):
            states = {
                node: setting.init_node(node)._replace(update=arrays)
                for node, arrays in begun.items()
            }
            self._walkers.append(Walker(setting, self.graph, start.node, start.token, states))

    @property
    def positions(self) -> list[Position]:
        """The tokens, with their nodes and costs."""
        costs = zip(self._walkers, self.messages.tolist(), self.questions.tolist(), strict=True)
        return [Position(each.node, each.token, *sent) for each, *sent in costs]

    @property
    def states(self) -> list[NodeArrays]:
        """The update's arrays at the visited nodes."""
        return [
            {node: state.update for node, state in walker.states.items()}
            for walker in self._walkers
        ]

    @property
    def models(self) -> Array:
        """w of each token."""
        return self._stacked(self.setting.update.model)

    @property
    def averages(self) -> Array:
        """w̄ of each token."""
        return self._stacked(self.setting.update.average_model)

    def _stacked(self, vector: Any) -> Array:
        tokens = [walker.token.update for walker in self._walkers]
        vectors = [vector(self.setting.visible, token) for token in tokens]
        if np.shape(vectors[0]) != (self.objective.size,):
            raise TypeError(
                f"model and average_model of {self.setting.update!r} must return an array of "
                f"{self.objective.size} numbers, got {vectors[0]!r}."
            )
        return np.stack(vectors)[:, None, :]

    def _advance(self, iterations: int) -> None:
        """Move the tokens visit by visit."""
        for replicate, walker in enumerate(self._walkers):
            for _ in range(iterations):
                self._visit(replicate, walker)
        self.iterations += iterations

    def _visit(self, replicate: int, walker: Walker) -> None:
        node, setting = walker.node, walker.setting
        own, counts = self.streams[replicate].of(node), self.contributions
        if counts is not None and node not in walker.states:
            state, spent = setting.init_node(node), np.asarray(counts[replicate, node])
            privacy = state.privacy | {"contributions": spent}
            walker.states[node] = state._replace(privacy=privacy)
        hop, _ = walker.visit(setting.draw(own.walk, None if self.exact else own.noise))
        self.visits[node] += 1
        self.messages[replicate] += hop.messages + hop.questions
        self.questions[replicate] += hop.questions
        if counts is not None:
            counts[replicate, node] = walker.states[node].privacy["contributions"]


class ReleasedWalks(ReferenceWalks):
    """Tokens that may be published: their noise is exact, from the system's entropy."""

    exact = True


class ReferenceGossip(Batch):
    """Networks moved by `averaging.step`."""

    def __init__(self, setting: GossipSetting, graph: Graph, streams: Sequence[Streams]) -> None:
        super().__init__(setting.objective, graph, streams, setting.draws)
        self.setting = setting
        self._networks = [averaging.init(setting, each.walk) for each in streams]

    @property
    def models(self) -> Array:
        """w of every node."""
        return np.stack([network.models for network in self._networks])

    @property
    def averages(self) -> Array:
        """w̄ of every node."""
        return np.stack([network.averages for network in self._networks])

    def _advance(self, iterations: int) -> None:
        """Move the networks iteration by iteration."""
        for replicate, uniforms in enumerate(self.draw(iterations)):
            for line in uniforms:
                network = averaging.step(self.setting, self._networks[replicate], line)
                self._networks[replicate] = network
            self.messages[replicate] = self._networks[replicate].messages
        self.visits = np.sum([network.counts for network in self._networks], axis=0)
        self.iterations += iterations
