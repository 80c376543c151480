r"""What a figure shows of many runs: a centre for each record, and an interval around it.

The walks of one instance (one draw of graph and data) share its luck, so they are averaged
first, and the instances are what is summarised. Two centres:

    mean      with a percentile bootstrap interval over instances: what the verdicts compare
    median    with an interval from order statistics, exact whatever the law of the errors

An instance that diverged counts as infinitely bad: the mean has then no value, the median still
has. Below `FEWEST` instances no interval is drawn, as no verdict is given.

>>> import pandas
>>> cell = pandas.DataFrame({"instance": [0, 1], "replicate": 0, "updates": 10, "messages": [8, 9],
...     "bytes": [80, 90], "distance": [1.0, 3.0], "average_distance": 1.0, "gap": 1.0,
...     "average_gap": 1.0})
>>> columns = bands(cell)
>>> columns["messages"], columns["distance mean"], columns["distance mean lower"]
(array([8.5]), array([2.]), array([nan]))
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from functools import cache
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from walklearn.plot import COSTS
from walklearn.simulation.trace import median_summary
from walklearn.simulation.trace_files import ERRORS

if TYPE_CHECKING:
    import pandas

FloatArray = NDArray[np.float64]
Columns = dict[str, FloatArray]

CENTRES = {"mean": "mean", "median": "median"}
CONFIDENCE = 0.95
FEWEST = 10
RESAMPLES = 1000

#: What sets panels apart; within one, methods are compared.
PANEL = ("graph", "problem", "step_size")


@dataclass(frozen=True)
class CellBands:
    """One cell of a study, summarised over its instances, and the file it was read from."""

    graph: str
    problem: str
    step_size: str
    method: str
    columns: Columns
    instances: int
    hash: str
    file: str

    @property
    def last(self) -> Columns:
        """The last record alone."""
        return {name: values[-1:] for name, values in self.columns.items()}

    def recompute(self, metric: str) -> str:
        """Code that computes the last mean from the stored rows."""
        return (
            "import pandas\n"
            f"rows = pandas.read_parquet({self.file!r})\n"
            f"last = rows[rows.updates == {self.columns['updates'][-1]:.0f}]\n"
            f"print(last.groupby('instance').{metric}.mean().mean())  # mean {metric}"
        )


def all_bands(records: pandas.DataFrame, file_of: Callable[[str], str]) -> list[CellBands]:
    """Every cell of a study, in the order of its records."""
    found = []
    for _, cell in records.groupby("cell", sort=False):
        first = cell.iloc[0]
        names = {name: str(first[name]) for name in (*PANEL, "method")}
        found.append(
            CellBands(
                **names,
                columns=bands(cell),
                instances=cell["instance"].nunique(),
                hash=str(first["cell"]),
                file=file_of(f"cells/{first['cell']}.parquet"),
            )
        )
    return found


def panels(
    cells: Iterable[CellBands], names: tuple[str, ...] = PANEL
) -> Iterator[tuple[str, list[CellBands]]]:
    """The cells of each panel, with a title that says what sets it apart from the others."""
    grouped: dict[tuple[str, ...], list[CellBands]] = {}
    for cell in cells:
        grouped.setdefault(tuple(getattr(cell, name) for name in names), []).append(cell)
    differing = [place for place in range(len(names)) if len({key[place] for key in grouped}) > 1]
    for key, members in grouped.items():
        yield " · ".join(key[place] for place in differing), members


def bands(cell: pandas.DataFrame) -> Columns:
    """Costs, and centre and interval of each metric, at each record of one cell.

    Columns are ``updates``, ``messages``, ``bytes`` (means over the instances), and for each
    metric and centre ``"gap mean"``, ``"gap mean lower"``, ``"gap mean upper"``.
    """
    ordered = cell.sort_values(["instance", "replicate", "updates"], kind="stable")
    shape = ordered["instance"].nunique(), ordered["replicate"].nunique(), -1
    means = {
        name: ordered[name].to_numpy(float).reshape(shape).mean(axis=1)
        for name in (*COSTS, *ERRORS)
    }
    columns = {cost: means[cost].mean(axis=0) for cost in COSTS}
    for metric in ERRORS:
        errors = np.where(np.isnan(means[metric]), np.inf, means[metric])
        columns |= {f"{metric} {name}": values for name, values in summary(errors).items()}
    return columns


def summary(values: FloatArray) -> Columns:
    """Both centres of each column of ``values`` (a row per instance), with their intervals.

    >>> summary(np.array([[1.0], [np.inf], [3.0]]))["median"]
    array([3.])
    """
    middle, lower, upper, _ = median_summary(values, CONFIDENCE)
    mean_lower, mean_upper = bootstrap_mean(values)
    with np.errstate(invalid="ignore"):
        columns = {
            "mean": values.mean(axis=0),
            "mean lower": mean_lower,
            "mean upper": mean_upper,
            "median": middle,
            "median lower": lower,
            "median upper": upper,
        }
    if len(values) < FEWEST:
        columns |= {name: np.full_like(middle, np.nan) for name in columns if " " in name}
    return columns


def bootstrap_mean(values: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Both ends of the bootstrap interval of the mean; NaN where an instance diverged."""
    finite = np.isfinite(values).all(axis=0)
    means = np.where(finite, values, 0.0).T @ _weights(len(values)).T
    tail = 50 * (1 - CONFIDENCE)
    lower, upper = np.percentile(means, [tail, 100 - tail], axis=1, overwrite_input=True)
    return np.where(finite, lower, np.nan), np.where(finite, upper, np.nan)


@cache
def _weights(count: int) -> FloatArray:
    """How often each instance is drawn in each resample, as shares; the same for every cell."""
    draws = np.random.default_rng(0).multinomial(count, np.full(count, 1 / count), RESAMPLES)
    return draws / count
