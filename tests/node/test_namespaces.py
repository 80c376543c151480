"""Hosts with addresses of their own, in network namespaces: one is cut off and healed, one dies.

A switch is a namespace with a bridge, a host one with a cable (veth) to it. Cutting a host off
is setting its cable down at the switch, as when a plug is pulled: no message says so. A token that
was about to cross may have arrived or not; its sender waits, then continues with a new generation.
"""

from __future__ import annotations

import itertools
import os
import secrets
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import numpy as np
import pytest

import walklearn as wl
from tests.node import small_network
from tests.node.small_network import (
    Process,
    introduce,
    is_running,
    log_lines,
    ring,
    rows_of,
    wait_until,
)
from tests.running import missing
from walklearn.node.disk.creation import create_node
from walklearn.node.disk.directory import NodeDirectory
from walklearn.node.disk.kept_model import newest_model
from walklearn.node.disk.roster_signer import change_roster, new_roster
from walklearn.node.disk.store import Store
from walklearn.node.process.control import send_command
from walklearn.node.process.service import UNCONFIRMED
from walklearn.node.protocol.record import Place
from walklearn.node.protocol.tokens import Limits

pytestmark = pytest.mark.slow

HOSTS = 5
EDGES = [*ring(HOSTS), (0, 2), (1, 3), (2, 4)]
UPDATES = 3000
CUT = 1
OTHERS = [number for number in range(HOSTS) if number != CUT]
PLAN = (
    small_network.PLAN.format(nodes=HOSTS, updates=UPDATES, more="")
    + "handover_timeout_seconds = 1.0\nreclaim_after_seconds = 3.0\n"
)


def ip(*arguments: str) -> None:
    subprocess.run(["ip", *arguments], check=True, capture_output=True, timeout=60)


class Hosts:
    """The switch and the hosts h0, h1, …, named so that two runs do not meet."""

    def __init__(self, count: int) -> None:
        mark = secrets.token_hex(2)
        self.switch = f"wl{mark}s"
        self.names = [f"wl{mark}h{number}" for number in range(count)]

    def make(self) -> None:
        ip("netns", "add", self.switch)
        ip("-n", self.switch, "link", "add", "bridge", "type", "bridge")
        ip("-n", self.switch, "link", "set", "bridge", "up")
        for number, name in enumerate(self.names):
            ip("netns", "add", name)
            plug = f"plug{number}"
            ip("-n", self.switch, "link", "add", plug, "type", "veth", "peer", "name", "cable",
               "netns", name)  # fmt: skip
            ip("-n", self.switch, "link", "set", plug, "master", "bridge", "up")
            ip("-n", name, "address", "add", f"10.77.0.{number + 1}/24", "dev", "cable")
            ip("-n", name, "link", "set", "cable", "up")
            ip("-n", name, "link", "set", "lo", "up")

    def cut(self, number: int) -> None:
        ip("-n", self.switch, "link", "set", f"plug{number}", "down")

    def heal(self, number: int) -> None:
        ip("-n", self.switch, "link", "set", f"plug{number}", "up")

    def remove(self) -> None:
        for name in (*self.names, self.switch):
            subprocess.run(["ip", "netns", "delete", name], capture_output=True, check=False)


class OnHost(Process):
    """A node's process on a host of its own."""

    def __init__(self, directory: NodeDirectory, host: str, *options: str) -> None:
        self.directory = directory
        self.log = directory.path.with_suffix(".log")
        command = ["ip", "netns", "exec", host, sys.executable, "-m", "walklearn.cli", "node",
                   "run", str(directory.path), *options]  # fmt: skip
        with self.log.open("a") as log:
            self.popen = subprocess.Popen(command, stderr=log)


@contextmanager
def hosts(count: int) -> Iterator[Hosts]:
    made = Hosts(count)
    try:
        made.make()
    except (OSError, subprocess.SubprocessError) as error:
        made.remove()
        missing(f"network namespaces cannot be made here (root and iproute2 needed): {error}")
    try:
        yield made
    finally:
        made.remove()


@contextmanager
def on_hosts(nodes: list[NodeDirectory], hosts: Hosts, *options: str) -> Iterator[list[OnHost]]:
    """Each node on its host, all of them answering; none is left behind."""
    pairs = zip(nodes, hosts.names, strict=True)
    running = [OnHost(node, host, *options) for node, host in pairs]
    try:
        for each in running:
            wait_until(lambda each=each: is_running(each))  # type: ignore[misc]
        yield running
    finally:
        for each in running:
            each.end()


def make_nodes(folder: Path, updates: int = UPDATES, more: str = "") -> list[NodeDirectory]:
    plan = folder / "plan.toml"
    text = PLAN.replace(f"updates = {UPDATES}", f"updates = {updates}\n{more}")
    plan.write_text(text.replace("step_size = { constant = 0.05 }", 'update = "saga"'))
    made = []
    for number in range(HOSTS):
        address = f"10.77.0.{number + 1}:7447"
        made.append(
            create_node(
                folder / f"node{number}", plan=plan, data=rows_of(number), listen=address,
                address=address, accept_unprotected=True,
            ).directory
        )  # fmt: skip
    for one, other in EDGES:
        introduce(made[one], made[other])
    return made


def assert_at_the_minimum(nodes: list[NodeDirectory], whose: list[int], updates: int) -> None:
    """All of them have one model, that which minimises Σ f_i over these nodes."""
    models = [newest_model(nodes[number])[0] for number in whose]
    assert {model.updates for model in models} == {updates}
    assert len({model.weights.tobytes() for model in models}) == 1
    rows = [rows_of(number) for number in whose]
    problem = wl.Problem(
        np.concatenate([each.X for each in rows]), np.concatenate([each.y for each in rows]),
        penalty=len(whose) / HOSTS, domain=wl.domains.Ball(10.0),
        node_of_row=np.repeat(np.arange(len(whose)), 5),
    )  # fmt: skip
    best = problem.solution.model
    assert np.linalg.norm(models[0].weights - best) < 1e-6 * np.linalg.norm(best)


def test_a_host_that_is_cut_off_is_walked_around_and_joins_again(tmp_path: Path) -> None:
    """The walk remembers, and ends at w* although it was long without one node's rows."""
    nodes = make_nodes(tmp_path)
    with hosts(HOSTS) as made, on_hosts(nodes, made) as running:
        cut_off_and_heal(running, made)
        assert [each.wait() for each in running] == [0] * HOSTS
    assert_at_the_minimum(nodes, list(range(HOSTS)), UPDATES)
    assert "neighbour down" in "".join(each.log.read_text() for each in running)


def test_a_walk_that_remembers_outlives_a_partition_and_its_holder(tmp_path: Path) -> None:
    """Its host cut off and healed, then whoever has the token is gone, and its rows with it."""
    updates = 8 * UPDATES  # enough for all of this: the walk must not end while a host is away
    nodes = make_nodes(tmp_path, updates, "laziness = 0.8")
    with hosts(HOSTS) as made, on_hosts(nodes, made, "--linger-seconds", "5") as running:
        cut_off_and_heal(running, made)
        dead = kill_the_holder(running, tmp_path)
        left = [number for number in range(HOSTS) if running[number] is not dead]
        survivors = [running[number] for number in left]
        before = new_lines(survivors)
        ends = [each.wait() for each in survivors]
    assert UNCONFIRMED in ends
    assert_at_the_minimum(nodes, left, updates)
    assert new_lines(survivors) > before


def cut_off_and_heal(running: list[OnHost], hosts: Hosts) -> None:
    """Begin a walk; one host is cut off for a while, and walked to again."""
    send_command(running[0].directory.path, "StartWalk", resume=False)
    wait_until(lambda: progress(running, [CUT]) > 100)
    hosts.cut(CUT)
    reached = progress(running, range(HOSTS))
    wait_until(lambda: progress(running, OTHERS) > reached + 300)  # they work on without it
    assert progress(running, [CUT]) < progress(running, OTHERS)
    assert not any(n["usable"] for n in running[CUT].status()["neighbours"])
    hosts.heal(CUT)
    healed = progress(running, range(HOSTS))
    wait_until(lambda: progress(running, [CUT]) > healed)  # the token comes to it again


def progress(running: list[OnHost], whose: range | list[int]) -> int:
    """The newest update that these nodes know of."""
    return max(int(running[number].status()["updates"]) for number in whose)


def test_a_walk_outlives_its_holder_among_nodes_that_cannot_be_dialled(tmp_path: Path) -> None:
    """Twelve hosts, joined by the roster. Two answer on their own loopback only, as behind NAT.

    One that can be dialled is killed for good while the token is on its disk. The others go on and
    end by themselves, with one model; all of them say that it never confirmed.
    """
    nodes = joined_by_the_roster(tmp_path, 12, behind_nat=2)
    with hosts(12) as made, on_hosts(nodes, made, "--linger-seconds", "5") as running:
        wait_until(lambda: all(map(is_met, running)))
        send_command(nodes[0].path, "StartWalk", resume=False)
        wait_until(lambda: progress(running, range(12)) > 200)
        dead = kill_the_holder(running[:10], tmp_path)
        left = [each for each in running if each is not dead]
        before = new_lines(left)
        ends = {each.directory: each.wait() for each in left}
    models = [newest_model(node) for node in ends]
    assert all(final for _, final in models)
    assert len({model.weights.tobytes() for model, _ in models}) == 1
    assert new_lines(left) > before
    assert set(ends.values()) == {UNCONFIRMED}
    for each in left:  # also those that are no neighbours of it, by the word of the others
        lines = log_lines(each.log.read_text())
        (line,) = (line for line in lines if line["event"] == "end not confirmed")
        assert line["by"] == [dead.directory.settings.name]


def joined_by_the_roster(folder: Path, count: int, behind_nat: int) -> list[NodeDirectory]:
    plan, roster = folder / "plan.toml", folder / "roster"
    signer = (
        f'roster_signer = "{new_roster(roster).signer_fingerprint}"\nlaziness = 0.8\n[time_limits]'
    )
    text = PLAN.replace(f"nodes = {HOSTS}", f"nodes = {count}").replace("[time_limits]", signer)
    plan.write_text(text)
    made = []
    for number in range(count):
        address = f"10.77.0.{number + 1}:7447" if number < count - behind_nat else ""
        made.append(
            create_node(
                folder / f"node{number}", plan=plan, data=rows_of(number), address=address,
                listen=address or "127.0.0.1:7447", accept_unprotected=True,
            ).directory
        )  # fmt: skip
    change_roster(roster, lambda old: old.with_participants(*(node.invite for node in made)))
    for node in made:
        node.join(roster.read_bytes())
    return made


def is_met(process: OnHost) -> bool:
    return all(each["usable"] for each in process.status()["neighbours"])


def kill_the_holder(candidates: list[OnHost], folder: Path) -> OnHost:
    """Stop one process after the other until one has the token on its disk, and kill that one."""
    deadline = time.monotonic() + 60
    for each in itertools.cycle(candidates):
        assert time.monotonic() < deadline
        os.kill(each.popen.pid, signal.SIGSTOP)
        if holds(each.directory, folder):
            each.end()
            return each
        os.kill(each.popen.pid, signal.SIGCONT)
    raise AssertionError


def new_lines(running: list[OnHost]) -> int:
    """The number of walks that these nodes started or restarted.

    A survivor restarts the walk of a dead holder, or the last sender does if the holder died before
    it acknowledged the token.
    """
    return sum(each.log.read_text().count('"event":"new generation"') for each in running)


def holds(directory: NodeDirectory, folder: Path) -> bool:
    """True if the disk of a stopped node has the token, as after a crash.

    It reads a copy: the process may have stopped in a transaction, and its locks would block.
    """
    with tempfile.TemporaryDirectory(dir=folder) as copies:
        store_path = Path(copies) / directory.store_path.name
        for suffix in ("", "-wal"):
            shutil.copy(f"{directory.store_path}{suffix}", f"{store_path}{suffix}")
        with Store.look(store_path, Limits.of_plan(directory.plan)) as store:
            return store.record.place is Place.HERE
