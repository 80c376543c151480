"""The ledger: what was published, by whom, at what cost.

For every kind of release there is one count per node. From a node's counts follows its total,

    all releases of the node together are (ε, δ) private,

by `composition`. A constant is released once and kept: whoever redraws it lets the neighbours
average the noise away. So a second release of the same constant is refused, unless it is paid
for with `again=True`. Contributions to the model are many by nature, up to the cap of their
`ModelNoise`. What is published without protection is entered too: then no total is finite.

With a budget (ε, δ) a charge that would take any node past it is refused, and nothing of it is
entered.

>>> from walklearn.privacy.mechanisms import Laplace
>>> ledger = Ledger(nodes=3, budget=(1.5, 0.0))
>>> ledger.charge("importance", Laplace(scale=9.0, bounds=(1.0, 10.0)))
>>> round(ledger.total(node=0, delta=0.0), 12)
1.0
>>> ledger.charge("importance", Laplace(scale=9.0, bounds=(1.0, 10.0)), nodes=[2], again=True)
Traceback (most recent call last):
    ...
walklearn.privacy.ledger.BudgetExceededError: importance by Laplace(scale=9, bounds=(1, 10))
would take node 2 to ε = 2, past the budget of ε = 1.5 at δ = 0: spent 1, remaining 0.5.
>>> print(ledger)
3 nodes, budget ε = 1.5 at δ = 0, ε for all rows of a node together
what        mechanism                        nodes  times  ε at δ = 0
importance  Laplace(scale=9, bounds=(1, 10))     3      1           1
all         node 0                                                  1
"""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from walklearn.privacy.arguments import check_delta, check_epsilon
from walklearn.privacy.composition import Charge, Release, compose
from walklearn.privacy.mechanisms import MECHANISMS, Mechanism
from walklearn.privacy.model_noise import ModelNoise, Unit
from walklearn.privacy.row_release import RowGaussian

Counts = NDArray[np.int64]
Kind = tuple[str, Release | None]

IN_THE_CLEAR = "in the clear"
_UNITS: dict[Unit, str] = {"rows": "one row of a node", "node": "all rows of a node together"}

# The δ at which a ledger without a budget is printed.
_PRINTED_DELTA = 1e-5


class AlreadyReleasedError(ValueError):
    """A node has released this constant before, or contributed to the model to its cap.

    Parameters
    ----------
    message
        What the user is told.
    node
        The node that may not release again.
    """

    def __init__(self, message: str, node: int) -> None:
        super().__init__(message)
        self.node = node

    def __reduce__(self) -> tuple[Any, ...]:
        return type(self), (self.args[0], self.node)


class BudgetExceededError(ValueError):
    """A charge would take a node past its budget.

    Parameters
    ----------
    message
        What the user is told.
    node
        The node that would be charged.
    spent
        The ε it has spent, at the budget's δ.
    remaining
        The ε that is left, at the budget's δ.
    """

    def __init__(self, message: str, node: int, spent: float, remaining: float) -> None:
        super().__init__(message)
        self.node, self.spent, self.remaining = node, spent, remaining

    def __reduce__(self) -> tuple[Any, ...]:
        return type(self), (self.args[0], self.node, self.spent, self.remaining)


class Ledger:
    """What each node has released so far, and what that costs it in total.

    Parameters
    ----------
    nodes
        How many nodes there are.
    budget
        (ε, δ) that no node may exceed.
    simulated
        Whether the noise came from a seed: the costs are then those a network would have, and
        nobody is protected.

    Examples
    --------
    >>> from walklearn.privacy.mechanisms import Laplace
    >>> ledger = Ledger(2)
    >>> ledger.charge("L_i", Laplace(scale=1.0, bounds=(1.0, 2.0)), nodes=[0])
    >>> round(ledger.total(0, delta=0.0), 6), ledger.total(1, delta=0.0)
    (1.0, 0.0)
    """

    def __init__(
        self, nodes: int, budget: tuple[float, float] | None = None, simulated: bool = False
    ) -> None:
        self.nodes = _check_nodes(nodes)
        self.budget = None if budget is None else _check_budget(budget)
        self.simulated = bool(simulated)
        self._counts: dict[Kind, Counts] = {}
        self.beside: list[str] = []

    def add_beside(self, claim: str) -> None:
        """Add a further claim in words, such as one against single nodes.

        It is printed below the total, which stays what it is: against everyone together.
        """
        self.beside.append(str(claim))

    def charge(
        self,
        what: str,
        mechanism: Release,
        nodes: ArrayLike | None = None,
        times: ArrayLike = 1,
        again: bool = False,
    ) -> None:
        """Enter releases of `what` by some nodes (all by default), all of them or none.

        Parameters
        ----------
        times
            How many, one number or one for each of the nodes.
        again
            Pay for releasing a constant that the node has released before.
        """
        if not isinstance(mechanism, Mechanism | ModelNoise):
            raise ValueError(
                f"a charge needs a mechanism or ModelNoise, got {mechanism!r}. What is published "
                "without protection is entered by `in_the_clear`."
            )
        added = self._spread(nodes, times)
        if isinstance(mechanism, ModelNoise) or not again:
            self._refuse_too_many(what, mechanism, added)
        self._enter((_check_what(what), mechanism), added)

    def in_the_clear(self, what: str, nodes: ArrayLike | None = None) -> None:
        """Enter that some nodes (all by default) published `what` as it is."""
        self._enter((_check_what(what), None), self._spread(nodes, 1))

    def charges(self, node: int) -> list[Charge]:
        """All that a node released."""
        node = self._check_node(node)
        return [
            Charge(what, mechanism, int(counts[node]))
            for (what, mechanism), counts in self._counts.items()
            if counts[node]
        ]

    def total(self, node: int, delta: float) -> float:
        """ε of all that a node released, at this δ; infinite if some of it is in the clear."""
        return compose(self.charges(node)).epsilon(delta)

    def total_delta(self, node: int, epsilon: float) -> float:
        """δ of all that a node released, at this ε; 1 if some of it is in the clear."""
        return compose(self.charges(node)).delta(epsilon)

    def largest_total(self, delta: float) -> tuple[int, float]:
        """The node with the largest total at this δ, and that total."""
        nodes = _not_dominated(list(self._counts.values())) if self._counts else [0]
        return max(((node, self.total(node, delta)) for node in nodes), key=lambda pair: pair[1])

    @property
    def unit(self) -> Unit | None:
        """What the totals are about: "rows", one of which is replaced, or "node", all of them.

        A release that hides a whole node hides each of its rows, too. None where nothing protects.
        """
        units = {getattr(kind, "protect", "node") for _, kind in self._counts if kind is not None}
        return "rows" if "rows" in units else "node" if units else None

    def to_dict(self) -> dict[str, Any]:
        """The ledger as plain JSON values; a count that all nodes share is written once."""
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
            "beside": list(self.beside),
        }

    @classmethod
    def from_dict(cls, content: Mapping[str, Any]) -> Ledger:
        """Read back what `to_dict` gave. The budget is kept; what was spent is not judged again."""
        budget = content["budget"]
        ledger = cls(content["nodes"], budget and tuple(budget), content["simulated"])
        for release in content["releases"]:
            description = release["mechanism"]
            mechanism = None if description == IN_THE_CLEAR else from_description(description)
            kind = (_check_what(release["what"]), mechanism)
            ledger._counts[kind] = ledger._spread(None, release["times"])
        ledger.beside.extend(map(str, content["beside"]))
        return ledger

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Ledger):
            return NotImplemented
        facts = ("nodes", "budget", "simulated", "beside")
        if any(getattr(self, fact) != getattr(other, fact) for fact in facts):
            return False
        if self._counts.keys() != other._counts.keys():
            return False
        return all(np.array_equal(n, other._counts[kind]) for kind, n in self._counts.items())

    __hash__ = None  # type: ignore[assignment]  # it changes

    def __repr__(self) -> str:
        return f"<Ledger of {self.nodes} nodes, {len(self._counts)} kinds of release>"

    def __str__(self) -> str:
        delta = self.budget[1] if self.budget else _PRINTED_DELTA
        rows = [["what", "mechanism", "nodes", "times", f"ε at δ = {delta:g}"]]
        for (what, mechanism), counts in self._counts.items():
            some = counts[counts > 0]
            least, most = int(some.min()), int(some.max())
            cost = compose([Charge(what, mechanism, most)]).epsilon(delta)
            times = f"{least}..{most}" if least < most else f"{most}"
            rows.append([what, _name(mechanism), f"{some.size}", times, f"{cost:.4g}"])
        node, total = self.largest_total(delta)
        rows.append(["all", f"node {node}", "", "", f"{total:.4g}"])
        return "\n".join([self._headline(), *_aligned(rows), *self.beside])

    def _headline(self) -> str:
        parts = [f"{self.nodes} nodes"]
        if self.budget:
            parts.append(f"budget ε = {self.budget[0]:g} at δ = {self.budget[1]:g}")
        if self.unit is not None:
            parts.append(f"ε for {_UNITS[self.unit]}")
        if self.simulated:
            parts.append("simulated: the noise came from a seed and protects nobody")
        clear = sorted({what for what, mechanism in self._counts if mechanism is None})
        if clear:  # first: what is said of the rest is nothing beside it
            told = f"ε = ∞, {', '.join(clear)} in the clear: nothing can be claimed for it"
            parts.insert(1, told)
        return ", ".join(parts)

    def _enter(self, kind: Kind, added: Counts) -> None:
        if not added.any():
            return
        before = self._counts.get(kind, np.zeros(self.nodes, dtype=np.int64))
        entered = {**self._counts, kind: before + added}
        if self.budget is not None:
            self._refuse_past_budget(kind, entered, np.flatnonzero(added), self.budget)
        self._counts = entered

    def _refuse_past_budget(
        self, kind: Kind, entered: dict[Kind, Counts], nodes: Counts, budget: tuple[float, float]
    ) -> None:
        epsilon, delta = budget
        # A node with fewer releases of every kind costs less: only the others are asked.
        for at in _not_dominated([counts[nodes] for counts in entered.values()]):
            node = int(nodes[at])
            charges = [Charge(*each, int(n[node])) for each, n in entered.items() if n[node]]
            total = compose(charges)
            if not total.within(epsilon, delta):
                spent = self.total(node, delta)
                raise BudgetExceededError(
                    f"{kind[0]} by {_name(kind[1])} would take node {node} to ε = "
                    f"{total.epsilon(delta):.4g}, past the budget of ε = {epsilon:g} at "
                    f"δ = {delta:g}: spent {spent:.4g}, remaining {epsilon - spent:.4g}.",
                    node,
                    spent,
                    epsilon - spent,
                )

    def _refuse_too_many(self, what: str, mechanism: Release, added: Counts) -> None:
        noise = mechanism if isinstance(mechanism, ModelNoise) else None
        most = noise.max_contributions if noise else 1
        total = self._released(what) + added
        beyond = np.flatnonzero((total > most) & (added > 0))
        if not beyond.size:
            return
        node = int(beyond[0])
        message = (
            f"node {node} would contribute {total[node]} times to the {what} ({beyond.size} such "
            f"nodes), and max_contributions is {most}: from then on it adds noise only."
            if noise
            else f"node {node} would release its {what} a second time ({beyond.size} such nodes): "
            "use the first release. Drawing it again allows an averaging attack; again=True pays "
            "for it."
        )
        raise AlreadyReleasedError(message, node)

    def _released(self, what: str) -> Counts:
        """How often each node released `what`, by whatever mechanism."""
        counts = [n for (entered, mechanism), n in self._counts.items() if entered == what]
        return np.sum(counts, axis=0, dtype=np.int64) if counts else np.zeros(self.nodes, np.int64)

    def _spread(self, nodes: ArrayLike | None, times: ArrayLike) -> Counts:
        """How many times for each node; a node that is listed twice counts twice."""
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

    def _check_node(self, node: int) -> int:
        if not isinstance(node, int | np.integer) or not 0 <= node < self.nodes:
            raise ValueError(f"there is no node {node!r}: nodes are 0..{self.nodes - 1}.")
        return int(node)


def replicate_ledger(
    published: Mapping[str, Any], nodes: int, contributions: ArrayLike | None
) -> Ledger:
    """The ledger of one simulated world, from what a trace says was published.

    published: what -> "in the clear" or the description of its mechanism. contributions: how
    often each node's rows showed in the model. Every node is charged its cap whatever they are:
    whoever sees the tokens may choose when to stop, so the price of what was seen so far would be
    too low. The counts stand beside it.
    """
    if not nodes:
        raise ValueError("this trace does not say what was published, so it has no ledger.")
    ledger = Ledger(nodes, simulated=True)
    for what in ("importance", "model"):
        description = published.get(what)
        if description == IN_THE_CLEAR:
            ledger.in_the_clear(what)
        elif description is not None:
            mechanism = from_description(description)
            noise = mechanism if isinstance(mechanism, ModelNoise) else None
            ledger.charge(what, mechanism, times=noise.max_contributions if noise else 1)
            if noise is not None and contributions is not None:
                counts = np.asarray(contributions)
                ledger.add_beside(
                    f"charged is the cap of {noise.max_contributions} contributions; nodes have "
                    f"made {counts.min()} to {counts.max()} so far"
                )
    return ledger


def describe(mechanism: Release) -> dict[str, Any]:
    """A mechanism as plain JSON values: its kind and its parameters.

    >>> describe(ModelNoise(clip=1.0, noise_multiplier=2.0, max_contributions=5))["protect"]
    'rows'
    """
    # Not `asdict`, which would leave tuples as they are: JSON gives lists back.
    of_a_dataclass: Any = mechanism
    names = [field.name for field in dataclasses.fields(of_a_dataclass)]
    values = [getattr(mechanism, name) for name in names]
    plain = [list(value) if isinstance(value, tuple) else value for value in values]
    return {"kind": mechanism.name, **dict(zip(names, plain, strict=True))}


def from_description(description: Mapping[str, Any]) -> Release:
    """The mechanism that `describe` described."""
    parameters = dict(description)
    kind = parameters.pop("kind", None)
    others: dict[Any, Any] = {ModelNoise.name: ModelNoise, RowGaussian.name: RowGaussian}
    made_of: Any = others.get(kind) or MECHANISMS.by_name(kind)
    try:
        release: Release = made_of(**parameters)
    except TypeError as error:
        raise ValueError(f"these are not the parameters of {kind}: {parameters!r}.") from error
    return release


def _not_dominated(columns: Sequence[Counts]) -> list[int]:
    """One position for each combination of counts that no other matches in every column."""
    # One number for each combination, column by column: far faster than sorting whole rows.
    codes = np.zeros_like(columns[0])
    for column in columns:
        codes = np.unique(codes * (column.max() + 1) + column, return_inverse=True)[1]
    first = np.unique(codes, return_index=True)[1]
    rows = np.stack([column[first] for column in columns], axis=1)
    kept: list[int] = []
    # In falling order of the sum a row can only be dominated by one that is kept.
    for at in np.argsort(-rows.sum(axis=1), kind="stable"):
        if not any((rows[at] <= rows[other]).all() for other in kept):
            kept.append(int(at))
    return [int(first[at]) for at in kept]


def _name(mechanism: Release | None) -> str:
    return IN_THE_CLEAR if mechanism is None else repr(mechanism)


def _aligned(rows: list[list[str]]) -> list[str]:
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    return [
        "  ".join(
            cell.ljust(width) if place < 2 else cell.rjust(width)
            for place, (cell, width) in enumerate(zip(row, widths, strict=True))
        )
        for row in rows
    ]


def _whole(numbers: ArrayLike, name: str) -> Counts:
    array = np.asarray(numbers)
    if array.dtype == bool or not np.issubdtype(array.dtype, np.integer):
        raise ValueError(f"{name} must be whole numbers, got {numbers!r}.")
    return array.astype(np.int64)


def _check_nodes(nodes: int) -> int:
    if not isinstance(nodes, int | np.integer) or nodes < 1:
        raise ValueError(f"a ledger needs a whole number of nodes, at least 1, got {nodes!r}.")
    return int(nodes)


def _check_budget(budget: tuple[float, float]) -> tuple[float, float]:
    try:
        epsilon, delta = budget
    except (TypeError, ValueError):
        raise ValueError(f"the budget must be a pair (epsilon, delta), got {budget!r}.") from None
    if math.isinf(epsilon := check_epsilon(epsilon)):
        raise ValueError("a budget of epsilon = inf is no budget: leave it out.")
    return epsilon, check_delta(delta)


def _check_what(what: str) -> str:
    if not isinstance(what, str) or not what:
        raise ValueError(f"what is released must be named by a text, got {what!r}.")
    return what
