"""`walklearn plan`: make, check and explain the plan that all nodes of a network share."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from walklearn.cli.console import WIDTH, Console, with_console
from walklearn.cli.data_options import (
    GRAPH,
    LAZINESS,
    PENALTY,
    TARGET_SCALE,
    TOTAL_OPTIONS,
    Task,
    described_graph,
    encoding_of,
    plan_without_rows,
    target_scale_of,
    with_options,
)
from walklearn.cli.user_errors import name_options_in_errors
from walklearn.wording import plural

if TYPE_CHECKING:
    from walklearn.node.agreement.plan import Plan

# fmt: off
_NEW_OPTIONS = [
    click.option("--schema", type=click.Path(path_type=Path), required=True,
                 help="TOML file with the columns to learn from and their public scales; "
                      "`walklearn schema` writes a template."),
    click.option("--features", metavar="A,B",
                 help="Columns that the schema's entry '*' stands for."),
    click.option("--target", required=True, help="Column to predict."),
    click.option("--classes", metavar="A,B",
                 help="Values of the target. Default: none, the target is a number."),
    TARGET_SCALE,
    click.option("--nodes", type=click.IntRange(1),
                 help="Number of nodes. Default: that of the edge list."),
    click.option("--rows", type=click.IntRange(1), required=True,
                 help="Public approximate number of rows of all nodes."),
    GRAPH,
    *TOTAL_OPTIONS,
    PENALTY,
    LAZINESS,
    click.option("--updates", type=click.IntRange(1),
                 help="Number of updates. Default without ε: 400 per node, and at least 5000. With "
                      "ε it follows from ε."),
    click.option("--slowest-answer", type=click.FloatRange(0, min_open=True), metavar="SECONDS",
                 help="Maximum answer time of a node, which determines the timeouts. Default: "
                      "nodes measure it."),
    click.option("--roster-signer", metavar="FINGERPRINT",
                 help="Fingerprint of the roster signer: `walklearn node roster new` prints it."),
    click.option("--name", default="network", show_default=True,
                 help="Name of the network, of a-z, 0-9 and -."),
    click.option("--out", type=click.Path(path_type=Path, dir_okay=False),
                 default=Path("plan.toml"), show_default=True, help="File to write."),
]
# fmt: on


@click.group()
def plan() -> None:
    """Make, check and explain a plan: the settings on which all nodes agree before training.

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
        raise ValueError("--updates follows from --epsilon. Leave it out.")
    if out.exists():
        raise FileExistsError(f"{out} exists, and other nodes may have it. Use another --out.")
    text = plan_from(**options)
    with name_options_in_errors():
        made = Plan.from_text(text, str(out))
        made.check_usable()
    out.write_text(text, encoding="utf-8")
    console.document["out"] = str(out)
    console.print(f"{out} is the plan for all nodes:\n")
    _explain(made, console)
    accepted = "" if made.privacy.protects_model else " --accept-unprotected"
    console.print(
        "\nNext, beside the rows of each node: "
        f"walklearn node init mynode --plan {out} --data …{accepted}"
    )


@plan.command()
@click.argument("plan", type=click.Path(path_type=Path, dir_okay=False))
@click.option("--data", type=click.Path(path_type=Path, dir_okay=False), multiple=True,
              help="File of rows to check against the plan.")  # fmt: skip
@with_console
def check(plan: Path, data: tuple[Path, ...], console: Console) -> None:
    """Check the file PLAN, and explain its consequences."""
    from walklearn.node.agreement.node_rows import read_node_rows
    from walklearn.node.agreement.plan import Plan

    read = Plan.read(plan)
    read.check_usable()
    rows = {str(path): len(read_node_rows(path, read).y) for path in data}
    console.document["rows"] = rows
    console.print(f"{plan} can be used:\n")
    _explain(read, console)
    for path, count in rows.items():
        console.print(f"{path}: {plural(count, 'row')}, which all fit the plan.")


def plan_from(**given: Any) -> str:
    """Return the text of a plan; `given` are options of `walklearn plan new`, others are None."""
    from walklearn.cli.plan_text import text_of
    from walklearn.privacy.settings import declared_lengths
    from walklearn.tables.schema import OTHERS, Schema, from_rows_message

    options: dict[str, Any] = {str(option.name): None for option in new.params} | given
    path, target = options["schema"], options["target"]
    schema, classes = Schema.of(path), _listed(options["classes"])
    task: Task = "regression" if classes is None else "classification"
    scale = target_scale_of(task, target, schema, options, is_agreed=True)
    if task == "regression" or target in schema.categories:
        schema = schema.without(target)
    others = _listed(options["features"]) or ()
    if schema.from_rows:
        raise ValueError(from_rows_message(schema))
    if OTHERS in schema.columns and not others:
        raise ValueError(
            f"'{OTHERS}' of {path} stands for columns that nodes must know. Name them with "
            "--features, such as --features age,pressure."
        )
    for name in others:
        if schema.of_column(name) is None:
            raise ValueError(f"--features {name}: {path} declares neither it nor '{OTHERS}'.")
    encoding = encoding_of(schema, others)
    graph = described_graph(options["graph"], options["nodes"], seed=1)
    lengths, count = declared_lengths(encoding), None if classes is None else max(2, len(classes))
    features = encoding.feature_count
    fit = plan_without_rows(graph, options["rows"], features, lengths, count, options)
    return text_of(fit, encoding, options, classes, scale)


def _explain(plan: Plan, console: Console) -> None:
    from walklearn.cli.plan_text import explanation_of, notes

    topics = explanation_of(plan)
    console.document |= {"digest": plan.digest, "plan": plan.to_dict()}
    console.document |= {"explained": dict(topics), "notes": notes(plan)}
    width = max(len(topic) for topic, _ in topics) + 2
    for topic, text in topics:
        console.print(click.wrap_text(text, WIDTH, topic.ljust(width), " " * width))
    for note in notes(plan):
        console.note(note)


def _listed(values: str | None) -> tuple[str, ...] | None:
    return None if values is None else tuple(value.strip() for value in values.split(","))
