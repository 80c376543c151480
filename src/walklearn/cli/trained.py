"""From a fitted estimator to a model, and what its training revealed, in plain words."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from walklearn.model import Model
from walklearn.privacy.model_noise import ModelNoise
from walklearn.walks import ReleasedWeighted, Simple, Uniform, Weighted

if TYPE_CHECKING:
    from walklearn.files import Rows

LOSS_NAMES = {
    "Logistic": "logistic",
    "Softmax": "softmax",
    "SquaredHinge": "squared-hinge",
    "Squared": "squared",
    "Huber": "huber",
}


def model_of(estimator: Any, rows: Rows, details: dict[str, Any]) -> Model:
    """The model that a walk has trained, with what is known of it."""
    classes = getattr(estimator, "classes_", None)
    loss = estimator.trace_.spec["problem"]["loss"].partition("(")[0]
    return Model(
        estimator.weights_,
        estimator.average_,
        kind="regressor" if classes is None else "classifier",
        loss=LOSS_NAMES[loss],
        columns=rows.encoding,
        classes=classes,
        intercept=estimator.fit_intercept,
        penalty=estimator.penalty,
        updates=estimator.n_iter_,
        uses="last" if estimator.average == "none" else "average",
        target=rows.target,
        walk=_name(estimator.walk_),
        privacy=privacy_of(estimator),
        ledger=estimator.ledger_.to_dict(),
        details=details,
    )


def privacy_of(estimator: Any) -> dict[str, Any]:
    """What is protected, what is not, and what counts as public."""
    protected, exposed = _importance(estimator)
    noise: ModelNoise | None = estimator.model_privacy
    if noise is None:
        exposed.append(
            "The model is not protected: whoever sees the token before and after a visit can work "
            "out the rows of the node (walklearn privacy attack shows it). --model-noise protects "
            "it."
        )
    else:
        protected.append(
            f"What the rows of a node add to the model, by {noise}: each visit is clipped and "
            f"noised, and a node adds at most {noise.max_contributions} times."
        )
    released = isinstance(estimator.walk_.innermost, ReleasedWeighted)
    noisy = noise is not None or released
    if estimator.ledger_.simulated and noisy:
        exposed.append(
            "The noise came from a seed or a simulation, so here it protects nobody; the costs are "
            "those that a network would have."
        )
    exposed.append(
        "Training ran on one machine that saw all rows, and the accuracy and loss that it tells "
        "are computed from them: they are for you, not for publishing."
    )
    return {
        # Of the constants, not of the model, and only if they were released.
        "epsilon_of_constants": estimator.epsilon if released else None,
        "delta_of_constants": estimator.delta if released else None,
        "simulated": bool(estimator.ledger_.simulated),
        "protected": protected,
        "not_protected": exposed,
        "taken_to_be_public": [
            "The graph, the names of columns and classes, declared categories and ranges, how many "
            "rows each node has, and where the token is."
        ],
    }


def _importance(estimator: Any) -> tuple[list[str], list[str]]:
    """What is said of L_i: what of it is protected, and what is not."""
    walk = estimator.walk_.innermost
    if isinstance(walk, ReleasedWeighted):
        low, high = walk.mechanism.bounds
        return [
            f"The constant L_i of every node, released once by {walk.mechanism}: (ε, δ) = "
            f"({estimator.epsilon:g}, {estimator.delta:g}) local differential privacy for all rows "
            f"of the node together, whatever they are, by the public bounds {low:.4g} to "
            f"{high:.4g} (feature bound {estimator.feature_bound:g}). Drawn in double precision, δ "
            f"is at most {_rounded_up(walk.mechanism.release_delta(estimator.epsilon))}."
        ], []
    if isinstance(walk, Weighted):
        return [], [
            "The constant L_i of every node goes to its neighbours in the clear, and it depends on "
            "its rows. --epsilon, --delta and --feature-bound protect it; --walk uniform has none."
        ]
    spent = " Nothing of ε was spent." if estimator.epsilon is not None else ""
    assert isinstance(walk, Uniform | Simple)
    return [f"Nodes tell each other their degree and no constant of their rows.{spent}"], []


def _rounded_up(delta: float) -> str:
    """A bound in ten digits, which is still one.

    >>> _rounded_up(0.03 + 1e-11)
    '0.03000000004'
    """
    return f"{delta * (1 + 1e-9):.10g}"


def _name(walk: Any) -> str:
    """The walk with what it was asked to do, without what was drawn."""
    inner = walk.innermost
    if isinstance(inner, ReleasedWeighted):
        return f"Weighted(privacy={inner.mechanism})"
    return repr(walk)
