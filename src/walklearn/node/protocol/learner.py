"""The visit of a token to a node, which uses the rows of this node only.

It is `walklearn.visit.visit`, of the token's payload and of the arrays that the node keeps; the
token itself estimates R̄. With `ModelNoise` the gradient of the rows is clipped and noisy. Once the
node has spent its contributions, a visit counts but leaves the model unchanged.

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

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from walklearn.arrays import Arrays
from walklearn.node.agreement.plan import Plan
from walklearn.node.protocol.fields import MessageError, Vector, is_inside
from walklearn.node.protocol.tokens import MIN_CURVATURE, Limits, Line, Token, check_memory
from walklearn.objectives import Problem
from walklearn.privacy.model_noise import ModelNoise
from walklearn.privacy.protection import Protection
from walklearn.updates.line_search import ReturnTimes
from walklearn.updates.saga import SCALARS
from walklearn.updates.sgd import Sgd
from walklearn.visit import Draws as VisitDraws
from walklearn.visit import Setting, init_token, visit
from walklearn.walks import View

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
    """The arrays that a node keeps of the update, and the epoch that they belong to.

    past: earlier epochs that this node has given gradients to, which are gone.
    """

    epoch: str
    state: Arrays
    past: tuple[str, ...] = ()

    @property
    def given(self) -> tuple[str, ...]:
        """All epochs that this node has given gradients to, as far as it remembers."""
        return tuple(filter(None, (*self.past, self.epoch)))[-EPOCHS_REMEMBERED:]

    def forgotten(self) -> Kept:
        """Return the state without its epoch: tokens have newer gradients of this node."""
        return Kept("", {}, self.given)


class Visited(NamedTuple):
    """Result of a visit at a node.

    contributions: how often the node has contributed now. kept: what it keeps. next_node: the
    walk's choice, by its number in the view; 0 to stay.
    """

    token: Token
    contributions: int
    kept: Kept | None = None
    next_node: int = 0


def epoch_of(token: Token, kept: Kept | None, draws: Draws) -> tuple[str, bool]:
    """Return the epoch of a visit, and whether the arrays of the node belong to it.

    A token without an epoch begins one. So does a token whose sum has a gradient of this node that
    the node no longer keeps: another line came between.
    """
    if not token.epoch or (kept is not None and token.epoch in kept.past):
        return draws.epoch, False
    return token.epoch, kept is not None and kept.epoch == token.epoch


class DivergedError(ArithmeticError):
    """An update has left the numbers that can be computed with: the step size is too large."""


@dataclass(frozen=True, eq=False)
class Learner:
    """A node's part of the learning: its rows, its importance, and what the plan says of both.

    importance: what neighbours are told and the walk follows: R_i as released, L_i in the clear,
    or 1 where the walk asks for none.
    noise: on what a visit adds to the model; may_contribute: how often the rows may show in it,
    the cap of the noise or less if the node's budget is smaller.
    """

    problem: Problem
    plan: Plan
    importance: float = 1.0
    noise: ModelNoise | None = None
    may_contribute: int = 0

    @classmethod
    def of_plan(
        cls,
        plan: Plan,
        X: ArrayLike,
        y: ArrayLike,
        importance: float | None = None,
        noise: ModelNoise | None = None,
        may_contribute: int | None = None,
    ) -> Learner:
        """The part of the node with these rows.

        importance: what was released of L_i; left out, the weighted walk takes L_i itself.
        """
        if noise is not None and plan.reveals_rows and not plan.privacy.asks:
            raise ValueError(
                f"the {plan.walk} walk discloses L_i in the clear, so noise on the model would "
                "protect nothing. Release L_i by a mechanism, or use the uniform walk."
            )
        if noise is not None:
            noise.check_batch(plan.batch)
        problem = own_problem(plan, X, y)
        if not plan.reveals_rows:
            importance = 1.0
        elif importance is None:
            importance = problem.smoothness(0)
        most = noise.max_contributions if noise is not None else 0
        cap = most if may_contribute is None else min(most, may_contribute)
        return cls(problem, plan, importance, noise, cap)

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
            privacy = replace(self.noise, max_contributions=self.may_contribute)
        walk: Any = plan.metropolis
        if self.noise is not None and plan.reveals_rows:  # released by the plan's mechanism
            released = np.full(plan.nodes, self.importance)
            walk = replace(walk, importance=released, public=True)
        if update.converges:  # it ignores weights, so the token estimates no mean
            walk = walk.bound(scale=np.ones(plan.nodes))
        return Setting(objective, walk, update, privacy=privacy, updates=plan.updates)

    def view(self, visits: int, announced: Sequence[tuple[float, ...]] = ()) -> View:
        """Return the node's view of the network: it is node 0, its neighbours are 1, 2 and so on.

        visits: those that the token has made. announced: what each neighbour announced.
        """
        neighbours = np.arange(1, len(announced) + 1)
        own = self.plan.metropolis.announcement(self.importance, len(announced))
        return View(
            0, self.plan.nodes, visits, 0, neighbours, own, announced, lambda _: {},
            lambda _: neighbours[:0],
        )  # fmt: skip

    @cached_property
    def limits(self) -> Limits:
        """Limits of a valid token."""
        return Limits.of_plan(self.plan)

    @property
    def draws(self) -> int:
        """The number of uniform numbers per visit: the walk's, then one for each drawn row."""
        return 1 + (self.plan.batch or 0)

    def first_token(self, line: Line, model: Vector) -> Token:
        """A token that nobody has improved yet."""
        return Token(line, 0, init_token(self.setting, model))

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
        view: View | None = None,
    ) -> Visited:
        """Make this node's update and choose the next node, which is itself without a view.

        A new epoch begins if that of the token cannot continue: all nodes are counted already and
        this one keeps nothing of the epoch. Its disk is new or was put back, and the sum holds a
        gradient of it that it does not know.
        """
        if self.noise is not None and draws.noise is None:
            raise ValueError("a visit with noise on the model needs that noise.")
        view = view or self.view(token.updates)
        try:
            return self._visit(token, draws, contributions, kept, view)
        except MessageError as error:
            if not token.epoch:
                update = token.updates + 1
                raise DivergedError(f"update {update} cannot be remembered: {error}") from None
        return self.visit(replace(token, epoch=""), draws, contributions, kept, view)

    def _visit(
        self, token: Token, draws: Draws, contributions: int, kept: Kept | None, view: View
    ) -> Visited:
        """Make a visit in the token's epoch, or in a new one."""
        setting, payload, before = self.setting, token.payload, self.setting.init_node(0)
        remembers, epoch, belongs = self.plan.memory is not None, "", False
        if remembers:
            epoch, belongs = epoch_of(token, kept, draws)
            payload = payload._replace(update=self._carried(token, epoch))
        if belongs and kept is not None:
            before = before._replace(update=kept.state)
        if self.noise is not None:
            # With a budget of no contributions at all, the cap counts as reached.
            used = contributions if self.may_contribute else self.noise.max_contributions
            before = before._replace(privacy={"contributions": np.asarray(used)})
        rows = draws.uniforms[1:].reshape(setting.update.gradients, setting.objective.draws)
        noise = np.zeros((1, 0)) if draws.noise is None else draws.noise[None]
        numbers = VisitDraws(draws.uniforms[:1], rows, noise)
        with np.errstate(over="ignore", invalid="ignore"):
            payload, after, hop, _ = visit(setting, view, payload, before, numbers)
            if not is_inside(payload.update["model"], self.problem.domain):
                raise DivergedError(
                    f"update {payload.updates} gives a model that is not finite or far too large: "
                    "the plan needs a smaller step size or a domain."
                )
            if remembers:
                # If no row has a gradient any more L̂ decays without end; the next one finds it.
                if not payload.update["curvature"] >= MIN_CURVATURE:
                    payload.update["curvature"] = np.zeros(())
                check_memory(payload.update, self.limits)
        if self.noise is not None and self.may_contribute:
            contributions = int(after.privacy["contributions"])
        past = () if kept is None else kept.past if belongs else kept.given
        keeps = Kept(epoch, after.update, past) if remembers else None
        improved = replace(token, payload=payload, epoch=epoch)
        return Visited(improved, contributions, keeps, hop.node)

    def _carried(self, token: Token, epoch: str) -> Arrays:
        """Return the update's arrays as a visit in this epoch takes them.

        After a loss first visits would throw off a model that has come far. So it waits until all
        nodes were visited; a node that is gone for good is not waited for.
        """
        arrays, setting = token.payload.update, self.setting
        if epoch == token.epoch:
            times = ReturnTimes(*(float(arrays[name]) for name in SCALARS[:3]))
            is_over = times.missing_nodes_are_absent(self.plan.nodes)
            return arrays | {"collects": np.asarray(False)} if is_over else arrays
        if not token.updates:
            return init_token(setting, token.model).update
        return setting.update.restart(setting.objective, arrays, token.line.counter)


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
