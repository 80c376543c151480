"""Axes, colours and bands that the pictures share."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.collections import PathCollection

FloatArray = NDArray[np.float64]

# Okabe and Ito's palette, which colour-blind readers can distinguish, without its pale yellow.
COLOURS = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9", "#000000")
_DASHES = ("-", "--", "-.", ":")


def colour(number: int) -> str:
    """Return the colour of the n-th line."""
    return COLOURS[number % len(COLOURS)]


def dash(number: int) -> str:
    """Return the dash of the n-th line. After seven lines the colours repeat with a new dash."""
    return _DASHES[number // len(COLOURS) % len(_DASHES)]


def axes_or_new(axes: Axes | None, size: tuple[float, float] = (6.4, 4.4)) -> Axes:
    """Return the given axes, or those of a new figure."""
    if axes is None:
        from matplotlib import pyplot

        _, axes = pyplot.subplots(figsize=size, layout="constrained")
    return axes


def style_axes(axes: Axes, x_label: str, y_label: str) -> None:
    """Add labels and a faint grid, and remove the frame on the right and at the top."""
    axes.set(xlabel=x_label, ylabel=y_label)
    axes.grid(True, which="major", linewidth=0.5, alpha=0.4)
    axes.set_axisbelow(True)
    axes.spines[["top", "right"]].set_visible(False)


def plain_ticks(axis: Any) -> None:
    """Write 0.5, 1, 2 instead of powers of ten, for an axis of a decade or two."""
    from matplotlib.ticker import FuncFormatter, LogLocator

    axis.set_major_locator(LogLocator(subs=(1.0, 2.0, 5.0)))
    axis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:g}"))
    axis.set_minor_formatter(FuncFormatter(lambda value, _: ""))


def colour_by_ratio(ratio: FloatArray) -> dict[str, Any]:
    """Return options of `scatter` for ratios: white for 1, blue below, red above."""
    from matplotlib.colors import LogNorm

    span = max(2.0, float(ratio.max()), float(1.0 / ratio[ratio > 0].min()))
    return {
        "c": np.maximum(ratio, 1.0 / span), "cmap": "RdBu_r", "norm": LogNorm(1.0 / span, span),
        "edgecolors": "black", "linewidths": 0.6,
    }  # fmt: skip


def colour_bar(axes: Axes, dots: PathCollection, label: str, **options: Any) -> None:
    """Explain the colours of `colour_by_ratio` beside the axes."""
    figure = axes.get_figure(root=True)
    assert figure is not None
    plain_ticks(figure.colorbar(dots, ax=axes, label=label, **options).ax.yaxis)


def visible(values: FloatArray) -> FloatArray:
    """Return the values that a logarithmic axis can show, and NaN for the others."""
    # Near the ends of the floating-point range matplotlib's margins would overflow.
    return np.where((values > 1e-250) & (values < 1e250), values, np.nan)


def draw_band(
    axes: Axes, x: FloatArray, lower: FloatArray, upper: FloatArray, **options: Any
) -> None:
    """Fill the band between `lower` and `upper` on a logarithmic axis. Both may contain NaN."""
    top = visible(upper)
    ends = np.concatenate([visible(lower), top])
    if not np.isnan(ends).all():
        # An interval that reaches zero has no lower end on a logarithmic axis: its band starts
        # at the smallest positive end of all records.
        bottom = np.maximum(lower, np.nanmin(ends))
        axes.fill_between(x, bottom, top, linewidth=0, **options)
