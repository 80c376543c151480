"""A problem, a walk and its random streams as the arrays that compiled code takes.

Also what it does not know (`uncompiled_part`), which then runs as the reference.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from walklearn.problem import Problem
from walklearn.problem.domains import Ball, Box, Everywhere
from walklearn.problem.losses import Huber, Logistic, Loss, Softmax, Squared, SquaredHinge
from walklearn.simulation.batches import Array
from walklearn.updates.gossip_sgd import Gossip
from walklearn.updates.memory import Saga
from walklearn.updates.random_streams import Streams
from walklearn.updates.update import Remembering, Update
from walklearn.updates.walk_sgd import WalkSetting
from walklearn.walks import HistoryDriven, Independent, Jumping, Metropolis, NonBacktracking, Walk


def values_of(data: Any, models: Array) -> Array:
    """f of each of the models, by the rows as `data_of` has them."""
    from walklearn.simulation import compiled

    lines, together = models.reshape(-1, data.dimension), compiled.TOGETHER
    if len(data.starts):
        whole, vectors = len(lines) - len(lines) % together, np.empty(lines.shape)
        turns = vectors[:whole].reshape(-1, data.dimension, together)
        turns[:] = lines[:whole].reshape(-1, together, data.dimension).transpose(0, 2, 1)
        vectors[whole:] = lines[whole:]
    else:
        vectors = np.ascontiguousarray(lines, dtype=np.float64)
        if len(lines) % 2:
            vectors = np.concatenate([vectors, np.zeros((1, data.dimension))])
    values = compiled.values(data, vectors, models[..., 0].size).reshape(models.shape[:-1])
    squares = np.einsum("...a,...a->...", models, models, dtype=np.float64)
    return np.asarray(values + 0.5 * data.penalty * squares)


def uncompiled_part(
    problem: Problem, method: Walk | Gossip, update: Update | None = None
) -> object:
    """The loss, domain, walk or update that the compiled engine does not know; None if all."""
    if type(problem.loss) not in _loss_codes():
        return problem.loss
    if type(problem.domain) not in (Ball, Box, Everywhere):
        return problem.domain
    if isinstance(method, Walk):
        inner = method.innermost
        own_hop = isinstance(inner, Metropolis) and type(inner).hop is not Metropolis.hop
        if own_hop or type(method).hop not in _hop_kinds():
            return method
    # Compared by its visit, so that a user's subclass with another one runs as the reference.
    if isinstance(update, Remembering) and type(update).visit is not Saga.visit:
        return update
    return None


def _hop_kinds() -> dict[Any, int]:
    """The numbers of hops that are compiled, by function: a user's own hop is not among them."""
    from walklearn.simulation import compiled

    return {
        Metropolis.hop: compiled.METROPOLIS,
        NonBacktracking.hop: compiled.NON_BACKTRACKING,
        Jumping.hop: compiled.JUMPING,
        Independent.hop: compiled.INDEPENDENT,
        HistoryDriven.hop: compiled.HISTORY,
    }


def _loss_codes() -> dict[type[Loss], int]:
    from walklearn.simulation import compiled

    return {
        Logistic: compiled.LOGISTIC,
        Squared: compiled.SQUARED,
        Huber: compiled.HUBER,
        SquaredHinge: compiled.SQUARED_HINGE,
        Softmax: compiled.SOFTMAX,
    }


def data_of(problem: Problem, batch: int | None) -> Any:
    """The problem as arrays and numbers; batch: how many rows of a node a visit looks at."""
    from walklearn.simulation import compiled

    loss, domain = problem.loss, problem.domain
    low, high = (domain.low, domain.high) if isinstance(domain, Box) else (-np.inf, np.inf)
    return compiled.Data(
        rows=problem.X.data if problem.is_sparse else problem.X.reshape(-1),
        columns=problem.X.indices if problem.is_sparse else np.empty(0, np.int32),
        starts=problem.X.indptr.astype(np.int64) if problem.is_sparse else np.empty(0, np.int64),
        targets=problem.y,
        weights=problem.row_weights,
        offsets=problem.offsets,
        penalty=problem.penalty,
        loss=_loss_codes()[type(loss)],
        loss_parameter=loss.threshold if isinstance(loss, Huber) else 0.0,
        dimension=problem.dimension,
        outputs=problem.outputs,
        form=(0,) * (1 + 2 * problem.is_sparse + isinstance(loss, Softmax)),
        batch=batch or 0,
        radius=domain.radius if isinstance(domain, Ball) else np.inf,
        low=low,
        high=high,
    )


def has_one_row(problem: Problem) -> bool:
    """Whether each node has one dense row and one score."""
    return (
        not problem.is_sparse
        and problem.outputs == 1
        and bool((np.diff(problem.offsets) == 1).all())
    )


def node_streams_of(streams: Sequence[Streams]) -> Array:
    """Where each node's stream stands, (replicates, nodes, 4); empty where they share one.

    From then on these move, and the generators they were read from stay where they are.
    """
    owned = [each.nodes for each in streams if each.nodes is not None]
    states = [_pcg64_state(own.walk) for nodes in owned for own in nodes]
    nodes = len(owned[0]) if owned else 0
    return np.array(states, dtype=np.uint64).reshape(len(owned), nodes, 4)


def _pcg64_state(generator: np.random.Generator) -> list[int]:
    """State and increment, each as a high and a low half."""
    state = generator.bit_generator.state["state"]
    return [half for name in ("state", "inc") for half in divmod(state[name], 2**64)]


def chain_of(settings: Sequence[WalkSetting]) -> Any:
    """The walk as arrays: one line where all replicates share it, else one for each."""
    from walklearn.simulation import compiled

    walk, graph = settings[0].walk, settings[0].graph
    inner = walk.innermost
    estimated = settings[0].mean_importance == "estimated"
    alone = graph.node_count == 1  # then the token stays whatever the walk
    return compiled.Chain(
        indptr=np.array([0, 1], graph.indptr.dtype) if alone else graph.indptr,
        indices=np.zeros(1, graph.indices.dtype) if alone else graph.indices,
        score=np.stack([setting.score for setting in settings]),
        scale=np.stack([1.0 / each.divisors if estimated else each.scale for each in settings]),
        kind=(0,) * (compiled.METROPOLIS if alone else _hop_kinds()[type(walk).hop]),
        laziness=1.0 if alone else inner.laziness if isinstance(inner, Metropolis) else 0.0,
        jump_probability=walk.probability if isinstance(walk, Jumping) else 0.0,
        jump_stops=walk.stops if isinstance(walk, Jumping) else np.ones(1),
        alpha=walk.alpha if isinstance(walk, HistoryDriven) else 0.0,
    )
