"""Options for data files and privacy that several commands share.

`DataOptions` reads the rows and places them on a network. The functions check the options against
the rows and the schema.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from shlex import quote
from typing import TYPE_CHECKING, Any, Literal

import click

from walklearn.cli.data_warnings import plain_texts
from walklearn.privacy.mechanisms.description import IN_THE_CLEAR
from walklearn.tables.encoding import Column, Encoding
from walklearn.tables.schema import CUT_OFF, OTHERS, Schema, column_of_range, from_rows_message
from walklearn.tables.target_scale import TargetScale

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from walklearn.estimators.random_walk import RandomWalk
    from walklearn.fitting.plan import FitPlan
    from walklearn.graphs import Graph, Network
    from walklearn.tables import Rows, Table

Command = Callable[..., None]
Task = Literal["classification", "regression"]

MAX_CLASSES = 100
FEW_VALUES = 20  # a column of whole numbers with at most this many distinct values is a class
_NAMELESS = (".npz", ".svm", ".svmlight", ".libsvm")  # formats without names of columns
_EXAMPLES = {"--categories": "city=Oslo,Rome", "--range": "age=0,100", "--scale": "age=50,20"}

# fmt: off
TARGET = click.option("--target", help="Column to predict. Default: y, for npz and SVMlight only.")
NODE_COLUMN = click.option("--node-column", help="Column that names the node that owns a row. "
                           "Default: every row has its own node.")
DROP = click.option("--drop", multiple=True, metavar="COLUMN", help="Column to leave out.")
TEXT = click.option("--text", multiple=True, metavar="COLUMN",
                    help="Column that is text, even if it looks like numbers.")
DELIMITER = click.option("--delimiter", help="Separator of the cells of a CSV file. "
                         "Default: guessed.")
GRAPH = click.option("--graph", default="erdos-renyi", show_default=True,
                     help="Edge list (a line for each edge), or a family such as ring, complete, "
                          "erdos-renyi, barabasi-albert.")
DATA_OPTIONS = [
    TARGET, NODE_COLUMN, GRAPH, DROP, TEXT,
    click.option("--categories", multiple=True, metavar="COLUMN=A,B",
                 help="All possible values of a text column."),
    click.option("--range", "ranges", multiple=True, metavar="COLUMN=LOW,HIGH",
                 help="Range of a numeric column, which is mapped to -1..1; '*' for all columns."),
    click.option("--scale", "scales", multiple=True, metavar="COLUMN=CENTRE,SPREAD",
                 help="Typical centre and spread of a numeric column, which is cut off at 3 "
                      "spreads; '*' for all columns."),
    click.option("--schema", type=click.Path(path_type=Path),
                 help="TOML file that declares categories, ranges and scales; `walklearn schema` "
                      "writes a template."),
    DELIMITER,
]
TASK = click.option("--task", type=click.Choice(["auto", "classification", "regression"]),
                    default="auto", show_default=True,
                    help="Predict a class or a number; auto decides by the values of the target. "
                         "Required with --epsilon.")
PENALTY = click.option("--penalty", type=click.FloatRange(0), default=1e-3, show_default=True,
                       help="λ of the penalty (λ/2)‖w‖².")
LAZINESS = click.option("--laziness", type=click.FloatRange(0, 1, max_open=True), default=0.0,
                        show_default=True, help="Probability that the token stays.")
TARGET_SCALE = click.option(
    "--target-scale", metavar="CENTRE,SPREAD",
    help="Public typical value of a numeric target, and typical distance from it. Required for "
         "regression with --epsilon. Default: the target's entry in --schema.")
TOTAL_OPTIONS = [
    click.option("--epsilon", type=float, help="Privacy loss ε: the total for everything that "
                 "leaves a node because of its rows, including the model. Default: nothing is "
                 "protected."),
    click.option("--delta", type=float, help="δ, such as 1e-5: additive slack, "
                 "P(outcome) ≤ e^ε · P(outcome with another row) + δ."),
    click.option("--protect", type=click.Choice(["rows", "node"]), default="rows",
                 show_default=True, help="Unit of ε: one row of a node, or all its rows."),
]
PRIVACY_OPTIONS = [
    *TOTAL_OPTIONS,
    click.option("--model", type=click.Choice([IN_THE_CLEAR]),
                 help="Leave the model unprotected: ε then covers only the constants L_i of a "
                      "weighted walk, and the total is ε = ∞."),
    click.option("--row-length", type=float, metavar="LENGTH",
                 help="Public typical length of a row. Default: from --scale."),
    click.option("--feature-bound", type=float, metavar="LENGTH",
                 help="Public bound on the length ‖x‖ of a row; longer rows are shortened. "
                      "Default: from --scale, --range and --categories of all columns."),
    TARGET_SCALE,
    click.option("--total-rows", type=click.FloatRange(0, min_open=True),
                 help="Public number of rows of all nodes. Default: the number of rows in the "
                      "file; with --protect node, equal weight for all nodes."),
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
    """The options that describe the data file and the graph."""

    target: str | None
    node_column: str | None
    graph: str
    drop: Sequence[str]
    text: Sequence[str]
    schema: Schema
    delimiter: str | None

    @classmethod
    def take(cls, options: dict[str, Any]) -> DataOptions:
        """Remove the data options from all options of a command, and return them."""
        schema = declared_by(*map(options.pop, ("schema", "categories", "ranges", "scales")))
        names = ("target", "node_column", "graph", "drop", "text", "delimiter")
        return cls(schema=schema, **{name: options.pop(name) for name in names})

    def read(self, path: Path) -> Table:
        """Read the columns of a file."""
        from walklearn.tables import read_table

        text = sorted({*self.text, *self.schema.categories})
        return read_table(path, delimiter=self.delimiter, text=text)

    def target_of(self, table: Table) -> str:
        """Return the name of the target column: --target, or y for a format without names."""
        from walklearn.wording import join_names

        if self.target is not None:
            return self.target
        if "y" in table and Path(table.source).suffix.lower() in _NAMELESS:
            return "y"
        raise ValueError(
            f"--target is missing. Pass the column to predict; the columns of {table.source} are "
            f"{join_names(list(table))}."
        )

    def rows(self, table: Table) -> Rows:
        """Encode the rows of a table."""
        from walklearn.tables import rows_of

        return rows_of(
            table, target=self.target_of(table), node_column=self.node_column, drop=self.drop,
            schema=self.schema,
        )  # fmt: skip

    def network(self, rows: Rows, seed: int | None) -> Network:
        """Return the graph and the node of each row: from --node-column, or one node per row."""
        from walklearn.graphs import as_graph, place_rows
        from walklearn.graphs.names import is_family

        graph, count = self.graph, len(rows.y)
        is_file = rows.nodes is None and not is_family(graph)
        if is_file and (nodes := as_graph(graph).node_count) != count:
            raise ValueError(
                f"{graph} has {nodes} nodes, and there are {count} rows. Pass --node-column, the "
                "column that names the node that owns a row, or a graph with a node for each row "
                "(--graph erdos-renyi)."
            )
        return place_rows(graph, rows.nodes, count, seed, name_row=rows.name_row)

    def estimator(
        self, task: Task, rows: Rows, options: dict[str, Any], seed: int, **parameters: Any
    ) -> RandomWalk:
        """Return a classifier or a regressor; `seed` is for a random graph."""
        from walklearn.estimators import RandomWalkClassifier, RandomWalkRegressor

        names = ("row_length", "feature_bound", "epsilon", "delta", "protect", "model",
                 "total_rows", "penalty")  # fmt: skip
        parameters = {name: options[name] for name in names} | parameters
        if any(options.get(name) is not None for name in ("epsilon", "delta", "model_noise")):
            parameters |= public_lengths(rows, self.schema.without(rows.target), options)
        scale = target_scale_of(task, rows.target, self.schema, options)
        if scale is not None:
            parameters |= {"target_centre": scale.centre, "target_spread": scale.spread}
        kind = RandomWalkClassifier if task == "classification" else RandomWalkRegressor
        return kind(graph=self.network(rows, seed), **parameters)


def declared_by(
    path: Path | None, categories: Iterable[str], ranges: Iterable[str], scales: Iterable[str]
) -> Schema:
    """Return the schema that --schema, --categories, --range and --scale declare.

    >>> schema = declared_by(None, ["city=Oslo,Rome"], ["age=0,100"], ["*=5,2"])
    >>> schema.categories, schema.of_column("age").spread, schema.of_column("height").spread
    ({'city': ('Oslo', 'Rome')}, 50.0, 2.0)
    """
    given = zip(_EXAMPLES, (categories, ranges, scales), strict=True)
    columns = [_column(option, text) for option, texts in given for text in texts]
    return Schema.of(path).with_columns(columns)


def _column(option: str, text: str) -> Column:
    """Read the value of --categories, --range or --scale."""
    name, _, values = text.partition("=")
    name, parts = name.strip(), [part.strip() for part in values.split(",")]
    if option == "--categories" and name and all(parts):
        return Column(name, tuple(parts))
    try:
        first, second = map(float, parts)
    except ValueError:
        name = ""
    smallest = first if name and option == "--range" else 0.0
    if not name or not math.isfinite(first) or not smallest < second < math.inf:
        raise ValueError(f"{option} {text!r} is not of the form {option} {_EXAMPLES[option]}.")
    if option == "--range":
        return column_of_range(name, first, second)
    return Column(name, None, first, second, CUT_OFF)


def target_scale_of(
    task: Task,
    target: str | None,
    schema: Schema,
    options: dict[str, Any],
    is_agreed: bool = False,
) -> TargetScale | None:
    """Return the public scale of the target: --target-scale, or the schema's entry for the target.

    A private regression needs a scale that was not computed from the rows. is_agreed: True if the
    scale becomes part of a plan, which others read.
    """
    given = options["target_scale"]
    is_private = options["epsilon"] is not None or options.get("model_noise") is not None
    if task != "regression":
        if given is None:
            return None
        raise ValueError(
            "--target-scale is for numeric targets. Leave it out, or pass --task regression."
        )
    if given is not None:
        try:
            centre, spread = map(float, given.split(","))
            return TargetScale(centre, spread)
        except ValueError:
            raise ValueError(
                f"--target-scale {given} is not of the form CENTRE,SPREAD, such as 150,75: two "
                "finite numbers, of which the second is positive."
            ) from None
    declared = None if target is None else schema.target_scale(target)
    if declared is None and is_private and options.get("model") is None:
        option = "--model-noise" if options["epsilon"] is None else "--epsilon"
        raise ValueError(
            f"{option} needs the public centre and spread of a numeric target: a typical target "
            "and the typical distance from it, known without looking at the rows. Pass "
            "--target-scale CENTRE,SPREAD, or add the target to the --schema file."
        )
    if target not in schema.from_rows:
        return declared
    if is_private or is_agreed:
        raise ValueError(from_rows_message(schema))
    return None


def task_of(target: NDArray[Any], name: str, task: str) -> Task:
    """Return the task; "auto" is decided by the values of the target.

    >>> import numpy as np
    >>> task_of(np.array(["no", "yes"]), "label", "auto")
    'classification'
    >>> task_of(np.array([1.5, 2.0, 2.5]), "price", "auto")
    'regression'
    """
    import numpy as np

    values = np.unique(target)
    is_text = target.dtype.kind not in "biuf"
    if len(values) == 1:
        raise ValueError(
            f"the target {name!r} is {plain_texts(values)[0]} in every row. Choose another target."
        )
    if is_text and task == "regression":
        raise ValueError(
            f"the target {name!r} is text, such as {str(values[0])!r}, and regression predicts "
            "numbers. Use --task classification, or choose another target."
        )
    has_few = len(values) <= 2 or (
        not is_text
        and bool((values == np.floor(values)).all())
        and len(values) <= min(FEW_VALUES, len(target) // 2)
    )
    if task == "regression" or (task == "auto" and not is_text and not has_few):
        return "regression"
    if len(values) > MAX_CLASSES or (len(values) > FEW_VALUES and 2 * len(values) > len(target)):
        remedy = "Choose another target" if is_text else "For numbers use --task regression"
        raise ValueError(
            f"the target {name!r} has {len(values)} different values in {len(target)} rows, too "
            f"many for classes. {remedy}."
        )
    return "classification"


def public_lengths(rows: Rows, schema: Schema, options: dict[str, Any]) -> dict[str, Any]:
    """Return the public typical and maximum length of a row, for a private run."""
    from walklearn.privacy.settings import declared_lengths
    from walklearn.wording import join_names

    length, bound = options["row_length"], options["feature_bound"]
    if (options["epsilon"] is None) != (options["delta"] is None):
        one, other = ("epsilon", "delta") if options["delta"] is None else ("delta", "epsilon")
        raise ValueError(f"--{one} needs --{other}. Pass both, such as --epsilon 3 --delta 1e-5.")
    if schema.from_rows:
        raise ValueError(from_rows_message(schema))
    undeclared = schema.undeclared(rows.columns)
    text = [
        c.name for c in rows.encoding.columns if c.categories and c.name not in schema.categories
    ]
    if text:
        owner = f", or use it as --node-column {quote(text[0])}" if rows.nodes is None else ""
        raise ValueError(
            f"privacy needs public categories of {join_names(text)}, and those in the data would "
            f"leak. Declare all possible ones, such as --categories {quote(f'{text[0]}=a,b,c')} or "
            f"in a --schema file; or leave the column out with --drop {quote(text[0])}{owner}."
        )
    if bound is None and length is None and undeclared:
        raise ValueError(
            f"privacy needs a public scale of {join_names(undeclared)}, and one from the data "
            f"would leak. Declare it, such as --scale {quote(f'{undeclared[0]}=50,20')} (typical "
            "centre and spread; '*' for all columns), as a --range, or in a --schema file "
            "(`walklearn schema` writes a template); or pass --feature-bound."
        )
    if options["task"] == "auto":
        raise ValueError(
            "privacy needs --task, because --task auto depends on the rows. Pass --task "
            "classification or --task regression."
        )
    return declared_lengths(rows.encoding, length, bound)


def described_graph(
    name: str, nodes: int | None, seed: int | None, default: int | None = None
) -> Graph:
    """Return a graph of a named family, or read one from an edge list.

    default: the number of nodes of a family if --nodes is missing; None to require --nodes.
    """
    from walklearn.graphs import as_graph, read_network

    if not Path(name).is_file():
        return as_graph(name, default if nodes is None else nodes, seed=seed)
    graph = read_network(name, []).graph
    if nodes not in (None, graph.node_count):
        raise ValueError(
            f"--nodes is {nodes}, and {name} has {graph.node_count} nodes. Pass --nodes "
            f"{graph.node_count}, or leave it out."
        )
    return graph


def encoding_of(schema: Schema, others: Sequence[str] = ()) -> Encoding:
    """Return the encoding of a schema's columns; `others` are the columns that "*" stands for."""
    named = dict.fromkeys([*(name for name in schema.columns if name != OTHERS), *others])
    return Encoding(tuple(column for name in named if (column := schema.of_column(name))))


def plan_without_rows(
    graph: Graph,
    rows: float | None,
    features: int | None,
    lengths: dict[str, Any],
    classes: int | None,
    options: dict[str, Any],
) -> FitPlan:
    """Return the plan that follows from public facts; `classes` is None for regression."""
    from walklearn.fitting.request import loss_of
    from walklearn.fitting.resolve import advise
    from walklearn.privacy import PrivacySettings, PublicFacts

    privacy = PrivacySettings(
        options["epsilon"], options["delta"], options["protect"] or "rows",
        model=options.get("model"), feature_bound=lengths["feature_bound"],
    )  # fmt: skip
    facts = PublicFacts(graph.node_count, rows, features, lengths["row_length"])
    return advise(
        graph,
        facts,
        privacy,
        loss=loss_of(None, classes),
        penalty=options["penalty"],
        laziness=options["laziness"] or 0.0,
    )
