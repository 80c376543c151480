"""Batches of several tokens of Finito, by `kernels.events`."""

from __future__ import annotations

from typing import Any

import numpy as np

from walklearn.arrays import Array, Arrays
from walklearn.simulation import kernel_inputs
from walklearn.simulation.batches import Counts, Snapshot
from walklearn.simulation.compiled_finito import CompiledFinito, models_of
from walklearn.updates.finito import RecentMoves


class CompiledTokens(CompiledFinito):
    """Networks in which several tokens of Finito share a sum."""

    def _init_state(self) -> None:
        from walklearn.simulation.kernels.events import Clock, TokenDraws
        from walklearn.simulation.kernels.visits.finito_tokens import Shared

        super()._init_state()
        m, networks, nodes = self.setting.tokens, len(self.streams), self.objective.nodes
        shares = [self.schedule.share(slot, m) for slot in range(m)]
        count, by_node = len(self.starts), self._node_streams.size > 0
        self._clock = Clock(
            hop=self.schedule.hop,
            visit=self.schedule.visit,
            times=np.zeros(count),
            waits=np.ones(count, dtype=np.bool_),
            left=np.array(networks * shares, dtype=np.int64),
            free=np.zeros((networks, nodes)),
            now=np.zeros(networks),
        )
        own = self._node_streams if by_node else kernel_inputs.token_streams_of(self.streams, m)
        self._draws = TokenDraws(np.empty((count, 1, self.draws)), own, by_node)
        size = self.objective.size
        width = 2 * size + 2 if self._state.gradient_sums.size else size + 2
        self._shared = Shared(
            sums=np.zeros((count, m, width)),
            versions=np.zeros((count, m), dtype=np.int64),
            node_sums=np.zeros((networks * nodes, m, width)),
            node_versions=np.zeros((networks * nodes, m), dtype=np.int64),
            moves=np.tile(np.array(RecentMoves(), dtype=np.float64), (count, 1)),
            start=self._state.z[:size].copy(),
            before=np.empty(width),
        )

    def _first_state(self, carried: list[Arrays]) -> Any:
        """Return the arrays of Finito for one token per network, into which `merge` loads each."""
        shared = ("sums", "gradient_sums", "versions")
        return super()._first_state([
            {name: array[:1] if name in shared else array for name, array in token.items()}
            for token in carried[:: self.setting.tokens]
        ])  # fmt: skip

    def _first_scores(self, models: Array) -> Array:
        return np.zeros(len(models))

    @property
    def models(self) -> Array:
        """w of each token."""
        sums, size = self._shared.sums.sum(axis=1), self.objective.size
        sigmas, counts = sums[:, size], sums[:, size + 1]
        models = models_of(self.objective, sums[:, :size], sigmas, counts)
        waits = (counts < self._state.min_count) | (sigmas <= 0.0)
        models[waits] = self._shared.start
        return models.reshape(len(self.streams), -1, size)

    @property
    def times(self) -> Array:
        """The time at which the last update of each replicate ended."""
        return np.array(self._clock.now)

    def advance(self, iterations: int, after: Counts = ()) -> Snapshot | None:
        """Let the tokens of each replicate make this many updates together."""
        from walklearn.simulation.kernels.events import TokenRecords
        from walklearn.simulation.kernels.visits import finito_tokens

        m, counts, size = self.setting.tokens, (len(after), len(self.streams)), self.objective.size
        records = TokenRecords(
            after=np.array(after, dtype=np.int64),
            models=np.empty((counts[0] * m, counts[1], size)),
            messages=np.empty(counts, dtype=np.int64),
            questions=np.empty(counts, dtype=np.int64),
            times=np.empty(counts),
        )
        run = finito_tokens.events_one_row if self._one_row else finito_tokens.events_rows
        run(
            self._hops, self._tokens, self._clock, self._draws, self._data, self._state,
            self._shared, records, iterations,
        )  # fmt: skip
        self.iterations += iterations
        if not len(after):
            return None
        models = records.models.reshape(len(after), m, -1, size).transpose(0, 2, 1, 3)
        return Snapshot(models, models, records.messages, records.questions, records.times)
