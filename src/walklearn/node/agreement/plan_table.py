"""A table of a plan, read key by key: every mistake is told with its key, its line and a remedy.

>>> table = Table({"nodes": -3}, where="plan.toml", lines={"nodes": 7})
>>> table.count("nodes")
Traceback (most recent call last):
    ...
walklearn.node.agreement.plan_table.PlanError: plan.toml, line 7: nodes must be a whole number of at
least 1; it is -3.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Mapping
from typing import Any, TypeVar

from walklearn.files.toml_lines import line_of
from walklearn.files.wording import closest

T = TypeVar("T")
_REQUIRED: Any = object()
LONGEST_TEXT = 200
LARGEST_COUNT = 10**12


class PlanError(ValueError):
    """A plan that cannot be used: what is wrong, at which key and line, and what to do."""


class Table:
    """What stands under one key of the plan; each key is asked for once, `done` refuses the rest.

    where: the name of the file; path: the keys that lead here; lines: of `lines_of_keys`.
    """

    def __init__(
        self, content: Mapping[str, Any], where: str, lines: Mapping[str, int], path: str = ""
    ) -> None:
        self._left = dict(content)
        self._known: list[str] = []
        self._where, self._lines, self._path = where, lines, path

    def error(self, key: str, problem: str) -> PlanError:
        """The error that the key has this problem."""
        full = self._full(key)
        line = line_of(self._lines, full)
        place = self._where if line is None else f"{self._where}, line {line}"
        return PlanError(f"{place}: {full} {problem}")

    def value(self, key: str, default: object = _REQUIRED) -> Any:
        """Whatever stands there."""
        self._known.append(key)
        if key in self._left:
            return self._left.pop(key)
        if default is _REQUIRED:
            raise self.error(key, "is missing.")
        return default

    def text(self, key: str, default: T = _REQUIRED) -> str | T:
        """A text that is neither empty nor long."""
        value = self.value(key, default)
        if value is not default and not is_text(value):
            wanted = f"must be a text of 1 to {LONGEST_TEXT} characters"
            raise self.error(key, f"{wanted}; it is {_shown(value)}.")
        return default if value is default else str(value)

    def choice(self, key: str, choices: Collection[str], default: T = _REQUIRED) -> str | T:
        """One of these texts."""
        value = self.value(key, default)
        if value is not default and value not in choices:
            listed = ", ".join(f'"{choice}"' for choice in choices)
            raise self.error(key, f"must be one of {listed}; it is {_shown(value)}.")
        return default if value is default else str(value)

    def flag(self, key: str, default: bool) -> bool:
        """true or false."""
        value = self.value(key, default)
        if not isinstance(value, bool):
            raise self.error(key, f"must be true or false; it is {_shown(value)}.")
        return value

    def count(self, key: str, default: T = _REQUIRED, least: int = 1) -> int | T:
        """A whole number of at least `least`."""
        value = self.value(key, default)
        if value is not default and not (is_whole(value) and least <= value <= LARGEST_COUNT):
            wanted = f"must be a whole number of at least {least}"
            raise self.error(key, f"{wanted}; it is {_shown(value)}.")
        return default if value is default else int(value)

    def number(
        self, key: str, default: T = _REQUIRED, least: float = -math.inf, above: float = -math.inf
    ) -> float | T:
        """A finite number of at least `least` and greater than `above`."""
        value = self.value(key, default)
        if value is default:
            return default
        if not (is_number(value) and value >= least and value > above):
            bound = f" of at least {least:g}" if least > -math.inf else ""
            bound = f" greater than {above:g}" if above > -math.inf else bound
            raise self.error(key, f"must be a finite number{bound}; it is {_shown(value)}.")
        return float(value)

    def pair(self, key: str, default: T = _REQUIRED) -> tuple[float, float] | T:
        """Two numbers, the smaller one first."""
        value = self.value(key, default)
        if value is default:
            return default
        numbers = isinstance(value, list) and len(value) == 2 and all(map(is_number, value))
        if not numbers or not value[0] < value[1]:
            wanted = "must be two numbers [low, high] with low < high"
            raise self.error(key, f"{wanted}; it is {_shown(value)}.")
        return float(value[0]), float(value[1])

    def table(self, key: str, default: T = _REQUIRED) -> Table | T:
        """The table under the key."""
        value = self.value(key, default)
        if value is default:
            return default
        if not isinstance(value, dict):
            raise self.error(key, f"must be a table of keys and values; it is {_shown(value)}.")
        return self.inner(key, value)

    def inner(self, key: str, content: Mapping[str, Any]) -> Table:
        """The content of a key, once it is known to be a table."""
        return Table(content, self._where, self._lines, self._full(key))

    def done(self) -> None:
        """Refuse the keys that nobody asked for."""
        for key in self._left:
            close = closest(key, self._known)
            hint = f'Did you mean "{close}"?' if close else f"Known are {', '.join(self._known)}."
            raise self.error(key, f"is not a key of a plan here. {hint}")

    def _full(self, key: str) -> str:
        return f"{self._path}.{key}" if self._path else key


def is_text(value: Any) -> bool:
    """Whether it is a text that is neither empty nor too long, on one line."""
    return isinstance(value, str) and 0 < len(value) <= LONGEST_TEXT and value.isprintable()


def is_whole(value: Any) -> bool:
    """Whether it is a whole number (true and false are none)."""
    return isinstance(value, int) and not isinstance(value, bool)


def is_number(value: Any) -> bool:
    """Whether it is a finite number, whole or not, that a double can hold."""
    if is_whole(value):
        return bool(abs(value) <= 2**1000)
    return isinstance(value, float) and math.isfinite(value)


def _shown(value: Any) -> str:
    shown = repr(value)
    return shown if len(shown) <= 60 else shown[:57] + "..."
