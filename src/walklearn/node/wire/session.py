"""A session: one connection between two neighbours, over which both call and both answer.

Whoever could dial has dialled; from then on the two ends are alike. A *frame* is its length
(4 bytes, of what follows the header), its kind (1), a number (4), and then the message, all
big-endian. A call has a number that its caller chose, and the answer bears the same.

How a call ends:

    the reply            it arrived and was answered
    `Refused`            it arrived and was not taken; the other side says why
    `Undelivered`        it never left: there was no connection
    `Unanswered`         it may have arrived: only an answer proves delivery
"""

from __future__ import annotations

import asyncio
import enum
import socket
import struct
from collections.abc import Awaitable, Callable
from typing import Any, cast

METHODS = ("Hello", "Handover", "Final", "Roster")

# A connection that was cut without a word is noticed after both; a handover has its own limits.
PING_AFTER_SECONDS, PING_SECONDS = 10.0, 5.0
# Calls of one neighbour that may be under way; it needs more than one only after a failure.
MAX_CALLS = 4
# Largest messages that may wait to be read by the neighbour: its calls' answers, and as many calls.
MAX_UNREAD = 2 * MAX_CALLS

_HEADER = struct.Struct(">IBI")


class Kind(enum.IntEnum):
    """The kinds of frames; a call of the method with index m is CALL + m."""

    READY = 0  # from who was dialled, once it knows who dialled
    REPLY = 1
    REFUSED = 2  # the reason and a detail, a line each
    FAILED = 3  # a fault of the callee's: whether it was taken is unknown
    PING = 4
    PONG = 5
    RETIRED = 6  # no more calls come, nor are wanted: there is a newer session, or a node stops
    CALL = 16


class Refused(Exception):
    """The receiver did not take the message and says why, in a word for the counters."""

    def __init__(self, reason: str, detail: str = "") -> None:
        super().__init__(detail or reason)
        self.reason = reason


class Undelivered(Exception):
    """The message never left this node."""


class Unanswered(Exception):
    """The message may or may not have arrived."""


# (method, message) -> the reply; may raise `Refused`, and whatever a fault of this node raises.
Answer = Callable[[str, bytes], Awaitable[bytes]]


class Session(asyncio.Protocol):
    """One end of a connection. ended: told once when it is lost.

    certificate: the one (DER) whose key the other end has to hold. Nothing is heard from who holds
    another, and nothing but READY from anybody before this session is ready.
    """

    def __init__(
        self,
        answer: Answer,
        ended: Callable[[Session], None],
        largest_message: int,
        certificate: bytes,
    ) -> None:
        self._answer, self._ended, self._largest = answer, ended, largest_message
        self._certificate, self.is_proved = certificate, False
        self._buffer = bytearray()
        self._calls: dict[int, asyncio.Future[bytes]] = {}
        self._answering: set[asyncio.Task[None]] = set()
        self._number, self._heard, self._pinged = 0, False, False
        self._timer: asyncio.TimerHandle | None = None
        self._transport: asyncio.Transport | None = None
        self.ready: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self.retired = False

    # ── what this end says ───────────────────────────────────────────────────────────────────

    async def call(self, method: str, message: bytes, timeout_seconds: float) -> bytes:
        """Call the other end and return its reply; the module says how else a call can end."""
        if self._transport is None or self.retired:
            raise Undelivered("the connection has ended")
        loop = asyncio.get_running_loop()
        self._number = number = (self._number + 1) % 2**32
        future: asyncio.Future[bytes] = loop.create_future()
        self._calls[number] = future
        self._send(Kind.CALL + METHODS.index(method), number, message)
        late = Unanswered(f"no answer in {timeout_seconds:g} s")
        limit = loop.call_later(timeout_seconds, self._fail, future, late)
        try:
            return await future
        finally:
            limit.cancel()
            self._calls.pop(number, None)  # a late answer is nobody's
            self._end_if_idle()

    def say_ready(self) -> None:
        """Let the other end, which dialled, begin."""
        self._send(Kind.READY)
        self._is_ready()

    def retire(self) -> None:
        """Make no new calls here; the session ends when those under way have ended."""
        if not self.retired:
            self.retired = True
            self._send(Kind.RETIRED)
            self._end_if_idle()

    def abort(self) -> None:
        """End at once; calls under way are `Unanswered`."""
        if self._transport is not None:
            self._transport.abort()

    def other_host(self) -> str | None:
        """The address of the other end, without its port."""
        found = self._transport.get_extra_info("peername") if self._transport else None
        return found[0] if found else None

    def _send(self, kind: int, number: int = 0, message: bytes = b"") -> None:
        if self._transport is None or self._transport.is_closing():
            return
        if self._transport.get_write_buffer_size() > MAX_UNREAD * self._largest:
            self.abort()
            return
        header = _HEADER.pack(len(message), kind, number)
        if len(message) < 65536:
            self._transport.write(header + message)
        else:
            self._transport.writelines([header, message])

    def _end_if_idle(self) -> None:
        is_busy = self._calls or self._answering
        if self.retired and not is_busy and self._transport is not None:
            self._transport.close()

    # ── what the other end says ──────────────────────────────────────────────────────────────

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Begin: the handshake is done, and frames that came with its end are taken after this."""
        self._transport = cast(asyncio.Transport, transport)
        theirs = transport.get_extra_info("ssl_object").getpeercert(binary_form=True)
        self.is_proved = theirs == self._certificate
        if not self.is_proved:
            self.abort()
            return
        connection = transport.get_extra_info("socket")
        if connection.family in (socket.AF_INET, socket.AF_INET6):  # or small frames wait
            connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)

    def connection_lost(self, error: Exception | None) -> None:
        """End all calls under way as `Unanswered`: they may have arrived or not."""
        self._transport = None
        if self._timer is not None:
            self._timer.cancel()
        waiting: list[asyncio.Future[Any]] = [*self._calls.values(), self.ready]
        for future in waiting:
            self._fail(future, Unanswered("the connection was lost"))
        self._ended(self)

    @staticmethod
    def _fail(future: asyncio.Future[Any], error: Exception) -> None:
        if not future.done():
            future.set_exception(error)
            future.exception()  # nobody may be waiting for it

    def data_received(self, data: bytes) -> None:
        """Take the frames that are complete.

        What comes whole is taken from where it is: a buffer that grows and shrinks by a token each
        time costs more than the encryption.
        """
        self._heard = True
        if self._buffer:
            self._buffer += data
            del self._buffer[: self._take_frames(self._buffer)]
        else:
            self._buffer += memoryview(data)[self._take_frames(data) :]

    def _take_frames(self, content: bytes | bytearray) -> int:
        """Take the whole frames at the beginning; return how many bytes they had."""
        at = 0
        while len(content) - at >= _HEADER.size:
            size, kind, number = _HEADER.unpack_from(content, at)
            may_speak = self.is_proved and (self.ready.done() or kind == Kind.READY)
            if size > self._largest or not may_speak:
                self.abort()
                break
            begin, end = at + _HEADER.size, at + _HEADER.size + size
            if len(content) < end:
                break
            self._take(kind, number, bytes(memoryview(content)[begin:end]))
            at = end
        return at

    def _take(self, kind: int, number: int, message: bytes) -> None:
        if kind >= Kind.CALL:
            self._begin_to_answer(kind - Kind.CALL, number, message)
        elif kind in (Kind.REPLY, Kind.REFUSED, Kind.FAILED):
            self._settle(kind, number, message)
        elif kind == Kind.PING:
            self._send(Kind.PONG)
        elif kind == Kind.READY:
            self._is_ready()
        elif kind == Kind.RETIRED:
            self.retired = True
            self._end_if_idle()

    def _settle(self, kind: int, number: int, message: bytes) -> None:
        future = self._calls.get(number)
        if future is None or future.done():
            return
        if kind == Kind.REPLY:
            future.set_result(message)
        elif kind == Kind.FAILED:
            self._fail(future, Unanswered("the neighbour failed over it"))
        else:
            reason, _, detail = message[:2000].decode(errors="replace").partition("\n")
            self._fail(future, Refused(reason, detail))

    def _begin_to_answer(self, method: int, number: int, message: bytes) -> None:
        if method >= len(METHODS):
            self._send(Kind.REFUSED, number, b"unknown method\n")
        elif len(self._answering) >= MAX_CALLS:
            self._send(Kind.REFUSED, number, b"too many open calls\n")
        else:
            work = self._reply(METHODS[method], number, message)
            task = asyncio.get_running_loop().create_task(work)
            self._answering.add(task)
            task.add_done_callback(self._answered)

    async def _reply(self, method: str, number: int, message: bytes) -> None:
        try:
            self._send(Kind.REPLY, number, await self._answer(method, message))
        except Refused as refusal:
            self._send(Kind.REFUSED, number, f"{refusal.reason}\n{refusal}".encode()[:2000])
        except Exception:  # it was told to `answer`'s maker, who counts it
            self._send(Kind.FAILED, number)

    def _answered(self, task: asyncio.Task[None]) -> None:
        self._answering.discard(task)
        self._end_if_idle()

    # ── whether the other end is still there ─────────────────────────────────────────────────

    def _is_ready(self) -> None:
        if not self.ready.done():
            self.ready.set_result(None)
            self._wait_and_look(PING_AFTER_SECONDS)

    def _wait_and_look(self, seconds: float) -> None:
        self._heard = False
        self._timer = asyncio.get_running_loop().call_later(seconds, self._look)

    def _look(self) -> None:
        """Ping the other end if it was silent for a while; if it stays silent, end the session."""
        if self._heard:
            self._pinged = False
            self._wait_and_look(PING_AFTER_SECONDS)
        elif not self._pinged:
            self._pinged = True
            self._send(Kind.PING)
            self._wait_and_look(PING_SECONDS)
        else:
            self.abort()


async def until_idle(sessions: list[Session], seconds: float) -> None:
    """Wait for calls under way, at most so long."""
    tasks: list[Any] = [task for each in sessions for task in each._answering]
    if tasks and seconds > 0:
        await asyncio.wait(tasks, timeout=seconds)
