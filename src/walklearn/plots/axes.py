"""What all pictures share: new axes, their dress, colours, and lines with bands.

>>> colour(0) != colour(1)
True
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

if TYPE_CHECKING:
    from matplotlib.axes import Axes

FloatArray = NDArray[np.float64]

# Okabe and Ito's palette, which colour-blind readers can tell apart, without its pale yellow.
COLOURS = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9", "#000000")
_DASHES = ("-", "--", "-.", ":")


def colour(number: int) -> str:
    """The colour of a picture's n-th line."""
    return COLOURS[number % len(COLOURS)]


def dash(number: int) -> str:
    """The dash of the n-th line: past seven lines the colours come again with another dash."""
    return _DASHES[number // len(COLOURS) % len(_DASHES)]


def new_axes(width: float = 6.4, height: float = 4.4) -> Axes:
    """Make the axes of a new figure."""
    from matplotlib import pyplot

    _, axes = pyplot.subplots(figsize=(width, height), layout="constrained")
    return axes


def dress(axes: Axes, x_label: str, y_label: str) -> None:
    """Give the axes labels and a faint grid, and no frame on the right and at the top."""
    axes.set(xlabel=x_label, ylabel=y_label)
    axes.grid(True, which="major", linewidth=0.5, alpha=0.4)
    axes.set_axisbelow(True)
    axes.spines[["top", "right"]].set_visible(False)


def plain_ticks(axis: Any) -> None:
    """Write 0.5, 1, 2 instead of powers of ten, for an axis that spans a decade or two."""
    from matplotlib.ticker import FuncFormatter, LogLocator

    axis.set_major_locator(LogLocator(subs=(1.0, 2.0, 5.0)))
    axis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:g}"))
    axis.set_minor_formatter(FuncFormatter(lambda value, _: ""))


def visible(values: FloatArray) -> FloatArray:
    """The values that a logarithmic axis can show, and NaN, which leaves a hole, elsewhere."""
    # Towards the ends of the floating-point range matplotlib's own margins would overflow.
    return np.where((values > 1e-250) & (values < 1e250), values, np.nan)


def draw_band(
    axes: Axes, x: FloatArray, lower: FloatArray, upper: FloatArray, **options: Any
) -> None:
    """Fill what lies between both ends, which may be NaN, on a logarithmic axis."""
    top = visible(upper)
    shown = np.concatenate([visible(lower), top])
    if not np.isnan(shown).all():
        # An interval that reaches zero has no lower end on a logarithmic axis: its band starts
        # at the smallest positive end of all records.
        bottom = np.maximum(lower, np.nanmin(shown))
        axes.fill_between(x, bottom, top, linewidth=0, **options)
