"""The ledger of one simulated world: what its nodes published, at what cost."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from walklearn.privacy.accounting.ledger import Ledger
from walklearn.privacy.mechanisms.description import IN_THE_CLEAR, from_description
from walklearn.privacy.model_noise import ModelNoise
from walklearn.wording import plural


def replicate_ledger(
    published: Mapping[str, Any], nodes: int, contributions: ArrayLike | None
) -> Ledger:
    """The ledger of a replicate, from what its trace says was published.

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
            ledger.record_unprotected(what)
        elif description is not None:
            mechanism = from_description(description)
            noise = mechanism if isinstance(mechanism, ModelNoise) else None
            ledger.charge(what, mechanism, times=noise.max_contributions if noise else 1)
            if noise is not None and contributions is not None:
                counts = np.asarray(contributions)
                ledger.notes.append(
                    f"charged is the cap of {plural(noise.max_contributions, 'contribution')}; "
                    f"nodes have made {counts.min()} to {counts.max()} so far"
                )
    return ledger
