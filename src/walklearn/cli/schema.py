"""`walklearn schema`: a template of a schema, to be filled in with public numbers."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import click
from numpy.typing import NDArray

from walklearn.cli.console import Console, with_console
from walklearn.cli.data_options import (
    DELIMITER,
    DROP,
    NODE_COLUMN,
    TARGET,
    TEXT,
    task_of,
    with_options,
)
from walklearn.tables import Table, read_table
from walklearn.tables.encoding import Encoding, is_crushed
from walklearn.tables.schema import toml_key
from walklearn.wording import plural

_HEADER = """\
# Schema of the columns of {source}.
#
# EVERY NUMBER AND EVERY LIST OF CATEGORIES BELOW COMES FROM THE ROWS, so it discloses them. Replace
# them by public ones (typical of such data, known without looking at these rows), then remove the
# line "from_rows = true" of that column. Until then nothing is claimed to be private.
#
# A column of numbers has a typical centre and spread and is cut off at 3 spreads (cut_off = 3), or
# a range = [low, high], which is mapped to -1..1. ["*"] declares the columns that are not named.
# The same file serves walklearn train, walklearn advise, and a plan (columns = "{name}").
"""

_TARGET = """\
# The target: a typical value, and the typical distance from it. A private regression needs both;
# targets are cut at 3 spreads.
{entry}
"""


@click.command()
@click.argument("data", type=click.Path(path_type=Path))
@with_options([TARGET, NODE_COLUMN, DROP, TEXT, DELIMITER])
@click.option("--out", type=click.Path(path_type=Path), help="File to write. Default: print it.")
@with_console
def schema(data: Path, out: Path | None, console: Console, **options: Any) -> None:
    """Write a template of a schema of the columns of DATA, to be filled in with public numbers.

    Its numbers come from the rows. A training with ε refuses them until you replace them. The node
    column and dropped columns are left out.

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
        raise FileExistsError(f"{out} exists, and may be filled in. Use another --out.")
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
            f"{out} has {plural(len(list(features)), 'column')}. Its numbers come from the rows:\n"
            "replace them by public ones, and remove the lines from_rows = true."
        )


def schema_of(table: Table, name: str) -> str:
    """Return the text of a schema with numbers computed from the rows."""
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
    """Return the lines of a column of numbers: centre and spread, and the range as a comment."""
    low, high, deviation = float(cells.min()), float(cells.max()), float(cells.std())
    lines = [
        f"centre = {float(cells.mean()):.3g}",
        f"spread = {deviation or 1.0:.3g}",
        f"# range = [{low:.3g}, {high:.3g}]",
    ]
    if is_crushed(deviation, (high - low) / 2):
        lines.append("# A range would crush this column: most values are in a small part of it.")
    return lines
