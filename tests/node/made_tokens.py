"""Tokens made by hand, for tests."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np

from walklearn.node.protocol.tokens import Line, Token
from walklearn.visit import Token as Payload

ENVELOPE = ("line", "hop", "epoch", "final", "seal", "ended_by", "end_seal")


def made_token(
    line: Line, hop: int, updates: int, model: Any, weighted_sum: Any = (),
    step_size_sum: float = 0.0, inverse_sum: float = 0.0, final: bool = False, **more: Any,
) -> Token:  # fmt: skip
    """A token with these arrays, without sums that are 0. more: as for `changed`."""
    if step_size_sum:
        more |= {"weighted_sum": weighted_sum, "step_size_sum": step_size_sum}
    if inverse_sum:
        more["inverse_sum"] = inverse_sum
    payload = Payload(0, updates, updates, {}, {"model": model})
    return changed(Token(line, hop, payload, final=final), **more)


def changed(token: Token, **changes: Any) -> Token:
    """The token with other values for these arrays, for `updates` or for parts of the envelope."""
    envelope = {name: changes.pop(name) for name in ENVELOPE if name in changes}
    updates = changes.pop("updates", token.updates)
    arrays = {name: np.asarray(value) for name, value in changes.items()}
    walk = {name: arrays.pop(name) for name in ("inverse_sum",) if name in arrays}
    payload = Payload(0, updates, updates, token.payload.walk | walk, token.payload.update | arrays)
    return replace(token, payload=payload, **envelope)
