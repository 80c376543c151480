"""Options that say what is in a file of rows, and what is asked of privacy."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from walklearn.cli.schema import Schema

if TYPE_CHECKING:
    from walklearn.files import Rows, Table
    from walklearn.graphs import Network

Command = Callable[..., None]

# fmt: off
DATA_OPTIONS = [
    click.option("--target", help="The column to predict; y of npz and SVMlight by default."),
    click.option("--node-column", help="The column that names the node that owns a row. "
                 "Default: every row has a node of its own."),
    click.option("--graph", default="erdos-renyi", show_default=True,
                 help="An edge list (a line for each edge), or a family such as ring, complete, "
                      "erdos-renyi, barabasi-albert."),
    click.option("--drop", multiple=True, metavar="COLUMN", help="A column to leave out."),
    click.option("--text", multiple=True, metavar="COLUMN",
                 help="A column that is text even if it looks like numbers."),
    click.option("--categories", multiple=True, metavar="COLUMN=A,B",
                 help="The values that a column of text can have."),
    click.option("--range", "ranges", multiple=True, metavar="COLUMN=LOW,HIGH",
                 help="The range of a column of numbers, which is brought to -1..1."),
    click.option("--schema", type=click.Path(exists=True, dir_okay=False, path_type=Path),
                 help="Categories and ranges in a TOML file, such as age.range = [0, 100]"),
    click.option("--delimiter", help="What separates the cells of a CSV file. Default: guessed."),
]
PRIVACY_OPTIONS = [
    click.option("--epsilon", type=float, help="Privacy loss ε of the constant L_i that a node "
                 "of a weighted walk releases."),
    click.option("--delta", type=float, help="Probability δ of a larger loss."),
    click.option("--feature-bound", type=float, metavar="LENGTH",
                 help="Public bound on the length ‖x‖ of a row; longer rows are shortened. "
                      "Default: from --range and --categories of all columns."),
    click.option("--max-rows", type=click.FloatRange(0, min_open=True),
                 help="Public cap on the rows of a node. Default: their number is public."),
]
# fmt: on


def with_options(options: Sequence[Callable[[Command], Command]]) -> Callable[[Command], Command]:
    """Add options to a command, in their order."""

    def add(command: Command) -> Command:
        for option in reversed(options):
            command = option(command)
        return command

    return add


@dataclass(frozen=True)
class DataOptions:
    """What was said of the data."""

    target: str | None
    node_column: str | None
    graph: str
    drop: Sequence[str]
    text: Sequence[str]
    schema: Schema
    delimiter: str | None

    @classmethod
    def take(cls, options: dict[str, Any]) -> DataOptions:
        """Take these options out of all."""
        schema = Schema.of_options(
            options.pop("categories"), options.pop("ranges"), options.pop("schema")
        )
        names = ("target", "node_column", "graph", "drop", "text", "delimiter")
        return cls(schema=schema, **{name: options.pop(name) for name in names})

    def read(self, path: Path) -> Table:
        """The columns of a file."""
        from walklearn.files import read_table

        text = sorted({*self.text, *self.schema.categories})
        return read_table(path, delimiter=self.delimiter, text=text)

    def target_of(self, table: Table) -> str:
        """The target: the column that was named, y of a file that has no names."""
        from walklearn.files.wording import listed

        nameless = Path(table.source).suffix not in (".csv", ".tsv", ".txt", ".parquet")
        if self.target is None and nameless and "y" in table:
            return "y"
        if self.target is None:
            raise ValueError(
                f"which column is to be predicted? Pass --target; {table.source} has the columns "
                f"{listed(list(table))}."
            )
        return self.target

    def rows(self, table: Table) -> Rows:
        """What is to be learnt from a table."""
        from walklearn.files import rows_of

        return rows_of(
            table, target=self.target_of(table), node_column=self.node_column, drop=self.drop,
            categories=self.schema.categories, ranges=self.schema.ranges,
        )  # fmt: skip

    def network(self, rows: Rows, seed: int | None) -> Network:
        """The graph, and the node of each row."""
        from walklearn.cli.network import network_of

        return network_of(self.graph, rows, seed)


def public_feature_bound(
    rows: Rows, schema: Schema, epsilon: float | None, delta: float | None, given: float | None
) -> float | None:
    """The feature bound of a private run, which rests on nothing but what is public.

    Where every column has its categories or its range declared, it follows: a column of text
    adds 1 to ‖x‖², and a number within its range at most 1.
    """
    from walklearn.files.wording import listed

    if (epsilon is None) != (delta is None):
        one, other = ("--epsilon", "--delta") if delta is None else ("--delta", "--epsilon")
        raise ValueError(
            f"{one} was given without {other}. Privacy is a pair, such as --epsilon 3 --delta 0.03 "
            "(with --mechanism laplace δ may be 0)."
        )
    undeclared = schema.undeclared(rows.columns)
    text = [c.name for c in rows.encoding.columns if c.categories and c.name in undeclared]
    if text:
        raise ValueError(
            f"under privacy the categories of {listed(text)} must not be taken from the data: "
            "which of them occur would tell of the rows. Declare all that could occur, such as "
            f"--categories {text[0]}=a,b,c or in a --schema file, or leave the column out with "
            f"--drop {text[0]}. If it names the node that owns a row: --node-column {text[0]}."
        )
    if given is None and undeclared:
        raise ValueError(
            "privacy needs a public bound on the length ‖x‖ of a row, and one taken from the data "
            "would leak. Pass --feature-bound (longer rows are shortened to it), or declare the "
            f"range of every column, such as --range {undeclared[0]}=0,100: then it follows."
        )
    return len(rows.columns) ** 0.5 if given is None else given
