"""Drives the protocol: feeds it what happens, carries out what it decides.

One event at a time. The effects of an event are carried out in their order, a `Commit` being on
disk before anything after it; if the disk refuses, nothing of the event happened. All waiting
is here: for the disk, for neighbours, for the time, which is read from a clock that never jumps.

    neighbour ── transport ──▶ event ─▶ protocol.handle ─▶ effects ──▶ store, transport, log
"""

from __future__ import annotations

import asyncio
import contextlib
import math
from collections import defaultdict
from collections.abc import Callable, Coroutine
from functools import lru_cache
from time import monotonic
from typing import Any

from walklearn.node.disk.database import DiskError, StoreError
from walklearn.node.disk.directory import NodeDirectory
from walklearn.node.disk.store import Store
from walklearn.node.process.greetings import Greetings
from walklearn.node.process.logs import Log
from walklearn.node.process.metrics import Counters
from walklearn.node.process.reports import Reports
from walklearn.node.process.rosters import Rosters
from walklearn.node.process.seals import Seals
from walklearn.node.process.status import Watch
from walklearn.node.protocol import events as happened
from walklearn.node.protocol.events import Event
from walklearn.node.protocol.fields import MessageError, Vector
from walklearn.node.protocol.learner import Draws
from walklearn.node.protocol.messages import (
    Outcome,
    Receipt,
    decode_greeting,
    decode_receipt,
    encode_receipt,
)
from walklearn.node.protocol.protocol import handle
from walklearn.node.protocol.record import Place, Record
from walklearn.node.protocol.state import Phase, State
from walklearn.node.protocol.tokens import Token, decode_token
from walklearn.node.wire.identity import Invite
from walklearn.node.wire.roster import LARGEST_ROSTER
from walklearn.node.wire.session import Refused, Unanswered, Undelivered
from walklearn.node.wire.transport import Transport

# A model of this many numbers takes long enough to write that others should not wait for it.
_LARGE_MODEL = 50_000
_PLAN_ROOM = 65_536
_GOODBYE_SECONDS = 2.0
# What the protocol asks to remember is written at the latest after this time.
_REMEMBER_SECONDS = 1.0


class Runtime:
    """A node at work. draw: fresh random numbers for a visit."""

    def __init__(
        self,
        state: State,
        store: Store,
        directory: NodeDirectory,
        draw: Callable[[], Draws],
        log: Log,
        counters: Counters,
    ) -> None:
        self.state = state
        self._reports = Reports(counters, log)
        self.watch = Watch()
        self.failed: BaseException | None = None
        self.changed = asyncio.Event()
        self._store, self._draw = store, draw
        self._limits, self._plan = state.learner.limits, state.learner.plan
        identity = directory.identity
        self.transport = Transport(
            identity, self._answer, self._reports.refused, _largest(state),
            opened=lambda neighbour: self.rosters.tell(neighbour),
            # Find out at once whether a neighbour whose session has ended still answers.
            lost=lambda neighbour: self._greetings.greet(neighbour),
        )  # fmt: skip
        self.rosters = Rosters(
            directory, self.transport, self._spawn, self.changed.set, self._reports.name, log
        )
        self._seals = Seals(
            identity, self._plan.digest, lambda: self.rosters.current, log, store.seals
        )
        self._is_large = self._limits.size >= _LARGE_MODEL
        self._one_at_a_time = asyncio.Lock()
        self._in_order = defaultdict[str, asyncio.Lock](asyncio.Lock)
        self._has_work = asyncio.Event()
        self._writes_later = False
        self._tasks: set[asyncio.Task[Any]] = set()
        self._greetings = Greetings(
            directory.settings.name, self._plan, lambda: self.state, self.dispatch, self.transport,
            self._seals, log,
        )  # fmt: skip
        self._timer: asyncio.TimerHandle | None = None
        self._wakes_at = math.inf

    async def start(self, listen: str, neighbours: list[Invite]) -> int:
        """Listen, greet the neighbours, go on where the last process stopped; return the port."""
        port = await self.transport.listen(listen)
        await self.set_neighbours(neighbours)
        await self.dispatch(happened.Started(monotonic()))
        self._spawn(self._work())
        self._prepare_noise()
        return port

    async def set_neighbours(self, neighbours: list[Invite]) -> None:
        """Talk to these neighbours from now on."""
        self._reports.names = names = {each.fingerprint: each.name for each in neighbours}
        self.transport.set_neighbours(neighbours)
        await self.dispatch(happened.NewNeighbours(tuple(names)))
        self._greetings.set_neighbours(names, self._spawn)

    async def start_walk(self, walk: str, model: Vector, force: bool = False) -> Receipt | None:
        """Begin a walk, if none of the neighbours knows of one that is under way.

        Return once those that answer have heard of it: if this node ends now, they can start it
        anew.
        """
        await self._greetings.ask_all()
        receipt = await self.dispatch(happened.StartWalk(walk, model, monotonic(), force))
        if not _is_refusal(receipt):
            await self._greetings.ask_all()
        return receipt

    async def stop(self, timeout_seconds: float) -> bool:
        """Hand the token over, if it is here, and stop; return whether the node ends without it."""
        if self.failed is None:
            await self.dispatch(happened.StopAsked())
        deadline = monotonic() + timeout_seconds
        while not (self.state.may_stop or self.failed) and (left := deadline - monotonic()) > 0:
            await self.wait_for_change(left)
        await self._greetings.say_goodbye(_GOODBYE_SECONDS)
        for task in list(self._tasks):
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)
        if self._timer is not None:
            self._timer.cancel()
        await self.transport.close()
        async with self._one_at_a_time:  # what the disk has begun it finishes
            self._keep_seals(self.state.record)
            return self.state.record.place is Place.GONE

    async def wait_for_change(self, timeout_seconds: float) -> None:
        """Wait until something has happened that bears on the end, or the time is over."""
        self.changed.clear()
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(timeout_seconds):
                await self.changed.wait()

    async def dispatch(self, event: Event) -> Receipt | None:
        """Let one event happen; return the receipt if the event asks for a reply.

        A caller that gives up must not leave an event half done: where the disk is waited for,
        it goes on without the caller.
        """
        if not self._is_large:
            return await self._happen(event)
        return await asyncio.shield(asyncio.ensure_future(self._happen(event)))

    async def _happen(self, event: Event) -> Receipt | None:
        async with self._one_at_a_time:
            if self.failed is not None:
                raise self.failed
            receipt = await self._carry_out(event)
        state = self.state
        if state.wants_visit:
            self._has_work.set()
        wakes_at = state.wakes_at
        if wakes_at is not None and wakes_at < self._wakes_at:
            self._set_timer(wakes_at)
        if state.stopping or state.phase is Phase.FINISHED:
            self.changed.set()  # only then does anyone wait for it
        return receipt

    async def _carry_out(self, event: Event) -> Receipt | None:
        before = self.state
        after, effects = handle(before, event)
        receipt: Receipt | None = None
        worked = isinstance(event, happened.Work) and after.record is not before.record
        self._reports.work(event, int(worked))  # before the commit, which writes the counts too
        for effect in effects:
            match effect:
                case happened.Commit(record):
                    try:
                        await self._write(record)
                    except StoreError as error:
                        self._reports.work(event, -int(worked))
                        self._reports.disk_error(error)
                        failed = happened.StoreFailed(event, str(error), monotonic())
                        return await self._carry_out(failed)
                case happened.Reply(answer):
                    receipt = answer
                case happened.SendToken(receiver, token):
                    self._spawn(self._hand_over(receiver, self._seals.on_token(token)))
                case happened.Remember(record):
                    self._remember(record)
                case happened.Greet(neighbour):
                    self._greetings.greet(neighbour)
                case happened.Note():
                    self._reports.note(effect)
                case happened.SendFinal(neighbour, token):
                    self._spawn(self._send_final(neighbour, self._seals.on_token(token)))
        self.state = after
        self.watch.saw(event, before, after)
        if isinstance(event, happened.Work):
            self._prepare_noise()
        if isinstance(event, happened.TokenArrived) and _is_refusal(receipt):
            self._reports.refused("token not taken", event.sender)
        return receipt

    # ── the disk ─────────────────────────────────────────────────────────────────────────────

    async def _write(self, record: Record) -> None:
        self._store.counted = self._reports.counters.as_dict()
        try:
            self._keep_seals(record)
            if self._is_large:
                await asyncio.to_thread(self._store.commit, record)
            else:
                self._store.commit(record)
        except DiskError as error:
            self._fail(error)
            raise

    def _keep_seals(self, record: Record) -> None:
        """Let the next record bring its seals: they must be provable after a restart too."""
        if record.token is not None and record.place is Place.LEAVING:
            self._seals.on_token(record.token)  # if its line was renewed here, that is signed
        self._store.seals = self._seals.known(record.newest_line, record.final_line)

    def _fail(self, error: BaseException) -> None:
        """Let nothing happen from now on: what is on the disk is all that can be trusted."""
        self.failed = error
        self.changed.set()

    def _remember(self, record: Record) -> None:
        self._store.later(record)
        if not self._writes_later:
            self._writes_later = True
            self._spawn(self._write_later())

    async def _write_later(self) -> None:
        await asyncio.sleep(_REMEMBER_SECONDS)
        self._writes_later = False
        async with self._one_at_a_time:
            self._store.counted = self._reports.counters.as_dict()
            try:
                self._keep_seals(self.state.record)
                await asyncio.to_thread(self._store.flush)
            except DiskError as error:
                self._fail(error)
            except StoreError as error:  # if it is lost, only work is: the next commit has it too
                self._reports.disk_error(error)

    # ── what neighbours say ──────────────────────────────────────────────────────────────────

    @property
    def participants(self) -> dict[str, str]:
        """The names of all other participants that this node can name, by their fingerprints."""
        roster = self.rosters.current
        listed = {} if roster is None else roster.by_fingerprint
        names = {**self._reports.names, **{each: who.name for each, who in listed.items()}}
        return {each: name for each, name in names.items() if each != self.state.fingerprint}

    def spread_roster(self) -> None:
        """Tell the neighbours of the roster on disk."""
        self.rosters.refresh()
        for neighbour in self._reports.names:
            self.rosters.tell(neighbour)

    async def _answer(self, caller: str, method: str, message: bytes) -> bytes:
        if method == "Roster":
            return await self.rosters.answer(caller, message)
        # In their order: after a greeting that overtook a token, it would be sent again.
        async with self._in_order[caller]:
            return await self._answered(caller, method, message)

    async def _answered(self, caller: str, method: str, message: bytes) -> bytes:
        try:
            if method == "Hello":
                return await self._greetings.answer(caller, decode_greeting(message))
            token = decode_token(message, self._limits)
        except MessageError as error:
            raise Refused("malformed message", str(error)) from None
        if reason := self._seals.refusal(token):
            raise Refused("not signed", reason)
        event: Event = happened.FinalArrived(caller, token, monotonic())
        if method == "Handover":
            event = happened.TokenArrived(caller, token, await self._drawn(), monotonic())
        receipt = await self.dispatch(event)
        assert receipt is not None
        return _encoded(self._seals.on_receipt(receipt))

    # ── what is said to neighbours ───────────────────────────────────────────────────────────

    async def _hand_over(self, receiver: str, token: Token) -> None:
        event: Event
        mark, limit = token.mark, self.state.answer_within_seconds(receiver)
        try:
            reply = await self.transport.call(receiver, "Handover", token.encoded, limit)
            receipt = _decoded(reply)
            if not self._seals.checks_receipt(receipt):
                self._reports.refused("not signed", receiver)
                raise Refused("not signed")  # a line that is nobody's: so it was not taken
            event = happened.Answered(mark, receipt, monotonic())
        except (Undelivered, Refused):
            # Refused by the transport: not this attempt, but an earlier one may have been taken.
            event = happened.NotSent(mark, monotonic())
        except (Unanswered, MessageError) as error:
            self._reports.unanswered(receiver, error)
            event = happened.Unknown(mark, monotonic())
        await self.dispatch(event)

    async def _send_final(self, neighbour: str, token: Token) -> None:
        receipt = None
        limit = self.state.answer_within_seconds(neighbour)
        try:
            reply = await self.transport.call(neighbour, "Final", token.encoded, limit)
            receipt = _decoded(reply)
        except (Undelivered, Unanswered, Refused, MessageError) as error:
            self._reports.final_unanswered(neighbour, error)
        await self.dispatch(happened.FinalAnswered(neighbour, receipt))

    # ── work and time ────────────────────────────────────────────────────────────────────────

    async def _work(self) -> None:
        while True:
            await self._has_work.wait()
            self._has_work.clear()
            while self.state.wants_visit:
                await self.dispatch(happened.Visit(await self._drawn(), monotonic()))
                await asyncio.sleep(0)  # neighbours are heard in between

    async def _drawn(self) -> Draws:
        """Draw the numbers of a visit, in a thread if the noise is not prepared."""
        if self._has_noise:
            return self._draw()
        return await asyncio.to_thread(self._draw)

    def _prepare_noise(self) -> None:
        """Draw the noise of the next visit ahead, in a thread: no handover waits for it."""
        learner = self.state.learner
        if learner.noise is not None and not self._has_noise:
            self._spawn(asyncio.to_thread(learner.noise.prepare, learner.problem.size))

    @property
    def _has_noise(self) -> bool:
        """True if the noise of the next visit is drawn, or none is needed."""
        learner = self.state.learner
        return learner.noise is None or learner.noise.is_prepared(learner.problem.size)

    def _set_timer(self, wakes_at: float) -> None:
        """Set the timer; it is only moved forward, since one that is due too early does no harm."""
        if self._timer is not None:
            self._timer.cancel()
        self._wakes_at = wakes_at
        delay = max(0.0, wakes_at - monotonic())
        self._timer = asyncio.get_running_loop().call_later(delay, self._wake)

    def _wake(self) -> None:
        self._timer, self._wakes_at = None, math.inf
        self._spawn(self.dispatch(happened.Tick(monotonic())))

    def _spawn(self, work: Coroutine[Any, Any, Any]) -> asyncio.Task[Any]:
        task = asyncio.get_running_loop().create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._finished)
        return task

    def _finished(self, task: asyncio.Task[Any]) -> None:
        self._tasks.discard(task)
        if not task.cancelled() and (error := task.exception()) is not None:
            self._fail(error)


def _largest(state: State) -> int:
    """Largest message in bytes: a token, a roster, or a plan that may differ a little."""
    plan = state.learner.plan
    roster = 0 if plan.roster_signer is None else LARGEST_ROSTER
    greeting = 2 * len(plan.canonical) + 32 * plan.nodes + _PLAN_ROOM
    return max(state.learner.limits.largest_token, greeting, roster)


def _is_refusal(receipt: Receipt | None) -> bool:
    return receipt is not None and receipt.outcome is Outcome.REFUSED


# Receipts repeat: the same line was accepted again.
_encoded, _decoded = lru_cache(16)(encode_receipt), lru_cache(16)(decode_receipt)
