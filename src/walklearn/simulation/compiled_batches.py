"""Batches that run compiled code, on the arrays that `kernel_inputs` makes of problem and walk."""

from __future__ import annotations

from functools import cached_property
from typing import Any

import numpy as np

from walklearn.arrays import Array, Arrays, conform
from walklearn.objectives.linear.domains import Box, Everywhere
from walklearn.simulation import covering_tables, kernel_inputs
from walklearn.simulation.averaging import AsynchronousGossip, GradientTracking, Network
from walklearn.simulation.batches import (
    Batch,
    Counts,
    Position,
    ReferenceGossip,
    Snapshot,
    WalkBatch,
)
from walklearn.updates.saga import ALL_NODES, SCALARS
from walklearn.visit import Token

LARGEST_BATCH = 32  # tokens in one batch
# Tokens of a batch that take turns: the numbers of their models fit the first-level cache.
# Rows and graphs of more than CACHE_BYTES do not fit the second-level cache and are prefetched.
# benchmarks/README.md has the measurements.
LARGEST_GROUP = 8
GROUP_NUMBERS = 1024
CACHE_BYTES = 2**20
GOSSIP_CACHE_BYTES = 2**18


class CompiledBatch(Batch):
    """Replicates of any setting on compiled code."""

    @cached_property
    def _data(self) -> Any:
        return kernel_inputs.data_of(self.objective)

    def values(self, models: Array) -> Array:
        """Return f of each model, computed by `kernels.values`."""
        return kernel_inputs.values_of(self._data, models)


class CompiledWalks(CompiledBatch, WalkBatch):
    """Tokens moved by `kernels`."""

    def _init_state(self) -> None:
        from walklearn.simulation.kernels.drivers import Tokens

        setting, graph, problem = self.setting, self.graph, self.objective
        tokens = [start.token for start in self.starts]
        # One line of scores and weights if all replicates share them.
        shared = all(each is setting for each in self.settings)
        own = np.repeat(np.arange(len(self.settings)), setting.tokens)  # one line for each token
        self._walks = [self.settings[r].walk for r in ([0] if shared else own)]
        self._hops = kernel_inputs.hops_of(self._walks, graph, problem, self.starts)
        self._node_streams = kernel_inputs.node_streams_of(self.streams, problem.nodes)
        self._one_row = not setting.privacy.adds_noise and kernel_inputs.has_one_row(problem)
        self._tokens = Tokens(
            nodes=np.array([start.node for start in self.starts], dtype=np.int64),
            previous=np.array([_previous(start) for start in self.starts], dtype=np.int64),
            messages=self.messages,
            questions=self.questions,
            arrivals=self.arrivals,
            visits=self.visits,
        )
        self._step_size_sum = float(tokens[0].update.get("step_size_sum", 0.0))
        self._has_average = any(spec.name == "weighted_sum" for spec in setting.token_specs[1])
        self._steps = np.empty((2, 0))
        self._inverse_sums = np.array([float(t.walk.get("inverse_sum", 0.0)) for t in tokens])
        self._group = max(1, min(LARGEST_GROUP, GROUP_NUMBERS // problem.size))
        self._far = max(problem.row_bytes, graph.indices.nbytes) > CACHE_BYTES
        self._path = np.empty((0, 0), graph.indices.dtype)
        self._state = self._first_state([token.update for token in tokens])

    def _first_state(self, carried: list[Arrays]) -> Any:
        """Return the arrays of SGD, from those that the tokens carry."""
        from walklearn.simulation.kernels.visits import sgd

        problem, count = self.objective, len(carried)
        models, no_sum = np.stack([token["model"] for token in carried]), np.zeros(problem.size)
        sums = [token.get("weighted_sum", no_sum) for token in carried]
        rows = int(np.diff(problem.offsets).max(initial=0))
        has_gaps = self.setting.walk.has_gap_weights
        if has_gaps:
            weights = kernel_inputs.last_visits_of(self.starts, problem.nodes)
        else:
            weights = kernel_inputs.weights_of(self._walks, self.graph, problem, self.mean)
        return sgd.Sgd(
            models=models.reshape(-1),
            sums=np.concatenate(sums),
            scores=self._first_scores(models),
            factors=np.ones(count),
            shares=np.zeros(count),
            squared_norms=np.einsum("ta,ta->t", models, models, dtype=np.float64),
            inverses=self._inverse_sums if self.mean == "estimated" else np.empty(0),
            weights=weights,
            stride=problem.nodes if has_gaps else self._hops.chain.stride,
            has_gaps=has_gaps,
            step_sizes=np.empty(0),
            done=0,
            draws=np.empty((0, 0, 0)),
            gradient=np.empty(problem.size),
            slopes=np.empty(max(rows, 1) * problem.outputs),
            noise=kernel_inputs.noise_of(self.setting.privacy, problem, self.contributions),
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

    def _update_arrays(self, replicate: int) -> Arrays:
        """Return the update's arrays on a token, as the reference has them."""
        model = {"model": self.models[replicate, 0]}
        if not self._has_average:
            return model
        step_size_sum = np.asarray(self._step_size_sum)
        return model | {"weighted_sum": self._sums[replicate], "step_size_sum": step_size_sum}

    @property
    def positions(self) -> list[Position]:
        """The tokens as the reference has them."""
        tokens, updates, setting = self._tokens, self.iterations, self.setting
        positions = []
        for r in range(len(self.streams)):
            known = {
                "sender": np.asarray(tokens.previous[r] + 1),
                "previous": np.asarray(tokens.previous[r]),
                "inverse_sum": np.asarray(self._inverse_sums[r]),
                **covering_tables.token_arrays(self._hops, r),
            }
            specs = setting.token_specs[0]
            walk = conform(specs, {spec.name: known[spec.name] for spec in specs}, setting.walk)
            token = Token(0, updates, updates, walk, self._update_arrays(r))
            costs = int(self.messages[r]), int(self.questions[r]), int(self.arrivals[r])
            positions.append(Position(int(tokens.nodes[r]), token, *costs))
        return positions

    def _first_scores(self, models: Array) -> Array:
        """Return x·w at the first node, if each node has one row."""
        if not self._one_row:
            return np.zeros(len(models))
        scores = np.einsum("ta,ta->t", self.objective.X[self._tokens.nodes], models)
        return np.asarray(scores, dtype=np.float64)

    def _advance(self, iterations: int) -> None:
        self.advance(iterations)

    def paths(self, iterations: int) -> Array:
        """Hop without updates; return the nodes that each token visits, one more than the hops."""
        path, _ = self._paths(*self._draws_and_records(iterations, ()))
        self.iterations += iterations
        return path

    def advance(self, iterations: int, after: Counts = ()) -> Snapshot | None:
        """Advance all tokens together; the compiled code makes the copies."""
        draws, records = self._draws_and_records(iterations, after)
        averages = self._run(draws, records)
        updates = self.iterations + records.after[:, None]
        self.iterations += iterations
        if not len(after):
            return None
        models = records.models[:, :, None]
        return Snapshot(
            models,
            models if averages is None else averages,
            records.messages,
            records.questions,
            self.schedule.total(records.arrivals, updates),
        )

    def _draws_and_records(self, iterations: int, after: Counts) -> tuple[Any, Any]:
        """Return the uniform numbers of the next visits, and arrays for copies after some."""
        from walklearn.simulation.kernels.drivers import Draws, Records

        own = self._node_streams  # if it is not empty, kernels draw the uniforms from it
        shape = (len(self.streams), iterations, self.draws)
        draws = Draws(np.empty(shape) if own.size else self.draw(iterations), own)
        counts, size = (len(after), len(self.streams)), self.objective.size
        records = Records(
            after=np.array(after, dtype=np.int64),
            models=np.empty((*counts, size), self.objective.dtype),
            sums=np.empty((*counts, size)),
            messages=np.empty(counts, dtype=np.int64),
            questions=np.empty(counts, dtype=np.int64),
            arrivals=np.empty(counts, dtype=np.int64),
        )
        return draws, records

    def _run(self, draws: Any, records: Any) -> Array | None:
        """Hop and update; return the averages of the records if tokens carry them."""
        from walklearn.simulation.kernels.visits import sgd, sgd_sparse

        problem, has_box = self.objective, isinstance(self.objective.domain, Box)
        # By the problem alone, not by the number of tokens: the number of cores changes no bit.
        is_short = problem.size < sgd.SHORT and not has_box
        gammas, totals = self._next_steps(draws.uniforms.shape[1])
        state = self._state._replace(step_sizes=gammas, done=self.iterations)
        near = (self._hops, self._tokens, draws, self._data, state, records)
        if self._one_row and not self._far:
            if is_short:
                sgd.near_short(*near)
            else:
                sgd.near_long(*near, self._group)
        else:
            path, picks = self._paths(draws, records)
            noise = state.noise
            if self.contributions is not None:
                noise = noise._replace(normals=self._normals(path[:, :-1]))
            state = state._replace(draws=picks, noise=noise)
            along = (path, self.visits, self._data, state, records)
            if self._one_row:
                (sgd.far_short if is_short else sgd.far_long)(*along, self._group)
            elif problem.is_sparse and self.contributions is None and not has_box:
                sgd_sparse.far_sparse(*along)
            else:
                sgd.far_rows(*along)
        self._step_size_sum = float(totals[-1])
        if not self._has_average:
            return None
        sums = records.sums[:, :, None]
        return np.asarray(sums / totals[records.after - 1, None, None, None])

    def _paths(self, draws: Any, records: Any) -> tuple[Array, Array]:
        """Return the nodes that each token visits, and the next; the numbers for mini-batches."""
        from walklearn.simulation.kernels.drivers import find_paths

        shape = (draws.uniforms.shape[0], draws.uniforms.shape[1] + 1)
        if self._path.shape != shape:
            self._path = np.empty(shape, self._path.dtype)
        places = np.empty(len(self._path), np.uint64)
        find_paths(self._hops, self._tokens, draws, records, self._path, places, self._far)
        picks = draws.uniforms[:, :, self.setting.walk.draws :]
        return self._path, np.ascontiguousarray(picks)

    def _next_steps(self, iterations: int) -> Array:
        """Return the next step sizes and their sums so far; the next call overwrites them."""
        from walklearn.simulation.kernels.arithmetic import step_sizes

        step: Any = self.setting.update.step_size
        if self._steps.shape[1] != iterations:
            self._steps = np.empty((2, iterations))
        step_sizes(step.constant, step.exponent, self.iterations, self._step_size_sum, *self._steps)
        return self._steps

    def _normals(self, visited: Array) -> Array:
        """Return the noise of each visit, in the order in which its stream gives it."""
        normals = np.empty((*visited.shape, self.objective.size))
        for line, nodes, streams in zip(normals, visited, self.streams, strict=True):
            if streams.nodes is None:
                streams.noise.standard_normal(out=line)
                continue
            order = np.argsort(nodes, kind="stable")
            for visits in np.split(order, np.flatnonzero(np.diff(nodes[order])) + 1):
                noise = streams.of(int(nodes[visits[0]])).noise
                line[visits] = noise.standard_normal((len(visits), line.shape[1]))
        return normals


class CompiledMemory(CompiledWalks):
    """Walks with Saga, by the kernels of `kernels.visits`.

    Nothing is averaged. Each node stores its slopes and the number of its last visit.
    """

    def _first_state(self, carried: list[Arrays]) -> Any:
        """Return the arrays of SAGA, from those that the tokens carry."""
        from walklearn.simulation.kernels.visits.saga import Saga
        from walklearn.simulation.kernels.visits.saga_rows import Space

        problem, update = self.objective, self.setting.update
        models = np.stack([token["model"] for token in carried])
        tokens, nodes = len(models), problem.nodes
        self._by_factors = (
            kernel_inputs.has_one_row(problem, sparse=True)
            and problem.dtype == np.float64
            and isinstance(problem.domain, Everywhere)
        )
        if self._one_row or self._by_factors:  # slope and last visit share a cache line
            slopes, visited = np.tile([np.nan, 0.0], tokens * nodes), np.empty(0)
        else:
            slopes = np.full(tokens * problem.row_count * problem.outputs, np.nan)
            visited = np.zeros(tokens * nodes)
        scalars = {name: np.array([token[name] for token in carried], float) for name in SCALARS}
        sums = np.concatenate([token["gradient_sum"] for token in carried])
        self._collects = np.array([token["collects"] for token in carried])
        scores = int(np.diff(problem.offsets).max(initial=0)) * problem.outputs
        pairs = np.stack([models.reshape(-1), sums], axis=1) if self._by_factors else np.empty(0)
        return Saga(
            models=models.reshape(-1),
            sums=sums,
            scores=self._first_scores(models),
            factors=np.ones(tokens),
            shares=np.zeros(tokens),
            pairs=pairs.reshape(-1),
            **scalars,
            wait=np.where(self._collects, ALL_NODES * nodes, 0.0),
            slopes=slopes,
            visited=visited,
            squares=problem.row_weights * problem.row_squares,
            smoothness=problem.loss.smoothness,
            step=getattr(getattr(update, "step_size", None), "constant", 0.0),
            done=0,
            draws=np.empty((0, 0, 0)),
            space=Space(*map(np.empty, 3 * (scores,) + 3 * (problem.size,))),
        )

    @property
    def models(self) -> Array:
        """w of each token, assembled from its parts for one sparse row per node."""
        if not self._by_factors:
            return super().models
        factors, shares = self._state.factors[:, None], self._state.shares[:, None]
        pairs = self._state.pairs.reshape(len(factors), -1, 2)
        # Not a product of matrices: the threads of BLAS would spin for longer than it takes.
        return np.asarray(factors * pairs[:, :, 0] - shares * pairs[:, :, 1])[:, None]

    def _update_arrays(self, replicate: int) -> Arrays:
        state, sums = self._state, self._state.pairs[1::2] if self._by_factors else self._state.sums
        return {
            "model": self.models[replicate, 0],
            "gradient_sum": sums.reshape(-1, self.objective.size)[replicate].copy(),
            **{name: np.asarray(getattr(state, name)[replicate]) for name in SCALARS},
            "collects": np.asarray(self._collects[replicate]),
        }

    def _run(self, draws: Any, records: Any) -> None:
        """Hop and update."""
        from walklearn.simulation.kernels.visits import saga, saga_rows, saga_sparse

        state = self._state._replace(done=self.iterations)
        if self._one_row and not self._far:
            saga.near_one_row(self._hops, self._tokens, draws, self._data, state, records)
            return
        path, picks = self._paths(draws, records)
        along = (path, self.visits, self._data, state._replace(draws=picks), records)
        if self._one_row:
            saga.far_one_row(*along, self._group)
        elif self._by_factors:
            saga_sparse.far_sparse(*along)
        else:
            saga_rows.far_rows(*along)


class CompiledGossip(CompiledBatch, ReferenceGossip):
    """Networks moved by `kernels.gossip`."""

    def _run(self, network: Network, uniforms: Array) -> Network:
        """Make an iteration for each line of uniform numbers, in place."""
        from walklearn.simulation.kernels import gossip
        from walklearn.simulation.kernels.rows import SparseRows

        setting, graph, rounds, problem = self.setting, self.graph, len(uniforms), self.objective
        begun, step_size = int(network.counts[0]), setting.update.step_size
        step = step_size.constant, step_size.exponent
        sizes = network.models.size, problem.size, problem.outputs
        arrays: Any = (*(array.reshape(-1) for array in network), *map(np.empty, sizes))
        nodes = gossip.Nodes(*arrays)
        if isinstance(setting.gossip, AsynchronousGossip):
            common = (graph.indptr, graph.indices, setting.scale, self._data, nodes, *step)
            meetings = np.ascontiguousarray(uniforms[:, 0])
            if kernel_inputs.has_one_row(problem) and not isinstance(problem.domain, Box):
                gossip.meet_one_row(*common, meetings, problem.row_bytes > GOSSIP_CACHE_BYTES)
            else:
                draws = np.ascontiguousarray(uniforms[:, 1:]).reshape(rounds, 2, -1)
                gossip.meet(*common, meetings, draws)
            return network
        matrix = setting.mixing
        mixing = SparseRows(matrix.data, matrix.indices, matrix.indptr, matrix.shape[1])
        draws = uniforms.reshape(rounds, problem.nodes, -1)
        if isinstance(setting.gossip, GradientTracking):
            gammas = step_size(np.arange(begun + 1, begun + rounds + 1))
            gossip.track_gradients(mixing, self._data, nodes, gammas, draws, begun == 0)
        else:
            gossip.mix_all(mixing, setting.scale, self._data, nodes, *step, draws)
        network.exchanges[:] += rounds
        return network


def _previous(start: Position) -> int:
    """Return the node before the last move, −1 if there is none: hops expect another node."""
    token = start.token.walk
    if "previous" in token:
        return int(token["previous"])
    if "stamps" in token:
        return int(token["stamps"].argmax())
    sender = int(token.get("sender", 0)) - 1
    return -1 if sender == start.node else sender
