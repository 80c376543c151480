"""What all random graphs share: the seed, and what to do with a draw that comes out in pieces.

Every random generator takes `seed` (an integer, None, a SeedSequence or a Generator), and those
that can come out in pieces take `connected`: "error" refuses such a draw, "retry" draws again
from the same stream, up to `RETRIES` times, and "largest" keeps the largest piece.

>>> pieces = iter([[(0, 1)], [(0, 1), (1, 2)]])
>>> drawn(3, lambda: tuple(np.array(next(pieces)).T), "retry")
Graph(3 nodes, 2 edges)
"""

from collections.abc import Callable
from typing import Literal, TypeAlias

import numpy as np

from walklearn.checks import check_choice, seed_error
from walklearn.graphs.connectivity import DisconnectedGraphError
from walklearn.graphs.graph import Graph, graph_from_pairs
from walklearn.graphs.pairs import Pairs

Seed: TypeAlias = int | np.random.SeedSequence | np.random.Generator | None
Connected: TypeAlias = Literal["error", "retry", "largest"]

RETRIES = 100  # draws that connected="retry" makes before it gives up
# … but sooner if none of the first few came near: where so many components are the rule, hardly
# one draw in thousands is connected.
FIRST_TRIES, HOPELESS = 5, 10

RANDOM_HINT = (
    'Draw again with connected="retry", keep the largest piece with connected="largest", '
    "or make the graph denser."
)


def generator(seed: Seed) -> np.random.Generator:
    """What draws the edges."""
    try:
        return np.random.default_rng(seed)
    except (TypeError, ValueError):
        raise seed_error(seed, "a SeedSequence, a Generator") from None


def drawn(nodes: int, draw: Callable[[], Pairs], connected: Connected) -> Graph:
    """Draw edges and make them a graph, doing what `connected` says when it is in pieces."""
    check_choice("connected", connected, Connected)
    if connected != "retry":
        return graph_from_pairs(nodes, *draw(), connected=connected, hint=RANDOM_HINT)
    fewest = nodes
    for number in range(1, RETRIES + 1):
        try:
            return graph_from_pairs(nodes, *draw(), hint="Make the graph denser.")
        except DisconnectedGraphError as error:
            last = error
        fewest = min(fewest, last.component_count)
        if number >= FIRST_TRIES and fewest > HOPELESS:
            break
    raise DisconnectedGraphError(
        f"none of {number} draws was connected; in the last one, {last}",
        last.component_count,
        last.largest_component,
    )
