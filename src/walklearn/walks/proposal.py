"""A Metropolis step from what a node knows: its neighbours in their order, and what they announced.

A node of a real network sees no graph. It knows its own degree and importance v_i, and of each
neighbour the degree and importance that it announced. That is enough for the paper's walks:

    propose a place in the list of neighbours      from one uniform number
    accept it with min(1, score_j / score_i)       score = v / degree

v is 1 for `Uniform`, the degree for `Simple`, L_i or the released R_i for `Weighted`.
`Metropolis.hop` calls these same functions, so a simulation and a network decide alike. The
neighbours must be in the same order in both: ascending node numbers.

>>> proposal = propose(0.6, degree=3)
>>> proposal.place
1
>>> accepts(proposal, own=score(2.0, 3), theirs=score(1.0, 1))
True
"""

from __future__ import annotations

from typing import NamedTuple


class Proposal(NamedTuple):
    """Which of the neighbours is proposed, and the uniform number that decides on it."""

    place: int
    decider: float


def score(importance: float, degree: int) -> float:
    """v / degree; a node alone in the world counts as if it had one neighbour."""
    return importance / max(degree, 1)


def propose(u: float, degree: int, laziness: float = 0.0) -> Proposal | None:
    """Propose a uniform neighbour; None where the token stays, being lazy or without neighbours."""
    if u < laziness or not degree:
        return None
    return Proposal(*pick((u - laziness) / (1.0 - laziness), degree))


def accepts(proposal: Proposal, own: float, theirs: float) -> bool:
    """Accept with probability min(1, theirs / own), for the scores of the two nodes."""
    return bool(proposal.decider * own <= theirs)


def pick(u: float, choices: int) -> tuple[int, float]:
    """Split u ∈ [0, 1) into one of `choices` places and a fresh uniform number."""
    stretched = u * choices
    place = min(int(stretched), choices - 1)
    return place, stretched - place
