"""Batches that run the reference, step by readable step."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial

import numpy as np

from walklearn.privacy.model_noise import ModelNoise
from walklearn.problem import Problem
from walklearn.simulation.batches import Array, Batch, WalkBatch
from walklearn.updates import gossip_sgd, walk_sgd
from walklearn.updates.gossip_sgd import GossipSetting
from walklearn.updates.random_streams import Streams
from walklearn.updates.sgd import Protect
from walklearn.updates.update import Kept
from walklearn.updates.walk_sgd import Token, WalkSetting


class ReferenceWalks(WalkBatch):
    """Tokens moved by `walk_sgd.step`."""

    def __init__(
        self,
        setting: WalkSetting,
        streams: Sequence[Streams],
        tokens: Sequence[Token] | None = None,
        kept: Sequence[Kept] | None = None,
    ) -> None:
        super().__init__(setting, streams, tokens, kept)
        self._tokens = list(self.starts)
        self._kept = [each._replace(nodes=dict(each.nodes)) for each in self.begun_with]

    @property
    def tokens(self) -> list[Token]:
        """The tokens themselves."""
        return list(self._tokens)

    @property
    def kept(self) -> list[Kept]:
        """What the nodes keep."""
        return [each._replace(nodes=dict(each.nodes)) for each in self._kept]

    @property
    def models(self) -> Array:
        """w of each token."""
        return np.stack([token.model for token in self._tokens])[:, None, :]

    @property
    def averages(self) -> Array:
        """w̄ of each token."""
        return np.stack([token.average for token in self._tokens])[:, None, :]

    def _advance(self, iterations: int) -> None:
        """Move the tokens step by step."""
        for replicate, setting in enumerate(self.settings):
            token = self._tokens[replicate]
            for _ in range(iterations):
                own = self.streams[replicate].of(token.node)
                uniforms = own.walk.random(setting.draws)
                protect = self._protection(replicate, token.node, own.noise)
                counts = self.counted(replicate, token.node)
                kept = self._kept[replicate].of(token.node) if self._kept else None
                token, visit = walk_sgd.step(setting, token, uniforms, protect, counts, kept)
                if self._kept:
                    self._kept[replicate].nodes[visit.node] = visit.kept
                self.visits[visit.node] += 1
            self._tokens[replicate] = token
            self.messages[replicate] = token.messages
            self.questions[replicate] = token.questions
        self.iterations += iterations

    def _protection(
        self, replicate: int, node: int, generator: np.random.Generator
    ) -> Protect | None:
        noise = self.setting.model_noise
        if noise is None or self.contributions is None:
            return None
        # Every visit draws its noise, so that the stream does not depend on the cap.
        protect = self._noised(noise, generator)
        if self.contributions[replicate, node] >= noise.max_contributions:
            return lambda *_: None
        self.contributions[replicate, node] += 1
        return protect

    def _noised(self, noise: ModelNoise, generator: np.random.Generator) -> Callable[..., Array]:
        normal = generator.standard_normal(self.setting.problem.size)
        return partial(noise.protected, normal=normal)

    def values(self, models: Array) -> Array:
        """f(w), computed by `Problem.value`."""
        return _reference_values(self.setting.problem, models)


class ReleasedWalks(ReferenceWalks):
    """Tokens that can be shown: the noise on them is exact, and from the system's entropy."""

    def _noised(self, noise: ModelNoise, generator: np.random.Generator) -> Callable[..., Array]:
        return partial(noise.released, steps=noise.draw(self.setting.problem.size))


class ReferenceGossip(Batch):
    """Networks moved by `gossip_sgd.step`."""

    setting: GossipSetting

    def __init__(self, setting: GossipSetting, streams: Sequence[Streams]) -> None:
        super().__init__(setting, streams)
        self._networks = [gossip_sgd.init(setting, each.walk) for each in streams]

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
                network = gossip_sgd.step(self.setting, self._networks[replicate], line)
                self._networks[replicate] = network
            self.messages[replicate] = self._networks[replicate].messages
        self.visits = np.sum([network.counts for network in self._networks], axis=0)
        self.iterations += iterations

    def values(self, models: Array) -> Array:
        """f(w), computed by `Problem.value`."""
        return _reference_values(self.setting.problem, models)


def _reference_values(problem: Problem, models: Array) -> Array:
    flat = models.reshape(-1, models.shape[-1])
    return np.array([problem.value(model) for model in flat]).reshape(models.shape[:-1])
