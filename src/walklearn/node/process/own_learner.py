"""The learner of a node: its rows, its release and its random numbers."""

from __future__ import annotations

import secrets
from typing import cast

import numpy as np
from numpy.typing import NDArray

from walklearn.node.agreement.plan import Plan
from walklearn.node.disk.directory import NodeDirectory
from walklearn.node.disk.store import Release
from walklearn.node.protocol.learner import Draws, Learner
from walklearn.node.protocol.tokens import Line
from walklearn.objectives import Problem
from walklearn.privacy.mechanisms.description import from_description
from walklearn.privacy.model_noise import ModelNoise


def own_learner(directory: NodeDirectory, release: Release) -> Learner:
    """The node's part of the learning, with what was settled when it was made."""
    rows = directory.rows
    noise = None if release.noise is None else from_description(release.noise)
    return Learner.of_plan(
        directory.plan, rows.X, rows.y, release.importance, cast(ModelNoise | None, noise),
        release.may_contribute,
    )  # fmt: skip


class Dice:
    """Random numbers for visits. Noise comes from the operating system's entropy.

    The noise has its own source, so that a choice of the walk reveals nothing about it.
    """

    def __init__(self, learner: Learner) -> None:
        self._count, self._size, self._noise = learner.draws, learner.problem.size, learner.noise
        self._remembers = learner.plan.memory is not None
        self._walk = np.random.default_rng()

    def __call__(self) -> Draws:
        """Draw the random numbers of one visit."""
        noise = None if self._noise is None else self._noise.draw(self._size)
        epoch = secrets.token_hex(16) if self._remembers else ""
        return Draws(self._walk.random(self._count), noise, epoch)


def observe_visits(
    problem: Problem, noise: ModelNoise, step: float, visits: int, walks: int
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Return the models before and after visits to a real node, for `audit_walk(engine=...)`.

    The node has a plan, the rows of node 0 and its own noise, as in a network. The observer hands
    the token back unchanged.

    Parameters
    ----------
    problem
        A problem with two classes and `aggregate="mean"`.
    noise
        The noise on what a visit adds to the model.
    step
        The step size of every update.
    visits
        The number of visits in each walk.
    walks
        The number of walks, each of which starts with w = 0 and no contributions.

    Returns
    -------
    before, after : array
        Both of shape (walks, visits, size).

    Examples
    --------
    >>> import walklearn as wl
    >>> noise = wl.privacy.ModelNoise.calibrate(
    ...     epsilon=1.0, delta=1e-5, clip=1.0, max_contributions=3)
    >>> wl.audit_walk(noise, delta=1e-5, walks=20, engine=wl.node.observe_visits).faults
    ()
    """
    plan = Plan.from_dict(
        {
            "name": "audit",
            "nodes": problem.nodes,
            "rows": problem.row_count,
            "features": [f"x{number}" for number in range(problem.dimension)],
            "target": "y",
            "classes": ["no", "yes"],
            "loss": "logistic",
            "aggregate": "mean",
            "step_size": {"constant": step, "exponent": 0.0},
            "updates": visits,
        }
    )
    rows = problem.rows_of(0)
    learner = Learner.of_plan(plan, problem.X[rows], problem.y[rows], noise=noise)
    draw, line = Dice(learner), Line(0, 1, reclaimer="0" * 64, walk="0" * 32)
    models = np.zeros((walks, visits + 1, problem.size))
    for walk in range(walks):
        token, contributions = learner.first_token(line, models[walk, 0]), 0
        for visit in range(visits):
            token, contributions, *_ = learner.visit(token, draw(), contributions)
            models[walk, visit + 1] = token.model
    return models[:, :-1], models[:, 1:]
