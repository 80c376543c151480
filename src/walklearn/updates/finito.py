"""Finito on a walk: each node adds a quadratic model of its loss to a sum, which w minimises.

Write f_i = φ_i + (λ/2)‖w‖². Node i keeps the point z_i of its last model, g_i = ∇φ_i(z_i) and its
contribution c_i = (σ_i z_i − g_i, σ_i, 1). The token carries S = (b, σ, n), the sum of all c_i, and
the model w minimises the sum of the models:

    w = Π(b / D)   with   D = σ + λn

A visit moves z_i towards w, makes the node's model there, and replaces c_i in S. If all z_i equal
w, then w is the minimiser of f over W, whatever the walk and the σ_i. The walk needs no weights,
and nodes announce no degrees or constants L_i. Nothing is tuned.

**Several tokens.** S is a sum over nodes, so tokens share it without meeting. Token u changes only
S_u, with a version k_u. Tokens and nodes carry the newest known (k_v, S_v) of every token v, and
S = Σ_v S_v. A holder of S_u has also every sum that u had at that version. So S is a sum over nodes
of one contribution each, possibly an older one.

**Curvature.** σ_i = max(L_i/(νn), p/(ρq)) has two parts. L_i is the smoothness of φ_i, by a line
search at each visit (`line_search`). p/q is the curvature of the sum along recent moves, those of
about n visits by all tokens together. It rises if w overshoots periodically, and the second part
damps that. A heavy node, with L_i beyond D, would feed its own error back, so its z_i moves by
D/(D + θL_i) of the way only. θ doubles if moves grow, or set no new minimum for 100 covers.

Steps are about n times as long as those that are proven to converge. (Finito: Defazio, Domke &
Caetano, 2014. MISO: Mairal, 2015. Double incremental aggregated gradient: Mokhtari, Gürbüzbalaban &
Ribeiro, 2018.)
"""

from __future__ import annotations

from typing import Any, ClassVar, NamedTuple, Self

import numpy as np

from walklearn.arrays import Array, Arrays, ArraySpec, Specs
from walklearn.checks import check_kind
from walklearn.updates.line_search import raise_curvature
from walklearn.updates.update import UPDATES, Update, VisitContext, VisitResult

MAX_SHARE = 3 / 4  # a, of the way from z_i to w
SMOOTHNESS_SHARE = 1 / 2  # ν
CURVATURE_SHARE = 2.0  # ρ
FIRST_THETA, MAX_THETA = 0.5, 2.0
WAIT_COVERS, MAX_AGE_COVERS, MAX_GROWTH = 3, 100, 10_000.0  # of the guard; growth of q, a square

SHARED = ("sums", "gradient_sums", "versions")  # by tokens and nodes


class RecentMoves(NamedTuple):
    """Statistics of the moves of the z_i, which a token carries.

    p, q: decaying sums of (z − z_i)·(g − g_i) and of ‖z − z_i‖². theta: θ. q_min, age: the smallest
    q since θ was set, and the visits since then. n_last, since: n at the last visit, and the number
    of visits without a change of n.
    """

    p: float = 0.0
    q: float = 0.0
    theta: float = FIRST_THETA
    q_min: float = np.inf
    age: float = 0.0
    n_last: float = 0.0
    since: float = 0.0

    @property
    def curvature(self) -> float:
        """The curvature p/q along recent moves, 0 before the first move."""
        return self.p / self.q if self.q > 0 else 0.0

    def after(
        self, n: float, move: Array, change: Array, is_first: bool = False, tokens: int = 1
    ) -> RecentMoves:
        """Return the statistics after z_i moved and g_i changed, with n nodes in the sum.

        The first visit to a node is no move, because it had no z_i. Moves are recent for about as
        long as all tokens together take for n visits.
        """
        p, q, theta, q_min, age, n_last, since = self
        if not is_first:
            keep = max(0.0, 1 - tokens / n)
            p = keep * p + float(move @ change)
            q = keep * q + float(move @ move)
        since = since + 1 if n == n_last else 0.0
        if since >= WAIT_COVERS * n and q > 0:  # the guard: has the walk stopped making progress?
            q_min, age = (q, 0.0) if q < q_min else (q_min, age + 1)
            if theta < MAX_THETA and (q > MAX_GROWTH * q_min or age > MAX_AGE_COVERS * n):
                theta, q_min, age = 2 * theta, q, 0.0
        return RecentMoves(p, q, theta, q_min, age, n, since)


@UPDATES.register
class Finito(Update):
    """Minimise a sum over nodes of quadratic models of their losses, which tokens share.

    Parameters
    ----------
    estimates_gradient
        True if tokens and nodes also carry the sums of the g_i, d numbers more for each token, so
        that `gradient_estimate` can tell when the model has converged. Fits until convergence use
        it.

    Examples
    --------
    >>> import walklearn as wl
    >>> X, y = wl.datasets.two_gaussians(20, dimension=3, variance=10.0, seed=1)
    >>> run = wl.simulate(wl.Problem(X, y, penalty=1.0), wl.graphs.ring(20), "simple",
    ...                   update=wl.updates.Finito(), steps=4000, seed=1)
    >>> bool(run.distance[0, -1] < 1e-6), run.message_bytes
    (True, 104)
    """

    name: ClassVar[str] = "finito"
    compiled: ClassVar[str | None] = "finito"
    converges: ClassVar[bool] = True
    shares_sum: ClassVar[bool] = True
    token_disclosure: ClassVar[str] = (
        "the token carries p/q and Σσ_i, which follow the curvature of the nodes' rows"
    )
    start: ClassVar[Array | None] = None  # bound by `starting_from`
    estimates_gradient: bool = False

    def __post_init__(self) -> None:
        check_kind("estimates_gradient", self.estimates_gradient, bool, "True or False")

    @property
    def needs(self) -> dict[str, str]:
        """Local values, all rows at each visit, and double precision."""
        return {
            "local_value": "Use updates.Sgd(step_size).",
            "is_exact": "Leave the mini-batch out, or use updates.Saga().",
            "is_double": "Use dtype=np.float64, or updates.Saga().",
        }

    def token_arrays(self, objective: Any, tokens: int = 1) -> Specs:
        """Declare the newest sum of each token with its version, and the recent moves."""
        return (*self._sums(objective, tokens), *map(ArraySpec, RecentMoves._fields))

    def node_arrays(self, objective: Any, node: int, tokens: int = 1) -> Specs:
        """Declare the newest sum of each token with its version, z_i, g_i, c_i and L_i."""
        d = objective.size
        vectors = ArraySpec("z", d), ArraySpec("g", d), ArraySpec("contribution", d + 2)
        return (*self._sums(objective, tokens), *vectors, ArraySpec("smoothness"))

    def _sums(self, objective: Any, tokens: int) -> Specs:
        sums = ArraySpec("sums", (tokens, objective.size + 2))
        gradients = ArraySpec("gradient_sums", (tokens, objective.size))
        versions = ArraySpec("versions", tokens, "<i8")
        return (sums, gradients, versions) if self.estimates_gradient else (sums, versions)

    def init_token(self, objective: Any, tokens: int = 1) -> Arrays:
        """Return sums of 0 and no moves."""
        return super().init_token(objective, tokens) | _as_arrays(RecentMoves())

    def restart(self, objective: Any, token: Arrays, generation: int) -> Arrays:
        """Keep all sums, those of lost tokens, too, and forget the moves.

        The nodes keep their contributions. The new token needs a slot that was never used.
        """
        return token | _as_arrays(RecentMoves())

    def starting_from(self, model: Array) -> Self:
        """Return a copy for which w is this model until every node is in the sum.

        Otherwise w would leave the model for the minimum of the first few nodes.
        """
        return self.bound(start=model)

    def model(self, objective: Any, token: Arrays) -> Array:
        """Return the minimiser of the sum that the token knows."""
        return self._minimiser(objective, token["sums"].sum(axis=0))

    def _minimiser(self, objective: Any, total: Array, is_first: bool = False) -> Array:
        """Return Π(b/D), or the start model; is_first: True to count one node more in D."""
        (*_, sigma, n), start = total, self.start
        if start is not None and n < objective.nodes:
            w = start
        elif sigma > 0:
            w = total[:-2] / (sigma + objective.penalty * (n + is_first))
        else:  # no node in the sum has curvature
            w = objective.start
        return np.asarray(objective.project(w))

    def visit(self, context: VisitContext, token: Arrays, state: Arrays) -> VisitResult:
        """Take over newer sums, move z_i towards w, and replace the node's contribution."""
        objective, slot = context.objective, context.slot
        shared = _newest(token, state)
        total, L_i = shared["sums"].sum(axis=0), float(state["smoothness"])
        is_first = bool(state["contribution"][-1] == 0)
        moves = RecentMoves(*(float(token[name]) for name in RecentMoves._fields))

        n = float(total[-1] + is_first)
        D = float(total[-2] + objective.penalty * n)
        w = self._minimiser(objective, total, is_first)
        old_z, old_g = (w, 0.0) if is_first else (state["z"], state["g"])
        share = min(MAX_SHARE, D / (D + moves.theta * L_i)) if D > 0 else MAX_SHARE
        z = old_z + share * (w - old_z)
        g = context.gradient(z)
        moves = moves.after(n, z - old_z, g - old_g, is_first, len(shared["versions"]))

        def value_at(w: Array) -> float:
            return float(objective.local_value(context.node, w))

        if g.any() and value_at(z) != 0.0:  # otherwise nothing is learnt about L_i
            L_i = raise_curvature(L_i / 2, value_at, z, g)
        sigma = max(L_i / (SMOOTHNESS_SHARE * n), moves.curvature / CURVATURE_SHARE)

        contribution = np.concatenate([sigma * z - g, [sigma, 1.0]])
        shared["sums"][slot] += contribution - state["contribution"]
        shared["versions"][slot] += 1
        if self.estimates_gradient:
            shared["gradient_sums"][slot] += g - old_g
        own = {"z": z, "g": g, "contribution": contribution, "smoothness": np.asarray(L_i)}
        return VisitResult(shared | _as_arrays(moves), shared | own)

    def gradient_estimate(self, objective: Any, token: Arrays) -> Array | None:
        """Return the token's estimate of ∇f, Σg_i/n + λw; None until every node is in the sum.

        It uses the gradient of each node at its z_i, and needs `estimates_gradient=True`.
        """
        n = float(token["sums"][:, -1].sum())
        if not self.estimates_gradient or n < objective.nodes:
            return None
        mean = token["gradient_sums"].sum(axis=0) / n
        return np.asarray(mean + objective.penalty * self.model(objective, token))

    def curvature_estimate(self, token: Arrays) -> float:
        """Return p/q, the curvature along recent moves, without the penalty."""
        return float(token["p"] / token["q"]) if token["q"] > 0 else 0.0


def _newest(token: Arrays, state: Arrays) -> Arrays:
    """Return new arrays with the newest sum of each token, of those at token and node."""
    slots = np.flatnonzero(state["versions"] > token["versions"])
    newest = {name: token[name].copy() for name in SHARED if name in token}
    for name, array in newest.items():
        array[slots] = state[name][slots]
    return newest


def _as_arrays(moves: RecentMoves) -> Arrays:
    return {name: np.asarray(value) for name, value in moves._asdict().items()}
