"""Whether a target is a class or a number, and whether anything can be learnt of it."""

from __future__ import annotations

from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

Task = Literal["classification", "regression"]

MOST_CLASSES = 100
FEW_VALUES = 20  # whole numbers with at most so many values are taken to be classes


def task_of(target: NDArray[Any], name: str, asked: str) -> Task:
    """The task that was asked for, or that the target looks like ("auto").

    >>> task_of(np.array(["no", "yes"]), "label", "auto")
    'classification'
    >>> task_of(np.array([1.5, 2.0, 2.5]), "price", "auto")
    'regression'
    """
    values = np.unique(target)
    text = target.dtype.kind not in "biuf"
    if len(values) == 1:
        raise ValueError(
            f"the target {name!r} is {values[0]!s} in every row, so there is nothing to learn. Is "
            "it the right column?"
        )
    if text and asked == "regression":
        raise ValueError(
            f"the target {name!r} is text, such as {str(values[0])!r}, and regression predicts "
            "numbers. Leave --task out, or choose another target."
        )
    few = len(values) <= 2 or (
        not text
        and bool((values == np.floor(values)).all())
        and len(values) <= min(FEW_VALUES, len(target) // 2)
    )
    if asked == "regression" or (asked == "auto" and not text and not few):
        return "regression"
    if len(values) > MOST_CLASSES or (len(values) > FEW_VALUES and 2 * len(values) > len(target)):
        advice = "Is it the right column?" if text else "For numbers use --task regression."
        raise ValueError(
            f"the target {name!r} has {len(values)} different values in {len(target)} rows, too "
            f"many for classes. {advice}"
        )
    return "classification"
