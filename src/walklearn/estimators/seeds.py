"""Random numbers of an estimator: from a seed, or from the operating system.

A seed makes everything repeatable, the releases too: they then protect nobody, and the ledger
says "simulated". Without one the releases come from the operating system's entropy.

>>> seeds_of(7, call=0).walk.spawn_key, seeds_of(None, call=0).simulated
((0, 1), False)
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from walklearn.updates.random_streams import Streams, generators


class Seeds(NamedTuple):
    """Seeds for the graph and the walk, and what draws the releases (None: the system)."""

    graph: np.random.SeedSequence
    walk: np.random.SeedSequence
    release: np.random.Generator | None
    simulated: bool

    @property
    def streams(self) -> Streams:
        """What the walk draws from."""
        return generators(self.walk)


def seeds_of(random_state: Any, call: int) -> Seeds:
    """Seeds of the so-manieth call, from an integer, a RandomState, a Generator or None."""
    simulated = random_state is not None
    if random_state is None:
        root = np.random.SeedSequence()
    elif isinstance(random_state, np.random.RandomState):
        root = np.random.SeedSequence(random_state.randint(2**32, size=4, dtype=np.uint64).tolist())
    elif isinstance(random_state, np.random.Generator):
        root = np.random.SeedSequence(random_state.integers(2**32, size=4).tolist())
    elif isinstance(random_state, int | np.integer) and random_state >= 0:
        root = np.random.SeedSequence(int(random_state), spawn_key=(call,))
    else:
        raise ValueError(
            "random_state must be None, a whole number of at least 0, a RandomState or a "
            f"Generator, got {random_state!r}."
        )
    graph, walk, release = root.spawn(3)
    return Seeds(graph, walk, np.random.default_rng(release) if simulated else None, simulated)
