"""The constants of the convergence theorems, and σ², the noise at the optimum."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from walklearn.objectives import Problem
from walklearn.objectives.linear.rows import scores

NUMBERS_AT_ONCE = 4_000_000  # gradient entries in memory at a time


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
        """The formulas of the three terms."""
        noise, smoothness = _FORMULAS.get(self.theorem, ("(v̄ / inf v) σ²", "(v̄ max L_i/v_i)²"))
        return noise, smoothness, "1 / ln(1/λ_P)"


_FORMULAS = {
    "Theorem 1": ("σ²", "(sup L)²"),
    "Theorem 2": ("(L̄ / inf L) σ²", "L̄²"),
    "Algorithm 3, for one draw of R": ("(R̄ / inf R) σ²", "(R̄ max L / R)²"),
}


def residual(problem: Problem, model: NDArray[np.float64]) -> float:
    """Return the mean of ‖∇f_i(w)‖² over the nodes; at w* this is σ².

    Parameters
    ----------
    problem
        The objective.
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
