"""TOML tables whose values are checked when they are read.

Plans, studies and schemas are such tables. Errors name the file, line, key and value, and the
allowed values.

>>> table = CheckedTable.parse("seed = 1\\nnodse = 5\\nupdates = -3", "plan.toml")
>>> table.count("seed")
1
>>> table.count("updates")
Traceback (most recent call last):
    ...
walklearn.errors.InputError: plan.toml, line 3: updates must be a whole number of
at least 1; it is -3.
>>> table.only(["seed", "nodes", "updates"], "a plan")
Traceback (most recent call last):
    ...
walklearn.errors.InputError: plan.toml, line 2: nodse is not a key of a plan; did you mean
nodes? Allowed: seed, nodes, updates.
"""

from __future__ import annotations

import json
import math
import os
import re
import tomllib
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any, TypeVar

from walklearn.checks import is_number, is_whole, limits_of
from walklearn.errors import InputError
from walklearn.files.toml_lines import line_of, lines_of_keys
from walklearn.wording import closest, no_such_file

T = TypeVar("T")
_REQUIRED: Any = object()
MAX_COUNT = 10**12  # of anything that is counted
MAX_LABEL = 200
MAX_EXCERPT = 60


@dataclass(frozen=True)
class Source:
    """A TOML text, its name in messages, and the class of its errors."""

    name: str = ""
    text: str = ""
    error: type[InputError] = InputError

    @cached_property
    def lines(self) -> dict[str, int]:
        """Line of every key."""
        return lines_of_keys(self.text)


class CheckedTable(dict[str, Any]):
    """A table of a TOML text, whose methods check the values.

    If a key is missing, its default is returned unchanged; without a default the key is required.
    path: the dotted key of the table.
    """

    def __init__(self, content: Mapping[str, Any], source: Source | None = None, path: str = ""):
        super().__init__(content)
        self.source, self.path = source or Source(), path

    @classmethod
    def read(cls, path: str | os.PathLike[str], error: type[InputError]) -> CheckedTable:
        """Read a file; `error` is the class of its errors."""
        if not Path(path).is_file():
            raise error(no_such_file(Path(path)))
        try:
            text = Path(path).read_text(encoding="utf-8")
        except (OSError, UnicodeDecodeError) as problem:
            raise error(f"cannot read {path}: {problem}") from problem
        return cls.parse(text, str(path), error)

    @classmethod
    def parse(cls, text: str, name: str, error: type[InputError] = InputError) -> CheckedTable:
        """Read a text with this name in messages."""
        try:
            return cls(tomllib.loads(text), Source(name, text, error))
        except tomllib.TOMLDecodeError as problem:
            raise error(f"{name} is not TOML: {problem}.") from problem

    def error(self, key: str, problem: str) -> InputError:
        """Return the error for a key; an empty key stands for the table itself.

        `problem` follows the key in the message: "must be …", or ": " and another message.
        """
        full = self._full(key)
        line = line_of(self.source.lines, full) if full else None
        place = self.source.name if line is None else f"{self.source.name}, line {line}"
        return self.source.error(problem, full, place)

    @contextmanager
    def name_errors(self, key: str = "", note: str = "") -> Iterator[None]:
        """Add the name of the table, or of one of its keys, to errors inside the block."""
        try:
            yield
        except (ValueError, TypeError, ArithmeticError, MemoryError) as error:
            if isinstance(error, self.source.error):
                raise
            raise self.error(key, f": {error}{note}") from error

    def only(self, keys: Iterable[str], what: str) -> None:
        """Refuse keys that are not allowed; `what` is the name of the table in the message."""
        allowed = list(keys)
        for key in self:
            if key not in allowed:
                near = closest(key, allowed)
                hint = f"; did you mean {near}?" if near else "."
                message = f"is not a key of {what}{hint} Allowed: {', '.join(allowed) or 'none'}."
                raise self.error(key, message)

    def value(
        self, key: str, default: Any = _REQUIRED, *, wanted: str, fits: Callable[[Any], bool]
    ) -> Any:
        """Read the value of a key, if it fits; `wanted` completes the sentence "it must be …"."""
        if key not in self:
            if default is _REQUIRED:
                raise self.error(key, f"is missing; it must be {wanted}.")
            return default
        if not fits(self[key]):
            raise self.error(key, f"must be {wanted}; it is {excerpt(self[key])}.")
        return self[key]

    def text(self, key: str, default: T = _REQUIRED) -> str | T:
        """Read a text."""
        value: str | T = self.value(key, default, wanted="text", fits=is_text)
        return value

    def label(self, key: str, default: T = _REQUIRED) -> str | T:
        """Read a text of one line, with 1 to 200 characters."""
        wanted = f"a text of 1 to {MAX_LABEL} characters"
        value: str | T = self.value(key, default, wanted=wanted, fits=_is_label)
        return value

    def name(self, key: str) -> str:
        """Read a name of lower-case letters, digits and hyphens."""
        self.value(key, wanted="a name of a-z, 0-9 and -", fits=_is_name)
        return self.label(key)

    def labels(self, key: str, default: T = _REQUIRED) -> tuple[str, ...] | T:
        """Read a list of distinct labels; whole numbers become texts."""
        wanted = 'a list of texts, such as ["a", "b"]'
        values = self.value(key, default, wanted=wanted, fits=_is_filled_list)
        if key not in self:
            return default
        texts = tuple(str(value) if is_whole(value) else value for value in values)
        for place, text in enumerate(texts, start=1):
            if not _is_label(text):
                raise self.error(key, f"must be a list of texts; entry {place} is {excerpt(text)}.")
            if text in texts[: place - 1]:
                raise self.error(key, f'names "{text}" twice.')
        return texts

    def choice(self, key: str, choices: Iterable[str], default: T = _REQUIRED) -> str | T:
        """Read one of these names."""
        names = list(choices)
        wanted = f"one of {', '.join(names)}"
        value: str | T = self.value(key, default, wanted=wanted, fits=lambda _: True)
        if key in self and value not in names:
            raise self._not_known(key, value, names)
        return value

    def names(
        self, key: str, choices: Iterable[str], default: T = _REQUIRED, *, or_one: bool = False
    ) -> tuple[str, ...] | T:
        """Read a list of these names; with `or_one` also a name without a list."""
        if or_one and is_text(self.get(key)):
            return (self.choice(key, choices),)
        values = self.value(key, default, wanted="a list of names", fits=_is_filled_list)
        if key not in self:
            return default
        names = list(choices)
        for value in values:
            if value not in names:
                raise self._not_known(key, value, names)
        return tuple(values)

    def _not_known(self, key: str, value: Any, names: list[str]) -> InputError:
        """Return the error of a value that is none of these names."""
        near = closest(value, names) if is_text(value) else None
        hint = f'; did you mean "{near}"?' if near else "."
        message = f"is {excerpt(value)}, which is not known{hint} Choose one of {', '.join(names)}."
        return self.error(key, message)

    def flag(self, key: str, default: T = _REQUIRED) -> bool | T:
        """Read true or false."""
        value: bool | T = self.value(key, default, wanted="true or false", fits=is_flag)
        return value

    def count(
        self, key: str, default: T = _REQUIRED, *, minimum: int = 1, maximum: int = MAX_COUNT
    ) -> int | T:
        """Read a whole number from `minimum` to `maximum`."""
        too_large = is_whole(self.get(key)) and self[key] > maximum
        bound = f"at most {maximum:,}" if too_large else f"at least {minimum}"
        value: int | T = self.value(
            key, default, wanted=f"a whole number of {bound}",
            fits=lambda value: is_whole(value) and minimum <= value <= maximum,
        )  # fmt: skip
        return value

    def number(
        self,
        key: str,
        default: T = _REQUIRED,
        *,
        minimum: float = -math.inf,
        above: float = -math.inf,
        below: float = math.inf,
    ) -> float | T:
        """Read a finite number ≥ `minimum`, > `above` and < `below`."""
        value = self.value(
            key, default, wanted=f"a finite number{limits_of(minimum, above, below=below)}",
            fits=lambda value: is_number(value) and minimum <= value and above < value < below,
        )  # fmt: skip
        return float(value) if key in self else default

    def pair(
        self, key: str, default: T = _REQUIRED, *, rising: bool = True
    ) -> tuple[float, float] | T:
        """Read two finite numbers; with `rising` the smaller one must come first."""
        wanted = f"two numbers [low, high]{' with low < high' if rising else ''}"
        value = self.value(
            key, default, wanted=wanted,
            fits=lambda value: _is_pair(value) and (not rising or value[0] < value[1]),
        )  # fmt: skip
        return (float(value[0]), float(value[1])) if key in self else default

    def table(self, key: str, default: T = _REQUIRED) -> CheckedTable | T:
        """Read the table under the key."""
        wanted = f"a table of keys and values, such as [{self._full(key)}]"
        value = self.value(key, default, wanted=wanted, fits=_is_table)
        return CheckedTable(value, self.source, self._full(key)) if key in self else default

    def tables(self, key: str) -> tuple[CheckedTable, ...]:
        """Read a list of tables, which is empty if the key is missing."""
        full = self._full(key)
        values = self.value(
            key, [], wanted=f"a list of tables: write [[{full}]]",
            fits=lambda value: isinstance(value, list) and all(map(_is_table, value)),
        )  # fmt: skip
        return tuple(
            CheckedTable(value, self.source, f"{full}.{place}")
            for place, value in enumerate(values)
        )

    def _full(self, key: str) -> str:
        return f"{self.path}.{key}" if self.path and key else self.path or key


def is_text(value: Any) -> bool:
    """Return True for a text."""
    return isinstance(value, str)


def is_flag(value: Any) -> bool:
    """Return True for true or false."""
    return isinstance(value, bool)


def excerpt(value: Any) -> str:
    """Return a value as TOML, shortened if it is long.

    >>> excerpt({"bounds": [1, True], "text": "x"})
    '{ bounds = [1, true], text = "x" }'
    """
    written = toml_text(value)
    return written if len(written) <= MAX_EXCERPT else written[: MAX_EXCERPT - 3] + "..."


def toml_text(value: Any) -> str:
    """Return a value as TOML."""
    if isinstance(value, bool | str):
        return json.dumps(value, ensure_ascii=False)
    if isinstance(value, list | tuple):
        return f"[{', '.join(map(toml_text, value))}]"
    if isinstance(value, Mapping):
        pairs = ", ".join(f"{key} = {toml_text(each)}" for key, each in value.items())
        return f"{{ {pairs} }}" if pairs else "{}"
    return str(value)


def _is_label(value: Any) -> bool:
    return is_text(value) and 0 < len(value) <= MAX_LABEL and value.isprintable()


def _is_name(value: Any) -> bool:
    return _is_label(value) and re.fullmatch(r"[a-z0-9][a-z0-9-]*", value) is not None


def _is_filled_list(value: Any) -> bool:
    return isinstance(value, list | tuple) and bool(value)


def _is_pair(value: Any) -> bool:
    return isinstance(value, list | tuple) and len(value) == 2 and all(map(is_number, value))


def _is_table(value: Any) -> bool:
    return isinstance(value, Mapping)
