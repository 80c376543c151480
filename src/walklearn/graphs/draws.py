"""Seeds of random graphs, and draws that are not connected.

`connected="error"` refuses such a draw, "retry" draws again from the same stream, up to `RETRIES`
times, and "largest" keeps the largest component.
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
# It gives up earlier if all of the first draws have many components: then hardly one draw in
# thousands is connected.
FIRST_TRIES, HOPELESS = 5, 10

RANDOM_HINT = (
    'Draw again with connected="retry", keep the largest component with connected="largest", '
    "or make the graph denser."
)


def generator(seed: Seed) -> np.random.Generator:
    """Return the generator of a seed, or raise a ValueError."""
    try:
        return np.random.default_rng(seed)
    except (TypeError, ValueError):
        raise seed_error(seed, "a SeedSequence, a Generator") from None


def drawn(nodes: int, draw: Callable[[], Pairs], connected: Connected) -> Graph:
    """Draw the edges of a graph, again or only its largest component as `connected` says."""
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
