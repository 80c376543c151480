"""From the units that rows are given in to those that a walk trains in, and back.

Steps as long as 1/L_i take care of rows of different size, but not of columns: where one feature
is in thousands and another in thousandths, SGD is hopeless. So columns are shifted to mean 0 and
scaled to deviation 1 first, which a token could learn on a first round. That looks at all rows:
under privacy it is not done (`Units.given`), and columns must be scaled by public numbers.

Sparse rows stay sparse: a shift would fill all their zeros in. So their columns are only divided,
by their largest entry, which leaves columns of 0 and 1 as they are and rare ones small.

>>> units = Units.standard(np.array([[1.0, 1000.0], [3.0, 3000.0]]), np.ones(2), True)
>>> units.rows(np.array([[3.0, 1000.0]]))
array([[ 1., -1.,  1.]])
>>> units.back(np.array([2.0, 3.0, 1.0]))          # the last one is the intercept
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
AS_GIVEN = TargetScale(cut_off=math.inf)


@dataclass(frozen=True, eq=False)
class Units:
    """x is trained on as (x − shift) / scale, y as `target` scales it.

    from_rows: whether these numbers were computed from rows. cut_off: what is beyond ± this, in
    the units to train in, is moved there.
    """

    shift: Array
    scale: Array
    intercept: bool
    target: TargetScale = AS_GIVEN
    from_rows: bool = False
    cut_off: Array | None = None

    @property
    def are_given(self) -> bool:
        """Whether rows stay as they are."""
        return bool((self.scale == 1.0).all()) and not self.from_rows

    @classmethod
    def declared(cls, columns: Sequence[Column], intercept: bool) -> Units:
        """The units that a schema declares, by public numbers."""
        numbers = [[column.centre, column.spread, column.cut_off] for column in columns]
        shift, scale, cut_off = np.array(numbers).T
        return cls(shift, scale, intercept, cut_off=cut_off)

    @classmethod
    def given(cls, features: int, intercept: bool) -> Units:
        """The units in which rows stay as they are."""
        return cls(np.zeros(features), np.ones(features), intercept)

    @classmethod
    def standard(
        cls, X: Any, weights: Array, intercept: bool, targets: Array | None = None
    ) -> Units:
        """Weighted mean 0 and deviation 1 for every column, and mean 0 for the targets.

        Without an intercept nothing is shifted, as nothing could make up for it: then columns
        have the mean square 1. A column that does not vary keeps its scale. Of sparse rows no
        column is shifted, and the largest entry of each is 1.
        """
        shares = weights / weights.sum()
        target = AS_GIVEN
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
        # By the largest entry first, so that squares neither overflow nor vanish.
        largest = np.abs(centred).max(axis=0, initial=0.0)
        if not np.isfinite(largest).all():
            raise ValueError(
                f"column {int(np.isinf(largest).argmax())} of X spans more than double precision "
                "holds: divide it by a large number first."
            )
        varies = largest > 1e-12 * np.abs(X).max(axis=0, initial=0.0)
        unit = np.where(largest > 0, largest, 1.0)
        deviation = unit * np.sqrt(shares @ (centred / unit) ** 2)
        return cls(shift, np.where(varies, deviation, 1.0), intercept, target, True)

    def rows(self, X: Any) -> Any:
        """The rows to train on, a copy; an intercept is a last feature that is always 1."""
        if is_sparse(X):
            return self._sparse_rows(X)
        features = len(self.scale)
        rows = np.ones((len(X), features + self.intercept))
        inner = rows[:, :features]
        np.divide(X - self.shift if self.shift.any() else X, self.scale, out=inner)
        if self.cut_off is not None:
            np.clip(inner, -self.cut_off, self.cut_off, out=inner)
        return rows

    def clipped(self, X: Any, bound: float) -> tuple[Any, int]:
        """The rows to train on, no longer than the bound in these units, and how many were.

        The intercept's 1 is no part of a row's length.
        """
        rows, count = clip_features(replace(self, intercept=False).rows(X), bound)
        return (with_ones(rows) if self.intercept else rows), count

    def cut(self, X: Any) -> Any:
        """Rows in given units, to predict: cut off as those that were trained on."""
        if self.cut_off is None:
            return X
        reach = self.cut_off * self.scale
        if not is_sparse(X):
            return np.clip(X, self.shift - reach, self.shift + reach)
        cut = with_entries_once(X).copy()
        np.clip(cut.data, -reach[cut.indices], reach[cut.indices], out=cut.data)
        return cut

    def _sparse_rows(self, X: Any) -> Any:
        """What `rows` does, for rows in CSR."""
        from scipy.sparse import csr_array

        if self.shift.any():
            raise ValueError(
                "columns are shifted, by the first rows, which were dense, or by a centre that the "
                "schema declares: that would fill sparse rows up. Pass dense rows (X.toarray()), "
                "begin anew with sparse ones, or declare centres of 0."
            )
        X = with_entries_once(X)
        data = X.data if (self.scale == 1.0).all() else X.data / self.scale[X.indices]
        if self.cut_off is not None:
            ends = self.cut_off[X.indices]
            data = np.clip(data, -ends, ends)
        if self.intercept:
            return with_ones(csr_array((data, X.indices, X.indptr), shape=X.shape))
        return csr_array((data, X.indices, X.indptr), shape=X.shape, copy=True)

    def forth(self, model: Array) -> Array:
        """A model of given units, the intercept last, in those to train in: undoes `back`."""
        centre, spread = self.target.centre, self.target.spread
        scaled = self.for_scaled_features(model)
        if self.intercept:
            scaled[..., -1] -= centre
        return np.asarray(scaled / spread)

    def for_scaled_features(self, model: Array) -> Array:
        """Return the model of given units for scaled features; it predicts the same target."""
        features = len(self.scale)
        weights = model[..., :features] * self.scale
        if not self.intercept:
            return np.asarray(weights)
        constant = model[..., features] + model[..., :features] @ self.shift
        return np.concatenate([weights, np.asarray(constant)[..., None]], axis=-1)

    def back(self, model: Array) -> Array:
        """A model in given units, the intercept last: (features,), or (K, features)."""
        features = len(self.scale)
        weights = model[..., :features] / self.scale
        if not self.intercept:
            return self.target.to_original(weights, intercept=False)
        shifted = weights @ self.shift if self.shift.any() else 0.0
        constant = model[..., features] - shifted
        whole = np.concatenate([weights, np.asarray(constant)[..., None]], axis=-1)
        return self.target.to_original(whole, intercept=True)
