"""A real node process that receives malformed or hostile bytes refuses, logs and counts them."""

from __future__ import annotations

import asyncio
import contextlib
import resource
import socket
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest

from tests.node.made_tokens import changed, made_token
from tests.node.small_network import Process, make_nodes, processes, wait_until
from tests.running import until
from walklearn.node.disk.directory import NodeDirectory
from walklearn.node.process.control import send_command
from walklearn.node.protocol.messages import (
    Announcement,
    Greeting,
    Outcome,
    decode_greeting,
    decode_receipt,
    encode_greeting,
)
from walklearn.node.protocol.tokens import Line, Token, encode_token
from walklearn.node.wire.identity import Identity
from walklearn.node.wire.session import Refused, Unanswered, Undelivered
from walklearn.node.wire.transport import Transport

UPDATES = 1_000_000
LINE = Line(9, 5, "ab" * 32, "cd" * 16)


class Enemy:
    """Speaks with a neighbour's key, or with one of its own, to the node under attack."""

    def __init__(self, identity: Identity, target: NodeDirectory, largest: int = 10**7) -> None:
        async def answer(caller: str, method: str, message: bytes) -> bytes:
            raise Refused("busy")

        self.target = target.identity.fingerprint
        self.plan = target.plan
        self.transport = Transport(identity, answer, lambda *_: None, largest)
        self.transport.set_neighbours([target.invite])

    async def say(self, method: str, message: bytes, seconds: float = 10.0) -> bytes:
        return await self.transport.call(self.target, method, message, seconds)

    async def greet(self) -> Greeting:
        told = Announcement(degree=1, importance=1.0)
        greeting = Greeting("node1", self.plan.digest, told, self.plan.canonical)
        return decode_greeting(await self.say("Hello", encode_greeting(greeting)))


@pytest.fixture
def attacked(tmp_path: Path) -> Iterator[tuple[Process, NodeDirectory]]:
    """A node's process, and the directory of its one neighbour, who is the enemy."""
    node, neighbour = make_nodes(tmp_path, 2, [(0, 1)], updates=UPDATES)
    with processes([node]) as (process,):
        yield process, neighbour


def refusals(process: Process) -> dict[str, int]:
    counted: dict[str, int] = process.status()["counters"].get("refusals", {})
    return counted


def a_token(**changes: object) -> Token:
    honest = made_token(LINE, 1, 10, np.array([0.5, 0.5]), np.array([0.5, 0.5]), 1.0, 10.0)
    return changed(honest, **changes)


async def test_tokens_that_no_honest_node_sends(attacked: tuple[Process, NodeDirectory]) -> None:
    process, neighbour = attacked
    wrong = {
        "NaN": a_token(model=np.array([np.nan, 0.0])),
        "infinite": a_token(weighted_sum=np.array([np.inf, 0.0])),
        "dimension": a_token(model=np.zeros(3), weighted_sum=np.zeros(3)),
        "outside W": a_token(model=np.array([11.0, 0.0])),
        "average outside W": a_token(weighted_sum=np.array([11.0, 0.0])),
        "k beyond the plan": a_token(updates=UPDATES + 1),
        "hop beyond the updates": a_token(hop=2**53),
        "final too early": a_token(final=True),
        "no steps": a_token(step_size_sum=0.0),
        "counter": a_token(line=Line(9, 0, "ab" * 32, "cd" * 16)),
        "reclaimer": a_token(line=Line(9, 5, "nobody", "cd" * 16)),
    }
    enemy = Enemy(neighbour.identity, process.directory)
    await enemy.greet()
    for name, token in wrong.items():
        for method in ("Handover", "Final"):
            with pytest.raises(Refused) as refusal:
                await enemy.say(method, encode_token(token))
            assert refusal.value.reason == "malformed message", name
    assert (await enemy.greet()).plan_digest == process.directory.plan.digest
    await enemy.transport.close(0.0)
    assert refusals(process) == {"malformed message": 2 * len(wrong)}
    assert process.status()["walk"] is None  # nothing of it was believed
    assert process.log.read_text().count("malformed message") >= 1


def test_a_replayed_token_changes_nothing(attacked: tuple[Process, NodeDirectory]) -> None:
    process, neighbour = attacked

    async def attack() -> list[Outcome]:
        enemy = Enemy(neighbour.identity, process.directory)
        await enemy.greet()
        outcomes = []
        for hop in (3, 3, 2, 1):  # the same again, then older ones
            reply = await enemy.say("Handover", encode_token(a_token(hop=hop)))
            outcomes.append(decode_receipt(reply).outcome)
        older = a_token(line=Line(9, 4, "ff" * 32, "cd" * 16), hop=9)
        outcomes.append(decode_receipt(await enemy.say("Handover", encode_token(older))).outcome)
        await enemy.transport.close(0.0)
        return outcomes

    outcomes = asyncio.run(attack())
    assert outcomes[0] is Outcome.ACCEPTED
    assert outcomes[1] is Outcome.ACCEPTED  # acknowledged, and ignored
    assert outcomes[4] is Outcome.OBSOLETE
    received = process.status()["counters"]["handovers_received"]
    assert process.status()["walk"]["counter"] == LINE.counter
    assert received <= 2
    assert process.status()["hop"] >= 3


async def test_a_message_larger_than_any_model_is_not_read(
    attacked: tuple[Process, NodeDirectory],
) -> None:
    process, neighbour = attacked
    enemy = Enemy(neighbour.identity, process.directory)
    await enemy.greet()
    with pytest.raises((Refused, Unanswered)):
        await enemy.say("Handover", bytes(8_000_000))
    await enemy.greet()
    await enemy.transport.close(0.0)
    assert process.status()["walk"] is None


def test_strangers_and_forgers_are_not_let_in(tmp_path: Path) -> None:
    """An unknown key, and one that bears the neighbour's name without being the neighbour's."""
    node, neighbour = make_nodes(tmp_path, 2, [(0, 1)], updates=UPDATES)

    async def attack() -> None:
        for name in ("stranger", neighbour.settings.name):
            enemy = Enemy(Identity.create(name), node)
            with pytest.raises((Undelivered, Unanswered)):
                await enemy.greet()
            await enemy.transport.close(0.0)
        friend = Enemy(neighbour.identity, node)
        await friend.greet()
        await friend.transport.close(0.0)

    with processes([node]) as (process,):
        asyncio.run(attack())
        wait_until(lambda: refusals(process).get("not a neighbour", 0) == 2)
        assert "not a neighbour" in process.log.read_text()


def test_a_node_that_takes_anothers_place_gets_no_token(tmp_path: Path) -> None:
    """Who sits at a neighbour's address without its key is not spoken to."""
    node, neighbour = make_nodes(tmp_path, 2, [(0, 1)], updates=50)
    heard: list[bytes] = []
    hung_up: list[tuple[str, str]] = []

    async def impersonate() -> None:
        async def answer(caller: str, method: str, message: bytes) -> bytes:
            heard.append(message)
            raise Refused("no")

        forger = Identity.create(neighbour.settings.name)
        transport = Transport(forger, answer, lambda *why: hung_up.append(why), 10**6)
        await transport.listen(neighbour.settings.listen)
        transport.set_neighbours([node.invite])
        await until(lambda: len(hung_up) > 1)
        await transport.close(0.0)

    with processes([node]) as (process,):
        send_command(node.path, "StartWalk", resume=False)
        asyncio.run(impersonate())
        assert process.status()["phase"] == "holding"
    assert heard == []


async def test_ten_thousand_connections_and_half_open_ones(
    attacked: tuple[Process, NodeDirectory],
) -> None:
    """Opened in waves, each as many as this process may hold; none of them ever says a word."""
    process, neighbour = attacked
    host, port = process.directory.settings.listen.rsplit(":", 1)
    soft, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
    wave, left, opened = min(1000, soft - 200), 10_000, 0
    while left > 0:
        with contextlib.ExitStack() as stack:
            for _ in range(min(wave, left)):
                one = stack.enter_context(socket.socket())
                one.setblocking(False)
                opened += one.connect_ex((host, int(port))) in (0, 115)  # 115: under way
        left -= wave
    assert opened == 10_000
    assert process.popen.poll() is None
    friend = Enemy(neighbour.identity, process.directory)
    for _ in range(60):  # the last wave is still being turned away
        try:
            digest = (await friend.greet()).plan_digest
            break
        except (Undelivered, Unanswered):
            await asyncio.sleep(0.5)
    await friend.transport.close(0.0)
    assert digest == process.directory.plan.digest


async def test_garbage_on_the_port(attacked: tuple[Process, NodeDirectory]) -> None:
    process, neighbour = attacked
    host, port = process.directory.settings.listen.rsplit(":", 1)
    noise = np.random.default_rng(1)
    for attempt in range(200):
        with socket.create_connection((host, int(port)), timeout=60.0) as one:
            content = noise.bytes(int(noise.integers(1, 3000)))
            if attempt % 3 == 0:  # the beginning of a TLS handshake, then noise
                content = b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03" + content
            with contextlib.suppress(OSError):
                one.sendall(content)
    friend = Enemy(neighbour.identity, process.directory)
    await friend.greet()
    await friend.transport.close(0.0)
    assert process.popen.poll() is None
