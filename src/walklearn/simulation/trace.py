"""A recorded run: metrics of the model after given numbers of updates, messages and bytes.

A simulation repeats a method over independent replicates and records each of them after the
same numbers of updates. A record holds metrics of the last iterate w and of the weighted
average w̄,

    distance          ‖w − w*‖        gap          f(w) − f*        value          f(w)
    average_distance  ‖w̄ − w*‖        average_gap  f(w̄) − f*        average_value  f(w̄),

or others with names of their own, and the messages sent so far. Distances and gaps need an
optimum. A :class:`Trace` is that table with a description of the run. It computes summaries over
the replicates, draws itself, and survives a round trip through a file bit for bit.

>>> error = [[1.0, 0.3, 0.1], [1.2, 0.5, 0.2], [0.9, 0.4, 0.3]]
>>> trace = Trace(label="Weighted()", spec={"seed": 1}, updates=[1, 10, 100],
...               messages=[[0, 7, 71], [1, 6, 68], [0, 8, 75]], message_bytes=80,
...               metrics={"distance": error, "accuracy": [[0.5, 0.7, 0.9]] * 3},
...               models=[[0.5, 1.0]] * 3, averages=[[0.4, 0.9]] * 3)
>>> trace
Trace('Weighted()', 3 replicates, 3 records up to 100 updates)
>>> trace.bytes[0]
array([   0,  560, 5680])
>>> trace.summary("distance").median
array([1. , 0.4, 0.2])
>>> trace.accuracy[0]
array([0.5, 0.7, 0.9])
>>> list(trace.metrics), hasattr(trace, "gap")
(['distance', 'accuracy'], False)
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, fields
from functools import cache
from keyword import iskeyword
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numpy.typing import DTypeLike, NDArray

from walklearn.checks import check_number, check_whole
from walklearn.extras import extra
from walklearn.plots import convergence
from walklearn.simulation import trace_files
from walklearn.wording import plural

if TYPE_CHECKING:
    import pandas
    from matplotlib.axes import Axes

    from walklearn.privacy.accounting.ledger import Ledger

FloatArray = NDArray[np.float64]
IntArray = NDArray[np.int64]

_COUNTS = ("updates", "messages", "questions", "visits", "degrees", "contributions")


class Summary(NamedTuple):
    """The median over replicates at each record, and a confidence interval for it.

    Parameters
    ----------
    median
        At each record.
    lower, upper
        The ends of the interval, at each record.
    confidence
        What the interval really has: fewer than six replicates cannot reach 95 %.
    """

    median: FloatArray
    lower: FloatArray
    upper: FloatArray
    confidence: float


def median_summary(values: FloatArray, confidence: float = 0.95) -> Summary:
    """Median of each column of ``values`` and an interval for the median of its law.

    The interval runs from the r-th smallest to the r-th largest value. Whatever the law of the
    errors, it misses the true median with probability 2 P(Binomial(n, ½) < r) at most, exactly
    that for a continuous law. r is the largest rank whose interval has the confidence asked for,
    and the confidence it really has is returned. Fewer than six values cannot reach 95 %: the
    interval is then their whole range, with the lower confidence that has; a single one has
    confidence 0.

    Unlike a mean ± t, none of this minds skewed errors, a logarithmic axis, gaps rounded below
    zero or runs that diverged: NaN counts as the largest error.

    >>> median_summary(np.array([[1.0], [3.0], [2.0]]))
    Summary(median=array([2.]), lower=array([1.]), upper=array([3.]), confidence=0.75)
    """
    from scipy.special import bdtr  # slow to import, and only needed here

    check_number("confidence", confidence, above=0.0, below=1.0)
    ordered = np.sort(values, axis=0)  # NaN goes last
    count = len(ordered)
    misses = 2 * bdtr(np.arange((count + 1) // 2), count, 0.5)  # for r = 1, 2, ...
    rank = max(1, int(np.sum(misses <= 1 - confidence)))
    middle = ordered[[(count - 1) // 2, count // 2]]
    return Summary(
        median=middle[0] if count % 2 else 0.5 * middle[0] + 0.5 * middle[1],
        lower=ordered[rank - 1],
        upper=ordered[count - rank],
        confidence=float(1 - misses[rank - 1]),
    )


@dataclass(frozen=True, eq=False, kw_only=True)
class Trace:
    """The recorded result of a simulation; arrays are copied and cannot be written to.

    Parameters
    ----------
    label
        The method's name, for legends.
    spec
        What was run, as plain JSON values: problem, graph, method, step size, seed, version.
    updates
        Updates (visits of a token) made at each record, increasing, the same for all replicates:
        ``(records,)``.
    messages
        Messages sent so far: ``(replicates, records)``.
    message_bytes
        The size of one message, which is one model.
    questions
        How many of the messages were questions and answers, of a number each, as a history-driven
        walk sends them: ``(replicates, records)``, or None where there are none.
    metrics
        Named series, each ``(replicates, records)``, which are attributes of the trace too:
        ``trace.gap`` is ``trace.metrics["gap"]``. ``distance`` ‖w − w*‖ and ``gap`` f(w) − f* exist
        where the objective has an optimum, ``value`` f(w) where it was recorded; with the prefix
        ``average_`` they are those of w̄. Distances are NaN where w* is not unique.
    models, averages
        The last iterate and the weighted average: ``(replicates, *model_shape)``.
    visits
        Updates made by each node, all replicates together: ``(nodes,)``, or None.
    degrees, expected_visits
        Of each node the number of its neighbours, and its share of the updates in the long run:
        ``(nodes,)``, or None where it is not known. `plot.visits` compares the visits with them.
    announcements, announcement_bytes
        Messages sent before the first update (degrees, importances) and their bytes in total.
        They are not part of ``messages`` and ``bytes``.
    released
        What each node released of its importance, shrunk where the walk shrinks it,
        ``(replicates, nodes)``, or None.
    contributions
        How often each node's rows showed in the model, ``(replicates, nodes)``, or None where
        nothing protects the model.
    privacy
        What was published under which mechanism, as plain JSON values; see ``ledger``.
    complete
        False when the run was interrupted and only what had been done is kept.

    Examples
    --------
    >>> import walklearn as wl
    >>> problem = wl.Problem([[1.0], [1.0], [1.0]], [1.0, 2.0, 3.0], loss=wl.losses.Squared())
    >>> trace = wl.simulate(problem, wl.graphs.ring(3), wl.walks.Uniform(), steps=1000,
    ...                     step_size=wl.PowerStep(0.5), replicates=4, seed=1)
    >>> trace.distance.shape == (trace.replicates, trace.records), int(trace.updates[-1])
    (True, 1000)
    >>> bool(trace.summary("distance").median[-1] < 0.2)
    True
    """

    label: str
    spec: dict[str, Any]
    updates: IntArray
    messages: IntArray
    message_bytes: int
    metrics: dict[str, FloatArray]
    models: FloatArray
    averages: FloatArray
    questions: IntArray | None = None
    visits: IntArray | None = None
    degrees: IntArray | None = None
    expected_visits: FloatArray | None = None
    announcements: int = 0
    announcement_bytes: int = 0
    complete: bool = True
    released: FloatArray | None = None
    contributions: IntArray | None = None
    privacy: dict[str, Any] = field(default_factory=dict)

    def __post_init__(self) -> None:
        if not isinstance(self.label, str):
            raise ValueError(f"label must be text, not {self.label!r}")
        for name in ("messages", *trace_files.WHOLE):
            if name not in trace_files.OPTIONAL or getattr(self, name) is not None:
                kind = np.int64 if name in _COUNTS else np.float64
                object.__setattr__(self, name, _checked_array(name, getattr(self, name), kind))
        object.__setattr__(self, "metrics", _checked_metrics(self.metrics))
        for name in ("message_bytes", "announcements", "announcement_bytes"):
            object.__setattr__(self, name, check_whole(name, getattr(self, name), minimum=0))
        object.__setattr__(self, "complete", bool(self.complete))  # JSON knows no np.bool_
        object.__setattr__(self, "spec", _through_json(self.spec))
        object.__setattr__(self, "privacy", _through_json(self.privacy))
        self._check_shapes()

    def _check_shapes(self) -> None:
        if self.updates.ndim != 1 or not self.updates.size or (np.diff(self.updates) <= 0).any():
            raise ValueError(f"updates must be an increasing list of counts, not {self.updates}")
        if self.messages.ndim != 2 or not len(self.messages):
            raise ValueError(f"messages must be (replicates, records), not {self.messages.shape}")
        for name in ("messages", "questions", *self.metrics):
            if (array := getattr(self, name)) is not None:
                _check_shape(name, array.shape, (len(self.messages), self.records))
        _check_shape("models", self.models.shape[:1], (self.replicates,))
        _check_shape("averages", self.averages.shape, self.models.shape)
        for name in trace_files.PER_NODE:
            if (array := getattr(self, name)) is not None and array.ndim != 1:
                raise ValueError(f"{name} must be one number per node, not shape {array.shape}")

    @property
    def replicates(self) -> int:
        """The number of independent runs."""
        return len(self.messages)

    @property
    def records(self) -> int:
        """How many times each run was looked at."""
        return len(self.updates)

    @property
    def ledger(self) -> tuple[Ledger, ...]:
        """Who published what, at what cost: one ledger per replicate, each a world of its own."""
        from walklearn.simulation.replicate_ledger import replicate_ledger

        nodes = self.privacy.get("nodes", 0)
        counts = [None] * self.replicates if self.contributions is None else self.contributions
        return tuple(replicate_ledger(self.privacy, nodes, count) for count in counts)

    @property
    def bytes(self) -> IntArray:
        """Bytes sent so far, ``(replicates, records)``: a model a message, but for questions."""
        sent: IntArray = trace_files.bytes_sent(vars(self))
        return sent

    def __getattr__(self, name: str) -> FloatArray:
        """Return the metric of this name."""
        metrics: dict[str, FloatArray] = vars(self).get("metrics", {})  # none while unpickling
        if name not in metrics:
            raise AttributeError(
                f"a trace has no attribute {name!r}. {_known(metrics)}", name=name, obj=self
            )
        return metrics[name]

    def __dir__(self) -> list[str]:
        return [*super().__dir__(), *self.metrics]

    def __eq__(self, other: object) -> bool:
        """True if every field has the same values; NaN equals NaN."""
        if not isinstance(other, Trace):
            return NotImplemented
        return _same(vars(self), vars(other))

    def __repr__(self) -> str:
        interrupted = "" if self.complete else ", interrupted"
        return (
            f"Trace({self.label!r}, {plural(self.replicates, 'replicate')}, "
            f"{plural(self.records, 'record')} up to "
            f"{plural(int(self.updates[-1]), 'update')}{interrupted})"
        )

    def error(self, metric: str) -> FloatArray:
        """Return a metric by its name; a value that was not recorded follows from the gap.

        Parameters
        ----------
        metric
            The name, such as "distance", "gap", "average_value", or one of your own.

        Returns
        -------
        ndarray of shape (replicates, records)
            Its values.
        """
        if metric in self.metrics:
            return self.metrics[metric]
        minimum = self.spec.get("optimum_value")
        gap = self.metrics.get(str(metric).replace("value", "gap"))
        if metric not in ("value", "average_value") or minimum is None or gap is None:
            raise ValueError(f"{self.label} has no metric {metric!r}. {_known(self.metrics)}")
        return gap + float(minimum)

    def summary(self, metric: str = "distance", confidence: float = 0.95) -> Summary:
        """Summarise a metric over the replicates: its median and an interval, by record.

        See :func:`median_summary`. Each record is covered on its own, not the curve as a whole.

        Parameters
        ----------
        metric
            The name of the metric.
        confidence
            How likely the interval covers the median of all replicates there could be.

        Returns
        -------
        Summary
            The median, the ends of its interval, and the confidence that was reached.
        """
        return median_summary(self.error(metric), confidence)

    def plot(
        self,
        x: str = "updates",
        metric: str | None = None,
        ax: Axes | None = None,
        **options: Any,
    ) -> Axes:
        """Draw a metric against what was spent; see :func:`walklearn.plots.convergence`.

        Parameters
        ----------
        x
            What was spent: "updates", "messages" or "bytes".
        metric
            By default the distance; without one, the objective's value; else the first metric.
        ax
            Where to draw; by default axes of its own.
        **options
            For `walklearn.plots.convergence`.

        Returns
        -------
        Axes
            The axes that were drawn on.
        """
        if metric is None:
            value = "value" if self.spec.get("average") == "none" else "average_value"
            preferred = ("distance", value, *self.metrics)
            metric = next((name for name in preferred if name in self.metrics), "distance")
        return convergence([self], x=x, metric=metric, ax=ax, **options)

    def to_pandas(self) -> pandas.DataFrame:
        """Give the table with one row per replicate and record, as a pandas data frame."""
        with extra("tables", "this needs"):
            import pandas
        return pandas.DataFrame(trace_files.table_columns(vars(self)))

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write to ``path``, which ends in ``.npz`` (NumPy) or ``.parquet`` (tables).

        The file appears whole or not at all, and replaces an earlier one only when it is safely
        on the disk. In Parquet the table of :meth:`to_pandas` is what other tools see; the rest
        travels in the file's metadata.

        Parameters
        ----------
        path
            Where the file is to be.
        """
        trace_files.write_trace_file(path, vars(self))

    @classmethod
    def load(cls, path: str | os.PathLike[str]) -> Trace:
        """Read what :meth:`save` wrote; a file that is something else is a TraceFileError.

        Parameters
        ----------
        path
            Where the file is.

        Returns
        -------
        Trace
            The trace that was saved there.
        """
        values = trace_files.read_trace_file(path)
        try:
            return cls(**values)
        except (TypeError, ValueError) as error:
            raise trace_files.damaged(path, error) from error


def _checked_array(name: str, values: Any, kind: DTypeLike) -> NDArray[Any]:
    try:
        array = np.asarray(values).astype(kind, casting="same_kind")
    except (TypeError, ValueError) as error:
        raise ValueError(f"{name} must be an array of {np.dtype(kind)}: {error}") from error
    if array.dtype == np.int64 and (array < 0).any():
        raise ValueError(f"{name} counts something and cannot be negative: {array.min()}")
    array.setflags(write=False)
    return array


def _checked_metrics(metrics: Any) -> dict[str, FloatArray]:
    if not isinstance(metrics, Mapping):
        raise ValueError(f"metrics must be a dictionary of named series, not {metrics!r}")
    check_metric_names(metrics)
    return {name: _checked_array(name, series, np.float64) for name, series in metrics.items()}


def check_metric_names(names: Iterable[str]) -> None:
    """Raise a ValueError for a name that a metric cannot have."""
    for name in names:
        if not isinstance(name, str) or not name.isidentifier() or iskeyword(name):
            raise ValueError(
                f"{name!r} cannot name a metric. Use letters, digits and '_', as in 'accuracy'."
            )
        if name in _reserved() or name.startswith("_"):
            raise ValueError(f"{name!r} cannot name a metric: Trace uses it. Use another name.")


@cache
def _reserved() -> set[str]:
    return {*dir(Trace), *(each.name for each in fields(Trace)), *trace_files.COST_COLUMNS}


def _known(metrics: Mapping[str, FloatArray]) -> str:
    """The second part of an error message: the metrics that exist, and why others do not."""
    names = f"Its metrics are {', '.join(metrics)}." if metrics else "It has no metrics."
    if any(name in metrics for name in trace_files.ERRORS):
        return names
    return f"{names} distance and gap exist where the objective has an optimum()."


def _through_json(spec: dict[str, Any]) -> dict[str, Any]:
    """The spec as it will come back from a file: tuples are lists, keys are strings."""
    try:
        plain = json.loads(json.dumps(spec))
    except (TypeError, ValueError) as error:
        raise ValueError(f"spec must hold plain JSON values only: {error}") from error
    if not isinstance(plain, dict):
        raise ValueError(f"spec must be a dictionary, not {type(spec).__name__}")
    return plain


def _check_shape(name: str, shape: tuple[int, ...], expected: tuple[int, ...]) -> None:
    if shape != expected:
        raise ValueError(f"{name} has shape {shape} where the other arrays ask for {expected}")


def _same(one: Any, other: Any) -> bool:
    if isinstance(one, np.ndarray) and isinstance(other, np.ndarray):
        return np.array_equal(one, other, equal_nan=True)
    if isinstance(one, dict) and isinstance(other, dict):
        return one.keys() == other.keys() and all(_same(one[name], other[name]) for name in one)
    if type(one) is not type(other):
        return False
    # JSON values as text, in which NaN equals NaN
    return json.dumps(one, sort_keys=True) == json.dumps(other, sort_keys=True)
