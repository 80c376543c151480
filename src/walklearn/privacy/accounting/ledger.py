"""Ledger of all releases of each node, and of their total cost.

The ledger has one count per node for every kind of release. `composition` turns a node's counts
into its total: all releases of the node together are (ε, δ) private. A constant is released only
once, because neighbours could average the noise of several draws away. So a second release of the
same constant is refused, unless `again=True` charges it as well. A node contributes to the
model up to the cap of its `ModelNoise`. Unprotected releases are recorded too: they make the total
infinite.

With a budget (ε, δ), a charge that would take any node past it is refused as a whole.

>>> from walklearn.privacy.mechanisms import Laplace
>>> ledger = Ledger(nodes=3, budget=(1.5, 0.0))
>>> ledger.charge("importance", Laplace(scale=7.0, bounds=(1.0, 10.0)))
>>> round(ledger.total(node=0, delta=0.0), 12)
1.285714285714
>>> ledger.charge("importance", Laplace(scale=7.0, bounds=(1.0, 10.0)), nodes=[2], again=True)
Traceback (most recent call last):
    ...
walklearn.privacy.accounting.ledger.BudgetExceededError: importance by Laplace(scale=7, bounds=(1,
10)) would take node 2 to ε = 2.572, past the budget of ε = 1.5 at δ = 0: spent 1.286, remaining
0.2142.
>>> print(ledger)
3 nodes, budget ε = 1.5 at δ = 0, ε for all rows of a node together
what        mechanism                        nodes  times  ε at δ = 0
importance  Laplace(scale=7, bounds=(1, 10))     3      1       1.286
all         node 0                                              1.286
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from walklearn.checks import check_whole
from walklearn.privacy.accounting.claim import Claim
from walklearn.privacy.accounting.composition import Charge, Release, compose
from walklearn.privacy.accounting.printing import format_lower, format_upper
from walklearn.privacy.limits import DEFAULT_DELTA, check_delta, check_epsilon
from walklearn.privacy.mechanisms.description import (
    IN_THE_CLEAR,
    check_accounted,
    describe,
    from_description,
)
from walklearn.privacy.mechanisms.mechanism import Mechanism
from walklearn.privacy.model_noise import ModelNoise, Unit
from walklearn.wording import align_columns, format_times, plural

Counts = NDArray[np.int64]
Kind = tuple[str, Release | None]

SEEDED = "No privacy claim: the noise was drawn from a seed."
_UNITS: dict[Unit, str] = {"rows": "one row of a node", "node": "all rows of a node together"}


class AlreadyReleasedError(ValueError):
    """A node has already released this constant, or contributed to the model up to its cap.

    Parameters
    ----------
    message
        The message for the user.
    node
        The node that may not release again.
    """

    def __init__(self, message: str, node: int = 0) -> None:  # defaults: unpickling needs them
        super().__init__(message)
        self.node = node


class BudgetExceededError(ValueError):
    """A charge would take a node past its budget.

    Parameters
    ----------
    message
        The message for the user.
    node
        The node that would be charged.
    spent, remaining
        The ε that the node has spent and that is left, at the budget's δ.
    """

    def __init__(
        self, message: str, node: int = 0, spent: float = 0.0, remaining: float = 0.0
    ) -> None:
        super().__init__(message)
        self.node, self.spent, self.remaining = node, spent, remaining


class Ledger:
    """Record of all releases of each node so far, and of their total cost.

    Parameters
    ----------
    nodes
        The number of nodes.
    budget
        (ε, δ) that no node may exceed.
    simulated
        True if the noise came from a seed: the costs are then those that a network would have,
        and nobody is protected.
    """

    def __init__(
        self, nodes: int, budget: tuple[float, float] | None = None, simulated: bool = False
    ) -> None:
        self.nodes = check_whole("nodes", nodes)
        self.budget = None if budget is None else _check_budget(budget)
        self.simulated = bool(simulated)
        self._counts: dict[Kind, Counts] = {}
        self.notes: list[str] = []

    def charge(
        self,
        what: str,
        mechanism: Release,
        nodes: ArrayLike | None = None,
        times: ArrayLike = 1,
        again: bool = False,
    ) -> None:
        """Record releases of `what` (such as "L_i" or "model") by some nodes, all of them or none.

        `nodes` are by default all; a node that is listed twice counts twice. `times` is one number,
        or one for each of the nodes. `again` pays for a second release of a constant, which is an
        `AlreadyReleasedError` otherwise, as is a contribution past `max_contributions`. Spending
        more than the budget is a `BudgetExceededError`.
        """
        if not isinstance(mechanism, Mechanism | ModelNoise):
            raise ValueError(
                f"a charge needs a mechanism or ModelNoise, got {mechanism!r}. Use "
                "record_unprotected for a release without protection."
            )
        check_accounted(mechanism)
        added = self._spread(nodes, times)
        if isinstance(mechanism, ModelNoise) or not again:
            self._refuse_too_many(what, mechanism, added)
        self._add((_check_name(what), mechanism), added)

    def record_unprotected(self, what: str, nodes: ArrayLike | None = None) -> None:
        """Record an unprotected release by some nodes, by default all: their ε becomes infinite."""
        self._add((_check_name(what), None), self._spread(nodes, 1))

    def charges(self, node: int) -> list[Charge]:
        """Return all releases of a node; the mechanism of an unprotected one is None."""
        if not isinstance(node, int | np.integer) or not 0 <= node < self.nodes:
            raise ValueError(f"there is no node {node!r}: nodes are 0..{self.nodes - 1}.")
        return _charges_of(self._counts, int(node))

    def total(self, node: int, delta: float) -> float:
        """Return an upper bound on ε of all releases of a node; it is exact for a single release.

        It is infinite if a release is unprotected.
        """
        return compose(self.charges(node)).epsilon(delta)

    def largest_total(self, delta: float) -> tuple[int, float]:
        """Return the node with the largest total ε at this δ, and that total."""
        nodes = _find_maximal(list(self._counts.values())) if self._counts else [0]
        return max(((node, self.total(node, delta)) for node in nodes), key=lambda pair: pair[1])

    @property
    def claims(self) -> tuple[Claim, ...]:
        """The claim for all releases of a node; empty without releases, or with a seed."""
        return () if self.has_seeded_noise or not self._counts else (self.claim(),)

    @property
    def has_seeded_noise(self) -> bool:
        """True if the noise was drawn from a seed, so that everybody can draw it again."""
        return self.simulated and self.unit is not None

    def claim(self, delta: float | None = None) -> Claim:
        """Return the claim for all releases of a node; ε is infinite without protection.

        δ is by default that of the budget, or 1e-5. Noise from a seed protects nobody.
        """
        claim = self.claim_without_seed(delta)
        return replace(claim, epsilon=math.inf) if self.has_seeded_noise else claim

    def claim_without_seed(self, delta: float | None = None) -> Claim:
        """Return the claim as if no noise came from a seed.

        If there is a budget and its δ is not larger, ε is that of the budget: later releases stay
        within it.
        """
        if delta is None:
            delta = self._default_delta
        if any(mechanism is None for _, mechanism in self._counts):
            epsilon = math.inf
        elif self.budget and delta >= self.budget[1]:
            epsilon = self.budget[0]
        else:
            epsilon = self.largest_total(delta)[1]
        return Claim(epsilon, delta, self.unit or "rows")

    @property
    def unit(self) -> Unit | None:
        """Unit of the totals: "rows", one row is replaced, or "node", all of them.

        A release that hides a whole node hides each of its rows, too. None without protection.
        """
        units = {getattr(kind, "protect", "node") for _, kind in self._counts if kind is not None}
        return "rows" if "rows" in units else "node" if units else None

    @property
    def _default_delta(self) -> float:
        return self.budget[1] if self.budget else DEFAULT_DELTA

    def to_dict(self) -> dict[str, Any]:
        """Return the ledger as plain JSON values; a count that all nodes share is written once."""
        return {
            "nodes": self.nodes,
            "budget": None if self.budget is None else list(self.budget),
            "simulated": self.simulated,
            "releases": [
                {
                    "what": what,
                    "mechanism": IN_THE_CLEAR if mechanism is None else describe(mechanism),
                    "times": counts.tolist() if np.ptp(counts) else int(counts[0]),
                }
                for (what, mechanism), counts in self._counts.items()
            ],
            "notes": list(self.notes),
        }

    @classmethod
    def from_dict(cls, content: Mapping[str, Any]) -> Ledger:
        """Return the ledger that `to_dict` described; the budget is not checked again."""
        budget = content["budget"]
        ledger = cls(content["nodes"], budget and tuple(budget), content["simulated"])
        for release in content["releases"]:
            description = release["mechanism"]
            mechanism = None if description == IN_THE_CLEAR else from_description(description)
            kind = (_check_name(release["what"]), mechanism)
            before = ledger._counts.get(kind, 0)  # of merged ledgers
            ledger._counts[kind] = before + ledger._spread(None, release["times"])
        ledger.notes.extend(map(str, content["notes"]))
        return ledger

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Ledger) and self._content == other._content

    @property
    def _content(self) -> tuple[Any, ...]:
        counts = {kind: each.tolist() for kind, each in self._counts.items()}
        return self.nodes, self.budget, self.simulated, self.notes, counts

    def __repr__(self) -> str:
        return f"<Ledger of {plural(self.nodes, 'node')}, {plural(len(self._counts), 'release')}>"

    def __str__(self) -> str:
        delta = self._default_delta
        header = ["what", "mechanism", "nodes", "times", f"ε at δ = {format_upper(delta)}"]
        rows = list[list[str]]()
        for (what, mechanism), counts in self._counts.items():
            some = counts[counts > 0]
            smallest, largest = int(some.min()), int(some.max())
            cost = compose([Charge(what, mechanism, largest)]).epsilon(delta)
            times = f"{smallest}..{largest}" if smallest < largest else f"{largest}"
            rows.append(
                [what, _mechanism_text(mechanism), f"{some.size}", times, format_upper(cost, 4)]
            )
        node, total = self.largest_total(delta)
        rows.append(["all", f"node {node}", "", "", format_upper(total, 4)])
        seeded = [SEEDED] if self.has_seeded_noise else []
        return "\n".join([*seeded, self._headline, *align_columns(header, rows), *self.notes])

    @property
    def _headline(self) -> str:
        parts = [plural(self.nodes, "node")]
        unprotected = sorted({what for what, mechanism in self._counts if mechanism is None})
        if unprotected:  # first: the other totals mean nothing beside it
            names = ", ".join(unprotected)
            parts.append(f"ε = ∞, {names} in the clear: nothing can be claimed for it")
        if self.budget:
            epsilon, delta = map(format_upper, self.budget)
            parts.append(f"budget ε = {epsilon} at δ = {delta}")
        if self.unit is not None:
            parts.append(f"ε for {_UNITS[self.unit]}")
        return ", ".join(parts)

    def _add(self, kind: Kind, added: Counts) -> None:
        if not added.any():
            return
        counts = {**self._counts, kind: self._counts.get(kind, 0) + added}
        if self.budget is not None:
            self._refuse_past_budget(kind, counts, np.flatnonzero(added), self.budget)
        self._counts = counts

    def _refuse_past_budget(
        self, kind: Kind, counts: dict[Kind, Counts], nodes: Counts, budget: tuple[float, float]
    ) -> None:
        epsilon, delta = budget
        # A node with fewer releases of every kind costs less, so only the others are checked.
        for at in _find_maximal([column[nodes] for column in counts.values()]):
            node = int(nodes[at])
            total = compose(_charges_of(counts, node))
            if not total.within(epsilon, delta):
                spent = self.total(node, delta)
                raise BudgetExceededError(
                    f"{kind[0]} by {_mechanism_text(kind[1])} would take node {node} to "
                    f"ε = {format_upper(total.epsilon(delta), 4)}, past the budget of "
                    f"ε = {format_upper(epsilon)} at δ = {format_upper(delta)}: "
                    f"spent {format_upper(spent, 4)}, "
                    f"remaining {format_lower(epsilon - spent, 4)}.",
                    node,
                    spent,
                    epsilon - spent,
                )

    def _refuse_too_many(self, what: str, mechanism: Release, added: Counts) -> None:
        cap = mechanism.max_contributions if isinstance(mechanism, ModelNoise) else 1
        before = sum(counts for (name, _), counts in self._counts.items() if name == what)
        total = before + added
        beyond = np.flatnonzero((total > cap) & (added > 0))
        if not beyond.size:
            return
        node = int(beyond[0])
        message = (
            f"node {node} would contribute {format_times(total[node])} to the {what} "
            f"({plural(beyond.size, 'such node')}), and max_contributions is {cap}: "
            "after that it leaves the model unchanged."
            if isinstance(mechanism, ModelNoise)
            else f"node {node} would release its {what} a second time "
            f"({plural(beyond.size, 'such node')}): use the first release. Drawing it "
            "again allows an averaging attack; again=True pays for it."
        )
        raise AlreadyReleasedError(message, node)

    def _spread(self, nodes: ArrayLike | None, times: ArrayLike) -> Counts:
        """Return the number of times for each node; a node that is listed twice counts twice."""
        index = np.arange(self.nodes) if nodes is None else _whole(nodes, "nodes").ravel()
        outside = index[(index < 0) | (index >= self.nodes)]
        if outside.size:
            raise ValueError(f"there is no node {outside[0]}: nodes are 0..{self.nodes - 1}.")
        number = _whole(times, "times")
        if number.shape not in ((), index.shape) or (number < 0).any():
            raise ValueError(
                f"times must be at least 0, one number or one for each of the {index.size} nodes, "
                f"got {times!r}."
            )
        added = np.zeros(self.nodes, dtype=np.int64)
        np.add.at(added, index, number)
        return added


def _charges_of(counts: Mapping[Kind, Counts], node: int) -> list[Charge]:
    return [Charge(*kind, int(each[node])) for kind, each in counts.items() if each[node]]


def _mechanism_text(mechanism: Release | None) -> str:
    return IN_THE_CLEAR if mechanism is None else repr(mechanism)


def _find_maximal(columns: Sequence[Counts]) -> list[int]:
    """Return a position for each combination of counts that no other reaches in every column."""
    # One number for each combination, column by column: far faster than sorting whole rows.
    codes = np.zeros_like(columns[0])
    for column in columns:
        codes = np.unique(codes * (column.max() + 1) + column, return_inverse=True)[1]
    first = np.unique(codes, return_index=True)[1]
    rows = np.stack([column[first] for column in columns], axis=1)
    maximal: list[int] = []
    # In falling order of the sum, only an earlier row can exceed a row in every column.
    for at in np.argsort(-rows.sum(axis=1), kind="stable"):
        if not any((rows[at] <= rows[other]).all() for other in maximal):
            maximal.append(int(at))
    return [int(first[at]) for at in maximal]


def _whole(numbers: ArrayLike, name: str) -> Counts:
    array = np.asarray(numbers)
    if array.dtype == bool or not np.issubdtype(array.dtype, np.integer):
        raise ValueError(f"{name} must be whole numbers, got {numbers!r}.")
    return array.astype(np.int64)


def _check_budget(budget: tuple[float, float]) -> tuple[float, float]:
    try:
        epsilon, delta = budget
    except (TypeError, ValueError):
        raise ValueError(f"the budget must be a pair (epsilon, delta), got {budget!r}.") from None
    if math.isinf(epsilon := check_epsilon(epsilon)):
        raise ValueError("budget has epsilon = inf, which is no limit. Leave budget out.")
    return epsilon, check_delta(delta)


def _check_name(what: str) -> str:
    if not isinstance(what, str) or not what:
        raise ValueError(f"what must be a text that names the release, got {what!r}.")
    return what
