"""Who may begin a line and declare the end: with a book, participants who have signed it.

A *seal* is a signature by the node that a line or an end names. It travels with every message that
tells of the line, so everybody can check it, whoever the message comes from. Without a book there
are none, and neighbours are trusted as ever. A line that is renewed keeps its seal: how far a walk
can have come is a matter of what `protocol` believes.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from walklearn.node.process.logs import Log
from walklearn.node.protocol.messages import Greeting, Line, Receipt, Token
from walklearn.node.wire.book import Book
from walklearn.node.wire.identity import Identity

# How many seals are kept in mind; one walk has few lines.
_KEPT = 1_000
_Beginning = tuple[int, str, str]


class Seals:
    """Makes the seals of this node and checks those of others. book: the one that counts now."""

    def __init__(
        self, identity: Identity, plan_digest: str, book: Callable[[], Book | None], log: Log
    ) -> None:
        self._identity, self._plan, self._book, self._log = identity, plan_digest, book, log
        self._lines: dict[_Beginning, bytes] = {}
        self._ends: dict[str, bytes] = {}

    # ── what is sent ─────────────────────────────────────────────────────────────────────────

    def on_token(self, token: Token) -> Token:
        """The token with the seals of its line and of its end."""
        if self._book() is None:
            return token
        seal = self._of_line(token.line) or token.seal
        return replace(token, seal=seal, end_seal=self._of_end(token) or token.end_seal)

    def on_greeting(self, greeting: Greeting) -> Greeting:
        """The greeting with the seals of the lines that it tells of, as far as they are known."""
        if self._book() is None:
            return greeting
        told = greeting.announcement
        return replace(
            greeting,
            newest_seal=b"" if told.newest is None else self._of_line(told.newest),
            final_seal=b"" if told.final is None else self._of_line(told.final),
        )

    def on_receipt(self, receipt: Receipt) -> Receipt:
        """The receipt with the seal of the line that it tells of."""
        if self._book() is None or receipt.newest is None:
            return receipt
        return replace(receipt, newest_seal=self._of_line(receipt.newest))

    # ── what arrives ─────────────────────────────────────────────────────────────────────────

    def refusal(self, token: Token) -> str:
        """Why a token or a final model is not taken; empty if it is."""
        if not self._knows_line(token.line, token.seal):
            return "its line was begun by none of the participants"
        if token.final and not self._knows_end(token):
            return "its end was declared by none of the participants"
        return ""

    def checked_greeting(self, greeting: Greeting) -> tuple[Greeting, bool]:
        """The greeting without the lines that nobody has signed, and whether there were any."""
        told = greeting.announcement
        newest, final, progress = told.newest, told.final, told.progress
        if newest is not None and not self._knows_line(newest, greeting.newest_seal):
            newest = None
        if final is not None and not self._knows_line(final, greeting.final_seal):
            final = None
        if progress is not None and not self._knows_line(progress.mark.line, greeting.newest_seal):
            progress = None
        if (newest, final) == (told.newest, told.final) and progress is told.progress:
            return greeting, False
        announcement = replace(told, newest=newest, final=final, progress=progress)
        return replace(greeting, announcement=announcement), told.newest is not newest

    def checks_receipt(self, receipt: Receipt) -> bool:
        """Whether the line that the receipt tells of, if any, was begun by a participant."""
        return receipt.newest is None or self._knows_line(receipt.newest, receipt.newest_seal)

    # ── signatures ───────────────────────────────────────────────────────────────────────────

    def _of_line(self, line: Line) -> bytes:
        known = self._lines.get(line.beginning)
        if known is None and line.reclaimer == self._identity.fingerprint:
            known = self._identity.sign(self._about_line(line))
            self._keep(line, known)
        return known or b""

    def _of_end(self, token: Token) -> bytes:
        if not token.final:
            return b""
        if token.ended_by == self._identity.fingerprint and token.digest not in self._ends:
            self._ends[token.digest] = self._identity.sign(self._about_end(token))
        return self._ends.get(token.digest, b"")

    def _knows_line(self, line: Line, seal: bytes) -> bool:
        book = self._book()
        if book is None or line.beginning in self._lines:
            return True
        if not book.verify(line.reclaimer, self._about_line(line), seal):
            return False
        name = book.by_fingerprint[line.reclaimer].name
        self._log.info("line begun", by=name, counter=line.counter)
        self._keep(line, seal)
        return True

    def _knows_end(self, token: Token) -> bool:
        book = self._book()
        if book is None or token.digest in self._ends:
            return True
        if not book.verify(token.ended_by, self._about_end(token), token.end_seal):
            return False
        self._ends[token.digest] = token.end_seal
        name = book.by_fingerprint[token.ended_by].name
        self._log.info("end declared", by=name, final=token.digest[:12])
        return True

    def _keep(self, line: Line, seal: bytes) -> None:
        if len(self._lines) >= _KEPT:
            self._lines.pop(next(iter(self._lines)))
        self._lines[line.beginning] = seal

    def _about_line(self, line: Line) -> bytes:
        return f"line {self._plan} {line.counter} {line.reclaimer} {line.walk}".encode()

    def _about_end(self, token: Token) -> bytes:
        return f"end {self._plan} {token.ended_by} {token.digest}".encode()
