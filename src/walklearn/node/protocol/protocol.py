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
- With any attempt in doubt the sender tries the same receiver again, until the time to reclaim;
  then it goes on with a new line.
- Whoever knows a newer line lets the token of an older one die. Lines are ordered, so in the end
  one lives, also if two nodes begin a walk at once, and of two final models the newer line wins.
- A node that has a final model takes no token, and one that gets a final model ends its walk, even
  that of a newer line: the nodes that have the final model may be gone.

**The order of lines.** A line is (updates, counter, fingerprint, walk), all fixed at its birth: the
updates that the walk had made, one more than the counter before, who began it. A new line is larger
than all that its beginner knew (`state.next_line`), and the beginner writes it down before anything
of it leaves, so nobody begins the same line twice and no two tie. A line has one token, at the
place of its birth, and hands it on as above: so its history is linear and holds no update twice,
whatever other lines do. A token is *renewed* where it is held: it goes on under the same counter
and fingerprint with its present updates, hop 0. The old line then has no token left and the new one
has one, in the commit of the very offer that tells of it, so nothing above changes. Two renewed
lines tie only if two tokens had one line. Renewal at every eighth (and 16 updates at least) makes
the order one of progress: of two walks that meet, each has made less than 9/8 of its line's
updates, or 16 more than these, so the one that lives has at least 8/9 of what the other had, or 16
less. A walk that has left its first node was renewed there, so a fresh one at 0 never beats it.
(The updates of a line that is begun from a copy older than the newest line are those of that line,
for it must be larger.)

**Lost.** Signs of life carry the progress (line, hop, updates, age), and nodes tell it on. A node
that has a copy, is in touch with a neighbour and has seen nothing move for several times as long as
of late begins a new line from its copy (`state.resumes_at`); those with older copies wait longer.
If the walk was not lost, only work is: one of the two lines lives. A walk whose line has 0 updates
was never handed over, so nobody but its starter has a copy: any node starts it anew after the same
wait.

**Assumptions.** Participants follow the protocol. They may crash, restart, be slow or unreachable,
and return with an older disk. A participant that deviates can stop or spoil the walk.

**Durability.** One commit a handover on either side: the receiver makes its visit before it
commits, so the updated token and whom it leaves for are one transaction; forgetting is written
with the next commit or soon (`Remember`), for if it is lost the token is offered again and found
to be a duplicate (and should the receiver be out of reach until the reclaim, a new line begins
from an older model: work is lost, no update counts twice). Visits that stay are not written:
after a crash they are made again, and nobody has seen them. The count of contributions is part of
each commit, so none can be seen uncharged.

**Silence.** A neighbour that does not answer is proposed like the others and counts as a rejection;
a link carries the token only if both ends reach each other and know each other's degree, so the
moves among those that answer keep the walk's law. With every neighbour silent the token rests.
Time is that of a clock which never jumps, and stands still while the machine sleeps; a restart
begins every wait anew.

**Restored backups.** A disk that was restored from a backup has lost the gradients that this node
gave to the token since. Neighbours tell it which token they had from it last: see `reminders`. The
count of contributions does not rely on neighbours: it is reserved outside the node's directory
(`disk.contribution_count`).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from walklearn.node.protocol import events as happened
from walklearn.node.protocol import handover, neighbours, owner
from walklearn.node.protocol.events import Event, Greet
from walklearn.node.protocol.learner import Learner
from walklearn.node.protocol.neighbours import Result
from walklearn.node.protocol.record import Record
from walklearn.node.protocol.state import Phase, State

_OF_NEIGHBOURS = (
    happened.NeighbourUp, happened.NeighbourDown, happened.Announced, happened.FinalAnswered,
)  # fmt: skip
_OF_OFFERS = (happened.Answered, happened.NotSent, happened.Unknown)

Handler = Callable[[State, Any], Result]


def recover(
    fingerprint: str,
    learner: Learner,
    neighbours: Sequence[str],
    record: Record | None = None,
) -> State:
    """The state of a process that has just begun, from the record on disk; feed `Started` next."""
    known, around = record or Record(), tuple(sorted(neighbours))
    return State(fingerprint, learner, around, known, began=known.newest)


def handle(state: State, event: Event) -> Result:
    """Return what an event makes of the node, and what is to be done about it, in this order."""
    handler = _TABLE[type(event)][state.phase]
    if handler is None or _is_outdated(state, event):
        return state, []
    after, effects = handler(state, event)
    if _news(after) != _news(state):
        effects += [Greet(each) for each, link in after.links.items() if link.up]
    return after, effects


def _is_outdated(state: State, event: Event) -> bool:
    """True if the event concerns a former neighbour, or an offer that is no longer under way."""
    if isinstance(event, _OF_NEIGHBOURS):
        return event.neighbour not in state.neighbours
    offered = state.record.token
    return isinstance(event, _OF_OFFERS) and (offered is None or event.mark != offered.mark)


def _news(state: State) -> Any:
    """Return the facts that all neighbours must learn when they change."""
    record, newest = state.record, state.record.newest
    beginning = None if newest is None else newest.line.beginning
    return state.neighbours, beginning, record.final_digest, state.told_confirmations


# The handler of each event in each state; None ignores the event.
_PHASES = (Phase.IDLE, Phase.HOLDING, Phase.HANDING_OVER, Phase.FINISHED)
_ROWS: dict[type[Any], Sequence[Handler | None]] = {
    happened.Started: (handover.wake, handover.wake, handover.resend, handover.wake),
    happened.Tick: (owner.look, handover.rest, handover.retry, handover.rest),
    happened.NewNeighbours: (neighbours.rewire,) * 4,
    happened.NeighbourUp: (neighbours.up, neighbours.up, handover.up_retry, neighbours.up),
    happened.NeighbourDown: (neighbours.down,) * 4,
    happened.Announced: (neighbours.hear,) * 4,
    happened.TokenArrived: (handover.receive,) * 4,
    happened.Visit: (None, handover.work, None, None),
    happened.Answered: (None, None, handover.answered, None),
    happened.NotSent: (None, None, handover.not_sent, None),
    happened.Unknown: (None, None, handover.unknown, None),
    happened.FinalArrived: (neighbours.learn,) * 4,
    happened.FinalAnswered: (neighbours.final_answered,) * 4,
    happened.StartWalk: (owner.start,) * 4,
    happened.ResumeWalk: (owner.resume,) * 4,
    happened.StopAsked: (owner.stop,) * 4,
    happened.StoreFailed: (owner.undo,) * 4,
}
_TABLE = {event: dict(zip(_PHASES, row, strict=True)) for event, row in _ROWS.items()}
