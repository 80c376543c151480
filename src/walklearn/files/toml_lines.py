"""Line numbers of the keys of a TOML text, for error messages; `tomllib` does not report them.

The text is split into statements: one line each, or several for an array or a text that spans
lines. Each statement is parsed by itself, and its keys are recorded.

>>> lines = lines_of_keys('name = "a"\\n\\n[walk]\\nkind = "uniform"\\n')
>>> line_of(lines, "walk.kind"), line_of(lines, "walk.laziness")
(4, 3)
"""

from __future__ import annotations

import tomllib
from collections import Counter
from collections.abc import Iterator, Mapping
from typing import Any

Path = tuple[str | int, ...]


def lines_of_keys(text: str) -> dict[str, int]:
    """Return the line (from 1) of each key path, such as "methods.gamma.epsilon" or "cells.0.name".

    The text must be valid TOML.
    """
    lines: dict[str, int] = {}
    table: Path = ()
    counts = Counter[Path]()  # the tables of each array
    for number, statement in _statements(text):
        paths = list(_paths(tomllib.loads(statement)))
        keys = [table + path for path in paths]
        if statement.lstrip().startswith("["):
            table, names = (), [name for name in paths[-1] if name != 0]
            for place, name in enumerate(names, start=1):
                table += (name,)
                counts[table] += place == len(names) and paths[-1][-1] == 0  # [[name]]
                table += (counts[table] - 1,) if counts[table] else ()
            keys = [table[:end] for end in range(1, len(table) + 1)]
        for key in keys:
            lines.setdefault(".".join(map(str, key)), number)
    return lines


def line_of(lines: Mapping[str, int], key: str) -> int | None:
    """Return the line of the key, or else of the innermost table that contains it, or None."""
    while key not in lines and "." in key:
        key = key.rpartition(".")[0]
    return lines.get(key)


def _statements(text: str) -> Iterator[tuple[int, str]]:
    """Yield the statements with the number of their first line."""
    start, gathered = 1, ""
    for number, line in enumerate(text.splitlines(keepends=True), start=1):
        gathered += line
        try:
            content = tomllib.loads(gathered)
        except tomllib.TOMLDecodeError:
            continue
        if content:
            yield start, gathered
        start, gathered = number + 1, ""


def _paths(content: Any) -> Iterator[Path]:
    """Yield the paths of all keys, outer ones before inner ones."""
    pairs = content.items() if isinstance(content, dict) else enumerate(content)
    for key, value in pairs:
        yield (key,)
        if isinstance(value, dict | list):
            yield from ((key, *rest) for rest in _paths(value))
