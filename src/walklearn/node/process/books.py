"""How a newer book of the same keeper gets around: nodes ask each other.

When a session begins, and when this node has a newer book, it tells the neighbour the number of
its book. Who has a newer one answers with it; who has an older one asks back. A stranger at the
door is asked too: the newer book may be the one that makes it a neighbour (`wire.guests`). What
arrives is checked as if the owner had brought it (`NodeDirectory.join`), so nobody needs to be
trusted for it; and each neighbour is asked one question at a time, with a pause after it.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Coroutine
from contextlib import suppress
from typing import Any

from walklearn.node.disk.directory import NodeDirectory
from walklearn.node.process.logs import Log
from walklearn.node.wire.book import Book
from walklearn.node.wire.session import Refused, Unanswered, Undelivered
from walklearn.node.wire.transport import Transport

_SECONDS = 20.0
# Between two questions to one neighbour, which may claim to have newer books for ever.
_PAUSE_SECONDS = 1.0


class Books:
    """Asks and answers. spawn: begins a task. changed: told that the neighbours may be others.

    name: of a neighbour, by its fingerprint.
    """

    def __init__(
        self,
        directory: NodeDirectory,
        transport: Transport,
        spawn: Callable[[Coroutine[Any, Any, None]], object],
        changed: Callable[[], None],
        name: Callable[[str], str],
        log: Log,
    ) -> None:
        self._directory, self._transport, self._spawn = directory, transport, spawn
        self._changed, self._name, self._log = changed, name, log
        self._book = directory.book
        self._spread = self._number
        self._wanted: set[str] = set()  # whom to ask, once more if it is being asked
        self._asking: set[str] = set()

    @property
    def _number(self) -> int:
        return 0 if self._book is None else self._book.number

    def refresh(self) -> bool:
        """Look at the book on disk; whether it is newer than the one at the last look."""
        self._book = self._directory.book
        before, self._spread = self._spread, self._number
        return self._number > before

    def current(self) -> Book | None:
        """The book that counts now; None if there is none."""
        return self._book

    def tell(self, neighbour: str) -> None:
        """Tell it the number of the book here, to get a newer one or to be asked for it."""
        if self._directory.plan.keeper is None:
            return
        self._wanted.add(neighbour)
        if neighbour not in self._asking:
            self._asking.add(neighbour)
            self._spawn(self._ask_while_wanted(neighbour))

    async def answer(self, caller: str, message: bytes) -> bytes:
        """Answer with the book if it is newer than the caller's; if it is older, ask for theirs."""
        if not message.isdigit() or len(message) > 18:
            raise Refused("malformed message", "the number of a book is expected")
        theirs = int(message)
        if theirs > self._number:
            self.tell(caller)
        return self._book.encode() if self._book is not None and self._number > theirs else b""

    async def ask(self, who: str, call: Callable[[bytes], Awaitable[bytes]]) -> bool:
        """Ask for a newer book; whether one came and was taken. call: (message) -> reply."""
        content = await call(str(self._number).encode())
        try:
            book = self._newer(content)
        except Exception as error:  # whatever anybody brings, the node goes on
            self._log.warning("book refused", neighbour=self._name(who), reason=error)
            return False
        if book is None:
            return False
        number, participants = book.number, len(book.participants)
        self._log.info("newer book", number=number, participants=participants, by=self._name(who))
        self._changed()
        return True

    def _newer(self, content: bytes) -> Book | None:
        """The book, which is taken; None if there is none, or (from another too) it is here."""
        keeper = self._directory.plan.keeper
        if not content or keeper is None:
            return None
        if Book.decode(content, keeper).number <= self._number:
            return None
        self._book = self._directory.join(content)
        return self._book

    async def _ask_while_wanted(self, neighbour: str) -> None:
        async def call(message: bytes) -> bytes:
            return await self._transport.call(neighbour, "Book", message, _SECONDS)

        try:
            while neighbour in self._wanted:
                self._wanted.discard(neighbour)
                with suppress(Undelivered, Unanswered, Refused):
                    await self.ask(neighbour, call)
                await asyncio.sleep(_PAUSE_SECONDS)
        finally:
            self._asking.discard(neighbour)
