"""How a newer book of the same keeper gets around: neighbours ask each other.

When a session begins, and when this node has a newer book, it tells the neighbour the number of
its book. Who has a newer one answers with it; who has an older one asks back. What arrives is
checked as if the owner had brought it (`NodeDirectory.join`), so nobody needs to be trusted for it.
"""

from __future__ import annotations

from collections.abc import Callable, Coroutine
from typing import Any

from walklearn.node.disk.directory import NodeDirectory
from walklearn.node.process.logs import Log
from walklearn.node.wire.book import Book
from walklearn.node.wire.transport import Refused, Transport, Unanswered, Undelivered

_SECONDS = 20.0


class Books:
    """Asks and answers. spawn: begins a task. changed: told that the neighbours may be others."""

    def __init__(
        self,
        directory: NodeDirectory,
        transport: Transport,
        spawn: Callable[[Coroutine[Any, Any, None]], object],
        changed: Callable[[], None],
        log: Log,
    ) -> None:
        self._directory, self._transport, self._spawn = directory, transport, spawn
        self._changed, self._log = changed, log
        self._number, self._content = 0, b""
        self._book: Book | None = None
        self.refresh()

    def refresh(self) -> bool:
        """Look at the book on disk; whether it is newer than the one that was there."""
        before, book = self._number, self._directory.book
        self._book = book
        self._number = 0 if book is None else book.number
        self._content = b"" if book is None else book.encode()
        return self._number > before

    def current(self) -> Book | None:
        """The book that counts now; None if there is none."""
        return self._book

    def tell(self, neighbour: str) -> None:
        """Tell it the number of the book here, to get a newer one or to be asked for it."""
        if self._directory.plan.keeper is not None:
            self._spawn(self._ask(neighbour))

    async def answer(self, caller: str, message: bytes) -> bytes:
        """The book, if it is newer than the caller's; if it is older the caller is asked back."""
        if not message.isdigit() or len(message) > 18:
            raise Refused("malformed message", "the number of a book is expected")
        theirs = int(message)
        if theirs > self._number:
            self.tell(caller)
        return self._content if self._number > theirs else b""

    async def _ask(self, neighbour: str) -> None:
        try:
            message = str(self._number).encode()
            content = await self._transport.call(neighbour, "Book", message, _SECONDS)
        except (Undelivered, Unanswered, Refused):
            return
        if not content:
            return
        try:
            book = self._directory.join(content)
        except Exception as error:  # whatever a neighbour brings, the node goes on
            self._log.warning("book refused", neighbour=neighbour, reason=error)
            return
        self._log.info("newer book", number=book.number, participants=len(book.participants))
        self._changed()
