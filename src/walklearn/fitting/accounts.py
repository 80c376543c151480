"""The books of an estimator: what its nodes published, and what that costs them."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from walklearn.privacy import Allotment, Ledger, ModelNoise
from walklearn.privacy.accounting.budget import about_noise
from walklearn.walks import Walk
from walklearn.walks.disclosure import mechanism_of, tells

THIS_FIT_ALONE = "ε is of this fit alone. Further runs on the same rows add to it (OwnerRecord)."


class Cost(NamedTuple):
    """Cost of a call, known before it draws anything.

    draws: exact numbers of noise on the model.
    """

    ledger: Ledger
    allotted: Allotment | None
    draws: int

    @property
    def summary(self) -> list[str]:
        """Sentences on the noise-to-signal ratio and on the time that exact draws take."""
        lines = [] if self.allotted is None else [about_noise(self.allotted)]
        if self.draws and not self.ledger.simulated:
            from walklearn.privacy.draws.exact_draws import seconds

            duration = _duration(seconds(self.draws))
            lines.append(f"Drawing {self.draws:,} exact numbers of noise takes {duration}.")
        return lines


def _duration(seconds: float) -> str:
    return "less than 1 s" if seconds < 1.0 else f"about {seconds:.0f} s"


def ledger_of_call(
    nodes: int,
    walk: Walk,
    noise: ModelNoise | None,
    earlier: Ledger | None,
    simulated: bool,
    budget: tuple[float, float] | None,
) -> Ledger:
    """The ledger of earlier calls with what this call will publish; refused if past the budget."""
    ledger = _ledger_for(nodes, earlier, simulated, budget)
    _charge_release(ledger, walk)
    _charge_model(ledger, noise, 0 if earlier is None else earlier.nodes)
    is_claim = ledger.unit is not None and not ledger.simulated
    if is_claim and THIS_FIT_ALONE not in ledger.beside:
        ledger.beside.append(THIS_FIT_ALONE)
    return ledger


def _charge_release(ledger: Ledger, walk: Walk) -> None:
    """Enter what every node told of its rows before the walk; one that told earlier pays again."""
    if not tells(walk):
        return
    mechanism = mechanism_of(walk)
    if mechanism is None:
        ledger.in_the_clear("importance")
    else:
        ledger.charge("importance", mechanism, again=True)


def _charge_model(ledger: Ledger, noise: ModelNoise | None, charged: int) -> None:
    """Enter what the rows may show in the model: the cap, however many visits there were.

    Who sees the tokens may choose when to stop, so that the price of the visits so far would not
    hold. charged: so many nodes have paid before.
    """
    if noise is None:
        ledger.in_the_clear("model")
    elif charged < ledger.nodes:
        nodes = np.arange(charged, ledger.nodes)
        ledger.charge("model", noise, nodes=nodes, times=noise.max_contributions)


def _ledger_for(
    nodes: int,
    earlier: Ledger | None,
    simulated: bool,
    budget: tuple[float, float] | None,
) -> Ledger:
    """A ledger for so many nodes, with what they published earlier."""
    if earlier is None:
        return Ledger(nodes, budget, simulated)
    content = earlier.to_dict()
    for release in content["releases"]:
        times = np.broadcast_to(release["times"], earlier.nodes)
        release["times"] = np.pad(times, (0, nodes - earlier.nodes)).tolist()
    return Ledger.from_dict(
        {**content, "nodes": nodes, "simulated": simulated or earlier.simulated}
    )
