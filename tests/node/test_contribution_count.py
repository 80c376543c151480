"""No restored backup, copy, crash or lying neighbour lets a node contribute past its cap."""

from __future__ import annotations

import asyncio
import errno
import itertools
import json
import os
import shutil
from collections import Counter
from collections.abc import Callable
from contextlib import closing
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tests.node.small_network import in_process, make_nodes
from tests.node.test_service import is_met
from tests.running import invoke, until
from walklearn.node.disk import contribution_count
from walklearn.node.disk.contribution_count import ContributionCount
from walklearn.node.disk.database import DiskError, StoreError
from walklearn.node.disk.directory import NodeDirectory
from walklearn.node.disk.store import Store
from walklearn.node.process.status import stored_status
from walklearn.node.protocol.learner import Learner
from walklearn.node.protocol.messages import Announcement
from walklearn.node.protocol.record import Record
from walklearn.node.protocol.state import State
from walklearn.node.protocol.tokens import Limits, Line, Mark
from walklearn.objectives.linear.domains import Ball

CAP = 30
LIMITS = Limits(size=2, updates=100, domain=Ball(1.0))
PWRITE = os.pwrite
PRIVATE = f"""
[privacy]
protect = "node"
epsilon = 3.0
delta = 1e-5
clip = 1.0
max_contributions = {CAP}
"""


def two_nodes(folder: Path) -> list[NodeDirectory]:
    return make_nodes(folder, 2, [(0, 1)], updates=100_000, more=PRIVATE)


def silence_reminders(patch: pytest.MonkeyPatch, behaviour: str) -> None:
    """Let every node omit the reminder from its greetings, or repeat the first one for ever."""
    honest, first = State.announcement, dict[tuple[str, str], Any]()

    def announcement(state: State, neighbour: str, now: float | None = None) -> Announcement:
        said = honest(state, neighbour, now)
        if behaviour == "omit" or said.had is None:
            return replace(said, had=None)
        return replace(said, had=first.setdefault((state.fingerprint, neighbour), said.had))

    patch.setattr(State, "announcement", announcement)


@pytest.fixture
def contributions(monkeypatch: pytest.MonkeyPatch) -> Counter[float]:
    """Contributions that each node has made, over all of its lives, by its smoothness."""
    made, visit = Counter[float](), Learner.visit

    def counting(learner: Learner, token: Any, draws: Any, before: int = 0, *more: Any) -> Any:
        visited = visit(learner, token, draws, before, *more)
        made[learner.smoothness] += visited.contributions - before
        return visited

    monkeypatch.setattr(Learner, "visit", counting)
    return made


async def walk_until(nodes: list[NodeDirectory], contributed: int, updates: int = 0) -> float:
    """Run both nodes until the first has this count and saw these updates; its smoothness."""
    (first, _), (second, _) = in_process(nodes[0]), in_process(nodes[1])
    async with first.started(), second.started():
        await until(lambda: is_met(first) and is_met(second))
        if first.status()["walk"] is None:
            await first.start_walk()
        start = first.status()["updates"]
        await until(
            lambda: (
                first.status()["contributions"] >= contributed
                and first.status()["updates"] >= start + updates
            )
        )
        return first._runtime.state.learner.smoothness


@pytest.mark.parametrize("behaviour", ["omit", "repeat"])
def test_a_restored_directory_does_not_contribute_past_the_cap(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    contributions: Counter[float],
    behaviour: str,
) -> None:
    silence_reminders(monkeypatch, behaviour)
    nodes, backup = two_nodes(tmp_path), tmp_path / "backup"
    asyncio.run(walk_until(nodes, 5))
    shutil.copytree(nodes[0].path, backup)
    asyncio.run(walk_until(nodes, CAP - 5))
    shutil.rmtree(nodes[0].path)
    shutil.copytree(backup, nodes[0].path)
    who = asyncio.run(walk_until(nodes, CAP, updates=4 * CAP))
    assert contributions[who] == CAP


def test_a_copied_directory_does_not_run_beside_the_original(tmp_path: Path) -> None:
    node, _ = two_nodes(tmp_path)
    shutil.copytree(node.path, tmp_path / "copy")
    running, _ = in_process(node)
    with pytest.raises(StoreError, match="copy"):
        in_process(NodeDirectory(tmp_path / "copy"))
    running._close()
    in_process(NodeDirectory(tmp_path / "copy"))[0]._close()


def test_a_damaged_line_gives_no_contribution_back(tmp_path: Path) -> None:
    """Whichever byte is damaged, the next start counts at least as many as were reserved."""
    file = tmp_path / "counts" / ("ab" * 32)
    for reserved in (1, 49, 50):
        ContributionCount.create(file)
        with closing(ContributionCount.open(file)) as count:
            for each in range(1, reserved + 1):
                count.reserve(each)
        intact = file.read_bytes()
        for place in range(len(intact)):
            damaged = bytearray(intact)
            damaged[place] ^= 1
            file.write_bytes(damaged)
            assert reserved <= ContributionCount.read(file) <= reserved + 1
            with closing(ContributionCount.open(file)) as count:
                started = count.value
                assert reserved <= started <= reserved + 1
            with closing(ContributionCount.open(file)) as count:  # not one more at each start
                assert count.value == started


@pytest.mark.parametrize("damage", ["missing", "empty", "text", "of another node"])
def test_a_node_without_its_count_is_refused(tmp_path: Path, damage: str) -> None:
    node, other = two_nodes(tmp_path)
    assert node.count_path is not None
    assert other.count_path is not None
    if damage == "missing":
        node.count_path.unlink()
    else:
        theirs = other.count_path.read_bytes()
        content = {"empty": b"", "text": b"000000000000 00000000\n" * 2, "of another node": theirs}
        node.count_path.write_bytes(content[damage])
    with pytest.raises(StoreError, match="walklearn node init") as refusal:
        in_process(node)
    assert str(node.count_path) in str(refusal.value)
    assert (
        "contributions: at most 30; the file that counts them is missing or damaged"
        in invoke("node", "status", node.path).output
    )
    in_process(other)[0]._close()  # and its files are closed


def test_a_restored_count_file_does_not_lower_the_count(tmp_path: Path) -> None:
    nodes = two_nodes(tmp_path)
    count = nodes[0].count_path
    assert count is not None
    backup = count.read_bytes()
    asyncio.run(walk_until(nodes, 5))
    reserved = ContributionCount.read(count)
    count.write_bytes(backup)
    assert stored_status(nodes[0])["contributions"] == reserved
    in_process(nodes[0])[0]._close()
    assert ContributionCount.read(count) == reserved


def test_only_nodes_with_a_private_plan_have_a_count(tmp_path: Path) -> None:
    for kind in ("plain", "private"):
        (tmp_path / kind).mkdir()
    plain, _ = make_nodes(tmp_path / "plain", 2, [(0, 1)])
    assert plain.count_path is None
    private, _ = two_nodes(tmp_path / "private")
    assert private.count_path is not None
    assert private.count_path.name == private.identity.fingerprint
    assert private.count_path.parent.name == "counts"
    assert not private.count_path.is_relative_to(private.path)
    assert private.count_path.stat().st_mode & 0o777 == 0o600
    settings = json.loads((private.path / "node.json").read_text())
    assert settings["counts"] == str(private.count_path)
    del settings["counts"]
    (private.path / "node.json").write_text(json.dumps(settings))
    with pytest.raises(StoreError, match="walklearn node init"):
        in_process(NodeDirectory(private.path))


class PowerCutError(BaseException):
    """The process ends at this instruction."""


class Life:
    """A process of a node at the disk layer: it contributes below its cap, and may lose power.

    sent: the hops of the tokens that left the node. power_cut: the step of a contribution at which
    the power fails, empty for never.
    """

    STEPS = ("reserve", "half a line", "unsynced", "reserved", "committed", "sent")
    HOPS = itertools.count()

    def __init__(self, database: Path, count: Path, sent: set[int]) -> None:
        self.store = Store.open(database, LIMITS, count)
        self._count, self._sent, self.power_cut = count, sent, ""
        if self.store.record.newest is not None:  # a node offers again what it committed
            sent.add(self.store.record.newest.hop)

    def contribute(self, patch: pytest.MonkeyPatch, power_cut: str) -> None:
        """Make one contribution as a node does: reserve, commit, send."""
        contributions = self.store.record.contributions
        if contributions >= CAP:
            return
        self.power_cut = power_cut
        with patch.context() as faulty:
            faulty.setattr("os.pwrite", self._write)
            faulty.setattr(contribution_count, "_sync", self._synchronise)
            newest = Mark(Line(0, 1, "ab" * 32, "cd" * 16), next(self.HOPS))
            self.store.commit(Record(newest, contributions=contributions + 1))
        self._at("committed")
        self._sent.add(newest.hop)
        self._at("sent")

    def end(self) -> None:
        self.store._pending = None
        self.store.close()

    def _at(self, step: str) -> None:
        if self.power_cut == step:
            raise PowerCutError

    def _write(self, descriptor: int, line: bytes, offset: int) -> int:
        self._at("reserve")
        before = self._count.read_bytes()
        half = len(line) // 2 if self.power_cut == "half a line" else len(line)
        written = PWRITE(descriptor, line[:half], offset)
        self._at("half a line")
        if self.power_cut == "unsynced":  # the page was never forced to the disk
            PWRITE(descriptor, before, 0)
        self._at("unsynced")
        return written

    def _synchronise(self, descriptor: int) -> None:
        os.fsync(descriptor)
        self._at("reserved")


@pytest.mark.parametrize("seed", range(5))
def test_power_cuts_and_restored_backups_never_yield_more_than_the_cap(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, seed: int
) -> None:
    """Cut the power at every step of a contribution, and restore any backup in between."""
    generator, sent = np.random.default_rng(seed), set[int]()
    node, count = tmp_path / "node", tmp_path / "state" / "counts" / ("ab" * 32)
    node.mkdir()
    Store.create(node / "node.sqlite", LIMITS).close()
    ContributionCount.create(count)
    backups, cuts = list[Path](), Counter[str]()
    for number in range(8 * CAP):
        life = Life(node / "node.sqlite", count, sent)
        try:
            for _ in range(generator.integers(3)):
                cut = str(generator.choice(["", *Life.STEPS]))
                life.contribute(monkeypatch, cut)
        except PowerCutError:
            cuts[life.power_cut] += 1
        life.end()
        if generator.random() < 0.3:
            backups.append(tmp_path / f"backup {number}")
            shutil.copytree(node, backups[-1])
        if backups and generator.random() < 0.3:
            shutil.rmtree(node)
            shutil.copytree(backups[generator.integers(len(backups))], node)
    assert 0 < len(sent) <= CAP
    assert set(cuts) == set(Life.STEPS)
    with Store.open(node / "node.sqlite", LIMITS, count) as store:
        assert store.record.contributions == CAP


def test_a_full_disk_reserves_nothing_and_a_failed_sync_ends_the_process(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = tmp_path / "counts" / ("ab" * 32)
    ContributionCount.create(file)

    def fail(code: int) -> Callable[..., int]:
        def failing(*arguments: object) -> int:
            raise OSError(code, os.strerror(code))

        return failing

    with closing(ContributionCount.open(file)) as count:
        with monkeypatch.context() as patch:
            patch.setattr("os.pwrite", fail(errno.ENOSPC))
            with pytest.raises(StoreError, match="No space left"):
                count.reserve(1)
        assert count.value == 0
        with monkeypatch.context() as patch:
            patch.setattr(contribution_count, "_sync", fail(errno.EIO))
            with pytest.raises(DiskError):
                count.reserve(1)
        count.reserve(1)
    assert ContributionCount.read(file) == 1
