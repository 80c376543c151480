"""The second and the last eigenvalue of a walk, which determine how fast it mixes.

A reversible chain P with stationary distribution π has real eigenvalues
1 = λ_1 > λ_2 ≥ … ≥ λ_N ≥ −1. Its speed depends on the distances of the two ends from ±1:

    near = 1 − λ_2,   far = 1 + λ_N,   spectral gap = min(near, far).

There is a closed form for the ring, torus, hypercube, complete graph and star. For other graphs
they come from the Lanczos iteration on the symmetric S = D^½ P D^-½, D = diag(π), with entries
√(P_ij P_ji) and top eigenvector √π. That eigenvector is moved to the mean μ of the other
eigenvalues: λ_N ≤ μ ≤ λ_2, so it does not disturb. Lanczos keeps three vectors, and gives both ends
at once, from inside: λ_N ≤ θ_N and θ_2 ≤ λ_2.

The iteration has a budget (`MAX_PRODUCTS`, `MAX_WORK`). If it is exhausted, θ bounds the distances
from above, and these bound them from below:

    near ≥ 1 / max_e Q(e)⁻¹ Σ_{x,y: e on the path from x to y} |path| π_x π_y
    far  ≥ 2 / max_e Q(e)⁻¹ Σ_{x: e on the odd path from x to x} |path| π_x

(Diaconis & Stroock 1991), with the paths of a breadth-first tree, and Q(e) = π_i P_ij.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Literal, TypeAlias

import numpy as np
from numpy.typing import NDArray

from walklearn.arrays import Vector
from walklearn.graphs import Graph
from walklearn.graphs.sparse_rows import SparseMatrix
from walklearn.objectives import Problem
from walklearn.walks import Metropolis, Walk

Range: TypeAlias = tuple[float, float]
Method: TypeAlias = Literal["closed form", "eigenvalues", "bound", "unknown"]

MAX_PRODUCTS = 100_000  # products of P with a vector, after which a bound is used
MAX_WORK = 1e10  # fewer on a large graph: products × (entries of P + 10 N), about 20 s
TOLERANCE = 1e-6  # residual / distance from ±1 of a converged eigenvalue; its error is the square
ROUGH = 1e-3  # after a tenth of the budget: at least three digits
MAX_NODES_WITH_JUMPS = 2000  # the matrix of a jumping walk is nearly dense
MIN_FOR_ARPACK = 32  # below this many nodes dense eigenvalues are simpler


@dataclass(frozen=True)
class Spectrum:
    """1 − λ_2 and 1 + λ_N, each as (lower, upper) bound: equal unless the method is "bound".

    For a walk that is not reversible both are 1 − |λ| of the second largest modulus.
    """

    near: Range
    far: Range
    method: Method

    @property
    def gap(self) -> Range:
        """The lower and the upper bound of the spectral gap."""
        return min(self.near[0], self.far[0]), min(self.near[1], self.far[1])


def spectrum_of(
    graph: Graph, walk: Walk, problem: Problem | None = None, matrix: SparseMatrix | None = None
) -> Spectrum:
    """Return the spectrum of a walk; pass its transition matrix if you have it already."""
    if graph.node_count == 1 or walk.is_independent:
        return exactly(1.0, 1.0, "closed form")
    walk = walk.matrix_walk
    if isinstance(walk, Metropolis):
        known = closed_form(graph, walk, problem)
        if known is not None:
            return known
    P = matrix_of(graph, walk, problem) if matrix is None else matrix
    if P is None:
        return exactly(np.nan, np.nan, "unknown")
    π = walk.stationary(graph, problem)
    return reversible(P, π, graph.is_bipartite) if walk.reversible else irreversible(P, π)


def exactly(near: float, far: float, method: Method) -> Spectrum:
    """Return a spectrum whose two eigenvalues are known exactly."""
    return Spectrum((near, near), (far, far), method)


def matrix_of(graph: Graph, walk: Walk, problem: Problem | None) -> SparseMatrix | None:
    """Return the transition matrix that stands for a walk; None without one or if it is dense."""
    is_dense = walk.slow_stationary and graph.node_count > MAX_NODES_WITH_JUMPS
    if walk.is_independent or is_dense:
        return None
    return walk.matrix_walk.transition_matrix(graph, problem)


def closed_form(graph: Graph, walk: Metropolis, problem: Problem | None = None) -> Spectrum | None:
    """Return the spectrum if a formula is known, else None.

    If the score v / deg is constant nothing is rejected and P = A / deg; for the uniform walk on a
    star there is a formula too. Laziness ℓ makes it ℓ + (1 − ℓ)λ.
    """
    if not graph.family or graph.node_count < 2 or not walk.inherits("hop", "transition_matrix"):
        return None
    name, *sizes = graph.family
    scores = walk.announcements(graph, problem)[:, 0]
    is_uniform = not _constant(scores) and _constant(scores * graph.degrees)
    kind = f"uniform {name}" if is_uniform else name
    if kind not in _FORMULAS or not (is_uniform or _constant(scores)):
        return None
    near, far = _FORMULAS[kind](*map(int, sizes))
    stay, move = walk.laziness, 1.0 - walk.laziness
    return exactly(move * near, 2 * stay + move * far, "closed form")


def _constant(values: Vector) -> bool:
    return bool(values.max() - values.min() <= 1e-14 * values.max())


def _ring(n: int) -> Range:
    """λ = cos(2πk/n)."""
    return 2 * float(np.sin(np.pi / n)) ** 2, 2 * float(np.sin(np.pi / (2 * n))) ** 2 * (n % 2)


def _torus(rows: int, columns: int) -> Range:
    """λ = the mean of an eigenvalue of either ring."""
    one, other = _ring(rows), _ring(columns)
    return min(one[0], other[0]) / 2, (one[1] + other[1]) / 2


# 1 − λ_2 and 1 + λ_N by family and its sizes. The eigenvalues below 1 are 1 − 2k/d of a hypercube,
# −1/(n − 1) of a complete graph, 0 and −1 of a star, and for the uniform walk on a star
# (n − 2)/(n − 1) and −1/(n − 1).
_FORMULAS: dict[object, Callable[..., tuple[float, float]]] = {
    "ring": _ring,
    "torus": _torus,
    "hypercube": lambda dimension: (2 / dimension, 0.0),
    "complete": lambda n: (n / (n - 1), (n - 2) / (n - 1)),
    "star": lambda n: (1.0 if n > 2 else 2.0, 0.0),
    "uniform star": lambda n: (1 / (n - 1), (n - 2) / (n - 1)),
}


def reversible(P: SparseMatrix, π: Vector, bipartite: bool, limit: float = math.inf) -> Spectrum:
    """Return the spectrum of a reversible matrix, within a budget of products with P."""
    products = int(min(limit, MAX_PRODUCTS, MAX_WORK / (P.nnz + 10 * π.size)))
    stays = P.diagonal()
    near, far = _lanczos(_symmetric(P, π, stays), π.size, products)
    if bipartite and not stays.any():
        far = (0.0, 0.0)  # period 2: the last eigenvalue is −1
    converged = near[0] == near[1] and far[0] == far[1]
    if near[0] < near[1]:
        near = (min(near[1], poincare(P, π)), near[1])
    if far[0] < far[1]:
        far = (min(far[1], max(2 * float(stays.min()), odd_paths(P, π))), far[1])
    return Spectrum(near, far, "eigenvalues" if converged else "bound")


def _symmetric(P: SparseMatrix, π: Vector, stays: Vector) -> Callable[[Vector], Vector]:
    """Return S − (1 − μ) √π √πᵀ as a function of a vector."""
    root = P.sqrt()
    S = root.multiply(root.T.tocsr()).tocsr()  # √ before the product: no underflow
    top = np.sqrt(π)
    μ = (float(stays.sum()) - 1.0) / (π.size - 1)

    def times(vector: Vector) -> Vector:
        product = np.asarray(S @ vector)
        product -= ((1.0 - μ) * _dot(top, vector)) * top
        return product

    return times


def _lanczos(times: Callable[[Vector], Vector], size: int, products: int) -> tuple[Range, Range]:
    """Return bounds of 1 − λ_max and 1 + λ_min; the lower is 0 if it did not converge.

    The vectors lose their orthogonality, which repeats eigenvalues but never moves the ends.
    """
    vector = np.random.default_rng(0).standard_normal(size)  # fixed: the same answer every time
    vector /= np.linalg.norm(vector)
    before, β = np.zeros(size), 0.0
    diagonal: list[float] = []
    beside: list[float] = []
    ends: dict[int, Range] = {}
    check = 24
    for k in range(1, products + 1):
        following = times(vector) - β * before
        α = _dot(vector, following)
        following -= α * vector
        β = math.sqrt(_dot(following, following))
        diagonal.append(α)
        exhausted = β < 1e-13  # the vectors span all there is
        if exhausted or k == products or k >= check:
            check = 1 + int(1.2 * k)
            tolerance = TOLERANCE if k < products / 10 else ROUGH
            for end in (1, -1):
                if end not in ends or ends[end][0] < ends[end][1]:
                    θ, residual = _ritz(diagonal, beside, end, 0.0 if exhausted else β)
                    distance = max(0.0, 1.0 - end * θ)
                    converged = residual <= tolerance * max(distance, 1e-10)
                    ends[end] = (distance if converged else 0.0), distance
            if exhausted or all(low == high for low, high in ends.values()):
                break
        beside.append(β)
        before, vector = vector, following / β
    return ends[1], ends[-1]


def _dot(one: Vector, other: Vector) -> float:
    """Return one · other without the threads of BLAS, which are slower here."""
    return float(np.einsum("i,i->", one, other))


def _ritz(diagonal: list[float], beside: list[float], end: int, β: float) -> tuple[float, float]:
    """Return the largest (end = 1) or smallest eigenvalue, and its residual."""
    from scipy.linalg import eigh_tridiagonal

    last = len(diagonal) - 1 if end == 1 else 0
    θ, vectors = eigh_tridiagonal(
        diagonal, beside, select="i", select_range=(last, last), lapack_driver="stebz"
    )
    return float(θ[0]), β * abs(float(vectors[-1, 0]))


def irreversible(P: SparseMatrix, π: Vector) -> Spectrum:
    """Return 1 − |λ| for the second largest modulus; P − 1πᵀ has eigenvalue 0 instead of 1."""
    from scipy.sparse.linalg import ArpackNoConvergence, LinearOperator, eigs

    if π.size <= MIN_FOR_ARPACK:
        λ = np.linalg.eigvals(P.toarray() - π)
    else:
        operator: Any = LinearOperator(P.shape, lambda x: P @ x - π @ x, dtype=np.float64)
        start = np.random.default_rng(0).standard_normal(π.size)
        try:
            λ = eigs(operator, k=2, which="LM", v0=start, return_eigenvectors=False)
        except ArpackNoConvergence:
            return exactly(np.nan, np.nan, "unknown")
    distance = max(0.0, 1.0 - float(np.abs(λ).max()))
    return exactly(distance, distance, "eigenvalues")


def poincare(P: SparseMatrix, π: Vector) -> float:
    """Return a lower bound of 1 − λ_2 by the paths of a breadth-first tree.

    For the edge from a node to its parent, let m be the mass of the node's subtree, A the sum of π
    times the distance to the node inside the subtree, and D the same to the parent over all nodes.
    The total length of the paths across is A(1 − m) + m(1 − m) + m(D − A − m).
    """
    root, parent = _central_tree(P)
    m = _tree_sums(π, parent)
    A_and_m = _tree_sums(m, parent)  # every x counts once for each node up to the top
    steps = 1.0 - 2.0 * m  # D(child) = D(parent) + 1 − 2 m(child)
    steps[root] = A_and_m[root] - m[root]
    D = _tree_sums(steps, parent, upwards=True)
    child = np.flatnonzero(parent < π.size)
    m, A_and_m, above = m[child], A_and_m[child], D[parent[child]]
    Q = π[child] * P[child, parent[child]]
    load = (1.0 - m) * A_and_m + m * (above - A_and_m)
    return float((Q / load).min())


def odd_paths(P: SparseMatrix, π: Vector) -> float:
    """Return a lower bound of 1 + λ_N; 0 if no node ever stays.

    Its paths lead from each x to the nearest node that stays often, and back.
    """
    from scipy.sparse import csr_array
    from scipy.sparse.csgraph import breadth_first_order

    n, stays = π.size, P.diagonal()
    if not stays.any():
        return 0.0
    resting = np.flatnonzero(stays >= 0.5 * stays.max())
    # An additional node n is one step from every resting node.
    indptr = np.append(P.indptr, P.nnz + resting.size)
    indices, data = np.append(P.indices, resting), np.append(P.data, np.ones(resting.size))
    with_source = csr_array((data, indices, indptr), shape=(n + 1, n + 1))
    parent = breadth_first_order(with_source, n)[1][:n].astype(np.intp)
    length = 2.0 * _tree_sums(np.ones(n), parent, upwards=True) - 1.0
    onward = np.where(parent < n, parent, np.arange(n))  # a resting node goes to itself
    Q = π * P[np.arange(n), onward]
    return float(2.0 * (Q / _tree_sums(length * π, parent)).min())


def _central_tree(P: SparseMatrix) -> tuple[int, NDArray[np.intp]]:
    """Return root and parents of a breadth-first tree from the middle of a long shortest path.

    The parent of the root is N.
    """
    from scipy.sparse.csgraph import breadth_first_order

    edge = int(breadth_first_order(P, 0)[0][-1])
    order, parent = breadth_first_order(P, edge)
    path = [int(order[-1])]
    while path[-1] != edge:
        path.append(int(parent[path[-1]]))
    root = path[len(path) // 2]
    parent = breadth_first_order(P, root)[1].astype(np.intp)
    parent[root] = parent.size
    return root, np.asarray(parent)


def _tree_sums(values: Vector, parent: NDArray[np.intp], upwards: bool = False) -> Vector:
    """Return the sum over each node and all below it, or all above it, up to the root.

    Jumps to the ancestors double in each of log₂(depth) rounds.
    """
    n = values.size
    ancestor, sums = np.append(parent, n), np.append(values, 0.0)
    while (ancestor < n).any():
        more = sums[ancestor] if upwards else np.bincount(ancestor, sums, minlength=n + 1)
        sums = sums + more
        sums[n] = 0.0
        ancestor = ancestor[ancestor]
    return sums[:n]
