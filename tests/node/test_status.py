"""What a node says of itself is true, to its owner, on its page and to Prometheus."""

from __future__ import annotations

from dataclasses import replace

from prometheus_client import CollectorRegistry, generate_latest

from tests.node.test_protocol import LEFT, ME, RIGHT, node
from walklearn.node.process.metrics import Counters, _Collector
from walklearn.node.process.status import Watch, gauges, node_status
from walklearn.node.protocol.events import NewNeighbours
from walklearn.node.protocol.protocol import handle
from walklearn.node.protocol.record import Record
from walklearn.node.protocol.tally import LOSSES, Tally

NAMES = {LEFT: "left", RIGHT: "right"}


def lost_twice() -> Tally:
    tally = Tally()
    for _ in range(LOSSES):
        tally = tally.and_sent().and_missed(beyond=0)
    return tally


def test_who_had_the_token_last_may_be_no_neighbour_any_more() -> None:
    watch, state = Watch(), node()
    for last, name in ((ME, "this node"), (LEFT, "left")):
        watch.last_holder = last
        assert node_status(state, NAMES, watch)["last_holder"] == name
    left, _ = handle(state, NewNeighbours((RIGHT,)))
    assert node_status(left, {RIGHT: "right"}, watch)["last_holder"] == "a former neighbour"
    assert gauges(left, {RIGHT: "right"}, watch)["last_holder"] == {"this node": 0, "right": 0}


def test_a_distrusted_neighbour_is_not_one_that_works_one_way() -> None:
    state = node(Record(tallies={LEFT: lost_twice()}))
    shown = node_status(state, NAMES, Watch())
    assert {each["name"]: each["link"] for each in shown["neighbours"]} == {
        "left": "distrusted", "right": "up",
    }  # fmt: skip
    counted = gauges(state, NAMES, Watch())
    assert (counted["neighbours_one_way"], counted["neighbours_distrusted"]) == (0.0, 1.0)
    unheard = replace(state.links[RIGHT], acknowledged=None)
    state = replace(state, links={**state.links, RIGHT: unheard})
    assert node_status(state, NAMES, Watch())["neighbours"][1]["link"] == "one way"
    assert gauges(state, NAMES, Watch())["neighbours_one_way"] == 1.0


def test_prometheus_hears_who_had_the_token_last() -> None:
    watch, registry = Watch(), CollectorRegistry(auto_describe=False)
    watch.last_holder = LEFT
    registry.register(_Collector(Counters(), lambda: gauges(node(), NAMES, watch)))
    text = generate_latest(registry).decode()
    assert 'walklearn_last_holder{holder="left"} 1.0' in text
    assert 'walklearn_last_holder{holder="this node"} 0.0' in text
