"""Batches that run compiled, on the arrays that `kernel_inputs` makes of problem and walk."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property
from typing import Any

import numpy as np

from walklearn.arrays import Array, Arrays
from walklearn.graphs import Graph
from walklearn.objectives.linear.domains import Box
from walklearn.simulation import kernel_inputs
from walklearn.simulation.averaging import (
    AsynchronousGossip,
    GossipSetting,
    GradientTracking,
    weighted_means,
)
from walklearn.simulation.batches import Batch, Counts, Position, Snapshot, WalkBatch
from walklearn.streams import Streams, draw_start
from walklearn.visit import Token

LARGEST_BATCH = 32  # tokens in one batch
# Tokens of a batch that take turns, with as many numbers of their models as the first-level
# cache holds, and from where on the rows are out of the cache and worth asking for ahead
# (benchmarks/README.md has the measurements).
LARGEST_GROUP = 8
GROUP_NUMBERS = 1024
CACHE_BYTES = 2**20
GOSSIP_CACHE_BYTES = 2**18


class CompiledWalks(WalkBatch):
    """Tokens moved by `kernels`."""

    def _begin(self) -> None:
        from walklearn.simulation.kernels.drivers import Tokens

        setting, graph, problem = self.setting, self.graph, self.objective
        tokens = [start.token for start in self.starts]
        self._data = kernel_inputs.data_of(problem)
        # One line of scores and weights if all replicates share them.
        shared = all(each is self.settings[0] for each in self.settings)
        lines = self.settings[:1] if shared else self.settings
        self._walks = [each.walk for each in lines]
        counted = len(self.streams) if setting.walk.node_arrays(1) else 0
        counts = np.ones((counted, problem.nodes), dtype=np.int64)
        self._hops = kernel_inputs.hops_of(self._walks, graph, problem, counts)
        self._node_streams = kernel_inputs.node_streams_of(self.streams)
        self._one_row = not setting.privacy.adds_noise and kernel_inputs.has_one_row(problem)
        self._tokens = Tokens(
            nodes=np.array([start.node for start in self.starts], dtype=np.int64),
            previous=np.array([_sender(start) for start in self.starts], dtype=np.int64),
            messages=self.messages,
            questions=self.questions,
            visits=self.visits,
        )
        self._step_size_sum = float(tokens[0].update.get("step_size_sum", 0.0))
        self._steps = np.empty((2, 0))
        self._inverse_sums = np.array([float(t.walk.get("inverse_sum", 0.0)) for t in tokens])
        self._group = max(1, min(LARGEST_GROUP, GROUP_NUMBERS // problem.size))
        self._far = max(problem.row_bytes, graph.indices.nbytes) > CACHE_BYTES
        self._path = np.empty((0, 0), graph.indices.dtype)
        self._state = self._first_state(np.stack([token.update["model"] for token in tokens]))

    def _first_state(self, models: Array) -> Any:
        """The arrays of SGD."""
        from walklearn.simulation.kernels.visits import sgd

        problem, count = self.objective, len(models)
        self._lazy = (
            problem.is_sparse
            and not self.setting.privacy.adds_noise
            and not isinstance(problem.domain, Box)
        )
        # By the problem alone, not by the number of tokens: the number of cores changes no bit.
        self._is_short = problem.size < sgd.SHORT and not isinstance(problem.domain, Box)
        no_sum = np.zeros(problem.size)
        rows = int(np.diff(problem.offsets).max(initial=0))
        nothing = np.empty(0), np.empty(0), np.empty((0, 0, 0)), np.empty((0, 0), np.int64)
        return sgd.Sgd(
            models=models.reshape(-1),
            sums=np.concatenate(
                [start.token.update.get("weighted_sum", no_sum) for start in self.starts]
            ),
            scores=self._first_scores(models),
            factors=np.ones(count),
            shares=np.zeros(count),
            squared_norms=np.einsum("ta,ta->t", models, models, dtype=np.float64),
            inverses=self._inverse_sums if self.mean == "estimated" else np.empty(0),
            weights=kernel_inputs.weights_of(self._walks, self.graph, problem, self.mean),
            stride=self._hops.chain.stride,
            step_sizes=np.empty(0),
            done=0,
            draws=np.empty((0, 0, 0)),
            gradient=np.empty(problem.size),
            slopes=np.empty(max(rows, 1) * problem.outputs),
            noise=sgd.Noise(0.0, False, 0.0, 0, *nothing),
        )

    @property
    def models(self) -> Array:
        """w of each token."""
        models = self._state.models.reshape(len(self.streams), 1, -1)
        return np.asarray(models * self._state.factors[:, None, None], dtype=models.dtype)

    @property
    def averages(self) -> Array:
        """w̄ of each token."""
        if not self.iterations or not self._has_average:
            return self.models
        return np.asarray(self._sums[:, None] / self._step_size_sum)

    @property
    def _sums(self) -> Array:
        """Σγw of each token."""
        state, shape = self._state, (len(self.streams), -1)
        sums, models = state.sums.reshape(shape), state.models.reshape(shape)
        return np.asarray(sums + state.shares[:, None] * models)

    @cached_property
    def _has_average(self) -> bool:
        """True if the token carries the sums of which w̄ is made."""
        return any(spec.name == "weighted_sum" for spec in self.setting.token_specs[1])

    def _update_arrays(self, replicate: int, model: Array) -> Arrays:
        """The update's arrays on a token, as the reference has them."""
        arrays: Arrays = {"model": model}
        if self._has_average:
            arrays["weighted_sum"] = self._sums[replicate]
            arrays["step_size_sum"] = np.asarray(self._step_size_sum)
        return arrays

    @property
    def positions(self) -> list[Position]:
        """The tokens as the reference has them."""
        tokens, updates = self._tokens, self.iterations
        positions = []
        for r, model in enumerate(self.models[:, 0]):
            known = {
                "sender": np.asarray(tokens.previous[r] + 1),
                "inverse_sum": np.asarray(self._inverse_sums[r]),
            }
            walk = {spec.name: known[spec.name] for spec in self.setting.token_specs[0]}
            token = Token(0, updates, updates, walk, self._update_arrays(r, model))
            costs = int(self.messages[r]), int(self.questions[r])
            positions.append(Position(int(tokens.nodes[r]), token, *costs))
        return positions

    def _first_scores(self, models: Array) -> Array:
        """x·w at the first node, where each node has one row."""
        if not self._one_row:
            return np.zeros(len(models))
        scores = np.einsum("ta,ta->t", self.objective.X[self._tokens.nodes], models)
        return np.asarray(scores, dtype=np.float64)

    def _advance(self, iterations: int) -> None:
        self.advance(iterations)

    def advance(self, iterations: int, after: Counts = ()) -> Snapshot | None:
        """Advance all tokens together; copies are made by the compiled code."""
        from walklearn.simulation.kernels.drivers import Draws

        own = self._node_streams  # if it is not empty, kernels draw the uniforms from it
        shape = (len(self.streams), iterations, self.draws)
        draws = Draws(np.empty(shape) if own.size else self.draw(iterations), own)
        records = self._records(after)
        averages = self._run(draws, records)
        self.iterations += iterations
        if not len(after):
            return None
        models = records.models[:, :, None]
        return Snapshot(
            models, models if averages is None else averages, records.messages, records.questions
        )

    def _run(self, draws: Any, records: Any) -> Array | None:
        """Hop and update; return the averages of the records if tokens carry them."""
        from walklearn.simulation.kernels.visits import sgd, sgd_sparse

        gammas, totals = self._next_steps(draws.uniforms.shape[1])
        state = self._state._replace(step_sizes=gammas, done=self.iterations)
        near = (self._hops, self._tokens, draws, self._data, state, records)
        if self._one_row and not self._far:
            if self._is_short:
                sgd.near_short(*near)
            else:
                sgd.near_long(*near, self._group)
        else:
            path = self._paths(draws, records)
            state = state._replace(draws=self._picks(draws), noise=self._noise(path[:, :-1]))
            along = (path, self.visits, self._data, state, records)
            if self._one_row:
                (sgd.far_short if self._is_short else sgd.far_long)(*along, self._group)
            elif self._lazy:
                sgd_sparse.far_sparse(*along)
            else:
                sgd.far_rows(*along)
        self._step_size_sum = float(totals[-1])
        if not self._has_average:
            return None
        sums = records.sums[:, :, None]
        return np.asarray(sums / totals[records.after - 1, None, None, None])

    def _picks(self, draws: Any) -> Array:
        """The numbers that pick mini-batches, apart from those of the walk."""
        return np.ascontiguousarray(draws.uniforms[:, :, self.setting.walk.draws :])

    def _paths(self, draws: Any, records: Any) -> Array:
        """The nodes that each token visits, and the one after."""
        from walklearn.simulation.kernels.drivers import find_paths

        shape = (draws.uniforms.shape[0], draws.uniforms.shape[1] + 1)
        if self._path.shape != shape:
            self._path = np.empty(shape, self._path.dtype)
        places = np.empty(len(self._path), np.uint64)
        find_paths(self._hops, self._tokens, draws, records, self._path, places, self._far)
        return np.asarray(self._path)

    def _next_steps(self, iterations: int) -> Array:
        """The next step sizes and their sums so far; as those of `draw`, gone with the next."""
        from walklearn.simulation.kernels.arithmetic import step_sizes

        step: Any = self.setting.update.step_size  # type: ignore[attr-defined]
        if self._steps.shape[1] != iterations:
            self._steps = np.empty((2, iterations))
        step_sizes(step.constant, step.exponent, self.iterations, self._step_size_sum, *self._steps)
        return self._steps

    def _records(self, after: Counts) -> Any:
        """Make room for copies."""
        from walklearn.simulation.kernels.drivers import Records

        shape, dtype = (len(after), len(self.streams)), self._state.models.dtype
        size = self.objective.size
        return Records(
            np.array(after, dtype=np.int64), np.empty((*shape, size), dtype),
            np.empty((*shape, size)), np.empty(shape, dtype=np.int64),
            np.empty(shape, dtype=np.int64),
        )  # fmt: skip

    def _noise(self, visited: Array) -> Any:
        noise: Any = self.setting.privacy
        if self.contributions is None:
            return self._state.noise
        return self._state.noise._replace(
            clip=noise.clip,
            by_row=noise.protect == "rows",
            deviation=noise.standard_deviation,
            max_contributions=noise.max_contributions,
            factors=self._noise_factors,
            lengths=self.objective.row_lengths,
            normals=self._normals(visited),
            contributions=self.contributions,
        )

    @cached_property
    def _noise_factors(self) -> Array:
        """What clip and noise are multiplied by at each node."""
        noise: Any = self.setting.privacy
        problem = self.objective
        return np.array([noise.factor(problem, node) for node in range(problem.nodes)])

    def _normals(self, visited: Array) -> Array:
        """The noise of each visit, in the order in which its stream gives it."""
        normals = np.empty((*visited.shape, self.objective.size))
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
        """f(w), computed by `kernels.values`."""
        return kernel_inputs.values_of(self._data, models)


class CompiledGossip(Batch):
    """Networks moved by `kernels.gossip`."""

    def __init__(self, setting: GossipSetting, graph: Graph, streams: Sequence[Streams]) -> None:
        from walklearn.simulation.kernels.gossip import Nodes

        super().__init__(setting.objective, graph, streams, setting.draws)
        self.setting = setting
        problem, nodes = setting.objective, setting.objective.nodes
        self._data = kernel_inputs.data_of(problem)
        tracked = nodes * problem.size if isinstance(setting.gossip, GradientTracking) else 0
        self._networks = [
            Nodes(
                models=np.tile(draw_start(problem, each.walk)[1], nodes),
                sums=np.zeros(nodes * problem.size),
                step_size_sums=np.zeros(nodes),
                counts=np.zeros(nodes, dtype=np.int64),
                trackers=np.zeros(tracked),
                gradients=np.zeros(tracked),
                mixed=np.empty(nodes * problem.size),
                gradient=np.empty(problem.size),
                slopes=np.empty(problem.outputs),
            )
            for each in streams
        ]

    @property
    def models(self) -> Array:
        """w of every node."""
        return self._stacked("models")

    @property
    def averages(self) -> Array:
        """w̄ of every node."""
        return weighted_means(*map(self._stacked, ("models", "sums", "step_size_sums")))

    def _stacked(self, name: str) -> Array:
        shape = (len(self._networks), self.objective.nodes, -1)
        return np.stack([getattr(network, name) for network in self._networks]).reshape(shape)

    def _advance(self, iterations: int) -> None:
        """Advance one network after the other."""
        for network, uniforms in zip(self._networks, self.draw(iterations), strict=True):
            self._advance_one(network, uniforms)
        self.visits[:] = np.sum([network.counts for network in self._networks], axis=0)
        self.iterations += iterations

    def _advance_one(self, network: Any, uniforms: Array) -> None:
        from walklearn.simulation.kernels import gossip
        from walklearn.simulation.kernels.rows import SparseRows

        setting, graph, rounds = self.setting, self.graph, len(uniforms)
        step = setting.step_size.constant, setting.step_size.exponent
        if isinstance(setting.gossip, AsynchronousGossip):
            common = (graph.indptr, graph.indices, setting.scale, self._data, network, *step)
            meetings = np.ascontiguousarray(uniforms[:, 0])
            if kernel_inputs.has_one_row(self.objective) and not isinstance(
                self.objective.domain, Box
            ):
                far = self.objective.row_bytes > GOSSIP_CACHE_BYTES
                gossip.meet_one_row(*common, meetings, far)
            else:
                draws = np.ascontiguousarray(uniforms[:, 1:]).reshape(rounds, 2, -1)
                gossip.meet(*common, meetings, draws)
            self.messages += 2 * rounds
            return
        matrix = setting.mixing
        mixing = SparseRows(matrix.data, matrix.indices, matrix.indptr, matrix.shape[1])
        draws = uniforms.reshape(rounds, self.objective.nodes, -1)
        if isinstance(setting.gossip, GradientTracking):
            begun = int(network.counts[0])
            gammas = setting.step_size(np.arange(begun + 1, begun + rounds + 1))
            gossip.track_gradients(mixing, self._data, network, gammas, draws, begun == 0)
        else:
            gossip.mix_all(mixing, setting.scale, self._data, network, *step, draws)
        self.messages += 2 * graph.edge_count * rounds

    def values(self, models: Array) -> Array:
        """f(w), computed by `kernels.values`."""
        return kernel_inputs.values_of(self._data, models)


def _sender(start: Position) -> int:
    """Return the node before the last move, −1 if there is none: hops expect another node."""
    sender = int(start.token.walk.get("sender", 0)) - 1
    return -1 if sender == start.node else sender
