"""What a node does when its neighbours come, go, and speak; and how the final model spreads.

A link carries the token only when it is up for both of its ends and both know the other's degree
(`state.Link.usable`). Whoever knows a newer line lets the token of an older one die. A neighbour
that answers and lacks the final model is told it: so it floods, and reaches those that return.
"""

from __future__ import annotations

from walklearn.node.protocol import events as happened
from walklearn.node.protocol.events import Commit, Effect, Greet, Note, Remember, Reply, SendFinal
from walklearn.node.protocol.messages import Outcome, Receipt
from walklearn.node.protocol.state import Link, Place, State
from walklearn.node.protocol.values import replace

Result = tuple[State, list[Effect]]


def peers(state: State, event: happened.PeersChanged) -> Result:
    """Neighbours have joined or left; the degree is announced anew (by `handle`)."""
    neighbours = tuple(sorted(event.neighbours))
    links = {each: state.links.get(each, Link()) for each in neighbours}
    return replace(state, neighbours=neighbours, links=links), []


def up(state: State, event: happened.NeighbourUp) -> Result:
    """It answers: tell it what it does not know yet, also the final model."""
    if event.neighbour not in state.neighbours:
        return state, []
    links = state.with_link(event.neighbour, up=True, told=event.told)
    state, effects = hear(replace(state, links=links), event)
    if state.announcement(event.neighbour) != event.told:
        effects.append(Greet(event.neighbour))
    return state, effects


def hear(state: State, event: happened.NeighbourUp | happened.Announced) -> Result:
    """Note what a neighbour says of itself and of lines; it may lack the final model."""
    if event.neighbour not in state.neighbours:
        return state, []
    state = replace(state, links=state.with_link(event.neighbour, theirs=event.theirs))
    before, effects = state.record, list[Effect]()
    for line in filter(None, (event.theirs.newest, event.theirs.final)):
        if not state.believes(line):
            effects.append(Note("incredible line", f"counter {line.counter}"))
        state = state.heard_of_at_most(line)
    if state.record is not before:
        effects.append(Remember(state.record))
    return spread(state, effects)


def down(state: State, event: happened.NeighbourDown) -> Result:
    """It does not answer: from now on a proposal to go there is a rejection."""
    if event.neighbour not in state.neighbours:
        return state, []
    links = state.with_link(event.neighbour, up=False, final_sent=None)
    return replace(state, links=links), []


def learn(state: State, event: happened.FinalArrived) -> Result:
    """Keep the final model of the newest line, and tell it on. A token of a newer line works on."""
    final, known = event.token, state.record.final_line
    if event.sender not in state.neighbours:
        return decline(state, "you are not a neighbour of this node.")
    if not final.final:
        return decline(state, "this model is not final.")
    if not state.believes(final.line):
        return decline(state, "there can be no such line.")
    if known is not None and final.line <= known:
        outcome = Outcome.ACCEPTED if final.line == known else Outcome.OBSOLETE
        return state, [Reply(Receipt(outcome, newest=known))]
    arrived = [Note("handed over")] if state.proves_arrival(final.mark) else []
    record = replace(state.record, final=final)
    if record.newest is None or final.line >= record.newest.line:
        newest = max(record.newest or final.mark, final.mark)
        record = replace(record, newest=newest, place=Place.GONE, receiver=None)
    handover = state.handover if record.place is Place.LEAVING else None
    state = replace(state, record=record, handover=handover)
    accepted = Reply(Receipt(Outcome.ACCEPTED, newest=final.line))
    links = state.with_link(event.sender, final_sent=final.line)
    return spread(replace(state, links=links), [Commit(record), accepted, *arrived])


def told(state: State, event: happened.FinalAnswered) -> Result:
    """If the final model did not arrive, it is sent again when the neighbour answers again."""
    arrived = event.receipt is not None and event.receipt.outcome is not Outcome.REFUSED
    if arrived or event.neighbour not in state.neighbours:
        return state, []
    return replace(state, links=state.with_link(event.neighbour, final_sent=None)), []


def spread(state: State, effects: list[Effect]) -> Result:
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


def decline(state: State, reason: str) -> Result:
    """Answer no, and why."""
    return state, [Reply(Receipt(Outcome.REFUSED, reason, state.record.newest_line))]
