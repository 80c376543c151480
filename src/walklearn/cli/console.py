"""How a command talks: results first, what is private next, the long version on request.

Every command has --quiet, --verbose and --json: `talking` adds them, and hands over a `Talk`.

    talk.tell(…), talk.show(…)   the result, for people
    talk.give(…)                 what was asked for, such as predictions: also with --quiet
    talk.announce(…)             what has to be known at once, such as the address of a page
    talk.aside(…)                beside it, on standard error
    talk.note(…)                 what people may not expect, on standard error
    talk.facts                   the result for machines: with --json, the one document on
                                 standard output
"""

from __future__ import annotations

import json
import math
import re
import sys
import warnings
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import wraps
from typing import Any

import click

from walklearn.cli.user_errors import plainly
from walklearn.progress import show_progress

WIDTH = 88  # of wrapped text

# fmt: off
_OPTIONS = [
    click.option("--json", "as_json", is_flag=True,
                 help="Print the result as one JSON document, for machines."),
    click.option("--verbose", is_flag=True, help="Print the long version."),
    click.option("--quiet", is_flag=True, help="Print neither results nor progress."),
]
# fmt: on


@dataclass
class Talk:
    """What a command says, and to whom."""

    quiet: bool = False
    verbose: bool = False
    as_json: bool = False
    facts: dict[str, Any] = field(default_factory=dict)
    _noted: set[str] = field(default_factory=set)

    @property
    def _hushed(self) -> bool:
        return self.quiet or self.as_json

    def tell(self, text: str = "") -> None:
        """Print a part of the result."""
        if not self._hushed:
            click.echo(text)

    def show(self, header: Sequence[str], rows: Sequence[Sequence[str]], title: str = "") -> None:
        """Print a table of the result; a header of nothing is left out."""
        if not self._hushed:
            show(header, rows, title)

    def give(self, text: str, **facts: Any) -> None:
        """Print what was asked for, or with --json put these facts into the document."""
        self.facts |= facts
        if not self.as_json:
            click.echo(text, nl=not text.endswith("\n"))

    def announce(self, text: str) -> None:
        """Print at once what has to be known now, such as the address of a page."""
        click.echo(text, err=self.as_json)

    def aside(self, text: str) -> None:
        """Print on standard error what would be in the way of what is given."""
        if not self._hushed:
            click.echo(text, err=True)

    def note(self, text: str) -> None:
        """Print once what people may not expect, whatever the options: it is not the result."""
        if text in self._noted:
            return
        self._noted.add(text)
        click.echo(click.wrap_text(f"Note: {text}", WIDTH, "", "  "), err=True)

    def end(self) -> None:
        """Print the document, if one was asked for."""
        if self.as_json:
            click.echo(json.dumps(_plain(self.facts), ensure_ascii=False, allow_nan=False))


def talking(command: Callable[..., None]) -> Callable[..., None]:
    """Give a command its three options, and what it talks by as the argument `talk`.

    Bad input is told `plainly`.
    """

    @wraps(command)
    def wrapped(*arguments: Any, quiet: bool, verbose: bool, as_json: bool, **options: Any) -> None:
        if quiet and verbose:
            raise click.UsageError("--quiet and --verbose contradict each other: give one.")
        talk = Talk(quiet, verbose, as_json)
        shown = False if quiet else True if verbose else None
        with show_progress(shown), warnings.catch_warnings():
            # Python would print the line of code that warned.
            warnings.showwarning = lambda message, *_, **__: talk.note(str(message))
            try:
                plainly(command)(*arguments, talk=talk, **options)
            except SystemExit:  # an exit code of its own, after a result
                talk.end()
                raise
        talk.end()

    for option in _OPTIONS:
        wrapped = option(wrapped)
    return wrapped


def wrapped_sentences(sentences: Sequence[str]) -> str:
    """Sentences as a list that fits a screen."""
    return "\n".join(click.wrap_text(f"- {each}", WIDTH, "  ", "    ") for each in sentences)


def _plain(value: Any) -> Any:
    """A value as strict JSON has it, which knows no infinity: that is null."""
    if isinstance(value, dict):
        return {str(name): _plain(each) for name, each in value.items()}
    if isinstance(value, list | tuple):
        return [_plain(each) for each in value]
    return None if isinstance(value, float) and not math.isfinite(value) else value


def show(header: Sequence[str], rows: Sequence[Sequence[str]], title: str = "") -> None:
    """Print a table; a header of nothing is left out. Columns of numbers are set to the right."""
    if title:
        click.secho(title, bold=True)
    if sys.stdout.isatty():
        _draw(header, rows)
        return
    for line in aligned(header, rows):
        click.echo(line)


def aligned(header: Sequence[str], rows: Sequence[Sequence[str]]) -> list[str]:
    """The lines of a plain table.

    >>> aligned(["walk", "gap"], [["uniform", "0.5"], ["weighted", "12"]])
    ['walk      gap', 'uniform   0.5', 'weighted   12']
    """
    widths = [max(map(len, column)) for column in zip(header, *rows, strict=True)]
    right = [_is_numbers([row[at] for row in rows]) for at in range(len(header))]
    return [
        "  ".join(
            cell.rjust(width) if to_right else cell.ljust(width)
            for cell, width, to_right in zip(line, widths, right, strict=True)
        ).rstrip()
        for line in ((header, *rows) if any(header) else rows)
    ]


def _draw(header: Sequence[str], rows: Sequence[Sequence[str]]) -> None:
    from rich import box
    from rich.console import Console
    from rich.table import Table
    from rich.text import Text

    table = Table(box=box.SIMPLE_HEAD, show_header=any(header), pad_edge=False)
    for at, name in enumerate(header):
        right = _is_numbers([row[at] for row in rows])
        table.add_column(name, justify="right" if right else "left", overflow="fold")
    for row in rows:
        table.add_row(*map(Text, row))  # brackets in a cell are no mark-up
    Console().print(table)


def _is_numbers(cells: Sequence[str]) -> bool:
    return all(re.match(r"[-+]?([\d.]|(inf|nan)\b)|-?$", cell) for cell in cells)
