"""Updates with noise on the model, only to show that memory gains nothing under noise.

Elsewhere, memory with noise on the model is refused. At a visit the node clips the gradient of
each of its rows, adds Gaussian noise, and releases

    g̃_i = c_i (Σ_r clip(∇ℓ_r(w)) + σ N(0, I)),

at most `contributions` times, with σ calibrated to (ε, δ) by `privacy.ModelNoise`. Both updates use
only these releases, so they are equally private:

    noisy-sgd    w ← Π(w − γ_k (g̃_i + λw))
    noisy-saga   w ← Π(w − γ_k (g̃_i − h_i + s/n + λw)),  s += g̃_i − h_i,     h_i = g̃_i

After that a node releases nothing new. Without memory it leaves w unchanged; with memory it uses
its last h_i again, which favours memory. The step size is given: one computed from the rows would
not be private.

**They do not protect rows.** The noise is computed from the node's rows and the number of the
update. So a study is reproducible, and all updates get the same noise.
"""

from __future__ import annotations

import hashlib
from functools import lru_cache
from typing import Any, ClassVar

import numpy as np

from walklearn.arrays import Array, Arrays, ArraySpec, Specs
from walklearn.objectives import Problem
from walklearn.privacy import ModelNoise
from walklearn.updates import StepSize, Update, VisitContext, VisitResult


class NoisySgd(Update):
    """The paper's update with noise on the model.

    epsilon, delta: of all releases of a node, for one row. clip: C, of a row's gradient.
    contributions: number of releases of a node. step_size: γ_k.
    """

    epsilon: float
    delta: float
    clip: float
    contributions: int
    step_size: StepSize
    name: ClassVar[str] = "noisy-sgd"

    @property
    def noise(self) -> ModelNoise:
        """Calibrated for all contributions of a node together."""
        return _calibrated(self.epsilon, self.delta, self.clip, self.contributions)

    def token_arrays(self, objective: Any, tokens: int = 1) -> Specs:
        """w, s = Σ h_i and n, the number of nodes that released something."""
        model = super().token_arrays(objective, tokens)
        return (*model, ArraySpec("gradient_sum", (objective.size,)), ArraySpec("nodes"))

    def node_arrays(self, objective: Any, node: int, tokens: int = 1) -> Specs:
        """h_i, the last release, and the number of releases."""
        return ArraySpec("gradient", (objective.size,)), ArraySpec("times", (), "<i8")

    def visit(self, context: VisitContext, token: Arrays, state: Arrays) -> VisitResult:
        """Release the noisy gradient, step by the release, and store it."""
        problem, w, k = context.objective, token["model"], context.updates + 1
        released, s = self._release(problem, context.node, w, k, state), token["gradient_sum"]
        n = token["nodes"] + (state["times"] == 0)
        direction = self._direction(released, state, s / max(float(n), 1.0))
        if direction is not None:
            w = problem.project(w - self.step_size(k) * (direction + problem.penalty * w))
        s = s + released["gradient"] - state["gradient"]
        return VisitResult({"model": w, "gradient_sum": s, "nodes": n}, released)

    def _release(self, problem: Problem, node: int, w: Array, k: int, state: Arrays) -> Arrays:
        """The release of this visit; the last one again after `contributions` releases."""
        if state["times"] == self.contributions:
            return state
        noisy = self.noise.protected(problem, node, w, normal=_normal(problem, node, k))
        return {"gradient": noisy, "times": state["times"] + 1}

    def _direction(self, released: Arrays, state: Arrays, mean: Array) -> Array | None:
        """The direction of the step without λw, or None for no step; mean: s/n."""
        return None if released is state else released["gradient"]


class NoisySaga(NoisySgd):
    """SAGA of the releases; at its first visit a node has s/n in place of h_i."""

    name: ClassVar[str] = "noisy-saga"

    def _direction(self, released: Arrays, state: Arrays, mean: Array) -> Array:
        if state["times"] == 0:
            return released["gradient"]
        return np.asarray(released["gradient"] - state["gradient"] + mean)


@lru_cache(maxsize=64)
def _calibrated(epsilon: float, delta: float, clip: float, contributions: int) -> ModelNoise:
    return ModelNoise.calibrate(
        epsilon=epsilon, delta=delta, clip=clip, max_contributions=contributions
    )


def _normal(problem: Problem, node: int, k: int) -> Array:
    """Return normal numbers that follow from the node's rows and the number of the update."""
    rows = problem.X[problem.rows_of(node)]
    seed = hashlib.sha256(np.ascontiguousarray(rows).tobytes() + k.to_bytes(8, "big")).digest()
    return np.random.default_rng(int.from_bytes(seed, "big")).standard_normal(problem.size)
