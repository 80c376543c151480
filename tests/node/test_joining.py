"""Joining by the roster: neighbours without a paste for each edge, and newer rosters."""

from __future__ import annotations

import contextlib
import json
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from tests.node.made_tokens import changed
from tests.node.small_network import (
    PLAN,
    free_port,
    in_process,
    log_lines,
    make_node,
    processes,
    rows_of,
)
from tests.node.test_service import is_met
from tests.running import invoke, until
from walklearn.node.disk.creation import create_node
from walklearn.node.disk.directory import DirectoryError, NodeDirectory
from walklearn.node.disk.roster_signer import change_roster, new_roster
from walklearn.node.process.control import send_command
from walklearn.node.process.node import Node
from walklearn.node.process.service import UNCONFIRMED
from walklearn.node.protocol.record import Record
from walklearn.node.protocol.tokens import Line
from walklearn.node.wire.identity import Identity, Invite
from walklearn.node.wire.roster import Roster, RosterError


def make(folder: Path, count: int, dial_only: int = 0, updates: int = 60) -> list[NodeDirectory]:
    """A roster, a plan that names the signer, and nodes; the last of them cannot be dialled."""
    signer = new_roster(folder / "roster").signer_fingerprint
    text = PLAN.format(nodes=count, updates=updates, more=f'roster_signer = "{signer}"')
    (folder / "plan.toml").write_text(text)
    dialled = [make_node(folder / f"node{n}", folder / "plan.toml", rows_of(n))
               for n in range(count - dial_only)]  # fmt: skip
    others = [
        create_node(
            folder / f"node{n}", plan=folder / "plan.toml", data=rows_of(n),
            listen=f"127.0.0.1:{free_port()}", accept_unprotected=True,
        ).directory
        for n in range(count - dial_only, count)
    ]  # fmt: skip
    return dialled + others


def write_down(folder: Path, *nodes: NodeDirectory, also: tuple[Invite, ...] = ()) -> bytes:
    invites = [*(node.invite for node in nodes), *also]
    change_roster(folder / "roster", lambda old: old.with_participants(*invites))
    return (folder / "roster").read_bytes()


async def test_a_network_joins_by_the_roster_and_ends_with_nodes_that_cannot_be_dialled(
    tmp_path: Path,
) -> None:
    nodes = make(tmp_path, 5, dial_only=2)
    content = write_down(tmp_path, *nodes)
    for each in nodes:
        each.join(content)
    assert all(peer.address for node in nodes[3:] for peer in node.neighbours())
    running = [in_process(each)[0] for each in nodes]
    async with contextlib.AsyncExitStack() as stack:
        for each in running:
            await stack.enter_async_context(each.started())
        await until(lambda: all(map(is_met, running)))
        await running[0].start_walk()
        await until(lambda: all(each.all_know_the_end for each in running))
        assert all(each.final is not None for each in running)


async def test_a_newer_roster_is_passed_on_and_changes_the_neighbours(tmp_path: Path) -> None:
    one, other, late = make(tmp_path, 3)
    content = write_down(tmp_path, one, other)
    one.join(content)
    other.join(content)
    newer = write_down(tmp_path, late)
    (first, _), (second, log) = in_process(one), in_process(other)
    async with first.started(), second.started():
        await until(lambda: is_met(first) and is_met(second))
        one.join(newer)
        await first.look_for_neighbours()
        await until(lambda: other.roster is not None and other.roster.number == 2)
        await second.look_for_neighbours()
        assert [peer.name for peer in other.neighbours()] == ["node0", "node2"]
        late.join(newer)
        (third, _) = in_process(late)
        async with third.started():
            await until(lambda: is_met(first) and is_met(second) and is_met(third))
        assert "newer roster" in log.getvalue()
    with pytest.raises(DirectoryError, match="the newer roster 2"):
        one.join(content)


def claim(node: Node, content: bytes) -> None:
    """Make a node offer this content as roster 7."""
    brought: Any = SimpleNamespace(number=7, encode=lambda: content)
    node._runtime.rosters.current = brought


async def test_a_neighbour_cannot_bring_a_roster_that_the_signer_did_not_sign(
    tmp_path: Path,
) -> None:
    one, other = make(tmp_path, 2)
    content = write_down(tmp_path, one, other)
    for each in (one, other):
        each.join(content)
    (first, log), (second, _) = in_process(one), in_process(other)
    async with first.started(), second.started():
        await until(lambda: is_met(first) and is_met(second))
        claim(second, content.replace(b'"number": 1', b'"number": 7'))
        second._runtime.rosters.tell(one.identity.fingerprint)
        await until(lambda: "roster refused" in log.getvalue())
        assert "roster signer signed" in log.getvalue()
        refused = {each["event"]: each for each in log_lines(log.getvalue())}["roster refused"]
        assert refused["neighbour"] == "node1"
    assert one.roster is not None
    assert one.roster.number == 1


async def test_no_roster_that_a_neighbour_brings_ends_the_node(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Not even one over which this node has a fault of its own."""
    one, other = make(tmp_path, 2)
    content = write_down(tmp_path, one, other)
    for each in (one, other):
        each.join(content)
    newer = write_down(tmp_path)

    def fail(content: bytes) -> Roster:
        raise RuntimeError("a fault of this node's")

    (first, log), (second, _) = in_process(one), in_process(other)
    async with first.started(), second.started():
        await until(lambda: is_met(first) and is_met(second))
        wild = content.replace(b'"number": 1', b'"number": 1e999')
        for times, brought in enumerate((wild, newer), 1):
            claim(second, brought)
            second._runtime.rosters.tell(one.identity.fingerprint)
            await until(lambda times=times: log.getvalue().count("roster refused") == times)
            monkeypatch.setattr(one, "join", fail)
        assert "fault of this node" in log.getvalue()
        await first.wait(0.1)  # it raises what ended the node
        assert is_met(first)


def test_with_a_roster_who_is_removed_stays_removed_and_nobody_else_is_added(
    tmp_path: Path,
) -> None:
    one, other, third = make(tmp_path, 3)
    with pytest.raises(DirectoryError, match=r"node1.*roster"):
        one.add_peer(other.invite.encode())  # there is none yet
    write_down(tmp_path, one, other, third)
    change_roster(tmp_path / "roster", lambda old: old.with_edges(("node0", "node1")))
    one.join((tmp_path / "roster").read_bytes())
    with pytest.raises(DirectoryError, match=r"node2.*--edge"):
        one.add_peer(third.invite.encode())
    one.remove_peer("node1")
    assert one.neighbours() == []
    change_roster(tmp_path / "roster", lambda old: old.with_edges(("node0", "node2")))
    one.join((tmp_path / "roster").read_bytes())
    assert [peer.name for peer in one.neighbours()] == ["node2"]
    one.add_peer(other.invite.encode())
    assert [peer.name for peer in one.neighbours()] == ["node1", "node2"]


def test_rosters_that_a_node_does_not_join_by(tmp_path: Path) -> None:
    one, other = make(tmp_path, 2)
    with pytest.raises(RosterError, match="this node"):
        one.join(write_down(tmp_path, other))
    more = Invite("more", "h:1", Identity.create().public_key)
    full = write_down(tmp_path, one, also=(more,))
    with pytest.raises(DirectoryError, match=r"3 participants.* 2"):
        one.join(full)
    (tmp_path / "alone").mkdir()
    (tmp_path / "alone" / "plan.toml").write_text(PLAN.format(nodes=2, updates=5, more=""))
    without = make_node(tmp_path / "alone" / "node", tmp_path / "alone" / "plan.toml")
    with pytest.raises(DirectoryError, match="no roster signer"):
        without.join(full)
    (one.path / "roster.json").write_text("{}")
    with pytest.raises(DirectoryError, match=r"roster\.json.*takes it anew"):
        one.neighbours()


@pytest.mark.parametrize("content", ["", "{", "{}", '{"format": []}', "[1]"])
def test_a_damaged_roster_is_mended_by_joining_again(tmp_path: Path, content: str) -> None:
    one, other = make(tmp_path, 2)
    roster = write_down(tmp_path, one, other)
    one.join(roster)
    (one.path / "roster.json").write_text(content)
    with pytest.raises(DirectoryError, match="`walklearn node join` takes it anew") as told:
        one.neighbours()
    assert "Error" not in str(told.value)
    one.join(roster)
    assert [peer.name for peer in one.neighbours()] == ["node1"]


def test_an_older_roster_does_not_take_the_place_of_a_newer(tmp_path: Path) -> None:
    one, other = make(tmp_path, 2)
    older, newer = write_down(tmp_path, one), write_down(tmp_path, one, other)
    assert one.join(newer).number == one.join(newer).number > 1
    with pytest.raises(DirectoryError, match=r"roster 1.*roster 2"):
        one.join(older)


def test_two_that_cannot_be_dialled_are_told_at_once(tmp_path: Path) -> None:
    one, other = make(tmp_path, 2, dial_only=2)
    with pytest.raises(DirectoryError, match=r"node1.* address"):
        one.add_peer(other.invite.encode())


def test_joining_from_the_shell(tmp_path: Path) -> None:
    one, other = make(tmp_path, 2)
    lines = [invoke("node", "invite", each.path).stdout.strip() for each in (one, other)]
    assert all(len(line) <= 100 for line in lines)
    assert invoke("node", "roster", "add", tmp_path / "roster", *lines).exit_code == 0
    done = invoke("node", "join", one.path, tmp_path / "roster", "--json")
    assert json.loads(done.stdout) == {"roster": 1, "participants": 2, "neighbours": ["node1"]}
    again = invoke("node", "join", one.path, tmp_path / "roster")
    assert again.output == "roster 1, 2 participants; neighbours: node1\n"
    assert (
        Roster.decode((one.path / "roster.json").read_bytes(), one.plan.roster_signer or "").number
        == 1
    )


def path_of_three(folder: Path) -> list[NodeDirectory]:
    """Three participants of a roster, of which the first and the last are no neighbours."""
    nodes = make(folder, 3)
    write_down(folder, *nodes)
    change_roster(
        folder / "roster", lambda old: old.with_edges(("node0", "node1"), ("node1", "node2"))
    )
    for each in nodes:
        each.join((folder / "roster").read_bytes())
    return nodes


def test_with_a_roster_a_node_ends_with_0_when_every_participant_has_the_model(
    tmp_path: Path,
) -> None:
    nodes = path_of_three(tmp_path)
    with processes(nodes) as running:
        send_command(nodes[0].path, "StartWalk", resume=False)
        assert [each.wait() for each in running] == [0] * 3


def test_with_a_roster_a_node_names_every_participant_that_has_no_final_model(
    tmp_path: Path,
) -> None:
    """Also one that is no neighbour: the last one never runs."""
    nodes = path_of_three(tmp_path)
    with processes(nodes[:2], "--linger-seconds", "0.5") as running:
        send_command(nodes[0].path, "StartWalk", resume=False)
        assert [each.wait() for each in running] == [UNCONFIRMED] * 2
        for each in running:
            (line,) = (
                line for line in log_lines(each.log.read_text())
                if line["event"] == "end not confirmed"
            )  # fmt: skip
            assert line["by"] == ["node2"]
            assert line["other_models"] == {}


def test_with_a_roster_a_node_names_every_participant_that_has_another_final_model(
    tmp_path: Path,
) -> None:
    nodes = path_of_three(tmp_path)
    first, _ = in_process(nodes[0])
    try:
        digests = {nodes[1]: "ab" * 32, nodes[2]: "cd" * 32}
        ends = {each.identity.fingerprint: digest for each, digest in digests.items()}
        state = first._runtime.state
        final = changed(
            state.learner.first_token(Line(0, 1, state.fingerprint, "ef" * 16), np.zeros(2)),
            updates=60, final=True,
        )  # fmt: skip
        record = Record(final=final, ends=ends)
        first._runtime.state = replace(state, record=record)
        assert first.unconfirmed == ["node1", "node2"]
        assert first.other_models == {"node1": "ab" * 6, "node2": "cd" * 6}
        assert not first.all_know_the_end
        ends = dict.fromkeys(ends, final.digest)
        first._runtime.state = replace(state, record=replace(record, ends=ends))
        assert first.unconfirmed == []
        assert first.other_models == {}
        assert first.all_know_the_end
    finally:
        first._close()
