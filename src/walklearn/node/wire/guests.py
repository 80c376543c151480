"""Strangers at the door: each may show a newer book, and nothing else is said to it or heard.

Who is new to a network knows its neighbours from the book by which it has joined, and they have an
older one that does not have it. So whoever proves to hold the key that it shows is asked one
question, for its book, which the node checks as if its owner had brought it; all else is refused.
That costs a handshake and a signature, so it is done about once a second, whoever knocks how often:
a flood keeps newcomers waiting, and neighbours not.
"""

from __future__ import annotations

import asyncio
import socket
from collections.abc import Awaitable, Callable

from walklearn.node.wire.book import LARGEST_BOOK
from walklearn.node.wire.handshake import SECONDS, not_a_neighbour, welcome
from walklearn.node.wire.identity import Identity
from walklearn.node.wire.session import Refused, Session, Unanswered, Undelivered

# Asks a session, which it is given as (message) -> reply; whether the book was newer and was taken.
Question = Callable[[str, Callable[[bytes], Awaitable[bytes]]], Awaitable[bool]]

_EVERY_SECONDS = 1.0
# In which who is no neighbour hears so, in answer to what it says.
_HEARS_SECONDS = 0.2


class Guests:
    """Lets strangers in to be asked for their book, about one a second."""

    def __init__(self, identity: Identity, ask: Question) -> None:
        self._identity, self._ask = identity, ask
        self._next_at = 0.0

    def has_room(self) -> bool:
        """Whether one more may come in now; then the next one may not for a while."""
        now = asyncio.get_running_loop().time()
        if now < self._next_at:
            return False
        self._next_at = now + _EVERY_SECONDS
        return True

    async def hear(self, connection: socket.socket, certificate: bytes, fingerprint: str) -> None:
        """Ask for its book. It goes in any case; once it is a neighbour it may come again."""
        session = Session(_refuse, lambda _: None, LARGEST_BOOK, certificate)

        async def ask(message: bytes) -> bytes:
            return await session.call("Book", message, SECONDS)

        try:
            await welcome(self._identity, connection, certificate, session)
            session.say_ready()
            if not await self._ask(fingerprint, ask):
                await asyncio.sleep(_HEARS_SECONDS)
                raise not_a_neighbour(fingerprint)
        except (Refused, Unanswered, Undelivered):
            raise not_a_neighbour(fingerprint) from None
        finally:
            session.abort()


async def _refuse(method: str, message: bytes) -> bytes:
    raise Refused("not a neighbour", "the node there has not added this one")
