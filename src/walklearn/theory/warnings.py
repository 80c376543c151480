"""Warnings about a walk on a problem. Each names the problem and a remedy."""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import TYPE_CHECKING

import numpy as np

from walklearn.theory.spectrum import MAX_NODES_WITH_JUMPS
from walklearn.updates.step_sizes import StepSize
from walklearn.walks.covering import MAX_NODES
from walklearn.walks.disclosure import disclosure_of

if TYPE_CHECKING:
    from walklearn.theory.inputs import DiagnosisInput

LONG_STAY = 20.0  # expected steps at one node, through rejections, that count as entrapment
SLOW_MIXING = 1.0  # relaxation times of more than this many steps per node count as slow


def warnings_of(inputs: DiagnosisInput) -> Iterator[str]:
    """Yield all warnings."""
    yield from _eigenvalue_warnings(inputs)
    yield from _mixing_warnings(inputs)
    yield from _coverage_warnings(inputs)
    yield from _long_stay_warnings(inputs)
    yield from _bias_warnings(inputs)
    if inputs.no_optimum_reason:
        yield f"σ² and the constant are NaN, as {inputs.no_optimum_reason}"
    if not inputs.problem.domain.bounded:
        yield (
            "The domain is unbounded, and the theorems assume that W is bounded. Pass "
            "domain=domains.Ball(radius) with a radius well above ‖w*‖ to be covered."
        )
    if inputs.step_size is not None:
        yield from _step_size_warnings(inputs, inputs.step_size)


def _eigenvalue_warnings(inputs: DiagnosisInput) -> Iterator[str]:
    (low, high), walk = inputs.spectrum.gap, inputs.walk
    if inputs.spectrum.method == "measured":
        return
    if inputs.spectrum.method == "bound":
        laziness_hint = "" if low else " With laziness=0.1 the lower end would be above 0."
        yield (
            f"The eigenvalues did not converge within the budget: the spectral gap is between "
            f"{low:.3g} and {high:.3g}. The lower end is reported, so the mixing time and the "
            f"constant are pessimistic.{laziness_hint}"
        )
    if inputs.spectrum.method == "unknown":
        yield (
            f"The eigenvalues are unknown: on more than {MAX_NODES_WITH_JUMPS} nodes the matrix is "
            f"too dense (or did not converge). Diagnose the base walk {walk.innermost!r}, which "
            "usually mixes no faster."
        )
    elif walk.matrix_walk is not walk and not walk.is_independent:
        yield (
            f"{walk!r} has no matrix over the nodes: the eigenvalues, times and constant are those "
            f"of its base walk {walk.matrix_walk!r}. Measure its visits in a simulation."
        )
    elif not walk.reversible:
        yield (
            f"{walk!r} is not reversible: λ_2 is the second largest modulus, and no bound of the "
            "mixing time follows from it. Measure its visits in a simulation."
        )


def _mixing_warnings(inputs: DiagnosisInput) -> Iterator[str]:
    nodes, (gap_2, gap_N) = inputs.graph.node_count, inputs.spectrum.upper_ends
    if inputs.stays is not None and not inputs.stays.any() and inputs.graph.is_bipartite:
        yield (
            "The walk has period 2: the graph is bipartite and the token never stays, so it is "
            "on one side at even steps and on the other at odd ones, and never mixes "
            "(λ_N = -1). Pass laziness=0.1."
        )
    elif gap_N < gap_2 and gap_N * SLOW_MIXING * nodes < 1.0:
        yield (
            f"The walk nearly alternates between two sides of the graph: after {1.0 / gap_N:.3g} "
            f"steps, for {nodes} nodes, the side still depends on the start. Pass laziness=0.1."
        )
    if gap_2 * SLOW_MIXING * nodes < 1.0:
        yield (
            f"The walk mixes slowly: it takes at least {1.0 / gap_2 if gap_2 else math.inf:.3g} "
            f"steps, for {nodes} nodes, to become independent of its start. Use "
            f"{_covering_walk(nodes)}, or add edges between distant parts of the graph."
        )


def _covering_walk(nodes: int) -> str:
    """Return the covering walk for a number of nodes, with its bound and its cost."""
    if nodes > MAX_NODES:
        return (
            f"walks.Tour(), which visits every node again within {4 * nodes} steps and adds "
            f"{-(-nodes // 8)} bytes to a message (walks.OldestFirst() allows {MAX_NODES} nodes)"
        )
    return (
        f"walks.OldestFirst(), which visits every node again within {10 * nodes} steps and adds "
        f"{4 * nodes} bytes to a message"
    )


def _coverage_warnings(inputs: DiagnosisInput) -> Iterator[str]:
    if inputs.measurement is None:
        return
    walk, nodes, coverage = inputs.walk, inputs.graph.node_count, inputs.measurement.coverage
    if math.isinf(coverage.cover_time) and math.isinf(coverage.cover_bound):
        yield (
            f"In {coverage.path_length} steps {walk!r} did not visit all of the {nodes} nodes. Use "
            f"{_covering_walk(nodes)}."
        )


def _long_stay_warnings(inputs: DiagnosisInput) -> Iterator[str]:
    nodes = inputs.graph.node_count
    if inputs.stays is None or nodes == 1:
        return
    laziness = getattr(inputs.walk.matrix_walk, "laziness", 0.0)
    mean_stays = 1.0 / np.maximum(1.0 - inputs.stays, 2.0**-53)
    is_trap = mean_stays * (1.0 - laziness) > LONG_STAY
    if is_trap.any():
        worst, count = int(np.argmax(mean_stays)), int(is_trap.sum())
        holders = f"{count} nodes hold" if count > 1 else "1 node holds"
        yield (
            f"Entrapment: {holders} the token for more than {LONG_STAY:.0f} steps on average; the "
            f"worst is node {worst} with {mean_stays[worst]:.4g} steps, while the others wait. Use "
            f"{_covering_walk(nodes)}, or walks.Simple(reweight='gap'), which never rejects, or "
            "walks.Jumping(walk, probability=0.1), which lets the token jump out, or clip the "
            "importance, Weighted(importance=np.clip(...))."
        )


def _bias_warnings(inputs: DiagnosisInput) -> Iterator[str]:
    if inputs.is_unbiased or not (inputs.has_noise or inputs.no_optimum_reason):
        return
    walk, disclosure, range_note = inputs.walk, disclosure_of(inputs.walk), ""
    remedy = disclosure.remedy if disclosure.scaled_by else "Uniform() or Simple(reweight='gap')"
    if walk.is_biased:
        remedy = "a lower jump probability, or decrease it to 0 in later runs"
    if inputs.spectrum.method == "measured":
        yield (
            f"The stationary distribution of {walk!r} is unknown, so it may minimise another sum "
            "than f. Define `stationary` and `transition_matrix` in its class to check it."
        )
        return
    if inputs.spectrum.method != "unknown":
        low, high = inputs.weights.min(), inputs.weights.max()
        range_note = f": by its visits and weights, a node counts {low:.2g} to {high:.2g} times"
    yield f"{walk!r} minimises another sum than f{range_note}. No theorem applies. Use {remedy}."


def _step_size_warnings(inputs: DiagnosisInput, step_size: StepSize) -> Iterator[str]:
    c, q = step_size.constant, step_size.exponent
    if q == 0.0 and inputs.has_noise:
        yield (
            f"A constant step with noisy gradients (σ² = {inputs.residual:.3g}) converges only to "
            "a neighbourhood of w* that shrinks with the step. Use PowerStep(c, 0.75) to reach w*."
        )
    if 0.0 < q <= 0.5 or q >= 1.0:
        effect = "the noise is not averaged out" if q < 1.0 else "the steps vanish too early"
        yield (
            f"The step exponent q = {q:g} is outside (0.5, 1), where the theorems hold: {effect}. "
            "Use PowerStep(c, 0.75)."
        )
    ratios = 0.5 * c * inputs.step_smoothness(q)
    ratio = float(ratios.max())
    if ratio <= 1.0:
        return
    remedy = f"Use c = {c / ratio / 2:.2g} or less."
    if q == 0.0:
        duration, consequence = "at all times", "the model does not converge"
        if inputs.walk.has_gap_weights:
            duration, consequence = "after the longest gaps", "the model may not converge"
    else:
        last_update = ratio ** (1.0 / q) if math.log(ratio) < 700.0 * q else math.inf
        duration, consequence = (
            f"until about k = {last_update:.3g}",
            "the model may grow exponentially",
        )
        if inputs.problem.domain.bounded:  # then only these steps are wasted
            consequence = "the model bounces on the boundary of W"
            remedy = (
                "Plan for many more steps than that, or tune c; far smaller steps learn slowly."
            )
    yield (
        f"The step c = {c:g} is {ratio:.3g} times the largest that does not overshoot, "
        f"{c / ratio:.3g}: {duration} the steps overshoot at {int((ratios > 1.0).sum())} of "
        f"{inputs.graph.node_count} nodes and {consequence}. {remedy}"
    )
