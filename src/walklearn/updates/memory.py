"""SAGA on a walk: nodes and the token keep gradients, and w converges to the minimiser.

Write f_i = φ_i + (λ/2)‖w‖². Node i keeps h_i, the gradient ∇φ_i of its last visit (0 before the
first); the token carries w and s = Σ h_i over the n nodes visited. At node i, with g = ∇φ_i(w):

    w ← Π(w − γ((g − h_i) + s/n + λw)),  then  s += g − h_i,   h_i = g

At its first visit a node has no h_i yet, and s/n takes its place, the best estimate known:
w − γ(g + λw). Since ∇ℓ = slope · x, what a node keeps of h_i is one slope for each row (and class).

With a mini-batch B of a node's n_i rows, g − h_i is estimated by ``n_i/|B|`` Σ_B (g_r − h_r), rows
that are seen for the first time taking their share of s/n for h_r, and n counts a node by the share
of its rows that was seen. A relay, which has no rows, counts in n with its h of 0.

The step γ is found on the way (`found_step`), or given and then used as given.

(SAGA: Defazio, Bach & Lacoste-Julien, 2014; stored gradients on a Markov chain: M. Even,
*Stochastic gradient descent under Markovian sampling schemes*, ICML 2023.)

>>> import walklearn as wl
>>> X, y = wl.datasets.two_gaussians(20, dimension=3, variance=4.0, seed=1)
>>> problem = wl.Problem(X, y, penalty=1.0)
>>> run = wl.simulate(problem, wl.graphs.erdos_renyi(20, 0.4, seed=1), wl.walks.Simple(),
...                   update=wl.updates.Saga(), steps=4000, seed=1)
>>> bool(run.distance[0, -1] < 1e-6)
True
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar, NamedTuple

import numpy as np
from numpy.typing import NDArray

from walklearn.problem import Problem
from walklearn.problem.visited_rows import VisitedRows
from walklearn.updates.found_step import Pace, halving_visits, raised
from walklearn.updates.step_sizes import ConstantStep
from walklearn.updates.update import UPDATES, Remembering, Visited

if TYPE_CHECKING:
    from walklearn.updates.walk_sgd import Token

Array = NDArray[Any]
EVERY_NODE = 1.0 - 1e-9  # of N: n adds up shares of nodes


class GradientMemory(NamedTuple):
    """What the token carries beside w.

    Parameters
    ----------
    gradient_sum
        s = Σ h_i.
    pace
        n, and how often the token comes round.
    curvature
        L̂, of the φ_i; 0 until the first gradient.
    collects
        Whether w stays until every node was seen, as after the loss of what nodes keep.
    """

    gradient_sum: Array
    pace: Pace = Pace()
    curvature: float = 0.0
    collects: bool = False


class KeptSlopes(NamedTuple):
    """What a node keeps.

    Parameters
    ----------
    slopes
        One for each row and class, NaN for a row that was not seen yet.
    updated
        The number of the update of the last visit; 0 before the first.
    """

    slopes: Array
    updated: int = 0


class Looked(NamedTuple):
    """What a visit sees of the node's rows.

    Parameters
    ----------
    correction
        g − h_i, or as the mini-batch estimates it.
    change
        Of h_i: what is added to s.
    unseen
        The share of what was looked at that was not seen before.
    seen
        The share of the node that is seen now and was not before.
    kept
        What the node keeps from now on.
    """

    correction: Array
    change: Array
    unseen: float
    seen: float
    kept: KeptSlopes


@UPDATES.register
@dataclass(frozen=True, repr=False)
class Saga(Remembering):
    """Step along this node's new gradient, corrected by what it was and by the mean of all.

    Parameters
    ----------
    step_size
        γ, a `ConstantStep` or a positive number; by default it is found on the way.

    Examples
    --------
    >>> from walklearn import ConstantStep, updates
    >>> updates.Saga()
    Saga()
    >>> updates.Saga(ConstantStep(0.1))
    Saga(ConstantStep(constant=0.1))
    """

    name: ClassVar[str] = "saga"
    tells: ClassVar[str] = (
        "w and the sum of gradients before and after a visit tell the node's row, as w alone does; "
        "the curvature L̂ that the token carries tells neighbours about L_i"
    )
    step_size: ConstantStep | None = None

    def __post_init__(self) -> None:
        step_size: Any = self.step_size
        if isinstance(step_size, int | float) and not isinstance(step_size, bool):
            object.__setattr__(self, "step_size", ConstantStep(float(step_size)))
        elif step_size is not None and not isinstance(step_size, ConstantStep):
            raise ValueError(
                f"{type(self).__name__} takes a ConstantStep or none at all, got {step_size!r}: "
                "with memory the noise in the gradient vanishes by itself, and a step that "
                "shrinks would only make it slow."
            )

    def __repr__(self) -> str:
        given = "" if self.step_size is None else repr(self.step_size)
        return f"{type(self).__name__}({given})"

    def token_bytes(self, problem: Problem) -> int:
        """w, s in double precision, n, Σa, Σa² and L̂."""
        return problem.model_bytes + 8 * (problem.size + 4)

    def node_bytes(self, problem: Problem) -> NDArray[np.int64]:
        """A slope for each row and class, and the number of the last visit."""
        return np.asarray(8 * (np.diff(problem.offsets) * problem.outputs + 1), dtype=np.int64)

    def begin(self, problem: Problem, collects: bool = False) -> GradientMemory:
        """A memory without gradients. collects: let w stay until every node was seen."""
        return GradientMemory(np.zeros(problem.size), collects=collects)

    def unvisited(self, problem: Problem, node: int) -> KeptSlopes:
        """What a node keeps before its first visit: no slopes."""
        rows = int(problem.offsets[node + 1] - problem.offsets[node])
        shape = (rows,) if problem.outputs == 1 else (rows, problem.outputs)
        return KeptSlopes(np.full(shape, np.nan))

    def visit(self, problem: Problem, token: Token, kept: Any, uniforms: Array) -> Visited:
        """Look at the rows, find the step, make it, and remember, as the module says."""
        memory: GradientMemory = token.memory
        w, s, k = token.model, memory.gradient_sum, token.updates + 1
        picks = problem.drawn_rows(token.node, uniforms)
        rows = problem.rows_of(token.node, picks)
        scores = rows.scores(w).astype(np.float64)
        slopes = problem.loss.slope(scores, rows.y)
        looked = _looked(rows, picks, slopes, kept, k)

        pace = memory.pace.counted(looked.seen, k - kept.updated if kept.updated else 0)
        curvature = memory.curvature
        if self.step_size is None:
            held = kept.slopes.shape[0]
            visits = halving_visits(problem.nodes, held, len(rows.y), pace.hops)
            curvature = pace.decayed(curvature, visits)
            curvature = raised(curvature, problem.loss, rows, scores, slopes)
            gamma = pace.step(curvature + problem.penalty)
        else:
            gamma = self.step_size.constant
        if memory.collects and pace.nodes < EVERY_NODE * problem.nodes:
            gamma = 0.0

        corrected = looked.correction + (1.0 - looked.unseen) * s / pace.nodes
        direction = np.asarray(corrected) + problem.penalty * w
        moved = (w - gamma * direction).astype(w.dtype, copy=False)
        carried = GradientMemory(s + looked.change, pace, curvature, memory.collects)
        token = token._replace(model=problem.domain.project(moved), updates=k, memory=carried)
        return Visited(token, looked.kept, gamma, direction)


def _looked(
    rows: VisitedRows, picks: Array | None, slopes: Array, kept: KeptSlopes, k: int
) -> Looked:
    """What the slopes of update k say beside those that the node keeps, which they replace."""
    count = len(kept.slopes)
    places = np.arange(count) if picks is None else picks
    before = kept.slopes[places]
    first = np.isnan(before if before.ndim == 1 else before[:, 0])
    differences = slopes - np.where(np.isnan(before), 0.0, before)
    now = kept.slopes.copy()
    now[places] = slopes
    if count == 0:  # a relay: its h is 0, and known from the first visit on
        change = rows.gradient(differences)
        return Looked(change, change, 0.0, float(kept.updated == 0), KeptSlopes(now, k))
    once = np.zeros(len(places), dtype=bool)
    once[np.unique(places, return_index=True)[1]] = True  # a row that was picked twice changes once
    return Looked(
        correction=rows.share * rows.gradient(differences),
        change=rows.gradient((differences.T * once).T),
        unseen=float(first.mean()),
        seen=float(first[once].sum()) / count,
        kept=KeptSlopes(now, k),
    )
