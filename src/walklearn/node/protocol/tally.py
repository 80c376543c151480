"""What was sent to a neighbour and what came back of it: how a swallower is found out.

A *swallower* takes the token and keeps it. If it does not even say that it took it, though it
answers greetings, the sender sees that by itself, and it counts as lost in plain sight when the
token is reclaimed (`State.leaves_unanswered`). If it does, the walk is then begun again, and what
was sent has not come back, by whatever way: what has come back has passed through the neighbour.
Each token that is missed makes the neighbour suspect, the less so the further beyond it the walk
was seen, and what comes back clears it. Twice is enough to distrust a neighbour beyond which nobody
saw the walk, three times where it was seen one update beyond, 2 + h times at h updates, and 2 +
`FURTHEST` times however far it was seen.

Nobody signs progress, so a swallower may claim any: it is distrusted after 2 + `FURTHEST` tokens
in a row from the same neighbour at the latest. Whoever is behind an honest neighbour of a swallower
sees more than that neighbour does, and some of what it sends comes back: so it is the swallower
that is distrusted first, nearly always, and in a large network a loss far away tells nothing. A row
decides and not a share, for of what goes to an honest node before a swallower half is lost, too.

>>> swallower = Tally().and_sent().and_missed(beyond=1).and_sent().and_missed(beyond=1)
>>> swallower.is_distrusted, swallower.and_sent().and_missed(beyond=1).is_distrusted
(False, True)
>>> swallower.and_sent().and_back().and_sent().and_missed(beyond=1).is_distrusted
False

>>> far = Tally()
>>> for _ in range(LOSSES + FURTHEST):
...     far = far.and_sent().and_missed(beyond=10**6)
>>> far.is_distrusted
True

What comes back now and then does not clear a neighbour to which the walk is lost in plain sight,
twice within a hundred handovers.
"""

from __future__ import annotations

from typing import NamedTuple

from walklearn.node.protocol.tokens import Mark

# A neighbour that the walk was lost to so often, within so many handovers to it, is distrusted.
LOSSES, LOSSES_WITHIN = 2, 100
# However far beyond it the walk was said to be seen, so many more in a row are enough.
FURTHEST = 4
_ROUNDING = 1e-9


class Tally(NamedTuple):
    """What became of the tokens that one neighbour took.

    sent: how many it took, or left unanswered while it was there. back: how many of those came back
    here. missed: how many did not before the walk was begun again. suspicion: what these weigh,
    since one came back; 1 is distrust. lost: how often nobody had seen the walk beyond it, within
    `LOSSES_WITHIN` handovers; since: how many it took after the last time.
    """

    sent: int = 0
    back: int = 0
    missed: int = 0
    suspicion: float = 0.0
    lost: int = 0
    since: int = 0

    def and_sent(self) -> Tally:
        """The counts after the neighbour took one more token."""
        return self._replace(sent=self.sent + 1, since=self.since + 1)

    def and_back(self) -> Tally:
        """The counts after the last token came back."""
        return self._replace(back=self.back + 1, suspicion=0.0)

    def and_missed(self, beyond: int) -> Tally:
        """The counts after the last token was lost, so many updates `beyond` the neighbour."""
        suspicion = self.suspicion + 1.0 / (LOSSES + min(beyond, FURTHEST))
        missed = self._replace(missed=self.missed + 1, suspicion=suspicion)
        if beyond:
            return missed
        lost = 1 if self.since >= LOSSES_WITHIN else self.lost + 1
        return missed._replace(lost=lost, since=0)

    def forgiven(self) -> Tally:
        """The counts after the owner was spoken with."""
        return self._replace(suspicion=0.0, lost=0)

    @property
    def is_distrusted(self) -> bool:
        """Whether the token should go there no more."""
        return self.lost_it or self.suspicion >= 1.0 - _ROUNDING

    @property
    def lost_it(self) -> bool:
        """Whether the neighbour lost the walk in plain sight, twice."""
        return self.lost >= LOSSES


class Sent(NamedTuple):
    """The handover that was acknowledged last, and has not come back."""

    receiver: str
    mark: Mark
    updates: int
