"""`walklearn schema`: a schema of a file's columns, to be filled in with public numbers."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import click
from numpy.typing import NDArray

from walklearn.cli.console import Console, with_console
from walklearn.cli.data_options import task_of
from walklearn.tables import Table, read_table
from walklearn.tables.encoding import Encoding, is_crushed
from walklearn.tables.schema import toml_key
from walklearn.wording import plural

_HEADER = """\
# What is declared of the columns of {source}.
#
# EVERY NUMBER AND EVERY LIST OF CATEGORIES BELOW COMES FROM THE ROWS, so it tells of them. Put
# public ones there (what is typical of such data, known without looking at these rows), then take
# the line "from_rows = true" of that column out: until then nothing is claimed to be private.
#
# A column of numbers has a typical centre and spread and is cut off at 3 spreads (cut_off = 3), or
# a range = [low, high], which is brought to -1..1. A column that is not named here is declared by
# ["*"], if there is one. The same file serves walklearn train, walklearn advise, and a plan
# (columns = "{name}").
"""

_TARGET = """\
# The target: a typical value, and how far values typically are from it. Noise on the model is made
# for targets of spread 1, so a private regression needs both; targets are cut at 3 spreads.
{entry}
"""


@click.command()
@click.argument("data", type=click.Path(path_type=Path))
@click.option("--target", help="The column to predict; a number gets a centre and a spread.")
@click.option("--node-column", help="The column that names the owner, which is left out.")
@click.option("--drop", multiple=True, metavar="COLUMN", help="A column to leave out.")
@click.option("--text", multiple=True, metavar="COLUMN",
              help="A column that is text even if it looks like numbers.")  # fmt: skip
@click.option("--delimiter", help="What separates the cells of a CSV file. Default: guessed.")
@click.option("--out", type=click.Path(path_type=Path), help="A file; default: print it.")
@with_console
def schema(data: Path, out: Path | None, console: Console, **options: Any) -> None:
    """Write a schema of the columns of DATA, to be filled in with public numbers.

    Its own numbers come from the rows, and it says so: a training with ε refuses them until you
    have put public ones there.

    \b
    Examples:
      walklearn schema rows.csv --target label --node-column site --out schema.toml
      walklearn train rows.csv --schema schema.toml --target label --node-column site \\
          --task classification --epsilon 3 --delta 1e-5 --out model/
    """
    table = read_table(data, delimiter=options["delimiter"], text=sorted(options["text"]))
    apart = [options["target"], options["node_column"], *options["drop"]]
    features = table.without([name for name in apart if name is not None])
    target = options["target"]
    number = target if target is not None and is_regression_target(table[target], target) else None
    if out is not None and out.exists():
        raise FileExistsError(f"{out} exists, and may have been filled in: choose another place.")
    text = schema_of(features, out.name if out else "schema.toml")
    if number is not None:
        centre, spread, *_ = _numbers(table[number])
        entry = "\n".join([f"[{toml_key(number)}]", "from_rows = true", centre, spread])
        text += "\n" + _TARGET.format(entry=entry)
    console.document["columns"] = list(features)
    if out is None:
        console.output(text, schema=text)
    else:
        out.write_text(text, encoding="utf-8")
        console.document["out"] = str(out)
        console.print(
            f"{out} has {plural(len(list(features)), 'column')}. Its numbers come from the rows:"
        )
        console.print("put public ones there, and take the lines from_rows = true out.")


def schema_of(table: Table, name: str) -> str:
    """The text of a schema whose numbers are those of the rows."""
    parts = [_HEADER.format(source=table.source, name=name)]
    for column in Encoding.of_table(table).columns:
        lines = [f"[{toml_key(column.name)}]", "from_rows = true"]
        if column.categories is not None:
            lines.append(f"categories = {json.dumps(column.categories, ensure_ascii=False)}")
        else:
            lines += _numbers(table[column.name])
        parts.append("\n".join(lines) + "\n")
    return "\n".join(parts)


def is_regression_target(cells: NDArray[Any], name: str) -> bool:
    """True if `walklearn train` would predict these cells as a number."""
    try:
        return task_of(cells, name, "auto") == "regression"
    except ValueError:
        return False


def _numbers(cells: NDArray[Any]) -> list[str]:
    """The lines of a column of numbers: its centre and spread, and its range as a comment."""
    low, high, deviation = float(cells.min()), float(cells.max()), float(cells.std())
    lines = [
        f"centre = {float(cells.mean()):.3g}",
        f"spread = {deviation or 1.0:.3g}",
        f"# range = [{low:.3g}, {high:.3g}]",
    ]
    if is_crushed(deviation, (high - low) / 2):
        lines.append(
            "# A range would crush this column: most of its values lie in a small part of it."
        )
    return lines
