"""What a node knows: the record that survives a crash, its links, and the handover under way.

Values, never changed in place: `protocol.handle` makes new ones.
"""

from __future__ import annotations

import enum
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from walklearn.node.protocol.learner import Learner
from walklearn.node.protocol.messages import Announcement, Line, Mark, Token
from walklearn.node.protocol.values import replace
from walklearn.walks.proposal import accepts, propose

# Lines are counted one by one. A leap longer than this is a lie, or came of one, and is made in
# steps: a single lie of the largest counter would leave no newer line for a walk to go on with.
LONGEST_LEAP = 1_000_000


class Place(enum.Enum):
    """Where the token is that this node saw last."""

    HERE = "here"
    LEAVING = "leaving"  # on its way to the receiver, who may have it
    GONE = "gone"


class Phase(enum.Enum):
    """The four states of a node."""

    IDLE = "idle"
    HOLDING = "holding"
    HANDING_OVER = "handing over"
    FINISHED = "finished"


@dataclass(frozen=True, eq=False)
class Record:
    """What survives a crash.

    newest: the newest handover this node has taken part in, or (line, 0) where it only heard of
    the line. token: the last one here, with the place it is at; if gone, still the newest model
    seen. receiver: whom it leaves for. final: the final model. contributions: how often this
    node's rows have shown in a model.
    """

    newest: Mark | None = None
    token: Token | None = None
    place: Place = Place.GONE
    receiver: str | None = None
    final: Token | None = None
    contributions: int = 0

    @property
    def newest_line(self) -> Line | None:
        """The newest line heard of."""
        return None if self.newest is None else self.newest.line

    @property
    def final_line(self) -> Line | None:
        """The line of the final model."""
        return None if self.final is None else self.final.line

    @property
    def newest_model(self) -> Token | None:
        """The final token, unless one of a newer line has been here since; None if none was."""
        seen = [token for token in (self.token, self.final) if token is not None]
        return max(seen, key=lambda token: (token.line, token.final), default=None)


@dataclass(frozen=True)
class Link:
    """What is known of a neighbour.

    up: the last call to it was answered. theirs: what it announced last. told: what it was told
    when it last answered. final_sent: the line of the final model sent to it.
    """

    up: bool = False
    theirs: Announcement | None = None
    told: Announcement | None = None
    final_sent: Line | None = None

    def usable(self, degree: int) -> bool:
        """Whether the token may cross: up for both sides, and both know the other's degree.

        Otherwise the chance to go one way and the other would not balance.
        """
        return (
            self.up
            and self.theirs is not None
            and self.theirs.reaches_you
            and self.told is not None
            and self.told.reaches_you
            and self.told.degree == degree
        )


@dataclass(frozen=True)
class Handover:
    """The handover under way: since when, and what is known of its attempts.

    doubtful: some attempt may have reached the receiver. retry_at: when to try again, None
    while an attempt is under way.
    """

    since: float
    doubtful: bool
    retry_at: float | None = None


@dataclass(frozen=True, eq=False)
class State:
    """All that a node knows; see `protocol` for what it does with it.

    fingerprint: this node's. neighbours: their fingerprints in ascending order, the order that a
    proposal counts in. refused: handovers turned down, which must stay so. rests_until: nothing is
    begun before then, after the disk or the arithmetic failed. stopping: the process is to end.
    """

    fingerprint: str
    learner: Learner
    neighbours: tuple[str, ...] = ()
    record: Record = Record()
    links: Mapping[str, Link] = field(default_factory=dict)
    handover: Handover | None = None
    refused: tuple[Mark, ...] = ()
    rests_until: float | None = None
    stopping: bool = False

    @property
    def phase(self) -> Phase:
        """Which of the four states this is."""
        record = self.record
        if record.place is Place.HERE:
            return Phase.HOLDING
        if record.place is Place.LEAVING:
            return Phase.HANDING_OVER
        if record.final is not None and record.final_line == record.newest_line:
            return Phase.FINISHED
        return Phase.IDLE

    @property
    def degree(self) -> int:
        """How many neighbours, silent ones too."""
        return len(self.neighbours)

    @property
    def wants_visit(self) -> bool:
        """Whether the token is to be worked on now.

        With no neighbour that answers it rests: alone, the node would use up the plan's updates
        in no time on its own rows, before the first neighbour is added or after its own restart.
        """
        if self.phase is not Phase.HOLDING or self.rests_until is not None:
            return False
        return self.learner.plan.nodes == 1 or any(map(self.is_usable, self.neighbours))

    @property
    def wakes_at(self) -> float | None:
        """When the next `Tick` is due; None if nothing waits for the time."""
        if self.rests_until is not None or self.handover is None:
            return self.rests_until
        reclaim = self.handover.since + self.learner.plan.time_limits.reclaim_after_seconds
        return reclaim if self.handover.retry_at is None else min(reclaim, self.handover.retry_at)

    @property
    def may_stop(self) -> bool:
        """Whether the process, asked to end, has handed the token over, or cannot."""
        if not self.stopping or self.phase is Phase.HANDING_OVER:
            return False
        return not self.wants_visit

    def is_usable(self, neighbour: str) -> bool:
        """Whether the token may go there."""
        return self.links.get(neighbour, Link()).usable(self.degree)

    def announcement(self, neighbour: str) -> Announcement:
        """What to tell that neighbour now."""
        return Announcement(
            degree=self.degree,
            importance=self.learner.importance,
            reaches_you=self.links.get(neighbour, Link()).up,
            newest=self.record.newest_line,
            final=self.record.final_line,
        )

    def next_holder(self, u: float) -> tuple[str | None, bool]:
        """Who is next by the walk's rule, None to stay; and whether a silent neighbour is why.

        Silent neighbours are proposed like the others and reject, so among those that answer the
        moves stay in detailed balance with the same law.
        """
        proposal = propose(u, self.degree, self.learner.plan.laziness)
        if proposal is None:
            return None, False
        neighbour = self.neighbours[proposal.place]
        theirs = self.links.get(neighbour, Link()).theirs
        if theirs is None or not self.is_usable(neighbour):
            return None, True
        own = self.learner.score(self.learner.importance, self.degree)
        other = self.learner.score(theirs.importance, theirs.degree)
        return (neighbour if accepts(proposal, own, other) else None), False

    def next_line(self, walk: str) -> Line:
        """A line that is newer than all heard of, and nobody else's."""
        newest = self.record.newest_line
        return Line(1 if newest is None else newest.counter + 1, self.fingerprint, walk)

    def believes(self, line: Line) -> bool:
        """Whether there can be such a line, by what is known here."""
        return line.counter <= self._largest_leap

    def heard_of_at_most(self, line: Line) -> State:
        """As `heard_of`, but one leap at a time.

        Whoever has been misled, or was away for that long, is caught up with greeting by greeting.
        """
        return self.heard_of(line._replace(counter=min(line.counter, self._largest_leap)))

    @property
    def _largest_leap(self) -> int:
        newest = self.record.newest_line
        return LONGEST_LEAP + (0 if newest is None else newest.counter)

    def proves_arrival(self, mark: Mark) -> bool:
        """Whether that handover, or one after it, shows that the offer under way was taken."""
        offered = self.record.newest
        if offered is None or self.phase is not Phase.HANDING_OVER:
            return False
        return mark.line == offered.line and mark >= offered

    def heard_of(self, line: Line) -> State:
        """A token of an older line dies here; what was contributed to it stays counted."""
        record = self.record
        if record.newest_line is not None and line <= record.newest_line:
            return self
        record = replace(record, newest=Mark(line, 0), place=Place.GONE, receiver=None)
        return replace(self, record=record, handover=None)

    def with_link(self, neighbour: str, **changes: Any) -> Mapping[str, Link]:
        """The links with some facts about one neighbour changed."""
        return {**self.links, neighbour: replace(self.links.get(neighbour, Link()), **changes)}
