"""Covering walks: they visit every node again after a bounded number of hops.

    OldestFirst   the neighbour that the token visited least recently    a gap is below 10 N hops
    Tour          depth-first rounds over all nodes                      at most 4 N − 6 hops

The bounds hold on every connected graph in which all neighbours answer. Alone, the rule "least
recently visited node" can take exponential time (Akash et al., arXiv 1603.05944); a chain of
six-node gadgets shows it. So an overdue round of `OldestFirst` ends with a depth-first search.
The walks are not Markov chains over the nodes, and their stationary distributions are unknown.
Gap weights make every node count equally.
"""

from __future__ import annotations

from typing import Any, ClassVar, Literal

import numpy as np

from walklearn.arrays import Arrays, ArraySpec, Specs, Vector, with_entry
from walklearn.checks import check_choice
from walklearn.walks.gap_weights import gap_weight
from walklearn.walks.metropolis import pick
from walklearn.walks.view import Hop, View
from walklearn.walks.walk import WALKS, Walk

MAX_NODES = 65_536  # beyond this, stamps are longer than most models
MAX_VISITS = 2**31 - 1  # the largest stamp
OVERDUE, SEARCH = 3, 2  # hops per node until a round is overdue, and after which a search ends


@WALKS.register
class OldestFirst(Walk):
    """The neighbour that the token visited least recently; every node within 10 N hops.

    The token carries the number of its last visit to each node, 4 N bytes. Neighbours that it never
    visited come first, and ties are broken at random. If a round, in which every node is visited,
    takes 3 N hops, a depth-first search completes it. Gradients have gap weights. At most 65,536
    nodes.

    Examples
    --------
    >>> import walklearn as wl
    >>> X, y = wl.datasets.two_gaussians(30, dimension=3, seed=1)
    >>> run = wl.simulate(wl.Problem(X, y, penalty=1.0), wl.graphs.ring(30), "oldest-first",
    ...                   step_size=wl.PowerStep(0.1), steps=90, seed=1)
    >>> run.visits.min(), run.visits.max()
    (np.int64(3), np.int64(3))
    """

    name: ClassVar[str] = "oldest-first"
    compiled: ClassVar[str | None] = "oldest-first"
    reversible: ClassVar[bool] = False
    declared_sent_length: ClassVar[int | None] = 0
    reweight: ClassVar[str] = "gap"

    def token_arrays(self, nodes: int) -> Specs:
        """The last visit to each node, from 1; the visit that began the round; True in a search."""
        return (
            ArraySpec("stamps", (nodes,), "<i4"), ArraySpec("start", (), "<i4"),
            ArraySpec("strict", (), "|b1"),
        )  # fmt: skip

    def node_arrays(self, tokens: int) -> Specs:
        """For each token the parent in its last search here, and the start of that search."""
        return ArraySpec("parent", (tokens,), "<i4"), ArraySpec("start", (tokens,), "<i4")

    def coverage_bounds(self, nodes: int) -> tuple[float, float]:
        """A round takes at most 5 N − 2 hops, and two successive rounds contain every gap."""
        return 5 * nodes - 2, 2 * (5 * nodes - 2)

    def check_run(self, nodes: int, update: Any, updates: int) -> None:
        """Refuse networks and runs whose stamps would be too long."""
        if nodes > MAX_NODES:
            raise ValueError(
                f"OldestFirst() carries a number for each of the {nodes:,} nodes; at most "
                f"{MAX_NODES:,} are allowed. Use walks.Tour(), which carries a bit for each."
            )
        if updates > MAX_VISITS:
            raise ValueError(
                f"OldestFirst() counts at most {MAX_VISITS:,} visits, and {updates:,} updates are "
                "planned. Plan fewer, or use walks.Tour()."
            )

    def weight(self, view: View, token: Arrays, state: Arrays) -> float:
        """Return the gap weight."""
        return gap_weight(view, token["stamps"][view.node])

    def hop(self, view: View, token: Arrays, state: Arrays, draws: Vector) -> Hop:
        """Choose the oldest neighbour; in a search the oldest unvisited one, or the parent."""
        i, slot, choices, stamps = view.node, view.slot, view.neighbours, token["stamps"]
        k, strict = view.visits + 1, bool(token["strict"])
        start = int(token["start"]) or k  # a round begins with the first visit
        if strict and stamps[i] < start:  # entered by the search; the newest stamp is the sender's
            state = {
                "parent": with_entry(state["parent"], slot, stamps.argmax()),
                "start": with_entry(state["start"], slot, start),
            }
        stamps = with_entry(stamps, i, k)
        if stamps.min() >= start:  # the round is complete
            start, strict = k, False
        elif k - start >= (SEARCH if strict else OVERDUE) * view.nodes:
            # Overdue: search depth-first from here. A search ends sooner, unless states are wrong.
            start, strict = k, not strict
        if strict:
            unvisited, parent = choices[stamps[choices] < start], state["parent"][slot]
            if len(unvisited):
                choices = unvisited
            elif state["start"][slot] == start and parent in choices:
                choices = np.array([parent])
            else:  # without a parent that answers the search ends, so no state traps the token
                start, strict = k, False
        token = {"stamps": stamps, "start": np.array(start, "<i4"), "strict": np.array(strict)}
        if not len(choices):  # no neighbour answers
            return Hop(i, 0, token, state)
        oldest = choices[stamps[choices] == stamps[choices].min()]
        return Hop(int(oldest[pick(draws[0], len(oldest))[0]]), 1, token, state)


@WALKS.register
class Tour(Walk):
    """Depth-first rounds, with one bit per node on the token; every node within 4 N − 6 hops.

    The token goes to a random unvisited neighbour, else back to the parent. When all nodes are
    visited, the next round begins with another visit to the last new node.

    Parameters
    ----------
    reweight
        "gap" for gap weights. "round" gives weight 1 at the first visit of a round and 0 at others,
        for updates that need rounds.

    Examples
    --------
    >>> import walklearn as wl
    >>> X, y = wl.datasets.two_gaussians(30, dimension=3, seed=1)
    >>> run = wl.simulate(wl.Problem(X, y, penalty=1.0), wl.graphs.star(30), wl.walks.Tour(),
    ...                   step_size=wl.PowerStep(0.1), steps=580, seed=1)
    >>> run.visits.min() >= 10
    np.True_
    """

    name: ClassVar[str] = "tour"
    compiled: ClassVar[str | None] = "tour"
    reversible: ClassVar[bool] = False
    declared_sent_length: ClassVar[int | None] = 0
    reweight: Literal["gap", "round"] = "gap"

    def __post_init__(self) -> None:
        check_choice("reweight", self.reweight, ("gap", "round"))

    @property
    def is_compiled(self) -> bool:
        """True for gap weights: kernels make an update at every visit."""
        return super().is_compiled and self.has_gap_weights

    @property
    def has_rounds(self) -> bool:
        """True if every node has weight 1 once per round."""
        return self.reweight == "round"

    def token_arrays(self, nodes: int) -> Specs:
        """A bit for each node visited in this round, the number of the round, and the sender."""
        return (
            ArraySpec("bits", ((nodes + 7) // 8,), "|u1"), ArraySpec("round", (), "<i4"),
            ArraySpec("previous", (), "<i4"),
        )  # fmt: skip

    def node_arrays(self, tokens: int) -> Specs:
        """For each token its last visit here, its last round here, and the parent in that round."""
        return tuple(ArraySpec(name, (tokens,), "<i4") for name in ("last", "round", "parent"))

    def coverage_bounds(self, nodes: int) -> tuple[float, float]:
        """A round takes at most 2 N − 3 hops, a gap 4 N − 6; with two nodes a gap takes 3."""
        return max(2 * nodes - 3, 0), max(4 * nodes - 6, 3)

    def check_run(self, nodes: int, update: Any, updates: int) -> None:
        """Refuse rounds for an update that does not need them, and visits beyond the last."""
        if self.has_rounds and "has_rounds" not in update.needs:
            raise ValueError(
                f"{update!r} does not use rounds, so {self!r} would leave out most of its "
                "gradients. Use walks.Tour()."
            )
        if updates > MAX_VISITS:
            raise ValueError(
                f"{self!r} counts at most {MAX_VISITS:,} visits, and {updates:,} updates are "
                "planned. Plan fewer."
            )

    def weight(self, view: View, token: Arrays, state: Arrays) -> float:
        """Return the gap weight, or 1 at the first visit of a round and 0 otherwise."""
        if self.has_rounds:
            return 1.0 - float(np.unpackbits(token["bits"])[view.node])
        return gap_weight(view, state["last"][view.slot])

    def hop(self, view: View, token: Arrays, state: Arrays, draws: Vector) -> Hop:
        """Choose a random unvisited neighbour, else the parent; stay at the end of a round."""
        i, slot, neighbours = view.node, view.slot, view.neighbours
        bits = np.unpackbits(token["bits"], count=view.nodes)
        state, is_root = {**state, "last": with_entry(state["last"], slot, view.visits + 1)}, False
        if not bits[i]:
            is_root = not bits.any()  # and has no parent
            parent = -1 if is_root else token["previous"]
            state["round"] = with_entry(state["round"], slot, token["round"])
            state["parent"] = with_entry(state["parent"], slot, parent)
        bits[i] = 1
        unvisited, parent = neighbours[bits[neighbours] == 0], state["parent"][slot]
        if is_root and len(unvisited) > 1:  # do not go straight back
            unvisited = unvisited[unvisited != token["previous"]]
        has_parent = state["round"][slot] == token["round"] and parent in neighbours
        if bits.all() or not (len(unvisited) or has_parent):
            # The round is complete, or no neighbour can continue it: begin the next one here.
            next_round = np.array(token["round"] + 1, "<i4")
            return Hop(i, 0, {**token, "bits": 0 * token["bits"], "round": next_round}, state)
        j = unvisited[pick(draws[0], len(unvisited))[0]] if len(unvisited) else parent
        token = {**token, "bits": np.packbits(bits), "previous": np.array(i, "<i4")}
        return Hop(int(j), 1, token, state)
