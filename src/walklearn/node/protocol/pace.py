"""Speed of the walk as one node observes it, and the time limits that follow.

Nobody knows how fast a network is before it walks. A node measures: how long answers take, and
how long nothing moved between two things that it saw move. Where the plan does not say otherwise
its limits are several times the longest of late.
"""

from __future__ import annotations

import zlib
from typing import NamedTuple

from walklearn.node.agreement.plan import TimeLimits
from walklearn.node.protocol.tokens import Mark

# What was long ago counts half after so many seconds.
_HALF_LIFE = 30.0
# How many times the longest of late is waited for.
_TIMES = 5.0
# No limit is shorter than these: a busy machine is that late now and then.
_SHORTEST_ANSWER, _SHORTEST_PATIENCE = 1.0, 3.0
_LONGEST = 3600.0
# A token this large takes a second more over a slow line.
_BYTES_A_SECOND = 1e6
# Seconds between signs of life while a walk is under way, and while none is.
HELLO_WALKING, HELLO_IDLE = 2.0, 5.0
# A line that was begun from a copy was waited for: the next wait is twice as long. So a network
# that is slower than anyone thought finds its pace instead of beginning again for ever.
_BEGUN_AGAIN = 2.0 / _TIMES
# Nor is it made longer than twice this, however often the walk is lost.
_LONGEST_AGAIN = 150.0


class Longest(NamedTuple):
    """The longest duration of late, which is forgotten by and by.

    >>> lately = Longest(8.0, at=0.0)
    >>> lately.and_also(1.0, at=60.0).seconds
    2.0
    """

    seconds: float
    at: float = 0.0

    def and_also(self, seconds: float, at: float) -> Longest:
        """The longest duration, with one more that ended at that time."""
        past = max(0.0, at - self.at)
        return Longest(max(seconds, self.seconds * 0.5 ** (past / _HALF_LIFE)), max(at, self.at))


class Sighting(NamedTuple):
    """Latest known progress of the walk, and its time."""

    mark: Mark
    updates: int
    moved_at: float


def longest_return(
    limits: TimeLimits, known: Longest, before: Sighting, now: Sighting, begun_again: bool
) -> Longest:
    """The longest time of late in which nothing moved, with the one that has just ended.

    Where it ended because somebody lost patience, the patience that there was counts, not by how
    much that one's was longer: so each wait is twice the last, and no more, up to a limit.
    """
    gap = max(0.0, now.moved_at - before.moved_at)
    if begun_again:
        gap = min(gap, patience(limits, known), _LONGEST_AGAIN) * _BEGUN_AGAIN
    return known.and_also(gap, now.moved_at)


def patience(limits: TimeLimits, returns: Longest) -> float:
    """After how many seconds without movement the walk is taken for lost."""
    if limits.resume_after_seconds is not None:
        return limits.resume_after_seconds
    return min(_LONGEST, max(_SHORTEST_PATIENCE, _TIMES * returns.seconds))


def answer_within(limits: TimeLimits, answers: Longest, size: int = 0, attempts: int = 0) -> float:
    """Return the time limit for an answer, which grows with the number of unanswered attempts."""
    if limits.handover_timeout_seconds is not None:
        return limits.handover_timeout_seconds
    usual = max(_SHORTEST_ANSWER, _TIMES * answers.seconds) + size / _BYTES_A_SECOND
    return min(_LONGEST, usual * 2.0 ** min(attempts, 20))


def reclaim_after(limits: TimeLimits, answers: Longest, size: int) -> float:
    """When the sender goes on without the answer: after a second attempt, or part of it."""
    if limits.reclaim_after_seconds is not None:
        return limits.reclaim_after_seconds
    return 2.0 * answer_within(limits, answers, size)


def unanswered(limits: TimeLimits, answers: Longest) -> float:
    """Return the statistics after an unanswered attempt: the next time limit is twice as long.

    So a neighbour that is slower than anyone thought is found to be slow, not lost again and again.

    >>> from walklearn.node.agreement.plan import TimeLimits
    >>> slow = Longest(unanswered(TimeLimits(), Longest(0.8)))
    >>> answer_within(TimeLimits(), Longest(0.8)), answer_within(TimeLimits(), slow)
    (4.0, 8.0)
    """
    return 2.0 * answer_within(limits, answers) / _TIMES


def lot(fingerprint: str, mark: Mark, updates: int) -> float:
    """U in [0, 1), another one for each node and each wait, so that one is the first to resume."""
    return zlib.crc32(f"{fingerprint} {mark.hop} {updates}".encode()) / 2**32
