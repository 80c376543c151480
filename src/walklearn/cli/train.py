"""`walklearn train`: from a file of rows to a trained and tested model, by a walk over a graph."""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import click
from click.core import ParameterSource

from walklearn.cli.console import Console, with_console
from walklearn.cli.data_options import (
    DATA_OPTIONS,
    PRIVACY_OPTIONS,
    DataOptions,
    estimator_for,
    public_facts,
    target_scale_of,
    task_of,
    with_options,
)
from walklearn.cli.data_warnings import about_columns, about_owners, unknown_labels
from walklearn.cli.resume import begin_with, check_plan, graph_seed
from walklearn.cli.run_record import RunRecord
from walklearn.cli.tracking import TRACKING_OPTIONS, logged, tracker_of
from walklearn.cli.train_output import Trained, facts_of, notes_before, notes_on, tell
from walklearn.errors import InterruptedWarning
from walklearn.objectives.linear.losses import LOSSES
from walklearn.privacy import MECHANISMS
from walklearn.updates import UPDATES
from walklearn.walks import WALKS, Metropolis
from walklearn.wording import plural

if TYPE_CHECKING:
    from walklearn.estimators.mlflow_callback import MlflowCallback
    from walklearn.estimators.random_walk import RandomWalk
    from walklearn.fitting.prepare import Prepared
    from walklearn.graphs import Network
    from walklearn.privacy import ModelNoise
    from walklearn.privacy.model_noise import Unit
    from walklearn.tables import Rows, Table


# For more than two classes logistic is softmax, which need not be asked for.
_LOSSES = [name for name, loss in LOSSES.items() if loss.takes != "class"]

# fmt: off
_OPTIONS = [
    click.option("--mechanism", type=click.Choice(MECHANISMS.names), default="laplace",
                 show_default=True, help="What draws the noise of a release."),
    click.option("--model-noise", type=float, nargs=4, metavar="EPSILON DELTA CLIP TIMES",
                 help="Protect the model too: what a visit adds is clipped to norm CLIP and "
                      "noised, and a node adds at most TIMES times."),
    click.option("--out", type=click.Path(path_type=Path), required=True,
                 help="Directory for the model."),
    click.option("--force", is_flag=True, help="Overwrite a model that is there."),
    click.option("--resume", is_flag=True,
                 help="Go on from the model in OUT, whose training was interrupted."),
    click.option("--task", type=click.Choice(["auto", "classification", "regression"]),
                 default="auto", show_default=True,
                 help="Predict a class or a number. auto: as the target looks. With --epsilon "
                      "the task has to be given."),
    click.option("--loss", type=click.Choice(_LOSSES),
                 help="Default: logistic for classes, squared for numbers."),
    click.option("--penalty", type=click.FloatRange(0), default=1e-3, show_default=True,
                 help="λ of the penalty (λ/2)‖w‖²."),
    click.option("--walk", type=click.Choice(["auto", *WALKS.names_of(Metropolis)]),
                 default="auto", show_default=True,
                 help="Whom the token visits more often. auto: uniform, which tells neighbours "
                      "only degrees, and weighted where --epsilon is about L_i alone."),
    click.option("--update", type=click.Choice(["auto", *UPDATES.names]), default="auto",
                 show_default=True, help="What a visit does. auto: saga, which ends at the "
                 "minimiser; where something is private or --step-constant is given, sgd, the "
                 "paper's."),
    click.option("--laziness", type=click.FloatRange(0, 1, max_open=True), default=0.0,
                 show_default=True, help="Chance of staying put before anything is proposed."),
    click.option("--steps", type=click.IntRange(1),
                 help="Updates. Default: until the model has arrived, or the loss settled."),
    click.option("--max-steps", type=click.IntRange(1),
                 help="Stop there at the latest. Default: a million updates, or 50 per node; "
                      "with memory, 20 times that."),
    click.option("--tol", type=click.FloatRange(0),
                 help="Stop when the gradient that is left is less than this share of the "
                      "penalty's (1e-4); with sgd, when a doubling of the updates changes the loss "
                      "by less than this share of the loss at the start (3e-3)."),
    click.option("--step-constant", type=click.FloatRange(0, min_open=True),
                 help="c of the steps c / k^0.51. Default: from the smoothness."),
    click.option("--batch", type=click.IntRange(1), metavar="ROWS",
                 help="How many of its rows a node looks at in an update. Default: all."),
    click.option("--test", type=click.Path(path_type=Path), help="A file of rows to test on."),
    click.option("--test-fraction", type=click.FloatRange(0, 1, min_open=True, max_open=True),
                 help="Test on this share of the rows, and do not train on them."),
    click.option("--seed", type=click.IntRange(0),
                 help="Repeat a run exactly. Noise from a seed protects nobody."),
]
# fmt: on


@click.command()
@click.argument("data", type=click.Path(path_type=Path))
@with_options(DATA_OPTIONS)
@with_options(PRIVACY_OPTIONS)
@with_options(_OPTIONS)
@with_options(TRACKING_OPTIONS)
@with_console
def train(
    data: Path, out: Path, force: bool, resume: bool, console: Console, **options: Any
) -> None:
    """Train a model on the rows of the file DATA and keep it in the directory OUT.

    DATA is CSV, Parquet, npz or SVMlight. Each row belongs to a node of the graph: the one that
    --node-column names, or a node of its own. Columns of text are one-hot encoded; all columns
    but the target and the node are learnt from.

    \b
    Examples:
      walklearn train data.csv --target label --out model/
      walklearn train data.csv --target label --task classification --node-column site \\
          --graph edges.txt --epsilon 3 --delta 1e-5 --schema schema.toml --out model/
      walklearn train data.csv --target price --test-fraction 0.2 --out model/ --json

    Each run without --seed is charged to the owner's record before anything is drawn:
    ~/.local/state/walklearn/record.sqlite, or below $XDG_STATE_HOME.

    Ctrl-C keeps the model so far in OUT, and the same command with --resume goes on from it.

    Exit codes: 0 done, 1 it went wrong on the way, 2 bad input, 130 Ctrl-C.
    """
    with _all_complaints_at_once(out, force or resume):
        _check_mechanism(options["epsilon"])
        options["graph_seed"] = graph_seed(out, resume, options["seed"])
        asked_of_data = DataOptions.take(options)
        prepared = _prepared(data, asked_of_data, options, out if resume else None)
    trained = _train(prepared, console)
    details, remedy = dict[str, Any](), "The full budget is spent, so it cannot be resumed."
    if not prepared.fit.request.is_private:
        details = {"plan": prepared.estimator.fit_plan_.digest}
        details["graph_seed"] = options["graph_seed"]
        remedy = "The same command with --resume continues from there."
    trained.model.with_details(details).save(out, overwrite=force or resume)
    console.document |= {"out": str(out), **facts_of(trained)}
    tell(console, trained, out)
    for note in trained.notes:
        console.note(note)
    if trained.model.details.get("interrupted"):
        console.note(
            f"interrupted: {out} holds the model after {plural(trained.model.updates, 'update')}. "
            + remedy
        )
        raise SystemExit(130)


def _check_mechanism(epsilon: float | None) -> None:
    """Refuse a mechanism that was asked for and would draw nothing."""
    source = click.get_current_context().get_parameter_source("mechanism")
    if epsilon is None and source is not ParameterSource.DEFAULT:
        raise ValueError(
            "--mechanism says what draws the noise that --epsilon asks for, and without that "
            "there is none: pass --epsilon and --delta, too, or leave --mechanism out."
        )


class _Prepared(NamedTuple):
    """The checked inputs of a training.

    caught: the warnings so far. done: the updates of the training that it continues.
    """

    estimator: RandomWalk
    rows: Rows
    network: Network
    tested: Table | None
    tracker: MlflowCallback | None
    notes: list[str]
    record: RunRecord
    fit: Prepared
    caught: list[warnings.WarningMessage]
    done: int


@contextmanager
def _all_complaints_at_once(out: Path, force: bool) -> Iterator[None]:
    """Report an OUT that cannot be written together with any other error, before the training."""
    from walklearn.models.directory import check_target

    try:
        check_target(out, force)
        in_the_way = None
    except OSError as error:
        in_the_way = error
    try:
        yield
    except (ValueError, OSError) as error:
        if in_the_way is None:
            raise
        raise ValueError(f"{error}\nAlso: {in_the_way}") from error
    if in_the_way is not None:
        raise in_the_way


def _prepared(
    data: Path, options: DataOptions, settings: dict[str, Any], begun: Path | None
) -> _Prepared:
    """Read, check and place the rows, and resolve the plan.

    begun: the directory of the model to continue from, or None.
    """
    from sklearn import config_context

    from walklearn.graphs.names import is_name

    if settings["test"] is not None and settings["test_fraction"] is not None:
        raise ValueError(
            "--test has rows to test on and --test-fraction keeps some back: give one."
        )
    tracker = tracker_of(settings)
    all_rows = options.read(data)
    table, held_out = _split(all_rows, settings["test_fraction"], settings["seed"])
    target = options.target_of(table)
    task = task_of(table[target], target, settings["task"])
    rows = options.rows(table)
    lengths = {name: settings[name] for name in ("row_length", "feature_bound")}
    if any(settings[name] is not None for name in ("epsilon", "delta", "model_noise")):
        lengths = public_facts(rows, options.schema.without(target), settings)
    scale = target_scale_of(task, target, options.schema, settings)
    tested = held_out if settings["test"] is None else options.read(settings["test"])
    notes = about_columns(table, rows.columns, rows.nodes is not None)
    if is_name(options.graph):  # an edge list knows who owns rows
        notes += about_owners(options.node_column, rows.nodes)
    if tested is not None:
        classes = rows.classes if task == "classification" else rows.classes[:0]
        wrong = unknown_labels(tested, rows.target, classes)
        if wrong is not None and tested is not held_out:
            raise ValueError(wrong)
        notes += [] if wrong is None else [f"of the rows that are tested on: {wrong}"]
    network = options.network(rows, settings["graph_seed"])
    parameters = _parameters(settings) | {"graph": network, **lengths}
    if scale is not None:
        parameters |= {"target_centre": scale.centre, "target_spread": scale.spread}
    estimator = estimator_for(task)(**parameters)
    record = RunRecord(all_rows, options.node_column, estimator.delta, begun is not None)
    model = None if begun is None else begin_with(begun, estimator, rows, settings)
    finite = config_context(assume_finite=True)  # the cells were checked when they were read
    with finite, warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        fit = estimator.prepare(rows.X, rows.y)
    if begun is not None and model is not None:
        check_plan(begun, model, fit.plan)
    done = 0 if model is None else model.updates
    return _Prepared(estimator, rows, network, tested, tracker, notes, record, fit, caught, done)


def _train(prepared: _Prepared, console: Console) -> Trained:
    """Train the model and evaluate it."""
    from sklearn import config_context

    from walklearn.estimators.result import for_the_owner
    from walklearn.estimators.statements import is_claimed
    from walklearn.models.score import score_of

    estimator, rows, network, tested, tracker, notes, record, fit, caught, done = prepared
    # Warnings and costs come before the run is charged.
    before = notes_before(fit.plan, network, fit.posed.problem)
    for each in caught:
        console.note(str(each.message))
    for line in fit.summary:
        console.log(line)
    for note in before:
        console.note(note)
    record.charge(fit.ledger)
    with config_context(assume_finite=True), warnings.catch_warnings(record=True) as later:
        warnings.simplefilter("always")
        fitted = _fit(estimator, rows, fit, done)
    caught += later
    model, owners = estimator.to_model(rows.encoding, target=rows.target), for_the_owner(estimator)
    scores = {"training": score_of(model.kind, fitted, rows.y)}
    if tested is not None:
        scores["test"] = score_of(model.kind, model.predict(tested), tested[rows.target])
    shown = (each for each in caught if not issubclass(each.category, InterruptedWarning))
    notes = [str(each.message) for each in shown] + before + notes
    notes += notes_on(estimator, rows, network, scores["training"])
    where, wrong = logged(tracker, estimator, scores)
    owners |= {f"{name}_score": score._asdict() for name, score in scores.items()}
    if not is_claimed(estimator):
        model = model.with_details(owners)
    total = record.total()
    return Trained(model, owners, scores, record.notes + notes + wrong, where, total)


def _split(table: Table, fraction: float | None, seed: int | None) -> tuple[Table, Table | None]:
    """Rows to train on and rows to test on."""
    import numpy as np

    if fraction is None:
        return table, None
    order = np.random.default_rng(seed).permutation(table.row_count)
    count = round(fraction * table.row_count)
    if not 0 < count < table.row_count:
        raise ValueError(
            f"--test-fraction {fraction:g} of {table.row_count} rows leaves none to test or none "
            "to train on."
        )
    return table.rows(np.sort(order[count:])), table.rows(np.sort(order[:count]))


def _parameters(settings: dict[str, Any]) -> dict[str, Any]:
    """What the options say of the estimator."""
    names = (
        "loss", "penalty", "walk", "update", "laziness", "epsilon", "delta", "protect", "model",
        "max_rows", "total_rows", "mechanism", "steps", "max_steps", "tol", "batch",
    )  # fmt: skip
    noise = settings["model_noise"]
    delta = settings["delta"] if noise is None or settings["epsilon"] is not None else noise[1]
    return {name: settings[name] for name in names} | {
        "delta": delta,
        "model_privacy": _model_privacy(noise, settings["protect"]),
        "step_size": settings["step_constant"],
        "random_state": settings["seed"],
    }


def _model_privacy(
    asked: tuple[float, float, float, float] | None, unit: Unit
) -> ModelNoise | None:
    from walklearn.privacy import ModelNoise

    if asked is None:
        return None
    epsilon, delta, clip, times = asked
    if not (times >= 1 and times.is_integer()):
        raise ValueError(
            f"--model-noise: TIMES counts how often a node adds to the model, so it must be a "
            f"whole number of at least 1, got {times:g}."
        )
    return ModelNoise.calibrate(
        epsilon=epsilon, delta=delta, clip=clip, max_contributions=int(times), protect=unit
    )


def _fit(estimator: RandomWalk, rows: Rows, fit: Prepared, done: int) -> Any:
    """Train with a bar that shows how far the walk is; return what is predicted of the rows."""
    from walklearn.progress import progress_bar

    steps = estimator.steps and estimator.steps + done
    with progress_bar(None, steps, "training") as bar:

        def progress(updates: int, loss: float) -> None:
            if not fit.request.is_private:  # else the rows could decide when a user interrupts
                bar.set_postfix(loss=f"{loss:.4g}", refresh=False)
            bar.update(updates - bar.n)

        return estimator.set_params(callback=progress).run(fit).predict(rows.X)
