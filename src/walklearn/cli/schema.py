"""`walklearn schema`: write a schema template, to be filled in with public numbers."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
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
from walklearn.files.checked_table import toml_text
from walklearn.tables import read_table
from walklearn.tables.encoding import Encoding, is_narrow
from walklearn.tables.schema import toml_key
from walklearn.wording import plural

_HEADER = """\
# Schema of the columns of {source}.
#
# ALL NUMBERS AND CATEGORIES BELOW COME FROM THE ROWS, so they reveal something about them. Replace
# them with public ones (typical of such data, known without looking at these rows), then remove the
# line "from_rows = true" of that column. Private training refuses columns with this line.
#
# A numeric column has a typical centre and spread and is cut off at 3 spreads (cut_off = 3), or it
# has a range = [low, high], which is mapped to -1..1. ["*"] declares all other columns.
# walklearn train, walklearn advise and plans (columns = "{name}") read this file.
"""

_TARGET = """\
# The target: a typical value, and the typical distance from it. A private regression needs both;
# targets are cut at 3 spreads.
"""


@click.command()
@click.argument("data", type=click.Path(path_type=Path))
@with_options([TARGET, NODE_COLUMN, DROP, TEXT, DELIMITER])
@click.option("--out", type=click.Path(path_type=Path), help="File to write. Default: print it.")
@with_console
def schema(data: Path, out: Path | None, console: Console, **options: Any) -> None:
    """Write a schema template for the columns of DATA, to be filled in with public numbers.

    The numbers in the template come from the rows. Private training refuses them until you replace
    them. The node column and dropped columns are left out.

    \b
    Examples:
      walklearn schema rows.csv --target label --node-column site --out schema.toml
      walklearn train rows.csv --schema schema.toml --target label --node-column site \\
          --task classification --epsilon 3 --delta 1e-5 --out model/
    """
    table = read_table(data, delimiter=options["delimiter"], text=sorted(options["text"]))
    target = options["target"]
    apart = [target, options["node_column"], *options["drop"]]
    features = table.without([name for name in apart if name is not None])
    if out is not None and out.exists():
        raise FileExistsError(f"{out} exists, and may be filled in. Use another --out.")
    parts = [_HEADER.format(source=table.source, name=out.name if out else "schema.toml")]
    columns = Encoding.of_table(features).columns
    parts += [_entry(each.name, table[each.name], each.categories) for each in columns]
    if target is not None:
        with suppress(ValueError):  # the column cannot be a target
            if task_of(table[target], target, "auto") == "regression":
                centre_and_spread = _entry(target, table[target]).partition("# range")[0]
                parts.append(_TARGET + centre_and_spread)
    text = "\n".join(parts)
    console.document["columns"] = list(features)
    if out is None:
        console.output(text, schema=text)
        return
    out.write_text(text, encoding="utf-8")
    console.document["out"] = str(out)
    console.print(
        f"{out} has {plural(len(list(features)), 'column')}. Its numbers come from the rows.\n"
        "Replace them with public ones, and remove the lines from_rows = true."
    )


def _entry(name: str, cells: NDArray[Any], categories: Sequence[str] | None = None) -> str:
    """Return the TOML table of a column, with categories or numbers from the rows."""
    lines = [f"[{toml_key(name)}]", "from_rows = true"]
    if categories is not None:
        lines.append(f"categories = {toml_text(categories)}")
    else:
        low, high, deviation = float(cells.min()), float(cells.max()), float(cells.std())
        lines.append(f"centre = {float(cells.mean()):.3g}")
        lines.append(f"spread = {deviation or 1.0:.3g}")
        lines.append(f"# range = [{low:.3g}, {high:.3g}]")
        if is_narrow(deviation, (high - low) / 2):
            lines.append("# A range does not suit this column: most values are in a small part.")
    return "\n".join([*lines, ""])
