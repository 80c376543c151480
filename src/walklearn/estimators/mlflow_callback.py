"""What MLflow may keep of a fit: its parameters, its trace and its ledger.

Where something is claimed to be protected, the losses of a walk and the scores on its rows were
computed from private rows, and no ε was paid for them. They stay with the owner then: MLflow gets
what the model's own directory would hold, which can be published, unless the owner asks for more.
"""

from __future__ import annotations

import re
import warnings
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from walklearn.estimators.result import details_of, row_facts
from walklearn.estimators.statements import is_claimed, privacy_of
from walklearn.extras import package

LONGEST = 500  # characters of a parameter, as many as every MLflow takes
AT_ONCE = 1000  # metrics in one call, likewise


class Record(NamedTuple):
    """What is logged of a fit: texts, numbers by updates, and documents."""

    parameters: dict[str, str]
    tags: dict[str, str]
    metrics: list[tuple[str, float, int]]
    documents: dict[str, dict[str, Any]]


class Logged(NamedTuple):
    """Where a fit was logged: the run, and the store it is in."""

    run_id: str
    store: str


@dataclass(frozen=True)
class MlflowCallback:
    """A callback that logs every fit as a run of MLflow: parameters, trace and ledger.

    A run is logged when the walk has ended, into the experiment and the store that MLflow is set to
    (`mlflow.set_experiment`, `mlflow.set_tracking_uri`, or their environment variables); within a
    run of your own it becomes a nested one. If MLflow fails, the fit does not: that is a warning.

    Under `epsilon`, or any other claim of privacy, losses are left out: they are computed from the
    rows, and whoever reads them learns more than ε allows.

    Parameters
    ----------
    owners_too : bool
        Log also what was computed from private rows and must not be published.
    run_name : str or None
        The name of the runs; by default MLflow invents one.

    Examples
    --------
    >>> from sklearn.datasets import load_breast_cancer
    >>> from walklearn import MlflowCallback, RandomWalkClassifier
    >>> X, y = load_breast_cancer(return_X_y=True)
    >>> tracker = MlflowCallback()
    >>> clf = RandomWalkClassifier(random_state=1).fit(X, y)  # with callback=tracker it is logged
    >>> record = tracker.record(clf)                          # what would be
    >>> record.parameters["walk"], sorted({name for name, _, _ in record.metrics})
    ('auto', ['average_value', 'bytes', 'messages', 'rows', 'value'])
    >>> protected = RandomWalkClassifier(epsilon=3.0, delta=1e-5, row_length=5.0, random_state=1)
    >>> sorted({name for name, _, _ in tracker.record(protected.fit(X, y)).metrics})
    ['bytes', 'messages']
    """

    owners_too: bool = False
    run_name: str | None = None

    def __post_init__(self) -> None:
        package("mlflow", "mlflow", "tracking needs")  # missed before the walk, not after it

    def __call__(self, updates: int, loss: float) -> None:
        """Keep nothing: whether a loss may be told is not known before the walk has ended."""

    def fitted(self, estimator: Any, scores: Mapping[str, float] | None = None) -> Logged | None:
        """Log the fit that has just ended; what goes wrong is a warning.

        Parameters
        ----------
        estimator : RandomWalkClassifier or RandomWalkRegressor
            It must have been fitted.
        scores : mapping or None
            Further numbers that were computed from the rows, such as an accuracy, by name.

        Returns
        -------
        Logged or None
            The run and its store; None where MLflow did not take it.
        """
        try:
            return self._log(self.record(estimator, scores))
        except Exception as error:  # a server that is away has many ways to say so
            warnings.warn(
                f"the fit is done, and MLflow did not take it: {error}. Look at its tracking URI "
                "(MLFLOW_TRACKING_URI).",
                stacklevel=2,
            )
            return None

    def record(self, estimator: Any, scores: Mapping[str, float] | None = None) -> Record:
        """Tell what is logged of a fitted estimator.

        Parameters
        ----------
        estimator : RandomWalkClassifier or RandomWalkRegressor
            It must have been fitted.
        scores : mapping or None
            Further numbers that were computed from the rows, such as an accuracy, by name.

        Returns
        -------
        Record
            Parameters, tags, metrics (name, value, updates) and documents.
        """
        trace, may_tell = estimator.trace_, self.owners_too or not is_claimed(estimator)
        curves = {"messages": trace.messages, "bytes": trace.bytes}
        last: dict[str, float] = {}
        if may_tell:
            curves |= trace.metrics
            last = {"rows": row_facts(estimator)["rows"], **(scores or {})}
        metrics = [
            (name, float(value), int(updates))
            for name, values in curves.items()
            for updates, value in zip(trace.updates, values[0], strict=True)
        ]
        metrics += [(name, float(value), int(trace.updates[-1])) for name, value in last.items()]
        parameters = estimator.get_params(deep=False)
        privacy = privacy_of(estimator)
        return Record(
            {
                name: _text(value)
                for name, value in parameters.items()
                if name != "callback" and value is not None
            },
            {
                f"walklearn.{name}": str(privacy[name])
                for name in ("private", "epsilon", "delta", "simulated")
            },
            [metric for metric in metrics if np.isfinite(metric[1])],
            {
                "privacy.json": privacy,
                "ledger.json": estimator.ledger_.to_dict(),
                "training.json": details_of(estimator),
            },
        )

    def _log(self, record: Record) -> Logged:
        import mlflow
        from mlflow.entities import Metric

        nested = mlflow.active_run() is not None
        with mlflow.start_run(run_name=self.run_name, nested=nested) as run:
            mlflow.log_params(record.parameters)
            mlflow.set_tags(record.tags)
            begun, client = run.info.start_time, mlflow.MlflowClient()
            metrics = [Metric(name, value, begun, at) for name, value, at in record.metrics]
            for first in range(0, len(metrics), AT_ONCE):
                client.log_batch(run.info.run_id, metrics=metrics[first : first + AT_ONCE])
            for name, document in record.documents.items():
                mlflow.log_dict(document, name)
        return Logged(run.info.run_id, _without_password(mlflow.get_tracking_uri()))


def _without_password(address: str) -> str:
    """An address that may be printed.

    >>> _without_password("postgresql://me:secret@host/runs")
    'postgresql://…@host/runs'
    """
    return re.sub(r"(?<=//)[^/]*@", "…@", address)


def _text(value: Any) -> str:
    """The value as a parameter of MLflow, which has to be short."""
    text = str(value)
    return text if len(text) <= LONGEST else f"{text[: LONGEST - 1]}…"
