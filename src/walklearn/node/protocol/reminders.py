"""Reminders by which neighbours tell a node that its disk was restored from a backup.

With `update = "saga"` a node keeps the gradients that the token's sum contains. A restored backup
takes them back to an earlier visit, and the sum no longer matches. So each node remembers the
newest mark of a token it had from each neighbour, in the same commit as the token, and says it in
its greetings. The neighbour committed every mark before it sent it: a mark that it does not know
proves that its disk was restored. It then forgets the gradients it kept, and the token starts a new
epoch.

A neighbour can omit a reminder but cannot forge one. With every token goes a *proof*: a keyed
digest of its mark and its receiver, by a secret that the sender derives from its private key, which
no backup changes. Only the sender can make and check it; a reminder without it is ignored.

The cap on contributions does not rely on reminders: see `disk.contribution_count`.

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
from dataclasses import dataclass, field, replace

from walklearn.node.protocol.fields import PROOF_BYTES
from walklearn.node.protocol.messages import Reminder
from walklearn.node.protocol.tokens import Mark


def proof_of(secret: bytes, receiver: str, mark: Mark) -> bytes:
    """What goes with a token to this receiver, so that its sender knows it again."""
    handover = f"{receiver} {mark.line.text} {mark.hop}"
    return hmac.digest(secret, handover.encode(), "sha256")[:PROOF_BYTES]


def is_own(reminder: Reminder, secret: bytes, receiver: str) -> bool:
    """Whether the node with this secret did send that to this receiver."""
    return hmac.compare_digest(reminder.proof, proof_of(secret, receiver, reminder.mark))


@dataclass(frozen=True)
class Reminders:
    """Marks that this node remembers for its neighbours, and the one they reminded it of.

    had: the newest token or final model from each neighbour. reminded: the newest mark that a
    neighbour had from this node and this node did not know of.
    """

    had: Mapping[str, Reminder] = field(default_factory=dict)
    reminded: Mark | None = None

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
        """Note that a neighbour had this mark from this node, whose disk does not know it."""
        return replace(self, reminded=mark)
