"""Step sizes γ_k, all of the form c / k^q, for the k-th update (k = 1, 2, …)."""

from __future__ import annotations

import warnings
from dataclasses import dataclass
from typing import ClassVar, overload

import numpy as np
from numpy.typing import NDArray

from walklearn.checks import check_number


class _Step:
    """Base of both step sizes."""

    constant: float
    exponent: float

    def __post_init__(self) -> None:
        constant = check_number("the step constant c", self.constant, above=0.0)
        object.__setattr__(self, "constant", constant)

    @overload
    def __call__(self, k: int) -> float: ...
    @overload
    def __call__(self, k: NDArray[np.int64]) -> NDArray[np.float64]: ...
    def __call__(self, k: int | NDArray[np.int64]) -> float | NDArray[np.float64]:
        """Return γ_k for one update number, or for an array of them."""
        step = self.constant / k**self.exponent
        return float(step) if np.ndim(k) == 0 else np.asarray(step)


@dataclass(frozen=True)
class PowerStep(_Step):
    """γ_k = c / k^q, the paper's choice; the theorems need 0.5 < q < 1.

    Other exponents are allowed, with a warning: up to 0.5 Σ γ² ln k diverges, and from 1 on Σ γ
    stays too small for the influence of the start to vanish.

    Parameters
    ----------
    constant
        The first step c.
    exponent
        The exponent q.

    Examples
    --------
    >>> PowerStep(1.0, 0.75)(16)
    0.125
    """

    constant: float
    exponent: float = 0.75

    def __post_init__(self) -> None:
        super().__post_init__()
        exponent = check_number("the step exponent q", self.exponent, minimum=0.0)
        object.__setattr__(self, "exponent", exponent)
        if not 0.5 < self.exponent < 1.0:
            warnings.warn(
                f"the convergence theorems need 0.5 < q < 1, got q = {self.exponent:g}; "
                "the run may not converge. For a constant step use ConstantStep.",
                stacklevel=3,
            )


@dataclass(frozen=True)
class ConstantStep(_Step):
    """γ_k = c for all k: fast, but with noisy gradients it stops at a distance ∝ c.

    Parameters
    ----------
    constant
        The step c.

    Examples
    --------
    >>> ConstantStep(0.1)(7)
    0.1
    """

    exponent: ClassVar[float] = 0.0  # type: ignore[misc]  # a constant is c / k^0
    constant: float


StepSize = PowerStep | ConstantStep
