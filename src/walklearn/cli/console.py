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

import csv
import io
import json
import math
import warnings
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from functools import wraps
from typing import Any

import click

from walklearn.cli.user_errors import report_user_errors
from walklearn.progress import show_progress
from walklearn.wording import aligned

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
        if self._hushed:
            return
        if title:
            click.secho(title, bold=True)
        for line in aligned(header, rows):
            click.echo(line)

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
    """Add the options --quiet, --verbose and --json, and pass a `Talk` as `talk`.

    Errors of the user become plain messages (`report_user_errors`).
    """

    @wraps(command)
    def wrapped(*arguments: Any, quiet: bool, verbose: bool, as_json: bool, **options: Any) -> None:
        if quiet and verbose:
            raise click.UsageError("--quiet and --verbose contradict each other: give one.")
        talk = Talk(quiet, verbose, as_json)
        shown = False if quiet else True if verbose else None
        with show_progress(shown), warnings.catch_warnings(), report_user_errors():
            # Python would print the line of code that warned.
            warnings.showwarning = lambda message, *_, **__: talk.note(str(message))
            try:
                command(*arguments, talk=talk, **options)
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


def csv_text(header: Iterable[str], rows: Iterable[Iterable[Any]]) -> str:
    """Return the text of a CSV file."""
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(header)
    writer.writerows(rows)
    return text.getvalue()


def _plain(value: Any) -> Any:
    """A value as strict JSON has it, which knows no infinity: that is null."""
    if isinstance(value, dict):
        return {str(name): _plain(each) for name, each in value.items()}
    if isinstance(value, list | tuple):
        return [_plain(each) for each in value]
    return None if isinstance(value, float) and not math.isfinite(value) else value
