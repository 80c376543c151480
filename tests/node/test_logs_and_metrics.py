"""Logs that cannot flood the disk or stop the node, counters whose labels stay few."""

from __future__ import annotations

import io

from tests.node.small_network import log_lines
from walklearn.node.process.logs import Log
from walklearn.node.process.metrics import Counters


def test_a_flood_of_one_event_is_thinned_and_the_rest_counted() -> None:
    stream, now = io.StringIO(), 0.0
    log = Log("alice", stream, clock=lambda: now)
    for _ in range(10_000):
        log.warning("refused", reason="garbage")
    log.warning("refused", reason="another")
    assert len(log_lines(stream.getvalue())) == 11
    now = 1.0
    log.warning("refused", reason="garbage")
    assert log_lines(stream.getvalue())[-1]["left_out"] == 9990


def test_levels() -> None:
    stream = io.StringIO()
    log = Log("alice", stream, level="warning")
    log.debug("a")
    log.info("b")
    log.warning("c")
    log.error("d", reason=ValueError("e"))
    assert [line["event"] for line in log_lines(stream.getvalue())] == ["c", "d"]
    assert log_lines(stream.getvalue())[1]["reason"] == "e"


def test_a_closed_stream_does_not_stop_the_node() -> None:
    stream = io.StringIO()
    stream.close()
    log = Log("alice", stream)
    log.info("nobody hears this")
    assert stream.closed


def test_labels_from_outside_stay_few() -> None:
    counters = Counters()
    for number in range(1000):
        counters.add("refusals", f"reason {number}")
    reasons = counters.as_dict()["refusals"]
    assert len(reasons) == 101
    assert reasons["other"] == 900
