"""What one other node learns of a node's rows: network differential privacy of the uniform walk.

The local claim of `ModelNoise` is against everyone who sees all tokens. A single node v that does
not collude sees the token only when it visits v. Between a contribution of u and the next visit of
v other nodes have added their noise, so v sees less of it the longer the token was on its way
(amplification by iteration; Cyffers, Bellet & Upadhyay 2024 put it on a graph). How long that takes
is random, but depends on no rows: the walk is uniform.

**The bound.** Measure shifts of the model in units of 2C and noise in units of σ = zC, so that a
contribution seen at once costs a Gaussian of μ² = (2/z)². Let all steps be alike (γ constant) and
every visit a contraction followed by noise. Two runs that differ in u's rows can be brought
together by spreading the shift of a contribution over the b visits from u's own to the one before
v's: b noises take 1/b each, which costs Σ 1/b² = 1/b in place of 1. Several contributions before
one visit of v, at b_1 < b_2 < … visits before it, add up in the model. Bringing in the k-th costs
at most

    min{ (2k − 1)/b_k,  1/(b_k − b_{k−1}) },

by spreading it over all b_k visits on top of the others, or over the visits before the next
contribution alone. (Adding up 1/b_k, as if they were seen apart, would be too little: two visits in
a row before v's shift the model by 2 through two noises, which costs 4/2, not 1/2 + 1.) Given the
path, what v sees is as private as a Gaussian of μ² = A (2/z)², A the sum of all costs. Exponentials
of Rényi divergences are jointly convex and the path depends on no rows, so over all paths

    RDP(α) ≤ ln E[exp(κ A)] / (α − 1),    κ = 2 α (α − 1)/z².

That is the divergence of what an observer sees who is told the whole path as well. So nothing is
lost where signs of life tell v how far the token has come, as long as they carry no model.

The expectation needs the laws of two legs of the walk from u only: ℓ(t), that it reaches v after t
hops and before it is at u again, and q(t), that it is at u again before v. With h_k the part of the
expectation from exactly k contributions before the next visit of v,

    F(m) = Σ_{k ≤ m} h_k F(m − k) + (the cap is reached before v is),    F(0) = 1,

and E[exp(κ A)] = F(max_contributions). Legs longer than the horizon count as long as it.

**What it needs**, refused otherwise: the uniform walk, a constant step γ with γ L ≤ 2 for a public
bound L on every node's smoothness (its penalty included), convex losses, clips that keep a visit a
contraction (per row, and one slope per row), noise at every visit past the cap too, all of one
size, and a token that carries the model alone: an average would show earlier models. A final model
that is published is not covered, nor nodes that put together what they see. The claim stands beside
the local one, never instead of it, and is never larger.

>>> from walklearn import graphs, privacy
>>> noise = privacy.ModelNoise.calibrate(
...     epsilon=3.0, delta=1e-5, clip=1.0, max_contributions=20)
>>> claim = NetworkPrivacy(graphs.ring(20), noise)
>>> [round(claim.epsilon(1e-5, source=u, observer=0), 2) for u in (1, 5, 10)]
[2.64, 1.54, 1.42]
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from walklearn.graphs import Graph
from walklearn.privacy.arguments import check_delta
from walklearn.privacy.model_noise import ModelNoise
from walklearn.problem import Objective
from walklearn.problem.losses import Loss
from walklearn.updates.step_sizes import ConstantStep, StepSize
from walklearn.walks import Uniform, Walk

if TYPE_CHECKING:
    from scipy.sparse import csr_array

Array = NDArray[np.float64]

HORIZON = 128  # legs of the walk are followed for so many hops
_TOGETHER = 8  # so many contributions before one visit of v are weighed together
_ORDERS = 1.0 + np.geomspace(0.1, 300.0, 20)  # α
_LARGEST_EXPONENT = 500.0
_ROUNDING = 1e-9  # of the logarithm of F, far above what the sums can lose


@dataclass(frozen=True, eq=False)
class NetworkPrivacy:
    """What every single node learns of every other one, within the conditions named above.

    Parameters
    ----------
    graph : Graph
        The network, connected.
    noise : ModelNoise
        What each visit adds, with its cap.
    laziness : float
        Of the uniform walk.
    rounding : float
        How far apart rounding to a grid may move two models in a visit, in units of 2C;
        `seen_from_one_node` sets it for the grid of a real release.
    horizon : int
        Legs of the walk longer than this count as this long.

    Examples
    --------
    >>> from walklearn import graphs
    >>> noise = ModelNoise(clip=1.0, noise_multiplier=12.0, max_contributions=20)
    >>> claim = NetworkPrivacy(graphs.ring(20), noise)
    >>> claim.epsilon(1e-5, source=10, observer=0) < claim.local(1e-5)
    True
    """

    graph: Graph
    noise: ModelNoise
    laziness: float = 0.0
    rounding: float = 0.0
    horizon: int = HORIZON

    def local(self, delta: float) -> float:
        """ε against everyone who sees all tokens."""
        return self.noise.epsilon(delta)

    def epsilon(self, delta: float, source: int, observer: int) -> float:
        """ε of one node's rows against another one alone.

        Parameters
        ----------
        delta
            δ, in [0, 1).
        source
            The number of the node whose rows are looked for.
        observer
            The number of the node that looks.

        Returns
        -------
        float
            At most the local one; infinite for the observer's own rows, which it knows.
        """
        return float(self.epsilons(delta, observer, [source])[0])

    def epsilons(self, delta: float, observer: int, sources: ArrayLike | None = None) -> Array:
        """ε of the rows of many nodes against one alone.

        Parameters
        ----------
        delta
            δ, in [0, 1).
        observer
            The number of the node that looks.
        sources
            The numbers of the nodes whose rows are looked for; all by default.

        Returns
        -------
        array
            A number for each source. The observer knows its own rows: there its ε is infinite.
        """
        delta = check_delta(delta)
        nodes = self.graph.node_count
        wanted = np.arange(nodes) if sources is None else np.asarray(sources, dtype=np.int64)
        for node in (observer, *wanted.tolist()):
            if not 0 <= node < nodes:
                raise ValueError(f"there is no node {node}: the graph has nodes 0 to {nodes - 1}.")
        found = np.full(len(wanted), math.inf)
        others = wanted != observer
        if others.any():
            matrix = Uniform(laziness=self.laziness).transition_matrix(self.graph)
            legs = _Legs.of(matrix, int(observer), wanted[others], self.horizon)
            found[others] = np.minimum(self._epsilons(legs, delta), self.local(delta))
        return found

    def by_distance(self, delta: float, observer: int) -> tuple[NDArray[np.int64], Array]:
        """How many hops every other node is away from the observer, and the ε of its rows.

        Parameters
        ----------
        delta
            δ, in [0, 1).
        observer
            The number of the node that looks.

        Returns
        -------
        hops : array of int64
            Of all nodes but the observer, by number.
        epsilons : array
            Likewise.
        """
        from scipy.sparse.csgraph import shortest_path

        seen = self.epsilons(delta, observer)
        hops = shortest_path(self.graph.adjacency(), unweighted=True, indices=observer)
        return np.delete(hops, observer).astype(np.int64), np.delete(seen, observer)

    def in_words(self, delta: float, observers: ArrayLike) -> str:
        """The claim as a line of a ledger, over all sources and some observers.

        Parameters
        ----------
        delta
            δ, in [0, 1).
        observers
            The numbers of the nodes that look, one at a time.

        Returns
        -------
        str
            The least, the largest and the median ε, and what is not covered.
        """
        seen = np.concatenate([self.by_distance(delta, int(v))[1] for v in np.asarray(observers)])
        return (
            f"seen from one other node that does not collude: ε = {seen.min():.3g} to "
            f"{seen.max():.3g}, median {np.median(seen):.3g}, at δ = {delta:g} (constant steps, "
            "the token carries the model alone; a published final model is not covered)"
        )

    def _epsilons(self, legs: _Legs, delta: float) -> Array:
        """The ε at δ by Rényi divergences (Canonne, Kamath & Steinke 2020), the best order."""
        if delta == 0:
            return np.full(len(legs.again), math.inf)
        shift = 1.0 + self.rounding * self.horizon
        cap, best = self.noise.max_contributions, np.full(len(legs.again), math.inf)
        for order in _ORDERS:
            kappa = 2.0 * order * (order - 1.0) * (shift / self.noise.noise_multiplier) ** 2
            if kappa * min(cap, _TOGETHER) > _LARGEST_EXPONENT:
                break
            divergence = _log_expectation(legs, kappa, cap) / (order - 1.0)
            tail = math.log1p(-1.0 / order) - math.log(delta * order) / (order - 1.0)
            best = np.minimum(best, divergence + tail)
        return np.asarray(np.maximum(best, 0.0))


def seen_from_one_node(
    graph: Graph,
    noise: ModelNoise,
    *,
    walk: Walk,
    step_size: StepSize,
    loss: Loss,
    largest_smoothness: float,
    objective: Objective,
    size: int,
    rows: int,
    average: bool,
    relays: bool = False,
    horizon: int = HORIZON,
) -> NetworkPrivacy:
    """Make the claim against single nodes, if the conditions for it hold.

    Parameters
    ----------
    graph : Graph
        Who can talk to whom. It is connected.
    noise : ModelNoise
        What each visit adds, with its cap.
    walk : Walk
        The walk, which must be uniform.
    step_size : StepSize
        The step, which must be constant.
    loss : Loss
        The loss of a row, which must be smooth.
    largest_smoothness : float
        A public bound on L_i over all rows a node could hold, the penalty included, such as the
        upper end of `privacy.smoothness_bounds`.
    objective : str
        "sum" or "mean", for which all nodes' noise counts alike.
    size, rows : int
        How many numbers the model has, and the most rows of a node: real nodes round each row's
        share of each number, and its noise, to a grid.
    average : bool
        Whether the token carries Σ γ w beside the model, which shows earlier models.
    relays : bool
        Whether there are nodes without rows, which add no noise.
    horizon : int
        Legs of the walk longer than this count as this long.

    Returns
    -------
    NetworkPrivacy
        What every single node learns of every other one.

    Raises
    ------
    ValueError
        Where a condition does not hold; the message names it.

    Examples
    --------
    >>> import walklearn as wl
    >>> noise = wl.privacy.ModelNoise.calibrate(
    ...     epsilon=3.0, delta=1e-5, clip=1.0, max_contributions=20, protect="rows")
    >>> claim = seen_from_one_node(
    ...     wl.graphs.hypercube(4), noise, walk=wl.walks.Uniform(laziness=0.1),
    ...     step_size=wl.ConstantStep(0.1), loss=wl.losses.Logistic(), largest_smoothness=10.0,
    ...     objective="mean", size=10, rows=100, average=False)
    >>> bool(claim.epsilon(1e-5, source=15, observer=0) < claim.local(1e-5))
    True
    """
    pull = step_size(1) * largest_smoothness
    conditions = {
        "the walk must be Uniform(), whose hops depend on no rows and which scales no gradient":
            type(walk) is Uniform and not walk.normalise,
        'the objective must be "sum" or "mean": for "node-mean" large nodes add less noise':
            objective != "node-mean",
        "the token must carry the model alone: the average shows earlier models": not average,
        "every node must hold rows: relays pass the token on without noise": not relays,
        "the step must be constant: a smaller step later hides less of what came before":
            isinstance(step_size, ConstantStep),
        f"γ L = {pull:g} must be at most 2, or a visit may pull two models apart: use a smaller "
        "step, or a smaller public bound on the rows": pull <= 2.0,
        "only clips of single rows with one slope each keep a visit a contraction: use "
        'ModelNoise(protect="rows") and a loss with one score':
            noise.protect == "rows" and loss.takes != "class",
    }  # fmt: skip
    for condition, holds in conditions.items():
        if not holds:
            raise ValueError(f"no claim against single nodes: {condition}.")
    assert isinstance(walk, Uniform)
    # A share that is rounded towards zero is off by a step either way, so two differ by up to two.
    apart = math.sqrt(size) * (2 * rows + 1) * noise.clip_step / (2.0 * noise.clip)
    return NetworkPrivacy(graph, noise, walk.laziness, apart, horizon)


@dataclass(frozen=True, eq=False)
class _Legs:
    """Laws of hops from each source, (sources, horizon + 1): entry t is the chance of t hops.

    reach: to the observer before the source again (ℓ). again: to the source before the observer
    (q). hit: to the observer whatever comes between. Longer legs are in the last entry.
    """

    reach: Array
    again: Array
    hit: Array

    @classmethod
    def of(cls, matrix: csr_array, observer: int, sources: Any, horizon: int) -> _Legs:
        onwards = matrix.T.tocsr()
        columns = np.arange(len(sources))
        first = np.zeros((matrix.shape[0], len(sources)))
        first[sources, columns] = 1.0
        reach, again, hit = np.zeros((3, len(sources), horizon + 1))
        apart, through = first, first
        for hop in range(1, horizon + 1):
            apart, through = onwards @ apart, onwards @ through
            reach[:, hop], again[:, hop] = apart[observer], apart[sources, columns]
            hit[:, hop] = through[observer]
            apart[observer] = apart[sources, columns] = through[observer] = 0.0
        escape = _escape(matrix, observer, sources)
        for law, total in ((reach, escape), (again, 1.0 - escape), (hit, np.ones(len(sources)))):
            law[:, -1] += np.maximum(total - law.sum(axis=1), 0.0)
        return cls(reach, again, hit)


def _escape(matrix: csr_array, observer: int, sources: Any) -> Array:
    """The chance to reach the observer before coming back: one over the expected stays at u."""
    from scipy.sparse import csc_array, eye_array
    from scipy.sparse.linalg import splu

    kept = np.flatnonzero(np.arange(matrix.shape[0]) != observer)
    solver = splu(csc_array(eye_array(matrix.shape[0], format="csr") - matrix)[kept][:, kept])
    stays = np.empty(len(sources))
    for number, source in enumerate(sources):
        at = source - (source > observer)
        unit = np.zeros(len(kept))
        unit[at] = 1.0
        stays[number] = solver.solve(unit)[at]
    return np.asarray(1.0 / stays)


def _log_expectation(legs: _Legs, kappa: float, cap: int) -> Array:
    """ln F(cap) for each source."""
    together = min(cap, _TOGETHER)
    hops = np.arange(1, legs.reach.shape[1])
    alone = np.ones_like(legs.reach)
    alone[:, 1:] = np.exp(kappa / hops)
    seen, cut = legs.reach * alone, np.maximum(legs.hit - legs.reach, 0.0) * alone
    log_seen, log_cut = np.full((2, cap + 1, len(seen)), -np.inf)
    log_seen[1], log_cut[1] = _log_sum(seen), _log_sum(cut)
    for count in range(2, together + 1):
        weights = _weights(len(hops), kappa, count)
        seen, cut = (_one_more(mass, legs.again, weights) for mass in (seen, cut))
        log_seen[count], log_cut[count] = _log_sum(seen), _log_sum(cut)
    more = _log_sum(legs.again * alone)
    for count in range(together + 1, cap + 1):
        log_seen[count], log_cut[count] = log_seen[count - 1] + more, log_cut[count - 1] + more
    log_f = np.zeros((cap + 1, len(seen)))
    for count in range(1, cap + 1):
        parts = np.vstack([log_seen[1 : count + 1] + log_f[count - 1 :: -1], log_cut[count]])
        log_f[count] = np.logaddexp.reduce(parts, axis=0)
    return np.asarray(log_f[cap] * (1.0 + _ROUNDING) + _ROUNDING)


def _weights(horizon: int, kappa: float, count: int) -> Array:
    """exp(κ min{(2k − 1)/b_k, 1/g}) by the gap g = b_k − b_{k−1} and b_{k−1}, for the k-th."""
    hops = np.arange(1, horizon + 1)
    reached = np.minimum(hops[:, None] + hops, horizon)
    return np.asarray(np.exp(kappa * np.minimum((2 * count - 1) / reached, 1.0 / hops[:, None])))


def _one_more(mass: Array, again: Array, weights: Array) -> Array:
    """Mass by b_k from mass by b_{k−1}: a leg back to the source comes before it."""
    more, last = np.zeros_like(mass), mass.shape[1] - 1
    for gap in range(1, last + 1):
        moved = mass[:, 1:] * weights[gap - 1] * again[:, gap, None]
        more[:, gap + 1 : last] += moved[:, : max(last - gap - 1, 0)]
        more[:, last] += moved[:, max(last - gap - 1, 0) :].sum(axis=1)
    return more


def _log_sum(mass: Array) -> Array:
    with np.errstate(divide="ignore"):
        return np.asarray(np.log(mass.sum(axis=1)))
