"""Algorithms 1 to 3 of the paper, written to be read beside its pseudocode.

A *token* carries the model over the graph. Visit k, at node i with model w:

    ĝ ← scale_i · ∇f_i(w)                    (scale: 1, or L̄ / L_i for the weighted walk)
    w ← Π_W(w − γ_k ĝ)
    propose a neighbour, accept or stay      (the walk's `hop`)

That is `updates.Sgd`. An update with memory, such as `updates.Saga`, does something else before the
hop; the walk then says only who is next.

This is the reference. `simulation.kernels` is its fast twin and must give the same numbers
from the same random ones; a step therefore takes its uniform numbers as an argument.

A node of a real network makes the same visit from what it knows itself, by the functions that
`step` is made of: `estimated_scale` (R̄ as the token knows it), `improve` (the update), and
`propose` and `accepts` of `walks.proposal` (who is next).

>>> import numpy as np
>>> from walklearn import graphs, walks
>>> from walklearn.problem import Problem
>>> from walklearn.updates import PowerStep, Sgd
>>> problem = Problem([[1.0], [2.0], [3.0]], [1.0, -1.0, 1.0], penalty=1.0)
>>> setting = WalkSetting(problem, graphs.ring(3), walks.Uniform(), Sgd(PowerStep(0.1)))
>>> generator = np.random.default_rng(1)
>>> token = init(setting, generator)
>>> for _ in range(100):
...     token, visit = step(setting, token, generator.random(setting.draws))
>>> token.updates, token.model.round(2)
(100, array([0.28]))
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any, Literal, NamedTuple

import numpy as np
from numpy.typing import NDArray

from walklearn.graphs import Graph
from walklearn.problem import Problem
from walklearn.updates.sgd import Protect, start, update
from walklearn.updates.step_sizes import StepSize
from walklearn.updates.update import Remembering, Sgd, Update
from walklearn.walks import Derived, HistoryDriven, Hop, Metropolis, Walk

if TYPE_CHECKING:
    from walklearn.privacy.model_noise import ModelNoise

Array = NDArray[Any]
MeanImportance = Literal["exact", "estimated"]


@dataclass(frozen=True, eq=False)
class WalkSetting:
    """All that stays the same during a walk.

    Parameters
    ----------
    problem
        What is minimised.
    graph
        Who can talk to whom.
    walk
        Who is next.
    update
        What a visit does.
    batch
        How many of a node's rows a visit looks at, drawn with replacement; None, or a node with
        no more rows than that, means all of them.
    model_noise
        Clipping and noise on what a visit shows of the node's rows.
    mean_importance
        "exact", or "estimated" from the visits of the token so far.
    """

    problem: Problem
    graph: Graph
    walk: Walk
    update: Update
    batch: int | None = None
    model_noise: ModelNoise | None = None
    mean_importance: MeanImportance = "exact"

    def __post_init__(self) -> None:
        if self.model_noise is not None:
            self.model_noise.check_batch(self.batch)

    @property
    def step_size(self) -> StepSize:
        """γ_k of `Sgd`, which the other updates do not have."""
        if not isinstance(self.update, Sgd):
            raise TypeError(f"{self.update!r} makes no SGD steps.")
        return self.update.step_size

    @property
    def carries_average(self) -> bool:
        """Whether the token carries what w̄ is made of."""
        return isinstance(self.update, Sgd) and self.update.average

    @cached_property
    def score(self) -> Array:
        """What the walk accepts by, for each node."""
        return self.walk.score(self.graph, self.problem)

    @cached_property
    def scale(self) -> Array:
        """The factor of ∇f_i in the gradient estimate, for each node."""
        return self.walk.gradient_scale(self.graph, self.problem)

    @cached_property
    def divisors(self) -> Array:
        """s_i in scale_i = s̄ / s_i, for each node: what the token estimates the mean of."""
        if not isinstance(self.walk, Metropolis | Derived):
            raise TypeError(f"nothing is known of how {self.walk!r} scales gradients.")
        return self.walk.divisors(self.graph, self.problem)

    @property
    def draws(self) -> int:
        """How many uniform numbers a step uses: the walk's, then one per picked row."""
        return self.walk.draws + (self.batch or 0)


class Token(NamedTuple):
    """What travels: the model, its weighted average so far, and where it has got to.

    Parameters
    ----------
    node
        Where it is.
    previous
        Where it came from.
    model
        The model w.
    weighted_sum
        Σ γ w, of which the average w̄ is made.
    step_size_sum
        Σ γ.
    updates
        How many updates were made.
    messages
        How many messages were sent.
    inverse_importance_sum
        Σ 1/s_i over the visits, by which the mean importance is estimated.
    questions
        How many of the messages were questions of a history-driven walk.
    memory
        What an update with memory carries; None for `Sgd`.
    """

    node: int
    previous: int  # the node before the last move, −1 at the start
    model: Array
    weighted_sum: Array  # Σ γ_m w_m over the models before each update
    step_size_sum: float  # Σ γ_m
    updates: int
    messages: int
    inverse_importance_sum: float = 0.0  # Σ 1/s_i over the visits, where s̄ is estimated
    questions: int = 0  # how many of the messages asked or answered for counts of visits
    memory: Any = None  # what an update with memory carries; it needs no average

    @property
    def average(self) -> Array:
        """w̄ = Σ γ_m w_m / Σ γ_m, which the theorems are about; w itself if it is not carried."""
        return self.weighted_sum / self.step_size_sum if self.step_size_sum else self.model


class Visit(NamedTuple):
    """What a step did, for observers, and what the node keeps of it.

    Parameters
    ----------
    node
        The node that was visited.
    step_size
        The step γ_k.
    gradient
        The direction of the step.
    messages
        How many messages the hop took.
    kept
        What the node keeps until the next visit, where the update has memory.
    """

    node: int
    step_size: float
    gradient: Array  # the estimate ĝ
    messages: int
    kept: Any = None  # until the next visit, where the update has memory


def init(setting: WalkSetting, generator: np.random.Generator) -> Token:
    """Start at a uniform node with a model uniform over W (0 where W is everything).

    Parameters
    ----------
    setting
        What stays the same.
    generator
        Where the first node and model are drawn from.

    Returns
    -------
    Token
        The token before the first update.
    """
    token = token_at(*start(setting.problem, generator))
    if isinstance(setting.update, Remembering):
        token = token._replace(memory=setting.update.begin(setting.problem))
    return token


def token_at(node: int, model: Array) -> Token:
    """Make a token that has not moved yet.

    Parameters
    ----------
    node
        Where it starts.
    model
        The model it starts from.

    Returns
    -------
    Token
        The token.
    """
    return Token(node, -1, model, np.zeros(model.size), 0.0, 0, 0)


def step(
    setting: WalkSetting,
    token: Token,
    uniforms: Array,
    protect: Protect | None = None,
    counts: Array | None = None,
    kept: Any = None,
) -> tuple[Token, Visit]:
    """Make one visit: update the model with the node's own data, then hand the token over.

    Parameters
    ----------
    setting
        What stays the same.
    token
        The token before the visit.
    uniforms
        The random numbers of this visit, uniform in [0, 1).
    protect
        What the node makes of the gradient of its rows before anyone can see it.
    counts
        How often each node was visited, which a history-driven walk goes by.
    kept
        What the node keeps since its last visit, where the update has memory.

    Returns
    -------
    Token
        The token at its next node.
    Visit
        What was done.
    """
    i = token.node
    improved, visit = _updated(setting, token, uniforms[setting.walk.draws :], protect, kept)

    hop = _hop(setting, token, uniforms, counts)
    moved = hop.node != i
    token = improved._replace(
        node=hop.node,
        previous=i if moved else token.previous,
        messages=token.messages + hop.messages,
        questions=token.questions + hop.questions,
    )
    return token, visit._replace(messages=hop.messages)


def _hop(setting: WalkSetting, token: Token, uniforms: Array, counts: Array | None) -> Hop:
    """Ask the walk where the token goes; only some walks need the counts of visits."""
    walk, known = setting.walk, (setting.graph, setting.score, token.node, token.previous)
    if isinstance(walk, HistoryDriven):
        return walk.hop(*known, uniforms, counts)
    return walk.hop(*known, uniforms)


def _updated(
    setting: WalkSetting,
    token: Token,
    picks: Array,
    protect: Protect | None,
    kept: Any,
) -> tuple[Token, Visit]:
    """Do to the token what the visit does, before it is handed over."""
    if isinstance(setting.update, Remembering):
        token, kept, gamma, gradient = setting.update.visit(setting.problem, token, kept, picks)
        return token, Visit(token.node, gamma, gradient, 0, kept)
    if setting.mean_importance == "estimated":
        token, scale = estimated_scale(token, float(setting.divisors[token.node]))
    else:
        scale = setting.scale[token.node]
    return improve(
        setting.problem, setting.step_size, token, scale, picks, protect, setting.carries_average
    )


def estimated_scale(token: Token, divisor: float) -> tuple[Token, float]:
    """Count this visit in, and scale the gradient by s̄ / s_i with s̄ as the token estimates it.

    At update k, this one included, s̄ ≈ k / Σ_{m ≤ k} 1/s_{i_m}. For a walk that visits nodes in
    proportion to s that tends to the mean over all nodes, which no node knows; where s is 1
    everywhere it is 1. The first scale is always 1.

    Parameters
    ----------
    token
        The token before this visit is counted.
    divisor
        s_i: L_i or the released R_i for `Weighted`, 1 for `Uniform` and `Simple`.

    Returns
    -------
    Token
        The token with this visit counted.
    scale : float
        The estimate of s̄ / s_i.
    """
    total = token.inverse_importance_sum + 1.0 / divisor
    mean = (token.updates + 1) / total
    return token._replace(inverse_importance_sum=total), mean / divisor


def improve(
    problem: Problem,
    step_size: StepSize,
    token: Token,
    scale: float,
    picks: Array,
    protect: Protect | None = None,
    average: bool = True,
) -> tuple[Token, Visit]:
    """Do what a visit does to the token, except for passing it on.

    Of the problem only this node's own rows are looked at.

    Parameters
    ----------
    problem
        What is minimised.
    step_size
        The step γ_k of the k-th update.
    token
        The token, which is at this node.
    scale
        The factor of the gradient, s̄ / s_i.
    picks
        The rows of a mini-batch.
    protect
        What the node makes of the gradient of its rows before anyone can see it.
    average
        Whether the token keeps Σ γ w.

    Returns
    -------
    Token
        The token after the update.
    Visit
        What was done.
    """
    w, k = token.model, token.updates + 1
    gamma = step_size(k)
    model, gradient = update(problem, token.node, w, gamma, scale, picks, protect)
    total, weights = token.weighted_sum, token.step_size_sum
    if average:
        total, weights = total + gamma * w, weights + gamma
    token = token._replace(model=model, updates=k, weighted_sum=total, step_size_sum=weights)
    return token, Visit(token.node, gamma, gradient, messages=0)
