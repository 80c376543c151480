"""The token, and the names of walks and handovers; to and from the bytes of `messages.proto`.

Nothing that arrives is trusted. `decode_*` either gives a message all of whose fields are within
the plan's limits, or raises `MessageError` that says which field is wrong; it never raises
anything else, whatever the bytes. Nothing is ever unpickled.

>>> from walklearn.objectives.linear.domains import Ball
>>> limits = Limits(size=2, updates=1000, domain=Ball(1.0))
>>> line = Line(0, 1, reclaimer="ab" * 32, walk="cd" * 16)
>>> update = {"model": np.array([0.6, 0.8]), "weighted_sum": np.zeros(2),
...           "step_size_sum": np.array(0.5)}
>>> payload = Payload(0, 5, 5, {"inverse_sum": np.array(5.0)}, update)
>>> decode_token(encode_token(Token(line, 3, payload)), limits).model
array([0.6, 0.8])
>>> outside = payload._replace(update=update | {"model": np.array([3.0, 4.0])})
>>> decode_token(encode_token(Token(line, 3, outside)), limits)
Traceback (most recent call last):
    ...
walklearn.node.protocol.fields.MessageError: model lies outside Ball(radius=1.0), by 4.
"""

from __future__ import annotations

import hashlib
from dataclasses import dataclass, replace
from functools import cached_property, lru_cache
from typing import Any, NamedTuple

import numpy as np

from walklearn.arrays import Arrays
from walklearn.node.agreement.plan import Plan
from walklearn.node.protocol import fields
from walklearn.node.protocol import messages_pb2 as wire
from walklearn.node.protocol.fields import Vector
from walklearn.objectives.linear.domains import Domain
from walklearn.updates.saga import SCALARS
from walklearn.visit import Token as Payload
from walklearn.wording import plural

# The fields of `messages.proto` that hold the declared arrays: vectors, numbers, and, only if the
# token has an epoch, the sum of gradients and the numbers in the message Memory.
_VECTORS = {
    "model": wire.Token.MODEL_FIELD_NUMBER,
    "weighted_sum": wire.Token.WEIGHTED_SUM_FIELD_NUMBER,
    "gradient_sum": wire.Token.GRADIENT_SUM_FIELD_NUMBER,
}
_NUMBERS = {"step_size_sum": "step_size_sum", "inverse_sum": "inverse_importance_sum"}
_OF_EPOCH = (*SCALARS, "collects")
_NOTHING = np.zeros(0)

# A line is renewed when its walk has made an eighth more updates than at the line's birth, and so
# many more: of two walks that meet, the one that lives has made at least 8/9 of the other's, or
# but for so many.
RENEWED_SHARE, RENEWED_AFTER = 1 / 8, 16
MIN_CURVATURE = 1e-100  # of a token that knows one: a step must not overflow


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
        """The part of a generation that a renewal keeps."""
        return self[1:]

    @property
    def renewed_at(self) -> int:
        """The number of updates after which the walk continues in a new generation."""
        return self.updates + max(RENEWED_AFTER, int(self.updates * RENEWED_SHARE))

    @property
    def text(self) -> str:
        """The text that is signed, proved and stored: a change of it would invalidate these."""
        return " ".join(map(str, self))

    @property
    def in_words(self) -> str:
        """The line as a log tells of it."""
        return f"{plural(self.updates, 'update')}, counter {self.counter}"


class Mark(NamedTuple):
    """The name of one handover: (line, hop). A node takes a token only if its mark is new."""

    line: Line
    hop: int


@dataclass(frozen=True, eq=False)
class Token:
    """The envelope around the token of a visit, which is the payload.

    `hop` counts the handovers of the line. epoch: the name of the epoch, if nodes keep arrays of
    the update. Those of the same epoch fit the payload. Without a name the next visit begins a new
    epoch, and only the model counts: the walk is new, or it continues from a copy. final: the
    plan's updates are done, the last one by `ended_by`. seal, end_seal: if there is a roster, the
    signatures of the nodes that began and renewed the line and of the node that declared the end.
    Seals are no part of the digest.
    """

    line: Line
    hop: int
    payload: Payload
    epoch: str = ""
    final: bool = False
    seal: bytes = b""
    ended_by: str = ""
    end_seal: bytes = b""

    @property
    def updates(self) -> int:
        """The number of updates made, k."""
        return self.payload.updates

    @property
    def model(self) -> Vector:
        """The model w."""
        return self.payload.update["model"]

    @cached_property
    def mark(self) -> Mark:
        """The name of the handover that it is on, or came by."""
        return Mark(self.line, self.hop)

    @property
    def carries_average(self) -> bool:
        """True if the token carries the sums for w̄; some plans have none."""
        return bool(self.payload.update.get("step_size_sum", 0.0))

    @property
    def average(self) -> Vector:
        """w̄, which the theorems are about; w if the token carries no average."""
        arrays = self.payload.update
        if not self.carries_average:
            return self.model
        return np.asarray(arrays["weighted_sum"] / arrays["step_size_sum"])

    @cached_property
    def encoded(self) -> bytes:
        """Its bytes, made once: the disk and the wire take the same."""
        return encode_token(self)

    @cached_property
    def digest(self) -> str:
        """SHA-256 of its bytes, by which two nodes see that they have the same one."""
        bare = replace(self, seal=b"", end_seal=b"")
        return hashlib.sha256(encode_token(bare)).hexdigest()


@dataclass(frozen=True)
class Limits:
    """Limits of a token under a plan.

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
        """The size of Σ γ w; 0 for updates with memory."""
        return self.size if self.average and not self.remembers else 0

    @property
    def largest_token(self) -> int:
        """The largest size of a token in bytes."""
        return 2 * fields.DOUBLE.itemsize * self.size + fields.ENVELOPE_BYTES


def encode_token(token: Token) -> bytes:
    """The token as bytes.

    The vectors are appended as the wire format has them (field number and type, length, content):
    handing megabytes to the message and taking them out again would copy them three times.
    """
    arrays = token.payload.walk | token.payload.update
    names, memory = ["model", "weighted_sum"], None
    if token.epoch:
        names.append("gradient_sum")
        memory = wire.Memory(epoch=token.epoch, **{name: arrays[name].item() for name in _OF_EPOCH})
    head = wire.Token(
        version=fields.VERSION,
        line=line_out(token.line),
        hop=token.hop,
        updates=token.updates,
        final=token.final,
        seal=token.seal,
        ended_by=token.ended_by,
        end_seal=token.end_seal,
        memory=memory,
        **{field: arrays[name].item() for name, field in _NUMBERS.items() if name in arrays},
    ).SerializeToString()
    parts: list[Any] = [head]
    for name in names:
        vector = arrays.get(name, _NOTHING)
        content = np.ascontiguousarray(vector, dtype=fields.DOUBLE).data.cast("B")
        parts += [bytes([_VECTORS[name] << 3 | 2]), _varint(content.nbytes), content]
    return b"".join(parts)


@np.errstate(over="ignore", invalid="ignore")  # what is not finite is found and told
def decode_token(content: bytes, limits: Limits) -> Token:
    """Read a token from bytes; `MessageError` if the plan does not allow it."""
    message = fields.parsed(wire.Token, content, "token", limits.largest_token)
    updates = fields.count(message.updates, "updates", limits.updates)
    epoch = ""
    if message.HasField("memory"):
        epoch = fields.matching(message.memory.epoch, "memory.epoch", fields.WALK)
    token = Token(
        line=line_in(message.line, "generation"),
        hop=fields.count(message.hop, "hop", updates),  # an update goes before every offer
        payload=Payload(0, updates, updates, *_arrays(message, limits)),
        epoch=epoch,
        final=message.final,
        seal=fields.seal(message.seal, "signature"),
        ended_by=fields.matching(message.ended_by, "ended_by", fields.DIGEST_OR_NONE),
        end_seal=fields.seal(message.end_seal, "end_signature"),
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
        return
    if token.updates and not token.payload.walk["inverse_sum"] > 0:
        raise fields.MessageError("inverse_importance_sum must be positive.")
    if token.carries_average != (token.updates > 0 and limits.average):
        raise fields.MessageError(
            "step_size_sum must be positive where the token carries an average."
        )
    # A mean of points of W lies in W, which is convex.
    rounding = 1e-15 * token.updates
    fields.check_inside(token.average, limits.domain, "weighted_sum / step_size_sum", rounding)


def _arrays(message: Any, limits: Limits) -> tuple[Arrays, Arrays]:
    """Return the arrays of walk and update in a message, each checked by itself."""
    update: Arrays = {"model": fields.vector(message.model, "model", limits.size)}
    sums = fields.vector(message.weighted_sum, "weighted_sum", limits.sums)
    steps, inverse = (
        np.asarray(fields.number(getattr(message, field), field)) for field in _NUMBERS.values()
    )
    if not limits.remembers:
        if message.HasField("memory"):
            raise fields.MessageError("memory is given, and the plan's update has none.")
        if limits.average or steps:
            update |= {"weighted_sum": sums, "step_size_sum": steps}
        return {"inverse_sum": inverse}, update
    if steps or inverse:
        raise fields.MessageError("step_size_sum and inverse_importance_sum are of another update.")
    if message.HasField("memory"):
        update["gradient_sum"] = fields.vector(message.gradient_sum, "gradient_sum", limits.size)
        update |= {name: np.asarray(getattr(message.memory, name)) for name in _OF_EPOCH}
        check_memory(update, limits)
    return {}, update


def check_memory(arrays: Arrays, limits: Limits) -> None:
    """Refuse arrays of an update with memory that no visits of the plan's nodes can leave."""
    fields.check_finite(arrays["gradient_sum"], "gradient_sum")
    nodes, ages, squares, curvature = (
        fields.number(float(arrays[name]), f"memory.{name}") for name in SCALARS
    )
    if nodes > limits.remembers * (1.0 + 1e-6):
        raise fields.MessageError(
            f"memory.nodes is {nodes:g}, and the plan has {limits.remembers}."
        )
    # Ages are whole numbers of hops: Σa ≤ Σa² ≤ (Σa)².
    if not ages <= squares <= ages * ages:
        raise fields.MessageError(
            f"memory.squared_ages cannot be {squares:g} where memory.ages is {ages:g}."
        )
    if 0 < curvature < MIN_CURVATURE:
        raise fields.MessageError(
            f"memory.curvature must be 0 or at least {MIN_CURVATURE:g}, it is {curvature:g}."
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
        counter=fields.count(counter, f"{name}.counter", fields.LARGEST_COUNTER, minimum=1),
        reclaimer=fields.matching(reclaimer, f"{name}.reclaimer", fields.FINGERPRINT),
        walk=fields.matching(walk, f"{name}.walk", fields.WALK),
    )


def mark_out(mark: Mark | None) -> wire.Mark | None:
    """A mark as the wire has it."""
    return None if mark is None else wire.Mark(line=line_out(mark.line), hop=mark.hop)
