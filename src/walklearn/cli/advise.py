"""`walklearn advise`: the walk, mechanism, laziness and step that follow from public facts."""

from __future__ import annotations

import shlex
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click
from click.core import ParameterSource

from walklearn.cli.console import WIDTH, Console, with_console, wrapped_sentences
from walklearn.cli.data_options import (
    DATA_OPTIONS,
    PRIVACY_OPTIONS,
    DataOptions,
    described_graph,
    estimator_for,
    public_facts,
    target_scale_of,
    task_of,
    with_options,
)

if TYPE_CHECKING:
    from walklearn.fitting.plan import FitPlan
    from walklearn.tables import Schema

# fmt: off
_OPTIONS = [
    click.option("--nodes", type=click.IntRange(1),
                 help="How many nodes, for a family of graphs without data."),
    click.option("--rows", type=click.IntRange(1),
                 help="How many rows there are in all, without data; needed with --epsilon. "
                      "Default: one per node."),
    click.option("--features", type=click.IntRange(1),
                 help="How many features a row has, without data. Default: from a --schema that "
                      "names every column."),
    click.option("--classes", type=click.IntRange(2),
                 help="How many classes there are, without data. Default: two."),
    click.option("--task", type=click.Choice(["auto", "classification", "regression"]),
                 default="auto", show_default=True),
    click.option("--penalty", type=click.FloatRange(0), default=1e-3, show_default=True,
                 help="λ of the penalty (λ/2)‖w‖²."),
    click.option("--seed", type=click.IntRange(0), default=1, show_default=True),
]
# fmt: on
_OF_THE_ADVICE = ("nodes", "rows", "features", "classes", "seed", "as_json", "verbose", "quiet")


@click.command()
@click.argument("data", type=click.Path(path_type=Path), required=False)
@with_options(DATA_OPTIONS)
@with_options(PRIVACY_OPTIONS)
@with_options(_OPTIONS)
@with_console
def advise(data: Path | None, console: Console, **options: Any) -> None:
    """Recommend a walk, what protects it, a laziness and a step, with the numbers behind it.

    ε and δ are the total for everything that leaves a node because of its rows, the model included.
    Only public facts are used. With the file DATA the plan equals that of `walklearn train` with
    the printed options, except for a graph that is drawn at random. A private plan depends only on
    the numbers of nodes, rows (also of each node), features and classes in the file.

    \b
    Examples:
      walklearn advise --graph edges.txt --epsilon 3 --delta 1e-5 --rows 5000 --schema schema.toml
      walklearn advise --graph ring --nodes 20 --epsilon 3 --delta 1e-5 --rows 5000 \\
          --features 10 --scale '*=0,1'
      walklearn advise data.csv --target label --node-column site --graph edges.txt
      walklearn advise data.csv --target label --graph edges.txt --epsilon 3 --delta 1e-5 \\
          --schema schema.toml --json
    """
    described = DataOptions.take(options)
    if data is None:
        plan = _from_public_facts(described, options)
    else:
        for name in ("nodes", "rows", "features", "classes"):
            if options[name] is not None:
                raise ValueError(f"--{name} says what {data} says itself: leave it out.")
        plan = _from_file(data, described, options)
    console.document |= plan.to_dict()
    asked = _asked(click.get_current_context())
    if options["epsilon"] is not None:
        asked["--task"] = [options["task"]]
    _tell(console, plan, asked)


def _from_public_facts(described: DataOptions, options: dict[str, Any]) -> FitPlan:
    from walklearn.fitting.request import check_cap, loss_of
    from walklearn.fitting.resolve import advise as wl_advise
    from walklearn.privacy import PrivacySettings, PublicFacts

    graph = described_graph(described.graph, options["nodes"], options["seed"])
    rows = options["total_rows"] or options["rows"]
    hides_rows = options["protect"] == "node" and options["epsilon"] is not None
    if rows is None and options["epsilon"] is not None and not hides_rows:
        raise ValueError(
            "how many rows are there in all? What ε costs depends on it: pass --rows, such as "
            "--rows 5000."
        )
    if rows is None and not hides_rows:
        rows = graph.node_count
    if options["task"] == "auto":
        options["task"] = "classification"
    if options["task"] == "regression" and options["classes"] is not None:
        raise ValueError("--classes is for classification: leave it out, or use another --task.")
    target_scale_of(options["task"], described.target, described.schema, options)
    declared = _declared(described.schema.without(described.target or ""), options)
    privacy = PrivacySettings(
        options["epsilon"], options["delta"], options["protect"], model=options["model"],
        feature_bound=declared["feature_bound"], max_rows=options["max_rows"],
    )  # fmt: skip
    check_cap(privacy, options["total_rows"])
    facts = PublicFacts(graph.node_count, rows, declared["features"], declared["row_length"])
    loss = loss_of(None, None if options["task"] == "regression" else options["classes"] or 2)
    return wl_advise(graph, facts, privacy, loss=loss, penalty=options["penalty"])


def _declared(schema: Schema, options: dict[str, Any]) -> dict[str, Any]:
    """What is public of the rows: as given, or as the schema declares it.

    "*" stands for all features that it does not name, so how many there are has to be given.
    """
    from walklearn.privacy.settings import declared_lengths
    from walklearn.tables.encoding import Encoding
    from walklearn.tables.schema import OTHERS, from_rows_message

    facts = {name: options[name] for name in ("features", "row_length", "feature_bound")}
    if options["epsilon"] is not None and schema.from_rows:
        raise ValueError(from_rows_message(schema))
    others = schema.columns.get(OTHERS)
    if not schema.columns or (others is not None and facts["features"] is None):
        return facts
    columns = [column for name, column in schema.columns.items() if name != OTHERS]
    if others is not None:
        named = Encoding(tuple(columns)).feature_count if columns else 0
        left = range(facts["features"] - named)
        columns += [replace(others, name=f"{OTHERS}{at}") for at in left]
    encoding = Encoding(tuple(columns))
    features = facts.pop("features") or encoding.feature_count
    return {"features": features, **declared_lengths(encoding, **facts)}


def _from_file(data: Path, described: DataOptions, options: dict[str, Any]) -> FitPlan:
    from sklearn import config_context

    rows = described.rows(described.read(data))
    names = ("row_length", "feature_bound", "epsilon", "delta", "protect", "model", "max_rows",
             "total_rows", "penalty")  # fmt: skip
    settings = {name: options[name] for name in names}
    if (options["epsilon"], options["delta"]) != (None, None):
        settings |= public_facts(rows, described.schema.without(rows.target), options)
    network = described.network(rows, options["seed"])
    options["task"] = task_of(rows.y, rows.target, options["task"])
    scale = target_scale_of(options["task"], rows.target, described.schema, options)
    if scale is not None:
        settings |= {"target_centre": scale.centre, "target_spread": scale.spread}
    estimator = estimator_for(options["task"])(
        graph=network, laziness=None, mechanism=None, **settings
    )
    with config_context(assume_finite=True):  # the cells were checked when they were read
        return estimator.resolve(rows.X, rows.y)


def _tell(console: Console, plan: FitPlan, asked: dict[str, list[str]]) -> None:
    title = click.wrap_text(f"{plan.headline} From public facts only.", WIDTH)
    console.print_table(["", ""], [list(row) for row in plan.rows_of_table()], title=title)
    for line in plan.advice():
        console.print(click.wrap_text(line, WIDTH))
    if console.verbose:
        if plan.comparison is not None:
            console.print(f"\n{plan.comparison}")
        console.print("\nBecause:\n" + wrapped_sentences([str(reason) for reason in plan.reasons]))
    else:
        console.print("The reasons: --verbose.")
    console.print(f"\nTrain with: walklearn train ... {_options_of(plan, asked)}")


def _asked(context: click.Context) -> dict[str, list[str]]:
    """What was said on the command line that training must be told as well."""
    asked = dict[str, list[str]]()
    for option in context.command.params:
        name = option.name or ""
        said = context.get_parameter_source(name) is ParameterSource.COMMANDLINE
        if said and isinstance(option, click.Option) and name not in _OF_THE_ADVICE:
            value = context.params[name]
            asked[option.opts[0]] = [_written(v) for v in (value if option.multiple else [value])]
    return asked


def _written(value: Any) -> str:
    return repr(value).removesuffix(".0") if isinstance(value, float) else str(value)


def _options_of(plan: FitPlan, asked: dict[str, list[str]]) -> str:
    """What to pass to `walklearn train`: what was asked here, and what is advised."""
    facts = plan.to_dict()
    advised = {"--walk": facts["walk"], "--laziness": facts["laziness"] or None}
    advised["--update"] = None if facts["update"] == "sgd" else facts["update"]
    if plan.budget_plan is None:  # otherwise `train` computes the same budget
        step = facts["step_constant"]
        advised |= {
            "--mechanism": facts["mechanism"],
            "--step-constant": None if step is None else f"{step:.3g}",
        }
    else:
        advised["--protect"] = facts["unit"]
        if facts["unit"] == "node":  # `train` does not count the rows then
            advised["--total-rows"] = plan.facts.rows
    said = asked | {name: [_written(v)] for name, v in advised.items() if v is not None}
    return " ".join(f"{name} {shlex.quote(v)}" for name, values in said.items() for v in values)
