"""How the token arrives, is worked on, and leaves; what becomes of an offer.

`protocol` says why it is done this way.
"""

from __future__ import annotations

from collections.abc import Mapping

from walklearn.node.protocol import events as happened
from walklearn.node.protocol.events import (
    Commit,
    Effect,
    Greet,
    Note,
    Remember,
    Reply,
    SendToken,
)
from walklearn.node.protocol.learner import DivergedError, Draws
from walklearn.node.protocol.links import Arrivals, Handover, Link
from walklearn.node.protocol.messages import Outcome, Receipt
from walklearn.node.protocol.neighbours import Result, decline, spread, up
from walklearn.node.protocol.record import Place
from walklearn.node.protocol.state import Phase, State
from walklearn.node.protocol.tokens import Mark, Token
from walklearn.node.protocol.values import replace

# How many refused handovers are kept in mind; honest neighbours have one under way at a time.
_REFUSALS_KEPT = 256


def receive(state: State, event: happened.TokenArrived) -> Result:
    """Take the token if its mark is new, and make the visit before anything is written."""
    token, newest = event.token, state.record.newest
    forked = newest is not None and token.mark <= newest
    if newest is not None and forked and not _is_fork(state, token):
        known = token.line == newest.line
        outcome = Outcome.ACCEPTED if known else Outcome.OBSOLETE
        return state, [Reply(Receipt(outcome, newest=newest.line))]
    reason = _why_not(state, event)
    if reason:
        return refuse(state, token.mark, reason)
    arrived: list[Effect] = [Note("handed over")] if state.proves_arrival(token.mark) else []
    if forked:
        line = state.next_line(token.line.walk, token.updates)
        # Two tokens of one epoch cannot both be right.
        token = replace(token, line=line, hop=0, seal=b"", epoch="")
        arrived.append(Note("forked token", f"hop {event.token.hop}", event.sender))
    # The mark may prove that a neighbour accepted the token this node sent before.
    counted = state.handed_over() if state.proves_arrival(event.token.mark) else state
    counted = counted.came_back(event.token.mark)
    record = replace(
        counted.record, newest=token.mark, token=token, place=Place.HERE, receiver=None,
        memory=state.record.memory.with_token_from(
            event.sender, event.token.mark, event.token.proof
        ),
    )  # fmt: skip
    arrivals = state.arrivals.and_also(event.token)
    taken = replace(counted, record=record, handover=None, arrivals=arrivals, rests_until=None)
    try:
        after_visit, after = _visit(taken, event.draws, event.now)
    except DivergedError as error:
        return refuse(state, event.token.mark, str(error))
    accepted = Reply(Receipt(Outcome.ACCEPTED, newest=event.token.line))
    return after_visit, [Commit(after_visit.record), accepted, *arrived, *after]


def _is_fork(state: State, token: Token) -> bool:
    """Whether this is a second token of a line whose first token has passed here.

    Were it taken for a repetition, each of the two would be dropped where the other has been. One
    with fewer updates than the first had here may be dropped: where all of them are, the one that
    came furthest met one with more hops and more updates, which came further. Otherwise anyone
    could set the walk back by a made-up token of long ago, in the name of the node it is sent to.
    """
    copy = state.record.token
    return (
        state.phase is Phase.IDLE
        and token.line == state.record.newest_line
        and token.mark not in state.refused
        and state.arrivals.contradict(token)
        and copy is not None
        and token.updates >= copy.updates
    )


def work(state: State, event: happened.Visit) -> Result:
    """Make another visit of a token that stayed; write only if something leaves the node."""
    try:
        after, effects = _visit(state, event.draws, event.now)
    except DivergedError as error:
        return take_a_rest(state, event.now), [Note("diverged", str(error))]
    if after.phase is Phase.HOLDING:
        return after, effects
    return after, [Commit(after.record), *effects]


def _visit(state: State, draws: Draws, now: float) -> Result:
    """Update the model; then finish the walk, offer the token to a neighbour, or keep it."""
    record = state.record
    assert record.token is not None
    token, contributions, kept, number = state.learner.visit(
        record.token, draws, record.contributions, record.kept, state.view(record.token)
    )
    record = replace(record, token=token, contributions=contributions, kept=kept)
    state = replace(state, record=record)
    if token.updates == state.learner.plan.updates:
        return finish(state, replace(token, final=True, epoch=""))
    receiver, silent = state.next_holder(number)
    notes: list[Effect] = [Note("silent neighbour")] if silent else []
    if receiver is None:
        return state.saw(token.mark, token.updates, now), notes
    claimed = None if state.seen is None else state.seen.mark
    if _outruns(claimed, token):
        notes.append(Note("false progress", f"hop {claimed and claimed.hop}"))
    offered = _renewed(token, claimed)
    offered = state.proved(replace(offered, hop=offered.hop + 1), receiver)
    state = state.saw(offered.mark, offered.updates, now)
    record = replace(
        state.record, newest=offered.mark, token=offered, place=Place.LEAVING, receiver=receiver
    )
    handover = Handover(since=now, doubtful=False)
    sent_to = {**state.sent_to, receiver: offered.mark}
    state = replace(state, record=record, handover=handover, sent_to=sent_to)
    return state, [SendToken(receiver, offered), *notes]


def _renewed(token: Token, claimed: Mark | None) -> Token:
    """The token, in a new line if its walk has come far since the birth of the present one.

    So lines are nearly ordered by progress, and still only by what is fixed at their birth. A new
    line is also begun where somebody has told of more progress than the token has made, if that
    line is newer than what was told: otherwise whoever believes the claim would take all that the
    token does from now on for old, and the token for lost.
    """
    born = token.line.updates
    line = token.line._replace(updates=max(token.updates, born + 1))
    far = not born or token.updates >= token.line.renewed_at
    disproves = claimed is not None and _outruns(claimed, token) and claimed.line < line
    return replace(token, line=line, hop=0) if far or disproves else token


def _outruns(claimed: Mark | None, token: Token) -> bool:
    """Whether somebody told of progress that this walk's token, which is here, has not made."""
    if claimed is None or claimed.line.beginning != token.line.beginning:
        return False
    return claimed > token.mark


def finish(state: State, final: Token) -> Result:
    """End the walk: the plan's updates are done, and this is the final model, under its own mark.

    It shows visits that no handover showed: a disk that was put back to before them is reminded.
    """
    final = replace(final, hop=final.hop + 1, ended_by=state.fingerprint, end_seal=b"", proof=b"")
    newest = max(state.record.newest or final.mark, final.mark)
    record = replace(
        state.record, newest=newest, token=None, place=Place.GONE, receiver=None, final=final
    )
    state = replace(state, record=record, handover=None)
    return spread(state, [Note("finished")])


def wake(state: State, event: happened.Started) -> Result:
    """Begin every wait anew after a restart; of what was taken before, the newest is remembered."""
    record = state.record
    if record.newest is None:
        return state.saw_nothing(event.now), []
    copy = record.newest_model
    updates = max(record.newest.line.updates, 0 if copy is None else copy.updates)
    state = state.first_saw(record.newest, updates, event.now, event.away_seconds)
    arrivals = Arrivals(record.newest.line, record.newest.hop)
    return replace(state, arrivals=arrivals), []


def resend(state: State, event: happened.Started) -> Result:
    """Offer the token again after a restart: the outcome of the offer under way is in doubt."""
    state, _ = wake(state, event)
    return _send(replace(state, handover=Handover(since=event.now, doubtful=True)))


def _send(state: State) -> Result:
    token, receiver = state.record.token, state.record.receiver
    assert token is not None
    assert receiver is not None
    handover = replace(_handover(state), retry_at=None)
    return replace(state, handover=handover), [SendToken(receiver, token)]


def answered(state: State, event: happened.Answered) -> Result:
    """Forget the token, or take it back, as the receiver's answer says."""
    receipt, took = event.receipt, event.now - _handover(state).since
    state = state.answered_after(state.record.receiver, took, event.now)
    if receipt.outcome is Outcome.REFUSED:
        return _refused(state, receipt.reason, event.now)
    if receipt.outcome is Outcome.OBSOLETE:
        return _obsolete(state, event)
    return _forgotten(state.handed_over(), Note("handed over"))


def _refused(state: State, reason: str, now: float) -> Result:
    """It stays here; if it may have come faster than is believed, it waits until it is."""
    receiver = state.record.receiver
    state, effects = _take_back(state, reason)
    seconds = state.outruns_the_rate_for(now)
    if receiver is None or not seconds:
        return state, effects
    return replace(state, rests_until=now + seconds), [*effects, Greet(receiver)]


def _obsolete(state: State, event: happened.Answered) -> Result:
    """Follow the newer line that the receiver tells of if it can exist; if not, keep the token."""
    newer, mark = event.receipt.newest, event.mark
    if newer is None or newer <= mark.line:  # not what an honest node says
        return unknown(state, happened.Unknown(mark, event.now))
    if not state.believes(newer, newer.updates, event.now):
        note = Note("incredible line", newer.in_words, state.record.receiver or "")
        state, effects = not_sent(state, happened.NotSent(mark, event.now))
        return state, [*effects, note]
    return _forgotten(state.heard_of(newer, event.now), Note("obsolete"))


def _forgotten(state: State, note: Note) -> Result:
    record = replace(state.record, place=Place.GONE, receiver=None)
    return replace(state, record=record, handover=None), [Remember(record), note]


def not_sent(state: State, event: happened.NotSent) -> Result:
    """Take the token back, since this attempt did not arrive, unless an earlier one may have."""
    if _handover(state).doubtful:
        return unknown(state, happened.Unknown(event.mark, event.now))
    return _take_back(state, "no connection")


def unknown(state: State, event: happened.Unknown) -> Result:
    """Try the same receiver again, later; and ask at once whether it is there."""
    handover, retry = _handover(state), state.learner.plan.time_limits.retry_after_seconds
    handover = replace(
        handover,
        doubtful=True,
        retry_at=event.now + retry,
        attempts=handover.attempts + 1,
        # Sooner than it had to answer, the connection broke: it may have ended.
        there_at=handover.there_at if state.leaves_unanswered(event.now) else None,
    )
    receiver = state.record.receiver
    asks: list[Effect] = [Greet(receiver)] if receiver in state.neighbours else []
    return replace(state, handover=handover, links=_silenced(state)), asks


def retry(state: State, event: happened.Tick) -> Result:
    """Try the handover again, or after all that time go on with a new line."""
    state, _ = rest(state, event)
    handover = _handover(state)
    if state.rests_until is not None:
        return state, []
    if event.now >= state.reclaims_at:
        return _reclaim(state, event.now)
    if handover.retry_at is not None and event.now >= handover.retry_at:
        return _send(state)
    return state, []


def up_retry(state: State, event: happened.NeighbourUp) -> Result:
    """Try the handover again at once, because the receiver is back."""
    state, effects = up(state, event)
    waits = state.handover is not None and state.handover.retry_at is not None
    if waits and event.neighbour == state.record.receiver:
        handover = _handover(state)
        if handover.attempts == 1:  # who comes and goes does not put the reclaim off for ever
            state = replace(state, handover=replace(handover, there_at=event.now))
        state, sent = _send(state)
        effects += sent
    return state, effects


def rest(state: State, event: happened.Tick) -> Result:
    """End the rest after a failure."""
    if state.rests_until is not None and event.now >= state.rests_until:
        state = replace(state, rests_until=None)
    return state, []


def _take_back(state: State, reason: str) -> Result:
    """Keep the token after a rejection, as if it had never left; the next offer has a new mark."""
    links = _silenced(state)
    record = replace(state.record, place=Place.HERE, receiver=None)
    state = replace(state, record=record, handover=None, links=links)
    return state, [Remember(record), Note("rejected", reason)]


def _reclaim(state: State, now: float) -> Result:
    """Go on from the token that was offered, as a new line, which outlives the one in doubt."""
    token = state.record.token
    assert token is not None
    return begin(state.gave_up(now), token, now)


def begin(state: State, token: Token, now: float) -> Result:
    """Hold the token, in a new line and a new epoch: nodes may have moved on since this copy."""
    line = state.next_line(token.line.walk, token.updates)
    token = replace(token, line=line, hop=0, seal=b"", epoch="")
    state = state.saw(token.mark, token.updates, now)
    record = replace(state.record, newest=token.mark, token=token, place=Place.HERE, receiver=None)
    state = replace(state, record=record, handover=None, rests_until=None)
    return state, [Commit(record), Note("new line", line.in_words)]


def _why_not(state: State, event: happened.TokenArrived) -> str:
    """Why a token that would be new is not taken; empty if it is."""
    if event.sender not in state.neighbours:
        return "you are not a neighbour of this node."
    if event.token.final or not event.token.hop:
        return "this is no token on its way: it is final, or was never offered."
    if state.record.final is not None:
        return "the walk has ended: this node sends you the final model."
    if not state.believes(event.token.line, event.token.updates, event.now):
        return "there can be no such line, or not so many updates yet."
    if event.token.mark in state.refused:
        return "this handover was refused before."
    return "this node is about to stop." if state.stopping else ""


def refuse(state: State, mark: Mark, reason: str) -> Result:
    """Turn a handover down, for good: a late copy of it must not be taken either."""
    refused = (*state.refused, mark)[-_REFUSALS_KEPT:]
    return decline(replace(state, refused=refused), reason)


def take_a_rest(state: State, now: float) -> State:
    """Begin nothing for a while, after a failure."""
    return replace(state, rests_until=now + state.learner.plan.time_limits.retry_after_seconds)


def _handover(state: State) -> Handover:
    assert state.handover is not None
    return state.handover


def _silenced(state: State) -> Mapping[str, Link]:
    """Count the receiver as silent until it answers a greeting again."""
    receiver = state.record.receiver
    if receiver not in state.neighbours:
        return state.links
    return state.with_link(receiver, up=False)
