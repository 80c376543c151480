"""What `train` logs elsewhere: the options, and the fit as a run of MLflow."""

from __future__ import annotations

import shlex
import warnings
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import click

if TYPE_CHECKING:
    from walklearn.estimators.mlflow_callback import Logged, MlflowCallback
    from walklearn.estimators.random_walk import RandomWalk
    from walklearn.models.score import Score

# fmt: off
TRACKING_OPTIONS = [
    click.option("--track", type=click.Choice(["mlflow"]),
                 help="Log parameters, trace and ledger as a run of MLflow (MLFLOW_TRACKING_URI, "
                      "MLFLOW_EXPERIMENT_NAME); of private rows only what may be published."),
    click.option("--track-owners", is_flag=True,
                 help="Log loss and accuracy on private rows too. They are for the owner alone."),
]
# fmt: on


def tracker_of(settings: Mapping[str, Any]) -> MlflowCallback | None:
    """What logs the fit that the options ask for, checked before the walk begins."""
    if settings["track"] is None:
        if settings["track_owners"]:
            raise ValueError("--track-owners says what is logged: add --track mlflow.")
        return None
    from walklearn.estimators.mlflow_callback import MlflowCallback

    return MlflowCallback(owners_too=settings["track_owners"])


def logged(
    tracker: MlflowCallback | None, estimator: RandomWalk, scores: Mapping[str, Score]
) -> tuple[Logged | None, list[str]]:
    """Log the fit with its scores: where it is, and what went wrong as notes for the user."""
    if tracker is None:
        return None, []
    numbers = {
        f"{name}_{score.measure}": score.value
        for name, score in scores.items()
        if score.value is not None
    }
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always", UserWarning)
        where = tracker.fitted(estimator, numbers)
    return where, [str(each.message) for each in caught if each.category is UserWarning]


def how_to_look_at(logged: Logged) -> str:
    """Where the run is, and the command that shows it.

    >>> from walklearn.estimators.mlflow_callback import Logged
    >>> print(how_to_look_at(Logged("3f2a", "sqlite:///mlflow.db")))
    MLflow has it as run 3f2a in sqlite:///mlflow.db. To see it:
      mlflow ui --backend-store-uri sqlite:///mlflow.db
    """
    served = logged.store.startswith(("http", "databricks"))
    look = (
        "which shows it." if served else
        f"To see it:\n  mlflow ui --backend-store-uri {shlex.quote(logged.store)}"
    )  # fmt: skip
    return f"MLflow has it as run {logged.run_id} in {logged.store}{',' if served else '.'} {look}"
