"""What a node says of itself is true, to its owner, on its page and to Prometheus."""

from __future__ import annotations

from dataclasses import replace

from prometheus_client import CollectorRegistry, generate_latest

from tests.node.test_protocol import LEARNER, LEFT, ME, RIGHT, node, token, told
from walklearn.node.process.metrics import Counters, _Collector
from walklearn.node.process.status import Watch, all_tell_of_the_end, gauges, node_status
from walklearn.node.protocol.events import NewNeighbours
from walklearn.node.protocol.protocol import handle, recover
from walklearn.node.protocol.record import Record

NAMES = {LEFT: "left", RIGHT: "right"}


def test_who_had_the_token_last_may_be_no_neighbour_any_more() -> None:
    watch, state = Watch(), node()
    for last, name in ((ME, "this node"), (LEFT, "left")):
        watch.last_holder = last
        assert node_status(state, NAMES, watch)["last_holder"] == name
    left, _ = handle(state, NewNeighbours((RIGHT,)))
    assert node_status(left, {RIGHT: "right"}, watch)["last_holder"] == "a former neighbour"
    assert gauges(node_status(left, {RIGHT: "right"}, watch))["last_holder"] == {
        "this node": 0, "right": 0, "a former neighbour": 1,
    }  # fmt: skip


def test_an_end_that_an_earlier_process_heard_of_is_asked_for_again() -> None:
    """Or a finished node that is started again would be gone before a neighbour could ask it."""
    final = token(5, final=True)
    digest = Record(final=final).final_digest
    record = Record(final=final, ends={LEFT: digest, RIGHT: digest})
    state = recover(ME, LEARNER, [LEFT, RIGHT], record)
    assert not all_tell_of_the_end(state)
    for each in (LEFT, RIGHT):
        theirs = replace(told(), final_digest=digest)
        state = replace(state, links=state.with_link(each, theirs=theirs))
    assert all_tell_of_the_end(state)
    left, _ = handle(state, NewNeighbours((RIGHT,)))
    assert left.record.ends == {RIGHT: digest}


def test_a_neighbour_that_does_not_reach_this_node_works_one_way() -> None:
    state = node()
    unheard = replace(state.links[RIGHT], acknowledged=None)
    state = replace(state, links={**state.links, RIGHT: unheard})
    status = node_status(state, NAMES, Watch())
    assert [each["link"] for each in status["neighbours"]] == ["up", "one way"]
    assert gauges(status)["neighbours_one_way"] == 1.0


def test_prometheus_hears_who_had_the_token_last() -> None:
    watch, registry = Watch(), CollectorRegistry(auto_describe=False)
    watch.last_holder = LEFT
    registry.register(_Collector(Counters(), lambda: gauges(node_status(node(), NAMES, watch))))
    text = generate_latest(registry).decode()
    assert 'walklearn_last_holder{holder="left"} 1.0' in text
    assert 'walklearn_last_holder{holder="this node"} 0.0' in text
