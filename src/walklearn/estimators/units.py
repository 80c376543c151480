"""From the units that rows are given in to those that a walk trains in, and back.

Steps as long as 1/L_i take care of rows of different size, but not of columns: where one feature
is in thousands and another in thousandths, SGD is hopeless. So columns are shifted to mean 0 and
scaled to deviation 1 first, which a token could learn on a first round. That looks at all rows:
under privacy it is not done (`Units.given`), and columns must be scaled by public numbers.

>>> units = Units.standard(np.array([[1.0, 1000.0], [3.0, 3000.0]]), np.ones(2), True)
>>> units.rows(np.array([[3.0, 1000.0]]))
array([[ 1., -1.,  1.]])
>>> units.back(np.array([2.0, 3.0, 1.0]))          # the last one is the intercept
array([ 2.e+00,  3.e-03, -9.e+00])
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

Array = NDArray[Any]


@dataclass(frozen=True, eq=False)
class Units:
    """x is trained on as (x − shift) / scale, y as y − target_shift.

    from_rows: whether these numbers were computed from rows.
    """

    shift: Array
    scale: Array
    intercept: bool
    target_shift: float = 0.0
    from_rows: bool = False

    @classmethod
    def given(cls, features: int, intercept: bool) -> Units:
        """Rows as they are."""
        return cls(np.zeros(features), np.ones(features), intercept)

    @classmethod
    def standard(
        cls, X: Array, weights: Array, intercept: bool, targets: Array | None = None
    ) -> Units:
        """Weighted mean 0 and deviation 1 for every column, and mean 0 for the targets.

        Without an intercept nothing is shifted, as nothing could make up for it: then columns
        have the mean square 1. A column that does not vary keeps its scale.
        """
        shares = weights / weights.sum()
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
        target_shift = float(shares @ targets) if intercept and targets is not None else 0.0
        return cls(shift, np.where(varies, deviation, 1.0), intercept, target_shift, True)

    def rows(self, X: Array) -> Array:
        """The rows to train on; an intercept is a last feature that is always 1."""
        scaled = (X - self.shift) / self.scale
        return np.column_stack([scaled, np.ones(len(X))]) if self.intercept else scaled

    def back(self, model: Array) -> Array:
        """A model in given units, the intercept last: (features,), or (K, features)."""
        features = len(self.scale)
        weights = model[..., :features] / self.scale
        if not self.intercept:
            return np.asarray(weights)
        constant = model[..., features] - weights @ self.shift + self.target_shift
        return np.concatenate([weights, np.asarray(constant)[..., None]], axis=-1)
