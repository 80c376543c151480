"""Handover of the token: arrival, visit, offer to a neighbour, and the answer to the offer.

`protocol` says why it is done this way.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from walklearn.node.protocol import events as happened
from walklearn.node.protocol.events import Commit, Effect, Greet, Note, Remember, Reply, SendToken
from walklearn.node.protocol.learner import DivergedError, Draws
from walklearn.node.protocol.messages import Outcome, Receipt
from walklearn.node.protocol.neighbours import Result, decline, spread, up
from walklearn.node.protocol.pace import Sighting
from walklearn.node.protocol.record import Place
from walklearn.node.protocol.state import Handover, Link, Phase, State
from walklearn.node.protocol.tokens import Mark, Token

# How many refused handovers are kept in mind; honest neighbours have one under way at a time.
_REFUSALS_KEPT = 256


def receive(state: State, event: happened.TokenArrived) -> Result:
    """Take the token if its mark is new, and make the visit before anything is written."""
    token, newest = event.token, state.record.newest
    if newest is not None and token.mark <= newest:
        known = token.line == newest.line
        outcome = Outcome.ACCEPTED if known else Outcome.OBSOLETE
        return state, [Reply(Receipt(outcome, newest=newest.line))]
    reason = _why_not(state, event)
    if reason:
        return refuse(state, token.mark, reason)
    # The mark may prove that a neighbour accepted the token this node sent before.
    arrived: list[Effect] = [Note("handed over")] if state.proves_arrival(token.mark) else []
    record = replace(
        state.record, newest=token.mark, token=token, place=Place.HERE, receiver=None,
        memory=state.record.memory.with_token_from(event.sender, token.mark),
    )  # fmt: skip
    taken = replace(state, record=record, handover=None, rests_until=None)
    try:
        after_visit, after = _visit(taken, event.draws, event.now)
    except DivergedError as error:
        return refuse(state, token.mark, str(error))
    accepted = Reply(Receipt(Outcome.ACCEPTED, newest=token.line))
    return after_visit, [Commit(after_visit.record), accepted, *arrived, *after]


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
    offered = _renewed(token)
    offered = replace(offered, hop=offered.hop + 1)
    state = state.saw(offered.mark, offered.updates, now)
    record = replace(
        state.record, newest=offered.mark, token=offered, place=Place.LEAVING, receiver=receiver
    )
    handover = Handover(since=now, doubtful=False)
    sent_to = {**state.sent_to, receiver: offered.mark}
    state = replace(state, record=record, handover=handover, sent_to=sent_to)
    return state, [SendToken(receiver, offered), *notes]


def _renewed(token: Token) -> Token:
    """The token, in a new line if its walk has come far since the birth of the present one.

    So lines are nearly ordered by progress, and still only by what is fixed at their birth.
    """
    if token.line.updates and token.updates < token.line.renewed_at:
        return token
    return replace(token, line=token.line._replace(updates=token.updates), hop=0)


def finish(state: State, final: Token) -> Result:
    """End the walk: the plan's updates are done, and this is the final model, under its own mark.

    It shows visits that no handover showed: a disk that was put back to before them is reminded.
    """
    final = replace(final, hop=final.hop + 1, ended_by=state.fingerprint, end_seal=b"")
    newest = max(state.record.newest or final.mark, final.mark)
    record = replace(
        state.record, newest=newest, token=None, place=Place.GONE, receiver=None, final=final
    )
    state = replace(state, record=record, handover=None)
    return spread(state, [Note("finished")])


def wake(state: State, event: happened.Started) -> Result:
    """Begin every wait anew after a restart."""
    newest, copy = state.record.newest, state.record.newest_model
    if newest is None:
        return state, []
    updates = max(newest.line.updates, 0 if copy is None else copy.updates)
    return replace(state, seen=Sighting(newest, updates, event.now)), []


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
        return _take_back(state, receipt.reason)
    note = "handed over"
    if receipt.outcome is Outcome.OBSOLETE:
        if receipt.newest is None or receipt.newest <= event.mark.line:  # contradicts itself
            return unknown(state, happened.Unknown(event.mark, event.now))
        state, note = state.heard_of(receipt.newest, event.now), "obsolete"
    record = replace(state.record, place=Place.GONE, receiver=None)
    return replace(state, record=record, handover=None), [Remember(record), Note(note)]


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
        there_at=None,
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
    return state, [Commit(record), Note("new generation", line.in_words)]


def _why_not(state: State, event: happened.TokenArrived) -> str:
    """Why a token that would be new is not taken; empty if it is."""
    if event.sender not in state.neighbours:
        return "you are not a neighbour of this node."
    if event.token.final or not event.token.hop:
        return "this is no token on its way: it is final, or was never offered."
    if state.record.final is not None:
        return "the walk has ended: this node sends you the final model."
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
