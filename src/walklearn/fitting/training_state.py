"""State of an estimator between calls of `fit` or `partial_fit`.

ε and the cap on contributions apply to a row at one node. If a row moves to another node in a later
call, for example because the rows were shuffled, it can contribute from both nodes, and the ledger
would not count that. So a private training stores a keyed mark of each row (`tables.row_marks`) and
refuses rows that moved. Anyone with the key and the marks can test if a row was used. A pickled
estimator therefore contains neither, and cannot continue a private training.
"""

from __future__ import annotations

import secrets
from dataclasses import dataclass, field
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from walklearn.fitting.plan import FitPlan
from walklearn.fitting.request import FitRequest
from walklearn.fitting.units import Units
from walklearn.graphs import Network
from walklearn.models import Model
from walklearn.objectives import Problem
from walklearn.objectives.linear.losses import LOSSES
from walklearn.privacy import Ledger
from walklearn.simulation.batches import Position
from walklearn.tables.row_marks import ROWS_AT_ONCE, Marks, RowBlock, RowMarks, mix_bits
from walklearn.visit import Setting, Token, init_token

Array = NDArray[Any]


@dataclass(frozen=True, eq=False)
class MarkedRows:
    """Sorted marks of all rows so far, and of rows together with their nodes.

    key: the secret key of the marks. are_lost: True after pickling, if there were any marks.

    >>> first = MarkedRows().with_rows(np.array([[1.0], [2.0]]), np.ones(2), np.array([0, 1]))
    >>> first.with_rows(np.array([[2.0], [3.0]]), np.ones(2), np.array([0, 1]))   # 2 was at 1
    Traceback (most recent call last):
        ...
    ValueError: 1 of 2 rows were at other nodes in an earlier call (the first is row 1)...
    """

    rows: Marks = field(default_factory=lambda: np.zeros(0, np.uint64))
    at_nodes: Marks = field(default_factory=lambda: np.zeros(0, np.uint64))
    key: bytes = field(default_factory=partial(secrets.token_bytes, 32), repr=False)
    are_lost: bool = False

    def __reduce__(self) -> Any:
        return partial(MarkedRows, are_lost=self.are_lost or self.rows.size > 0), ()

    def with_rows(self, X: Any, y: Array, owners: Array) -> MarkedRows:
        """Add these rows; refuse a row that was at another node before."""
        from scipy.sparse import csr_array

        if self.are_lost:
            raise ValueError(
                "a private training cannot continue in a copy or after pickling, which drop the "
                "nodes of its rows. Start with a new estimator, which spends ε again."
            )
        marks, rows = RowMarks(self.key), np.zeros(len(y), np.uint64)
        for start in range(0, len(y), ROWS_AT_ONCE):  # a sparse row has the mark of the dense one
            some = slice(start, start + ROWS_AT_ONCE)
            rows[some] = marks.of_block(RowBlock([y[some]], csr_array(X[some])))
        at_nodes = mix_bits(rows + mix_bits(owners.astype(np.uint64)))
        moved = np.flatnonzero(np.isin(rows, self.rows) & ~np.isin(at_nodes, self.at_nodes))
        if moved.size:
            raise ValueError(
                f"{moved.size} of {len(owners)} rows were at other nodes in an earlier call (the "
                f"first is row {moved[0] + 1}), and ε covers one node for each row. Give a row the "
                "same node in every call (nodes=...). Fit equal rows of different people in one "
                "call, or start with a new estimator, which spends ε again."
            )
        return MarkedRows(
            np.union1d(self.rows, rows), np.union1d(self.at_nodes, at_nodes), self.key
        )


@dataclass(eq=False)
class TrainingState:
    """The token, and everything else that one call passes to the next.

    resumed: the model from which the first call starts; None for zeros. token: its arrays include
    the model. request, plan: from the last call. interrupted: True if the user interrupted any
    call. is_spent: True after a private call has continued from this state.
    """

    resumed: Model | None = None
    calls: int = 0
    units: Units | None = None
    network: Network | None = None
    token: Position | None = None
    ledger: Ledger | None = None
    contributions: Array | None = None
    request: FitRequest | None = None
    plan: FitPlan | None = None
    marks: list[Position] = field(default_factory=list)
    interrupted: bool = False
    marked_rows: MarkedRows = field(default_factory=MarkedRows)
    is_spent: bool = False

    def spend(self) -> None:
        """Allow one private call to continue; a second one would contribute past the cap."""
        if self.is_spent:
            raise ValueError(
                "this private training was continued before, by a copy of the estimator or by a "
                "call that failed. Start with a new estimator, which spends ε again."
            )
        self.is_spent = True

    def check_request(self, request: FitRequest) -> None:
        """Refuse settings that would make the claims of earlier calls false."""
        if request.is_private and self.resumed is not None:
            raise ValueError(
                "a private walk cannot start from a trained model, whose contributions are "
                "unknown. Start with a new estimator."
            )
        before = self.request or request
        if before.terms != request.terms and (request.is_private or before.is_private):
            raise ValueError(
                "the protection and its public facts must be the same in every call. Keep those of "
                "the first call, or start with a new estimator."
            )

    def last_token(self, problem: Problem, units: Units) -> Position | None:
        """Return the last token, whose arrays include its model; None before the first call."""
        if self.token is None and self.resumed is not None:
            return _token_of(self.resumed, problem, units)
        return self.token

    def token_for(self, setting: Setting, units: Units) -> Position | None:
        """Return the token to continue with, without stored gradients; None for a new one."""
        token = self.last_token(setting.objective, units)
        if token is None:
            return None
        arrays = init_token(setting).update
        if not setting.update.shares_sum:  # a sum counts contributions that the nodes do not keep
            if self.token is None and "model" not in arrays:
                raise ValueError(
                    f'{setting.update!r} has no array "model" on the token and cannot continue '
                    "from a saved model. Use Saga() or Sgd()."
                )
            carried = {name: token.token.update.get(name, arrays[name]) for name in arrays}
            arrays = setting.update.restart(setting.objective_view, carried, self.calls)
        return token._replace(
            node=token.node % setting.objective.nodes,
            token=token.token._replace(walk={}, update=arrays),
        )


def _token_of(model: Model, problem: Problem, units: Units) -> Position:
    """Return a token with this model, in the units of the training."""
    loss, same_intercept = LOSSES.name_of(problem.loss), model.intercept == units.intercept
    if model.loss != loss or not same_intercept or model.weights.size != problem.size:
        raise ValueError(
            f"the model to continue has {model.weights.size} numbers, the {model.loss} loss and "
            f"{'an' if model.intercept else 'no'} intercept; this fit has {problem.size}, {loss} "
            f"and {'an' if units.intercept else 'no'} intercept. Use the parameters and columns of "
            "the model's training."
        )
    # The model of an estimator with a schema is in the schema's units, those of the training.
    weights = model.weights if units.cut_off is not None else units.to_training(model.weights)
    arrays = {"model": weights.reshape(-1).astype(problem.X.dtype, copy=False)}
    token = Token(0, model.updates, model.updates, {}, arrays)
    return Position(0, token, int(model.details.get("messages", 0)))
