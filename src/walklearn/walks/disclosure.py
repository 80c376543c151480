"""What walks show of the nodes' rows beside the model: which of them would give L_i away.

L_i depends on the rows of its node. A walk can show it in two ways: it tells the neighbours, as it
is or released by a mechanism; or it scales steps by the true L_i, which can then be read off the
model. Every walk says of itself which it does (`Walk.disclosure`), and simulations, estimators,
nodes, ledgers and advice go by that.

>>> from walklearn import walks
>>> walks.Weighted().disclosure.is_unprotected, walks.Uniform().disclosure.is_unprotected
(True, False)
>>> walks.Uniform(normalise=True).disclosure.scaled_by
'Uniform(normalise=True)'
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

if TYPE_CHECKING:
    from walklearn.privacy.mechanisms.mechanism import Mechanism
    from walklearn.walks.walk import Walk


class Disclosure(NamedTuple):
    """What a walk shows of the rows beside the model.

    tells: neighbours are told a number that depends on the rows.
    mechanism: what releases, or has released, that number; None where it is told as it is.
    scaled_by: the setting that scales steps by the true L_i; empty where none does.
    instead: the setting that does not.
    """

    reveals_rows: bool = False
    mechanism: Mechanism | None = None
    scaled_by: str = ""
    instead: str = ""

    @property
    def is_unprotected(self) -> bool:
        """Whether neighbours are told what depends on the rows, and nothing protects it."""
        return self.reveals_rows and self.mechanism is None


def disclosure_of(walk: Walk) -> Disclosure:
    """What the walk and what it builds on are known to show, the worse of the two."""
    said = [each.disclosure for each in (walk.innermost, walk) if each.disclosure is not None]
    clear = [shown for shown in said if shown.is_unprotected]
    scaled = [shown for shown in said if shown.scaled_by]
    worst = (clear or [shown for shown in said if shown.reveals_rows] or [Disclosure()])[0]
    if scaled:
        return worst._replace(scaled_by=scaled[0].scaled_by, instead=scaled[0].instead)
    return worst


def reveals_rows(walk: Walk) -> bool:
    """Whether neighbours are known to be told a number that depends on the rows."""
    return disclosure_of(walk).reveals_rows


def mechanism_of(walk: Walk) -> Mechanism | None:
    """What releases, or has released, the importance that the walk follows."""
    return disclosure_of(walk).mechanism


def check_scale(walk: Walk) -> None:
    """Refuse a walk whose steps would show what is to be kept private."""
    shown = disclosure_of(walk)
    if shown.scaled_by:
        raise ValueError(
            f"{shown.scaled_by} scales steps by the true L_i, which the model then shows: use "
            f"{shown.instead or 'a walk that does not'}."
        )


def check_disclosure_known(walk: Walk) -> None:
    """Refuse to claim privacy for a walk that does not say what it discloses.

    An inherited `disclosure` means little: methods that a subclass overrides may disclose more.
    """
    if not walk.disclosure_is_known:
        raise ValueError(
            f"no privacy can be claimed for {walk!r}, which does not say what it discloses. Define "
            "`disclosure` in the class that overrides a method with access to the objective."
        )
    mechanism = mechanism_of(walk)
    if mechanism is not None:
        from walklearn.privacy.mechanisms.description import check_accounted  # slow to import

        check_accounted(mechanism)


def check_protectable(walk: Walk) -> None:
    """Refuse to protect the model if the rows leak in another way."""
    check_disclosure_known(walk)
    if disclosure_of(walk).is_unprotected:
        raise ValueError(
            "a weighted walk discloses its importance in the clear, so noise on the model would "
            "protect nothing. Use the uniform walk, or protect the importance too (epsilon and "
            "delta; in Python also Weighted(privacy=...)), or declare that it depends on no node's "
            "rows by Weighted(importance, public=True)."
        )
    check_scale(walk)


def published(
    walk: Walk | None, noise: Any, nodes: int, out_of_bounds: list[int]
) -> dict[str, Any]:
    """What neighbours get to see and what protects it, as a trace keeps it.

    walk: None for gossip. out_of_bounds: the number of clamped values in each replicate.
    """
    from walklearn.privacy.mechanisms.description import IN_THE_CLEAR, describe  # slow to import

    seen: dict[str, Any] = {"nodes": nodes}
    seen["model"] = IN_THE_CLEAR if noise is None else describe(noise)
    shown = Disclosure() if walk is None else disclosure_of(walk)
    if not shown.reveals_rows:
        return seen
    if shown.mechanism is None:
        return {**seen, "importance": IN_THE_CLEAR}
    reweight = "as-printed" if shown.scaled_by else "released"
    return {
        **seen, "importance": describe(shown.mechanism), "reweight": reweight,
        "out_of_bounds": out_of_bounds,
    }  # fmt: skip
