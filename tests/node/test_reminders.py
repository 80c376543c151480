"""Neighbours notice a restored backup, and nothing else."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from tests.node.memory_network import MemoryNetwork, MemoryNode
from walklearn import graphs
from walklearn.node.agreement.plan import Plan
from walklearn.node.disk.store import Store
from walklearn.node.protocol.events import NewNeighbours
from walklearn.node.protocol.learner import Learner
from walklearn.node.protocol.record import Record
from walklearn.node.protocol.reminders import Reminders
from walklearn.node.protocol.state import Phase
from walklearn.node.protocol.tokens import Limits, Line, Mark
from walklearn.privacy.model_noise import ModelNoise
from walklearn.streams import generators

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
    noise = None if plan.memory else noise
    learners = [Learner.of_plan(plan, [[1.0 + i]], [1.0], noise=noise) for i in range(3)]
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


def was_reminded(node: MemoryNode) -> bool:
    return node.state.record.memory.reminded is not None


def test_a_restored_backup_is_noticed_and_its_gradients_are_forgotten() -> None:
    plan = {key: value for key, value in PLAN.to_dict().items() if key != "step_size"}
    made = network(Plan.from_dict({**plan, "update": "saga"}))
    node = made.nodes[1]
    made.run(lambda: node.drawn >= 20)
    backup = node.written
    assert backup.kept is not None
    made.run(lambda: node.drawn >= 50)
    made.crash(node)
    node.written = backup
    made.restart(node)
    made.run(lambda: was_reminded(node))
    kept = node.state.record.kept
    assert kept is not None
    assert kept.epoch != backup.kept.epoch
    assert backup.kept.epoch in kept.past
    assert node.written.memory.reminded is not None  # another start does not change it
    assert not any(was_reminded(each) for each in made.nodes if each is not node)
    made.run(lambda: made.finished)


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
    assert was_reminded(node)


def test_a_crash_forgets_nothing() -> None:
    made = network()
    for number in range(30):
        node = made.nodes[number % 3]
        made.run(lambda goal=made.now + 0.05: made.now >= goal)  # type: ignore[misc]
        made.crash(node)
        made.restart(node)
        made.run(lambda: made.connected)
        assert not any(map(was_reminded, made.nodes))


def test_a_neighbour_removed_and_added_again_reminds_of_nothing() -> None:
    made = network()
    node = made.nodes[0]
    made.run(lambda: contributed(node) >= 20)
    for number in range(6):
        kept = (node.neighbours[number % 2],)
        made.feed(node, NewNeighbours(kept))
        made.feed(node, NewNeighbours(tuple(node.neighbours)))
        made.run(lambda goal=made.now + 1.0: made.now >= goal, maximum=20_000)  # type: ignore[misc]
        assert not any(map(was_reminded, made.nodes))


def test_protocols_that_are_broken_on_purpose_are_caught(monkeypatch: pytest.MonkeyPatch) -> None:
    with monkeypatch.context() as patch:  # nobody remembers for its neighbours
        patch.setattr(Reminders, "with_token_from", lambda memory, sender, mark: memory)
        made = network()
        node = restored(made)
        made.run(lambda: made.connected)
        assert not was_reminded(node)
    began_only = Reminders.knows
    monkeypatch.setattr(Reminders, "knows", lambda memory, mark, began, sent: began_only(
        memory, mark, began))  # fmt: skip
    made = network()  # a false alarm comes with the next sign of life
    made.run(lambda: any(map(was_reminded, made.nodes)), maximum=20_000)


def test_a_mark_that_this_process_sent_is_known() -> None:
    line = Line(0, 1, "ab" * 32, "cd" * 16)
    memory = Reminders()
    assert not memory.knows(Mark(line, 1), began=None)
    assert memory.knows(Mark(line, 5), began=Mark(line, 5))
    assert memory.knows(Mark(line, 6), began=Mark(line, 5), sent=Mark(line, 6))
    assert not memory.knows(Mark(line, 7), began=Mark(line, 5), sent=Mark(line, 6))
    reminded = memory.reminded_of(Mark(line, 7))
    assert reminded.knows(Mark(line, 7), began=None)
    assert not reminded.knows(Mark(line, 8), began=None)


def test_what_is_remembered_is_on_the_disk(tmp_path: Path) -> None:
    line = Line(0, 1, "ab" * 32, "cd" * 16)
    had = {"ef" * 32: Mark(line, 4), "aa" * 32: Mark(line, 6)}
    had |= {"bb" * 32: Mark(line._replace(counter=2), 2**60)}
    memory = Reminders(had, Mark(line, 3))
    limits = Limits.of_plan(PLAN)
    with Store.create(tmp_path / "node.sqlite", limits) as store:
        store.commit(Record(memory=memory))
    with Store.open(tmp_path / "node.sqlite", limits) as store:
        kept = store.record.memory
        assert replace(kept, had={}) == replace(memory, had={})
        assert kept.had == had
