"""How the token arrives, is worked on, and leaves; what becomes of an offer.

`protocol` says why it is done this way.
"""

from __future__ import annotations

from collections.abc import Mapping

from walklearn.node.protocol import events as happened
from walklearn.node.protocol.events import Commit, Effect, Note, Remember, Reply, SendToken
from walklearn.node.protocol.learner import DivergedError, Draws
from walklearn.node.protocol.messages import Mark, Outcome, Receipt, Token
from walklearn.node.protocol.neighbours import Result, decline, spread, up
from walklearn.node.protocol.state import Handover, Link, Phase, Place, State
from walklearn.node.protocol.values import replace

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
    arrived = [Note("handed over")] if state.proves_arrival(token.mark) else []
    record = replace(state.record, newest=token.mark, token=token, place=Place.HERE, receiver=None)
    refused = tuple(mark for mark in state.refused if mark > token.mark)
    taken = replace(state, record=record, handover=None, refused=refused, rests_until=None)
    try:
        after_visit, after = _visit(taken, event.draws, event.now)
    except DivergedError as error:
        return refuse(state, token.mark, str(error))
    accepted = Reply(Receipt(Outcome.ACCEPTED, newest=token.line))
    return after_visit, [Commit(after_visit.record), accepted, *arrived, *after]


def work(state: State, event: happened.Visit) -> Result:
    """Another visit of the token that stayed; written only if something leaves the node."""
    try:
        after, effects = _visit(state, event.draws, event.now)
    except DivergedError as error:
        return take_a_rest(state, event.now), [Note("diverged", str(error))]
    if after.phase is Phase.HOLDING:
        return after, effects
    return after, [Commit(after.record), *effects]


def _visit(state: State, draws: Draws, now: float) -> Result:
    """Update; finish, or propose and offer, or stay."""
    record = state.record
    assert record.token is not None
    token, contributions = state.learner.visit(record.token, draws, record.contributions)
    record = replace(record, token=token, contributions=contributions)
    if token.updates == state.learner.plan.updates:
        return finish(replace(state, record=record), replace(token, final=True))
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


def finish(state: State, final: Token) -> Result:
    """The plan's updates are done: this is the final model."""
    newest = max(state.record.newest or final.mark, final.mark)
    record = replace(
        state.record, newest=newest, token=None, place=Place.GONE, receiver=None, final=final
    )
    state = replace(state, record=record, handover=None)
    return spread(state, [Note("finished")])


def resend(state: State, event: happened.Started) -> Result:
    """The process ended with an offer under way: its outcome is in doubt."""
    return _send(replace(state, handover=Handover(since=event.now, doubtful=True)))


def _send(state: State) -> Result:
    token, receiver = state.record.token, state.record.receiver
    assert token is not None
    assert receiver is not None
    handover = replace(_handover(state), retry_at=None)
    return replace(state, handover=handover), [SendToken(receiver, token)]


def answered(state: State, event: happened.Answered) -> Result:
    """The receiver has spoken: forget the token, or take it back."""
    if not _is_about_offer(state, event.mark):
        return state, []
    receipt = event.receipt
    if receipt.outcome is Outcome.REFUSED:
        return _take_back(state, receipt.reason)
    if receipt.outcome is Outcome.OBSOLETE:
        newer = receipt.newest
        if newer is None or newer <= event.mark.line:
            # Not what an honest node says.
            return unknown(state, happened.Unknown(event.mark, event.now))
        state = state.heard_of_at_most(newer)
    record = replace(state.record, place=Place.GONE, receiver=None)
    notes = [Note("obsolete")] if receipt.outcome is Outcome.OBSOLETE else [Note("handed over")]
    return replace(state, record=record, handover=None), [Remember(record), *notes]


def not_sent(state: State, event: happened.NotSent) -> Result:
    """This attempt did not arrive; but an earlier one may have."""
    if not _is_about_offer(state, event.mark):
        return state, []
    if _handover(state).doubtful:
        return unknown(state, happened.Unknown(event.mark, event.now))
    return _take_back(state, "no connection")


def unknown(state: State, event: happened.Unknown) -> Result:
    """Try the same receiver again, later."""
    if not _is_about_offer(state, event.mark):
        return state, []
    retry_at = event.now + state.learner.plan.time_limits.retry_after_seconds
    handover = replace(_handover(state), doubtful=True, retry_at=retry_at)
    return replace(state, handover=handover, links=_silenced(state)), []


def retry(state: State, event: happened.Tick) -> Result:
    """Try again, or after all that time go on with a new line."""
    state, _ = rest(state, event)
    handover = _handover(state)
    if state.rests_until is not None:
        return state, []
    if event.now >= handover.since + state.learner.plan.time_limits.reclaim_after_seconds:
        return _reclaim(state)
    if handover.retry_at is not None and event.now >= handover.retry_at:
        return _send(state)
    return state, []


def up_retry(state: State, event: happened.NeighbourUp) -> Result:
    """The receiver is back: no need to wait for the time to try again."""
    state, effects = up(state, event)
    waits = state.handover is not None and state.handover.retry_at is not None
    if waits and event.neighbour == state.record.receiver:
        state, sent = _send(state)
        effects += sent
    return state, effects


def rest(state: State, event: happened.Tick) -> Result:
    """The rest after a failure is over."""
    if state.rests_until is not None and event.now >= state.rests_until:
        state = replace(state, rests_until=None)
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
    return begin(state, replace(token, line=state.next_line(token.line.walk)))


def begin(state: State, token: Token) -> Result:
    """Hold a token of a new line."""
    record = replace(state.record, newest=token.mark, token=token, place=Place.HERE, receiver=None)
    state = replace(state, record=record, handover=None, rests_until=None)
    return state, [Commit(record), Note("new line", f"counter {token.line.counter}")]


def _why_not(state: State, event: happened.TokenArrived) -> str:
    """Why a token that would be new is not taken; empty if it is."""
    if event.sender not in state.neighbours:
        return "you are not a neighbour of this node."
    if event.token.final or not event.token.hop:
        return "this is no token on its way: it is final, or was never offered."
    if not state.believes(event.token.line):
        return "there can be no such line."
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


def _is_about_offer(state: State, mark: Mark) -> bool:
    return state.record.token is not None and state.record.token.mark == mark


def _silenced(state: State) -> Mapping[str, Link]:
    """The receiver counts as silent until it answers a greeting again."""
    receiver = state.record.receiver
    if receiver not in state.neighbours:
        return state.links
    return state.with_link(receiver, up=False)
