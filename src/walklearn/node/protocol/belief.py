"""What a node believes of the walk: how far it can have come since the last known progress.

No network makes more updates a second than the plan says, nor begins more lines than a few. What is
claimed beyond that is refused, whoever claims it. At once, whatever the rate, a walk may have come
an eighth further than was known, or 16 updates: so far it comes in a line before that is renewed,
and who tells of a line tells no more than its birth.

**Nothing honest is refused for good.** Let the walk keep to the rate, and let a node know that it
had made k updates at some time. s seconds later it has made k + rate · s at most, and that is
believed, for what is believed grows at the rate from what is known: at the very beginning, where k
= 0, as after a partition in which the node heard of no progress. News that were late on their way
make k seem newer than it is; for that there is the eighth, and what is still too much is believed
when it is told again, a little later. Where both parts of a partition went on, a node hears of a
walk that is further than the one it knows of can be. It is refused first, but from then on time is
not forfeit by progress: what was *asked* for, d updates further, is believed d / rate seconds
later. What a node does itself is no claim, and spends nothing. A walk that is faster than the plan
says is refused now and then; whoever holds it then waits (`State.outruns_the_rate_for`), so it is
slowed down to the rate and no further.

**What that is worth.** From k updates on, whoever lies all the time as far as he is believed gets
to the end in (updates − k) / rate seconds, and at once in the last ninth of the updates. So without
a book, the forged end of a walk that honestly takes not much longer than updates / rate seconds
cannot be told from the true one.
"""

from __future__ import annotations

from typing import NamedTuple

from walklearn.node.protocol.tokens import RENEWED_AFTER, RENEWED_SHARE, Line

# What is believed of lines: so many more at once, and so many more a second.
LINES_AT_ONCE, LINES_A_SECOND = 1_000, 10


class Bound(NamedTuple):
    """How far something can have come that moves at a rate, or at once so far.

    What was believed beyond the rate is spent, and only time brings it back: many small lies reach
    no further than a large one. at_once, share: it may come so far at once, or by this share of
    what it has reached. asked: the most that was claimed and not believed.

    >>> believed = Bound(100, at=0.0, spare=10.0, rate=10.0, at_once=10.0)
    >>> believed.most(now=1.0)
    120.0
    >>> believed.and_also(120, at=1.0, now=1.0).most(now=1.0)
    120.0
    >>> believed.and_also(101, at=9.0, now=9.0).most(now=9.0)
    111.0
    >>> believed.asked_for(180).and_also(101, at=9.0, now=9.0).most(now=9.0)
    200.0
    """

    reached: float
    at: float
    spare: float
    rate: float
    at_once: float
    share: float = 0.0
    asked: float = 0.0

    def known_since(self, seconds: float) -> Bound:
        """Return this bound with its full allowance, `seconds` after its value was reached."""
        return self._replace(spare=self.most_at_once + self.rate * seconds)

    @property
    def most_at_once(self) -> float:
        """How much further it can be than what was reached, without any time."""
        return max(self.at_once, self.share * self.reached)

    def most(self, now: float) -> float:
        """The most that can have been reached by that time."""
        return self.reached + max(0.0, self.spare + self.rate * max(0.0, now - self.at))

    def and_also(self, reached: float, at: float, now: float) -> Bound:
        """The bound, given that so much was reached at that time; now: when that is known."""
        further = self._replace(reached=max(self.reached, reached), at=max(self.at, at))
        spare = self.spare + self.rate * (further.at - self.at) - (further.reached - self.reached)
        if self.asked <= further.reached:
            spare = min(further.most_at_once, spare)
        # Nobody is believed who claims more than what is left; so it is work of this node's own.
        return further._replace(spare=max(spare, -self.rate * max(0.0, now - further.at)))

    def short_for(self, now: float) -> float:
        """For how many seconds less may come at once than otherwise: the walk was fast of late."""
        return max(0.0, self.reached + self.most_at_once - self.most(now)) / self.rate

    def asked_for(self, reached: float) -> Bound:
        """The bound, given that so much was claimed that cannot be yet."""
        return self._replace(asked=max(self.asked, reached))


class Bounds(NamedTuple):
    """The most that a node believes: how many updates, and which counter of a line."""

    updates: Bound
    lines: Bound

    @classmethod
    def beyond(
        cls, updates: int, counter: int, now: float, away_seconds: float, rate: float
    ) -> Bounds:
        """The bounds from what was known `away_seconds` ago, at so many updates a second."""
        furthest = Bound(updates, now, 0.0, rate, RENEWED_AFTER, RENEWED_SHARE)
        lines = Bound(counter, now, 0.0, LINES_A_SECOND, LINES_AT_ONCE)
        return cls(furthest.known_since(away_seconds), lines.known_since(away_seconds))

    def allow(self, line: Line, updates: int, now: float) -> bool:
        """Whether there can be such a line with so many updates by now."""
        most = int(self.updates.most(now))
        return max(line.updates, updates) <= most and line.counter <= self.lines.most(now)

    def and_also(self, line: Line, updates: int, at: float, now: float) -> Bounds:
        """The bounds from now on, given that this is believed, and was so at that time."""
        further = self.updates.and_also(max(line.updates, updates), at, now)
        return Bounds(further, self.lines.and_also(line.counter, at, now))

    def asked_for(self, updates: int) -> Bounds:
        """The bounds, given that so many updates were claimed that cannot be yet."""
        return self._replace(updates=self.updates.asked_for(updates))
