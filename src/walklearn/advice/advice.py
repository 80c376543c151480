"""`Advice`, and the one function that gives it."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np

from walklearn.graphs import Graph
from walklearn.privacy.bounds import smoothness_bounds
from walklearn.privacy.comparison import Comparison, compare
from walklearn.privacy.mechanisms import Mechanism
from walklearn.problem import Objective, Problem
from walklearn.problem.losses import Logistic, Loss
from walklearn.updates.step_sizes import StepSize
from walklearn.walks import Uniform, Walk
from walklearn.walks.disclosure import mechanism_of

Mode = Literal["public", "simulation"]

LAZINESS = 0.1


@dataclass(frozen=True)
class Candidate:
    """A walk that was considered, and its numbers; NaN where one is not known.

    In "public" mode they are those of the theorems, for constants L_i spread evenly over the public
    bounds; in "simulation" mode those of runs with the step constant that suited the walk best.
    """

    name: str
    walk: Walk
    numbers: dict[str, float]


@dataclass(frozen=True)
class Advice:
    """What to do, and why. Print it.

    mode: "public", or "simulation" if the data were looked at: then the advice itself is not
    private. step_size is None where nothing public bounds the smoothness.
    """

    mode: Mode
    walk: Walk
    step_size: StepSize | None
    reasons: tuple[str, ...]
    candidates: tuple[Candidate, ...]
    comparison: Comparison | None = None

    @property
    def mechanism(self) -> Mechanism | None:
        """What to release the constants with; None where nothing need be released."""
        return mechanism_of(self.walk)

    @property
    def laziness(self) -> float:
        """The probability of staying put before anything is proposed."""
        return float(getattr(self.walk, "laziness", 0.0))

    @property
    def headline(self) -> str:
        """What the advice rests on."""
        if self.mode == "public":
            return "From public facts only: no data were looked at."
        return "From simulations on the data: it depends on them, so it is not private."

    def to_dict(self) -> dict[str, Any]:
        """Plain JSON values; numbers that are not finite become null."""
        return {
            "mode": self.mode,
            "private": self.mode == "public",
            "walk": self.walk.name,
            "mechanism": None if self.mechanism is None else self.mechanism.name,
            "laziness": self.laziness,
            "step_constant": None if self.step_size is None else self.step_size.constant,
            "step_exponent": None if self.step_size is None else self.step_size.exponent,
            "reasons": list(self.reasons),
            "candidates": [
                {"name": each.name}
                | {name: _plain(number) for name, number in each.numbers.items()}
                for each in self.candidates
            ],
        }

    def __str__(self) -> str:
        lines = [
            self.headline,
            f"  walk       {self.walk!r}",
            f"  mechanism  {'none' if self.mechanism is None else self.mechanism}",
            f"  step size  {'left to the training' if self.step_size is None else self.step_size}",
        ]
        return "\n".join([*lines, *(f"- {reason}" for reason in self.reasons)])


def advise(
    graph: Graph,
    problem: Problem | None = None,
    *,
    epsilon: float | None = None,
    delta: float | None = None,
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
    """Recommend a walk, a mechanism, a laziness and a step size.

    graph: who can talk to whom. problem: simulate on it; without it only public facts are used.
    epsilon, delta, feature_bound: the privacy asked for, and the public bound on ‖x‖ that it
    needs. loss, penalty, objective, intercept, max_rows, total_rows: what is public of the
    problem; `problem` brings its own loss, penalty, objective and numbers of rows. lower: a
    public lower bound of L_i, where there is neither penalty nor intercept.
    steps, replicates: of the simulations.
    """
    if (epsilon is None) != (delta is None):
        given, other = ("epsilon", "delta") if delta is None else ("delta", "epsilon")
        raise ValueError(
            f"{given} was given without {other}: privacy is a pair, such as epsilon=3.0, "
            "delta=0.03."
        )
    if epsilon is not None and feature_bound is None:
        raise ValueError(
            "privacy needs a public bound on the length of a row: pass feature_bound, the largest "
            "‖x‖ that any row could have. One taken from the data would leak."
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

        return advise_from_public_facts(
            graph, loss or Logistic(), penalty, bounds, comparison, seed
        )
    from walklearn.advice.simulated import advise_by_simulation

    return advise_by_simulation(graph, problem, comparison, steps, replicates, seed)


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


def _plain(number: float) -> float | None:
    return float(number) if math.isfinite(number) else None
