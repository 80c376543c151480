"""Gossip, the baseline: every node has a model of its own, and neighbours average them.

Asynchronous (Ram, Nedić & Veeravalli): a uniform node wakes and picks a uniform neighbour;
both do one SGD step on their own model, then both take the average. Two updates and two
messages. A node's step index is its own update count, since nobody knows a global one.

Synchronous (D-SGD): in a round every node does one SGD step, then takes the Metropolis-
weighted average over its neighbours. N updates and 2|E| messages.

Gradient tracking: rounds in which a node also keeps y_i, its idea of ∇f, and sends both:

    x ← Π_W(M x − γ y)      y ← M y + ∇new − ∇old      y_0 = ∇f_i(x_0)

Σ y_i = Σ ∇f_i(x_i) at all times, so with a constant step all models end at w*. N updates and 2|E|
messages of two vectors each.

>>> import numpy as np
>>> from walklearn import graphs
>>> from walklearn.objectives import Problem
>>> from walklearn.updates.step_sizes import PowerStep
>>> problem = Problem([[1.0], [2.0], [3.0]], [1.0, -1.0, 1.0], penalty=1.0)
>>> setting = GossipSetting(problem, graphs.ring(3), AsynchronousGossip(), PowerStep(0.1))
>>> generator = np.random.default_rng(1)
>>> network = init(setting, generator)
>>> for _ in range(50):
...     network = step(setting, network, generator.random(setting.draws))
>>> int(network.counts.sum()), network.messages
(100, 100)
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


@GOSSIP.register
@dataclass(frozen=True)
class AsynchronousGossip:
    """Gossip over one link at a time.

    Node i takes part in a share r_i = (1 + Σ_{j~i} 1/deg_j) / N of the iterations, more if it
    is a hub, and steps by c / (its own count)^q ≈ c / (r_i t)^q. So after t iterations it pulls
    with a weight ∝ r_i^(1−q), and plain gossip minimises the wrong sum.

    Parameters
    ----------
    corrected
        Whether to scale the gradient of node i by (2 / (N r_i))^(1−q), which makes all weights
        equal. For a constant step, q = 0, that is 2 / (N r_i); as q → 1 nothing is left to
        correct.

    Examples
    --------
    >>> import walklearn as wl
    >>> X, y = wl.datasets.two_gaussians(9, dimension=2, seed=1)
    >>> run = wl.simulate(wl.Problem(X, y, penalty=1.0), wl.graphs.ring(9), wl.AsynchronousGossip(),
    ...                   steps=1_000, step_size=wl.PowerStep(0.05), seed=1)
    >>> bool(run.messages[0, -1] == run.updates[-1])
    True
    """

    name: ClassVar[str] = "asynchronous"
    vectors: ClassVar[int] = 1  # that a message carries, each as large as a model
    corrected: bool = True

    @property
    def announced_numbers(self) -> int:
        """How many numbers a node announces: the correction needs the neighbours' degrees."""
        return int(self.corrected)

    def updates_per_iteration(self, graph: Graph) -> int:
        """Two: both ends of a link update."""
        return 2

    def gradient_scale(self, graph: Graph, step_size: StepSize) -> Array:
        """The factor (2 / (N r_i))^(1−q) of each node's gradient, or 1 if plain.

        Parameters
        ----------
        graph
            Who can talk to whom.
        step_size
            Its exponent is q.

        Returns
        -------
        array
            A number for each node.
        """
        if not self.corrected:
            return np.ones(graph.node_count)
        equal = 1.0 / graph.node_count
        return np.asarray((equal / self.update_rates(graph)) ** (1.0 - step_size.exponent))

    def update_rates(self, graph: Graph) -> Array:
        """r_i / 2, each node's share of the updates."""
        chosen_by = np.asarray(graph.adjacency() @ (1.0 / graph.degrees))
        return np.asarray((1.0 + chosen_by) / (2 * graph.node_count))


@GOSSIP.register
@dataclass(frozen=True)
class SynchronousGossip:
    """Gossip over all links at once, in rounds (D-SGD with Metropolis weights).

    Examples
    --------
    >>> import walklearn as wl
    >>> X, y = wl.datasets.two_gaussians(9, dimension=2, seed=1)
    >>> run = wl.simulate(wl.Problem(X, y, penalty=1.0), wl.graphs.ring(9), wl.SynchronousGossip(),
    ...                   steps=900, step_size=wl.PowerStep(0.05), seed=1)
    >>> int(run.messages[0, -1])
    1800
    """

    name: ClassVar[str] = "synchronous"
    vectors: ClassVar[int] = 1
    announced_numbers = 1  # the degree, for the Metropolis weights

    def updates_per_iteration(self, graph: Graph) -> int:
        """N: every node updates."""
        return graph.node_count

    def gradient_scale(self, graph: Graph, step_size: StepSize) -> Array:
        """The factor 1: every node updates equally often.

        Parameters
        ----------
        graph
            Who can talk to whom.
        step_size
            It is not looked at.

        Returns
        -------
        array
            A number for each node.
        """
        return np.ones(graph.node_count)

    def update_rates(self, graph: Graph) -> Array:
        """An equal share of the updates for each node."""
        return np.full(graph.node_count, 1.0 / graph.node_count)

    @staticmethod
    def mixing_matrix(graph: Graph) -> SparseMatrix:
        """M_ij = 1 / (1 + max(deg_i, deg_j)), the rest on the diagonal: doubly stochastic."""
        degrees = graph.degrees
        rows = np.repeat(np.arange(graph.node_count), degrees)
        shares = 1.0 / (1.0 + np.maximum(degrees[rows], degrees[graph.indices]))
        matrix = stochastic_matrix(graph, shares)
        matrix.sort_indices()
        return matrix


@GOSSIP.register
@dataclass(frozen=True)
class GradientTracking(SynchronousGossip):
    """Gossip in rounds in which nodes also average what they know of ∇f.

    With a constant step it ends at w*, where plain gossip stops at a distance.

    Parameters
    ----------
    lazy
        Mix by (I + M) / 2, slower and with no negative eigenvalue, instead of M.

    Examples
    --------
    >>> import walklearn as wl
    >>> X, y = wl.datasets.two_gaussians(9, dimension=2, seed=1)
    >>> problem = wl.Problem(X, y, penalty=1.0)
    >>> run = wl.simulate(problem, wl.graphs.complete(9), wl.GradientTracking(),
    ...                   steps=9 * 1000, step_size=wl.ConstantStep(0.02), seed=1)
    >>> bool(run.distance[0, -1] < 1e-9)
    True
    """

    name: ClassVar[str] = "gradient-tracking"
    vectors: ClassVar[int] = 2  # the model and what is known of ∇f
    lazy: bool = False


Gossip = AsynchronousGossip | SynchronousGossip


@dataclass(frozen=True, eq=False)
class GossipSetting:
    """All that stays the same during gossip.

    Parameters
    ----------
    objective
        What is learnt.
    graph
        Communication graph.
    gossip
        The way in which models are mixed.
    step_size
        The step γ_k of a node's k-th update.
    """

    privacy: ClassVar[Protection] = Protection()
    objective: Any
    graph: Graph
    gossip: Gossip
    step_size: StepSize

    @cached_property
    def update(self) -> Sgd:
        """SGD update of each node's own model."""
        return Sgd(self.step_size)

    @property
    def message_bytes(self) -> int:
        """The bytes of one message: the vectors that gossip sends."""
        return int(self.objective.size * self.objective.dtype.itemsize * self.gossip.vectors)

    @cached_property
    def scale(self) -> Array:
        """The factor of ∇f_i in node i's step."""
        return self.gossip.gradient_scale(self.graph, self.step_size)

    @cached_property
    def mixing(self) -> SparseMatrix:
        """The Metropolis weights of the rounds."""
        from scipy.sparse import csr_array, eye_array

        matrix = SynchronousGossip.mixing_matrix(self.graph)
        if isinstance(self.gossip, GradientTracking) and self.gossip.lazy:
            matrix = csr_array(0.5 * (matrix + eye_array(self.graph.node_count)))
            matrix.sort_indices()
        return matrix

    @property
    def draws(self) -> int:
        """The number of uniform numbers per iteration: for the meeting, then for each gradient."""
        if isinstance(self.gossip, AsynchronousGossip):
            return 1 + 2 * int(self.objective.draws)
        return self.graph.node_count * int(self.objective.draws)


class Network(NamedTuple):
    """The state of all nodes.

    Parameters
    ----------
    models
        The model of each node.
    weighted_sums
        Σ γ w of each node, of which its average is made.
    step_size_sums
        Σ γ of each node.
    counts
        How many updates each node has made.
    messages
        How many messages were sent so far.
    trackers, gradients
        The tracked gradient y_i, and ∇f_i of the node's model; None unless gradients are
        tracked.
    """

    models: Array  # (nodes, size)
    weighted_sums: Array
    step_size_sums: Array
    counts: Array
    messages: int
    trackers: Array | None = None
    gradients: Array | None = None

    @property
    def averages(self) -> Array:
        """w̄ of each node, or the model of a node without updates."""
        return weighted_means(self.models, self.weighted_sums, self.step_size_sums[:, None])


def weighted_means(models: Array, weighted_sums: Array, step_size_sums: Array) -> Array:
    """Return w̄ of each node, or the model of a node without updates.

    Parameters
    ----------
    models
        The models, (…, nodes, size).
    weighted_sums
        Σ γ w of each node.
    step_size_sums
        Σ γ of each node, (…, nodes, 1).

    Returns
    -------
    array
        Of the shape of the models.
    """
    fresh = step_size_sums == 0.0
    return np.where(fresh, models, weighted_sums / np.where(fresh, 1.0, step_size_sums))


def init(setting: GossipSetting, generator: np.random.Generator) -> Network:
    """Start all nodes from one model, drawn as for a walk, so that only the methods differ.

    Parameters
    ----------
    setting
        What stays the same.
    generator
        Where the first model is drawn from.

    Returns
    -------
    Network
        The state before the first iteration.
    """
    nodes = setting.graph.node_count
    _, model = draw_start(setting.objective, generator)
    models = np.tile(model, (nodes, 1))
    sums = np.zeros((nodes, model.size))
    network = Network(models, sums, np.zeros(nodes), np.zeros(nodes, dtype=np.int64), 0)
    if not isinstance(setting.gossip, GradientTracking):
        return network
    gradients = _gradients(setting.objective, models)
    return network._replace(trackers=gradients, gradients=gradients)


def step(setting: GossipSetting, network: Network, uniforms: Array) -> Network:
    """Make one iteration: a meeting of two neighbours, or a round of all.

    Parameters
    ----------
    setting
        What stays the same.
    network
        The state before.
    uniforms
        The random numbers of this iteration, uniform in [0, 1).

    Returns
    -------
    Network
        The state after it.
    """
    if isinstance(setting.gossip, GradientTracking):
        return _track(setting, network)
    network = network._replace(
        models=network.models.copy(),
        weighted_sums=network.weighted_sums.copy(),
        step_size_sums=network.step_size_sums.copy(),
        counts=network.counts.copy(),
    )
    asynchronous = isinstance(setting.gossip, AsynchronousGossip)
    return (_meet if asynchronous else _round)(setting, network, uniforms)


def _meet(setting: GossipSetting, network: Network, uniforms: Array) -> Network:
    """Let a uniform node and a uniform neighbour update, then average."""
    i, j = _meeting(setting.graph, uniforms[0])
    batch = setting.objective.draws
    _update(setting, network, i, uniforms[1 : 1 + batch])
    _update(setting, network, j, uniforms[1 + batch :])
    network.models[[i, j]] = 0.5 * (network.models[i] + network.models[j])
    return network._replace(messages=network.messages + 2)


def _meeting(graph: Graph, u: float) -> tuple[int, int]:
    """Pick a node by a uniform number, and its neighbour by what is left of that number."""
    stretched = u * graph.node_count
    i = int(stretched)
    neighbours = graph.neighbours(i)
    place = min(int((stretched - i) * len(neighbours)), len(neighbours) - 1)
    return i, int(neighbours[place])


def _round(setting: GossipSetting, network: Network, uniforms: Array) -> Network:
    """Let every node update, then every node mix."""
    batch = setting.objective.draws
    for node in range(setting.graph.node_count):
        _update(setting, network, node, uniforms[node * batch : (node + 1) * batch])
    models = (setting.mixing @ network.models).astype(network.models.dtype)
    messages = network.messages + 2 * setting.graph.edge_count
    return network._replace(models=models, messages=messages)


def _track(setting: GossipSetting, network: Network) -> Network:
    """x ← Π(M x − γ y), y ← M y + ∇new − ∇old; all nodes are at the same step index."""
    assert network.trackers is not None
    assert network.gradients is not None
    objective, mixing = setting.objective, setting.mixing
    gamma = setting.step_size(int(network.counts[0]) + 1)
    moved = (mixing @ network.models - gamma * network.trackers).astype(network.models.dtype)
    models = np.stack([objective.project(model) for model in moved])
    gradients = _gradients(objective, models)
    return Network(
        models,
        network.weighted_sums + gamma * network.models,
        network.step_size_sums + gamma,
        network.counts + 1,
        network.messages + 2 * setting.graph.edge_count,
        mixing @ network.trackers + (gradients - network.gradients),
        gradients,
    )


def _gradients(objective: Any, models: Array) -> Array:
    """Return ∇f_i of each node's own model."""
    nothing, penalty = np.zeros(0), objective.penalty
    each = [objective.gradient(i, w, nothing) + penalty * w for i, w in enumerate(models)]
    return np.asarray(each, dtype=np.float64)


def _update(setting: GossipSetting, network: Network, node: int, uniforms: Array) -> None:
    """Make the node's own SGD step on its own model, in place, with its own step index."""
    context = VisitContext(
        setting.objective, node, 0, setting.scale[node], int(network.counts[node]), 0,
        uniforms[None],
    )  # fmt: skip
    own = {
        "model": network.models,
        "weighted_sum": network.weighted_sums,
        "step_size_sum": network.step_size_sums,
    }
    arrays = {name: array[node] for name, array in own.items()}
    for name, changed in setting.update.visit(context, arrays, {}).token.items():
        own[name][node] = changed
    network.counts[node] += 1
