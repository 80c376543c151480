"""Gossip, the baseline: every node has its own model, and neighbours average their models.

Asynchronous (Ram, Nedić & Veeravalli): a uniform node wakes and picks a uniform neighbour. Each of
the two makes an SGD step on its own model, indexed by its own update count, then both take the
average: two updates and two messages.

Synchronous (D-SGD): in a round every node makes one SGD step, then takes the Metropolis-weighted
average over its neighbours: N updates and 2|E| messages.

Gradient tracking: rounds in which a node also keeps y_i, an estimate of ∇f, and sends both vectors:

    x ← Π_W(M x − γ y)      y ← M y + ∇new − ∇old      y_0 = ∇f_i(x_0)

Always Σ y_i = Σ ∇f_i(x_i), so with a constant step all models converge to w*. A round takes N
updates and 2|E| messages of two vectors each.

>>> import numpy as np
>>> from walklearn import PowerStep, Problem, graphs, updates
>>> problem = Problem([[1.0], [2.0], [3.0]], [1.0, -1.0, 1.0], penalty=1.0)
>>> sgd = updates.Sgd(PowerStep(0.1))
>>> setting = GossipSetting(problem, graphs.ring(3), AsynchronousGossip(), sgd)
>>> generator = np.random.default_rng(1)
>>> network = init(setting, generator)
>>> for _ in range(50):
...     network = step(setting, network, generator.random(setting.draws))
>>> int(network.counts.sum())
100
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any, ClassVar, NamedTuple

import numpy as np

from walklearn.arrays import Array
from walklearn.graphs import Graph
from walklearn.graphs.sparse_rows import SparseMatrix
from walklearn.privacy.protection import Protection
from walklearn.registry import Registry
from walklearn.streams import draw_start
from walklearn.updates.sgd import Sgd
from walklearn.updates.step_sizes import StepSize
from walklearn.updates.update import VisitContext
from walklearn.walks.markov import stochastic_matrix

GOSSIP: Registry[type[Gossip]] = Registry("gossip")


@dataclass(frozen=True)
class Gossip:
    """Base of gossip algorithms. By default an iteration is a round of all nodes."""

    name: ClassVar[str]
    vectors: ClassVar[int] = 1  # in a message, each as large as a model

    @property
    def sent_length(self) -> int:
        """The numbers that a node announces: its degree, for the Metropolis weights."""
        return 1

    def updates_per_iteration(self, graph: Graph) -> int:
        """Return the number of updates in an iteration."""
        return graph.node_count

    def messages_per_iteration(self, graph: Graph) -> int:
        """Return the number of messages in an iteration."""
        return 2 * graph.edge_count

    def gradient_scale(self, graph: Graph, step_size: StepSize) -> Array:
        """Return the factor of each node's gradient."""
        return np.ones(graph.node_count)

    def update_rates(self, graph: Graph) -> Array:
        """Return each node's share of the updates."""
        return np.full(graph.node_count, 1.0 / graph.node_count)


@GOSSIP.register
@dataclass(frozen=True)
class AsynchronousGossip(Gossip):
    """Gossip over one link at a time.

    Node i takes part in a share r_i = (1 + Σ_{j~i} 1/deg_j) / N of the iterations, more if it is a
    hub, and steps by c / (its own count)^q ≈ c / (r_i t)^q. After t iterations its weight is
    therefore ∝ r_i^(1−q), and plain gossip minimises another sum than f.

    Parameters
    ----------
    corrected
        True to scale the gradient of node i by (2 / (N r_i))^(1−q), which makes all weights equal.
        For a constant step (q = 0) the factor is 2 / (N r_i); for q = 1 it is 1.
    """

    name: ClassVar[str] = "asynchronous"
    corrected: bool = True

    @property
    def sent_length(self) -> int:
        """The numbers that a node announces: the correction needs the neighbours' degrees."""
        return int(self.corrected)

    def updates_per_iteration(self, graph: Graph) -> int:
        """Return 2: both ends of a link update."""
        return 2

    def messages_per_iteration(self, graph: Graph) -> int:
        """Return 2: both ends of a link send their models."""
        return 2

    def gradient_scale(self, graph: Graph, step_size: StepSize) -> Array:
        """Return (2 / (N r_i))^(1−q) for each node, or 1 without the correction."""
        if not self.corrected:
            return super().gradient_scale(graph, step_size)
        equal_share = 1.0 / graph.node_count
        return np.asarray((equal_share / self.update_rates(graph)) ** (1.0 - step_size.exponent))

    def update_rates(self, graph: Graph) -> Array:
        """Return r_i / 2 for each node."""
        chosen_rates = np.asarray(graph.adjacency() @ (1.0 / graph.degrees))
        return np.asarray((1.0 + chosen_rates) / (2 * graph.node_count))


@GOSSIP.register
@dataclass(frozen=True)
class SynchronousGossip(Gossip):
    """Gossip over all links at once, in rounds (D-SGD with Metropolis weights)."""

    name: ClassVar[str] = "synchronous"


@GOSSIP.register
@dataclass(frozen=True)
class GradientTracking(SynchronousGossip):
    """Gossip in rounds in which nodes also average their estimates of ∇f.

    With a constant step it converges to w*, where plain gossip stops at a distance.

    Parameters
    ----------
    lazy
        Mix by (I + M) / 2, which is slower and has no negative eigenvalue, instead of M.
    """

    name: ClassVar[str] = "gradient-tracking"
    vectors: ClassVar[int] = 2  # the model and the estimate of ∇f
    lazy: bool = False


@dataclass(frozen=True, eq=False)
class GossipSetting:
    """The fixed inputs of gossip, checked once. The running averages w̄ are always recorded."""

    privacy: ClassVar[Protection] = Protection()
    tokens: ClassVar[int] = 1  # a model per node, as if each were the only one
    objective: Any
    graph: Graph
    gossip: Gossip
    update: Any

    def __post_init__(self) -> None:
        if type(self.update) is not Sgd:
            raise ValueError(
                f"{self.update!r} needs a token, which gossip such as {self.gossip!r} does not "
                "have. Pass step_size=…, or a walk as the method."
            )
        object.__setattr__(self, "update", Sgd(self.update.step_size))
        if self.graph.node_count == 1:
            raise ValueError("gossip needs at least 2 nodes. On one node use walks.Uniform().")
        if isinstance(self.gossip, GradientTracking) and self.objective.draws:
            raise ValueError(
                "gradient tracking takes differences of gradients, which must be of all rows of a "
                "node. Leave out batch, or use SynchronousGossip()."
            )

    @property
    def message_bytes(self) -> int:
        """The bytes of one message: the vectors that gossip sends."""
        return int(self.objective.size * self.objective.dtype.itemsize * self.gossip.vectors)

    @cached_property
    def scale(self) -> Array:
        """The factor of ∇f_i in node i's step."""
        return self.gossip.gradient_scale(self.graph, self.update.step_size)

    @cached_property
    def mixing(self) -> SparseMatrix:
        """The Metropolis weights of the rounds, M_ij = 1 / (1 + max(deg_i, deg_j)) for neighbours.

        The rest is on the diagonal, so M is doubly stochastic.
        """
        from scipy.sparse import csr_array, eye_array

        graph, degrees = self.graph, self.graph.degrees
        rows = np.repeat(np.arange(graph.node_count), degrees)
        shares = 1.0 / (1.0 + np.maximum(degrees[rows], degrees[graph.indices]))
        matrix = stochastic_matrix(graph, shares)
        if isinstance(self.gossip, GradientTracking) and self.gossip.lazy:
            matrix = csr_array(0.5 * (matrix + eye_array(graph.node_count)))
        matrix.sort_indices()
        return matrix

    @property
    def draws(self) -> int:
        """The number of uniform numbers per iteration: for the meeting, then for each gradient."""
        if isinstance(self.gossip, AsynchronousGossip):
            return 1 + 2 * int(self.objective.draws)
        return self.graph.node_count * int(self.objective.draws)


class Network(NamedTuple):
    """The state of all nodes: arrays with one line per node."""

    models: Array
    weighted_sums: Array  # Σγw
    step_size_sums: Array  # Σγ, one column
    counts: Array  # of updates
    trackers: Array  # y_i; no lines unless gradients are tracked
    gradients: Array  # ∇f_i of the node's model; likewise
    exchanges: Array  # the longest chain of exchanges, each after the one before, up to each node


def init(setting: GossipSetting, generator: np.random.Generator) -> Network:
    """Start all nodes from one model, drawn as for a walk to make the methods comparable."""
    nodes = setting.graph.node_count
    models = np.tile(draw_start(setting.objective, generator)[1], (nodes, 1))
    shape = models.shape
    tracked_shape = shape if isinstance(setting.gossip, GradientTracking) else (0, 0)
    counts = np.zeros(nodes, dtype=np.int64)
    return Network(
        models,
        np.zeros(shape),
        np.zeros((nodes, 1)),
        counts,
        np.zeros(tracked_shape),
        np.zeros(tracked_shape),
        np.zeros(nodes, dtype=np.int64),
    )


def step(setting: GossipSetting, network: Network, uniforms: Array) -> Network:
    """Make one iteration, a meeting of two neighbours or a round of all; return the new state."""
    network = Network(*(array.copy() for array in network))
    if isinstance(setting.gossip, GradientTracking):
        _track(setting, network)
    elif isinstance(setting.gossip, AsynchronousGossip):
        _meet(setting, network, uniforms)
    else:
        draws = uniforms.reshape(setting.graph.node_count, -1)
        for node, numbers in enumerate(draws):
            _update(setting, network, node, numbers)
        network.models[:] = setting.mixing @ network.models
    if not isinstance(setting.gossip, AsynchronousGossip):
        network.exchanges[:] += 1
    return network


def _meet(setting: GossipSetting, network: Network, uniforms: Array) -> None:
    """Let a uniform node and a uniform neighbour update, then average.

    One uniform number picks the node, and its fractional part the neighbour.
    """
    scaled = uniforms[0] * setting.graph.node_count
    i = int(scaled)
    neighbours = setting.graph.neighbours(i)
    index = min(int((scaled - i) * len(neighbours)), len(neighbours) - 1)
    pair = [i, int(neighbours[index])]
    network.exchanges[pair] = network.exchanges[pair].max() + 1
    for node, draws in zip(pair, uniforms[1:].reshape(2, -1), strict=True):
        _update(setting, network, node, draws)
    network.models[pair] = 0.5 * (network.models[pair[0]] + network.models[pair[1]])


def _track(setting: GossipSetting, network: Network) -> None:
    """Make a round of gradient tracking, in which all nodes have the same step index."""
    objective, mixing, models = setting.objective, setting.mixing, network.models
    if network.counts[0] == 0:
        network.trackers[:] = network.gradients[:] = _gradients(objective, models)
    gamma = setting.update.step_size(int(network.counts[0]) + 1)
    network.weighted_sums[:] += gamma * models
    network.step_size_sums[:] += gamma
    network.counts[:] += 1
    new_models = (mixing @ models - gamma * network.trackers).astype(models.dtype)
    models[:] = [objective.project(model) for model in new_models]
    gradients = _gradients(objective, models)
    network.trackers[:] = mixing @ network.trackers + (gradients - network.gradients)
    network.gradients[:] = gradients


def _gradients(objective: Any, models: Array) -> Array:
    """Return ∇f_i of each node at its own model."""
    no_draws, penalty = np.zeros(0), objective.penalty
    gradients = [objective.gradient(i, w, no_draws) + penalty * w for i, w in enumerate(models)]
    return np.asarray(gradients, dtype=np.float64)


def _update(setting: GossipSetting, network: Network, node: int, draws: Array) -> None:
    """Make the node's own SGD step on its own model, in place, with its own step index."""
    arrays = {
        "model": network.models,
        "weighted_sum": network.weighted_sums,
        "step_size_sum": network.step_size_sums,
    }
    token = {name: array[node] for name, array in arrays.items()}
    count, scale = int(network.counts[node]), setting.scale[node]
    context = VisitContext(setting.objective, node, 0, scale, count, 0, draws[None])
    for name, new_array in setting.update.visit(context, token, {}).token.items():
        arrays[name][node] = new_array
    network.counts[node] += 1
