"""Advice from trying: every walk on the user's data, with the step constant that suits it best.

Step constants are tuned on seeds of their own. Then all walks run from the same seeds, and a
weighted walk is advised only if the mean gap f(w̄) − f* it leaves, w̄ being the average over the
second half of the updates, is smaller than the uniform walk's beyond doubt: the 95 % interval of
their ratio (bootstrap over pairs of runs) lies below 1. The uniform walk releases nothing, so it
is the one that is advised in a tie.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from walklearn import theory
from walklearn.advice.advice import Advice, Candidate, choose_laziness
from walklearn.files.wording import plural
from walklearn.graphs import Graph
from walklearn.privacy.comparison import Comparison
from walklearn.privacy.printing import format_claim
from walklearn.problem import Problem
from walklearn.simulation import simulate
from walklearn.simulation.intervals import Interval, plain_ratio_of_means
from walklearn.updates.step_choice import best_step, choose_step
from walklearn.updates.step_sizes import PowerStep
from walklearn.walks import Uniform, Walk, Weighted
from walklearn.walks.walk import Vector

MULTIPLES = (0.03, 0.1, 0.3, 1.0, 3.0, 10.0, 30.0)  # of the constant that a training would take
TUNING_RUNS = 4
MECHANISMS_TRIED = 2
SMALL_WORK = 10_000_000  # numbers that a simulation moves


def advise_by_simulation(
    graph: Graph,
    problem: Problem,
    comparison: Comparison | None,
    steps: int,
    replicates: int,
    seed: int,
) -> Advice:
    """Try the uniform walk, the weighted walk, and with privacy its best private kinds."""
    laziness, about_laziness = choose_laziness(graph)
    tuning, running = np.random.SeedSequence(seed).spawn(2)
    tried = [
        _try(name, walk, problem, graph, steps, replicates, tuning, running)
        for name, walk in _walks(laziness, comparison).items()
    ]
    uniform, others = tried[0], tried[1:]
    allowed = [each for each in others if comparison is None or each.walk.is_private]
    best = min(allowed, key=lambda each: each.mean, default=None)
    ratio = None if best is None else plain_ratio_of_means(best.gaps, uniform.gaps, seed)
    chosen = best if best is not None and ratio is not None and ratio.upper < 1.0 else uniform
    reasons = (
        about_laziness,
        _about_walk(uniform, best, ratio, comparison),
        f"Step constant {chosen.step_size.constant:.3g}: the best of {len(MULTIPLES)} for "
        f"this walk, tuned on other seeds; {plural(steps, 'update')}, {plural(replicates, 'run')}.",
        *_cautions(graph, problem, chosen.walk),
    )
    candidates = tuple(Candidate(each.name, each.walk, each.numbers) for each in tried)
    return Advice("simulation", chosen.walk, chosen.step_size, reasons, candidates, comparison)


@dataclass(frozen=True, eq=False)
class _Tried:
    """A walk, its tuned step size, and the gap that each of its runs left."""

    name: str
    walk: Walk
    step_size: PowerStep
    gaps: Vector
    numbers: dict[str, float]

    @property
    def mean(self) -> float:
        return float(self.gaps.mean())


def _walks(laziness: float, comparison: Comparison | None) -> dict[str, Walk]:
    """The uniform walk first; then the weighted one, and with privacy its best private kinds."""
    walks: dict[str, Walk] = {"uniform": Uniform(laziness=laziness)}
    walks["weighted, in the clear"] = Weighted(laziness=laziness)
    for row in () if comparison is None else comparison.rows[:MECHANISMS_TRIED]:
        if row.mechanism is not None:
            walks[f"weighted, {row.kind}"] = Weighted(privacy=row.mechanism, laziness=laziness)
    return walks


def _try(
    name: str,
    walk: Walk,
    problem: Problem,
    graph: Graph,
    steps: int,
    replicates: int,
    tuning: np.random.SeedSequence,
    running: np.random.SeedSequence,
) -> _Tried:
    first = choose_step(problem, graph, walk.realise(graph, problem, np.random.default_rng(tuning)))
    step_sizes = [PowerStep(first.constant * each, first.exponent) for each in MULTIPLES]
    means = [
        float(_run(problem, graph, walk, steps, each, TUNING_RUNS, tuning)[0].mean())
        for each in step_sizes
    ]
    step_size = best_step(step_sizes, means)
    gaps, messages = _run(problem, graph, walk, steps, step_size, replicates, running)
    diagnosis = theory.diagnose(graph, problem, walk)
    numbers = {
        "step constant": step_size.constant,
        "gap": float(gaps.mean()),
        "messages": messages,
        "spectral gap": diagnosis.spectral_gap,
        "acceptance": diagnosis.acceptance_rate,
    }
    return _Tried(name, walk, step_size, gaps, numbers)


def _run(
    problem: Problem,
    graph: Graph,
    walk: Walk,
    steps: int,
    step_size: PowerStep,
    replicates: int,
    seed: np.random.SeedSequence,
) -> tuple[Vector, float]:
    """The gap that each run leaves, infinite where it diverged, and the messages of a run.

    The average of the second half, which predicts after a training, follows from the averages
    of all and of the first half: the same seed walks the same way.
    """
    # For little work threads cost more than they bring.
    cores = 1 if steps * replicates * problem.size < SMALL_WORK else None
    half, whole = (
        simulate(
            problem, graph, walk, steps=count, step_size=step_size, replicates=replicates,
            seed=seed, records=1, gaps=False, progress=False, cores=cores,
        )
        for count in (max(1, steps // 2), steps)
    )  # fmt: skip
    sums = np.cumsum(step_size(np.arange(1, steps + 1)))
    before, total = sums[half.updates[-1] - 1], sums[-1]
    with np.errstate(over="ignore", invalid="ignore"):
        tails = (total * whole.averages - before * half.averages) / (total - before)
        gaps = np.array([problem.value(tail) for tail in tails]) - problem.optimum.value
    # Rounding must leave something to divide by.
    positive = np.maximum(gaps, np.finfo(np.float64).tiny)
    return np.where(np.isfinite(gaps), positive, math.inf), float(whole.messages[:, -1].mean())


def _cautions(graph: Graph, problem: Problem, walk: Walk) -> list[str]:
    """What theory warns of, but for the domain, which is not up for advice."""
    warnings = theory.diagnose(graph, problem, walk).warnings
    return [warning for warning in warnings if not warning.startswith("The domain")]


def _about_walk(
    uniform: _Tried,
    best: _Tried | None,
    ratio: Interval | None,
    comparison: Comparison | None,
) -> str:
    if best is None or ratio is None:
        assert comparison is not None
        return (
            f"Uniform: no mechanism reaches {format_claim(comparison.epsilon, comparison.delta)}. "
            f"{comparison.rows[0].reason}"
        )
    facts = (
        f'the walk "{best.name}" leaves {ratio.value:.3g} times the gap of the uniform one (95 % '
        f"interval {ratio.lower:.3g} to {ratio.upper:.3g}; {best.mean:.3g} against "
        f"{uniform.mean:.3g})"
    )
    if ratio.upper < 1.0:
        return f"Weighted: {facts}."
    if comparison is not None:
        return (
            f"Uniform: privacy costs more than weighting gains, as {facts}. The uniform walk "
            "releases nothing."
        )
    return f"Uniform: {facts}, and the uniform walk tells nobody its L_i."
