"""`walklearn train`: a model from a file of rows, by a walk over a graph."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from walklearn.cli.bad_input import plainly
from walklearn.cli.data_options import (
    DATA_OPTIONS,
    PRIVACY_OPTIONS,
    DataOptions,
    with_options,
)
from walklearn.cli.privacy import KINDS

if TYPE_CHECKING:
    from walklearn.cli.training import Training


# fmt: off
_OPTIONS = [
    click.option("--mechanism", type=click.Choice(KINDS), default="laplace", show_default=True,
                 help="What draws the noise of a release."),
    click.option("--model-noise", type=float, nargs=4, metavar="EPSILON DELTA CLIP TIMES",
                 help="Protect the model too: what a visit adds is clipped to norm CLIP and "
                      "noised, and a node adds at most TIMES times."),
    click.option("--out", type=click.Path(path_type=Path), required=True,
                 help="Directory for the model."),
    click.option("--force", is_flag=True, help="Overwrite a model that is there."),
    click.option("--task", type=click.Choice(["auto", "classification", "regression"]),
                 default="auto", show_default=True,
                 help="Whether the target is a class or a number."),
    click.option("--loss", type=click.Choice(["logistic", "squared-hinge", "squared", "huber"]),
                 help="Default: logistic for classes, squared for numbers."),
    click.option("--penalty", type=float, default=1e-3, show_default=True,
                 help="λ of the penalty (λ/2)‖w‖²."),
    click.option("--walk", type=click.Choice(["weighted", "uniform", "simple"]),
                 default="weighted", show_default=True,
                 help="Whom the token visits more often."),
    click.option("--laziness", type=click.FloatRange(0, 1, max_open=True), default=0.0,
                 show_default=True, help="Chance of staying put before anything is proposed."),
    click.option("--steps", type=click.IntRange(1),
                 help="SGD updates. Default: until the loss stops improving."),
    click.option("--max-steps", type=click.IntRange(1),
                 help="Stop there at the latest. Default: a million updates, or 50 per node."),
    click.option("--tol", type=click.FloatRange(0), default=3e-3, show_default=True,
                 help="Stop when a doubling of the updates changes the loss by less than this "
                      "share of the loss at the start."),
    click.option("--step-constant", type=float,
                 help="c of the steps c / k^0.51. Default: from the smoothness."),
    click.option("--test", type=click.Path(path_type=Path), help="A file of rows to test on."),
    click.option("--test-fraction", type=click.FloatRange(0, 1, min_open=True, max_open=True),
                 help="Test on this share of the rows, and do not train on them."),
    click.option("--seed", type=click.IntRange(0),
                 help="Repeat a run exactly. Noise from a seed protects nobody."),
    click.option("--json", "as_json", is_flag=True, help="Print JSON for machines."),
]
# fmt: on


@click.command()
@click.argument("data", type=click.Path(path_type=Path))
@with_options(DATA_OPTIONS)
@with_options(PRIVACY_OPTIONS)
@with_options(_OPTIONS)
@plainly
def train(data: Path, out: Path, force: bool, as_json: bool, **options: Any) -> None:
    """Train a model on the rows of the file DATA and keep it in the directory OUT.

    DATA is CSV, Parquet, npz or SVMlight. Each row belongs to a node of the graph: the one that
    --node-column names, or a node of its own. Columns of text are one-hot encoded; all columns
    but the target and the node are learnt from.

    \b
    Examples:
      walklearn train data.csv --target label --out model/
      walklearn train data.csv --target label --node-column site --graph edges.txt \\
          --walk weighted --epsilon 3 --delta 0.03 --feature-bound 8 --out model/
      walklearn train data.csv --target price --test-fraction 0.2 --out model/ --json

    Exit codes: 0 done, 1 it went wrong on the way, 2 bad input, 130 Ctrl-C.
    """
    from walklearn.cli.training import run
    from walklearn.model.directory import check_target

    check_target(out, force)
    training = run(data, DataOptions.take(options), options)
    training.model.save(out, overwrite=force)
    if as_json:
        click.echo(json.dumps({"out": str(out), **training.facts}, ensure_ascii=False))
    else:
        _tell(training, out)
    for note in training.notes:
        click.echo(click.wrap_text(f"Note: {note}", 88, "", "  "), err=True)


def _tell(training: Training, out: Path) -> None:
    """What was trained, how good it is, and what it revealed."""
    from walklearn.cli.tables import show

    model, details = training.model, training.model.details
    size = f"{details['rows']} rows of {details['features']} features"
    rows = [
        ["data", f"{size} on {details['nodes']} nodes with {details['edges']} edges"],
        ["walk", f"{model.walk}: {model.updates:,} updates, {details['messages']:,} messages"],
        ["loss", f"{details['loss']:.4g} ({model.loss}, penalty {model.penalty:g})"],
        *([name, str(score)] for name, score in training.scores.items()),
    ]
    show(["", ""], rows, title=f"A {model.kind} of {model.target!r}")
    for heading in ("protected", "not_protected", "taken_to_be_public"):
        if model.privacy[heading]:
            click.echo(f"\n{heading.replace('_', ' ').capitalize()}:")
        for sentence in model.privacy[heading]:
            click.echo(click.wrap_text(f"- {sentence}", 88, "  ", "    "))
    click.echo(f"\nThe model is in {out} (see report.md). Next: walklearn predict {out} new.csv")
