"""What an estimator keeps from one call of `fit` or `partial_fit` to the next."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from numpy.typing import NDArray

from walklearn.fitting.places import Places
from walklearn.fitting.terms import Terms
from walklearn.fitting.units import Units
from walklearn.graphs import Network
from walklearn.models import Model
from walklearn.objectives import Problem
from walklearn.objectives.linear.losses import LOSSES
from walklearn.privacy import Allotment, Ledger, Mechanism
from walklearn.simulation.batches import Position
from walklearn.visit import Setting, Token, init_token

Array = NDArray[Any]


@dataclass(eq=False)
class State:
    """What a token takes from one call to the next.

    resumed: the model that the first call begins with, if not with zeros.
    mechanism: the one that the walk brought itself. interrupted: whether any call was, by hand.
    is_spent: True once a private call has continued from here.
    """

    resumed: Model | None = None
    calls: int = 0
    units: Units | None = None
    network: Network | None = None
    token: Position | None = None
    ledger: Ledger | None = None
    contributions: Array | None = None
    terms: Terms | None = None
    mechanism: Mechanism | None = None
    allotted: Allotment | None = None
    marks: list[Position] = field(default_factory=list)
    interrupted: bool = False
    places: Places = field(default_factory=Places)
    is_spent: bool = False

    def spend(self) -> None:
        """Let one private call continue from here: a second one would contribute past the cap."""
        if self.is_spent:
            raise ValueError(
                "this private training was continued before, by a copy of the estimator or by a "
                "call that failed, and its contributions to the model are not known here. Start "
                "with a new estimator, which spends ε again."
            )
        self.is_spent = True

    def check_terms(self, terms: Terms, mechanism: Mechanism | None, private: bool) -> None:
        """Refuse terms under which what was claimed of earlier calls would not hold.

        mechanism: the one that the walk brings itself.
        """
        if private and self.resumed is not None:
            raise ValueError(
                "a private walk cannot begin with a model that was trained before: how often the "
                "rows of each node have shown in it is not known, so that what is claimed of them "
                "could not hold. Begin with a new estimator."
            )
        before = self.terms
        if before is None or (before, self.mechanism) == (terms, mechanism):
            return
        claimed = before.epsilon is not None or before.model_privacy is not None
        if private or claimed or self.mechanism is not None:
            raise ValueError(
                "what is protected, and the public facts that it rests on, must stay as they were "
                "in the first call: begin with a new estimator."
            )

    def token_for(self, setting: Setting, units: Units) -> Position | None:
        """Return the token to continue with, at a node of this call; None for a new one.

        The gradients of earlier rows that it stores are dropped.
        """
        token = self.token
        if token is None and self.resumed is not None:
            if all(spec.name != "model" for spec in setting.token_specs[1]):
                raise ValueError(
                    f'{setting.update!r} has no array "model" on the token, so it cannot continue '
                    "from a saved model."
                )
            token = _token_of(self.resumed, setting.objective, units)
        if token is None:
            return None
        carried = init_token(setting).update | token.token.update
        arrays = {spec.name: carried[spec.name] for spec in setting.token_specs[1]}
        arrays = setting.update.restart(setting.visible, arrays, self.calls)
        return token._replace(
            node=token.node % setting.objective.nodes,
            token=token.token._replace(walk={}, update=arrays),
        )


def _token_of(model: Model, problem: Problem, units: Units) -> Position:
    """The token that carried this model, in the units that are trained in."""
    loss, same_intercept = LOSSES.name_of(problem.loss), model.intercept == units.intercept
    if model.loss != loss or not same_intercept or model.weights.size != problem.size:
        raise ValueError(
            f"the model to go on from has {model.weights.size} numbers, the {model.loss} loss and "
            f"{'an' if model.intercept else 'no'} intercept; here they are {problem.size}, {loss} "
            f"and {'an' if units.intercept else 'no'} intercept. Give the parameters and the "
            "columns that it was trained with."
        )
    # The model of an estimator with a schema is in the schema's units, those to train in.
    weights = model.weights if units.cut_off is not None else units.forth(model.weights)
    arrays = {"model": weights.reshape(-1).astype(problem.X.dtype, copy=False)}
    token = Token(0, model.updates, model.updates, {}, arrays)
    return Position(0, token, int(model.details.get("messages", 0)))
