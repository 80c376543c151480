"""A problem, a walk and its random streams as the arrays that compiled code takes."""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from functools import cache
from typing import Any

import numpy as np

from walklearn.arrays import Array
from walklearn.graphs import Graph
from walklearn.objectives import Problem
from walklearn.objectives.linear.domains import Ball, Box
from walklearn.objectives.linear.losses import (
    FunctionLoss,
    Huber,
    Logistic,
    Loss,
    Softmax,
    Squared,
    SquaredHinge,
)
from walklearn.progress import announce
from walklearn.simulation import covering_tables
from walklearn.simulation.batches import Position
from walklearn.streams import Streams


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
    scores, block = values.TOGETHER * (models.shape[-1] // width) + 1, values.BLOCK
    lanes = (0 if sparse else width, scores, block, block, 1, 1)
    space = values.Space(*(np.zeros(values.LANES * count) for count in lanes))
    values.values(data, vectors.reshape(-1), result.reshape(-1), space)
    squares = np.einsum("...a,...a->...", models, models, dtype=np.float64)
    return np.asarray(result + 0.5 * data.penalty * squares)


_LOCK = threading.Lock()
_ANNOUNCED: set[Callable[..., float]] = set()
BUILT_IN = (Logistic, Squared, Huber, SquaredHinge)  # by their codes in `kernels.losses`


def _loss_of(loss: Loss, outputs: int) -> Any:
    """Return the loss as kernels take it."""
    from walklearn.simulation.kernels import losses

    if isinstance(loss, Softmax):
        return losses.Softmax(outputs)
    if isinstance(loss, FunctionLoss):
        return with_functions(loss)
    parameter = loss.threshold if isinstance(loss, Huber) else 0.0
    return losses.BuiltIn(BUILT_IN.index(type(loss)), parameter)


def data_of(problem: Problem) -> Any:
    """Return the problem as arrays and numbers."""
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
        batch=problem.draws,
        radius=domain.radius if isinstance(domain, Ball) else np.inf,
        low=low,
        high=high,
    )


def has_one_row(problem: Problem, sparse: bool = False) -> bool:
    """True if each node has one row, dense or sparse, and one score."""
    if problem.is_sparse != sparse or problem.outputs != 1:
        return False
    return bool((np.diff(problem.offsets) == 1).all())


def noise_of(privacy: Any, problem: Problem, contributions: Array | None) -> Any:
    """Return the protection as kernels take it; a clip of 0 if nothing is protected."""
    from walklearn.simulation.kernels.visits.sgd import Noise

    normals = np.empty((0, 0, 0))  # of the visits of each call
    if contributions is None:
        nothing = np.empty((0, 0), np.int64)
        return Noise(0.0, False, 0.0, 0, np.empty(0), np.empty(0), normals, nothing)
    return Noise(
        clip=privacy.clip,
        by_row=privacy.protect == "rows",
        deviation=privacy.standard_deviation,
        max_contributions=privacy.max_contributions,
        factors=np.array([privacy.factor(problem, node) for node in range(problem.nodes)]),
        lengths=np.sqrt(problem.row_squares),
        normals=normals,
        contributions=contributions,
    )


def node_streams_of(streams: Sequence[Streams], nodes: int) -> Array:
    """Return the state of each node's stream, (replicates, nodes, 4); empty if they share one.

    From then on these states advance, and the generators they were read from do not.
    """
    node_streams = [each for each in streams if each.nodes is not None]
    states = [_pcg64_state(each.of(node).walk) for each in node_streams for node in range(nodes)]
    return np.array(states, dtype=np.uint64).reshape(len(node_streams), nodes, 4)


def token_streams_of(streams: Sequence[Streams], tokens: int) -> Array:
    """Return the state of each token's stream, (replicates, tokens, 4); see `node_streams_of`."""
    states = [[_pcg64_state(each.of(0, slot).walk) for slot in range(tokens)] for each in streams]
    return np.array(states, dtype=np.uint64)


def _pcg64_state(generator: np.random.Generator) -> list[int]:
    """State and increment, each as a high and a low half."""
    state = generator.bit_generator.state["state"]
    return [half for name in ("state", "inc") for half in divmod(state[name], 2**64)]


def hops_of(
    walks: Sequence[Any], graph: Graph, problem: Problem, starts: Sequence[Position]
) -> Any:
    """Return the walk as arrays, with one line of scores for each of `walks`, which are bound.

    There is one walk if all replicates share it. `starts` are the positions of the tokens.
    """
    from walklearn.simulation.kernels import hops

    walk, is_single = walks[0], graph.node_count == 1  # then the token stays whatever the walk
    chain = hops.Chain(
        indptr=np.array([0, 1], graph.indptr.dtype) if is_single else graph.indptr,
        indices=np.zeros(1, graph.indices.dtype) if is_single else graph.indices,
        score=np.concatenate([_hop_table(each, graph, problem) for each in walks]),
        stride=graph.node_count if len(walks) > 1 else 0,
        laziness=1.0 if is_single else getattr(walk.innermost, "laziness", 0.0),
        jump_probability=getattr(walk, "probability", 0.0),
    )
    shape = len(starts), graph.node_count
    kinds: dict[str, Callable[[], Any]] = {
        "metropolis": lambda: hops.Metropolis(chain),
        "non-backtracking": lambda: hops.NonBacktracking(chain),
        "jumping": lambda: hops.Jumping(chain, walk.stops),
        "independent": lambda: hops.Independent(chain),
        "history": lambda: hops.HistoryDriven(chain, walk.alpha, np.ones(shape, np.int64)),
        "oldest-first": lambda: covering_tables.oldest_first_of(chain, starts),
        "tour": lambda: covering_tables.tour_of(chain, starts),
    }
    is_chain = is_single and walk.compiled not in covering_tables.COVERING
    return kinds["metropolis" if is_chain else walk.compiled]()


def _hop_table(walk: Any, graph: Graph, problem: Problem) -> Array:
    """Return the numbers that a compiled hop compares: the scores, or a cumulative distribution."""
    if walk.compiled in covering_tables.COVERING:
        return np.empty(0)
    cumulative: Array | None = getattr(walk, "cumulative", None)
    if cumulative is not None:
        return cumulative
    return np.ascontiguousarray(walk.announcements(graph, problem)[:, 0])


def weights_of(walks: Sequence[Any], graph: Graph, problem: Problem, mean: str) -> Array:
    """Return the weights of the gradients; without s̄ if the token estimates it."""
    inner = [walk.innermost for walk in walks]
    if mean == "estimated":
        return np.concatenate([1.0 / walk.divisors(graph, problem) for walk in inner])
    return np.concatenate([walk.scale for walk in inner])


def last_visits_of(starts: Sequence[Position], nodes: int) -> Array:
    """Return the last visit of each token to each node, 0 for none, from which gaps are found.

    Stamps on the tokens continue from earlier batches. Nodes start without state, so that all
    other walks weight the first visit of a batch by 1, as the reference does.
    """
    if "stamps" in starts[0].token.walk:
        return covering_tables.stamps_of(starts).reshape(-1).astype(np.float64)
    return np.zeros(len(starts) * nodes)


def with_functions(loss: FunctionLoss) -> Any:
    """Return the loss as kernels take it; Numba must have accepted its functions."""
    from walklearn.simulation.kernels import losses

    value, slope = map(compiled, (loss.value_function, loss.slope_function))
    if loss.unit != 1.0:  # apart: the product would be on the critical path of a visit
        return losses.Rescaled(value, slope, loss.smoothness, np.empty(0), loss.unit)
    table = _slope_table(slope, loss.takes == "sign", losses.RANGE, losses.PER_UNIT)
    return losses.FromFunctions(value, slope, loss.smoothness, table)


def rejection_of(part: object) -> str | None:
    """Return Numba's reason to reject a loss from functions; None for all other parts."""
    if type(part) is not FunctionLoss:
        return None
    results = map(compiled, (part.value_function, part.slope_function))
    return next((result for result in results if isinstance(result, str)), None)


def announce_compilation(objective: Any, progress: bool | None) -> None:
    """Announce, once per process and loss, that kernels are compiled for a user's functions.

    progress: as for `progress_bar`; False announces nothing.
    """
    loss = objective.loss
    if type(loss) is FunctionLoss and loss.slope_function not in _ANNOUNCED:
        _ANNOUNCED.add(loss.slope_function)
        announce(f"walklearn is compiling the loss {loss.name!r}, once per process …", progress)


def compiled(function: Callable[..., Any]) -> Any:
    """Return a function of (score, target) compiled, or Numba's reason to reject it."""
    with _LOCK:  # or two threads would compile the same function
        return _compiled(function)


@cache
def _compiled(function: Callable[..., Any]) -> Any:
    from walklearn.simulation.kernels.compilation import user_function

    try:
        dispatcher = user_function(getattr(function, "py_func", function))
        dispatcher.compile("(float64, float64)")
    except Exception as error:  # Numba raises errors of many types
        lines = [line.strip() for line in str(error).splitlines()]
        reasons = [line for line in lines if line and not line.startswith("Failed in ")]
        return reasons[0] if reasons else type(error).__name__
    (result,) = (each.signature.return_type for each in dispatcher.overloads.values())
    if not str(result).startswith(("float", "int", "uint", "bool", "Literal[int]")):
        return f"{function.__name__} returns {result}, not a number"
    return dispatcher


@cache
def _slope_table(
    slope: Callable[..., float], is_for_signs: bool, width: int, per_unit: int
) -> Array:
    """Return slopes at the scores −width to width for target −1, then for +1; else nothing.

    Slopes of a convex loss grow with the score, so those of two scores enclose all between. A look
    at the table takes less time than most functions.
    """
    scores = np.arange(-width * per_unit, width * per_unit + 1) / per_unit
    targets = (-1.0, 1.0) if is_for_signs else ()
    return np.array([slope(score, target) for target in targets for score in scores], np.float64)
