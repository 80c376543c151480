"""Batches of walks with Finito, by the kernels of `kernels.visits`."""

from __future__ import annotations

from typing import Any

import numpy as np

from walklearn.arrays import Array, Arrays
from walklearn.objectives import Problem
from walklearn.objectives.linear.domains import Box
from walklearn.simulation.compiled_batches import CompiledWalks
from walklearn.updates.finito import RecentMoves


class CompiledFinito(CompiledWalks):
    """Walks of one token with Finito. Nothing is averaged, and nodes start without state."""

    def _first_state(self, carried: list[Arrays]) -> Any:
        """Return the arrays of Finito, from those that the tokens carry."""
        from walklearn.simulation.kernels.visits.finito import NUMBERS, SCORE, SIGMA, Finito
        from walklearn.simulation.kernels.visits.finito_rows import Space

        problem = self.objective
        self._one_row = self._one_row and not isinstance(problem.domain, Box)
        size, nodes = problem.size, len(carried) * problem.nodes
        sums = np.concatenate([token["sums"] for token in carried])
        b, sigmas, counts = sums[:, :-2].copy(), sums[:, -2].copy(), sums[:, -1].copy()
        gradients = [token["gradient_sums"] for token in carried if "gradient_sums" in token]
        self._versions = np.concatenate([token["versions"] for token in carried])
        self._versions -= self.iterations
        numbers = np.zeros((nodes, int(NUMBERS)))
        numbers[:, int(SIGMA)] = -1.0
        start = self.setting.update.start
        min_count = 0.0 if start is None else problem.nodes
        start = problem.project(problem.start if start is None else start)
        if self._one_row and start.any():
            numbers[:, int(SCORE)] = np.tile(problem.X @ start, len(carried))
        scores = int(np.diff(problem.offsets).max(initial=0)) * problem.outputs
        moves = {name: np.array([t[name] for t in carried]) for name in RecentMoves._fields}
        return Finito(
            sums=b.reshape(-1),
            gradient_sums=np.concatenate([*gradients, np.empty((0, size))]).reshape(-1),
            scores=self._first_scores(b),
            squared_norms=np.einsum("ta,ta->t", b, b),
            sigmas=sigmas,
            counts=counts,
            **moves,
            tokens=np.full(len(carried), float(self.setting.tokens)),
            min_count=float(min_count),
            z=np.tile(start, nodes),
            g=np.zeros(0 if self._one_row else nodes * size),
            numbers=numbers.reshape(-1),
            squares=problem.row_squares,
            draws=np.empty((len(carried), 0, 0)),
            space=Space(*map(np.empty, 3 * (scores,) + 2 * (size,))),
        )

    @property
    def models(self) -> Array:
        """w of each token."""
        state, problem = self._state, self.objective
        sums = state.sums.reshape(len(self.streams), -1)
        models = models_of(problem, sums, state.sigmas, state.counts)
        waits = (state.counts < state.min_count) | (state.sigmas <= 0.0)
        starts = state.z.reshape(len(models), problem.nodes, -1)[:, 0]
        return np.where(waits[:, None], starts, models)[:, None]

    def _update_arrays(self, replicate: int) -> Arrays:
        state, size = self._state, self.objective.size
        entries = slice(replicate * size, (replicate + 1) * size)
        gradients = state.gradient_sums[entries].copy()
        totals = state.sigmas[replicate], state.counts[replicate]
        return {
            "sums": np.concatenate([state.sums[entries], totals])[None],
            **({"gradient_sums": gradients[None]} if gradients.size else {}),
            "versions": self._versions[replicate, None] + self.iterations,
            **{name: np.asarray(getattr(state, name)[replicate]) for name in RecentMoves._fields},
        }

    def _run(self, draws: Any, records: Any) -> None:
        """Hop and update."""
        from walklearn.simulation.kernels.visits import finito, finito_rows

        state = self._state
        if self._one_row and not self._far:
            finito.near_one_row(self._hops, self._tokens, draws, self._data, state, records)
            return
        path, _ = self._paths(draws, records)
        along = (path, self.visits, self._data, state, records)
        if self._one_row:
            finito.far_one_row(*along, self._group)
        else:
            finito_rows.far_rows(*along)


def models_of(problem: Problem, sums: Array, sigmas: Array, counts: Array) -> Array:
    """Return the minimisers of sums, one line each."""
    curvatures = sigmas + problem.penalty * counts
    factors = np.where(sigmas > 0, 1.0 / np.where(sigmas > 0, curvatures, 1.0), 0.0)
    return np.stack([problem.project(w) for w in factors[:, None] * sums])
