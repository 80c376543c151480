"""What a node knows of its neighbours, and of the handovers between them and it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

from walklearn.node.protocol.messages import Announcement
from walklearn.node.protocol.pace import Longest
from walklearn.node.protocol.tokens import Line, Token

# How many arrivals of a line are kept in mind.
ARRIVALS_KEPT = 64


@dataclass(frozen=True)
class Link:
    """What is known of a neighbour.

    up: the last call to it was answered. theirs: what it announced last. acknowledged: what this
    node announced to it when it last answered. answers: how long its answers took of late.
    final_sent: the digest of the final model sent to it.
    """

    up: bool = False
    theirs: Announcement | None = None
    acknowledged: Announcement | None = None
    answers: Longest = Longest(0.0)  # noqa: RUF009
    final_sent: str = ""

    def usable(self, degree: int) -> bool:
        """Whether the token may cross: up for both sides, and both know the other's degree.

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


class Arrivals(NamedTuple):
    """The handovers of one line that this node took, as (hop, content).

    complete_after: those up to this hop may have been forgotten, by a crash or for their number.
    """

    line: Line | None = None
    complete_after: int = 0
    taken: tuple[tuple[int, int], ...] = ()

    def and_also(self, token: Token) -> Arrivals:
        """The arrivals with one more."""
        known = self if self.line == token.line else Arrivals(token.line)
        taken = (*known.taken, (token.hop, token.content))
        if len(taken) <= ARRIVALS_KEPT:
            return Arrivals(known.line, known.complete_after, taken)
        return Arrivals(known.line, taken[0][0], taken[1:])

    def contradict(self, token: Token) -> bool:
        """Whether this handover was none of those, though it would have to be."""
        if token.line != self.line or token.hop <= self.complete_after:
            return False
        return (token.hop, token.content) not in self.taken
