"""Panels of curves: methods as lines, the mean over instances with its confidence band.

The mean is what verdicts compare and theorems are about. Where an instance diverged it has no
value, and the line a hole.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from walklearn.plot.axes import colour, dash, dress
from walklearn.report.bands import Columns, bands

if TYPE_CHECKING:
    import pandas
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

    from walklearn.studies import Results

#: What the axes say.
ERRORS = {
    "distance": r"$\|w - w^*\|$",
    "average_distance": r"$\|\bar{w} - w^*\|$",
    "gap": r"$f(w) - f^*$",
    "average_gap": r"$f(\bar{w}) - f^*$",
}
COSTS = {"updates": "updates", "messages": "messages, mean", "bytes": "bytes, mean"}


class Curves:
    """The records of a study, cell by cell."""

    def __init__(self, results: Results) -> None:
        self.study = results.study
        keys = ["graph", "problem", "method", "step_size"]
        self._cells: dict[Any, pandas.DataFrame] = dict(
            iter(results.records().groupby(keys, sort=False))
        )
        self._bands: dict[Any, Columns] = {}

    def get(self, graph: str, problem: str, method: str, step_size: str) -> Columns | None:
        """Means and their intervals; None where there is no such cell."""
        cell = (graph, problem, method, step_size)
        if cell not in self._cells:
            return None
        if cell not in self._bands:
            self._bands[cell] = bands(self._cells[cell])
        return self._bands[cell]

    def records(self, graph: str, problem: str, method: str, step_size: str) -> pandas.DataFrame:
        """All rows of a cell."""
        return self._cells[graph, problem, method, step_size]


def figure_of(
    rows: int, columns: int, width: float = 3.1, height: float = 2.7
) -> tuple[Figure, Any]:
    """A new figure and its panels, (rows, columns)."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=(width * columns + 0.4, height * rows + 0.9), layout="constrained")
    return figure, figure.subplots(rows, columns, squeeze=False)


def share_labels(panels: Any) -> None:
    """Panels over the same costs: labels at the left and at the bottom alone."""
    for axes in panels[:-1].flat:
        axes.set_xlabel("")
        axes.tick_params(axis="x", which="both", labelbottom=False)
    for axes in panels[:, 1:].flat:
        axes.set_ylabel("")


def draw_line(
    axes: Axes,
    columns: Columns,
    x: str,
    metric: str,
    number: int,
    *,
    band: float = 0.15,
    **options: Any,
) -> None:
    """One method's mean with its band (how opaque), on logarithmic axes."""
    cost, mean = columns[x], columns[f"{metric} mean"]
    shown = np.where((cost > 0) & (mean > 0) & np.isfinite(mean), mean, np.nan)
    style: dict[str, Any] = {
        "color": colour(number),
        "linestyle": dash(number),
        "linewidth": 1.6,
    } | options
    axes.plot(cost, shown, **style)
    lower, upper = (
        np.maximum(columns[f"{metric} mean {end}"], 1e-300) for end in ("lower", "upper")
    )
    seen = np.isfinite(shown) & np.isfinite(lower) & np.isfinite(upper)
    axes.fill_between(cost, lower, upper, where=seen, color=style["color"], alpha=band, linewidth=0)


def draw_methods(
    axes: Axes,
    curves: Curves,
    cell: tuple[str, str, str],
    *,
    x: str = "updates",
    metric: str | None = None,
    methods: Sequence[str] | None = None,
) -> None:
    """A panel: every method of the study on one graph, problem and step size."""
    graph, problem, step_size = cell
    metric = metric or curves.study.metric
    for number, method in enumerate(methods or curves.study.methods):
        columns = curves.get(graph, problem, method, step_size)
        if columns is not None:
            draw_line(axes, columns, x, metric, number, label=method)
    axes.set(xscale="log", yscale="log")
    dress(axes, COSTS[x], ERRORS[metric])


def explain(
    figure: Figure, curves: Curves, names: Mapping[str, str] | None = None, columns: int = 5
) -> None:
    """One legend for all panels, above them, and what lines and bands are."""
    lines: dict[str, Any] = {}
    for axes in figure.axes:
        for line, label in zip(*axes.get_legend_handles_labels(), strict=True):
            lines.setdefault(label, line)
    labels = [(names or {}).get(label, label) for label in lines]
    figure.legend(
        lines.values(), labels, loc="outside upper center", ncols=min(len(labels), columns),
        frameon=False,
    )  # fmt: skip
    instances = curves.study.instances
    band = "band: its 95 % interval, by bootstrap" if instances >= 10 else "too few for a band"
    figure.supxlabel(f"mean over {instances} instances; {band}", fontsize="small", color="#555555")
