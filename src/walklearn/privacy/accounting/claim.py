"""A privacy claim (ε, δ, unit, adversary), which prints as text, JSON or HTML.

>>> claim = Claim(3.0, 1e-5, "rows")
>>> print(claim)
ε = 3 at δ = 1e-05 for everything that leaves a node, if one row of the node is replaced, against
everyone who sees all tokens
>>> Claim.from_dict(claim.to_dict()) == claim
True
>>> print(Claim(math.inf, 0.0, "rows"))
ε = ∞: nothing is protected
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from html import escape
from typing import TYPE_CHECKING, Any

from walklearn.checks import check_choice
from walklearn.privacy.accounting.printing import format_upper

if TYPE_CHECKING:
    from walklearn.privacy.model_noise import Unit

REPLACED: dict[Unit, str] = {
    "rows": "one row of the node is replaced",
    "node": "all rows of the node are replaced",
}
OBSERVERS = "everyone who sees all tokens"


@dataclass(frozen=True)
class Claim:
    """(ε, δ)-differential privacy of everything that leaves a node because of its rows.

    For each set of outcomes, P(outcome) ≤ e^ε · P(outcome with the other rows) + δ.

    Parameters
    ----------
    epsilon, delta
        Upper bounds; ε is infinite if something is unprotected.
    unit
        Unit that is replaced: "rows", one row of a node, or "node", all rows of a node.
    adversary
        The observers that the claim holds against.
    """

    epsilon: float
    delta: float
    unit: Unit
    adversary: str = OBSERVERS

    def __post_init__(self) -> None:
        check_choice("unit", self.unit, REPLACED)

    @property
    def is_private(self) -> bool:
        """True if ε is finite."""
        return math.isfinite(self.epsilon)

    def __str__(self) -> str:
        if not self.is_private:
            return "ε = ∞: nothing is protected"
        return (
            f"ε = {format_upper(self.epsilon)} at δ = {format_upper(self.delta)} for everything "
            f"that leaves a node, if {REPLACED[self.unit]}, against {self.adversary}"
        )

    def _repr_html_(self) -> str:
        return f"<p>{escape(str(self))}</p>"

    def to_dict(self) -> dict[str, Any]:
        """Return the claim as plain JSON values; null without protection."""
        fields = asdict(self) if self.is_private else dict.fromkeys(self.__match_args__)
        return {"private": self.is_private, **fields}

    @classmethod
    def from_dict(cls, content: Mapping[str, Any]) -> Claim:
        """Return the claim that `to_dict` described; other keys are ignored."""
        if not content.get("private"):
            return cls(math.inf, 0.0, "rows")
        return cls(content["epsilon"], content["delta"], content["unit"], content["adversary"])
