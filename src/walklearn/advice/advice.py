"""`Advice`, and the one function that gives it."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import Any, Literal

import numpy as np

from walklearn.graphs import Graph
from walklearn.privacy.bounds import smoothness_bounds
from walklearn.privacy.budget import Allotment, allot
from walklearn.privacy.comparison import Comparison, compare
from walklearn.privacy.description import IN_THE_CLEAR
from walklearn.privacy.mechanism import Mechanism
from walklearn.privacy.model_noise import Unit
from walklearn.privacy.printing import format_upper
from walklearn.privacy.public_rows import RowLength
from walklearn.problem import Objective, Problem
from walklearn.problem.losses import Logistic, Loss
from walklearn.updates.memory import Saga
from walklearn.updates.step_sizes import StepSize
from walklearn.updates.update import Update
from walklearn.walks import Uniform, Walk
from walklearn.walks.disclosure import mechanism_of

Mode = Literal["public", "simulation"]

LAZINESS = 0.1


@dataclass(frozen=True)
class Candidate:
    """A walk that was considered.

    In "public" mode its numbers are those of the theorems, for constants L_i spread evenly over the
    public bounds; in "simulation" mode those of runs with the step constant that suited it best.

    Parameters
    ----------
    name
        What the walk is called.
    walk
        The walk.
    numbers
        Its numbers by name; NaN where one is not known.

    Examples
    --------
    >>> from walklearn import graphs
    >>> advice = advise(graphs.ring(10), features=5, total_rows=100, feature_bound=2.0)
    >>> [type(candidate.walk).__name__ for candidate in advice.candidates]
    ['Uniform', 'Weighted']
    """

    name: str
    walk: Walk
    numbers: dict[str, float]


@dataclass(frozen=True)
class Advice:
    """What to do, and why; it can be printed.

    Parameters
    ----------
    mode
        "public", or "simulation" if the data were looked at: then the advice itself is not
        private.
    walk
        Who should be next.
    step_size
        The step of the paper's update; None where nothing public bounds the smoothness, or the
        update finds its own.
    reasons
        Why, in sentences.
    candidates
        The walks that were considered.
    comparison
        What releases of L_i are worth, where the model is in the clear.
    allotment
        What protects the model and all else that leaves a node, where a total ε was asked for.
    update
        What a visit should do; None for SGD with that walk and step.
    without_memory
        Where the update has memory, what to do with SGD instead.

    Examples
    --------
    >>> from walklearn import graphs
    >>> advice = advise(graphs.ring(10), features=5, total_rows=100)
    >>> advice.mode, type(advice.walk).__name__, advice.update
    ('public', 'Uniform', Saga())
    """

    mode: Mode
    walk: Walk
    step_size: StepSize | None
    reasons: tuple[str, ...]
    candidates: tuple[Candidate, ...]
    comparison: Comparison | None = None
    allotment: Allotment | None = None
    update: Update | None = None
    without_memory: Advice | None = None

    @property
    def epsilon(self) -> float:
        """The total for everything that leaves a node; infinite where the model is in the clear."""
        return math.inf if self.allotment is None else self.allotment.epsilon

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
        """What the advice rests on."""
        rests = "From simulations on the data: it depends on them, so it is not private."
        if self.mode == "public":
            rests = "From public facts only: no data were looked at."
        if self.allotment is None:
            return f"ε = ∞: the model is not protected and can reveal rows. {rests}"
        epsilon, delta = self.allotment.epsilon, self.allotment.delta
        total = f"ε = {format_upper(epsilon)}, δ = {format_upper(delta)}"
        return f"{total} for all that leaves a node, the unit is {self.allotment.protect}. {rests}"

    def to_dict(self) -> dict[str, Any]:
        """Plain JSON values; numbers that are not finite become null."""
        return {
            "mode": self.mode,
            "looks_at_rows": self.mode != "public",
            "epsilon": "∞" if self.allotment is None else self.allotment.epsilon,
            **self._protection(),
            "walk": self.walk.name,
            "mechanism": None if self.mechanism is None else self.mechanism.name,
            "laziness": self.laziness,
            "update": "sgd" if self.update is None else self.update.name,
            "step_constant": None if self.step_size is None else self.step_size.constant,
            "step_exponent": None if self.step_size is None else self.step_size.exponent,
            "reasons": list(self.reasons),
            "candidates": [
                {"name": each.name}
                | {name: _finite_or_none(number) for name, number in each.numbers.items()}
                for each in self.candidates
            ],
        }

    def _protection(self) -> dict[str, Any]:
        """What the total takes, as plain values."""
        if self.allotment is None:
            return {"delta": None, "protect": None, "model": "in the clear"}
        noise = self.allotment.noise
        return {
            "delta": self.allotment.delta,
            "protect": self.allotment.protect,
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
    objective: Objective = "sum",
    intercept: bool = False,
    max_rows: int = 1,
    total_rows: int | None = None,
    lower: float | None = None,
    steps: int = 20_000,
    replicates: int = 16,
    seed: int = 1,
) -> Advice:
    """Recommend a walk, what a visit does, what protects it, a laziness and a step size.

    Parameters
    ----------
    graph
        Who can talk to whom.
    problem
        Simulate on it; without it only public facts are used.
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
        How many columns the rows have; `problem` brings its own.
    row_length
        A public length that rows typically have.
    feature_bound
        A public bound on the length of a row.
    loss, penalty, objective, intercept, max_rows, total_rows
        What is public of the problem; `problem` brings its own loss, penalty, objective and
        numbers of rows.
    lower
        A public lower bound of L_i, where there is neither penalty nor intercept.
    steps, replicates
        How long and how many the simulations are.
    seed
        The seed of the simulations.

    Returns
    -------
    Advice
        What to do, and why.

    Examples
    --------
    >>> from walklearn import graphs
    >>> advice = advise(graphs.ring(10), features=5, total_rows=100)
    >>> advice.mode
    'public'
    """
    if (epsilon is None) != (delta is None):
        given, other = ("epsilon", "delta") if delta is None else ("delta", "epsilon")
        raise ValueError(
            f"{given} was given without {other}: privacy is a pair, such as epsilon=3.0, "
            "delta=1e-5."
        )
    if model not in (None, IN_THE_CLEAR):
        raise ValueError(f'model must be None or "{IN_THE_CLEAR}", got {model!r}.')
    if epsilon is not None and delta is not None and model is None:
        from walklearn.advice.protected import advise_protected

        length = RowLength(row_length, feature_bound)
        allotted = allot(
            epsilon, delta, nodes=graph.node_count, protect=protect,
            length=length.with_intercept(intercept), typical=length.is_typical,
            **_facts_of(problem, loss or Logistic(), objective, intercept, features, total_rows),
            penalty=penalty if problem is None else problem.penalty,
        )  # fmt: skip
        return advise_protected(graph, problem, allotted, replicates, seed)
    if epsilon is not None and feature_bound is None:
        raise ValueError(
            "a release of L_i needs a public bound on the length of a row: pass feature_bound, the "
            "largest ‖x‖ that any row could have. One taken from the data would leak."
        )
    min_rows = 1
    if problem is not None:
        loss, penalty, objective = problem.loss, problem.penalty, problem.objective
        held = np.diff(problem.offsets)
        max_rows, min_rows, total_rows = (
            int(held.max()),
            int(held[held > 0].min()),
            problem.row_count,
        )
    bounds = comparison = None
    if feature_bound is not None:
        bounds = smoothness_bounds(
            loss or Logistic(), penalty, graph.node_count, feature_bound, max_rows=max_rows,
            min_rows=min_rows, objective=objective, intercept=intercept, total_rows=total_rows,
            lower=lower,
        )  # fmt: skip
        if epsilon is not None and delta is not None:
            comparison = compare(epsilon=epsilon, delta=delta, bounds=bounds)
    if problem is None:
        from walklearn.advice.public import advise_from_public_facts

        advice = advise_from_public_facts(
            graph, loss or Logistic(), penalty, bounds, comparison, seed
        )
    else:
        from walklearn.advice.simulated import advise_by_simulation

        advice = advise_by_simulation(graph, problem, comparison, steps, replicates, seed)
    return advice if comparison is not None else _with_memory(advice, graph, problem, steps, seed)


def _with_memory(
    advice: Advice, graph: Graph, problem: Problem | None, steps: int, seed: int
) -> Advice:
    """Let visits remember gradients where nothing is protected; with a problem, try both."""
    from walklearn.simulation import simulate

    update, walk, tried = Saga(), Uniform(laziness=advice.laziness), ""
    if problem is not None:
        run = simulate(problem, graph, walk, update=update, steps=steps, replicates=4, seed=seed,
                       records=1, progress=False)  # fmt: skip
        tried = f" After {steps} updates it left f(w) − f* = {np.median(run.gap):.2g} here."
    reason = (
        "Saga: a node keeps a number for each of its rows and classes, the token carries the sum "
        "of gradients beside the model, and so the model arrives at the minimiser, where SGD only "
        "comes near. It finds its step itself, and the uniform walk will do, which tells degrees "
        f"only.{tried} It tells neighbours a curvature beside the model, so under ε it is SGD."
    )
    step = advice.step_size or f"the step {advice.step_source}"
    instead = f"Without memory, by SGD, it would be {advice.walk!r} with {step}, as follows."
    about_laziness, *others = advice.reasons
    reasons = (about_laziness, reason, instead, *others)
    return replace(
        advice, walk=walk, step_size=None, update=update, without_memory=advice, reasons=reasons
    )


def _facts_of(
    problem: Problem | None,
    loss: Loss,
    objective: Objective,
    intercept: bool,
    features: int | None,
    total_rows: int | None,
) -> dict[str, Any]:
    """What `allot` has to know of the problem, or of what is public about it."""
    if problem is not None:
        loss, objective = problem.loss, problem.objective
        rows = float(problem.total_rows)
        return {"loss": loss, "size": problem.size, "rows": rows, "objective": objective}
    if features is None:
        raise ValueError(
            "what ε costs depends on how many numbers the model has: pass features, how many a row "
            "has, or a problem."
        )
    size = (features + bool(intercept)) * int(getattr(loss, "classes", None) or 1)
    return {"loss": loss, "size": size, "rows": total_rows, "objective": objective}


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


def _finite_or_none(number: float) -> float | None:
    return float(number) if math.isfinite(number) else None
