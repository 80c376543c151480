"""An observer of tokens, who learns the direction of each node's row.

Without protection the model is public. An observer of the model before and after a visit knows

    (w − w') / γ = scale_i · (∇ of the rows of i + λw),

where everything but the gradient is public. The gradient of one row is a multiple of x_i. Two
consecutive models therefore reveal the direction of the row, and the estimates of several visits
are added up. `attack` simulates this observer. With `ModelNoise` the noise hides the row.

>>> import walklearn as wl
>>> X, y = wl.datasets.two_gaussians(20, dimension=5, seed=1)
>>> problem = wl.Problem(X, y, penalty=1.0)
>>> print(attack(problem, wl.graphs.ring(20), wl.walks.Uniform(), wl.PowerStep(0.01), steps=200))
20 of 20 rows recovered (|cosine| > 0.99); median |cosine| 1.000, by chance 0.35
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from walklearn.graphs import Graph
from walklearn.objectives import Problem
from walklearn.objectives.linear.domains import Everywhere
from walklearn.privacy.protection import Protection
from walklearn.streams import draw_start
from walklearn.updates.sgd import Sgd
from walklearn.updates.step_sizes import StepSize
from walklearn.visit import Draws, Setting, Walker, init_token
from walklearn.walks import Walk
from walklearn.walks.walk import draw_walk

RECOVERED = 0.99


@dataclass(frozen=True, eq=False)
class Attack:
    """Result of `attack`, for the visited nodes.

    Parameters
    ----------
    nodes, guesses
        The visited nodes, and the guessed direction of the row of each.
    cosines
        The absolute cosine of each guess and the true row; 1 means a recovered row.
    by_chance
        The median absolute cosine of a random guess.
    """

    nodes: NDArray[np.int64]
    cosines: NDArray[np.float64]
    guesses: NDArray[np.float64]
    by_chance: float

    @property
    def recovered(self) -> int:
        """The number of recovered rows, up to their length and sign."""
        return int((self.cosines > RECOVERED).sum())

    def __str__(self) -> str:
        return (
            f"{self.recovered} of {len(self.nodes)} rows recovered (|cosine| > {RECOVERED}); "
            f"median |cosine| {np.median(self.cosines):.3f}, by chance {self.by_chance:.2f}"
        )


def attack(
    problem: Problem,
    graph: Graph,
    walk: Walk,
    step_size: StepSize,
    steps: int,
    privacy: Protection | None = None,
    seed: int | np.random.SeedSequence | None = 0,
) -> Attack:
    """Simulate a walk, and guess each visited node's row from the models around its visits.

    The observer knows the plan (step size, penalty, domain) and the weight of each visit. Steps
    that the projection onto W has changed, and visits past the cap, are ignored.

    Parameters
    ----------
    problem, graph, walk
        The objective, the communication graph, and the rule for the next node.
    step_size, steps
        The step γ_k of the k-th update, and the number of updates to observe.
    privacy, seed
        A protection such as `privacy.ModelNoise`, and the seed of the walk and the noise.

    Returns
    -------
    Attack
        The guesses and their quality.
    """
    if problem.outputs != 1 or (np.diff(problem.offsets) != 1).any():
        raise ValueError("the attack needs a problem with one row per node and one score per row.")
    generator, protection = np.random.default_rng(seed), privacy or Protection()
    bound_walk = draw_walk(walk, graph, problem, generator).bind(graph, problem)
    setting = Setting(problem, bound_walk, Sgd(step_size), privacy=protection)
    unprojected_setting = replace(setting, objective=problem._copy_with(domain=Everywhere()))
    evidence = np.zeros((problem.nodes, problem.dimension))
    node, model = draw_start(problem, generator)
    walker = Walker(setting, graph, node, init_token(setting, model))
    for _ in range(steps):
        i, token = walker.node, walker.token
        unprojected = Walker(unprojected_setting, graph, i, token, dict(walker.states))
        noise = protection.draw_noise(1, problem.size, generator)
        draws = Draws(generator.random(bound_walk.draws), np.zeros((1, 0)), noise)
        _, weight = walker.visit(draws)
        unprojected.visit(draws)
        before, after = token.update["model"], walker.token.update["model"]
        # Visits past the public cap leave the model unchanged, and a projection changes the step.
        if (before != after).any() and (unprojected.token.update["model"] == after).all():
            move = (before - after) / step_size(token.updates + 1)
            evidence[i] += move / weight - problem.penalty * before
    visited = np.flatnonzero(evidence.any(axis=1))
    cosines = _cosines(evidence[visited], problem.dense_rows(visited))
    return Attack(visited, cosines, evidence[visited], _cosine_by_chance(problem.dimension))


def _cosines(guesses: NDArray[Any], rows: NDArray[Any]) -> NDArray[np.float64]:
    lengths = np.linalg.norm(guesses, axis=1) * np.linalg.norm(rows, axis=1)
    return np.asarray(np.abs(np.einsum("na,na->n", guesses, rows)) / np.maximum(lengths, 1e-300))


def _cosine_by_chance(dimension: int) -> float:
    """Return the median |cosine| of a direction and a uniform one: cos² ~ Beta(½, (d − 1)/2)."""
    from scipy.special import betaincinv

    return float(np.sqrt(betaincinv(0.5, (dimension - 1) / 2, 0.5))) if dimension > 1 else 1.0
