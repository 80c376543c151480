"""Exchange of rosters: nodes ask each other for a newer one.

When a session begins, and when this node has a newer roster, it tells the neighbour the number of
its roster. Who has a newer one answers with it; who has an older one asks back. What arrives is
checked as if the owner had brought it (`NodeDirectory.join`).
"""

from __future__ import annotations

from collections.abc import Callable, Coroutine
from contextlib import suppress
from typing import Any

from walklearn.node.disk.directory import NodeDirectory
from walklearn.node.process.logs import Log
from walklearn.node.wire.roster import Roster
from walklearn.node.wire.session import Refused, Unanswered, Undelivered
from walklearn.node.wire.transport import Transport

_SECONDS = 20.0


class Rosters:
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
        self.current = directory.roster

    @property
    def _number(self) -> int:
        return 0 if self.current is None else self.current.number

    def refresh(self) -> None:
        """Read the roster on disk again."""
        self.current = self._directory.roster

    def tell(self, neighbour: str) -> None:
        """Tell it the number of the roster here, to get a newer one or to be asked for it."""
        if self._directory.plan.roster_signer is not None:
            self._spawn(self._ask(neighbour))

    async def answer(self, caller: str, message: bytes) -> bytes:
        """Answer with the roster if the caller has an older one; ask for a newer one."""
        if not message.isdigit() or len(message) > 18:
            raise Refused("malformed message", "the number of a roster is expected")
        theirs = int(message)
        if theirs > self._number:
            self.tell(caller)
        return self.current.encode() if self.current is not None and self._number > theirs else b""

    async def _ask(self, neighbour: str) -> None:
        with suppress(Undelivered, Unanswered, Refused):
            number = str(self._number).encode()
            content = await self._transport.call(neighbour, "Roster", number, _SECONDS)
            try:
                roster = self._newer(content)
            except Exception as error:  # whatever anybody brings, the node goes on
                self._log.warning("roster refused", neighbour=self._name(neighbour), reason=error)
                return
            if roster is not None:
                facts = {"number": roster.number, "participants": len(roster.participants)}
                self._log.info("newer roster", **facts, by=self._name(neighbour))
                self._changed()

    def _newer(self, content: bytes) -> Roster | None:
        """The roster, which is taken; None if there is none, or (from another too) it is here."""
        signer = self._directory.plan.roster_signer
        if not content or signer is None:
            return None
        if Roster.decode(content, signer).number <= self._number:
            return None
        self.current = self._directory.join(content)
        return self.current
