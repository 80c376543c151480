"""Durable handovers per second between two nodes, against the least that could do the job.

    python -m benchmarks.network              # about 5 minutes
    python -m benchmarks.network --markdown   # the tables of README.md
    python -m benchmarks.network --idle       # memory and start-up of a node; 100 nodes at once
    python -m benchmarks.network --crowd      # a new link to a node that 600 strangers besiege

Two processes hand a token to each other, over loopback. A token is twice the model: w and Σ γ w.

- **nodes**: `walklearn node run`, two of them, each the other's only neighbour, so that every
  update is handed over. The update itself is inside the clock.
- **bare**: grpc.aio with the same mutual TLS, a call for each handover; the receiver writes the
  body to SQLite (WAL, synchronous=FULL, a changed body each time) before it answers, then sends it
  back. No checks, no protocol, no learning.
- **stream**: the same on a call that stays open, as the nodes have it. For the record.
- **TLS**: blocking sockets with the same certificates, nothing on disk. For the record.
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
from collections.abc import AsyncIterator, Iterator
from contextlib import ExitStack, closing, suppress
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.measurement import Measurement
from walklearn import graphs
from walklearn.node.agreement.node_rows import NodeRows
from walklearn.node.trial.local_network import LocalNetwork
from walklearn.node.wire.identity import Identity

NAMES = ("alice", "bob")
SIZES = {"1 KB": (2, 64), "100 KB": (20, 640), "8 MB": (500, 2000)}  # classes, features
LARGEST = 64_000_000
UPDATES = 10_000_000  # more than anyone waits for


def plan_text(classes: int, features: int, nodes: int = 2) -> str:
    names = ", ".join(f'"x{number}"' for number in range(features))
    labels = ", ".join(f'"c{number}"' for number in range(classes))
    return (f'name = "benchmark"\nnodes = {nodes}\nfeatures = [{names}]\ntarget = "y"\n'
            f'classes = [{labels}]\nloss = "softmax"\npenalty = 1.0\ndomain = {{ ball = 10.0 }}\n'
            f"step_size = {{ constant = 0.01 }}\nupdates = {UPDATES}\n")  # fmt: skip


def rows(features: int, nodes: int = 2) -> list[NodeRows]:
    generator = np.random.default_rng(1)
    return [NodeRows(generator.normal(size=(1, features)), np.zeros(1)) for _ in range(nodes)]


def nodes_rate(folder: Path, classes: int, features: int, seconds: float) -> float:
    """Handovers per second of two real nodes."""
    plan, graph = plan_text(classes, features), graphs.complete(2)
    with LocalNetwork.create(folder, plan, graph, rows(features)) as network:
        network.start()
        while not all(n["usable"] for s in network.statuses() for n in s["neighbours"]):
            time.sleep(0.1)
        network.start_walk()
        time.sleep(1.0)
        begin, first = time.perf_counter(), _sent(network)
        time.sleep(seconds)
        last = _sent(network)
        return (last - first) / (time.perf_counter() - begin)


def _sent(network: LocalNetwork) -> int:
    return sum(status["counters"].get("handovers_sent", 0) for status in network.statuses())


# ── bare grpc.aio with SQLite ────────────────────────────────────────────────────────────────


def pair_rate(kind: str, folder: Path, body: int, seconds: float) -> float:
    """Handovers per second of two processes of this script; the first counts and prints."""
    folder.mkdir()
    for name in NAMES:
        identity = Identity.create(name)
        (folder / f"{name}.key").write_bytes(identity.key)
        (folder / f"{name}.pem").write_bytes(identity.certificate)
    with ExitStack() as stack:
        held = [stack.enter_context(socket.socket()) for _ in NAMES]
        for each in held:
            each.bind(("127.0.0.1", 0))
        ports = [str(each.getsockname()[1]) for each in held]
    shared = [sys.executable, "-m", "benchmarks.network", "--role", kind, "--folder", str(folder),
              "--ports", *ports, "--body", str(body), "--seconds", str(seconds)]  # fmt: skip
    # What it says when its partner ends first is of no interest.
    other = subprocess.Popen([*shared, "--me", "1"], stderr=subprocess.DEVNULL)
    try:
        done = subprocess.run([*shared, "--me", "0"], check=True, capture_output=True, text=True,
                              timeout=60 + 4 * seconds)  # fmt: skip
        return float(done.stdout)
    finally:
        other.kill()
        other.wait()


async def bare(
    folder: Path, ports: list[int], me: int, body: int, seconds: float, stream: bool
) -> float:
    """Both sides: take, write, answer, send on."""
    import grpc
    from grpc import aio

    own, peer = NAMES[me], NAMES[1 - me]
    key, certificate = (folder / f"{own}.key").read_bytes(), (folder / f"{own}.pem").read_bytes()
    trusted = (folder / f"{peer}.pem").read_bytes()
    sizes = [
        ("grpc.max_receive_message_length", LARGEST),
        ("grpc.max_send_message_length", LARGEST),
    ]
    database = sqlite3.connect(folder / f"{own}.sqlite", isolation_level=None)
    database.execute("PRAGMA journal_mode = WAL")
    database.execute("PRAGMA synchronous = FULL")
    database.execute("CREATE TABLE token (id INTEGER PRIMARY KEY, body BLOB)")
    inbox: asyncio.Queue[bytes] = asyncio.Queue()

    async def take(message: bytes, context: Any) -> bytes:
        database.execute("INSERT OR REPLACE INTO token VALUES (1, ?)", (message,))
        inbox.put_nowait(message)
        return b"ok"

    async def take_all(messages: Any, context: Any) -> AsyncIterator[bytes]:
        async for message in messages:
            yield await take(message, context)

    server = aio.server(options=sizes)
    handlers = {"Handover": grpc.unary_unary_rpc_method_handler(take),
                "Handovers": grpc.stream_stream_rpc_method_handler(take_all)}  # fmt: skip
    server.add_generic_rpc_handlers((grpc.method_handlers_generic_handler("Bare", handlers),))
    credentials = grpc.ssl_server_credentials([(key, certificate)], trusted, True)
    server.add_secure_port(f"127.0.0.1:{ports[me]}", credentials)
    await server.start()
    channel = aio.secure_channel(
        f"127.0.0.1:{ports[1 - me]}",
        grpc.ssl_channel_credentials(trusted, key, certificate),
        options=[*sizes, ("grpc.ssl_target_name_override", peer)],
    )
    await channel.channel_ready()
    call = channel.unary_unary("/Bare/Handover", None, None)
    open_call: Any = channel.stream_stream("/Bare/Handovers", None, None)()

    async def send(message: bytes) -> None:
        if not stream:
            await call(message)
            return
        await open_call.write(message)
        await open_call.read()

    if me == 0:
        inbox.put_nowait(os.urandom(body))
    begin, count, warm = 0.0, 0, 20
    while True:
        message = bytearray(await inbox.get())
        message[::512] = os.urandom(len(message[::512]))  # every page changes, or SQLite skips it
        await send(bytes(message))
        count += 2  # there and back
        if count == warm:
            begin = time.perf_counter()
        if me == 0 and count > warm and time.perf_counter() - begin > seconds:
            return (count - warm) / (time.perf_counter() - begin)


# ── raw TLS ──────────────────────────────────────────────────────────────────────────────────


def tls(folder: Path, ports: list[int], me: int, body: int, seconds: float) -> float:
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
        while time.perf_counter() - begin < seconds:
            wire.sendall(message)
            message = _read(wire, body)
            count += 2
        return count / (time.perf_counter() - begin)


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
        while not all(n["usable"] for s in network.statuses() for n in s["neighbours"]):
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
    from walklearn.node.wire.transport import Refused, Transport, Undelivered

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
            transport.set_peers([node.invite])
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


def best_rates(label: str, rounds: int, seconds: float) -> dict[str, float]:
    """Contestants take turns in each round; the best turn of each counts."""
    classes, features = SIZES[label]
    body = 2 * 8 * classes * features
    best = dict.fromkeys(("nodes", "bare", "stream", "TLS"), 0.0)
    for _ in range(rounds):
        with tempfile.TemporaryDirectory() as scratch:
            folder = Path(scratch)
            turns = {"nodes": nodes_rate(folder / "nodes", classes, features, seconds)}
            for kind in ("bare", "stream", "TLS"):
                turns[kind] = pair_rate(kind, folder / kind, body, seconds)
        best = {name: max(best[name], turns[name]) for name in best}
        print(f"{label}: {turns}", file=sys.stderr)
    return best


def measurements(quick: bool) -> Iterator[Measurement]:
    for label in list(SIZES)[: 1 if quick else None]:
        best = best_rates(label, *((1, 0.5) if quick else (5, 3.0)))
        rates = ", ".join(f"{name} {rate:,.0f}" for name, rate in best.items())
        yield Measurement(f"handovers of {label}, over a bare call", best["nodes"] / best["bare"],
                          "times", 0.8, True, f"per second: {rates}")  # fmt: skip
    with tempfile.TemporaryDirectory() as scratch:
        megabytes, seconds, _ = idle(Path(scratch) / "nodes", 1)
    yield Measurement("a node that waits, resident", max(megabytes), "MB", 90.0)
    yield Measurement("a node answers after its start", seconds, "s", 1.0)


def measure(rounds: int, seconds: float) -> list[list[str]]:
    """The lines of the table."""
    lines = []
    for label in SIZES:
        best = best_rates(label, rounds, seconds)
        lines.append([label, *(f"{best[name]:,.0f}" for name in best),
                      f"{best['nodes'] / best['bare']:.2f}",
                      f"{best['nodes'] / best['stream']:.2f}",
                      f"{best['nodes'] / best['TLS']:.3f}"])  # fmt: skip
    return lines


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--seconds", type=float, default=3.0, help="of each turn")
    parser.add_argument("--markdown", action="store_true")
    parser.add_argument("--crowd", action="store_true", help="a new link among strangers instead")
    parser.add_argument("--idle", action="store_true", help="memory and start-up instead")
    for name in ("--role", "--folder", "--ports", "--body", "--me"):  # of the processes it starts
        parser.add_argument(name, nargs="+" if name == "--ports" else None, help=argparse.SUPPRESS)
    chosen = parser.parse_args()
    if chosen.role:
        work = (Path(chosen.folder), [int(port) for port in chosen.ports], int(chosen.me),
                int(chosen.body), chosen.seconds)  # fmt: skip
        stream = chosen.role == "stream"
        print(tls(*work) if chosen.role == "TLS" else asyncio.run(bare(*work, stream)))
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
                megabytes, seconds, cores = idle(Path(scratch) / "nodes", count, 20.0)
            print(f"{count} nodes: {max(megabytes):.0f} MB resident at most, "
                  f"{sum(megabytes):,.0f} MB together, all answer in {seconds:.1f} s, "
                  f"{cores:.2f} cores busy while they wait")  # fmt: skip
        return
    header = ["model", "nodes", "bare", "stream", "TLS",
              "nodes / bare", "nodes / stream", "nodes / TLS"]  # fmt: skip
    lines = measure(chosen.rounds, chosen.seconds)
    separator = " | " if chosen.markdown else "  "
    widths = [max(map(len, column)) for column in zip(header, *lines, strict=True)]
    for number, line in enumerate([header, *lines]):
        text = separator.join(cell.rjust(width) for cell, width in zip(line, widths, strict=True))
        print(f"| {text} |" if chosen.markdown else text)
        if chosen.markdown and number == 0:
            print("|" + "|".join("-" * (width + 1) + ":" for width in widths) + "|")


if __name__ == "__main__":
    main()
