"""A recorded run: metrics of the model after given numbers of updates, messages and bytes.

A simulation records independent replicates after the same numbers of updates. A record holds the
number of messages sent so far, and metrics of the last iterate w and the weighted average w̄:

    distance          ‖w − w*‖        gap          f(w) − f*        value          f(w)
    average_distance  ‖w̄ − w*‖        average_gap  f(w̄) − f*        average_value  f(w̄)

and those that the objective defines. Distances and gaps need an optimum. A :class:`Trace` is that
table with a description of the run.

>>> error = [[1.0, 0.3, 0.1], [1.2, 0.5, 0.2], [0.9, 0.4, 0.3]]
>>> messages = np.array([[0, 7, 71], [1, 6, 68], [0, 8, 75]])
>>> trace = Trace(label="Weighted()", spec={"seed": 1}, updates=[1, 10, 100], messages=messages,
...               time=1.0 * messages, message_bytes=80,
...               metrics={"distance": error}, models=[[0.5]] * 3, averages=[[0.4]] * 3)
>>> trace
Trace('Weighted()', 3 replicates, 3 records up to 100 updates)
>>> trace.bytes[0], trace.summary("distance").median, trace.distance.shape
(array([   0,  560, 5680]), array([1. , 0.4, 0.2]), (3, 3))
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

_KINDS = {"IntArray": np.int64, "FloatArray": np.float64}  # by the annotation of a field


class Summary(NamedTuple):
    """The median over replicates at each record, and a confidence interval for it.

    Parameters
    ----------
    median, lower, upper, confidence
        The median and the ends of its interval at each record, and the confidence of the interval.
        Fewer than six replicates cannot reach 95 %.
    """

    median: FloatArray
    lower: FloatArray
    upper: FloatArray
    confidence: float


def median_summary(values: FloatArray, confidence: float = 0.95) -> Summary:
    """Return the median of each column, and an interval for the median of its distribution.

    The interval runs from the r-th smallest to the r-th largest value. For any distribution it
    misses the true median with probability 2 P(Binomial(n, ½) < r) at most. r is the largest rank
    with the requested confidence; fewer than six values give their whole range. NaN counts as the
    largest error.

    >>> median_summary(np.array([[1.0], [3.0], [2.0]]))
    Summary(median=array([2.]), lower=array([1.]), upper=array([3.]), confidence=0.75)
    """
    from scipy.special import bdtr  # slow to import, and only needed here

    check_number("confidence", confidence, above=0.0, below=1.0)
    sorted_values = np.sort(values, axis=0)  # NaN goes last
    count = len(sorted_values)
    miss_probabilities = 2 * bdtr(np.arange((count + 1) // 2), count, 0.5)  # for r = 1, 2, ...
    rank = max(1, int(np.sum(miss_probabilities <= 1 - confidence)))
    middle = sorted_values[[(count - 1) // 2, count // 2]]
    return Summary(
        median=middle[0] if count % 2 else 0.5 * middle[0] + 0.5 * middle[1],
        lower=sorted_values[rank - 1],
        upper=sorted_values[count - rank],
        confidence=float(1 - miss_probabilities[rank - 1]),
    )


@dataclass(frozen=True, eq=False, kw_only=True)
class Trace:
    """The recorded result of a simulation; arrays are copied and cannot be written to.

    Parameters
    ----------
    label, spec
        The method's name for legends, and the inputs of the run as plain JSON values.
    updates
        The updates (visits of all tokens together, in the order in which they end) at each record,
        increasing: ``(records,)``.
    time
        The time at which the update of each record ended: ``(replicates, records)``. A message
        takes ``hop_time``, an update ``visit_time`` (see ``simulate``). A token's own next hop is
        not part of it. Gossip counts a round, or an exchange of two neighbours, as one message and
        one update. Exchanges start in the order in which they were drawn, each as soon as its two
        nodes are free, and the time is the end of the last of them.
    messages, questions
        The messages sent so far, and the questions and answers of one number each among them (None
        if there are none): ``(replicates, records)``.
    message_bytes
        The size of one message.
    metrics
        Named series, each ``(replicates, records)``. They are attributes, too: ``trace.gap`` is
        ``trace.metrics["gap"]``. ``distance`` ‖w − w*‖ and ``gap`` f(w) − f* exist if the objective
        has an optimum, ``value`` f(w) if it was recorded. The prefix ``average_`` stands for w̄.
        Distances are NaN if w* is not unique. Several tokens have a model each: distance, gap and
        value are then the largest of them, and other metrics their mean.
    models, averages
        The last iterate and the weighted average: ``(replicates, *model_shape)``. Of several tokens
        they are those of the token with the largest distance, or without one the largest gap or
        value.
    visits, degrees, expected_visits
        The updates of each node in all replicates, the number of its neighbours, and its long-run
        share of the updates: ``(nodes,)``, or None if it is not known.
    announcements, announcement_bytes
        Messages sent before the first update, and their bytes in total. They are not part of
        ``messages`` and ``bytes``.
    released, contributions
        The release of each node as the walk uses it, and the contributions of its rows to the
        model: ``(replicates, nodes)``, or None if nothing is protected.
    privacy
        The published numbers and their mechanisms as plain JSON values; see ``ledger``.
    complete
        False if the run was interrupted and the trace holds only a part of it.
    """

    label: str
    spec: dict[str, Any]
    updates: IntArray
    time: FloatArray
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
            raise ValueError(f"label must be text, got {self.label!r}.")
        for item in fields(self):
            value, kind = getattr(self, item.name), _KINDS.get(str(item.type).split()[0])
            if kind is not None and not (value is None and item.default is None):
                object.__setattr__(self, item.name, _checked_array(item.name, value, kind))
        object.__setattr__(self, "metrics", _checked_metrics(self.metrics))
        for name in ("message_bytes", "announcements", "announcement_bytes"):
            object.__setattr__(self, name, check_whole(name, getattr(self, name), minimum=0))
        object.__setattr__(self, "complete", bool(self.complete))  # JSON knows no np.bool_
        object.__setattr__(self, "spec", _json_round_trip(self.spec))
        object.__setattr__(self, "privacy", _json_round_trip(self.privacy))
        self._check_shapes()

    def _check_shapes(self) -> None:
        if self.updates.ndim != 1 or not self.updates.size or (np.diff(self.updates) <= 0).any():
            raise ValueError(f"updates must be an increasing list of counts, got {self.updates}.")
        if self.messages.ndim != 2 or not len(self.messages):
            raise ValueError(f"messages must be (replicates, records), got {self.messages.shape}.")
        for name in ("messages", "time", "questions", *self.metrics):
            if (array := getattr(self, name)) is not None:
                _check_shape(name, array.shape, (len(self.messages), self.records))
        if not (np.isfinite(self.time) & (self.time >= 0)).all():
            raise ValueError(f"time must be finite and at least 0, got {self.time}.")
        _check_shape("models", self.models.shape[:1], (self.replicates,))
        _check_shape("averages", self.averages.shape, self.models.shape)
        for name in ("visits", "degrees", "expected_visits"):
            if (array := getattr(self, name)) is not None and array.ndim != 1:
                raise ValueError(f"{name} must be one number per node, got shape {array.shape}.")

    @property
    def replicates(self) -> int:
        """The number of independent runs."""
        return len(self.messages)

    @property
    def records(self) -> int:
        """The number of records of each run."""
        return len(self.updates)

    @property
    def ledger(self) -> tuple[Ledger, ...]:
        """The ledger of each replicate: the published numbers and their cost."""
        counts = [None] * self.replicates if self.contributions is None else self.contributions
        return tuple(_ledger(self.privacy, count) for count in counts)

    @property
    def bytes(self) -> IntArray:
        """Bytes sent so far, ``(replicates, records)``; see ``message_bytes``, ``questions``."""
        sent: IntArray = trace_files.bytes_sent(vars(self))
        return sent

    def __getattr__(self, name: str) -> FloatArray:
        """Return the metric of this name."""
        metrics: dict[str, FloatArray] = vars(self).get("metrics", {})  # none while unpickling
        if name not in metrics:
            raise AttributeError(
                f"a trace has no attribute {name!r}. {_metric_hint(metrics)}", name=name, obj=self
            )
        return metrics[name]

    def __dir__(self) -> list[str]:
        return [*super().__dir__(), *self.metrics]

    def __eq__(self, other: object) -> bool:
        """True if every field has the same values; NaN equals NaN."""
        return isinstance(other, Trace) and _to_text(self) == _to_text(other)

    def __repr__(self) -> str:
        interrupted = "" if self.complete else ", interrupted"
        return (
            f"Trace({self.label!r}, {plural(self.replicates, 'replicate')}, "
            f"{plural(self.records, 'record')} up to "
            f"{plural(int(self.updates[-1]), 'update')}{interrupted})"
        )

    def error(self, metric: str) -> FloatArray:
        """Return a metric by its name. A value that was not recorded is computed from the gap.

        Parameters
        ----------
        metric
            The name, such as "distance", "gap", "average_value", or one of the objective's.

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
            raise ValueError(f"{self.label} has no metric {metric!r}. {_metric_hint(self.metrics)}")
        return gap + float(minimum)

    def summary(self, metric: str = "distance", confidence: float = 0.95) -> Summary:
        """Return the median of a metric and a confidence interval at each record.

        The confidence holds for each record alone, not for the whole curve.

        Parameters
        ----------
        metric, confidence
            The name of the metric, and the probability that the interval has the true median.

        Returns
        -------
        Summary
            The median, the ends of its interval, and its confidence.
        """
        return median_summary(self.error(metric), confidence)

    def plot(
        self,
        x: str = "updates",
        metric: str | None = None,
        ax: Axes | None = None,
        **options: Any,
    ) -> Axes:
        """Draw a metric against a cost; see :func:`walklearn.plots.convergence`.

        Parameters
        ----------
        x, metric
            The cost, "updates", "messages", "bytes" or "time", and the metric: by default the
            distance; without one, the objective's value; else the first metric.
        ax
            Axes to draw on; new ones by default.
        **options
            Options of `walklearn.plots.convergence`.

        Returns
        -------
        Axes
            The axes.
        """
        if metric is None:
            value = "value" if self.spec.get("average") == "none" else "average_value"
            preferred = ("distance", value, *self.metrics)
            metric = next((name for name in preferred if name in self.metrics), "distance")
        return convergence([self], x=x, metric=metric, ax=ax, **options)

    def to_pandas(self) -> pandas.DataFrame:
        """Return the table with one row per replicate and record, as a pandas data frame."""
        with extra("tables", "this needs"):
            import pandas
        return pandas.DataFrame(trace_files.table_columns(vars(self)))

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write to ``path``, which ends in ``.npz`` (NumPy) or ``.parquet`` (tables).

        The file is replaced atomically. In Parquet other tools read the table of :meth:`to_pandas`.

        Parameters
        ----------
        path
            Path of the file.
        """
        trace_files.write_trace_file(path, vars(self))

    @classmethod
    def load(cls, path: str | os.PathLike[str]) -> Trace:
        """Read a file that :meth:`save` wrote. Any other file raises a `TraceFileError`.

        Parameters
        ----------
        path
            Path of the file.

        Returns
        -------
        Trace
            The saved trace.
        """
        trace: Trace = trace_files.read_trace_file(path, cls)
        return trace


def _ledger(published: Mapping[str, Any], contributions: IntArray | None) -> Ledger:
    """Return the ledger of a replicate, from the numbers that its trace lists as published.

    Every node is charged its cap, even if it contributed less: an observer of the tokens may choose
    when to stop, so a charge for the actual number would be too low. A note holds the counts.
    """
    from walklearn.privacy.accounting.ledger import Ledger
    from walklearn.privacy.mechanisms.description import IN_THE_CLEAR, from_description
    from walklearn.privacy.model_noise import ModelNoise

    if not published.get("nodes"):
        raise ValueError("this trace does not list published numbers, so it has no ledger.")
    ledger = Ledger(published["nodes"], simulated=True)
    for release in ("importance", "model"):
        description = published.get(release)
        if description == IN_THE_CLEAR:
            ledger.record_unprotected(release)
        elif description is not None:
            mechanism = from_description(description)
            cap = mechanism.max_contributions if isinstance(mechanism, ModelNoise) else None
            ledger.charge(release, mechanism, times=cap or 1)
            if cap is not None and contributions is not None:
                ledger.notes.append(
                    f"the charge is for the cap of {plural(cap, 'contribution')}; "
                    f"nodes have made {contributions.min()} to {contributions.max()} so far"
                )
    return ledger


def _checked_array(name: str, values: Any, kind: DTypeLike) -> NDArray[Any]:
    try:
        array = np.asarray(values).astype(kind, casting="same_kind")
    except (TypeError, ValueError) as error:
        raise ValueError(f"{name} must be an array of {np.dtype(kind)}: {error}.") from error
    if array.dtype == np.int64 and (array < 0).any():
        raise ValueError(f"{name} must be at least 0, got {array.min()}.")
    array.setflags(write=False)
    return array


def _checked_metrics(metrics: Any) -> dict[str, FloatArray]:
    if not isinstance(metrics, Mapping):
        raise ValueError(f"metrics must be a dictionary of named series, got {metrics!r}.")
    check_metric_names(metrics)
    return {name: _checked_array(name, series, np.float64) for name, series in metrics.items()}


def check_metric_names(names: Iterable[str]) -> None:
    """Raise a ValueError for a name that a metric cannot have."""
    for name in names:
        if not isinstance(name, str) or not name.isidentifier() or iskeyword(name):
            raise ValueError(
                f"{name!r} cannot name a metric. Use letters, digits and '_', as in 'accuracy'."
            )
        if name in _reserved_names() or name.startswith("_"):
            raise ValueError(f"{name!r} cannot name a metric: Trace uses it. Use another name.")


@cache
def _reserved_names() -> set[str]:
    return {*dir(Trace), *(each.name for each in fields(Trace)), *trace_files.COST_COLUMNS}


def _metric_hint(metrics: Mapping[str, FloatArray]) -> str:
    """Return the end of an error message: the existing metrics, and the condition for others."""
    names = f"Its metrics are {', '.join(metrics)}." if metrics else "It has no metrics."
    if any(name in metrics for name in trace_files.ERRORS):
        return names
    return f"{names} distance and gap exist if the objective has an optimum()."


def _json_round_trip(spec: dict[str, Any]) -> dict[str, Any]:
    """Return the spec as read from a file: tuples become lists, keys become strings."""
    try:
        result = json.loads(json.dumps(spec))
    except (TypeError, ValueError) as error:
        raise ValueError(f"spec must hold plain JSON values only: {error}.") from error
    if not isinstance(result, dict):
        raise ValueError(f"spec must be a dictionary, got {spec!r}.")
    return result


def _check_shape(name: str, shape: tuple[int, ...], expected: tuple[int, ...]) -> None:
    if shape != expected:
        raise ValueError(f"{name} has shape {shape}, and the other arrays need {expected}.")


def _to_text(trace: Trace) -> str:
    """Return all values as text, in which NaN equals NaN."""
    return json.dumps(vars(trace), default=np.ndarray.tolist, sort_keys=True)
