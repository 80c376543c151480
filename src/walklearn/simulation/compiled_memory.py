"""Compiled batches of walks with `Saga`."""

from __future__ import annotations

from typing import Any

import numpy as np

from walklearn.arrays import Array, Arrays
from walklearn.objectives.linear.domains import Everywhere
from walklearn.simulation.compiled_batches import CompiledWalks
from walklearn.simulation.kernel_inputs import has_one_row
from walklearn.updates.saga import ALL_NODES, SCALARS


class CompiledMemory(CompiledWalks):
    """Walks with Saga, by the kernels of `kernels.visits`.

    Nothing is averaged. Each node stores its slopes and the number of its last visit.
    """

    def _first_state(self, models: Array) -> Any:
        """Return the arrays of SAGA."""
        from walklearn.simulation.kernels.visits.saga import Saga
        from walklearn.simulation.kernels.visits.saga_rows import Space

        problem, update = self.objective, self.setting.update
        carried = [start.token.update for start in self.starts]
        tokens, nodes = len(models), problem.nodes
        self._by_factors = (
            has_one_row(problem, sparse=True)
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
