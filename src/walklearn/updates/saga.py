"""SAGA on a walk: nodes and token store gradients, and w converges to the minimiser.

Write f_i = φ_i + (λ/2)‖w‖². Node i stores h_i, the gradient ∇φ_i of its last visit (0 before the
first); the token carries w and s = Σ h_i over the n nodes visited. At node i, with g = ∇φ_i(w):

    w ← Π(w − γ((g − h_i) + s/n + λw)),  then  s += g − h_i,   h_i = g

At its first visit a node has no h_i yet, and s/n is the best estimate of it: w − γ(g + λw).
Since ∇ℓ = slope · x, a node stores one slope for each row (and class) instead of h_i.

With a mini-batch B of a node's n_i rows, g − h_i is estimated by ``n_i/|B|`` Σ_B (g_r − h_r). Rows
that are used for the first time take their share of s/n for h_r, and n counts a node by the share
of its rows that were used. A relay, which has no rows, counts in n with its h of 0.

The step γ is constant if it is given; otherwise a line search finds it (`line_search`).

(SAGA: Defazio, Bach & Lacoste-Julien, 2014. On a Markov chain: M. Even, *Stochastic gradient
descent under Markovian sampling schemes*, ICML 2023.)
"""

from __future__ import annotations

from typing import Any, ClassVar, NamedTuple

import numpy as np

from walklearn.arrays import Array, Arrays, ArraySpec, Specs
from walklearn.checks import is_number
from walklearn.updates.line_search import ReturnTimes, halving_visits, raise_curvature
from walklearn.updates.step_sizes import ConstantStep
from walklearn.updates.update import UPDATES, Update, VisitContext, VisitResult

ALL_NODES = 1.0 - 1e-9  # as a share of N: n adds up shares of nodes
SCALARS = ("nodes", "ages", "squared_ages", "curvature")


class RowCorrection(NamedTuple):
    """Change of a node's stored gradient in one visit.

    gradient: g, or the mini-batch's estimate of it.
    correction: g − h_i, or the mini-batch's estimate of it.
    change: the change of h_i, which is added to s.
    new_inspected: the share of the inspected rows that are used for the first time.
    new_rows: the share of the node's rows that are used for the first time.
    slopes: the new slopes of the node.
    """

    gradient: Array
    correction: Array
    change: Array
    new_inspected: float
    new_rows: float
    slopes: Array


@UPDATES.register
class Saga(Update):
    """Step along the node's new gradient, corrected by its old one and by the mean of all.

    Parameters
    ----------
    step_size
        γ, a `ConstantStep` or a positive number; by default a line search finds it.

    Examples
    --------
    >>> from walklearn import updates
    >>> updates.Saga(0.1)
    Saga(step_size=ConstantStep(constant=0.1))
    """

    name: ClassVar[str] = "saga"
    compiled: ClassVar[str | None] = "saga"
    converges: ClassVar[bool] = True
    token_disclosure: ClassVar[str] = (
        "the token carries L̂, a bound on the curvature of the nodes' rows"
    )
    uncounted: ClassVar[tuple[str, ...]] = ("collects",)  # set only after a loss
    step_size: ConstantStep | None = None

    def __post_init__(self) -> None:
        step_size: Any = self.step_size
        if is_number(step_size):
            object.__setattr__(self, "step_size", ConstantStep(float(step_size)))
        elif step_size is not None and not isinstance(step_size, ConstantStep):
            raise ValueError(
                f"{type(self).__name__} takes a ConstantStep or no step size, got {step_size!r}. "
                "With memory the noise in the gradient vanishes, so the step need not decrease."
            )

    @property
    def needs(self) -> dict[str, str]:
        """Linear rows and, for the line search, local values."""
        rows = {"linear_rows": "Use updates.Sgd(step_size)."}
        return rows if self.step_size else rows | {"local_value": "Give a step, as Saga(0.1)."}

    def token_arrays(self, objective: Any, tokens: int = 1) -> Specs:
        """w, s, n, Σa, Σa² and L̂; and whether w waits until all nodes were visited."""
        return (
            *super().token_arrays(objective, tokens),
            ArraySpec("gradient_sum", (objective.size,)),
            *map(ArraySpec, SCALARS),
            ArraySpec("collects", (), "|b1"),
        )

    def node_arrays(self, objective: Any, node: int, tokens: int = 1) -> Specs:
        """A slope for each row and class, NaN if not used yet; the number of the last update."""
        rows, x, _ = objective.linear_rows(node, ())
        outputs = objective.size // x.shape[1]
        shape = (len(rows),) if outputs == 1 else (len(rows), outputs)
        return ArraySpec("slopes", shape), ArraySpec("updated", (), "<i8")

    def restart(self, objective: Any, token: Arrays, generation: int) -> Arrays:
        """Keep the model, drop the gradients, and let w wait until every node was visited."""
        return self.init_token(objective) | {"model": token["model"], "collects": np.array(True)}

    def visit(self, context: VisitContext, token: Arrays, state: Arrays) -> VisitResult:
        """Inspect the rows, find the step, make it, and store the slopes."""
        objective, node = context.objective, context.node
        w, s, k = token["model"], token["gradient_sum"], context.updates + 1
        last_update = int(state["updated"])
        rows, x, slopes_of = objective.linear_rows(node, context.draws[0])
        row = _correction(rows, x, slopes_of(w), state["slopes"], is_first=last_update == 0)

        times = ReturnTimes(*(float(token[name]) for name in SCALARS[:3]))
        times = times.with_visit(row.new_rows, k - last_update if last_update else 0)
        curvature = float(token["curvature"])
        gamma = 0.0 if self.step_size is None else self.step_size.constant
        if self.step_size is None:
            visits = halving_visits(objective.nodes, len(row.slopes), len(rows), times.hops)
            curvature *= 2.0 ** (-times.factor / visits)
            curvature = raise_curvature(curvature, _value_of(context), w, row.gradient)
            gamma = times.step(curvature + objective.penalty)
        if token["collects"] and times.nodes < ALL_NODES * objective.nodes:
            gamma = 0.0

        mean = (1.0 - row.new_inspected) * s / times.nodes
        direction = row.correction + mean + objective.penalty * w
        new_model = (w - gamma * direction).astype(w.dtype, copy=False)
        arrays = {"model": objective.project(new_model), "gradient_sum": s + row.change}
        scalars = dict(zip(SCALARS, map(np.asarray, (*times, curvature)), strict=True))
        token_arrays: Arrays = {**arrays, **scalars, "collects": token["collects"]}
        return VisitResult(token_arrays, {"slopes": row.slopes, "updated": np.asarray(k)})

    def gradient_estimate(self, objective: Any, token: Arrays) -> Array | None:
        """Return the token's estimate of ∇f, s/n + λw; None until every node was visited.

        It uses the gradient of each node at its last visit.
        """
        n = float(token["nodes"])
        if n < ALL_NODES * objective.nodes:
            return None
        return np.asarray(token["gradient_sum"] / n + objective.penalty * token["model"])


def _value_of(context: VisitContext) -> Any:
    """Return φ_i as a function of w, on the rows that the visit inspects."""
    objective, node, draws = context.objective, context.node, context.draws[0]
    optional = (draws,) if len(draws) else ()
    return lambda w: float(objective.local_value(node, w, *optional))


def _correction(rows: Array, x: Any, slopes: Array, stored: Array, is_first: bool) -> RowCorrection:
    """Compare the new slopes of the inspected rows with the stored ones, which they replace."""
    count, inspected = len(stored), max(len(rows), 1)
    new = np.full(stored.shape, np.nan) if is_first else stored.copy()
    missing = np.isnan(new[rows])
    is_new = missing if missing.ndim == 1 else missing[:, 0]
    differences = slopes - np.where(missing, 0.0, new[rows])
    new[rows] = slopes
    is_first_use = np.full(len(rows), len(rows) == 1)
    if len(rows) > 1:  # a row that is drawn twice counts once
        is_first_use[np.unique(rows, return_index=True)[1]] = True
    share = count / inspected
    # A relay has no rows: its h is 0, and known from the first visit on.
    new_rows = np.count_nonzero(is_new & is_first_use) / count if count else float(is_first)
    return RowCorrection(
        gradient=share * _gradient(slopes, x),
        correction=share * _gradient(differences, x),
        change=_gradient((differences.T * is_first_use).T, x),
        new_inspected=np.count_nonzero(is_new) / inspected,
        new_rows=new_rows,
        slopes=new,
    )


def _gradient(slopes: Array, x: Any) -> Array:
    """Return Σ slope · x over the rows, flat."""
    return np.asarray(slopes.T @ x).reshape(-1)
