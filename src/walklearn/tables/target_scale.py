"""The public centre and spread of a target that is a number.

Noise on the model is made for targets of spread 1 around 0. Under ε a target is therefore trained
as (y − centre) / spread and cut at ±`CUT_OFF` spreads. Centre and spread are folded into the
finished model, which predicts in the target's own units.

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

Array = NDArray[Any]
CUT_OFF = 3.0  # in spreads


@dataclass(frozen=True)
class TargetScale:
    """Centre and spread that a target is shifted and divided by.

    cut_off: targets farther than this many spreads from the centre are moved to that distance.
    It bounds the influence of a row; unprotected training passes infinity.
    """

    centre: float = 0.0
    spread: float = 1.0
    cut_off: float = CUT_OFF

    def __post_init__(self) -> None:
        if not (math.isfinite(self.centre) and 0.0 < self.spread < math.inf):
            raise ValueError(
                "the target needs a finite centre and a positive spread, got "
                f"{self.centre!r} and {self.spread!r}."
            )

    def check_intercept(self, intercept: bool, how: str) -> None:
        """Raise if the centre cannot be folded into the model, which has no intercept."""
        if self.centre != 0.0 and not intercept:
            raise ValueError(
                f"a centre of {self.centre:g} of the target becomes part of the intercept, and the "
                f"model has none. {how}, or give a centre of 0."
            )

    def to_training(self, targets: ArrayLike) -> Array:
        """Return the targets as the model is trained on them."""
        with np.errstate(over="ignore"):
            scaled = (np.asarray(targets, dtype=np.float64) - self.centre) / self.spread
        return np.clip(scaled, -self.cut_off, self.cut_off)

    def to_original(self, model: Array, intercept: bool) -> Array:
        """Return the model that predicts in the target's own units; an intercept is last."""
        scaled = np.asarray(model * self.spread)
        if intercept:
            scaled[..., -1:] += self.centre  # some plans carry no average: it is empty
        return scaled
