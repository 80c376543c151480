"""Compiled batches of walks with `Saga`."""

from __future__ import annotations

from typing import Any

import numpy as np

from walklearn.problem import Problem
from walklearn.problem.domains import Everywhere
from walklearn.simulation.batches import Array
from walklearn.simulation.compiled_batches import CompiledWalks
from walklearn.updates.found_step import Pace
from walklearn.updates.memory import EVERY_NODE, GradientMemory, KeptSlopes
from walklearn.updates.update import Kept, Remembering, Update
from walklearn.updates.walk_sgd import Token


class CompiledMemory(CompiledWalks):
    """Walks with Saga, by the kernels of `kernels.visits`.

    Nothing is averaged, and each node keeps its slopes and the number of its last visit.
    """

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

    def _first_state(self, models: Array) -> Any:
        """The arrays of SAGA."""
        from walklearn.simulation.kernels.visits.saga import Saga
        from walklearn.simulation.kernels.visits.saga_rows import Space

        problem, update = self.setting.problem, self.setting.update
        memories: list[GradientMemory] = [token.memory for token in self.starts]
        tokens, nodes = len(models), problem.nodes
        self._by_factors = _one_sparse_row(problem)
        self._keeps_pairs = self._one_row or self._by_factors
        if self._keeps_pairs:  # slope and last visit share a cache line
            kept = np.zeros((tokens, nodes, 2))
            self._slopes, self._visited = kept[:, :, :1], kept[:, :, 1]
        else:
            kept = np.empty((tokens, problem.row_count, problem.outputs))
            self._slopes, self._visited = kept, np.zeros((tokens, nodes))
        self._slopes[:] = np.nan
        for r, begun in enumerate(self.begun_with):
            for node, each in begun.nodes.items():
                rows = slice(problem.offsets[node], problem.offsets[node + 1])
                self._slopes[r, rows] = each.slopes.reshape(-1, problem.outputs)
                self._visited[r, node] = each.updated
        paces = np.array([memory.pace for memory in memories], dtype=np.float64)
        sums = np.concatenate([memory.gradient_sum for memory in memories])
        self._collects = np.array([memory.collects for memory in memories])
        scores = int(np.diff(problem.offsets).max(initial=0)) * problem.outputs
        return Saga(
            models=models.reshape(-1),
            sums=sums,
            scores=self._first_scores(models),
            factors=np.ones(tokens),
            shares=np.zeros(tokens),
            pairs=np.stack([models.reshape(-1), sums], axis=1).reshape(-1)
            if self._by_factors
            else np.empty(0),
            nodes=paces[:, 0].copy(),
            ages=paces[:, 1].copy(),
            squared_ages=paces[:, 2].copy(),
            curvatures=np.array([memory.curvature for memory in memories], dtype=np.float64),
            wait=np.where(self._collects, EVERY_NODE * nodes, 0.0),
            slopes=kept.reshape(-1),
            visited=np.empty(0) if self._keeps_pairs else self._visited.reshape(-1),
            squares=problem.row_weights * problem.row_squares,
            smoothness=problem.loss.smoothness,
            step=0.0 if update.step_size is None else update.step_size.constant,
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
        # Not as a product of matrices: the threads of BLAS would spin for longer than it takes.
        return np.asarray(factors * pairs[:, :, 0] - shares * pairs[:, :, 1])[:, None]

    def _memory_of(self, replicate: int) -> GradientMemory:
        m, size = self._state, self.setting.problem.size
        pace = Pace(*(float(x[replicate]) for x in (m.nodes, m.ages, m.squared_ages)))
        sums = m.pairs[1::2] if self._by_factors else m.sums
        s = sums.reshape(-1, size)[replicate].copy()
        collects = bool(self._collects[replicate])
        return GradientMemory(s, pace, float(m.curvatures[replicate]), collects)

    def _kept_by(self, replicate: int, node: int) -> KeptSlopes | None:
        problem, updated = self.setting.problem, int(self._visited[replicate, node])
        slopes = self._slopes[replicate, problem.offsets[node] : problem.offsets[node + 1]].copy()
        return (
            KeptSlopes(slopes if problem.outputs > 1 else slopes[:, 0], updated)
            if updated
            else None
        )

    def _run(self, draws: Any, records: Any) -> None:
        """Hop and update."""
        from walklearn.simulation.kernels.visits import saga, saga_rows, saga_sparse

        state = self._state._replace(done=self.iterations)
        if self._one_row and not self._far:
            saga.near_one_row(self._walk, self._tokens, draws, self._data, state, records)
            return
        path = self._paths(draws, records)
        state = state._replace(draws=self._picks(draws))
        along = (path, self.visits, self._data, state, records)
        if self._one_row:
            saga.far_one_row(*along, self._group)
        elif self._by_factors:
            saga_sparse.far_sparse(*along)
        else:
            saga_rows.far_rows(*along)


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
