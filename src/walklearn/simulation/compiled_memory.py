"""Compiled batches of walks with `Saga`."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from walklearn.problem import Problem
from walklearn.problem.domains import Everywhere
from walklearn.simulation.batches import Array, Counts, Seen
from walklearn.simulation.compiled_batches import CompiledWalks
from walklearn.updates.found_step import Pace
from walklearn.updates.memory import EVERY_NODE, GradientMemory, KeptSlopes
from walklearn.updates.random_streams import Streams
from walklearn.updates.update import Kept, Remembering, Update
from walklearn.updates.walk_sgd import Token, WalkSetting


class CompiledMemory(CompiledWalks):
    """Walks with Saga, by the kernels of `compiled.memory` and `compiled.sparse_memory`.

    Nothing is averaged, and each node keeps its slopes and the number of its last visit.
    """

    def __init__(
        self,
        setting: WalkSetting,
        streams: Sequence[Streams],
        tokens: Sequence[Token] | None = None,
        kept: Sequence[Kept] | None = None,
    ) -> None:
        super().__init__(setting, streams, tokens, kept)
        self._remember([token.memory for token in self.starts])

    @property
    def averages(self) -> Array:
        """w of each token, which carries no average."""
        return self.models

    @property
    def tokens(self) -> list[Token]:
        """The tokens as the reference has them."""
        return [token._replace(memory=self._memory_of(r)) for r, token in enumerate(super().tokens)]

    @property
    def kept(self) -> list[Kept]:
        """What the nodes keep, as the reference has it."""
        found = []
        for r, begun in enumerate(self.begun_with):
            by_node = {n: self._kept_by(r, n) for n in range(self.setting.problem.nodes)}
            nodes = {node: kept for node, kept in by_node.items() if kept is not None}
            found.append(begun._replace(nodes=nodes))
        return found

    def advance(self, iterations: int, after: Counts = ()) -> Seen | None:
        """Advance all tokens together; copies are made by the compiled code."""
        shape = (len(self.streams), iterations, self.setting.draws)
        uniforms = np.empty(shape) if self._node_streams.size else self.draw(iterations)
        records = self._records(after)
        self._walk(uniforms, records)
        self.iterations += iterations
        if not len(after):
            return None
        models = records.models[:, :, None]
        return Seen(models, models, records.messages, records.questions)

    def _paths(self, uniforms: Array, records: Any) -> Array:
        from walklearn.simulation import compiled

        given = (self._chain, self._tokens, uniforms, self._node_streams, records, self._far)
        return np.asarray(compiled.find_paths(*given))

    def _remember(self, memories: list[Any]) -> None:
        from walklearn.simulation import compiled

        problem, update = self.setting.problem, self.setting.update
        tokens, nodes = len(memories), problem.nodes
        self._by_factors = _one_sparse_row(problem)
        side_by_side = self._one_row or self._by_factors
        if side_by_side:  # side by side: a visit then misses the cache once
            self._kept_numbers = np.zeros((tokens, nodes, 2))
            self._slopes = self._kept_numbers[:, :, :1]
            self._updated = self._kept_numbers[:, :, 1]
        else:
            self._kept_numbers = np.empty((tokens, problem.row_count, problem.outputs))
            self._slopes = self._kept_numbers
            self._updated = np.zeros((tokens, nodes))
        self._slopes[:] = np.nan
        for r, kept in enumerate(self.begun_with):
            for node, each in kept.nodes.items():
                rows = slice(problem.offsets[node], problem.offsets[node + 1])
                self._slopes[r, rows] = each.slopes.reshape(-1, problem.outputs)
                self._updated[r, node] = each.updated
        paces = np.array([memory.pace for memory in memories], dtype=np.float64)
        self._tokens.sums[:] = np.concatenate([memory.gradient_sum for memory in memories])
        # With factors, v and s live here; the tokens' own arrays stay as they began.
        self._pairs = np.empty((0, 2))
        if self._by_factors:
            self._pairs = np.stack([self._tokens.models, self._tokens.sums], axis=1)
        self._collects = np.array([memory.collects for memory in memories])
        self._memory = compiled.Memory(
            nodes=paces[:, 0].copy(),
            ages=paces[:, 1].copy(),
            squared_ages=paces[:, 2].copy(),
            curvatures=np.array([memory.curvature for memory in memories], dtype=np.float64),
            wait=np.where(self._collects, EVERY_NODE * nodes, 0.0),
            kept=self._kept_numbers.reshape(-1),
            updated=np.empty(0) if side_by_side else self._updated.reshape(-1),
            squares=problem.row_weights * problem.row_squares,
            smoothness=problem.loss.smoothness,
            step=0.0 if update.step_size is None else update.step_size.constant,
        )

    @property
    def models(self) -> Array:
        """w of each token; what it is made of, in `remember_sparse`, is put together."""
        if not self._by_factors:
            return super().models
        shrink, shares = self._tokens.shrink[:, None], self._factors.shares[:, None]
        pairs = self._pairs.reshape(len(shrink), -1, 2)
        # Not as a product of matrices: the threads of BLAS would spin for longer than it takes.
        return np.asarray(shrink * pairs[:, :, 0] - shares * pairs[:, :, 1])[:, None]

    def _memory_of(self, replicate: int) -> GradientMemory:
        m, size = self._memory, self.setting.problem.size
        pace = Pace(*(float(x[replicate]) for x in (m.nodes, m.ages, m.squared_ages)))
        sums = self._pairs[:, 1] if self._by_factors else self._tokens.sums
        s = sums.reshape(-1, size)[replicate].copy()
        collects = bool(self._collects[replicate])
        return GradientMemory(s, pace, float(m.curvatures[replicate]), collects)

    def _kept_by(self, replicate: int, node: int) -> KeptSlopes | None:
        problem, updated = self.setting.problem, int(self._updated[replicate, node])
        slopes = self._slopes[replicate, problem.offsets[node] : problem.offsets[node + 1]].copy()
        return (
            KeptSlopes(slopes if problem.outputs > 1 else slopes[:, 0], updated)
            if updated
            else None
        )

    def _walk(self, uniforms: Array, records: Any) -> None:
        from walklearn.simulation import compiled

        with_rows = (self._data, self._tokens, self._memory, self.iterations, records)
        if self._one_row and not self._far:
            compiled.remember_near_rows(self._chain, uniforms, self._node_streams, *with_rows)
            return
        along = (self._paths(uniforms, records), *with_rows)
        if self._one_row:
            compiled.remember_one_row(*along, self._group)
        elif self._by_factors:
            compiled.remember_sparse(*along, self._factors.shares, self._pairs.reshape(-1))
        else:
            compiled.remember_rows(*along, uniforms, self.setting.walk.draws)


def _one_sparse_row(problem: Problem) -> bool:
    """Whether each node has one sparse row and one score, in double precision, without a domain."""
    return (
        problem.is_sparse
        and problem.outputs == 1
        and problem.dtype == np.float64
        and isinstance(problem.domain, Everywhere)
        and bool((np.diff(problem.offsets) == 1).all())
    )


def compiled_class(update: Update) -> type[CompiledWalks]:
    """The batch that makes these updates."""
    return CompiledMemory if isinstance(update, Remembering) else CompiledWalks
