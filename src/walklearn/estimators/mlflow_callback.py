"""MLflow runs of fits: parameters, trace and ledger.

If a fit has a privacy claim, ε does not cover its losses and the scores on its rows, which are
computed from private rows. MLflow then gets only the facts in the model's directory, which can be
published, unless `include_private` is True.
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

# Limits of every version of MLflow: characters of a parameter, metrics in one call.
MAX_CHARACTERS, MAX_METRICS = 500, 1000


class Record(NamedTuple):
    """The logged facts of a fit: texts, numbers by updates, and documents."""

    parameters: dict[str, str]
    tags: dict[str, str]
    metrics: list[tuple[str, float, int]]
    documents: dict[str, dict[str, Any]]


class LoggedRun(NamedTuple):
    """The run of a logged fit, and its store."""

    run_id: str
    store: str


@dataclass(frozen=True)
class MlflowCallback:
    """A callback that logs every fit as a run of MLflow: parameters, trace and ledger.

    A run is logged after the walk, in MLflow's experiment and store (`mlflow.set_experiment`,
    `mlflow.set_tracking_uri`, or their environment variables); within an active run it becomes a
    nested one. A failure of MLflow is a warning. With `epsilon`, or any other claim of privacy,
    losses are left out, because they reveal more about the rows than ε allows.

    Parameters
    ----------
    include_private
        True to log also numbers that were computed from private rows; they must not be published.
    run_name
        The name of the runs; by default MLflow chooses one.

    Examples
    --------
    >>> from sklearn.datasets import load_breast_cancer
    >>> from walklearn import MlflowCallback, RandomWalkClassifier
    >>> clf = RandomWalkClassifier(random_state=1).fit(*load_breast_cancer(return_X_y=True))
    >>> record = MlflowCallback().record(clf)     # logged with callback=MlflowCallback()
    >>> record.parameters["walk"], sorted({name for name, _, _ in record.metrics})
    ('auto', ['average_value', 'bytes', 'messages', 'rows', 'value'])
    """

    include_private: bool = False
    run_name: str | None = None

    def __post_init__(self) -> None:
        package("mlflow", "mlflow", "tracking needs")  # an error before the walk, not after it

    def __call__(self, updates: int, loss: float) -> None:
        """Ignore the loss during the walk: only the fitted estimator tells if it may be logged."""

    def fitted(self, estimator: Any, scores: Mapping[str, float] | None = None) -> LoggedRun | None:
        """Log a fitted estimator, with further scores on its rows; a failure is a warning."""
        try:
            return self._log(self.record(estimator, scores))
        except Exception as error:  # an unreachable server raises errors of many kinds
            warnings.warn(
                f"the fit is complete, but MLflow failed: {error}. Check its tracking URI "
                "(MLFLOW_TRACKING_URI).",
                stacklevel=2,
            )
            return None

    def record(self, estimator: Any, scores: Mapping[str, float] | None = None) -> Record:
        """Return the parameters, tags, metrics (name, value, updates) and documents of a run."""
        trace, may_log = estimator.trace_, self.include_private or not is_claimed(estimator)
        curves = {"messages": trace.messages, "bytes": trace.bytes}
        last: dict[str, float] = {}
        if may_log:
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

    def _log(self, record: Record) -> LoggedRun:
        import mlflow
        from mlflow.entities import Metric

        nested = mlflow.active_run() is not None
        with mlflow.start_run(run_name=self.run_name, nested=nested) as run:
            mlflow.log_params(record.parameters)
            mlflow.set_tags(record.tags)
            start, client = run.info.start_time, mlflow.MlflowClient()
            metrics = [Metric(name, value, start, at) for name, value, at in record.metrics]
            for first in range(0, len(metrics), MAX_METRICS):
                client.log_batch(run.info.run_id, metrics=metrics[first : first + MAX_METRICS])
            for name, document in record.documents.items():
                mlflow.log_dict(document, name)
        return LoggedRun(run.info.run_id, _without_password(mlflow.get_tracking_uri()))


def _without_password(address: str) -> str:
    """Return an address without its password.

    >>> _without_password("postgresql://me:secret@host/runs")
    'postgresql://…@host/runs'
    """
    return re.sub(r"(?<=//)[^/]*@", "…@", address)


def _text(value: Any) -> str:
    """Return the value as a parameter of MLflow, which has to be short."""
    text = str(value)
    return text if len(text) <= MAX_CHARACTERS else f"{text[: MAX_CHARACTERS - 1]}…"
