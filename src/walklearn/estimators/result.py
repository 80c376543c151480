"""The results of a fit: its trace, and a `Model` to save and export."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from walklearn import __version__
from walklearn.estimators.statements import (
    is_claimed,
    name_of,
    privacy_of,
    public_columns,
    request_of,
)
from walklearn.models import Model
from walklearn.objectives.linear.losses import LOSSES
from walklearn.simulation.trace import Trace
from walklearn.tables.encoding import Encoding
from walklearn.walks.disclosure import describe_privacy
from walklearn.walks.markov import known_stationary

if TYPE_CHECKING:
    from walklearn.estimators.random_walk import RandomWalk
    from walklearn.fitting.training import FitResult


def trace_of(estimator: RandomWalk, result: FitResult) -> Trace:
    """Return the trace of a fit: values, messages and models, but no distances to w*."""
    setting, prepared, seeds = result.setting, result.prepared, result.prepared.seeds
    problem, walk, graph = setting.objective, setting.walk, prepared.plan.graph
    release, counts = walk.innermost.release, result.walk.contributions
    announcements = 2 * graph.edge_count if walk.sent_length else 0
    updates, messages, arrivals, values, averages = zip(*result.walk.snapshots, strict=True)
    return Trace(
        label=repr(walk),
        spec={
            "walklearn": __version__,
            "estimator": type(estimator).__name__,
            "problem": problem.facts(),  # no digest: it would confirm a guess of the rows
            "graph": repr(graph),
            "method": repr(walk),
            "update": repr(setting.update),
            "steps": updates[-1],
            "average": prepared.plan.stop.average,
            "replicates": 1,
            "seed": seeds.walk.entropy if seeds.simulated else None,
        },
        updates=np.array(updates),
        messages=np.array([messages]),
        time=np.array([arrivals], dtype=np.float64),  # a message takes 1
        message_bytes=setting.message_bytes,
        metrics={"value": np.array([values]), "average_value": np.array([averages])},
        models=estimator.weights_[None],
        averages=estimator.average_[None],
        visits=result.walk.visits,
        degrees=graph.degrees,
        expected_visits=(None if walk.slow_stationary else known_stationary(walk, graph, problem)),
        announcements=announcements,
        announcement_bytes=announcements * walk.sent_length * 8,
        released=None if release is None else release[None],
        contributions=None if counts is None else counts[None],
        privacy=describe_privacy(
            walk, estimator.model_noise_, problem.nodes, [walk.innermost.out_of_bounds]
        ),
    )


def model_of(
    estimator: RandomWalk, encoding: Encoding | Sequence[str] | None, target: str
) -> Model:
    """Return the fitted model, with its training and its claim."""
    plan, request, privacy = estimator.fit_plan_, request_of(estimator), privacy_of(estimator)
    weights, average, units = estimator.weights_, estimator.average_, plan.encoding
    if request.columns is not None and units is not None:
        if encoding is not None:
            raise ValueError(
                "the estimator's schema declares the encoding of the columns. Leave encoding out, "
                "or pass the schema when the rows are read (read_rows(..., schema=...))."
            )
        encoding = Encoding(request.columns)
        weights, average = units.for_scaled_features(weights), units.for_scaled_features(average)
    elif encoding is None:
        encoding = getattr(estimator, "feature_names_in_", None)
    if not isinstance(encoding, Encoding):
        count = estimator.n_features_in_
        encoding = Encoding.of_numbers(count if encoding is None else encoding)
    if is_claimed(estimator):
        privacy["taken_to_be_public"] += public_columns(encoding.columns, target, request.target)
    return Model(
        weights, average, loss=LOSSES.name_of(estimator.loss_), columns=encoding,
        classes=getattr(estimator, "classes_", None), intercept=plan.intercept,
        penalty=plan.penalty, updates=estimator.n_iter_,
        iterate="last" if plan.stop.average == "none" else "average", target=target,
        walk=name_of(estimator.walk_), privacy=privacy, ledger=estimator.ledger_.to_dict(),
        details=details_of(estimator),
    )  # fmt: skip


def row_facts(estimator: RandomWalk) -> dict[str, Any]:
    """Return results that depend on the rows and that no ledger covers: do not publish them."""
    trace = estimator.trace_
    value = trace.value if trace.spec["average"] == "none" else trace.average_value
    return {"rows": trace.spec["problem"]["rows"], "loss": float(value[0, -1])}


def details_of(estimator: RandomWalk) -> dict[str, Any]:
    """Return facts about the training, without the rows if the model has a privacy claim."""
    trace, graph, step = estimator.trace_, estimator.graph_, estimator.step_size_
    seed = trace.spec["seed"]
    details = {
        "features": estimator.n_features_in_,
        "nodes": graph.node_count,
        "edges": graph.edge_count,
        "messages": int(trace.messages[0, -1]),
        "bytes": int(trace.bytes[0, -1]),
        "update": getattr(estimator.update_, "name", repr(estimator.update_)),
        "step_constant": None if step is None else float(step.constant),
        "step_exponent": None if step is None else float(step.exponent),
        "seed": int(seed) if isinstance(seed, int | np.integer) else None,
    }
    if estimator.interrupted_:
        details["interrupted"] = True
    return details if is_claimed(estimator) else row_facts(estimator) | details
