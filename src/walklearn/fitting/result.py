"""What comes of a walk: its trace, and a `Model` that is kept, read and exported.

A model says of itself, in plain words, what its training has revealed of the rows.
"""

from __future__ import annotations

import math
import warnings
from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np

from walklearn import __version__
from walklearn.errors import PrivacyWarning
from walklearn.fitting.public_facts import public_columns, public_facts
from walklearn.models import Model
from walklearn.objectives.linear.losses import LOSSES
from walklearn.privacy import ModelNoise
from walklearn.privacy.accounting.budget import doubt_of_delta
from walklearn.privacy.accounting.claim import REPLACED, Claim
from walklearn.privacy.accounting.ledger_text import SEEDED
from walklearn.privacy.accounting.printing import format_claim
from walklearn.privacy.mechanisms.description import IN_THE_CLEAR, UNPROTECTED_MODEL
from walklearn.simulation.trace import Trace
from walklearn.tables.encoding import Encoding
from walklearn.walks import Walk
from walklearn.walks.disclosure import published, shown_by, tells
from walklearn.walks.markov import known_stationary
from walklearn.wording import often

if TYPE_CHECKING:
    from walklearn.estimators.random_walk import RandomWalk
    from walklearn.fitting.request import FitRequest
    from walklearn.fitting.training import Ended
    from walklearn.graphs import Graph
    from walklearn.objectives import Problem


SIMULATED = f"{SEEDED} The claim without the seed is under would_be."


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
        law=_stationary(walk, graph, problem),
        announcements=announcements,
        announcement_bytes=announcements * walk.numbers_sent * 8,
        released=None if release is None else release[None],
        contributions=None if counts is None else counts[None],
        privacy=published(walk, estimator.model_noise_, problem.nodes, [walk.innermost.outside]),
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
        kind="regressor" if classes is None else "classifier",
        loss=LOSSES.name_of(estimator.loss_),
        columns=encoding,
        classes=classes,
        intercept=request.intercept,
        penalty=estimator.penalty,
        updates=estimator.n_iter_,
        uses="last" if estimator.trace_.spec["average"] == "none" else "average",
        target=target,
        walk=_name(estimator.walk_),
        privacy=privacy,
        ledger=estimator.ledger_.to_dict(),
        details=details_of(estimator),
    )


def _stationary(walk: Walk, graph: Graph, problem: Problem) -> Any:
    """Return the long-run share of the updates of each node, if it is known and quickly found."""
    return None if walk.slow_stationary else known_stationary(walk, graph, problem)


def request_of(estimator: RandomWalk) -> FitRequest:
    """The request of the fit, which parameters that were set since do not change."""
    request = estimator._state.request
    assert request is not None
    return request


def is_claimed(estimator: RandomWalk) -> bool:
    """Whether something is claimed to be protected, so that no more may be told of the rows."""
    released = estimator.walk_.innermost.release is not None
    asked = estimator.fit_plan_.budget.epsilon is not None
    return released or estimator.model_noise_ is not None or asked


def for_the_owner(estimator: RandomWalk) -> dict[str, Any]:
    """What was computed from the rows and no ledger accounts for, so it must not be published."""
    trace = estimator.trace_
    value = trace.value if trace.spec["average"] == "none" else trace.average_value
    return {"rows": trace.spec["problem"]["rows"], "loss": float(value[0, -1])}


def details_of(estimator: RandomWalk) -> dict[str, Any]:
    """How it was trained; of the rows nothing where something is claimed to be protected."""
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


def _warnings_of_delta(estimator: RandomWalk, claim: Claim) -> list[str]:
    """Return a sentence on a δ that is not small. If rows are the unit, their number is public."""
    nodes = estimator.graph_.node_count
    rows = estimator.trace_.spec["problem"]["rows"] if claim.unit == "rows" else nodes
    doubt = doubt_of_delta(claim.delta, rows, claim.unit)
    return [doubt] if doubt else []


def privacy_of(estimator: RandomWalk) -> dict[str, Any]:
    """What is protected, what is not, and what counts as public."""
    protected, exposed = _importance(estimator)
    noise, request = estimator.model_noise_, request_of(estimator)
    claim = estimator.ledger_.claim(request.privacy.reported_delta)
    if noise is None:
        asked = "" if request.privacy.epsilon is None else ", as was asked for (in the clear)"
        exposed[:0] = [
            f"ε = ∞: the model is not protected{asked}.",
            f"{UNPROTECTED_MODEL} A total ε protects it (epsilon and delta).",
        ]
    else:
        protected.append(_of_the_model(noise))
    if claim.is_private:
        protected.insert(
            0,
            f"{claim}, in this fit alone. For each set of outcomes, P(outcome) ≤ "
            "e^ε · P(outcome with the other rows) + δ.",
        )
        exposed += _warnings_of_delta(estimator, claim)
    exposed.append(
        "Training ran on one machine that saw all rows, and the accuracy and loss that it tells "
        "are computed from them: they are for you, not for publishing."
    )
    if estimator._state.interrupted and is_claimed(estimator):
        exposed.append(
            "The training was interrupted by hand. If that was because of what the loss on the "
            "rows was, then when it ended tells of them, and no ε covers it."
        )
    released = estimator.walk_.innermost.release is not None
    simulated = bool(estimator.ledger_.simulated)
    would_be: dict[str, Any] = {}
    if simulated and (noise is not None or released):  # everyone can draw the same noise again
        would_be = {"would_be": claim.to_dict()}
        claim, protected, exposed = replace(claim, epsilon=math.inf), [], [SIMULATED, *exposed]
    return claim.to_dict() | would_be | {
        "simulated": simulated,
        "protected": protected,
        "not_protected": exposed,
        "taken_to_be_public": public_facts(
            estimator.fit_plan_, getattr(estimator, "classes_", None), request.total_rows
        ),
    }  # fmt: skip


def _of_the_model(noise: ModelNoise) -> str:
    if noise.protect == "rows":
        what = "each row's gradient is clipped and the sum noised"
    else:
        what = "the gradient of all rows of a node is clipped and noised"
    return (
        f"What the rows of a node add to the model, by {noise}: at each visit {what}, and a node "
        f"adds at most {often(noise.max_contributions)}."
    )


def _importance(estimator: RandomWalk) -> tuple[list[str], list[str]]:
    """What is said of L_i, or of another importance: what of it is protected, and what is not."""
    walk = estimator.walk_.innermost
    if not estimator.walk_.discloses_known:
        return [], [f"What {_name(estimator.walk_)} tells of the rows is not known here."]
    if shown_by(estimator.walk_).scaled_by:
        return [], ["Steps are scaled by the true L_i of each node, which the model then shows."]
    in_the_clear = {
        each["mechanism"] == IN_THE_CLEAR
        for each in estimator.ledger_.to_dict()["releases"]
        if each["what"] == "importance"
    }
    if True in in_the_clear and not shown_by(estimator.walk_).in_the_clear:
        return [], ["In an earlier call every node told its neighbours its L_i in the clear."]
    if walk.release is not None:
        return [_release(estimator, walk)], []
    if in_the_clear and not tells(estimator.walk_):
        return ["The constant L_i of every node, released in an earlier call: see the ledger."], []
    if tells(estimator.walk_):
        what = "constant L_i" if getattr(walk, "importance", None) is None else "importance"
        return [], [
            f"The {what} of every node goes to its neighbours in the clear, and it depends on its "
            "rows. A uniform walk has none."
        ]
    if getattr(walk, "importance", None) is not None:
        return ["Nodes tell each other their degree and an importance declared to be public."], []
    return ["Nodes tell each other their degree and no constant of their rows."], []


def _release(estimator: RandomWalk, walk: Any) -> str:
    """What is claimed of a release: by a share of ε and δ, or by the walk's own mechanism."""
    low, high = walk.mechanism.bounds
    text = (
        f"The constant L_i of every node, released by {walk.mechanism} within the public bounds "
        f"{low:.4g} to {high:.4g}"
    )
    budget = estimator.fit_plan_.budget
    target: tuple[float | None, float | None] | None = (budget.epsilon, budget.delta)
    if estimator.allotment_ is not None:
        target = estimator.allotment_.constants
    times = max(
        charge.times
        for node in range(estimator.ledger_.nodes)
        for charge in estimator.ledger_.charges(node)
        if charge.what == "importance"
    )
    if times > 1:
        return f"{text}; it was released {times} times, and the ledger tells what that costs."
    if target is None or target[0] is None:
        return f"{text}; the ledger tells its cost."
    return (
        f"{text}: {format_claim(target[0], target[1] or 0.0)} of this number alone, if "
        f"{REPLACED[getattr(walk.mechanism, 'protect', 'node')]}."
    )


def _name(walk: Walk) -> str:
    """The walk with what it was asked to do, without what was drawn."""
    return repr(walk.before_release())


SCORE_IS_A_RELEASE = (
    "a score on private rows is a release that ε does not cover. Do not publish it, and choose no "
    "model or parameter by it; scores on public rows are free. This warning appears once per "
    "process."
)
_warned = False


def warn_about_score(estimator: RandomWalk) -> None:
    """Issue a `PrivacyWarning` at the first score of a private estimator in this process.

    A fit with a seed makes no claim, but it rehearses a private fit: it is warned of as well.
    """
    global _warned
    if not _warned and is_claimed(estimator):
        _warned = True
        warnings.warn(SCORE_IS_A_RELEASE, PrivacyWarning, stacklevel=3)
