"""Noise on the model itself: what a node adds to the token is clipped and noisy.

The paper shares the model in the clear, and two consecutive models tell a row of the node in
between up to scale, because ∇f_i is a multiple of x_i. The remedy: at each visit what the rows
add to ∇f_i is clipped, Gaussian noise is added, and the sum is what the update uses; after
`max_contributions` visits the node adds noise only. What is clipped is the unit of the claim:

    protect="rows"   g ← c_i (Σ_r clip(ω_r ∇ℓ_r) + σ N(0, I))    each row's own gradient
    protect="node"   g ← clip(c_i Σ_r ω_r ∇ℓ_r) + σ N(0, I)      the sum over all its rows

with clip(v) = v · min(1, C/‖v‖) (for softmax v is a matrix, ‖v‖ its Frobenius norm), σ =
noise_multiplier · C, ω_r the weight of a row and c_i the public factor of the objective: N for
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

**Two arithmetics.** `clipped_on_grid` is for what leaves a machine: each clipped vector is rounded
towards zero onto the public grid of C/2^24 and checked to be no longer than C in whole numbers, so
the sum of whole numbers moves by at most 2C *exactly*. `draw` gives the noise in the same steps,
ideal Gaussian noise rounded exactly (`exact_draws`), and `released` adds the two: the ideal
mechanism's output, rounded. `protected` is the bare arithmetic on normal numbers that a simulation
draws from its seed: same statistics, no grid, and it protects nobody.
The sensitivity is charged as 2C(1 + 1e-12), which covers the rounding of its norms.

>>> noise = ModelNoise.calibrate(epsilon=3.0, delta=1e-5, clip=1.0, max_contributions=10)
>>> round(noise.noise_multiplier, 3), noise.delta(3.0) <= 1e-5, noise.protect
(8.795, True, 'rows')
>>> from walklearn.problem import Problem
>>> from walklearn.problem.losses import Squared
>>> problem = Problem([[3.0], [0.1]], [-1.0, -1.0], loss=Squared(), node_of_row=[0, 0])
>>> noise.clipped(problem, 0, np.zeros(1))     # 1, which was 3, and 0.1
array([1.1])
"""

from __future__ import annotations

import math
import operator
from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar, Literal, get_args

import numpy as np
from numpy.typing import ArrayLike, NDArray

from walklearn.privacy import accounting, exact_draws
from walklearn.privacy.accounting import LARGEST_EPSILON, smallest_epsilon
from walklearn.privacy.arguments import Array, check_delta, check_epsilon

if TYPE_CHECKING:
    from walklearn.problem import Problem

Unit = Literal["rows", "node"]

_SMALLEST, _LARGEST = 1e-100, 1e100
_MOST_CONTRIBUTIONS = 10**12
# The norm of a clipped vector is right to about (dimensions · 1e-16).
_CLIPPING_ROUNDING = 1e-12
# The clip is so many steps of the grid that clipped vectors are rounded to. Squares of a clipped
# vector then sum to 2^48 at most, and 2^38 rows fit a whole number of 64 bits.
CLIP_STEPS = 2**24
# Sums with more noise, in such steps, would be no whole numbers of 64 bits.
_MOST_DRAWN = 2.0**29
# As many numbers of gradients are held at a time: rows may be many, and sparse.
NUMBERS_AT_ONCE = 2**20


@dataclass(frozen=True)
class ModelNoise:
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
    clip: float
    noise_multiplier: float
    max_contributions: int
    protect: Unit = "rows"

    def __post_init__(self) -> None:
        for name in ("clip", "noise_multiplier"):
            object.__setattr__(self, name, _check_size(getattr(self, name), name))
        contributions = check_contributions(self.max_contributions, "max_contributions")
        object.__setattr__(self, "max_contributions", contributions)
        check_unit(self.protect)

    def __repr__(self) -> str:
        return (
            f"ModelNoise(clip={self.clip:.6g}, noise_multiplier={self.noise_multiplier:.6g}, "
            f"max_contributions={self.max_contributions}, protect={self.protect!r})"
        )

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
        """The least noise for which all contributions of a node together are (ε, δ) private.

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
                f"delta = {delta:g} at epsilon = {epsilon:g} needs more noise than {_LARGEST:g} "
                "times the clip: raise one of them."
            )
        low, high = _SMALLEST, _LARGEST
        # δ falls as the noise grows. `high` is always enough, so what comes back is checked.
        while low < (middle := _between(low, high)) < high:
            low, high = (low, middle) if enough(middle) else (middle, high)
        return noise(high)

    @property
    def standard_deviation(self) -> float:
        """σ, of the noise on each coordinate."""
        return self.noise_multiplier * self.clip

    @property
    def clip_step(self) -> float:
        """The public grid that `clipped_on_grid` counts in: C/2^24, which is exact."""
        return self.clip / CLIP_STEPS

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
        return float(self.curve(epsilon, self._count(contributions)))

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
        count = self._count(contributions)
        return smallest_epsilon(lambda epsilon: self.delta(epsilon, count), check_delta(delta))

    def curve(self, epsilon: ArrayLike, contributions: int) -> Array:
        """δ for many ε at once: one Gaussian of the ratio σ/(2C√T), measured in sensitivities.

        Parameters
        ----------
        epsilon
            One ε or many, at least 0.
        contributions
            T, how many contributions are seen.

        Returns
        -------
        array
            Of the same shape as `epsilon`.
        """
        sensitivity = 2.0 * math.sqrt(contributions) * (1.0 + _CLIPPING_ROUNDING)
        ratio = self.noise_multiplier / sensitivity
        return accounting.gaussian_delta(epsilon, ratio, (0.0, 1.0))

    def clipped(
        self, problem: Problem, node: int, model: Array, picks: NDArray[np.int64] | None = None
    ) -> Array:
        """What the noise is added to: the sum of the clipped vectors of a node.

        Parameters
        ----------
        problem
            The problem, with the node's rows.
        node
            The number of the node.
        model
            w, flat.
        picks
            Which rows a mini-batch looks at, for the unit "node" alone; by default all.

        Returns
        -------
        array
            As many doubles as the model has numbers.
        """
        total = np.zeros(problem.size)
        for vectors, shares in self._vectors(problem, node, model, picks):
            total += shares @ vectors
        return total

    def clipped_on_grid(
        self, problem: Problem, node: int, model: Array, picks: NDArray[np.int64] | None = None
    ) -> NDArray[np.int64]:
        """The same sum in whole steps of `clip_step`; no vector in it is longer than the clip.

        That holds exactly, so replacing one moves the sum by 2 · 2^24 steps at most.

        Parameters
        ----------
        problem, node, model, picks
            As for `clipped`. A model that is not finite is a ValueError: what rows make of it could
            not be told from an overflow.

        Returns
        -------
        array of int64
            As many as the model has numbers.
        """
        if not np.isfinite(model).all():
            raise ValueError("the model is not finite, so nothing of the rows is added to it.")
        total = np.zeros(problem.size, dtype=np.int64)
        for vectors, shares in self._vectors(problem, node, model, picks):
            total += self._on_grid(vectors, shares[:, None]).sum(axis=0)
        return total

    def _on_grid(self, vectors: Array, shares: Array) -> NDArray[np.int64]:
        """Each vector's share in whole steps, rounded towards zero."""
        while True:
            steps = np.trunc(vectors * shares / self.clip_step).astype(np.int64)
            too_long = np.einsum("ra,ra->r", steps, steps) > CLIP_STEPS**2
            if not too_long.any():
                return steps
            shares[too_long] *= 1.0 - 2.0**-40  # rounding had made them a hair too long

    def draw(self, size: int, bits: exact_draws.Bits | None = None) -> NDArray[np.int64]:
        """Noise in whole steps of `clip_step`, drawn exactly.

        Parameters
        ----------
        size
            For how many coordinates.
        bits
            For tests; by default the operating system's entropy through a stream cipher.

        Returns
        -------
        array of int64
            Shape (size,), to be used once.

        Examples
        --------
        >>> noise = ModelNoise(clip=1.0, noise_multiplier=2.0, max_contributions=1)
        >>> noise.draw(3).shape
        (3,)
        """
        if self.noise_multiplier > _MOST_DRAWN:
            raise ValueError(
                f"noise of {self.noise_multiplier:.3g} times the clip is more than can be drawn, "
                f"{_MOST_DRAWN:.3g} times, and would leave nothing of the rows: ask for a larger "
                "epsilon or delta, or for fewer contributions."
            )
        # σ/(C/2^24), exact: a power of two.
        sigma = self.noise_multiplier * CLIP_STEPS
        return exact_draws.rounded_normal(size, sigma, step=1.0, bits=bits)

    def released(
        self,
        problem: Problem,
        node: int,
        model: Array,
        picks: NDArray[np.int64] | None = None,
        *,
        steps: NDArray[np.int64],
        contributes: bool = True,
    ) -> Array:
        """The rows' part of ∇f_i, safe to show: with noise that `draw` gave, for this once.

        Parameters
        ----------
        problem, node, model, picks
            As for `clipped_on_grid`.
        steps
            What `draw` gave for the size of the model, and was not used before.
        contributes
            Whether the cap still allows it; otherwise what comes back is noise only.

        Returns
        -------
        array
            As many doubles as the model has numbers.
        """
        if steps.shape != (problem.size,) or steps.dtype != np.int64:
            raise ValueError(
                f"a model has {problem.size} numbers: the noise must be as many whole numbers, as "
                f"`draw` gives them, not {steps.dtype} of shape {steps.shape}."
            )
        total = steps
        if contributes:
            total = steps + self.clipped_on_grid(problem, node, model, picks)
        # What follows sees the noisy whole numbers alone.
        return np.asarray(self.factor(problem, node) * (self.clip_step * total))

    def check_batch(self, batch: object) -> None:
        """A mini-batch may hold a row several times, which a claim about rows does not allow for.

        Parameters
        ----------
        batch
            None, where a visit takes all rows of the node.
        """
        if self.protect == "rows" and batch is not None:
            raise ValueError(
                "a mini-batch picks rows with replacement, so that one row may count several "
                'times: with protect="rows" a visit takes all rows of the node. Leave out batch, '
                'or use protect="node".'
            )

    def factor(self, problem: Problem, node: int) -> float:
        """What the noisy sum is multiplied by, to be the rows' part of ∇f_i: a public number.

        Parameters
        ----------
        problem
            The problem, with the node's rows.
        node
            The number of the node.

        Returns
        -------
        float
            `Problem.row_factor` for "rows"; 1 for "node", where it is in what is clipped.
        """
        return problem.row_factor(node) if self.protect == "rows" else 1.0

    def protected(
        self,
        problem: Problem,
        node: int,
        model: Array,
        picks: NDArray[np.int64] | None = None,
        *,
        normal: ArrayLike,
        contributes: bool = True,
    ) -> Array:
        """The rows' part of ∇f_i with noise made of normal numbers, for a simulation.

        Parameters
        ----------
        problem, node, model, picks
            As for `clipped`.
        normal
            A standard normal number for each number of the model.
        contributes
            Whether the cap still allows it; otherwise what comes back is noise only. So is the
            share of a vector that is not finite: NaN would pass through the clipping and tell of
            the overflow.

        Returns
        -------
        array
            As many doubles as the model has numbers.
        """
        noisy = self.standard_deviation * np.asarray(normal, float)
        if noisy.shape != (problem.size,):
            raise ValueError(
                f"a model has {problem.size} numbers, but there are {noisy.size} normal numbers: "
                "the noise needs one for each coordinate."
            )
        if contributes:
            noisy = noisy + self.clipped(problem, node, model, picks)
        return np.asarray(self.factor(problem, node) * noisy)

    def _vectors(
        self, problem: Problem, node: int, model: Array, picks: NDArray[np.int64] | None
    ) -> Iterator[tuple[Array, Array]]:
        """What is clipped, a vector to a line, and how much of each is left by the clipping.

        Each row's gradient, some rows at a time, or that of all of them. Of a vector that is not
        finite nothing is left.
        """
        for vectors in self._gradients(problem, node, model, picks):
            with np.errstate(over="ignore", invalid="ignore"):
                lengths = np.sqrt(np.einsum("ra,ra->r", vectors, vectors))
            shares = self.clip / np.maximum(lengths, self.clip)
            finite = np.nan_to_num(vectors, posinf=0.0, neginf=0.0)
            yield finite, np.where(np.isfinite(lengths), shares, 0.0)

    def _gradients(
        self, problem: Problem, node: int, model: Array, picks: NDArray[np.int64] | None
    ) -> Iterator[Array]:
        if self.protect == "node":
            with np.errstate(over="ignore", invalid="ignore"):
                whole = np.asarray(problem.data_gradient(node, model, picks), dtype=np.float64)
            yield whole[None, :]
            return
        self.check_batch(picks)
        count = int(problem.offsets[node + 1] - problem.offsets[node])
        at_once = max(1, NUMBERS_AT_ONCE // problem.size)
        for first in range(0, count, at_once):
            with np.errstate(over="ignore", invalid="ignore"):
                gradients = problem.row_gradients(node, model, slice(first, first + at_once))
            yield gradients

    def _count(self, contributions: int | None) -> int:
        if contributions is None:
            return self.max_contributions
        return check_contributions(contributions, "contributions")


def check_unit(unit: str) -> None:
    """What ε is about: "rows" or "node"."""
    if unit not in get_args(Unit):
        raise ValueError(
            f'protect must be "rows" (one row of a node is replaced) or "node" (all its rows '
            f"are), got {unit!r}."
        )


def check_contributions(contributions: int, name: str) -> int:
    """A count of contributions: a whole number of at least 1."""
    try:
        count = operator.index(contributions)
    except TypeError:
        count = 0
    if not 1 <= count <= _MOST_CONTRIBUTIONS:
        raise ValueError(
            f"{name} must be a whole number from 1 to {_MOST_CONTRIBUTIONS:g}, "
            f"got {contributions!r}."
        )
    return count


def _check_size(size: float, name: str) -> float:
    value = float(size)
    if not _SMALLEST <= value <= _LARGEST:
        raise ValueError(
            f"{name} must be positive and finite (within {_SMALLEST:g}..{_LARGEST:g}), "
            f"got {size!r}."
        )
    return value


def _between(low: float, high: float) -> float:
    """Halfway in the logarithm while the two are far apart, then in the number itself."""
    return math.sqrt(low) * math.sqrt(high) if high > 2.0 * low else 0.5 * (low + high)
