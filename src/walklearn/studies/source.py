"""The text of a study, and errors that say where in it something is wrong.

>>> source = Source("study.toml", 'name = "x"\\nupdates = -1')
>>> source.table["updates"]
-1
>>> source.error(("updates",), "must be positive; it is -1")
StudyError('study.toml, line 2: updates must be positive; it is -1')
"""

from __future__ import annotations

import tomllib
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from walklearn.files.toml_lines import line_of, lines_of_keys


class StudyError(ValueError):
    """A study that cannot be run as it is written: where, what is wrong, what is allowed."""


@dataclass(frozen=True)
class Source:
    """A TOML text with the name that messages give it, usually its file's."""

    name: str
    text: str

    @cached_property
    def table(self) -> dict[str, Any]:
        """What the text says."""
        try:
            return tomllib.loads(self.text)
        except tomllib.TOMLDecodeError as error:
            raise StudyError(f"{self.name} is not TOML: {error}") from error

    @cached_property
    def lines(self) -> dict[str, int]:
        """The line of every key."""
        return lines_of_keys(self.text)

    def error(self, path: Sequence[str | int], message: str) -> StudyError:
        """An error about a key, with its line; where it is missing, that of its table.

        A path is ("methods", "gamma", "epsilon"), or ("claims", 0, "kind") in the first table of
        the list `[[claims]]`. A message goes on from the key: "must be …", or ": what was said".
        """
        key = ".".join(map(str, path))
        line = line_of(self.lines, key) if key else None
        where = self.name if line is None else f"{self.name}, line {line}"
        told = message if message.startswith(":") or not key else f" {message}"
        return StudyError(f"{where}: {key}{told}")
