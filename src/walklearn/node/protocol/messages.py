"""What crosses the wire: plain dataclasses, to and from the bytes of `messages.proto`.

Nothing that arrives is trusted. `decode_*` either gives a message all of whose fields are within
the plan's limits, or raises `MessageError` that says which field is wrong; it never raises
anything else, whatever the bytes. Nothing is ever unpickled.

>>> from walklearn.problem.domains import Ball
>>> limits = Limits(size=2, updates=1000, domain=Ball(1.0))
>>> line = Line(0, 1, reclaimer="ab" * 32, walk="cd" * 16)
>>> token = Token(line, hop=3, updates=5, model=np.array([0.6, 0.8]),
...               weighted_sum=np.zeros(2), step_size_sum=0.5, inverse_importance_sum=5.0)
>>> decode_token(encode_token(token), limits).model
array([0.6, 0.8])
>>> decode_token(encode_token(replace(token, model=np.array([3.0, 4.0]))), limits)
Traceback (most recent call last):
    ...
walklearn.node.protocol.messages.MessageError: model lies outside Ball(radius=1.0), by 4.
"""

from __future__ import annotations

import enum
import hashlib
import math
import re
from dataclasses import dataclass, replace
from functools import cached_property, lru_cache
from typing import TYPE_CHECKING, Any, NamedTuple, TypeVar

import numpy as np
from google.protobuf.message import DecodeError, Message
from numpy.typing import NDArray

from walklearn.node.protocol import messages_pb2 as wire
from walklearn.problem.domains import Domain

if TYPE_CHECKING:
    from walklearn.node.agreement.plan import Plan

Vector = NDArray[np.float64]
Sort = TypeVar("Sort", bound=Message)

VERSION = 1
LARGEST_COUNTER = 2**63 - 1
LARGEST_DEGREE = 10**6
LARGEST_ENTRY = 1e100  # of a model where W is everything: squares must not overflow
LONGEST_NAME, LONGEST_REASON, LONGEST_PLAN = 200, 1_000, 1_000_000
LONGEST_SEAL = 256  # bytes; a signature by P-256 has about 72, and a line has two of them
PROOF_BYTES = 16
# What a token has besides its two vectors, and a greeting besides its plan, with room to spare.
ENVELOPE_BYTES = 4_096

_FINGERPRINT = re.compile(r"[0-9a-f]{64}")
_WALK = re.compile(r"[0-9a-f]{32}")
_DIGEST_OR_NONE = re.compile(r"([0-9a-f]{64})?")
_DOUBLE = np.dtype("<f8")
_MODEL_FIELD = wire.Token.MODEL_FIELD_NUMBER
_SUM_FIELD = wire.Token.WEIGHTED_SUM_FIELD_NUMBER
_GRADIENTS_FIELD = wire.Token.GRADIENT_SUM_FIELD_NUMBER


class MessageError(ValueError):
    """A message that cannot be what it says it is: which field, and what is wrong with it."""


class Line(NamedTuple):
    """Which walk, begun or resumed by whom. Lines are ordered, and the largest one lives.

    All of it is fixed at birth. updates: how many the walk had made, as far as its beginner
    knew, so that a fresh walk at 0 gives way to one under way; a walk that has come far since is
    *renewed*, which gives it a larger line. counter: 1, and one more each time it is begun again.
    reclaimer: the fingerprint of who began it. No node begins two lines with the same counter at
    the same updates, so no two of them tie.
    """

    updates: int
    counter: int
    reclaimer: str
    walk: str

    @property
    def beginning(self) -> tuple[int, str, str]:
        """What a renewed line has in common with the one before."""
        return self[1:]


class Mark(NamedTuple):
    """The name of one handover: (line, hop). A node takes a token only if its mark is new."""

    line: Line
    hop: int


@dataclass(frozen=True, eq=False)
class Memory:
    """What a token remembers; see `updates.memory`. It fits what nodes keep of the same epoch."""

    epoch: str
    gradient_sum: Vector
    nodes: float = 0.0
    ages: float = 0.0
    squared_ages: float = 0.0
    curvature: float = 0.0
    collects: bool = False


@dataclass(frozen=True, eq=False)
class Token:
    """What travels. `hop` counts the handovers of the line, `updates` is k.

    weighted_sum: Σ γ_m w_m, over the models before each update; step_size_sum: Σ γ_m.
    inverse_importance_sum: Σ 1/R over the visits, from which R̄ is estimated.
    final: the plan's updates are done, the last one by `ended_by`. seal, end_seal: where there is
    a book, the signatures of who began and renewed the line and of who declared the end; proof: by
    which its last sender would know it again, see `memory`. They are no part of the digest.
    memory: where the plan's update remembers gradients; there are then no sums, and no average.
    None begins a new epoch at the next visit: the walk is new, or this is a copy from which it
    goes on, and what nodes keep need not fit it.
    """

    line: Line
    hop: int
    updates: int
    model: Vector
    weighted_sum: Vector
    step_size_sum: float
    inverse_importance_sum: float
    final: bool = False
    seal: bytes = b""
    ended_by: str = ""
    end_seal: bytes = b""
    memory: Memory | None = None
    proof: bytes = b""

    @cached_property
    def mark(self) -> Mark:
        """The name of the handover that it is on, or came by."""
        return Mark(self.line, self.hop)

    @property
    def average(self) -> Vector:
        """w̄, which the theorems are about; with memory w itself."""
        return self.weighted_sum / self.step_size_sum if self.step_size_sum else self.model

    @cached_property
    def encoded(self) -> bytes:
        """Its bytes, made once: the disk and the wire take the same."""
        return encode_token(self)

    @property
    def content(self) -> int:
        """What tells two tokens of one mark apart, within one process."""
        return hash((self.updates, self.model.tobytes()))

    @cached_property
    def digest(self) -> str:
        """SHA-256 of its bytes, by which two nodes see that they have the same one."""
        bare = replace(self, seal=b"", end_seal=b"", proof=b"")
        return hashlib.sha256(encode_token(bare)).hexdigest()


class Progress(NamedTuple):
    """How far the walk has come, and for how long it has been there."""

    mark: Mark
    updates: int
    age_seconds: float


class Reminder(NamedTuple):
    """That a node had this handover from a neighbour, with the proof that came with it."""

    mark: Mark
    proof: bytes


@dataclass(frozen=True)
class Announcement:
    """What a node tells a neighbour about itself.

    degree: all its neighbours, silent ones too. importance: R_i as released.
    reaches_you: its own last call to the neighbour was answered.
    newest, final: the newest line it has heard of, and that of the final model it has, whose
    digest is `final_digest`. progress: the furthest that it knows of. had: the last token or final
    model that it had from the neighbour.
    """

    degree: int
    importance: float
    reaches_you: bool = False
    newest: Line | None = None
    final: Line | None = None
    progress: Progress | None = None
    final_digest: str = ""
    had: Reminder | None = None


@dataclass(frozen=True)
class Greeting:
    """Said on connecting: who, by which plan, and the announcement."""

    name: str
    plan_digest: str
    announcement: Announcement
    plan: str = ""
    newest_seal: bytes = b""
    final_seal: bytes = b""


class Outcome(enum.Enum):
    """What became of a token or a final model that was sent."""

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


@dataclass(frozen=True)
class Limits:
    """What the plan allows a token to be.

    remembers: gradients of so many nodes, 0 for none. average: whether it carries Σ γ w.
    """

    size: int
    updates: int
    domain: Domain
    remembers: int = 0
    average: bool = True

    @classmethod
    def of_plan(cls, plan: Plan) -> Limits:
        """Those of the plan."""
        remembers = 0 if plan.memory is None else plan.nodes
        return cls(plan.size, plan.updates, plan.domain, remembers, plan.average)

    @property
    def sums(self) -> int:
        """How many numbers Σ γ w has; with memory there is none."""
        return self.size if self.average and not self.remembers else 0

    @property
    def largest_token(self) -> int:
        """How many bytes a token may have."""
        return 2 * _DOUBLE.itemsize * self.size + ENVELOPE_BYTES


def encode_token(token: Token) -> bytes:
    """The token as bytes.

    The vectors are appended as the wire format has them (field number and type, length, content):
    handing megabytes to the message and taking them out again would copy them three times.
    """
    head = wire.Token(
        version=VERSION,
        line=_line_out(token.line),
        hop=token.hop,
        updates=token.updates,
        step_size_sum=token.step_size_sum,
        inverse_importance_sum=token.inverse_importance_sum,
        final=token.final,
        seal=token.seal,
        ended_by=token.ended_by,
        end_seal=token.end_seal,
        memory=_memory_out(token.memory),
        proof=token.proof,
    ).SerializeToString()
    parts: list[Any] = [head]
    vectors = [(_MODEL_FIELD, token.model), (_SUM_FIELD, token.weighted_sum)]
    if token.memory is not None:
        vectors.append((_GRADIENTS_FIELD, token.memory.gradient_sum))
    for field, vector in vectors:
        content = np.ascontiguousarray(vector, dtype=_DOUBLE).data.cast("B")
        parts += [bytes([field << 3 | 2]), _varint(content.nbytes), content]
    return b"".join(parts)


@np.errstate(over="ignore", invalid="ignore")  # what is not finite is found and told
def decode_token(content: bytes, limits: Limits) -> Token:
    """The token in the bytes; `MessageError` if it is none that the plan allows."""
    if len(content) > limits.largest_token:
        raise MessageError(
            f"the token has {len(content)} bytes, and the plan allows {limits.largest_token}."
        )
    message = _parsed(wire.Token, content, "token")
    token = Token(
        line=_line(message.line, "line"),
        updates=_count(message.updates, "updates", limits.updates),
        hop=_count(message.hop, "hop", message.updates),  # an update goes before every offer
        model=_vector(message.model, "model", limits.size),
        weighted_sum=_vector(message.weighted_sum, "weighted_sum", limits.sums),
        step_size_sum=_number(message.step_size_sum, "step_size_sum"),
        inverse_importance_sum=_number(message.inverse_importance_sum, "inverse_importance_sum"),
        final=message.final,
        seal=_bytes(message.seal, "seal"),
        ended_by=_matching(message.ended_by, "ended_by", _DIGEST_OR_NONE),
        end_seal=_bytes(message.end_seal, "end_seal"),
        memory=_memory(message, limits) if message.HasField("memory") else None,
        proof=_bytes(message.proof, "proof", PROOF_BYTES),
    )
    _check_consistent(token, limits)
    return token


def _check_consistent(token: Token, limits: Limits) -> None:
    if token.final != (token.updates == limits.updates):
        raise MessageError(
            f"updates is {token.updates} and final is {token.final}, but a token is final when "
            f"it has the plan's {limits.updates} updates, and only then."
        )
    _check_inside(token.model, limits.domain, "model")
    if limits.remembers:
        if token.step_size_sum or token.inverse_importance_sum:
            raise MessageError("step_size_sum and inverse_importance_sum are of another update.")
        return
    if token.updates and not token.inverse_importance_sum > 0:
        raise MessageError("inverse_importance_sum must be positive.")
    if (token.step_size_sum > 0) != (token.updates > 0 and limits.average):
        raise MessageError("step_size_sum must be positive where the token carries an average.")
    # A mean of points of W lies in W, which is convex.
    rounding = 1e-15 * token.updates
    _check_inside(token.average, limits.domain, "weighted_sum / step_size_sum", rounding)


def _memory_out(memory: Memory | None) -> wire.Memory | None:
    if memory is None:
        return None
    return wire.Memory(
        epoch=memory.epoch,
        nodes=memory.nodes,
        ages=memory.ages,
        squared_ages=memory.squared_ages,
        curvature=memory.curvature,
        collects=memory.collects,
    )


def _memory(token: wire.Token, limits: Limits) -> Memory:
    message = token.memory
    if not limits.remembers:
        raise MessageError("memory is given, and the plan's update has none.")
    nodes = _number(message.nodes, "memory.nodes")
    if nodes > limits.remembers * (1.0 + 1e-6):
        raise MessageError(f"memory.nodes is {nodes:g}, and the plan has {limits.remembers}.")
    return Memory(
        epoch=_matching(message.epoch, "memory.epoch", _WALK),
        gradient_sum=_vector(token.gradient_sum, "gradient_sum", limits.size),
        nodes=nodes,
        ages=_number(message.ages, "memory.ages"),
        squared_ages=_number(message.squared_ages, "memory.squared_ages"),
        curvature=_number(message.curvature, "memory.curvature"),
        collects=message.collects,
    )


def _varint(number: int) -> bytes:
    """A whole number as the wire format has it: seven bits a byte, the lowest first."""
    digits = bytearray()
    while number > 0x7F:
        digits.append(number & 0x7F | 0x80)
        number >>= 7
    digits.append(number)
    return bytes(digits)


def encode_greeting(greeting: Greeting) -> bytes:
    """The greeting as bytes."""
    told = greeting.announcement
    return wire.Greeting(
        version=VERSION,
        name=greeting.name,
        plan_digest=greeting.plan_digest,
        plan=greeting.plan,
        newest_seal=greeting.newest_seal,
        final_seal=greeting.final_seal,
        announcement=wire.Announcement(
            degree=told.degree,
            importance=told.importance,
            reaches_you=told.reaches_you,
            newest=_line_out(told.newest),
            final=_line_out(told.final),
            progress=_progress_out(told.progress),
            final_digest=told.final_digest,
            had=None if told.had is None else _mark_out(told.had.mark),
            had_proof=b"" if told.had is None else told.had.proof,
        ),
    ).SerializeToString()


def decode_greeting(content: bytes) -> Greeting:
    """The greeting in the bytes; whether the plans agree is not looked at."""
    if len(content) > LONGEST_PLAN + ENVELOPE_BYTES:
        raise MessageError(f"the greeting has {len(content)} bytes, which is too long.")
    message = _parsed(wire.Greeting, content, "greeting")
    told = message.announcement
    importance = _number(told.importance, "importance")
    if not importance > 0:
        raise MessageError(f"importance must be positive, it is {importance!r}.")
    return Greeting(
        name=_text(message.name, "name", LONGEST_NAME),
        plan_digest=_matching(message.plan_digest, "plan_digest", _FINGERPRINT),
        plan=_text(message.plan, "plan", LONGEST_PLAN),
        newest_seal=_bytes(message.newest_seal, "newest_seal"),
        final_seal=_bytes(message.final_seal, "final_seal"),
        announcement=Announcement(
            degree=_count(told.degree, "degree", LARGEST_DEGREE),
            importance=importance,
            reaches_you=told.reaches_you,
            newest=_line(told.newest, "newest") if told.HasField("newest") else None,
            final=_line(told.final, "final") if told.HasField("final") else None,
            progress=_progress(told.progress) if told.HasField("progress") else None,
            final_digest=_matching(told.final_digest, "final_digest", _DIGEST_OR_NONE),
            had=_reminder(told) if told.HasField("had") else None,
        ),
    )


def encode_receipt(receipt: Receipt) -> bytes:
    """The receipt as bytes."""
    return wire.Receipt(
        version=VERSION,
        outcome=receipt.outcome.name,
        reason=receipt.reason[:LONGEST_REASON],
        newest=_line_out(receipt.newest),
        newest_seal=receipt.newest_seal,
    ).SerializeToString()


def decode_receipt(content: bytes) -> Receipt:
    """The receipt in the bytes."""
    if len(content) > ENVELOPE_BYTES:
        raise MessageError(f"the receipt has {len(content)} bytes, which is too long.")
    message = _parsed(wire.Receipt, content, "receipt")
    if message.outcome not in _OUTCOMES:
        raise MessageError(f"outcome {message.outcome} is none that this version knows.")
    return Receipt(
        outcome=_OUTCOMES[message.outcome],
        reason=_text(message.reason, "reason", LONGEST_REASON),
        newest=_line(message.newest, "newest") if message.HasField("newest") else None,
        newest_seal=_bytes(message.newest_seal, "newest_seal"),
    )


def _parsed(sort: type[Sort], content: bytes, name: str) -> Any:
    message: Any = sort()
    try:
        message.ParseFromString(content)
    except DecodeError:
        raise MessageError(f"these bytes are no {name}.") from None
    if not 1 <= message.version <= VERSION:
        raise MessageError(
            f"the {name} needs version {message.version} of the messages, and this node reads "
            f"1 to {VERSION}: one of the two must be updated."
        )
    return message


@lru_cache(16)  # as below; a message copies it
def _line_out(line: Line | None) -> wire.Line | None:
    return None if line is None else wire.Line(**line._asdict())


def _progress_out(progress: Progress | None) -> wire.Progress | None:
    if progress is None:
        return None
    (line, hop), updates, age = progress
    return wire.Progress(line=_line_out(line), hop=hop, updates=updates, age_seconds=age)


def _progress(message: wire.Progress) -> Progress:
    return Progress(
        mark=Mark(
            _line(message.line, "progress.line"),
            _count(message.hop, "progress.hop", message.updates),
        ),
        updates=_count(message.updates, "progress.updates", LARGEST_COUNTER),
        age_seconds=_number(message.age_seconds, "progress.age_seconds"),
    )


def _mark_out(mark: Mark | None) -> wire.Mark | None:
    return None if mark is None else wire.Mark(line=_line_out(mark.line), hop=mark.hop)


def _reminder(told: wire.Announcement) -> Reminder:
    mark = Mark(_line(told.had.line, "had"), _count(told.had.hop, "had.hop", LARGEST_COUNTER))
    return Reminder(mark, _bytes(told.had_proof, "had_proof", PROOF_BYTES))


def _line(message: wire.Line, name: str) -> Line:
    return _checked_line(message.updates, message.counter, message.reclaimer, message.walk, name)


@lru_cache(16)  # one walk has few of them, and each comes with every hop
def _checked_line(updates: int, counter: int, reclaimer: str, walk: str, name: str) -> Line:
    return Line(
        updates=_count(updates, f"{name}.updates", LARGEST_COUNTER),
        counter=_count(counter, f"{name}.counter", LARGEST_COUNTER, least=1),
        reclaimer=_matching(reclaimer, f"{name}.reclaimer", _FINGERPRINT),
        walk=_matching(walk, f"{name}.walk", _WALK),
    )


def _count(value: int, name: str, most: int, least: int = 0) -> int:
    if not least <= value <= most:
        raise MessageError(f"{name} must be {least} to {most}, it is {value}.")
    return value


def _number(value: float, name: str) -> float:
    if not (math.isfinite(value) and value >= 0):
        raise MessageError(f"{name} must be finite and at least 0, it is {value!r}.")
    return value


def _matching(value: str, name: str, pattern: re.Pattern[str]) -> str:
    if not pattern.fullmatch(value):
        raise MessageError(f"{name} must match {pattern.pattern}, it is {value[:80]!r}.")
    return value


def _text(value: str, name: str, longest: int) -> str:
    if len(value) > longest:
        raise MessageError(f"{name} has {len(value)} characters, the most are {longest}.")
    return value


def _bytes(value: bytes, name: str, longest: int = LONGEST_SEAL) -> bytes:
    if len(value) > longest:
        raise MessageError(f"{name} has {len(value)} bytes, the most are {longest}.")
    return value


def _vector(content: bytes, name: str, size: int) -> Vector:
    if len(content) != size * _DOUBLE.itemsize:
        raise MessageError(
            f"{name} has {len(content)} bytes, and the plan's model of {size} numbers has "
            f"{size * _DOUBLE.itemsize}."
        )
    vector: Vector = np.frombuffer(content, _DOUBLE)
    if not _DOUBLE.isnative:
        vector = vector.astype(np.float64)
    total = np.dot(vector, vector)  # NaN and infinity show in it, and one number is soon seen
    if not math.isfinite(total) and not np.isfinite(vector).all():
        raise MessageError(f"{name} has an entry that is NaN or infinite.")
    return vector


def _check_inside(model: Vector, domain: Domain, name: str, rounding: float = 0.0) -> None:
    if not is_inside(model, domain, rounding):
        distance = float(np.linalg.norm(model - domain.project(model)))
        raise MessageError(f"{name} lies outside {domain!r}, by {distance:g}.")


def is_inside(model: Vector, domain: Domain, rounding: float = 0.0) -> bool:
    """Whether the model is finite, of a size to be computed with, and in W up to rounding."""
    squared = float(np.dot(model, model))
    if not squared <= (LARGEST_ENTRY * (1.0 + rounding)) ** 2:  # NaN compares false
        return False
    nearest = domain.project(model)
    if nearest is model:
        return True
    distance = float(np.linalg.norm(model - nearest))
    return distance <= (1e-9 + rounding) * (1.0 + math.sqrt(squared))
