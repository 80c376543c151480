"""`Advice`, and the one function that gives it."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np

from walklearn.graphs import Graph
from walklearn.objectives import Aggregate, Problem
from walklearn.objectives.linear.losses import Logistic, Loss
from walklearn.privacy.accounting.budget import Allotment, about_noise, allot
from walklearn.privacy.accounting.claim import Claim
from walklearn.privacy.accounting.printing import format_claim
from walklearn.privacy.accounting.public_rows import RowLength
from walklearn.privacy.mechanisms.bounds import smoothness_bounds
from walklearn.privacy.mechanisms.comparison import Comparison, compare
from walklearn.privacy.mechanisms.description import IN_THE_CLEAR
from walklearn.privacy.mechanisms.mechanism import Mechanism
from walklearn.privacy.model_noise import Unit, check_unit
from walklearn.updates.saga import Saga
from walklearn.updates.step_choice import public_step
from walklearn.updates.step_sizes import ConstantStep, StepSize
from walklearn.updates.update import Update
from walklearn.walks import Uniform, Walk, Weighted
from walklearn.walks.disclosure import mechanism_of
from walklearn.wording import as_given, plural

LAZINESS = 0.1
ABOUT_SAGA = (
    "Saga: each node keeps one number per row and class, and the token carries the sum of "
    "gradients beside the model. The model converges to the minimiser, whereas SGD only comes "
    "close. Saga finds its own step, and the uniform walk suffices, which reveals only degrees. "
    "Saga reveals a curvature to neighbours, so under ε the update is SGD."
)


@dataclass(frozen=True)
class Advice:
    """What to do, and why; it can be printed.

    Parameters
    ----------
    walk
        Who should be next.
    step_size
        The step of the paper's update; None where nothing public bounds the smoothness, or the
        update finds its own.
    reasons
        Why, in sentences.
    comparison
        What releases of L_i are worth, where the model is in the clear.
    allotment
        What protects the model and all else that leaves a node, where a total ε was asked for.
    update
        What a visit should do; None for SGD with that walk and step.

    Examples
    --------
    >>> from walklearn import graphs
    >>> advice = advise(graphs.ring(10), features=5, total_rows=100)
    >>> type(advice.walk).__name__, advice.update
    ('Uniform', Saga())
    """

    walk: Walk
    step_size: StepSize | None
    reasons: tuple[str, ...]
    comparison: Comparison | None = None
    allotment: Allotment | None = None
    update: Update | None = None

    @property
    def claim(self) -> Claim:
        """The claim for everything that leaves a node."""
        allotted = self.allotment
        if allotted is None:
            return Claim(math.inf, 0.0, "rows")
        return Claim(allotted.epsilon, allotted.delta, allotted.protect)

    @property
    def mechanism(self) -> Mechanism | None:
        """What to release the constants with; None where nothing need be released."""
        return mechanism_of(self.walk)

    @property
    def laziness(self) -> float:
        """The probability of staying put before anything is proposed."""
        return float(getattr(self.walk, "laziness", 0.0))

    @property
    def step_source(self) -> str:
        """Where the step comes from if none is advised."""
        return "left to the training" if self.update is None else "found on the way"

    @property
    def headline(self) -> str:
        """The claim, and what the advice rests on."""
        return f"{self.claim}. From public facts only."

    def to_dict(self) -> dict[str, Any]:
        """Plain JSON values; numbers that are not finite become null."""
        return {
            **self.claim.to_dict(),
            **self._protection(),
            "walk": self.walk.name,
            "mechanism": None if self.mechanism is None else self.mechanism.name,
            "laziness": self.laziness,
            "update": "sgd" if self.update is None else self.update.name,
            "step_constant": None if self.step_size is None else self.step_size.constant,
            "step_exponent": None if self.step_size is None else self.step_size.exponent,
            "reasons": list(self.reasons),
        }

    def _protection(self) -> dict[str, Any]:
        """What the total takes, as plain values."""
        if self.allotment is None:
            return {"model": "in the clear"}
        noise = self.allotment.noise
        return {
            "model": "protected",
            "clip": noise.clip,
            "noise_multiplier": noise.noise_multiplier,
            "max_contributions": noise.max_contributions,
            "updates": self.allotment.updates,
            "relative_noise": self.allotment.relative_noise,
        }

    def __str__(self) -> str:
        lines = [
            self.headline,
            f"  walk       {self.walk!r}",
            f"  model      {'in the clear' if self.allotment is None else self.allotment.noise}",
            f"  L_i        {'not told' if self.mechanism is None else self.mechanism}",
            f"  update     {'Sgd' if self.update is None else self.update}",
            f"  step size  {self.step_size or self.step_source}",
        ]
        return "\n".join([*lines, *(f"- {reason}" for reason in self.reasons)])


def advise(
    graph: Graph,
    problem: Problem | None = None,
    *,
    epsilon: float | None = None,
    delta: float | None = None,
    protect: Unit = "rows",
    model: str | None = None,
    features: int | None = None,
    row_length: float | None = None,
    feature_bound: float | None = None,
    loss: Loss | None = None,
    penalty: float = 1.0,
    aggregate: Aggregate = "sum",
    intercept: bool = False,
    max_rows: float | None = None,
    total_rows: float | None = None,
    lower: float | None = None,
) -> Advice:
    """Recommend a walk, what a visit does, what protects it, a laziness and a step size.

    Parameters
    ----------
    graph
        Who can talk to whom.
    problem
        Source of public facts: loss, penalty, aggregate, the size of the model and, unless
        protect="node" hides them, numbers of rows. Its features and targets are not used.
    epsilon, delta
        The total for everything that leaves a node because of its rows, the model included. It
        needs public facts: how long rows typically are (row_length) or at most (feature_bound),
        and without a problem how many features there are and rows in all (total_rows).
    protect
        What ε is about: one row of a node ("rows") or all of them ("node").
    model
        "in the clear" asks what the paper asks: the model is not protected, ε is about the
        constants L_i alone, within the public feature_bound, and the total is ε = ∞.
    features
        Number of columns of the rows; `problem` brings its own.
    row_length
        A public length that rows typically have.
    feature_bound
        A public bound on the length of a row.
    loss, penalty, aggregate, intercept
        Public facts of the problem; `problem` brings its own loss, penalty and aggregate.
    max_rows, total_rows
        Largest number of rows of a node, 1 by default, and number of rows of all nodes.
        `problem` brings its own total, and its own largest number if none is given; with
        protect="node" it brings neither, because both are hidden.
    lower
        A public lower bound of L_i, where there is neither penalty nor intercept.

    Returns
    -------
    Advice
        What to do, and why.

    Examples
    --------
    >>> from walklearn import graphs
    >>> advice = advise(graphs.ring(10), features=5, total_rows=100)
    >>> advice.walk, advice.update
    (Uniform(laziness=0.1), Saga())
    """
    if (epsilon is None) != (delta is None):
        given, other = ("epsilon", "delta") if delta is None else ("delta", "epsilon")
        raise ValueError(
            f"{given} was given without {other}: privacy is a pair, such as epsilon=3.0, "
            "delta=1e-5."
        )
    if model not in (None, IN_THE_CLEAR):
        raise ValueError(f'model must be None or "{IN_THE_CLEAR}", got {model!r}.')
    check_unit(protect)
    loss, min_rows = loss or Logistic(), 1.0
    outputs = int(getattr(loss, "classes", None) or 1)
    size = None if features is None else (features + bool(intercept)) * outputs
    if problem is not None:
        _check_problem(graph, problem)
        loss, penalty, aggregate = problem.loss, problem.penalty, problem.aggregate
        size = problem.size
        if protect == "rows":
            total_rows = problem.total_rows
            if max_rows is None:
                rows = np.bincount(problem.node_of_row, problem.sample_weight)
                max_rows, min_rows = float(rows.max()), float(rows[rows > 0].min())
    if epsilon is not None and delta is not None and model is None:
        if size is None:
            raise ValueError(
                "the noise that ε needs depends on the size of the model: pass features, the "
                "number of features of a row, or a problem."
            )
        length = RowLength(row_length, feature_bound)
        allotted = allot(
            epsilon, delta, loss=loss, nodes=graph.node_count, size=size, rows=total_rows,
            length=length.with_intercept(intercept), typical=length.is_typical, protect=protect,
            aggregate=aggregate, penalty=penalty,
        )  # fmt: skip
        return _advise_protected(graph, allotted)
    laziness, about_laziness = choose_laziness(graph)
    if epsilon is None or delta is None:
        reasons = (about_laziness, ABOUT_SAGA)
        return Advice(Uniform(laziness=laziness), None, reasons, update=Saga())
    if feature_bound is None:
        raise ValueError(
            "a release of L_i needs a public bound on the length of a row: pass feature_bound, the "
            "largest ‖x‖ that any row could have. One taken from the data would leak."
        )
    if problem is not None and max_rows is None and aggregate != "node-mean":
        raise ValueError(
            'protect="node" hides the number of rows of a node: pass max_rows, a public upper '
            "bound on it."
        )
    bounds = smoothness_bounds(
        loss, penalty, graph.node_count, feature_bound, max_rows=max_rows or 1,
        min_rows=min(min_rows, max_rows or 1), aggregate=aggregate, intercept=intercept,
        total_rows=total_rows, lower=lower,
    )  # fmt: skip
    comparison = compare(epsilon=epsilon, delta=delta, bounds=bounds)
    walk, about_walk = _following(comparison, laziness)
    step = None if walk.is_private else public_step(loss, penalty, graph, walk, bounds)
    return Advice(walk, step, (about_laziness, about_walk), comparison)


def _following(comparison: Comparison, laziness: float) -> tuple[Walk, str]:
    """Return a walk that follows the best release of L_i, if it tells more than a constant."""
    uniform, best = Uniform(laziness=laziness), comparison.rows[0]
    target = format_claim(comparison.epsilon, comparison.delta)
    if best.mechanism is None:
        return uniform, f"Uniform: no mechanism reaches {target}. {best.reason}"
    errors = (
        f"At {target} the best release, by {best.kind}, is off by {best.raw_error:.3g} of the "
        f"range, and a public constant, which reveals nothing, by {comparison.constant_error:.3g}."
    )
    if best.raw_error >= comparison.constant_error:
        return uniform, f"Uniform: privacy would cost more than weighting gains. {errors}"
    walk = Weighted(privacy=best.mechanism, laziness=laziness)
    return walk, f"Weighted: {errors} Compare both walks with simulate() on data like yours."


def _check_problem(graph: Graph, problem: Problem) -> None:
    if not isinstance(problem, Problem):
        raise TypeError(f"problem must be a walklearn.Problem, got {as_given(problem)}.")
    if graph.node_count != problem.nodes:
        raise ValueError(
            f"the graph has {graph.node_count} nodes, but the problem has {problem.nodes}. "
            f"Build a graph with {problem.nodes} nodes, or assign the rows to "
            f"{graph.node_count} nodes with Problem(..., node_of_row=..., "
            f"nodes={graph.node_count})."
        )


def _advise_protected(graph: Graph, allotted: Allotment) -> Advice:
    """Advise the uniform walk, which reveals nothing, with the noise that the budget needs."""
    laziness, about_laziness = choose_laziness(graph)
    walk, step = Uniform(laziness=laziness), ConstantStep(allotted.step)
    noise = allotted.noise
    reasons = (
        about_laziness,
        "Uniform: it tells neighbours nothing of the rows, so the whole budget goes to the model. "
        "A weighted walk would have to release L_i out of the same budget.",
        f"Noise of {noise.noise_multiplier:.3g} times the clip {noise.clip:.3g} at each visit, and "
        f"at most {plural(noise.max_contributions, 'contribution')} of a node: together they "
        f"are within {format_claim(allotted.epsilon, allotted.delta)}. Training does all this "
        "by itself.",
        f"Step {allotted.step:.3g}, {plural(allotted.updates, 'update')}: from public facts.",
        about_noise(allotted),
    )
    return Advice(walk, step, reasons, allotment=allotted)


def choose_laziness(graph: Graph) -> tuple[float, str]:
    """0, or 0.1 where that mixes faster, such as between two sides of a graph; and why."""
    from walklearn import theory

    plain, lazy = (theory.spectral_gap(graph, Uniform(laziness=each)) for each in (0.0, LAZINESS))
    if lazy <= plain:
        return 0.0, (
            f"No laziness: the uniform walk mixes by itself (spectral gap {plain:.3g}, with "
            f"laziness {LAZINESS} it would be {lazy:.3g})."
        )
    if plain == 0.0 and graph.is_bipartite:
        return LAZINESS, (
            f"Laziness {LAZINESS}: without it the walk would never mix, it alternates between two "
            "sides of the graph."
        )
    return LAZINESS, (
        f"Laziness {LAZINESS}: it raises the spectral gap of the uniform walk from {plain:.3g} to "
        f"{lazy:.3g}, since the walk nearly alternates between two sides of the graph."
    )
