"""The wire: sessions over mutual TLS, with neighbours only.

A node answers at its door whoever holds the key of a present neighbour, and dials those that have
an address. Either way there is one session with a neighbour (`session`, `links`). A removed
neighbour is out at once, and one that was added is let in without a restart. A stranger is sent
away.

How a call can end: see `session`. Messages are bytes here; `node.protocol`
knows what they mean.
"""

from __future__ import annotations

import asyncio
import socket
from collections.abc import Awaitable, Callable, Iterable

from walklearn.node.wire.door import Door
from walklearn.node.wire.handshake import claim, send_away, welcome
from walklearn.node.wire.identity import Identity, Invite, check_address
from walklearn.node.wire.links import Link
from walklearn.node.wire.session import Refused, Session, Undelivered, until_idle

# (the caller's fingerprint, the method, the message) -> the reply; may raise `Refused`.
Answer = Callable[[str, str, bytes], Awaitable[bytes]]


class Transport:
    """The door of a node and a link to each of its neighbours.

    answer: what the node replies to a neighbour's message. refused: told of every refusal, with
    its reason and whom it concerns. largest_message: in bytes; more is not even read. opened, lost:
    told of every neighbour with whom a session begins, or ends without being asked to.
    """

    def __init__(
        self,
        identity: Identity,
        answer: Answer,
        refused: Callable[[str, str], None],
        largest_message: int,
        opened: Callable[[str], None] = lambda _: None,
        lost: Callable[[str], None] = lambda _: None,
    ) -> None:
        self._identity, self._answer, self._refused = identity, answer, refused
        self._largest, self._opened, self._lost = largest_message, opened, lost
        self._links: dict[str, Link] = {}
        self._door = Door(self._hear, refused)

    async def listen(self, address: str) -> int:
        """Begin to answer at host:port; returns the port, which matters for port 0."""
        host, _, port = address.rpartition(":")
        try:
            return self._door.listen(host.strip("[]"), int(port))
        except OSError:
            raise OSError(
                f"cannot listen on {address}: the port is in use, or the address is not one of "
                "this machine. Stop what uses it, or choose another with --listen."
            ) from None

    def set_neighbours(self, neighbours: Iterable[Invite]) -> None:
        """Talk to these neighbours from now on, and to nobody else."""
        wanted = {each.fingerprint: each for each in neighbours}
        for gone in self._links.keys() - wanted.keys():
            self._links.pop(gone).close()
        for key, neighbour in wanted.items():
            if key in self._links:
                self._links[key].neighbour = neighbour  # its address may be another
            else:
                self._links[key] = self._new_link(neighbour)
            if neighbour.address:
                self._door.known.add(check_address(neighbour.address)[0])

    async def call(self, to: str, method: str, message: bytes, timeout_seconds: float) -> bytes:
        """Call a neighbour and return its reply; `session` says how else a call can end."""
        link = self._links.get(to)
        if link is None:
            raise Undelivered("there is no such neighbour")
        return await link.call(method, message, timeout_seconds)

    def is_connected(self, to: str) -> bool:
        """True if the neighbour is connected."""
        link = self._links.get(to)
        return link is not None and link.session is not None

    async def close(self, grace_seconds: float = 1.0) -> None:
        """Answer what has begun, then close all connections."""
        self._door.close()
        sessions = [session for link in self._links.values() for session in link.sessions]
        for session in sessions:
            session.retire()
        await until_idle(sessions, grace_seconds)
        await asyncio.sleep(0)  # the last answers leave
        links, self._links = list(self._links.values()), {}
        for link in links:
            link.close()

    def _new_link(self, neighbour: Invite) -> Link:
        key = neighbour.fingerprint

        async def answer(method: str, message: bytes) -> bytes:
            try:
                return await self._answer(key, method, message)
            except Refused as refusal:
                self._refused(refusal.reason, key)
                raise
            except Exception as error:  # a fault of this node's: whether it was taken is unknown
                self._refused(f"internal error: {type(error).__name__}", key)
                raise

        def opened(session: Session) -> None:
            if (host := session.other_host()) is not None:
                self._door.known.add(host)
            self._opened(key)

        return Link(
            neighbour, self._identity, answer, opened, lambda: self._lost(key), self._largest
        )

    async def _hear(self, connection: socket.socket) -> tuple[str, Awaitable[None]]:
        """Hear which neighbour a caller claims to be; also return what lets it prove that."""
        certificate, fingerprint = await claim(connection)
        link = self._links.get(fingerprint)
        if link is None:
            await send_away(connection, fingerprint)
        return fingerprint, self._welcome(connection, certificate, link)

    async def _welcome(self, connection: socket.socket, certificate: bytes, link: Link) -> None:
        session = link.new_session(certificate)
        await welcome(self._identity, connection, certificate, session)
        link.opened(session)
        session.say_ready()
