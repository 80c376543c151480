"""Graphs by the name of their family and the number of nodes.

The other arguments of a family are chosen so that the graph is connected:

    ring, star, complete, hypercube   nothing (a hypercube has 2, 4, 8, … nodes)
    grid, torus                       sides as equal as the number of nodes allows
    barbell                           cliques of a third of the nodes each, the rest in between
    random-regular                    degree 4
    watts-strogatz                    4 nearest neighbours, one edge in ten rewired
    barabasi-albert                   new nodes join 2 nodes
    erdos-renyi, geometric            2 ln N neighbours on average (geometric: up to twice that),
                                      drawn again until it is connected

If there are too few nodes for that degree, the graph is complete.

>>> draw_family("erdos-renyi", 100, seed=1)
Graph(100 nodes, 464 edges)
"""

import math
from collections.abc import Callable
from inspect import signature

from walklearn.checks import check_whole
from walklearn.graphs.draws import Seed
from walklearn.graphs.families import barbell, complete, grid, hypercube, ring, star, torus
from walklearn.graphs.graph import Graph
from walklearn.graphs.independent_edges import erdos_renyi, geometric, stochastic_block
from walklearn.graphs.preferential_attachment import barabasi_albert
from walklearn.graphs.rewired_edges import random_regular, watts_strogatz
from walklearn.registry import Registry
from walklearn.wording import closest

# All families, each by the name of its function and with its arguments, as studies use them.
FAMILIES: Registry[Callable[..., Graph]] = Registry("family")
for _family in (
    erdos_renyi, ring, grid, torus, complete, star, hypercube, barbell, random_regular,
    barabasi_albert, watts_strogatz, stochastic_block, geometric,
):  # fmt: skip
    FAMILIES.register(_family)


def draw_family(name: str, nodes: int, seed: Seed = None) -> Graph:
    """Make the graph of a family, such as "ring" or "erdos-renyi", with this number of nodes."""
    if not is_family(name):
        raise ValueError(f"{name!r} is not a family of graphs.{suggest_families(name)}")
    name = _spelled(name)
    nodes = check_whole("nodes", nodes)
    if nodes < _MIN_NODES.get(name, 1):
        return complete(nodes)
    make = FAMILIES[name.replace("-", "_")]
    known = signature(make).parameters
    random = {"seed": seed, "connected": "retry"}
    settings = {key: value for key, value in random.items() if key in known}
    return make(*_ARGUMENTS[name](nodes), **settings)


def is_family(name: str) -> bool:
    """True for the name of a family; hyphens, underscores and capitals do not matter."""
    return _spelled(name) in _ARGUMENTS


def suggest_families(name: str) -> str:
    """Return the end of a message about an unknown name: a similar name, and all names."""
    close = closest(_spelled(name), NAMES)
    meant = f" Did you mean {close!r}?" if close else ""
    return f"{meant} The families are {', '.join(NAMES)}."


def _spelled(name: str) -> str:
    return name.lower().replace("_", "-")


def _sides(nodes: int) -> tuple[int, int]:
    rows = next(side for side in range(math.isqrt(nodes), 0, -1) if nodes % side == 0)
    return rows, nodes // rows


def _dimension(nodes: int) -> tuple[int]:
    dimension = nodes.bit_length() - 1
    if nodes != 2**dimension:
        raise ValueError(
            f"a hypercube has 2, 4, 8, … nodes, got {nodes}; the nearest are {2**dimension} and "
            f"{2 ** (dimension + 1)}. A torus takes other numbers."
        )
    return (dimension,)


def _crowded(nodes: int) -> float:
    """Return 2 ln N, twice the mean degree at which nearly every node has a neighbour."""
    return 2.0 * math.log(nodes) if nodes > 1 else 1.0


_ARGUMENTS: dict[str, Callable[[int], tuple[float, ...]]] = {
    "ring": lambda nodes: (nodes,),
    "star": lambda nodes: (nodes,),
    "complete": lambda nodes: (nodes,),
    "grid": _sides,
    "torus": _sides,
    "hypercube": _dimension,
    "barbell": lambda nodes: (max(2, nodes // 3), nodes - 2 * max(2, nodes // 3)),
    "erdos-renyi": lambda nodes: (nodes, min(1.0, _crowded(nodes) / max(nodes - 1, 1))),
    # πr² is a disc's share of the square; twice that makes up for the discs that stick out.
    "geometric": lambda nodes: (nodes, math.sqrt(2.0 * _crowded(nodes) / (math.pi * nodes))),
    "random-regular": lambda nodes: (nodes, 4),
    "watts-strogatz": lambda nodes: (nodes, 4, 0.1),
    "barabasi-albert": lambda nodes: (nodes, 2),
}
# With fewer nodes than this the graph is complete.
_MIN_NODES = {"barbell": 4, "random-regular": 6, "watts-strogatz": 6, "barabasi-albert": 3}
NAMES = tuple(_ARGUMENTS)
