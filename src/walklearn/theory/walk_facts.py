"""What is known of a walk on a problem: the facts that theory's numbers and cautions rest on."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from walklearn.arrays import Vector
from walklearn.graphs import Graph
from walklearn.objectives import Problem
from walklearn.objectives.linear.rows import scores
from walklearn.theory.spectrum import Spectrum
from walklearn.updates.step_sizes import StepSize
from walklearn.updates.update import Update
from walklearn.walks import Walk

INTERPOLATION = 1e-12  # σ² below this share of mean ‖∇f_i(0)‖² counts as none
NUMBERS_AT_ONCE = 4_000_000  # how many gradient entries are held at a time


@dataclass(frozen=True)
class Constant:
    """The constant of a convergence theorem: the largest of three terms.

    Parameters
    ----------
    theorem
        The name of the theorem.
    noise
        The term of the noise at the optimum.
    smoothness
        The term of the smoothness.
    mixing
        The term of the mixing time.

    Examples
    --------
    >>> Constant("Theorem 1", noise=2.0, smoothness=9.0, mixing=4.0).value
    9.0
    """

    theorem: str
    noise: float
    smoothness: float
    mixing: float

    @property
    def value(self) -> float:
        """The largest term; NaN if one is not known."""
        return float(np.max([self.noise, self.smoothness, self.mixing]))

    @property
    def formulas(self) -> tuple[str, str, str]:
        """How the three terms are written."""
        noise, smoothness = _FORMULAS.get(self.theorem, ("(v̄ / inf v) σ²", "(v̄ max L_i/v_i)²"))
        return noise, smoothness, "1 / ln(1/λ_P)"


_FORMULAS = {
    "Theorem 1": ("σ²", "(sup L)²"),
    "Theorem 2": ("(L̄ / inf L) σ²", "L̄²"),
    "Algorithm 3, for one draw of R": ("(R̄ / inf R) σ²", "(R̄ max L / R)²"),
}


@dataclass(frozen=True, eq=False)
class Facts:
    """What the numbers and the warnings are made from."""

    graph: Graph
    problem: Problem
    walk: Walk
    step_size: StepSize | None
    spectrum: Spectrum
    stays: Vector | None
    residual: float
    no_optimum: str
    update: Update | None = None

    @property
    def remembers(self) -> bool:
        """Whether the update has memory, so that the walk says only who is next."""
        return self.update is not None and self.update.converges

    @property
    def stationary(self) -> Vector:
        """The long-run share of the updates of each node."""
        return self.walk.stationary(self.graph, self.problem)

    @property
    def step_smoothness(self) -> Vector:
        """The Lipschitz constant of each node's step direction ĝ."""
        scale = self.walk.gradient_scale(self.graph, self.problem)
        return np.asarray(scale * self.problem.smoothness_constants)

    @property
    def noisy(self) -> bool:
        """Whether no model is best for every node (False if there is no optimum)."""
        origin = residual(self.problem, np.zeros(self.problem.size))
        return self.residual > INTERPOLATION * origin

    @property
    def unbiased(self) -> bool:
        """Whether the mean of ĝ over the visits is ∇f: its factor is v̄ / v_i."""
        if self.walk.is_biased:
            return False
        v = self.stationary
        scale = self.walk.gradient_scale(self.graph, self.problem)
        return np.allclose(scale * v, v.mean(), rtol=1e-9)

    def acceptance_rate(self) -> float:
        """The long-run share of the steps that move the token."""
        if self.walk.is_independent:
            return self.walk.acceptance_rate(self.graph, self.problem)
        if self.stays is None:
            return math.nan
        law = self.walk.matrix_walk.stationary(self.graph, self.problem)
        return float(law @ (1.0 - self.stays))

    def constant(self) -> Constant | None:
        """The theorem's constant, where one applies."""
        if not self.unbiased:
            return None
        v, L = self.stationary, self.problem.smoothness_constants
        importance = self.problem.importance
        if self.walk.innermost.release is not None:
            theorem = "Algorithm 3, for one draw of R"
        elif np.allclose(v, v[0], rtol=1e-9):
            theorem = "Theorem 1"
        elif np.allclose(v / v.mean(), importance / importance.mean(), rtol=1e-9):
            theorem = "Theorem 2"
        else:
            theorem = "Theorem 2 with importance v"
        decay = -math.log1p(-self.spectrum.gap[0] / 2.0)  # ln(1/λ_P)
        return Constant(
            theorem,
            noise=float(v.mean() / v.min()) * self.residual,
            smoothness=float(v.mean() * np.max(L / v)) ** 2,
            mixing=1.0 / decay if decay else math.inf,
        )


def residual(problem: Problem, model: NDArray[np.float64]) -> float:
    """The mean of ‖∇f_i(w)‖² over the nodes; at w* this is σ².

    Parameters
    ----------
    problem
        What is minimised.
    model
        The model w.

    Returns
    -------
    float
        The mean.

    Examples
    --------
    >>> residual(Problem([[1.0], [2.0]], [1.0, 1.0], penalty=1.0), np.zeros(1))   # 1² and 2²
    2.5
    """
    from scipy.sparse import csr_array

    w = np.asarray(model, dtype=np.float64).reshape(-1)
    slopes = problem.loss.slope(scores(problem.X, w), problem.y).reshape(problem.row_count, -1)
    slopes = slopes * problem.row_weights[:, None]
    nodes_at_once, total = max(1, NUMBERS_AT_ONCE // problem.size), 0.0
    for first in range(0, problem.nodes, nodes_at_once):
        starts = problem.offsets[first : first + nodes_at_once + 1]
        rows = slice(starts[0], starts[-1])
        shape = (len(starts) - 1, starts[-1] - starts[0])
        parts = []
        for column in slopes[rows].T:
            of_nodes = csr_array((column, np.arange(shape[1]), starts - starts[0]), shape)
            part = of_nodes @ problem.X[rows]
            parts.append(part.toarray() if problem.is_sparse else part)
        total += float(np.sum((np.hstack(parts) + problem.penalty * w) ** 2))
    return total / problem.nodes
