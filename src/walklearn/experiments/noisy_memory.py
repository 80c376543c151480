"""Updates with noise on the model that exist only to show what memory gains under noise: nothing.

Everywhere else memory and noise on the model are refused together. Here both arms show the same:
at a visit the node clips the gradient of each of its rows, adds Gaussian noise, and releases

    g̃_i = c_i (Σ_r clip(∇ℓ_r(w)) + σ N(0, I)),

at most `contributions` times, with σ calibrated to (ε, δ) by `privacy.ModelNoise`. All else is made
of what was released, so the arms are private alike:

    noisy-sgd    w ← Π(w − γ_k (g̃_i + λw))
    noisy-saga   w ← Π(w − γ_k (g̃_i − h_i + s/n + λw)),  s += g̃_i − h_i,     h_i = g̃_i

Past its cap a node releases nothing new. Without memory it lets w be; with memory it lends its last
h_i again, which is to the advantage of memory. The step is given: one that looks for L̂ in the rows
would not be private.

**They protect nobody.** The noise is a normal number that follows from the node's rows and the
number of the update, so that a study is reproducible, and all arms meet the same.

>>> import walklearn as wl
>>> X, y = wl.datasets.two_gaussians(40, dimension=2, seed=1)
>>> problem = wl.Problem(X, y, penalty=0.1, aggregate="mean", node_of_row=np.arange(40) % 4)
>>> update = NoisySaga(3.0, 1e-5, clip=1.0, contributions=5, step_size=wl.PowerStep(0.3))
>>> run = wl.simulate(problem, wl.graphs.complete(4), wl.walks.Uniform(), update=update, steps=30,
...                   seed=1, engine="reference", progress=False)
>>> round(update.noise.epsilon(1e-5), 6), run.gap.shape
(3.0, (1, 30))
"""

from __future__ import annotations

import hashlib
from abc import abstractmethod
from dataclasses import dataclass
from functools import lru_cache
from typing import TYPE_CHECKING, Any, ClassVar, NamedTuple

import numpy as np
from numpy.typing import NDArray

from walklearn.privacy import ModelNoise
from walklearn.problem import Problem
from walklearn.studies import register_update
from walklearn.updates import Remembering, StepSize, Visited

if TYPE_CHECKING:
    from walklearn.updates.walk_sgd import Token

Array = NDArray[Any]


def register() -> None:
    """Let studies name these updates."""
    for kind in ("Sgd", "Saga"):
        register_update(f"noisy-{kind.lower()}", f"{__name__}:Noisy{kind}")


class ReleasedMemory(NamedTuple):
    """What the token carries beside w."""

    gradient_sum: Array  # s = Σ h_i
    nodes: int = 0  # n, of those that released something


class Released(NamedTuple):
    """What a node keeps: h_i, which it released last, and how often it released something."""

    gradient: Array
    times: int = 0


@dataclass(frozen=True)
class _Noisy(Remembering):
    """Shared by both updates: all but the direction of the step.

    epsilon, delta: of all that a node releases, for one of its rows. clip: C, of a row's gradient.
    contributions: how often a node releases something. step_size: γ_k.
    """

    epsilon: float
    delta: float
    clip: float
    contributions: int
    step_size: StepSize

    @property
    def noise(self) -> ModelNoise:
        """Calibrated for all contributions of a node together."""
        return _calibrated(self.epsilon, self.delta, self.clip, self.contributions)

    def token_bytes(self, problem: Problem) -> int:
        """The bytes of w, s and n."""
        return problem.model_bytes + 8 * (problem.size + 1)

    def node_bytes(self, problem: Problem) -> NDArray[np.int64]:
        """The bytes of h_i and of how often the node released something."""
        return np.full(problem.nodes, 8 * (problem.size + 1), dtype=np.int64)

    def begin(self, problem: Problem) -> ReleasedMemory:
        """What the token carries before any node has released something."""
        return ReleasedMemory(np.zeros(problem.size))

    def unvisited(self, problem: Problem, node: int) -> Released:
        """What a node keeps before it has released something."""
        return Released(np.zeros(problem.size))

    def visit(self, problem: Problem, token: Token, kept: Any, uniforms: Array) -> Visited:
        """Release the noisy gradient, step by what was released, and remember it."""
        w, memory, k = token.model, token.memory, token.updates + 1
        released = self._released(problem, token.node, w, k, kept)
        s, n = memory.gradient_sum, memory.nodes + (kept.times == 0)
        direction = self._direction(released, kept, s, n) + problem.penalty * w
        gamma = self.step_size(k) * self._moves(released, kept)
        carried = ReleasedMemory(s + released.gradient - kept.gradient, n)
        token = token._replace(
            model=problem.domain.project(w - gamma * direction), updates=k, memory=carried
        )
        return Visited(token, released, gamma, direction)

    def _released(self, problem: Problem, node: int, w: Array, k: int, kept: Released) -> Released:
        """What the node releases at this visit: g̃_i, and past the cap what it released last."""
        if kept.times == self.contributions:
            return kept
        noisy = self.noise.protected(problem, node, w, normal=_normal(problem, node, k))
        return Released(noisy, kept.times + 1)

    def _moves(self, released: Released, kept: Released) -> bool:
        """Whether the visit moves w."""
        return True

    @abstractmethod
    def _direction(self, released: Released, kept: Released, s: Array, n: int) -> Array:
        """The direction of the step, without the penalty's part λw."""


@dataclass(frozen=True)
class NoisySgd(_Noisy):
    """The paper's update with noise on the model."""

    name: ClassVar[str] = "noisy-sgd"

    def _moves(self, released: Released, kept: Released) -> bool:
        return released is not kept

    def _direction(self, released: Released, kept: Released, s: Array, n: int) -> Array:
        return released.gradient


@dataclass(frozen=True)
class NoisySaga(_Noisy):
    """SAGA of what was released; at its first visit a node has s/n in place of h_i."""

    name: ClassVar[str] = "noisy-saga"

    def _direction(self, released: Released, kept: Released, s: Array, n: int) -> Array:
        if kept.times == 0:
            return released.gradient
        return np.asarray(released.gradient - kept.gradient + s / n)


@lru_cache(maxsize=64)
def _calibrated(epsilon: float, delta: float, clip: float, contributions: int) -> ModelNoise:
    return ModelNoise.calibrate(
        epsilon=epsilon, delta=delta, clip=clip, max_contributions=contributions
    )


def _normal(problem: Problem, node: int, k: int) -> Array:
    """Normal numbers that follow from the node's rows and the number of the update."""
    rows = problem.rows_of(node)
    seed = hashlib.sha256(np.ascontiguousarray(rows.X).tobytes() + k.to_bytes(8, "big")).digest()
    return np.random.default_rng(int.from_bytes(seed, "big")).standard_normal(problem.size)
