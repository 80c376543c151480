"""The page of one node: what it knows of the walk and of its neighbours, for its owner's eyes.

It shows the node's status and nothing of its rows. A loss is shown only on a validation file that
the owner says is public: on the node's own rows it would tell of them to whoever looks.
"""

from __future__ import annotations

import os
import time
from collections import deque
from typing import Any

from walklearn.node.agreement.node_rows import read_node_rows
from walklearn.node.agreement.plan import Plan
from walklearn.node.process.live_page import LivePage
from walklearn.node.protocol.tokens import Token
from walklearn.objectives.linear.rows import scores

_RATE_SECONDS = 10.0
_MAX_LOSSES = 2000


class Validation:
    """The mean loss of models on the rows of a public file, without the penalty.

    A target that is a number is scaled as the plan's target_scale says.
    """

    def __init__(self, path: str | os.PathLike[str], plan: Plan) -> None:
        self._rows, self._loss = read_node_rows(path, plan), plan.training_loss

    def __call__(self, token: Token) -> float:
        """Return the mean loss of this token's model."""
        values = self._loss.value(scores(self._rows.X, token.model), self._rows.y)
        return float(values.mean())


class NodePage:
    """Content of a node's page. Use `page` as a context manager to serve it."""

    def __init__(self, port: int = 0, validation: Validation | None = None) -> None:
        self._validation = validation
        self._seen: deque[tuple[float, int]] = deque()
        self._losses: list[tuple[int, float]] = []
        self._now: dict[str, Any] | None = None
        self.page = LivePage("node", self._first, port=port)

    def show(self, status: dict[str, Any], newest: Token | None) -> None:
        """Let the browsers see the node as it is now. newest: the newest model that it has."""
        self._now = {**status, "rate": self._rate(status["updates"])}
        self.page.publish({**self._now, "loss": self._new_loss(newest)})

    def _first(self) -> dict[str, Any]:
        losses = self._losses
        return {"now": self._now, "losses": losses[:: 1 + len(losses) // _MAX_LOSSES]}

    def _rate(self, updates: int) -> float | None:
        """Updates a second, by the models that came here of late."""
        now = time.monotonic()
        self._seen.append((now, updates))
        while now - self._seen[0][0] > _RATE_SECONDS:
            self._seen.popleft()
        (then, before) = self._seen[0]
        return None if now - then < 1.0 else (updates - before) / (now - then)

    def _new_loss(self, newest: Token | None) -> tuple[int, float] | None:
        if self._validation is None or newest is None:
            return None
        if self._losses and self._losses[-1][0] == newest.updates:
            return None
        self._losses.append((newest.updates, self._validation(newest)))
        return self._losses[-1]
