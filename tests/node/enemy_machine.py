"""A network with an enemy whose acts cost work: what must hold all the same, and once it stops.

Node 1 is the enemy, in the network of `fault_machine`: the others are connected without it. It
keeps tokens and claims that they moved on, hands one to two neighbours, tells of lines and progress
that can be, offers its old copy under a renewed line. Nothing else goes wrong here. Whatever it
does, no token carries an update twice or one that was not made upon the last; once it has stopped
lying the walk ends by itself, in bounded time, with one model, also if the enemy goes on keeping
tokens. As long as it makes no twins, no honest node distrusts another (in nearly all runs: in 1 of
140 a node had its tokens back from an honest neighbour so seldom that it did). As long as it only
tells of more hops or updates than were made, nobody takes the walk for lost.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule

from tests.node.enemy_network import EnemyNetwork
from tests.node.fault_machine import GRAPH, LATENCY_SECONDS, NODES, Numbered, history, plan_of
from tests.node.memory_network import Call, MemoryNode, Way
from walklearn.node.protocol.events import Announced, Greet, TokenArrived
from walklearn.node.protocol.messages import Announcement, Progress
from walklearn.node.protocol.state import Phase
from walklearn.node.protocol.tokens import Mark, Token, decode_token
from walklearn.streams import generators

# A walk takes some 10 s, and each loss a wait of up to 9.
END_SECONDS = 300.0
# What the enemy claims can be: there was time for it since the last hop.
CREDIBLE_A_SECOND = 2_000


class WatchedEnemies(EnemyNetwork):
    """Looks at every token that an honest node sends."""

    def _send(self, call: Call) -> None:
        if call.sort is not Greet and call.way is Way.ASKED and call.caller is not self.nodes[1]:
            check_lineage(decode_token(call.content, call.caller.learner.limits))
        super()._send(call)


def check_lineage(token: Token) -> None:
    """No update is in it twice, and each was made upon the ones before."""
    made = history(token)
    assert len(set(made)) == len(made)
    for k, number in enumerate(made):
        assert Numbered.made_by[number][1] == made[:k]


class EnemyMachine(RuleBasedStateMachine):
    """What the enemy does next, and for how long the network goes on."""

    updates, latency_seconds = 200, LATENCY_SECONDS

    @initialize(seed=st.integers(0, 1000))
    def begin(self, seed: int) -> None:
        rows = np.eye(self.updates)[:1]
        plan = plan_of(self.updates, "resume_after_seconds = 3.0", CREDIBLE_A_SECOND)
        nodes = [Numbered.of_plan(plan, rows, [1.0]) for _ in range(NODES)]
        streams = generators(np.random.SeedSequence(seed), NODES)
        self.network = WatchedEnemies(nodes, GRAPH, streams, self.latency_seconds)
        self.enemy = self.network.nodes[1]
        self.only_progress, self.twinned = True, False
        self.honest = [node for node in self.network.nodes if node is not self.enemy]
        self.network.run(lambda: self.network.connected)
        self.network.start_walk(self.network.nodes[0], np.zeros(self.updates))

    @rule(seconds=st.sampled_from([0.1, 0.5, 2.0, 10.0]))
    def go_on(self, seconds: float) -> None:
        end = self.network.now + seconds
        self.network.run(lambda: self.network.now > end)

    @rule(claims=st.sampled_from([None, 0, 1, 50]))
    def swallow(self, claims: int | None) -> None:
        """From now on it keeps every token and claims so many updates; None: it does not."""
        self.only_progress &= claims is None
        self.network.swallower = None if claims is None else self.enemy
        self.network.claims = claims or 0

    @rule()
    def twins(self) -> None:
        """It hands its next token to two neighbours."""
        self.only_progress, self.twinned = False, True
        self.network.forger, self.network.forged = self.enemy, 29

    @rule(which=st.integers(0, 1), kind=st.sampled_from(["line", "hop", "updates"]))
    def lie(self, which: int, kind: str) -> None:
        """It tells a neighbour of a line that it begins, or of progress; both can be."""
        victim = self.around[which]
        line, seen = victim.state.record.newest_line, victim.state.seen
        if line is None or seen is None or victim.state.phase is Phase.FINISHED:
            return
        said = self.enemy.state.announcement(victim.fingerprint)
        if kind == "line":
            self.only_progress = False
            newer = line._replace(counter=line.counter + 1, reclaimer=self.enemy.fingerprint)
            said = replace(said, newest=newer)
        else:
            far = max(seen.mark.hop + 1, min(self.updates - 1, seen.updates + 30))
            hop = far if kind == "hop" else seen.mark.hop
            said = replace(said, progress=Progress(Mark(seen.mark.line, hop), far, 0.0))
        self.say(victim, said)

    def say(self, victim: MemoryNode, said: Announcement) -> None:
        self.network.feed(victim, Announced(self.enemy.fingerprint, said, self.network.now))

    @rule(which=st.integers(0, 1))
    def renewal(self, which: int) -> None:
        """It offers the copy it has under a renewed line, though the token is elsewhere."""
        victim, copy = self.around[which], self.enemy.state.record.newest_model
        if copy is None or copy.final or copy.updates <= copy.line.updates:
            return
        self.only_progress = False
        forged = replace(copy, line=copy.line._replace(updates=copy.updates), hop=1, epoch="")
        arrived = TokenArrived(self.enemy.fingerprint, forged, victim.draws(), self.network.now)
        self.network.feed(victim, arrived)

    @property
    def around(self) -> list[MemoryNode]:
        return [self.network._named[name] for name in self.enemy.neighbours]

    @invariant()
    def nobody_honest_is_distrusted(self) -> None:
        """Where there were two tokens the loss of one may seem to be that of the other."""
        for one in self.honest:
            for other in self.honest:
                assert self.twinned or not one.state.distrusts(other.fingerprint)

    @invariant()
    def progress_that_was_not_made_makes_nobody_resume(self) -> None:
        lines = [node.state.record.newest_line for node in self.network.nodes]
        assert not self.only_progress or {line.counter for line in lines if line} <= {1}

    def teardown(self) -> None:
        if not hasattr(self, "network"):
            return
        self.network.forger = None
        end = self.network.now + END_SECONDS

        def ended() -> bool:
            finals = {node.state.record.final_digest for node in self.honest}
            return all(n.state.phase is Phase.FINISHED for n in self.honest) and len(finals) == 1

        self.network.run(lambda: ended() or self.network.now > end)
        assert ended()
        final = self.honest[0].state.record.final
        assert final is not None
        check_lineage(final)
        assert len(history(final)) == self.updates
        self.nobody_honest_is_distrusted()
        self.progress_that_was_not_made_makes_nobody_resume()


class SlowEnemyMachine(EnemyMachine):
    """Others lose patience before a line is so old that it is renewed."""

    updates, latency_seconds = 400, 0.3
