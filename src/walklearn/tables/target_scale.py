"""The public centre and spread of a target that is a number.

The noise on a model is made for targets with mean 0 and spread 1. Under ε the model is therefore
trained on (y − centre) / spread, clipped to ±`CUT_OFF`. The final model includes centre and spread,
so it predicts in the units of the target.

>>> scale = TargetScale(150.0, 80.0)
>>> scale.to_training([150.0, 230.0, 9999.0]).tolist()
[0.0, 1.0, 3.0]
>>> scale.to_original(np.array([0.5, 0.25]), intercept=True).tolist()     # the intercept is last
[40.0, 170.0]
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from walklearn.tables.table import DataError

Array = NDArray[Any]
CUT_OFF = 3.0  # in spreads


@dataclass(frozen=True)
class TargetScale:
    """Centre and spread of a target.

    cut_off: targets are clipped to this many spreads from the centre, which bounds the influence of
    a row; infinite in unprotected training.
    """

    centre: float = 0.0
    spread: float = 1.0
    cut_off: float = CUT_OFF

    def __post_init__(self) -> None:
        check_scale("the target", self.centre, self.spread, self.cut_off)

    def check_intercept(self, intercept: bool, remedy: str) -> None:
        """Raise a ValueError if there is no intercept to which the centre could be added."""
        if self.centre != 0.0 and not intercept:
            raise ValueError(
                f"a centre of {self.centre:g} of the target becomes part of the intercept, but the "
                f"model has none. {remedy}, or give a centre of 0."
            )

    def to_training(self, targets: ArrayLike) -> Array:
        """Return the targets that the model is trained on."""
        return scale_numbers(targets, self.centre, self.spread, self.cut_off)

    def to_original(self, model: Array, intercept: bool) -> Array:
        """Return the model that predicts in the target's units; an intercept is last."""
        original = np.asarray(model * self.spread)
        if intercept:
            original[..., -1:] += self.centre  # without an average in the plan it is empty
        return original


def scale_numbers(numbers: ArrayLike, centre: float, spread: float, cut_off: float) -> Array:
    """Return (numbers − centre) / spread, cut off at ±cut_off."""
    with np.errstate(over="ignore"):
        units = (np.asarray(numbers, dtype=np.float64) - centre) / spread
    return np.clip(units, -cut_off, cut_off)


def check_scale(name: str, centre: float, spread: float, cut_off: float) -> None:
    """Raise a DataError for a centre, spread or cut-off that is not valid."""
    if not (math.isfinite(centre) and 0 < spread < math.inf and cut_off > 0):
        raise DataError(
            f"{name} needs a finite centre, a positive spread and a positive cut_off, got "
            f"{centre!r}, {spread!r} and {cut_off!r}."
        )
