"""What `train` logs elsewhere: the options, and the fit as a run of MLflow."""

from __future__ import annotations

import warnings
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import click

if TYPE_CHECKING:
    from walklearn.estimators.random_walk import RandomWalk
    from walklearn.estimators.tracking import MlflowCallback
    from walklearn.model.score import Score

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
    from walklearn.estimators.tracking import MlflowCallback

    return MlflowCallback(owners_too=settings["track_owners"])


def logged(
    tracker: MlflowCallback | None, estimator: RandomWalk, scores: Mapping[str, Score]
) -> list[str]:
    """Log the fit with its scores; what went wrong comes back as notes for the user."""
    if tracker is None:
        return []
    numbers = {
        f"{name}_{score.measure}": score.value
        for name, score in scores.items()
        if score.value is not None
    }
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always", UserWarning)
        tracker.fitted(estimator, numbers)
    return [str(warning.message) for warning in caught if warning.category is UserWarning]
