"""Walks of a token until its loss stops improving, in rounds of doubling length.

Rounds end after n, 2n, 4n, … updates. Then f is evaluated over the rows of all nodes; in a network,
a token would collect this loss on one more tour. The averaged model for prediction is the one of
the last round, w̄ = Σ γ_m w_m / Σ γ_m over its updates. The average in the theorems also includes
the start of the walk, whose weight falls only slowly.

>>> StoppingRule(steps=None, max_steps=10_000, first=1000).rounds()
[39, 78, 156, 312, 625, 1250, 2500, 5000, 10000]
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal, NamedTuple

import numpy as np
from numpy.typing import NDArray

from walklearn.fitting.convergence import Convergence
from walklearn.graphs import Graph
from walklearn.objectives import Problem
from walklearn.progress import stop_on_interrupt
from walklearn.simulation.batches import Position, ReferenceWalks, ReleasedWalks, WalkBatch
from walklearn.simulation.engines import batch_class_of
from walklearn.streams import Streams
from walklearn.updates.step_choice import MIN_COVERAGE, has_converged, visited_mass
from walklearn.visit import Setting

Array = NDArray[Any]
Average = Literal["tail", "all", "none"]

NUMBERS_AT_ONCE = 1_000_000  # random numbers that are drawn at a time
MARKS = 32  # positions in the last half of a stream from which its average may start
SLOWER = 500  # time of the reference relative to the kernels; limits the delay of Ctrl-C
EARLY_ROUNDS = 32  # the first round is 1/32 of the shortest walk, so that plots have early points
MORE = "Raise max_steps or tol, use a larger penalty, or fix the number of updates with steps."


@dataclass(frozen=True)
class StoppingRule:
    """The length of a walk: `steps` updates, or until it converges, but at most `max_steps`.

    first: the minimum of updates before the loss may count as converged. average: the model that
    predicts, which is the average of the last round ("tail") or of the whole walk ("all"), or the
    last model ("none"). is_stream: True for one call of partial_fit, with `steps` updates; the
    "tail" is then the last half of all calls.

    With an update that converges to the minimiser, such as Saga, `convergence` ends the walk.
    """

    steps: int | None
    max_steps: int
    first: int
    tolerance: float = 3e-3
    average: Average = "tail"
    is_stream: bool = False

    def rounds(self) -> list[int]:
        """Return the number of updates at the end of each round."""
        ends = [self.steps or self.max_steps]
        if self.is_stream and ends[0] > 1:
            return [ends[0] // 2, ends[0]]
        while not self.is_stream and ends[0] >= 2 * self.first / EARLY_ROUNDS:
            ends.insert(0, ends[0] // 2)
        return ends


class Snapshot(NamedTuple):
    """The losses of the last model and of the average at the end of a round, and its costs."""

    updates: int
    messages: int
    arrival: int
    value: float
    average_value: float


@dataclass(eq=False)
class WalkResult:
    """The token of a walk, and snapshots of its rounds.

    resumable: the token from which a later call continues, with the sums of the whole stream.
    marks: tokens at which the last half of a stream may start. convergence: the convergence test,
    for an update that converges. loss_at_zero, coverage: for a walk until convergence, the loss of
    a model of zeros, and the stationary probability of the nodes visited in the last round.
    """

    token: Position
    resumable: Position
    marks: list[Position]
    has_converged: bool = False
    loss_at_zero: float = np.nan
    coverage: float = 0.0
    interrupted: bool = False
    convergence: Convergence | None = None
    snapshots: list[Snapshot] = field(default_factory=list)
    visits: Array = field(default_factory=lambda: np.zeros(0, dtype=np.int64))
    contributions: Array | None = None

    def losses(self, average: Average) -> list[float]:
        """Return the losses of the model that predicts."""
        return [each.value if average == "none" else each.average_value for each in self.snapshots]


def run_walk(
    setting: Setting,
    graph: Graph,
    streams: Streams,
    token: Position | None,
    stopping: StoppingRule,
    contributions: Array | None = None,
    callback: Callable[[int, float], object] | None = None,
    draws_exactly: bool = False,
    marks: Sequence[Position] = (),
) -> WalkResult:
    """Run a walk from a token, or from a new one, until `stopping` ends it.

    contributions: the number of earlier contributions of each node to the model. callback: called
    after each round with the number of updates and the loss. draws_exactly: True to draw the noise
    on the model exactly, from the operating system's entropy; otherwise it comes from the streams
    and protects nobody.
    """
    positions = None if token is None else [token]
    batch_class = ReleasedWalks if draws_exactly else batch_class_of(setting)
    batch = batch_class(setting, graph, [streams], positions)
    if batch.contributions is not None and contributions is not None:
        batch.contributions[0, : len(contributions)] = contributions
    position = last_start = batch.positions[0]
    first = position.token.updates
    result = WalkResult(position, position, list(marks) or [position])
    until_convergence, waiting = stopping.steps is None, list[Position]()
    if until_convergence:
        result.loss_at_zero = _value_of_zeros(setting.objective)
        if setting.update.converges:
            result.convergence = Convergence(stopping.tolerance)
    stop = threading.Event()
    with stop_on_interrupt(stop):  # Ctrl-C may also come between two rounds
        for end in stopping.rounds():
            start, visits_before = position, batch.visits.copy()
            converged = _advance(batch, first + end, result.convergence, stop)
            result.interrupted = batch.iterations < first + end and not converged
            if result.interrupted and batch.iterations == first:
                raise KeyboardInterrupt  # there is no result to keep
            if result.interrupted and batch.iterations == start.token.updates:
                break  # interrupted between two rounds: the result is complete
            position = batch.positions[0]
            # The average of an interrupted round may be over very few updates.
            _average(batch, result, position, last_start if result.interrupted else start, stopping)
            last_start = start
            waiting.append(result.token)
            # If nobody needs the loss yet, evaluate several models in one pass over the rows.
            numbers = len(waiting) * setting.objective.size
            if until_convergence or callback is not None or numbers >= NUMBERS_AT_ONCE:
                _evaluate(batch, result, waiting)
            if callback is not None:
                callback(result.token.token.updates, result.losses(stopping.average)[-1])
            if not until_convergence:
                continue
            visits = batch.visits - visits_before
            result.coverage = visited_mass(batch.setting.walk, graph, setting.objective, visits)
            result.has_converged = converged
            if result.convergence is None:
                losses, of_zeros = result.losses(stopping.average), result.loss_at_zero
                converged = has_converged(losses, of_zeros, stopping.tolerance, result.coverage)
                result.has_converged, converged = converged, converged and end >= 2 * stopping.first
            if result.interrupted or converged:
                break
    _evaluate(batch, result, waiting)
    result.visits = batch.visits
    result.contributions = None if batch.contributions is None else batch.contributions[0]
    return result


def why_not_converged(walk: WalkResult, stopping: StoppingRule) -> str:
    """Explain why a walk has not converged, with a remedy."""
    losses, updates = walk.losses(stopping.average), walk.snapshots[-1].updates
    if walk.convergence is not None and walk.convergence.ratio < np.inf:
        ratio = f"{walk.convergence.ratio:.3g} times the tolerance"
        if walk.convergence.ratio <= 1.0:
            ratio += ", but not yet for a whole round of the network"
        return f"not converged after {updates:,} updates: the gradient norm is {ratio}. {MORE}"
    if walk.coverage < MIN_COVERAGE:
        return (
            f"not converged after {updates:,} updates: in the last half the token visited only "
            f"{100 * walk.coverage:.0f} % of the network's {len(walk.visits)} nodes. Raise "
            "max_steps, or use a graph with more edges, or a walk that jumps, such as "
            "walks.Jumping(walks.Uniform())."
        )
    before = losses[-2] if len(losses) > 1 else walk.loss_at_zero
    return (
        f"not converged after {updates:,} updates: the loss is {losses[-1]:.4g}, and halfway it "
        f"was {before:.4g}. {MORE}"
    )


def _advance(
    batch: WalkBatch, target: int, convergence: Convergence | None, stop: threading.Event
) -> bool:
    """Walk to this number of updates, until stopped or converged; return True if converged."""
    numbers = batch.setting.draws
    if batch.setting.privacy.adds_noise:
        numbers += batch.objective.size
    slower = SLOWER if isinstance(batch, ReferenceWalks) else 1
    max_block = max(1, NUMBERS_AT_ONCE // (numbers * slower))
    while batch.iterations < target and not stop.is_set():
        block = min(max_block, target - batch.iterations)
        batch.advance(block if convergence is None else min(block, convergence.hops(batch)))
        if convergence is not None and convergence.is_reached(batch):
            return True
    return False


def _average(
    batch: WalkBatch, result: WalkResult, now: Position, start: Position, stopping: StoppingRule
) -> None:
    """Set the token whose average predicts, and the token from which a later call continues."""
    result.token = result.resumable = now
    if stopping.is_stream and stopping.average != "all":
        start, result.marks = _tail(result.marks, now)
        result.token = _since(batch, start, now)
    elif stopping.average != "all":
        result.token = result.resumable = _since(batch, start, now)


def _tail(marks: list[Position], now: Position) -> tuple[Position, list[Position]]:
    """Return the start of the last half of a stream, and the marks for the halves of later calls.

    The start is the newest mark in the first half of the updates, or else the first mark.
    """
    updates = now.token.updates
    early = [mark for mark in marks if 2 * mark.token.updates <= updates]
    kept = early[-1:]
    for mark in [*marks[len(early) :], now]:
        if not kept or MARKS * (mark.token.updates - kept[-1].token.updates) >= updates:
            kept.append(mark)
    return early[-1] if early else marks[0], kept


def _since(batch: WalkBatch, before: Position, now: Position) -> Position:
    """Return the token with the average of its updates since `before`, if it carries one."""
    arrays = batch.setting.update.with_average_since(before.token.update, now.token.update)
    return now._replace(token=now.token._replace(update=arrays))


def _evaluate(batch: WalkBatch, result: WalkResult, waiting: list[Position]) -> None:
    """Take snapshots of the waiting tokens, with their losses, and clear the list."""
    if not waiting:
        return
    update, objective = batch.setting.update, batch.setting.objective_view
    arrays = [position.token.update for position in waiting]
    pairs = [(update.model(objective, a), update.average_model(objective, a)) for a in arrays]
    models = [each for w, mean in pairs for each in ([w] if mean is w else [w, mean])]
    with np.errstate(over="ignore", invalid="ignore"):  # `_check_finite` refuses divergence
        values = map(float, batch.values(np.stack(models)[:, None])[:, 0])
        for position, (w, mean) in zip(waiting, pairs, strict=True):
            value = next(values)
            average_value = value if mean is w else next(values)
            counts = position.token.updates, position.messages, position.arrival
            result.snapshots.append(Snapshot(*counts, value, average_value))
    waiting.clear()


def _value_of_zeros(problem: Problem) -> float:
    """Return f(0), which needs no pass over the rows."""
    shape = (problem.row_count,) if problem.outputs == 1 else (problem.row_count, problem.outputs)
    losses = problem.loss.value(np.zeros(shape), problem.y)
    return float(problem.row_weights @ losses) / problem.nodes
