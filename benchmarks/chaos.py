"""What a network makes of kills, frozen processes, cut links and stops, beside an undisturbed one.

    python -m benchmarks.chaos                       # 12 nodes, 5 minutes of chaos
    python -m benchmarks.chaos --seconds 60 --calm 20 --holders 3

Real processes on loopback; every link goes through a relay that can be cut without a word. A minute
has 7 kills with restart, 4 freezes of 10 to 40 s, 4 cuts of 10 to 30 s and 3 stops. Printed are the
updates per second against those of the same network before the chaos, and after it the seconds
until the walk goes on when its holder is killed for good.
"""

from __future__ import annotations

import argparse
import asyncio
import contextlib
import os
import signal
import statistics
import tempfile
import threading
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np

import walklearn as wl
from walklearn.node.trial.local_network import LocalNetwork
from walklearn.node.trial.two_gaussians import Trial
from walklearn.node.wire.identity import Invite

NODES = 12
A_MINUTE = {"kill": 7, "freeze": 4, "cut": 4, "stop": 3}
HOLDING = ("holding", "handing over")


class Relays:
    """A port for each direction of each link, which passes bytes on while the link is whole."""

    def __init__(self) -> None:
        self._loop = asyncio.new_event_loop()
        threading.Thread(target=self._loop.run_forever, daemon=True).start()
        self._whole: dict[frozenset[int], asyncio.Event] = {}

    def add(self, link: frozenset[int], address: str) -> str:
        """An address that leads to the given one over this link."""
        return asyncio.run_coroutine_threadsafe(self._listen(link, address), self._loop).result()

    def cut(self, link: frozenset[int], seconds: float) -> None:
        """Pass nothing on for so long; nobody is told."""
        self._loop.call_soon_threadsafe(self._whole[link].clear)
        self._loop.call_soon_threadsafe(self._loop.call_later, seconds, self._whole[link].set)

    @property
    def links(self) -> list[frozenset[int]]:
        """All that can be cut."""
        return list(self._whole)

    async def _listen(self, link: frozenset[int], address: str) -> str:
        host, port = address.rsplit(":", 1)
        whole = self._whole.setdefault(link, asyncio.Event())
        whole.set()

        async def relay(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            with contextlib.suppress(OSError):
                await whole.wait()
                there = await asyncio.open_connection(host, int(port))
                await asyncio.gather(_pump(reader, there[1], whole), _pump(there[0], writer, whole))

        server = await asyncio.start_server(relay, "127.0.0.1", 0)
        return f"127.0.0.1:{server.sockets[0].getsockname()[1]}"


async def _pump(
    reader: asyncio.StreamReader, writer: asyncio.StreamWriter, whole: asyncio.Event
) -> None:
    with contextlib.suppress(OSError):
        while content := await reader.read(65_536):
            await whole.wait()
            writer.write(content)
            await writer.drain()
    writer.close()


def relayed(network: LocalNetwork, graph: wl.Graph) -> Relays:
    """Let every node reach its neighbours through relays."""
    relays, nodes = Relays(), network.directories
    for one, other in [(a, b) for edge in graph.edges().tolist() for a, b in (edge, edge[::-1])]:
        invite = nodes[other].invite
        address = relays.add(frozenset((one, other)), invite.address)
        nodes[one].remove_peer(invite.name)
        nodes[one].add_peer(Invite(invite.name, address, invite.public_key).encode())
    return relays


def updates_of(network: LocalNetwork) -> int:
    """How far the walk has come, by the disks: some nodes are down, stopped or frozen."""
    newest = [network.newest(number) for number in range(NODES)]
    return max(token.updates for token in newest if token is not None)


def rate(network: LocalNetwork, seconds: float, meanwhile: Callable[[float], None]) -> float:
    """Updates per second, while something else happens."""
    begin, before = time.monotonic(), updates_of(network)
    while (past := time.monotonic() - begin) < seconds:
        meanwhile(past)
        time.sleep(0.1)
    return (updates_of(network) - before) / (time.monotonic() - begin)


class Chaos:
    """What goes wrong, at random times; what is due later is kept in an agenda."""

    def __init__(self, network: LocalNetwork, relays: Relays, seconds: float, seed: int) -> None:
        self._network, self._relays = network, relays
        self._generator = generator = np.random.default_rng(seed)
        self.counts = {kind: round(a * seconds / 60) for kind, a in A_MINUTE.items()}
        kinds = [kind for kind, count in self.counts.items() for _ in range(count)]
        times = generator.uniform(0.0, seconds, len(kinds))
        self._agenda = [(float(at), self._trouble(kind)) for at, kind in zip(times, kinds)]  # noqa: B905
        self._busy: set[int] = set()

    def __call__(self, past: float) -> None:
        """Do what is due."""
        due = [each for each in self._agenda if each[0] <= past]
        self._agenda = [each for each in self._agenda if each[0] > past]
        for at, act in sorted(due, key=lambda each: each[0]):
            act(max(at, past))

    def end(self) -> None:
        """Put everything right again."""
        self(float("inf"))
        self._network.wait_until_up()

    def _later(self, at: float, act: Callable[[], None]) -> None:
        self._agenda.append((at, lambda past: act()))

    def _trouble(self, kind: str) -> Callable[[float], None]:
        return lambda past: getattr(self, f"_{kind}")(past)

    def _victim(self) -> int | None:
        free = [number for number in range(NODES) if number not in self._busy]
        if not free:
            return None
        victim = int(self._generator.choice(free))
        self._busy.add(victim)
        return victim

    def _back(self, victim: int) -> None:
        self._network.restart(victim)
        self._busy.discard(victim)

    def _kill(self, past: float) -> None:
        if (victim := self._victim()) is not None:
            self._network.kill(victim)
            self._later(past + 1.0, lambda: self._back(victim))

    def _stop(self, past: float) -> None:
        if (victim := self._victim()) is not None:
            os.kill(self._network.process_ids[victim], signal.SIGTERM)
            self._later(past + 5.0, lambda: (self._network.kill(victim), self._back(victim))[0])

    def _freeze(self, past: float) -> None:
        if (victim := self._victim()) is not None:
            process = self._network.process_ids[victim]
            os.kill(process, signal.SIGSTOP)

            def thaw() -> None:
                os.kill(process, signal.SIGCONT)
                self._busy.discard(victim)

            self._later(past + float(self._generator.uniform(10.0, 40.0)), thaw)

    def _cut(self, past: float) -> None:
        link = self._relays.links[int(self._generator.integers(len(self._relays.links)))]
        self._relays.cut(link, float(self._generator.uniform(10.0, 30.0)))


def seconds_without_holder(network: LocalNetwork, patience: float) -> float:
    """Kill whoever has the token; how long until the others have made further updates."""
    while True:
        statuses = network.statuses()
        found = [number for number, each in enumerate(statuses) if each["phase"] in HOLDING]
        if not found:
            time.sleep(0.01)
            continue
        network.kill(found[0])  # it may have handed the token over meanwhile: then it goes on
        time.sleep(0.3)
        before, begin = updates_of(network), time.monotonic()
        time.sleep(0.7)
        if updates_of(network) == before:
            break
        network.restart(found[0])
        time.sleep(1.0)
    while updates_of(network) <= before and time.monotonic() - begin < patience:
        time.sleep(0.05)
    seconds = time.monotonic() - begin + 0.3
    network.restart(found[0])
    time.sleep(5.0)
    return seconds


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--seconds", type=float, default=300.0, help="of chaos")
    parser.add_argument("--calm", type=float, default=60.0, help="seconds undisturbed, before")
    parser.add_argument("--holders", type=int, default=7, help="how many holders to kill for good")
    parser.add_argument("--seed", type=int, default=0)
    chosen = parser.parse_args()
    graph = wl.graphs.as_graph("erdos-renyi", nodes=NODES, seed=chosen.seed)
    trial = Trial.draw(graph, "uniform", 100_000_000, None, chosen.seed)
    with tempfile.TemporaryDirectory() as folder:
        network = LocalNetwork.create(Path(folder), trial.plan, graph, trial.rows())
        relays = relayed(network, graph)
        with network:
            network.start()
            network.start_walk()
            time.sleep(5.0)
            calm = rate(network, chosen.calm, lambda past: None)
            print(f"undisturbed: {calm:.0f} updates/s", flush=True)
            chaos = Chaos(network, relays, chosen.seconds, chosen.seed)
            rough = rate(network, chosen.seconds, chaos)
            chaos.end()
            print(f"{chaos.counts}: {rough:.0f} updates/s, {rough / calm:.2f} of undisturbed",
                  flush=True)  # fmt: skip
            time.sleep(10.0)
            gone = [seconds_without_holder(network, 120.0) for _ in range(chosen.holders)]
            if gone:
                told = ", ".join(f"{each:.1f}" for each in sorted(gone))
                print(f"holder gone for good: on after {told} s; "
                      f"median {statistics.median(gone):.1f} s")  # fmt: skip


if __name__ == "__main__":
    main()
