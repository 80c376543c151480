"""Release of L_i with noise that hides every single row; it needs no bounds on L_i.

L_i = λ + β λ_max(Σ c_r x_r x_rᵀ). Replacing one row takes x xᵀ out and puts x' x'ᵀ in. By Weyl's
inequality the largest eigenvalue moves by no more than the longer of the two: with ‖x‖ ≤ B and
no weight above ω, L_i moves by at most

    "sum"        N β ω B²
    "mean"       (N/M) β ω B²
    "node-mean"  β ω B² / (smallest sum of the weights of a node's rows)

with B² + 1 for B² if there is an intercept; the penalty cancels. With many rows this is little
beside L_i itself, so the release is nearly exact, while a claim about the whole node hides nearly
everything. The counts (or sums of weights) that `aggregate` divides by are public, or capped by a
public number. Rows longer than B are shortened to it before (`clip_features`).

Computed eigenvalues are right to a few units in the last place of the sum of all ‖x‖². This error
is added to the sensitivity (Higham 2002, chapters 3 and 20: forming the products, then the
eigenvalues of a symmetric matrix, each backward stable), as is the last digit of the sum with λ.
It holds for dense eigenvalues: a node may have a thousand sparse rows, or a thousand columns,
before they are iterated.

>>> from walklearn.objectives.linear.losses import Logistic
>>> release = row_release(Logistic(), epsilon=0.3, delta=1e-6, nodes=20, feature_bound=3.0,
...                       aggregate="mean", total_rows=5000.0)
>>> round(release.sensitivity, 6)          # 20/5000 · 9/4
0.009
>>> release.protect, release.delta(0.3) <= 1e-6, release.sigma < 0.15
('rows', True, True)
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import ClassVar

from numpy.typing import ArrayLike

from walklearn.checks import check_number, check_whole
from walklearn.objectives.linear.losses import Loss
from walklearn.privacy.accounting import curves
from walklearn.privacy.limits import AT_BOUNDS, Array, Bounds
from walklearn.privacy.mechanisms import Gaussian
from walklearn.privacy.mechanisms.bounds import row_weight
from walklearn.privacy.model_noise import ModelNoise, Unit

# Backward error of an eigenvalue, in units in the last place for each row and column.
_ROUNDINGS = 64.0


@dataclass(frozen=True, repr=False)
class RowGaussian(Gaussian):
    """Gaussian noise on a value that one row can move by `sensitivity` at most.

    The clamp to public ends is post-processing, so δ is that of the unclamped release.

    Parameters
    ----------
    sigma
        The standard deviation of the noise.
    bounds
        Public ends of the value.
    clamp
        Public ends that releases are clamped to, by default the bounds; None for no clamp.
    sensitivity
        The largest change of the value if one row is replaced.
    """

    name: ClassVar[str] = "row-gaussian"
    protect: ClassVar[Unit] = "rows"
    sigma: float
    bounds: Bounds
    clamp: Bounds | None = AT_BOUNDS
    sensitivity: float = math.nan

    def __post_init__(self) -> None:
        super().__post_init__()
        sensitivity = check_number("sensitivity", self.sensitivity, above=0.0)
        object.__setattr__(self, "sensitivity", sensitivity)

    def curve(self, epsilon: ArrayLike) -> Array:
        """Return δ for each ε."""
        return curves.gaussian_delta(epsilon, self.sigma / self.sensitivity, (0.0, 1.0))

    def __repr__(self) -> str:
        return f"{super().__repr__()[:-1]}, sensitivity={self.sensitivity:.6g})"


def row_release(
    loss: Loss,
    *,
    epsilon: float,
    delta: float,
    nodes: int,
    feature_bound: float,
    total_rows: float,
    penalty: float = 0.0,
    aggregate: str = "mean",
    intercept: bool = False,
    min_rows: float = 1.0,
    largest_weight: float = 1.0,
    features: int = 1000,
) -> RowGaussian:
    """Find the smallest Gaussian noise on L_i that is (ε, δ) private for every single row.

    The release is clamped to public ends that follow from the same facts: at least the penalty or
    the sensitivity, and at most the largest L_i that all rows together can give.

    Parameters
    ----------
    loss
        The loss of a row.
    epsilon, delta
        P(outcome) ≤ e^ε · P(outcome with another row) + δ for all outcomes.
    nodes, total_rows
        The numbers of nodes N and of all rows M, or the sum of their weights if that is larger.
    feature_bound
        A public bound B on ‖x‖, without the intercept, that rows are shortened to.
    penalty
        The factor of ½‖w‖² in the objective.
    aggregate
        "sum", "mean" or "node-mean", as for `Problem`.
    intercept
        True if the model has an intercept, a further feature that is 1 in every row.
    min_rows, largest_weight
        The smallest sum of the weights of a node's rows, for "node-mean", and a public cap on the
        weight of a row.
    features
        The largest number of columns, for the rounding of eigenvalues.

    Returns
    -------
    RowGaussian
        The mechanism for `Weighted(privacy=…)`.
    """
    check_whole("nodes", nodes)
    check_number("penalty", penalty, minimum=0.0)
    sizes = {"feature_bound": feature_bound, "total_rows": total_rows, "min_rows": min_rows,
             "largest_weight": largest_weight}  # fmt: skip
    for name, size in sizes.items():
        check_number(name, size, above=0.0)
    weight, largest_sum = row_weight(aggregate, nodes, total_rows), total_rows
    if aggregate == "node-mean":
        weight, largest_sum = weight / min_rows, min_rows
    moved = loss.smoothness * weight * largest_weight * (feature_bound**2 + bool(intercept))
    rounding = _ROUNDINGS * (total_rows + features) * 2.0**-52 * total_rows / largest_weight
    moved = float(moved * (1.0 + rounding))
    moved += 2.0**-51 * penalty  # cancels, but for the last digit of the sum that it is part of
    ends = (max(penalty, moved), penalty + moved * max(2.0, largest_sum / largest_weight))
    unit = ModelNoise.calibrate(epsilon=epsilon, delta=delta, clip=1.0, max_contributions=1)
    sigma = 0.5 * unit.noise_multiplier * moved * (1.0 + 2.0**-50)
    return RowGaussian(sigma, ends, sensitivity=moved)
