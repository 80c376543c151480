"""The arrays of covering walks as compiled hops keep them, from and to the declared arrays."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from walklearn.arrays import Array, Arrays
from walklearn.simulation.batches import Position

COVERING = ("oldest-first", "tour")  # by `Walk.compiled`


def oldest_first_of(chain: Any, starts: Sequence[Position]) -> Any:
    """Return the tables of `walks.OldestFirst`, whose tokens carry the stamps of all nodes."""
    from walklearn.simulation.kernels.covering import SHIFT, OldestFirst

    stamps = stamps_of(starts)
    tokens = [start.token.walk for start in starts]
    first = np.array([token["start"] for token in tokens], dtype=np.int64)
    return OldestFirst(
        chain=chain,
        keys=(stamps << SHIFT) + np.arange(stamps.shape[1]),
        parents=np.full(stamps.shape, -1, dtype=np.int32),
        visits=np.array([start.token.visits for start in starts], dtype=np.int64),
        starts=first,
        strict=np.array([token["strict"] for token in tokens], dtype=np.bool_),
        due=np.count_nonzero(stamps < np.maximum(first, 1)[:, None], axis=1),
        choices=_choices(chain),
    )


def tour_of(chain: Any, starts: Sequence[Position]) -> Any:
    """Return the tables of `walks.Tour`, whose tokens carry one bit per node."""
    from walklearn.simulation.kernels.covering import Tour

    tokens, nodes = [start.token.walk for start in starts], len(chain.indptr) - 1
    rounds = np.array([token["round"] for token in tokens], dtype=np.int64)
    bits = np.array([np.unpackbits(token["bits"], count=nodes) for token in tokens], dtype=np.int64)
    parents = np.full(bits.shape, -1, dtype=np.int32)
    # A node without state stands for round 0 and the parent 0, as in the reference.
    parents[np.ix_(rounds == 0, chain.indices[: chain.indptr[1]])] = 0
    return Tour(
        chain=chain,
        marks=bits * (rounds[:, None] + 1),
        parents=parents,
        rounds=rounds,
        visited=bits.sum(axis=1),
        choices=_choices(chain),
    )


def _choices(chain: Any) -> Array:
    return np.empty(int(np.diff(chain.indptr).max()) + 1, dtype=np.int64)


def stamps_of(starts: Sequence[Position]) -> Array:
    """Return the last visit of each token to each node; 0 for none."""
    return np.array([start.token.walk["stamps"] for start in starts], dtype=np.int64)


def token_arrays(hops: Any, replicate: int) -> Arrays:
    """Return the declared arrays of a token beside the previous node; none for other walks."""
    from walklearn.simulation.kernels.covering import SHIFT

    if hasattr(hops, "keys"):
        names = {"start": hops.starts, "strict": hops.strict}
        arrays = {name: np.asarray(each[replicate]) for name, each in names.items()}
        return {"stamps": hops.keys[replicate] >> SHIFT, **arrays}
    if hasattr(hops, "marks"):
        bits = hops.marks[replicate] == hops.rounds[replicate] + 1
        return {"bits": np.packbits(bits), "round": np.asarray(hops.rounds[replicate])}
    return {}
