"""Checks of arguments; each error names the argument and its value.

>>> check_whole("nodes", 5)
5
>>> check_number("laziness", 1.5, minimum=0.0, below=1.0)
Traceback (most recent call last):
    ...
ValueError: laziness must be a finite number of at least 0 and less than 1, got 1.5.
>>> check_choice("protect", "row", ("rows", "node"))
Traceback (most recent call last):
    ...
ValueError: protect must be "rows" or "node", got 'row'.
"""

from __future__ import annotations

import math
from numbers import Integral, Real
from typing import Any, get_args

import numpy as np

from walklearn.wording import format_value, join_choices


def is_whole(value: Any) -> bool:
    """True for an integer of Python or NumPy, but not for a boolean."""
    return isinstance(value, Integral) and not isinstance(value, bool)


def is_number(value: Any) -> bool:
    """True for a finite number that a double can hold."""
    if is_whole(value):
        return bool(abs(value) <= 2**1000)
    return isinstance(value, Real) and not isinstance(value, bool) and math.isfinite(value)


def limits_of(
    minimum: float = -math.inf,
    above: float = -math.inf,
    maximum: float = math.inf,
    below: float = math.inf,
) -> str:
    """Return the limits as words that follow "a finite number"; empty if there are none."""
    limits = {"of at least": minimum, "greater than": above, "at most": maximum, "less than": below}
    given = [f" {words} {limit:.12g}" for words, limit in limits.items() if math.isfinite(limit)]
    return " and".join(given)


def check_whole(name: str, value: Any, minimum: int = 1, maximum: float = math.inf) -> int:
    """Return the value as an integer, if it is a whole number from `minimum` to `maximum`."""
    if not is_whole(value) or not minimum <= value <= maximum:
        limits = limits_of(minimum, maximum=maximum)
        raise ValueError(f"{name} must be a whole number{limits}, got {format_value(value)}.")
    return int(value)


def check_number(
    name: str,
    value: Any,
    *,
    minimum: float = -math.inf,
    above: float = -math.inf,
    maximum: float = math.inf,
    below: float = math.inf,
) -> float:
    """Return the value as a float, if it is a finite number within these limits."""
    if not (is_number(value) and minimum <= value <= maximum and above < value < below):
        limits = limits_of(minimum, above, maximum, below)
        raise ValueError(f"{name} must be a finite number{limits}, got {format_value(value)}.")
    return float(value)


def check_length(name: str, array: Any, count: int, things: str) -> None:
    """Raise a ValueError unless an array has `count` entries, one for each of these things."""
    if np.shape(array) != (count,):
        raise ValueError(
            f"{name} must have one entry for each of the {count} {things}, got shape "
            f"{np.shape(array)}."
        )


def check_kind(name: str, value: Any, kind: Any, wanted: str) -> Any:
    """Return the value if it has this type, else raise a TypeError that says `wanted`."""
    if not isinstance(value, kind):
        raise TypeError(f"{name} must be {wanted}, got {format_value(value)}.")
    return value


def seed_error(seed: Any, kinds: str, name: str = "seed") -> ValueError:
    """Return the error for an invalid seed; `kinds` names the other types that are allowed."""
    wanted = f"a whole number of at least 0, {kinds} or None"
    return ValueError(f"{name} must be {wanted}, got {format_value(seed)}.")


def check_choice(name: str, value: Any, choices: Any) -> None:
    """Raise a ValueError unless the value is one of `choices`, a sequence or a Literal."""
    allowed = get_args(choices) or choices
    simple = value is None or isinstance(value, str | bool | np.bool_)  # 1 is not True
    if not simple or value not in allowed:
        known = join_choices(
            [f'"{each}"' if isinstance(each, str) else repr(each) for each in allowed]
        )
        raise ValueError(f"{name} must be {known}, got {format_value(value)}.")
