"""Console output of a command.

Every command has --quiet, --verbose and --json: `with_console` adds them, and passes a `Console`.

    console.print(…), console.print_table(…)   the result, for people
    console.output(…)                          requested output, such as predictions, printed
                                               even with --quiet
    console.announce(…)                        urgent information, such as the address of a page
    console.log(…)                             progress and context, on standard error
    console.note(…)                            surprises, on standard error
    console.document                           the result for machines: --json prints it as one
                                               JSON document on standard output
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
from typing import TYPE_CHECKING, Any

import click

from walklearn.cli.user_errors import report_user_errors
from walklearn.progress import show_progress
from walklearn.wording import align_columns

if TYPE_CHECKING:
    from walklearn.fitting.plan import FitPlan

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
class Console:
    """Output of one command."""

    quiet: bool = False
    verbose: bool = False
    as_json: bool = False
    document: dict[str, Any] = field(default_factory=dict)
    notes: list[str] = field(default_factory=list)

    @property
    def _is_silent(self) -> bool:
        return self.quiet or self.as_json

    def print(self, text: str = "") -> None:
        """Print a part of the result."""
        if not self._is_silent:
            click.echo(text)

    def print_table(
        self, header: Sequence[str], rows: Sequence[Sequence[str]], title: str = ""
    ) -> None:
        """Print a table of the result; empty headers are omitted."""
        if self._is_silent:
            return
        if title:
            click.secho(title, bold=True)
        for line in align_columns(header, rows):
            click.echo(line)

    def output(self, text: str, **content: Any) -> None:
        """Print requested output, or with --json add this content to the document."""
        self.document |= content
        if not self.as_json:
            click.echo(text, nl=not text.endswith("\n"))

    def announce(self, text: str) -> None:
        """Print urgent information, with any options."""
        click.echo(text, err=self.as_json)

    def log(self, text: str) -> None:
        """Print on standard error, so that it does not mix with the output."""
        if not self._is_silent:
            click.echo(text, err=True)

    def note(self, text: str) -> None:
        """Print a note on standard error, once and with any options."""
        if text in self.notes:
            return
        self.notes.append(text)
        click.echo(click.wrap_text(f"Note: {text}", WIDTH, "", "  "), err=True)

    def finish(self) -> None:
        """Print the document if --json was passed."""
        if self.as_json:
            click.echo(json.dumps(_plain(self.document), ensure_ascii=False, allow_nan=False))


def with_console(command: Callable[..., None]) -> Callable[..., None]:
    """Add the options --quiet, --verbose and --json, and pass a `Console` as `console`.

    `report_user_errors` prints errors of the user without a traceback.
    """

    @wraps(command)
    def wrapped(*arguments: Any, quiet: bool, verbose: bool, as_json: bool, **options: Any) -> None:
        if quiet and verbose:
            raise click.UsageError("--quiet and --verbose contradict each other. Pass one.")
        console = Console(quiet, verbose, as_json)
        shown = False if quiet else True if verbose else None
        with show_progress(shown), warnings.catch_warnings(), report_user_errors():
            warnings.simplefilter("always", UserWarning)
            # By default, Python also prints the line of code that issued the warning.
            warnings.showwarning = lambda message, *_, **__: console.note(str(message))
            try:
                command(*arguments, console=console, **options)
            except SystemExit:  # the command has a result and an exit code
                console.finish()
                raise
        console.finish()

    for option in _OPTIONS:
        wrapped = option(wrapped)
    return wrapped


def print_reasons(console: Console, plan: FitPlan) -> None:
    """Print the reason for each choice of a plan if --verbose was passed."""
    if console.verbose:
        console.print(f"Reasons:\n{wrapped_sentences([str(each) for each in plan.reasons])}")


def wrapped_sentences(sentences: Sequence[str]) -> str:
    """Return sentences as a list that fits a screen."""
    return "\n".join(click.wrap_text(f"- {each}", WIDTH, "  ", "    ") for each in sentences)


def csv_text(header: Iterable[str], rows: Iterable[Iterable[Any]]) -> str:
    """Return the text of a CSV file."""
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(header)
    writer.writerows(rows)
    return text.getvalue()


def _plain(value: Any) -> Any:
    """Return the value with null for infinity and NaN, which strict JSON does not allow."""
    if isinstance(value, dict):
        return {str(name): _plain(each) for name, each in value.items()}
    if isinstance(value, list | tuple):
        return [_plain(each) for each in value]
    return None if isinstance(value, float) and not math.isfinite(value) else value
