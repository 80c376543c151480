"""Signatures on the start, renewal and end of a walk, which must be those of participants.

A *seal* goes with every message that tells of a line, so everybody can check it, whoever the
message comes from: the signature of the node that the line names as its beginner, and that of the
node that began or renewed it at these updates. An end is signed by who made the last update.
Without a roster there are no seals, and neighbours are trusted as ever.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import NamedTuple

from walklearn.node.process.logs import Log
from walklearn.node.protocol.messages import Greeting, Outcome, Receipt
from walklearn.node.protocol.tokens import Line, Token
from walklearn.node.wire.identity import Identity
from walklearn.node.wire.roster import Roster

_FINGERPRINT_BYTES = 32
_Beginning = tuple[int, str, str]


class _Seal(NamedTuple):
    """begun: the signature of the line's beginner. by, renewed: whose word the updates are."""

    begun: bytes
    by: str
    renewed: bytes

    def encode(self) -> bytes:
        return bytes([len(self.begun)]) + self.begun + bytes.fromhex(self.by) + self.renewed

    @classmethod
    def decode(cls, content: bytes) -> _Seal:
        """Read a seal from any bytes; what is no seal has no signature that holds."""
        by = 1 + (content[0] if content else 0)
        renewed = by + _FINGERPRINT_BYTES
        return cls(content[1:by], content[by:renewed].hex(), content[renewed:])


class Seals:
    """Makes the seals of this node and checks those of others.

    roster: gives the one that counts now. known: the seals that an earlier process has kept.
    """

    def __init__(
        self,
        identity: Identity,
        plan_digest: str,
        roster: Callable[[], Roster | None],
        log: Log,
        known: Mapping[Line, bytes] | None = None,
    ) -> None:
        self._identity, self._plan, self._roster, self._log = identity, plan_digest, roster, log
        self._lines: dict[Line, bytes] = {}
        self._begun: dict[_Beginning, bytes] = {}
        self._ends: dict[str, bytes] = {}
        for line, seal in (known or {}).items():
            self._keep(line, seal)

    # ── what is sent ─────────────────────────────────────────────────────────────────────────

    def on_token(self, token: Token) -> Token:
        """The token with the seals of its line and of its end."""
        if self._roster() is None:
            return token
        # It was here: if nobody has signed for its updates, it was renewed here.
        seal = self._of_line(token.line, renewed_here=not token.final) or token.seal
        return replace(token, seal=seal, end_seal=self._of_end(token) or token.end_seal)

    def on_greeting(self, greeting: Greeting) -> Greeting:
        """The greeting with the seals of the lines that it tells of, as far as they are known."""
        if self._roster() is None:
            return greeting
        given = greeting.announcement
        walks = None if given.progress is None else given.progress.mark.line
        return replace(
            greeting,
            newest_seal=b"" if given.newest is None else self._of_line(given.newest),
            final_seal=b"" if given.final is None else self._of_line(given.final),
            progress_seal=b"" if walks in (None, given.newest) else self._of_line(walks),
        )

    def on_receipt(self, receipt: Receipt) -> Receipt:
        """The receipt with the seal of the line that it tells of."""
        if self._roster() is None or receipt.newest is None:
            return receipt
        return replace(receipt, newest_seal=self._of_line(receipt.newest))

    def known(self, *lines: Line | None) -> dict[Line, bytes]:
        """The seals of these lines, as far as they are known."""
        return {line: self._lines[line] for line in lines if line in self._lines}

    # ── what arrives ─────────────────────────────────────────────────────────────────────────

    def refusal(self, token: Token) -> str:
        """Why a token or a final model is not taken; empty if it is."""
        if not self._knows_line(token.line, token.seal):
            return "no participant has signed its generation"
        if token.final and not self._knows_end(token):
            return "no participant has signed its end"
        return ""

    def checked_greeting(self, greeting: Greeting) -> tuple[Greeting, bool]:
        """Leave out of a greeting the lines that nobody has signed; say whether there were any.

        Nobody signs progress itself: it stands if the line it belongs to is signed.
        """
        given = greeting.announcement
        newest, final, progress = given.newest, given.final, given.progress
        if newest is not None and not self._knows_line(newest, greeting.newest_seal):
            newest = None
        if final is not None and not self._knows_line(final, greeting.final_seal):
            final = None
        if progress is not None:
            line, seal = progress.mark.line, greeting.progress_seal or greeting.newest_seal
            progress = progress if self._knows_line(line, seal) else None
        if (newest, final, progress) == (given.newest, given.final, given.progress):
            return greeting, False
        announcement = replace(given, newest=newest, final=final, progress=progress)
        return replace(greeting, announcement=announcement), True

    def checks_receipt(self, receipt: Receipt) -> bool:
        """True if the newer generation in the receipt, if any, was started by a participant.

        What was accepted was: to take it back for want of a signature would make two tokens.
        """
        if receipt.outcome is not Outcome.OBSOLETE or receipt.newest is None:
            return True
        return self._knows_line(receipt.newest, receipt.newest_seal)

    # ── signatures ───────────────────────────────────────────────────────────────────────────

    def _of_line(self, line: Line, renewed_here: bool = False) -> bytes:
        known, own = self._lines.get(line), line.reclaimer == self._identity.fingerprint
        if known is not None or not (own or renewed_here):
            return known or b""
        begun = self._begun.get(line.beginning)
        if begun is None and own:
            begun = self._identity.sign(self._about_beginning(line))
        if begun is None:
            return b""
        renewed = self._identity.sign(self._about_line(line))
        return self._keep(line, _Seal(begun, self._identity.fingerprint, renewed).encode())

    def _of_end(self, token: Token) -> bytes:
        if not token.final:
            return b""
        if token.ended_by == self._identity.fingerprint and token.digest not in self._ends:
            self._ends[token.digest] = self._identity.sign(self._about_end(token))
        return self._ends.get(token.digest, b"")

    def _knows_beginning(self, line: Line, seal: bytes) -> bool:
        roster = self._roster()
        if roster is None or line.beginning in self._begun:
            return True
        begun = _Seal.decode(seal).begun
        return roster.verify(line.reclaimer, self._about_beginning(line), begun)

    def _knows_line(self, line: Line, seal: bytes) -> bool:
        roster = self._roster()
        if roster is None or line in self._lines:
            return True
        read, new = _Seal.decode(seal), line.beginning not in self._begun
        if not roster.verify(read.by, self._about_line(line), read.renewed):
            return False
        if not self._knows_beginning(line, seal):
            return False
        if new:
            by = roster.name_of(line.reclaimer)
            self._log.info("generation begun", by=by, counter=line.counter)
        if not new or read.by != line.reclaimer:
            self._log.info("generation renewed", by=roster.name_of(read.by), updates=line.updates)
        # Of a beginning that was known this seal may say anything: what was checked is passed on.
        begun = self._begun.get(line.beginning, read.begun)
        self._keep(line, read._replace(begun=begun).encode())
        return True

    def _knows_end(self, token: Token) -> bool:
        roster = self._roster()
        if roster is None or token.digest in self._ends:
            return True
        if not roster.verify(token.ended_by, self._about_end(token), token.end_seal):
            return False
        self._ends[token.digest] = token.end_seal
        name = roster.name_of(token.ended_by)
        self._log.info("end declared", by=name, final=token.digest[:12])
        return True

    def _keep(self, line: Line, seal: bytes) -> bytes:
        """Keep a seal in memory: a walk has few lines."""
        self._lines[line] = seal
        self._begun[line.beginning] = _Seal.decode(seal).begun
        return seal

    def _about_beginning(self, line: Line) -> bytes:
        return f"line {self._plan} {line.counter} {line.reclaimer} {line.walk}".encode()

    def _about_line(self, line: Line) -> bytes:
        return f"renewed {self._plan} {line.text}".encode()

    def _about_end(self, token: Token) -> bytes:
        return f"end {self._plan} {token.ended_by} {token.digest}".encode()
