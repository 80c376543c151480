"""Output of `walklearn train`: scores, privacy, and notes."""

from __future__ import annotations

from pathlib import Path
from shlex import quote
from typing import TYPE_CHECKING, Any, NamedTuple

import click

from walklearn.cli.console import WIDTH, Console, print_reasons, wrapped_sentences

if TYPE_CHECKING:
    from walklearn.estimators.mlflow_callback import LoggedRun
    from walklearn.estimators.random_walk import RandomWalk
    from walklearn.fitting.plan import FitPlan
    from walklearn.graphs import Network
    from walklearn.models import Model
    from walklearn.models.score import Score
    from walklearn.privacy import RecordTotal
    from walklearn.tables import Rows


# A private model that closes less than this share of the gap between the baseline and a perfect
# score gets a note.
MIN_IMPROVEMENT = 0.1


class TrainedModel(NamedTuple):
    """A trained model and its scores.

    owners: results computed from the rows. If the model has a privacy claim, only the owner sees
    them: the directory of the model, which can be published, does not contain them. logged: the
    MLflow run. total: the cost of all runs on any of the rows; None if this run was not recorded.
    """

    model: Model
    owners: dict[str, Any]
    scores: dict[str, Score]
    logged: LoggedRun | None = None
    total: RecordTotal | None = None

    @property
    def is_claimed(self) -> bool:
        """True if protection is claimed; the details of the model then reveal no rows."""
        return self.model.details.keys().isdisjoint(self.owners)


def notes_on_network(network: Network) -> list[str]:
    """Return notes on surprises in a network; they are printed before any ε is spent."""
    notes = []
    idle = network.graph.node_count - len(set(network.owners.tolist()))
    if idle:
        notes.append(f"{idle} of {network.graph.node_count} nodes own no rows and only relay.")
    return notes


def notes_on_result(estimator: RandomWalk, rows: Rows, score: Score) -> list[str]:
    """Return notes on surprises in the results."""
    import numpy as np

    from walklearn.wording import join_names

    notes, noise = list[str](), estimator.model_noise_
    base = 0.0 if score.baseline is None else score.baseline
    too_poor = score.value is not None and score.value - base < MIN_IMPROVEMENT * (1.0 - base)
    if noise and too_poor:
        as_rows = " or --protect rows" * (noise.protect == "node")
        than = "THE MEAN" if score.baseline is None else "THE MAJORITY CLASS"
        notes.append(
            f"THIS MODEL IS HARDLY BETTER THAN {than} ({score}), because of the noise. To "
            "improve it, declare typical spreads of columns (--scale) instead of ranges, or use "
            f"more rows, fewer columns, a larger ε{as_rows}."
        )
    if noise and noise.protect == "node" and np.bincount(estimator.graph.owners).max() == 1:
        notes.append("every node has one row, so --protect node and --protect rows are equal.")
    clipped = getattr(estimator, "clipped_rows_", 0)
    if clipped:
        notes.append(
            f"{clipped} of {len(rows.y)} rows were longer than the feature bound "
            f"{estimator.feature_bound:g} and were shortened, which costs accuracy. Declare "
            "public scales of the columns (--scale age=50,20), or raise the bound."
        )
    for names, problem in (
        (rows.encoding.fully_clipped_columns(rows.X), "beyond the declared scale and were cut off"),
        (rows.encoding.narrow_columns(rows.X), "in a small part of the declared range, so noise "
         "hides their differences"),
    ):  # fmt: skip
        if names:
            notes.append(
                f"the values of {join_names(names)} are {problem}. Declare a typical centre and "
                f"spread, such as --scale {quote(f'{names[0]}=CENTRE,SPREAD')}."
            )
    if len(rows.y) < 10 * rows.X.shape[1]:
        notes.append(
            f"{len(rows.y)} rows are few for {rows.X.shape[1]} features. Check the accuracy on "
            "other rows (--test-fraction 0.2)."
        )
    return notes


def document_of(trained: TrainedModel, notes: list[str]) -> dict[str, Any]:
    """Return the JSON document, with results computed from the rows under a key of their own."""
    model, owners, public = trained.model, dict(trained.owners), dict[str, Any]()
    names = ("kind", "target", "classes", "loss", "walk", "updates", "privacy")
    document = {name: getattr(model, name) for name in names}
    document["training"] = {n: value for n, value in model.details.items() if n not in owners}
    if trained.logged is not None:
        document["mlflow"] = trained.logged._asdict()
    if trained.total is not None:
        owners |= {"all_runs": str(trained.total), "total": trained.total.to_dict()}
    # Notes reveal the accuracy and the number of shortened rows.
    (owners if trained.is_claimed else public)["notes"] = notes
    return document | {"private_to_the_owner": owners} | public


def print_result(console: Console, trained: TrainedModel, out: Path, plan: FitPlan) -> None:
    """Print the scores of a model, its privacy, and the reasons of its plan."""
    from walklearn.wording import plural

    model, details = trained.model, {**trained.model.details, **trained.owners}
    size = f"{plural(details['rows'], 'row')} of {plural(details['features'], 'feature')}"
    network = f"{plural(details['nodes'], 'node')} with {plural(details['edges'], 'edge')}"
    walk = f"{plural(model.updates, 'update')}, {plural(details['messages'], 'message')}"
    loss = f"{details['loss']:.4g} ({model.loss}, penalty {model.penalty:g})"
    rows = [
        ["data", f"{size} on {network}"],
        ["walk", f"{model.walk}: {walk}"],
        *([["loss", loss]] if console.verbose else []),
        *([name, str(score)] for name, score in trained.scores.items()),
    ]
    console.print_table(["", ""], rows, title=f"A {model.kind} of {model.target!r}")
    console.print()
    lines, headings = list[str](), ["protected", "not_protected", "taken_to_be_public"]
    if trained.total is not None:
        lines.append(f"All runs on any of these rows: {trained.total}")
    if not console.verbose:
        claim = f"{model.claim}, in this fit alone" if model.claim.is_private else "none"
        unprotected = f"Not protected: {model.privacy['not_protected'][0]}"
        lines.insert(0, click.wrap_text(f"Privacy: {claim}.", WIDTH, "", "  "))
        lines.append(click.wrap_text(unprotected, WIDTH, "", "  "))
        headings = headings[2:] if trained.is_claimed else []
    for heading in headings:
        if model.privacy[heading]:
            lines.append(f"{heading.replace('_', ' ').capitalize()}:")
            lines.append(wrapped_sentences(model.privacy[heading]))
    if console.verbose and trained.is_claimed:
        publish = ", so you can publish it" if model.claim.is_private else ""
        lines.append(click.wrap_text(
            "The number of rows, the loss and the accuracy above are computed from the rows, and ε "
            f"does not cover them: keep them private. {out} does not contain them{publish}.",
            WIDTH))  # fmt: skip
    if not console.verbose:
        lines.append(f"More: --verbose, or {out / 'report.md'}.")
    if trained.logged is not None:
        lines.append("\n" + location_of(trained.logged))
    for line in lines:
        console.print(line)
    print_reasons(console, plan)
    console.print(f"\nThe model is in {out}. Next: walklearn predict {quote(str(out))} new.csv")


def location_of(logged: LoggedRun) -> str:
    """Return the location of a run of MLflow, with the command that shows it.

    >>> from walklearn.estimators.mlflow_callback import LoggedRun
    >>> print(location_of(LoggedRun("3f2a", "sqlite:///mlflow.db")))
    MLflow run 3f2a in sqlite:///mlflow.db. Show it with:
      mlflow ui --backend-store-uri sqlite:///mlflow.db
    """
    run = f"MLflow run {logged.run_id} in {logged.store}."
    if logged.store.startswith(("http", "databricks")):
        return run
    return f"{run} Show it with:\n  mlflow ui --backend-store-uri {quote(logged.store)}"
