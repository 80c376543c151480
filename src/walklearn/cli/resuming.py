"""`walklearn train --resume`: going on from the model of a training that was interrupted.

The token begins with the model that was kept and the count of its updates. With memory it first
collects the gradients of all nodes and then ends at the minimiser, as it would have without the
interruption; the paper's update goes on with the steps that come next. A private walk is not gone
on with: what ε claims rests on how often the rows of each node have shown in the model, and that
is not kept with it.
"""

from __future__ import annotations

from copy import copy
from pathlib import Path
from typing import TYPE_CHECKING, Any

from walklearn.privacy.ledger import IN_THE_CLEAR
from walklearn.updates import Sgd

if TYPE_CHECKING:
    from walklearn.estimators.random_walk import RandomWalk
    from walklearn.files import Rows
    from walklearn.model import Model

PRIVATE = (
    "a private training is not resumed: how often the rows of each node have shown in the model is "
    "not kept with it, so that what is claimed of them could not hold. Train anew with --force: "
    "that pays a second time for the same rows."
)


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
        raise ValueError(PRIVATE)
    if settings["test_fraction"] is not None and settings["seed"] is None:
        raise ValueError(
            "--resume with --test-fraction needs the --seed of the first run: without one, other "
            "rows would be kept back, and the model has seen those. Use --test, or train anew."
        )
    model = Model.load(out)
    if any(each["mechanism"] != IN_THE_CLEAR for each in model.ledger.get("releases", ())):
        raise ValueError(f"{out}: {PRIVATE}")
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
    _check_asked(out, model, estimator, rows, settings)
    for name in ("steps", "max_steps"):  # of the whole training
        most = settings[name]
        if most is not None and most <= model.updates:
            raise ValueError(
                f"--{name.replace('_', '-')} {most} counts the updates in all, and the model in "
                f"{out} has made {model.updates}: ask for more, or leave it out."
            )
        estimator.set_params(**{name: None if most is None else most - model.updates})
    estimator._begun = model


def _check_asked(
    out: Path, model: Model, estimator: RandomWalk, rows: Rows, settings: dict[str, Any]
) -> None:
    """Refuse to go on with another objective, another walk or other rows than before."""
    from sklearn.base import is_classifier

    from walklearn.estimators.parameters import memory_of
    from walklearn.estimators.protection import walk_of
    from walklearn.problem.losses import LOSSES

    _, _, loss = copy(estimator)._taken(rows.X, rows.y)
    memory = memory_of(estimator, private=False)
    kept = model.details
    for name, before, now in (
        ("task", model.kind, "classifier" if is_classifier(estimator) else "regressor"),
        ("loss", model.loss, LOSSES.name_of(loss)),
        ("penalty", model.penalty, estimator.penalty),
        ("walk", model.walk, repr(walk_of(estimator.walk, estimator.laziness))),
        ("update", kept["update"], Sgd.name if memory is None else memory.name),
        ("seed", kept["seed"], settings["seed"]),
        ("test fraction", kept.get("test_fraction"), settings["test_fraction"]),
    ):
        if before != now:
            raise ValueError(
                f"the {name} of the training in {out} was {_said(before)}, and now it is "
                f"{_said(now)}: give the same command as before, or train anew with --force."
            )


def _said(value: object) -> str:
    return "not given" if value is None else str(value)
