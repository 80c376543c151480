"""What `walklearn train` does: from a file of rows to a trained and tested model."""

from __future__ import annotations

import warnings
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from walklearn.cli.bad_input import in_shell_words
from walklearn.cli.data_options import DataOptions, public_feature_bound
from walklearn.cli.task import task_of
from walklearn.cli.trained import model_of
from walklearn.files import Rows, Table
from walklearn.files.progress import progress_bar
from walklearn.graphs import Network
from walklearn.model import Model
from walklearn.model.score import Score, score_of
from walklearn.walks import Simple, Uniform, Walk

Array = NDArray[Any]


@dataclass(frozen=True)
class Training:
    """A trained model, how good it is, and what the user should note."""

    model: Model
    scores: dict[str, Score]
    notes: list[str]

    @property
    def facts(self) -> dict[str, Any]:
        """Plain JSON values."""
        model = self.model
        return {
            "kind": model.kind,
            "target": model.target,
            "classes": model.classes,
            "loss": model.loss,
            "walk": model.walk,
            "updates": model.updates,
            "training": dict(model.details),
            "privacy": dict(model.privacy),
            "notes": self.notes,
        }


def run(data: Path, options: DataOptions, settings: dict[str, Any]) -> Training:
    """Read, check, place, walk, test."""
    table, held_out = _split(options.read(data), settings["test_fraction"], settings["seed"])
    target = options.target_of(table)
    task = task_of(table[target], target, settings["task"])
    rows = options.rows(table)
    bound = settings["feature_bound"]
    epsilon, delta = settings["epsilon"], settings["delta"]
    if (epsilon, delta, settings["model_noise"]) != (None, None, None):
        bound = public_feature_bound(rows, options.schema, epsilon, delta, bound)
    tested = held_out if settings["test"] is None else options.read(settings["test"])
    if tested is not None:
        tested[rows.target]  # before the walk: a missing column is an error
    network = options.network(rows, settings["seed"])
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        estimator = _fit(rows, network, task, settings, bound)
    notes = [in_shell_words(str(warning.message)) for warning in caught]
    model = model_of(estimator, rows, _details(rows, network, estimator))
    scores = {"training": score_of(model, rows.X, rows.y)}
    if tested is not None:
        X = model.encoding.encode(tested, tested.place)
        scores["test"] = score_of(model, X, tested[rows.target])
    notes += _notes(estimator, rows, network, scores["training"])
    found = {f"{name}_score": score._asdict() for name, score in scores.items()}
    return Training(model.with_details(found), scores, notes)


def _split(table: Table, fraction: float | None, seed: int | None) -> tuple[Table, Table | None]:
    """Rows to train on and rows to test on."""
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


def _fit(
    rows: Rows, network: Network, task: str, settings: dict[str, Any], bound: float | None
) -> Any:
    from walklearn.estimators import RandomWalkClassifier, RandomWalkRegressor
    from walklearn.privacy import ModelNoise
    from walklearn.updates.step_choice import EXPONENT
    from walklearn.updates.step_sizes import PowerStep

    noise = None
    if settings["model_noise"] is not None:
        epsilon, delta, clip, times = settings["model_noise"]
        if not (times >= 1 and times.is_integer()):
            raise ValueError(
                f"--model-noise: TIMES counts how often a node adds to the model, so it must be a "
                f"whole number of at least 1, got {times:g}."
            )
        noise = ModelNoise.calibrate(
            epsilon=epsilon, delta=delta, clip=clip, max_contributions=int(times)
        )
    constant = settings["step_constant"]
    kind = RandomWalkClassifier if task == "classification" else RandomWalkRegressor
    names = (
        "loss", "penalty", "walk", "laziness", "epsilon", "delta", "max_rows", "mechanism", "steps",
        "max_steps", "tol",
    )  # fmt: skip
    with progress_bar(None, settings["steps"], "training") as bar:

        def progress(updates: int, loss: float) -> None:
            bar.set_postfix(loss=f"{loss:.4g}", refresh=False)
            bar.update(updates - bar.n)

        estimator = kind(
            graph=network.graph,
            feature_bound=bound,
            model_privacy=noise,
            step_size=None if constant is None else PowerStep(constant, EXPONENT),
            random_state=settings["seed"],
            callback=progress,
            **{name: settings[name] for name in names},
        )
        return estimator.fit(rows.X, rows.y, nodes=network.owners)


def _details(rows: Rows, network: Network, estimator: Any) -> dict[str, Any]:
    trace = estimator.trace_
    loss = trace.loss if estimator.average == "none" else trace.average_loss
    return {
        "rows": len(rows.X),
        "features": rows.X.shape[1],
        "nodes": network.graph.node_count,
        "edges": network.graph.edge_count,
        "messages": int(trace.messages[0, -1]),
        "bytes": int(trace.bytes[0, -1]),
        "step_constant": float(estimator.step_size_.constant),
        "step_exponent": float(estimator.step_size_.exponent),
        "loss": float(loss[0, -1]),
        "seed": estimator.random_state,
    }


def _notes(estimator: Any, rows: Rows, network: Network, score: Score) -> list[str]:
    """What a user should know and may not expect."""
    notes = []
    if estimator.penalty == 0 and score.measure == "accuracy" and score.value == 1.0:
        notes.append(
            "without a penalty a model that separates the classes, as here, gets better for ever "
            "by growing: its size and its probabilities mean nothing. Train with --penalty 0.001."
        )
    idle = network.graph.node_count - len(np.unique(network.owners))
    if idle:
        notes.append(f"{idle} of {network.graph.node_count} nodes own no rows: they only relay.")
    if _alternates(estimator.walk_, network):
        notes.append(
            "this graph has two sides and the token changes sides at every step, so it never "
            "mixes. Pass --laziness 0.1."
        )
    clipped = getattr(estimator, "clipped_rows_", 0)
    if clipped:
        notes.append(
            f"{clipped} of {len(rows.X)} rows were longer than the feature bound "
            f"{estimator.feature_bound:g} and were shortened to it, which costs accuracy. Bring "
            "columns to one scale by public numbers (--range age=0,100), or raise the bound."
        )
    if len(rows.X) < 10 * rows.X.shape[1]:
        notes.append(
            f"{len(rows.X)} rows are few for {rows.X.shape[1]} features: look at the accuracy on "
            "rows that were not trained on (--test-fraction 0.2)."
        )
    return notes


def _alternates(walk: Walk, network: Network) -> bool:
    """Whether the token never stays, on a graph with all edges between two sides."""
    inner, degrees = walk.innermost, network.graph.degrees
    moves = isinstance(inner, Simple) or (isinstance(inner, Uniform) and np.ptp(degrees) == 0)
    never_stays = moves and getattr(inner, "laziness", 0.0) == 0.0
    return never_stays and network.graph.node_count > 1 and network.graph.is_bipartite
