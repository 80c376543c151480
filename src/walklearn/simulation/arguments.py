"""Checks of the arguments of `simulate`, and the objects that they stand for.

>>> iterations_at(1, steps=1000, records=4)
array([   1,   10,  100, 1000])
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from walklearn.checks import (
    check_choice,
    check_kind,
    check_number,
    check_whole,
    is_whole,
    seed_error,
)
from walklearn.errors import CapabilityError
from walklearn.graphs import Graph
from walklearn.graphs.graph import check_node_count
from walklearn.objectives.objective import Objective
from walklearn.privacy.protection import Protection
from walklearn.simulation.averaging import GOSSIP, Gossip, GossipSetting
from walklearn.simulation.batches import Schedule
from walklearn.streams import Owner
from walklearn.updates.saga import Saga
from walklearn.updates.sgd import Sgd
from walklearn.updates.update import UPDATES, Update
from walklearn.visit import Setting
from walklearn.walks import WALKS, Walk
from walklearn.wording import format_value

Seed = int | np.random.SeedSequence | None

MAX_TIME = 1e100  # of a message or an update, so that no sum of times is infinite


def root_of(seed: Seed) -> np.random.SeedSequence:
    """Return the root of all random streams: the seed, or one from the system's entropy."""
    if isinstance(seed, np.random.SeedSequence):
        return seed
    if seed is not None and (not is_whole(seed) or seed < 0):
        raise seed_error(seed, "a SeedSequence")
    return np.random.SeedSequence(None if seed is None else int(seed))


def schedule_of(hop_time: float, visit_time: float, steps: int, tokens: int) -> Schedule:
    """Return the time of a message and that of an update, checked, and the number of updates."""
    hop = check_number("hop_time", hop_time, minimum=0.0, maximum=MAX_TIME)
    visit = check_number("visit_time", visit_time, minimum=0.0, maximum=MAX_TIME)
    if tokens > 1 and hop == visit == 0.0:
        raise ValueError(
            "hop_time and visit_time are 0, so the first token would make all its updates before "
            "the second begins. Several tokens need one of the two above 0."
        )
    return Schedule(hop, visit, steps)


def iterations_at(per_iteration: int, steps: int, records: int | ArrayLike) -> NDArray[np.int64]:
    """Return the iterations to record after, increasing; the last one reaches `steps` updates."""
    last = -(-steps // per_iteration)
    if not is_whole(records):
        wanted = np.asarray(records)
        whole = wanted.ndim == 1 and wanted.size and np.issubdtype(wanted.dtype, np.integer)
        if not whole or wanted.min() < 1 or wanted.max() > steps:
            raise ValueError(
                "records must be a whole number, or a list of update counts between 1 and steps = "
                f"{steps}."
            )
        return np.unique(-(-wanted.astype(np.int64) // per_iteration))
    count = min(check_whole("records", records), last)
    spaced = np.rint(np.geomspace(1, last, count)) if count > 1 else np.array([last])
    # Where the logarithm is finer than whole numbers, count up one by one.
    return np.maximum(spaced, np.minimum(np.arange(1, count + 1), last)).astype(np.int64)


def method_of(method: object) -> Walk | Gossip:
    """Return the walk or the gossip algorithm; a name stands for one with default settings."""
    if isinstance(method, str):
        method = GOSSIP[method]() if method in GOSSIP else WALKS.by_name(method)()
    if isinstance(method, Walk | Gossip):
        return method
    raise TypeError(
        f"the method must be a walk such as walks.Weighted(), a gossip algorithm such as "
        f"AsynchronousGossip(), or the name of one, got {format_value(method)}."
    )


def setting_of(
    objective: Any, graph: Graph, method: Walk | Gossip, update: Update | None,
    privacy: Protection | None, steps: int, batch: int | None, tokens: int = 1,
) -> Setting | GossipSetting:  # fmt: skip
    """Return the fixed inputs of a run. Without an update, `Saga` is used if it is possible."""
    wanted = "a walklearn.Problem or another walklearn.Objective"
    check_kind("the objective", objective, Objective, wanted).check()
    if not isinstance(graph, Graph):
        raise TypeError(
            f"graph must be a walklearn graph, got {type(graph)}. graphs.as_graph(...) makes one "
            "from a networkx or igraph graph, a matrix or a file."
        )
    check_node_count(graph, objective)
    if privacy is not None:
        check_kind("privacy", privacy, Protection, "a protection such as privacy.ModelNoise(...)")
    if batch is not None:
        objective = objective.with_batch(check_whole("batch", batch))
    check_whole("tokens", tokens)
    try:
        chosen = Saga() if update is None else update
        if isinstance(method, Walk):
            protection = privacy or Protection()
            each = -(-steps // tokens)
            return Setting(
                objective, method, chosen, privacy=protection, tokens=tokens, updates=each
            )
        setting = GossipSetting(objective, graph, method, chosen)
    except (CapabilityError, ValueError) as error:
        if update is not None:
            raise
        raise TypeError(
            f"simulate() needs step_size=PowerStep(…) or update=. Its default fails: {error}"
        ) from error
    if tokens > 1:
        raise ValueError(
            f"tokens={tokens} is for walks. In {method!r} every node updates a model of its own. "
            "Leave out tokens, or pass a walk as the method."
        )
    if privacy is not None:
        raise ValueError(
            "privacy= is for walks. Gossip discloses every node's model. Pass a walk as the method."
        )
    return setting


def update_of(update: object, step_size: Any) -> Update | None:
    """Return the update as given, by its name, or `Sgd` of a step size; None if neither is given.

    Raise a TypeError or ValueError for anything else, and if both are given.
    """
    if update is None and step_size is None:
        return None
    if update is None or update == Sgd.name:
        if step_size is None:
            raise TypeError('simulate(update="sgd") needs step_size=PowerStep(…).')
        return Sgd(step_size)
    if isinstance(update, str):
        update = UPDATES.by_name(update)()
    wanted = "an update such as updates.Saga() or updates.Sgd(step_size), or its name"
    chosen: Update = check_kind("update", update, Update, wanted)
    if step_size is not None:
        raise ValueError(
            f"step_size= stands for update=updates.Sgd(step_size), so {chosen!r} does not use it. "
            "Leave it out. Saga finds its step itself, or takes one as Saga(0.1)."
        )
    return chosen


def check_network_options(setting: Setting | GossipSetting, mean: str, streams: str) -> None:
    """Refuse options of a token for gossip, and an estimate that the update does not use."""
    check_choice("streams", streams, Owner)
    check_choice("mean_importance", mean, ("exact", "estimated"))
    if isinstance(setting, GossipSetting) and (streams == "node" or mean == "estimated"):
        raise ValueError(
            'streams="node" and mean_importance="estimated" are for walks; '
            f"{setting.gossip!r} has no token. Leave them out."
        )
    if mean == "estimated" and setting.update.converges:
        raise ValueError(
            f"{setting.update!r} does not scale gradients, so there is no mean importance to "
            'estimate. Leave out mean_importance="estimated".'
        )
