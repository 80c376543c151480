"""Signs of life: nodes greet each other, compare plans, and so know who is there.

Every neighbour is greeted when it is new, when there is news, and every few seconds. A greeting
that is answered makes the link up for this side; the announcements in both say the rest. The plan
goes along until a neighbour has answered once, so that a difference can be told by its keys. What
the node has released of its rows goes along only when the neighbour has shown the same plan: to
another plan's neighbour it would be one more release of the same rows.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import replace
from time import monotonic
from typing import Any

from walklearn.node.agreement.plan import Plan
from walklearn.node.process.logs import Log
from walklearn.node.process.seals import Seals
from walklearn.node.protocol.events import Announced, Event, NeighbourDown, NeighbourUp
from walklearn.node.protocol.fields import LONGEST_PLAN, MessageError
from walklearn.node.protocol.messages import Greeting, decode_greeting, encode_greeting
from walklearn.node.protocol.state import State
from walklearn.node.wire.session import Refused, Unanswered, Undelivered
from walklearn.node.wire.transport import Transport

# What was on its way before the goodbye was heard is still answered.
_LAST_SECONDS = 0.05
# News waits so long after a greeting: a neighbour with news for ever must not keep all busy.
_NEWS_SECONDS = 0.1
# Each greeting without an answer doubles the wait for the next one's, so many times at most.
_MAX_LATE = 3


class Greetings:
    """Whom to greet, and what was wrong last. state: the node's state at this moment."""

    def __init__(
        self,
        name: str,
        plan: Plan,
        state: Callable[[], State],
        dispatch: Callable[[Event], Awaitable[Any]],
        transport: Transport,
        seals: Seals,
        log: Log,
    ) -> None:
        self._name, self._plan, self._state, self._dispatch = name, plan, state, dispatch
        self._transport, self._seals, self._log = transport, seals, log
        self._wishes: dict[str, asyncio.Event] = {}
        self._tasks: dict[str, asyncio.Task[None]] = {}
        self._trouble: dict[str, str] = {}
        self._late: dict[str, int] = {}  # greetings in a row without an answer
        self._names: Mapping[str, str] = {}
        self._agreed: set[str] = set()
        self._leaving = False

    def set_neighbours(self, names: Mapping[str, str], spawn: Callable[[Any], Any]) -> None:
        """Greet these from now on, and no others. names: fingerprint -> name."""
        self._names = names
        for gone in self._tasks.keys() - names.keys():
            self._tasks.pop(gone).cancel()
            self._trouble.pop(gone, None)
        for neighbour in names.keys() - self._tasks.keys():
            self._wishes[neighbour] = asyncio.Event()
            self._tasks[neighbour] = spawn(self._greet_for_ever(neighbour))

    def greet(self, neighbour: str) -> None:
        """Greet now, because there is news."""
        if neighbour in self._tasks:
            self._wishes[neighbour].set()

    async def say_goodbye(self, timeout_seconds: float) -> None:
        """Tell the neighbours that this node reaches them no more, so that none offers it a token.

        An offer that met the end of the process would be in doubt until it is reclaimed.
        """
        self._leaving = True
        for task in self._tasks.values():
            task.cancel()
        there = [neighbour for neighbour in self._names if self._is_up(neighbour)]
        await asyncio.gather(*(self._say(each, timeout_seconds) for each in there))
        if there:
            await asyncio.sleep(_LAST_SECONDS)

    async def _say(self, neighbour: str, timeout_seconds: float) -> None:
        message = encode_greeting(self._greeting(neighbour))
        with contextlib.suppress(Undelivered, Unanswered, Refused):
            await self._transport.call(neighbour, "Hello", message, timeout_seconds)

    async def answer(self, caller: str, greeting: Greeting) -> bytes:
        """Answer a neighbour's greeting; `Refused` if its plan differs."""
        if greeting.plan_digest != self._plan.digest:
            self._agreed.discard(caller)
            difference = self._difference(greeting)
            self._tell(caller, difference)
            raise Refused("plan differs", difference)
        self._agreed.add(caller)
        greeting = self._checked(caller, greeting)
        await self._dispatch(Announced(caller, greeting.announcement, monotonic()))
        if not self._is_up(caller) and not self._leaving:
            self.greet(caller)
        return encode_greeting(self._greeting(caller))

    async def _greet_for_ever(self, neighbour: str) -> None:
        wish = self._wishes[neighbour]
        while True:
            wish.clear()
            await self._greet(neighbour)
            await asyncio.sleep(_NEWS_SECONDS)
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(self._state().hello_every_seconds):
                    await wish.wait()

    async def ask_all(self) -> None:
        """Greet every neighbour now, and come back when all have answered or cannot."""
        await asyncio.gather(*(self._greet(each) for each in self._names))

    async def _greet(self, neighbour: str) -> None:
        was_up = self._is_up(neighbour)
        try:
            if neighbour not in self._agreed:
                await self._exchange(neighbour, self._first_greeting(neighbour))
            begin, greeting = monotonic(), self._greeting(neighbour)
            theirs = await self._exchange(neighbour, greeting)
        except (Undelivered, Unanswered, Refused, MessageError) as error:
            late = self._late.pop(neighbour, 0)
            if isinstance(error, Unanswered):
                self._late[neighbour] = min(late + 1, _MAX_LATE)
            self._agreed.discard(neighbour)
            self._tell(neighbour, str(error))
            if was_up:
                await self._dispatch(NeighbourDown(neighbour))
            return
        self._tell(neighbour, "")
        self._late.pop(neighbour, None)
        now, ours = monotonic(), greeting.announcement
        await self._dispatch(NeighbourUp(neighbour, ours, theirs.announcement, now, now - begin))

    async def _exchange(self, neighbour: str, greeting: Greeting) -> Greeting:
        """Greet and return the answer; `Refused` if the plans differ, whoever finds that out."""
        limit = self._state().greeted_within_seconds(neighbour, self._late.get(neighbour, 0))
        message = encode_greeting(greeting)
        theirs = decode_greeting(await self._transport.call(neighbour, "Hello", message, limit))
        if theirs.plan_digest != self._plan.digest:
            raise Refused("plan differs", "the neighbour has another plan")
        self._agreed.add(neighbour)
        return self._checked(neighbour, theirs)

    def _checked(self, neighbour: str, greeting: Greeting) -> Greeting:
        """The greeting without lines that no participant has begun."""
        greeting, wrong = self._seals.checked_greeting(greeting)
        if wrong:
            self._log.warning("generation not signed", neighbour=self._names.get(neighbour))
        return greeting

    def _first_greeting(self, neighbour: str) -> Greeting:
        """The first greeting: it has the plan, and nothing that depends on the rows.

        That this node reaches the neighbour is not said either, so it is not used in a proposal.
        """
        greeting = self._greeting(neighbour)
        nothing = replace(greeting.announcement, importance=1.0, reaches_you=False)
        plan = self._plan.canonical[:LONGEST_PLAN]
        return replace(greeting, announcement=nothing, plan=plan)

    def _greeting(self, neighbour: str) -> Greeting:
        announcement = self._state().announcement(neighbour, monotonic())
        if self._leaving:
            announcement = replace(announcement, reaches_you=False)
        return self._seals.on_greeting(Greeting(self._name, self._plan.digest, announcement))

    def _difference(self, greeting: Greeting) -> str:
        try:
            theirs = json.loads(greeting.plan)
            keys = self._plan.differences(theirs if isinstance(theirs, dict) else {})
        except (ValueError, RecursionError):
            keys = []
        return f"our plans differ in {', '.join(keys[:20]) or 'an unknown key'}"

    def _is_up(self, neighbour: str) -> bool:
        return self._state().link(neighbour).up

    def _tell(self, neighbour: str, trouble: str) -> None:
        """Log when a neighbour begins or ceases to answer, not every time in between."""
        if neighbour not in self._tasks or self._trouble.get(neighbour) == trouble:
            return
        self._trouble[neighbour] = trouble
        if trouble:
            name = self._names.get(neighbour)
            self._log.warning("neighbour down", neighbour=name, reason=trouble)
        else:
            self._log.info("neighbour up", neighbour=self._names.get(neighbour))
