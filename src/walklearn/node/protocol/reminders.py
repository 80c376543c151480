"""What neighbours remember for each other, so that a disk put back to an earlier time is noticed.

A node counts on its disk how often its rows have shown. If a backup is restored, the count goes
back and what was shown does not. So each node remembers the newest mark of a token it had from each
neighbour, in the same commit as the token, and says it in its greetings. The neighbour has
committed every mark before it sent it: one that it does not know proves that it has forgotten. From
then on its rows show no more, until its owner says how often they have (`Recount`).

A neighbour cannot lie about it. With every token goes a *proof*: a keyed digest of its mark and its
receiver, by a secret that the sender makes of its private key, which no backup changes. Only the
sender can make it and only the sender checks it; what is told without it is passed over.

A process that has just begun does not know whether it has forgotten: for `LISTEN_SECONDS`, or until
every neighbour has spoken, its rows do not show either. A neighbour that is silent for longer can
only tell later.

>>> from walklearn.node.protocol.tokens import Line
>>> line = Line(0, 1, reclaimer="ab" * 32, walk="cd" * 16)
>>> sent = Mark(line, 7)
>>> bob = Reminders().with_token_from("alice", sent, proof_of(b"alice's secret", "bob", sent))
>>> alice = Reminders()
>>> alice.knows(bob.had["alice"].mark, began=Mark(line, 9))
True
>>> alice.knows(bob.had["alice"].mark, began=Mark(line, 3))
False
>>> is_own(bob.had["alice"], b"alice's secret", "bob")
True
>>> is_own(bob.had["alice"]._replace(mark=Mark(line, 8)), b"alice's secret", "bob")
False
"""

from __future__ import annotations

import hmac
from collections.abc import Mapping
from dataclasses import dataclass, field

from walklearn.node.protocol.fields import PROOF_BYTES
from walklearn.node.protocol.messages import Reminder
from walklearn.node.protocol.tokens import Mark
from walklearn.node.protocol.values import replace

LISTEN_SECONDS = 10.0


def proof_of(secret: bytes, receiver: str, mark: Mark) -> bytes:
    """What goes with a token to this receiver, so that its sender knows it again."""
    line = mark.line
    handover = f"{receiver} {line.updates} {line.counter} {line.reclaimer} {line.walk} {mark.hop}"
    return hmac.digest(secret, handover.encode(), "sha256")[:PROOF_BYTES]


def is_own(reminder: Reminder, secret: bytes, receiver: str) -> bool:
    """Whether the node with this secret did send that to this receiver."""
    return hmac.compare_digest(reminder.proof, proof_of(secret, receiver, reminder.mark))


@dataclass(frozen=True)
class Reminders:
    """What is remembered for neighbours, and whether this node has forgotten.

    had: the newest token or final model from each neighbour. reminded: the newest mark that a
    neighbour had from this node and this node did not know of. forgot: since then its owner
    has not said how often its rows have shown.
    """

    had: Mapping[str, Reminder] = field(default_factory=dict)
    reminded: Mark | None = None
    forgot: bool = False

    def with_token_from(self, sender: str, mark: Mark, proof: bytes) -> Reminders:
        """Remember a token or final model from this sender, unless a newer one is remembered."""
        if sender in self.had and mark < self.had[sender].mark:
            return self
        return replace(self, had={**self.had, sender: Reminder(mark, proof)})

    def knows(self, mark: Mark, began: Mark | None, sent: Mark | None = None) -> bool:
        """Whether this node can have sent that token, by what it knows.

        began: the newest mark on the disk when the process began, all of its earlier ones are no
        newer. sent: the last mark that this process sent to that neighbour.
        """
        known = [each for each in (began, sent, self.reminded) if each is not None]
        return any(mark <= each for each in known)

    def reminded_of(self, mark: Mark) -> Reminders:
        """Note that this node has forgotten, since a neighbour had this mark from it."""
        return replace(self, reminded=mark, forgot=True)

    def recounted(self) -> Reminders:
        """Note that the owner has said how often the rows have shown."""
        return replace(self, forgot=False)
