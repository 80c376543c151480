"""How fast the walk moves as one node sees it, and how long that makes it worth to wait.

Nobody knows how fast a network is before it walks. A node measures: how long answers take, and
how long nothing moved between two things that it saw move. Where the plan does not say otherwise
its limits are several times the longest of late.
"""

from __future__ import annotations

import zlib
from typing import TYPE_CHECKING, NamedTuple

from walklearn.node.protocol.tokens import Mark

if TYPE_CHECKING:
    from walklearn.node.agreement.plan import TimeLimits

# What was long ago counts half after so many seconds.
_HALF_LIFE = 30.0
# How many times the longest of late is waited for.
_TIMES = 5.0
# No limit is shorter than these: a busy machine is that late now and then.
_SHORTEST_ANSWER, _SHORTEST_PATIENCE = 2.0, 3.0
_LONGEST = 3600.0
# A token this large takes a second more over a slow line.
_BYTES_A_SECOND = 1e6
# Seconds between signs of life while a walk is under way, and while none is.
_HELLO_WALKING, _HELLO_IDLE = 2.0, 5.0
# And at most so many: one neighbour that answers late must not make this node silent for all.
_HELLO_LONGEST = 10.0
# A line that was begun from a copy was waited for: the next wait is twice as long. So a network
# that is slower than anyone thought finds its pace instead of beginning again for ever.
_BEGUN_AGAIN = 2.0 / _TIMES


class Longest(NamedTuple):
    """The longest duration of late, which is forgotten by and by.

    >>> lately = Longest(8.0, at=0.0)
    >>> lately.and_also(1.0, at=60.0).seconds
    2.0
    """

    seconds: float
    at: float = 0.0

    def and_also(self, seconds: float, at: float) -> Longest:
        """With one more duration, which ended then."""
        past = max(0.0, at - self.at)
        return Longest(max(seconds, self.seconds * 0.5 ** (past / _HALF_LIFE)), max(at, self.at))


class Sighting(NamedTuple):
    """How far the walk has come as far as is known here, and when it came so far."""

    mark: Mark
    updates: int
    moved_at: float

    def waited_for_anew(self, now: float) -> Sighting:
        """The same, but the wait begins now: nobody could be heard before."""
        return self._replace(moved_at=now)


class Bound(NamedTuple):
    """How far something can have come that moves at a rate, or at once so far.

    What was believed beyond the rate is spent, and only time brings it back: many small lies reach
    no further than a large one.

    >>> believed = Bound(100, at=0.0, spare=10.0, rate=10.0, at_once=10.0)
    >>> believed.most(now=1.0)
    120.0
    >>> believed.and_also(120, at=1.0).most(now=1.0)
    120.0
    """

    reached: float
    at: float
    spare: float
    rate: float
    at_once: float

    def most(self, now: float) -> float:
        """What can be by then."""
        return self.reached + max(0.0, self.spare + self.rate * max(0.0, now - self.at))

    def and_also(self, reached: float, at: float) -> Bound:
        """It came so far, then."""
        reached, at = max(self.reached, reached), max(self.at, at)
        spare = self.spare + self.rate * (at - self.at) - (reached - self.reached)
        return Bound(reached, at, min(self.at_once, spare), self.rate, self.at_once)


def longest_return(known: Longest, before: Sighting, now: Sighting, begun_again: bool) -> Longest:
    """The longest time of late in which nothing moved, with the one that has just ended."""
    gap = max(0.0, now.moved_at - before.moved_at)
    return known.and_also(gap * _BEGUN_AGAIN if begun_again else gap, now.moved_at)


def patience(limits: TimeLimits, returns: Longest) -> float:
    """After how many seconds without movement the walk is taken for lost."""
    if limits.resume_after_seconds is not None:
        return limits.resume_after_seconds
    return min(_LONGEST, max(_SHORTEST_PATIENCE, _TIMES * returns.seconds))


def shortest_patience(limits: TimeLimits) -> float:
    """Nobody takes the walk for lost sooner than this."""
    return limits.resume_after_seconds or _SHORTEST_PATIENCE


def answer_within(limits: TimeLimits, answers: Longest, size: int = 0, attempts: int = 0) -> float:
    """How long to wait for an answer; the attempts before, which had none, make it longer."""
    if limits.handover_timeout_seconds is not None:
        return limits.handover_timeout_seconds
    usual = max(_SHORTEST_ANSWER, _TIMES * answers.seconds) + size / _BYTES_A_SECOND
    return min(_LONGEST, usual * 2.0 ** min(attempts, 20))


def reclaim_after(limits: TimeLimits, answers: Longest, size: int) -> float:
    """When the sender goes on without the answer: after a second attempt, or part of it."""
    if limits.reclaim_after_seconds is not None:
        return limits.reclaim_after_seconds
    return 2.0 * answer_within(limits, answers, size)


def hello_every(limits: TimeLimits, walking: bool, answers: Longest) -> float:
    """How many seconds lie between signs of life: no fewer than an answer takes, up to a limit.

    >>> from walklearn.node.agreement.plan import TimeLimits
    >>> [hello_every(TimeLimits(), True, Longest(each)) for each in (0.1, 4.0, 3600.0)]
    [2.0, 4.0, 10.0]
    """
    if limits.hello_every_seconds is not None:
        return limits.hello_every_seconds
    return max(_HELLO_WALKING if walking else _HELLO_IDLE, min(_HELLO_LONGEST, answers.seconds))


def lot(fingerprint: str, mark: Mark, updates: int) -> float:
    """U in [0, 1), another one for each node and each wait, so that one is the first to resume."""
    return zlib.crc32(f"{fingerprint} {mark.hop} {updates}".encode()) / 2**32
