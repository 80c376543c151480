"""Tables for people: drawn in a terminal, plain aligned text when piped."""

from __future__ import annotations

import re
import sys
from collections.abc import Sequence

import click


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
