"""Kill nodes of a real network at random while the token walks, and see that nothing is lost.

    python -m benchmarks.soak                    # 20 runs of 10 nodes, a minute of kills each
    python -m benchmarks.soak --runs 1 --seconds 10 --updates 3000

Every second a random node gets SIGKILL, at whatever instruction it is, and is started again. Two
nodes can dial and cannot be dialled. One is put back to a backup that was made a third of the time
before; when the kills are over its owner lets it contribute again. After four fifths of the walk
whoever has the token is killed for good.

The walk must outlast the kills, or they would prove nothing. Then it must come to its end, every
node that runs must hold the same final model with exactly the plan's number of updates. Before a
node is gone for good, and its rows with it, the error must be at most twice the largest of 1,000
simulated walks as long on the same plan, which nobody disturbs: kills hold the token up where
neighbours are silent, so some more error is no loss.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
import time
from pathlib import Path
from typing import NamedTuple

import numpy as np

import walklearn as wl
from walklearn.node.agreement.plan import Plan
from walklearn.node.disk.directory import NodeDirectory
from walklearn.node.protocol.tokens import Token
from walklearn.node.trial.local_network import LocalNetwork
from walklearn.node.trial.two_gaussians import Trial, watch
from walklearn.node.wire.identity import Invite

NODES, UNDIALLABLE = 10, 2
SIMULATED = 1000
STATUS_SECONDS = 30.0  # for the status of a node on a busy machine
TOLERANCE = 2.0


class Outcome(NamedTuple):
    """What came of one run."""

    kills: int
    holder_kills: int  # of a node that had the token
    begun_again: int
    noticed: bool  # who was put back to a backup was told so by a neighbour
    updates_then: int  # made when the kills were over
    updates: int
    error: float
    largest_error: float  # of the simulated walks
    same_everywhere: bool
    seconds: float

    @property
    def failure(self) -> str:
        """What went wrong, empty if nothing did."""
        if self.updates_then == self.updates:
            return "the walk ended before the kills did: give it more --updates"
        if not self.same_everywhere:
            return "nodes ended with different models"
        if not self.error <= TOLERANCE * self.largest_error:
            return f"error {self.error:.3g}, simulated walks reach {self.largest_error:.3g} at most"
        return ""


def soak(
    folder: Path,
    seconds: float,
    updates: int,
    seed: int,
    patience: float,
    every_seconds: float = 1.0,
    nodes: int = NODES,
) -> Outcome:
    """One run: kills for so many seconds, then `patience` seconds at most until the end."""
    generator = np.random.default_rng(seed)
    graph = wl.graphs.as_graph("erdos-renyi", nodes=nodes, seed=seed)
    trial = Trial.draw(graph, "uniform", updates, None, seed)
    with LocalNetwork.create(folder, trial.plan, graph, trial.rows()) as network:
        _hide(network, graph, UNDIALLABLE)
        network.start()
        begin = time.monotonic()
        network.start_walk()
        kills, holder_kills = _kill_for(network, seconds, every_seconds, generator)
        network.wait_until_up()
        statuses = network.statuses(STATUS_SECONDS)
        noticed = any("restored backup" in each["counters"].get("notes", {}) for each in statuses)
        updates_then = max(status["updates"] for status in statuses)
        gone, before = _kill_the_holder(network, graph, patience, updates * 4 // 5)
        limit = time.monotonic() + patience
        for glimpse in watch(network, trial):
            if time.monotonic() > limit:
                raise TimeoutError(f"the walk did not end: {glimpse}")
            time.sleep(0.2)
        tokens = [network.newest(number) for number in range(nodes) if number != gone]
    finals = [token for token in tokens if token is not None]
    same = len({(t.updates, t.line, t.model.tobytes()) for t in finals}) == 1
    learnt = finals[0] if before is None else before
    return Outcome(
        kills, holder_kills, finals[0].line.counter - 1, noticed, updates_then,
        finals[0].updates, trial.error(learnt.model), largest_error(trial, seed, learnt.updates),
        same and len(finals) == len(tokens) and finals[0].updates == updates,
        time.monotonic() - begin,
    )  # fmt: skip


def _kill_for(
    network: LocalNetwork, seconds: float, every_seconds: float, generator: np.random.Generator
) -> tuple[int, int]:
    begin, kills, holder_kills = time.monotonic(), 0, 0
    backup: Backup | None = None
    while (past := time.monotonic() - begin) < seconds:
        time.sleep(every_seconds)
        restores = backup is not None and not backup.used and past > seconds * 2 / 3
        victim = int(generator.integers(len(network.directories)))
        if backup is not None and restores:
            victim = backup.number
        holder_kills += _has_token(network, victim)
        network.kill(victim)
        kills += 1
        if backup is None and past > seconds / 3:
            backup = Backup(victim, network.directories[victim])
        elif backup is not None and restores:
            backup.restore()
        network.restart(victim)
    return kills, holder_kills


class Backup:
    """A copy of a node's database, made while its process is down."""

    def __init__(self, number: int, directory: NodeDirectory) -> None:
        self.number, self.used = number, False
        self._place = directory.store_path
        self._files = {file.name: file.read_bytes() for file in self._present()}

    def restore(self) -> None:
        """Put the node back to that time."""
        for file in self._present():
            file.unlink()
        for name, content in self._files.items():
            self._place.with_name(name).write_bytes(content)
        self.used = True

    def _present(self) -> list[Path]:
        names = [self._place.name + ending for ending in ("", "-wal", "-shm")]
        return [file for file in map(self._place.with_name, names) if file.exists()]


def _hide(network: LocalNetwork, graph: wl.Graph, count: int) -> None:
    """Let so many nodes, none of them neighbours, have no address that others could dial."""
    hidden: list[int] = []
    for number in range(graph.node_count):
        around = set(graph.neighbours(number).tolist())
        if len(hidden) == count or around & set(hidden):
            continue
        hidden.append(number)
        own = network.directories[number].invite
        for other in around:
            network.directories[other].remove_peer(own.name)
            network.directories[other].add_peer(Invite(own.name, "", own.public_key).encode())


def _kill_the_holder(
    network: LocalNetwork, graph: wl.Graph, patience: float, after: int
) -> tuple[int | None, Token | None]:
    """Kill for good whoever has the token, if the others can still reach each other."""
    limit = time.monotonic() + patience
    while time.monotonic() < limit:
        for number, status in enumerate(network.statuses()):
            has_it = status["phase"] in ("holding", "handing over") and status["updates"] >= after
            if has_it and _is_connected(graph, number):
                token = network.newest(number)
                network.kill(number)
                return number, token
    return None, None


def _is_connected(graph: wl.Graph, without: int) -> bool:
    reached, border = {without}, [0 if without else 1]
    while border:
        reached.add(node := border.pop())
        border += set(graph.neighbours(node).tolist()) - reached
    return len(reached) == graph.node_count


def _has_token(network: LocalNetwork, number: int) -> bool:
    """Whether the node said so just now; one that is still starting says nothing."""
    return network.status(number)["phase"] in ("holding", "handing over")


def largest_error(trial: Trial, seed: int, updates: int) -> float:
    """The largest error of as many simulated walks on the same plan, after as many updates."""
    plan = Plan.from_text(trial.plan)
    run = wl.simulate(trial.problem, trial.graph, wl.walks.Uniform(), steps=updates,
                      step_size=plan.step_size, replicates=SIMULATED, seed=seed, records=1,
                      gaps=False, progress=False)  # fmt: skip
    return float(run.distance[:, -1].max())


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--runs", type=int, default=20)
    parser.add_argument("--seconds", type=float, default=60.0, help="of kills, one a second")
    parser.add_argument("--updates", type=int, default=60_000)
    parser.add_argument("--patience", type=float, default=300.0, help="seconds to wait for the end")
    parser.add_argument("--seed", type=int, default=0, help="of the first run; the next has +1")
    chosen = parser.parse_args()
    failures = 0
    print("run  kills  of the holder  begun again  backup noticed  updates then  in the end   "
          "error  simulated  seconds", flush=True)  # fmt: skip
    for number in range(chosen.runs):
        with tempfile.TemporaryDirectory() as folder:
            seed = chosen.seed + number
            outcome = soak(Path(folder), chosen.seconds, chosen.updates, seed, chosen.patience)
        failures += bool(outcome.failure)
        print(f"{number:>3}  {outcome.kills:>5}  {outcome.holder_kills:>13}  "
              f"{outcome.begun_again:>11}  {outcome.noticed!s:>14}  {outcome.updates_then:>12}  "
              f"{outcome.updates:>10}  {outcome.error:>6.3f}"
              f"  {outcome.largest_error:>9.3f}  {outcome.seconds:>7.0f}  {outcome.failure}",
              flush=True)  # fmt: skip
    print(f"{chosen.runs - failures} of {chosen.runs} runs lost nothing")
    sys.exit(bool(failures))


if __name__ == "__main__":
    main()
