"""How lazy a walk should be: just enough not to alternate between two sides of the graph."""

from __future__ import annotations

from walklearn import theory
from walklearn.graphs import Graph
from walklearn.walks import Uniform

LAZINESS = 0.1


def choose_laziness(graph: Graph) -> tuple[float, str]:
    """0, or 0.1 where that mixes faster, and why."""
    plain, lazy = (theory.spectral_gap(graph, Uniform(laziness=each)) for each in (0.0, LAZINESS))
    if lazy <= plain:
        return 0.0, (
            f"No laziness: the uniform walk mixes by itself (spectral gap {plain:.3g}, with "
            f"laziness {LAZINESS} it would be {lazy:.3g})."
        )
    if plain == 0.0 and graph.is_bipartite:
        return LAZINESS, (
            f"Laziness {LAZINESS}: without it the walk would never mix, it alternates between two "
            "sides of the graph."
        )
    return LAZINESS, (
        f"Laziness {LAZINESS}: it raises the spectral gap of the uniform walk from {plain:.3g} to "
        f"{lazy:.3g}, since the walk nearly alternates between two sides of the graph."
    )
