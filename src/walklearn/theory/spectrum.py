"""The second and the last eigenvalue of a walk, which determine how fast it mixes.

A reversible chain P with stationary distribution π has real eigenvalues
1 = λ_1 > λ_2 ≥ … ≥ λ_N ≥ −1. Its speed depends on the distances of the two ends from ±1:

    gap_2 = 1 − λ_2,   gap_N = 1 + λ_N,   spectral gap = min(gap_2, gap_N).

There is a closed form for the ring, torus, hypercube, complete graph and star. For other graphs
they come from the Lanczos iteration on the symmetric S = D^½ P D^-½, D = diag(π), with entries
√(P_ij P_ji) and top eigenvector √π. The eigenvalue of √π is moved to the mean μ of the others.
Since λ_N ≤ μ ≤ λ_2, this changes neither end. Lanczos keeps three vectors, and approaches both ends
from inside: λ_N ≤ θ_N and θ_2 ≤ λ_2.

The iteration has a budget (`MAX_PRODUCTS`, `MAX_WORK`). If it is exhausted, θ bounds the distances
from above, and these bound them from below:

    gap_2 ≥ 1 / max_e Q(e)⁻¹ Σ_{x,y: e on the path from x to y} |path| π_x π_y
    gap_N ≥ 2 / max_e Q(e)⁻¹ Σ_{x: e on the odd path from x to x} |path| π_x

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
Method: TypeAlias = Literal["closed form", "eigenvalues", "bound", "unknown", "measured"]

MAX_PRODUCTS = 100_000  # products of P with a vector, after which a bound is used
MAX_WORK = 1e10  # limit of products × (entries of P + 10 N) for large graphs, about 20 s
TOLERANCE = 1e-6  # residual / distance from ±1 of a converged eigenvalue; its error is the square
ROUGH_TOLERANCE = 1e-3  # replaces TOLERANCE after a tenth of the budget: at least three digits
MAX_NODES_WITH_JUMPS = 2000  # the matrix of a jumping walk is nearly dense
MIN_FOR_ARPACK = 32  # below this many nodes dense eigenvalues are simpler


@dataclass(frozen=True)
class Spectrum:
    """1 − λ_2 and 1 + λ_N, each as (lower, upper) bound: equal unless the method is "bound".

    For a walk that is not reversible both are 1 − |λ| of the second largest modulus.
    """

    gap_2: Range
    gap_N: Range
    method: Method

    @property
    def gap(self) -> Range:
        """The lower and the upper bound of the spectral gap."""
        return min(self.gap_2[0], self.gap_N[0]), min(self.upper_ends)

    @property
    def upper_ends(self) -> Range:
        """The upper bounds of 1 − λ_2 and 1 + λ_N."""
        return self.gap_2[1], self.gap_N[1]


def spectrum_of(
    graph: Graph, walk: Walk, problem: Problem | None = None, matrix: SparseMatrix | None = None
) -> Spectrum:
    """Return the spectrum of a walk. `matrix` is its transition matrix, if already computed."""
    if graph.node_count == 1 or walk.is_independent:
        return exact_spectrum(1.0, 1.0, "closed form")
    walk = walk.matrix_walk
    if isinstance(walk, Metropolis):
        known = closed_form(graph, walk, problem)
        if known is not None:
            return known
    P = matrix_of(graph, walk, problem) if matrix is None else matrix
    if P is None:
        return exact_spectrum(np.nan, np.nan, "unknown")
    π = walk.stationary(graph, problem)
    return (
        reversible_spectrum(P, π, graph.is_bipartite)
        if walk.reversible
        else irreversible_spectrum(P, π)
    )


def exact_spectrum(gap_2: float, gap_N: float, method: Method) -> Spectrum:
    """Return a spectrum whose two eigenvalues are known exactly."""
    return Spectrum((gap_2, gap_2), (gap_N, gap_N), method)


def matrix_of(graph: Graph, walk: Walk, problem: Problem | None) -> SparseMatrix | None:
    """Return the transition matrix that stands for a walk; None without one or if it is dense."""
    is_dense = walk.slow_stationary and graph.node_count > MAX_NODES_WITH_JUMPS
    if walk.is_independent or is_dense:
        return None
    return walk.matrix_walk.transition_matrix(graph, problem)


def closed_form(graph: Graph, walk: Metropolis, problem: Problem | None = None) -> Spectrum | None:
    """Return the spectrum if a formula is known, else None.

    If the score v / deg is constant, nothing is rejected and P = A / deg. The uniform walk on a
    star has a formula too. Laziness ℓ turns λ into ℓ + (1 − ℓ)λ.
    """
    if not graph.family or graph.node_count < 2 or not walk.inherits("hop", "transition_matrix"):
        return None
    name, *sizes = graph.family
    scores = walk.announcements(graph, problem)[:, 0]
    is_uniform = not _is_constant(scores) and _is_constant(scores * graph.degrees)
    kind = f"uniform {name}" if is_uniform else name
    if kind not in _FORMULAS or not (is_uniform or _is_constant(scores)):
        return None
    gap_2, gap_N = _FORMULAS[kind](*map(int, sizes))
    stay, move = walk.laziness, 1.0 - walk.laziness
    return exact_spectrum(move * gap_2, 2 * stay + move * gap_N, "closed form")


def _is_constant(values: Vector) -> bool:
    return bool(values.max() - values.min() <= 1e-14 * values.max())


def _ring(n: int) -> Range:
    """λ = cos(2πk/n)."""
    return 2 * float(np.sin(np.pi / n)) ** 2, 2 * float(np.sin(np.pi / (2 * n))) ** 2 * (n % 2)


def _torus(rows: int, columns: int) -> Range:
    """λ = the mean of an eigenvalue of either ring."""
    first, second = _ring(rows), _ring(columns)
    return min(first[0], second[0]) / 2, (first[1] + second[1]) / 2


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


def reversible_spectrum(
    P: SparseMatrix, π: Vector, is_bipartite: bool, limit: float = math.inf
) -> Spectrum:
    """Return the spectrum of a reversible matrix, within a budget of products with P."""
    products = int(min(limit, MAX_PRODUCTS, MAX_WORK / (P.nnz + 10 * π.size)))
    stay_probabilities = P.diagonal()
    gap_2, gap_N = _lanczos(_symmetric(P, π, stay_probabilities), π.size, products)
    if is_bipartite and not stay_probabilities.any():
        gap_N = (0.0, 0.0)  # period 2: the last eigenvalue is −1
    has_converged = gap_2[0] == gap_2[1] and gap_N[0] == gap_N[1]
    if gap_2[0] < gap_2[1]:
        gap_2 = (min(gap_2[1], poincare_bound(P, π)), gap_2[1])
    if gap_N[0] < gap_N[1]:
        gap_N = (
            min(gap_N[1], max(2 * float(stay_probabilities.min()), odd_path_bound(P, π))),
            gap_N[1],
        )
    return Spectrum(gap_2, gap_N, "eigenvalues" if has_converged else "bound")


def _symmetric(
    P: SparseMatrix, π: Vector, stay_probabilities: Vector
) -> Callable[[Vector], Vector]:
    """Return S − (1 − μ) √π √πᵀ as a function of a vector."""
    root = P.sqrt()
    S = root.multiply(root.T.tocsr()).tocsr()  # √ before the product: no underflow
    top_vector = np.sqrt(π)
    μ = (float(stay_probabilities.sum()) - 1.0) / (π.size - 1)

    def multiply(vector: Vector) -> Vector:
        product = np.asarray(S @ vector)
        product -= ((1.0 - μ) * _dot(top_vector, vector)) * top_vector
        return product

    return multiply


def _lanczos(multiply: Callable[[Vector], Vector], size: int, products: int) -> tuple[Range, Range]:
    """Return bounds of 1 − λ_max and 1 + λ_min; a lower bound is 0 without convergence.

    The vectors lose their orthogonality, which repeats eigenvalues but never moves the ends.
    """
    vector = np.random.default_rng(0).standard_normal(size)  # fixed seed: a deterministic result
    vector /= np.linalg.norm(vector)
    previous, β = np.zeros(size), 0.0
    diagonal: list[float] = []
    off_diagonal: list[float] = []
    ends: dict[int, Range] = {}
    next_check = 24
    for k in range(1, products + 1):
        product = multiply(vector) - β * previous
        α = _dot(vector, product)
        product -= α * vector
        β = math.sqrt(_dot(product, product))
        diagonal.append(α)
        is_exhausted = β < 1e-13  # the vectors span the whole space
        if is_exhausted or k == products or k >= next_check:
            next_check = 1 + int(1.2 * k)
            tolerance = TOLERANCE if k < products / 10 else ROUGH_TOLERANCE
            for end in (1, -1):
                if end not in ends or ends[end][0] < ends[end][1]:
                    θ, residual = _ritz(diagonal, off_diagonal, end, 0.0 if is_exhausted else β)
                    distance = max(0.0, 1.0 - end * θ)
                    has_converged = residual <= tolerance * max(distance, 1e-10)
                    ends[end] = (distance if has_converged else 0.0), distance
            if is_exhausted or all(low == high for low, high in ends.values()):
                break
        off_diagonal.append(β)
        previous, vector = vector, product / β
    return ends[1], ends[-1]


def _dot(first: Vector, second: Vector) -> float:
    """Return first · second without the threads of BLAS, which are slower here."""
    return float(np.einsum("i,i->", first, second))


def _ritz(
    diagonal: list[float], off_diagonal: list[float], end: int, β: float
) -> tuple[float, float]:
    """Return the largest (end = 1) or smallest eigenvalue, and its residual."""
    from scipy.linalg import eigh_tridiagonal

    last = len(diagonal) - 1 if end == 1 else 0
    θ, vectors = eigh_tridiagonal(
        diagonal, off_diagonal, select="i", select_range=(last, last), lapack_driver="stebz"
    )
    return float(θ[0]), β * abs(float(vectors[-1, 0]))


def irreversible_spectrum(P: SparseMatrix, π: Vector) -> Spectrum:
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
            return exact_spectrum(np.nan, np.nan, "unknown")
    distance = max(0.0, 1.0 - float(np.abs(λ).max()))
    return exact_spectrum(distance, distance, "eigenvalues")


def poincare_bound(P: SparseMatrix, π: Vector) -> float:
    """Return a lower bound of 1 − λ_2 by the paths of a breadth-first tree.

    For the edge from a node to its parent, let m be the mass of the node's subtree, A the sum of π
    times the distance to the node inside the subtree, and D the same to the parent over all nodes.
    The total length of the paths across is A(1 − m) + m(1 − m) + m(D − A − m).
    """
    root, parent = _central_tree(P)
    m = _tree_sums(π, parent)
    A_and_m = _tree_sums(m, parent)  # every x counts once per node on its path to the root
    steps = 1.0 - 2.0 * m  # D(child) = D(parent) + 1 − 2 m(child)
    steps[root] = A_and_m[root] - m[root]
    D = _tree_sums(steps, parent, upwards=True)
    children = np.flatnonzero(parent < π.size)
    m, A_and_m, D_parent = m[children], A_and_m[children], D[parent[children]]
    Q = π[children] * P[children, parent[children]]
    load = (1.0 - m) * A_and_m + m * (D_parent - A_and_m)
    return float((Q / load).min())


def odd_path_bound(P: SparseMatrix, π: Vector) -> float:
    """Return a lower bound of 1 + λ_N; 0 if no node ever stays.

    Its paths lead from each x to the nearest node that stays often, and back.
    """
    from scipy.sparse import csr_array
    from scipy.sparse.csgraph import breadth_first_order

    n, stay_probabilities = π.size, P.diagonal()
    if not stay_probabilities.any():
        return 0.0
    resting_nodes = np.flatnonzero(stay_probabilities >= 0.5 * stay_probabilities.max())
    # An additional node n is one step from every resting node.
    indptr = np.append(P.indptr, P.nnz + resting_nodes.size)
    indices, data = (
        np.append(P.indices, resting_nodes),
        np.append(P.data, np.ones(resting_nodes.size)),
    )
    with_source = csr_array((data, indices, indptr), shape=(n + 1, n + 1))
    parent = breadth_first_order(with_source, n)[1][:n].astype(np.intp)
    length = 2.0 * _tree_sums(np.ones(n), parent, upwards=True) - 1.0
    next_node = np.where(parent < n, parent, np.arange(n))  # a resting node goes to itself
    Q = π * P[np.arange(n), next_node]
    return float(2.0 * (Q / _tree_sums(length * π, parent)).min())


def _central_tree(P: SparseMatrix) -> tuple[int, NDArray[np.intp]]:
    """Return root and parents of a breadth-first tree from the middle of a long shortest path.

    The parent of the root is N.
    """
    from scipy.sparse.csgraph import breadth_first_order

    far_node = int(breadth_first_order(P, 0)[0][-1])
    order, parent = breadth_first_order(P, far_node)
    path = [int(order[-1])]
    while path[-1] != far_node:
        path.append(int(parent[path[-1]]))
    root = path[len(path) // 2]
    parent = breadth_first_order(P, root)[1].astype(np.intp)
    parent[root] = parent.size
    return root, np.asarray(parent)


def _tree_sums(values: Vector, parent: NDArray[np.intp], upwards: bool = False) -> Vector:
    """Return the sum over each node and all below it, or all above it, up to the root.

    The jumps to ancestors double in length in each of log₂(depth) rounds.
    """
    n = values.size
    ancestor, sums = np.append(parent, n), np.append(values, 0.0)
    while (ancestor < n).any():
        increments = sums[ancestor] if upwards else np.bincount(ancestor, sums, minlength=n + 1)
        sums = sums + increments
        sums[n] = 0.0
        ancestor = ancestor[ancestor]
    return sums[:n]
