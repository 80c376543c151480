"""Contestants that take turns, so that a busy neighbour hits all of them.

The best turn of each counts. The clock is that of the thread, which stands still while another
process has the core; a neighbour in the shared cache still shows.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable
from dataclasses import dataclass

Run = Callable[[int], object]  # do that many hops


@dataclass
class Contestant:
    """What runs, and its own count of what it has done: it is credited with that alone."""

    run: Run
    done: Callable[[], int]
    share: float = 1.0  # of the hops of a turn, for the slow ones
    prepare: Run | None = None  # off the clock
    best_seconds: float = math.inf

    def turn(self, hops: int) -> None:
        """Run against the clock, and keep the time if it is the best so far."""
        count = max(1, int(hops * self.share))
        if self.prepare:
            self.prepare(count)
        done, clock = self.done(), time.thread_time()
        self.run(count)
        seconds = time.thread_time() - clock
        self.best_seconds = min(self.best_seconds, seconds / (self.done() - done))


def race(contestants: dict[str, Contestant], hops: int, rounds: int) -> dict[str, float]:
    """Nanoseconds per hop of each, in its best turn."""
    for contestant in contestants.values():  # load machine code, pass the start, fill the caches
        contestant.turn(max(1, hops // 20))
        contestant.best_seconds = math.inf
    for _ in range(rounds):
        for contestant in contestants.values():
            contestant.turn(hops)
    return {name: 1e9 * contestant.best_seconds for name, contestant in contestants.items()}
