"""Losses ℓ(score, target): value, slope, curvature and smoothness.

A row x with target t has the score s = x·w (a vector of K scores for `Softmax`) and the loss
ℓ(s, t). Algorithms use its derivative with respect to the score, `slope`, since ∇_w ℓ = slope · x,
and the Lipschitz constant β of the slope, `smoothness`: the gradient of a row is β‖x‖²-Lipschitz.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Callable, Hashable
from dataclasses import dataclass, is_dataclass, replace
from typing import Any, ClassVar, Literal

import numpy as np
from numpy.typing import NDArray

from walklearn.checks import check_number, check_whole
from walklearn.registry import Registry

Array = NDArray[np.floating[Any]]
Targets = Literal["number", "sign", "class"]
ScalarFunction = Callable[[float, float], float]

# Scores and targets at which `from_functions` checks the functions.
_PROBE_SCORES = (-20.0, -3.0, -1.1, -0.5, -1e-3, 0.0, 1e-3, 0.5, 0.9, 3.0, 20.0)
_PROBE_TARGETS = {"sign": (-1.0, 1.0), "number": (-2.0, 0.0, 0.7)}
_PROBE_TOLERANCE = 1e-9


class Loss(ABC):
    """Base class of losses. Scores have shape (rows,), or (rows, K) for `Softmax`.

    Attributes
    ----------
    name
        Name in files, plans and on the command line; the loss must be registered in `LOSSES`.
    smoothness
        β, the Lipschitz constant of the slope.
    takes
        Kind of targets: a "number", a "sign" −1 or +1, or a "class" 0 to K − 1.
    gives_probabilities
        True if scores are log-odds of the classes.
    decreases_forever
        True if a larger margin always has a smaller loss: separable rows then have no minimiser.
    max_slope
        Least upper bound of ``|slope|`` over all scores and targets; infinity if unbounded.
    """

    name: ClassVar[str]
    smoothness: ClassVar[float]
    takes: ClassVar[Targets] = "number"
    gives_probabilities: ClassVar[bool] = False
    decreases_forever: ClassVar[bool] = False
    max_slope: ClassVar[float] = math.inf

    @abstractmethod
    def value(self, scores: Array, targets: Array) -> Array:
        """Compute ℓ for each row, shape (rows,)."""

    @abstractmethod
    def slope(self, scores: Array, targets: Array) -> Array:
        """Compute ∂ℓ/∂score for each row, of the shape of the scores."""

    @abstractmethod
    def curvature(self, scores: Array, targets: Array) -> Array:
        """Compute ∂²ℓ/∂score² for each row, shape (rows,), for `Softmax` (rows, K, K)."""

    def check_targets(self, targets: Array) -> None:
        """Raise ValueError if the loss takes signs and a target is neither −1 nor +1."""
        if self.takes != "sign":
            return
        wrong = np.flatnonzero((targets != 1.0) & (targets != -1.0))
        if wrong.size:
            name = repr(self).removesuffix("()") if is_dataclass(self) else type(self).__name__
            raise ValueError(
                f"{name} takes labels -1 and +1, but row {wrong[0]} has "
                f"label {targets[wrong[0]]:g}. Map your two classes first, for example y = "
                "np.where(label == positive_label, 1.0, -1.0), or use Softmax for classes 0..K-1."
            )

    def outputs(self, targets: Array) -> int:
        """Return the number of scores per row: 1, or the number of classes for `Softmax`."""
        return 1

    def for_classes(self, count: int) -> Loss:
        """Return the loss for this number of classes; only `Softmax` depends on it."""
        return self

    def rescaled(self, spread: float) -> Loss:
        """Return the loss for scores and targets divided by `spread`, with the same minimiser.

        ℓ(spread · s, spread · t) is a multiple of the returned loss at (s, t). Only a loss with a
        constant in units of the target changes, such as the threshold of `Huber`.
        """
        return self


LOSSES: Registry[type[Loss]] = Registry("loss")


@LOSSES.register
@dataclass(frozen=True)
class Logistic(Loss):
    """ln(1 + e^(−m)) with m = target · score; labels ±1.

    Examples
    --------
    >>> Logistic().value(np.array([0.0]), np.array([1.0])).round(4)
    array([0.6931])
    """

    name: ClassVar[str] = "logistic"
    takes: ClassVar[Targets] = "sign"
    smoothness: ClassVar[float] = 0.25
    gives_probabilities: ClassVar[bool] = True
    decreases_forever: ClassVar[bool] = True
    max_slope: ClassVar[float] = 1.0  # the slope is a probability

    def value(self, scores: Array, targets: Array) -> Array:
        """Return ln(1 + e^(−m)), without overflow."""
        return np.logaddexp(0.0, -targets * scores)

    def slope(self, scores: Array, targets: Array) -> Array:
        """Return −target / (1 + e^m), computed from e^(−|m|), which cannot overflow."""
        margin = targets * scores
        exponential = np.exp(-np.abs(margin))
        return -targets * np.where(margin > 0, exponential, 1.0) / (1.0 + exponential)

    def curvature(self, scores: Array, targets: Array) -> Array:
        """Return p(1 − p) with p = 1 / (1 + e^m)."""
        probability = np.abs(self.slope(scores, targets))
        return probability * (1.0 - probability)


@LOSSES.register
@dataclass(frozen=True)
class Squared(Loss):
    """½(score − target)².

    Examples
    --------
    >>> Squared().value(np.array([3.0]), np.array([1.0]))
    array([2.])
    """

    name: ClassVar[str] = "squared"
    smoothness: ClassVar[float] = 1.0

    def value(self, scores: Array, targets: Array) -> Array:
        """Return ½r²."""
        return 0.5 * (scores - targets) ** 2

    def slope(self, scores: Array, targets: Array) -> Array:
        """Return the residual r = score − target."""
        return scores - targets

    def curvature(self, scores: Array, targets: Array) -> Array:
        """Return 1."""
        return np.ones_like(scores)


@LOSSES.register
@dataclass(frozen=True)
class Huber(Loss):
    """½r² for r = score − target if ``|r|`` ≤ threshold, and linear beyond: outliers count less.

    Parameters
    ----------
    threshold
        Residual at which the parabola becomes a straight line.

    Examples
    --------
    >>> Huber(1.0).value(np.array([0.5, 3.0]), np.array([0.0, 0.0]))
    array([0.125, 2.5  ])
    """

    name: ClassVar[str] = "huber"
    threshold: float = 1.0
    smoothness: ClassVar[float] = 1.0

    def __post_init__(self) -> None:
        threshold = check_number("the threshold of Huber", self.threshold, above=0.0)
        object.__setattr__(self, "threshold", threshold)

    @property
    def max_slope(self) -> float:  # type: ignore[override]
        """The threshold."""
        return self.threshold

    def value(self, scores: Array, targets: Array) -> Array:
        """Return ½r² inside, threshold · (``|r|`` − ½ threshold) outside."""
        size = np.abs(scores - targets)
        inside = np.minimum(size, self.threshold)
        return inside * (size - 0.5 * inside)

    def slope(self, scores: Array, targets: Array) -> Array:
        """Return the residual, clipped at ±threshold."""
        return np.clip(scores - targets, -self.threshold, self.threshold)

    def curvature(self, scores: Array, targets: Array) -> Array:
        """Return 1 inside, 0 outside."""
        return (np.abs(scores - targets) <= self.threshold).astype(scores.dtype)

    def rescaled(self, spread: float) -> Huber:
        """Return the loss whose threshold is in units of the spread."""
        return Huber(self.threshold / spread)


@LOSSES.register
@dataclass(frozen=True)
class SquaredHinge(Loss):
    """½ max(0, 1 − m)² with m = target · score; labels ±1.

    Examples
    --------
    >>> SquaredHinge().value(np.array([0.0, 2.0]), np.array([1.0, 1.0]))
    array([0.5, 0. ])
    """

    name: ClassVar[str] = "squared-hinge"
    takes: ClassVar[Targets] = "sign"
    smoothness: ClassVar[float] = 1.0

    def value(self, scores: Array, targets: Array) -> Array:
        """Return ½ max(0, 1 − m)²."""
        return 0.5 * np.maximum(0.0, 1.0 - targets * scores) ** 2

    def slope(self, scores: Array, targets: Array) -> Array:
        """Return −target · max(0, 1 − m)."""
        return -targets * np.maximum(0.0, 1.0 - targets * scores)

    def curvature(self, scores: Array, targets: Array) -> Array:
        """Return 1 if the margin is below 1 by more than rounding, else 0."""
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
    >>> Softmax(3).value(np.array([[0.0, 0.0, 0.0]]), np.array([2.0])).round(4)
    array([1.0986])
    """

    name: ClassVar[str] = "softmax"
    classes: int | None = None
    smoothness: ClassVar[float] = 0.5
    takes: ClassVar[Targets] = "class"
    gives_probabilities: ClassVar[bool] = True
    decreases_forever: ClassVar[bool] = True
    # ‖p − e_target‖ is largest if another class than the target has probability 1.
    max_slope: ClassVar[float] = math.sqrt(2.0)

    def __post_init__(self) -> None:
        if self.classes is not None:
            classes = check_whole("the classes of Softmax", self.classes, minimum=2)
            object.__setattr__(self, "classes", classes)

    def value(self, scores: Array, targets: Array) -> Array:
        """Return log-sum-exp minus the target's score."""
        top = scores.max(axis=-1)
        total = np.exp(scores - top[..., None]).sum(axis=-1)
        chosen = np.take_along_axis(scores, targets.astype(np.intp)[..., None], axis=-1)[..., 0]
        return np.asarray(np.log(total) + (top - chosen))

    def slope(self, scores: Array, targets: Array) -> Array:
        """Return probabilities minus the indicator of the target."""
        slope = _probabilities(scores)
        slope[np.arange(len(slope)), targets.astype(np.intp)] -= 1.0
        return slope

    def curvature(self, scores: Array, targets: Array) -> Array:
        """Return diag(p) − p pᵀ for each row."""
        p = _probabilities(scores)
        return p[:, :, None] * (np.eye(p.shape[1]) - p[:, None, :])

    def check_targets(self, targets: Array) -> None:
        """Raise a ValueError unless labels are whole numbers 0..K−1."""
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
        """Return the number of classes K, at least 2."""
        return max(2, int(targets.max()) + 1) if self.classes is None else self.classes

    def for_classes(self, count: int) -> Softmax:
        """Return the loss with K = count classes, at least 2."""
        return replace(self, classes=max(2, count))


def _probabilities(scores: Array) -> Array:
    weights = np.exp(scores - scores.max(axis=1, keepdims=True))
    return np.asarray(weights / weights.sum(axis=1, keepdims=True))


@dataclass(frozen=True, repr=False)
class FunctionLoss(Loss):
    """A loss made by `from_functions`; simulations compile it if Numba supports its functions.

    Parameters
    ----------
    value_function, slope_function
        ℓ and ∂ℓ/∂score of one score and its target.
    smoothness, name, takes, slope_bound
        See `from_functions`.
    unit
        Scores and targets are multiplied by this number; see `rescaled`.
    """

    value_function: ScalarFunction
    slope_function: ScalarFunction
    smoothness: float  # type: ignore[misc]
    name: str  # type: ignore[misc]
    takes: Targets = "number"  # type: ignore[misc]
    slope_bound: float = math.inf
    unit: float = 1.0

    @property
    def max_slope(self) -> float:  # type: ignore[override]
        """Bound on ``|slope|`` given by the user; infinity by default."""
        return self.slope_bound / self.unit

    @property
    def import_path(self) -> str:
        """Import path of the functions, by which other processes import them."""
        function: Any = self.value_function
        return f"{function.__module__}:{getattr(function, '__qualname__', self.name)}"

    def value(self, scores: Array, targets: Array) -> Array:
        """Call the value function for each row."""
        return self._call_per_row("value", self.value_function, scores, targets) / self.unit**2

    def slope(self, scores: Array, targets: Array) -> Array:
        """Call the slope function for each row."""
        return self._call_per_row("slope", self.slope_function, scores, targets) / self.unit

    def curvature(self, scores: Array, targets: Array) -> Array:
        """Estimate the curvature from differences of the slope, between 0 and the smoothness."""
        step = np.cbrt(np.finfo(np.float64).eps) * np.maximum(1.0, np.abs(scores))
        rise = self.slope(scores + step, targets) - self.slope(scores - step, targets)
        return np.asarray(np.clip(rise / (2.0 * step), 0.0, self.smoothness))

    def rescaled(self, spread: float) -> FunctionLoss:
        """Return ℓ(spread · s, spread · t) / spread², which has the same smoothness."""
        return replace(self, unit=self.unit * spread)

    def __call__(self) -> FunctionLoss:
        """Return the loss itself, because callers call each entry of `LOSSES`, usually a class."""
        return self

    def __repr__(self) -> str:
        unit = "" if self.unit == 1.0 else f", unit={self.unit!r}"
        return f"FunctionLoss({self.name!r}{unit})"

    def _call_per_row(
        self, role: str, function: ScalarFunction, scores: Array, targets: Array
    ) -> Array:
        # The function may not accept arrays, so it is called row by row.
        s, t = np.broadcast_arrays(np.float64(self.unit) * scores, self.unit * targets)
        result = np.empty(s.shape)
        score = target = np.float64(np.nan)
        try:
            with np.errstate(all="ignore"):  # compiled code returns infinity or NaN, too
                for row, (score, target) in enumerate(zip(s.flat, t.flat, strict=True)):
                    result.flat[row] = function(score, target)
        except Exception as error:
            raise ValueError(
                f"the {role} function of the loss {self.name!r} fails at score {score:g} and "
                f"target {target:g}: {type(error).__name__}: {error}. It must return a number for "
                "every score. math.exp(x) fails for large x, np.exp(x) does not."
            ) from error
        return result


def from_functions(
    value: ScalarFunction,
    slope: ScalarFunction,
    *,
    takes: Targets,
    smoothness: float,
    name: str,
    max_slope: float = math.inf,
) -> FunctionLoss:
    """Make a loss from two functions of one score and its target.

    Numba compiles functions that use only numbers, `math`, NumPy's functions of numbers, and
    constants of their module. This takes some seconds, once per process. If it cannot, the slower
    reference engine runs, with a warning that contains Numba's reason. Without Numba, for example
    on a node, the functions are called row by row. Constants are compiled into the functions: to
    change one, make a new loss from new functions.

    Parameters
    ----------
    value, slope
        ℓ(score, target), convex in the score and at least 0, and ∂ℓ/∂score(score, target).
    takes
        The target: a "number", or a "sign" −1 or +1.
    smoothness
        β, the largest ∂²ℓ/∂score². L_i and step sizes follow from it.
    name
        The name in messages, and in files once the loss is registered in `LOSSES`.
    max_slope
        A bound on ``|slope|`` if there is one. It allows longer steps.

    Returns
    -------
    FunctionLoss
        Losses with the same functions and settings are equal. A loss can be pickled if its
        functions are defined at the top level of a module. A ValueError is raised if a function
        fails or is not finite at some scores, or if slope, convexity or smoothness does not fit
        the values.

    Examples
    --------
    >>> def value(score, target):
    ...     return np.sqrt(1.0 + (score - target) ** 2) - 1.0
    >>> def slope(score, target):
    ...     return (score - target) / np.sqrt(1.0 + (score - target) ** 2)
    >>> from_functions(value, slope, takes="number", smoothness=1.0, name="pseudo-huber")
    FunctionLoss('pseudo-huber')
    >>> from_functions(slope, value, takes="number", smoothness=1.0, name="swapped")
    Traceback (most recent call last):
        ...
    ValueError: the value of the loss 'swapped' is -0.99846 at score -20 and target -2. ...
    """
    for role, function in (("value", value), ("slope", slope)):
        if not (callable(function) and isinstance(function, Hashable)):
            raise TypeError(f"{role} must be a function of a score and a target, got {function!r}.")
    if takes not in _PROBE_TARGETS:
        raise ValueError(f'takes must be "number" or "sign", got {takes!r}. A function of one '
                         "score cannot compare several classes; losses.Softmax() can.")  # fmt: skip
    smoothness = check_number("smoothness", smoothness, above=0.0)
    if not max_slope > 0:
        raise ValueError(f"max_slope must be positive, got {max_slope!r}.")
    if not (isinstance(name, str) and name):
        raise ValueError(f"name must be a text, got {name!r}.")
    loss = FunctionLoss(value, slope, smoothness, name, takes, float(max_slope))
    for target in _PROBE_TARGETS[takes]:
        _probe(loss, target)
    return loss


def _probe(loss: FunctionLoss, target: float) -> None:
    """Raise a ValueError if the functions contradict each other or the settings at some score."""
    scores, targets = np.array(_PROBE_SCORES), np.full(len(_PROBE_SCORES), target)
    values, slopes = loss.value(scores, targets), loss.slope(scores, targets)
    for role, numbers, minimum in (("value", values, 0.0), ("slope", slopes, -math.inf)):
        is_wrong = ~(np.isfinite(numbers) & (numbers >= minimum - _PROBE_TOLERANCE))
        if is_wrong.any():
            raise ValueError(
                f"the {role} of the loss {loss.name!r} is {numbers[is_wrong][0]:g} at score "
                f"{scores[is_wrong][0]:g} and target {target:g}. It must be finite"
                f"{'' if minimum else ' and at least 0: add a constant if it is bounded below'}."
            )
    if np.abs(slopes).max() > loss.max_slope * (1.0 + _PROBE_TOLERANCE):
        raise ValueError(
            f"the loss {loss.name!r} has max_slope={loss.max_slope:g}, but a slope of "
            f"{np.abs(slopes).max():g} at target {target:g}."
        )
    # A convex, β-smooth function lies above its tangents, by at most ½β times the squared distance.
    distance = scores - scores[:, None]
    excess = values - values[:, None] - slopes[:, None] * distance
    slack = _PROBE_TOLERANCE * (1.0 + np.abs(values) + np.abs(values[:, None]))
    is_wrong = (excess < -slack) | (excess > 0.5 * loss.smoothness * distance**2 + slack)
    if is_wrong.any():
        first, second = np.argwhere(is_wrong)[0]
        raise ValueError(
            f"the value of the loss {loss.name!r} changes by {values[second] - values[first]:g} "
            f"from score {scores[first]:g} to {scores[second]:g} at target {target:g}. A convex "
            f"loss with slope {slopes[first]:g} at the first score and smoothness "
            f"{loss.smoothness:g} cannot do that. Check slope and smoothness."
        )
