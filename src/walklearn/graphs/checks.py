"""Checks of single arguments: each names the argument, says what was wrong, and what is right.

>>> whole("nodes", 5, least=1)
5
"""

import operator
from typing import Any, get_args


def whole(name: str, value: int, least: int, most: int | None = None) -> int:
    """Accept any kind of integer within limits, as Python's own."""
    try:
        value = operator.index(value)
    except TypeError:
        raise TypeError(f"{name} must be a whole number, got {value!r}") from None
    if value < least or (most is not None and value > most):
        limits = f"at least {least}" if most is None else f"between {least} and {most}"
        raise ValueError(f"{name} must be {limits}, got {value}")
    return value


def fraction(name: str, value: float) -> float:
    """Accept a number from 0 to 1, as Python's own."""
    if not 0 <= value <= 1:
        raise ValueError(f"{name} must be between 0 and 1, got {value}")
    return float(value)


def require_choice(name: str, value: str, choices: Any) -> None:
    """Refuse a word that is not one of a Literal type's."""
    if value not in get_args(choices):
        options = ", ".join(f'"{choice}"' for choice in get_args(choices))
        raise ValueError(f"{name} must be one of {options}, got {value!r}")
