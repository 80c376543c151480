"""A ledger as people read it: a headline, a line for each kind of release, and the total."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from walklearn.privacy.accounting.composition import Charge, Release, compose
from walklearn.privacy.accounting.printing import format_upper
from walklearn.privacy.mechanisms.description import IN_THE_CLEAR
from walklearn.privacy.model_noise import Unit
from walklearn.wording import aligned, plural

if TYPE_CHECKING:
    from walklearn.privacy.accounting.ledger import Counts, Kind, Ledger

_UNITS: dict[Unit, str] = {"rows": "one row of a node", "node": "all rows of a node together"}

SEEDED = "No privacy claim: the noise was drawn from a seed."
# The δ at which a ledger without a budget is printed.
PRINTED_DELTA = 1e-5


def ledger_text(ledger: Ledger, releases: Mapping[Kind, Counts]) -> str:
    """The ledger in lines, from how often each node made each kind of release."""
    delta = ledger.budget[1] if ledger.budget else PRINTED_DELTA
    header = ["what", "mechanism", "nodes", "times", f"ε at δ = {format_upper(delta)}"]
    rows = list[list[str]]()
    for (what, mechanism), counts in releases.items():
        some = counts[counts > 0]
        least, most = int(some.min()), int(some.max())
        cost = compose([Charge(what, mechanism, most)]).epsilon(delta)
        times = f"{least}..{most}" if least < most else f"{most}"
        released = printed_release(mechanism)
        rows.append([what, released, f"{some.size}", times, format_upper(cost, 4)])
    node, total = ledger.largest_total(delta)
    rows.append(["all", f"node {node}", "", "", format_upper(total, 4)])
    seeded = [SEEDED] if ledger.simulated and ledger.unit is not None else []
    return "\n".join(
        [*seeded, _headline(ledger, list(releases)), *aligned(header, rows), *ledger.notes]
    )


def printed_release(mechanism: Release | None) -> str:
    """What releases something, with its parameters."""
    return IN_THE_CLEAR if mechanism is None else repr(mechanism)


def _headline(ledger: Ledger, kinds: list[Kind]) -> str:
    parts = [plural(ledger.nodes, "node")]
    if ledger.budget:
        epsilon, delta = map(format_upper, ledger.budget)
        parts.append(f"budget ε = {epsilon} at δ = {delta}")
    if ledger.unit is not None:
        parts.append(f"ε for {_UNITS[ledger.unit]}")
    clear = sorted({what for what, mechanism in kinds if mechanism is None})
    if clear:  # first: what is said of the rest is nothing beside it
        parts.insert(1, f"ε = ∞, {', '.join(clear)} in the clear: nothing can be claimed for it")
    return ", ".join(parts)
