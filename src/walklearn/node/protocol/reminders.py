"""Reminders by which neighbours tell a node that its disk was restored from a backup.

With `update = "saga"` a node keeps the gradients that the token's sum contains. A restored backup
takes them back to an earlier visit, and the sum no longer matches. So each node remembers the
newest mark of a token it had from each neighbour, in the same commit as the token, and says it in
its greetings. The neighbour committed every mark before it sent it: a mark that it does not know
proves that its disk was restored. It then forgets the gradients it kept, and the token starts a new
epoch.

The cap on contributions does not rely on reminders: see `disk.contribution_count`.

>>> from walklearn.node.protocol.tokens import Line
>>> line = Line(0, 1, reclaimer="ab" * 32, walk="cd" * 16)
>>> sent = Mark(line, 7)
>>> bob = Reminders().with_token_from("alice", sent)
>>> alice = Reminders()
>>> alice.knows(bob.had["alice"], began=Mark(line, 9))
True
>>> alice.knows(bob.had["alice"], began=Mark(line, 3))
False
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace

from walklearn.node.protocol.tokens import Mark


@dataclass(frozen=True)
class Reminders:
    """Marks that this node remembers for its neighbours, and the one they reminded it of.

    had: the newest token or final model from each neighbour. reminded: the newest mark that a
    neighbour had from this node and this node did not know of.
    """

    had: Mapping[str, Mark] = field(default_factory=dict)
    reminded: Mark | None = None

    def with_token_from(self, sender: str, mark: Mark) -> Reminders:
        """Remember a token or final model from this sender, unless a newer one is remembered."""
        if sender in self.had and mark < self.had[sender]:
            return self
        return replace(self, had={**self.had, sender: mark})

    def knows(self, mark: Mark, began: Mark | None, sent: Mark | None = None) -> bool:
        """True if this node, by its own record, can have sent that token.

        began: the newest mark on the disk when the process began, all of its earlier ones are no
        newer. sent: the last mark that this process sent to that neighbour.
        """
        known = [each for each in (began, sent, self.reminded) if each is not None]
        return any(mark <= each for each in known)

    def reminded_of(self, mark: Mark) -> Reminders:
        """Note that a neighbour had this mark from this node, whose disk does not know it."""
        return replace(self, reminded=mark)
