"""What a node learns with: its rows, what was settled when it was made, and random numbers."""

from __future__ import annotations

import secrets
from dataclasses import replace

import numpy as np

from walklearn.node.disk.directory import NodeDirectory
from walklearn.node.disk.store import Release
from walklearn.node.protocol.learner import Draws, Learner


def own_learner(directory: NodeDirectory, release: Release) -> Learner:
    """The node's part of the learning, with what was settled when it was made."""
    rows, noise = directory.rows, None
    if release.noise is not None:
        from walklearn.privacy.model_noise import ModelNoise

        parameters = {key: value for key, value in release.noise.items() if key != "kind"}
        noise = ModelNoise(**parameters)
    learner = Learner.of_plan(
        directory.plan, rows.X, rows.y, release.importance, noise, release.may_contribute
    )
    if release.mechanism is None:
        return learner
    from walklearn.privacy.description import from_description
    from walklearn.privacy.mechanism import Mechanism

    # To calibrate it anew would keep the first greeting waiting for seconds.
    mechanism = from_description(release.mechanism)
    assert isinstance(mechanism, Mechanism)
    return replace(learner, mechanism=mechanism)


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
