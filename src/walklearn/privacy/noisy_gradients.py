"""Clipped and noisy gradients: the only access of a visit to the rows under `ModelNoise`.

`ModelNoise` defines which vectors are clipped and what this protects. This module computes the
noisy gradients, in two ways.

**For real releases.** `clipped_on_grid` rounds each clipped vector towards zero onto the
public grid of C/2^24 and checks in integers that it is no longer than C. So the sum of integers
moves by at most 2C *exactly*. `draw` returns the noise in the same steps: ideal Gaussian noise,
rounded exactly (`exact_draws`). `released` adds the two: the output of the ideal mechanism,
rounded.

**For a simulation.** `protected` uses floating point and normal numbers that a simulation draws
from its seed. It has the same statistics and no grid, and it protects nobody.

>>> from walklearn.privacy import ModelNoise
>>> from walklearn.objectives import Problem
>>> from walklearn.objectives.linear.losses import Squared
>>> problem = Problem([[3.0], [0.1]], [-1.0, -1.0], loss=Squared(), node_of_row=[0, 0])
>>> noise = ModelNoise(clip=1.0, noise_multiplier=2.0, max_contributions=1)
>>> noise.clipped(problem, 0, np.zeros(1))     # 3 is clipped to 1, and 0.1 is kept
array([1.1])
>>> noise.clipped_on_grid(problem, 0, np.zeros(1)) * noise.clip_step
array([1.09999996])
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
from numpy.typing import ArrayLike, NDArray

from walklearn.privacy.draws import exact_draws
from walklearn.privacy.limits import Array

if TYPE_CHECKING:
    from walklearn.objectives import Objective

Unit = Literal["rows", "node"]

# The clip in steps of the grid that clipped vectors are rounded to. Squares of a clipped vector
# then sum to 2^48 at most, and 2^38 rows fit a 64-bit integer.
CLIP_STEPS = 2**24
# A larger noise multiplier would overflow 64-bit integers.
_MAX_DRAWN = 2.0**29
# Largest size of a block of gradients: a node may have many rows, and sparse ones.
NUMBERS_AT_ONCE = 2**20


class NoisyGradients:
    """Clips the gradients of a node's rows and adds noise. `ModelNoise` has the settings."""

    clip: float
    noise_multiplier: float
    protect: Unit

    @property
    def standard_deviation(self) -> float:
        """σ of the noise on each coordinate."""
        return self.noise_multiplier * self.clip

    @property
    def clip_step(self) -> float:
        """Step C/2^24 of the public grid that `clipped_on_grid` counts in; it is exact."""
        return self.clip / CLIP_STEPS

    def clipped(self, objective: Objective, node: int, w: Array, draws: ArrayLike = ()) -> Array:
        """Return the sum of a node's clipped vectors at the flat model w, without noise.

        `draws` are the uniform numbers of a mini-batch, for the unit "node" only.
        """
        total = np.zeros(objective.size)
        for vectors, shares in self._vectors(objective, node, w, draws):
            total += shares @ vectors
        return total

    def clipped_on_grid(
        self, objective: Objective, node: int, w: Array, draws: ArrayLike = ()
    ) -> NDArray[np.int64]:
        """Return the sum of a node's clipped vectors in whole steps of `clip_step`.

        No vector is longer than the clip, exactly, so replacing one moves the sum by 2 · 2^24
        steps at most. A model that is not finite is a ValueError: the gradients of the rows could
        not be distinguished from an overflow.
        """
        if not np.isfinite(w).all():
            raise ValueError("the model is not finite, so the rows add nothing to it.")
        total = np.zeros(objective.size, dtype=np.int64)
        for vectors, shares in self._vectors(objective, node, w, draws):
            total += self._on_grid(vectors, shares[:, None]).sum(axis=0)
        return total

    def _on_grid(self, vectors: Array, shares: Array) -> NDArray[np.int64]:
        """Round each vector's share towards zero, to whole steps."""
        while True:
            steps = np.trunc(vectors * shares / self.clip_step).astype(np.int64)
            too_long = np.einsum("ra,ra->r", steps, steps) > CLIP_STEPS**2
            if not too_long.any():
                return steps
            shares[too_long] *= 1.0 - 2.0**-40  # rounding had made them slightly too long

    def draw(self, size: int, bits: exact_draws.Bits | None = None) -> NDArray[np.int64]:
        """Draw noise for some coordinates exactly, in whole steps of `clip_step`, to use once.

        `bits` are for tests; by default they come from the operating system's entropy.

        >>> from walklearn.privacy import ModelNoise
        >>> ModelNoise(clip=1.0, noise_multiplier=2.0, max_contributions=1).draw(3).shape
        (3,)
        """
        return exact_draws.rounded_normal(size, self._noise_in_steps, step=1.0, bits=bits)

    def prepare(self, size: int) -> None:
        """Draw ahead for some coordinates, so that the next `draw` of this size only copies."""
        exact_draws.prepare(size, self._noise_in_steps, step=1.0)

    def is_prepared(self, size: int) -> bool:
        """True if at least `size` draws were made ahead and are unused."""
        return exact_draws.is_prepared(size, self._noise_in_steps, step=1.0)

    @property
    def _noise_in_steps(self) -> float:
        """σ in steps of `clip_step`, which is exact: C is 2^24 steps."""
        if self.noise_multiplier > _MAX_DRAWN:
            raise ValueError(
                f"noise of {self.noise_multiplier:.3g} times the clip exceeds what can be drawn, "
                f"{_MAX_DRAWN:.3g} times, and would hide the rows completely. Use a larger epsilon "
                "or delta, or fewer contributions."
            )
        return self.noise_multiplier * CLIP_STEPS

    def released(
        self,
        objective: Objective,
        node: int,
        w: Array,
        draws: ArrayLike = (),
        *,
        steps: NDArray[np.int64],
    ) -> Array:
        """Return the rows' part of ∇f_i with exact noise, which may leave the node.

        `steps` is the result of `draw` for the size of the model, and was not used before.
        """
        if steps.shape != (objective.size,) or steps.dtype != np.int64:
            raise ValueError(
                f"a model has {objective.size} numbers: the noise must be as many whole numbers, "
                f"as `draw` returns them, not {steps.dtype} of shape {steps.shape}."
            )
        total = steps + self.clipped_on_grid(objective, node, w, draws)
        # All that follows depends on the noisy integers only.
        return np.asarray(self.factor(objective, node) * (self.clip_step * total))

    def check_batch(self, batch: object) -> None:
        """Refuse a mini-batch for the unit "rows"; None means all rows of the node."""
        if self.protect == "rows" and batch is not None:
            raise ValueError(
                "a mini-batch picks rows with replacement, so that one row may count several "
                'times: with protect="rows" a visit takes all rows of the node. Leave out batch, '
                'or use protect="node".'
            )

    def factor(self, objective: Objective, node: int) -> float:
        """Return the public factor of the noisy sum in the rows' part of ∇f_i.

        For "rows" it is `Objective.row_factor`. For "node" it is 1: the clipped vector contains it.
        """
        return objective.row_factor(node) if self.protect == "rows" else 1.0

    def protected(
        self,
        objective: Objective,
        node: int,
        w: Array,
        draws: ArrayLike = (),
        *,
        normal: ArrayLike,
    ) -> Array:
        """Return the rows' part of ∇f_i with simulated noise.

        `normal` has a standard normal number for each coordinate. A vector that is not finite
        counts as 0: NaN would pass through the clipping and reveal the overflow.
        """
        noisy = self.standard_deviation * np.asarray(normal, float)
        if noisy.shape != (objective.size,):
            raise ValueError(
                f"a model has {objective.size} numbers, but there are {noisy.size} normal numbers: "
                "the noise needs one for each coordinate."
            )
        noisy = noisy + self.clipped(objective, node, w, draws)
        return np.asarray(self.factor(objective, node) * noisy)

    def _vectors(
        self, objective: Objective, node: int, w: Array, draws: ArrayLike
    ) -> Iterator[tuple[Array, Array]]:
        """Yield vectors, one per line, and the share of each that clipping leaves.

        A vector is the gradient of a row, or that of the whole node. The share of a vector that is
        not finite is 0.
        """
        for vectors in self._gradients(objective, node, w, draws):
            if vectors.shape[1:] != (objective.size,):  # NumPy would spread it over coordinates
                raise ValueError(
                    f"a gradient of node {node} has shape {vectors.shape[1:]}, and a model has "
                    f"{objective.size} numbers."
                )
            with np.errstate(over="ignore", invalid="ignore"):
                lengths = np.sqrt(np.einsum("ra,ra->r", vectors, vectors))
            shares = self.clip / np.maximum(lengths, self.clip)
            finite = np.nan_to_num(vectors, posinf=0.0, neginf=0.0)
            yield finite, np.where(np.isfinite(lengths), shares, 0.0)

    def _gradients(self, objective: Any, node: int, w: Array, draws: ArrayLike) -> Iterator[Array]:
        """Yield the gradients of a node's rows in blocks, or that of the whole node."""
        batch = np.asarray(draws, dtype=np.float64)
        blocks: list[tuple[slice, ...]] = [()]  # all rows at once
        if self.protect == "rows":
            self.check_batch(len(batch) or None)
            if hasattr(objective, "count_rows"):
                size = max(1, NUMBERS_AT_ONCE // objective.size)
                firsts = range(0, objective.count_rows(node), size)
                blocks = [(slice(first, first + size),) for first in firsts]
        for block in blocks:
            with np.errstate(over="ignore", invalid="ignore"):
                if self.protect == "rows":
                    gradients = objective.row_gradients(node, w, *block)
                else:
                    gradients = np.atleast_1d(objective.gradient(node, w, batch))[None, :]
            yield np.asarray(gradients, dtype=np.float64)
