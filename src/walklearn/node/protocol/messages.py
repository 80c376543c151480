"""Messages between nodes besides the token: greetings and receipts."""

from __future__ import annotations

import enum
from dataclasses import dataclass
from typing import NamedTuple

from walklearn.node.protocol import fields
from walklearn.node.protocol import messages_pb2 as wire
from walklearn.node.protocol.tokens import Line, Mark, line_in, line_out, mark_out


class Progress(NamedTuple):
    """Progress of the walk, and its age."""

    mark: Mark
    updates: int
    age_seconds: float


@dataclass(frozen=True)
class Announcement:
    """A node's announcement to a neighbour.

    degree: all its neighbours, silent ones too. importance: R_i as released.
    reaches_you: its own last call to the neighbour was answered.
    newest, final: the newest line it has heard of, and that of the final model it has, whose
    digest is `final_digest`. progress: the furthest that it knows of. had: the last token or final
    model that it had from the neighbour. confirmed_by: other participants that have the same final
    model, as far as it knows; told only where there is a roster.
    """

    degree: int
    importance: float
    reaches_you: bool = False
    newest: Line | None = None
    final: Line | None = None
    progress: Progress | None = None
    final_digest: str = ""
    had: Mark | None = None
    confirmed_by: tuple[str, ...] = ()


@dataclass(frozen=True)
class Greeting:
    """Said on connecting: who, by which plan, and the announcement."""

    name: str
    plan_digest: str
    announcement: Announcement
    plan: str = ""
    newest_seal: bytes = b""
    final_seal: bytes = b""
    progress_seal: bytes = b""


class Outcome(enum.Enum):
    """Outcome of sending a token or a final model."""

    ACCEPTED = "accepted"  # it is on the receiver's disk: forget it
    OBSOLETE = "obsolete"  # a newer line exists: forget it
    REFUSED = "refused"  # it was not taken: it is still yours


_OUTCOMES = {wire.Receipt.Outcome.Value(each.name): each for each in Outcome}


@dataclass(frozen=True)
class Receipt:
    """The answer to a token or a final model; `newest` is the receiver's newest line."""

    outcome: Outcome
    reason: str = ""
    newest: Line | None = None
    newest_seal: bytes = b""


def encode_greeting(greeting: Greeting) -> bytes:
    """The greeting as bytes."""
    announced = greeting.announcement
    return wire.Greeting(
        version=fields.VERSION,
        name=greeting.name,
        plan_digest=greeting.plan_digest,
        plan=greeting.plan,
        newest_seal=greeting.newest_seal,
        final_seal=greeting.final_seal,
        progress_seal=greeting.progress_seal,
        announcement=wire.Announcement(
            degree=announced.degree,
            importance=announced.importance,
            reaches_you=announced.reaches_you,
            newest=line_out(announced.newest),
            final=line_out(announced.final),
            progress=_progress_out(announced.progress),
            final_digest=announced.final_digest,
            had=mark_out(announced.had),
            confirmed_by=bytes.fromhex("".join(announced.confirmed_by)),
        ),
    ).SerializeToString()


def decode_greeting(content: bytes) -> Greeting:
    """The greeting in the bytes; whether the plans agree is not looked at."""
    longest = fields.LONGEST_PLAN + fields.ENVELOPE_BYTES
    message = fields.parsed(wire.Greeting, content, "greeting", longest)
    theirs = message.announcement
    importance = fields.number(theirs.importance, "importance")
    if not importance > 0:
        raise fields.MessageError(f"importance must be positive, it is {importance!r}.")
    return Greeting(
        name=fields.at_most(message.name, "name", fields.LONGEST_NAME),
        plan_digest=fields.matching(message.plan_digest, "plan_digest", fields.FINGERPRINT),
        plan=fields.at_most(message.plan, "plan", fields.LONGEST_PLAN),
        newest_seal=fields.seal(message.newest_seal, "newest_signature"),
        final_seal=fields.seal(message.final_seal, "final_signature"),
        progress_seal=fields.seal(message.progress_seal, "progress_signature"),
        announcement=Announcement(
            degree=fields.count(theirs.degree, "degree", fields.LARGEST_DEGREE),
            importance=importance,
            reaches_you=theirs.reaches_you,
            newest=line_in(theirs.newest, "newest") if theirs.HasField("newest") else None,
            final=line_in(theirs.final, "final") if theirs.HasField("final") else None,
            progress=_progress(theirs.progress) if theirs.HasField("progress") else None,
            final_digest=fields.matching(
                theirs.final_digest, "final_digest", fields.DIGEST_OR_NONE
            ),
            had=_mark(theirs.had, "had") if theirs.HasField("had") else None,
            confirmed_by=fields.fingerprints(theirs.confirmed_by, "confirmed_by"),
        ),
    )


def encode_receipt(receipt: Receipt) -> bytes:
    """The receipt as bytes."""
    return wire.Receipt(
        version=fields.VERSION,
        outcome=receipt.outcome.name,
        reason=receipt.reason[: fields.LONGEST_REASON],
        newest=line_out(receipt.newest),
        newest_seal=receipt.newest_seal,
    ).SerializeToString()


def decode_receipt(content: bytes) -> Receipt:
    """The receipt in the bytes."""
    message = fields.parsed(wire.Receipt, content, "receipt", fields.ENVELOPE_BYTES)
    if message.outcome not in _OUTCOMES:
        raise fields.MessageError(f"outcome {message.outcome} is none that this version knows.")
    return Receipt(
        outcome=_OUTCOMES[message.outcome],
        reason=fields.at_most(message.reason, "reason", fields.LONGEST_REASON),
        newest=line_in(message.newest, "newest") if message.HasField("newest") else None,
        newest_seal=fields.seal(message.newest_seal, "newest_signature"),
    )


def _progress_out(progress: Progress | None) -> wire.Progress | None:
    if progress is None:
        return None
    (line, hop), updates, age = progress
    return wire.Progress(line=line_out(line), hop=hop, updates=updates, age_seconds=age)


def _progress(message: wire.Progress) -> Progress:
    return Progress(
        mark=_mark(message, "progress", message.updates),
        updates=fields.count(message.updates, "progress.updates", fields.LARGEST_COUNTER),
        age_seconds=fields.number(message.age_seconds, "progress.age_seconds"),
    )


def _mark(
    message: wire.Mark | wire.Progress, name: str, max_hop: int = fields.LARGEST_COUNTER
) -> Mark:
    line = line_in(message.line, f"{name}.generation")
    return Mark(line, fields.count(message.hop, f"{name}.hop", max_hop))
