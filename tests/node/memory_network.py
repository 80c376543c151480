"""Many nodes in one process: transport, disk and clock in memory, with every fault on request.

The protocol, the messages and the updates are the real ones. `run` lets simulated time pass as a
healthy network would; a test may instead choose what happens next, message by message: deliver it
now or much later, twice, never, or let a node crash between any two effects. Like TCP it loses
what was under way to a process that ended, and knows when there is no connection at all.

>>> import numpy as np
>>> from walklearn import datasets, graphs
>>> from walklearn.node.agreement.plan import Plan
>>> from walklearn.streams import generators
>>> plan = Plan.from_text('''
... name = "example"
... nodes = 5
... features = ["a", "b"]
... target = "y"
... classes = ["no", "yes"]
... loss = "logistic"
... penalty = 1.0
... step_size = { constant = 0.05 }
... updates = 200
... ''')
>>> X, y = datasets.two_gaussians(5, dimension=2, seed=1)
>>> learners = [Learner.of_plan(plan, X[i : i + 1], y[i : i + 1]) for i in range(5)]
>>> streams = generators(np.random.SeedSequence(1), nodes=5)
>>> network = MemoryNetwork(learners, graphs.ring(5), streams)
>>> network.start_walk(network.nodes[0], np.zeros(2)).outcome
<Outcome.ACCEPTED: 'accepted'>
>>> network.run(lambda: network.finished)
>>> {node.state.record.final.updates for node in network.nodes}
{200}
"""

from __future__ import annotations

import enum
import heapq
import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from itertools import count
from typing import Any

from walklearn.graphs import Graph
from walklearn.node.disk.database import StoreError
from walklearn.node.protocol import messages, tokens
from walklearn.node.protocol.events import (
    Announced,
    Answered,
    Commit,
    Effect,
    Event,
    FinalAnswered,
    FinalArrived,
    Greet,
    NeighbourDown,
    NeighbourUp,
    NotSent,
    Remember,
    Reply,
    SendFinal,
    SendToken,
    Started,
    StartWalk,
    StoreFailed,
    Tick,
    TokenArrived,
    Unknown,
    Visit,
)
from walklearn.node.protocol.learner import Draws, Learner, Vector
from walklearn.node.protocol.messages import Announcement, Greeting, Receipt
from walklearn.node.protocol.protocol import handle, recover
from walklearn.node.protocol.record import Record
from walklearn.node.protocol.state import Phase, State
from walklearn.node.protocol.tokens import Mark
from walklearn.streams import Streams

_DIGEST = "0" * 64
EPOCHS = count(1)


class Way(enum.Enum):
    """How far a call has got."""

    ASKED = "asked"
    ANSWERED = "answered"
    NO_CONNECTION = "no connection"  # the caller will learn that nothing was sent
    LOST = "lost"  # the caller will learn nothing


@dataclass(eq=False)
class MemoryNode:
    """A node: its disk, and its process while it runs.

    written: the record on the disk; unwritten: what is to be written soon. life: the number of
    the process. drawn: for how many visits it drew numbers. disk_fails: the disk is full.
    """

    fingerprint: str
    learner: Learner
    streams: Streams
    neighbours: tuple[str, ...]
    written: Record = field(default_factory=Record)
    unwritten: Record | None = None
    running: State | None = None
    life: int = 0
    drawn: int = 0
    disk_fails: bool = False
    visit_due: bool = False
    tick_at: float = math.inf

    @property
    def state(self) -> State:
        """What the process knows; if it has ended, what the next one will begin with."""
        if self.running is None:
            return recover(self.fingerprint, self.learner, self.neighbours, self.written)
        return self.running

    def draws(self) -> Draws:
        """The numbers of a visit, from the node's own streams."""
        self.drawn += 1
        uniforms = self.streams.walk.random(self.learner.draws)
        if self.learner.noise is None:
            return Draws(uniforms, epoch=f"{next(EPOCHS):032x}")
        return Draws(uniforms, self.streams.noise.standard_normal(self.learner.problem.size))

    def write(self, record: Record) -> None:
        """Put the record on the disk."""
        if self.disk_fails:
            raise StoreError("the disk is full.")
        self.written, self.unwritten = record, None


@dataclass(eq=False)
class Call:
    """A message under way, question or answer. `lives`: of the processes that it is between."""

    sort: type[Greet | SendToken | SendFinal]
    caller: MemoryNode
    callee: MemoryNode
    content: bytes
    way: Way
    lives: tuple[int, int]
    told: Announcement | None = None
    mark: Mark | None = None


class MemoryNetwork:
    """Nodes 0, 1, … on a graph, each drawing from its own streams.

    calls: the messages under way. cut: the links that are broken, as pairs of fingerprints.
    """

    def __init__(
        self,
        learners: Sequence[Learner],
        graph: Graph,
        streams: Streams,
        latency_seconds: float = 0.01,
    ) -> None:
        names = [f"{i:064x}" for i in range(len(learners))]
        self.nodes = [
            MemoryNode(name, learner, streams.of(i), tuple(names[j] for j in graph.neighbours(i)))
            for i, (name, learner) in enumerate(zip(names, learners, strict=True))
        ]
        self.now = 0.0
        self.latency_seconds = latency_seconds
        self.calls: list[Call] = []
        self.cut: set[frozenset[str]] = set()
        self._named = dict(zip(names, self.nodes, strict=True))
        self._agenda: list[tuple[float, int, Callable[..., None], tuple[Any, ...]]] = []
        self._numbers = count()
        for node in self.nodes:
            self.restart(node)

    @property
    def finished(self) -> bool:
        """Whether every node runs and has the final model, all of them the same."""
        states = [node.running for node in self.nodes]
        ended = all(state is not None and state.phase is Phase.FINISHED for state in states)
        return ended and len({node.state.record.final_line for node in self.nodes}) == 1

    @property
    def connected(self) -> bool:
        """Whether every link is up for both of its ends."""
        return all(
            node.state.is_usable(neighbour) for node in self.nodes for neighbour in node.neighbours
        )

    def run(self, until: Callable[[], bool], maximum: int = 1_000_000) -> None:
        """Let time pass until a condition holds; RuntimeError after `maximum` events."""
        for _ in range(maximum):
            if until():
                return
            if not self._agenda:
                break
            due, _, happening, arguments = heapq.heappop(self._agenda)
            self.now = max(self.now, due)
            happening(*arguments)
        raise RuntimeError("what was waited for did not come.")

    # ── processes ────────────────────────────────────────────────────────────────────────────

    def restart(self, node: MemoryNode) -> None:
        """Let the node's process begin, from what is on its disk."""
        node.running, node.unwritten, node.visit_due = node.state, None, False
        node.tick_at = math.inf
        node.life += 1
        self.feed(node, Started(self.now))
        self._greet_all(node, node.life)

    def crash(self, node: MemoryNode) -> None:
        """End the process; questions under way to it are lost, what it has sent is not."""
        node.running, node.unwritten = None, None
        for call in self.calls:
            if call.callee is node and call.way is Way.ASKED:
                call.way = Way.LOST

    def start_walk(self, node: MemoryNode, model: Vector, walk: str = "0" * 32) -> Receipt | None:
        """Begin a walk at a node."""
        return self.feed(node, StartWalk(walk, model, self.now))

    def visit(self, node: MemoryNode, crash_after: int | None = None) -> None:
        """Let the node work on its token, if it wants to."""
        node.visit_due = False
        if node.running is not None and node.running.wants_visit:
            self.feed(node, Visit(node.draws(), self.now), crash_after)

    def feed(
        self, node: MemoryNode, event: Event, crash_after: int | None = None
    ) -> Receipt | None:
        """Let an event happen to a process that runs; the answer to it, if there is one.

        crash_after: end the process once so many of the effects are done.
        """
        before = node.state
        node.running, effects = handle(before, event)
        answer = None
        for done, effect in enumerate(effects):
            if done == crash_after:
                break
            try:
                answer = self._perform(node, effect) or answer
            except StoreError as error:
                node.running = before
                return self.feed(node, StoreFailed(event, str(error), self.now))
        if crash_after is not None:
            self.crash(node)
        else:
            self._plan(node)
        return answer

    def flush(self, node: MemoryNode) -> None:
        """Write what the node left for later."""
        if node.unwritten is not None and not node.disk_fails:
            node.write(node.unwritten)

    def _perform(self, node: MemoryNode, effect: Effect) -> Receipt | None:
        if isinstance(effect, Commit):
            node.write(effect.record)
        elif isinstance(effect, Remember):
            node.unwritten = effect.record
            self._at(self.now + 10 * self.latency_seconds, self.flush, node)
        elif isinstance(effect, Reply):
            return effect.receipt
        elif isinstance(effect, SendToken):
            token = effect.token
            self._call(SendToken, node, effect.receiver, token.encoded, mark=token.mark)
        elif isinstance(effect, SendFinal):
            self._call(SendFinal, node, effect.neighbour, effect.token.encoded)
        elif isinstance(effect, Greet):
            self.greet(node, effect.neighbour)
        return None

    # ── messages ─────────────────────────────────────────────────────────────────────────────

    def greet(self, node: MemoryNode, neighbour: str) -> None:
        """Let the node greet a neighbour."""
        told = node.state.announcement(neighbour, self.now)
        self._call(Greet, node, neighbour, _greeting(told), told=told)

    def deliver(self, call: Call, crash_after: int | None = None) -> None:
        """Let a call get one step further; `crash_after` is about the node that it gets to."""
        self.calls.remove(call)
        alive = tuple(each.running is not None and each.life for each in (call.caller, call.callee))
        if call.way is Way.ASKED and (not self._linked(call) or alive[1] != call.lives[1]):
            call = replace(call, way=Way.LOST)
        if call.way is Way.ASKED:
            self._ask(call, crash_after)
        elif alive[0] == call.lives[0]:
            if call.way is Way.ANSWERED and not self._linked(call):
                call = replace(call, way=Way.LOST)
            self.feed(call.caller, self._outcome(call), crash_after)

    def lose(self, call: Call) -> None:
        """Let a message be lost; its caller will learn that it does not know."""
        call.way = Way.LOST

    def duplicate(self, call: Call) -> None:
        """Let a message arrive twice."""
        self._send(replace(call))

    def time_out(self, call: Call) -> None:
        """Let the caller give up waiting while the message is still under way."""
        self._send(replace(call, way=Way.LOST))

    def _ask(self, call: Call, crash_after: int | None) -> None:
        caller, callee = call.caller.fingerprint, call.callee
        if call.sort is Greet:
            theirs = messages.decode_greeting(call.content).announcement
            self.feed(callee, Announced(caller, theirs, self.now), crash_after)
            told = callee.state.announcement(caller, self.now)
            answer = None if callee.running is None else _greeting(told)
        else:
            token = tokens.decode_token(call.content, callee.learner.limits)
            event = (
                TokenArrived(caller, token, callee.draws(), self.now)
                if call.sort is SendToken
                else FinalArrived(caller, token, self.now)
            )
            receipt = self.feed(callee, event, crash_after)
            answer = None if receipt is None else messages.encode_receipt(receipt)
        if answer is None:
            self._send(replace(call, way=Way.LOST))
        else:
            self._send(replace(call, way=Way.ANSWERED, content=answer))

    def _outcome(self, call: Call) -> Event:
        """What the caller learns."""
        neighbour, answered = call.callee.fingerprint, call.way is Way.ANSWERED
        if call.sort is Greet:
            if not answered or call.told is None:
                return NeighbourDown(neighbour)
            theirs = messages.decode_greeting(call.content).announcement
            return NeighbourUp(neighbour, call.told, theirs, self.now)
        receipt = messages.decode_receipt(call.content) if answered else None
        if call.sort is SendFinal or call.mark is None:
            return FinalAnswered(neighbour, receipt)
        if receipt is not None:
            return Answered(call.mark, receipt, self.now)
        never = call.way is Way.NO_CONNECTION
        return NotSent(call.mark, self.now) if never else Unknown(call.mark, self.now)

    def _call(
        self,
        sort: type[Greet | SendToken | SendFinal],
        node: MemoryNode,
        neighbour: str,
        content: bytes,
        told: Announcement | None = None,
        mark: Mark | None = None,
    ) -> None:
        callee = self._named[neighbour]
        call = Call(sort, node, callee, content, Way.ASKED, (node.life, callee.life), told, mark)
        if callee.running is None or not self._linked(call):
            call.way = Way.NO_CONNECTION
        self._send(call)

    def _send(self, call: Call) -> None:
        self.calls.append(call)
        self._at(self.now + self.latency_seconds, self._arrive, call)

    def _linked(self, call: Call) -> bool:
        return frozenset((call.caller.fingerprint, call.callee.fingerprint)) not in self.cut

    # ── time ─────────────────────────────────────────────────────────────────────────────────

    def _at(self, due: float, happening: Callable[..., None], *arguments: Any) -> None:
        heapq.heappush(self._agenda, (due, next(self._numbers), happening, arguments))

    def _plan(self, node: MemoryNode) -> None:
        """Let the node have its next visit and its next tick."""
        if node.running is None:
            return
        if node.running.wants_visit and not node.visit_due:
            node.visit_due = True
            self._at(self.now, self.visit, node)
        due = node.running.wakes_at
        if due is not None and due < node.tick_at:  # one that comes too early does no harm
            node.tick_at = due
            self._at(due, self._tick, node, node.life)

    def _arrive(self, call: Call) -> None:
        if call in self.calls:
            self.deliver(call)

    def _tick(self, node: MemoryNode, life: int) -> None:
        if node.life != life:
            return
        node.tick_at = math.inf
        if node.running is not None:
            self.feed(node, Tick(self.now))

    def _greet_all(self, node: MemoryNode, life: int) -> None:
        if node.running is None or node.life != life:
            return
        for neighbour in node.neighbours:
            self.greet(node, neighbour)
        again = self.now + node.running.hello_every_seconds
        self._at(again, self._greet_all, node, life)


def _greeting(told: Announcement) -> bytes:
    return messages.encode_greeting(Greeting("node", _DIGEST, told))
