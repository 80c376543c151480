"""Options that say what is in a file of rows, and what is asked of privacy.

`DataOptions` makes of them what an estimator takes: rows, the network they are on, whether the
target is a class or a number, and under privacy a feature bound that rests on public facts alone.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from shlex import quote
from typing import TYPE_CHECKING, Any, Literal

import click

from walklearn.cli.data_warnings import shown
from walklearn.files.checked_table import CheckedTable, Source
from walklearn.privacy.mechanisms.description import IN_THE_CLEAR
from walklearn.tables.encoding import Column
from walklearn.tables.schema import CUT_OFF, Schema, from_rows_message, of_range
from walklearn.tables.target_scale import TargetScale

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from walklearn.estimators.random_walk import RandomWalk
    from walklearn.graphs import Graph, Network
    from walklearn.tables import Rows, Table

Command = Callable[..., None]
Task = Literal["classification", "regression"]

MAX_CLASSES = 100
FEW_VALUES = 20  # whole numbers with at most so many values are taken to be classes

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
                 help="The range of a column of numbers, which is brought to -1..1; '*' for all."),
    click.option("--scale", "scales", multiple=True, metavar="COLUMN=CENTRE,SPREAD",
                 help="The typical centre and spread of a column of numbers, which is cut off at "
                      "3 spreads; '*' for all."),
    click.option("--schema", type=click.Path(path_type=Path),
                 help="All of these in a TOML file: walklearn schema writes one to be filled in."),
    click.option("--delimiter", help="What separates the cells of a CSV file. Default: guessed."),
]
TARGET_SCALE = click.option(
    "--target-scale", metavar="CENTRE,SPREAD",
    help="A typical value of a target that is a number, and how far values typically are from it, "
         "both public; --epsilon needs them. Default: the target's entry in --schema.")
PRIVACY_OPTIONS = [
    click.option("--epsilon", type=float, help="Privacy loss ε: the total for everything that "
                 "leaves a node because of its rows, the model included."),
    click.option("--delta", type=float, help="δ of that pair, such as 1e-5: additive slack, "
                 "P(outcome) ≤ e^ε · P(outcome with another row) + δ."),
    click.option("--protect", type=click.Choice(["rows", "node"]), default="rows",
                 show_default=True, help="What ε is about: one row of a node, or all its rows."),
    click.option("--model", type=click.Choice([IN_THE_CLEAR]),
                 help="Leave the model unprotected, so that ε is about the constants L_i of a "
                      "weighted walk alone: the total is then ε = ∞."),
    click.option("--row-length", type=float, metavar="LENGTH",
                 help="How long a row typically is, a public number. Default: from --scale."),
    click.option("--feature-bound", type=float, metavar="LENGTH",
                 help="Public bound on the length ‖x‖ of a row; longer rows are shortened. "
                      "Default: from --scale, --range and --categories of all columns."),
    TARGET_SCALE,
    click.option("--max-rows", type=click.FloatRange(0, min_open=True),
                 help="Public cap on the rows of a node, for the bounds of L_i. Only --protect "
                      "node hides how many rows a node has."),
    click.option("--total-rows", type=click.FloatRange(0, min_open=True),
                 help="Public number of rows of all nodes. Default: with --protect node every node "
                      "counts the same, else the rows there are."),
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
        """Take the options about data out of all options of a command."""
        schema = declared_by(
            options.pop("schema"),
            options.pop("categories"),
            options.pop("ranges"),
            options.pop("scales"),
        )
        names = ("target", "node_column", "graph", "drop", "text", "delimiter")
        return cls(schema=schema, **{name: options.pop(name) for name in names})

    def read(self, path: Path) -> Table:
        """Read the columns of a file."""
        from walklearn.tables import read_table

        text = sorted({*self.text, *self.schema.categories})
        return read_table(path, delimiter=self.delimiter, text=text)

    def target_of(self, table: Table) -> str:
        """The target: the column that was named, y of a file that has no names."""
        from walklearn.wording import listed

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
        from walklearn.tables import rows_of

        return rows_of(
            table, target=self.target_of(table), node_column=self.node_column, drop=self.drop,
            schema=self.schema,
        )  # fmt: skip

    def network(self, rows: Rows, seed: int | None) -> Network:
        """The graph, and the node of each row: the one that is named, or one of its own."""
        from walklearn.graphs import as_graph, place_rows
        from walklearn.graphs.names import is_name
        from walklearn.tables import DataError
        from walklearn.wording import no_such_file

        graph, count = self.graph, len(rows.y)
        if rows.nodes is not None or is_name(graph):
            return place_rows(graph, rows.nodes, count, seed, name_row=rows.place)
        if Path(graph).suffix and not Path(graph).is_file():
            raise DataError(no_such_file(Path(graph)))
        read = as_graph(graph)
        if read.node_count != count:
            raise DataError(
                f"{graph} has {read.node_count} nodes and there are {count} rows. Say which column "
                "names the node that owns a row (--node-column), or let the graph have a node for "
                "each row (--graph erdos-renyi)."
            )
        return place_rows(read, None, count, seed)


def declared_by(
    path: Path | None, categories: Sequence[str], ranges: Sequence[str], scales: Sequence[str]
) -> Schema:
    """What --schema declares, with --categories column=a,b, --range column=low,high and
    --scale column=centre,spread.

    >>> schema = declared_by(None, ["city=Oslo,Rome"], ["age=0,100"], ["*=5,2"])
    >>> schema.categories, schema.of_column("age").spread, schema.of_column("height").spread
    ({'city': ('Oslo', 'Rome')}, 50.0, 2.0)
    """
    said = []
    for option in categories:
        name, values = _split(option, "--categories", "city=Oslo,Rome")
        said.append(Column(name, tuple(value.strip() for value in values.split(","))))
    for option in ranges:
        name, values = _split(option, "--range", "age=0,100")
        said.append(of_range(name, *_pair("--range", option, name, values, rising=True)))
    for option in scales:
        name, values = _split(option, "--scale", "age=50,20")
        pair = _pair("--scale", option, name, values, rising=False)
        said.append(Column(name, None, *pair, CUT_OFF))
    return Schema.of(path).with_columns(said)


def _split(option: str, name: str, example: str) -> tuple[str, str]:
    column, equals, values = option.partition("=")
    if not (column and equals and values):
        raise ValueError(
            f"{name} takes a column and its values, such as {example}, got {option!r}."
        )
    return column.strip(), values


def _pair(name: str, option: str, column: str, values: str, rising: bool) -> tuple[float, float]:
    try:
        numbers = [float(value) for value in values.split(",")]
    except ValueError:
        raise ValueError(f"{name} {option}: {values!r} must be numbers, such as 50,20.") from None
    said = CheckedTable({column: numbers}, Source(f"{name} {option}"))
    return said.pair(column, rising=rising)


def target_scale_of(
    task: Task,
    target: str | None,
    schema: Schema,
    settings: dict[str, Any],
    is_agreed: bool = False,
) -> TargetScale | None:
    """Return the public scale of the target: --target-scale, or the schema's entry for the target.

    Protecting a model that predicts numbers needs one, and one that was not taken from the rows.
    is_agreed: the scale goes into a plan, which others read.
    """
    given = settings["target_scale"]
    if task != "regression":
        if given is not None:
            raise ValueError(
                "--target-scale is for a target that is a number, and classes are predicted here. "
                "Leave it out, or pass --task regression."
            )
        return None
    if given is not None:
        try:
            centre, spread = map(float, given.split(","))
            return TargetScale(centre, spread)
        except ValueError:
            raise ValueError(
                f"--target-scale {given} must be CENTRE,SPREAD, two finite numbers and the second "
                "of them positive, such as 150,75."
            ) from None
    declared = None if target is None else schema.target_scale(target)
    epsilon, by_hand = settings["epsilon"], settings.get("model_noise")
    is_private = epsilon is not None or by_hand is not None
    if declared is None and is_private and settings.get("model") is None:
        asked = "--model-noise" if epsilon is None else "--epsilon"
        raise ValueError(
            f"{asked} for a target that is a number needs its public centre and spread, for the "
            "noise is made for targets of spread 1. Pass --target-scale "
            "CENTRE,SPREAD, a typical target and how far targets typically are from it, known "
            "without looking at the rows; or give the target an entry in the --schema file."
        )
    if target not in schema.from_rows:
        return declared
    if is_private or is_agreed:
        raise ValueError(from_rows_message(schema))
    return None


def estimator_for(task: Task) -> type[RandomWalk]:
    """The estimator that learns classes, or numbers."""
    from walklearn.estimators import RandomWalkClassifier, RandomWalkRegressor

    return RandomWalkClassifier if task == "classification" else RandomWalkRegressor


def task_of(target: NDArray[Any], name: str, asked: str) -> Task:
    """The task that was asked for, or that the target looks like ("auto").

    >>> import numpy as np
    >>> task_of(np.array(["no", "yes"]), "label", "auto")
    'classification'
    >>> task_of(np.array([1.5, 2.0, 2.5]), "price", "auto")
    'regression'
    """
    import numpy as np

    values = np.unique(target)
    text = target.dtype.kind not in "biuf"
    if len(values) == 1:
        raise ValueError(
            f"the target {name!r} is {shown(values)[0]} in every row, so there is nothing to "
            "learn. Is it the right column?"
        )
    if text and asked == "regression":
        raise ValueError(
            f"the target {name!r} is text, such as {str(values[0])!r}, and regression predicts "
            "numbers. Use --task classification, or choose another target."
        )
    few = len(values) <= 2 or (
        not text
        and bool((values == np.floor(values)).all())
        and len(values) <= min(FEW_VALUES, len(target) // 2)
    )
    if asked == "regression" or (asked == "auto" and not text and not few):
        return "regression"
    if len(values) > MAX_CLASSES or (len(values) > FEW_VALUES and 2 * len(values) > len(target)):
        advice = "Is it the right column?" if text else "For numbers use --task regression."
        raise ValueError(
            f"the target {name!r} has {len(values)} different values in {len(target)} rows, too "
            f"many for classes. {advice}"
        )
    return "classification"


def public_facts(rows: Rows, schema: Schema, settings: dict[str, Any]) -> dict[str, Any]:
    """How long rows are, typically and at most, for a private run: from what is public alone.

    Where every column has its categories or its scale declared, it follows.
    """
    epsilon, delta = settings["epsilon"], settings["delta"]
    length, given = settings["row_length"], settings["feature_bound"]
    from walklearn.privacy.settings import declared_lengths
    from walklearn.wording import listed

    if (epsilon is None) != (delta is None):
        one, other = ("--epsilon", "--delta") if delta is None else ("--delta", "--epsilon")
        raise ValueError(
            f"{one} was given without {other}. Privacy is a pair, such as --epsilon 3 --delta 1e-5."
        )
    if schema.from_rows:
        raise ValueError(from_rows_message(schema))
    undeclared = schema.undeclared(rows.columns)
    text = [
        c.name for c in rows.encoding.columns if c.categories and c.name not in schema.categories
    ]
    if text:
        raise ValueError(
            f"under privacy the categories of {listed(text)} must not be taken from the data: "
            "which of them occur would tell of the rows. Declare all that could occur, such as "
            f"--categories {quote(f'{text[0]}=a,b,c')} or in a --schema file, or leave the column "
            f"out with --drop {quote(text[0])}."
            + (
                ""
                if rows.nodes is not None
                else f" If it names the node that owns a row: --node-column {quote(text[0])}."
            )
        )
    if given is None and length is None and undeclared:
        raise ValueError(
            "privacy needs a public scale of every column, and one taken from the data would leak. "
            f"Declare what is typical of {listed(undeclared)}, such as --scale "
            f"{quote(f'{undeclared[0]}=50,20')} (centre and spread; '*' for all), a --range, or a "
            "--schema file (walklearn schema writes one to be filled in); or pass --feature-bound, "
            "a length that rows are shortened to."
        )
    if settings["task"] == "auto":
        raise ValueError(
            "--task is missing. A task that is read off the target depends on single rows, and "
            "under privacy it is public: pass --task classification or --task regression."
        )
    return declared_lengths(rows.encoding, length, given)


def described_graph(
    said: str, nodes: int | None, seed: int | None, usual: int | None = None
) -> Graph:
    """A family with so many nodes, or an edge list, whose nodes may have names.

    usual: how many nodes a family has where --nodes does not say; None to ask for it.
    """
    from walklearn.graphs import as_graph, read_network

    if not Path(said).is_file():
        return as_graph(said, usual if nodes is None else nodes, seed=seed)
    graph = read_network(said, []).graph
    if nodes not in (None, graph.node_count):
        raise ValueError(
            f"--nodes is {nodes}, and {said} has {graph.node_count} nodes: pass --nodes "
            f"{graph.node_count}, or leave it out."
        )
    return graph
