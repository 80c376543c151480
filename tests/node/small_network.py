"""Small real networks for tests: directories on disk, nodes in this process or in their own."""

from __future__ import annotations

import io
import json
import socket
import subprocess
import sys
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import numpy as np

from tests.running import wait_until
from walklearn.node.agreement.node_rows import NodeRows
from walklearn.node.disk.creation import create_node
from walklearn.node.disk.directory import NodeDirectory
from walklearn.node.process.control import NotRunningError, send_command
from walklearn.node.process.logs import Log
from walklearn.node.process.node import Node

PLAN = """
name = "small"
nodes = {nodes}
features = ["a", "b"]
target = "y"
classes = ["no", "yes"]
loss = "logistic"
penalty = 1.0
domain = {{ ball = 10.0 }}
step_size = {{ constant = 0.05 }}
updates = {updates}
{more}
[time_limits]
retry_after_seconds = 0.2
hello_every_seconds = 0.5
"""
SECONDS = 60.0  # no test should come near it, however busy the machine


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
        return port


def rows_of(node: int, count: int = 5) -> NodeRows:
    generator = np.random.default_rng(node)
    y = generator.choice([-1.0, 1.0], count)
    return NodeRows(generator.normal(size=(count, 2)) + y[:, None], y)


def make_nodes(
    root: Path,
    nodes: int,
    edges: Iterable[tuple[int, int]],
    updates: int = 100,
    more: str = "",
    memory: bool = False,
) -> list[NodeDirectory]:
    """Nodes node0, node1, … whose neighbours are given by the edges."""
    plan = root / "plan.toml"
    text = PLAN.format(nodes=nodes, updates=updates, more=more)
    if memory:
        text = text.replace("step_size = { constant = 0.05 }", 'update = "saga"')
    plan.write_text(text)
    made = [make_node(root / f"node{number}", plan, rows_of(number)) for number in range(nodes)]
    for one, other in edges:
        introduce(made[one], made[other])
    return made


def make_node(path: Path, plan: Path, rows: NodeRows | None = None) -> NodeDirectory:
    address = f"127.0.0.1:{free_port()}"
    made = create_node(
        path, plan=plan, data=rows or rows_of(0), listen=address, address=address,
        accept_unprotected=True,
    )  # fmt: skip
    return made.directory


def introduce(one: NodeDirectory, other: NodeDirectory) -> None:
    one.add_peer(other.invite.encode())
    other.add_peer(one.invite.encode())


def ring(nodes: int) -> list[tuple[int, int]]:
    return [(number, (number + 1) % nodes) for number in range(nodes)]


def in_process(directory: NodeDirectory) -> tuple[Node, io.StringIO]:
    """A node for this process, and where its log goes."""
    text = io.StringIO()
    return Node(directory, Log(directory.settings.name, text)), text


def fill(file: Path) -> None:
    """Leave no room on the file system."""
    with file.open("wb", buffering=0) as content, suppress(OSError):
        while True:
            content.write(bytes(1 << 12))


def log_lines(text: str) -> list[dict[str, Any]]:
    return [json.loads(line) for line in text.splitlines()]


class Process:
    """`walklearn node run` on a directory; its log is kept beside it.

    before: what the process does first, as code.
    """

    def __init__(self, directory: NodeDirectory, *options: str, before: str = "") -> None:
        self.directory = directory
        self.log = directory.path.with_suffix(".log")
        program = ["-m", "walklearn.cli"]
        if before:
            program = ["-c", f"{before}\nfrom walklearn.cli import main\nmain()"]
        command = [sys.executable, *program, "node", "run", str(directory.path)]
        with self.log.open("a") as log:
            self.popen = subprocess.Popen([*command, *options], stderr=log)

    def status(self) -> dict[str, Any]:
        return send_command(self.directory.path, "Status")

    def wait(self) -> int:
        return self.popen.wait(SECONDS)

    def end(self) -> None:
        self.popen.kill()
        self.popen.wait()


@contextmanager
def processes(
    directories: Iterable[NodeDirectory], *options: str, before: str = ""
) -> Iterator[list[Process]]:
    """All nodes running; none is left behind."""
    started = [Process(each, *options, before=before) for each in directories]
    try:
        for each in started:
            wait_until(lambda each=each: is_running(each))  # type: ignore[misc]
        yield started
    finally:
        for each in started:  # a test may have put others in their place
            each.end()


def is_running(process: Process) -> bool:
    try:
        return bool(process.status()["running"])
    except NotRunningError:
        assert process.popen.poll() is None, process.log.read_text()
        return False
