"""The token, and the names of walks and handovers; to and from the bytes of `messages.proto`.

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
walklearn.node.protocol.fields.MessageError: model lies outside Ball(radius=1.0), by 4.
"""

from __future__ import annotations

import hashlib
from dataclasses import dataclass, replace
from functools import cached_property, lru_cache
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from walklearn.files.wording import plural
from walklearn.node.protocol import fields
from walklearn.node.protocol import messages_pb2 as wire
from walklearn.node.protocol.fields import Vector
from walklearn.problem.domains import Domain

if TYPE_CHECKING:
    from walklearn.node.agreement.plan import Plan

_MODEL_FIELD = wire.Token.MODEL_FIELD_NUMBER
_SUM_FIELD = wire.Token.WEIGHTED_SUM_FIELD_NUMBER
_GRADIENTS_FIELD = wire.Token.GRADIENT_SUM_FIELD_NUMBER

# A line is renewed when its walk has made an eighth more updates than at the line's birth, and so
# many more: of two walks that meet, the one that lives has made at least 8/9 of the other's, or
# but for so many.
RENEWED_SHARE, RENEWED_AFTER = 1 / 8, 16
LEAST_CURVATURE = 1e-100  # of a token that knows one: a step must not overflow


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

    @property
    def renewed_at(self) -> int:
        """How many updates its walk has made when it goes on in a new line."""
        return self.updates + max(RENEWED_AFTER, int(self.updates * RENEWED_SHARE))

    @property
    def in_words(self) -> str:
        """The line as a log tells of it."""
        return f"{plural(self.updates, 'update')}, counter {self.counter}"


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
        """The limits that follow from the plan."""
        remembers = 0 if plan.memory is None else plan.nodes
        return cls(plan.size, plan.updates, plan.domain, remembers, plan.average)

    @property
    def sums(self) -> int:
        """How many numbers Σ γ w has; with memory there is none."""
        return self.size if self.average and not self.remembers else 0

    @property
    def largest_token(self) -> int:
        """How many bytes a token may have."""
        return 2 * fields.DOUBLE.itemsize * self.size + fields.ENVELOPE_BYTES


def encode_token(token: Token) -> bytes:
    """The token as bytes.

    The vectors are appended as the wire format has them (field number and type, length, content):
    handing megabytes to the message and taking them out again would copy them three times.
    """
    head = wire.Token(
        version=fields.VERSION,
        line=line_out(token.line),
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
        content = np.ascontiguousarray(vector, dtype=fields.DOUBLE).data.cast("B")
        parts += [bytes([field << 3 | 2]), _varint(content.nbytes), content]
    return b"".join(parts)


@np.errstate(over="ignore", invalid="ignore")  # what is not finite is found and told
def decode_token(content: bytes, limits: Limits) -> Token:
    """Read a token from bytes; `MessageError` if the plan does not allow it."""
    if len(content) > limits.largest_token:
        raise fields.MessageError(
            f"the token has {len(content)} bytes, and the plan allows {limits.largest_token}."
        )
    message = fields.parsed(wire.Token, content, "token")
    token = Token(
        line=line_in(message.line, "line"),
        updates=fields.count(message.updates, "updates", limits.updates),
        hop=fields.count(message.hop, "hop", message.updates),  # an update goes before every offer
        model=fields.vector(message.model, "model", limits.size),
        weighted_sum=fields.vector(message.weighted_sum, "weighted_sum", limits.sums),
        step_size_sum=fields.number(message.step_size_sum, "step_size_sum"),
        inverse_importance_sum=fields.number(
            message.inverse_importance_sum, "inverse_importance_sum"
        ),
        final=message.final,
        seal=fields.octets(message.seal, "seal"),
        ended_by=fields.matching(message.ended_by, "ended_by", fields.DIGEST_OR_NONE),
        end_seal=fields.octets(message.end_seal, "end_seal"),
        memory=_memory(message, limits) if message.HasField("memory") else None,
        proof=fields.octets(message.proof, "proof", fields.PROOF_BYTES),
    )
    _check_consistent(token, limits)
    return token


def _check_consistent(token: Token, limits: Limits) -> None:
    if token.final != (token.updates == limits.updates):
        raise fields.MessageError(
            f"updates is {token.updates} and final is {token.final}, but a token is final when "
            f"it has the plan's {limits.updates} updates, and only then."
        )
    fields.check_inside(token.model, limits.domain, "model")
    if limits.remembers:
        if token.step_size_sum or token.inverse_importance_sum:
            raise fields.MessageError(
                "step_size_sum and inverse_importance_sum are of another update."
            )
        return
    if token.updates and not token.inverse_importance_sum > 0:
        raise fields.MessageError("inverse_importance_sum must be positive.")
    if (token.step_size_sum > 0) != (token.updates > 0 and limits.average):
        raise fields.MessageError(
            "step_size_sum must be positive where the token carries an average."
        )
    # A mean of points of W lies in W, which is convex.
    rounding = 1e-15 * token.updates
    fields.check_inside(token.average, limits.domain, "weighted_sum / step_size_sum", rounding)


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
        raise fields.MessageError("memory is given, and the plan's update has none.")
    memory = Memory(
        epoch=fields.matching(message.epoch, "memory.epoch", fields.WALK),
        gradient_sum=fields.vector(token.gradient_sum, "gradient_sum", limits.size),
        nodes=message.nodes,
        ages=message.ages,
        squared_ages=message.squared_ages,
        curvature=message.curvature,
        collects=message.collects,
    )
    check_memory(memory, limits)
    return memory


def check_memory(memory: Memory, limits: Limits) -> None:
    """Refuse what no visits of the plan's nodes can have left, whether it comes or is to go."""
    fields.check_finite(memory.gradient_sum, "gradient_sum")
    for name in ("nodes", "ages", "squared_ages", "curvature"):
        fields.number(getattr(memory, name), f"memory.{name}")
    if memory.nodes > limits.remembers * (1.0 + 1e-6):
        raise fields.MessageError(
            f"memory.nodes is {memory.nodes:g}, and the plan has {limits.remembers}."
        )
    # Ages are whole numbers of hops: Σa ≤ Σa² ≤ (Σa)².
    if not memory.ages <= memory.squared_ages <= memory.ages * memory.ages:
        raise fields.MessageError(
            f"memory.squared_ages cannot be {memory.squared_ages:g} where memory.ages is "
            f"{memory.ages:g}."
        )
    if 0 < memory.curvature < LEAST_CURVATURE:
        raise fields.MessageError(
            f"memory.curvature must be 0 or at least {LEAST_CURVATURE:g}, it is "
            f"{memory.curvature:g}."
        )


def _varint(number: int) -> bytes:
    """A whole number as the wire format has it: seven bits a byte, the lowest first."""
    digits = bytearray()
    while number > 0x7F:
        digits.append(number & 0x7F | 0x80)
        number >>= 7
    digits.append(number)
    return bytes(digits)


@lru_cache(16)  # as below; a message copies it
def line_out(line: Line | None) -> wire.Line | None:
    """A line as the wire has it."""
    return None if line is None else wire.Line(**line._asdict())


def line_in(message: wire.Line, name: str) -> Line:
    """The line in a message, whose field has this name."""
    return _checked_line(message.updates, message.counter, message.reclaimer, message.walk, name)


@lru_cache(16)  # one walk has few of them, and each comes with every hop
def _checked_line(updates: int, counter: int, reclaimer: str, walk: str, name: str) -> Line:
    return Line(
        updates=fields.count(updates, f"{name}.updates", fields.LARGEST_COUNTER),
        counter=fields.count(counter, f"{name}.counter", fields.LARGEST_COUNTER, least=1),
        reclaimer=fields.matching(reclaimer, f"{name}.reclaimer", fields.FINGERPRINT),
        walk=fields.matching(walk, f"{name}.walk", fields.WALK),
    )


def mark_out(mark: Mark | None) -> wire.Mark | None:
    """A mark as the wire has it."""
    return None if mark is None else wire.Mark(line=line_out(mark.line), hop=mark.hop)
