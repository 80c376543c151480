"""Nodes as processes of their own: the walk ends everywhere, whatever is killed or stopped."""

from __future__ import annotations

import signal
import time
from pathlib import Path

import numpy as np

import walklearn as wl
from tests.node.small_network import (
    Process,
    log_lines,
    make_nodes,
    processes,
    ring,
    rows_of,
    wait_until,
)
from tests.running import invoke
from walklearn.models import Model
from walklearn.node.disk.directory import NodeDirectory
from walklearn.node.disk.kept_model import newest_model
from walklearn.node.disk.store import Store
from walklearn.node.process.control import send_command
from walklearn.node.process.service import UNCONFIRMED
from walklearn.node.protocol.tokens import Limits, Token

PRIVATE = """
walk = "weighted"
[privacy]
protect = "node"
epsilon = 8.0
delta = 0.06
constants_share = 0.5
mechanism = "clamped-gamma"
bounds = [1.0, 40.0]
clip = 1.0
max_contributions = 10
"""


def final_of(directory: NodeDirectory) -> Token:
    with Store.look(directory.store_path, Limits.of_plan(directory.plan)) as store:
        assert store.record.final is not None
        return store.record.final


def test_a_killed_node_comes_back_and_all_end_with_the_same_model(tmp_path: Path) -> None:
    directories = make_nodes(tmp_path, 5, [*ring(5), (0, 2)], updates=800)
    with processes(directories) as running:
        send_command(directories[0].path, "StartWalk", resume=False)
        wait_until(lambda: running[2].status()["updates"] > 50)
        begun = running[0].status()["walk"]["name"]
        running[2].popen.send_signal(signal.SIGKILL)
        running[2].popen.wait()
        running[2] = Process(directories[2])
        assert [each.wait() for each in running] == [0] * 5
    finals = [final_of(each) for each in directories]
    assert {each.updates for each in finals} == {800}
    assert {each.encoded for each in finals} == {finals[0].encoded}
    # The walk that was begun; on a busy machine others may go on with it before the node is back.
    assert finals[0].line.walk == begun


def test_a_private_walk_ends_within_the_caps_and_gives_a_usable_model(tmp_path: Path) -> None:
    directories = make_nodes(tmp_path, 3, ring(3), updates=60, more=PRIVATE)
    with processes(directories) as running:
        send_command(directories[1].path, "StartWalk", resume=False)
        assert [each.wait() for each in running] == [0] * 3
    model, final = newest_model(directories[0])
    assert final
    model.save(tmp_path / "model")
    loaded = Model.load(tmp_path / "model")
    assert set(loaded.predict(np.eye(2)).tolist()) <= {"no", "yes"}
    contributions = []
    for each in directories:
        with Store.look(each.store_path, Limits.of_plan(each.plan)) as store:
            release = store.release()
            assert release is not None
            assert release.mechanism is not None
            assert 1.0 <= release.importance <= 40.0
            contributions.append(store.record.contributions)
    # What is released is drawn anew each time, and so is the way: a node may never be visited.
    assert 0 < max(contributions) <= 10
    releases = {entry["what"]: entry["times"] for entry in loaded.ledger["releases"]}
    assert releases["importance"] == 1
    assert 0 < releases["model"] <= 10


def test_sigterm_hands_the_token_over_first(tmp_path: Path) -> None:
    directories = make_nodes(tmp_path, 3, ring(3), updates=1000)
    with processes(directories, "--linger-seconds", "1") as running:
        send_command(directories[0].path, "StartWalk", resume=False)
        wait_until(lambda: running[0].status()["updates"] > 50)
        running[0].popen.terminate()
        assert running[0].wait() == 0
        last = log_lines(running[0].log.read_text())[-1]
        assert (last["event"], last["token"]) == ("stopped", "gone")
        # The others end too, and say that one has not confirmed it.
        assert [each.wait() for each in running[1:]] == [UNCONFIRMED] * 2
        (line,) = (
            line for line in log_lines(running[1].log.read_text())
            if line["event"] == "end not confirmed"
        )  # fmt: skip
        assert line["by"] == ["node0"]
        assert final_of(directories[1]).digest.startswith(line["final"])
        assert final_of(directories[1]).line.counter == 1
        # The one that was off asks when it returns; a finished node must be there to answer.
        running[1] = Process(directories[1], "--serve")
        running[0] = Process(directories[0], "--linger-seconds", "1")
        assert running[0].wait() == UNCONFIRMED  # the third one has gone
    assert final_of(directories[0]).encoded == final_of(directories[2]).encoded


def test_an_end_that_is_not_confirmed_is_told_however_the_process_ends(tmp_path: Path) -> None:
    """Of a path of three the last one never comes: only the second is its neighbour."""
    directories = make_nodes(tmp_path, 3, [(0, 1), (1, 2)], updates=30)
    first, second, _ = directories
    with processes((first, second), "--serve", "--linger-seconds", "0.2") as running:
        send_command(first.path, "StartWalk", resume=False)
        wait_until(lambda: "end not confirmed" in running[1].log.read_text())
        wait_until(lambda: all(each.status()["final"] for each in running))
        short = running[0].status()["final_hash"]
        for each in running:
            each.popen.terminate()
        assert [each.wait() for each in running] == [0, UNCONFIRMED]
        assert "end not confirmed" not in running[0].log.read_text()
        assert running[1].log.read_text().count("end not confirmed") == 1
    shown = invoke("node", "status", second.path).stdout
    assert f"its hash is {short}, confirmed by node0, not confirmed by node2" in shown
    shown = invoke("node", "model", first.path, "--out", tmp_path / "model").stdout
    assert shown.endswith(f"its hash is {short}, confirmed by node1\n")
    with processes((second,)) as running:  # and while it lingers, after a restart
        running[0].popen.terminate()
        assert running[0].wait() == UNCONFIRMED


def test_a_walk_that_remembers_ends_at_the_minimiser(tmp_path: Path) -> None:
    """One node is killed on the way and one out of reach for a while; w* to 1e-6 all the same."""
    directories = make_nodes(tmp_path, 5, [*ring(5), (0, 2)], updates=2500, memory=True)
    with processes(directories) as running:
        send_command(directories[0].path, "StartWalk", resume=False)
        wait_until(lambda: running[2].status()["updates"] > 300)
        running[2].popen.send_signal(signal.SIGKILL)
        running[2].popen.wait()
        running[2] = Process(directories[2])
        wait_until(lambda: running[0].status()["updates"] > 700)
        running[4].popen.send_signal(signal.SIGSTOP)
        time.sleep(2.0)
        running[4].popen.send_signal(signal.SIGCONT)
        assert [each.wait() for each in running] == [0] * 5
    rows = [rows_of(number) for number in range(5)]
    problem = wl.Problem(
        np.concatenate([each.X for each in rows]), np.concatenate([each.y for each in rows]),
        penalty=1.0, domain=wl.domains.Ball(10.0), node_of_row=np.repeat(np.arange(5), 5),
    )  # fmt: skip
    best = problem.solution.model
    for each in directories:
        assert np.linalg.norm(final_of(each).model - best) < 1e-6 * np.linalg.norm(best)
