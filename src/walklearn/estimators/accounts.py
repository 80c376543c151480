"""The books of an estimator: what its nodes published, and what that costs them."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from walklearn.graphs import Graph
from walklearn.privacy import Ledger, ModelNoise
from walklearn.walks import Walk
from walklearn.walks.disclosure import mechanism_of, tells

Counts = NDArray[Any]


def charge_release(ledger: Ledger, walk: Walk, again: bool) -> None:
    """Enter what every node told of its rows before the walk.

    again: it was drawn in this call, so that nodes that released before pay once more; else it
    is what they have paid for.
    """
    if not tells(walk):
        return
    mechanism = mechanism_of(walk)
    if mechanism is None:
        ledger.in_the_clear("importance")
    elif again:
        ledger.charge("importance", mechanism, again=True)


def charge_model(
    ledger: Ledger, noise: ModelNoise | None, before: Counts | None, after: Counts | None
) -> None:
    """Enter how often each node's rows showed in the model, since these counts before."""
    if noise is None or after is None:
        ledger.in_the_clear("model")
        return
    earlier = np.zeros(0, dtype=np.int64) if before is None else before
    ledger.charge("model", noise, times=after - np.pad(earlier, (0, len(after) - len(earlier))))


def ledger_for(graph: Graph, earlier: Ledger | None, simulated: bool) -> Ledger:
    """A ledger for the graph's nodes, with what they published earlier."""
    nodes = graph.node_count
    if earlier is None:
        return Ledger(nodes, simulated=simulated)
    content = earlier.to_dict()
    for release in content["releases"]:
        times = np.broadcast_to(release["times"], earlier.nodes)
        release["times"] = np.pad(times, (0, nodes - earlier.nodes)).tolist()
    return Ledger.from_dict(
        {**content, "nodes": nodes, "simulated": simulated or earlier.simulated}
    )
