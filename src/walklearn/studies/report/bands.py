r"""What a figure shows of many runs: a centre for each record, and an interval around it.

The walks of one instance (one draw of graph and data) share its luck, so they are averaged
first, and the instances are what is summarised. Two centres:

    mean      with a percentile bootstrap interval over instances: what the verdicts compare
    median    with an interval from order statistics, exact whatever the law of the errors

An instance that diverged counts as infinitely bad: the mean has then no value, the median still
has. Below `MIN_INSTANCES` instances no interval is drawn, as no verdict is given.

Switches choose among the columns that come of it: error, cost, centre.

>>> import pandas
>>> cell = pandas.DataFrame({"instance": [0, 1], "replicate": 0, "updates": 10, "messages": [8, 9],
...     "bytes": [80, 90], "distance": [1.0, 3.0], "average_distance": 1.0, "gap": 1.0,
...     "average_gap": 1.0})
>>> columns = bands(CellRuns(cell))
>>> columns["messages"], columns["distance mean"], columns["distance mean lower"]
(array([8.5]), array([2.]), array([nan]))
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import TYPE_CHECKING

import numpy as np

from walklearn.plots import COSTS
from walklearn.plots.axes import FloatArray
from walklearn.simulation.intervals import BAND_RESAMPLES, CONFIDENCE, mean_interval
from walklearn.simulation.trace import median_summary
from walklearn.simulation.trace_files import ERRORS
from walklearn.studies.recorded_runs import CellRuns, grouped
from walklearn.studies.report.figures import Control
from walklearn.studies.verdicts import MIN_INSTANCES

if TYPE_CHECKING:
    import pandas

Columns = dict[str, FloatArray]

CENTRES = {"mean": "mean", "median": "median"}

#: What sets panels apart; within one, methods are compared.
PANEL = ("graph", "problem", "step_size")

COST_LABELS = {
    "updates": "SGD updates",
    "messages": "messages sent (mean)",
    "bytes": "bytes sent (mean)",
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


def metric_control(first: str) -> Control:
    """The switch between errors."""
    return Control("y", "Error", METRIC_LABELS, first)


def cost_control(first: str = "updates") -> Control:
    """The switch between costs."""
    return Control("x", "Against", COST_LABELS, first)


def centre_control(first: str = "mean") -> Control:
    """The switch between mean and median."""
    return Control("centre", "Centre", CENTRES, first)


class CellBands(CellRuns):
    """One cell of a study: its runs, their summary over instances, and the file they are in."""

    def __init__(self, records: pandas.DataFrame, file_of: Callable[[str], str]) -> None:
        super().__init__(records)
        names = (*PANEL, "method", "cell")
        self.graph, self.problem, self.step_size, self.method, self.hash = (
            str(self.only_value(name)) for name in names
        )
        self.columns = bands(self)
        self.file = file_of(f"cells/{self.hash}.parquet")

    @property
    def last(self) -> Columns:
        """The last record alone."""
        return {name: values[-1:] for name, values in self.columns.items()}


def all_bands(records: pandas.DataFrame, file_of: Callable[[str], str]) -> list[CellBands]:
    """Every cell of a study, in the order of its records."""
    return [CellBands(rows, file_of) for _, rows in grouped(records)]


def panels(
    cells: Iterable[CellBands], names: tuple[str, ...] = PANEL
) -> Iterator[tuple[str, dict[str, str], list[CellBands]]]:
    """Yield for each panel its title (what sets it apart), what its cells share, and the cells."""
    by_panel: dict[tuple[str, ...], list[CellBands]] = {}
    for cell in cells:
        by_panel.setdefault(tuple(getattr(cell, name) for name in names), []).append(cell)
    differing = [place for place in range(len(names)) if len({key[place] for key in by_panel}) > 1]
    for key, members in by_panel.items():
        shared = dict(zip(names, key, strict=True))
        yield " · ".join(key[place] for place in differing), shared, members


def bands(runs: CellRuns) -> Columns:
    """Costs, and centre and interval of each metric, at each record of one cell.

    Columns are ``updates``, ``messages``, ``bytes`` (means over the instances), and for each
    metric and centre ``"gap mean"``, ``"gap mean lower"``, ``"gap mean upper"``.
    """
    columns = {cost: runs.means(cost).mean(axis=0) for cost in COSTS}
    for metric in ERRORS:
        means = runs.means(metric)
        errors = np.where(np.isnan(means), np.inf, means)
        columns |= {f"{metric} {name}": values for name, values in summary(errors).items()}
    return columns


def summary(values: FloatArray) -> Columns:
    """Both centres of each column of ``values`` (a row per instance), with their intervals.

    >>> summary(np.array([[1.0], [np.inf], [3.0]]))["median"]
    array([3.])
    """
    middle, lower, upper, _ = median_summary(values, CONFIDENCE)
    mean_lower, mean_upper = mean_interval(values)
    with np.errstate(invalid="ignore"):
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
