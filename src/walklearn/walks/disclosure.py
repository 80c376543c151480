"""Information about the nodes' rows that walks disclose beside the model: do they reveal L_i?

L_i depends on the rows of its node. A walk can reveal it in two ways. It can announce L_i to the
neighbours, unprotected or through a mechanism. Or it can scale steps by the true L_i, which can
then be computed from the model. Every walk states which it does (`Walk.disclosure`), and
simulations, estimators, nodes, ledgers and advice rely on that.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

if TYPE_CHECKING:
    from walklearn.privacy.mechanisms.mechanism import Mechanism
    from walklearn.walks.walk import Walk


class Disclosure(NamedTuple):
    """Information about the rows that a walk discloses beside the model.

    reveals_rows: True if neighbours receive a number that depends on the rows.
    mechanism: the mechanism that releases this number; None if it is sent unprotected.
    scaled_by: the setting that scales steps by the true L_i; empty if there is none.
    remedy: a setting that avoids this scaling.
    """

    reveals_rows: bool = False
    mechanism: Mechanism | None = None
    scaled_by: str = ""
    remedy: str = ""

    @property
    def is_unprotected(self) -> bool:
        """True if neighbours receive a number that depends on the rows and nothing protects it."""
        return self.reveals_rows and self.mechanism is None


def disclosure_of(walk: Walk) -> Disclosure:
    """Return the worse of the known disclosures of the walk and its inner walk."""
    disclosures = [
        disclosure.disclosure
        for disclosure in (walk.innermost, walk)
        if disclosure.disclosure is not None
    ]
    unprotected = [disclosure for disclosure in disclosures if disclosure.is_unprotected]
    scaled = [disclosure for disclosure in disclosures if disclosure.scaled_by]
    worst = (
        unprotected
        or [disclosure for disclosure in disclosures if disclosure.reveals_rows]
        or [Disclosure()]
    )[0]
    if scaled:
        return worst._replace(scaled_by=scaled[0].scaled_by, remedy=scaled[0].remedy)
    return worst


def reveals_rows(walk: Walk) -> bool:
    """True if neighbours are known to receive a number that depends on the rows."""
    return disclosure_of(walk).reveals_rows


def mechanism_of(walk: Walk) -> Mechanism | None:
    """Return the mechanism that releases, or has released, the importance; None without one."""
    return disclosure_of(walk).mechanism


def check_scale(walk: Walk) -> None:
    """Raise a ValueError if the walk's steps reveal L_i, which has to stay private."""
    disclosure = disclosure_of(walk)
    if disclosure.scaled_by:
        raise ValueError(
            f"{disclosure.scaled_by} scales steps by the true L_i, which the model then reveals. "
            f"Use {disclosure.remedy or 'a walk that does not'}."
        )


def check_disclosure_known(walk: Walk) -> None:
    """Raise a ValueError if the walk does not state what it discloses.

    An inherited `disclosure` does not count: overridden methods may disclose more.
    """
    if not walk.disclosure_is_known:
        raise ValueError(
            f"no privacy can be claimed for {walk!r}, which does not state what it discloses. "
            "Define `disclosure` in the class that overrides a method with access to the objective."
        )
    mechanism = mechanism_of(walk)
    if mechanism is not None:
        from walklearn.privacy.mechanisms.description import check_accounted  # slow to import

        check_accounted(mechanism)


def check_protectable(walk: Walk) -> None:
    """Raise a ValueError if noise on the model would be useless, as the walk reveals the rows."""
    check_disclosure_known(walk)
    if disclosure_of(walk).is_unprotected:
        raise ValueError(
            "a weighted walk discloses its importance in the clear, so noise on the model would "
            "protect nothing. Use the uniform walk, or protect the importance too (epsilon and "
            "delta; in Python also Weighted(privacy=...)), or declare that it depends on no node's "
            "rows by Weighted(importance, public=True)."
        )
    check_scale(walk)


def describe_privacy(
    walk: Walk | None, noise: Any, nodes: int, out_of_bounds: list[int]
) -> dict[str, Any]:
    """Return the published numbers and their protections, as plain values for a trace.

    walk: the walk; None for gossip. out_of_bounds: the clamped values in each replicate.
    """
    from walklearn.privacy.mechanisms.description import IN_THE_CLEAR, describe  # slow to import

    record: dict[str, Any] = {"nodes": nodes}
    record["model"] = IN_THE_CLEAR if noise is None else describe(noise)
    disclosure = Disclosure() if walk is None else disclosure_of(walk)
    if disclosure.mechanism is not None and disclosure.reveals_rows:
        record["importance"] = describe(disclosure.mechanism)
        record["reweight"] = "as-printed" if disclosure.scaled_by else "released"
        record["out_of_bounds"] = out_of_bounds
    elif disclosure.reveals_rows:
        record["importance"] = IN_THE_CLEAR
    return record
