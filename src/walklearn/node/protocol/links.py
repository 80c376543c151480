"""What a node knows of its neighbours, and of the handovers between them and it."""

from __future__ import annotations

from dataclasses import dataclass

from walklearn.node.protocol.messages import Announcement
from walklearn.node.protocol.pace import Longest


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
