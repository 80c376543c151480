"""Nodes in one process, over the real wire and the real disk."""

from __future__ import annotations

import asyncio
import json
import os
import threading
from contextlib import AsyncExitStack
from dataclasses import replace
from io import BytesIO
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tests.node.small_network import (
    PLAN,
    in_process,
    introduce,
    log_lines,
    make_node,
    make_nodes,
    ring,
)
from tests.node.test_processes import PRIVATE
from tests.running import until
from walklearn.node.agreement.node_rows import NodeRows
from walklearn.node.agreement.plan import Plan
from walklearn.node.disk.database import DiskError, StoreError
from walklearn.node.disk.directory import NodeDirectory
from walklearn.node.disk.store import Store
from walklearn.node.process.control import CommandError
from walklearn.node.process.node import Node, NodeOptions
from walklearn.node.protocol import pace
from walklearn.node.protocol.events import StartWalk
from walklearn.node.protocol.learner import Draws
from walklearn.node.protocol.messages import Greeting
from walklearn.node.protocol.tokens import Limits, Line, Mark
from walklearn.node.wire.session import Refused, Unanswered, Undelivered
from walklearn.privacy.draws import exact_draws


def is_met(node: Node) -> bool:
    return all(each["usable"] for each in node.status()["neighbours"])


async def test_a_release_is_told_only_to_neighbours_with_the_same_plan(tmp_path: Path) -> None:
    """What comes to a neighbour with another plan has no R_i in it, then or later."""
    more = (
        'walk = "weighted"\n[privacy]\nprotect = "node"\nmodel = "in the clear"\n'
        # A release is never 1, which stands for none: what is below the bounds becomes 2.
        'mechanism = "laplace"\nepsilon = 3.0\ndelta = 0.03\nbounds = [2.0, 40.0]'
    )
    one, other, _ = make_nodes(tmp_path, 3, [(0, 1)], more=more)
    (tmp_path / "other.toml").write_text(
        (tmp_path / "plan.toml").read_text().replace("epsilon = 3.0", "epsilon = 2.0")
    )
    third = make_node(tmp_path / "third", tmp_path / "other.toml")
    introduce(one, third)
    heard: dict[str, list[Greeting]] = {}
    nodes = [in_process(each)[0] for each in (one, other, third)]
    for name, node in zip(("one", "other", "third"), nodes, strict=True):
        plain = node._runtime._greetings.answer

        async def listen(
            caller: str, greeting: Greeting, name: str = name, plain: Any = plain
        ) -> bytes:
            if caller == one.identity.fingerprint:
                heard.setdefault(name, []).append(greeting)
            answered: bytes = await plain(caller, greeting)
            return answered

        node._runtime._greetings.answer = listen  # type: ignore[method-assign]
    async with AsyncExitStack() as stack:
        for node in nodes:
            await stack.enter_async_context(node.started())
        await until(lambda: len(heard.get("third", ())) >= 2 and len(heard["other"]) >= 2)
    with Store.look(one.store_path, Limits.of_plan(one.plan)) as store:
        release = store.release()
    assert release is not None
    assert release.importance != 1.0
    assert {each.announcement.importance for each in heard["third"]} == {1.0}
    assert heard["other"][-1].announcement.importance == release.importance


async def test_a_neighbour_that_answers_late_is_waited_for_longer(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Round trips beyond the shortest limit are found out, and then kept to."""
    monkeypatch.setattr(pace, "_SHORTEST_ANSWER", 0.05)
    one, other = make_nodes(tmp_path, 2, [(0, 1)])
    slow, _ = in_process(other)
    plain = slow._runtime._greetings.answer

    async def late(caller: str, greeting: Greeting) -> bytes:
        await asyncio.sleep(0.2)
        return await plain(caller, greeting)

    slow._runtime._greetings.answer = late  # type: ignore[method-assign]
    node, _ = in_process(one)
    async with node.started(), slow.started():
        await until(lambda: is_met(node))
    assert node._runtime.state.greeted_within_seconds(other.identity.fingerprint, 0) >= 5 * 0.2


def test_plans_that_differ_are_refused_with_the_keys_on_both_sides(tmp_path: Path) -> None:
    text = PLAN.format(nodes=2, updates=100, more="")
    plans = [tmp_path / "one.toml", tmp_path / "other.toml"]
    plans[0].write_text(text)
    plans[1].write_text(text.replace("penalty = 1.0", "penalty = 2.0").replace("0.05", "0.1"))
    one, other = make_node(tmp_path / "one", plans[0]), make_node(tmp_path / "other", plans[1])
    introduce(one, other)

    async def meet() -> list[str]:
        (first, first_log), (second, second_log) = in_process(one), in_process(other)
        logs = (first_log, second_log)
        async with first.started(), second.started():
            await until(lambda: all("plans differ" in log.getvalue() for log in logs))
            assert not is_met(first)
            assert not is_met(second)
            await until(lambda: "plan differs" in first.counters.as_dict().get("refusals", {}))
        return [log.getvalue() for log in logs]

    for text in asyncio.run(meet()):
        reasons = [line.get("reason", "") for line in log_lines(text)]
        assert any("penalty, step_size.constant" in reason for reason in reasons)


async def test_a_removed_neighbour_is_out_at_once_and_may_come_back(tmp_path: Path) -> None:
    one, other = make_nodes(tmp_path, 2, [(0, 1)])
    (first, log), (second, _) = in_process(one), in_process(other)
    async with first.started(), second.started():
        await until(lambda: is_met(first) and is_met(second))
        one.remove_peer("node1")
        await first.look_for_neighbours()
        transport = second._runtime.transport
        with pytest.raises((Unanswered, Undelivered)):
            await transport.call(one.identity.fingerprint, "Hello", b"", 5.0)
        await until(lambda: not is_met(second))
        await until(lambda: "not a neighbour" in log.getvalue())
        one.add_peer(other.invite.encode())
        await first.look_for_neighbours()
        await until(lambda: is_met(first) and is_met(second))


async def test_while_an_invite_is_damaged_the_neighbours_stay(tmp_path: Path) -> None:
    one, other = make_nodes(tmp_path, 2, [(0, 1)])
    (first, log), (second, _) = in_process(one), in_process(other)
    async with first.started(), second.started():
        (one.path / "peers" / "x.invite").write_text("nonsense")
        await first.look_for_neighbours()
        assert "x.invite" in log.getvalue()
        await until(lambda: is_met(first) and is_met(second))
        (one.path / "peers" / "x.invite").unlink()
        (one.path / "peers" / f"{other.settings.name}.invite").unlink()
        await first.look_for_neighbours()
        assert first.status()["neighbours"] == []


async def test_a_full_disk_is_survived(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    one, other = make_nodes(tmp_path, 2, [(0, 1)], updates=40)
    full = True
    commit = Store.commit

    def commit_or_refuse(store: Store, record: Any) -> None:
        if full and store.path.parent == other.path:
            raise StoreError("database or disk is full.")
        commit(store, record)

    monkeypatch.setattr(Store, "commit", commit_or_refuse)
    (first, _), (second, log) = in_process(one), in_process(other)
    async with first.started(), second.started():
        await until(lambda: is_met(first) and is_met(second))
        await first.start_walk()
        await until(lambda: "disk is full" in log.getvalue())
        assert second.counters.as_dict()["disk_errors"] >= 1
        assert not first.is_finished
        full = False
        await until(lambda: first.is_finished and second.is_finished)
        assert first.final is not None
        assert second.final is not None
        assert first.final.encoded == second.final.encoded
        assert first.final.line.counter == 1
        counts = [node.counters.as_dict()["updates"] for node in (first, second)]
        assert sum(counts) == 40


def test_counts_go_on_after_a_restart(tmp_path: Path) -> None:
    one, other = make_nodes(tmp_path, 2, [(0, 1)], updates=200)

    async def walk(updates: int) -> int:
        (first, _), (second, _) = in_process(one), in_process(other)
        async with first.started(), second.started():
            await until(lambda: is_met(first) and is_met(second))
            if not first.status()["walk"]:
                await first.start_walk()
            await until(lambda: max(each.status()["updates"] for each in (first, second)) > updates)
        return sum(each.counters.as_dict()["updates"] for each in (first, second))

    first = asyncio.run(walk(50))
    assert 50 < first < 200
    assert asyncio.run(walk(199)) == 200  # each was counted once, in one process or the other


async def test_a_disk_that_fails_ends_the_node_without_an_answer(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Nobody knows what was written: only a restart can find out."""
    one, other = make_nodes(tmp_path, 2, [(0, 1)], updates=30)
    commit, broken = Store.commit, True

    def commit_or_break(store: Store, record: Any) -> None:
        commit(store, record)
        if broken and store.path.parent == other.path:
            raise DiskError("disk I/O error (SQLITE_IOERR_FSYNC).")

    monkeypatch.setattr(Store, "commit", commit_or_break)
    first, log = in_process(one)
    async with first.started(NodeOptions(stop_seconds=0.0)):
        second, _ = in_process(other)
        async with second.started():
            await until(lambda: is_met(first) and is_met(second))
            await first.start_walk()
            await until(lambda: "handover unanswered" in log.getvalue())
            with pytest.raises(DiskError):
                await second.wait(0.1)
        assert not first.is_finished
        broken = False
        second, _ = in_process(other)
        async with second.started():
            await until(lambda: first.is_finished and second.is_finished)
            assert first.final is not None
            assert first.final.line.counter == 1


async def test_a_token_that_nobody_can_take_is_said_to_be_kept(tmp_path: Path) -> None:
    node, log = in_process(make_nodes(tmp_path, 2, [(0, 1)])[0])
    async with node.started():
        await node.start_walk()
    assert log_lines(log.getvalue())[-1]["token"] == "kept"


NOISE = """
[privacy]
protect = "node"
epsilon = 3.0
delta = 1e-5
clip = 1.0
max_contributions = 5
"""


def test_the_noise_of_two_visits_is_two_parts_of_a_keystream(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The walk's own random numbers, which neighbours see the effect of, are from elsewhere."""
    (one,) = make_nodes(tmp_path, 1, [], more=NOISE)
    node, _ = in_process(one)
    content, made = np.random.default_rng(1).bytes(8 * exact_draws.BLOCK + 64), []

    def stream() -> BytesIO:
        made.append(BytesIO(content))
        return made[-1]

    monkeypatch.setattr(exact_draws, "Keystream", stream)
    monkeypatch.setattr(exact_draws, "_prepared", exact_draws._NoiseBuffer())
    noise = node._runtime.state.learner.noise
    assert noise is not None
    first, second = (node._runtime._draw().noise for _ in range(2))
    assert first is not None
    assert second is not None
    node._close()
    assert len(made) == 1
    expected = noise.draw(2 * len(first), BytesIO(content))
    np.testing.assert_array_equal([*first, *second], expected)


async def test_noise_is_drawn_before_a_token_comes_and_after_it_has_left(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """With as many numbers as a block each visit uses up all, and takes only what is prepared."""
    monkeypatch.setattr(exact_draws, "BLOCK", 4)
    monkeypatch.setattr(exact_draws, "_prepared", exact_draws._NoiseBuffer())
    one, other = make_nodes(tmp_path, 2, [(0, 1)], more=NOISE, updates=6)
    (first, _), (second, _) = in_process(one), in_process(other)
    noise = first._runtime.state.learner.noise
    assert noise is not None
    assert not noise.is_prepared(1)
    async with first.started(), second.started():
        await until(lambda: noise.is_prepared(first._runtime.state.learner.problem.size))
        await until(lambda: first._runtime.state.is_usable(other.identity.fingerprint))
        await first.start_walk()
        await until(lambda: first._runtime.state.record.final is not None)
        await until(lambda: noise.is_prepared(first._runtime.state.learner.problem.size))


def test_noise_that_is_not_prepared_is_drawn_while_neighbours_are_heard(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (one,) = make_nodes(tmp_path, 1, [], more=NOISE)
    node, _ = in_process(one)
    monkeypatch.setattr(exact_draws, "_prepared", exact_draws._NoiseBuffer())
    heard = threading.Event()
    plain = node._runtime._draw

    def draw() -> Draws:
        assert heard.wait(60)
        return plain()

    monkeypatch.setattr(node._runtime, "_draw", draw)

    async def visit() -> Draws:
        asyncio.get_running_loop().call_soon(heard.set)
        return await node._runtime._drawn()

    assert asyncio.run(visit()).noise is not None
    node._close()


async def test_large_models_walk_too_and_callers_that_give_up_do_no_harm(tmp_path: Path) -> None:
    """A token of 2 MB is a file of its own, written while the node goes on listening."""
    text = PLAN.format(nodes=2, updates=8, more="")
    classes = json.dumps([str(number) for number in range(250)])
    text = text.replace('classes = ["no", "yes"]\nloss = "logistic"', f"classes = {classes}\n")
    features = json.dumps([f"x{number}" for number in range(250)])
    text = text.replace('features = ["a", "b"]', f'features = {features}\nloss = "softmax"')
    plan = tmp_path / "plan.toml"
    plan.write_text(text)
    rows = NodeRows(np.ones((1, 250)), np.zeros(1))
    one, other = make_node(tmp_path / "one", plan, rows), make_node(tmp_path / "two", plan, rows)
    introduce(one, other)
    (first, _), (second, _) = in_process(one), in_process(other)
    async with first.started(), second.started():
        await until(lambda: is_met(first) and is_met(second))
        begin = StartWalk("a" * 32, np.zeros(250 * 250), 0.0)
        starting = asyncio.ensure_future(first._runtime.dispatch(begin))
        await asyncio.sleep(0)
        starting.cancel()  # while the disk writes
        await until(lambda: first.is_finished and second.is_finished)
        assert first.final is not None
        assert second.final is not None
        assert first.final.encoded == second.final.encoded
        assert len(first.final.encoded) > 1_000_000


async def test_status_says_who_had_the_token_last_and_who_is_silent(tmp_path: Path) -> None:
    one, other = make_nodes(tmp_path, 2, [(0, 1)], updates=100_000)
    (first, _), (second, _) = in_process(one), in_process(other)
    async with first.started():
        async with second.started(NodeOptions(stop_seconds=0.0)):
            await until(lambda: is_met(first) and is_met(second))
            assert first.status()["token_seconds"] is None
            assert first.status()["last_holder"] is None
            await first.start_walk()
            await until(lambda: first.status()["updates"] > 20)
            for _ in range(50):  # while it is on its way nobody is said to hold it
                both = [first.status(), second.status()]
                assert sum(each["holds_token"] for each in both) <= 1
                await asyncio.sleep(0)
            assert first.status()["last_holder"] in ("this node", "node1")
            silent = first.status()["neighbours"][0]["silent_seconds"]
            assert not first.status()["stalled"]
        await until(lambda: first.status()["neighbours"][0]["silent_seconds"] > silent + 0.5)
        await until(lambda: first.status()["stalled"])
        assert first.gauges()["walk_stalled"] == 1.0


def keep_silent(node: Node) -> None:
    """From now on it greets nobody by itself."""
    for task in node._runtime._greetings._tasks.values():
        task.cancel()


async def test_start_walk_asks_the_neighbours_first(tmp_path: Path) -> None:
    one, other = make_nodes(tmp_path, 2, [(0, 1)])
    (first, _), (second, _) = in_process(one), in_process(other)
    async with first.started(), second.started():
        await until(lambda: is_met(first) and is_met(second))
        for each in (first, second):
            keep_silent(each)
        state = second._runtime.state
        heard = Mark(Line(0, 1, state.fingerprint, "a" * 32), 0)
        record = replace(state.record, newest=heard)
        second._runtime.state = replace(state, record=record)  # of which it has told nobody
        with pytest.raises(CommandError, match="already started"):
            await first.start_walk()


async def test_who_has_news_for_ever_greets_ten_times_a_second_at_most(tmp_path: Path) -> None:
    one, other = make_nodes(tmp_path, 2, [(0, 1)])
    (first, _), (second, _) = in_process(one), in_process(other)
    async with first.started(), second.started():
        await until(lambda: is_met(first) and is_met(second))
        keep_silent(second)
        heard: list[float] = []
        plain, clock = second._runtime._greetings.answer, asyncio.get_running_loop().time

        async def listen(caller: str, greeting: Greeting) -> bytes:
            heard.append(clock())
            return await plain(caller, greeting)

        second._runtime._greetings.answer = listen  # type: ignore[method-assign]
        while len(heard) < 8:
            first._runtime._greetings.greet(other.identity.fingerprint)
            await asyncio.sleep(0.001)
        assert heard[-1] - heard[1] >= 0.5  # six waits of a tenth of a second


async def test_only_one_walk_begins_and_resume_needs_a_reason(tmp_path: Path) -> None:
    directories = make_nodes(tmp_path, 3, ring(3), updates=30)
    nodes = [in_process(each)[0] for each in directories]
    async with nodes[0].started(), nodes[1].started(), nodes[2].started():
        await until(lambda: all(map(is_met, nodes)))
        await nodes[0].start_walk()
        with pytest.raises(CommandError, match="already started"):
            await nodes[0].start_walk()
        await until(lambda: all(node.is_finished for node in nodes))
        await until(lambda: all(node.all_know_the_end for node in nodes))
        with pytest.raises(CommandError, match="finished"):
            await nodes[1].start_walk(resume=True)


async def test_another_node_resumes_when_the_holder_is_gone_for_good(tmp_path: Path) -> None:
    directories = make_nodes(tmp_path, 3, ring(3), updates=60)
    nodes = [in_process(each)[0] for each in directories]
    holder = nodes[2]
    async with nodes[0].started(), nodes[1].started():
        async with holder.started(NodeOptions(stop_seconds=0.0)):
            await until(lambda: all(map(is_met, nodes)))
            await nodes[0].start_walk()
            await until(lambda: nodes[1].status()["updates"] > 10)
            _cannot_hand_over(holder)
            await until(lambda: holder.status()["phase"] == "holding")
        (directories[2].path / "node.sqlite").unlink()
        seen = nodes[0].status()["updates"]
        assert 0 < seen < 60
        await nodes[0].start_walk(resume=True)
        await until(lambda: nodes[0].is_finished and nodes[1].is_finished)
        assert nodes[0].final is not None
        assert nodes[1].final is not None
        assert nodes[0].final.encoded == nodes[1].final.encoded
        assert nodes[1].final.line.counter == 2


def _cannot_hand_over(node: Node) -> None:
    call = node._runtime.transport.call

    async def all_but_handovers(to: str, method: str, message: bytes, seconds: float) -> bytes:
        if method == "Handover":
            raise Undelivered("cut")
        return await call(to, method, message, seconds)

    node._runtime.transport.call = all_but_handovers  # type: ignore[method-assign]


async def test_a_node_that_is_running_cannot_be_run_twice(tmp_path: Path) -> None:
    (one,) = make_nodes(tmp_path, 1, [])
    first, _ = in_process(one)
    async with first.started():
        with pytest.raises(StoreError, match="another process"):
            Node(one)
    Node(one)._store.close()


async def test_a_port_in_use_is_told(tmp_path: Path) -> None:
    one, other = make_nodes(tmp_path, 2, [(0, 1)])
    settings = json.loads((other.path / "node.json").read_text())
    settings["listen"] = one.settings.listen
    (other.path / "node.json").write_text(json.dumps(settings))
    first, _ = in_process(one)
    second, _ = in_process(NodeDirectory(other.path))
    async with first.started():
        with pytest.raises(OSError, match=r"cannot listen on .* in use"):
            async with second.started():
                pass


async def test_malformed_messages_are_refused_counted_and_harmless(tmp_path: Path) -> None:
    one, other = make_nodes(tmp_path, 2, [(0, 1)], updates=20)
    (first, log), (second, _) = in_process(one), in_process(other)
    async with first.started(), second.started():
        await until(lambda: is_met(first) and is_met(second))
        transport, target = second._runtime.transport, one.identity.fingerprint
        for method in ("Hello", "Handover", "Final"):
            for message in (b"", b"garbage", os.urandom(1000)):
                with pytest.raises(Refused):
                    await transport.call(target, method, message, 5.0)
        assert first.counters.as_dict()["refusals"]["malformed message"] == 9
        assert "malformed message" in log.getvalue()
        await second.start_walk()
        await until(lambda: first.is_finished and second.is_finished)


def test_status_tells_nothing_of_the_rows(tmp_path: Path) -> None:
    (one,) = make_nodes(tmp_path, 1, [])
    node, log = in_process(one)

    async def run() -> str:
        async with node.started():
            return json.dumps(node.status()) + log.getvalue()

    told = asyncio.run(run())
    smoothness = node._runtime.state.learner.smoothness
    assert f"{smoothness:.6g}" not in told
    assert all(f"{value:.6g}" not in told for value in one.rows.X.ravel())


def test_a_running_node_does_not_calibrate_its_mechanism_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It takes seconds, in which a node would answer nobody."""
    one, _ = make_nodes(tmp_path, 2, [(0, 1)], more=PRIVATE)

    def calibrate(plan: Plan) -> None:
        raise AssertionError("calibrated again")

    monkeypatch.setattr(Plan, "mechanism", property(calibrate))
    node, _ = in_process(one)
    node._close()


async def test_a_greeting_does_not_overtake_a_token(tmp_path: Path) -> None:
    """Who is slow to draw its noise would else seem to be there and to keep the token."""
    one, _ = make_nodes(tmp_path, 2, [(0, 1)])
    happened = []

    async def answer(caller: str, method: str, message: bytes) -> bytes:
        await asyncio.sleep(0.2 if method == "Handover" else 0.0)
        happened.append((caller, method))
        return b""

    node, _ = in_process(one)
    async with node.started():
        node._runtime._answered = answer  # type: ignore[method-assign]
        said = [("a", "Handover"), ("a", "Hello"), ("b", "Hello")]
        await asyncio.gather(*(node._runtime._answer(*each, b"") for each in said))
    assert happened == [("b", "Hello"), ("a", "Handover"), ("a", "Hello")]
