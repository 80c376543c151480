"""What theory says of a walk before it is run: mixing, the theorems' constants, and warnings.

With f = mean of f_i, L_i the smoothness of f_i, w* the minimiser, σ² = mean ‖∇f_i(w*)‖² and
λ_P = (max(|λ_2|, |λ_N|) + 1)/2, a walk with visit weights v and ĝ = (v̄ / v_i) ∇f_i has

    E[f(w̄_k) − f*] = O( max{ (v̄ / inf v) σ²,  (v̄ max_i L_i/v_i)²,  1/ln(1/λ_P) } / k^(1−q) )

for γ_k = c / k^q, 0.5 < q < 1. With v = 1 this is Theorem 1 (σ², (sup L)²), with v = L it is
Theorem 2 ((L̄ / inf L) σ², L̄²). The O hides the diameter of W, the bound of the gradients and
c, so the constants compare walks on one problem; they predict no error.

The minimiser need not be unique: for convex f_i all ∇f_i, hence σ², are the same at every w*.

>>> from walklearn import Problem, graphs, walks
>>> problem = Problem([[1.0], [1.0], [1.0], [3.0]], [1.0, 1.0, -1.0, 1.0], penalty=1.0)
>>> diagnosis = diagnose(graphs.ring(4), problem, walks.Uniform())
>>> diagnosis.spectral_gap, diagnosis.mixing_time
(0.0, inf)
>>> print(diagnosis.warnings[0])
The walk has period 2: the graph is bipartite and the token never stays, so it is on one side
at even steps and on the other at odd ones, and never mixes (λ_N = -1). Pass laziness=0.1.
>>> round(diagnose(graphs.ring(4), problem, walks.Uniform(laziness=0.5)).spectral_gap, 6)
0.5
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from walklearn.checks import check_kind, check_number
from walklearn.graphs import Graph
from walklearn.graphs.graph import check_node_count
from walklearn.objectives import Problem
from walklearn.objectives.linear.optimum import NoMinimiserError
from walklearn.theory.cautions import cautions
from walklearn.theory.spectrum import Method, Range, Spectrum, matrix_of, spectrum_of
from walklearn.theory.walk_facts import Constant, Facts, residual
from walklearn.updates.step_sizes import StepSize
from walklearn.updates.update import Update
from walklearn.walks import Walk
from walklearn.walks.disclosure import disclosure_of, mechanism_of
from walklearn.walks.walk import draw_walk


@dataclass(frozen=True)
class Diagnosis:
    """What theory says of a walk on a graph, for a problem. Print it.

    Parameters
    ----------
    walk
        The walk, as it prints itself.
    node_count
        The number of nodes N.
    edge_count
        The number of edges.
    reversible
        Whether the walk is reversible; the theorems need that.
    method
        How the eigenvalues were got: "closed form", "eigenvalues", "bound" (then spectral_gap
        is the lower end of gap_bounds, and all that follows from it is pessimistic) or
        "unknown" (then they are NaN). For a walk that is not reversible lambda_2 is the second
        largest modulus and lambda_N is NaN; for `NonBacktracking` all are those of its base
        walk.
    lambda_2
        The second largest eigenvalue of the transition matrix.
    lambda_N
        The smallest eigenvalue.
    spectral_gap
        ``1 − max(|λ_2|, |λ_N|)``.
    gap_bounds
        Between which numbers the gap lies for certain.
    mixing_time
        ln(4 / π_min) / gap, an upper bound of the steps to total variation 1/4.
    acceptance_rate
        The share of the steps that move the token.
    residual
        Σ², the noise at the optimum; NaN if there is no optimum.
    effective_smoothness
        L of the steps: the largest product of L_i and the factor of ∇f_i in ĝ.
    constant
        The constant of the theorem that applies, for a private walk that of one simulated draw;
        None where no theorem applies.
    setup_messages
        How many messages the nodes send before the walk, one each way per edge.
    warnings
        What may go wrong, and what to do.
    printed_constant
        For clamped releases (Lmax/Lmin) σ² + Lmax², as the paper prints it; its second term is
        not what either reweighting gives, so single draws exceed it. It is NaN elsewhere.
    update
        What a visit does, where that was said.
    message_bytes
        The size of the token.
    node_bytes
        The most that a node keeps between visits.

    Examples
    --------
    >>> from walklearn import Problem, graphs, walks
    >>> problem = Problem([[1.0], [2.0], [3.0]], [1.0, -1.0, 1.0], penalty=1.0)
    >>> found = diagnose(graphs.complete(3), problem, walks.Uniform())
    >>> round(found.spectral_gap, 6), round(found.relaxation_time, 6), found.method
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
    update: str = ""
    message_bytes: int = 0
    node_bytes: int = 0

    @property
    def lambda_P(self) -> float:
        """``(max(|λ_2|, |λ_N|) + 1)/2``, as the theorems have it."""
        return 1.0 - self.spectral_gap / 2.0

    @property
    def relaxation_time(self) -> float:
        """1 / gap, the steps in which the memory of the start falls by a factor e."""
        return 1.0 / self.spectral_gap if self.spectral_gap else math.inf

    @property
    def largest_step(self) -> float:
        """2 / L: a larger step overshoots at some node."""
        return 2.0 / self.effective_smoothness if self.effective_smoothness else math.inf

    def __str__(self) -> str:
        return "\n".join(_lines(self))


def diagnose(
    graph: Graph,
    problem: Problem,
    walk: Walk,
    step_size: StepSize | None = None,
    seed: int | np.random.SeedSequence | None = 0,
    update: Update | None = None,
) -> Diagnosis:
    """Tell the spectral gap, the mixing time, the theorem's constant, and warnings with what to do.

    A private walk is diagnosed for one simulated draw of its releases. An update with memory has no
    theorem's constant, and none of the walk's biases.

    Parameters
    ----------
    graph
        Who can talk to whom.
    problem
        What is minimised.
    walk
        Who is next.
    step_size
        A step to be checked against the smoothness and the noise of the problem.
    seed
        The seed of a private walk's simulated draw.
    update
        What a visit does; its bytes, its memory and what it tells are then added.

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
    """
    _check_arguments(graph, problem, walk)
    over_draws = _printed_constant(problem, walk)
    label = repr(walk)
    walk = draw_walk(walk, graph, problem, np.random.default_rng(seed))
    P = matrix_of(graph, walk, problem)
    spectrum = spectrum_of(graph, walk, problem, P)
    stays = None if P is None else P.diagonal()
    at_optimum, reason = _residual_at_optimum(problem)
    if update is not None and not update.converges:
        step_size = step_size or getattr(update, "step_size", None)
    facts = Facts(graph, problem, walk, step_size, spectrum, stays, at_optimum, reason, update)
    return Diagnosis(
        walk=label,
        node_count=graph.node_count,
        edge_count=graph.edge_count,
        reversible=walk.reversible,
        method=spectrum.method,
        lambda_2=1.0 - spectrum.near[0],
        lambda_N=spectrum.far[0] - 1.0 if not walk.is_biased else math.nan,
        spectral_gap=spectrum.gap[0],
        gap_bounds=spectrum.gap,
        mixing_time=_steps_to_mix(graph, walk, problem, spectrum, 0.25),
        acceptance_rate=facts.acceptance_rate(),
        residual=at_optimum,
        effective_smoothness=float(facts.step_smoothness.max()),
        constant=None if facts.remembers else facts.constant(),
        printed_constant=over_draws,
        setup_messages=2 * graph.edge_count * bool(walk.numbers_sent),
        warnings=tuple(cautions(facts)),
        update="" if update is None else repr(update),
        message_bytes=0 if update is None else update.message_bytes(problem),
        node_bytes=0 if update is None else update.node_bytes(problem),
    )


def spectral_gap(graph: Graph, walk: Walk, problem: Problem | None = None) -> float:
    """The spectral gap ``1 − max(|λ_2|, |λ_N|)``: 0 for a walk that never mixes, at most 1.

    Parameters
    ----------
    graph
        Who can talk to whom.
    walk
        Who is next.
    problem
        The rows, for a walk whose law depends on them, such as `Weighted`.

    Returns
    -------
    float
        The gap; a lower bound where the eigenvalues are out of reach, NaN where they are
        unknown. `diagnose` says which.

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
    """Bound the number of steps after which the token's law is close to its stationary law π.

    The bound is ln(1 / (distance · π_min)) / gap, wherever the token starts.

    Parameters
    ----------
    graph
        Who can talk to whom.
    walk
        Who is next.
    problem
        The rows, for a walk whose law depends on them, such as `Weighted`.
    distance
        How close, in total variation.

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


def _printed_constant(problem: Problem, walk: Walk) -> float:
    """The paper's (Lmax/Lmin) σ² + Lmax² for releases clamped to [Lmin, Lmax]; else NaN."""
    mechanism = mechanism_of(walk) if walk.is_private else None
    if mechanism is None or mechanism.clamp is None or disclosure_of(walk).scaled_by:
        return math.nan
    low, high = mechanism.clamp
    return float(high / low * _residual_at_optimum(problem)[0] + high**2)


def _steps_to_mix(
    graph: Graph, walk: Walk, problem: Problem | None, spectrum: Spectrum, distance: float
) -> float:
    gap = spectrum.gap[0]
    if walk.is_biased:
        return math.nan  # the gap of a walk that is not reversible bounds nothing by itself
    if gap in (0.0, 1.0):
        return 1.0 if gap else math.inf  # with gap 1 the next draw is already from π
    smallest = float(walk.stationary(graph, problem).min())
    return -math.log(distance * smallest) / gap


def _residual_at_optimum(problem: Problem) -> tuple[float, str]:
    """σ², or NaN and why."""
    try:
        return residual(problem, problem.solution.model), ""
    except NoMinimiserError as error:
        return math.nan, str(error)


def _check_arguments(graph: Graph, problem: Problem, walk: Walk) -> None:
    order = " for diagnose(graph, problem, walk)"
    check_kind("graph", graph, Graph, f"a Graph{order}")
    check_kind("problem", problem, Problem, f"a Problem{order}")
    check_kind("walk", walk, Walk, f"a walk such as walks.Weighted(){order}")
    check_node_count(graph, problem)


def _lines(d: Diagnosis) -> Iterator[str]:
    yield f"{d.walk} on {d.node_count:,} nodes and {d.edge_count:,} edges"
    yield f"  spectral gap        {_number(d.spectral_gap):<10} {_origin(d)}"
    below_one = f"1 - {d.spectral_gap / 2:.4g}" if 0 < d.spectral_gap < 1e-3 else ""
    yield f"  λ_P                 {below_one or _number(d.lambda_P)}"
    yield f"  relaxation time     {_number(d.relaxation_time):<10} steps"
    yield f"  mixing time         {_number(d.mixing_time):<10} steps at most (to total variation ¼)"
    yield f"  acceptance rate     {_number(d.acceptance_rate):<10} of the steps move the token"
    yield f"  set-up              {d.setup_messages:<10,} messages"
    yield f"  residual σ²         {_number(d.residual)}"
    yield f"  largest step 2/L    {_number(d.largest_step)}"
    if d.update:
        yield f"  update              {d.update}"
        yield f"    a message         {d.message_bytes:<10,} bytes"
        yield f"    a node keeps      {d.node_bytes:<10,} bytes at most"
    if not math.isnan(d.printed_constant):
        over = _number(d.printed_constant)
        yield f"  the paper's bound   {over:<10} (Lmax / Lmin) σ² + Lmax², as printed; see docs"
    if d.constant is None:
        yield "  constant            none: no theorem covers this walk"
    else:
        yield f"  constant            {_number(d.constant.value):<10} {d.constant.theorem}, max of"
        terms = (d.constant.noise, d.constant.smoothness, d.constant.mixing)
        for name, formula, term in zip(_TERMS, d.constant.formulas, terms, strict=True):
            mark = "  <- largest" if term == d.constant.value else ""
            yield f"    {name:<17} {_number(term):<10} {formula}{mark}"
        yield "  Constants hide factors (diameter of W, gradient bound, c): compare like with like."
    if d.warnings:
        yield "Warnings"
    for warning in d.warnings:
        yield f"  - {warning}"


_TERMS = ("noise", "smoothness", "mixing")


def _origin(d: Diagnosis) -> str:
    if d.method == "unknown":
        return "(unknown)"
    if d.method == "bound":
        return f"(bound: between {_number(d.gap_bounds[0])} and {_number(d.gap_bounds[1])})"
    last = "not reversible" if math.isnan(d.lambda_N) else f"λ_N = {d.lambda_N:.6g}"
    return f"({d.method}: λ_2 = {d.lambda_2:.6g}, {last})"


def _number(value: float) -> str:
    return "unknown" if math.isnan(value) else f"{value:.4g}"
