"""`walklearn train`: train and test a model on a file of rows, by a walk over a graph."""

from __future__ import annotations

import warnings
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click
from click.core import ParameterSource

from walklearn.cli.console import Console, with_console
from walklearn.cli.data_options import (
    DATA_OPTIONS,
    LAZINESS,
    PENALTY,
    PRIVACY_OPTIONS,
    TASK,
    DataOptions,
    Task,
    task_of,
    with_options,
)
from walklearn.cli.data_warnings import column_notes, node_column_notes, unknown_labels
from walklearn.cli.resume import check_plan, graph_seed, load_interrupted
from walklearn.cli.run_record import charge_run, total_of_runs
from walklearn.cli.train_output import (
    TrainedModel,
    document_of,
    notes_on_network,
    notes_on_result,
    print_result,
)
from walklearn.errors import InterruptedWarning
from walklearn.objectives.linear.losses import LOSSES
from walklearn.privacy import MECHANISMS
from walklearn.updates import UPDATES
from walklearn.walks.composed import single_walks
from walklearn.wording import plural

if TYPE_CHECKING:
    from walklearn.estimators.mlflow_callback import MlflowCallback
    from walklearn.estimators.random_walk import RandomWalk
    from walklearn.fitting.training import PreparedFit
    from walklearn.privacy import ModelNoise
    from walklearn.privacy.model_noise import Unit
    from walklearn.tables import Rows, Table


# "logistic" means softmax if there are more than two classes, so softmax is not an option.
_LOSSES = [name for name, loss in LOSSES.items() if loss.takes != "class"]

# fmt: off
_OPTIONS = [
    click.option("--mechanism", type=click.Choice(MECHANISMS.names), default="laplace",
                 show_default=True, help="Mechanism of the noise on L_i."),
    click.option("--model-noise", type=float, nargs=4, metavar="EPSILON DELTA CLIP TIMES",
                 help="Your own noise on the model, instead of --epsilon: contributions are "
                      "clipped to norm CLIP, and each node makes at most TIMES of them."),
    click.option("--out", type=click.Path(path_type=Path), required=True,
                 help="Directory for the model."),
    click.option("--force", is_flag=True, help="Overwrite the model in OUT."),
    click.option("--resume", is_flag=True,
                 help="Resume the interrupted training of the model in OUT."),
    TASK,
    click.option("--loss", type=click.Choice(_LOSSES),
                 help="Default: logistic for classes, squared for numbers."),
    PENALTY,
    click.option("--walk", type=click.Choice(["auto", *single_walks()]),
                 default="auto", show_default=True,
                 help="auto: tour with finito, weighted if --epsilon covers only L_i, otherwise "
                      "uniform, which discloses only degrees."),
    click.option("--update", type=click.Choice(["auto", *UPDATES.names]), default="auto",
                 show_default=True, help="Update of the model during a visit. auto: finito, which "
                 "converges to the minimiser in the fewest updates; saga for sparse rows or "
                 "--batch; sgd with privacy or --step-constant."),
    LAZINESS,
    click.option("--steps", type=click.IntRange(1),
                 help="Number of updates. Default: until convergence."),
    click.option("--max-steps", type=click.IntRange(1),
                 help="Maximum number of updates. Default: the larger of a million and 50 per "
                      "node; 20 times that with saga or finito."),
    click.option("--tol", type=click.FloatRange(0),
                 help="Tolerance. saga and finito stop when ‖∇f‖ is at most this share of the "
                      "penalty's gradient (default 1e-4); sgd, when doubling the updates "
                      "changes the loss by less than this share of its first value (default "
                      "3e-3)."),
    click.option("--step-constant", type=click.FloatRange(0, min_open=True),
                 help="Constant c of the step sizes c / k^0.51. Default: from the smoothness."),
    click.option("--batch", type=click.IntRange(1), metavar="ROWS",
                 help="Number of rows that an update uses. Default: all rows of the node."),
    click.option("--test", type=click.Path(path_type=Path), help="File of rows to test on."),
    click.option("--test-fraction", type=click.FloatRange(0, 1, min_open=True, max_open=True),
                 help="Fraction of the rows that are test rows and not trained on."),
    click.option("--seed", type=click.IntRange(0),
                 help="Seed that makes the run reproducible. Noise from a seed protects nobody."),
    click.option("--track", type=click.Choice(["mlflow"]),
                 help="Log parameters, trace and ledger as a run of MLflow (MLFLOW_TRACKING_URI, "
                      "MLFLOW_EXPERIMENT_NAME); for private rows only publishable facts."),
    click.option("--track-private", is_flag=True,
                 help="Also log loss and accuracy on private rows; do not publish such a run."),
]
# fmt: on


@click.command()
@click.argument("data", type=click.Path(path_type=Path))
@with_options(DATA_OPTIONS)
@with_options(PRIVACY_OPTIONS)
@with_options(_OPTIONS)
@with_console
def train(
    data: Path, out: Path, force: bool, resume: bool, console: Console, **options: Any
) -> None:
    """Train a model on the rows of the file DATA and save it in the directory OUT.

    DATA is CSV, Parquet, npz or SVMlight. Each row belongs to a node of the graph: the one that
    --node-column names, or by default a node of its own. All columns except the target and the node
    column are features. Text columns are one-hot encoded.

    \b
    Examples:
      walklearn train data.csv --target label --out model/
      walklearn train data.csv --target label --task classification --node-column site \\
          --graph edges.txt --epsilon 3 --delta 1e-5 --schema schema.toml --out model/
      walklearn train data.csv --target price --test-fraction 0.2 --out model/ --json

    Each run without --seed is charged to the owner's record before any noise is drawn. The record
    is ~/.local/state/walklearn/record.sqlite, or under $XDG_STATE_HOME.

    Ctrl-C saves the model so far in OUT. The same command with --resume continues from there.

    Exit codes: 0 done, 1 failed while running, 2 bad input, 130 Ctrl-C.
    """
    from sklearn import config_context

    from walklearn.models.directory import check_target

    check_target(out, force or resume)
    tracker = None
    if options["track"]:
        from walklearn.estimators.mlflow_callback import MlflowCallback

        tracker = MlflowCallback(include_private=options["track_private"])
    elif options["track_private"]:
        raise ValueError("--track-private needs --track mlflow. Pass it, or leave it out.")
    options["graph_seed"] = graph_seed(out, resume, options["seed"])
    data_options = DataOptions.take(options)
    table = data_options.read(data)
    task, rows, tested = _rows(table, data_options, options, console)
    estimator = _estimator(task, rows, data_options, options)
    interrupted = load_interrupted(out, estimator, rows, options) if resume else None
    # The cells were checked when they were read. All warnings become notes.
    with config_context(assume_finite=True), warnings.catch_warnings():
        warnings.simplefilter("always")
        warnings.simplefilter("ignore", InterruptedWarning)
        fit = estimator.prepare(rows.X, rows.y)
        if interrupted is not None:
            check_plan(out, interrupted, fit.plan)
        # Print warnings and costs before the run is charged.
        console.document["reasons"] = [str(reason) for reason in fit.plan.reasons]
        for line in fit.summary:
            console.log(line)
        for note in notes_on_network(estimator.graph):
            console.note(note)
        column, delta = data_options.node_column, estimator.delta
        charged = charge_run(table, column, fit.ledger, delta, resume, console.note)
        del table  # the training needs the memory
        predicted = _fit(estimator, rows, fit, 0 if interrupted is None else interrupted.updates)
        trained = _trained(estimator, rows, predicted, tested, tracker, console)
        if charged is not None:
            trained = trained._replace(total=total_of_runs(charged, delta, console.note))
    details, remedy = dict[str, Any](), "The full budget is spent, so it cannot be resumed."
    if not fit.request.is_private:
        plan = estimator.fit_plan_
        details = {"plan": plan.digest, "settings": plan.settings}
        details["graph_seed"] = options["graph_seed"]
        remedy = "The same command with --resume continues from there."
    trained.model.with_details(details).save(out, overwrite=force or resume)
    console.document |= {"out": str(out), **document_of(trained, console.notes)}
    print_result(console, trained, out, fit.plan)
    if trained.model.details.get("interrupted"):
        updates = plural(trained.model.updates, "update")
        console.note(f"interrupted: {out} contains the model after {updates}. {remedy}")
        raise SystemExit(130)


def _rows(
    table: Table, data_options: DataOptions, options: dict[str, Any], console: Console
) -> tuple[Task, Rows, Table | None]:
    """Return the task, the training rows and the test rows; print notes on doubtful columns."""
    from walklearn.graphs.names import is_family

    if options["test"] is not None and options["test_fraction"] is not None:
        raise ValueError("--test and --test-fraction exclude each other. Pass one of them.")
    table, tested = _split(table, options["test_fraction"], options["seed"])
    target = data_options.target_of(table)
    task = task_of(table[target], target, options["task"])
    rows = data_options.rows(table)
    notes = column_notes(table, rows.columns, rows.nodes is not None)
    if is_family(data_options.graph):  # the nodes of an edge list are known to own rows
        notes += node_column_notes(data_options.node_column, rows.nodes)
    if options["test"] is not None:
        tested = data_options.read(options["test"])
    if tested is not None:
        classes = rows.classes if task == "classification" else rows.classes[:0]
        if (problem := unknown_labels(tested, target, classes)) is not None:
            if options["test"] is not None:
                raise ValueError(problem)
            notes.append(f"test rows: {problem}")
    for note in notes:
        console.note(note)
    return task, rows, tested


def _split(table: Table, fraction: float | None, seed: int | None) -> tuple[Table, Table | None]:
    """Return the training rows and the test rows."""
    import numpy as np

    if fraction is None:
        return table, None
    order = np.random.default_rng(seed).permutation(table.row_count)
    count = round(fraction * table.row_count)
    if not 0 < count < table.row_count:
        raise ValueError(
            f"--test-fraction {fraction:g} of {table.row_count} rows leaves no test rows or no "
            "training rows. Use another fraction."
        )
    return table.rows(np.sort(order[count:])), table.rows(np.sort(order[:count]))


def _estimator(
    task: Task, rows: Rows, data_options: DataOptions, options: dict[str, Any]
) -> RandomWalk:
    """Return the estimator that the options describe."""
    source = click.get_current_context().get_parameter_source("mechanism")
    if options["epsilon"] is None and source is not ParameterSource.DEFAULT:
        raise ValueError("--mechanism needs --epsilon and --delta. Pass them, or leave it out.")
    names = (
        "loss", "walk", "update", "laziness", "mechanism", "steps", "max_steps", "tol", "batch"
    )  # fmt: skip
    parameters = {name: options[name] for name in names}
    if (noise := options["model_noise"]) is not None:
        parameters["model_privacy"] = _model_noise(noise, options["protect"])
        parameters["delta"] = options["delta"] if options["epsilon"] is not None else noise[1]
    return data_options.estimator(
        task, rows, options, options["graph_seed"], step_size=options["step_constant"],
        random_state=options["seed"], **parameters,
    )  # fmt: skip


def _model_noise(given: tuple[float, float, float, float], unit: Unit) -> ModelNoise:
    from walklearn.privacy import ModelNoise

    epsilon, delta, clip, times = given
    if not (times >= 1 and times.is_integer()):
        raise ValueError(
            "--model-noise: TIMES, the maximum number of contributions of a node, must be a whole "
            f"number of at least 1, got {times:g}."
        )
    return ModelNoise.calibrate(
        epsilon=epsilon, delta=delta, clip=clip, max_contributions=int(times), protect=unit
    )


def _fit(estimator: RandomWalk, rows: Rows, fit: PreparedFit, done: int) -> Any:
    """Train with a progress bar that starts at `done` updates; return predictions of the rows."""
    from walklearn.progress import progress_bar

    steps = estimator.steps and estimator.steps + done
    with progress_bar(None, steps, "training") as bar:

        def progress(updates: int, loss: float) -> None:
            # With the loss of private rows on the screen, they could affect when a user interrupts.
            if not fit.request.is_private:
                bar.set_postfix(loss=f"{loss:.4g}", refresh=False)
            bar.update(updates - bar.n)

        return estimator.set_params(callback=progress).run(fit).predict(rows.X)


def _trained(
    estimator: RandomWalk,
    rows: Rows,
    predicted: Any,
    tested: Table | None,
    tracker: MlflowCallback | None,
    console: Console,
) -> TrainedModel:
    """Evaluate the model, log it, and print notes on surprises."""
    from walklearn.estimators.result import row_facts
    from walklearn.estimators.statements import is_claimed
    from walklearn.models.score import score_of

    model, owners = estimator.to_model(rows.encoding, target=rows.target), row_facts(estimator)
    scores = {"training": score_of(model.kind, predicted, rows.y)}
    if tested is not None:
        scores["test"] = score_of(model.kind, model.predict(tested), tested[rows.target])
    for note in notes_on_result(estimator, rows, scores["training"]):
        console.note(note)
    values = {f"{name}_{each.measure}": each.value for name, each in scores.items()}
    numbers = {name: value for name, value in values.items() if value is not None}
    logged = None if tracker is None else tracker.fitted(estimator, numbers)
    owners |= {f"{name}_score": score._asdict() for name, score in scores.items()}
    if not is_claimed(estimator):
        model = model.with_details(owners)
    return TrainedModel(model, owners, scores, logged)
