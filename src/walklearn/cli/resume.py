"""`walklearn train --resume`: continue an interrupted training from its stored model.

The token begins with the stored model and the number of its updates, on the same graph; all other
options must equal those of the first command. With memory the token first collects the gradients of
all nodes and then converges to the minimiser, as without the interruption. The paper's update
continues with its next steps. A private training cannot be resumed: its claim depends on how often
each node contributed to the model, and the model does not store that.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

from walklearn.privacy.mechanisms.description import IN_THE_CLEAR

if TYPE_CHECKING:
    from walklearn.estimators.random_walk import RandomWalk
    from walklearn.fitting.plan import FitPlan
    from walklearn.models import Model
    from walklearn.tables import Rows

PRIVATE = (
    "a private training cannot be resumed: the model does not store how often each node "
    "contributed to it, so no claim could hold. Start a new training with --force, which spends ε "
    "a second time on the same rows."
)


def graph_seed(out: Path, resume: bool, seed: int | None) -> int:
    """Return the seed of a random graph: --seed, that of the training in OUT, or a new one."""
    import secrets

    from walklearn.models import Model

    if seed is None and resume:
        return int(Model.load(out).details.get("graph_seed", 0))
    return secrets.randbits(32) if seed is None else seed


def begin_with(out: Path, estimator: RandomWalk, rows: Rows, settings: dict[str, Any]) -> Model:
    """Load the model in OUT into the estimator, and return it; refuse a different command."""
    from walklearn.models import Model

    if estimator.epsilon is not None or estimator.model_privacy is not None:
        raise ValueError(PRIVATE)
    if settings["test_fraction"] is not None and settings["seed"] is None:
        raise ValueError(
            "--resume with --test-fraction needs the --seed of the first run: without one, other "
            "rows would be kept back, and the model was trained on those. Use --test, or start a "
            "new training."
        )
    model = Model.load(out)
    if any(each["mechanism"] != IN_THE_CLEAR for each in model.ledger.get("releases", ())):
        raise ValueError(f"{out}: {PRIVATE}")
    if not model.details.get("interrupted"):
        raise ValueError(f"the training of {out} was not interrupted: leave --resume out.")
    _check_same_rows(out, model, rows)
    if model.details.get("seed") != settings["seed"]:
        raise _other_settings(out)
    for name in ("steps", "max_steps"):  # of the whole training
        most = settings[name]
        if most is not None and most <= model.updates:
            raise ValueError(
                f"--{name.replace('_', '-')} {most} counts the updates in all, and the model in "
                f"{out} has made {model.updates}: ask for more, or leave it out."
            )
        estimator.set_params(**{name: None if most is None else most - model.updates})
    estimator.resume_from(model)
    return model


def check_plan(out: Path, model: Model, plan: FitPlan) -> None:
    """Refuse to continue the training of the model in OUT under another plan."""
    if model.details.get("plan") != plan.digest:
        raise _other_settings(out)


def _other_settings(out: Path) -> ValueError:
    return ValueError(
        f"the model in {out} was trained with other settings, on another graph, or in Python. "
        "Repeat the interrupted command with --resume, or start a new training with --force."
    )


def _check_same_rows(out: Path, model: Model, rows: Rows) -> None:
    """Raise an error if the rows cannot be those of the model."""
    names = None if model.classes is None else [str(each) for each in model.classes]
    found = [str(each) for each in rows.classes] if names is not None else None
    same = (model.target, names, model.encoding) == (rows.target, found, rows.encoding)
    if not same or model.details.get("rows") != len(rows.y):
        raise ValueError(
            f"the model in {out} was trained on another target, other classes, other columns or "
            "scales, or another number of rows: repeat the same command, or start a new training "
            "with --force."
        )
