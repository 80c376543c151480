"""`walklearn advise`: recommend a walk, a mechanism, a laziness and a step from public facts."""

from __future__ import annotations

import shlex
import warnings
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click
from click.core import ParameterSource

from walklearn.cli.console import WIDTH, Console, print_reasons, with_console
from walklearn.cli.data_options import (
    DATA_OPTIONS,
    LAZINESS,
    PENALTY,
    PRIVACY_OPTIONS,
    TASK,
    DataOptions,
    described_graph,
    encoding_of,
    plan_without_rows,
    target_scale_of,
    task_of,
    with_options,
)

if TYPE_CHECKING:
    from walklearn.fitting.plan import FitPlan

# fmt: off
_OPTIONS = [
    click.option("--nodes", type=click.IntRange(1),
                 help="Number of nodes, if --graph is a family and DATA is omitted."),
    click.option("--rows", type=click.IntRange(1),
                 help="Number of rows of all nodes, if DATA is omitted; required with --epsilon. "
                      "Default: one per node."),
    click.option("--features", type=click.IntRange(1),
                 help="Number of features of a row, if DATA is omitted. Default: from a --schema "
                      "that names every column."),
    click.option("--classes", type=click.IntRange(2),
                 help="Number of classes, if DATA is omitted. Default: two."),
    TASK,
    PENALTY,
    LAZINESS,
    click.option("--seed", type=click.IntRange(0), default=1, show_default=True,
                 help="Seed of a random graph."),
]
# fmt: on
_FACTS = ("nodes", "rows", "features", "classes")
_ADVISE_ONLY = (*_FACTS, "seed", "as_json", "verbose", "quiet")


@click.command()
@click.argument("data", type=click.Path(path_type=Path), required=False)
@with_options(DATA_OPTIONS)
@with_options(PRIVACY_OPTIONS)
@with_options(_OPTIONS)
@with_console
def advise(data: Path | None, console: Console, **options: Any) -> None:
    """Recommend a walk, a protection, a laziness and a step, with the reasons.

    ε and δ are the total for everything that leaves a node because of its rows, including the
    model. Only public facts are used. If you pass the file DATA, `walklearn train` with the
    printed options makes the same plan (a random graph is drawn again). Of a private file, the plan
    uses only the numbers of nodes, rows per node, features and classes.

    \b
    Examples:
      walklearn advise --graph edges.txt --epsilon 3 --delta 1e-5 --rows 5000 --schema schema.toml
      walklearn advise --graph ring --nodes 20 --epsilon 3 --delta 1e-5 --rows 5000 \\
          --features 10 --scale '*=0,1'
      walklearn advise data.csv --target label --node-column site --graph edges.txt
      walklearn advise data.csv --target label --graph edges.txt --epsilon 3 --delta 1e-5 \\
          --schema schema.toml --json
    """
    data_options = DataOptions.take(options)
    if data is None:
        plan = _from_public_facts(data_options, options)
    else:
        for name in _FACTS:
            if options[name] is not None:
                raise ValueError(f"--{name} follows from {data}. Leave it out.")
        plan = _from_file(data, data_options, options)
    console.document |= plan.to_dict()
    title = click.wrap_text(f"{plan.headline} From public facts only.", WIDTH)
    console.print_table(["", ""], [list(row) for row in plan.rows_of_table()], title=title)
    for line in plan.advice():
        console.print(click.wrap_text(line, WIDTH))
    if console.verbose:
        if plan.comparison is not None:
            console.print(f"\n{plan.comparison}")
        console.print()
        print_reasons(console, plan)
    else:
        console.print("Print the reasons with --verbose.")
    console.print(f"\nTrain with: walklearn train ... {_train_options(plan, options)}")


def _from_public_facts(data_options: DataOptions, options: dict[str, Any]) -> FitPlan:
    is_private = options["epsilon"] is not None
    graph = described_graph(data_options.graph, options["nodes"], options["seed"])
    rows = options["total_rows"] or options["rows"]
    if rows is None and not (is_private and options["protect"] == "node"):
        if is_private:
            raise ValueError(
                "--epsilon needs the number of rows of all nodes. Pass --rows, such as --rows 5000."
            )
        rows = graph.node_count
    if options["task"] == "auto":
        options["task"] = "classification"
    is_regression = options["task"] == "regression"
    if is_regression and options["classes"] is not None:
        raise ValueError("--classes is for classification. Leave it out, or use another --task.")
    target_scale_of(options["task"], data_options.target, data_options.schema, options)
    features, lengths = _declared(data_options, options)
    classes = None if is_regression else options["classes"] or 2
    return plan_without_rows(graph, rows, features, lengths, classes, options)


def _declared(
    data_options: DataOptions, options: dict[str, Any]
) -> tuple[int | None, dict[str, Any]]:
    """Return the number of features and the lengths of a row, from options or the schema.

    The entry "*" of a schema stands for all features that it does not name, so it needs --features.
    """
    from walklearn.privacy.settings import declared_lengths
    from walklearn.tables.schema import OTHERS, from_rows_message

    schema, features = data_options.schema.without(data_options.target or ""), options["features"]
    given = options["row_length"], options["feature_bound"]
    if options["epsilon"] is not None and schema.from_rows:
        raise ValueError(from_rows_message(schema))
    has_others = OTHERS in schema.columns
    if not schema.columns or (has_others and features is None):
        return features, declared_lengths(None, *given)
    others = list[str]()
    if has_others:
        named = encoding_of(schema).feature_count if len(schema.columns) > 1 else 0
        others = [f"{OTHERS}{at}" for at in range(features - named)]
    encoding = encoding_of(schema, others)
    if features not in (None, encoding.feature_count):
        raise ValueError(
            f"--features is {features}, and the schema declares {encoding.feature_count}. Correct "
            "one of them, or pass --target if the schema declares the target."
        )
    if features is None and data_options.target is None:
        warnings.warn(
            f"all {encoding.feature_count} features of the schema are counted. If one of its "
            "columns is the target, pass --target.", stacklevel=2)  # fmt: skip
    return encoding.feature_count, declared_lengths(encoding, *given)


def _from_file(data: Path, data_options: DataOptions, options: dict[str, Any]) -> FitPlan:
    from sklearn import config_context

    rows = data_options.rows(data_options.read(data))
    task = task_of(rows.y, rows.target, options["task"])
    estimator = data_options.estimator(
        task, rows, options, options["seed"], laziness=options["laziness"], mechanism=None
    )
    options["task"] = task
    with config_context(assume_finite=True):  # the cells were checked when they were read
        return estimator.resolve(rows.X, rows.y)


def _train_options(plan: FitPlan, options: dict[str, Any]) -> str:
    """Return options for `walklearn train`: those passed to this command, and the advice."""
    context, facts = click.get_current_context(), plan.to_dict()
    values: dict[str, Any] = {}
    for option in context.command.params:
        name = option.name or ""
        is_given = context.get_parameter_source(name) is ParameterSource.COMMANDLINE
        if is_given and isinstance(option, click.Option) and name not in _ADVISE_ONLY:
            values[option.opts[0]] = context.params[name]
    if options["epsilon"] is not None:
        values["--task"] = options["task"]
    values |= {"--walk": facts["walk"], "--laziness": facts["laziness"] or None}
    values["--update"] = None if facts["update"] == "sgd" else facts["update"]
    if plan.budget_plan is None:  # otherwise `train` computes the same budget
        values["--mechanism"] = facts["mechanism"]
        if facts["step_constant"] is not None:
            values["--step-constant"] = f"{facts['step_constant']:.3g}"
    else:
        values["--protect"] = facts["unit"]
        if facts["unit"] == "node":  # `train` does not count the rows then
            values["--total-rows"] = plan.facts.rows
    return " ".join(
        f"{name} {shlex.quote(repr(v).removesuffix('.0') if isinstance(v, float) else str(v))}"
        for name, value in values.items()
        for v in (value if isinstance(value, tuple) else [value])
        if v is not None
    )
