"""Networks in memory that lose nodes or links, and what must hold in spite of it.

Each scenario raises where the walk does not come to its one end. The updates write their own number
into the model, as in `fault_machine`.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from tests.node.fault_machine import Numbered, history
from tests.node.memory_network import MemoryNetwork, MemoryNode
from walklearn import graphs
from walklearn.node.agreement.plan import Plan
from walklearn.node.protocol.record import Place, Record
from walklearn.node.protocol.state import Phase
from walklearn.node.protocol.tokens import Token
from walklearn.streams import generators

NODES, UPDATES = 6, 400
GRAPH = graphs.from_edges([(i, (i + 1) % NODES) for i in range(NODES)] + [(0, 3), (1, 4)])


def network_of(more: str = "", seed: int = 1, updates: int = UPDATES) -> MemoryNetwork:
    plan = Plan.from_text(f"""
name = "faults"
nodes = {NODES}
features = {[f"update {k}" for k in range(updates)]}
target = "y"
loss = "squared"
update = "saga"
updates = {updates}
time_limits = {{ {more} }}
""")
    nodes = [Numbered.of_plan(plan, np.eye(updates)[:1], [1.0]) for _ in range(NODES)]
    network = MemoryNetwork(nodes, GRAPH, generators(np.random.SeedSequence(seed), NODES))
    network.run(lambda: network.connected)
    network.start_walk(network.nodes[0], np.zeros(updates))
    return network


def newest(network: MemoryNetwork) -> int:
    """Return the largest number of updates that any node knows."""
    models = [node.state.record.newest_model for node in network.nodes]
    return max(0 if model is None else model.updates for model in models)


def within(network: MemoryNetwork, seconds: float, is_so: Callable[[], bool]) -> None:
    """Let time pass until a condition holds, and fail after a number of seconds."""
    end = network.now + seconds
    network.run(lambda: is_so() or network.now > end)
    assert is_so()


def the_end(network: MemoryNetwork, without: MemoryNode | None = None) -> Token:
    """The one final model of all but one node; every update of it once, each made upon the last."""
    nodes = [node for node in network.nodes if node is not without]
    within(network, 300.0, lambda: all(node.state.phase is Phase.FINISHED for node in nodes))
    within(network, 30.0, lambda: len({node.state.record.final_digest for node in nodes}) == 1)
    final = nodes[0].state.record.final
    assert final is not None
    for k, number in enumerate(history(final)):
        assert Numbered.made_by[number][1] == history(final)[:k]
    return final


def holder_gone_for_good(seed: int = 1) -> float:
    """Seconds until the others have made further updates."""
    network = network_of(seed=seed)
    network.run(lambda: newest(network) > 50)
    network.run(lambda: any(node.state.wants_visit for node in network.nodes))
    (holder,) = (node for node in network.nodes if node.state.wants_visit)
    network.crash(holder)
    begin, before = network.now, newest(network)
    within(network, 60.0, lambda: newest(network) > before)
    seconds = network.now - begin
    assert the_end(network, without=holder).line.counter > 1
    return seconds


def undisturbed(seed: int = 1) -> None:
    """A slow network: nobody takes the walk for lost."""
    network = network_of(seed=seed)
    network.latency_seconds = 0.2
    assert the_end(network).line.counter == 1


def newcomer_begins_a_walk(seed: int = 1) -> None:
    """A node that was cut off begins a walk of its own, though one is under way."""
    network = network_of(seed=seed)
    newcomer = network.nodes[-1]  # with the largest fingerprint
    around = {frozenset((newcomer.fingerprint, each)) for each in newcomer.neighbours}
    network.cut |= around
    network.run(lambda: newest(network) > 200)
    newcomer.written = newcomer.state.record.__class__()
    network.crash(newcomer)
    network.restart(newcomer)
    network.start_walk(newcomer, np.zeros(UPDATES), "f" * 32)
    network.cut -= around
    for each in newcomer.neighbours:  # before the walk under way ends
        network.greet(newcomer, each)
    final = the_end(network)
    assert final.line.walk == "0" * 32
    assert final.line.counter == 1


def restored_holder(seed: int = 1) -> None:
    """A node is put back to a time when it held the token, or was handing it over."""
    network = network_of(seed=seed)
    place, node = [Place.LEAVING, Place.HERE][seed % 2], network.nodes[0]
    if place is Place.HERE:  # what nobody takes is on the disk as held here
        network.crash(network.nodes[3])

    def has_copy() -> bool:
        return newest(network) > 50 and node.written.place is place

    network.run(has_copy)
    copy, at = node.written, newest(network)
    if place is Place.HERE:
        network.restart(network.nodes[3])
    network.run(lambda: newest(network) > at + 10 * (1 + seed % 7))
    network.crash(node)
    node.written = copy
    network.restart(node)
    final = the_end(network)
    assert len(set(history(final))) == UPDATES


def restored_holder_alone(seed: int = 1) -> None:
    """The same, and the node with the true token is gone for good."""
    network = network_of(seed=seed)
    node = network.nodes[0]
    network.run(lambda: newest(network) > 50 and node.written.place is Place.LEAVING)
    copy, at = node.written, newest(network)
    network.run(lambda: newest(network) > at + 10 * (1 + seed % 7))
    network.run(lambda: any(each.state.wants_visit for each in network.nodes if each is not node))
    (holder,) = (each for each in network.nodes if each.state.wants_visit)
    network.crash(holder)
    network.crash(node)
    node.written = copy
    network.restart(node)
    the_end(network, without=holder)


def all_restored(seed: int = 1) -> None:
    """Every node is put back, each to a time of its own."""
    network = network_of(seed=seed)
    copies = list[Record]()
    for number, node in enumerate(network.nodes):
        network.run(lambda many=40 * (1 + (number + seed) % NODES): newest(network) > many)  # type: ignore[misc]
        copies.append(node.written)
    for node, copy in zip(network.nodes, copies, strict=True):
        network.crash(node)
        node.written = copy
    for node in network.nodes:
        network.restart(node)
    the_end(network)


def two_parts_end(seed: int = 1) -> None:
    """The network is cut in two; both parts come to an end, and then they meet."""
    network = network_of(seed=seed)
    network.run(lambda: newest(network) > 100)
    parts = [network.nodes[:3], network.nodes[3:]]
    names = [{node.fingerprint for node in part} for part in parts]
    network.cut |= {frozenset((one, other)) for one in names[0] for other in names[1]}
    within(network, 300.0, lambda: all(n.state.phase is Phase.FINISHED for n in network.nodes))
    assert len({node.state.record.final_digest for node in network.nodes}) == 2
    network.cut.clear()
    the_end(network)


def parts_that_went_on_meet(seed: int = 1) -> None:
    """The network is cut in two, one part goes on later; they agree soon after they meet."""
    limits = "hello_every_seconds = 0.5, resume_after_seconds = 4.0"
    network = network_of(limits, seed, updates=2_000)
    network.run(lambda: newest(network) > 100)
    parts = [network.nodes[:3], network.nodes[3:]]
    network.run(lambda: any(node.state.wants_visit for node in parts[0]))
    names = [{node.fingerprint for node in part} for part in parts]
    network.cut |= {frozenset((one, other)) for one in names[0] for other in names[1]}

    def reached(part: list[MemoryNode]) -> int:
        models = [node.state.record.newest_model for node in part]
        return max(0 if model is None else model.updates for model in models)

    network.run(lambda: min(map(reached, parts)) > 300)
    assert reached(parts[0]) > 500
    network.cut.clear()

    def agree() -> bool:
        lines = [node.state.record.newest_line for node in network.nodes]
        return len({line and line.beginning for line in lines}) == 1

    within(network, 4.0, agree)
    the_end(network)
