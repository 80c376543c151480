"""Warnings about a walk on a problem: sentences that name the case and say what to do."""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import TYPE_CHECKING

import numpy as np

from walklearn.theory.spectrum import MAX_NODES_WITH_JUMPS
from walklearn.updates.step_sizes import StepSize
from walklearn.walks.disclosure import disclosure_of

if TYPE_CHECKING:
    from walklearn.theory.diagnosis import Facts

LONG_STAY = 20.0  # expected steps at one node, through rejections, that count as entrapment
SLOW_MIXING = 10.0  # relaxation times of more than this many steps per node count as slow


def warnings_of(facts: Facts) -> Iterator[str]:
    """Yield all warnings."""
    yield from _about_eigenvalues(facts)
    yield from _about_mixing(facts)
    yield from _about_long_stays(facts)
    yield from _about_bias(facts)
    if facts.no_optimum:
        yield f"σ² and the constant are NaN, as {facts.no_optimum}"
    if not facts.problem.domain.bounded:
        yield (
            "The domain is unbounded, and the theorems assume that W is bounded. Pass "
            "domain=domains.Ball(radius) with a radius well above ‖w*‖ to be covered."
        )
    if facts.step_size is not None:
        yield from _about_step_size(facts, facts.step_size)


def _about_eigenvalues(facts: Facts) -> Iterator[str]:
    (low, high), walk = facts.spectrum.gap, facts.walk
    if facts.spectrum.method == "bound":
        lazy = "" if low else " With laziness=0.1 the lower end would be above 0."
        yield (
            f"The eigenvalues did not converge within the budget: the spectral gap is between "
            f"{low:.3g} and {high:.3g}. The lower end is reported, so the mixing time and the "
            f"constant are pessimistic.{lazy}"
        )
    if facts.spectrum.method == "unknown":
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


def _about_mixing(facts: Facts) -> Iterator[str]:
    near, far = facts.spectrum.near[0], facts.spectrum.far[0]
    nodes, gap = facts.graph.node_count, facts.spectrum.gap[0]
    if facts.stays is not None and not facts.stays.any() and facts.graph.is_bipartite:
        yield (
            "The walk has period 2: the graph is bipartite and the token never stays, so it is "
            "on one side at even steps and on the other at odd ones, and never mixes "
            "(λ_N = -1). Pass laziness=0.1."
        )
    elif facts.spectrum.method != "bound" and gap * SLOW_MIXING * nodes < 1.0:
        cure = "Add edges between distant parts of the graph, or plan for many more steps."
        if far < near:
            cure = "It nearly alternates between two sides: pass laziness=0.1."
        yield (
            f"The walk mixes slowly: it takes about {1.0 / gap if gap else math.inf:.3g} steps, "
            f"for {nodes} nodes, to forget where it was; a shorter run depends on its start. {cure}"
        )


def _about_long_stays(facts: Facts) -> Iterator[str]:
    if facts.stays is None or facts.graph.node_count == 1:
        return
    laziness = getattr(facts.walk.matrix_walk, "laziness", 0.0)
    expected = 1.0 / np.maximum(1.0 - facts.stays, 2.0**-53)
    trapped = expected * (1.0 - laziness) > LONG_STAY
    if trapped.any():
        worst, count = int(np.argmax(expected)), int(trapped.sum())
        many = f"{count} nodes hold" if count > 1 else "1 node holds"
        yield (
            f"Entrapment: {many} the token for more than {LONG_STAY:.0f} steps on average; the "
            f"worst is node {worst} with {expected[worst]:.4g} steps, while the others wait. Use "
            "walks.Jumping(walk, probability=0.1), which lets the token jump out, or "
            "walks.Simple(corrected=True), which never rejects, or clip the importance, "
            "Weighted(importance=np.clip(...))."
        )


def _about_bias(facts: Facts) -> Iterator[str]:
    if facts.is_unbiased or not (facts.has_noise or facts.no_optimum):
        return
    walk, disclosure, counts = facts.walk, disclosure_of(facts.walk), ""
    cure = disclosure.remedy if disclosure.scaled_by else "Uniform() or Simple(corrected=True)"
    if walk.is_biased:
        cure = "a lower jump probability, or let it fall to 0 in later runs"
    if facts.spectrum.method != "unknown":
        low, high = facts.weights.min(), facts.weights.max()
        counts = f": by its visits and weights, a node counts {low:.2g} to {high:.2g} times"
    yield f"{walk!r} minimises another sum than f{counts}. No theorem applies. Use {cure}."


def _about_step_size(facts: Facts, step_size: StepSize) -> Iterator[str]:
    c, q = step_size.constant, step_size.exponent
    if q == 0.0 and facts.has_noise:
        yield (
            f"A constant step with noisy gradients (σ² = {facts.residual:.3g}) converges only to a "
            "neighbourhood of w* that shrinks with the step. Use PowerStep(c, 0.75) to reach w*."
        )
    if 0.0 < q <= 0.5 or q >= 1.0:
        effect = "the noise is not averaged out" if q < 1.0 else "the steps vanish too early"
        yield (
            f"The step exponent q = {q:g} is outside (0.5, 1), where the theorems hold: {effect}. "
            "Use PowerStep(c, 0.75)."
        )
    ratios = 0.5 * c * facts.step_smoothness
    ratio = float(ratios.max())
    if ratio <= 1.0:
        return
    cure = f"Use c = {c / ratio / 2:.2g} or less."
    if q == 0.0:
        until, consequence = "for ever", "the model does not converge"
    else:
        last = ratio ** (1.0 / q) if math.log(ratio) < 700.0 * q else math.inf
        until, consequence = f"until about k = {last:.3g}", "the model may grow exponentially"
        if facts.problem.domain.bounded:  # then only those steps are lost
            consequence = "the model bounces on the boundary of W"
            cure = "Plan for many more steps than that, or tune c; far smaller steps learn slowly."
    yield (
        f"The step c = {c:g} is {ratio:.3g} times the largest that does not overshoot, 2/L = "
        f"{c / ratio:.3g}: {until} the steps overshoot at {int((ratios > 1.0).sum())} of "
        f"{facts.graph.node_count} nodes and {consequence}. {cure}"
    )
