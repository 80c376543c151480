"""The wire: gRPC over mutual TLS, with neighbours only.

The server trusts the certificates of its neighbours and no others, each channel that of its one
neighbour. TLS lets in whoever holds a trusted key; then the caller's fingerprint is compared
with the present neighbours on every call, so that a removed one is out at once, also on a
connection it opened before. Neighbours come and go without a restart: at each handshake the server
asks whether the certificates have changed.

How a call can end: see `links`. Messages are bytes here; `protocol.messages`
knows what they mean.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Awaitable, Callable, Iterable
from typing import Any

import grpc
from grpc import aio
from grpc_health.v1 import health, health_pb2

from walklearn.node.wire.connections import HANDSHAKE_SECONDS, Connections
from walklearn.node.wire.identity import Identity, Invite, fingerprint
from walklearn.node.wire.links import (
    METHODS,
    REASON,
    SERVICE,
    STREAM,
    Link,
    Refused,
    Unanswered,
    Undelivered,
    shared_options,
)

__all__ = ["METHODS", "SERVICE", "Answer", "Refused", "Transport", "Unanswered", "Undelivered"]

# (the caller's fingerprint, the method, the message) -> the reply; may raise `Refused`.
Answer = Callable[[str, str, bytes], Awaitable[bytes]]

# Calls that are open at the same time, whoever made them: one of each neighbour stays open.
_MOST_CALLS = 1000
# Calls of one neighbour that may stay open; it needs more than one only after a failure.
_MOST_STREAMS = 4


class Transport:
    """The server of a node and a channel to each of its neighbours.

    answer: what the node replies to a neighbour's message. refused: told of every refusal, with
    its reason and whom it concerns. largest_message: in bytes; more is not even read.
    """

    def __init__(
        self,
        identity: Identity,
        answer: Answer,
        refused: Callable[[str, str], None],
        largest_message: int,
    ) -> None:
        self._identity, self._answer, self._refused = identity, answer, refused
        self._largest = largest_message
        self._peers: dict[str, Invite] = {}
        self._links: dict[str, Link] = {}
        self._fingerprints: dict[bytes, str] = {}
        self._connections = Connections(lambda: refused("unidentified connection", "unknown"))
        self._trust_changed = False
        self._streams: dict[asyncio.Task[Any], str] = {}  # calls that stay open, and whose
        self._resting: set[asyncio.Task[Any]] = set()  # those that wait for their next message
        self._stopping = False
        self._server: aio.Server | None = None
        self.health: Any = health.aio.HealthServicer()  # type: ignore[attr-defined]

    async def listen(self, address: str) -> int:
        """Begin to answer at host:port; returns the port, which matters for port 0."""
        loop = asyncio.get_running_loop()

        def certificates() -> grpc.ServerCertificateConfiguration | None:
            with contextlib.suppress(RuntimeError):  # the loop has ended
                loop.call_soon_threadsafe(self._connections.opened)  # this is another thread
            return self._news_of_trust()

        self._server = aio.server(
            options=_server_options(self._largest), maximum_concurrent_rpcs=_MOST_CALLS
        )
        self._server.add_generic_rpc_handlers((self._handler(), self._health_handler()))
        credentials = grpc.dynamic_ssl_server_credentials(
            self._trusted(),
            certificates,  # type: ignore[arg-type]  # None is documented: no change
            require_client_authentication=True,
        )
        try:
            port = self._server.add_secure_port(address, credentials)
        except RuntimeError:
            raise OSError(
                f"cannot listen on {address}: the port is in use, or the address is not one of "
                "this machine. Stop what uses it, or choose another with --listen."
            ) from None
        await self._server.start()
        await self.health.set("", health_pb2.HealthCheckResponse.SERVING)
        return port

    def set_peers(self, peers: Iterable[Invite]) -> None:
        """From now on talk to these neighbours and to nobody else."""
        self._peers = {peer.fingerprint: peer for peer in peers}
        self._trust_changed = True
        self._end_resting()
        for gone in [key for key, link in self._links.items() if self._peers.get(key) != link.peer]:
            self._links.pop(gone).close()
        for key, peer in self._peers.items():
            if key not in self._links:
                self._links[key] = Link(peer, self._identity, self._largest)

    async def call(self, to: str, method: str, message: bytes, timeout_seconds: float) -> bytes:
        """The neighbour's reply; see `links` for the other ends a call can have."""
        link = self._links.get(to)
        if link is None:
            raise Undelivered("there is no such neighbour")
        return await link.call(method, message, timeout_seconds)

    def reconnect(self, to: str) -> None:
        """Connect anew at once if the last attempt failed: the neighbour is known to be back."""
        link = self._links.get(to)
        if link is not None and link.is_waiting:
            link.close()
            self._links[to] = Link(link.peer, self._identity, self._largest)

    def is_connected(self, to: str) -> bool:
        """Whether there is a connection to the neighbour at this moment."""
        link = self._links.get(to)
        return link is not None and link.is_connected

    async def close(self, grace_seconds: float = 1.0) -> None:
        """Answer what has begun, then close all connections."""
        await self.health.enter_graceful_shutdown()
        if self._server is not None:
            stopped = asyncio.ensure_future(self._server.stop(grace_seconds))
            self._stopping = True
            self._end_resting()
            await stopped
        links, self._links = list(self._links.values()), {}
        await asyncio.gather(*(link.shut() for link in links))

    def _news_of_trust(self) -> grpc.ServerCertificateConfiguration | None:
        """The certificates if they have changed, and None otherwise.

        With new ones gRPC throws the old away while other handshakes may still use them: given
        some at every handshake, thousands of connections at once crash it.
        """
        if not self._trust_changed:
            return None
        self._trust_changed = False
        return self._trusted()

    def _trusted(self) -> grpc.ServerCertificateConfiguration:
        own = self._identity.certificate  # there must be one, and this lets in nobody else
        roots = b"".join([own, *(peer.certificate for peer in self._peers.values())])
        return grpc.ssl_server_certificate_configuration([(self._identity.key, own)], roots)

    def _handler(self) -> grpc.GenericRpcHandler[bytes, bytes]:
        handlers = {
            name: grpc.unary_unary_rpc_method_handler(self._serve(name))
            for name in METHODS
            if name != STREAM
        }
        handlers[STREAM] = grpc.stream_stream_rpc_method_handler(self._serve_stream)
        return grpc.method_handlers_generic_handler(SERVICE, handlers)

    def _health_handler(self) -> grpc.GenericRpcHandler[bytes, bytes]:
        """The standard health service, for neighbours as everything else here."""

        async def check(request: Any, context: Any) -> Any:
            await self._admit(self._caller(context), context)
            return await self.health.Check(request, context)

        handler = grpc.unary_unary_rpc_method_handler(
            check,
            health_pb2.HealthCheckRequest.FromString,
            health_pb2.HealthCheckResponse.SerializeToString,
        )
        return grpc.method_handlers_generic_handler(health.SERVICE_NAME, {"Check": handler})

    def _serve(self, method: str) -> Any:
        async def serve(message: bytes, context: Any) -> bytes:
            return await self._reply(self._caller(context), method, message, context)

        return serve

    async def _serve_stream(self, messages: object, context: Any) -> None:
        """Message by message, for as long as the neighbour keeps the call open."""
        caller, task = self._caller(context), asyncio.current_task()
        assert task is not None
        await self._admit(caller, context)
        if list(self._streams.values()).count(caller) >= _MOST_STREAMS:
            await self._refuse(context, caller, Refused("too many open calls"))
        self._streams[task] = caller
        try:
            while (message := await self._next_message(task, context)) is not None:
                await context.write(await self._reply(caller, STREAM, message, context))
        finally:
            del self._streams[task]

    async def _next_message(self, task: asyncio.Task[Any], context: Any) -> bytes | None:
        """None at the end, which may be of this node's making (`_end_resting`)."""
        if self._is_unwanted(task):
            return None
        self._resting.add(task)
        try:
            message = await context.read()
        except asyncio.CancelledError:
            if self._is_unwanted(task):
                return None
            raise
        finally:
            self._resting.discard(task)
        return None if message is aio.EOF else message  # type: ignore[attr-defined]

    def _end_resting(self) -> None:
        """End the open calls of those that are no neighbours any more; of all, to stop."""
        for task in filter(self._is_unwanted, self._resting):
            task.cancel()

    def _is_unwanted(self, task: asyncio.Task[Any]) -> bool:
        return self._stopping or self._streams[task] not in self._peers

    async def _reply(self, caller: str, method: str, message: bytes, context: Any) -> bytes:
        await self._admit(caller, context)
        try:
            return await self._answer(caller, method, message)
        except Refused as refusal:
            await self._refuse(context, caller, refusal)
            raise
        except Exception as error:  # a fault of this node's: whether it was taken is unknown
            self._refused(f"internal error: {type(error).__name__}", caller)
            await context.abort(grpc.StatusCode.INTERNAL, "internal error")
            raise

    async def _admit(self, caller: str, context: Any) -> None:
        """End the call unless the caller is a neighbour at this moment."""
        if caller not in self._peers:
            await self._refuse(context, caller, Refused("not a neighbour"))

    async def _refuse(self, context: Any, caller: str, refusal: Refused) -> None:
        """End the call; this raises."""
        self._refused(refusal.reason, caller)
        context.set_trailing_metadata(((REASON, refusal.reason),))
        await context.abort(grpc.StatusCode.FAILED_PRECONDITION, str(refusal))

    def _caller(self, context: Any) -> str:
        """The fingerprint of who is at the other end of the connection."""
        self._connections.spoke(context.peer())
        certificate: bytes = context.auth_context()["x509_pem_cert"][0]
        found = self._fingerprints.get(certificate)
        if found is None:
            found = self._fingerprints[certificate] = fingerprint(certificate)
        return found


def _server_options(largest_message: int) -> list[tuple[str, Any]]:
    return [
        *shared_options(largest_message),
        ("grpc.so_reuseport", 0),  # or a second node on the same port would go unnoticed
        ("grpc.max_concurrent_streams", 8),
        ("grpc.server_handshake_timeout_ms", int(1000 * HANDSHAKE_SECONDS)),
        ("grpc.http2.settings_timeout", int(1000 * HANDSHAKE_SECONDS)),
        ("grpc.max_allowed_incoming_connections", 500),
        ("grpc.http2.max_ping_strikes", 0),  # neighbours keep idle links alive by pings
        ("grpc.max_metadata_size", 8192),
        ("grpc.absolute_max_metadata_size", 16384),
    ]
