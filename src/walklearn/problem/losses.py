"""Losses ℓ(score, target): value, slope, curvature and smoothness, each written as one formula.

A row x with target t is scored by the model, s = x·w (a vector of K scores for
`Softmax`), and pays ℓ(s, t). Everything the algorithms need is the derivative of ℓ in
the score, `slope`, for then ∇_w ℓ = slope · x; and its Lipschitz constant β,
`smoothness`, for then the gradient of a row is β‖x‖²-Lipschitz.

>>> import numpy as np
>>> loss = Logistic()
>>> loss.slope(np.array([0.0]), np.array([1.0]))
array([-0.5])
>>> loss.smoothness
0.25
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from dataclasses import dataclass, replace
from typing import Any, ClassVar, Literal

import numpy as np
from numpy.typing import NDArray

from walklearn.files.registry import Registry

Array = NDArray[np.floating[Any]]
Targets = Literal["number", "sign", "class"]


class Loss(ABC):
    """What every loss offers. Scores have shape (rows,), for `Softmax` (rows, K).

    Attributes
    ----------
    name
        What files, plans and the command line call the loss, once it is registered in `LOSSES`.
    takes
        What a target is: a "number", a "sign" −1 or +1 for two classes, or a "class" 0 to K −
        1.
    gives_probabilities
        Whether scores are log-odds of the classes.
    falls_for_ever
        Whether a larger margin always costs less, so that rows which can be separated have no
        best model.
    """

    name: ClassVar[str]
    smoothness: ClassVar[float]
    takes: ClassVar[Targets] = "number"
    gives_probabilities: ClassVar[bool] = False
    falls_for_ever: ClassVar[bool] = False

    @property
    def max_slope(self) -> float:
        """Largest ``|slope|`` of any score and target; infinity if there is none."""
        return math.inf

    @abstractmethod
    def value(self, scores: Array, targets: Array) -> Array:
        """Compute ℓ for each row.

        Parameters
        ----------
        scores
            Shape (rows,), for `Softmax` (rows, K).
        targets
            Shape (rows,), as `takes` says.

        Returns
        -------
        array
            Shape (rows,).
        """

    @abstractmethod
    def slope(self, scores: Array, targets: Array) -> Array:
        """Compute ∂ℓ/∂score for each row.

        Parameters
        ----------
        scores
            Shape (rows,), for `Softmax` (rows, K).
        targets
            Shape (rows,), as `takes` says.

        Returns
        -------
        array
            Of the same shape as the scores.
        """

    @abstractmethod
    def curvature(self, scores: Array, targets: Array) -> Array:
        """Compute ∂²ℓ/∂score² for each row.

        Parameters
        ----------
        scores
            Shape (rows,), for `Softmax` (rows, K).
        targets
            Shape (rows,), as `takes` says.

        Returns
        -------
        array
            Shape (rows,), for `Softmax` (rows, K, K).
        """

    def check_targets(self, targets: Array) -> None:
        """Raise ValueError if the loss cannot take these targets; real numbers are fine."""
        del targets

    def outputs(self, targets: Array) -> int:
        """How many scores the model gives a row: 1, for `Softmax` the number of classes."""
        del targets
        return 1

    def for_classes(self, count: int) -> Loss:
        """The loss for so many classes: itself, unless it gives a score to each."""
        del count
        return self

    def rescaled(self, spread: float) -> Loss:
        """Return the loss for scores and targets divided by `spread`.

        It has the same minimiser: ℓ(spread · s, spread · t) is a multiple of the returned loss at
        (s, t). A loss with a constant in the units of the target overrides this.

        Parameters
        ----------
        spread
            The positive number that targets are divided by.

        Returns
        -------
        Loss
            The loss itself, unless one of its constants has the units of the target.
        """
        del spread
        return self


LOSSES: Registry[type[Loss]] = Registry("loss")


class _MarginLoss(Loss):
    """A loss of the margin m = target · score, with targets ±1."""

    takes: ClassVar[Targets] = "sign"

    def check_targets(self, targets: Array) -> None:
        """Check that labels are −1 or +1."""
        wrong = np.flatnonzero((targets != 1.0) & (targets != -1.0))
        if wrong.size:
            raise ValueError(
                f"{type(self).__name__} takes labels -1 and +1, but row {wrong[0]} has label "
                f"{targets[wrong[0]]:g}. Map your two classes first, for example "
                "y = np.where(label == positive_label, 1.0, -1.0), or use Softmax for classes "
                "0..K-1."
            )


@LOSSES.register
@dataclass(frozen=True)
class Logistic(_MarginLoss):
    """ln(1 + e^(−m)) with m = target · score; labels ±1.

    Examples
    --------
    >>> import numpy as np
    >>> Logistic().value(np.array([0.0]), np.array([1.0])).round(4)
    array([0.6931])
    """

    name: ClassVar[str] = "logistic"
    smoothness: ClassVar[float] = 0.25
    gives_probabilities: ClassVar[bool] = True
    falls_for_ever: ClassVar[bool] = True

    @property
    def max_slope(self) -> float:
        """1: the slope is a probability."""
        return 1.0

    def value(self, scores: Array, targets: Array) -> Array:
        """ln(1 + e^(−m)), without overflow."""
        return np.logaddexp(0.0, -targets * scores)

    def slope(self, scores: Array, targets: Array) -> Array:
        """−target / (1 + e^m), by way of e^(−|m|), which cannot overflow."""
        margin = targets * scores
        small = np.exp(-np.abs(margin))
        return -targets * np.where(margin > 0, small, 1.0) / (1.0 + small)

    def curvature(self, scores: Array, targets: Array) -> Array:
        """p(1 − p) with p = 1 / (1 + e^m)."""
        probability = np.abs(self.slope(scores, targets))
        return probability * (1.0 - probability)


@LOSSES.register
@dataclass(frozen=True)
class Squared(Loss):
    """½(score − target)².

    Examples
    --------
    >>> import numpy as np
    >>> Squared().value(np.array([3.0]), np.array([1.0]))
    array([2.])
    """

    name: ClassVar[str] = "squared"
    smoothness: ClassVar[float] = 1.0

    def value(self, scores: Array, targets: Array) -> Array:
        """½r²."""
        return 0.5 * (scores - targets) ** 2

    def slope(self, scores: Array, targets: Array) -> Array:
        """The residual r = score − target."""
        return scores - targets

    def curvature(self, scores: Array, targets: Array) -> Array:
        """1 everywhere."""
        del targets
        return np.ones_like(scores)


@LOSSES.register
@dataclass(frozen=True)
class Huber(Loss):
    """½r² for ``|r|`` ≤ threshold, linear beyond, with r = score − target: outliers pull less.

    Parameters
    ----------
    threshold
        The residual at which the parabola becomes a straight line.

    Examples
    --------
    >>> import numpy as np
    >>> Huber(1.0).value(np.array([0.5, 3.0]), np.array([0.0, 0.0]))
    array([0.125, 2.5  ])
    """

    name: ClassVar[str] = "huber"
    threshold: float = 1.0
    smoothness: ClassVar[float] = 1.0

    def __post_init__(self) -> None:
        if not (np.isfinite(self.threshold) and self.threshold > 0):
            raise ValueError(f"Huber needs a positive threshold, got {self.threshold!r}.")
        object.__setattr__(self, "threshold", float(self.threshold))

    @property
    def max_slope(self) -> float:
        """The threshold."""
        return self.threshold

    def value(self, scores: Array, targets: Array) -> Array:
        """½r² inside, threshold · (``|r|`` − ½ threshold) outside."""
        size = np.abs(scores - targets)
        inside = np.minimum(size, self.threshold)
        return inside * (size - 0.5 * inside)

    def slope(self, scores: Array, targets: Array) -> Array:
        """The residual, cut at ±threshold."""
        return np.clip(scores - targets, -self.threshold, self.threshold)

    def curvature(self, scores: Array, targets: Array) -> Array:
        """1 inside, 0 outside."""
        return (np.abs(scores - targets) <= self.threshold).astype(scores.dtype)

    def rescaled(self, spread: float) -> Huber:
        """Return the loss whose threshold is in units of the spread."""
        return Huber(self.threshold / spread)


@LOSSES.register
@dataclass(frozen=True)
class SquaredHinge(_MarginLoss):
    """½ max(0, 1 − m)² with m = target · score; labels ±1.

    Examples
    --------
    >>> import numpy as np
    >>> SquaredHinge().value(np.array([0.0, 2.0]), np.array([1.0, 1.0]))
    array([0.5, 0. ])
    """

    name: ClassVar[str] = "squared-hinge"
    smoothness: ClassVar[float] = 1.0

    def value(self, scores: Array, targets: Array) -> Array:
        """½ max(0, 1 − m)²."""
        return 0.5 * np.maximum(0.0, 1.0 - targets * scores) ** 2

    def slope(self, scores: Array, targets: Array) -> Array:
        """−target · max(0, 1 − m)."""
        return -targets * np.maximum(0.0, 1.0 - targets * scores)

    def curvature(self, scores: Array, targets: Array) -> Array:
        """1 where the margin is short, by more than rounding, 0 elsewhere."""
        return (targets * scores < 1.0 - 1e-12).astype(scores.dtype)


@LOSSES.register
@dataclass(frozen=True)
class Softmax(Loss):
    """Multinomial regression: ln Σ_k e^(s_k) − s_target, with labels 0 to K − 1 and a K × d model.

    Parameters
    ----------
    classes
        The number of classes K; by default the largest label plus one.

    Examples
    --------
    >>> import numpy as np
    >>> Softmax(3).value(np.array([[0.0, 0.0, 0.0]]), np.array([2.0])).round(4)
    array([1.0986])
    """

    name: ClassVar[str] = "softmax"
    classes: int | None = None
    smoothness: ClassVar[float] = 0.5
    takes: ClassVar[Targets] = "class"
    gives_probabilities: ClassVar[bool] = True
    falls_for_ever: ClassVar[bool] = True

    def __post_init__(self) -> None:
        if self.classes is None:
            return
        if self.classes < 2 or self.classes != int(self.classes):
            raise ValueError(f"Softmax needs at least 2 classes, got {self.classes}.")
        object.__setattr__(self, "classes", int(self.classes))

    @property
    def max_slope(self) -> float:
        """√2, the norm of probabilities 1 and 0 minus the indicator of the other class."""
        return math.sqrt(2.0)

    def value(self, scores: Array, targets: Array) -> Array:
        """Log-sum-exp minus the target's score."""
        top = scores.max(axis=-1)
        total = np.exp(scores - top[..., None]).sum(axis=-1)
        chosen = np.take_along_axis(scores, targets.astype(np.intp)[..., None], axis=-1)[..., 0]
        return np.asarray(np.log(total) + (top - chosen))

    def slope(self, scores: Array, targets: Array) -> Array:
        """Probabilities minus the indicator of the target."""
        slope = _probabilities(scores)
        slope[np.arange(len(slope)), targets.astype(np.intp)] -= 1.0
        return slope

    def curvature(self, scores: Array, targets: Array) -> Array:
        """diag(p) − p pᵀ for each row."""
        del targets
        p = _probabilities(scores)
        return p[:, :, None] * (np.eye(p.shape[1]) - p[:, None, :])

    def check_targets(self, targets: Array) -> None:
        """Check that labels are the whole numbers 0..K−1."""
        classes = np.inf if self.classes is None else self.classes
        wrong = np.flatnonzero(
            (targets < 0) | (targets != np.floor(targets)) | (targets >= classes)
        )
        if wrong.size:
            upper = "K-1" if self.classes is None else str(self.classes - 1)
            raise ValueError(
                f"Softmax takes labels 0..{upper} as whole numbers, but row {wrong[0]} has label "
                f"{targets[wrong[0]]:g}. Number your classes first, for example "
                "names, y = np.unique(label, return_inverse=True)."
            )

    def outputs(self, targets: Array) -> int:
        """The number of classes K, at least 2."""
        return max(2, int(targets.max()) + 1) if self.classes is None else self.classes

    def for_classes(self, count: int) -> Softmax:
        """The loss with K = count classes, at least 2."""
        return replace(self, classes=max(2, count))


def _probabilities(scores: Array) -> Array:
    weights = np.exp(scores - scores.max(axis=1, keepdims=True))
    return np.asarray(weights / weights.sum(axis=1, keepdims=True))
