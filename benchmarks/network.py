"""Durable handovers per second between two nodes, against the least that could do the job.

    python -m benchmarks.network            # about 5 minutes
    python -m benchmarks.network --idle     # memory, start-up and work of nodes that wait
    python -m benchmarks.network --crowd    # a new link to a node that 600 strangers besiege

Two processes hand a token to each other, over loopback. A token is twice the model: w and Σ γ w.

- **nodes**: `walklearn node run`, two of them, each the other's only neighbour, so that every
  update is handed over. The update itself is inside the clock.
- **bare**: the nodes' own wire (`node.wire.transport`: a session of frames over mutual TLS), with
  nothing of a node behind it: the receiver writes the body to SQLite (WAL, synchronous=FULL, a
  changed body each time) before it answers, then sends it back. No checks, no protocol, no
  learning.
- **gRPC**: the same by a call of grpc.aio for each handover, which is how nodes once did it.
- **TLS**: blocking sockets with the same certificates, nothing on disk. For the record.

Beside handovers per second stands the processor time that one takes, of both processes together:
other work on the machine changes it less.
"""

from __future__ import annotations

import argparse
import asyncio
import os
import resource
import socket
import sqlite3
import ssl
import subprocess
import sys
import tempfile
import time
from collections.abc import Awaitable, Callable, Iterator
from contextlib import ExitStack, closing, suppress
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from benchmarks.measurement import Measurement
from walklearn import graphs
from walklearn.node.agreement.node_rows import NodeRows
from walklearn.node.trial.local_network import LocalNetwork
from walklearn.node.wire.identity import Identity, Invite
from walklearn.node.wire.session import Refused, Undelivered
from walklearn.node.wire.transport import Transport

NAMES = ("alice", "bob")
CONTESTANTS = ("nodes", "bare", "gRPC", "TLS")
SIZES = {"1 KB": (2, 64), "100 KB": (20, 640), "8 MB": (500, 2000)}  # classes, features
LARGEST = 64_000_000
UPDATES = 10_000_000  # more than anyone waits for
STATUS_SECONDS = 30.0  # for the status of a node on a busy machine


def plan_text(classes: int, features: int, nodes: int = 2) -> str:
    names = ", ".join(f'"x{number}"' for number in range(features))
    labels = ", ".join(f'"c{number}"' for number in range(classes))
    return (f'name = "benchmark"\nnodes = {nodes}\nfeatures = [{names}]\ntarget = "y"\n'
            f'classes = [{labels}]\nloss = "softmax"\npenalty = 1.0\ndomain = {{ ball = 10.0 }}\n'
            f"step_size = {{ constant = 0.01 }}\nupdates = {UPDATES}\n")  # fmt: skip


def rows(features: int, nodes: int = 2) -> list[NodeRows]:
    generator = np.random.default_rng(1)
    return [NodeRows(generator.normal(size=(1, features)), np.zeros(1)) for _ in range(nodes)]


class Turn(NamedTuple):
    """What a contestant did: handovers per second, and processor seconds a handover."""

    rate: float
    processor: float


def nodes_turn(folder: Path, classes: int, features: int, seconds: float) -> Turn:
    """Two real nodes."""
    plan, graph = plan_text(classes, features), graphs.complete(2)
    with LocalNetwork.create(folder, plan, graph, rows(features)) as network:
        network.start()
        while not all(
            n["usable"] for s in network.statuses(STATUS_SECONDS) for n in s["neighbours"]
        ):
            time.sleep(0.1)
        network.start_walk()
        time.sleep(1.0)
        begin, first, busy = time.perf_counter(), _sent(network), _busy(network)
        time.sleep(seconds)
        count = _sent(network) - first
        took, busy = time.perf_counter() - begin, _busy(network) - busy
        return Turn(count / took, busy / max(1, count))


def _sent(network: LocalNetwork) -> int:
    return sum(
        status["counters"].get("handovers_sent", 0) for status in network.statuses(STATUS_SECONDS)
    )


# ── the nodes' wire and gRPC, bare ───────────────────────────────────────────────────────────


def pair_turn(kind: str, folder: Path, body: int, seconds: float) -> Turn:
    """Two processes of this script; the first counts and prints."""
    folder.mkdir()
    for name in NAMES:
        identity = Identity.create()
        (folder / f"{name}.key").write_bytes(identity.key)
        (folder / f"{name}.pem").write_bytes(identity.certificate)
    with ExitStack() as stack:
        held = [stack.enter_context(socket.socket()) for _ in NAMES]
        for each in held:
            each.bind(("127.0.0.1", 0))
        ports = [str(each.getsockname()[1]) for each in held]
    shared = [sys.executable, "-m", "benchmarks.network", "--role", kind, "--folder", str(folder),
              "--ports", *ports, "--body", str(body), "--seconds", str(seconds)]  # fmt: skip
    # Each has a session of its own, as nodes have: the scheduler shares a busy machine among them.
    # What it says when its partner ends first is of no interest.
    other = subprocess.Popen([*shared, "--me", "1"], stderr=subprocess.DEVNULL,
                             start_new_session=True)  # fmt: skip
    try:
        done = subprocess.run([*shared, "--me", "0"], check=True, capture_output=True, text=True,
                              timeout=60 + 4 * seconds, start_new_session=True)  # fmt: skip
        return Turn(*map(float, done.stdout.split()))
    finally:
        other.kill()
        other.wait()


Take = Callable[[bytes], None]  # a handover is here
Send = Callable[[bytes], Awaitable[object]]  # back when it has been answered


async def bare(
    kind: str, folder: Path, ports: list[int], me: int, body: int, seconds: float
) -> Turn:
    """Both sides: take, write, answer, send on."""
    database = sqlite3.connect(folder / f"{NAMES[me]}.sqlite", isolation_level=None)
    database.execute("PRAGMA journal_mode = WAL")
    database.execute("PRAGMA synchronous = FULL")
    database.execute("CREATE TABLE token (id INTEGER PRIMARY KEY, body BLOB)")
    inbox: asyncio.Queue[bytes] = asyncio.Queue()

    def take(message: bytes) -> None:
        database.execute("INSERT OR REPLACE INTO token VALUES (1, ?)", (message,))
        inbox.put_nowait(message)

    send = await (over_frames if kind == "bare" else over_grpc)(folder, ports, me, take)
    if me == 0:
        inbox.put_nowait(os.urandom(body))
    begin, busy, count, warm = 0.0, 0.0, 0, 20
    while True:
        message = bytearray(await inbox.get())
        message[::512] = os.urandom(len(message[::512]))  # every page changes, or SQLite skips it
        await send(bytes(message))
        count += 2  # there and back
        if count == warm:
            begin, busy = time.perf_counter(), time.process_time()
        took = time.perf_counter() - begin
        if me == 0 and count > warm and took > seconds:
            done = count - warm
            return Turn(done / took, 2 * (time.process_time() - busy) / done)  # both do the same


def _identity(folder: Path, number: int) -> Identity:
    name = NAMES[number]
    return Identity((folder / f"{name}.key").read_bytes(), (folder / f"{name}.pem").read_bytes())


async def over_frames(folder: Path, ports: list[int], me: int, take: Take) -> Send:
    """A session, as nodes have it."""
    own, other = _identity(folder, me), _identity(folder, 1 - me)

    async def answer(caller: str, method: str, message: bytes) -> bytes:
        take(message)
        return b"ok"

    transport = Transport(own, answer, lambda *_: None, LARGEST)
    await transport.listen(f"127.0.0.1:{ports[me]}")
    invite = Invite(NAMES[1 - me], f"127.0.0.1:{ports[1 - me]}", other.public_key)
    transport.set_neighbours([invite])
    while not transport.is_connected(other.fingerprint):
        with suppress(Undelivered):
            await transport.call(other.fingerprint, "Roster", b"", 1.0) if me else None
        await asyncio.sleep(0.05)
    return lambda message: transport.call(other.fingerprint, "Handover", message, 60.0)


async def over_grpc(folder: Path, ports: list[int], me: int, take: Take) -> Send:
    """A call of gRPC for each handover."""
    import grpc
    from grpc import aio

    own, trusted = _identity(folder, me), _identity(folder, 1 - me).certificate
    sizes = [
        ("grpc.max_receive_message_length", LARGEST),
        ("grpc.max_send_message_length", LARGEST),
    ]

    async def answer(message: bytes, context: Any) -> bytes:
        take(message)
        return b"ok"

    server = aio.server(options=sizes)
    handlers = {"Handover": grpc.unary_unary_rpc_method_handler(answer)}
    server.add_generic_rpc_handlers((grpc.method_handlers_generic_handler("Bare", handlers),))
    credentials = grpc.ssl_server_credentials([(own.key, own.certificate)], trusted, True)
    server.add_secure_port(f"127.0.0.1:{ports[me]}", credentials)
    await server.start()
    channel = aio.secure_channel(
        f"127.0.0.1:{ports[1 - me]}",
        grpc.ssl_channel_credentials(trusted, own.key, own.certificate),
        options=[*sizes, ("grpc.ssl_target_name_override", "node")],
    )
    await channel.channel_ready()
    call = channel.unary_unary("/Bare/Handover", None, None)

    async def send(message: bytes, kept: object = (server, channel)) -> None:  # else they close
        await call(message)

    return send


# ── raw TLS ──────────────────────────────────────────────────────────────────────────────────


def tls(folder: Path, ports: list[int], me: int, body: int, seconds: float) -> Turn:
    """Both sides: the first connects, sends, and waits for it to come back."""
    own, peer = NAMES[me], NAMES[1 - me]
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT if me == 0 else ssl.PROTOCOL_TLS_SERVER)
    context.check_hostname = False
    context.verify_mode = ssl.CERT_REQUIRED
    context.load_verify_locations(folder / f"{peer}.pem")
    context.load_cert_chain(folder / f"{own}.pem", folder / f"{own}.key")
    if me == 1:
        with socket.create_server(("127.0.0.1", ports[1])) as listener:
            plain, _ = listener.accept()
            plain.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            with context.wrap_socket(plain, server_side=True) as wire:
                while True:
                    wire.sendall(_read(wire, body))
    plain = _connect(ports[1])
    plain.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    with context.wrap_socket(plain) as wire:
        message, count, begin = os.urandom(body), 0, time.perf_counter()
        busy = time.process_time()
        while time.perf_counter() - begin < seconds:
            wire.sendall(message)
            message = _read(wire, body)
            count += 2
        took, busy = time.perf_counter() - begin, time.process_time() - busy
        return Turn(count / took, 2 * busy / count)


def _connect(port: int) -> socket.socket:
    for _ in range(200):
        try:
            return socket.create_connection(("127.0.0.1", port))
        except ConnectionRefusedError:
            time.sleep(0.1)
    raise TimeoutError("the other side does not listen")


def _read(wire: ssl.SSLSocket, size: int) -> bytes:
    content = bytearray(size)
    view, got = memoryview(content), 0
    while got < size:
        count = wire.recv_into(view[got:])
        if not count:
            raise SystemExit(0)
        got += count
    return bytes(content)


# ── a node that does nothing, and many of them ───────────────────────────────────────────────


def idle(folder: Path, count: int, watched: float = 1.0) -> tuple[list[float], float, float]:
    """Resident megabytes of each of `count` nodes that wait, and seconds until all answer.

    Also how many cores all of them together keep busy, for so many seconds once they have met.
    """
    graph = graphs.ring(count) if count > 2 else graphs.complete(count)
    plan = plan_text(2, 10, count)
    with LocalNetwork.create(folder, plan, graph, rows(10, count)) as network:
        begin = time.perf_counter()
        network.start()
        seconds = time.perf_counter() - begin
        while not all(
            n["usable"] for s in network.statuses(STATUS_SECONDS) for n in s["neighbours"]
        ):
            time.sleep(0.5)
        begin, busy = time.perf_counter(), _busy(network)
        time.sleep(watched)
        cores = (_busy(network) - busy) / (time.perf_counter() - begin)
        return [_resident(process) for process in network.process_ids], seconds, cores


def _busy(network: LocalNetwork) -> float:
    """Seconds of processor time that the nodes have used."""
    fields = (Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()
              for process in network.process_ids)  # fmt: skip
    return sum(int(each[11]) + int(each[12]) for each in fields) / os.sysconf("SC_CLK_TCK")


def _resident(process: int) -> float:
    pages = int(Path(f"/proc/{process}/statm").read_text().split()[1])
    return pages * resource.getpagesize() / 1e6


async def crowd(folder: Path, strangers: int, links: int = 20) -> list[float]:
    """Seconds until a neighbour has a new link, beside silent connections that always come back."""

    async def answer(caller: str, method: str, message: bytes) -> bytes:
        return message

    network = LocalNetwork.create(folder, plan_text(2, 10), graphs.complete(2), rows(10))
    node, neighbour = network.directories
    host, port = node.settings.listen.rsplit(":", 1)

    async def silent() -> None:
        while True:
            with suppress(OSError):
                reader, writer = await asyncio.open_connection(host, int(port))
                with closing(writer):
                    await reader.read()
            await asyncio.sleep(0.5)

    seconds = []
    with LocalNetwork([node]) as alone:
        alone.start()
        tasks = [asyncio.ensure_future(silent()) for _ in range(strangers)]
        await asyncio.sleep(3.0)
        for _ in range(links):
            transport = Transport(neighbour.identity, answer, lambda *_: None, 10**6)
            transport.set_neighbours([node.invite])
            begin = time.perf_counter()
            while not transport.is_connected(node.identity.fingerprint):
                with suppress(Refused, Undelivered):  # refused: an answer all the same
                    await transport.call(node.identity.fingerprint, "Hello", b"", 120.0)
            seconds.append(time.perf_counter() - begin)
            await transport.close(0.0)
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
    return sorted(seconds)


# ── the tables ───────────────────────────────────────────────────────────────────────────────


def best_turns(label: str, rounds: int, seconds: float) -> dict[str, Turn]:
    """Contestants take turns in each round; the best of each counts, for each figure by itself."""
    classes, features = SIZES[label]
    body = 2 * 8 * classes * features
    turns: dict[str, list[Turn]] = {name: [] for name in CONTESTANTS}
    for _ in range(rounds):
        with tempfile.TemporaryDirectory() as scratch:
            folder = Path(scratch)
            turns["nodes"].append(nodes_turn(folder / "nodes", classes, features, seconds))
            for kind in CONTESTANTS[1:]:
                turns[kind].append(pair_turn(kind, folder / kind, body, seconds))
        print(label, {name: turn[-1] for name, turn in turns.items()}, file=sys.stderr)
    return {name: Turn(max(each.rate for each in of), min(each.processor for each in of))
            for name, of in turns.items()}  # fmt: skip


def measurements(quick: bool) -> Iterator[Measurement]:
    for label in list(SIZES)[: 1 if quick else None]:
        best = best_turns(label, *((1, 0.5) if quick else (5, 3.0)))
        rates = ", ".join(f"{name} {turn.rate:,.0f}" for name, turn in best.items())
        yield Measurement(f"handovers of {label}, over a call of gRPC",
                          best["nodes"].rate / best["gRPC"].rate, "times", 0.98, True,
                          f"per second: {rates}")  # fmt: skip
        yield Measurement(f"handovers of {label}, over a bare session",
                          best["nodes"].rate / best["bare"].rate, "times")  # fmt: skip
    with tempfile.TemporaryDirectory() as scratch:
        megabytes, seconds, _ = idle(Path(scratch) / "nodes", 1)
    yield Measurement("a node that waits, resident", max(megabytes), "MB", 90.0)
    yield Measurement("a node answers after its start", seconds, "s", 1.0)
    many = 4 if quick else 60
    with tempfile.TemporaryDirectory() as scratch:
        *_, cores = idle(Path(scratch) / "nodes", many, 1.0 if quick else 20.0)
    yield Measurement(f"{many} nodes that wait", cores, "cores", 0.3)


def measure(rounds: int, seconds: float) -> list[list[str]]:
    """The lines of the table."""
    lines = []
    for label in SIZES:
        best = best_turns(label, rounds, seconds)
        nodes = best["nodes"]
        lines.append([label, *(f"{turn.rate:,.0f}" for turn in best.values()),
                      *(f"{nodes.rate / best[other].rate:.2f}" for other in CONTESTANTS[1:]),
                      *(f"{1e6 * turn.processor:,.0f}" for turn in best.values())])  # fmt: skip
    return lines


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--seconds", type=float, default=3.0, help="of each turn")
    parser.add_argument("--crowd", action="store_true", help="a new link among strangers instead")
    parser.add_argument("--idle", action="store_true", help="memory and start-up instead")
    for name in ("--role", "--folder", "--ports", "--body", "--me"):  # of the processes it starts
        parser.add_argument(name, nargs="+" if name == "--ports" else None, help=argparse.SUPPRESS)
    chosen = parser.parse_args()
    if chosen.role:
        work = (Path(chosen.folder), [int(port) for port in chosen.ports], int(chosen.me),
                int(chosen.body), chosen.seconds)  # fmt: skip
        print(*(tls(*work) if chosen.role == "TLS" else asyncio.run(bare(chosen.role, *work))))
        return
    if chosen.crowd:
        for count in (0, 600):
            with tempfile.TemporaryDirectory() as scratch:
                seconds = asyncio.run(crowd(Path(scratch) / "nodes", count))
            print(f"{count} silent connections: a new link in {seconds[len(seconds) // 2]:.2f} s "
                  f"(median), {seconds[-1]:.2f} s at most of {len(seconds)}")  # fmt: skip
        return
    if chosen.idle:
        for count in (1, 60, 100):
            with tempfile.TemporaryDirectory() as scratch:
                megabytes, start, cores = idle(Path(scratch) / "nodes", count, 20.0)
            print(f"{count} nodes: {max(megabytes):.0f} MB resident at most, "
                  f"{sum(megabytes):,.0f} MB together, all answer in {start:.1f} s, "
                  f"{cores:.2f} cores busy while they wait")  # fmt: skip
        return
    header = ["model", *CONTESTANTS, *(f"nodes / {other}" for other in CONTESTANTS[1:]),
              *(f"{name} [µs]" for name in CONTESTANTS)]  # fmt: skip
    lines = measure(chosen.rounds, chosen.seconds)
    widths = [max(map(len, column)) for column in zip(header, *lines, strict=True)]
    for line in [header, *lines]:
        print("  ".join(cell.rjust(width) for cell, width in zip(line, widths, strict=True)))


if __name__ == "__main__":
    main()
