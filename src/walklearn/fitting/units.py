"""Conversion between the given units of rows and the units of training.

Steps of length 1/L_i compensate for rows of different size, but not for columns: SGD cannot
converge if one feature is in thousands and another in thousandths. So columns are first shifted to
mean 0 and scaled to standard deviation 1; in a network, a token could collect these numbers on a
first tour. They depend on all rows: with privacy, columns must be scaled by public numbers instead.

A shift would turn the zeros of sparse rows into nonzeros. Their columns are only divided by their
largest entry, which leaves columns of 0 and 1 unchanged and rare ones small.

>>> units = Units.standard(np.array([[1.0, 1000.0], [3.0, 3000.0]]), np.ones(2), True)
>>> units.rows(np.array([[3.0, 1000.0]]))
array([[ 1., -1.,  1.]])
>>> units.to_original(np.array([2.0, 3.0, 1.0]))   # the last one is the intercept
array([ 2.e+00,  3.e-03, -9.e+00])
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from walklearn.objectives.linear.rows import is_sparse, with_entries_once, with_ones
from walklearn.privacy import clip_features
from walklearn.tables.encoding import Column
from walklearn.tables.target_scale import TargetScale

Array = NDArray[Any]
UNCHANGED = TargetScale(cut_off=math.inf)


@dataclass(frozen=True, eq=False)
class Units:
    """x is trained on as (x − shift) / scale, y as `target` scales it.

    from_rows: True if these numbers were computed from rows. cut_off: values beyond ± this, in
    the units of training, are moved there.
    """

    shift: Array
    scale: Array
    intercept: bool
    target: TargetScale = UNCHANGED
    from_rows: bool = False
    cut_off: Array | None = None

    @property
    def are_unchanged(self) -> bool:
        """True if rows keep their units."""
        return bool((self.scale == 1.0).all()) and not self.from_rows

    @classmethod
    def declared(
        cls, columns: Sequence[Column], intercept: bool, target: TargetScale | None
    ) -> Units:
        """Return the units that a schema declares, by public numbers."""
        numbers = [[column.centre, column.spread, column.cut_off] for column in columns]
        shift, scale, cut_off = np.array(numbers).T
        return cls(shift, scale, intercept, target or UNCHANGED, cut_off=cut_off)

    @classmethod
    def unchanged(cls, features: int, intercept: bool, target: TargetScale | None) -> Units:
        """Return the units in which rows are given."""
        return cls(np.zeros(features), np.ones(features), intercept, target or UNCHANGED)

    @classmethod
    def standard(
        cls, X: Any, weights: Array, intercept: bool, targets: Array | None = None
    ) -> Units:
        """Return units with weighted mean 0 and deviation 1 of columns, and mean 0 of targets.

        Without an intercept nothing is shifted, because nothing could compensate it: columns then
        have mean square 1. A constant column keeps its scale. Columns of sparse rows are not
        shifted, and the largest entry of each is 1.
        """
        shares, target = weights / weights.sum(), UNCHANGED
        if intercept and targets is not None:
            target = replace(target, centre=float(shares @ targets))
        if is_sparse(X):
            X, entries = with_entries_once(X), np.zeros(X.shape[1])
            np.maximum.at(entries, X.indices, np.abs(X.data))
            scale = np.where(entries > 0, entries, 1.0)
            return cls(np.zeros(X.shape[1]), scale, intercept, target, True)
        shift = shares @ X if intercept else np.zeros(X.shape[1])
        with np.errstate(over="ignore"):
            centred = X - shift
        # Divided by the largest entry, squares neither overflow nor vanish.
        largest = np.abs(centred).max(axis=0, initial=0.0)
        if not np.isfinite(largest).all():
            raise ValueError(
                f"column {int(np.isinf(largest).argmax())} of X spans more than double precision "
                "holds. Divide it by a large number first."
            )
        varies = largest > 1e-12 * np.abs(X).max(axis=0, initial=0.0)
        unit = np.where(largest > 0, largest, 1.0)
        deviation = unit * np.sqrt(shares @ (centred / unit) ** 2)
        return cls(shift, np.where(varies, deviation, 1.0), intercept, target, True)

    def rows(self, X: Any, bound: float | None = None) -> Any:
        """Return a copy of the rows in units of training; an intercept is a last feature of 1.

        With a bound, return rows no longer than it, and the number of shortened rows. The length
        excludes the intercept.
        """
        if bound is not None:
            rows, count = clip_features(replace(self, intercept=False).rows(X), bound)
            return (with_ones(rows) if self.intercept else rows), count
        if is_sparse(X):
            return self._sparse_rows(X)
        features = len(self.scale)
        rows = np.ones((len(X), features + self.intercept))
        inner = rows[:, :features]
        np.divide(X - self.shift if self.shift.any() else X, self.scale, out=inner)
        if self.cut_off is not None:
            np.clip(inner, -self.cut_off, self.cut_off, out=inner)
        return rows

    def _sparse_rows(self, X: Any) -> Any:
        from scipy.sparse import csr_array

        if self.shift.any():
            raise ValueError(
                "columns are shifted, because the first rows were dense, or because the schema "
                "declares a centre, and a shift would fill sparse rows up. Pass dense rows "
                "(X.toarray()), start anew with sparse ones, or declare centres of 0."
            )
        X = with_entries_once(X)
        data = X.data if (self.scale == 1.0).all() else X.data / self.scale[X.indices]
        if self.cut_off is not None:
            ends = self.cut_off[X.indices]
            data = np.clip(data, -ends, ends)
        rows = csr_array((data, X.indices, X.indptr), shape=X.shape)
        return with_ones(rows) if self.intercept else rows.copy()

    def cut(self, X: Any) -> Any:
        """Cut off rows in given units for prediction, as the training rows were cut off."""
        if self.cut_off is None:
            return X
        reach = self.cut_off * self.scale
        if not is_sparse(X):
            return np.clip(X, self.shift - reach, self.shift + reach)
        cut = with_entries_once(X).copy()
        np.clip(cut.data, -reach[cut.indices], reach[cut.indices], out=cut.data)
        return cut

    def to_training(self, model: Array) -> Array:
        """Convert a model in given units, the intercept last, to units of training."""
        centre, spread = self.target.centre, self.target.spread
        scaled = self.for_scaled_features(model)
        if self.intercept:
            scaled[..., -1] -= centre
        return np.asarray(scaled / spread)

    def for_scaled_features(self, model: Array) -> Array:
        """Convert a model in given units to scaled features; it predicts the same target."""
        features = len(self.scale)
        weights = model[..., :features] * self.scale
        if not self.intercept:
            return np.asarray(weights)
        constant = model[..., features] + model[..., :features] @ self.shift
        return np.concatenate([weights, np.asarray(constant)[..., None]], axis=-1)

    def to_original(self, model: Array) -> Array:
        """Convert a model to given units, the intercept last: (features,), or (K, features)."""
        features = len(self.scale)
        weights = model[..., :features] / self.scale
        if not self.intercept:
            return self.target.to_original(weights, intercept=False)
        shifted = weights @ self.shift if self.shift.any() else 0.0
        constant = model[..., features] - shifted
        whole = np.concatenate([weights, np.asarray(constant)[..., None]], axis=-1)
        return self.target.to_original(whole, intercept=True)
