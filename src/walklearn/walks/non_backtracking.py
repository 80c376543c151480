"""A Metropolis walk that avoids going straight back to the previous node."""

from __future__ import annotations

from typing import ClassVar

import numpy as np

from walklearn.arrays import Arrays, ArraySpec, Specs, Vector
from walklearn.walks.composed import ComposedWalk
from walklearn.walks.metropolis import pick
from walklearn.walks.view import Hop, View
from walklearn.walks.walk import WALKS


@WALKS.register
class NonBacktracking(ComposedWalk):
    """A Metropolis walk that avoids going straight back (Lee, Xu & Eun 2012, MHDA).

    After an accepted move back to the previous node there is a second proposal among the other
    neighbours, accepted with min(1, (a(i, j') / a(i, j))²). The stationary distribution is that of
    `walk`. The states of the chain are pairs (previous node, node), so it has no
    transition matrix over nodes and is not reversible.

    Parameters
    ----------
    walk
        The walk that it improves; by default `Uniform()`.

    Examples
    --------
    >>> from walklearn import graphs, walks
    >>> NonBacktracking(walks.Uniform()).stationary(graphs.star(4)).tolist()
    [0.25, 0.25, 0.25, 0.25]
    """

    name: ClassVar[str] = "non-backtracking"
    compiled: ClassVar[str | None] = "non-backtracking"
    reversible: ClassVar[bool] = False

    @property
    def draws(self) -> int:
        """One more than the inner walk, for the second proposal."""
        return self.walk.draws + 1

    def token_arrays(self, nodes: int) -> Specs:
        """1 + the node before the last move (0 at the start), and the arrays of the inner walk."""
        return (*super().token_arrays(nodes), ArraySpec("sender", (), "<i8"))

    def hop(self, view: View, token: Arrays, state: Arrays, draws: Vector) -> Hop:
        """Make a Metropolis hop; one that goes straight back may be redirected."""
        previous, neighbours = int(token["sender"]) - 1, view.neighbours
        inner_token = {name: array for name, array in token.items() if name != "sender"}
        first = self.walk.hop(view, inner_token, state, draws[:-1])
        if first.messages == 0:
            return first._replace(token={**first.token, "sender": token["sender"]})
        token = {**first.token, "sender": np.array(view.node + 1)}
        if first.node != previous or len(neighbours) < 2:
            return first._replace(token=token)
        indices = np.flatnonzero(neighbours != previous)
        index, p = pick(draws[-1], len(indices))
        index, previous_index = int(indices[index]), int(np.searchsorted(neighbours, previous))
        # a(i, j') / a(i, j), both capped at 1, times score_i above and below
        score = view.own_announcement[0]
        ratio = min(score, view.announced[index][0]) / min(score, view.announced[previous_index][0])
        node = int(neighbours[index]) if p <= ratio * ratio else first.node
        return first._replace(node=node, token=token)
