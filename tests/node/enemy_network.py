"""A network in memory with enemies among its nodes, and what must hold in spite of them.

Each scenario raises where the walk does not come to its one end. The updates write their own number
into the model, as in `fault_machine`.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import numpy as np

from tests.node.fault_machine import Numbered, history
from tests.node.made_tokens import changed, made_token
from tests.node.memory_network import Call, MemoryNetwork, MemoryNode, Way
from walklearn import graphs
from walklearn.node.agreement.plan import Plan
from walklearn.node.protocol import messages
from walklearn.node.protocol.events import Announced, FinalArrived, SendToken, TokenArrived
from walklearn.node.protocol.messages import Announcement, Outcome, Progress, Receipt
from walklearn.node.protocol.state import Phase
from walklearn.node.protocol.tokens import Line, Mark, Token, decode_token
from walklearn.streams import generators

NODES, UPDATES = 6, 400
GRAPH = graphs.from_edges([(i, (i + 1) % NODES) for i in range(NODES)] + [(0, 3), (1, 4)])


class EnemyNetwork(MemoryNetwork):
    """One node may swallow tokens, or hand each to two neighbours."""

    swallower: MemoryNode | None = None
    claims = 0
    taken = 0
    gives_back = 0  # one of so many that come to it; 0 for none
    mute: MemoryNode | None = None  # answers greetings, and no offer of the token
    clumsy: MemoryNode | None = None  # is not there for so many seconds after each offer
    away_seconds, back_at = 0.0, 0.0
    forger: MemoryNode | None = None
    forged = 0

    def _ask(self, call: Call, crash_after: int | None) -> None:
        if call.callee is self.swallower and call.sort is SendToken and self._keeps():
            receipt = messages.encode_receipt(Receipt(Outcome.ACCEPTED))
            self._send(replace(call, way=Way.ANSWERED, content=receipt))
            if self.claims:
                self._at(self.now + 3 * self.latency_seconds, self._claim, call)
            return
        if call.callee is self.mute and call.sort is SendToken:
            self.taken += 1
            self._leave_unanswered(call)
        elif call.callee is self.clumsy and self._is_away(call):
            self._leave_unanswered(call)
        else:
            super()._ask(call, crash_after)

    def _leave_unanswered(self, call: Call) -> None:
        """The caller learns nothing, when it has waited for as long as it does."""
        waits = call.caller.state.answer_within_seconds(call.callee.fingerprint)
        self._at(self.now + waits, self._send, replace(call, way=Way.LOST))

    def _is_away(self, call: Call) -> bool:
        """It leaves when it is first offered a token, and stays a little when it has come back."""
        offer = call.caller.state.handover
        first = call.sort is SendToken and offer is not None and not offer.attempts
        if first and self.now > self.back_at + 0.1 and self.taken < 4:
            self.taken += 1
            self.back_at = self.now + self.away_seconds
        return self.now < self.back_at

    def _keeps(self) -> bool:
        self.taken += 1
        return not self.gives_back or self.taken % self.gives_back != 0

    def _claim(self, call: Call) -> None:
        """The swallower says that it has passed the token on, and that it has come so far."""
        token = decode_token(call.content, call.callee.learner.limits)
        updates = min(token.updates + self.claims, call.callee.learner.plan.updates - 1)
        beyond = Progress(Mark(token.line, token.hop + 1), updates, 0.0)
        for name in call.callee.neighbours:
            told = call.callee.state.announcement(name, self.now)
            told = replace(told, progress=beyond, newest=token.line)
            self.feed(self._named[name], Announced(call.callee.fingerprint, told, self.now))

    def _send(self, call: Call) -> None:
        super()._send(call)
        forges = call.sort is SendToken and call.way is Way.ASKED and call.caller is self.forger
        if forges and self.forged < 30:
            self.forged += 1
            others = [name for name in call.caller.neighbours if name != call.callee.fingerprint]
            callee = self._named[others[0]]
            super()._send(replace(call, callee=callee, lives=(call.lives[0], callee.life)))


def network_of(more: str = "", seed: int = 1, updates: int = UPDATES) -> EnemyNetwork:
    plan = Plan.from_text(f"""
name = "enemies"
nodes = {NODES}
features = {[f"update {k}" for k in range(updates)]}
target = "y"
loss = "squared"
update = "saga"
updates = {updates}
time_limits = {{ {more} }}
""")
    nodes = [Numbered.of_plan(plan, np.eye(updates)[:1], [1.0]) for _ in range(NODES)]
    network = EnemyNetwork(nodes, GRAPH, generators(np.random.SeedSequence(seed), NODES))
    network.run(lambda: network.connected)
    network.start_walk(network.nodes[0], np.zeros(updates))
    return network


def newest(network: MemoryNetwork) -> int:
    """How many updates were made, as far as anyone has seen."""
    models = [node.state.record.newest_model for node in network.nodes]
    return max(0 if model is None else model.updates for model in models)


def within(network: MemoryNetwork, seconds: float, is_so: Callable[[], bool]) -> None:
    """Let time pass until something is so; it must be before so many seconds are over."""
    end = network.now + seconds
    network.run(lambda: is_so() or network.now > end)
    assert is_so()


def the_end(network: MemoryNetwork, without: MemoryNode | None = None) -> Token:
    """The one final model of all but one node; every update of it once, each made upon the last."""
    nodes = [node for node in network.nodes if node is not without]
    within(network, 300.0, lambda: all(node.state.phase is Phase.FINISHED for node in nodes))
    within(network, 30.0, lambda: len({node.state.record.final_digest for node in nodes}) == 1)
    final = nodes[0].state.record.final
    assert final is not None
    for k, number in enumerate(history(final)):
        assert Numbered.made_by[number][1] == history(final)[:k]
    return final


def holder_gone_for_good(seed: int = 1) -> float:
    """Seconds until the others have made further updates."""
    network = network_of(seed=seed)
    network.run(lambda: newest(network) > 50)
    network.run(lambda: any(node.state.wants_visit for node in network.nodes))
    (holder,) = (node for node in network.nodes if node.state.wants_visit)
    network.crash(holder)
    begin, before = network.now, newest(network)
    within(network, 60.0, lambda: newest(network) > before)
    seconds = network.now - begin
    assert the_end(network, without=holder).line.counter > 1
    return seconds


def undisturbed(seed: int = 1) -> None:
    """A slow network: nobody takes the walk for lost."""
    network = network_of(seed=seed)
    network.latency_seconds = 0.2
    assert the_end(network).line.counter == 1


def newcomer_begins_a_walk(seed: int = 1) -> None:
    """A node that was cut off begins a walk of its own, though one is under way."""
    network = network_of(seed=seed)
    newcomer = network.nodes[-1]  # with the largest fingerprint
    around = {frozenset((newcomer.fingerprint, each)) for each in newcomer.neighbours}
    network.cut |= around
    network.run(lambda: newest(network) > 200)
    newcomer.written = newcomer.state.record.__class__()
    network.crash(newcomer)
    network.restart(newcomer)
    network.start_walk(newcomer, np.zeros(UPDATES), "f" * 32)
    network.cut -= around
    for each in newcomer.neighbours:  # before the walk under way ends
        network.greet(newcomer, each)
    final = the_end(network)
    assert final.line.walk == "0" * 32
    assert final.line.counter == 1


def two_parts_end(seed: int = 1) -> None:
    """The network is cut in two; both parts come to an end, and then they meet."""
    network = network_of(seed=seed)
    network.run(lambda: newest(network) > 100)
    parts = [network.nodes[:3], network.nodes[3:]]
    names = [{node.fingerprint for node in part} for part in parts]
    network.cut |= {frozenset((one, other)) for one in names[0] for other in names[1]}
    within(network, 300.0, lambda: all(n.state.phase is Phase.FINISHED for n in network.nodes))
    assert len({node.state.record.final_digest for node in network.nodes}) == 2
    network.cut.clear()
    the_end(network)


def two_tokens_of_one_line(seed: int = 1) -> None:
    """A node hands each token to two neighbours; nobody begins the walk again."""
    network = network_of("resume_after_seconds = 0.0", seed)
    network.run(lambda: newest(network) > 20)
    network.forger = network.nodes[3]
    the_end(network)
    assert network.forged


def token_of_long_ago(seed: int = 1) -> None:
    """A neighbour makes up a token of the line under way, as it might have been at its beginning.

    Again and again, and under every hop: nobody takes it up and begins a line with it.
    """
    network = network_of("resume_after_seconds = 0.0", seed)
    liar, told = network.nodes[2], 0
    while newest(network) < UPDATES - 60:
        goal = newest(network) + 20
        within(network, 10.0, lambda goal=goal: newest(network) > goal)  # type: ignore[misc]
        victim = idle_neighbour(network, liar)
        mark, copy = victim.state.record.newest, victim.state.record.newest_model
        if mark is None or copy is None:
            continue
        told += 1
        for hop in range(1, mark.hop + 1):
            made = min(hop, copy.updates - 1)
            forged = made_token(mark.line, hop, made, np.zeros(UPDATES))
            arrived = TokenArrived(liar.fingerprint, forged, victim.draws(), network.now)
            network.feed(victim, arrived)
        assert victim.state.record.token is copy
    assert told
    assert the_end(network).line.counter == 1


def token_swallowed(seed: int = 1) -> None:
    """A neighbour takes every token and keeps it."""
    network = network_of(seed=seed)
    network.run(lambda: newest(network) > 20)
    network.swallower = enemy = network.nodes[2]
    the_end(network, without=enemy)
    around = [node for node in network.nodes if enemy.fingerprint in node.neighbours]
    assert any(node.state.distrusts(enemy.fingerprint) for node in around)


def token_left_unanswered(seed: int = 1) -> None:
    """A neighbour answers greetings, and never says whether it took a token."""
    network = network_of(seed=seed)
    network.run(lambda: newest(network) > 20)
    network.mute, begin = network.nodes[2], network.now
    enemy = network.mute.fingerprint
    the_end(network, without=network.mute)
    around = [node for node in network.nodes if enemy in node.neighbours]
    assert all(node.state.distrusts(enemy) for node in around)
    assert network.now - begin < 60.0
    assert nobody_else_is_distrusted(network, enemy)


def away_when_the_token_comes(seed: int = 1) -> None:
    """A neighbour is cut off again and again, just when it is offered the token; it is honest."""
    for seconds in (0.5, 1.5, 1.99, 2.5):
        network = network_of(seed=seed)
        network.run(lambda network=network: newest(network) > 20)  # type: ignore[misc]
        network.clumsy, network.away_seconds = network.nodes[2], seconds
        the_end(network)
        assert network.taken > 1
        assert nobody_else_is_distrusted(network)


def nobody_else_is_distrusted(network: MemoryNetwork, enemy: str = "") -> bool:
    honest = [node for node in network.nodes if node.fingerprint != enemy]
    return not any(a.state.distrusts(b) for a in honest for b in a.neighbours if b != enemy)


def token_swallowed_and_claimed(seed: int = 1) -> None:
    """A neighbour keeps every token, and claims each time that the walk moved on beyond it."""
    network = network_of(seed=seed)
    network.run(lambda: newest(network) > 60)
    network.swallower, network.claims = network.nodes[2], 1
    enemy = network.swallower.fingerprint
    around = [node for node in network.nodes if enemy in node.neighbours]
    within(network, 900.0, lambda: all(node.state.distrusts(enemy) for node in around))
    the_end(network, without=network.swallower)
    assert nobody_else_is_distrusted(network, enemy)


def token_given_back_now_and_then(seed: int = 1) -> None:
    """A swallower that claims gives back one token of six, so that it need not be distrusted.

    What it can do is bounded: a token that it keeps costs a wait of less than three times the
    patience, here 9 s, and what was done since the copy from which another goes on.
    """
    network = network_of("resume_after_seconds = 3.0", seed)
    network.run(lambda: newest(network) > 20)
    network.swallower, network.claims, network.gives_back = network.nodes[2], 50, 6
    nodes, begin = [node for node in network.nodes if node is not network.swallower], network.now
    within(network, 3_000.0, lambda: all(n.state.phase is Phase.FINISHED for n in nodes))
    assert network.now - begin < 30.0 + 9.0 * network.taken
    the_end(network, without=network.swallower)


def lies(seed: int = 1) -> None:
    """A neighbour tells of lines that cannot be, forges an end, and hands over a token too far."""
    network = network_of("most_updates_per_second = 100.0", seed, updates=2_000)
    network.run(lambda: newest(network) > 20)
    liar = network.nodes[2]
    for line in (Line(1_900, 2, "f" * 64, "0" * 32), Line(1, 2**62, "f" * 64, "0" * 32)):
        for name in liar.neighbours:
            victim = network._named[name]
            told = Announcement(2, 1.0, True, newest=line)
            network.feed(victim, Announced(liar.fingerprint, told, network.now))
            model = np.zeros(2_000)
            far = made_token(line, 9, 1_998, model, model, 1.0, 1.0)
            arrived = TokenArrived(liar.fingerprint, far, victim.draws(), network.now)
            network.feed(victim, arrived)
            end = changed(far, updates=2_000, final=True)
            network.feed(victim, FinalArrived(liar.fingerprint, end, network.now))
    within(network, 60.0, lambda: newest(network) > 300)
    assert not any(node.state.record.final for node in network.nodes)
    assert {node.state.record.newest_line.counter for node in network.nodes} == {1}  # type: ignore[union-attr]


def end_forged_in_a_short_plan(seed: int = 1) -> None:
    """At the plan's rate, which is the default, all its updates would take less than a second."""
    network = network_of(seed=seed, updates=1_500)
    network.run(lambda: newest(network) > 20)
    liar, model = network.nodes[2], np.zeros(1_500)
    for name in liar.neighbours:
        line = network._named[name].state.record.newest_line
        assert line is not None
        end = made_token(line, 9, 1_500, model, final=True)
        network.feed(network._named[name], FinalArrived(liar.fingerprint, end, network.now))
    assert not any(node.state.record.final for node in network.nodes)
    the_end(network)


def faster_than_is_believed(seed: int = 1) -> None:
    """Messages take no time to speak of; the walk is slowed to the plan's rate, and no further."""
    network = network_of("most_updates_per_second = 1000.0", seed, updates=2_000)
    network.latency_seconds, begin = 1e-5, network.now
    assert the_end(network).line.counter == 1
    assert 1.5 < network.now - begin < 3.0


def parts_that_went_on_meet(seed: int = 1) -> None:
    """The network is cut in two, one part goes on later; they agree soon after they meet."""
    limits = (
        "most_updates_per_second = 1000.0, hello_every_seconds = 0.5, resume_after_seconds = 4.0"
    )
    network = network_of(limits, seed, updates=2_000)
    network.run(lambda: newest(network) > 100)
    parts = [network.nodes[:3], network.nodes[3:]]
    network.run(lambda: any(node.state.wants_visit for node in parts[0]))
    names = [{node.fingerprint for node in part} for part in parts]
    network.cut |= {frozenset((one, other)) for one in names[0] for other in names[1]}

    def reached(part: list[MemoryNode]) -> int:
        models = [node.state.record.newest_model for node in part]
        return max(0 if model is None else model.updates for model in models)

    network.run(lambda: min(map(reached, parts)) > 300)
    assert reached(parts[0]) > 500
    network.cut.clear()

    def agree() -> bool:
        lines = [node.state.record.newest_line for node in network.nodes]
        return len({line and line.beginning for line in lines}) == 1

    within(network, 4.0, agree)
    the_end(network)


def say(network: EnemyNetwork, liar: MemoryNode, victim: MemoryNode, progress: Progress) -> None:
    """The liar greets with this progress, and with its line as the newest."""
    told = Announcement(2, 1.0, True, newest=progress.mark.line, progress=progress)
    network.feed(victim, Announced(liar.fingerprint, told, network.now))


def idle_neighbour(network: EnemyNetwork, liar: MemoryNode) -> MemoryNode:
    """A neighbour that the token is not at, once there is one."""
    around = [network._named[name] for name in liar.neighbours]
    within(network, 10.0, lambda: any(node.state.phase is Phase.IDLE for node in around))
    return next(node for node in around if node.state.phase is Phase.IDLE)


def small_lies_many(seed: int = 1) -> None:
    """Each claim is a little further than the last that was believed; no time passes."""
    network = network_of("most_updates_per_second = 200.0", seed, updates=2_000)
    network.run(lambda: newest(network) > 20)
    liar = network.nodes[2]
    victim = idle_neighbour(network, liar)
    line = victim.state.record.newest_line
    assert line is not None
    for k in range(1, 300):
        for more in range(0, 200, 40):  # the line first, then the updates
            seen = victim.state.seen
            assert seen is not None
            far = max(seen.updates, seen.mark.line.updates) + more
            later = Line(far, line.counter + 900 * k, liar.fingerprint, "0" * 32)
            for told in (later, later._replace(counter=line.counter), line._replace(updates=far)):
                say(network, liar, victim, Progress(Mark(told, k), 1, 0.0))
            say(network, liar, victim, Progress(Mark(seen.mark.line, seen.mark.hop + 1), far, 1e9))
    assert not victim.state.believes(line, 800, network.now)
    assert not victim.state.believes(line._replace(counter=3_000), 20, network.now)
    model = np.zeros(2_000)
    end = made_token(line, 9, 2_000, model, model, 1.0, 1.0, final=True)
    network.feed(victim, FinalArrived(liar.fingerprint, end, network.now))
    assert victim.state.record.final is None


def old_news(seed: int = 1) -> None:
    """Progress that is said to be very old makes nobody take the walk for lost."""
    network = network_of(seed=seed)
    network.run(lambda: newest(network) > 50)
    liar = network.nodes[2]
    for _ in range(20):
        victim = idle_neighbour(network, liar)
        seen = victim.state.seen
        assert seen is not None
        further = Progress(Mark(seen.mark.line, seen.mark.hop + 1), seen.updates + 1, 1e9)
        say(network, liar, victim, further)
        goal = newest(network) + 5
        within(network, 1.0, lambda goal=goal: newest(network) > goal)  # type: ignore[misc]
    assert the_end(network).line.counter == 1


def progress_inflated(seed: int = 1) -> None:
    """A neighbour tells of more hops than were made, again and again; nobody misses the walk."""
    network = network_of("resume_after_seconds = 3.0", seed)
    network.run(lambda: newest(network) > 20)
    network.latency_seconds = 0.2  # so the line is seldom renewed for its age
    liar = network.nodes[2]
    while newest(network) < UPDATES - 40:
        victim = idle_neighbour(network, liar)
        seen = victim.state.seen
        assert seen is not None
        far = UPDATES - 1
        say(network, liar, victim, Progress(Mark(seen.mark.line, far), far, 0.0))
        then = network.now + 8.0
        network.run(lambda then=then: network.now > then)  # type: ignore[misc]
    assert the_end(network).line.counter == 1
