"""What a node does to the token while it holds it: a visit from its own rows alone.

It is `walklearn.visit.visit`; the token itself estimates R̄. The protocol chooses the neighbour
afterwards, by the same numbers and functions. With `ModelNoise` the gradient of the rows is clipped
and noisy. Once the node has spent its contributions, a visit counts but leaves the model unchanged.

>>> from walklearn.node.agreement.plan import Plan
>>> plan = Plan.from_text('''
... name = "example"
... nodes = 3
... features = ["x"]
... target = "y"
... loss = "squared"
... step_size = { constant = 0.1 }
... updates = 10
... ''')
>>> learner = Learner.of_plan(plan, [[1.0], [2.0]], [1.0, 4.0])
>>> round(learner.smoothness, 9)       # 3 (1 + 4)
15.0
>>> line = Line(0, 1, reclaimer="ab" * 32, walk="cd" * 16)
>>> first = learner.first_token(line, np.zeros(1))
>>> token, *_ = learner.visit(first, Draws(np.array([0.5])))
>>> token.updates, token.model.round(3)
(1, array([2.7]))
"""

from __future__ import annotations

import dataclasses
import math
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from walklearn.arrays import Arrays
from walklearn.node.protocol.fields import MessageError, Vector, is_inside
from walklearn.node.protocol.tokens import (
    LEAST_CURVATURE,
    Limits,
    Line,
    Memory,
    Token,
    check_memory,
)
from walklearn.node.protocol.values import replace
from walklearn.privacy.protection import Protection
from walklearn.problem import Problem
from walklearn.updates.line_search import Pace
from walklearn.updates.sgd import Sgd
from walklearn.updates.update import Update
from walklearn.visit import Draws as VisitDraws
from walklearn.visit import NodeState, Setting, visit
from walklearn.visit import Token as Payload
from walklearn.walks import View, proposal

if TYPE_CHECKING:
    from walklearn.node.agreement.plan import Plan
    from walklearn.privacy.mechanism import Mechanism
    from walklearn.privacy.model_noise import ModelNoise


# What a release may be rounded by, of itself.
_ROUNDING = 1e-6


EPOCHS_REMEMBERED = 64  # of those that a node has given gradients to


class Draws(NamedTuple):
    """The random numbers of one visit: `uniforms` for the walk and the mini-batch, `noise` on the
    model where there is one: what `ModelNoise.draw` gives, or a simulation's normal numbers;
    `epoch` to name a new one by where the update has memory.
    """

    uniforms: Vector
    noise: NDArray[Any] | None = None
    epoch: str = ""


class Kept(NamedTuple):
    """What a node keeps of its last visit where the update has memory: h_i, and of which epoch.

    past: earlier epochs that this node has given gradients to, which are gone.
    """

    epoch: str
    slopes: Vector
    updated: int
    past: tuple[str, ...] = ()

    @property
    def given(self) -> tuple[str, ...]:
        """All epochs that this node has given gradients to, as far as it remembers."""
        return tuple(filter(None, (*self.past, self.epoch)))[-EPOCHS_REMEMBERED:]

    def forgotten(self) -> Kept:
        """What is kept once it belongs to no epoch: tokens have newer gradients of this node."""
        return Kept("", np.zeros(0), 0, self.given)


class Visited(NamedTuple):
    """What a visit leaves: the token, how often the node has contributed now, what it keeps."""

    token: Token
    contributions: int
    kept: Kept | None = None


def epoch_of(token: Token, kept: Kept | None, draws: Draws, size: int) -> tuple[Memory, bool]:
    """The epoch of a visit, and whether what the node keeps belongs to it.

    A token that lost its memory begins a new one: gradients are 0, and since first visits would
    throw off a model that has come far, it stays until all nodes were visited, or those that are
    there to be (`Pace.has_come_round`). So does a token whose sum has a gradient of this node that
    the node no longer keeps: another line came between.
    """
    memory, given = token.memory, () if kept is None else kept.past
    if memory is None or memory.epoch in given:
        return Memory(draws.epoch, np.zeros(size), collects=token.updates > 0), False
    return memory, kept is not None and kept.epoch == memory.epoch


class DivergedError(ArithmeticError):
    """An update has left the numbers that can be computed with: the step size is too large."""


@dataclass(frozen=True, eq=False)
class Learner:
    """A node's part of the learning: its rows, its importance, and what the plan says of both.

    importance: what neighbours are told and the walk follows: R_i as released, L_i in the clear,
    or 1 where the walk asks for none.
    noise: on what a visit adds to the model; may_contribute: how often the rows may show in it,
    the cap of the noise or less if the node's budget is smaller.
    simulated: the noise on the model is made of a seed's normal numbers, and protects nobody.
    mechanism: what releases L_i; left out it is calibrated when it is asked for, which takes long.
    """

    problem: Problem
    plan: Plan
    importance: float = 1.0
    noise: ModelNoise | None = None
    may_contribute: int = 0
    simulated: bool = False
    mechanism: Mechanism | None = None

    @classmethod
    def of_plan(
        cls,
        plan: Plan,
        X: ArrayLike,
        y: ArrayLike,
        importance: float | None = None,
        noise: ModelNoise | None = None,
        may_contribute: int | None = None,
        simulated: bool = False,
    ) -> Learner:
        """The part of the node with these rows.

        importance: what was released of L_i; left out, the weighted walk takes L_i itself.
        """
        if noise is not None and plan.tells and not (plan.privacy and plan.privacy.is_claimed):
            raise ValueError(
                f"the {plan.walk} walk tells L_i in the clear, so noise on the model would protect "
                "nothing: release L_i by a mechanism, or use the uniform walk."
            )
        if noise is not None:
            noise.check_batch(plan.batch)
        problem = own_problem(plan, X, y)
        if not plan.tells:
            importance = 1.0
        elif importance is None:
            importance = problem.smoothness(0)
        most = noise.max_contributions if noise is not None else 0
        cap = most if may_contribute is None else min(most, may_contribute)
        return cls(problem, plan, importance, noise, cap, simulated)

    @property
    def smoothness(self) -> float:
        """L_i, which never leaves the node but through its release."""
        return float(self.problem.exact_smoothness[0])

    @cached_property
    def setting(self) -> Setting:
        """The fixed inputs of this node's visits."""
        plan, privacy = self.plan, Protection() if self.noise is None else self.noise
        update = plan.memory
        if update is None:
            assert plan.step_size is not None
            update = Sgd(plan.step_size, plan.average)
        objective = self.problem if plan.batch is None else self.problem.with_batch(plan.batch)
        if self.noise is not None and self.may_contribute:
            privacy = dataclasses.replace(self.noise, max_contributions=self.may_contribute)
        walk: Any = plan.metropolis
        if self.noise is not None and plan.tells:  # released by the plan's mechanism
            released = np.full(plan.nodes, self.importance)
            walk = dataclasses.replace(walk, importance=released, public=True)
        return Setting(objective, walk, update, privacy=privacy, updates=plan.updates)

    def _view(self, token: Token) -> View:
        """The node's view without neighbours: the protocol chooses among them afterwards."""
        own = (self.importance, self.importance)
        nobody = np.zeros(0, dtype=np.int64)
        return View(
            0, self.plan.nodes, token.updates, 0, nobody, own, (), lambda _: {}, lambda _: nobody
        )

    def _visit(
        self, token: Token, walk: Arrays, update: Arrays, state: NodeState, draws: Draws
    ) -> tuple[Payload, NodeState]:
        """Make a visit with these arrays, and refuse a model that cannot be computed with."""
        setting = self.setting
        payload = Payload(0, token.updates, token.updates, walk, update)
        rows = draws.uniforms[1:].reshape(setting.update.gradients, setting.objective.draws)
        noise = np.zeros((1, 0)) if draws.noise is None else draws.noise[None]
        numbers = VisitDraws(draws.uniforms[:1], rows, noise)
        with np.errstate(over="ignore", invalid="ignore"):
            payload, state, _, _ = visit(setting, self._view(token), payload, state, numbers)
            self._check(payload)
        return payload, state

    @cached_property
    def limits(self) -> Limits:
        """What a token may be."""
        return Limits.of_plan(self.plan)

    @property
    def draws(self) -> int:
        """How many uniform numbers a visit uses: the walk's, then one for each picked row."""
        return 1 + (self.plan.batch or 0)

    def first_token(self, line: Line, model: Vector) -> Token:
        """A token that nobody has improved yet."""
        return Token(line, 0, 0, model, np.zeros(self.limits.sums), 0.0, 0.0)

    def initial_model(self, walk: str) -> Vector:
        """The start w¹ of a walk whose starter is gone: the same on every node, by its name."""
        generator = np.random.default_rng(int(walk, 16))
        model = self.plan.domain.sample(self.plan.size, generator)
        return np.asarray(model, dtype=np.float64)

    def visit(
        self,
        token: Token,
        draws: Draws,
        contributions: int = 0,
        kept: Kept | None = None,
    ) -> Visited:
        """Make this node's update; return the token, the contributions and what is kept."""
        if self.plan.memory is not None:
            return self._remember(self.plan.memory, token, draws, contributions, kept)
        if self.noise is not None and draws.noise is None:
            raise ValueError("a visit with noise on the model needs that noise.")
        arrays: Arrays = {"model": token.model}
        if self.plan.average:
            arrays["weighted_sum"] = token.weighted_sum
            arrays["step_size_sum"] = np.asarray(token.step_size_sum)
        walk = {"inverse_sum": np.asarray(token.inverse_importance_sum)}
        spent: Arrays = {}
        if self.noise is not None:
            # With a budget of no contributions at all, the cap counts as reached.
            used = contributions if self.may_contribute else self.noise.max_contributions
            spent = {"contributions": np.asarray(used)}
        payload, state = self._visit(token, walk, arrays, NodeState({}, {}, spent), draws)
        new = payload.update
        improved = replace(
            token,
            updates=payload.updates,
            model=new["model"],
            weighted_sum=new.get("weighted_sum", token.weighted_sum),
            step_size_sum=float(new.get("step_size_sum", 0.0)),
            inverse_importance_sum=float(payload.walk["inverse_sum"]),
        )
        if self.noise is not None and self.may_contribute:
            contributions = int(state.privacy["contributions"])
        return Visited(improved, contributions)

    def _remember(
        self,
        update: Update,
        token: Token,
        draws: Draws,
        contributions: int,
        kept: Kept | None,
    ) -> Visited:
        """Make a visit with memory, in a new epoch if that of the token cannot go on.

        It cannot where all nodes are counted already and this one keeps nothing of the epoch: its
        disk is new or was put back, and the sum holds a gradient of it that it does not know.
        """
        visited, wrong = self._remembered(update, token, draws, contributions, kept)
        if wrong and token.memory is not None:
            token = replace(token, memory=None)
            visited, wrong = self._remembered(update, token, draws, contributions, kept)
        if wrong:
            raise DivergedError(f"update {visited.token.updates} cannot be remembered: {wrong}")
        return visited

    def _remembered(
        self,
        update: Update,
        token: Token,
        draws: Draws,
        contributions: int,
        kept: Kept | None,
    ) -> tuple[Visited, str]:
        """Make a visit in the token's epoch or a new one; return also why it is not kept, if so."""
        memory, belongs = epoch_of(token, kept, draws, self.problem.size)
        pace = Pace(memory.nodes, memory.ages, memory.squared_ages)
        # A node that is gone for good is not waited for.
        collects = memory.collects and not pace.has_come_round(self.plan.nodes)
        carried: Arrays = {
            "model": token.model,
            "gradient_sum": memory.gradient_sum,
            "nodes": np.asarray(pace.nodes),
            "ages": np.asarray(pace.ages),
            "squared_ages": np.asarray(pace.squared_ages),
            "curvature": np.asarray(memory.curvature),
            "collects": np.asarray(collects),
        }
        before = self.setting.init_node(0)
        if belongs and kept is not None:
            stored = {"slopes": kept.slopes, "updated": np.asarray(kept.updated)}
            before = before._replace(update=stored)
        walk = {"inverse_sum": np.zeros(())}
        payload, state = self._visit(token, walk, carried, before, draws)
        known = payload.update
        # Where no row has a gradient any more L̂ decays without end; the next one finds it anew.
        curvature = float(known["curvature"])
        curvature = curvature if curvature >= LEAST_CURVATURE else 0.0
        nodes, ages, squares = (float(known[name]) for name in ("nodes", "ages", "squared_ages"))
        memory = Memory(
            memory.epoch, known["gradient_sum"], nodes, ages, squares, curvature,
            bool(known["collects"]),
        )  # fmt: skip
        improved = replace(token, updates=payload.updates, model=known["model"], memory=memory)
        past = () if kept is None else kept.past if belongs else kept.given
        keeps = Kept(memory.epoch, state.update["slopes"], int(state.update["updated"]), past)
        visited = Visited(improved, contributions, keeps)
        try:
            with np.errstate(over="ignore", invalid="ignore"):
                check_memory(memory, self.limits)
        except MessageError as error:
            return visited, str(error)
        return visited, ""

    def _check(self, payload: Payload) -> None:
        """Refuse a model that can no longer be computed with."""
        if not is_inside(payload.update["model"], self.problem.domain):
            raise DivergedError(
                f"update {payload.updates} gives a model that is not finite or far too large: "
                "the plan needs a smaller step size or a domain."
            )

    def disbelief(self, importance: float, degree: int) -> str:
        """Why a neighbour cannot have this importance and degree; empty if it can."""
        if not 1 <= degree < max(2, self.plan.nodes):
            return f"degree {degree} among {self.plan.nodes} nodes"
        lowest, highest = self._importances
        if not lowest <= importance <= highest:
            return f"importance {importance:g} outside [{lowest:g}, {highest:g}]"
        return ""

    @cached_property
    def _importances(self) -> tuple[float, float]:
        """Between what numbers any node's importance lies, by the plan."""
        if not self.plan.tells:
            return 1.0, 1.0
        mechanism = self.mechanism or self.plan.calibrated_mechanism()
        if mechanism is None:  # in the clear: L_i is at least the penalty
            low, high = self.plan.penalty, math.inf
        else:
            low, high = mechanism.clamp or (0.0, mechanism.bounds[1] + 40.0 * mechanism.deviation)
        return low * (1.0 - _ROUNDING), high * (1.0 + _ROUNDING)

    def score(self, importance: float, degree: int) -> float:
        """What the walk accepts by: importance / degree, 1 / degree, for the simple walk 1.

        A neighbour's word on its importance counts for the weighted walk only.
        """
        return proposal.score(self.plan.metropolis.visit_weight(importance, max(degree, 1)), degree)


def own_problem(plan: Plan, X: ArrayLike, y: ArrayLike) -> Problem:
    """One node's share of the plan's problem: it is node 0 here, the others' rows are elsewhere.

    The rows were checked when the node read them.
    """
    return Problem(
        X, y, loss=plan.training_loss, penalty=plan.penalty, domain=plan.domain,
        node_of_row=np.zeros(len(np.asarray(y)), dtype=np.int64), nodes=plan.nodes,
        aggregate=plan.aggregate, empty_nodes="relay",
        total_rows=plan.rows if plan.aggregate == "mean" else None,
        assume_finite=True,
    )  # fmt: skip
