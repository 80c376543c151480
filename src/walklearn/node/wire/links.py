"""The link to a neighbour: one session, which either end may have opened.

A link dials when something is to be said and there is no session. Of two that can dial each
other, the one with the larger fingerprint does it at once and the other gives it a moment, so
that there are seldom two sessions; if there are, the newer one is used and the first of the two
ends retires the older. A neighbour without an address has to dial itself.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Callable

from walklearn.node.wire.handshake import SECONDS, dial
from walklearn.node.wire.identity import Identity, Invite
from walklearn.node.wire.session import Answer, Session, Unanswered, Undelivered

# How long to leave it to the neighbour to dial.
PATIENCE_SECONDS = 0.1
# Sessions with one neighbour; it needs a second only while the first retires.
MAX_SESSIONS = 4
_LASTING_SECONDS = 2.0  # a session that ended sooner is not replaced at once


class Link:
    """Sessions with one neighbour.

    tell: called for every new session. lost: called as soon as the last session breaks, unless it
    lasted less than `_LASTING_SECONDS`: a neighbour that closes connections at once is not dialled
    in a tight loop.
    """

    def __init__(
        self,
        neighbour: Invite,
        identity: Identity,
        answer: Answer,
        tell: Callable[[Session], None],
        lost: Callable[[], None],
        largest_message: int,
    ) -> None:
        self.neighbour = neighbour
        self._identity, self._answer, self._tell = identity, answer, tell
        self._lost, self._largest = lost, largest_message
        self.sessions: list[Session] = []  # includes retired sessions that still wait for answers
        self._dialling: asyncio.Task[None] | None = None
        self._changed = asyncio.Event()
        self._dials_first = identity.fingerprint > neighbour.fingerprint
        self._closed, self._opened_at = False, 0.0

    async def call(self, method: str, message: bytes, timeout_seconds: float) -> bytes:
        """Call the neighbour and return its reply; `session` says how else a call can end."""
        session = self.session or await self._connected(timeout_seconds)
        if len(message) > self._largest:
            raise Undelivered(f"the message has {len(message)} bytes, at most are {self._largest}")
        return await session.call(method, message, timeout_seconds)

    @property
    def session(self) -> Session | None:
        """The newest session that takes calls."""
        for each in reversed(self.sessions):
            if not each.retired:
                return each
        return None

    def new_session(self, certificate: bytes) -> Session:
        """Make a session, to be opened by either end, with the holder of this certificate's key."""
        return Session(self._answer, self._ended, self._largest, certificate)

    def opened(self, session: Session) -> None:
        """Use this session from now on."""
        if self._closed:
            session.abort()
            return
        if self._dials_first:
            for each in self.sessions:
                each.retire()
        self.sessions.append(session)
        for each in self.sessions[:-MAX_SESSIONS]:  # it dials and retires none
            each.abort()
        self._opened_at = asyncio.get_running_loop().time()
        self._changed.set()
        self._tell(session)

    def close(self) -> None:
        """End at once; what was under way is `Unanswered`."""
        self._closed = True
        if self._dialling is not None:
            self._dialling.cancel()
        for each in list(self.sessions):
            each.abort()

    def _ended(self, session: Session) -> None:
        if session not in self.sessions:  # it never was open
            return
        self.sessions.remove(session)
        lasted = asyncio.get_running_loop().time() - self._opened_at
        if not (self._closed or self.sessions) and lasted > _LASTING_SECONDS:
            self._lost()

    async def _connected(self, timeout_seconds: float) -> Session:
        """Wait for a session: dial, unless the neighbour does first."""
        if not self.neighbour.address:
            raise Undelivered(f"{self.neighbour.name} has no address and has not dialled")
        if self._dialling is None:
            self._dialling = asyncio.get_running_loop().create_task(self._dial())
            self._dialling.add_done_callback(self._dialled)
        try:
            async with asyncio.timeout(timeout_seconds):
                await asyncio.shield(self._dialling)
        except TimeoutError:
            pass
        except asyncio.CancelledError:
            if (task := asyncio.current_task()) is not None and task.cancelling():
                raise  # it is the caller who is to stop, not the link that was closed
        if (session := self.session) is None:
            raise Undelivered(f"cannot connect to {self.neighbour.address}")
        return session

    async def _dial(self) -> None:
        if not self._dials_first:
            self._changed.clear()
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(PATIENCE_SECONDS):
                    await self._changed.wait()
                    return
        address, fingerprint = self.neighbour.address, self.neighbour.fingerprint
        try:
            async with asyncio.timeout(SECONDS):
                session = await dial(self._identity, address, fingerprint, self.new_session)
        except (OSError, Unanswered, TimeoutError) as error:
            raise Undelivered(f"cannot connect to {address}: {error}") from None
        self.opened(session)

    def _dialled(self, task: asyncio.Task[None]) -> None:
        self._dialling = None
        if not task.cancelled():
            task.exception()  # whoever waited for it has heard
