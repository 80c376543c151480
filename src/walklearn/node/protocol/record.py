"""The record on a node's disk, which survives a crash."""

from __future__ import annotations

import enum
from collections.abc import Mapping
from dataclasses import dataclass, field

from walklearn.node.protocol.learner import Kept
from walklearn.node.protocol.reminders import Reminders
from walklearn.node.protocol.tokens import Line, Mark, Token


class Place(enum.Enum):
    """Place of the last token that this node knows."""

    HERE = "here"
    LEAVING = "leaving"  # on its way to the receiver, who may have it
    GONE = "gone"


@dataclass(frozen=True, eq=False)
class Record:
    """State that survives a crash.

    newest: the newest handover this node has taken part in, or (line, 0) where it only heard of
    the line. token: the last one here, with the place it is at; if gone, still the newest model
    seen. receiver: whom it leaves for. final: the final model. contributions: how often this
    node's rows have shown in a model. kept: what the node remembers of the token's last visit.
    memory: what is remembered for neighbours. ends: the digest of the final model that each
    neighbour has, by its last word, and that other participants have, by a neighbour's word.
    """

    newest: Mark | None = None
    token: Token | None = None
    place: Place = Place.GONE
    receiver: str | None = None
    final: Token | None = None
    contributions: int = 0
    kept: Kept | None = None
    memory: Reminders = field(default_factory=Reminders)
    ends: Mapping[str, str] = field(default_factory=dict)

    @property
    def newest_line(self) -> Line | None:
        """The newest line heard of."""
        return None if self.newest is None else self.newest.line

    @property
    def final_line(self) -> Line | None:
        """The line of the final model."""
        return None if self.final is None else self.final.line

    @property
    def final_digest(self) -> str:
        """The digest of the final model, empty if there is none."""
        return "" if self.final is None else self.final.digest

    @property
    def confirmed_by(self) -> list[str]:
        """The participants that are known to have the same final model."""
        if self.final is None:
            return []
        return [each for each, digest in self.ends.items() if digest == self.final_digest]

    @property
    def newest_model(self) -> Token | None:
        """The final token, or else the last one here; None if none was."""
        return self.final or self.token
