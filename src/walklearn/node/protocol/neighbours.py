"""Reactions to neighbours, and the spread of the final model.

A link carries the token only when it is up for both of its ends and both know the other's degree
(`state.Link.usable`). Whoever knows a newer line lets the token of an older one die. A neighbour
that answers and lacks the final model is told it: so it floods, and reaches those that return.
"""

from __future__ import annotations

from dataclasses import replace

from walklearn.node.protocol import events as happened
from walklearn.node.protocol.events import Commit, Effect, Greet, Note, Remember, Reply, SendFinal
from walklearn.node.protocol.messages import Outcome, Receipt
from walklearn.node.protocol.record import Place
from walklearn.node.protocol.state import Link, State
from walklearn.node.protocol.tokens import Mark
from walklearn.wording import plural

Result = tuple[State, list[Effect]]

# Progress that is heard of after so many seconds without any is told on at once.
QUIET_SECONDS = 1.0


def rewire(state: State, event: happened.NewNeighbours) -> Result:
    """Take over a new list of neighbours; `handle` then announces the new degree."""
    neighbours = tuple(sorted(event.neighbours))
    links = {each: state.links.get(each, Link()) for each in neighbours}
    former = set(state.neighbours) - set(neighbours)
    ends = {each: digest for each, digest in state.record.ends.items() if each not in former}
    record = state.record if ends == state.record.ends else replace(state.record, ends=ends)
    return replace(state, neighbours=neighbours, links=links, record=record), []


def up(state: State, event: happened.NeighbourUp) -> Result:
    """Note that a neighbour answers, and tell it what it does not know, also the final model."""
    was_alone = not any(map(state.is_usable, state.neighbours))
    state = state.answered_after(event.neighbour, event.seconds, event.now)
    links = state.with_link(event.neighbour, up=True, acknowledged=event.ours)
    state, effects = hear(replace(state, links=links), event)
    if was_alone and state.seen is not None and state.is_usable(event.neighbour):
        state = replace(state, seen=state.seen._replace(moved_at=event.now))
    now = state.announcement(event.neighbour)
    # What it was told of the tokens that came from it may wait: they are too many for greetings.
    if now != replace(event.ours, progress=None, had=now.had):
        effects.append(Greet(event.neighbour))
    return state, effects


def hear(state: State, event: happened.NeighbourUp | happened.Announced) -> Result:
    """Note what a neighbour says of itself and of the walk; it may lack the final model."""
    theirs, effects = event.theirs, list[Effect]()
    link = state.with_link(event.neighbour, theirs=theirs)
    state, before = replace(state, links=link), state.record
    for line in filter(None, (theirs.newest, theirs.final)):
        state = state.heard_of(line, event.now)
    state = _follow(state, event, effects)
    state = state.heard_of_end(event.neighbour, theirs.final_digest)
    state = state.heard_of_confirmations(theirs.final_digest, theirs.confirmed_by)
    if state.record is not before:
        effects.append(Remember(state.record))
    state, reminded = _remind(state, event.neighbour, theirs.had)
    return spread(state, effects + reminded)


def _remind(state: State, neighbour: str, had: Mark | None) -> Result:
    """Forget the kept gradients if a neighbour had a token that this node does not know of."""
    memory, sent = state.record.memory, state.sent_to.get(neighbour)
    if had is None or memory.knows(had, state.began, sent):
        return state, []
    kept = state.record.kept  # older than what tokens have of it
    record = replace(
        state.record,
        memory=memory.reminded_of(had),
        kept=None if kept is None else kept.forgotten(),
    )
    which = f"hop {had.hop} of {plural(had.line.updates, 'update')}"
    note = Note("restored backup", which, neighbour)
    return replace(state, record=record), [Commit(record), note]


def _follow(
    state: State, event: happened.NeighbourUp | happened.Announced, effects: list[Effect]
) -> State:
    """Note how far the walk has come; where nothing was heard for a while, tell it on at once.

    Progress of another walk than that of the newest line is none: who knows a newer one tells it.
    """
    progress, known, newest = event.theirs.progress, state.seen, state.record.newest_line
    if progress is None or newest is None or progress.mark.line.beginning != newest.beginning:
        return state
    after = state.saw(progress.mark, progress.updates, event.now, progress.age_seconds)
    if after is not state and known is not None and event.now > known.moved_at + QUIET_SECONDS:
        others = [each for each, link in state.links.items() if link.up]
        effects += [Greet(each) for each in others if each != event.neighbour]
    return after


def down(state: State, event: happened.NeighbourDown) -> Result:
    """Note that a neighbour does not answer; a proposal to go there then counts as rejected."""
    links = state.with_link(event.neighbour, up=False, final_sent="")
    return replace(state, links=links), []


def learn(state: State, event: happened.FinalArrived) -> Result:
    """Keep the final model of the newest line, tell it on, and end a walk that is still under way.

    The end of an older line ends the walk too: those who sent it may have ended and be gone, so a
    second final model would never reach them. Of two final models of
    the same line all keep the one with the larger digest.
    """
    final, known = event.token, state.record.final
    if event.sender not in state.neighbours:
        return decline(state, "you are not a neighbour of this node.")
    if not final.final:
        return decline(state, "this model is not final.")
    if known is not None and (final.line, final.digest) <= (known.line, known.digest):
        outcome = Outcome.ACCEPTED if final.digest == known.digest else Outcome.OBSOLETE
        return state, [Reply(Receipt(outcome, newest=known.line))]
    arrived = [Note("handed over")] if state.proves_arrival(final.mark) else []
    memory = state.record.memory.with_token_from(event.sender, final.mark)
    record = replace(
        state.record, final=final, memory=memory, place=Place.GONE,
        receiver=None, newest=max(state.record.newest or final.mark, final.mark),
    )  # fmt: skip
    state = replace(state, record=record, handover=None)
    state = state.saw(final.mark, final.updates, event.now)
    accepted = Reply(Receipt(Outcome.ACCEPTED, newest=final.line))
    links = state.with_link(event.sender, final_sent=final.digest)
    return spread(replace(state, links=links), [Commit(state.record), accepted, *arrived])


def final_answered(state: State, event: happened.FinalAnswered) -> Result:
    """Note whether the final model arrived; if not, it is sent when the neighbour answers again."""
    arrived = event.receipt is not None and event.receipt.outcome is not Outcome.REFUSED
    if arrived:
        return state, []
    return replace(state, links=state.with_link(event.neighbour, final_sent="")), []


def spread(state: State, effects: list[Effect]) -> Result:
    """Send the final model to every neighbour that answers and does not have it."""
    final = state.record.final
    if final is None:
        return state, effects
    for each, link in state.links.items():
        theirs = link.theirs
        has = (
            theirs is not None
            and theirs.final is not None
            and (theirs.final, theirs.final_digest) >= (final.line, final.digest)
        )
        if link.up and not has and link.final_sent != final.digest:
            links = state.with_link(each, final_sent=final.digest)
            sent = max(state.sent_to.get(each, final.mark), final.mark)
            state = replace(state, links=links, sent_to={**state.sent_to, each: sent})
            effects.append(SendFinal(each, final))
    return state, effects


def decline(state: State, reason: str) -> Result:
    """Answer no, and why."""
    return state, [Reply(Receipt(Outcome.REFUSED, reason, state.record.newest_line))]
