"""What an observer of tokens learns: a node's row, up to its length.

The paper shares the model in the clear. Whoever sees it before and after a visit knows

    (w − w') / γ = scale_i · (∇ of the rows of i + λw),

and everything in it is public but the rows' gradient, which for one row is a multiple of x_i.
So two consecutive models give away the direction of the row. With several visits the observer
adds the estimates up. `attack` plays that observer in a simulation; with `ModelNoise` the
estimates drown in noise.

>>> import walklearn as wl
>>> X, y = wl.datasets.two_gaussians(20, dimension=5, seed=1)
>>> problem = wl.Problem(X, y, penalty=1.0)
>>> print(attack(problem, wl.graphs.ring(20), wl.walks.Uniform(), wl.PowerStep(0.01), steps=200))
20 of 20 rows recovered (|cosine| > 0.99); median |cosine| 1.000, by chance 0.35
"""

from __future__ import annotations

from dataclasses import dataclass
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
    """The absolute cosine of the guess and the true row, for each node that was visited.

    Parameters
    ----------
    nodes
        The nodes that were visited.
    cosines
        The absolute cosine for each of them; 1 is the row itself.
    guesses
        The guessed direction of each row.
    by_chance
        The median absolute cosine of a guess at random.

    Examples
    --------
    >>> from walklearn import PowerStep, Problem, graphs, losses, walks
    >>> problem = Problem(np.eye(4), [1.0, -1.0, 1.0, -1.0], loss=losses.Logistic())
    >>> found = attack(problem, graphs.ring(4), walks.Uniform(), PowerStep(1.0), steps=50)
    >>> found.recovered, round(float(found.cosines.min()), 6)
    (4, 1.0)
    """

    nodes: NDArray[np.int64]
    cosines: NDArray[np.float64]
    guesses: NDArray[np.float64]
    by_chance: float

    @property
    def recovered(self) -> int:
        """How many rows were found, up to their length and sign."""
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
    """Walk, and guess each visited node's row from the tokens before and after its visits.

    The observer knows the plan (step size, penalty, domain) and the scale of each node's step:
    it is 1 for the uniform walk, and follows from what is released for the weighted one. Steps
    that the projection onto W has bent, and visits past the cap, are left out.

    Parameters
    ----------
    problem
        What is minimised.
    graph
        Who can talk to whom.
    walk
        Who is next.
    step_size
        The step γ_k of the k-th update.
    steps
        How many updates to observe.
    privacy
        The protection of the rows, such as `privacy.ModelNoise`.
    seed
        The seed of the walk and the noise.

    Returns
    -------
    Attack
        How well each visited node's row was guessed.

    Examples
    --------
    >>> import walklearn as wl
    >>> X, y = wl.datasets.two_gaussians(10, dimension=3, seed=1)
    >>> problem = wl.Problem(X, y, penalty=1.0)
    >>> seen = attack(problem, wl.graphs.complete(10), wl.walks.Uniform(), wl.PowerStep(0.05), 200)
    >>> seen.recovered
    10
    """
    if problem.outputs != 1 or (np.diff(problem.offsets) != 1).any():
        raise ValueError("the attack is shown for one row per node and one score per row.")
    generator, protection = np.random.default_rng(seed), privacy or Protection()
    realised = draw_walk(walk, graph, problem, generator).bind(graph, problem)
    setting = Setting(problem, realised, Sgd(step_size), privacy=protection)
    without_domain = problem._changed(domain=Everywhere())
    anywhere = Setting(without_domain, realised, Sgd(step_size), privacy=protection)
    evidence = np.zeros((problem.nodes, problem.dimension))
    node, model = draw_start(problem, generator)
    walker = Walker(setting, graph, node, init_token(setting, model))
    for _ in range(steps):
        i, token, states = walker.node, walker.token, dict(walker.states)
        noise = protection.draw_noise(1, problem.size, generator)
        draws = Draws(generator.random(realised.draws), np.zeros((1, 0)), noise)
        _, weight = walker.visit(draws)
        free = Walker(anywhere, graph, i, token, states)
        free.visit(draws)
        before, after = token.update["model"], walker.token.update["model"]
        # Visits past the public cap leave the model unchanged, and a projection bends the step.
        if (before != after).any() and (free.token.update["model"] == after).all():
            moved = (before - after) / step_size(token.updates + 1)
            evidence[i] += moved / weight - problem.penalty * before
    visited = np.flatnonzero(evidence.any(axis=1))
    cosines = _cosines(evidence[visited], problem.dense_rows(visited))
    return Attack(visited, cosines, evidence[visited], _cosine_by_chance(problem.dimension))


def _cosines(guesses: NDArray[Any], rows: NDArray[Any]) -> NDArray[np.float64]:
    lengths = np.linalg.norm(guesses, axis=1) * np.linalg.norm(rows, axis=1)
    return np.asarray(np.abs(np.einsum("na,na->n", guesses, rows)) / np.maximum(lengths, 1e-300))


def _cosine_by_chance(dimension: int) -> float:
    """The median |cosine| of a direction and a uniform guess: cos² ~ Beta(½, (d − 1)/2)."""
    from scipy.special import betaincinv

    return float(np.sqrt(betaincinv(0.5, (dimension - 1) / 2, 0.5))) if dimension > 1 else 1.0
