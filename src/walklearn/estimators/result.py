"""The results of a fit: its trace, and a `Model` that is kept, read and exported."""

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
from walklearn.walks import Walk
from walklearn.walks.disclosure import published
from walklearn.walks.markov import known_stationary

if TYPE_CHECKING:
    from walklearn.estimators.random_walk import RandomWalk
    from walklearn.fitting.training import Ended
    from walklearn.graphs import Graph
    from walklearn.objectives import Problem


def trace_of(estimator: RandomWalk, ended: Ended) -> Trace:
    """Trace of a fit: values, messages and models; w* is not known, so there are no errors."""
    setting, walked, prepared = ended.setting, ended.walked, ended.prepared
    problem, walk, graph = setting.objective, setting.walk, prepared.plan.graph
    seeds = prepared.seeds
    release = walk.innermost.release
    announcements = 2 * graph.edge_count if walk.numbers_sent else 0
    counts = walked.contributions
    return Trace(
        label=repr(walk),
        spec={
            "walklearn": __version__,
            "estimator": type(estimator).__name__,
            "problem": problem.facts(),  # no digest: it would confirm a guess of the rows
            "graph": repr(graph),
            "method": repr(walk),
            "update": repr(setting.update),
            "steps": walked.updates[-1],
            "average": prepared.plan.stop.average,
            "replicates": 1,
            "seed": seeds.walk.entropy if seeds.simulated else None,
        },
        updates=np.array(walked.updates),
        messages=np.array([walked.messages]),
        message_bytes=setting.message_bytes,
        metrics={
            "value": np.array([walked.values]),
            "average_value": np.array([walked.average_values]),
        },
        models=estimator.weights_[None],
        averages=estimator.average_[None],
        visits=walked.visits,
        degrees=graph.degrees,
        expected_visits=_stationary(walk, graph, problem),
        announcements=announcements,
        announcement_bytes=announcements * walk.numbers_sent * 8,
        released=None if release is None else release[None],
        contributions=None if counts is None else counts[None],
        privacy=published(
            walk, estimator.model_noise_, problem.nodes, [walk.innermost.out_of_bounds]
        ),
    )


def model_of(
    estimator: RandomWalk, encoding: Encoding | Sequence[str] | None, target: str
) -> Model:
    """The model that a walk has trained, with what is known of it."""
    classes = getattr(estimator, "classes_", None)
    names = getattr(estimator, "feature_names_in_", None)
    weights, average = estimator.weights_, estimator.average_
    request, units = request_of(estimator), estimator.fit_plan_.encoding
    if request.columns is not None and units is not None:
        if encoding is not None:
            raise ValueError(
                "the estimator's schema says already what becomes of the columns: leave encoding "
                "out, or declare the schema when the rows are read (read_rows(..., schema=...))."
            )
        encoding = Encoding(request.columns)
        weights = units.for_scaled_features(weights)
        average = units.for_scaled_features(average)
    if not isinstance(encoding, Encoding):
        given = names if encoding is None else encoding
        encoding = Encoding.of_numbers(estimator.n_features_in_ if given is None else given)
    privacy = privacy_of(estimator)
    if is_claimed(estimator):
        privacy["taken_to_be_public"] += public_columns(encoding.columns, target, request.target)
    return Model(
        weights,
        average,
        loss=LOSSES.name_of(estimator.loss_),
        columns=encoding,
        classes=classes,
        intercept=request.intercept,
        penalty=request.penalty,
        updates=estimator.n_iter_,
        iterate="last" if estimator.trace_.spec["average"] == "none" else "average",
        target=target,
        walk=name_of(estimator.walk_),
        privacy=privacy,
        ledger=estimator.ledger_.to_dict(),
        details=details_of(estimator),
    )


def _stationary(walk: Walk, graph: Graph, problem: Problem) -> Any:
    """Return the long-run share of the updates of each node, if it is known and quickly found."""
    return None if walk.slow_stationary else known_stationary(walk, graph, problem)


def for_the_owner(estimator: RandomWalk) -> dict[str, Any]:
    """Return results that depend on the rows and are in no ledger, for the owner alone."""
    trace = estimator.trace_
    value = trace.value if trace.spec["average"] == "none" else trace.average_value
    return {"rows": trace.spec["problem"]["rows"], "loss": float(value[0, -1])}


def details_of(estimator: RandomWalk) -> dict[str, Any]:
    """Return how the model was trained; nothing about the rows if the model has a privacy claim."""
    trace, graph = estimator.trace_, estimator.graph_
    seed = trace.spec["seed"]
    step = estimator.step_size_
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
    return details if is_claimed(estimator) else for_the_owner(estimator) | details
