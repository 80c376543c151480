"""The door: who may wait before it and for how long, until it has proved to be a neighbour.

A stranger can open connections and say nothing; there is room for a few of them only, and not so
much that a neighbour would have to wait. When the room is full, the one that has waited longest
goes: a neighbour proves its key within moments, so it goes before it is its turn. One address
has a share of the room, and addresses that neighbours have used go last.
"""

from __future__ import annotations

import asyncio
import socket
from collections.abc import Awaitable, Callable
from functools import partial

from walklearn.node.wire.handshake import SECONDS, StrangerError

# Connections that have not proved to be a neighbour's, in all and of one unknown address.
MOST_WAITING, MOST_OF_ADDRESS = 128, 16
_BACKLOG = 512


class Door:
    """Accepts connections and lets `welcome` find out who they are.

    refused: told of every connection that was not a neighbour's, with reason and address.
    """

    def __init__(
        self,
        welcome: Callable[[socket.socket], Awaitable[None]],
        refused: Callable[[str, str], None],
    ) -> None:
        self._welcome, self._refused = welcome, refused
        self._waiting: dict[asyncio.Task[str], str] = {}  # the longest first
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
        """Accept no more, and send away who waits."""
        if self._listener is not None:
            asyncio.get_running_loop().remove_reader(self._listener)
            self._listener.close()
            self._listener = None
        for task in list(self._waiting):
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
            self._waiting[task] = place[0]
            task.add_done_callback(partial(self._found_out, connection))

    def _make_room(self, host: str) -> None:
        """Send away who has waited longest: of this address, of unknown ones, of all."""
        still = {task: of for task, of in self._waiting.items() if not task.cancelling()}
        same = [task for task, of in still.items() if of == host]
        if host not in self.known and len(same) >= MOST_OF_ADDRESS:
            same[0].cancel()
        elif len(still) >= MOST_WAITING:
            unknown = [task for task, of in still.items() if of not in self.known]
            (unknown or list(still))[0].cancel()

    async def _find_out(self, connection: socket.socket) -> str:
        """Why it is no neighbour's; empty if it is one's."""
        try:
            async with asyncio.timeout(SECONDS):
                await self._welcome(connection)
        except TimeoutError:
            return "it said nothing"
        except (StrangerError, OSError) as error:
            return str(error) or type(error).__name__
        return ""

    def _found_out(self, connection: socket.socket, task: asyncio.Task[str]) -> None:
        host = self._waiting.pop(task)
        reason = "there were too many" if task.cancelled() else task.result()
        if not reason:
            return
        connection.close()
        if self._listener is not None:
            what = "not a neighbour" if reason.startswith("not a neighbour") else ""
            self._refused(what or "unidentified connection", f"{host}: {reason}")
