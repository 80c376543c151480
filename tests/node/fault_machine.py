"""A network in which everything goes wrong that can, and what must hold all the same.

The updates are replaced by ones that write their own number into the model, so that every token
carries the list of all updates that made it: its *history*. As its gradient h_i a node gives
that number too, so that the token's memory can be held against what the nodes keep: s = Σ h_i.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable
from dataclasses import replace
from itertools import count
from typing import Any

import numpy as np
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

from tests.node.made_tokens import changed, made_token
from tests.node.memory_network import Call, MemoryNetwork, MemoryNode, Way
from walklearn import graphs
from walklearn.node.agreement.plan import Plan
from walklearn.node.protocol import learner
from walklearn.node.protocol.events import (
    Announced,
    Event,
    FinalArrived,
    Greet,
    NewNeighbours,
    ResumeWalk,
    SendToken,
    StartWalk,
    StopAsked,
    Tick,
    TokenArrived,
)
from walklearn.node.protocol.learner import Draws, Kept, Learner, Visited
from walklearn.node.protocol.record import Place, Record
from walklearn.node.protocol.tokens import Line, Mark, Token, decode_token
from walklearn.streams import generators
from walklearn.walks import View

NODES = 4
LATENCY_SECONDS = 0.05  # the walk is slower than that
GRAPH = graphs.from_edges([(0, 1), (1, 2), (2, 0), (2, 3)])
EDGES = [(int(a), int(b)) for a, b in GRAPH.edges()]
History = tuple[int, ...]


def plan_of(updates: int) -> Plan:
    return Plan.from_text(f"""
name = "faults"
nodes = {NODES}
features = {[f"update {k}" for k in range(updates)]}
target = "y"
loss = "squared"
update = "saga"
updates = {updates}
[time_limits]
retry_after_seconds = 1.0
reclaim_after_seconds = 30.0
""")


class Numbered(Learner):
    """An update that writes its own number into the model."""

    numbers = count(1)
    made_by: dict[int, tuple[Learner, History]] = {}  # noqa: RUF012 — shared by all nodes

    def visit(
        self,
        token: Token,
        draws: Draws,
        contributions: int = 0,
        kept: Kept | None = None,
        view: View | None = None,
    ) -> Visited:
        number, model = next(self.numbers), token.model.copy()
        self.made_by[number] = (self, history(token))
        model[token.updates] = number
        epoch, belongs = learner.epoch_of(token, kept, draws)
        arrays = self._carried(token, epoch)
        before = float(kept.state["slopes"][0]) if belongs and kept else 0.0
        given = arrays["gradient_sum"] + (number - before)
        arrays = arrays | {"model": model, "gradient_sum": given}
        improved = changed(token, updates=token.updates + 1, epoch=epoch, **arrays)
        past = () if kept is None else kept.past if belongs else kept.given
        state = {"slopes": np.array([float(number)]), "updated": np.array(improved.updates)}
        assert view is not None
        hop = self.setting.walk.hop(view, {}, {}, draws.uniforms[:1])
        return Visited(improved, contributions + 1, Kept(epoch, state, past), hop.node)


def history(token: Token) -> History:
    return tuple(int(number) for number in token.model[: token.updates])


class WatchedNetwork(MemoryNetwork):
    """A network that shows every message to a watcher."""

    watch: Callable[[Call], None] = staticmethod(lambda call: None)

    def _send(self, call: Call) -> None:
        self.watch(call)
        super()._send(call)


WHICH = st.integers(0, 99)
CRASH = st.sampled_from([None, None, 0, 1, 2, 3])
FATES = st.sampled_from(
    ["arrive", "arrive", "arrive twice", "at a full disk", "twice at a full disk", "lose",
     "time_out", "duplicate"]
)  # fmt: skip
TROUBLES = st.sampled_from(
    ["crash", "restart", "restart all", "restart all", "cut or heal", "heal", "heal", "greet",
     "disk", "flush", "stop", "peers", "wait 1", "wait 5", "wait 31", "StartWalk", "ResumeWalk",
     "message", "lose", "duplicate"]
)  # fmt: skip


class FaultMachine(RuleBasedStateMachine):
    """Crashes between any two effects, losses, duplicates, delays, cuts, full disks, new walks.

    And messages that must change nothing: old tokens and those of strangers.
    """

    @initialize(seed=st.integers(0, 1000), updates=st.sampled_from([10, 100]))
    def begin(self, seed: int, updates: int) -> None:
        plan, rows = plan_of(updates), np.eye(updates)[:1]
        self.zero = np.zeros(updates)
        nodes = [Numbered.of_plan(plan, rows, [1.0]) for _ in range(NODES)]
        streams = generators(np.random.SeedSequence(seed), NODES)
        self.network = WatchedNetwork(nodes, GRAPH, streams, LATENCY_SECONDS)
        self.seen: dict[Line, dict[int, History]] = defaultdict(dict)
        self.shown: dict[Learner, set[int]] = defaultdict(set)
        self.sent: list[Token] = []
        self.network.watch = self.note
        self.around = {node.fingerprint: node.neighbours for node in self.network.nodes}
        self.network.run(lambda: self.network.connected)
        self.network.start_walk(self.network.nodes[0], self.zero)

    # ── what can happen ──────────────────────────────────────────────────────────────────────

    @precondition(lambda self: self.running)
    @rule(happenings=st.integers(1, 12))
    def go_on(self, happenings: int) -> None:
        """Nothing goes wrong for a while."""
        left = iter(range(happenings))
        self.network.run(lambda: next(left, None) is None)

    @precondition(lambda self: self.holders)
    @rule(which=WHICH, crash_after=CRASH)
    def visit(self, which: int, crash_after: int | None) -> None:
        self.network.visit(self.pick(self.holders, which), crash_after)

    @precondition(lambda self: self.tokens)
    @rule(which=WHICH, fate=FATES, crash_after=CRASH)
    def token(self, which: int, fate: str, crash_after: int | None) -> None:
        """Something becomes of a token that is under way, or of the receipt for one."""
        call = self.pick(self.tokens, which)
        if fate in ("lose", "time_out", "duplicate"):
            getattr(self.network, fate)(call)
            return
        if "twice" in fate:
            self.network.duplicate(call)
        before, call.callee.disk_fails = call.callee.disk_fails, "full disk" in fate
        self.network.deliver(call, crash_after)
        call.callee.disk_fails = before

    @precondition(lambda self: len(self.tokens) > 1)
    @rule(crash_after=CRASH)
    def oldest_token(self, crash_after: int | None) -> None:
        """What was delayed for long arrives at last."""
        self.network.deliver(self.tokens[0], crash_after)

    @rule(kind=TROUBLES, which=WHICH, crash_after=CRASH)
    def trouble(self, kind: str, which: int, crash_after: int | None) -> None:
        network, node = self.network, self.pick(self.network.nodes, which)
        if kind == "restart all":
            self.restart_all()
        elif kind == "cut or heal":
            ends = EDGES[which % len(EDGES)]
            network.cut ^= {frozenset(network.nodes[i].fingerprint for i in ends)}
        elif kind == "heal":
            network.cut.clear()
        elif kind == "disk":
            node.disk_fails ^= True
        elif kind == "flush":
            network.flush(node)
        elif kind.startswith("wait"):
            self.wait(float(kind.split()[1]))
        elif kind == "message" and network.calls:
            network.deliver(self.pick(network.calls, which), crash_after)
        elif kind in ("lose", "duplicate") and network.calls:
            getattr(network, kind)(self.pick(network.calls, which))
        elif kind == "restart" and node.running is None:
            network.restart(node)
        elif node.running is not None:
            self.trouble_at(node, kind, crash_after)

    def trouble_at(self, node: MemoryNode, kind: str, crash_after: int | None) -> None:
        if kind == "crash":
            self.network.crash(node)
        elif kind == "greet":
            for neighbour in node.neighbours:
                self.network.greet(node, neighbour)
        elif kind == "stop":
            self.network.feed(node, StopAsked())
        elif kind == "peers":  # one neighbour is removed, or all are there again
            around = self.around[node.fingerprint]
            node.neighbours = around[1:] if node.neighbours == around else around
            self.network.feed(node, NewNeighbours(node.neighbours))
        elif kind in ("StartWalk", "ResumeWalk"):
            now = self.network.now
            start = StartWalk(node.fingerprint[-32:], self.zero, now)
            event = start if kind == "StartWalk" else ResumeWalk(now)
            self.network.feed(node, event, crash_after)

    @precondition(lambda self: self.running)
    @rule(kind=st.sampled_from(["stranger", "replay"]), which=WHICH)
    def message_to_ignore(self, kind: str, which: int) -> None:
        node = self.pick(self.running, which)
        before = node.state.record
        sender = self.pick(self.around[node.fingerprint], which // NODES)
        for event in self.messages_to_ignore(kind, which, node, sender):
            self.network.feed(node, event)
        after = node.state.record
        assert before.newest == after.newest, kind
        assert before.token is after.token, kind
        assert before.final is after.final, kind
        assert before.place is after.place, kind

    def messages_to_ignore(
        self, kind: str, which: int, node: MemoryNode, sender: str
    ) -> list[Event]:
        """Messages of one kind; none where there is none of that kind yet."""
        now, line, seen = self.network.now, node.state.record.newest_line, node.state.seen
        if line is None or seen is None:
            return []
        (speaker,) = (each for each in self.network.nodes if each.fingerprint == sender)
        said = speaker.state.announcement(node.fingerprint)
        said = replace(said, newest=None, final=None, progress=None, had=None)
        if kind == "replay":
            old = [token for token in self.sent if token.line < line and not token.final]
            again = [self.pick(old, which)] if old else []
            return [TokenArrived(sender, each, node.draws(), now) for each in again]
        newer, updates = line._replace(counter=line.counter + 1), len(self.zero)
        made = min(seen.updates + 1, updates - 1)
        token = made_token(newer, seen.mark.hop + 1, made, self.zero)
        return [
            Announced("f" * 64, replace(said, newest=newer), now),
            TokenArrived("f" * 64, token, node.draws(), now),
            FinalArrived("f" * 64, changed(token, updates=updates, final=True), now),
        ]

    def wait(self, seconds: float) -> None:
        """Time passes, and all that run look at the clock; what is under way stays so."""
        self.network.now += seconds
        for node in self.running:
            self.network.feed(node, Tick(self.network.now))

    def restart_all(self) -> None:
        for node in self.network.nodes:
            if node.running is not None and node.running.stopping:
                self.network.crash(node)
            if node.running is None:
                self.network.restart(node)

    # ── what must hold ───────────────────────────────────────────────────────────────────────

    @invariant()
    def one_token_of_the_newest_line(self) -> None:
        lines = [node.state.record.newest_line for node in self.network.nodes]
        newest = max(line for line in lines if line is not None)
        finals = [node.state.record.final_line for node in self.network.nodes]
        live = [node for node in self.network.nodes if self.is_holder(node, newest)]
        # Whoever hears of an end, also one of an older line, ends the walk.
        fewest = 0 if any(finals) else 1
        assert fewest <= len(live) <= (0 if newest in finals else 1), (newest, live)

    @invariant()
    def the_living_token_remembers_what_nodes_keep(self) -> None:
        """s = Σ h_i over the nodes of the token's epoch, whatever has gone wrong before.

        Where a node gave another line its gradient since, and knows that it once gave this epoch
        one, the token begins a new epoch when it comes there.
        """
        lines = [node.state.record.newest_line for node in self.network.nodes]
        newest = max(line for line in lines if line is not None)
        for node in self.network.nodes:
            token = node.state.record.token
            if not self.is_holder(node, newest) or token is None or not token.epoch:
                continue
            kept = [each.state.record.kept for each in self.network.nodes]
            if any(each and token.epoch in each.past for each in kept):
                continue
            there = [each for each in kept if each and each.epoch == token.epoch]
            given = sum(each.state["slopes"][0] for each in there)
            assert token.payload.update["gradient_sum"][0] == given, (token.line, token, kept)

    @invariant()
    def what_is_shown_is_charged(self) -> None:
        for node in self.network.nodes:
            assert len(self.shown[node.learner]) <= node.written.contributions

    @invariant()
    def nobody_is_reminded_of_a_token_it_knows(self) -> None:
        assert all(node.state.record.memory.reminded is None for node in self.network.nodes)

    def note(self, call: Call) -> None:
        """All tokens of a line that were ever sent follow from each other: no update of it is
        made twice or left out, and a hop has one token.
        """
        if call.sort is Greet or call.way is not Way.ASKED:
            return
        token = decode_token(call.content, call.caller.learner.limits)
        line, new = self.seen[token.line], history(token)
        assert len({0, *new}) == len(new) + 1
        for hop, old in line.items():
            shorter, longer = (old, new) if hop <= token.hop else (new, old)
            assert longer[: len(shorter)] == shorter, (token.line, hop, token.hop, old, new)
        if not token.final:
            assert line.setdefault(token.hop, new) == new
        self.sent.append(token)
        for number in new:
            self.shown[Numbered.made_by[number][0]].add(number)

    def is_holder(self, node: MemoryNode, line: Line) -> bool:
        """Whether the node has the line's token, and its receiver does not have it yet."""
        record = node.state.record
        if record.token is None or record.token.line != line or record.place is Place.GONE:
            return False
        return record.place is Place.HERE or not self.has_taken(record)

    def has_taken(self, offer: Record) -> bool:
        assert offer.token is not None
        names = {node.fingerprint: node for node in self.network.nodes}
        newest: Mark | None = names[str(offer.receiver)].state.record.newest
        return newest is not None and newest >= offer.token.mark

    def teardown(self) -> None:
        """All come back, and the walk ends everywhere with one and the same model."""
        if not hasattr(self, "network"):
            return
        self.network.cut.clear()
        self.restart_all()
        for node in self.network.nodes:
            node.disk_fails = False
            node.neighbours = self.around[node.fingerprint]
            self.network.feed(node, NewNeighbours(node.neighbours))
        # A sound protocol takes fewer than 500 happenings for it.
        self.network.run(lambda: self.network.finished, maximum=4_000)
        finals = [node.state.record.final for node in self.network.nodes]
        assert len({(final and final.line, final and history(final)) for final in finals}) == 1
        final = finals[0]
        assert final is not None
        for k, number in enumerate(history(final)):
            assert Numbered.made_by[number][1] == history(final)[:k]
        assert len(set(history(final))) == len(self.zero)
        self.what_is_shown_is_charged()

    @property
    def running(self) -> list[MemoryNode]:
        return [node for node in self.network.nodes if node.running is not None]

    @property
    def holders(self) -> list[MemoryNode]:
        return [node for node in self.running if node.state.wants_visit]

    @property
    def tokens(self) -> list[Call]:
        return [call for call in self.network.calls if call.sort is SendToken]

    def pick(self, things: list[Any], which: int) -> Any:
        return things[which % len(things)]
