"""What `walklearn train` says of a model: how good it is, what it revealed, and what to note."""

from __future__ import annotations

from pathlib import Path
from shlex import quote
from typing import TYPE_CHECKING, Any, NamedTuple

import click

from walklearn.cli.console import WIDTH, Console, wrapped_sentences
from walklearn.cli.tracking import how_to_look_at

if TYPE_CHECKING:
    from walklearn.estimators.mlflow_callback import Logged
    from walklearn.estimators.random_walk import RandomWalk
    from walklearn.fitting.plan import FitPlan
    from walklearn.graphs import Network
    from walklearn.models import Model
    from walklearn.models.score import Score
    from walklearn.objectives import Problem
    from walklearn.privacy import RecordTotal
    from walklearn.tables import Rows


# A private model that closes less than this share of the gap to all right is told of, loudly.
HARDLY = 0.1


class Trained(NamedTuple):
    """A trained model, how good it is, and what the user should note.

    owners: what was computed from the rows. Where something is claimed to be protected, it is
    told to the owner and not written into the model's directory, which can be published.
    logged: where else the fit is kept, if --track asked for it. total: the cost of all runs on any
    of the rows, which also depends on them; None if this run was not recorded.
    """

    model: Model
    owners: dict[str, Any]
    scores: dict[str, Score]
    notes: list[str]
    logged: Logged | None = None
    total: RecordTotal | None = None

    @property
    def is_claimed(self) -> bool:
        """Whether protection is claimed; the details of the model then tell nothing of the rows."""
        return self.model.details.keys().isdisjoint(self.owners)


def notes_before(plan: FitPlan, network: Network, problem: Problem) -> list[str]:
    """Return notes on a plan that may surprise a user, who can then stop before it costs ε."""
    notes = []
    idle = network.graph.node_count - len(set(network.owners.tolist()))
    if idle:
        notes.append(f"{idle} of {network.graph.node_count} nodes own no rows: they only relay.")
    has_memory = plan.update is not None and plan.update.converges
    if not has_memory and _alternates(plan, problem):
        notes.append(
            "this graph has two sides and the token changes sides at every step, so it never "
            "mixes. Pass --laziness 0.1."
        )
    return notes


def notes_on(estimator: RandomWalk, rows: Rows, network: Network, score: Score) -> list[str]:
    """Return notes on results that may surprise a user."""
    from walklearn.wording import listed

    notes = _about_privacy(estimator, network, score)
    clipped = getattr(estimator, "clipped_rows_", 0)
    if clipped:
        notes.append(
            f"{clipped} of {len(rows.y)} rows were longer than the feature bound "
            f"{estimator.feature_bound:g} and were shortened to it, which costs accuracy. Bring "
            "columns to one scale by public numbers (--scale age=50,20), or raise the bound."
        )
    cut = rows.encoding.wholly_cut_off(rows.X)
    if cut:
        notes.append(
            f"every value of {listed(cut)} is beyond the declared scale and was cut off. Correct "
            f"the centre and spread, such as --scale {quote(f'{cut[0]}=CENTRE,SPREAD')}, or the "
            "range."
        )
    crushed = rows.encoding.crushed(rows.X)
    if crushed:
        notes.append(
            f"the values of {listed(crushed)} lie in a small part of the declared range: they are "
            "nearly the same number, and noise drowns them. Declare what is typical of them "
            f"instead, such as --scale {quote(f'{crushed[0]}=CENTRE,SPREAD')}; the few that are "
            "far out are cut off."
        )
    if len(rows.y) < 10 * rows.X.shape[1]:
        notes.append(
            f"{len(rows.y)} rows are few for {rows.X.shape[1]} features: look at the accuracy on "
            "rows that were not trained on (--test-fraction 0.2)."
        )
    return notes


def _about_privacy(estimator: RandomWalk, network: Network, score: Score) -> list[str]:
    """What the owner of private rows should know first."""
    import numpy as np

    noise, notes = estimator.model_noise_, list[str]()
    if noise is None:
        return notes
    base = 0.0 if score.baseline is None else score.baseline
    if score.value is not None and score.value - base < HARDLY * (1.0 - base):
        than = "the most frequent class alone" if score.baseline is not None else "the mean alone"
        notes.append(
            f"THIS MODEL IS HARDLY BETTER THAN {than.upper()} ({score}): the noise that ε asks for "
            "drowns the rows. What would help: a typical spread of every column (--scale) instead "
            "of its range, more rows, fewer columns, a larger ε"
            + (", or --protect rows." if noise.protect == "node" else ".")
        )
    alone = np.bincount(network.owners).max() == 1
    if noise.protect == "node" and alone:
        notes.append(
            "every node has one row, so --protect node and --protect rows claim the same, at the "
            "same price."
        )
    return notes


def _alternates(plan: FitPlan, problem: Problem) -> bool:
    """True if the token never stays, on a graph with all edges between two sides."""
    graph, walk = plan.graph, plan.walk
    if graph.node_count == 1 or plan.laziness > 0.0 or not graph.is_bipartite:
        return False
    if walk.draws_announcements or plan.mechanism is not None:  # releases differ, and reject moves
        return False
    scores = walk.announcements(graph, problem)[:, 0]  # equal ones reject nothing
    return bool(scores.min() == scores.max())


def facts_of(trained: Trained) -> dict[str, Any]:
    """Plain JSON values; what was computed from the rows is kept apart from what may be told."""
    model, owners, notes = trained.model, dict(trained.owners), {"notes": trained.notes}
    names = ("kind", "target", "classes", "loss", "walk", "updates", "privacy")
    facts = {name: getattr(model, name) for name in names}
    if trained.logged is not None:
        facts["mlflow"] = trained.logged._asdict()
    training = {name: value for name, value in model.details.items() if name not in owners}
    if trained.total is not None:
        owners |= {"all_runs": str(trained.total), "total": trained.total.to_dict()}
    if trained.is_claimed:  # notes tell of accuracy, and of how many rows were shortened
        return facts | {"training": training, "for_the_owner_alone": owners | notes}
    return facts | {"training": training, "for_the_owner_alone": owners} | notes


def tell(console: Console, trained: Trained, out: Path) -> None:
    """Print what was trained, how good it is, and what it revealed."""
    from walklearn.wording import plural

    model, details = trained.model, {**trained.model.details, **trained.owners}
    size = f"{plural(details['rows'], 'row')} of {plural(details['features'], 'feature')}"
    network = f"{plural(details['nodes'], 'node')} with {plural(details['edges'], 'edge')}"
    walked = f"{plural(model.updates, 'update')}, {plural(details['messages'], 'message')}"
    loss = f"{details['loss']:.4g} ({model.loss}, penalty {model.penalty:g})"
    rows = [
        ["data", f"{size} on {network}"],
        ["walk", f"{model.walk}: {walked}"],
        *([["loss", loss]] if console.verbose else []),
        *([name, str(score)] for name, score in trained.scores.items()),
    ]
    console.print_table(["", ""], rows, title=f"A {model.kind} of {model.target!r}")
    console.print()
    total = []
    if trained.total is not None:
        total = [f"Total over all runs on any of these rows, {trained.total}"]
    if console.verbose:
        _tell_privacy(console, trained, out)
        for line in total:
            console.print(line)
    else:
        private, *others = (f"{name}: {what}" for name, what in _privacy_in_short(model).items())
        for line in (click.wrap_text(private, WIDTH, "", "  "), *total):
            console.print(line)
        for line in others:
            console.print(click.wrap_text(line, WIDTH, "", "  "))
        if trained.is_claimed:
            _list(console, model, "taken_to_be_public")
        console.print(f"More: --verbose, or {out / 'report.md'}.")
    if trained.logged is not None:
        console.print("\n" + how_to_look_at(trained.logged))
    console.print(f"\nThe model is in {out}. Next: walklearn predict {quote(str(out))} new.csv")


def _privacy_in_short(model: Model) -> dict[str, str]:
    """Return the claim, and the most important part that no claim covers."""
    claim = f"{model.claim}, in this fit alone" if model.claim.is_private else "nothing"
    return {"Private": f"{claim}.", "Not private": model.privacy["not_protected"][0]}


def _list(console: Console, model: Model, heading: str) -> None:
    console.print(f"{heading.replace('_', ' ').capitalize()}:")
    console.print(wrapped_sentences(model.privacy[heading]))


def _tell_privacy(console: Console, trained: Trained, out: Path) -> None:
    model = trained.model
    for heading in ("protected", "not_protected", "taken_to_be_public"):
        if model.privacy[heading]:
            _list(console, model, heading)
            console.print()
    if trained.is_claimed:
        real = model.claim.is_private
        owners = (
            "Rows, loss and accuracy above are computed from the rows, and no ε covers them. They "
            f"are for you alone. {out} does not contain them" + (
                ", so that you can publish it." if real else "."
            )
        )  # fmt: skip
        console.print(click.wrap_text(owners, WIDTH))
