"""A disk that was put back to an earlier time is noticed, and nothing else is."""

from __future__ import annotations

import asyncio
import shutil
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from tests.node.memory_network import MemoryNetwork, MemoryNode
from tests.node.small_network import in_process, log_lines, make_nodes
from tests.node.test_service import is_met
from tests.running import invoke, until
from walklearn import graphs
from walklearn.node.agreement.plan import Plan
from walklearn.node.disk.store import Store
from walklearn.node.process.control import CommandError
from walklearn.node.protocol import neighbours, protocol
from walklearn.node.protocol.events import Announced, NewNeighbours, Note, Recount
from walklearn.node.protocol.learner import Learner
from walklearn.node.protocol.messages import Outcome, Reminder
from walklearn.node.protocol.record import Record
from walklearn.node.protocol.reminders import LISTEN_SECONDS, Reminders
from walklearn.node.protocol.state import Phase
from walklearn.node.protocol.tokens import Limits, Line, Mark
from walklearn.privacy.model_noise import ModelNoise
from walklearn.updates.random_streams import generators

PLAN = Plan.from_text("""
name = "memory"
nodes = 3
features = ["x"]
target = "y"
loss = "squared"
penalty = 1.0
domain = { ball = 10.0 }
step_size = { constant = 0.05 }
updates = 1200
""")
CAP = 500


def network(plan: Plan = PLAN) -> MemoryNetwork:
    noise = ModelNoise(clip=1.0, noise_multiplier=0.5, max_contributions=CAP, protect="node")
    learners = [
        Learner.of_plan(plan, [[1.0 + i]], [1.0], noise=noise, simulated=True) for i in range(3)
    ]
    made = MemoryNetwork(learners, graphs.ring(3), generators(np.random.SeedSequence(1), nodes=3))
    made.run(lambda: made.connected)
    made.start_walk(made.nodes[0], np.zeros(1))
    return made


def contributed(node: MemoryNode) -> int:
    return node.state.record.contributions


def restored(made: MemoryNetwork) -> MemoryNode:
    """A node whose disk was put back from 50 contributions to 20."""
    node = made.nodes[1]
    made.run(lambda: contributed(node) >= 20)
    backup = node.written
    made.run(lambda: contributed(node) >= 50)
    made.crash(node)
    node.written = backup
    made.restart(node)
    return node


def test_a_restored_backup_is_noticed_and_its_rows_show_no_more() -> None:
    made = network()
    node = restored(made)
    made.run(lambda: node.state.record.memory.forgot)
    counted = contributed(node)
    assert counted < 50  # it had shown its rows more often than it knows
    made.run(lambda: made.finished)
    assert contributed(node) == counted
    assert node.written.memory.forgot  # another start does not change it
    others = [each for each in made.nodes if each is not node]
    assert not any(each.state.record.memory.forgot for each in others)


def test_a_backup_from_before_the_last_visits_is_noticed_too() -> None:
    """The final model shows them, and it comes by no handover but the one to this node."""
    lazy = Plan.from_dict({**PLAN.to_dict(), "laziness": 0.9, "updates": 60})
    made = network(lazy)
    backup: dict[MemoryNode, Record] = {}

    def ended() -> bool:
        backup.update({node: node.written for node in made.nodes if node.written.final is None})
        return any(node.state.phase is Phase.FINISHED for node in made.nodes)

    made.run(ended)
    (node,) = (each for each in made.nodes if each.state.phase is Phase.FINISHED)
    shown = contributed(node)
    assert backup[node].contributions < shown  # it stayed here, and nothing was written
    made.run(lambda: made.finished)
    made.crash(node)
    node.written = backup[node]
    made.restart(node)
    made.run(lambda: made.connected)
    assert node.state.record.memory.forgot


def test_the_owner_decides() -> None:
    made = network()
    node = restored(made)
    made.run(lambda: node.state.record.memory.forgot and made.connected)
    few = made.feed(node, Recount(3))
    assert few is not None
    assert few.outcome is Outcome.REFUSED
    enough = made.feed(node, Recount(50))
    assert enough is not None
    assert enough.outcome is Outcome.ACCEPTED
    made.run(lambda: contributed(node) > 60, most=20_000)
    for _ in range(2):
        made.crash(node)
        made.restart(node)
        made.run(lambda: made.connected)
        assert not node.state.record.memory.forgot
    again = made.feed(node, Recount(99))
    assert again is not None
    assert again.outcome is Outcome.REFUSED


def test_a_crash_forgets_nothing() -> None:
    made = network()
    for number in range(30):
        node = made.nodes[number % 3]
        made.run(lambda goal=made.now + 0.05: made.now >= goal)  # type: ignore[misc]
        made.crash(node)
        made.restart(node)
        made.run(lambda: made.connected)
        assert not any(each.state.record.memory.forgot for each in made.nodes)


def test_a_neighbour_removed_and_added_again_reminds_of_nothing() -> None:
    made = network()
    node = made.nodes[0]
    made.run(lambda: contributed(node) >= 20)
    for number in range(6):
        kept = (node.neighbours[number % 2],)
        made.feed(node, NewNeighbours(kept))
        made.feed(node, NewNeighbours(tuple(node.neighbours)))
        made.run(lambda goal=made.now + 1.0: made.now >= goal, most=20_000)  # type: ignore[misc]
        assert not any(each.state.record.memory.forgot for each in made.nodes)


def test_rows_wait_until_every_neighbour_has_spoken_but_not_for_ever() -> None:
    made = network(Plan.from_dict({**PLAN.to_dict(), "updates": 5_000}))
    silent, node = made.nodes[2], made.nodes[1]
    made.run(lambda: contributed(node) >= 5)
    made.crash(silent)
    made.crash(node)
    made.restart(node)
    began, before = made.now, contributed(node)
    made.run(lambda: made.now > began + 0.9 * LISTEN_SECONDS, most=20_000)
    assert contributed(node) == before
    made.run(lambda: contributed(node) > before, most=20_000)
    assert made.now >= began + LISTEN_SECONDS


def test_protocols_that_are_broken_on_purpose_are_caught(monkeypatch: pytest.MonkeyPatch) -> None:
    with monkeypatch.context() as patch:  # nobody remembers for its neighbours
        patch.setattr(Reminders, "with_token_from", lambda memory, sender, mark, proof: memory)
        made = network()
        node = restored(made)
        made.run(lambda: made.connected)
        assert not node.state.record.memory.forgot
    began_only = Reminders.knows
    monkeypatch.setattr(Reminders, "knows", lambda memory, mark, began, sent: began_only(
        memory, mark, began))  # fmt: skip
    made = network()  # a false alarm comes with the next sign of life
    made.run(lambda: any(each.state.record.memory.forgot for each in made.nodes), most=20_000)


def test_a_mark_that_this_process_sent_is_known() -> None:
    line = Line(0, 1, "ab" * 32, "cd" * 16)
    memory = Reminders()
    assert not memory.knows(Mark(line, 1), began=None)
    assert memory.knows(Mark(line, 5), began=Mark(line, 5))
    assert memory.knows(Mark(line, 6), began=Mark(line, 5), sent=Mark(line, 6))
    assert not memory.knows(Mark(line, 7), began=Mark(line, 5), sent=Mark(line, 6))
    reminded = memory.reminded_of(Mark(line, 7))
    assert reminded.knows(Mark(line, 7), began=None)
    assert not replace(reminded, forgot=False).knows(Mark(line, 8), began=None)


def lie_to(made: MemoryNetwork) -> MemoryNode:
    """A neighbour makes a node out to have forgotten: by its own marks, and by others' proofs."""
    node, liar, other = made.nodes
    made.run(lambda: bool(other.state.record.memory.had.get(node.fingerprint)), most=20_000)
    true, theirs = other.state.record.memory.had, liar.state.announcement(node.fingerprint)
    passed_on = true[node.fingerprint]  # the node did send this, and not to the liar
    lies = [
        Reminder(Mark(Line(9, 9, liar.fingerprint, "0" * 32), 9), bytes(16)),
        passed_on._replace(mark=passed_on.mark._replace(hop=10**6)),
        passed_on._replace(mark=passed_on.mark._replace(hop=10**6), proof=b""),
    ]
    for had in lies:
        told = replace(theirs, had=had)
        made.run(lambda: node.state.phase is Phase.IDLE)
        _, effects = protocol.handle(node.state, Announced(liar.fingerprint, told, made.now))
        named = [each for each in effects if isinstance(each, Note) and each.neighbour]
        assert [(each.what, each.neighbour) for each in named] == [
            ("false reminder", liar.fingerprint)
        ]
        made.feed(node, Announced(liar.fingerprint, told, made.now))
    return node


def test_a_lie_is_passed_over_and_named() -> None:
    made = network()
    node = lie_to(made)
    assert not node.state.record.memory.forgot
    before = contributed(node)
    made.run(lambda: contributed(node) > before, most=20_000)


def test_who_believes_any_reminder_is_lied_to(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(neighbours, "is_own", lambda told, secret, receiver: True)
    with pytest.raises(AssertionError):
        lie_to(network())


def test_what_is_remembered_is_on_the_disk(tmp_path: Path) -> None:
    line = Line(0, 1, "ab" * 32, "cd" * 16)
    had = {"ef" * 32: Reminder(Mark(line, 4), b"a" * 16), "aa" * 32: Reminder(Mark(line, 6), b"")}
    had |= {"bb" * 32: Reminder(Mark(line._replace(counter=2), 2**60), b"b" * 16)}
    memory = Reminders(had, Mark(line, 3), True)
    limits = Limits.of_plan(PLAN)
    with Store.create(tmp_path / "node.sqlite", limits) as store:
        store.commit(Record(memory=memory))
    with Store.open(tmp_path / "node.sqlite", limits) as store:
        kept = store.record.memory
        assert replace(kept, had={}) == replace(memory, had={})
        assert {who: each.mark for who, each in kept.had.items()} == {
            who: each.mark for who, each in had.items()
        }
        assert kept.had["bb" * 32] == had["bb" * 32]


NOISE = """
[privacy]
protect = "node"
epsilon = 3.0
delta = 1e-5
clip = 1.0
max_contributions = 500
"""


def test_real_nodes_notice_a_restored_backup(tmp_path: Path) -> None:
    one, other = make_nodes(tmp_path, 2, [(0, 1)], updates=100_000, more=NOISE)
    backup = tmp_path / "backup.sqlite"

    async def walk(contributions: int) -> None:
        (first, _), (second, _) = in_process(one), in_process(other)
        async with first.started(), second.started():
            await until(lambda: is_met(first) and is_met(second))
            if first.status()["walk"] is None:
                await first.start_walk()
            await until(lambda: first.status()["contributions"] > contributions)

    async def notice() -> int:
        (first, log), (second, _) = in_process(one), in_process(other)
        async with first.started(), second.started():
            await until(lambda: first.status()["forgot"])
            assert "forgot" in [line["event"] for line in log_lines(log.getvalue())]
            counted = int(first.status()["contributions"])
            await asyncio.sleep(0.3)
            assert first.status()["contributions"] == counted
            with pytest.raises(CommandError, match="at least, by its own count"):
                await first.recount(0)
            assert not second.status()["forgot"]
        return counted

    asyncio.run(walk(10))
    shutil.copy(one.store_path, backup)
    asyncio.run(walk(40))
    shutil.copy(backup, one.store_path)
    assert asyncio.run(notice()) < 40
    assert "forgotten" in invoke("node", "status", one.path).output
