"""What a node believes of the walk: how far it can have come since the last known progress.

No network makes more updates a second than the plan says, nor begins more lines than a few. What is
claimed beyond that is refused, whoever claims it.
"""

from __future__ import annotations

from typing import NamedTuple

from walklearn.node.protocol.tokens import Line

# What is believed of lines: so many more at once, and so many more a second.
LINES_AT_ONCE, LINES_A_SECOND = 1_000, 10


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
        """The most that can have been reached by that time."""
        return self.reached + max(0.0, self.spare + self.rate * max(0.0, now - self.at))

    def and_also(self, reached: float, at: float) -> Bound:
        """The bound from now on, given that so much was reached at that time."""
        reached, at = max(self.reached, reached), max(self.at, at)
        spare = self.spare + self.rate * (at - self.at) - (reached - self.reached)
        return Bound(reached, at, min(self.at_once, spare), self.rate, self.at_once)


class Bounds(NamedTuple):
    """The most that a node believes: how many updates, and which counter of a line."""

    updates: Bound
    lines: Bound

    @classmethod
    def beyond(
        cls, updates: int, counter: int, now: float, away_seconds: float, rate: float
    ) -> Bounds:
        """The bounds from what was known `away_seconds` ago, at so many updates a second."""
        lines = LINES_AT_ONCE + LINES_A_SECOND * away_seconds
        return cls(
            Bound(updates, now, rate * (1.0 + away_seconds), rate, rate),
            Bound(counter, now, lines, LINES_A_SECOND, LINES_AT_ONCE),
        )

    def allow(self, line: Line, updates: int, now: float) -> bool:
        """Whether there can be such a line with so many updates by now."""
        most = int(self.updates.most(now))
        return max(line.updates, updates) <= most and line.counter <= self.lines.most(now)

    def and_also(self, line: Line, updates: int, at: float) -> Bounds:
        """The bounds from now on, given that this is believed."""
        further = self.updates.and_also(max(line.updates, updates), at)
        return Bounds(further, self.lines.and_also(line.counter, at))
