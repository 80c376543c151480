"""`walklearn plan`: make the plan that all nodes of a network share, check one, explain it."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from walklearn.cli.console import WIDTH, Console, with_console
from walklearn.cli.data_options import (
    TARGET_SCALE,
    Task,
    described_graph,
    target_scale_of,
    with_options,
)
from walklearn.cli.user_errors import named_as_options
from walklearn.wording import plural

if TYPE_CHECKING:
    from walklearn.fitting.plan import FitPlan
    from walklearn.graphs import Graph
    from walklearn.node.agreement.plan import Plan
    from walklearn.objectives.linear.losses import Loss
    from walklearn.tables.encoding import Encoding
    from walklearn.tables.schema import Schema

# fmt: off
_NEW_OPTIONS = [
    click.option("--schema", type=click.Path(path_type=Path), required=True,
                 help="The columns to learn from and their public scales: walklearn schema writes "
                      "one to be filled in."),
    click.option("--features", metavar="A,B",
                 help="The columns that '*' of the schema stands for."),
    click.option("--target", required=True, help="The column to predict."),
    click.option("--classes", metavar="A,B",
                 help="The values of the target. Default: it is a number."),
    TARGET_SCALE,
    click.option("--nodes", type=click.IntRange(1),
                 help="How many take part. Default: as many as the edge list has."),
    click.option("--rows", type=click.IntRange(1), required=True,
                 help="How many rows all nodes have together, about: a public number."),
    click.option("--graph", default="erdos-renyi", show_default=True,
                 help="Who will be whose neighbour: an edge list, or a family such as ring."),
    click.option("--epsilon", type=float, help="Privacy loss ε: the total for everything that "
                 "leaves a node because of its rows. Default: nothing is protected."),
    click.option("--delta", type=float, help="δ of that pair, such as 1e-5."),
    click.option("--protect", type=click.Choice(["rows", "node"]), default="rows",
                 show_default=True, help="What ε is about: one row of a node, or all its rows."),
    click.option("--penalty", type=click.FloatRange(0), default=1e-3, show_default=True,
                 help="λ of the penalty (λ/2)‖w‖²."),
    click.option("--updates", type=click.IntRange(1),
                 help="Of the token in all. Default: what ε allows; else 400 for each node, and at "
                      "least 5000."),
    click.option("--slowest-answer", type=click.FloatRange(0, min_open=True), metavar="SECONDS",
                 help="How long the slowest participant takes to answer, at worst: the time "
                      "limits follow. Default: nodes measure it themselves."),
    click.option("--keeper", metavar="FINGERPRINT",
                 help="Who signs the book of participants: walklearn node book new prints it."),
    click.option("--name", default="network", show_default=True, help="Of a-z, 0-9 and -."),
    click.option("--out", type=click.Path(path_type=Path, dir_okay=False),
                 default=Path("plan.toml"), show_default=True, help="The file to write."),
]
# fmt: on


@click.group()
def plan() -> None:
    """The plan: what all nodes of a network agree on before the first token walks.

    \b
    Examples:
      walklearn plan new --schema schema.toml --target ill --classes no,yes --nodes 20 \\
          --rows 5000 --epsilon 3 --delta 1e-5
      walklearn plan check plan.toml --data rows.csv
    """


@plan.command()
@with_options(_NEW_OPTIONS)
@with_console
def new(out: Path, console: Console, **options: Any) -> None:
    """Make a plan from a schema and public facts, as `walklearn advise` does, and explain it.

    With ε the walk is uniform, which discloses nothing about the rows, and clip, noise, step and
    number of updates follow from public facts. Without ε the update is "saga", which converges to
    the minimiser. No rows are read.
    """
    from walklearn.node.agreement.plan import Plan

    if options["updates"] is not None and options["epsilon"] is not None:
        raise ValueError("--updates follows from --epsilon, as the noise does: leave it out.")
    if out.exists():
        raise FileExistsError(f"{out} exists, and others may have it: choose another --out.")
    text = plan_from(**options)
    with named_as_options():
        made = Plan.from_text(text, str(out))
        made.check_usable()
    out.write_text(text, encoding="utf-8")
    console.document["out"] = str(out)
    console.print(f"{out} is for everybody who takes part:\n")
    _explain(made, console)
    accepted = "" if made.privacy.protects_model else " --accept-unprotected"
    console.print(
        "\nNext, beside the rows of each: "
        f"walklearn node init mynode --plan {out} --data …{accepted}"
    )


@plan.command()
@click.argument("plan", type=click.Path(path_type=Path, dir_okay=False))
@click.option("--data", type=click.Path(path_type=Path, dir_okay=False), multiple=True,
              help="A file of rows that should fit the plan.")  # fmt: skip
@with_console
def check(plan: Path, data: tuple[Path, ...], console: Console) -> None:
    """Check the file PLAN, and say in plain words what it comes to and what to mind."""
    from walklearn.node.agreement.node_rows import read_node_rows
    from walklearn.node.agreement.plan import Plan

    read = Plan.read(plan)
    read.check_usable()
    rows = {str(path): len(read_node_rows(path, read).y) for path in data}
    console.document["rows"] = rows
    console.print(f"{plan} can be used:\n")
    _explain(read, console)
    for path, count in rows.items():
        console.print(f"{path}: {plural(count, 'row')}, all of which fit.")


def plan_from(**given: Any) -> str:
    """The text of a plan, from the options of `walklearn plan new`; None where one is not given."""
    from walklearn.cli.plan_text import text_of
    from walklearn.fitting.request import loss_of
    from walklearn.tables.schema import Schema

    options: dict[str, Any] = {str(option.name): None for option in new.params} | given
    schema, classes = Schema.of(options["schema"]), _listed(options["classes"])
    target = options["target"]
    task: Task = "regression" if classes is None else "classification"
    scale = target_scale_of(task, target, schema, options, is_agreed=True)
    features = schema.without(target) if task == "regression" else schema
    encoding = _encoding(features, options["schema"], options["features"])
    graph = described_graph(options["graph"], options["nodes"], seed=1)
    loss = loss_of(None, None if classes is None else max(2, len(classes)))
    fit = _resolved(graph, encoding, loss, options)
    return text_of(fit, encoding, options, classes, scale)


def _explain(plan: Plan, console: Console) -> None:
    from walklearn.cli.plan_text import explained, notes

    topics = explained(plan)
    console.document |= {"digest": plan.digest, "plan": plan.to_dict()}
    console.document |= {"explained": dict(topics), "notes": notes(plan)}
    width = max(len(topic) for topic, _ in topics) + 2
    for topic, text in topics:
        console.print(click.wrap_text(text, WIDTH, topic.ljust(width), " " * width))
    for note in notes(plan):
        console.note(note)


def _listed(values: str | None) -> tuple[str, ...] | None:
    return None if values is None else tuple(value.strip() for value in values.split(","))


def _encoding(schema: Schema, path: Path, others: str | None) -> Encoding:
    """The columns of a schema, with those that its "*" stands for."""
    from walklearn.tables.encoding import Encoding
    from walklearn.tables.schema import OTHERS, from_rows_message

    if schema.from_rows:
        raise ValueError(from_rows_message(schema))
    named = [name for name in schema.columns if name != OTHERS]
    if OTHERS in schema.columns and others is None:
        raise ValueError(
            f"{path} has a '{OTHERS}', and nodes must know which columns it stands for: name them "
            "with --features, such as --features age,pressure."
        )
    for name in _listed(others) or ():
        if schema.of_column(name) is None:
            raise ValueError(f"--features {name}: {path} declares neither it nor '{OTHERS}'.")
        named += [name] * (name not in named)
    return Encoding(tuple(column for name in named if (column := schema.of_column(name))))


def _resolved(graph: Graph, encoding: Encoding, loss: Loss, options: dict[str, Any]) -> FitPlan:
    from walklearn.fitting.resolve import advise
    from walklearn.privacy import PrivacySettings, PublicFacts
    from walklearn.privacy.settings import declared_lengths

    lengths = declared_lengths(encoding)
    privacy = PrivacySettings(
        options["epsilon"], options["delta"], options["protect"] or "rows",
        feature_bound=lengths["feature_bound"],
    )  # fmt: skip
    facts = PublicFacts(
        graph.node_count, options["rows"], encoding.feature_count, lengths["row_length"]
    )
    return advise(graph, facts, privacy, loss=loss, penalty=options["penalty"])
