"""A user's loss for the kernels: its functions compiled once per process, or Numba's reason."""

from __future__ import annotations

import threading
from collections.abc import Callable
from functools import cache
from typing import Any

import numpy as np

from walklearn.arrays import Array
from walklearn.objectives.linear.losses import FunctionLoss
from walklearn.progress import announce

_LOCK = threading.Lock()
_ANNOUNCED: set[Callable[..., float]] = set()


def with_functions(loss: FunctionLoss) -> Any:
    """Return the loss as kernels take it; Numba must have accepted its functions."""
    from walklearn.simulation.kernels import losses

    value, slope = map(compiled, (loss.value_function, loss.slope_function))
    if loss.unit != 1.0:  # apart: the product would be on the critical path of a visit
        return losses.Rescaled(value, slope, loss.smoothness, np.empty(0), loss.unit)
    table = _slope_table(slope, loss.takes == "sign", losses.RANGE, losses.PER_UNIT)
    return losses.FromFunctions(value, slope, loss.smoothness, table)


def rejection_of(part: object) -> str | None:
    """Return Numba's reason to reject a loss from functions; None for all other parts."""
    if type(part) is not FunctionLoss:
        return None
    results = map(compiled, (part.value_function, part.slope_function))
    return next((result for result in results if isinstance(result, str)), None)


def announce_compilation(objective: Any, progress: bool | None) -> None:
    """Announce, once per process and loss, that kernels are compiled for a user's functions.

    progress: as for `progress_bar`; False announces nothing.
    """
    loss = objective.loss
    if type(loss) is FunctionLoss and loss.slope_function not in _ANNOUNCED:
        _ANNOUNCED.add(loss.slope_function)
        announce(f"walklearn is compiling the loss {loss.name!r}, once per process …", progress)


def compiled(function: Callable[..., Any]) -> Any:
    """Return a function of (score, target) compiled, or Numba's reason to reject it."""
    with _LOCK:  # or two threads would compile the same function
        return _compiled(function)


@cache
def _compiled(function: Callable[..., Any]) -> Any:
    from walklearn.simulation.kernels.compilation import user_function

    try:
        dispatcher = user_function(getattr(function, "py_func", function))
        dispatcher.compile("(float64, float64)")
    except Exception as error:  # Numba raises errors of many types
        lines = [line.strip() for line in str(error).splitlines()]
        reasons = [line for line in lines if line and not line.startswith("Failed in ")]
        return reasons[0] if reasons else type(error).__name__
    (result,) = (each.signature.return_type for each in dispatcher.overloads.values())
    if not str(result).startswith(("float", "int", "uint", "bool", "Literal[int]")):
        return f"{function.__name__} returns {result}, not a number"
    return dispatcher


@cache
def _slope_table(
    slope: Callable[..., float], is_for_signs: bool, width: int, per_unit: int
) -> Array:
    """Return slopes at the scores −width to width for target −1, then for +1; else nothing.

    Slopes of a convex loss grow with the score, so those of two scores enclose all between. A look
    at the table takes less time than most functions.
    """
    scores = np.arange(-width * per_unit, width * per_unit + 1) / per_unit
    targets = (-1.0, 1.0) if is_for_signs else ()
    return np.array([slope(score, target) for target in targets for score in scores], np.float64)
