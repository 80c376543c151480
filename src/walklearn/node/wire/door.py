"""The door: who may wait before it and for how long, until it has proved to be a neighbour.

A stranger can open connections and say nothing; there is room for a few of them only, and not so
much that a neighbour would have to wait. When the room is full, the one that has waited longest
goes: a neighbour says at once who it is, and is out of the room before it is its turn. One
address has a share of the room, and addresses that neighbours have used go last. Who has named a
neighbour's key has to prove to hold it; a few of each address may be at that for each neighbour,
and there is as much room for them in all as for those that wait.

Addresses are compared as numbers. Of a neighbour whose invite has a name for a host, the address
is known from the first session on.
"""

from __future__ import annotations

import asyncio
import socket
from collections.abc import Awaitable, Callable
from functools import partial

from walklearn.node.wire.handshake import SECONDS, StrangerError

# Connections that have said nothing yet, in all and of one unknown address; as many claim in all.
MAX_WAITING, MAX_OF_ADDRESS = 128, 16
# Connections of one address that claim to be the same neighbour's, without proof so far.
MAX_PROVING = 4
_BACKLOG = 512


class Door:
    """Accepts connections and finds out whose they are.

    hear: who it is, by its own account, and the coroutine in which it proves that.
    refused: told of every connection that was not a neighbour's, with reason and address.
    """

    def __init__(
        self,
        hear: Callable[[socket.socket], Awaitable[tuple[str, Awaitable[None]]]],
        refused: Callable[[str, str], None],
    ) -> None:
        self._hear, self._refused = hear, refused
        self._hosts: dict[asyncio.Task[str], str] = {}  # of all, the longest first
        # Who has said who it is, and from where; the longest first.
        self._claims: dict[asyncio.Task[str], tuple[str, str]] = {}
        self._listener: socket.socket | None = None
        self.known: set[str] = set()

    def listen(self, host: str, port: int) -> int:
        """Begin to accept; returns the port, which matters for port 0."""
        family, _, _, _, place = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)[0]
        self._listener = socket.create_server(place[:2], family=family, backlog=_BACKLOG)
        self._listener.setblocking(False)
        asyncio.get_running_loop().add_reader(self._listener, self._accept)
        found: int = self._listener.getsockname()[1]
        return found

    def close(self) -> None:
        """Accept no more connections, and send away those that wait."""
        if self._listener is not None:
            asyncio.get_running_loop().remove_reader(self._listener)
            self._listener.close()
            self._listener = None
        for task in list(self._hosts):
            task.cancel()

    def _accept(self) -> None:
        assert self._listener is not None
        for _ in range(_BACKLOG):
            try:
                connection, place = self._listener.accept()
            except OSError:  # none is left; or it has gone already; or there are too many files
                return
            connection.setblocking(False)
            self._make_room(place[0])
            task = asyncio.get_running_loop().create_task(self._find_out(connection))
            self._hosts[task] = place[0]
            task.add_done_callback(partial(self._found_out, connection))

    def _make_room(self, host: str) -> None:
        """Send away who has waited longest: from this address, from unknown ones, or of all."""
        still = self.waiting
        same = [task for task in still if self._hosts[task] == host]
        if host not in self.known and len(same) >= MAX_OF_ADDRESS:
            same[0].cancel()
        elif len(still) >= MAX_WAITING:
            self._cancel_first(still)

    def _cancel_first(self, tasks: list[asyncio.Task[str]]) -> None:
        unknown = [task for task in tasks if self._hosts[task] not in self.known]
        (unknown or tasks)[0].cancel()

    @property
    def waiting(self) -> list[asyncio.Task[str]]:
        """The connections that have said nothing yet, the oldest first."""
        return [task for task in self._hosts if task not in self._claims and not task.cancelling()]

    async def _find_out(self, connection: socket.socket) -> str:
        """Find out why a connection is no neighbour's; empty if it is one's."""
        try:
            async with asyncio.timeout(SECONDS):
                who, proof = await self._hear(connection)
                self._note_claim(who)
                await proof
        except TimeoutError:
            return "it said nothing"
        except (StrangerError, OSError) as error:
            return str(error) or type(error).__name__
        return ""

    def _note_claim(self, who: str) -> None:
        task = asyncio.current_task()
        assert task is not None
        claim = who, self._hosts[task]
        still = [each for each in self._claims if not each.cancelling()]
        same = [each for each in still if self._claims[each] == claim]
        if len(same) >= MAX_PROVING:
            same[0].cancel()
        elif len(still) >= MAX_WAITING:
            self._cancel_first(still)
        self._claims[task] = claim

    def _found_out(self, connection: socket.socket, task: asyncio.Task[str]) -> None:
        host = self._hosts.pop(task)
        self._claims.pop(task, None)
        reason = "there were too many" if task.cancelled() else task.result()
        if not reason:
            return
        connection.close()
        if self._listener is not None:
            what = "not a neighbour" if reason.startswith("not a neighbour") else ""
            self._refused(what or "unidentified connection", f"{host}: {reason}")
