"""Several tokens in one network: they update at the same time, and wait where a node is busy.

A message takes the time `hop`, and an update `visit` (`batches.Schedule`). A node serves one token
at a time, in the order in which they arrive. So a token that arrives at time t updates until

    end = max(t, free) + visit

where `free` is the end of the last update at this node, and arrives at the next node at the time
end + hop · (messages + questions). An update takes effect at its end. Events at the same time take
place in the order of the tokens' numbers.

>>> events = Events([0, 1], Schedule(hop=1.0, visit=0.5, updates=4))
>>> for node in (2, 2, 3, 3):  # both hop to node 2, which serves token 0 first
...     time, slot = events.next()
...     print(time, slot)
...     events.hop(slot, node, messages=1)
0.5 0
0.5 1
2.0 0
2.5 1
"""

from __future__ import annotations

import heapq
from collections.abc import Sequence

import numpy as np

from walklearn.arrays import Array
from walklearn.simulation.batches import ReferenceWalks, Schedule
from walklearn.visit import NodeState, Walker


class Events:
    """The order of the updates of several tokens, and their times.

    A token stops after its share of the updates (`Schedule.share`).
    """

    def __init__(self, nodes: Sequence[int], schedule: Schedule) -> None:
        tokens = len(nodes)
        self._schedule, self._nodes = schedule, list(nodes)
        self._left = [schedule.share(slot, tokens) for slot in range(tokens)]
        self._free: dict[int, float] = {}  # the end of the last update at each node
        self._is_waiting = [True] * tokens  # and not updating
        self._queue = [(0.0, slot) for slot in range(tokens) if self._left[slot]]
        self._time = 0.0

    def next(self) -> tuple[float, int]:
        """Return the end of the next update and the number of its token, which then has to hop."""
        while True:
            time, slot = heapq.heappop(self._queue)
            end = time
            if self._is_waiting[slot]:
                node = self._nodes[slot]
                end = max(time, self._free.get(node, 0.0)) + self._schedule.visit
                self._free[node] = end
            self._is_waiting[slot] = end == time
            if end == time:
                self._time = time
                return time, slot
            heapq.heappush(self._queue, (end, slot))

    def hop(self, slot: int, node: int, messages: int) -> None:
        """Send the token that has just updated to a node, by this many messages and questions."""
        self._nodes[slot], self._is_waiting[slot] = node, True
        self._left[slot] -= 1
        if self._left[slot]:
            heapq.heappush(self._queue, (self._time + self._schedule.hop * messages, slot))


class ReferenceTokens(ReferenceWalks):
    """Replicates of several tokens moved by `visit`. The tokens of a replicate share its nodes."""

    def _init_state(self) -> None:
        self.walkers, self._events, tokens = [], [], self.setting.tokens
        self._times = np.zeros(len(self.streams))
        for replicate, setting in enumerate(self.settings):
            starts = self.starts[replicate * tokens : (replicate + 1) * tokens]
            states: dict[int, NodeState] = {}
            self.walkers += [Walker(setting, self.graph, *start[:2], states) for start in starts]
            self._events.append(Events([start.node for start in starts], self.schedule))

    @property
    def times(self) -> Array:
        """The time at which the last update of each replicate ended."""
        return self._times.copy()

    def _advance(self, iterations: int) -> None:
        for replicate, events in enumerate(self._events):
            first = replicate * self.setting.tokens
            for _ in range(iterations):
                self._times[replicate], slot = events.next()
                walker = self.walkers[first + slot]
                hop = self._visit(replicate, walker)
                events.hop(slot, walker.node, hop.messages + hop.questions)
        self.iterations += iterations
