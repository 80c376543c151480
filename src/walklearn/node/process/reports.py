"""Reports of a running node to its owner: counters and log lines that name neighbours."""

from __future__ import annotations

from collections.abc import Mapping

from walklearn.node.process.logs import Log
from walklearn.node.process.metrics import Counters
from walklearn.node.protocol.events import Event, Note, TokenArrived

# Notes that come with every hop.
_QUIET = ("handed over", "silent neighbour", "rejected")


class Reports:
    """Counts and logs what happens. names: of the neighbours, by their fingerprints."""

    def __init__(self, counters: Counters, log: Log) -> None:
        self.counters, self._log = counters, log
        self.names: Mapping[str, str] = {}

    def name(self, fingerprint: str) -> str:
        """Of a neighbour; of who is none, the fingerprint itself."""
        return self.names.get(fingerprint, fingerprint)

    def refused(self, reason: str, caller: str) -> None:
        """Report that a message or a connection was turned away."""
        self.counters.add("refusals", reason)
        self._log.warning("refused", reason=reason, caller=self.name(caller))

    def unanswered(self, receiver: str, error: Exception) -> None:
        """Report that nobody knows whether a handover arrived."""
        self.counters.add("handovers_uncertain")
        self._log.warning("handover unanswered", neighbour=self.names.get(receiver), reason=error)

    def final_unanswered(self, neighbour: str, error: Exception) -> None:
        """Report that the final model may not have arrived and is sent again."""
        self._log.debug("final model unanswered", neighbour=self.names.get(neighbour), reason=error)

    def disk_error(self, error: Exception) -> None:
        """Report that the disk refused."""
        self.counters.add("disk_errors")
        self._log.error("cannot write", reason=error)

    def work(self, event: Event, amount: int) -> None:
        """Count an update that was made, or take one back (-1) that was not made after all."""
        if amount:
            self.counters.add("updates", amount=amount)
            if isinstance(event, TokenArrived):
                self.counters.add("handovers_received", amount=amount)

    def note(self, note: Note) -> None:
        """Report what the protocol notes."""
        if note.what == "handed over":
            self.counters.add("handovers_sent")
        else:
            self.counters.add("notes", note.what)
        if note.neighbour:
            self._log.warning(note.what, detail=note.detail, neighbour=self.name(note.neighbour))
        else:
            tell = self._log.debug if note.what in _QUIET else self._log.info
            tell(note.what, detail=note.detail)
