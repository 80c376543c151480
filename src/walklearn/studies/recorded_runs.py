"""Recorded runs: the error at a given cost, and the cost of a given error.

`CellRuns` turns the stored rows of a cell into arrays; verdicts, page and pictures start from it.
Runs are recorded at some updates only. In between, ln(error) is taken as linear in ln(cost), as
the figures draw it.

>>> import numpy as np
>>> costs, errors = np.array([[1.0, 10.0, 100.0]]), np.array([[1.0, 0.1, 0.01]])
>>> error_at(costs, errors, 20.0).round(3), cost_of(costs, errors, np.array([0.02])).round(1)
(array([0.05]), array([50.]))
>>> cost_of(costs, errors, np.array([0.001]))       # never reached
array([inf])
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

if TYPE_CHECKING:
    import pandas

Array = NDArray[np.float64]

#: Columns whose values identify a cell of a study.
IDENTITY = ("graph", "problem", "method", "step_size")


class CellRuns:
    """The stored rows of one cell: its runs in order of instance and replicate."""

    def __init__(self, records: pandas.DataFrame, facts: pandas.DataFrame | None = None) -> None:
        self._rows = records.sort_values(["instance", "replicate", "updates"])
        self._runs = self._rows.groupby(["instance", "replicate"]).ngroups
        self._facts = facts
        self.instances = self._rows["instance"].unique()

    def only_value(self, column: str) -> Any:
        """The value that every row has in a column, such as the method."""
        return self._rows[column].iloc[0]

    def table(self, column: str) -> Array:
        """A column as an array: a row per run, a column per record."""
        return self._rows[column].to_numpy(dtype=float).reshape(self._runs, -1)

    def averaged(self, values: Array) -> Array:
        """Mean over the runs of each instance; a run that failed makes it infinite."""
        failed = np.where(np.isnan(values), np.inf, values)
        runs = failed.reshape(len(self.instances), -1, *values.shape[1:])
        return np.asarray(runs.mean(axis=1))

    def reach(self, cost: str) -> float:
        """The largest cost that all runs reach."""
        return float(self.table(cost)[:, -1].min())

    def fact(self, column: str) -> pandas.Series[Any] | None:
        """A column of the facts, by instance; None if it is not known."""
        if self._facts is None or column not in self._facts or self._facts[column].isna().all():
            return None
        return self._facts.set_index("instance")[column].astype(float)

    def error_at(self, metric: str, cost: str, point: float) -> pandas.Series[Any]:
        """The error of each instance after it spent `point`."""
        return self._by_instance(error_at(self.table(cost), self.table(metric), point))

    def cost_of(self, metric: str, cost: str, target: float, relative: bool) -> pandas.Series[Any]:
        """The cost of each instance until the target; a relative one is a multiple of ‖w*‖."""
        targets = np.full(len(self.instances), target)
        if relative:
            norms = self.fact("optimum_norm")
            targets *= np.nan if norms is None else norms.reindex(self.instances).to_numpy()
        of_runs = np.repeat(targets, self._runs // len(self.instances))
        return self._by_instance(cost_of(self.table(cost), self.table(metric), of_runs))

    def _by_instance(self, values: Array) -> pandas.Series[Any]:
        import pandas

        return pandas.Series(self.averaged(values), index=self.instances)


def by_cell(table: pandas.DataFrame) -> dict[tuple[str, ...], pandas.DataFrame]:
    """The rows of each cell, by its `IDENTITY`."""
    groups: Any = () if table.empty else table.groupby(list(IDENTITY), sort=False)
    return dict(iter(groups))


def error_at(costs: Array, errors: Array, cost: float) -> Array:
    """The error of each run after it spent `cost`; that of its last record from there on."""
    return np.array([_error(*run, cost) for run in zip(costs, errors, strict=True)])


def cost_of(costs: Array, errors: Array, targets: Array) -> Array:
    """The cost of each run when its error first was at most its target; ∞ if it never was."""
    return np.array([_cost(*run) for run in zip(costs, errors, targets, strict=True)])


def _error(costs: Array, errors: Array, cost: float) -> float:
    after = int(np.searchsorted(costs, cost, side="right"))
    before = max(after - 1, 0)
    if after in (0, costs.size) or costs[before] == cost:
        return float(errors[before])
    between = _interpolated(cost, costs[before], costs[after], errors[before], errors[after])
    return float(errors[before]) if between is None else between


def _cost(costs: Array, errors: Array, target: float) -> float:
    reached = np.flatnonzero(errors <= target)
    if not reached.size:
        return float("inf")
    after = int(reached[0])
    if after == 0 or errors[after] == target:
        return float(costs[after])
    before = after - 1
    between = _interpolated(target, errors[before], errors[after], costs[before], costs[after])
    return float(costs[after]) if between is None else between


def _interpolated(x: float, x0: float, x1: float, y0: float, y1: float) -> float | None:
    """y at x on the line through both points of a double logarithmic plot, if they are on it."""
    points = np.array([x0, x1, y0, y1])
    if not (np.isfinite(points) & (points > 0)).all():
        return None
    share = np.log(x / x0) / np.log(x1 / x0)
    return float(np.exp((1.0 - share) * np.log(y0) + share * np.log(y1)))
