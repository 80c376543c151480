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
    """Compute f of each of the models."""
    from walklearn.simulation.kernels import values

    width, sparse = data.rows.width, hasattr(data.rows, "columns")
    lines, result = models.reshape(-1, width), np.zeros(models.shape[:-1])
    if sparse:
        whole, vectors = len(lines) - len(lines) % values.TOGETHER, np.empty(lines.shape)
        turns = vectors[:whole].reshape(-1, width, values.TOGETHER)
        turns[:] = lines[:whole].reshape(-1, values.TOGETHER, width).transpose(0, 2, 1)
        vectors[whole:] = lines[whole:]
    else:
        vectors = np.ascontiguousarray(lines, dtype=np.float64)
        if len(lines) % 2:
            vectors = np.concatenate([vectors, np.zeros((1, width))])
    space = values.Space.of(0 if sparse else width, models.shape[-1] // width)
    values.values(data, vectors.reshape(-1), result.reshape(-1), space)
    squares = np.einsum("...a,...a->...", models, models, dtype=np.float64)
    return np.asarray(result + 0.5 * data.penalty * squares)


def uncompiled_part(
    problem: Problem, method: Walk | Gossip, update: Update | None = None
) -> object:
    """The loss, domain, walk or update that the compiled engine does not know; None if all."""
    if type(problem.loss) not in (*_BUILT_IN, Softmax):
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


def _hop_kinds() -> dict[Any, Any]:
    """The kernels' walks by the method of the reference: a user's own hop is not among them."""
    from walklearn.simulation.kernels import hops

    return {
        Metropolis.hop: hops.Metropolis,
        NonBacktracking.hop: hops.NonBacktracking,
        Jumping.hop: hops.Jumping,
        Independent.hop: hops.Independent,
        HistoryDriven.hop: hops.HistoryDriven,
    }


_BUILT_IN = (Logistic, Squared, Huber, SquaredHinge)  # by their codes in `kernels.losses`


def _loss_of(loss: Loss, outputs: int) -> Any:
    """The loss as kernels take it."""
    from walklearn.simulation.kernels import losses

    if isinstance(loss, Softmax):
        return losses.Softmax(outputs)
    parameter = loss.threshold if isinstance(loss, Huber) else 0.0
    return losses.BuiltIn(_BUILT_IN.index(type(loss)), parameter)


def data_of(problem: Problem, batch: int | None) -> Any:
    """The problem as arrays and numbers; batch: the rows of a node that a visit uses."""
    from walklearn.simulation.kernels import rows

    X, domain = problem.X, problem.domain
    low, high = (domain.low, domain.high) if isinstance(domain, Box) else (-np.inf, np.inf)
    if problem.is_sparse:
        starts = X.indptr.astype(np.int64)
        of_problem: Any = rows.SparseRows(X.data, X.indices, starts, problem.dimension)
    else:
        of_problem = rows.DenseRows(X.reshape(-1), problem.dimension)
    return rows.Data(
        rows=of_problem,
        loss=_loss_of(problem.loss, problem.outputs),
        targets=problem.y,
        weights=problem.row_weights,
        offsets=problem.offsets,
        penalty=problem.penalty,
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


def walk_of(settings: Sequence[WalkSetting], counts: Array) -> Any:
    """The walk as arrays: one line of scores if all replicates share it, else one for each."""
    from walklearn.simulation.kernels import hops

    walk, graph = settings[0].walk, settings[0].graph
    inner = walk.innermost
    is_single = graph.node_count == 1  # then the token stays whatever the walk
    chain = hops.Chain(
        indptr=np.array([0, 1], graph.indptr.dtype) if is_single else graph.indptr,
        indices=np.zeros(1, graph.indices.dtype) if is_single else graph.indices,
        score=np.concatenate([setting.score for setting in settings]),
        stride=graph.node_count if len(settings) > 1 else 0,
        laziness=1.0 if is_single else inner.laziness if isinstance(inner, Metropolis) else 0.0,
        jump_probability=walk.probability if isinstance(walk, Jumping) else 0.0,
    )
    if is_single:
        return hops.Metropolis(chain)
    if isinstance(walk, Jumping):
        return hops.Jumping(chain, walk.stops)
    if isinstance(walk, HistoryDriven):
        return hops.HistoryDriven(chain, walk.alpha, counts)
    return _hop_kinds()[type(walk).hop](chain)


def weights_of(settings: Sequence[WalkSetting]) -> Array:
    """The factors of the gradients; without L̄ if the token estimates it."""
    estimated = settings[0].mean_importance == "estimated"
    return np.concatenate([1.0 / each.divisors if estimated else each.scale for each in settings])
