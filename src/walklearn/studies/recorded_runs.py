"""Recorded runs: the error at a given cost, and the cost of a given error.

`CellRuns` is where stored rows become runs: verdicts, page and pictures all start from it. Runs
are recorded at some updates only; in between, ln(error) is taken as linear in ln(cost),
as the figures draw it.

>>> import numpy as np
>>> costs, errors = np.array([[1.0, 10.0, 100.0]]), np.array([[1.0, 0.1, 0.01]])
>>> error_at(costs, errors, 20.0).round(3), cost_of(costs, errors, np.array([0.02])).round(1)
(array([0.05]), array([50.]))
>>> cost_of(costs, errors, np.array([0.001]))       # never reached
array([inf])
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

if TYPE_CHECKING:
    import pandas

Array = NDArray[np.float64]

#: What sets the cells of a study apart.
IDENTITY = ("graph", "problem", "method", "step_size")


class Runs(NamedTuple):
    """The runs of one cell: a line per run, a column per record."""

    instances: NDArray[np.int64]
    costs: Array
    errors: Array

    @property
    def reach(self) -> float:
        """The largest cost that all runs reach."""
        return float(self.costs[:, -1].min())


class CellRuns:
    """The stored records of one cell: its runs in order of instance and replicate."""

    def __init__(self, records: pandas.DataFrame) -> None:
        self.rows = records.sort_values(["instance", "replicate", "updates"])
        count = self.rows.groupby(["instance", "replicate"]).ngroups
        self.instances = self.rows["instance"].to_numpy().reshape(count, -1)[:, 0]

    def only_value(self, column: str) -> Any:
        """The value that every row has in a column, such as the method."""
        return self.rows[column].iloc[0]

    def against(self, cost: str, metric: str) -> Runs:
        """The error of each run against what it spent."""
        return Runs(self.instances, self._table(cost), self._table(metric))

    def means(self, column: str) -> Array:
        """The mean over the runs on each instance: a line per instance, a column per record."""
        instances = np.unique(self.instances).size
        runs = self._table(column)
        return np.asarray(runs.reshape(instances, -1, runs.shape[1]).mean(axis=1))

    def _table(self, column: str) -> Array:
        return self.rows[column].to_numpy(dtype=float).reshape(self.instances.size, -1)


def grouped(table: pandas.DataFrame) -> Iterator[tuple[Any, pandas.DataFrame]]:
    """The rows of each cell; none of a table without any."""
    return iter(() if table.empty else table.groupby(list(IDENTITY), sort=False))


def error_at(costs: Array, errors: Array, cost: float) -> Array:
    """The error of each run when it had spent `cost`; that of its last record from there on."""
    return np.array([_error(*run, cost) for run in zip(costs, errors, strict=True)])


def cost_of(costs: Array, errors: Array, targets: Array) -> Array:
    """What each run had spent when its error first was at most its target; ∞ if it never was."""
    runs: Iterator[Any] = zip(costs, errors, targets, strict=True)
    return np.array([_cost(*run) for run in runs])


def by_instance(instances: NDArray[np.int64], values: Array) -> pandas.Series[Any]:
    """The mean over the runs on each instance; one that failed makes it infinite."""
    import pandas

    failed = np.where(np.isnan(values), np.inf, values)
    return pandas.Series(failed, index=instances).groupby(level=0).mean()


def _error(costs: Array, errors: Array, cost: float) -> float:
    after = int(np.searchsorted(costs, cost, side="right"))
    before = max(after - 1, 0)
    if after in (0, costs.size) or costs[before] == cost:
        return float(errors[before])
    between = _between(cost, costs[before], costs[after], errors[before], errors[after])
    return float(errors[before]) if between is None else between


def _cost(costs: Array, errors: Array, target: float) -> float:
    reached = np.flatnonzero(errors <= target)
    if not reached.size:
        return float("inf")
    after = int(reached[0])
    if after == 0 or errors[after] == target:
        return float(costs[after])
    before = after - 1
    between = _between(target, errors[before], errors[after], costs[before], costs[after])
    return float(costs[after]) if between is None else between


def _between(x: float, x0: float, x1: float, y0: float, y1: float) -> float | None:
    """y at x on the line through both points of a double logarithmic plot, where there is one."""
    points = np.array([x0, x1, y0, y1])
    if not (np.isfinite(points) & (points > 0)).all():
        return None
    share = np.log(x / x0) / np.log(x1 / x0)
    return float(np.exp((1.0 - share) * np.log(y0) + share * np.log(y1)))
