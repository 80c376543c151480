"""`walklearn train --resume`: going on from the model of a training that was interrupted.

The token begins with the model that was kept and the count of its updates. With memory it first
collects the gradients of all nodes and then ends at the minimiser, as it would have without the
interruption; the paper's update goes on with the steps that come next. A private walk is not gone
on with: what ε claims rests on how often the rows of each node have shown in the model, and that
is not kept with it.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from walklearn.estimators.random_walk import RandomWalk
    from walklearn.files import Rows


def is_private(estimator: RandomWalk) -> bool:
    """Whether anything was asked to be protected."""
    return estimator.epsilon is not None or estimator.model_privacy is not None


def how_to_go_on(estimator: RandomWalk) -> str:
    """What to do after an interruption."""
    if is_private(estimator):
        return "Its ledger charges the whole walk; it cannot be gone on with."
    return "The same command with --resume goes on from there."


def begin_with(out: Path, estimator: RandomWalk, rows: Rows, settings: dict[str, Any]) -> None:
    """Let the estimator begin with the model in OUT; what does not fit it is refused."""
    from walklearn.model import Model

    if is_private(estimator):
        raise ValueError(
            "a private training is not resumed: how often the rows of each node have shown in the "
            "model is not kept with it, so that what is claimed of them could not hold. Train "
            "anew with --force: that pays a second time for the same rows."
        )
    if settings["test_fraction"] is not None and settings["seed"] is None:
        raise ValueError(
            "--resume with --test-fraction needs the --seed of the first run: without one, other "
            "rows would be kept back, and the model has seen those. Use --test, or train anew."
        )
    model = Model.load(out)
    if not model.details.get("interrupted"):
        raise ValueError(f"the training of {out} was not interrupted: leave --resume out.")
    names = None if model.classes is None else [str(each) for each in model.classes]
    found = [str(each) for each in rows.classes] if names is not None else None
    same = model.target == rows.target and names == found
    if not same or model.encoding.feature_names != rows.encoding.feature_names:
        raise ValueError(
            f"the model in {out} was trained on another target, other classes or other columns: "
            "give the same command as before, or train anew with --force."
        )
    estimator._begun = model
