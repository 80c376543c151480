"""What the node's owner asks for, and what clock and disk bring."""

from __future__ import annotations

from walklearn.node.protocol import events as happened
from walklearn.node.protocol.events import Commit, Note, Reply
from walklearn.node.protocol.handover import begin, finish, refuse, take_a_rest
from walklearn.node.protocol.messages import Outcome, Receipt, Token
from walklearn.node.protocol.neighbours import Result, decline
from walklearn.node.protocol.state import State
from walklearn.node.protocol.values import replace


def start(state: State, event: happened.StartWalk) -> Result:
    """Begin a walk, if none is known here."""
    if state.record.newest is not None:
        return decline(
            state,
            "a walk has begun already. If the node that holds its token is gone for good, go on "
            "from the newest model seen here with --resume.",
        )
    return _begun(state, state.learner.first_token(state.next_line(event.walk), event.model))


def resume(state: State, event: happened.ResumeWalk) -> Result:
    """Go on with a new line from the newest model seen here, or from the start if there is none."""
    seen = state.record.newest_model
    if seen is None:
        return _begun(state, state.learner.first_token(state.next_line(event.walk), event.model))
    token = replace(seen, line=state.next_line(seen.line.walk))
    if not token.final:
        return _begun(state, token)
    state, effects = finish(state, token)
    return state, [Commit(state.record), Reply(Receipt(Outcome.ACCEPTED)), *effects]


def holds(state: State, event: happened.ResumeWalk) -> Result:
    """No need to resume."""
    return decline(state, "this node holds the token: there is nothing to resume.")


def done(state: State, event: happened.ResumeWalk) -> Result:
    """No need to resume."""
    return decline(state, "the walk is finished: there is nothing to resume.")


def stop(state: State, event: happened.StopAsked) -> Result:
    """Take no token from now on, and end once the one that is here has left by the walk's rule."""
    return replace(state, stopping=True), []


def undo(state: State, event: happened.StoreFailed) -> Result:
    """Nothing was written and nothing sent: refuse what was asked, or try again later."""
    failed, reason = event.event, f"this node cannot write to its disk: {event.reason}"
    if isinstance(failed, happened.TokenArrived):
        return refuse(state, failed.token.mark, reason)
    if isinstance(failed, happened.FinalArrived | happened.StartWalk | happened.ResumeWalk):
        return decline(state, reason)
    return take_a_rest(state, event.now), [Note("store failed", event.reason)]


def _begun(state: State, token: Token) -> Result:
    state, (commit, *notes) = begin(state, token)
    return state, [commit, Reply(Receipt(Outcome.ACCEPTED, newest=token.line)), *notes]
