"""The wire alone: whom it lets in, and how calls end."""

from __future__ import annotations

import asyncio
import socket
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, closing
from typing import Any

import grpc
import pytest
from grpc import aio
from grpc_health.v1 import health_pb2, health_pb2_grpc

from walklearn.node.agreement.plan_keys import TimeLimits
from walklearn.node.wire import links
from walklearn.node.wire.identity import Identity, Invite
from walklearn.node.wire.transport import (
    METHODS,
    SERVICE,
    Refused,
    Transport,
    Unanswered,
    Undelivered,
)

NAMES = ("alice", "bob", "carol")
IDENTITIES = {name: Identity.create(name) for name in NAMES}
LARGEST = 10_000


class World:
    """Transports that echo, each with an address; who is refused is written down."""

    def __init__(self, method: str) -> None:
        self.method = method
        self.at: dict[str, Transport] = {}
        self.invites: dict[str, Invite] = {}
        self.refusals: list[tuple[str, str]] = []

    async def add(self, name: str, address: str = "127.0.0.1:0") -> None:
        async def answer(caller: str, method: str, message: bytes) -> bytes:
            if message == b"wait":
                await asyncio.sleep(30)
            if message == b"slowly":
                await asyncio.sleep(0.5)
            if message == b"no":
                raise Refused("a reason", "and more about it")
            return caller[:8].encode() + method.encode() + message

        identity = IDENTITIES[name]
        self.at[name] = Transport(
            identity, answer, lambda reason, _: self.refusals.append((name, reason)), LARGEST
        )
        port = await self.at[name].listen(address)
        self.invites[name] = Invite(name, f"127.0.0.1:{port}", identity.certificate)

    def introduce(self, name: str, *others: str) -> None:
        self.at[name].set_peers([self.invites[other] for other in others])

    async def call(self, name: str, other: str, message: bytes, seconds: float = 20.0) -> bytes:
        fingerprint = IDENTITIES[other].fingerprint
        return await self.at[name].call(fingerprint, self.method, message, seconds)

    async def notices_that_bob_is_gone(self) -> None:
        """A call that went out before alice noticed would be in doubt."""
        async with asyncio.timeout(20):
            while self.at["alice"].is_connected(IDENTITIES["bob"].fingerprint):
                await asyncio.sleep(0.05)


@asynccontextmanager
async def world(method: str = "Hello") -> AsyncIterator[World]:
    made = World(method)
    try:
        for name in NAMES:
            await made.add(name)
        yield made
    finally:
        for transport in made.at.values():
            await transport.close(0.0)


every_method = pytest.mark.parametrize("method", METHODS)


@every_method
def test_neighbours_hear_each_other_and_know_who_speaks(method: str) -> None:
    async def meet() -> bytes:
        async with world(method) as here:
            here.introduce("alice", "bob")
            here.introduce("bob", "alice")
            return await here.call("alice", "bob", b"!")

    caller = IDENTITIES["alice"].fingerprint[:8]
    assert asyncio.run(meet()) == f"{caller}{method}!".encode()


@every_method
def test_the_four_ends_of_a_call(method: str) -> None:
    async def meet() -> None:
        async with world(method) as here:
            here.introduce("alice", "bob", "carol")
            here.introduce("bob", "alice")
            assert await here.call("alice", "bob", b"x")
            with pytest.raises(Refused, match="and more about it") as refused:
                await here.call("alice", "bob", b"no")
            assert refused.value.reason == "a reason"
            assert here.refusals == [("bob", "a reason")]
            with pytest.raises(Unanswered, match="no answer in"):
                await here.call("alice", "bob", b"wait", 0.2)
            with pytest.raises(Unanswered, match=r"larger than max|Internal error"):
                await here.call("alice", "bob", bytes(LARGEST + 1))
            # carol has not added alice; with TLS 1.3 she may say so only after the call went out
            with pytest.raises((Undelivered, Unanswered)):
                await here.call("alice", "carol", b"x")
            with pytest.raises(Undelivered, match="no such neighbour"):
                await here.call("bob", "carol", b"x")
            await here.at["bob"].close(0.0)
            await here.notices_that_bob_is_gone()
            with pytest.raises(Undelivered):
                await here.call("alice", "bob", b"x")

    asyncio.run(meet())


@every_method
def test_a_call_on_a_link_that_is_closed_is_in_doubt_and_its_task_lives_on(method: str) -> None:
    async def meet() -> None:
        async with world(method) as here:
            here.introduce("alice", "bob")
            here.introduce("bob", "alice")
            call = asyncio.ensure_future(here.call("alice", "bob", b"wait", 30.0))
            await asyncio.sleep(0.3)
            here.introduce("alice", "carol")
            with pytest.raises(Unanswered, match="closed"):
                await call
            here.introduce("alice", "bob")
            call = asyncio.ensure_future(here.call("alice", "bob", b"wait", 30.0))
            await asyncio.sleep(0.3)
            call.cancel()  # but who is told to stop does
            with pytest.raises(asyncio.CancelledError):
                await call

    asyncio.run(meet())


@every_method
def test_who_is_removed_is_out_at_once_on_an_open_connection(method: str) -> None:
    async def meet() -> None:
        async with world(method) as here:
            here.introduce("alice", "bob", "carol")
            here.introduce("bob", "alice")
            here.introduce("carol", "alice")
            assert await here.call("alice", "bob", b"x")
            here.introduce("bob", "carol")
            with pytest.raises((Refused, Unanswered)):  # a call that was open ends without a word
                await here.call("alice", "bob", b"x")
            with pytest.raises(Refused) as refused:
                await here.call("alice", "bob", b"x")
            assert refused.value.reason == "not a neighbour"
            here.introduce("bob", "alice")  # and in again, without a restart
            assert await here.call("alice", "bob", b"x")
            here.introduce("carol", "alice", "bob")  # a new one too
            here.introduce("bob", "alice", "carol")
            assert await here.call("carol", "bob", b"x")

    asyncio.run(meet())


def test_an_answer_that_comes_late_is_not_taken_for_one_to_the_next_handover() -> None:
    async def meet() -> list[bytes]:
        async with world("Handover") as here:
            here.introduce("alice", "bob")
            here.introduce("bob", "alice")
            with pytest.raises(Unanswered):
                await here.call("alice", "bob", b"slowly", 0.2)
            answers = [await here.call("alice", "bob", b"next")]
            both = [here.call("alice", "bob", message) for message in (b"slowly", b"at once")]
            return answers + await asyncio.gather(*both)

    endings = (b"next", b"slowly", b"at once")
    assert all(map(bytes.endswith, asyncio.run(meet()), endings))


def test_a_neighbour_that_stops_ends_open_calls_and_is_called_anew_when_it_is_back() -> None:
    async def meet() -> float:
        async with world("Handover") as here:
            here.introduce("alice", "bob")
            here.introduce("bob", "alice")
            await here.call("alice", "bob", b"x")
            begin = time.monotonic()
            await here.at["bob"].close(60.0)
            seconds = time.monotonic() - begin
            await here.notices_that_bob_is_gone()
            with pytest.raises(Undelivered):
                await here.call("alice", "bob", b"x")
            await here.add("bob", here.invites["bob"].address)
            here.introduce("bob", "alice")
            here.at["alice"].reconnect(IDENTITIES["bob"].fingerprint)
            assert await here.call("alice", "bob", b"x")
            return seconds

    assert asyncio.run(meet()) < 30  # it did not wait for the calls that only stay open


def test_a_call_that_ends_without_an_answer_is_in_doubt() -> None:
    """Bob reads the token and ends the call, as one does that stops, or means ill."""

    async def meet() -> None:
        async with world("Handover") as here:
            alice, bob = IDENTITIES["alice"], IDENTITIES["bob"]

            async def read_and_end(messages: object, context: Any) -> None:
                await context.read()

            server = aio.server()
            handler = grpc.stream_stream_rpc_method_handler(read_and_end)
            methods = grpc.method_handlers_generic_handler(SERVICE, {"Handover": handler})
            server.add_generic_rpc_handlers((methods,))
            credentials = grpc.ssl_server_credentials(
                [(bob.key, bob.certificate)], alice.certificate, require_client_auth=True
            )
            port = server.add_secure_port("127.0.0.1:0", credentials)
            await server.start()
            here.invites["bob"] = Invite("bob", f"127.0.0.1:{port}", bob.certificate)
            here.introduce("alice", "bob")
            for _ in range(3):
                with pytest.raises(Unanswered):
                    await here.call("alice", "bob", b"x")
            await server.stop(0.0)

    asyncio.run(meet())


def test_a_node_that_stops_answers_what_it_is_at_and_waits_for_no_more() -> None:
    async def meet() -> tuple[bytes, float]:
        async with world("Handover") as here:
            here.introduce("alice", "bob")
            here.introduce("bob", "alice")
            call = asyncio.ensure_future(here.call("alice", "bob", b"slowly"))
            await asyncio.sleep(0.3)
            begin = time.monotonic()
            await here.at["bob"].close(60.0)
            return await call, time.monotonic() - begin

    answer, seconds = asyncio.run(meet())
    assert answer.endswith(b"slowly")
    assert seconds < 30


def test_open_calls_of_one_neighbour_are_few_and_end_when_it_is_removed() -> None:
    async def meet() -> None:
        async with world("Handover") as here:
            here.introduce("alice", "bob")
            here.introduce("bob", "alice", "carol")
            many = [here.call("alice", "bob", b"slowly") for _ in range(6)]
            ends = await asyncio.gather(*many, return_exceptions=True)
            assert sum(isinstance(end, bytes) for end in ends) == 4
            refused = [end.reason for end in ends if isinstance(end, Refused)]
            assert refused == ["too many open calls"] * 2
            assert len(here.at["bob"]._streams) == 4
            here.introduce("bob", "carol")
            async with asyncio.timeout(20):
                while here.at["bob"]._streams:
                    await asyncio.sleep(0.05)

    asyncio.run(meet())


def test_a_connection_that_falls_silent_is_noticed_by_both_ends(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Its bytes are swallowed and acknowledged: no one but a ping can tell. gRPC waits a minute."""
    waited = links.PING_AFTER_SECONDS + links.PING_SECONDS
    assert waited < TimeLimits().reclaim_after_seconds
    monkeypatch.setattr(links, "PING_AFTER_SECONDS", 1.0)
    monkeypatch.setattr(links, "PING_SECONDS", 1.0)

    async def meet() -> float:
        async with world("Handover") as here:
            here.introduce("bob", "alice")
            host, port = here.invites["bob"].address.split(":")
            is_cut = asyncio.Event()

            async def pass_on(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
                while chunk := await reader.read(65536):
                    if not is_cut.is_set():
                        writer.write(chunk)

            async def connect(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
                there, back = await asyncio.open_connection(host, int(port))
                with closing(writer), closing(back):
                    await asyncio.gather(
                        pass_on(reader, back), pass_on(there, writer), return_exceptions=True
                    )

            proxy = await asyncio.start_server(connect, "127.0.0.1", 0)
            address = f"127.0.0.1:{proxy.sockets[0].getsockname()[1]}"
            here.invites["bob"] = Invite("bob", address, IDENTITIES["bob"].certificate)
            here.introduce("alice", "bob")
            await here.call("alice", "bob", b"x")
            assert len(here.at["bob"]._streams) == 1
            is_cut.set()
            begin = time.monotonic()
            bob = IDENTITIES["bob"].fingerprint
            while here.at["alice"].is_connected(bob) or here.at["bob"]._streams:
                await asyncio.sleep(0.1)
            proxy.close()
            return time.monotonic() - begin

    assert asyncio.run(meet()) < 45


def test_neighbours_may_ask_for_the_health() -> None:
    async def ask() -> tuple[int, grpc.StatusCode]:
        async with world() as here:
            here.introduce("bob", "alice")
            alice, bob = IDENTITIES["alice"], here.invites["bob"]
            credentials = grpc.ssl_channel_credentials(
                bob.certificate, alice.key, alice.certificate
            )
            options = [("grpc.ssl_target_name_override", "bob")]
            async with aio.secure_channel(bob.address, credentials, options=options) as channel:
                stub = health_pb2_grpc.HealthStub(channel)
                answer = await stub.Check(health_pb2.HealthCheckRequest(), timeout=20)
                here.introduce("bob")
                with pytest.raises(aio.AioRpcError) as refused:
                    await stub.Check(health_pb2.HealthCheckRequest(), timeout=20)
                return answer.status, refused.value.code()

    serving = health_pb2.HealthCheckResponse.SERVING
    assert asyncio.run(ask()) == (serving, grpc.StatusCode.FAILED_PRECONDITION)


def test_nobody_passes_for_another() -> None:
    """Bob's address with carol's certificate: alice must not speak to bob there, nor he answer."""

    async def meet() -> None:
        async with world() as here:
            here.introduce("bob", "alice")
            false = Invite("carol", here.invites["bob"].address, IDENTITIES["carol"].certificate)
            here.at["alice"].set_peers([false])
            with pytest.raises(Undelivered):
                await here.call("alice", "carol", b"x")

    asyncio.run(meet())


def test_plaintext_and_garbage_do_no_harm() -> None:
    async def meet() -> bytes:
        async with world() as here:
            here.introduce("alice", "bob")
            here.introduce("bob", "alice")
            host, port = here.invites["bob"].address.split(":")
            async with aio.insecure_channel(here.invites["bob"].address) as channel:
                call = channel.unary_unary(f"/{SERVICE}/Hello", None, None)
                with pytest.raises(aio.AioRpcError) as failed:
                    await call(b"x", timeout=20)
                assert failed.value.code() is grpc.StatusCode.UNAVAILABLE
            with closing(socket.create_connection((host, int(port)))) as stranger:
                stranger.sendall(b"GET / HTTP/1.1\r\n\r\n" + bytes(range(256)))
                return await here.call("alice", "bob", b"still here")

    assert asyncio.run(meet()).endswith(b"still here")


def test_connections_that_never_speak_are_counted(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("walklearn.node.wire.connections.SILENT_SECONDS", 0.3)

    async def meet() -> list[tuple[str, str]]:
        async with world() as here:
            here.introduce("alice", "bob")
            here.introduce("bob", "alice")
            host, port = here.invites["bob"].address.split(":")
            with closing(socket.create_connection((host, int(port)))):
                await here.call("alice", "bob", b"x")
                async with asyncio.timeout(20):
                    while not here.refusals:
                        await asyncio.sleep(0.05)
            await asyncio.sleep(0.5)
            return here.refusals

    assert asyncio.run(meet()) == [("bob", "unidentified connection")]
