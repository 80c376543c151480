"""Conversion of values to columns of a node's database, and back."""

from __future__ import annotations

import json
import struct
from collections.abc import Mapping
from typing import Any

import numpy as np

from walklearn.node.protocol.learner import Kept
from walklearn.node.protocol.reminders import Reminders
from walklearn.node.protocol.tokens import Line, Mark

# What is remembered for a neighbour: its fingerprint, the line's place in a list, hop.
_HAD = struct.Struct("<32sIQ")


def text(description: Mapping[str, Any] | None) -> str | None:
    """The description of a mechanism or of noise, as JSON."""
    return None if description is None else json.dumps(dict(description))


def memory_out(memory: Reminders) -> bytes:
    """The reminders as bytes: a line of JSON, then a few bytes for each neighbour."""
    lines = sorted({each.line for each in memory.had.values()})
    head = json.dumps([lines, mark_out(memory.reminded)]).encode()
    places = {line: place for place, line in enumerate(lines)}
    had = [
        _HAD.pack(bytes.fromhex(who), places[each.line], each.hop)
        for who, each in memory.had.items()
    ]
    return b"\n".join([head, b"".join(had)])


def memory_in(content: bytes) -> Reminders:
    """The reminders in these bytes."""
    head, _, rows = content.partition(b"\n")
    lines, reminded = json.loads(head)
    had = {who.hex(): Mark(Line(*lines[place]), hop) for who, place, hop in _HAD.iter_unpack(rows)}
    return Reminders(had, mark_in(reminded))


def mark_out(mark: Mark | None) -> str | None:
    """A mark as a line of text."""
    return None if mark is None else f"{mark.line.text} {mark.hop}"


def mark_in(text: str | None) -> Mark | None:
    """The mark in a line of text."""
    if text is None:
        return None
    updates, counter, reclaimer, walk, hop = text.split()
    return Mark(Line(int(updates), int(counter), reclaimer, walk), int(hop))


def seals_out(seals: Mapping[Line, bytes]) -> str:
    """The seals of lines as JSON."""
    return json.dumps({mark_out(Mark(line, 0)): seal.hex() for line, seal in seals.items()})


def seals_in(content: str) -> dict[Line, bytes]:
    """The seals of lines, from this JSON."""
    found = ((mark_in(line), seal) for line, seal in dict(json.loads(content)).items())
    return {mark.line: bytes.fromhex(seal) for mark, seal in found if mark is not None}


def kept_out(kept: Kept | None) -> bytes | None:
    """Return the node's state after its last visit as bytes: a line of JSON, then the slopes."""
    if kept is None:
        return None
    slopes = np.ascontiguousarray(kept.state.get("slopes", ()), "<f8")
    updated = int(kept.state.get("updated", 0))
    head = {"epoch": kept.epoch, "slopes": slopes.shape, "updated": updated, "past": kept.past}
    return json.dumps(head).encode() + b"\n" + slopes.tobytes()


def kept_in(content: bytes | None) -> Kept | None:
    """Return the node's state after its last visit from these bytes."""
    if content is None:
        return None
    head, _, numbers = content.partition(b"\n")
    facts = json.loads(head)
    slopes = np.frombuffer(numbers, "<f8").astype(np.float64).reshape(facts["slopes"])
    state = {"slopes": slopes, "updated": np.asarray(facts["updated"])}
    return Kept(facts["epoch"], state, tuple(facts["past"]))
