"""Noise on the model itself: what a node adds to the token is clipped and noisy.

The paper does not protect the model. Two consecutive models reveal the gradient of the node in
between, and if the node has one row, the row up to scale: ∇f_i is a multiple of x_i. The remedy:
at each visit what the rows add to ∇f_i is clipped, Gaussian noise is added, and the sum is what the
update uses; after `max_contributions` visits the node leaves the model unchanged. What is clipped
is the unit of the claim:

    protect="rows"   g ← c_i (Σ_r clip(ω_r ∇ℓ_r) + σ N(0, I))    each row's own gradient
    protect="node"   g ← clip(c_i Σ_r ω_r ∇ℓ_r) + σ N(0, I)      the sum over all its rows

with clip(v) = v · min(1, C/‖v‖) (for softmax v is a matrix, ‖v‖ its Frobenius norm), σ =
noise_multiplier · C, ω_r the weight of a row and c_i the public factor of the aggregate: N for
"sum", N/M for "mean", 1/Σω for "node-mean" (`Problem.row_factor`).

**What is claimed.** Local differential privacy with replace-one adjacency. "rows": one row of
one node is replaced by another, which moves the sum by at most 2C however many rows there are, so
that the noise on the *mean* of n rows is n times smaller; n, M and the sum of weights are public,
and the row that is added or left out is not hidden. "node": whatever other rows a node had held,
the contribution moves by at most 2C. In both, everyone who sees all tokens, the neighbours
included, sees at most T = max_contributions Gaussians of that sensitivity, and they compose to
exactly one, also when each depends on those before it:

    δ(ε) = Φ(μ/2 − ε/μ) − e^ε Φ(−μ/2 − ε/μ),    μ = 2 √T / noise_multiplier.

**What is not.** No amplification by the walk: that an observer may not see every token, or
not know who held it, is worth something, but nothing is deducted for it here. And what else
depends on the rows needs its own protection: only g is covered, so the penalty's λw (public)
is added afterwards, and g may be weighted afterwards by public numbers only, such as released
constants. A mini-batch is refused for "rows": its rows are picked with replacement, so that one row
may count several times.

How a visit clips and draws is in `noisy_gradients`. The sensitivity is charged as 2C(1 + 1e-12),
which covers the rounding of its norms.

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
from walklearn.privacy.noisy_gradients import Unit as Unit  # what a claim is about is named here
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
    """Clip what a node's rows add to the model, add Gaussian noise, and cap how often.

    Parameters
    ----------
    clip
        The largest norm of what a row (or a node) adds in a visit.
    noise_multiplier
        The standard deviation of the noise as a multiple of `clip`.
    max_contributions
        How often a node contributes at most.
    protect
        What a claim is about: "rows", of which one is replaced, or "node", all its rows.

    Examples
    --------
    >>> ModelNoise(clip=1.0, noise_multiplier=8 / 3, max_contributions=1, protect="node")
    ModelNoise(clip=1, noise_multiplier=2.66667, max_contributions=1, protect='node')
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
        """Gradients of single rows, and all of them, if the claim is about rows."""
        if self.protect == "node":
            return {}
        return {
            "row_gradients": 'Add that method, or use protect="node".',
            "is_exact": 'Leave out the mini-batch, or use protect="node": a mini-batch picks rows '
            "with replacement, and one row may count several times.",
        }

    @property
    def is_compiled(self) -> bool:
        """True if it is this very class: claims and kernels rest on all of its methods."""
        return type(self) is ModelNoise

    @property
    def is_accounted(self) -> bool:
        """True if the claimed cost is that of this very class."""
        return type(self) is ModelNoise

    def node_arrays(self, objective: Any) -> Specs:
        """The contributions of the node so far."""
        return (CONTRIBUTIONS,)

    def view(self, objective: Any, node: int, state: Arrays, noise: Array) -> Any:
        """Clip and add noise, or contribute nothing once the cap is reached."""
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
        """Find the least noise for which all contributions of a node together are (ε, δ) private.

        Parameters
        ----------
        epsilon
            ε, finite.
        delta
            δ, above 0 and below 1.
        clip
            The largest norm of what a row (or a node) adds in a visit.
        max_contributions
            How often a node contributes at most.
        protect
            What the claim is about: "rows" or "node".

        Returns
        -------
        ModelNoise
            Its own `delta(epsilon)` is at most δ.

        Examples
        --------
        >>> noise = ModelNoise.calibrate(epsilon=3.0, delta=1e-5, clip=1.0, max_contributions=10)
        >>> noise.epsilon(1e-5) <= 3.0
        True
        """
        epsilon, delta = check_epsilon(epsilon), check_delta(delta)
        if math.isinf(epsilon):
            raise ValueError("epsilon = inf asks for no privacy: share the model without noise.")
        if delta == 0:
            raise ValueError("Gaussian noise never gives delta = 0: ask for a positive delta.")

        def noise(multiplier: float) -> ModelNoise:
            return cls(clip, multiplier, max_contributions, protect)

        def enough(multiplier: float) -> bool:
            return noise(multiplier).delta(epsilon) <= delta

        if not enough(_LARGEST):
            raise ValueError(
                f"delta = {format_upper(delta)} at epsilon = {format_upper(epsilon)} needs more "
                f"noise than {_LARGEST:g} times the clip: raise one of them."
            )
        low, high = _SMALLEST, _LARGEST
        # δ falls as the noise grows. `high` is always enough, so what comes back is checked.
        while low < (middle := _between(low, high)) < high:
            low, high = (low, middle) if enough(middle) else (middle, high)
        return noise(high)

    def delta(self, epsilon: float, contributions: int | None = None) -> float:
        """δ of all contributions of a node together, or of the first few.

        Parameters
        ----------
        epsilon
            ε, at least 0.
        contributions
            How many; by default `max_contributions`.

        Returns
        -------
        float
            The least δ for which they are (ε, δ) private.
        """
        epsilon = min(check_epsilon(epsilon), LARGEST_EPSILON)
        return float(self.curve(epsilon, contributions))

    def epsilon(self, delta: float, contributions: int | None = None) -> float:
        """ε of all contributions of a node together, or of the first few.

        Parameters
        ----------
        delta
            δ, in [0, 1).
        contributions
            How many; by default `max_contributions`.

        Returns
        -------
        float
            The least ε for which they are (ε, δ) private; infinite for δ = 0.
        """
        return smallest_epsilon(
            lambda epsilon: self.delta(epsilon, contributions), check_delta(delta)
        )

    def curve(self, epsilon: ArrayLike, contributions: int | None = None) -> Array:
        """δ for many ε at once: one Gaussian of the ratio σ/(2C√T), measured in sensitivities.

        Parameters
        ----------
        epsilon
            One ε or many, at least 0.
        contributions
            T, how many contributions are seen; by default `max_contributions`.

        Returns
        -------
        array
            Of the same shape as `epsilon`.
        """
        count = self.max_contributions
        if contributions is not None:
            count = check_whole("contributions", contributions, maximum=MAX_TIMES)
        sensitivity = 2.0 * math.sqrt(count) * (1.0 + _CLIPPING_ROUNDING)
        ratio = self.noise_multiplier / sensitivity
        return curves.gaussian_delta(epsilon, ratio, (0.0, 1.0))


def _between(low: float, high: float) -> float:
    """Halfway in the logarithm while the two are far apart, then in the number itself."""
    return math.sqrt(low) * math.sqrt(high) if high > 2.0 * low else 0.5 * (low + high)
