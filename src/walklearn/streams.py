"""Random streams of replicates and nodes, and the order in which their numbers are used.

The seed of a replicate is the child of the run's seed with the replicate's number. The seed of a
node is the child of the replicate's seed with the key (2, node). Each of these seeds has two
streams: one for the *walk*, and one for the *noise* on the model, from its child with the key 1.

With `streams="replicate"` all nodes of a replicate share its two streams. They give, in this order:

    walk    the start node, the start model, all releases, then `draws` uniforms for each visit
    noise   `size` normal numbers for each visit

With `streams="node"`, as in a real network, the replicate's walk stream gives only the start node
and the start model (`draw_start`), and each node draws from its own two streams:

    walk    its release, if there is one; then at each visit `draws` uniforms in one call: first
            those of the walk (the first one makes the proposal), then one per row of a mini-batch
    noise   at each visit `size` normal numbers in one call, even past the node's cap

`draws` is `Setting.draws`, the same for all nodes, so a node also draws numbers it does not need.

With several tokens, token 0 uses the two streams of the replicate as above. Token v > 0 has a pair
of its own, from the child of the replicate's seed with the key (3, v), and draws from it the
numbers of its visits only: `draws` uniforms, and `size` normal numbers, each. So the order in which
tokens visit nodes changes no number, and code may draw blocks of them for each token. With
`streams="node"` all tokens draw from the streams of the nodes, in the order of their visits.

>>> seed = replicate_seed(np.random.SeedSequence(5), 0)
>>> seed.spawn_key, node_seed(seed, 7).spawn_key
((0,), (0, 2, 7))
>>> generators(node_seed(seed, 7)).walk.random(2)
array([0.76695362, 0.92113266])
"""

from __future__ import annotations

from typing import Any, Literal, NamedTuple

import numpy as np
from numpy.typing import NDArray

Array = NDArray[Any]

Owner = Literal["replicate", "node"]
_NOISE, _NODES, _TOKENS = 1, 2, 3  # spawn keys


class Streams(NamedTuple):
    """A stream for the walk and one for the noise.

    nodes: the streams of the nodes if they differ. others: the streams of tokens 1, 2, ….
    """

    walk: np.random.Generator
    noise: np.random.Generator
    nodes: NodeStreams | None = None
    others: tuple[Streams, ...] = ()

    def of(self, node: int, slot: int = 0) -> Streams:
        """Return the streams from which a node draws for the token with this number."""
        if self.nodes is not None:
            return self.nodes[node]
        return self.others[slot - 1] if slot else self


class NodeStreams(dict[int, Streams]):
    """Streams of the nodes of one replicate, created on first use."""

    def __init__(self, seed: np.random.SeedSequence, nodes: int) -> None:
        super().__init__()
        self._seed, self._nodes = seed, nodes

    def __missing__(self, node: int) -> Streams:
        if not 0 <= node < self._nodes:
            raise IndexError(f"there is no node {node}: nodes are 0..{self._nodes - 1}.")
        self[node] = generators(node_seed(self._seed, node))
        return self[node]


def replicate_seed(root: np.random.SeedSequence, replicate: int) -> np.random.SeedSequence:
    """Return the seed of a replicate, which depends only on the root seed and the number."""
    return _spawned(root, replicate)


def node_seed(seed: np.random.SeedSequence, node: int) -> np.random.SeedSequence:
    """Return the seed of a node, derived from the seed of its replicate."""
    return _spawned(seed, _NODES, node)


def generators(seed: np.random.SeedSequence, nodes: int | None = None, tokens: int = 1) -> Streams:
    """Return the streams of a replicate or a node; with `nodes`, also a pair for each node.

    Several tokens have a pair each, unless nodes have.
    """
    others = range(1, tokens) if nodes is None else ()
    return Streams(
        walk=np.random.Generator(np.random.PCG64(seed)),
        noise=np.random.Generator(np.random.PCG64(_spawned(seed, _NOISE))),
        nodes=None if nodes is None else NodeStreams(seed, nodes),
        others=tuple(generators(_spawned(seed, _TOKENS, slot)) for slot in others),
    )


def _spawned(seed: np.random.SeedSequence, *key: int) -> np.random.SeedSequence:
    return np.random.SeedSequence(seed.entropy, spawn_key=(*seed.spawn_key, *key))


def draw_start(objective: Any, generator: np.random.Generator) -> tuple[int, Array]:
    """Draw the first node, and the first model from the objective's domain.

    Parameters
    ----------
    objective
        The objective.
    generator
        Random generator for the node and the model.

    Returns
    -------
    node : int
        Uniform over all nodes.
    model : array
        The start model of the objective, which may be random.
    """
    node = int(generator.random() * objective.nodes)
    return node, objective.sample_start(generator)


def start_nodes(first: int, nodes: int, tokens: int) -> list[int]:
    """Return the first node of each token: token 0 at `first`, the others evenly spread from there.

    >>> start_nodes(7, 10, 4)
    [7, 9, 2, 4]
    """
    return [(first + slot * nodes // tokens) % nodes for slot in range(tokens)]
