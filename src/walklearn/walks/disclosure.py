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
    from walklearn.privacy.mechanisms.mechanism import Mechanism
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


def shown_by(walk: Walk) -> Shown:
    """What the walk and what it builds on are known to show, the worse of the two."""
    said = [each.shown for each in (walk.innermost, walk) if each.shown is not None]
    clear = [shown for shown in said if shown.in_the_clear]
    scaled = [shown for shown in said if shown.scaled_by]
    worst = (clear or [shown for shown in said if shown.tells] or [Shown()])[0]
    if scaled:
        return worst._replace(scaled_by=scaled[0].scaled_by, instead=scaled[0].instead)
    return worst


def tells(walk: Walk) -> bool:
    """Whether neighbours are known to be told a number that depends on the rows."""
    return shown_by(walk).tells


def mechanism_of(walk: Walk) -> Mechanism | None:
    """What releases, or has released, the importance that the walk follows."""
    return shown_by(walk).mechanism


def check_scale(walk: Walk) -> None:
    """Refuse a walk whose steps would show what is to be kept private."""
    shown = shown_by(walk)
    if shown.scaled_by:
        raise ValueError(
            f"{shown.scaled_by} scales steps by the true L_i, which the model then shows: use "
            f"{shown.instead or 'a walk that does not'}."
        )


def check_disclosure_known(walk: Walk) -> None:
    """Refuse to claim privacy for a walk that does not say what it discloses.

    An inherited `shown` means little: methods that a subclass overrides may disclose more.
    """
    if not walk.discloses_known:
        raise ValueError(
            f"no privacy can be claimed for {walk!r}, which does not say what it discloses. Define "
            "`shown` in the class that overrides a method with access to the objective."
        )
    mechanism = mechanism_of(walk)
    if mechanism is not None:
        from walklearn.privacy.mechanisms.description import check_accounted  # slow to import

        check_accounted(mechanism)


def check_protectable(walk: Walk) -> None:
    """Refuse to protect the model if the rows leak in another way."""
    check_disclosure_known(walk)
    if shown_by(walk).in_the_clear:
        raise ValueError(
            "a weighted walk discloses its importance in the clear, so noise on the model would "
            "protect nothing. Use the uniform walk, or protect the importance too (epsilon and "
            "delta; in Python also Weighted(privacy=...)), or declare that it depends on no node's "
            "rows by Weighted(importance, public=True)."
        )
    check_scale(walk)


def published(walk: Walk | None, noise: Any, nodes: int, outside: list[int]) -> dict[str, Any]:
    """What neighbours get to see and what protects it, as a trace keeps it.

    walk: None for gossip. outside: how many nodes' values were out of bounds, for each replicate.
    """
    from walklearn.privacy.mechanisms.description import IN_THE_CLEAR, describe  # slow to import

    seen: dict[str, Any] = {"nodes": nodes}
    seen["model"] = IN_THE_CLEAR if noise is None else describe(noise)
    shown = Shown() if walk is None else shown_by(walk)
    if not shown.tells:
        return seen
    if shown.mechanism is None:
        return {**seen, "importance": IN_THE_CLEAR}
    reweight = "as-printed" if shown.scaled_by else "released"
    return {
        **seen, "importance": describe(shown.mechanism), "reweight": reweight, "outside": outside,
    }  # fmt: skip
