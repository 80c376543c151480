"""Batches that run compiled, on what `layout` makes of the problem and the walk."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property
from typing import Any

import numpy as np

from walklearn.problem.domains import Box
from walklearn.simulation.batches import Array, Batch, Counts, Seen, WalkBatch
from walklearn.simulation.layout import chain_of, data_of, has_one_row, node_streams_of, values_of
from walklearn.updates.gossip_sgd import (
    AsynchronousGossip,
    GossipSetting,
    GradientTracking,
    Network,
)
from walklearn.updates.random_streams import Streams
from walklearn.updates.sgd import start
from walklearn.updates.update import Kept
from walklearn.updates.walk_sgd import Token, WalkSetting

LARGEST_BATCH = 32  # tokens in one batch
# Tokens of a batch that take turns, with as many numbers of their models as the first-level
# cache holds, and from where on the rows are out of the cache and worth asking for ahead
# (benchmarks/README.md has the measurements).
LARGEST_GROUP = 8
GROUP_NUMBERS = 1024
CACHE_BYTES = 2**20
GOSSIP_CACHE_BYTES = 2**18


class CompiledWalks(WalkBatch):
    """Tokens moved by `compiled`, on the fast way where it is open."""

    def __init__(
        self,
        setting: WalkSetting,
        streams: Sequence[Streams],
        tokens: Sequence[Token] | None = None,
        kept: Sequence[Kept] | None = None,
    ) -> None:
        from walklearn.simulation import compiled

        super().__init__(setting, streams, tokens, kept)
        problem = setting.problem
        nodes = np.array([token.node for token in self.starts], dtype=np.int64)
        models = np.stack([token.model for token in self.starts])
        self._data = data_of(problem, setting.batch)
        self._chain = chain_of(self.settings if setting.walk.is_private else [setting])
        self._node_streams = node_streams_of(streams)
        plain = setting.model_noise is None
        self._one_row = plain and has_one_row(problem)
        self._lazy = plain and problem.is_sparse and not isinstance(problem.domain, Box)
        self._tokens = compiled.Tokens(
            nodes=nodes,
            # `hop` relies on it that nobody comes from where it is.
            previous=np.array(
                [-1 if token.previous == token.node else token.previous for token in self.starts],
                dtype=np.int64,
            ),
            models=models.reshape(-1),
            sums=np.concatenate([token.weighted_sum for token in self.starts]).astype(float),
            scores=self._first_scores(nodes, models),
            shrink=np.ones(len(nodes)),
            messages=self.messages,
            questions=self.questions,
            visits=self.visits,
            counts=self.counts,
        )
        self._factors = compiled.Factors(
            shares=np.zeros(len(nodes)),
            squared_norms=np.einsum("ta,ta->t", models, models, dtype=np.float64),
        )
        self._step_size_sum = float(self.starts[0].step_size_sum)
        self._steps = np.empty((2, 0))
        self._inverse_importance_sums = np.array(
            [token.inverse_importance_sum for token in self.starts]
        )
        self._group = max(1, min(LARGEST_GROUP, GROUP_NUMBERS // problem.size))
        self._far = max(problem.row_bytes, setting.graph.indices.nbytes) > CACHE_BYTES
        # By the problem alone, not by how many tokens there are: so cores change no bit.
        self._is_short = problem.size < compiled.SHORT and not isinstance(problem.domain, Box)

    @property
    def models(self) -> Array:
        """w of each token."""
        models = self._tokens.models.reshape(len(self.streams), 1, -1)
        return (models * self._tokens.shrink[:, None, None]).astype(models.dtype)

    @property
    def averages(self) -> Array:
        """w̄ of each token."""
        if not self.iterations or not self.setting.carries_average:
            return self.models
        return np.asarray(self._sums[:, None] / self._step_size_sum)

    @property
    def _sums(self) -> Array:
        """Σγw of each token."""
        shape = (len(self.streams), -1)
        sums, models = self._tokens.sums.reshape(shape), self._tokens.models.reshape(shape)
        return np.asarray(sums + self._factors.shares[:, None] * models)

    @property
    def kept(self) -> list[Kept]:
        """Nothing: the update has no memory."""
        return []

    @property
    def tokens(self) -> list[Token]:
        """The tokens as the reference has them."""
        state, models = self._tokens, self.models[:, 0]
        sums, total = np.zeros(models.shape), 0.0
        if self.setting.carries_average:
            sums, total = self._sums, self._step_size_sum
        return [
            Token(
                node=int(state.nodes[r]),
                previous=int(state.previous[r]),
                model=models[r],
                weighted_sum=sums[r],
                step_size_sum=total,
                updates=self.iterations,
                messages=int(self.messages[r]),
                inverse_importance_sum=float(self._inverse_importance_sums[r]),
                questions=int(self.questions[r]),
            )
            for r in range(len(self.streams))
        ]

    def _first_scores(self, nodes: Array, models: Array) -> Array:
        """x·w at the first node, where each node has one row."""
        if not self._one_row:
            return np.zeros(len(nodes))
        scores = np.einsum("ta,ta->t", self.setting.problem.X[nodes], models)
        return np.asarray(scores, dtype=np.float64)

    def _advance(self, iterations: int) -> None:
        self.advance(iterations)

    def advance(self, iterations: int, after: Counts = ()) -> Seen | None:
        """Advance all tokens together; copies are made by the compiled code."""
        from walklearn.simulation import compiled

        setting, chain, tokens = self.setting, self._chain, self._tokens
        done = self.iterations
        gammas, totals = self._next_steps(iterations)
        own = self._node_streams  # where these are not empty, the uniforms are drawn on the way
        shape = (len(self.streams), iterations, setting.draws)
        uniforms = np.empty(shape) if own.size else self.draw(iterations)
        records = self._records(after)
        estimated = setting.mean_importance == "estimated"
        inverses = self._inverse_importance_sums if estimated else np.empty(0)
        with_rows = (self._data, tokens, gammas, done, records)
        if self._one_row and not self._far:
            walking = (chain, uniforms, own, inverses, *with_rows)
            if self._is_short:
                compiled.walk_short_rows(*walking)
            else:
                compiled.walk_long_rows(*walking, self._group)
        else:
            path = compiled.find_paths(chain, tokens, uniforms, own, records, self._far)
            along = (path, chain.scale, inverses, *with_rows)
            if self._one_row:
                compiled.update_one_row(*along, self._group)
            elif self._lazy:
                compiled.update_sparse(*along, uniforms, setting.walk.draws, self._factors)
            else:
                noise = self._noise(path[:, :-1])
                compiled.update_rows(*along, uniforms, setting.walk.draws, noise)
        self._step_size_sum = float(totals[-1])
        self.iterations += iterations
        if not len(after):
            return None
        models = records.models[:, :, None]
        averages = models
        if setting.carries_average:
            averages = records.sums[:, :, None]
            averages /= totals[records.after - 1, None, None, None]
        return Seen(models, averages, records.messages, records.questions)

    def _next_steps(self, iterations: int) -> Array:
        """The next step sizes and their sums so far; as those of `draw`, gone with the next."""
        from walklearn.simulation import compiled

        step = self.setting.step_size
        if self._steps.shape[1] != iterations:
            self._steps = np.empty((2, iterations))
        compiled.step_sizes(
            step.constant, step.exponent, self.iterations, self._step_size_sum, *self._steps
        )
        return self._steps

    def _records(self, after: Counts) -> Any:
        """Make room for copies."""
        from walklearn.simulation import compiled

        shape, dtype = (len(after), len(self.streams)), self._tokens.models.dtype
        size = self.setting.problem.size
        return compiled.Records(
            np.array(after, dtype=np.int64), np.empty((*shape, size), dtype),
            np.empty((*shape, size)), np.empty(shape, dtype=np.int64),
            np.empty(shape, dtype=np.int64),
        )  # fmt: skip

    def _noise(self, visited: Array) -> Any:
        from walklearn.simulation import compiled

        noise = self.setting.model_noise
        if noise is None or self.contributions is None:
            nothing = np.empty(0), np.empty(0), np.empty((0, 0, 0)), np.empty((0, 0), np.int64)
            return compiled.Noise(0.0, False, 0.0, 0, *nothing)
        return compiled.Noise(
            clip=noise.clip,
            by_row=noise.protect == "rows",
            deviation=noise.standard_deviation,
            most=noise.max_contributions,
            factors=self._noise_factors,
            lengths=self.setting.problem.row_lengths,
            normals=self._normals(visited),
            contributions=self.contributions,
        )

    @cached_property
    def _noise_factors(self) -> Array:
        """What clip and noise are multiplied by at each node."""
        noise, problem = self.setting.model_noise, self.setting.problem
        assert noise is not None
        return np.array([noise.factor(problem, node) for node in range(problem.nodes)])

    def _normals(self, visited: Array) -> Array:
        """The noise of each visit, in the order in which its stream gives it."""
        normals = np.empty((*visited.shape, self.setting.problem.size))
        for line, nodes, streams in zip(normals, visited, self.streams, strict=True):
            if streams.nodes is None:
                streams.noise.standard_normal(out=line)
                continue
            order = np.argsort(nodes, kind="stable")
            for visits in np.split(order, np.flatnonzero(np.diff(nodes[order])) + 1):
                noise = streams.nodes[int(nodes[visits[0]])].noise
                line[visits] = noise.standard_normal((len(visits), line.shape[1]))
        return normals

    def values(self, models: Array) -> Array:
        """f(w), computed by `compiled.values`."""
        return values_of(self._data, models)


class CompiledGossip(Batch):
    """Networks moved by `compiled.advance_asynchronous` and `advance_synchronous`."""

    setting: GossipSetting

    def __init__(self, setting: GossipSetting, streams: Sequence[Streams]) -> None:
        from walklearn.simulation import compiled

        super().__init__(setting, streams)
        problem, nodes = setting.problem, setting.problem.nodes
        self._data = data_of(problem, setting.batch)
        tracked = nodes * problem.size if isinstance(setting.gossip, GradientTracking) else 0
        self._networks = [
            compiled.Nodes(
                models=np.tile(start(problem, each.walk)[1], nodes),
                sums=np.zeros(nodes * problem.size),
                step_size_sums=np.zeros(nodes),
                counts=np.zeros(nodes, dtype=np.int64),
                trackers=np.zeros(tracked),
                gradients=np.zeros(tracked),
            )
            for each in streams
        ]

    @property
    def models(self) -> Array:
        """w of every node."""
        shape = (len(self._networks), self.setting.problem.nodes, -1)
        return np.stack([network.models for network in self._networks]).reshape(shape)

    @property
    def averages(self) -> Array:
        """w̄ of every node."""
        return np.stack([_network(network).averages for network in self._networks])

    def _advance(self, iterations: int) -> None:
        """Advance one network after the other."""
        for network, uniforms in zip(self._networks, self.draw(iterations), strict=True):
            self._advance_one(network, uniforms)
        self.visits[:] = np.sum([network.counts for network in self._networks], axis=0)
        self.iterations += iterations

    def _advance_one(self, network: Any, uniforms: Array) -> None:
        from walklearn.simulation import compiled

        setting, graph = self.setting, self.setting.graph
        c, q = setting.step_size.constant, setting.step_size.exponent
        if isinstance(setting.gossip, AsynchronousGossip):
            common = (graph.indptr, graph.indices, setting.scale, self._data, network, c, q)
            if has_one_row(setting.problem) and not isinstance(setting.problem.domain, Box):
                far = setting.problem.row_bytes > GOSSIP_CACHE_BYTES
                compiled.advance_asynchronous_one_row(*common, uniforms, far)
            else:
                compiled.advance_asynchronous(*common, uniforms)
            self.messages += 2 * len(uniforms)
            return
        mixing, begun = setting.mixing, int(network.counts[0])
        weights = (mixing.indptr, mixing.indices, mixing.data)
        if isinstance(setting.gossip, GradientTracking):
            gammas = setting.step_size(np.arange(begun + 1, begun + len(uniforms) + 1))
            compiled.track_gradients(*weights, self._data, network, gammas, begun == 0)
        else:
            compiled.advance_synchronous(
                *weights, setting.scale, self._data, network, c, q, uniforms
            )
        self.messages += 2 * graph.edge_count * len(uniforms)

    def values(self, models: Array) -> Array:
        """f(w), computed by `compiled.values`."""
        return values_of(self._data, models)


def _network(network: Any) -> Network:
    shape = (len(network.counts), -1)
    return Network(
        network.models.reshape(shape), network.sums.reshape(shape),
        network.step_size_sums, network.counts, 0,
    )  # fmt: skip
