"""Checks of the arguments that the whole privacy package shares: ε, δ, bounds, clamp, values.

>>> check_bounds((2, 10))
(2.0, 10.0)
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from walklearn.checks import check_number
from walklearn.wording import plural

Array = NDArray[np.float64]
Bounds = tuple[float, float]

# δ of totals and claims if neither a budget nor a setting states one.
DEFAULT_DELTA = 1e-5
# The default clamp: the bounds themselves. No clamp must be requested by None.
AT_BOUNDS: Any = "bounds"

# Beyond these, squares and ratios of the bounds would leave the range of double precision.
_SMALLEST, _LARGEST = 1e-100, 1e100


def check_epsilon(epsilon: float) -> float:
    """Return ε as a float: at least 0, possibly infinite, not NaN."""
    return math.inf if epsilon == math.inf else check_number("epsilon", epsilon, minimum=0.0)


def check_delta(delta: float) -> float:
    """Return δ as a float in [0, 1)."""
    return check_number("delta", delta, minimum=0.0, below=1.0)


def check_bounds(bounds: Sequence[float], name: str = "bounds") -> Bounds:
    """Return public bounds as two floats with 0 < lo < hi."""
    try:
        lo, hi = (float(end) for end in bounds)
    except (TypeError, ValueError):
        raise ValueError(f"{name} must be two numbers (lo, hi), got {bounds!r}.") from None
    if lo == hi and lo > 0:
        raise ValueError(
            f"{name} {lo:g}..{hi:g} are equal: every node has this public value, so there is "
            "nothing to protect. Release it without noise."
        )
    if not (_SMALLEST <= lo < hi <= _LARGEST):
        raise ValueError(
            f"{name} must satisfy 0 < lo < hi (and lie within {_SMALLEST:g}..{_LARGEST:g}), "
            f"got lo={lo!r}, hi={hi!r}. If the smallest possible value is 0, choose a positive "
            "public lower bound; values below it are lifted to it before the release."
        )
    return lo, hi


def check_clamp(clamp: Sequence[float] | None, bounds: Bounds) -> Bounds | None:
    """Return the ends of a clamp, which must overlap with the bounds; None for no clamp."""
    if clamp is None:
        return None
    if isinstance(clamp, str) and clamp == AT_BOUNDS:
        return bounds
    ends = check_bounds(clamp, "clamp")
    if ends[0] >= bounds[1] or ends[1] <= bounds[0]:
        raise ValueError(f"the clamp {ends} and the bounds {bounds} must overlap.")
    return ends


def check_values(values: ArrayLike) -> Array:
    """Return values as floats, none of them NaN or infinite."""
    array = np.asarray(values, dtype=np.float64)
    bad = np.flatnonzero(~np.isfinite(array))
    if bad.size:
        raise ValueError(
            f"value {bad[0]} is {array.flat[bad[0]]} ({plural(bad.size, 'such value')} in total): "
            "only finite numbers can be released."
        )
    return array
