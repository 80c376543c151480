"""A whole network on one machine, to try it: every node a process with its own key and rows.

Nothing is shortened for being local: nodes listen on loopback, know each other by invites, shake
hands with TLS and keep their tokens on disk, as they would on devices far apart. This process
starts and ends them and may read their directories; it takes no part in the walk.

    with LocalNetwork.create(folder, plan_text, graph, rows) as network:
        network.start()
        network.start_walk(at=0)
        ...
"""

from __future__ import annotations

import contextlib
import os
import socket
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any, Self

from walklearn.graphs import Graph
from walklearn.node.agreement.node_rows import NodeRows
from walklearn.node.disk.creation import create_node
from walklearn.node.disk.directory import NodeDirectory
from walklearn.node.disk.store import Store
from walklearn.node.process import control
from walklearn.node.protocol.tokens import Limits, Token
from walklearn.node.trial import child

START_SECONDS = 60.0  # for all nodes to answer, on a busy machine
_LOOKERS = 8  # threads that ask the nodes how they are
_END_SECONDS = 15.0  # for all nodes to go when asked to


class LocalNetworkError(RuntimeError):
    """A node process that did not start or went away, with the last it said."""


class LocalNetwork:
    """Node directories, and a process for each while it is started; closing ends them all."""

    def __init__(self, directories: Sequence[NodeDirectory]) -> None:
        self.directories = tuple(directories)
        self._processes: list[subprocess.Popen[bytes]] = []
        self._killed: set[int] = set()

    @classmethod
    def create(cls, folder: Path, plan_text: str, graph: Graph, rows: Sequence[NodeRows]) -> Self:
        """Make the nodes node-00, node-01, … and let neighbours on the graph know each other."""
        folder.mkdir(parents=True, exist_ok=True)
        plan = folder / "plan.toml"
        plan.write_text(plan_text, encoding="utf-8")
        width = len(str(graph.node_count - 1))
        made = []
        for number, port in enumerate(_free_ports(graph.node_count)):
            address = f"127.0.0.1:{port}"
            path = folder / f"node-{number:0{width}}"
            created = create_node(
                path, plan=plan, data=rows[number], listen=address, address=address,
                record=folder / "record.sqlite",  # the rows are made up, and nobody's
                accept_unprotected=True,
            )  # fmt: skip
            made.append(created.directory)
        for first, second in graph.edges().tolist():
            made[first].add_peer(made[second].invite.encode())
            made[second].add_peer(made[first].invite.encode())
        return cls(made)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *error: object) -> None:
        self.close()

    @property
    def process_ids(self) -> list[int]:
        """The process id of each started node."""
        return [process.pid for process in self._processes]

    def start(self) -> None:
        """Start every node, and wait until all of them answer."""
        for directory in self.directories:  # one by one: Ctrl-C may come in between
            self._processes.append(_spawn(directory))
        self.wait_until_up()

    def wait_until_up(self) -> None:
        """Wait until every node answers."""
        limit = time.monotonic() + START_SECONDS
        for number, directory in enumerate(self.directories):
            while "updates" not in self.status(number):
                if time.monotonic() > limit:
                    raise LocalNetworkError(f"{directory.path} does not answer: see its log.")
                time.sleep(0.05)

    def kill(self, number: int) -> None:
        """End a node's process at whatever instruction it is."""
        self._killed.add(number)
        self._processes[number].kill()
        self._processes[number].wait()

    def is_killed(self, number: int) -> bool:
        """True if a node was killed and has not been started since."""
        return number in self._killed

    def restart(self, number: int) -> None:
        """Start a node anew that was killed, without waiting for it."""
        self._processes[number] = _spawn(self.directories[number])
        self._killed.discard(number)

    def start_walk(self, at: int = 0) -> None:
        """Begin the token at a node."""
        control.send_command(self.directories[at].path, "StartWalk", resume=False)

    def statuses(self, seconds: float = control.STATUS_SECONDS) -> list[dict[str, Any]]:
        """Return the status of each node, as in `status`."""
        with ThreadPoolExecutor(_LOOKERS) as pool:  # one may be frozen
            numbers = range(len(self.directories))
            return list(pool.map(lambda number: self.status(number, seconds), numbers))

    def status(self, number: int, seconds: float = control.STATUS_SECONDS) -> dict[str, Any]:
        """Return the status of a node, or the phase of one that does not answer in time.

        "down" if it was killed from here, "starting", or "frozen"; a process that is gone otherwise
        is an error.
        """
        if number in self._killed:
            return {"phase": "down"}
        try:
            return control.send_command(self.directories[number].path, "Status", seconds)
        except control.NotAnsweringError:
            return {"phase": "frozen"}
        except control.NotRunningError:
            if number not in self._killed:  # it may have been, meanwhile
                self._check_alive(number)
            return {"phase": "starting"}

    def newest(self, number: int) -> Token | None:
        """The newest model on a node's disk."""
        directory = self.directories[number]
        with Store.look(directory.store_path, Limits.of_plan(directory.plan)) as store:
            return store.record.newest_model

    def close(self) -> None:
        """Ask every process to stop, and end those that don't."""
        for process in self._processes:
            process.terminate()
        limit = time.monotonic() + _END_SECONDS
        for process in self._processes:
            with contextlib.suppress(subprocess.TimeoutExpired):
                process.wait(max(0.0, limit - time.monotonic()))
        for process in self._processes:
            process.kill()
            process.wait()
        self._processes = []

    def _check_alive(self, number: int) -> None:
        if (code := self._processes[number].poll()) is not None:
            path = self.directories[number].path
            said = (path / "log.jsonl").read_text(encoding="utf-8").strip().splitlines()
            last = said[-1] if said else "?"
            raise LocalNetworkError(f"the node of {path} has ended with code {code}: {last}")


def _spawn(directory: NodeDirectory) -> subprocess.Popen[bytes]:
    """Start a node's process, out of reach of this terminal's Ctrl-C; it ends when we do."""
    command = [sys.executable, "-m", child.__name__, str(os.getpid()), str(directory.path)]
    # As `walklearn node` has it: threads of the linear algebra would wait for each other.
    environment = {"OPENBLAS_NUM_THREADS": "1", **os.environ}
    with open(directory.path / "log.jsonl", "ab") as log:
        return subprocess.Popen(
            command, stdin=subprocess.DEVNULL, stdout=log, stderr=log, env=environment,
            start_new_session=True,
        )  # fmt: skip


def _free_ports(count: int) -> Iterator[int]:
    """Ports of loopback that nobody listens on now, all different."""
    with contextlib.ExitStack() as held:
        sockets = [held.enter_context(socket.socket()) for _ in range(count)]
        for each in sockets:
            each.bind(("127.0.0.1", 0))
        ports = [each.getsockname()[1] for each in sockets]
    yield from ports
