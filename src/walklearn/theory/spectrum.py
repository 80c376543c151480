"""The second and the last eigenvalue of a walk: how fast it forgets where it was.

A reversible chain P with law π has real eigenvalues 1 = λ_1 > λ_2 ≥ … ≥ λ_N ≥ −1. Its speed
is set by the distances of the two ends from ±1, which is what a `Spectrum` holds:

    near = 1 − λ_2,   far = 1 + λ_N,   spectral gap = min(near, far).

They come from a closed form on the ring, torus, hypercube, complete graph and star where one
is known, elsewhere from the Lanczos iteration on the symmetric S = D^½ P D^-½, D = diag(π),
whose entries are √(P_ij P_ji) and whose top eigenvector is √π. That eigenvector is moved to
the mean μ of the other eigenvalues: λ_N ≤ μ ≤ λ_2, so it is never in the way. Lanczos keeps
three vectors, and gives both ends at once, from inside: λ_N ≤ θ_N and θ_2 ≤ λ_2.

The iteration has a budget (`MAX_PRODUCTS`, `MAX_WORK`). Where it runs out, θ bounds the
distances from above, and from below they are bounded by

    near ≥ 1 / max_e Q(e)⁻¹ Σ_{x,y: e on the path from x to y} |path| π_x π_y
    far  ≥ 2 / max_e Q(e)⁻¹ Σ_{x: e on the odd way from x to x} |way| π_x

(Diaconis & Stroock 1991), with the paths of a breadth-first tree, and Q(e) = π_i P_ij.

>>> from walklearn import graphs, walks
>>> spectrum_of(graphs.complete(5), walks.Uniform(laziness=0.5))
Spectrum(near=(0.625, 0.625), far=(1.375, 1.375), method='closed form')
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal, TypeAlias

import numpy as np
from numpy.typing import NDArray

from walklearn.arrays import Vector
from walklearn.graphs import Graph
from walklearn.objectives import Problem
from walklearn.walks import Metropolis, Walk

if TYPE_CHECKING:
    from scipy.sparse import csr_array

Range: TypeAlias = tuple[float, float]
Method: TypeAlias = Literal["closed form", "eigenvalues", "bound", "unknown"]

MAX_PRODUCTS = 100_000  # products of P with a vector before a bound has to do
MAX_WORK = 1e10  # … and fewer on a large graph: products × (entries of P + 10 N), about 20 s
TOLERANCE = 1e-6  # residual / distance from ±1 of a converged eigenvalue; its error is the square
ROUGH = 1e-3  # … past a tenth of the budget: three digits at the least
MAX_NODES_WITH_JUMPS = 2000  # the matrix of a jumping walk is nearly dense
MIN_FOR_ARPACK = 32  # below this many nodes dense eigenvalues are simpler


@dataclass(frozen=True)
class Spectrum:
    """1 − λ_2 and 1 + λ_N, each as (lower, upper) end: equal but for the method "bound".

    For a walk that is not reversible both are 1 − |λ| of the second largest modulus.
    """

    near: Range
    far: Range
    method: Method

    @property
    def gap(self) -> Range:
        """The spectral gap, its lower and its upper end."""
        return min(self.near[0], self.far[0]), min(self.near[1], self.far[1])


def spectrum_of(
    graph: Graph, walk: Walk, problem: Problem | None = None, matrix: csr_array | None = None
) -> Spectrum:
    """The spectrum of a walk; pass its transition matrix if you have it already.

    >>> from walklearn import graphs, walks
    >>> spectrum_of(graphs.erdos_renyi(50, 0.2, seed=1), walks.Uniform()).method
    'eigenvalues'
    """
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
    """A spectrum whose two eigenvalues are known exactly."""
    return Spectrum((near, near), (far, far), method)


def matrix_of(graph: Graph, walk: Walk, problem: Problem | None) -> csr_array | None:
    """Transition matrix of a walk's base; None if it has none or is nearly dense."""
    is_dense = walk.slow_stationary and graph.node_count > MAX_NODES_WITH_JUMPS
    if walk.is_independent or is_dense:
        return None
    return walk.matrix_walk.transition_matrix(graph, problem)


def closed_form(graph: Graph, walk: Metropolis, problem: Problem | None = None) -> Spectrum | None:
    """The spectrum where a formula is known, else None.

    Where the score v / deg is constant nothing is ever rejected and P = A / deg; on the star
    the uniform walk has a formula too. Laziness ℓ makes it ℓ + (1 − ℓ)λ.

    >>> from walklearn import graphs, walks
    >>> closed_form(graphs.hypercube(4), walks.Simple())
    Spectrum(near=(0.5, 0.5), far=(0.0, 0.0), method='closed form')
    """
    if not graph.family or graph.node_count < 2:
        return None
    if not walk.inherits("hop", "transition_matrix"):
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


def reversible(P: csr_array, π: Vector, bipartite: bool, products: int | None = None) -> Spectrum:
    """The spectrum of a reversible matrix with law π, within a budget of products with P."""
    if products is None:
        products = int(min(MAX_PRODUCTS, MAX_WORK / (P.nnz + 10 * π.size)))
    stays = P.diagonal()
    near, far = _lanczos(_symmetric(P, π, stays), π.size, products)
    if bipartite and not stays.any():
        far = (0.0, 0.0)  # period 2: the last eigenvalue is −1
    converged = near[0] == near[1] and far[0] == far[1]
    if near[0] < near[1]:
        near = (min(near[1], poincare(P, π)), near[1])
    if far[0] < far[1]:
        far = (min(far[1], max(2 * float(stays.min()), odd_ways(P, π))), far[1])
    return Spectrum(near, far, "eigenvalues" if converged else "bound")


def _symmetric(P: csr_array, π: Vector, stays: Vector) -> Callable[[Vector], Vector]:
    """S − (1 − μ) √π √πᵀ as a function of a vector."""
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
    """(lower, upper) of 1 − λ_max and 1 + λ_min; the lower is 0 where it did not converge.

    Orthogonality is lost on the way, which repeats eigenvalues but never moves the ends.
    """
    vector = np.random.default_rng(0).standard_normal(size)  # fixed: the same answer every time
    vector /= np.linalg.norm(vector)
    before, β = np.zeros(size), 0.0
    diagonal: list[float] = []
    beside: list[float] = []
    found: dict[int, Range] = {}
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
                if end not in found or found[end][0] < found[end][1]:
                    θ, residual = _ritz(diagonal, beside, end, 0.0 if exhausted else β)
                    distance = max(0.0, 1.0 - end * θ)
                    converged = residual <= tolerance * max(distance, 1e-10)
                    found[end] = (distance if converged else 0.0), distance
            if exhausted or all(low == high for low, high in found.values()):
                break
        beside.append(β)
        before, vector = vector, following / β
    return found[1], found[-1]


def _dot(one: Vector, other: Vector) -> float:
    """one · other, without the threads of BLAS, which cost more than they bring here."""
    return float(np.einsum("i,i->", one, other))


def _ritz(diagonal: list[float], beside: list[float], end: int, β: float) -> tuple[float, float]:
    """The largest (end = 1) or smallest eigenvalue of the tridiagonal matrix, and its residual."""
    from scipy.linalg import eigh_tridiagonal

    last = len(diagonal) - 1 if end == 1 else 0
    θ, vectors = eigh_tridiagonal(
        diagonal, beside, select="i", select_range=(last, last), lapack_driver="stebz"
    )
    return float(θ[0]), β * abs(float(vectors[-1, 0]))


def irreversible(P: csr_array, π: Vector) -> Spectrum:
    """1 − |λ| for the second largest modulus; P − 1πᵀ has eigenvalue 0 in place of 1."""
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


def poincare(P: csr_array, π: Vector) -> float:
    """A lower bound of 1 − λ_2 by the paths of a breadth-first tree.

    For the edge from a node to its parent, with m the mass of the node's subtree, A the sum
    of π times the distance to the node inside it and D the same to the parent over all nodes,
    the paths across have length A(1 − m) + m(1 − m) + m(D − A − m) in all.

    >>> from walklearn import graphs, walks
    >>> path = graphs.grid(1, 3)
    >>> poincare(walks.Uniform().transition_matrix(path), np.full(3, 1 / 3))   # λ_2 = 1/2
    0.5
    """
    root, parent = _central_tree(P)
    m = _subtree_sums(π, parent)
    A_and_m = _subtree_sums(m, parent)  # every x counts once for each node up to the top
    steps = 1.0 - 2.0 * m  # D(child) = D(parent) + 1 − 2 m(child)
    steps[root] = A_and_m[root] - m[root]
    D = _sums_above(steps, parent)
    child = np.flatnonzero(parent < π.size)
    m, A_and_m, above = m[child], A_and_m[child], D[parent[child]]
    Q = π[child] * P[child, parent[child]]
    load = (1.0 - m) * A_and_m + m * (above - A_and_m)
    return float((Q / load).min())


def odd_ways(P: csr_array, π: Vector) -> float:
    """A lower bound of 1 + λ_N, by paths from each x to the nearest node that stays often and back.

    0 if no node ever stays.

    >>> from walklearn import graphs, walks
    >>> path = graphs.grid(1, 3)
    >>> odd_ways(walks.Uniform().transition_matrix(path), np.full(3, 1 / 3))   # λ_N = −1/2
    0.25
    """
    from scipy.sparse import csr_array
    from scipy.sparse.csgraph import breadth_first_order

    n, stays = π.size, P.diagonal()
    if not stays.any():
        return 0.0
    rests = np.flatnonzero(stays >= 0.5 * stays.max())
    # One more node, n, from which every resting place is one step away.
    indptr = np.append(P.indptr, P.nnz + rests.size)
    indices, data = np.append(P.indices, rests), np.append(P.data, np.ones(rests.size))
    with_source = csr_array((data, indices, indptr), shape=(n + 1, n + 1))
    parent = breadth_first_order(with_source, n)[1][:n].astype(np.intp)
    length = 2.0 * _sums_above(np.ones(n), parent) - 1.0
    onward = np.where(parent < n, parent, np.arange(n))  # a resting place goes to itself
    Q = π * P[np.arange(n), onward]
    return float(2.0 * (Q / _subtree_sums(length * π, parent)).min())


def _central_tree(P: csr_array) -> tuple[int, NDArray[np.intp]]:
    """A breadth-first tree from the middle of a long shortest path; the root's parent is N."""
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


def _subtree_sums(values: Vector, parent: NDArray[np.intp]) -> Vector:
    """The sum over each node and all below it, in log₂(depth) rounds of doubled jumps."""
    n = values.size
    ancestor, sums = np.append(parent, n), np.append(values, 0.0)
    while (ancestor < n).any():
        sums = sums + np.bincount(ancestor, weights=sums, minlength=n + 1)
        sums[n] = 0.0
        ancestor = ancestor[ancestor]
    return sums[:n]


def _sums_above(values: Vector, parent: NDArray[np.intp]) -> Vector:
    """The sum over each node and all above it, up to the root."""
    n = values.size
    ancestor, sums = np.append(parent, n), np.append(values, 0.0)
    while (ancestor < n).any():
        sums = sums + sums[ancestor]
        ancestor = ancestor[ancestor]
    return sums[:n]
