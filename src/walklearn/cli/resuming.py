"""`walklearn train --resume`: going on from the model of a training that was interrupted.

The token begins with the model that was kept and the count of its updates, on the same graph, and
whatever else was asked for is asked for again, or refused. With memory it first
collects the gradients of all nodes and then ends at the minimiser, as it would have without the
interruption; the paper's update goes on with the steps that come next. A private walk is not gone
on with: what ε claims rests on how often the rows of each node have shown in the model, and that
is not kept with it.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

from walklearn.privacy.description import IN_THE_CLEAR

if TYPE_CHECKING:
    from walklearn.estimators.random_walk import RandomWalk
    from walklearn.files import Rows
    from walklearn.graphs import Graph
    from walklearn.model import Model

# What must be asked for again, as these options are called, for it decides what the walk ends at.
SAME = (
    "task", "loss", "penalty", "walk", "laziness", "update", "step_constant", "batch", "tol",
    "feature_bound", "total_rows", "test_fraction", "seed",
)  # fmt: skip
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


def graph_seed(out: Path, resume: bool, seed: int | None) -> int:
    """The seed of a graph that is drawn: --seed, that of the training in OUT, or a new one."""
    import secrets

    from walklearn.model import Model

    if seed is not None:
        return seed
    if resume:
        return int(Model.load(out).details.get("asked", {}).get("graph_seed", 0))
    return secrets.randbits(32)


def asked_for(settings: dict[str, Any], graph: Graph) -> dict[str, Any]:
    """What a training was asked for, as it is kept with its model."""
    from hashlib import sha256

    digest = sha256(graph.indptr.tobytes() + graph.indices.tobytes()).hexdigest()[:12]
    given = {name: settings[name] for name in (*SAME, "graph_seed") if settings[name] is not None}
    return given | {"graph": f"{graph!r} {digest}"}


def begin_with(out: Path, estimator: RandomWalk, rows: Rows, settings: dict[str, Any]) -> int:
    """Let the estimator begin with the model in OUT; what does not fit it is refused.

    Returns how many updates were made before.
    """
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
    _check_same_command(out, model, asked_for(settings, estimator.graph))
    _check_same_rows(out, model, rows)
    for name in ("steps", "max_steps"):  # of the whole training
        most = settings[name]
        if most is not None and most <= model.updates:
            raise ValueError(
                f"--{name.replace('_', '-')} {most} counts the updates in all, and the model in "
                f"{out} has made {model.updates}: ask for more, or leave it out."
            )
        estimator.set_params(**{name: None if most is None else most - model.updates})
    estimator.resume_from(model)
    return model.updates


def _check_same_rows(out: Path, model: Model, rows: Rows) -> None:
    """Refuse rows that the model cannot have been trained on."""
    names = None if model.classes is None else [str(each) for each in model.classes]
    found = [str(each) for each in rows.classes] if names is not None else None
    same = (model.target, names, model.encoding) == (rows.target, found, rows.encoding)
    if not same or model.details.get("rows") != len(rows.y):
        raise ValueError(
            f"the model in {out} was trained on another target, other classes, other columns or "
            "scales, or another number of rows: give the same command as before, or train anew "
            "with --force."
        )


def _check_same_command(out: Path, model: Model, now: dict[str, Any]) -> None:
    """Refuse to go on with anything else asked for than before, such as another objective."""
    before = model.details.get("asked")
    if before is None:
        raise ValueError(
            f"the model in {out} was not made by walklearn train, so what its training was asked "
            "for is not known: go on in Python (resume_from), or train anew with --force."
        )
    for name in (*SAME, "graph"):
        if before.get(name) != now.get(name):
            raise ValueError(
                f"the {name.replace('_', ' ')} of the training in {out} was "
                f"{before.get(name, 'not given')}, and now it is {now.get(name, 'not given')}: "
                "give the same command as before, or train anew with --force."
            )
