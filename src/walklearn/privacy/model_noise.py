"""Noise on the model: each contribution of a node to the token is clipped and noisy.

The paper does not protect the model. Two consecutive models reveal the gradient of the node that
was visited. If the node has one row, they reveal the row up to scale, because ∇f_i is a multiple of
x_i. So at each visit the rows' part of ∇f_i is clipped, Gaussian noise is added, and the update
uses the sum. After `max_contributions` visits the node leaves the model unchanged. The unit of the
claim determines which vector is clipped:

    protect="rows"   g ← c_i (Σ_r clip(ω_r ∇ℓ_r) + σ N(0, I))    each row's own gradient
    protect="node"   g ← clip(c_i Σ_r ω_r ∇ℓ_r) + σ N(0, I)      the sum over all its rows

with clip(v) = v · min(1, C/‖v‖) (for softmax v is a matrix, ‖v‖ its Frobenius norm), σ =
noise_multiplier · C, ω_r the weight of a row and c_i the public factor of the aggregate: N for
"sum", N/M for "mean", 1/Σω for "node-mean" (`Problem.row_factor`).

**Claim.** Local differential privacy with replace-one adjacency. "rows": replacing one row of one
node moves the sum by at most 2C for any number of rows, so the noise on the *mean* of n rows is n
times smaller. n, M and the sum of weights are public; adding or omitting a row is not hidden.
"node": replacing all rows of a node moves the contribution by at most 2C. In both cases an observer
of all tokens, such as the neighbours together, sees at most T = max_contributions Gaussians of that
sensitivity. They compose to exactly one, also if each depends on those before it:

    δ(ε) = Φ(μ/2 − ε/μ) − e^ε Φ(−μ/2 − ε/μ),    μ = 2 √T / noise_multiplier.

**Limits.** The walk does not reduce ε: the claim holds even if the observer sees every token and
knows who held it. The claim covers only g. The public term λw of the penalty is added afterwards,
and g may be weighted afterwards only by public numbers, such as released constants. Anything else
that depends on the rows needs its own protection. A mini-batch is refused for "rows": its rows are
drawn with replacement, so one row may count several times.

`noisy_gradients` clips and draws. The sensitivity is charged as 2C(1 + 1e-12), which covers the
rounding of its norms.

>>> noise = ModelNoise.calibrate(epsilon=3.0, delta=1e-5, clip=1.0, max_contributions=10)
>>> round(noise.noise_multiplier, 3), noise.delta(3.0) <= 1e-5, noise.protect
(8.795, True, 'rows')
"""

from __future__ import annotations

import math
from typing import Any, ClassVar

import numpy as np
from numpy.typing import ArrayLike, NDArray

from walklearn.arrays import Arrays, Specs
from walklearn.checks import check_choice, check_number, check_whole
from walklearn.privacy.accounting import curves
from walklearn.privacy.accounting.curves import LARGEST_EPSILON, smallest_epsilon
from walklearn.privacy.accounting.printing import format_upper
from walklearn.privacy.limits import Array, check_delta, check_epsilon
from walklearn.privacy.noisy_gradients import NoisyGradients
from walklearn.privacy.noisy_gradients import Unit as Unit
from walklearn.privacy.protection import (
    CONTRIBUTIONS,
    NoContribution,
    ProtectedObjective,
    Protection,
)

_SMALLEST, _LARGEST = 1e-100, 1e100
MAX_TIMES = 10**12
# The norm of a clipped vector is right to about (dimensions · 1e-16).
_CLIPPING_ROUNDING = 1e-12


class ModelNoise(NoisyGradients, Protection):
    """Clip the contributions of a node to the model, add Gaussian noise, and cap their number.

    Parameters
    ----------
    clip
        The largest norm of what a row (or a node) adds in a visit.
    noise_multiplier
        The standard deviation of the noise as a multiple of `clip`.
    max_contributions
        The largest number of contributions of a node.
    protect
        The unit of the claim: "rows", one row of a node, or "node", all of them.
    """

    name: ClassVar[str] = "model-noise"
    adds_noise: ClassVar[bool] = True
    compiled: ClassVar[str | None] = "model-noise"
    clip: float
    noise_multiplier: float
    max_contributions: int
    protect: Unit = "rows"

    def __post_init__(self) -> None:
        for name in ("clip", "noise_multiplier"):
            size = check_number(name, getattr(self, name), minimum=_SMALLEST, maximum=_LARGEST)
            object.__setattr__(self, name, size)
        contributions = check_whole("max_contributions", self.max_contributions, maximum=MAX_TIMES)
        object.__setattr__(self, "max_contributions", contributions)
        check_choice("protect", self.protect, Unit)

    def __repr__(self) -> str:
        return (
            f"ModelNoise(clip={self.clip:.6g}, noise_multiplier={self.noise_multiplier:.6g}, "
            f"max_contributions={self.max_contributions}, protect={self.protect!r})"
        )

    @property
    def needs(self) -> dict[str, str]:
        """For the unit "rows": the gradients of single rows, and of all of them."""
        if self.protect == "node":
            return {}
        return {
            "row_gradients": 'Add that method, or use protect="node".',
            "is_exact": 'Leave out the mini-batch, or use protect="node": a mini-batch picks rows '
            "with replacement, and one row may count several times.",
        }

    @property
    def is_compiled(self) -> bool:
        """True for this class only: claims and kernels depend on all of its methods."""
        return type(self) is ModelNoise

    is_accounted = is_compiled

    def node_arrays(self, objective: Any) -> Specs:
        """Declare the number of contributions of the node so far."""
        return (CONTRIBUTIONS,)

    def view(self, objective: Any, node: int, state: Arrays, noise: Array) -> Any:
        """Return the objective with clipped, noisy gradients; with none once the cap is reached."""
        spent = state["contributions"] + len(noise)  # each gradient is a release
        if spent > self.max_contributions:
            return NoContribution(objective, self)
        state["contributions"] = np.array(spent)
        return ProtectedObjective(objective, self, node, noise)

    def draw_noise(
        self, gradients: int, size: int, rng: np.random.Generator | None
    ) -> NDArray[Any]:
        """Draw normal numbers, or exact noise in whole steps of the grid."""
        if rng is not None:
            return rng.standard_normal((gradients, size))
        return self.draw(gradients * size).reshape(gradients, size)

    @classmethod
    def calibrate(
        cls,
        *,
        epsilon: float,
        delta: float,
        clip: float,
        max_contributions: int,
        protect: Unit = "rows",
    ) -> ModelNoise:
        """Find the smallest noise with which all contributions of a node are (ε, δ) private.

        ε is finite, δ above 0. The `delta(epsilon)` of the result is at most δ.

        >>> noise = ModelNoise.calibrate(epsilon=3.0, delta=1e-5, clip=1.0, max_contributions=10)
        >>> noise.epsilon(1e-5) <= 3.0
        True
        """
        epsilon, delta = check_epsilon(epsilon), check_delta(delta)
        if math.isinf(epsilon):
            raise ValueError("epsilon = inf means no privacy. Share the model without noise.")
        if delta == 0:
            raise ValueError("Gaussian noise never gives delta = 0. Use a positive delta.")

        def is_enough(multiplier: float) -> bool:
            return cls(clip, multiplier, max_contributions, protect).delta(epsilon) <= delta

        if not is_enough(_LARGEST):
            raise ValueError(
                f"delta = {format_upper(delta)} at epsilon = {format_upper(epsilon)} needs more "
                f"noise than {_LARGEST:g} times the clip. Use a larger epsilon or delta."
            )
        low, high = _SMALLEST, _LARGEST
        # δ falls as the noise grows. `high` is always enough, so the result is checked.
        while low < (middle := _midpoint(low, high)) < high:
            low, high = (low, middle) if is_enough(middle) else (middle, high)
        return cls(clip, high, max_contributions, protect)

    def delta(self, epsilon: float) -> float:
        """Return the smallest δ for which all contributions of a node are (ε, δ) private."""
        return float(self.curve(min(check_epsilon(epsilon), LARGEST_EPSILON)))

    def epsilon(self, delta: float) -> float:
        """Return the smallest ε for which all contributions of a node are (ε, δ) private."""
        return smallest_epsilon(self.delta, check_delta(delta))

    def curve(self, epsilon: ArrayLike) -> Array:
        """Return δ for each ε: one Gaussian of the ratio σ/(2C√T), measured in sensitivities."""
        sensitivity = 2.0 * math.sqrt(self.max_contributions) * (1.0 + _CLIPPING_ROUNDING)
        return curves.gaussian_delta(epsilon, self.noise_multiplier / sensitivity, (0.0, 1.0))


def _midpoint(low: float, high: float) -> float:
    """Return the geometric mean of two numbers that are far apart, else their mean."""
    return math.sqrt(low) * math.sqrt(high) if high > 2.0 * low else 0.5 * (low + high)
