"""What a run is asked to do: checked at the edge, and put in numbers.

>>> from walklearn import graphs, walks
>>> iterations_at(walks.Uniform(), graphs.ring(5), steps=1000, records=4)
array([   1,   10,  100, 1000])
"""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from walklearn.checks import check_choice, check_kind, check_whole, is_whole, seed_error
from walklearn.graphs import Graph
from walklearn.graphs.graph import check_node_count
from walklearn.objectives import Problem
from walklearn.objectives.objective import Objective
from walklearn.privacy.protection import Protection
from walklearn.simulation.averaging import (
    GOSSIP,
    AsynchronousGossip,
    Gossip,
    GradientTracking,
    SynchronousGossip,
)
from walklearn.simulation.kernel_inputs import uncompiled_part
from walklearn.simulation.user_losses import rejection_of
from walklearn.streams import Owner
from walklearn.updates.saga import Saga
from walklearn.updates.sgd import Sgd
from walklearn.updates.step_sizes import StepSize
from walklearn.updates.update import UPDATES, Update
from walklearn.walks import WALKS, Walk
from walklearn.walks.disclosure import mechanism_of
from walklearn.wording import as_given

Seed = int | np.random.SeedSequence | None


def root_of(seed: Seed) -> np.random.SeedSequence:
    """The root of all replicates' random streams: the seed, or one drawn by the system."""
    if isinstance(seed, np.random.SeedSequence):
        return seed
    if seed is not None and (not is_whole(seed) or seed < 0):
        raise seed_error(seed, "a SeedSequence")
    return np.random.SeedSequence(None if seed is None else int(seed))


def iterations_at(
    method: Walk | Gossip, graph: Graph, steps: int, records: int | ArrayLike
) -> NDArray[np.int64]:
    """The iterations to record after, strictly increasing, the last one reaching `steps`."""
    per_iteration = updates_per_iteration(method, graph)
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


def updates_per_iteration(method: Walk | Gossip, graph: Graph) -> int:
    """1 for a walk, 2 or N for gossip."""
    return 1 if isinstance(method, Walk) else method.updates_per_iteration(graph)


def gaps_of(gaps: bool | int) -> bool | int:
    """Whether gaps are recorded, or over how many nodes."""
    if isinstance(gaps, bool | np.bool_):
        return bool(gaps)
    if not is_whole(gaps) or gaps < 1:
        raise ValueError(
            f"gaps must be True, False or a whole number of nodes, at least 1, got {gaps!r}."
        )
    return int(gaps)


def walk_of(method: object) -> Walk | Gossip:
    """Return the walk or the gossip algorithm, which may be given by its name.

    Parameters
    ----------
    method
        A walk, a gossip algorithm, or the registered name of one.

    Returns
    -------
    Walk or Gossip
        A name stands for the default settings.
    """
    if isinstance(method, str):
        method = GOSSIP[method]() if method in GOSSIP else WALKS.by_name(method)()
    if isinstance(method, Walk | AsynchronousGossip | SynchronousGossip):
        return method
    raise TypeError(
        f"the method must be a walk such as walks.Weighted(), a gossip algorithm such as "
        f"AsynchronousGossip(), or the name of one, got {as_given(method)}."
    )


def update_of(
    update: object, step_size: Any, objective: Any, method: Walk | Gossip, privacy: Protection
) -> Update:
    """Return the update of a run: as given, by its name, `Sgd` of a step size, or `Saga`.

    Parameters
    ----------
    update
        An update, the registered name of one, or None.
    step_size
        γ_k, or None.
    objective, method, privacy
        They decide if `Saga` is possible where neither is given.

    Returns
    -------
    Update
        A TypeError or ValueError is raised if both are given, or nothing where `Saga` does not
        work.
    """
    if update is None and step_size is None:
        return _default_update(objective, method, privacy)
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
            f"step_size= is short for update=updates.Sgd(step_size) and means nothing to "
            f"{chosen!r}. Leave it out; Saga finds its step itself, or takes one as Saga(0.1)."
        )
    return chosen


def _default_update(objective: Any, method: Walk | Gossip, privacy: Protection) -> Update:
    """Return Saga if it works here; it needs no step size."""
    missing = [name for name in Saga().needs if not hasattr(objective, name)]
    if not isinstance(method, Walk):
        reason = f"{method!r} makes SGD steps"
    elif privacy.adds_noise:
        reason = f"{privacy!r} allows SGD steps only"
    elif mechanism_of(method) is not None:
        reason = f"{method!r} releases L_i, which Saga() would disclose"
    elif missing:
        reason = f"{objective!r} has no {missing[0]}, which Saga() needs"
    else:
        return Saga()
    raise TypeError(f"simulate() needs step_size=PowerStep(…) here, or another update: {reason}.")


def protection_of(privacy: Protection | None, method: Walk | Gossip) -> Protection:
    """Return the protection of a run; none if it is None."""
    if privacy is None:
        return Protection()
    check_kind("privacy", privacy, Protection, "a protection such as privacy.ModelNoise(...)")
    if not isinstance(method, Walk):
        raise ValueError("privacy= is for walks; gossip discloses every node's model. Pass a walk.")
    return privacy


def check_network_options(
    method: Walk | Gossip, update: Update, mean_importance: str, streams: str
) -> None:
    """Refuse options of a token for gossip, and an estimate that the update does not use."""
    check_choice("streams", streams, Owner)
    check_choice("mean_importance", mean_importance, ("exact", "estimated"))
    estimated = mean_importance == "estimated"
    if not isinstance(method, Walk) and (streams == "node" or estimated):
        raise ValueError(
            'streams="node" and mean_importance="estimated" are about a token that walks; '
            f"{method!r} has none."
        )
    if estimated and update.converges:
        raise ValueError(
            f"{update!r} does not scale gradients, so there is no mean importance to estimate: "
            'leave out mean_importance="estimated".'
        )


def gossip_step(update: Update) -> StepSize:
    """Return gossip's step size: it makes the steps of `Sgd`."""
    if type(update) is not Sgd:
        raise ValueError(
            f"{update!r} needs a token, and gossip has none. Pass step_size=…, or a walk as the "
            "method."
        )
    return update.step_size


def check_run(
    objective: Any,
    graph: Graph,
    method: Walk | Gossip,
    steps: int,
    replicates: int,
    batch: int | None,
    cores: int | None,
    engine: str | None,
) -> None:
    """Raise an error for a wrong argument, before anything is computed."""
    wanted = "a walklearn.Problem or another walklearn.Objective"
    check_kind("the objective", objective, Objective, wanted)
    objective.check()
    if not isinstance(graph, Graph):
        raise TypeError(
            f"graph must be a walklearn graph, got {type(graph)}. graphs.as_graph(...) makes one "
            "from a networkx or igraph graph, a matrix or a file."
        )
    check_node_count(graph, objective)
    if not isinstance(method, Walk) and graph.node_count == 1:
        raise ValueError("gossip needs at least 2 nodes; on one node use walks.Uniform().")
    counts = {"steps": steps, "replicates": replicates, "batch": batch, "cores": cores}
    for name, count in counts.items():
        if count is not None:
            check_whole(name, count)
    if isinstance(method, GradientTracking) and batch is not None:
        raise ValueError(
            "gradient tracking takes differences of gradients, which must be of all rows of a "
            "node: leave batch out, or use SynchronousGossip()."
        )
    check_choice("engine", engine, ("compiled", "reference", None))


def chosen_engine(
    objective: Any,
    method: Walk | Gossip,
    update: Update,
    privacy: Protection,
    engine: str | None = None,
) -> str:
    """Return "compiled" if there are kernels for all parts, else "reference", with a warning.

    Parameters
    ----------
    objective, method, update, privacy
        The parts of the run.
    engine
        The user's choice. "compiled" raises a ValueError if a part has no kernel; None warns.

    Returns
    -------
    str
        "compiled" or "reference". An objective of the user's own runs on the reference without a
        warning: nobody would expect a kernel for it.
    """
    if engine == "reference":
        return engine
    part = uncompiled_part(objective, method, update, privacy)
    if part is None:
        return "compiled"
    rejection = rejection_of(part)
    reason = f"Numba rejects {part!r} ({rejection})" if rejection else f"{part!r} has no kernel"
    if engine == "compiled":
        raise ValueError(f'{reason}. Pass engine="reference".')
    if part is not objective or isinstance(part, Problem):
        warnings.warn(
            f"{reason}: the reference engine runs, about a thousand times slower. "
            'simulate(engine="reference") runs it without this warning.',
            stacklevel=3,
        )
    return "reference"
