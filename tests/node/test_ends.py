"""One final model for all: a starter that dies at once, and a network that is cut near its end."""

from __future__ import annotations

import signal
from pathlib import Path

import pytest

from tests.node.memory_network import MemoryNetwork, MemoryNode
from tests.node.network_scenarios import UPDATES, network_of, newest, the_end, within
from tests.node.small_network import make_nodes, processes, ring
from tests.node.test_processes import final_of
from walklearn.node.process.control import send_command
from walklearn.node.process.service import UNCONFIRMED
from walklearn.node.protocol.state import Phase


@pytest.mark.parametrize("seed", range(5))
def test_a_walk_outlives_a_starter_that_dies_before_its_first_handover(seed: int) -> None:
    network = network_of(seed=seed)
    starter = network.nodes[0]
    network.crash(starter)  # its greetings are under way
    assert newest(network) == 0
    begin = network.now
    within(network, 30.0, lambda: newest(network) > 0)
    assert network.now - begin > 3.0  # the usual wait: the starter may only be slow
    final = the_end(network, without=starter)
    assert final.line.reclaimer != starter.fingerprint
    network.restart(starter)
    assert the_end(network).digest == final.digest


@pytest.mark.parametrize("seed", range(5))
def test_a_starter_that_returns_does_not_make_a_second_walk(seed: int) -> None:
    network = network_of(seed=seed)
    starter = network.nodes[0]
    network.crash(starter)
    within(network, 30.0, lambda: newest(network) > 20)
    network.restart(starter)
    assert the_end(network).line.reclaimer != starter.fingerprint


def cut_near_the_end(seed: int) -> tuple[MemoryNetwork, list[MemoryNode], list[MemoryNode]]:
    """A network, the part of it that has ended, and the part that has just resumed the walk.

    The cut comes after the last renewal of the line, so a line that is resumed from a copy made
    since is the newer one. With some seeds it is resumed from an older copy.
    """
    network = network_of(seed=seed)
    halves = network.nodes[:3], network.nodes[3:]
    names = [{node.fingerprint for node in half} for half in halves]

    def token_is_in(half: int) -> bool:
        held = [node.state.record for node in halves[half] if node.state.phase is not Phase.IDLE]
        return any(each.receiver in names[half] for each in held)

    def knows_the_last_line(node: MemoryNode) -> bool:
        line = node.state.record.newest_line
        return line is not None and line.renewed_at > UPDATES

    network.run(
        lambda: token_is_in(0) and all(any(map(knows_the_last_line, half)) for half in halves)
    )
    network.cut |= {frozenset((one, two)) for one in names[0] for two in names[1]}
    within(network, 60.0, lambda: all(node.state.phase is Phase.FINISHED for node in halves[0]))
    end = halves[0][0].state.record.final_line
    assert end is not None

    def has_resumed(node: MemoryNode) -> bool:
        line = node.state.record.newest_line
        return line is not None and line > end

    within(network, 60.0, lambda: any(map(has_resumed, halves[1])))
    return network, *halves


@pytest.mark.parametrize("seed", [0, 2, 3, 4, 5])
def test_a_part_that_hears_of_the_end_ends_its_own_unfinished_walk(seed: int) -> None:
    """Those that have ended may be gone when the other part would end with another model."""
    network, ended, other = cut_near_the_end(seed)
    digest = ended[0].state.record.final_digest
    network.cut.clear()
    for node in ended:
        for neighbour in node.neighbours:
            network.greet(node, neighbour)
    within(network, 60.0, lambda: all(node.state.phase is Phase.FINISHED for node in other))
    network.run(lambda done=network.now + 30.0: network.now > done)  # type: ignore[misc]
    assert {node.state.record.final_digest for node in network.nodes} == {digest}


def test_a_starter_killed_at_once_after_start_walk_does_not_stop_the_others(tmp_path: Path) -> None:
    directories = make_nodes(tmp_path, 4, [*ring(4), (1, 3)], updates=200)
    with processes(directories, "--linger-seconds", "5") as running:
        send_command(directories[0].path, "StartWalk", resume=False)
        running[0].popen.send_signal(signal.SIGKILL)
        running[0].popen.wait()
        assert [each.wait() for each in running[1:]] == [UNCONFIRMED, 0, UNCONFIRMED]
    finals = [final_of(each) for each in directories[1:]]
    assert {each.updates for each in finals} == {200}
    assert len({each.digest for each in finals}) == 1
