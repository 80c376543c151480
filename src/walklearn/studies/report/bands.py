"""Summaries of the runs of a cell: a centre for each record, and an interval around it.

The runs of one instance (one draw of graph and data) are averaged first; the summary is over
instances. There are two centres:

    mean      with a percentile bootstrap interval over instances; verdicts compare means
    median    with an interval from order statistics, exact for every distribution of errors

An instance that diverged has an infinite error: the mean then has no value, the median still has.
Below `MIN_INSTANCES` instances there is no interval, as there is no verdict.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING

import numpy as np

from walklearn.plots import COSTS
from walklearn.plots.axes import FloatArray
from walklearn.simulation.intervals import BAND_RESAMPLES, CONFIDENCE, mean_interval
from walklearn.simulation.trace import median_summary
from walklearn.simulation.trace_files import ERRORS
from walklearn.studies.recorded_runs import IDENTITY, CellRuns, by_cell
from walklearn.studies.report.figures import Control, Figure, Series
from walklearn.studies.verdicts import MIN_INSTANCES

if TYPE_CHECKING:
    import pandas

Columns = dict[str, FloatArray]

#: Panels differ in these; within one panel, methods are compared.
PANEL = ("graph", "problem", "step_size")

COST_LABELS = {
    "updates": "SGD updates",
    "messages": "messages sent (mean)",
    "bytes": "bytes sent (mean)",
    "time": "time (mean)",
}
METRIC_LABELS = {
    "distance": "‖w − w*‖, last iterate",
    "average_distance": "‖w̄ − w*‖, average",
    "gap": "f(w) − f*, last iterate",
    "average_gap": "f(w̄) − f*, average",
}
METRIC_SYMBOLS = {name: label.partition(",")[0] for name, label in METRIC_LABELS.items()}

INTERVAL = (
    f"{100 * CONFIDENCE:.0f} % interval, for the mean by bootstrap over instances "
    f"({BAND_RESAMPLES} resamples), for the median from order statistics"
)


def controls(metric: str, cost: str = "", centre: str = "mean") -> list[Control]:
    """Return the controls for error, cost and centre; none for the cost if it is empty."""
    costs = [Control("x", "Against", COST_LABELS, cost)] if cost else []
    return [Control("y", "Error", METRIC_LABELS, metric), *costs, centre_control(centre)]


def centre_control(first: str) -> Control:
    """Return the control that chooses mean or median."""
    return Control("centre", "Centre", {"mean": "mean", "median": "median"}, first)


class CellBands(CellRuns):
    """The runs of one cell, their summary and their file.

    The columns are ``updates``, ``messages``, ``bytes``, ``time`` (means over the instances), and
    for each metric and centre ``"gap mean"``, ``"gap mean lower"``, ``"gap mean upper"``.
    """

    def __init__(
        self,
        records: pandas.DataFrame,
        facts: pandas.DataFrame | None,
        file_of: Callable[[str], str],
    ) -> None:
        super().__init__(records, facts)
        self.names = {name: str(self.only_value(name)) for name in (*IDENTITY, "cell")}
        self.method = self.names["method"]
        self.file = file_of(f"cells/{self.names['cell']}.parquet")
        means = {name: self.averaged(self.table(name)) for name in (*COSTS, *ERRORS)}
        self.columns = {cost: means[cost].mean(axis=0) for cost in COSTS} | {
            f"{metric} {name}": values
            for metric in ERRORS
            for name, values in summary(means[metric]).items()
        }


def all_bands(
    records: pandas.DataFrame, facts: pandas.DataFrame, file_of: Callable[[str], str]
) -> list[CellBands]:
    """Summarise every cell of a study, in the order of its records."""
    known = by_cell(facts)
    return [CellBands(rows, known.get(cell), file_of) for cell, rows in by_cell(records).items()]


def panels(
    cells: Iterable[CellBands],
    series: Callable[[list[CellBands]], list[Series]],
    names: tuple[str, ...] = PANEL,
) -> list[Figure]:
    """Return a panel for each graph, problem and step size whose cells give any series.

    names: the kinds of names in which panels differ. Titles name those that are not all the same.
    """
    members: dict[tuple[str, ...], list[CellBands]] = {}
    for cell in cells:
        members.setdefault(tuple(cell.names[name] for name in names), []).append(cell)
    differing = [place for place in range(len(names)) if len({key[place] for key in members}) > 1]
    figures = [
        Figure(
            " · ".join(key[place] for place in differing),
            series(group),
            shared=dict(zip(names, key, strict=True)),
        )
        for key, group in members.items()
    ]
    return [figure for figure in figures if figure.series]


def summary(values: FloatArray) -> Columns:
    """Both centres of each column of ``values`` (a row per instance), with their intervals.

    >>> summary(np.array([[1.0], [np.inf], [3.0]]))["median"]
    array([3.])
    """
    middle, lower, upper, _ = median_summary(values, CONFIDENCE)
    mean_lower, mean_upper = mean_interval(values)
    columns = {
        "mean": values.mean(axis=0),
        "mean lower": mean_lower,
        "mean upper": mean_upper,
        "median": middle,
        "median lower": lower,
        "median upper": upper,
    }
    if len(values) < MIN_INSTANCES:
        columns |= {name: np.full_like(middle, np.nan) for name in columns if " " in name}
    return columns
