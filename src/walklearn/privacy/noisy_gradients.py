"""What a visit uses in place of the rows' part of ∇f_i: vectors that are clipped, and noise.

`ModelNoise` says what is clipped and what that protects. This is how, in two arithmetics.

**For what leaves a machine.** `clipped_on_grid` rounds each clipped vector towards zero onto the
public grid of C/2^24 and checks in whole numbers that it is no longer than C, so that the sum of
whole numbers moves by at most 2C *exactly*. `draw` gives the noise in the same steps, ideal
Gaussian noise rounded exactly (`exact_draws`), and `released` adds the two: the ideal mechanism's
output, rounded.

**For a simulation.** `protected` is the bare arithmetic on normal numbers that a simulation draws
from its seed: it has the same statistics and no grid, and it protects nobody.

>>> from walklearn.privacy import ModelNoise
>>> from walklearn.objectives import Problem
>>> from walklearn.objectives.linear.losses import Squared
>>> problem = Problem([[3.0], [0.1]], [-1.0, -1.0], loss=Squared(), node_of_row=[0, 0])
>>> noise = ModelNoise(clip=1.0, noise_multiplier=2.0, max_contributions=1)
>>> noise.clipped(problem, 0, np.zeros(1))     # 1, which was 3, and 0.1
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

# The clip is so many steps of the grid that clipped vectors are rounded to. Squares of a clipped
# vector then sum to 2^48 at most, and 2^38 rows fit a whole number of 64 bits.
CLIP_STEPS = 2**24
# Sums with more noise, in such steps, would be no whole numbers of 64 bits.
_MAX_DRAWN = 2.0**29
# As many numbers of gradients are held at a time: rows may be many, and sparse.
NUMBERS_AT_ONCE = 2**20


class NoisyGradients:
    """Clips what a node's rows add to the model, and adds noise; `ModelNoise` says how much."""

    clip: float
    noise_multiplier: float
    protect: Unit

    @property
    def standard_deviation(self) -> float:
        """σ, of the noise on each coordinate."""
        return self.noise_multiplier * self.clip

    @property
    def clip_step(self) -> float:
        """The public grid that `clipped_on_grid` counts in: C/2^24, which is exact."""
        return self.clip / CLIP_STEPS

    def clipped(self, objective: Objective, node: int, w: Array, draws: ArrayLike = ()) -> Array:
        """Sum the clipped vectors of a node, to which the noise is added.

        Parameters
        ----------
        objective
            The objective, with the node's rows.
        node
            The number of the node.
        w
            The model, flat.
        draws
            Uniform numbers that select a mini-batch, for the unit "node" alone; by default none.

        Returns
        -------
        array
            As many doubles as the model has numbers.
        """
        total = np.zeros(objective.size)
        for vectors, shares in self._vectors(objective, node, w, draws):
            total += shares @ vectors
        return total

    def clipped_on_grid(
        self, objective: Objective, node: int, w: Array, draws: ArrayLike = ()
    ) -> NDArray[np.int64]:
        """Sum them in whole steps of `clip_step`; no vector in it is longer than the clip.

        That holds exactly, so replacing one moves the sum by 2 · 2^24 steps at most.

        Parameters
        ----------
        objective, node, w, draws
            As for `clipped`. A model that is not finite is a ValueError: what rows make of it could
            not be told from an overflow.

        Returns
        -------
        array of int64
            As many as the model has numbers.
        """
        if not np.isfinite(w).all():
            raise ValueError("the model is not finite, so nothing of the rows is added to it.")
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
            shares[too_long] *= 1.0 - 2.0**-40  # rounding had made them a hair too long

    def draw(self, size: int, bits: exact_draws.Bits | None = None) -> NDArray[np.int64]:
        """Draw noise exactly, in whole steps of `clip_step`.

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
        >>> from walklearn.privacy import ModelNoise
        >>> noise = ModelNoise(clip=1.0, noise_multiplier=2.0, max_contributions=1)
        >>> noise.draw(3).shape
        (3,)
        """
        return exact_draws.rounded_normal(size, self._steps_of_noise, step=1.0, bits=bits)

    def prepare(self, size: int) -> None:
        """Draw ahead, so that the next `draw` of this size only copies.

        Parameters
        ----------
        size
            The number of coordinates.
        """
        exact_draws.prepare(size, self._steps_of_noise, step=1.0)

    def is_prepared(self, size: int) -> bool:
        """True if at least `size` draws were made ahead and are unused.

        Parameters
        ----------
        size
            The number of coordinates.

        Returns
        -------
        bool
            False if `draw` would have to draw now.
        """
        return exact_draws.is_prepared(size, self._steps_of_noise, step=1.0)

    @property
    def _steps_of_noise(self) -> float:
        """σ in steps of `clip_step`, which is exact: C is 2^24 steps."""
        if self.noise_multiplier > _MAX_DRAWN:
            raise ValueError(
                f"noise of {self.noise_multiplier:.3g} times the clip is more than can be drawn, "
                f"{_MAX_DRAWN:.3g} times, and would leave nothing of the rows: ask for a larger "
                "epsilon or delta, or for fewer contributions."
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
        """The rows' part of ∇f_i, safe to show: with noise that `draw` gave, for this once.

        Parameters
        ----------
        objective, node, w, draws
            As for `clipped_on_grid`.
        steps
            What `draw` gave for the size of the model, and was not used before.

        Returns
        -------
        array
            As many doubles as the model has numbers.
        """
        if steps.shape != (objective.size,) or steps.dtype != np.int64:
            raise ValueError(
                f"a model has {objective.size} numbers: the noise must be as many whole numbers, "
                f"as `draw` gives them, not {steps.dtype} of shape {steps.shape}."
            )
        total = steps + self.clipped_on_grid(objective, node, w, draws)
        # What follows sees the noisy whole numbers alone.
        return np.asarray(self.factor(objective, node) * (self.clip_step * total))

    def check_batch(self, batch: object) -> None:
        """Refuse a mini-batch for a claim about rows: it may hold a row several times.

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

    def factor(self, objective: Objective, node: int) -> float:
        """What the noisy sum is multiplied by, to be the rows' part of ∇f_i: a public number.

        Parameters
        ----------
        objective
            The objective, with the node's rows.
        node
            The number of the node.

        Returns
        -------
        float
            `Objective.row_factor` for "rows"; 1 for "node", where it is in what is clipped.
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
        """The rows' part of ∇f_i with noise made of normal numbers, for a simulation.

        Parameters
        ----------
        objective, node, w, draws
            As for `clipped`.
        normal
            A standard normal number for each number of the model.

        Returns
        -------
        array
            As many doubles as the model has numbers. A vector that is not finite counts as 0: NaN
            would pass through the clipping and reveal the overflow.
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
        """Yield what is clipped, a vector to a line, and how much of each the clipping leaves.

        Each row's gradient, some rows at a time, or that of all of them. Of a vector that is not
        finite nothing is left.
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
        batch = np.asarray(draws, dtype=np.float64)
        if self.protect == "node":
            with np.errstate(over="ignore", invalid="ignore"):
                whole = np.asarray(objective.gradient(node, w, batch), dtype=np.float64)
            yield np.atleast_1d(whole)[None, :]
            return
        self.check_batch(len(batch) or None)
        parts: list[tuple[slice, ...]] = [()]  # all rows at once
        if hasattr(objective, "count_rows"):
            at_once = max(1, NUMBERS_AT_ONCE // objective.size)
            firsts = range(0, objective.count_rows(node), at_once)
            parts = [(slice(first, first + at_once),) for first in firsts]
        for part in parts:
            with np.errstate(over="ignore", invalid="ignore"):
                gradients = objective.row_gradients(node, w, *part)
            yield np.asarray(gradients, dtype=np.float64)
