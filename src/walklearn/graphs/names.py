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

>>> named("erdos-renyi", 100, seed=1)
Graph(100 nodes, 464 edges)
"""

import math
from collections.abc import Callable

from walklearn.checks import check_whole
from walklearn.graphs.draws import Seed
from walklearn.graphs.families import barbell, complete, grid, hypercube, ring, star, torus
from walklearn.graphs.graph import Graph
from walklearn.graphs.independent_edges import erdos_renyi, geometric, stochastic_block
from walklearn.graphs.preferential_attachment import barabasi_albert
from walklearn.graphs.rewired_edges import random_regular, watts_strogatz
from walklearn.registry import Registry
from walklearn.wording import closest

_DEGREE, _REWIRING, _ATTACHMENTS = 4, 0.1, 2

# All families, each by the name of its function and with its arguments, as studies use them.
FAMILIES: Registry[Callable[..., Graph]] = Registry("family")
for _family in (
    erdos_renyi, ring, grid, torus, complete, star, hypercube, barbell, random_regular,
    barabasi_albert, watts_strogatz, stochastic_block, geometric,
):  # fmt: skip
    FAMILIES.register(_family)


def named(name: str, nodes: int, seed: Seed = None) -> Graph:
    """Make the graph of a family, such as "ring" or "erdos-renyi", with this number of nodes."""
    if not is_name(name):
        raise ValueError(f"{name!r} is not a family of graphs.{choices_near(name)}")
    return _ON_NODES[_spelled(name)](check_whole("nodes", nodes), seed)


def is_name(name: str) -> bool:
    """True for the name of a family; hyphens, underscores and capitals do not matter."""
    return _spelled(name) in _ON_NODES


def choices_near(name: str) -> str:
    """Return the end of a message about an unknown name: a similar name, and all names."""
    close = closest(_spelled(name), NAMES)
    meant = f" Did you mean {close!r}?" if close else ""
    return f"{meant} The families are {', '.join(NAMES)}."


def _spelled(name: str) -> str:
    return name.lower().replace("_", "-")


def _sides(nodes: int) -> tuple[int, int]:
    rows = next(side for side in range(math.isqrt(nodes), 0, -1) if nodes % side == 0)
    return rows, nodes // rows


def _hypercube(nodes: int) -> Graph:
    dimension = nodes.bit_length() - 1
    if nodes != 2**dimension:
        raise ValueError(
            f"a hypercube has 2, 4, 8, … nodes, got {nodes}; the nearest are {2**dimension} and "
            f"{2 ** (dimension + 1)}. A torus takes other numbers."
        )
    return hypercube(dimension)


def _barbell(nodes: int) -> Graph:
    if nodes < 4:
        return complete(nodes)
    clique = max(2, nodes // 3)
    return barbell(clique, nodes - 2 * clique)


def _crowded(nodes: int) -> float:
    """Return 2 ln N, twice the mean degree at which nearly every node has a neighbour."""
    return 2.0 * math.log(nodes) if nodes > 1 else 1.0


def _erdos_renyi(nodes: int, seed: Seed) -> Graph:
    probability = min(1.0, _crowded(nodes) / max(nodes - 1, 1))
    return erdos_renyi(nodes, probability, seed=seed, connected="retry")


def _geometric(nodes: int, seed: Seed) -> Graph:
    # πr² is a disc's share of the square; twice that makes up for the discs that stick out.
    radius = math.sqrt(2.0 * _crowded(nodes) / (math.pi * nodes))
    return geometric(nodes, radius, seed=seed, connected="retry")


def _if_enough(minimum: int, draw: Callable[[int, Seed], Graph]) -> Callable[[int, Seed], Graph]:
    return lambda nodes, seed: draw(nodes, seed) if nodes >= minimum else complete(nodes)


_ON_NODES: dict[str, Callable[[int, Seed], Graph]] = {
    "ring": lambda nodes, _: ring(nodes),
    "star": lambda nodes, _: star(nodes),
    "complete": lambda nodes, _: complete(nodes),
    "grid": lambda nodes, _: grid(*_sides(nodes)),
    "torus": lambda nodes, _: torus(*_sides(nodes)),
    "hypercube": lambda nodes, _: _hypercube(nodes),
    "barbell": lambda nodes, _: _barbell(nodes),
    "erdos-renyi": _erdos_renyi,
    "geometric": _geometric,
    "random-regular": _if_enough(
        _DEGREE + 2,
        lambda nodes, seed: random_regular(nodes, _DEGREE, seed=seed, connected="retry"),
    ),
    "watts-strogatz": _if_enough(
        _DEGREE + 2,
        lambda nodes, seed: watts_strogatz(nodes, _DEGREE, _REWIRING, seed=seed, connected="retry"),
    ),
    "barabasi-albert": _if_enough(
        _ATTACHMENTS + 1, lambda nodes, seed: barabasi_albert(nodes, _ATTACHMENTS, seed=seed)
    ),
}
NAMES = tuple(_ON_NODES)
