"""What walks show of the nodes' rows beside the model: which of them would give L_i away.

L_i depends on the rows of its node. A walk can show it in two ways: it tells the neighbours, as it
is or released by a mechanism; or it scales steps by the true L_i, which can then be read off the
model. Every walk says of itself which it does (`Walk.shown`), and simulations, estimators, nodes,
ledgers and advice go by that.

>>> from walklearn import walks
>>> walks.Weighted().shown.in_the_clear, walks.Uniform().shown.in_the_clear
(True, False)
>>> walks.Uniform(normalise=True).shown.scaled_by
'Uniform(normalise=True)'
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

if TYPE_CHECKING:
    from walklearn.privacy.mechanisms import Mechanism
    from walklearn.privacy.model_noise import ModelNoise
    from walklearn.walks.walk import Walk


class Shown(NamedTuple):
    """What a walk shows of the rows beside the model.

    tells: neighbours are told a number that depends on the rows.
    mechanism: what releases, or has released, that number; None where it is told as it is.
    scaled_by: the setting that scales steps by the true L_i; empty where none does.
    instead: the setting that does not.
    """

    tells: bool = False
    mechanism: Mechanism | None = None
    scaled_by: str = ""
    instead: str = ""

    @property
    def in_the_clear(self) -> bool:
        """Whether neighbours are told what depends on the rows, and nothing protects it."""
        return self.tells and self.mechanism is None


def tells(walk: Walk) -> bool:
    """Whether neighbours are known to be told a number that depends on the rows."""
    shown = walk.innermost.shown
    return shown is not None and shown.tells


def mechanism_of(walk: Walk) -> Mechanism | None:
    """What releases, or has released, the importance that the walk follows."""
    shown = walk.innermost.shown
    return None if shown is None else shown.mechanism


def check_scale(walk: Walk) -> None:
    """Refuse a walk whose steps would show what is to be kept private."""
    shown = walk.innermost.shown
    if shown is not None and shown.scaled_by:
        raise ValueError(
            f"{shown.scaled_by} scales steps by the true L_i, which the model then shows: use "
            f"{shown.instead}."
        )


def check_protectable(walk: Walk) -> None:
    """Noise on the model protects nothing that leaks by another way: refuse to claim it.

    Only walks are let through that say themselves what they show: that a class has inherited it
    means little, since its own steps may depend on the rows in other ways.
    """
    for each in (walk, walk.innermost):
        if "shown" not in vars(type(each)) or each.shown is None:
            raise ValueError(f"no privacy can be claimed for {walk!r}, which is not known here.")
    if tells(walk) and mechanism_of(walk) is None:
        raise ValueError(
            "Weighted() tells the neighbours its importance in the clear, so noise on the model "
            "would protect nothing. Pass Weighted(privacy=...), use Uniform(), or say "
            "Weighted(importance, public=True) if the importance depends on no node's rows."
        )
    check_scale(walk)


def published(
    walk: Walk | None, noise: ModelNoise | None, nodes: int, outside: list[int]
) -> dict[str, Any]:
    """What neighbours get to see and what protects it, as a trace keeps it.

    walk: None for gossip. outside: how many nodes' values were out of bounds, for each replicate.
    """
    from walklearn.privacy.ledger import IN_THE_CLEAR, describe  # slow to import

    seen: dict[str, Any] = {"nodes": nodes}
    seen["model"] = IN_THE_CLEAR if noise is None else describe(noise)
    shown = None if walk is None else walk.innermost.shown
    if shown is None or not shown.tells:
        return seen
    if shown.mechanism is None:
        return {**seen, "importance": IN_THE_CLEAR}
    reweight = "as-printed" if shown.scaled_by else "released"
    return {
        **seen, "importance": describe(shown.mechanism), "reweight": reweight, "outside": outside,
    }  # fmt: skip
