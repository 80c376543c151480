"""Events, which can happen to a node, and effects, by which it acts.

An event brings everything the protocol must not fetch itself: the time (`now`, in seconds of a
clock that never jumps) and the random numbers of a visit. Effects are carried out in their
order, and each `Commit` must be on disk before the effect after it begins.
"""

from __future__ import annotations

from typing import NamedTuple

from walklearn.node.protocol.fields import Vector
from walklearn.node.protocol.learner import Draws
from walklearn.node.protocol.messages import Announcement, Receipt
from walklearn.node.protocol.record import Record
from walklearn.node.protocol.tokens import Mark, Token


class Started(NamedTuple):
    """The process runs (again)."""

    now: float


class Tick(NamedTuple):
    """Time has passed; due at `state.wakes_at`, harmless at any other time."""

    now: float


class NewNeighbours(NamedTuple):
    """The list of neighbours is now this one."""

    neighbours: tuple[str, ...]


class NeighbourUp(NamedTuple):
    """The neighbour answered a greeting: `ours` was announced to it, `theirs` is its answer.

    seconds: how long the answer took.
    """

    neighbour: str
    ours: Announcement
    theirs: Announcement
    now: float
    seconds: float = 0.0


class NeighbourDown(NamedTuple):
    """The neighbour does not answer, or its plan differs."""

    neighbour: str


class Announced(NamedTuple):
    """The neighbour greeted this node, which answers with `state.announcement(neighbour, now)`."""

    neighbour: str
    theirs: Announcement
    now: float


class TokenArrived(NamedTuple):
    """A neighbour hands the token over. The visit is made at once, so its draws come along."""

    sender: str
    token: Token
    draws: Draws
    now: float


class Visit(NamedTuple):
    """The token is here and `state.wants_visit`: work on it once more."""

    draws: Draws
    now: float


class Answered(NamedTuple):
    """The receiver's receipt for the token of that mark."""

    mark: Mark
    receipt: Receipt
    now: float


class NotSent(NamedTuple):
    """This attempt certainly did not reach the receiver, for example: no connection."""

    mark: Mark
    now: float


class Unknown(NamedTuple):
    """No receipt came: whether this attempt reached the receiver cannot be known."""

    mark: Mark
    now: float


class FinalArrived(NamedTuple):
    """A neighbour tells the final model."""

    sender: str
    token: Token
    now: float


class FinalAnswered(NamedTuple):
    """The neighbour's receipt for the final model; None if there was none."""

    neighbour: str
    receipt: Receipt | None


class StartWalk(NamedTuple):
    """The owner begins a walk with this name and first model.

    force: also where a line was heard of, if no model of it was ever here.
    """

    walk: str
    model: Vector
    now: float
    force: bool = False


class ResumeWalk(NamedTuple):
    """The owner goes on from the newest model seen here."""

    now: float


class StopAsked(NamedTuple):
    """The process is asked to end; it may when `state.may_stop`."""


class StoreFailed(NamedTuple):
    """A `Commit` that this event led to failed: nothing of it was written, and the state is still
    that before the event.
    """

    event: Event
    reason: str
    now: float


Event = (
    Started | Tick | NewNeighbours | NeighbourUp | NeighbourDown | Announced | TokenArrived
    | Visit | Answered | NotSent | Unknown | FinalArrived | FinalAnswered | StartWalk | ResumeWalk
    | StopAsked | StoreFailed
)  # fmt: skip


# Work that ends in an update.
Work = TokenArrived | Visit


class Commit(NamedTuple):
    """Write the record durably, all of it or nothing, before the next effect."""

    record: Record


class Remember(NamedTuple):
    """Write the record with the next commit, or soon: if it is lost in a crash, only work is."""

    record: Record


class Reply(NamedTuple):
    """Answer the call that the event came from: `TokenArrived`, `FinalArrived`, the owner's."""

    receipt: Receipt


class SendToken(NamedTuple):
    """Try to hand over; one of `Answered`, `NotSent` and `Unknown` must follow, in bounded time."""

    receiver: str
    token: Token


class SendFinal(NamedTuple):
    """Tell the final model; `FinalAnswered` must follow."""

    neighbour: str
    token: Token


class Greet(NamedTuple):
    """Greet the neighbour now, with `state.announcement(neighbour, now)`: it has changed."""

    neighbour: str


class Note(NamedTuple):
    """For the log and the metrics; nothing here tells of rows, gradients or L_i.

    neighbour: whom it is about; such a note is a warning.
    """

    what: str
    detail: str = ""
    neighbour: str = ""


Effect = Commit | Remember | Reply | SendToken | SendFinal | Greet | Note
