"""Advice from public facts, for a model that is not protected.

What the theorems' constants say of a walk with visit weights v is, beside the uniform walk,

    steps   v̄ max_i L_i / v_i    against  max_i L_i      (how small they must be)
    noise   v̄ / min_i v_i        against  1              (how much more the gradients scatter)

For want of data the L_i are taken to be spread evenly over the public bounds, and what would be
released of them is drawn from the mechanism. Weighting is advised where the square of what it gains
in steps exceeds what it loses in noise, both as they stand in the theorems; how much the gradients
scatter at all, σ², only data can tell.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from walklearn import theory
from walklearn.advice.advice import Advice, Candidate, choose_laziness
from walklearn.graphs import Graph
from walklearn.privacy.arguments import Bounds
from walklearn.privacy.comparison import Comparison
from walklearn.privacy.printing import format_claim
from walklearn.problem.losses import Loss
from walklearn.updates.step_choice import public_step
from walklearn.walks import Metropolis, Uniform, Weighted
from walklearn.walks.walk import Vector

DRAWS = 25  # of what the nodes' constants could be


class _Considered(NamedTuple):
    """A walk, and the visit weights it would have in each draw."""

    name: str
    walk: Metropolis
    weights: list[Vector]

    @property
    def drawn(self) -> Weighted:
        """The walk of the first draw."""
        return Weighted(importance=self.weights[0], laziness=self.walk.laziness, public=True)

    def candidate(self, graph: Graph, constants: list[Vector]) -> Candidate:
        """The walk as a candidate, with its terms of the theorems in the median of the draws."""
        pairs = zip(constants, self.weights, strict=True)
        terms = [(v.mean() * np.max(L / v), v.mean() / v.min()) for L, v in pairs]
        steps, noise = np.median(terms, axis=0)
        stays = self.drawn.transition_matrix(graph).diagonal()
        numbers = {
            "step smoothness": float(steps),
            "noise factor": float(noise),
            "spectral gap": theory.spectral_gap(graph, self.drawn),
            "longest stay": float(1.0 / np.maximum(1.0 - stays, 2.0**-53).min()),
        }
        return Candidate(self.name, self.walk, numbers)


def advise_from_public_facts(
    graph: Graph,
    loss: Loss,
    penalty: float,
    bounds: Bounds | None,
    comparison: Comparison | None,
    seed: int,
) -> Advice:
    """Advise the uniform walk, unless the terms of the theorems speak for weighting."""
    laziness, about_laziness = choose_laziness(graph)
    uniform = Uniform(laziness=laziness)
    if bounds is None:
        reason = (
            "Uniform: without a public feature bound nothing is known of the nodes' constants. "
            "Pass feature_bound to have weighting considered."
        )
        gap = {"spectral gap": theory.spectral_gap(graph, uniform)}
        candidate = Candidate("uniform", uniform, gap)
        return Advice(uniform, None, (about_laziness, reason), (candidate,))
    generator = np.random.default_rng(seed)
    constants = [generator.uniform(*bounds, graph.node_count) for _ in range(DRAWS)]
    considered = [_Considered("uniform", uniform, [np.ones(graph.node_count)] * DRAWS)]
    considered += _weighted(laziness, comparison, constants, generator)
    candidates = [each.candidate(graph, constants) for each in considered]
    weigh, about_walk = _weigh(candidates, comparison)
    chosen = considered[-1] if weigh else considered[0]
    step_size = public_step(loss, penalty, graph, chosen.drawn, bounds)
    reasons = (
        about_laziness,
        about_walk,
        f"Step constant {step_size.constant:.3g}: from the bounds {bounds[0]:.4g} to "
        f"{bounds[1]:.4g} of the nodes' constants L_i, as the training sets it.",
        "The gain from weighting depends on the data: compare both walks with simulate() on "
        "data like yours.",
    )
    return Advice(chosen.walk, step_size, reasons, tuple(candidates), comparison)


def _weighted(
    laziness: float,
    comparison: Comparison | None,
    constants: list[Vector],
    generator: np.random.Generator,
) -> list[_Considered]:
    """The weighted walk, in the clear or with the release that is closest to the truth."""
    if comparison is None:
        return [_Considered("weighted, in the clear", Weighted(laziness=laziness), constants)]
    mechanism = comparison.rows[0].mechanism
    if mechanism is None:
        return []
    released = [mechanism.release(each, generator) for each in constants]
    walk = Weighted(privacy=mechanism, laziness=laziness)
    return [_Considered(f"weighted, {mechanism.name}", walk, released)]


def _weigh(candidates: list[Candidate], comparison: Comparison | None) -> tuple[bool, str]:
    """Decide whether to weight, and say why."""
    if comparison is not None and (useless := _useless_release(comparison)):
        return False, useless
    uniform, weighted = (candidate.numbers for candidate in candidates)
    longer, noise = (
        uniform["step smoothness"] / weighted["step smoothness"],
        weighted["noise factor"],
    )
    facts = (
        f"steps may be {longer:.3g} times as long (squared, as in the theorems, {longer**2:.3g}), "
        f"and the gradients scatter {noise:.3g} times as much"
    )
    if longer**2 > noise:
        clear = " It tells every L_i in the clear." if comparison is None else ""
        return True, f"Weighted: {facts}.{clear}"
    if comparison is not None and longer <= 1.0:
        return False, (
            "Uniform: privacy would cost more than weighting gains. With what "
            f"{comparison.rows[0].kind} releases, {facts}. The uniform walk releases nothing."
        )
    return False, f"Uniform: weighting would lose more than it gains: {facts}."


def _useless_release(comparison: Comparison) -> str:
    """Why no release is worth following, or nothing."""
    target = format_claim(comparison.epsilon, comparison.delta)
    best = comparison.rows[0]
    if best.mechanism is None:
        return f"Uniform: no mechanism reaches {target}. {best.reason}"
    if best.raw_error >= comparison.constant_error:
        return (
            f"Uniform: privacy would cost more than weighting gains. At {target} the best release, "
            f"by {best.kind}, is off by {best.raw_error:.3g} of the range, and a public constant, "
            f"which tells nothing, by {comparison.constant_error:.3g}."
        )
    return ""
