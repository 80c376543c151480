"""`Problem`: the objective of a linear model, from rows, their owners, loss, penalty and domain.

With N nodes, f(w) = (1/N) Σ_i f_i(w) is minimised over W, where the loss of node i is

    f_i(w) = Σ_{rows r of i} c_r ℓ(x_r·w, t_r) + (λ/2)‖w‖²

and `aggregate` determines c_r: N for the paper's sum over rows ("sum"), N/M for the mean over
all M rows ("mean"), and 1/(rows of i) for the mean of the means of the nodes ("node-mean").
∇f_i is L_i-Lipschitz with L_i = λ + β λ_max(Σ c_r x_r x_rᵀ): `smoothness_constants`. A row with a
`sample_weight` s_r counts as s_r rows, in c_r and in the counts that c_r divides by.

>>> X, y = [[1.0, 0.0], [0.0, 2.0]], [1.0, -1.0]
>>> Problem(X, y, penalty=1.0).smoothness_constants          # 1 + 2‖x‖²/4
array([1.5, 3. ])
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, fields
from typing import Any, TypeVar

import numpy as np
from numpy.typing import ArrayLike, DTypeLike, NDArray

from walklearn.arrays import Array, ArraySpec, sha256_of
from walklearn.checks import check_choice, check_kind, check_number, check_whole
from walklearn.objectives.linear.domains import Domain, Everywhere
from walklearn.objectives.linear.losses import Logistic, Loss
from walklearn.objectives.linear.minimiser import decreases_forever, optimum_of
from walklearn.objectives.linear.optimum import Optimum
from walklearn.objectives.linear.rows import (
    Aggregate,
    EmptyNodes,
    check_nodes,
    check_owners,
    check_rows,
    check_weights,
    is_sparse,
    scores,
)
from walklearn.objectives.linear.smoothness import ROWS_AT_ONCE, largest_eigenvalues
from walklearn.objectives.objective import Objective, shared_property
from walklearn.wording import plural

T = TypeVar("T")

Draws = Sequence[float] | NDArray[np.float64]
LinearRows = tuple[NDArray[np.int64], Any, Callable[[Array], Array]]


@dataclass(frozen=True, eq=False, init=False)
class Problem(Objective):
    """The objective of rows owned by nodes, with scores that are linear in the model.

    Rows are stored grouped by node. A model is a flat vector of `size` numbers, row-major
    for the K × d matrix of `Softmax`; `model_shape` is its shape.

    Parameters
    ----------
    X
        Rows, shape (M, d), dense or sparse (SciPy). Sparse rows stay sparse.
    y
        Targets, shape (M,): ±1, real numbers, or 0..K−1 for `Softmax`.
    loss
        Loss of a row; by default `Logistic`.
    penalty
        Factor of ½‖w‖² in the objective.
    domain
        Domain of models; by default `Everywhere`.
    node_of_row
        The node that owns each row; by default row i belongs to node i.
    nodes
        The number of nodes N; by default the largest owner plus one.
    aggregate
        "sum" (the paper's), "mean" or "node-mean".
    empty_nodes
        For nodes without rows: "error", or "relay" if they only forward the token. The f_i of a
        relay is the penalty.
    sample_weight
        Number of rows that each row counts as; 1 by default. Rows of weight 0 are left out. A
        mini-batch draws rows uniformly and scales them by their weights.
    total_rows
        M for `aggregate="mean"`; by default the sum of the weights. In a network a node has only
        its own rows, so it takes M from the plan.
    dtype
        Type of the numbers in rows and models: float64, or float32 for half the size.
    assume_finite
        True if X and y were checked for NaN and infinity before.
    copy
        False to use X itself, which then becomes read-only.

    Examples
    --------
    >>> from walklearn import datasets, domains
    >>> X, y = datasets.two_gaussians(30, dimension=3, seed=1)
    >>> problem = Problem(X, y, penalty=1.0, domain=domains.Ball(10.0))
    >>> problem.nodes, problem.size
    (30, 3)
    """

    X: Any  # a NumPy array or a SciPy csr_array
    y: Array
    loss: Loss
    penalty: float
    domain: Domain
    node_of_row: NDArray[np.int64]
    nodes: int
    aggregate: Aggregate
    empty_nodes: EmptyNodes
    sample_weight: NDArray[np.float64]
    total_rows: float
    dtype: np.dtype[Any]

    def __init__(
        self,
        X: ArrayLike,
        y: ArrayLike,
        *,
        loss: Loss | None = None,
        penalty: float = 0.0,
        domain: Domain | None = None,
        node_of_row: ArrayLike | None = None,
        nodes: int | None = None,
        aggregate: Aggregate = "sum",
        empty_nodes: EmptyNodes = "error",
        sample_weight: ArrayLike | None = None,
        total_rows: float | None = None,
        dtype: DTypeLike = np.float64,
        assume_finite: bool = False,
        copy: bool = True,
    ) -> None:
        loss = Logistic() if loss is None else loss
        domain = Everywhere() if domain is None else domain
        check_kind("loss", loss, Loss, "a loss such as losses.Logistic()")
        check_kind("domain", domain, Domain, "a domain such as domains.Ball(10.0)")
        check_choice("aggregate", aggregate, Aggregate)
        check_choice("empty_nodes", empty_nodes, EmptyNodes)
        if np.dtype(dtype) not in (np.dtype(np.float32), np.dtype(np.float64)):
            raise ValueError(f"dtype must be float64 or float32, got {np.dtype(dtype)}.")
        rows, targets = check_rows(X, y, np.dtype(dtype), assume_finite, copy)
        loss.check_targets(targets)
        weights = check_weights(sample_weight, rows.shape[0])
        owners = check_owners(node_of_row, rows.shape[0])
        count = int(owners.max()) + 1 if nodes is None else check_whole("nodes", nodes)
        check_nodes(owners, weights, count, empty_nodes)
        if (np.diff(owners) < 0).any() or not weights.all():
            order = np.argsort(owners, kind="stable")
            order = order[weights[order] > 0]
            rows, targets = rows[order], targets[order]
            owners, weights = owners[order], weights[order]
        total = float(weights.sum())
        if total_rows is not None:
            total = check_number("total_rows", total_rows, minimum=total)
        settings = {
            "X": rows,
            "y": targets,
            "loss": loss,
            "penalty": check_number("penalty", penalty, minimum=0.0),
            "domain": domain,
            "node_of_row": owners,
            "nodes": count,
            "aggregate": aggregate,
            "empty_nodes": empty_nodes,
            "sample_weight": weights,
            "total_rows": total,
            "dtype": np.dtype(dtype),
        }
        self.__setstate__(settings)
        parameters = (ArraySpec("coef", self.model_shape, self.dtype.str),)
        object.__setattr__(self, "parameters", parameters)

    def __setstate__(self, state: dict[str, Any]) -> None:
        """Set the fields, also after unpickling, and make their arrays read-only."""
        for name, value in state.items():
            object.__setattr__(self, name, _freeze(value))
        for value in state.get("_shared", {}).values():
            _freeze(value)

    @property
    def is_sparse(self) -> bool:
        """True if the rows are sparse."""
        return is_sparse(self.X)

    @property
    def row_count(self) -> int:
        """M, the number of rows."""
        return int(self.X.shape[0])

    @property
    def row_bytes(self) -> int:
        """Size of the rows in memory."""
        return sum(array.nbytes for array in _arrays(self.X))

    def dense_rows(self, rows: slice | Array) -> Array:
        """Return rows as a dense array, selected by a slice or by their positions in `X`."""
        return np.asarray(self.X[rows].toarray() if self.is_sparse else self.X[rows])

    @property
    def dimension(self) -> int:
        """d, the number of features of a row."""
        return int(self.X.shape[1])

    @shared_property
    def outputs(self) -> int:
        """K, the number of scores of a row: 1 except for `Softmax`."""
        return self.loss.outputs(self.y)

    @property
    def model_shape(self) -> tuple[int, ...]:
        """(d,), for `Softmax` (K, d)."""
        return (self.outputs, self.dimension) if self.outputs > 1 else (self.dimension,)

    @shared_property
    def offsets(self) -> NDArray[np.int64]:
        """Node i owns rows offsets[i] to offsets[i + 1]."""
        return _freeze(np.searchsorted(self.node_of_row, np.arange(self.nodes + 1)))

    @shared_property
    def row_weights(self) -> NDArray[np.float64]:
        """c_r, the weight of each row in the loss of its node."""
        weights = self.sample_weight
        if self.aggregate == "node-mean":
            return _freeze(weights / np.bincount(self.node_of_row, weights)[self.node_of_row])
        if self.aggregate == "sum":
            return _freeze(self.nodes * weights)
        return _freeze(self.nodes / self.total_rows * weights)

    @shared_property
    def smoothness_constants(self) -> NDArray[np.float64]:
        """L_i, the Lipschitz constant of ∇f_i, for each node."""
        return self._smoothness(iterate=True)

    def smoothness(self, node: int) -> float:
        """Return L_i, the Lipschitz constant of ∇f_i."""
        return float(self.smoothness_constants[node])

    @shared_property
    def exact_smoothness(self) -> NDArray[np.float64]:
        """L_i, computed exactly even for sparse rows; a release that protects rows needs it."""
        return self._smoothness(iterate=False) if self.is_sparse else self.smoothness_constants

    def _smoothness(self, iterate: bool) -> NDArray[np.float64]:
        X, weights, offsets = self.X, self.row_weights, self.offsets
        squares = self.row_squares if self.is_sparse else np.empty(0)
        largest = largest_eigenvalues(X, weights, squares, offsets, iterate)
        return _freeze(self.penalty + self.loss.smoothness * largest)

    @shared_property
    def row_squares(self) -> NDArray[np.float64]:
        """‖x_r‖² of each row."""
        with np.errstate(over="ignore"):
            if not self.is_sparse:
                return _freeze(np.einsum("ra,ra->r", self.X, self.X, dtype=np.float64))
            entries, starts = self.X.data.astype(np.float64, copy=False), self.X.indptr[:-1]
            filled, squares = np.diff(self.X.indptr) > 0, np.zeros(self.row_count)
            if filled.any():
                squares[filled] = np.add.reduceat(entries * entries, starts[filled])
            return _freeze(squares)

    def batch_smoothness(self, batch: int) -> NDArray[np.float64]:
        """Return the expected smoothness of ∇f_i estimated from b = `batch` rows, for each node.

        It is (1 − 1/b) L_i + (1/b) L, where L is the smoothness if all rows of the node equalled
        its longest row (Gower et al. 2019, drawing with replacement). A node with at most b rows
        uses all of them, so it is L_i.

        >>> problem = Problem([[1.0], [3.0]], [1.0, -1.0], node_of_row=[0, 0], aggregate="mean")
        >>> problem.smoothness_constants, problem.batch_smoothness(1)
        (array([1.25]), array([2.25]))
        """
        counts = np.diff(self.offsets)
        longest = np.zeros(self.nodes)
        np.maximum.at(longest, self.node_of_row, self.row_squares * self.row_weights)
        worst_case = self.penalty + self.loss.smoothness * counts * longest
        share = np.where(counts > batch, 1.0 / batch, 0.0)
        return np.asarray((1.0 - share) * self.smoothness_constants + share * worst_case)

    @shared_property
    def importance(self) -> NDArray[np.float64]:
        """L_i; a relay, which has no rows, gets the smallest L_i of the other nodes."""
        empty = np.diff(self.offsets) == 0
        smallest = self.smoothness_constants[~empty].min()
        return _freeze(np.where(empty, smallest, self.smoothness_constants))

    def value(self, w: ArrayLike) -> float:
        """Compute f(w), including the penalty, even if w is outside the domain.

        >>> from walklearn.objectives.linear.losses import Squared
        >>> Problem([[1.0], [3.0]], [1.0, 2.0], loss=Squared(), penalty=2.0).value([1.0])  # ½ + 1
        1.5
        """
        w = self._flat(w)
        total = sum(self._weighted_value(rows, w) for rows in self._blocks())
        return total / self.nodes + 0.5 * self.penalty * float(np.dot(w, w))

    def sample_start(self, rng: np.random.Generator) -> Array:
        """Draw the initial model uniformly from the domain; it is 0 if the domain is unbounded.

        If a subclass overrides `start`, that is the initial model.
        """
        if type(self).start is not Objective.start:
            return self.start
        return self.domain.sample(self.size, rng).astype(self.dtype)

    def project(self, w: Array) -> Array:
        """Project w onto the domain."""
        return self.domain.project(w)

    def full_gradient(self, w: ArrayLike) -> Array:
        """Compute ∇f(w), including λw, as a flat array."""
        w, scale = self._flat(w), 1.0 / self.nodes
        parts = (self._weighted_gradient(rows, w, scale) for rows in self._blocks())
        return np.asarray(sum(parts) + self.penalty * w)

    def local_value(self, node: int, w: ArrayLike, draws: Draws = ()) -> float:
        """Compute φ_i(w), the loss of one node without the penalty, or estimate it from draws."""
        rows, scale = self._select_rows(node, draws)
        return scale * self._weighted_value(rows, self._flat(w))

    def gradient(self, node: int, w: ArrayLike, draws: Draws = ()) -> Array:
        """Compute ∇φ_i(w), the gradient of one node without λw, or an unbiased estimate of it.

        draws: uniform numbers in [0, 1), one for each row of a mini-batch, which is drawn with
        replacement. With no draws, or at least as many draws as rows, all rows are used.

        >>> from walklearn.objectives.linear.losses import Squared
        >>> problem = Problem([[1.0], [3.0]], [1.0, 2.0], loss=Squared(), node_of_row=[0, 0])
        >>> problem.gradient(0, [1.0]), problem.gradient(0, [1.0], [0.9])  # 0 + 3, 2 · 3
        (array([3.]), array([6.]))
        """
        rows, scale = self._select_rows(node, draws)
        return self._weighted_gradient(rows, self._flat(w), scale)

    def linear_rows(self, node: int, draws: Draws = ()) -> LinearRows:
        """Return the indices of a node's rows, the rows times c_r, and a function for their slopes.

        A mini-batch may repeat rows. The function returns the derivatives of the losses with
        respect to the scores, shape (rows,), or (rows, K) for `Softmax`. Without draws ∇φ_i(w) is
        slopes(w).T @ x, flattened.

        >>> problem = Problem([[1.0, 0.0], [0.0, 2.0]], [1.0, -1.0], node_of_row=[0, 0])
        >>> rows, x, slopes = problem.linear_rows(0)
        >>> slopes(np.zeros(2)) @ x, problem.gradient(0, np.zeros(2))
        (array([-0.5,  1. ]), array([-0.5,  1. ]))
        """
        chosen, _ = self._select_rows(node, draws)
        X, y, weights = self.X[chosen], self.y[chosen], self.row_weights[chosen]
        positions = np.arange(chosen.start, chosen.stop) if isinstance(chosen, slice) else chosen
        rows = positions - self.offsets[node]
        if self.is_sparse:
            x = X.copy()
            x.data = x.data * np.repeat(weights, np.diff(x.indptr))
        else:
            x = weights[:, None] * X
        return rows, x, lambda w: self.loss.slope(scores(X, self._flat(w)), y)

    def rows_of(self, node: int) -> slice:
        """Return the slice of a node's rows in `X`, `y` and `row_weights`."""
        if not 0 <= node < self.nodes:
            raise IndexError(f"there is no node {node}: nodes are 0..{self.nodes - 1}.")
        return slice(int(self.offsets[node]), int(self.offsets[node + 1]))

    def count_rows(self, node: int) -> int:
        """Return the number of rows of a node."""
        rows = self.rows_of(node)
        return int(rows.stop - rows.start)

    def row_gradients(self, node: int, w: ArrayLike, part: slice = slice(None)) -> Array:
        """Compute ω_r ∇ℓ(x_r·w, t_r) for each row of a node in doubles, shape (rows, size).

        `row_factor` times their sum over all rows is `gradient`. part: a slice of the node's rows
        with step 1.
        """
        all_rows = self.rows_of(node)
        chosen = range(all_rows.start, all_rows.stop)[part]
        w, rows = self._flat(w).astype(np.float64, copy=False), slice(chosen.start, chosen.stop)
        X = self.dense_rows(rows).astype(np.float64, copy=False)
        slopes = self.loss.slope(scores(X, w), self.y[rows]).reshape(len(X), self.outputs)
        slopes = slopes * self.sample_weight[rows][:, None]
        return np.asarray((slopes[:, :, None] * X[:, None, :]).reshape(len(X), self.size))

    def row_factor(self, node: int) -> float:
        """Return c_r / ω_r, which all rows of the node share; 0 for a node without rows.

        It depends only on N, M and the sum of the node's weights, to the last digit.
        """
        if not self.count_rows(node):
            return 0.0
        if self.aggregate == "node-mean":
            return 1.0 / math.fsum(self.sample_weight[self.rows_of(node)])
        return self.nodes / (1.0 if self.aggregate == "sum" else self.total_rows)

    @shared_property
    def solution(self) -> Optimum:
        """w*, f* and the uniqueness of w*, computed once; a NoMinimiserError if there is no w*."""
        return optimum_of(self)

    def optimum(self) -> Array:
        """Return w*, the minimiser, or raise a NoMinimiserError if there is none."""
        return self.solution.model.reshape(-1)

    def decreases_forever_along(self, model: ArrayLike) -> bool:
        """True if f keeps decreasing in this direction, so it has no minimiser.

        That is the case for a logistic or softmax loss without a penalty over an unbounded domain
        if the direction gives every row a positive margin.

        >>> separable = Problem([[1.0], [-2.0]], [1.0, -1.0])
        >>> separable.decreases_forever_along([3.0]), separable.decreases_forever_along([-3.0])
        (True, False)
        """
        return decreases_forever(self, self._flat(model))

    def with_owners(self, node_of_row: ArrayLike, nodes: int | None = None) -> Problem:
        """Return the problem with other owners of its rows, in the order of its `X`.

        Unless the aggregate is "node-mean", f does not depend on the owners, so the two problems
        share w*. A NoMinimiserError is raised if there is none.
        """
        problem = self._copy_with(node_of_row=node_of_row, nodes=nodes)
        if self.aggregate != "node-mean":
            problem.__dict__["solution"] = self.solution
        return problem

    def _copy_with(self, **changes: Any) -> Problem:
        """Return a copy with some arguments changed."""
        settings = {item.name: getattr(self, item.name) for item in fields(self)}
        copy = Problem(**settings | {"assume_finite": True} | changes)
        return copy.with_batch(self.draws) if self.draws else copy

    def describe(self) -> dict[str, Any]:
        """Return the facts and a digest of the data, as JSON values."""
        return self.facts() | {"data_sha256": self._digest}

    def facts(self) -> dict[str, Any]:
        """Return `describe` without the digest, by which a guess of the rows could be confirmed."""
        return {
            "rows": self.row_count,
            "total_rows": self.total_rows,
            "dimension": self.dimension,
            "nodes": self.nodes,
            "loss": repr(self.loss),
            "penalty": self.penalty,
            "domain": repr(self.domain),
            "aggregate": self.aggregate,
            "dtype": str(self.dtype),
        }

    @shared_property
    def _digest(self) -> str:
        weighted = () if (self.sample_weight == 1.0).all() else (self.sample_weight,)
        return sha256_of(*_arrays(self.X), self.y, self.offsets, *weighted)

    def __eq__(self, other: object) -> bool:
        return (
            isinstance(other, Problem)
            and (self.draws, self.loss) == (other.draws, other.loss)
            and self.describe() == other.describe()
        )

    def __hash__(self) -> int:
        return hash(self._digest)

    def __repr__(self) -> str:
        return (
            f"Problem({plural(self.row_count, 'row')} of {plural(self.dimension, 'feature')} on "
            f"{plural(self.nodes, 'node')}, {self.loss!r}, "
            f"penalty={self.penalty:g}, {self.domain!r}, {self.aggregate!r}"
            + (f", draws={self.draws})" if self.draws else ")")
        )

    def _flat(self, model: ArrayLike) -> Array:
        return np.asarray(model).reshape(self.size)

    def _select_rows(self, node: int, draws: Draws) -> tuple[slice | Array, float]:
        """Return the positions of a mini-batch in `X`, and the factor for the sum over it.

        With no draws, or at least as many draws as rows, these are all rows of the node.
        """
        rows = self.rows_of(node)
        count = rows.stop - rows.start
        if not len(draws) or count <= len(draws):
            return rows, 1.0
        positions = np.minimum((np.asarray(draws) * count).astype(np.int64), count - 1)
        return rows.start + positions, count / len(draws)

    def _blocks(self) -> Iterator[slice]:
        """Yield slices that cover all rows; their length is the fastest one."""
        at_once = self.row_count if self.is_sparse else ROWS_AT_ONCE
        for first in range(0, self.row_count, at_once):
            yield slice(first, min(first + at_once, self.row_count))

    def _weighted_value(self, rows: slice | Array, model: Array) -> float:
        values = self.loss.value(scores(self.X[rows], model), self.y[rows])
        return float(self.row_weights[rows] @ values)

    def _weighted_gradient(self, rows: slice | Array, model: Array, scale: float) -> Array:
        X, y, weights = self.X[rows], self.y[rows], self.row_weights[rows]
        slopes = self.loss.slope(scores(X, model), y)
        return np.asarray((slopes.T * (scale * weights)) @ X).reshape(-1)


def _freeze(value: T) -> T:
    for array in _arrays(value):
        array.setflags(write=False)
    return value


def _arrays(value: Any) -> tuple[Array, ...]:
    """Return the arrays in a value: one of an array, three of sparse rows, otherwise none."""
    if isinstance(value, np.ndarray):
        return (value,)
    return (value.data, value.indices, value.indptr) if is_sparse(value) else ()
