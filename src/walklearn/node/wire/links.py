"""The links of a node: a channel to each neighbour, and the four ends that a call can have.

    the reply            it arrived and was answered
    `Refused`            it arrived and was not taken; the other side says why
    `Undelivered`        it never left: there was no connection
    `Unanswered`         it may have arrived: with TLS only an answer proves delivery

A link trusts the certificate of its one neighbour, connects when needed, and tries again by
itself. Handovers share a call that stays open, token by token and receipt by receipt: a call for
each would take half as long again.
"""

from __future__ import annotations

import asyncio
from typing import Any

import grpc
from grpc import aio

from walklearn.node.wire.identity import Identity, Invite

SERVICE = "walklearn.node.v1.Node"
METHODS = ("Hello", "Handover", "Final")
# The method whose calls stay open, for one message after the other.
STREAM = "Handover"
# The key under which a refusal says its reason.
REASON = "walklearn-refused"

# A link that was cut without a word is noticed after both, before a sender reclaims.
PING_AFTER_SECONDS, PING_SECONDS = 10.0, 5.0

_LARGEST_WINDOW = 1_000_000
_READY = grpc.ChannelConnectivity.READY


class Refused(Exception):
    """The receiver did not take the message and says why, in a word for the counters."""

    def __init__(self, reason: str, detail: str = "") -> None:
        super().__init__(detail or reason)
        self.reason = reason


class Undelivered(Exception):
    """The message never left this node."""


class Unanswered(Exception):
    """The message may or may not have arrived."""


class Link:
    """The channel to one neighbour. It connects when needed and tries again by itself."""

    def __init__(self, peer: Invite, identity: Identity, largest_message: int) -> None:
        self.peer = peer
        credentials = grpc.ssl_channel_credentials(
            peer.certificate, identity.key, identity.certificate
        )
        options = _channel_options(peer.name, largest_message)
        self._channel = aio.secure_channel(peer.address, credentials, options=options)
        self._calls = {
            method: self._channel.unary_unary(f"/{SERVICE}/{method}", None, None)
            for method in METHODS
            if method != STREAM
        }
        self._open: Any = self._channel.stream_stream(f"/{SERVICE}/{STREAM}", None, None)
        self._resting: list[Any] = []  # open calls that wait for their next message
        self._closing: asyncio.Task[None] | None = None

    async def call(self, method: str, message: bytes, timeout_seconds: float) -> bytes:
        """The reply; see above for the other ends a call can have."""
        await self.connect(timeout_seconds)
        try:
            async with asyncio.timeout(timeout_seconds):
                if method == STREAM:
                    return await self._call_on_stream(message)
                reply: bytes = await self._calls[method](message)
                return reply
        except aio.AioRpcError as error:
            raise _end_of(error) from None
        except TimeoutError:
            raise Unanswered(f"no answer in {timeout_seconds:g} s") from None
        except (aio.UsageError, asyncio.InvalidStateError, asyncio.CancelledError):
            if (task := asyncio.current_task()) is not None and task.cancelling():
                raise  # it is the caller who is to stop, not the link that was closed
            raise Unanswered("the link was closed") from None

    async def _call_on_stream(self, message: bytes) -> bytes:
        stream = self._resting.pop() if self._resting else None
        if stream is None or stream.done():  # the other side, or the connection, has ended it
            stream = self._open()
        try:
            await stream.write(message)
            reply: Any = await stream.read()
            if reply is aio.EOF:  # type: ignore[attr-defined]  # the other side stops, say
                raise Unanswered("the call ended without an answer")
        except BaseException:
            stream.cancel()  # a late answer must not be taken for one to the next message
            raise
        self._resting.append(stream)
        return bytes(reply)

    @property
    def is_connected(self) -> bool:
        """Whether there is a connection at this moment."""
        return self._channel.get_state() is _READY

    @property
    def is_waiting(self) -> bool:
        """Whether it failed to connect and waits before it tries again."""
        return self._channel.get_state() is grpc.ChannelConnectivity.TRANSIENT_FAILURE

    async def connect(self, timeout_seconds: float) -> None:
        """Wait for the connection; `Undelivered` if the attempt fails."""
        state = self._channel.get_state(try_to_connect=True)
        if state is _READY:
            return
        try:
            async with asyncio.timeout(timeout_seconds):
                while state is not _READY:
                    if state is grpc.ChannelConnectivity.TRANSIENT_FAILURE:
                        raise Undelivered(f"cannot connect to {self.peer.address}")
                    await self._channel.wait_for_state_change(state)
                    state = self._channel.get_state(try_to_connect=True)
        except (TimeoutError, aio.UsageError):
            raise Undelivered(f"cannot connect to {self.peer.address}") from None

    def close(self) -> None:
        """Close without waiting for it."""
        self._closing = asyncio.get_running_loop().create_task(self.shut())

    async def shut(self) -> None:
        """Close; what was under way ends as `Unanswered`."""
        await self._channel.close(None)


def _end_of(error: aio.AioRpcError) -> Exception:
    """What a failed call means."""
    trailing: Any = error.trailing_metadata()
    for key, value in trailing or ():
        if key == REASON:
            return Refused(str(value), error.details() or "")
    if error.code() is grpc.StatusCode.UNIMPLEMENTED:
        return Refused("unknown method")
    return Unanswered(f"{error.code().name}: {error.details()}")


def _channel_options(name: str, largest_message: int) -> list[tuple[str, Any]]:
    return [
        *shared_options(largest_message),
        ("grpc.ssl_target_name_override", name),
        ("grpc.initial_reconnect_backoff_ms", 200),
        ("grpc.min_reconnect_backoff_ms", 2000),  # how long one attempt may take
        ("grpc.max_reconnect_backoff_ms", 3000),
        ("grpc.enable_retries", 0),  # the protocol retries, and must know of it
        ("grpc.enable_http_proxy", 0),
        ("grpc.use_local_subchannel_pool", 1),
        ("grpc.dns_min_time_between_resolutions_ms", 5000),
    ]


def shared_options(largest_message: int) -> list[tuple[str, Any]]:
    """What both ends of a connection set."""
    # A window that takes a whole message needs no probing of the link, which costs a ping each.
    window = [("grpc.http2.bdp_probe", 0), ("grpc.http2.lookahead_bytes", largest_message)]
    return [
        *(window if largest_message <= _LARGEST_WINDOW else []),
        ("grpc.max_receive_message_length", largest_message),
        ("grpc.max_send_message_length", largest_message),
        ("grpc.keepalive_time_ms", int(1000 * PING_AFTER_SECONDS)),
        ("grpc.keepalive_timeout_ms", int(1000 * PING_SECONDS)),
        ("grpc.http2.ping_timeout_ms", int(1000 * PING_SECONDS)),  # or a minute is waited for it
        ("grpc.keepalive_permit_without_calls", 1),
        ("grpc.http2.max_pings_without_data", 0),
    ]
