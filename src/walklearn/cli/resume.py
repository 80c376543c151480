"""`walklearn train --resume`: continue an interrupted training from its saved model.

The token starts with the saved model and its number of updates, on the same graph. All other
options must equal those of the first command. With memory, the token first collects the gradients
of all nodes and then converges to the same minimiser. The paper's update continues with its next
step size. A private training cannot be resumed: its claim depends on how often each node
contributed, and the model does not store that.
"""

from __future__ import annotations

import secrets
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from walklearn.privacy.mechanisms.description import IN_THE_CLEAR

if TYPE_CHECKING:
    from walklearn.estimators.random_walk import RandomWalk
    from walklearn.fitting.plan import FitPlan
    from walklearn.models import Model
    from walklearn.tables import Rows

PRIVATE = (
    "a private training cannot be resumed, because the model does not store how often each node "
    "contributed. Start a new training with --force, which spends ε again on the same rows."
)


def graph_seed(out: Path, resume: bool, seed: int | None) -> int:
    """Return the seed of a random graph: --seed, the seed stored in OUT, or a new one."""
    from walklearn.models import Model

    if seed is None and resume:
        return int(Model.load(out).details.get("graph_seed", 0))
    return secrets.randbits(32) if seed is None else seed


def load_interrupted(
    out: Path, estimator: RandomWalk, rows: Rows, options: dict[str, Any]
) -> Model:
    """Load the model in OUT into the estimator; refuse options that differ from its training."""
    from walklearn.models import Model

    if estimator.epsilon is not None or estimator.model_privacy is not None:
        raise ValueError(PRIVATE)
    if options["test_fraction"] is not None and options["seed"] is None:
        raise ValueError(
            "--resume with --test-fraction needs a --seed, which selects the same test rows again. "
            "Pass the --seed of the first command, or start a new training with --force."
        )
    model = Model.load(out)
    if any(each["mechanism"] != IN_THE_CLEAR for each in model.ledger.get("releases", ())):
        raise ValueError(f"{out}: {PRIVATE}")
    if not model.details.get("interrupted"):
        raise ValueError(f"the training of {out} was not interrupted. Leave --resume out.")
    names = None if model.classes is None else [str(each) for each in model.classes]
    given = None if names is None else [str(each) for each in rows.classes]
    details = model.details
    before, now = (
        {"target": target, "classes": classes, "columns": [each.name for each in encoding.columns],
         "scales": [encoding], "rows": count, "seed": seed}
        for target, classes, encoding, count, seed in (
            (model.target, names, model.encoding, details.get("rows"), details.get("seed")),
            (rows.target, given, rows.encoding, len(rows.y), options["seed"]),
        )
    )  # fmt: skip
    _check_equal(out, before, now)
    for name in ("steps", "max_steps"):  # of the whole training
        steps = options[name]
        if steps is not None and steps <= model.updates:
            raise ValueError(
                f"--{name.replace('_', '-')} {steps} counts earlier updates, and the model in "
                f"{out} already has {model.updates}. Use a larger number, or leave it out."
            )
        estimator.set_params(**{name: None if steps is None else steps - model.updates})
    estimator.resume_from(model)
    return model


def check_plan(out: Path, model: Model, plan: FitPlan) -> None:
    """Refuse to continue the training of the model in OUT under another plan."""
    _check_equal(out, model.details.get("settings", {}), plan.settings)
    if model.details.get("plan") != plan.digest:
        _check_equal(out, {}, {"edges of the graph": []})


def _check_equal(out: Path, before: Mapping[str, Any], now: Mapping[str, Any]) -> None:
    """Refuse values that differ from those of the interrupted training, and name them."""
    different = [
        name if isinstance(value, list) else f"{name} (was {before.get(name)}, is {value})"
        for name, value in now.items()
        if before.get(name) != value
    ]
    if different:
        raise ValueError(
            f"the training of {out} cannot be resumed, because these differ: "
            f"{', '.join(different)}. Repeat the interrupted command with --resume, or start a new "
            "training with --force."
        )
