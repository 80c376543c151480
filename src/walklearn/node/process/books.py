"""How a newer book of the same keeper gets around: nodes ask each other.

When a session begins, and when this node has a newer book, it tells the neighbour the number of
its book. Who has a newer one answers with it; who has an older one asks back. What arrives is
checked as if the owner had brought it (`NodeDirectory.join`).
"""

from __future__ import annotations

from collections.abc import Callable, Coroutine
from contextlib import suppress
from typing import Any

from walklearn.node.disk.directory import NodeDirectory
from walklearn.node.process.logs import Log
from walklearn.node.wire.book import Book
from walklearn.node.wire.session import Refused, Unanswered, Undelivered
from walklearn.node.wire.transport import Transport

_SECONDS = 20.0


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
        if self._directory.plan.keeper is not None:
            self._spawn(self._ask(neighbour))

    async def answer(self, caller: str, message: bytes) -> bytes:
        """Answer with the book if it is newer than the caller's; if it is older, ask for theirs."""
        if not message.isdigit() or len(message) > 18:
            raise Refused("malformed message", "the number of a book is expected")
        theirs = int(message)
        if theirs > self._number:
            self.tell(caller)
        return self._book.encode() if self._book is not None and self._number > theirs else b""

    async def _ask(self, neighbour: str) -> None:
        with suppress(Undelivered, Unanswered, Refused):
            number = str(self._number).encode()
            content = await self._transport.call(neighbour, "Book", number, _SECONDS)
            try:
                book = self._newer(content)
            except Exception as error:  # whatever anybody brings, the node goes on
                self._log.warning("book refused", neighbour=self._name(neighbour), reason=error)
                return
            if book is not None:
                facts = {"number": book.number, "participants": len(book.participants)}
                self._log.info("newer book", **facts, by=self._name(neighbour))
                self._changed()

    def _newer(self, content: bytes) -> Book | None:
        """The book, which is taken; None if there is none, or (from another too) it is here."""
        keeper = self._directory.plan.keeper
        if not content or keeper is None:
            return None
        if Book.decode(content, keeper).number <= self._number:
            return None
        self._book = self._directory.join(content)
        return self._book
