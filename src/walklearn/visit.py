"""One visit of a token to a node: read this first.

A *walk* chooses the next node, an *update* changes the token during a visit, an *objective* defines
the loss, and a *protection* limits the access of a visit to the objective. `visit` puts the four
together. Simulations, estimators and networks of real nodes all call it. `simulation.kernels` is
its compiled twin, which must give the same numbers from the same draws.

>>> import numpy as np
>>> from walklearn import PowerStep, Problem, graphs, updates, walks
>>> problem, ring = Problem([[1.0], [2.0], [3.0]], [1.0, -1.0, 1.0], penalty=1.0), graphs.ring(3)
>>> walk = walks.Uniform().bind(ring, problem)
>>> setting = Setting(problem, walk, updates.Sgd(PowerStep(0.1)))
>>> generator = np.random.default_rng(1)
>>> node, model = updates.draw_start(problem, generator)
>>> walker = Walker(setting, ring, node, init_token(setting, model))
>>> for _ in range(100):
...     hop, weight = walker.visit(setting.draw(generator, generator))
>>> walker.token.updates, walker.token.update["model"].round(2)
(100, array([0.28]))
"""

from __future__ import annotations

from bisect import bisect_left
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np

from walklearn.arrays import Array, Arrays, Specs, checked_specs, conform, zeros
from walklearn.checks import check_whole
from walklearn.errors import check_needs
from walklearn.graphs import Graph
from walklearn.privacy.protection import ObjectiveView, Protection
from walklearn.updates.update import Update, VisitContext, VisitResult
from walklearn.walks.disclosure import check_disclosure_known, check_protectable, mechanism_of
from walklearn.walks.view import Hop, View, view_of
from walklearn.walks.walk import Walk

INTEGERS = (int, np.integer)


class Token(NamedTuple):
    """The token: its counts, and the declared arrays of walk and update.

    Parameters
    ----------
    slot, visits, updates
        The number of the token, its visits so far and its updates so far. A visit with weight 0 is
        no update.
    walk, update
        The arrays of walk and update.
    """

    slot: int
    visits: int
    updates: int
    walk: Arrays
    update: Arrays


class NodeState(NamedTuple):
    """The declared arrays that a node stores between visits.

    Parameters
    ----------
    walk, update, privacy
        The arrays of walk, update and protection.
    """

    walk: Arrays
    update: Arrays
    privacy: Arrays


class Draws(NamedTuple):
    """The random numbers of one visit. Every visit draws all of them.

    Parameters
    ----------
    walk, gradients
        Uniform numbers for the walk, and for each gradient.
    noise
        The protection's noise for each gradient: exact on a real node, otherwise from a seed.
    """

    walk: Array
    gradients: Array
    noise: Array


@dataclass(frozen=True, eq=False)
class Setting:
    """The fixed inputs of a run, checked once.

    Parameters
    ----------
    objective, walk, update
        The objective, and the rules for the next node and for the token.
    privacy
        The protection of the rows; none by default.
    tokens, updates
        The number of tokens, and the number of updates planned for each; 0 if unknown.
    """

    objective: Any
    walk: Walk
    update: Update
    privacy: Protection = field(default=Protection(), kw_only=True)
    tokens: int = field(default=1, kw_only=True)
    updates: int = field(default=0, kw_only=True)
    _node_specs: dict[int, tuple[Specs, Specs, Specs]] = field(
        default_factory=dict, init=False, repr=False
    )

    def __post_init__(self) -> None:
        objective, privacy = self.objective, self.privacy
        check_whole(f"draws of {self.walk!r}", self.walk.draws, minimum=0)
        gradients, cap = self.update.gradients, getattr(privacy, "max_contributions", None)
        check_whole(f"gradients of {self.update!r}", gradients)
        if cap is not None and cap < gradients:
            raise ValueError(
                f"a visit of {self.update!r} takes {gradients} gradients, but {privacy!r} allows a "
                f"node {cap} in total, so no visit changes the model. Raise max_contributions."
            )
        if check_whole("tokens", self.tokens) > 1 and not self.update.shares_sum:
            raise ValueError(
                f"{self.tokens} tokens of {self.update!r} would not share anything, so their "
                "models would be no better than one. Use tokens=1 or updates.Finito()."
            )
        self.walk.check_run(objective.nodes, self.update, self.updates)
        check_needs(self.walk, objective)
        check_needs(privacy, objective)
        spent = zeros(privacy.node_arrays(objective))
        noise = np.zeros((gradients, objective.size))
        check_needs(self.update, privacy.view(objective, 0, spent, noise), self.walk)
        releases = mechanism_of(self.walk) is not None
        if releases:
            check_disclosure_known(self.walk)
        if privacy.adds_noise:
            check_protectable(self.walk)
        if self.update.token_disclosure and releases:
            raise ValueError(
                f"{self.update!r} makes the release of L_i useless: "
                f"{self.update.token_disclosure}. Use updates.Sgd(step_size)."
            )

    @cached_property
    def draws(self) -> int:
        """The number of uniform numbers per visit: the walk's, then those of each gradient."""
        return self.walk.draws + self.update.gradients * int(self.objective.draws)

    @cached_property
    def objective_view(self) -> Any:
        """The objective as updates see it outside a visit: without its rows under noise."""
        noisy = self.privacy.adds_noise
        return ObjectiveView(self.objective, self.privacy) if noisy else self.objective

    @cached_property
    def token_specs(self) -> tuple[Specs, Specs]:
        """The arrays of walk and update on the token."""
        objective, update = self.objective_view, self.update
        update_specs = checked_specs(update.token_arrays(objective, self.tokens), update)
        if type(update).model is Update.model and all(
            spec.name != "model" for spec in update_specs
        ):
            raise ValueError(
                f'{update!r} declares no array "model". Declare it, or override `model`.'
            )
        return checked_specs(self.walk.token_arrays(objective.nodes), self.walk), update_specs

    def node_specs(self, node: int) -> tuple[Specs, Specs, Specs]:
        """Return the arrays of walk, update and protection at a node."""
        if node not in self._node_specs:
            update = self.update.node_arrays(self.objective_view, node, self.tokens)
            self._node_specs[node] = (
                checked_specs(self.walk.node_arrays(self.tokens), self.walk),
                checked_specs(update, self.update),
                checked_specs(self.privacy.node_arrays(self.objective), self.privacy),
            )
        return self._node_specs[node]

    @cached_property
    def message_bytes(self) -> int:
        """The bytes of one message: the arrays that the algorithm needs, without a header."""
        specs = (spec for spec in self.token_specs[0] if spec.name not in self.walk.uncounted)
        return self.update.message_bytes(self.objective_view, self.tokens) + sum(
            s.nbytes for s in specs
        )

    def node_bytes(self, node: int) -> int:
        """Return the bytes that walk and update keep at a node."""
        return sum(spec.nbytes for specs in self.node_specs(node)[:2] for spec in specs)

    def init_node(self, node: int) -> NodeState:
        """Return the state of a node before its first visit: zeros."""
        return NodeState(*map(zeros, self.node_specs(node)))

    def draw(self, walk: np.random.Generator, noise: np.random.Generator | None) -> Draws:
        """Draw the random numbers of one visit. Their number is fixed, to keep streams aligned.

        `walk` is the source of uniform numbers, `noise` the source of simulated noise. If it is
        None, the noise is exact and comes from the operating system's entropy.
        """
        uniforms, count = walk.random(self.draws), self.update.gradients
        return Draws(
            uniforms[: self.walk.draws],
            uniforms[self.walk.draws :].reshape(count, self.objective.draws),
            self.privacy.draw_noise(count, self.objective.size, noise),
        )


def init_token(setting: Setting, model: Array | None = None) -> Token:
    """Return a token before its first visit.

    Parameters
    ----------
    setting, model
        The fixed inputs of the run, and the initial model of updates that do not override
        `init_token`: by default the objective's start.

    Returns
    -------
    Token
        The token, with all counts 0.
    """
    update, (walk_specs, update_specs) = setting.update, setting.token_specs
    if type(update).init_token is not Update.init_token:
        arrays = update.init_token(setting.objective_view, setting.tokens)
    else:
        arrays = zeros(update_specs)
        if "model" in arrays:
            arrays["model"] = setting.objective_view.start if model is None else model
    return Token(0, 0, 0, zeros(walk_specs), conform(update_specs, arrays, update))


def visit(
    setting: Setting, view: View, token: Token, state: NodeState, draws: Draws
) -> tuple[Token, NodeState, Hop, float]:
    """Weigh, choose the next node, update. Nothing changes in place.

    Parameters
    ----------
    setting, view
        The fixed inputs of the run, and the holder's knowledge of the network.
    token, state, draws
        The token and the state of the node before the visit, and the random numbers of the visit.

    Returns
    -------
    token, state : Token, NodeState
        The token and the state after the visit, to be committed together.
    hop, weight : Hop, float
        The next node with its cost, and the factor of the gradient.
    """
    node, walk, update = view.node, setting.walk, setting.update
    weight = walk.weight(view, token.walk, state.walk)
    if not isinstance(weight, float | int | np.number) or not 0.0 <= weight < np.inf:
        raise ValueError(
            f"{walk!r} gives node {node} the weight {weight!r}. It must be finite and at least 0."
        )
    hop = walk.hop(view, token.walk, state.walk, draws.walk)
    if not isinstance(hop, Hop):
        raise TypeError(f"hop of {walk!r} must return a walks.Hop, got {hop!r}.")
    spent, result = dict(state.privacy), VisitResult(token.update, state.update)
    privacy, objective = setting.privacy, None
    if weight > 0:
        objective = privacy.view(setting.objective, node, spent, draws.noise)
    # A protection may also return None if the budget of the node is spent.
    if objective is not None:
        context = VisitContext(
            objective, node, token.slot, weight, token.updates, setting.updates, draws.gradients
        )
        result = update.visit(context, token.update, state.update)
        if not isinstance(result, VisitResult):
            raise TypeError(
                f"visit of {update!r} must return an updates.VisitResult, got {result!r}."
            )
    token_arrays = map(conform, setting.token_specs, (hop.token, result.token), (walk, update))
    token = Token(token.slot, token.visits + 1, token.updates + (weight > 0), *token_arrays)
    arrays, parts = (hop.state, result.state, spent), (walk, update, privacy)
    state = NodeState(*map(conform, setting.node_specs(node), arrays, parts))
    return token, state, hop, weight


class Walker:
    """A token on its path over a graph, and the states of the visited nodes.

    Parameters
    ----------
    setting, graph
        The fixed inputs of the run, with the walk bound to this graph.
    node, token
        The token, and the node that holds it.
    states
        The states of nodes that were visited before. Several tokens of a run share them.
    """

    def __init__(
        self,
        setting: Setting,
        graph: Graph,
        node: int,
        token: Token,
        states: dict[int, NodeState] | None = None,
    ) -> None:
        self.setting, self.graph, self.node, self.token = setting, graph, node, token
        self.states = {} if states is None else states
        self._table = setting.walk.announcements(graph, setting.objective)

    def state(self, node: int) -> NodeState:
        """Return the state of a node."""
        return self.states.get(node) or self.setting.init_node(node)

    def visit(self, draws: Draws) -> tuple[Hop, float]:
        """Make one visit; return the hop and the weight of the gradient."""
        setting, node, token = self.setting, self.node, self.token
        view = view_of(
            setting.walk, self.graph, node, table=self._table, visits=token.visits,
            slot=token.slot, states=lambda other: self.state(other).walk,
        )  # fmt: skip
        self.token, self.states[node], hop, weight = visit(
            setting, view, token, self.state(node), draws
        )
        self._check(hop, view)
        self.node = int(hop.node)
        return hop, weight

    def _check(self, hop: Hop, view: View) -> None:
        """Raise a ValueError if the token cannot reach the node at this cost."""
        walk = self.setting.walk
        numbers = hop.node, hop.messages, hop.questions
        is_possible = all(isinstance(number, INTEGERS) for number in numbers)
        is_possible = is_possible and hop.questions >= 0 and 0 <= hop.node < view.nodes
        if is_possible and hop.messages == 1 and not walk.is_independent:
            index = bisect_left(view.neighbours, hop.node)  # far faster than `in`
            is_possible = view.neighbours[index : index + 1].tolist() == [hop.node]
        elif is_possible:
            is_possible = hop.messages > 0 or (hop.messages == 0 and hop.node == view.node)
        if not is_possible:
            raise ValueError(
                f"{walk!r} hops from node {view.node} to {hop.node!r} by {hop.messages!r} messages "
                f"and {hop.questions!r} questions. Choose one of its neighbours {view.neighbours} "
                "and 1 message, or stay."
            )
