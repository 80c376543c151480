"""The protocol of a node, pure: (state, event) → (state, effects).

No sockets, clock, disk or randomness are in here; `events` and `state` say what goes in and out.

A runtime feeds `handle` one event after the other and carries the effects out in their order,
each `Commit` being on disk before the next effect, all commits of an event before the next event.
Whenever `state.wants_visit` it feeds a `Visit`, and at `state.wakes_at` a `Tick`.

**Exactly once.** A handover is named by its *mark*: (line, hop). Every offer of the token has a
mark of its own and one receiver.

- The sender commits "leaving for R, with this mark" before it sends, and forgets when R answers.
- R commits the token before it answers. It takes a mark only if it is newer than all it has taken
  part in: the same mark twice is answered "accepted" and ignored; an older line is answered
  "obsolete". Either way the sender forgets. For a newer hop to exist the older must have arrived,
  so "accepted" is true.
- What R refuses stays refused, so a refusal proves that the token is still the sender's, as does
  a connection that never was, if no earlier attempt is in doubt. Then the proposal counts as
  rejected: the token stays and works on.
- With any attempt in doubt the sender tries the same receiver again, until the plan's
  `reclaim_after_seconds`; then it goes on with a new line, (largest counter + 1, own fingerprint).
- Whoever knows a newer line lets the token of an older one die. Lines are ordered, so in the end
  one lives, also if two nodes begin a walk at once, and of two final models the newer line wins.

**Durability.** One commit a handover on either side: the receiver makes its visit before it
commits, so the updated token and whom it leaves for are one transaction; forgetting is written
with the next commit or soon (`Remember`), for if it is lost the token is offered again and found
to be a duplicate. Visits that stay are not written: after a crash they are made again, and nobody
has seen them. The count of contributions is part of each commit, so none can be seen uncharged.

**The table.** What each event does in each state; … is "nothing".

>>> print(table())
event          idle      holding   handing over  finished
Started        …         …         resend        …
Tick           rest      rest      retry         rest
PeersChanged   peers     peers     peers         peers
NeighbourUp    up        up        up_retry      up
NeighbourDown  down      down      down          down
Announced      hear      hear      hear          hear
TokenArrived   receive   receive   receive       receive
Visit          …         work      …             …
Answered       …         …         answered      …
NotSent        …         …         not_sent      …
Unknown        …         …         unknown       …
FinalArrived   learn     learn     learn         learn
FinalAnswered  told      told      told          told
StartWalk      start     start     start         start
ResumeWalk     resume    holds     resume        done
StopAsked      stop      stop      stop          stop
StoreFailed    undo      undo      undo          undo
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

from walklearn.node.events import (
    Announced,
    Answered,
    Commit,
    Effect,
    Event,
    FinalAnswered,
    FinalArrived,
    Greet,
    NeighbourDown,
    NeighbourUp,
    Note,
    NotSent,
    PeersChanged,
    Remember,
    Reply,
    ResumeWalk,
    SendFinal,
    SendToken,
    Started,
    StartWalk,
    StopAsked,
    StoreFailed,
    Tick,
    TokenArrived,
    Unknown,
    Visit,
)
from walklearn.node.local_update import DivergedError, Draws, LocalUpdate
from walklearn.node.messages import Line, Mark, Outcome, Receipt, Token
from walklearn.node.state import Handover, Link, Phase, Place, Record, State

Result = tuple[State, list[Effect]]
Handler = Callable[[State, Any], Result]

# How many refused handovers are kept in mind; honest neighbours have one under way at a time.
_REFUSALS_KEPT = 256


def recover(
    fingerprint: str, local: LocalUpdate, neighbours: Sequence[str], record: Record | None = None
) -> State:
    """The state of a process that has just begun, from the record on disk; feed `Started` next."""
    return State(fingerprint, local, tuple(sorted(neighbours)), record or Record())


def handle(state: State, event: Event) -> Result:
    """What the event makes of the node, and what is to be done about it, in this order."""
    handler = _TABLE[type(event)][state.phase]
    if handler is None:
        return state, []
    after, effects = handler(state, event)
    if _news(after) != _news(state):
        effects += [Greet(each) for each in after.neighbours if _is_up(after, each)]
    return after, effects


# ── the token arrives, is worked on, and leaves ──────────────────────────────────────────────


def receive(state: State, event: TokenArrived) -> Result:
    """Take the token if its mark is new, and make the visit before anything is written."""
    token, newest = event.token, state.record.newest
    if newest is not None and token.mark <= newest:
        known = token.line == newest.line
        outcome = Outcome.ACCEPTED if known else Outcome.OBSOLETE
        return state, [Reply(Receipt(outcome, newest=newest.line))]
    reason = _why_not(state, event)
    if reason:
        return _refuse(state, token.mark, reason)
    record = replace(state.record, newest=token.mark, token=token, place=Place.HERE, receiver=None)
    refused = tuple(mark for mark in state.refused if mark > token.mark)
    taken = replace(state, record=record, handover=None, refused=refused, rests_until=None)
    try:
        state, after = _visit(taken, event.draws, event.now)
    except DivergedError as error:
        return _refuse(state, token.mark, str(error))
    accepted = Reply(Receipt(Outcome.ACCEPTED, newest=token.line))
    return state, [Commit(state.record), accepted, *after]


def work(state: State, event: Visit) -> Result:
    """Another visit of the token that stayed; written only if something leaves the node."""
    try:
        after, effects = _visit(state, event.draws, event.now)
    except DivergedError as error:
        return _rest(state, event.now), [Note("diverged", str(error))]
    if after.phase is Phase.HOLDING:
        return after, effects
    return after, [Commit(after.record), *effects]


def _visit(state: State, draws: Draws, now: float) -> Result:
    """Update; finish, or propose and offer, or stay."""
    record = state.record
    assert record.token is not None
    token, contributions = state.local.visit(record.token, draws, record.contributions)
    record = replace(record, token=token, contributions=contributions)
    if token.updates == state.local.plan.updates:
        return _finish(replace(state, record=record), replace(token, final=True))
    receiver, silent = state.next_holder(float(draws.uniforms[0]))
    if receiver is None:
        notes: list[Effect] = [Note("silent neighbour")] if silent else []
        return replace(state, record=record), notes
    offered = replace(token, hop=token.hop + 1)
    record = replace(
        record, newest=offered.mark, token=offered, place=Place.LEAVING, receiver=receiver
    )
    handover = Handover(since=now, doubtful=False)
    return replace(state, record=record, handover=handover), [SendToken(receiver, offered)]


def _finish(state: State, final: Token) -> Result:
    """The plan's updates are done: this is the final model."""
    newest = max(state.record.newest or final.mark, final.mark)
    record = replace(
        state.record, newest=newest, token=None, place=Place.GONE, receiver=None, final=final
    )
    state = replace(state, record=record, handover=None)
    return _spread(state, [Note("finished")])


# ── what becomes of an offer ─────────────────────────────────────────────────────────────────


def resend(state: State, event: Started) -> Result:
    """The process ended with an offer under way: its outcome is in doubt."""
    return _send(replace(state, handover=Handover(since=event.now, doubtful=True)))


def _send(state: State) -> Result:
    token, receiver = state.record.token, state.record.receiver
    assert token is not None
    assert receiver is not None
    handover = replace(_handover(state), retry_at=None)
    return replace(state, handover=handover), [SendToken(receiver, token)]


def answered(state: State, event: Answered) -> Result:
    """The receiver has spoken: forget the token, or take it back."""
    if not _is_about_offer(state, event.mark):
        return state, []
    receipt = event.receipt
    if receipt.outcome is Outcome.REFUSED:
        return _take_back(state, receipt.reason)
    if receipt.outcome is Outcome.OBSOLETE:
        if receipt.newest is None or receipt.newest <= event.mark.line:
            return unknown(state, Unknown(event.mark, event.now))  # not what an honest node says
        state = _heard_of(state, receipt.newest)
    record = replace(state.record, place=Place.GONE, receiver=None)
    notes = [Note("obsolete")] if receipt.outcome is Outcome.OBSOLETE else [Note("handed over")]
    return replace(state, record=record, handover=None), [Remember(record), *notes]


def not_sent(state: State, event: NotSent) -> Result:
    """This attempt did not arrive; but an earlier one may have."""
    if not _is_about_offer(state, event.mark):
        return state, []
    if _handover(state).doubtful:
        return unknown(state, Unknown(event.mark, event.now))
    return _take_back(state, "no connection")


def unknown(state: State, event: Unknown) -> Result:
    """Try the same receiver again, later."""
    if not _is_about_offer(state, event.mark):
        return state, []
    retry_at = event.now + state.local.plan.time_limits.retry_after_seconds
    handover = replace(_handover(state), doubtful=True, retry_at=retry_at)
    return replace(state, handover=handover, links=_silenced(state)), []


def retry(state: State, event: Tick) -> Result:
    """Try again, or after all that time go on with a new line."""
    state, _ = rest(state, event)
    handover = _handover(state)
    if state.rests_until is not None:
        return state, []
    if event.now >= handover.since + state.local.plan.time_limits.reclaim_after_seconds:
        return _reclaim(state)
    if handover.retry_at is not None and event.now >= handover.retry_at:
        return _send(state)
    return state, []


def _take_back(state: State, reason: str) -> Result:
    """A rejection: the token never left. The next offer has a new mark."""
    links = _silenced(state)
    record = replace(state.record, place=Place.HERE, receiver=None)
    state = replace(state, record=record, handover=None, links=links)
    return state, [Remember(record), Note("rejected", reason)]


def _reclaim(state: State) -> Result:
    """Go on from the token that was offered, as a new line, which outlives the one in doubt."""
    token = state.record.token
    assert token is not None
    return _begin(state, replace(token, line=_next_line(state, token.line.walk)))


def _begin(state: State, token: Token) -> Result:
    record = replace(state.record, newest=token.mark, token=token, place=Place.HERE, receiver=None)
    state = replace(state, record=record, handover=None, rests_until=None)
    return state, [Commit(record), Note("new line", f"counter {token.line.counter}")]


def _next_line(state: State, walk: str) -> Line:
    newest = state.record.newest_line
    return Line(1 if newest is None else newest.counter + 1, state.fingerprint, walk)


# ── neighbours ───────────────────────────────────────────────────────────────────────────────


def peers(state: State, event: PeersChanged) -> Result:
    """Neighbours have joined or left; the degree is announced anew (by `handle`)."""
    neighbours = tuple(sorted(event.neighbours))
    links = {each: state.links.get(each, Link()) for each in neighbours}
    return replace(state, neighbours=neighbours, links=links), []


def up(state: State, event: NeighbourUp) -> Result:
    """It answers: tell it what it does not know yet, also the final model."""
    if event.neighbour not in state.neighbours:
        return state, []
    links = state.with_link(event.neighbour, up=True, told=event.told)
    state, effects = hear(replace(state, links=links), event)
    if state.announcement(event.neighbour) != event.told:
        effects.append(Greet(event.neighbour))
    return state, effects


def up_retry(state: State, event: NeighbourUp) -> Result:
    """The receiver is back: no need to wait for the time to try again."""
    state, effects = up(state, event)
    waits = state.handover is not None and state.handover.retry_at is not None
    if waits and event.neighbour == state.record.receiver:
        state, sent = _send(state)
        effects += sent
    return state, effects


def hear(state: State, event: NeighbourUp | Announced) -> Result:
    """Note what a neighbour says of itself and of lines; it may lack the final model."""
    if event.neighbour not in state.neighbours:
        return state, []
    state = replace(state, links=state.with_link(event.neighbour, theirs=event.theirs))
    before = state.record
    for line in (event.theirs.newest, event.theirs.final):
        state = state if line is None else _heard_of(state, line)
    return _spread(state, [] if state.record is before else [Remember(state.record)])


def down(state: State, event: NeighbourDown) -> Result:
    """It does not answer: from now on a proposal to go there is a rejection."""
    if event.neighbour not in state.neighbours:
        return state, []
    links = state.with_link(event.neighbour, up=False, final_sent=None)
    return replace(state, links=links), []


def _heard_of(state: State, line: Line) -> State:
    """A token of an older line dies here; what was contributed to it stays counted."""
    record = state.record
    if record.newest_line is not None and line <= record.newest_line:
        return state
    record = replace(record, newest=Mark(line, 0), place=Place.GONE, receiver=None)
    return replace(state, record=record, handover=None)


# ── the end ──────────────────────────────────────────────────────────────────────────────────


def learn(state: State, event: FinalArrived) -> Result:
    """Keep the final model of the newest line, and tell it on. A token of a newer line works on."""
    final, known = event.token, state.record.final_line
    if event.sender not in state.neighbours:
        return state, [Reply(Receipt(Outcome.REFUSED, "you are not a neighbour of this node."))]
    if known is not None and final.line <= known:
        outcome = Outcome.ACCEPTED if final.line == known else Outcome.OBSOLETE
        return state, [Reply(Receipt(outcome, newest=known))]
    record = replace(state.record, final=final)
    if record.newest is None or final.line >= record.newest.line:
        newest = max(record.newest or final.mark, final.mark)
        record = replace(record, newest=newest, place=Place.GONE, receiver=None)
    handover = state.handover if record.place is Place.LEAVING else None
    state = replace(state, record=record, handover=handover)
    accepted = Reply(Receipt(Outcome.ACCEPTED, newest=final.line))
    links = state.with_link(event.sender, final_sent=final.line)
    return _spread(replace(state, links=links), [Commit(record), accepted])


def told(state: State, event: FinalAnswered) -> Result:
    """If the final model did not arrive, it is sent again when the neighbour answers again."""
    arrived = event.receipt is not None and event.receipt.outcome is not Outcome.REFUSED
    if arrived or event.neighbour not in state.neighbours:
        return state, []
    return replace(state, links=state.with_link(event.neighbour, final_sent=None)), []


def _spread(state: State, effects: list[Effect]) -> Result:
    """Send the final model to every neighbour that answers and does not have it."""
    final = state.record.final
    if final is None:
        return state, effects
    for each, link in state.links.items():
        has = (
            link.theirs is not None
            and link.theirs.final is not None
            and link.theirs.final >= final.line
        )
        if link.up and not has and link.final_sent != final.line:
            state = replace(state, links=state.with_link(each, final_sent=final.line))
            effects.append(SendFinal(each, final))
    return state, effects


# ── the owner, the clock, the disk ───────────────────────────────────────────────────────────


def start(state: State, event: StartWalk) -> Result:
    """Begin a walk, if none is known here."""
    if state.record.newest is not None:
        return _no(
            state,
            "a walk has begun already. If the node that holds its token is gone for good, go on "
            "from the newest model seen here with --resume.",
        )
    return _begun(state, state.local.first_token(_next_line(state, event.walk), event.model))


def resume(state: State, event: ResumeWalk) -> Result:
    """Go on with a new line from the newest model seen here, or from the start if there is none."""
    seen = state.record.newest_model
    if seen is None:
        return _begun(state, state.local.first_token(_next_line(state, event.walk), event.model))
    token = replace(seen, line=_next_line(state, seen.line.walk))
    if not token.final:
        return _begun(state, token)
    state, effects = _finish(state, token)
    return state, [Commit(state.record), Reply(Receipt(Outcome.ACCEPTED)), *effects]


def holds(state: State, event: ResumeWalk) -> Result:
    """No need to resume."""
    del event
    return _no(state, "this node holds the token: there is nothing to resume.")


def done(state: State, event: ResumeWalk) -> Result:
    """No need to resume."""
    del event
    return _no(state, "the walk is finished: there is nothing to resume.")


def stop(state: State, event: StopAsked) -> Result:
    """Take no token from now on, and end once the one that is here has left by the walk's rule."""
    del event
    return replace(state, stopping=True), []


def rest(state: State, event: Tick) -> Result:
    """The rest after a failure is over."""
    if state.rests_until is not None and event.now >= state.rests_until:
        state = replace(state, rests_until=None)
    return state, []


def undo(state: State, event: StoreFailed) -> Result:
    """Nothing was written and nothing sent: refuse what was asked, or try again later."""
    failed, reason = event.event, f"this node cannot write to its disk: {event.reason}"
    if isinstance(failed, TokenArrived):
        return _refuse(state, failed.token.mark, reason)
    if isinstance(failed, FinalArrived | StartWalk | ResumeWalk):
        return _no(state, reason)
    return _rest(state, event.now), [Note("store failed", event.reason)]


# ── small parts ──────────────────────────────────────────────────────────────────────────────


def _why_not(state: State, event: TokenArrived) -> str:
    """Why a token that would be new is not taken; empty if it is."""
    if event.sender not in state.neighbours:
        return "you are not a neighbour of this node."
    if event.token.mark in state.refused:
        return "this handover was refused before."
    return "this node is about to stop." if state.stopping else ""


def _refuse(state: State, mark: Mark, reason: str) -> Result:
    """Turn a handover down, for good: a late copy of it must not be taken either."""
    refused = (*state.refused, mark)[-_REFUSALS_KEPT:]
    return _no(replace(state, refused=refused), reason)


def _no(state: State, reason: str) -> Result:
    return state, [Reply(Receipt(Outcome.REFUSED, reason, state.record.newest_line))]


def _begun(state: State, token: Token) -> Result:
    state, (commit, *notes) = _begin(state, token)
    return state, [commit, Reply(Receipt(Outcome.ACCEPTED, newest=token.line)), *notes]


def _rest(state: State, now: float) -> State:
    return replace(state, rests_until=now + state.local.plan.time_limits.retry_after_seconds)


def _handover(state: State) -> Handover:
    assert state.handover is not None
    return state.handover


def _is_about_offer(state: State, mark: Mark) -> bool:
    return state.record.token is not None and state.record.token.mark == mark


def _silenced(state: State) -> Any:
    """The receiver counts as silent until it answers a greeting again."""
    receiver = state.record.receiver
    if receiver not in state.neighbours:
        return state.links
    return state.with_link(receiver, up=False)


def _is_up(state: State, neighbour: str) -> bool:
    return state.links.get(neighbour, Link()).up


def _news(state: State) -> Any:
    """What all neighbours should hear of when it changes."""
    return state.neighbours, state.record.newest_line, state.record.final_line


_PHASES = (Phase.IDLE, Phase.HOLDING, Phase.HANDING_OVER, Phase.FINISHED)
_ROWS: dict[type[Any], Sequence[Handler | None]] = {
    Started: (None, None, resend, None),
    Tick: (rest, rest, retry, rest),
    PeersChanged: (peers,) * 4,
    NeighbourUp: (up, up, up_retry, up),
    NeighbourDown: (down,) * 4,
    Announced: (hear,) * 4,
    TokenArrived: (receive,) * 4,
    Visit: (None, work, None, None),
    Answered: (None, None, answered, None),
    NotSent: (None, None, not_sent, None),
    Unknown: (None, None, unknown, None),
    FinalArrived: (learn,) * 4,
    FinalAnswered: (told,) * 4,
    StartWalk: (start,) * 4,
    ResumeWalk: (resume, holds, resume, done),
    StopAsked: (stop,) * 4,
    StoreFailed: (undo,) * 4,
}
_TABLE = {event: dict(zip(_PHASES, row, strict=True)) for event, row in _ROWS.items()}


def table() -> str:
    """The table of states and events, for people."""
    lines = [["event", *(phase.value for phase in _PHASES)]]
    lines += [
        [event.__name__, *("…" if each is None else each.__name__ for each in row)]
        for event, row in _ROWS.items()
    ]
    widths = [max(map(len, column)) for column in zip(*lines, strict=True)]
    return "\n".join(
        "  ".join(cell.ljust(width) for cell, width in zip(line, widths, strict=True)).rstrip()
        for line in lines
    )
