"""Which line of a TOML text a key stands on, for error messages: the parser does not tell.

A statement is a line, or as many lines as it takes until the parser is content (an array or a
text over several lines). So each statement is parsed by itself, and its keys are noted.

>>> lines = lines_of_keys('name = "a"\\n\\n[walk]\\nkind = "uniform"\\n')
>>> line_of(lines, "walk.kind"), line_of(lines, "walk.laziness")
(4, 3)
"""

from __future__ import annotations

import tomllib
from collections.abc import Iterator, Mapping
from typing import Any

Path = tuple[str | int, ...]


def lines_of_keys(text: str) -> dict[str, int]:
    """Each key path, such as "methods.gamma.epsilon" or "cells.0.name", with its line (from 1).

    The text must be valid TOML; what is not valid has no keys.
    """
    lines: dict[str, int] = {}
    table: Path = ()
    tables_of_array: dict[Path, int] = {}
    for number, statement in _statements(text):
        content = tomllib.loads(statement)
        if not statement.lstrip().startswith("["):
            for path in _paths(content):
                lines.setdefault(_dotted(table + path), number)
            continue
        *_, longest = _paths(content)  # for [[name]] it ends with 0, the index of its only table
        names = tuple(name for name in longest if name != 0)
        table = _resolve(names, tables_of_array, statement)
        for end in range(1, len(table) + 1):
            lines.setdefault(_dotted(table[:end]), number)
    return lines


def line_of(lines: Mapping[str, int], key: str) -> int | None:
    """The line of the key, or of the nearest table around it; None where there is neither."""
    while key not in lines and "." in key:
        key = key.rpartition(".")[0]
    return lines.get(key)


def _statements(text: str) -> Iterator[tuple[int, str]]:
    """The statements with the number of their first line."""
    start, gathered = 1, ""
    for number, line in enumerate(text.splitlines(keepends=True), start=1):
        gathered += line
        try:
            tomllib.loads(gathered)
        except tomllib.TOMLDecodeError:
            continue
        if gathered.strip() and not gathered.lstrip().startswith("#"):
            yield start, gathered
        start, gathered = number + 1, ""


def _resolve(names: Path, tables_of_array: dict[Path, int], statement: str) -> Path:
    """The header's path, with the number of the newest table after each array of tables."""
    path: Path = ()
    for place, name in enumerate(names):
        path += (name,)
        last = place == len(names) - 1
        if last and statement.lstrip().startswith("[["):
            tables_of_array[path] = tables_of_array.get(path, -1) + 1
        if path in tables_of_array:
            path += (tables_of_array[path],)
    return path


def _paths(content: Any) -> Iterator[Path]:
    """The paths of all keys, outer ones first; in arrays only tables have keys."""
    pairs = content.items() if isinstance(content, dict) else enumerate(content)
    for key, value in pairs:
        yield (key,)
        if isinstance(value, dict | list):
            yield from ((key, *rest) for rest in _paths(value))


def _dotted(path: Path) -> str:
    return ".".join(map(str, path))
