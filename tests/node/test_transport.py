"""The wire alone: whom it lets in, who dials, and how calls end."""

from __future__ import annotations

import asyncio
import contextlib
import socket
import ssl
import struct
import time
from collections.abc import AsyncIterator, Awaitable
from contextlib import asynccontextmanager, closing

import pytest

from tests.running import until
from walklearn.node.wire import certificates, handshake, links, session
from walklearn.node.wire.door import MAX_OF_ADDRESS, MAX_PROVING, MAX_WAITING, Door
from walklearn.node.wire.identity import Identity, Invite
from walklearn.node.wire.session import MAX_CALLS, METHODS, Refused, Unanswered, Undelivered
from walklearn.node.wire.transport import Transport

NAMES = ("alice", "bob", "carol")
IDENTITIES = {name: Identity.create() for name in NAMES}
LARGEST = 10_000


class World:
    """Transports that echo, each with an address; who is refused is written down."""

    def __init__(self, method: str) -> None:
        self.method = method
        self.at: dict[str, Transport] = {}
        self.invites: dict[str, Invite] = {}
        self.refusals: list[tuple[str, str]] = []
        self.heard: list[tuple[str, bytes]] = []
        self.all: list[Transport] = []  # those that others have taken the place of, too

    async def add(self, name: str, address: str = "127.0.0.1:0", largest: int = LARGEST) -> None:
        async def answer(caller: str, method: str, message: bytes) -> bytes:
            self.heard.append((name, message))
            if message == b"wait":
                await asyncio.Event().wait()
            if message == b"slowly":
                await asyncio.sleep(0.5)
            if message == b"no":
                raise Refused("a reason", "and more about it")
            if message == b"fail":
                raise RuntimeError("a fault of this node's")
            if message == b"hang up":
                self.at[name].set_neighbours([])
            return caller[:8].encode() + method.encode() + message

        identity = IDENTITIES[name]
        self.at[name] = Transport(
            identity, answer, lambda reason, _: self.refusals.append((name, reason)), largest
        )
        self.all.append(self.at[name])
        port = await self.at[name].listen(address)
        self.invites[name] = Invite(name, f"127.0.0.1:{port}", identity.public_key)

    def introduce(self, name: str, *others: str) -> None:
        self.at[name].set_neighbours([self.invites[other] for other in others])

    def make_friends(self, one: str = "alice", other: str = "bob") -> None:
        self.introduce(one, other)
        self.introduce(other, one)

    async def call(self, name: str, other: str, message: bytes, seconds: float = 60.0) -> bytes:
        fingerprint = IDENTITIES[other].fingerprint
        return await self.at[name].call(fingerprint, self.method, message, seconds)

    def is_connected(self, name: str, other: str) -> bool:
        return self.at[name].is_connected(IDENTITIES[other].fingerprint)

    async def notices_that_bob_is_gone(self) -> None:
        """A call that went out before alice noticed would be in doubt."""
        await until(lambda: not self.is_connected("alice", "bob"))

    def sessions(self, name: str) -> int:
        return sum(len(link.sessions) for link in self.at[name]._links.values())


@asynccontextmanager
async def world(method: str = "Hello") -> AsyncIterator[World]:
    made = World(method)
    try:
        for name in NAMES:
            await made.add(name)
        yield made
    finally:
        for transport in made.all:
            await transport.close(0.0)


every_method = pytest.mark.parametrize("method", METHODS)


@every_method
def test_neighbours_hear_each_other_and_know_who_speaks(method: str) -> None:
    async def meet() -> list[bytes]:
        async with world(method) as here:
            here.make_friends()
            return [await here.call("alice", "bob", b"!"), await here.call("bob", "alice", b"?")]

    alice, bob = (IDENTITIES[name].fingerprint[:8] for name in ("alice", "bob"))
    assert asyncio.run(meet()) == [f"{alice}{method}!".encode(), f"{bob}{method}?".encode()]


async def test_the_four_ends_of_a_call() -> None:
    async with world() as here:
        here.introduce("alice", "bob", "carol")
        here.introduce("bob", "alice")
        assert await here.call("alice", "bob", b"x")
        with pytest.raises(Refused, match="more about") as refused:
            await here.call("alice", "bob", b"no")
        assert refused.value.reason == "a reason"
        assert here.refusals == [("bob", "a reason")]
        with pytest.raises(Unanswered, match="failed"):
            await here.call("alice", "bob", b"fail")
        assert here.refusals[1] == ("bob", "internal error: RuntimeError")
        with pytest.raises(Unanswered, match="no answer in"):
            await here.call("alice", "bob", b"wait", 0.2)
        with pytest.raises(Undelivered, match="10001 bytes"):
            await here.call("alice", "bob", bytes(LARGEST + 1))
        with pytest.raises(Undelivered, match="not added"):
            await here.call("alice", "carol", b"x")
        assert here.refusals[2] == ("carol", "not a neighbour")
        with pytest.raises(Undelivered, match="no such neighbour"):
            await here.call("bob", "carol", b"x")
        await here.at["bob"].close(0.0)
        await here.notices_that_bob_is_gone()
        with pytest.raises(Undelivered):
            await here.call("alice", "bob", b"x")


async def test_either_end_may_dial_and_both_then_call() -> None:
    """Bob has no address. Until he dials nothing reaches him; then everything does."""
    async with world() as here:
        here.invites["bob"] = Invite("bob", "", IDENTITIES["bob"].public_key)
        here.make_friends()
        with pytest.raises(Undelivered, match=r"bob .*address"):
            await here.call("alice", "bob", b"x")
        assert await here.call("bob", "alice", b"x")
        assert await here.call("alice", "bob", b"x")
        assert (here.sessions("alice"), here.sessions("bob")) == (1, 1)


async def test_two_that_dial_at_once_end_with_one_session(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(links, "PATIENCE_SECONDS", 0.0)  # neither waits for the other
    pairs = [("alice", "bob"), ("bob", "alice")]
    async with world() as here:
        here.make_friends()
        calls = [here.call(*pair, b"slowly") for pair in pairs * 2]
        assert all(await asyncio.gather(*calls))  # none of them is lost over it
        await until(lambda: here.sessions("alice") == here.sessions("bob") == 1)
        assert all([await here.call(*pair, b"x") for pair in pairs])


async def test_a_session_that_a_neighbour_forgot_is_replaced_when_it_dials_anew() -> None:
    """Bob's process died without a word that alice could hear: her old session is a dead one."""
    async with world() as here:
        here.make_friends()
        assert await here.call("bob", "alice", b"x")
        (old,) = here.at["alice"]._links[IDENTITIES["bob"].fingerprint].sessions
        await here.add("bob")  # a new one in the place of the first, who is still connected
        here.introduce("bob", "alice")
        assert await here.call("bob", "alice", b"x")
        link = here.at["alice"]._links[IDENTITIES["bob"].fingerprint]
        assert link.session is not None
        assert link.session is not old
        assert await here.call("alice", "bob", b"x")


async def test_a_session_that_ends_unasked_is_told_unless_it_was_short(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    async with world() as here:
        here.make_friends()
        told: list[str] = []
        here.at["alice"]._lost = told.append
        for seconds in (3600.0, 0.0):
            monkeypatch.setattr(links, "_LASTING_SECONDS", seconds)
            await here.call("bob", "alice", b"x")
            here.at["bob"].set_neighbours([])
            await here.notices_that_bob_is_gone()
            here.introduce("bob", "alice")
        await here.call("bob", "alice", b"x")
        here.at["alice"].set_neighbours([])  # its own doing
        await asyncio.sleep(0.2)
        assert told == [IDENTITIES["bob"].fingerprint]


async def test_a_call_on_a_link_that_is_closed_is_in_doubt_and_its_task_lives_on() -> None:
    async with world() as here:
        here.make_friends()
        call = asyncio.ensure_future(here.call("alice", "bob", b"wait"))
        await until(lambda: here.heard == [("bob", b"wait")])
        here.introduce("alice", "carol")
        with pytest.raises(Unanswered, match="lost"):
            await call
        here.introduce("alice", "bob")
        call = asyncio.ensure_future(here.call("alice", "bob", b"wait"))
        await until(lambda: here.heard == [("bob", b"wait")] * 2)
        call.cancel()  # but who is told to stop does
        with pytest.raises(asyncio.CancelledError):
            await call


async def test_who_is_removed_is_out_at_once_on_an_open_connection() -> None:
    async with world() as here:
        here.introduce("alice", "bob", "carol")
        here.introduce("bob", "alice")
        here.introduce("carol", "alice")
        assert await here.call("alice", "bob", b"x")
        here.introduce("bob", "carol")
        with contextlib.suppress(Unanswered):  # the connection ends without a word
            await here.call("alice", "bob", b"x")
            pytest.fail("it was answered")
        with pytest.raises(Undelivered, match="has not added"):
            await here.call("alice", "bob", b"x")
        here.introduce("bob", "alice")  # and in again, without a restart
        assert await here.call("alice", "bob", b"x")
        here.introduce("carol", "alice", "bob")  # a new one too
        here.introduce("bob", "alice", "carol")
        assert await here.call("carol", "bob", b"x")


def test_an_answer_that_comes_late_is_not_taken_for_one_to_the_next_call() -> None:
    async def meet() -> list[bytes]:
        async with world() as here:
            here.make_friends()
            await here.call("alice", "bob", b"x")
            with pytest.raises(Unanswered):
                await here.call("alice", "bob", b"slowly", 0.2)
            answers = [await here.call("alice", "bob", b"next")]
            both = [here.call("alice", "bob", message) for message in (b"slowly", b"at once")]
            return answers + await asyncio.gather(*both)

    endings = (b"next", b"slowly", b"at once")
    assert all(map(bytes.endswith, asyncio.run(meet()), endings))


async def test_a_neighbour_that_stops_is_called_anew_when_it_is_back() -> None:
    async with world() as here:
        here.make_friends()
        await here.call("alice", "bob", b"x")
        begin = time.monotonic()
        await here.at["bob"].close(60.0)
        seconds = time.monotonic() - begin
        await here.notices_that_bob_is_gone()
        with pytest.raises(Undelivered):
            await here.call("alice", "bob", b"x")
        await here.add("bob", here.invites["bob"].address)
        here.introduce("bob", "alice")
        assert await here.call("alice", "bob", b"x")
        assert seconds < 30  # it did not wait for what nobody had asked


async def test_a_call_that_ends_without_an_answer_is_in_doubt() -> None:
    """Bob reads the message and hangs up, as one does that stops, or means ill."""
    async with world("Handover") as here:
        for _ in range(3):
            here.make_friends()
            with pytest.raises(Unanswered):
                await here.call("alice", "bob", b"hang up")


def test_a_node_that_stops_answers_what_it_is_at_and_waits_for_no_more() -> None:
    async def meet() -> tuple[bytes, float]:
        async with world("Handover") as here:
            here.make_friends()
            await here.call("alice", "bob", b"x")
            call = asyncio.ensure_future(here.call("alice", "bob", b"slowly"))
            await until(lambda: ("bob", b"slowly") in here.heard)
            begin = time.monotonic()
            await here.at["bob"].close(60.0)
            return await call, time.monotonic() - begin

    answer, seconds = asyncio.run(meet())
    assert answer.endswith(b"slowly")
    assert seconds < 30


async def test_calls_of_one_neighbour_at_a_time_are_few() -> None:
    async with world("Handover") as here:
        here.make_friends()
        many = [here.call("alice", "bob", b"slowly") for _ in range(MAX_CALLS + 2)]
        ends = await asyncio.gather(*many, return_exceptions=True)
        assert sum(isinstance(end, bytes) for end in ends) == MAX_CALLS
        refused = [end.reason for end in ends if isinstance(end, Refused)]
        assert refused == ["too many open calls"] * 2


async def test_a_message_larger_than_allowed_is_not_read() -> None:
    async with world() as here:
        await here.add("alice", largest=10**7)
        here.make_friends()
        with pytest.raises(Unanswered, match="lost"):
            await here.call("alice", "bob", bytes(10**6))
        assert await here.call("alice", "bob", b"x")


async def test_a_connection_that_falls_silent_is_noticed_by_both_ends(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Its bytes are swallowed and acknowledged: no one but a ping can tell."""
    monkeypatch.setattr(session, "PING_AFTER_SECONDS", 0.2)
    monkeypatch.setattr(session, "PING_SECONDS", 1.5)
    async with world("Handover") as here:
        here.introduce("bob", "alice")
        host, port = here.invites["bob"].address.split(":")
        is_cut, passed = asyncio.Event(), 0

        async def pass_on(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            nonlocal passed
            while chunk := await reader.read(65536):
                passed += 1
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
        here.invites["bob"] = Invite("bob", address, IDENTITIES["bob"].public_key)
        here.introduce("alice", "bob")
        await here.call("alice", "bob", b"x")
        spoken = passed
        await until(lambda: passed > spoken + 4)  # idle, and pinged more than once
        assert here.is_connected("alice", "bob")
        assert here.is_connected("bob", "alice")
        is_cut.set()
        await until(
            lambda: not (here.is_connected("alice", "bob") or here.is_connected("bob", "alice"))
        )
        proxy.close()


@pytest.mark.parametrize("side", ["who is dialled", "who dials"])
async def test_nobody_passes_for_another(side: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Carol's certificate is no secret: mallory shows it, and cannot prove to hold its key."""
    monkeypatch.setitem(IDENTITIES, "mallory", Identity.create())
    honest = handshake._tell

    async def lie(connection: socket.socket, identity: Identity) -> None:
        liar = identity is IDENTITIES["mallory"]
        await honest(connection, IDENTITIES["carol"] if liar else identity)

    monkeypatch.setattr(handshake, "_tell", lie)
    async with world() as here:
        await here.add("mallory")
        here.introduce("mallory", "alice")
        address = here.invites["mallory"].address
        here.invites["carol"] = Invite("carol", address, IDENTITIES["carol"].public_key)
        here.introduce("alice", "carol")
        pair = ("alice", "carol") if side == "who is dialled" else ("mallory", "alice")
        with pytest.raises(Undelivered, match="cannot connect"):
            await here.call(*pair, b"x")
        assert not here.is_connected("alice", "carol")
        await until(lambda: here.refusals)
        assert here.refusals[0][1] in ("unidentified connection", "not a neighbour")


def der(name: str) -> bytes:
    return ssl.PEM_cert_to_DER_cert(IDENTITIES[name].certificate.decode())


def speak(connection: socket.socket, name: str, shown: bytes, frames: bytes, server: bool) -> None:
    """Show anything for a certificate, and send frames together with the last of the handshake."""
    connection.settimeout(10)
    connection.sendall(b"walklearn 1\n" + struct.pack(">H", len(shown)) + shown)
    heard, size = b"", 14
    while len(heard) < size:
        chunk = connection.recv(size - len(heard))
        if not chunk:
            return
        heard += chunk
        if len(heard) == 14:
            size += int.from_bytes(heard[12:], "big")
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER if server else ssl.PROTOCOL_TLS_CLIENT)
    context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
    handshake._load(context, IDENTITIES[name])
    incoming, outgoing = ssl.MemoryBIO(), ssl.MemoryBIO()
    secured = context.wrap_bio(incoming, outgoing, server_side=server)
    while True:
        try:
            secured.do_handshake()
            break
        except ssl.SSLWantReadError:
            connection.sendall(outgoing.read())
            chunk = connection.recv(65536)
            if not chunk:
                return
            incoming.write(chunk)
    secured.write(frames)
    connection.sendall(outgoing.read())
    while connection.recv(65536):
        pass


def frame(kind: int, message: bytes = b"", number: int = 0) -> bytes:
    return struct.pack(">IBI", len(message), kind, number) + message


@pytest.mark.parametrize("reads_all", [True, False])
@pytest.mark.parametrize("side", ["who is dialled", "who dials"])
async def test_two_certificates_in_one_prove_nothing(
    side: str, reads_all: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Mallory shows carol's certificate with its own behind it, and proves to hold its own key.

    Its call comes with the last of the handshake. Even if the second certificate were overlooked
    when the first is read (reads_all is False), nothing is heard before the proof was looked at.
    """
    monkeypatch.setitem(IDENTITIES, "mallory", Identity.create())
    shown, honest = der("carol") + der("mallory"), certificates.public_key
    if not reads_all:
        first = honest(der("carol"))
        monkeypatch.setattr(
            certificates, "public_key", lambda der: first if der == shown else honest(der)
        )
    frames = frame(session.Kind.READY) + frame(session.Kind.CALL, b"a lie", 1)

    def be_dialled(listener: socket.socket) -> None:
        with listener.accept()[0] as connection, contextlib.suppress(OSError):
            speak(connection, "mallory", shown, frames, server=True)

    def dial(address: str) -> None:
        host, port = address.split(":")
        with (
            socket.create_connection((host, int(port))) as connection,
            contextlib.suppress(OSError),
        ):
            speak(connection, "mallory", shown, frames, server=False)

    async with world() as here:
        with socket.create_server(("127.0.0.1", 0)) as listener:
            place = f"127.0.0.1:{listener.getsockname()[1]}"
            carol = Invite("carol", place, IDENTITIES["carol"].public_key)
            here.at["alice"].set_neighbours([carol])
            if side == "who dials":
                await asyncio.to_thread(dial, here.invites["alice"].address)
                await until(lambda: here.refusals)
            else:
                liar = asyncio.ensure_future(asyncio.to_thread(be_dialled, listener))
                with pytest.raises(Undelivered, match="no walklearn"):
                    await here.call("alice", "carol", b"x")
                await liar
        assert not here.is_connected("alice", "carol")
        assert here.heard == []


async def test_who_dials_is_heard_only_once_it_was_let_in() -> None:
    """A neighbour waits for the word; calls that come before it are not taken, and it is out."""
    async with world() as here:
        here.make_friends()
        host, port = here.invites["alice"].address.split(":")
        early = frame(session.Kind.CALL, b"too early", 1)
        with (
            socket.create_connection((host, int(port))) as connection,
            contextlib.suppress(ConnectionError),
        ):
            await asyncio.to_thread(speak, connection, "bob", der("bob"), early, False)
        assert here.heard == []
        assert (await here.call("bob", "alice", b"in time")).endswith(b"in time")


async def dialled(here: World, name: str, other: str) -> session.Session:
    """A session that is no link's: its owner can dial and say what it wants, and as much."""

    async def answer(method: str, message: bytes) -> bytes:
        return b""

    return await handshake.dial(
        IDENTITIES[name], here.invites[other].address, IDENTITIES[other].fingerprint,
        lambda certificate: session.Session(answer, lambda _: None, 10**9, certificate),
    )  # fmt: skip


@pytest.mark.parametrize(("name", "other"), [("alice", "bob"), ("bob", "alice")])
async def test_a_neighbour_has_few_sessions_however_often_it_dials(name: str, other: str) -> None:
    """Also with the one of the two whose fingerprint is the larger, and that retires none."""
    async with world() as here:
        here.make_friends()
        for _ in range(3 * links.MAX_SESSIONS):
            newest = await dialled(here, name, other)
        await until(lambda: here.sessions(other) <= links.MAX_SESSIONS)
        assert await newest.call("Hello", b"x", 20.0)


async def test_who_reads_no_answers_is_sent_no_more_of_them() -> None:
    """Else they would fill the memory of who answers. Some megabytes are the kernel's."""
    async with world() as here:
        here.make_friends()
        bob = await dialled(here, "bob", "alice")
        assert bob._transport is not None
        bob._transport.pause_reading()
        for number in range(10_000):
            bob._send(session.Kind.CALL, number, bytes(LARGEST))
            while bob._transport is not None and bob._transport.get_write_buffer_size():
                await asyncio.sleep(0)
            await asyncio.sleep(0)
            if not here.sessions("alice"):
                break
        assert here.sessions("alice") == 0


async def test_another_key_at_a_neighbours_address_is_not_spoken_to() -> None:
    async with world() as here:
        here.introduce("bob", "alice")
        false = Invite("carol", here.invites["bob"].address, IDENTITIES["carol"].public_key)
        here.at["alice"].set_neighbours([false])
        with pytest.raises(Undelivered, match="another key"):
            await here.call("alice", "carol", b"x")


async def test_garbage_does_no_harm_and_is_counted() -> None:
    async with world() as here:
        here.make_friends()
        host, port = here.invites["bob"].address.split(":")
        beginnings = [
            b"GET / HTTP/1.1\r\n\r\n",
            b"walklearn 1\n\x00\xff",
            b"walklearn 1\n\xff\xff",
        ]
        for content in beginnings:
            with closing(socket.create_connection((host, int(port)))) as stranger:
                stranger.sendall(content + bytes(range(256)))
                assert (await here.call("alice", "bob", b"still here")).endswith(b"still here")
                await asyncio.sleep(0.1)
        await until(lambda: len(here.refusals) == len(beginnings))
        assert set(here.refusals) == {("bob", "unidentified connection")}


async def test_connections_that_never_speak_are_counted_and_others_are_not(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    seconds = 2.0  # enough for who does speak, however busy the machine
    monkeypatch.setattr("walklearn.node.wire.door.SECONDS", seconds)
    async with world() as here:
        here.make_friends()
        host, port = here.invites["bob"].address.split(":")
        with closing(socket.create_connection((host, int(port)))):
            await here.call("alice", "bob", b"x")
            await until(lambda: here.refusals)
        await asyncio.sleep(seconds + 0.2)
        assert here.refusals == [("bob", "unidentified connection")]


@pytest.mark.parametrize(
    ("source", "claims"), [("127.0.0.1", False), ("127.0.0.2", False), ("127.0.0.2", True)]
)
def test_hundreds_of_silent_connections_do_not_keep_a_neighbour_out(
    source: str, claims: bool
) -> None:
    """200 that stay and are opened anew when they are closed, of a neighbour's address or not.

    Some say that they are the neighbour, whose certificate is no secret, and then say nothing.

    The neighbour's first attempt gets in. Without a limit it would wait for the time that a
    handshake may take, over and over.
    """

    async def meet() -> int:
        async with world() as here:
            here.make_friends()
            host, port = here.invites["bob"].address.split(":")
            for link in here.at["bob"]._links.values():
                link.neighbour = Invite("alice", "", IDENTITIES["alice"].public_key)
            most, alice = 0, ssl.PEM_cert_to_DER_cert(IDENTITIES["alice"].certificate.decode())

            async def silent() -> None:
                while True:
                    with contextlib.suppress(OSError):
                        reader, writer = await asyncio.open_connection(
                            host, int(port), local_addr=(source, 0)
                        )
                        with closing(writer):
                            if claims:
                                writer.write(
                                    b"walklearn 1\n" + len(alice).to_bytes(2, "big") + alice
                                )
                            await reader.read()
                    await asyncio.sleep(1.0)

            strangers = [asyncio.ensure_future(silent()) for _ in range(100 if claims else 200)]
            await until(lambda: len(here.refusals) > 50)
            for _ in range(2):
                most = max(most, len(here.at["bob"]._door.waiting))
                assert await here.call("alice", "bob", b"x", 20.0)
                here.at["alice"]._links[IDENTITIES["bob"].fingerprint].session.abort()  # type: ignore[union-attr]
                await here.notices_that_bob_is_gone()
            for each in strangers:
                each.cancel()
            await asyncio.gather(*strangers, return_exceptions=True)
            return most

    most = asyncio.run(meet())
    assert most <= (MAX_WAITING if source == "127.0.0.1" else MAX_OF_ADDRESS) + 1


@pytest.mark.parametrize("hosts", [1, 60])
def test_who_claims_to_be_a_neighbour_elsewhere_does_not_drive_it_out(hosts: int) -> None:
    """The neighbour is at an address that nobody knows yet, and takes its time for the proof.

    From one other address a few may claim the same; from very many others the neighbour's claim
    is the oldest when the room for all claims is full, unless its address is a known one.
    """

    async def meet() -> tuple[list[str], int]:
        refused: list[str] = []
        proved = asyncio.Event()

        async def proof(connection: socket.socket) -> None:
            with closing(connection):
                await proved.wait()

        async def hear(connection: socket.socket) -> tuple[str, Awaitable[None]]:
            return "alice", proof(connection)

        door = Door(hear, lambda _, whom: refused.append(whom.partition(":")[0]))
        if hosts > 1:
            door.known.add("127.0.0.1")
        port = door.listen("127.0.0.1", 0)
        with closing(door), contextlib.ExitStack() as stack:
            for host in [1, *(2 + at for at in range(hosts) for _ in range(MAX_PROVING + 1))]:
                connection = socket.create_connection(
                    ("127.0.0.1", port), source_address=(f"127.0.0.{host}", 0)
                )
                stack.enter_context(connection)
                await asyncio.sleep(0.002)
            await until(lambda: len(refused) >= hosts)
            claims = len(door._claims)
            proved.set()
            await until(lambda: not door._hosts)
        return refused, claims

    refused, claims = asyncio.run(meet())
    assert "127.0.0.1" not in refused
    assert claims <= MAX_WAITING
    if hosts == 1:
        assert refused == ["127.0.0.2"]


@pytest.mark.parametrize("size", [1, 4, 9, 10, 500, 10**6])
def test_frames_are_the_same_however_the_bytes_come(size: int) -> None:
    """Byte by byte, cut within header and message, several at once."""
    messages = [b"", b"x", bytes(range(256)) * 3, b"end"]
    header, call = session._HEADER, session.Kind.CALL
    frames = b"".join(header.pack(len(each), call, n) + each for n, each in enumerate(messages))
    heard: list[bytes] = []

    async def answer(method: str, message: bytes) -> bytes:
        heard.append(message)
        return b""

    async def feed() -> bytes:
        end = session.Session(answer, lambda _: None, 1_000, b"")
        end.is_proved = True
        end.ready.set_result(None)
        for at in range(0, len(frames), size):
            end.data_received(frames[at : at + size])
            await asyncio.sleep(0)
        await asyncio.sleep(0)
        end.data_received(header.pack(5, call, 9) + b"half")
        return bytes(end._buffer)

    assert asyncio.run(feed()).endswith(b"half")
    assert heard == messages
