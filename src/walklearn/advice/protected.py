"""Advice under a total ε: what follows from it for all that leaves a node, the model included.

The walk is the uniform one, which tells nothing of the rows, so that the whole budget goes to the
model; `allot` says from public facts what that takes. With data, the walk is simulated with the
noise and without it, to see what the protection costs on rows like these.
"""

from __future__ import annotations

import numpy as np

from walklearn.advice.advice import Advice, Candidate, Mode, choose_laziness
from walklearn.files.wording import plural
from walklearn.graphs import Graph
from walklearn.privacy.budget import Allotment, about_noise
from walklearn.privacy.model_noise import ModelNoise
from walklearn.privacy.printing import format_claim
from walklearn.problem import Problem
from walklearn.simulation import simulate
from walklearn.updates.step_sizes import ConstantStep
from walklearn.walks import Uniform


def advise_protected(
    graph: Graph, problem: Problem | None, allotted: Allotment, replicates: int, seed: int
) -> Advice:
    """Advise the uniform walk, with the noise that the budget asks for."""
    laziness, about_laziness = choose_laziness(graph)
    walk, step = Uniform(laziness=laziness), ConstantStep(allotted.step)
    noise = allotted.noise
    numbers = {"relative noise": allotted.relative_noise}
    candidates = [Candidate("uniform, protected", walk, numbers)]
    reasons = [
        about_laziness,
        "Uniform: it tells neighbours nothing of the rows, so the whole budget goes to the model. "
        "A weighted walk would have to release L_i out of the same budget.",
        f"Noise of {noise.noise_multiplier:.3g} times the clip {noise.clip:.3g} at each visit, and "
        f"at most {plural(noise.max_contributions, 'contribution')} of a node: together they "
        f"are within {format_claim(allotted.epsilon, allotted.delta)}. Training does all this "
        "by itself.",
        f"Step {allotted.step:.3g}, {plural(allotted.updates, 'update')}: from public facts.",
        about_noise(allotted),
    ]
    if problem is not None:
        candidates, about_data = _tried(graph, problem, walk, step, allotted, replicates, seed)
        reasons.append(about_data)
    mode: Mode = "public" if problem is None else "simulation"
    return Advice(mode, walk, step, tuple(reasons), tuple(candidates), allotment=allotted)


def _tried(
    graph: Graph,
    problem: Problem,
    walk: Uniform,
    step: ConstantStep,
    allotted: Allotment,
    replicates: int,
    seed: int,
) -> tuple[list[Candidate], str]:
    """What is left of the gap with the noise and without it, for the same number of updates."""

    def gap(noise: ModelNoise | None) -> float:
        run = simulate(
            problem, graph, walk, steps=allotted.updates, step_size=step, replicates=replicates,
            seed=seed, records=1, progress=False, model_privacy=noise,
        )  # fmt: skip
        return float(np.mean(run.average_gap[:, -1]))

    gaps = {"uniform, protected": gap(allotted.noise), "uniform, in the clear": gap(None)}
    start = problem.value(np.zeros(problem.size)) - problem.optimum.value
    candidates = [Candidate(name, walk, {"gap": left}) for name, left in gaps.items()]
    protected, clear = gaps.values()
    return candidates, (
        f"On these rows the protected walk leaves a gap f(w̄) − f* of {protected:.3g}, the same "
        f"steps without noise {clear:.3g}, and a model of zeros has {start:.3g} ({replicates} runs "
        "each)."
    )
