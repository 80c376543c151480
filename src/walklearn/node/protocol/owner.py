"""Reactions to the owner's commands, the clock and the disk."""

from __future__ import annotations

from dataclasses import replace

from walklearn.node.protocol import events as happened
from walklearn.node.protocol.events import Note, Reply
from walklearn.node.protocol.handover import begin, refuse, rest, take_a_rest
from walklearn.node.protocol.messages import Outcome, Receipt
from walklearn.node.protocol.neighbours import Result, decline
from walklearn.node.protocol.state import Phase, State
from walklearn.node.protocol.tokens import Line

# What is answered with a receipt, besides a token.
_REPLIED = (happened.FinalArrived, happened.StartWalk, happened.ResumeWalk)


def start(state: State, event: happened.StartWalk) -> Result:
    """Begin a walk, if none is known here; or above one that was only heard of, by force.

    A neighbour may have told of a line that nobody walks.
    """
    if state.record.newest_model is not None or (state.record.newest and not event.force):
        return decline(
            state,
            "a walk has already started. If the node that holds its token will not return, "
            "continue from this node's newest model with --resume. If neighbours report a walk "
            "that never visited this node and that no participant knows, replace it with --force.",
        )
    first = state.learner.first_token(Line(0, 1, state.fingerprint, event.walk), event.model)
    state, (commit, *notes) = begin(state, first, event.now)
    return state, [commit, Reply(Receipt(Outcome.ACCEPTED)), *notes]


def resume(state: State, event: happened.ResumeWalk) -> Result:
    """Go on with a new line from the newest model seen here."""
    if state.phase is Phase.HOLDING:
        return decline(state, "this node holds the token: there is nothing to resume.")
    if state.phase is Phase.FINISHED:
        return decline(state, "the walk is finished: there is nothing to resume.")
    if state.record.newest_model is None:
        return decline(
            state,
            "this node has no model to continue from. Use --resume on a node that the walk has "
            "visited, or start-walk without --resume if no walk has started.",
        )
    state, (commit, *notes) = _begin_again(state, event.now)
    return state, [commit, Reply(Receipt(Outcome.ACCEPTED)), *notes]


def look(state: State, event: happened.Tick) -> Result:
    """Go on from the copy here if nothing has moved for so long that the walk counts as lost.

    Without a copy the walk starts anew: it has never left its starter.
    """
    state, _ = rest(state, event)
    due = state.resumes_at
    if state.rests_until is not None or due is None or event.now < due:
        return state, []
    state, effects = _begin_again(state, event.now)
    return state, [*effects, Note("walk resumed")]


def _begin_again(state: State, now: float) -> Result:
    token = state.record.newest_model
    if token is None:
        line = state.record.newest_line
        assert line is not None
        token = state.learner.first_token(line, state.learner.initial_model(line.walk))
    return begin(state, token, now)


def stop(state: State, event: happened.StopAsked) -> Result:
    """Take no token from now on, and end once the one that is here has left by the walk's rule."""
    return replace(state, stopping=True), []


def undo(state: State, event: happened.StoreFailed) -> Result:
    """Refuse what was asked, or try later, because nothing could be written."""
    failed, reason = event.event, f"this node cannot write to its disk: {event.reason}"
    if isinstance(failed, happened.TokenArrived):
        return refuse(state, failed.token.mark, reason)
    if isinstance(failed, _REPLIED):
        return decline(state, reason)
    return take_a_rest(state, event.now), [Note("store failed", event.reason)]
