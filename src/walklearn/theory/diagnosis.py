"""Theory of a walk before it is run: mixing, the theorems' constants, and warnings.

With f = mean of f_i, L_i the smoothness of f_i, w* the minimiser, σ² = mean ‖∇f_i(w*)‖² and
λ_P = (max(|λ_2|, |λ_N|) + 1)/2, a walk with visit weights v and ĝ = (v̄ / v_i) ∇f_i has

    E[f(w̄_k) − f*] = O( max{ (v̄ / inf v) σ²,  (v̄ max_i L_i/v_i)²,  1/ln(1/λ_P) } / k^(1−q) )

for γ_k = c / k^q, 0.5 < q < 1. With v = 1 this is Theorem 1 (σ², (sup L)²), with v = L it is
Theorem 2 ((L̄ / inf L) σ², L̄²). The O hides the diameter of W, the bound of the gradients and
c, so the constants compare walks on one problem; they predict no error.

The minimiser need not be unique: for convex f_i all ∇f_i, and therefore σ², are the same at
every w*.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from walklearn.checks import check_kind, check_number
from walklearn.graphs import Graph
from walklearn.graphs.graph import check_node_count
from walklearn.graphs.sparse_rows import SparseMatrix
from walklearn.objectives import Problem
from walklearn.objectives.linear.optimum import NoMinimiserError
from walklearn.theory.constants import Constant, residual
from walklearn.theory.coverage import Coverage, measure
from walklearn.theory.inputs import DiagnosisInput
from walklearn.theory.printing import lines_of
from walklearn.theory.spectrum import (
    Method,
    Range,
    Spectrum,
    exact_spectrum,
    matrix_of,
    spectrum_of,
)
from walklearn.theory.warnings import warnings_of
from walklearn.updates.step_sizes import StepSize
from walklearn.walks import Walk
from walklearn.walks.disclosure import disclosure_of, mechanism_of
from walklearn.walks.markov import StationaryUnknownError
from walklearn.walks.walk import draw_walk


@dataclass(frozen=True)
class Diagnosis:
    """Theory of a walk on a graph, for a problem. Print it.

    Parameters
    ----------
    walk
        The walk, as it prints itself.
    node_count
        The number of nodes N.
    edge_count
        The number of edges.
    reversible
        True if the walk is reversible; the theorems need that.
    method
        "closed form", "eigenvalues", "bound" (spectral_gap is the lower end of gap_bounds, and
        numbers derived from it are pessimistic) or "unknown" (NaN). For a walk that is not
        reversible, lambda_2 is the second largest modulus and lambda_N is NaN. For a walk without
        a matrix, all numbers are those of its base walk. "measured": the walk is not known to be a
        Markov chain, as covering walks are not. Its spectrum is NaN, and `coverage` replaces it.
    lambda_2
        The second largest eigenvalue of the transition matrix.
    lambda_N
        The smallest eigenvalue.
    spectral_gap
        ``1 − max(|λ_2|, |λ_N|)``.
    gap_bounds
        Proven lower and upper bound of the gap.
    mixing_time
        ln(4 / π_min) / gap, an upper bound of the steps to total variation 1/4.
    acceptance_rate
        The share of the steps that move the token, measured if the method is "measured".
    residual
        The noise σ² at the optimum; NaN if there is no optimum.
    effective_smoothness
        L of the steps: the largest product of L_i and the factor of ∇f_i in ĝ. A gap weight counts
        as (longest gap of the node) / N, as measured, and at least as 1, its first weight.
    constant
        The constant of the theorem that applies; for a private walk, the constant of one simulated
        draw. None if no theorem applies.
    setup_messages
        The number of messages before the walk, one each way per edge.
    warnings
        Possible problems and their remedies.
    printed_constant
        (Lmax/Lmin) σ² + Lmax² for clamped releases, as printed in the paper; otherwise NaN. The
        constant of a draw can exceed it, because its second term fits neither reweighting.
    coverage
        The cover time and the longest gap of covering walks, of all walks with gap weights and of
        walks without a known stationary distribution, measured along paths; otherwise None.

    Examples
    --------
    >>> from walklearn import Problem, graphs, walks
    >>> problem = Problem([[1.0], [2.0], [3.0]], [1.0, -1.0, 1.0], penalty=1.0)
    >>> diagnosis = diagnose(graphs.complete(3), problem, walks.Uniform())
    >>> round(diagnosis.spectral_gap, 6), round(diagnosis.relaxation_time, 6), diagnosis.method
    (0.5, 2.0, 'closed form')
    """

    walk: str
    node_count: int
    edge_count: int
    reversible: bool
    method: Method
    lambda_2: float
    lambda_N: float
    spectral_gap: float
    gap_bounds: Range
    mixing_time: float
    acceptance_rate: float
    residual: float
    effective_smoothness: float
    constant: Constant | None
    setup_messages: int
    warnings: tuple[str, ...]
    printed_constant: float = math.nan
    coverage: Coverage | None = None

    @property
    def cover_time(self) -> float:
        """The largest measured number of steps until every node was visited; NaN if unmeasured."""
        return math.nan if self.coverage is None else self.coverage.cover_time

    @property
    def longest_gap(self) -> float:
        """The largest measured number of steps between two visits to a node; NaN if unmeasured."""
        return math.nan if self.coverage is None else self.coverage.longest_gap

    @property
    def lambda_P(self) -> float:
        """``(max(|λ_2|, |λ_N|) + 1)/2``, as in the theorems."""
        return 1.0 - self.spectral_gap / 2.0

    @property
    def relaxation_time(self) -> float:
        """1 / gap, the steps in which the influence of the start falls by a factor e."""
        return 1.0 / self.spectral_gap if self.spectral_gap else math.inf

    @property
    def largest_step(self) -> float:
        """2 / L: a larger step overshoots at some node."""
        return 2.0 / self.effective_smoothness if self.effective_smoothness else math.inf

    def __str__(self) -> str:
        return "\n".join(lines_of(self))


def diagnose(
    graph: Graph,
    problem: Problem,
    walk: Walk,
    step_size: StepSize | None = None,
    seed: int | np.random.SeedSequence | None = 0,
) -> Diagnosis:
    """Compute the spectral gap, the mixing time, the constant of the theorem, and warnings.

    Covering walks do not mix: for them the cover time and the longest gap are measured, along paths
    with a fixed seed. A private walk is diagnosed for one simulated draw of its releases. The
    constants and the warnings of bias are about `Sgd`; updates with memory converge with any walk.

    Parameters
    ----------
    graph
        Communication graph.
    problem
        The objective.
    walk
        The walk, which chooses the next node.
    step_size
        A step, to be checked against the smoothness and the noise of the problem.
    seed
        The seed of a private walk's simulated draw.

    Returns
    -------
    Diagnosis
        The numbers and warnings, which can be printed.

    Examples
    --------
    >>> from walklearn import ConstantStep, Problem, graphs, walks
    >>> problem = Problem([[1.0], [2.0], [3.0]], [1.0, -1.0, 1.0], penalty=1.0)
    >>> diagnosis = diagnose(graphs.complete(3), problem, walks.Weighted(), ConstantStep(5.0))
    >>> diagnosis.constant.theorem, round(diagnosis.constant.smoothness, 2)
    ('Theorem 2', 20.25)
    >>> diagnosis = diagnose(graphs.complete(3), problem, walks.OldestFirst())
    >>> diagnosis.cover_time, diagnosis.longest_gap, diagnosis.coverage.gap_bound
    (2.0, 3, 26)
    """
    signature = " for diagnose(graph, problem, walk)"
    check_kind("graph", graph, Graph, f"a Graph{signature}")
    check_kind("problem", problem, Problem, f"a Problem{signature}")
    check_kind("walk", walk, Walk, f"a walk such as walks.Weighted(){signature}")
    check_node_count(graph, problem)
    drawn_walk = draw_walk(walk, graph, problem, np.random.default_rng(seed))
    P, spectrum = _chain_of(graph, drawn_walk, problem)
    is_measured = drawn_walk.has_gap_weights or spectrum.method == "measured"
    measurement = measure(graph, problem, drawn_walk) if is_measured else None
    optimum_residual, reason = math.nan, ""
    try:
        optimum_residual = residual(problem, problem.solution.model)
    except NoMinimiserError as error:
        reason = str(error)
    inputs = DiagnosisInput(
        graph,
        problem,
        drawn_walk,
        step_size,
        spectrum,
        None if P is None else P.diagonal(),
        optimum_residual,
        reason,
        measurement,
    )
    return Diagnosis(
        walk=repr(walk),
        node_count=graph.node_count,
        edge_count=graph.edge_count,
        reversible=drawn_walk.reversible,
        method=spectrum.method,
        lambda_2=1.0 - spectrum.gap_2[0],
        lambda_N=spectrum.gap_N[0] - 1.0 if not drawn_walk.is_biased else math.nan,
        spectral_gap=spectrum.gap[0],
        gap_bounds=spectrum.gap,
        mixing_time=_steps_to_mix(graph, drawn_walk, problem, spectrum, 0.25),
        acceptance_rate=_acceptance_rate(inputs),
        residual=optimum_residual,
        effective_smoothness=float(inputs.step_smoothness().max()),
        constant=inputs.constant(),
        printed_constant=_printed_constant(walk, optimum_residual),
        setup_messages=2 * graph.edge_count * bool(drawn_walk.sent_length),
        warnings=tuple(warnings_of(inputs)),
        coverage=None if measurement is None else measurement.coverage,
    )


def _chain_of(graph: Graph, walk: Walk, problem: Problem) -> tuple[SparseMatrix | None, Spectrum]:
    """Return the transition matrix and the spectrum of a walk; None and NaN if they are unknown."""
    try:
        P = matrix_of(graph, walk, problem)
        return P, spectrum_of(graph, walk, problem, P)
    except StationaryUnknownError:
        return None, exact_spectrum(math.nan, math.nan, "measured")


def _acceptance_rate(inputs: DiagnosisInput) -> float:
    if inputs.spectrum.method == "measured" and inputs.measurement is not None:
        return inputs.measurement.acceptance_rate
    if inputs.stays is None and not inputs.walk.is_independent:
        return math.nan
    return inputs.walk.acceptance_rate(inputs.graph, inputs.problem)


def spectral_gap(graph: Graph, walk: Walk, problem: Problem | None = None) -> float:
    """Return the spectral gap ``1 − max(|λ_2|, |λ_N|)``: 0 for a walk that never mixes, at most 1.

    Parameters
    ----------
    graph
        Communication graph.
    walk
        The walk, which chooses the next node.
    problem
        The rows, for a walk that depends on them, such as `Weighted`.

    Returns
    -------
    float
        The gap; a lower bound if the eigenvalues are too expensive, NaN if they are unknown.
        `diagnose` says which.

    Examples
    --------
    >>> from walklearn import graphs, walks
    >>> spectral_gap(graphs.complete(5), walks.Uniform())
    0.75
    """
    return spectrum_of(graph, walk, problem).gap[0]


def mixing_time(
    graph: Graph, walk: Walk, problem: Problem | None = None, distance: float = 0.25
) -> float:
    """Bound the number of steps until the token's distribution is close to the stationary one, π.

    The bound is ln(1 / (distance · π_min)) / gap, for any first node.

    Parameters
    ----------
    graph
        Communication graph.
    walk
        The walk, which chooses the next node.
    problem
        The rows, for a walk that depends on them, such as `Weighted`.
    distance
        The largest distance, in total variation.

    Returns
    -------
    float
        An upper bound of the steps.

    Examples
    --------
    >>> from walklearn import graphs, walks
    >>> round(mixing_time(graphs.complete(5), walks.Uniform()), 2)      # ln(20) / 0.75
    3.99
    """
    check_number("distance", distance, above=0.0, below=1.0)
    return _steps_to_mix(graph, walk, problem, spectrum_of(graph, walk, problem), distance)


def _printed_constant(walk: Walk, residual: float) -> float:
    """Return (Lmax/Lmin) σ² + Lmax² for releases clamped to [Lmin, Lmax]; else NaN."""
    mechanism = mechanism_of(walk) if walk.is_private else None
    if mechanism is None or mechanism.clamp is None or disclosure_of(walk).scaled_by:
        return math.nan
    low, high = mechanism.clamp
    return float(high / low * residual + high**2)


def _steps_to_mix(
    graph: Graph, walk: Walk, problem: Problem | None, spectrum: Spectrum, distance: float
) -> float:
    gap = spectrum.gap[0]
    if walk.is_biased or math.isnan(gap):
        return math.nan  # the gap of a walk that is not reversible bounds nothing
    if gap in (0.0, 1.0):
        return 1.0 if gap else math.inf  # with gap 1 the next draw is already from π
    min_share = float(walk.stationary(graph, problem).min())
    return -math.log(distance * min_share) / gap
