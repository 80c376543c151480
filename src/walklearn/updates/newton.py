"""Newton on a walk: the token carries a quadratic that lies above f, and w is its minimum.

Every row's loss, as a function of its score, lies below the parabola that touches it at the
score s of the last visit and has a curvature κ (`Loss.majorant`). Summed up in the scale of f,

    f(w) ≤ const + ½ wᵀA w − bᵀw,    A = λ + Σ_r (c_r/N) κ_r x_r x_rᵀ,
                                     b = Σ_r (c_r/N) (κ_r s_r − slope_r) x_r,

over the rows seen so far. A visit moves its own rows' parabolas to where w is now (one rank-one
change of A⁻¹ a row: Sherman & Morrison), then w minimises the whole over W. A row's second visit,
and every later one, lowers the quadratic's minimum, so nothing diverges, whoever is next, and
no step is needed. Least squares is exact once every row was seen; the other losses close in
linearly, since κ is not ℓ'' but as much larger as it takes for the parabola to stay above: that is
the damping without which the logistic loss would overshoot.

The token carries A⁻¹ and b: d(d + 3)/2 numbers, and b once for each class; a node keeps κ and
κs − slope of each row. For softmax one A serves all classes.

>>> import walklearn as wl
>>> problem = wl.Problem([[1.0, 0.0], [1.0, 1.0], [0.0, 2.0]], [1.0, 2.0, 1.0],
...                      loss=wl.losses.Squared(), penalty=0.1)
>>> run = wl.simulate(problem, wl.graphs.complete(3), wl.walks.Uniform(),
...                   update=wl.updates.Newton(), steps=10, seed=1)
>>> bool(run.distance[0, -1] < 1e-12)
True
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar, NamedTuple

import numpy as np
from numpy.typing import NDArray

from walklearn.problem import Problem
from walklearn.problem.domains import Ball, Everywhere
from walklearn.updates.sgd import picked_rows
from walklearn.updates.update import UPDATES, Remembering, Visited

if TYPE_CHECKING:
    from walklearn.updates.walk_sgd import Token

Array = NDArray[Any]

LARGEST_DIMENSION = 256  # A⁻¹ of so many features is half a megabyte in memory
MOST_ITERATIONS = 50  # of the search for a multiplier
CLOSE = 1e-14  # of the radius


class Quadratic(NamedTuple):
    """What the token carries beside w.

    Parameters
    ----------
    inverse
        A⁻¹, shape (d, d).
    right_side
        b, shape (classes, d).
    """

    inverse: Array
    right_side: Array


class KeptParabolas(NamedTuple):
    """What a node keeps.

    Parameters
    ----------
    parabolas
        κ and, for each class, κs − slope of each row, shape (rows, 1 + classes); 0 for a row that
        was not seen yet.
    """

    parabolas: Array


@UPDATES.register
@dataclass(frozen=True)
class Newton(Remembering):
    """The minimum of what all rows seen so far say, as parabolas; for few features.

    It takes no step size, needs a positive penalty, and works everywhere or in a `Ball`. With
    `Saga` the token is smaller and any domain will do.

    Examples
    --------
    >>> from walklearn import updates
    >>> updates.Newton()
    Newton()
    """

    name: ClassVar[str] = "newton"
    step_size = None
    tells: ClassVar[str] = (
        "A⁻¹ and b before and after a visit tell the node's rows with their scale and targets, "
        "more than w does"
    )

    def check(self, problem: Problem) -> None:
        """Refuse many features, no penalty, and a box."""
        if problem.dimension > LARGEST_DIMENSION:
            raise ValueError(
                f"Newton carries a matrix of {problem.dimension} × {problem.dimension} numbers "
                f"from node to node; it is for at most {LARGEST_DIMENSION} features. Use "
                "updates.Saga()."
            )
        if problem.penalty == 0:
            raise ValueError(
                "Newton needs a positive penalty: without one the quadratic of the few rows seen "
                "at first has no minimum. Use updates.Saga(), or Problem(..., penalty=…)."
            )
        if not isinstance(problem.domain, Everywhere | Ball):
            raise ValueError(
                "Newton minimises a quadratic everywhere or in a Ball, not over "
                f"{problem.domain!r}: to project its minimum would give another point. "
                "Use updates.Saga()."
            )

    def token_bytes(self, problem: Problem) -> int:
        """w, half of the symmetric A⁻¹, and b, in double precision."""
        d = problem.dimension
        return problem.model_bytes + 8 * (d * (d + 1) // 2 + problem.size)

    def node_bytes(self, problem: Problem) -> NDArray[np.int64]:
        """κ and κs − slope of each row, the latter for each class."""
        return np.asarray(8 * np.diff(problem.offsets) * (1 + problem.outputs), dtype=np.int64)

    def begin(self, problem: Problem) -> Quadratic:
        """The quadratic (λ/2)‖w‖² alone, since no node was visited."""
        d = problem.dimension
        return Quadratic(np.eye(d) / problem.penalty, np.zeros((problem.outputs, d)))

    def unvisited(self, problem: Problem, node: int) -> KeptParabolas:
        """What a node keeps before its first visit: no parabolas."""
        rows = int(problem.offsets[node + 1] - problem.offsets[node])
        return KeptParabolas(np.zeros((rows, 1 + problem.outputs)))

    def visit(self, problem: Problem, token: Token, kept: Any, uniforms: Array) -> Visited:
        """Move the rows' parabolas to w, then minimise the sum of all, as the module says."""
        picks = picked_rows(problem, token.node, uniforms)
        picks = None if picks is None else np.unique(picks)
        rows, w = problem.rows_of(token.node, picks), token.model
        scores = rows.scores(w).astype(np.float64)
        curvatures = problem.loss.majorant(scores, rows.y)
        slopes = problem.loss.slope(scores, rows.y).reshape(-1, problem.outputs)
        pulls = curvatures[:, None] * scores.reshape(-1, problem.outputs) - slopes
        parabolas = np.column_stack([curvatures, pulls])

        places = slice(None) if picks is None else picks
        now = kept.parabolas.copy()
        now[places] = parabolas
        changes = (parabolas - kept.parabolas[places]) * rows.weights[:, None] / problem.node_count
        quadratic = _moved(token.memory, changes, rows.X)
        model = _minimum(quadratic, problem.domain).reshape(-1).astype(w.dtype)
        token = token._replace(model=model, updates=token.updates + 1, memory=quadratic)
        return Visited(token, KeptParabolas(now), 1.0, w - model)


def _moved(quadratic: Quadratic, changes: Array, rows: Any) -> Quadratic:
    """The quadratic with κ and κs − slope of each row changed by so much."""
    inverse, right_side = quadratic.inverse.copy(), quadratic.right_side.copy()
    dense = np.asarray(rows.toarray() if hasattr(rows, "toarray") else rows, dtype=np.float64)
    for x, change in zip(dense, changes, strict=True):
        if change[0] != 0.0:
            v = inverse @ x
            inverse -= np.outer(v, v) * (change[0] / (1.0 + change[0] * (x @ v)))
        right_side += np.outer(change[1:], x)
    return Quadratic(inverse, right_side)


def _minimum(quadratic: Quadratic, domain: Any) -> Array:
    """The minimum of ½ wᵀA w − bᵀw over everything, or over a ball, for each class together.

    Where it is outside the ball, (A + μ)w = b with the μ for which ‖w‖ is the radius: a root of
    the concave 1/‖w(μ)‖ − 1/radius, which Newton's steps from μ = 0 reach without overshooting.
    """
    minimum = np.asarray(quadratic.right_side @ quadratic.inverse)
    if not isinstance(domain, Ball) or np.linalg.norm(minimum) <= domain.radius:
        return minimum
    lengths, directions = np.linalg.eigh(quadratic.inverse)  # of A⁻¹: 1/eigenvalues of A
    parts = quadratic.right_side @ directions
    squares = (parts**2).sum(axis=0)
    mu = 0.0
    for _ in range(MOST_ITERATIONS):
        shrunk = lengths / (1.0 + mu * lengths)
        norm = np.sqrt((squares * shrunk**2).sum())
        if norm <= domain.radius * (1.0 + CLOSE):
            break
        mu += (norm / domain.radius - 1.0) * norm**2 / (squares * shrunk**3).sum()
    return np.asarray((parts * (lengths / (1.0 + mu * lengths))) @ directions.T)
