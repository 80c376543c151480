"""Cautions: what can go wrong with a walk on a problem, in sentences that say what to do."""

from __future__ import annotations

import math
from collections.abc import Iterator

import numpy as np

from walklearn.theory.spectrum import MAX_NODES_WITH_JUMPS
from walklearn.theory.walk_facts import Facts
from walklearn.updates.step_sizes import StepSize

LONG_STAY = 20.0  # expected steps at one node, through rejections, that count as entrapment
SLOW_MIXING = 10.0  # relaxation times of more than this many steps per node count as slow


def cautions(facts: Facts) -> Iterator[str]:
    """All warnings, as sentences that name the case and say what to do."""
    yield from _about_eigenvalues(facts)
    yield from _about_mixing(facts)
    yield from _about_long_stays(facts)
    if facts.remembers:
        yield from _about_memory(facts)
        return
    yield from _about_bias(facts)
    yield from _about_problem(facts)
    if facts.step_size is not None:
        yield from _about_step_size(facts, facts.step_size)


def _about_eigenvalues(facts: Facts) -> Iterator[str]:
    low, high = facts.spectrum.gap
    if facts.spectrum.method == "bound":
        yield (
            f"The eigenvalues did not converge within the budget: the spectral gap is between "
            f"{low:.3g} and {high:.3g}. The lower end is reported, so the mixing time and the "
            "constant are pessimistic."
            + " With laziness=0.1 the lower end would be above 0."
            * (low == 0.0)
        )
    if facts.walk.eigenvalue_note:
        yield facts.walk.eigenvalue_note
    if facts.spectrum.method == "unknown":
        yield (
            f"The eigenvalues are unknown: the matrix of this walk on more than "
            f"{MAX_NODES_WITH_JUMPS} nodes is too dense (or did not converge). Diagnose its base "
            f"walk {facts.walk.innermost!r}, which mixes no faster as a rule."
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
        cure = (
            "It nearly alternates between two sides: pass laziness=0.1."
            if far < near
            else "Add edges between distant parts of the graph, or plan for many more steps."
        )
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
    if not trapped.any():
        return
    worst, count = int(np.argmax(expected)), int(trapped.sum())
    many = f"{count} nodes hold" if count > 1 else "1 node holds"
    cure = facts.walk.matrix_walk.entrapment_cure
    yield (
        f"Entrapment: {many} the token for more than {LONG_STAY:.0f} steps on average; the worst "
        f"is node {worst} with {expected[worst]:.4g} steps, while the others wait. Let the token "
        f"jump out, walks.Jumping(walk, probability=0.1), or {cure}."
    )


def _about_bias(facts: Facts) -> Iterator[str]:
    walk = facts.walk
    if walk.is_biased:
        bend = ""
        if facts.stays is not None:
            aim = walk.innermost.stationary(facts.graph, facts.problem)
            law = walk.stationary(facts.graph, facts.problem)
            bend = f" (by {0.5 * np.abs(law - aim).sum():.2g} in total variation)"
        yield (
            f"The jumps bend the visits away from the importance{bend}, and the gradient is not "
            "corrected for it, so the limit is biased. Lower the jump probability, or let it "
            "fall to 0 in later runs; no theorem applies."
        )
    elif not facts.unbiased:
        note = walk.bias_note(facts.graph, facts.noisy)
        if note:
            yield note


def _about_memory(facts: Facts) -> Iterator[str]:
    """The warnings where token and nodes remember gradients."""
    update = facts.update
    assert update is not None
    yield (
        f"{update!r} ends where ∇f = 0, however often each node is visited: no bias is left to "
        "correct, and the theorems' constants, which are about SGD, say nothing of it."
    )
    yield f"It is refused where something is protected: {update.discloses}."
    if facts.no_optimum:
        yield f"σ² is NaN, as {facts.no_optimum}"


def _about_problem(facts: Facts) -> Iterator[str]:
    if facts.no_optimum:
        yield f"σ² and the constant are NaN, as {facts.no_optimum}"
    if not facts.problem.domain.bounded:
        yield (
            "The domain is unbounded, and the theorems assume that W is bounded. Pass "
            "domain=domains.Ball(radius) with a radius well above ‖w*‖ to be covered."
        )


def _about_step_size(facts: Facts, step_size: StepSize) -> Iterator[str]:
    c, q = step_size.constant, step_size.exponent
    if q == 0.0 and facts.noisy:
        yield (
            f"A constant step with noisy gradients (σ² = {facts.residual:.3g}) converges only to a "
            f"neighbourhood of w* that shrinks with the step. Use PowerStep(c, 0.75) to get there."
        )
    if 0.0 < q <= 0.5 or q >= 1.0:
        yield (
            f"The step exponent q = {q:g} is outside (0.5, 1), where the theorems hold: "
            + ("the noise is not averaged out." if q < 1.0 else "the steps fade before w* is near.")
            + " Use PowerStep(c, 0.75)."
        )
    L = facts.step_smoothness
    overshoot = 0.5 * c * float(L.max())
    if overshoot > 1.0:
        yield _overshoot(facts, c, q, overshoot, int(np.sum(0.5 * c * L > 1.0)))


def _overshoot(facts: Facts, c: float, q: float, ratio: float, nodes: int) -> str:
    """The warning that the first step is `ratio` times larger than 2/L, at so many nodes."""
    shorter = f"Take c = {c / ratio / 2:.2g} or less."
    if q == 0.0:
        until, consequence, cure = "for ever", "the model cannot settle", shorter
    else:
        last = ratio ** (1.0 / q) if math.log(ratio) < 700.0 * q else math.inf
        until = f"until about k = {last:.3g}"
        consequence, cure = "the model may blow up exponentially", shorter
        if facts.problem.domain.bounded:  # then nothing is lost but those steps
            consequence = "the model bounces on the boundary of W"
            cure = "Plan for many more steps than that, or tune c; far smaller steps learn slowly."
    return (
        f"The step c = {c:g} is {ratio:.3g} times the largest that does not overshoot, 2/L = "
        f"{c / ratio:.3g}: {until} the steps overshoot at {nodes} of {facts.graph.node_count} "
        f"nodes and {consequence}. {cure}"
    )
