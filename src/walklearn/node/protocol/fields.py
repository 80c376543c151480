"""Checks of the fields of messages: each returns the value, or names the field that is wrong."""

from __future__ import annotations

import math
import re
from typing import Any, TypeVar

import numpy as np
from google.protobuf.message import DecodeError, Message
from numpy.typing import NDArray

from walklearn.objectives.linear.domains import Domain

Vector = NDArray[np.float64]
Sort = TypeVar("Sort", bound=Message)
Sized = TypeVar("Sized", str, bytes)

VERSION = 1
LARGEST_COUNTER = 2**63 - 1
LARGEST_DEGREE = 10**6
LARGEST_ENTRY = 1e100  # of a model where W is everything: squares must not overflow
LONGEST_NAME, LONGEST_REASON, LONGEST_PLAN = 200, 1_000, 1_000_000
LONGEST_SEAL = 256  # bytes; a signature by P-256 has about 72, and a line has two of them
# What a token has besides its two vectors, and a greeting besides its plan, with room to spare.
ENVELOPE_BYTES = 4_096

FINGERPRINT = re.compile(r"[0-9a-f]{64}")
WALK = re.compile(r"[0-9a-f]{32}")
DIGEST_OR_NONE = re.compile(r"([0-9a-f]{64})?")
DOUBLE = np.dtype("<f8")


class MessageError(ValueError):
    """A message that cannot be what it says it is: which field, and what is wrong with it."""


def parsed(sort: type[Sort], content: bytes, name: str, longest: int) -> Any:
    """Read a message of at most `longest` bytes; refuse an unknown version."""
    at_most(content, f"the {name}", longest)
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


def count(value: int, name: str, maximum: int, minimum: int = 0) -> int:
    """Read a whole number within these bounds."""
    if not minimum <= value <= maximum:
        raise MessageError(f"{name} must be {minimum} to {maximum}, it is {value}.")
    return value


def number(value: float, name: str) -> float:
    """Read a finite number that is not negative."""
    if not (math.isfinite(value) and value >= 0):
        raise MessageError(f"{name} must be finite and at least 0, it is {value!r}.")
    return value


def matching(value: str, name: str, pattern: re.Pattern[str]) -> str:
    """Read a text that matches the pattern."""
    if not pattern.fullmatch(value):
        raise MessageError(f"{name} must match {pattern.pattern}, it is {value[:80]!r}.")
    return value


def at_most(value: Sized, name: str, longest: int) -> Sized:
    """Return a text or bytes of at most `longest` characters or bytes."""
    if len(value) > longest:
        units = "characters" if isinstance(value, str) else "bytes"
        raise MessageError(f"{name} has {len(value)} {units}, the most are {longest}.")
    return value


def seal(value: bytes, name: str) -> bytes:
    """Read a signature, or those of a line."""
    return at_most(value, name, LONGEST_SEAL)


def fingerprints(content: bytes, name: str) -> tuple[str, ...]:
    """Read fingerprints of 32 bytes each."""
    if len(content) % 32:
        raise MessageError(f"{name} has {len(content)} bytes, which is no multiple of 32.")
    return tuple(content[start : start + 32].hex() for start in range(0, len(content), 32))


def vector(content: bytes, name: str, size: int) -> Vector:
    """Read a model of so many finite numbers."""
    if len(content) != size * DOUBLE.itemsize:
        raise MessageError(
            f"{name} has {len(content)} bytes, and the plan's model of {size} numbers has "
            f"{size * DOUBLE.itemsize}."
        )
    vector: Vector = np.frombuffer(content, DOUBLE)
    check_finite(vector, name)
    return vector


def check_finite(vector: Vector, name: str) -> None:
    """Refuse a vector with an entry that is no number."""
    total = np.dot(vector, vector)  # NaN and infinity show in it, and one number is soon seen
    if not math.isfinite(total) and not np.isfinite(vector).all():
        raise MessageError(f"{name} has an entry that is NaN or infinite.")


def check_inside(model: Vector, domain: Domain, name: str, rounding: float = 0.0) -> None:
    """Refuse a model outside of the domain, but for rounding."""
    if not is_inside(model, domain, rounding):
        distance = float(np.linalg.norm(model - domain.project(model)))
        raise MessageError(f"{name} lies outside {domain!r}, by {distance:g}.")


def is_inside(model: Vector, domain: Domain, rounding: float = 0.0) -> bool:
    """True if the model is finite, not too large to compute with, and in W up to rounding."""
    squared = float(np.dot(model, model))
    if not squared <= (LARGEST_ENTRY * (1.0 + rounding)) ** 2:  # NaN compares false
        return False
    nearest = domain.project(model)
    if nearest is model:
        return True
    distance = float(np.linalg.norm(model - nearest))
    return distance <= (1e-9 + rounding) * (1.0 + math.sqrt(squared))
