"""What an estimator's parameters must be, checked when it is fitted, as scikit-learn wants it.

A `random_state` makes everything repeatable, the releases too: they then protect nobody, and the
ledger says "simulated". Without one the releases come from the operating system's entropy.

>>> seeds_of(7, call=0).walk.spawn_key, seeds_of(None, call=0).simulated
((0, 1), False)
"""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np

from walklearn.fitting.rounds import Average
from walklearn.objectives.linear.domains import Domain
from walklearn.objectives.linear.losses import LOSSES, Loss, Softmax
from walklearn.objectives.linear.problem import check_penalty
from walklearn.privacy import MECHANISMS, ModelNoise
from walklearn.privacy.limits import check_delta, check_epsilon
from walklearn.privacy.mechanisms.description import IN_THE_CLEAR
from walklearn.privacy.model_noise import check_unit
from walklearn.streams import Streams, generators
from walklearn.tables.schema import Schema
from walklearn.tables.target_scale import TargetScale
from walklearn.updates.saga import Saga
from walklearn.updates.sgd import Sgd
from walklearn.updates.step_choice import EXPONENT
from walklearn.updates.step_sizes import ConstantStep, PowerStep, StepSize
from walklearn.updates.update import UPDATES, Update
from walklearn.wording import as_given

MEANS = ("tail", "all")
AVERAGES = ("auto", *MEANS, "none")


def check_parameters(estimator: Any) -> None:
    """Raise what is wrong with the parameters, whatever the data."""
    given = estimator.get_params(deep=False)
    for name in ("steps", "max_steps", "batch"):
        _check_count(name, given[name])
    if given["tol"] is not None and not (_is_number(given["tol"]) and given["tol"] >= 0):
        raise ValueError(f"tol must be a number of at least 0 or None, got {given['tol']!r}.")
    if given["average"] not in AVERAGES:
        raise ValueError(f"average must be one of {AVERAGES}, got {given['average']!r}.")
    for name in ("fit_intercept", "warm_start"):
        _check_choice(name, given[name], (True, False))
    _check_choice("standardise", given["standardise"], ("auto", True, False))
    if given["domain"] is not None and not isinstance(given["domain"], Domain):
        raise ValueError(
            f"domain must be None or a domain such as domains.Ball(10.0), got "
            f"{as_given(given['domain'])}."
        )
    check_penalty(given["penalty"])
    step_of(given["step_size"])
    _check_update(given["update"], given["step_size"], given["average"])
    _check_privacy(given)
    _check_target(estimator)


def target_of(estimator: Any) -> TargetScale | None:
    """The public centre and spread of the target; None where they are not given.

    A y with a name, such as a column of a data frame, may have them in the schema.
    """
    centre, spread = estimator.target_centre, estimator.target_spread
    if spread is not None:
        return TargetScale(float(centre), float(spread))
    if estimator.schema is None or estimator._target_name is None:
        return None
    return Schema.of(estimator.schema).target_scale(estimator._target_name)


def step_of(step_size: Any) -> StepSize | None:
    """A step size as it is, a number as the constant of steps like those found without one."""
    if step_size is None or isinstance(step_size, PowerStep | ConstantStep):
        return step_size
    if _is_number(step_size):
        return PowerStep(float(step_size), EXPONENT)
    raise ValueError(
        f"step_size must be None, a number (the constant c of c / k^{EXPONENT}), a PowerStep or a "
        f"ConstantStep, got {step_size!r}."
    )


def update_of(estimator: Any, private: bool, partial: bool) -> Update | None:
    """Return the update that is given, or the default; None for `Sgd` with a step to be chosen.

    The default is Saga, unless something is private, rows come as a stream, or a step size or an
    average is given.
    """
    update = estimator.update
    if update == "auto":
        gives_steps = estimator.step_size is not None or estimator.average in MEANS
        return None if private or partial or gives_steps else Saga()
    if update == Sgd.name:
        return None
    chosen: Update = UPDATES.by_name(update)() if isinstance(update, str) else update
    if partial and chosen.converges:
        raise ValueError(
            f"partial_fit takes gradient steps on a stream of rows, and {chosen!r} converges on "
            'fixed rows only. Leave update at "auto", or call fit.'
        )
    if private and (chosen.discloses or chosen.needs):
        raise ValueError(
            f"update={update!r} stores gradients and curvature, which the token would carry "
            'unprotected. Leave update at "auto", or drop what is private.'
        )
    return chosen


def average_of(estimator: Any, update: Update) -> Average:
    """Whether w̄ predicts or w; steps that ε has chosen are short, so that w̄ would lag behind."""
    if not getattr(update, "average", False):
        return "none"
    if estimator.average != "auto":
        chosen: Average = estimator.average
        return chosen
    return "tail" if estimator.epsilon is None or estimator.model == IN_THE_CLEAR else "none"


def _check_update(update: Any, step_size: Any, average: str) -> None:
    if isinstance(update, str) and update != "auto":
        UPDATES.by_name(update)
    elif not isinstance(update, str | Update):
        raise ValueError(
            f'update must be "auto", one of {", ".join(UPDATES.names)}, or an update such as '
            f"updates.Saga(), got {as_given(update)}."
        )
    if step_size is not None and update not in ("auto", Sgd.name):
        raise ValueError(
            f"step_size is for the paper's update and would say nothing to update={update!r}: "
            "leave it out, or give the update its own, such as updates.Saga(ConstantStep(0.1))."
        )
    if average in MEANS and not (update in ("auto", Sgd.name) or getattr(update, "average", False)):
        raise ValueError(
            f"average={average!r} is for the paper's update: of update={update!r} the last model "
            "is the one that arrives. Leave average out."
        )


class Seeds(NamedTuple):
    """Seeds for the graph and the walk, and what draws the releases (None: the system)."""

    graph: np.random.SeedSequence
    walk: np.random.SeedSequence
    release: np.random.Generator | None
    simulated: bool

    @property
    def streams(self) -> Streams:
        """What the walk draws from."""
        return generators(self.walk)


def seeds_of(random_state: Any, call: int) -> Seeds:
    """The seeds of call number `call`, from an integer, a RandomState, a Generator or None."""
    simulated = random_state is not None
    if random_state is None:
        root = np.random.SeedSequence()
    elif isinstance(random_state, np.random.RandomState):
        root = np.random.SeedSequence(random_state.randint(2**32, size=4, dtype=np.uint64).tolist())
    elif isinstance(random_state, np.random.Generator):
        root = np.random.SeedSequence(random_state.integers(2**32, size=4).tolist())
    elif isinstance(random_state, int | np.integer) and random_state >= 0:
        root = np.random.SeedSequence(int(random_state), spawn_key=(call,))
    else:
        raise ValueError(
            "random_state must be None, a whole number of at least 0, a RandomState or a "
            f"Generator, got {random_state!r}."
        )
    graph, walk, release = root.spawn(3)
    return Seeds(graph, walk, np.random.default_rng(release) if simulated else None, simulated)


def loss_of(loss: Any, classes: int | None) -> Loss:
    """The loss that tells so many classes apart, or of numbers (None), given by name or itself.

    A loss of numbers also tells two classes apart, but has to be given itself for that.
    """
    numbers = classes is None
    takes, default = (("number",), "squared") if numbers else (("sign", "class"), "logistic")
    chosen = default if loss is None else loss
    if chosen == "logistic" and classes is not None and classes > 2:
        chosen = Softmax()
    if isinstance(chosen, str) and chosen in LOSSES and LOSSES[chosen].takes in takes:
        chosen = LOSSES[chosen]()
    if not isinstance(chosen, Loss) or (numbers and chosen.takes != "number"):
        kind, such = ("regressor", "Huber(10.0)") if numbers else ("classifier", "SquaredHinge()")
        names = ", ".join(name for name, known in LOSSES.items() if known.takes == takes[0])
        raise ValueError(
            f"there is no such loss for a {kind}: choose {names}, or a loss such as losses.{such}, "
            f"got {as_given(loss)}."
        )
    if classes is None:
        return chosen
    if (classes > 2) != (chosen.takes == "class"):
        raise ValueError(
            f"{chosen!r} does not tell {classes} classes apart. Use the logistic loss, which is "
            "softmax for more than two."
        )
    return chosen.for_classes(classes)


def _check_privacy(given: dict[str, Any]) -> None:
    epsilon, delta, bound = given["epsilon"], given["delta"], given["feature_bound"]
    for name in ("row_length", "feature_bound", "max_rows", "total_rows"):
        value = given[name]
        if value is not None and not (_is_number(value) and 0.0 < value < math.inf):
            raise ValueError(f"{name} must be a positive number or None, got {value!r}.")
    for name, value, check in (("epsilon", epsilon, check_epsilon), ("delta", delta, check_delta)):
        if value is not None:  # a walk that releases nothing would not look at them
            if not _is_number(value):
                raise ValueError(f"{name} must be a number or None, got {value!r}.")
            check(value)
    MECHANISMS.by_name(given["mechanism"])
    if given["model_privacy"] is not None and type(given["model_privacy"]) is not ModelNoise:
        raise ValueError(
            "model_privacy must be a privacy.ModelNoise itself, because nothing can be claimed for "
            f"another class, got {type(given['model_privacy']).__name__}."
        )
    check_unit(given["protect"])
    _check_choice("model", given["model"], (None, IN_THE_CLEAR))
    if epsilon is None and (
        (delta is not None and given["model_privacy"] is None) or given["model"] is not None
    ):
        lonely = "model" if given["model"] is not None else "delta"
        raise ValueError(f"{lonely} goes with epsilon: pass epsilon, too.")
    if epsilon is not None and given["model_privacy"] is not None:
        raise ValueError(
            "epsilon is the total for everything that leaves a node, the model included, and the "
            "noise on the model follows from it. Leave out epsilon and delta, or your own "
            "ModelNoise (model_privacy, --model-noise)."
        )
    if epsilon is not None and delta is None:
        raise ValueError(
            f"epsilon = {epsilon:g} needs delta: what is claimed is a pair. Pass delta, which "
            "should be small beside 1 / (number of rows), such as 1e-5."
        )
    _check_cap(given)
    if epsilon is None or given["model"] is not None:
        return
    if not delta:
        raise ValueError("Gaussian noise on the model never gives delta = 0: such as 1e-5 will do.")
    if given["schema"] is None and given["row_length"] is None and bound is None:
        raise ValueError(
            f"epsilon = {epsilon:g} needs public facts about the rows, and what is taken from the "
            "rows would leak. Declare what is typical of the columns by schema={'*': {'centre': 0, "
            "'spread': 1}}; or, where rows are in such units, pass row_length, how long they "
            "typically are; or feature_bound, a length that rows are shortened to."
        )


def _check_target(estimator: Any) -> None:
    """Refuse half of a target's scale, a useless one, and noise for numbers without one."""
    centre, spread = estimator.target_centre, estimator.target_spread
    is_number = estimator._predicts_numbers
    if (centre is None) != (spread is None):
        one, other = ("target_centre", "target_spread")[:: 1 if spread is None else -1]
        raise ValueError(f"{one} was given without {other}. Pass both.")
    if spread is not None:
        if not is_number:
            raise ValueError(
                "target_centre and target_spread are for RandomWalkRegressor: classes have no "
                "scale. Leave them out."
            )
        if not (_is_number(centre) and _is_number(spread)):
            raise ValueError(
                f"target_centre and target_spread must be numbers, got {centre!r} and {spread!r}."
            )
    scale, epsilon, by_hand = target_of(estimator), estimator.epsilon, estimator.model_privacy
    is_private = epsilon is not None or by_hand is not None
    if scale is not None and (spread is not None or is_private):
        scale.check_intercept(bool(estimator.fit_intercept), "Pass fit_intercept=True")
    if scale is None and is_number and is_private and estimator.model is None:
        asked = "model_privacy" if epsilon is None else "epsilon"
        raise ValueError(
            f"{asked} for regression needs a public centre and spread of the target, for the noise "
            "is made for targets of spread 1. Pass target_centre, a typical target, and "
            "target_spread, how far targets typically are from it, both known without looking at "
            "the rows."
        )


def _check_cap(given: dict[str, Any]) -> None:
    """Refuse a cap on the rows of a node where it would look as if it hid their number."""
    noise = given["model_privacy"]
    unit = given["protect"] if noise is None else noise.protect
    asked = given["epsilon"] is not None or noise is not None
    if asked and unit == "rows" and given["max_rows"] is not None and given["total_rows"] is None:
        raise ValueError(
            "max_rows does not hide how many rows a node has where rows are the unit: their "
            'number shows in what the node adds. Pass protect="node", which hides it; or '
            "total_rows too, for public bounds; or leave max_rows out."
        )


def _check_count(name: str, value: Any) -> None:
    if value is None:
        return
    if not isinstance(value, int | np.integer) or isinstance(value, bool) or value < 1:
        raise ValueError(f"{name} must be a whole number of at least 1 or None, got {value!r}.")


def _check_choice(name: str, value: Any, choices: tuple[Any, ...]) -> None:
    if not any(value is choice or (value == choice and isinstance(value, str | bool | np.bool_))
               for choice in choices):  # fmt: skip
        raise ValueError(f"{name} must be one of {choices}, got {value!r}.")


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float | np.integer | np.floating) and not isinstance(value, bool)
