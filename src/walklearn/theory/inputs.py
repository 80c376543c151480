"""Inputs of a diagnosis, and the numbers that its constant and its warnings share."""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from walklearn.arrays import Vector
from walklearn.graphs import Graph
from walklearn.objectives import Problem
from walklearn.theory.constants import Constant, residual
from walklearn.theory.coverage import Measurement
from walklearn.theory.spectrum import Spectrum
from walklearn.updates.step_sizes import StepSize
from walklearn.walks import Walk

INTERPOLATION = 1e-12  # σ² below this share of mean ‖∇f_i(0)‖² counts as none


@dataclass(frozen=True, eq=False)
class DiagnosisInput:
    """Inputs from which a diagnosis computes its numbers and warnings."""

    graph: Graph
    problem: Problem
    walk: Walk
    step_size: StepSize | None
    spectrum: Spectrum
    stays: Vector | None
    residual: float
    no_optimum_reason: str
    measurement: Measurement | None

    @cached_property
    def stationary(self) -> Vector:
        """The long-run share of the updates of each node."""
        return self.walk.stationary(self.graph, self.problem)

    @cached_property
    def scale(self) -> Vector:
        """The exact weight of each node's gradient."""
        return self.walk.gradient_scale(self.graph, self.problem)

    def step_smoothness(self, exponent: float = 0.0) -> Vector:
        """Return the Lipschitz constant of each node's step direction ĝ.

        With steps c / k^q it is the largest over k of that of k^−q ĝ. The gap weight of update k is
        at most k / N, so large ones come late, when the steps are short.
        """
        scale = self.scale
        if self.walk.has_gap_weights and self.measurement is not None:
            longest_gaps = self.measurement.longest_gaps
            scale = np.maximum(1.0, longest_gaps ** (1.0 - exponent) / self.graph.node_count)
        return np.asarray(scale * self.problem.smoothness_constants)

    @property
    def has_noise(self) -> bool:
        """True if no model is best for every node (False if there is no optimum)."""
        origin = residual(self.problem, np.zeros(self.problem.size))
        return self.residual > INTERPOLATION * origin

    @property
    def weights(self) -> Vector:
        """N times the weight of each f_i in the sum that the walk minimises; 1 if it is f."""
        return np.asarray(self.graph.node_count * self.scale * self.stationary)

    @property
    def is_unbiased(self) -> bool:
        """True if the mean of ĝ over the visits is ∇f: its factor is v̄ / v_i, or a gap weight.

        Gap weights add up to the same for every node, whatever its visits.
        """
        if self.walk.has_gap_weights or getattr(self.walk, "has_rounds", False):
            return True
        if self.spectrum.method == "measured" or self.walk.is_biased:
            return False
        return np.allclose(self.weights, 1.0, rtol=1e-9)

    def constant(self) -> Constant | None:
        """Return the constant of the theorem that applies; None if there is none."""
        if not self.is_unbiased or self.measurement is not None:
            return None
        v, L = self.stationary, self.problem.smoothness_constants
        importance = self.problem.importance
        if self.walk.innermost.release is not None:
            theorem = "Algorithm 3, for one draw of R"
        elif np.allclose(v, v[0], rtol=1e-9):
            theorem = "Theorem 1"
        elif np.allclose(v / v.mean(), importance / importance.mean(), rtol=1e-9):
            theorem = "Theorem 2"
        else:
            theorem = "Theorem 2 with importance v"
        decay = -math.log1p(-self.spectrum.gap[0] / 2.0)  # ln(1/λ_P)
        return Constant(
            theorem,
            noise=float(v.mean() / v.min()) * self.residual,
            smoothness=float(v.mean() * np.max(L / v)) ** 2,
            mixing=1.0 / decay if decay else math.inf,
        )
