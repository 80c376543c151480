"""What a run is asked to do: checked at the edge, and put in numbers.

>>> from walklearn import graphs, walks
>>> iterations_at(walks.Uniform(), graphs.ring(5), steps=1000, records=4)
array([   1,   10,  100, 1000])
"""

from __future__ import annotations

from typing import TYPE_CHECKING, cast

import numpy as np
from numpy.typing import ArrayLike, NDArray

from walklearn.files.wording import as_given
from walklearn.graphs import Graph
from walklearn.problem import Problem
from walklearn.simulation.layout import uncompiled_part
from walklearn.updates.gossip_sgd import (
    AsynchronousGossip,
    Gossip,
    GradientTracking,
    SynchronousGossip,
)
from walklearn.updates.step_sizes import StepSize
from walklearn.updates.update import Remembering, Sgd, Update
from walklearn.walks import Derived, Metropolis, Uniform, Walk, Weighted
from walklearn.walks.disclosure import check_protectable

if TYPE_CHECKING:
    from walklearn.privacy.model_noise import ModelNoise

Seed = int | np.random.SeedSequence | None


def root_of(seed: Seed) -> np.random.SeedSequence:
    """The root of all replicates' random streams: the seed, or one drawn by the system."""
    if isinstance(seed, np.random.SeedSequence):
        return seed
    if seed is not None and (not _is_count(seed) or seed < 0):
        raise ValueError(
            f"seed must be a whole number of at least 0, a SeedSequence or None, got {seed!r}."
        )
    return np.random.SeedSequence(None if seed is None else int(seed))


def _is_count(number: object) -> bool:
    return isinstance(number, int | np.integer) and not isinstance(number, bool)


def iterations_at(
    method: Walk | Gossip, graph: Graph, steps: int, records: int | ArrayLike
) -> NDArray[np.int64]:
    """The iterations to record after, strictly increasing, the last one reaching `steps`."""
    per_iteration = updates_per_iteration(method, graph)
    last = -(-steps // per_iteration)
    if not _is_count(records):
        wanted = np.asarray(records)
        whole = wanted.ndim == 1 and wanted.size and np.issubdtype(wanted.dtype, np.integer)
        if not whole or wanted.min() < 1 or wanted.max() > steps:
            raise ValueError(
                "records must be a whole number, or a list of update counts between 1 and steps = "
                f"{steps}."
            )
        return np.unique(-(-wanted.astype(np.int64) // per_iteration))
    number = int(cast(int, records))
    if number < 1:
        raise ValueError(f"records must be at least 1, got {number}.")
    count = min(number, last)
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
    if not _is_count(gaps) or gaps < 1:
        raise ValueError(
            f"gaps must be True, False or a whole number of nodes, at least 1, got {gaps!r}."
        )
    return int(gaps)


def check_model_privacy(method: Walk | Gossip, noise: ModelNoise) -> None:
    """Refuse noise on the model where the walk shows something else of the rows."""
    from walklearn.privacy.model_noise import ModelNoise

    if not isinstance(noise, ModelNoise):
        raise TypeError(f"model_privacy must be a privacy.ModelNoise, got {noise!r}.")
    if not isinstance(method, Walk):
        raise ValueError("model_privacy is for walks; gossip shows every node's model.")
    check_protectable(method)


def check_network_options(method: Walk | Gossip, mean_importance: str, streams: str) -> None:
    """Refuse for gossip what only a token can estimate and only nodes of a walk can draw.

    The estimate needs visits in proportion to what the gradient is divided by, or no division.
    """
    if streams not in ("replicate", "node"):
        raise ValueError(f'streams must be "replicate" or "node", got {streams!r}.')
    if mean_importance not in ("exact", "estimated"):
        raise ValueError(
            f'mean_importance must be "exact" or "estimated", got {mean_importance!r}.'
        )
    if not isinstance(method, Walk):
        if streams == "node" or mean_importance == "estimated":
            raise ValueError(
                'streams="node" and mean_importance="estimated" are about a token that walks; '
                f"{method!r} has none."
            )
        return
    if mean_importance == "exact":
        return
    walk = method.innermost
    outer = Derived.gradient_scale if isinstance(method, Derived) else Metropolis.gradient_scale
    known = isinstance(walk, Metropolis) and type(method).gradient_scale is outer
    if not known or type(walk).gradient_scale is not Metropolis.gradient_scale:
        raise ValueError(
            f"{method!r} has a gradient_scale of its own, which the token cannot estimate. "
            'Use mean_importance="exact".'
        )
    if isinstance(walk, Uniform) and walk.normalise:
        raise ValueError(
            "a uniform walk meets the harmonic mean of L_i, not the mean that normalise=True "
            'scales by. Use mean_importance="exact", or Weighted().'
        )
    if isinstance(walk, Weighted) and walk.reweight == "as-printed":
        raise ValueError(
            'the token counts what nodes release, but reweight="as-printed" scales by the true '
            'L_i. Use reweight="released", or mean_importance="exact".'
        )


def gossip_step(update: Update) -> StepSize:
    """Gossip's step size: it makes the steps of `Sgd`."""
    if not isinstance(update, Sgd):
        raise ValueError(
            f"{update!r} is what a token and the nodes it visits remember, and gossip has no "
            "token. Pass step_size=…, or a walk as the method."
        )
    return update.step_size


def check_update(
    problem: Problem, method: Walk | Gossip, update: Update, noised: bool, mean_importance: str
) -> None:
    """Refuse an update with memory for what it cannot do, or where something is protected."""
    if not isinstance(method, Walk):
        gossip_step(update)
    if not isinstance(update, Remembering):
        return
    update.check(problem)
    if noised or (isinstance(method, Walk) and method.is_private):
        raise ValueError(
            f"{update!r} and privacy do not go together: {update.tells}. Use "
            "updates.Sgd(step_size): under noise, memory would gain nothing."
        )
    if mean_importance == "estimated":
        raise ValueError(
            f"{update!r} does not scale gradients, so there is no mean importance to estimate: "
            'leave out mean_importance="estimated".'
        )


def check_run(
    problem: Problem,
    graph: Graph,
    method: Walk | Gossip,
    steps: int,
    replicates: int,
    batch: int | None,
    cores: int | None,
    engine: str,
) -> None:
    """Raise what is wrong with a run, before anything is computed."""
    if not isinstance(method, Walk | AsynchronousGossip | SynchronousGossip):
        raise TypeError(
            f"the method must be a walk such as walks.Weighted(), or AsynchronousGossip() or "
            f"SynchronousGossip(), got {as_given(method)}."
        )
    if not isinstance(problem, Problem):
        raise TypeError(f"problem must be a walklearn.Problem, got {as_given(problem)}.")
    if not isinstance(graph, Graph):
        raise TypeError(
            f"graph must be a walklearn graph, got {type(graph)}. graphs.as_graph(...) makes one "
            "from a networkx or igraph graph, a matrix or a file."
        )
    if graph.node_count != problem.nodes:
        raise ValueError(
            f"the graph has {graph.node_count} nodes, but the problem has {problem.nodes}. "
            'Give every node rows (node_of_row=…), or pass empty_nodes="relay" and nodes=….'
        )
    if not isinstance(method, Walk) and graph.node_count == 1:
        raise ValueError("gossip needs at least 2 nodes; on one node use walks.Uniform().")
    counts = {"steps": steps, "replicates": replicates, "batch": batch, "cores": cores}
    for name, count in counts.items():
        if count is not None and (not _is_count(count) or count < 1):
            raise ValueError(f"{name} must be a whole number of at least 1, got {count!r}.")
    if isinstance(method, GradientTracking) and batch is not None:
        raise ValueError(
            "gradient tracking takes differences of gradients, which must be of all rows of a "
            "node: leave batch out, or use SynchronousGossip()."
        )
    if engine not in ("compiled", "reference"):
        raise ValueError(f'engine must be "compiled" or "reference", got {engine!r}.')


def check_engine(problem: Problem, method: Walk | Gossip, update: Update, engine: str) -> None:
    """Refuse the compiled engine for what does not come with the package."""
    part = uncompiled_part(problem, method, update) if engine == "compiled" else None
    if part is not None:
        raise ValueError(f'{type(part).__name__} is not compiled; pass engine="reference".')
