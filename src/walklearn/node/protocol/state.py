"""State of a node: the record that survives a crash, its links, and the progress of the walk.

Values, never changed in place: `protocol.handle` makes new ones.
"""

from __future__ import annotations

import enum
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from walklearn.node.agreement.plan import TimeLimits
from walklearn.node.protocol import pace
from walklearn.node.protocol.learner import Learner
from walklearn.node.protocol.messages import Announcement, Progress
from walklearn.node.protocol.pace import Longest, Sighting
from walklearn.node.protocol.record import Place, Record
from walklearn.node.protocol.tokens import Line, Mark, Token
from walklearn.walks import View


class Phase(enum.Enum):
    """The four states of a node."""

    IDLE = "idle"
    HOLDING = "holding"
    HANDING_OVER = "handing over"
    FINISHED = "finished"


@dataclass(frozen=True)
class Link:
    """Knowledge about a neighbour.

    up: the last call to it was answered. theirs: what it announced last. acknowledged: what this
    node announced to it when it last answered. answers: how long its latest answers took.
    final_sent: the digest of the final model sent to it.
    """

    up: bool = False
    theirs: Announcement | None = None
    acknowledged: Announcement | None = None
    answers: Longest = Longest(0.0)  # noqa: RUF009
    final_sent: str = ""

    def usable(self, degree: int) -> bool:
        """True if the token may cross: both sides are up and know each other's degree.

        Otherwise the chance to go one way and the other would not balance.
        """
        return (
            self.up
            and self.theirs is not None
            and self.theirs.reaches_you
            and self.acknowledged is not None
            and self.acknowledged.reaches_you
            and self.acknowledged.degree == degree
        )


@dataclass(frozen=True)
class Handover:
    """The handover under way: since when, and what is known of its attempts.

    doubtful: some attempt may have reached the receiver. retry_at: when to try again, None
    while an attempt is under way. attempts: how many had no answer. there_at: when the receiver,
    after the first without an answer, answered a greeting and was sent the token again.
    """

    since: float
    doubtful: bool
    retry_at: float | None = None
    attempts: int = 0
    there_at: float | None = None


@dataclass(frozen=True, eq=False)
class State:
    """State of a node, on which `protocol` acts.

    `fingerprint` is this node's own. `neighbours` are the others' in ascending order, which is the
    order that a proposal counts in. What was turned down is in `refused`, and must stay so. Nothing
    is begun before `rests_until`, after the disk or the arithmetic failed. `stopping` says that the
    process is to end.

    `seen` is how far the walk has come, `returns` how long nothing moved recently. `sent_to` has
    the mark of the last token or final model that this process sent to each neighbour, to removed
    ones too, for they remember it. `began` is the newest mark that was on the disk when the process
    began.
    """

    fingerprint: str
    learner: Learner
    neighbours: tuple[str, ...] = ()
    record: Record = field(default_factory=Record)
    links: Mapping[str, Link] = field(default_factory=dict)
    handover: Handover | None = None
    refused: tuple[Mark, ...] = ()
    rests_until: float | None = None
    stopping: bool = False
    seen: Sighting | None = None
    returns: Longest = Longest(1.0)  # noqa: RUF009
    sent_to: Mapping[str, Mark] = field(default_factory=dict)
    began: Mark | None = None

    @property
    def phase(self) -> Phase:
        """Which of the four states this is."""
        if self.record.final is not None:
            return Phase.FINISHED
        if self.record.place is Place.HERE:
            return Phase.HOLDING
        return Phase.IDLE if self.record.place is Place.GONE else Phase.HANDING_OVER

    @property
    def degree(self) -> int:
        """The number of neighbours, silent ones included."""
        return len(self.neighbours)

    @property
    def wants_visit(self) -> bool:
        """True if a visit is due.

        With no neighbour that answers it rests: alone, the node would use up the plan's updates
        in no time on its own rows, before the first neighbour is added or after its own restart.
        """
        if self.phase is not Phase.HOLDING or self.rests_until is not None:
            return False
        return self.learner.plan.nodes == 1 or any(map(self.is_usable, self.neighbours))

    @property
    def wakes_at(self) -> float | None:
        """When the next `Tick` is due; None if nothing waits for the time."""
        if self.rests_until is not None:
            return self.rests_until
        if self.handover is None:
            return self.resumes_at
        reclaim, retry = self.reclaims_at, self.handover.retry_at
        return reclaim if retry is None else min(reclaim, retry)

    @property
    def reclaims_at(self) -> float:
        """When the handover under way is given up; who has just come back has time to answer."""
        assert self.handover is not None
        known = (self._time_limits, self._answers_of(self.record.receiver), self._token_bytes)
        due = self.handover.since + pace.reclaim_after(*known)
        there_at = self.handover.there_at
        return due if there_at is None else max(due, there_at + pace.answer_within(*known))

    @property
    def resumes_at(self) -> float | None:
        """When this node takes the walk for lost and goes on from its copy; None if it does not.

        Whoever has an older copy leaves the others more time. A node that nobody answers waits:
        alone it could only begin a line that kills the walk of all others. Without a copy it can
        start the walk anew, if that has never left its starter.
        """
        seen, copy = self.seen, self.record.newest_model
        if seen is None or self.stopping or self.phase is not Phase.IDLE:
            return None
        # The first handover renews the line, so a line of 0 updates was never offered.
        if copy is None and seen.mark.line.updates:
            return None
        limit = pace.patience(self._time_limits, self.returns)
        if not limit or not any(map(self.is_usable, self.neighbours)):
            return None
        behind = max(0.0, 1.0 - (copy.updates if copy else 0) / max(1, seen.updates))
        lots = pace.lot(self.fingerprint, seen.mark, seen.updates)
        return seen.moved_at + limit * (1.0 + lots + behind)

    def answer_within_seconds(self, neighbour: str) -> float:
        """The time limit for an answer to a final model, or to the current handover."""
        attempts = 0 if self.handover is None else self.handover.attempts
        answers = self._answers_of(neighbour)
        return pace.answer_within(self._time_limits, answers, self._token_bytes, attempts)

    def greeted_within_seconds(self, neighbour: str, attempts: int) -> float:
        """Return the time limit for the answer to a greeting, after unanswered attempts."""
        return pace.answer_within(self._time_limits, self._answers_of(neighbour), attempts=attempts)

    def _answers_of(self, neighbour: str | None) -> Longest:
        return self.link(neighbour or "").answers

    @property
    def hello_every_seconds(self) -> float:
        """The time between signs of life."""
        if self._time_limits.hello_every_seconds is not None:
            return self._time_limits.hello_every_seconds
        is_walking = self.record.newest is not None and self.phase is not Phase.FINISHED
        return pace.HELLO_WALKING if is_walking else pace.HELLO_IDLE

    @property
    def _time_limits(self) -> TimeLimits:
        return self.learner.plan.time_limits

    @property
    def _token_bytes(self) -> int:
        return self.learner.limits.largest_token

    @property
    def may_stop(self) -> bool:
        """True if the stopping process has handed the token over, or cannot."""
        if not self.stopping or self.phase is Phase.HANDING_OVER:
            return False
        return not self.wants_visit

    def is_usable(self, neighbour: str) -> bool:
        """True if the token may go there."""
        return self.link(neighbour).usable(self.degree)

    def announcement(self, neighbour: str, now: float | None = None) -> Announcement:
        """Return the announcement for that neighbour; without a time, it omits the progress."""
        return Announcement(
            degree=self.degree,
            importance=self.learner.importance,
            reaches_you=self.link(neighbour).up,
            newest=self.record.newest_line,
            final=self.record.final_line,
            progress=None if now is None else self._progress(now),
            final_digest=self.record.final_digest,
            had=self.record.memory.had.get(neighbour),
            confirmed_by=self.told_confirmations,
        )

    @property
    def told_confirmations(self) -> tuple[str, ...]:
        """The participants to tell of that have the same final model; none without a roster.

        Without a roster a node can name only its neighbours, which tell it themselves.
        """
        return (
            ()
            if self.learner.plan.roster_signer is None
            else tuple(sorted(self.record.confirmed_by))
        )

    def _progress(self, now: float) -> Progress | None:
        """The walk's progress, told only where it serves: it shows which way the token went."""
        if self.seen is None or self._time_limits.resume_after_seconds == 0.0:
            return None
        return Progress(self.seen.mark, self.seen.updates, max(0.0, now - self.seen.moved_at))

    def view(self, token: Token) -> View:
        """The walk's view of the network during a visit of this token."""
        announced = [self._announced(each) for each in self.neighbours]
        return self.learner.view(token.updates, announced)

    def _announced(self, neighbour: str) -> tuple[float, ...]:
        """A neighbour's announcement; the walk always accepts a silent neighbour."""
        theirs = self.link(neighbour).theirs
        if theirs is None or not self.is_usable(neighbour):
            return (math.inf,)
        return self.learner.plan.metropolis.announcement(theirs.importance, theirs.degree)

    def next_holder(self, number: int) -> tuple[str | None, bool]:
        """The neighbour with this number in `view`, None to stay; and whether it is silent.

        Silent neighbours are proposed like the others. The walk accepts them, and the token stays
        all the same, so among those that answer the moves stay in detailed balance.
        """
        if number == 0:
            return None, False
        neighbour = self.neighbours[number - 1]
        return (neighbour, False) if self.is_usable(neighbour) else (None, True)

    def next_line(self, walk: str, updates: int = 0) -> Line:
        """A line for a token with these updates: newer than all heard of, and nobody else's."""
        newest = self.record.newest_line
        if newest is None:
            return Line(updates, 1, self.fingerprint, walk)
        return Line(max(updates, newest.updates), newest.counter + 1, self.fingerprint, walk)

    def saw(self, mark: Mark, updates: int, now: float, age_seconds: float = 0.0) -> State:
        """Note how far the walk had come, and when; the wait for it begins anew.

        It moved after all that was known before, whatever age a neighbour claims.
        """
        known = self.seen
        if known is None:
            return replace(self, seen=Sighting(mark, updates, now))
        if (mark, updates) <= (known.mark, known.updates):
            return self
        seen = Sighting(mark, updates, max(now - age_seconds, known.moved_at))
        begun_again = mark.line.beginning != known.mark.line.beginning and updates <= known.updates
        returns = pace.longest_return(self._time_limits, self.returns, known, seen, begun_again)
        return replace(self, seen=seen, returns=returns)

    def heard_of_end(self, neighbour: str, digest: str) -> State:
        """That neighbour has the final model of this digest; none if it is empty."""
        ends = self.record.ends
        if digest == ends.get(neighbour, ""):
            return self
        others = {each: has for each, has in ends.items() if each != neighbour}
        ends = {**others, neighbour: digest} if digest else others
        return replace(self, record=replace(self.record, ends=ends))

    def heard_of_confirmations(self, digest: str, by: Sequence[str]) -> State:
        """Note who else has this final model, by a neighbour's word, if it is the one here.

        Neighbours speak for themselves. There are no more participants than the plan has nodes.
        """
        ends, known = self.record.ends, {self.fingerprint, *self.neighbours}
        new = [each for each in by if each not in known and ends.get(each) != digest]
        if not new or not digest or digest != self.record.final_digest:
            return self
        ends = {**ends, **dict.fromkeys(new[: self.learner.plan.nodes], digest)}
        return replace(self, record=replace(self.record, ends=ends))

    def proves_arrival(self, mark: Mark) -> bool:
        """True if that handover, or a later one, proves that the current offer was accepted."""
        offered = self.record.newest
        if offered is None or self.phase is not Phase.HANDING_OVER:
            return False
        return mark.line.beginning == offered.line.beginning and mark >= offered

    def heard_of(self, line: Line, now: float) -> State:
        """Note a line: a token of an older one dies here; what was contributed to it stays counted.

        That a line was renewed is learnt from its token alone, which must not die of it.
        """
        newest = self.record.newest_line
        if newest is not None and (line <= newest or line.beginning == newest.beginning):
            return self
        state = self.saw(Mark(line, 0), line.updates, now)
        record = replace(state.record, newest=Mark(line, 0), place=Place.GONE, receiver=None)
        return replace(state, record=record, handover=None)

    def answered_after(self, neighbour: str | None, seconds: float, now: float) -> State:
        """Note that the neighbour has answered, and after how long."""
        if neighbour is None or neighbour not in self.neighbours:
            return self
        answers = self._answers_of(neighbour).and_also(seconds, now)
        return replace(self, links=self.with_link(neighbour, answers=answers))

    def gave_up(self, now: float) -> State:
        """Note that the receiver of the offer under way did not answer in time."""
        receiver = self.record.receiver
        seconds = pace.unanswered(self._time_limits, self._answers_of(receiver))
        return self.answered_after(receiver, seconds, now)

    def with_link(self, neighbour: str, **changes: Any) -> Mapping[str, Link]:
        """The links, with some facts about one neighbour changed."""
        return {**self.links, neighbour: replace(self.link(neighbour), **changes)}

    def link(self, neighbour: str) -> Link:
        """The link to this neighbour; an empty one if it is unknown."""
        return self.links.get(neighbour, Link())
