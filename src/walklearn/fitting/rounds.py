"""Letting a token walk until its loss stops improving, in rounds that double.

A round ends after n, 2n, 4n, … updates, where f of the model is looked at: the loss over all
nodes' rows, which a token would gather by going round once more. The average that predicts is that
of the last round, w̄ = Σ γ_m w_m / Σ γ_m over its updates: the theorems' average begins with the
start, and forgets it slowly.

>>> Stopping(steps=None, max_steps=10_000, first=1000).rounds()
[39, 78, 156, 312, 625, 1250, 2500, 5000, 10000]
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from walklearn.fitting.convergence import Arrival
from walklearn.graphs import Graph
from walklearn.objectives import Problem
from walklearn.progress import stop_on_interrupt
from walklearn.simulation.batches import Position, WalkBatch
from walklearn.simulation.engines import batch_class_of
from walklearn.simulation.reference_batches import ReferenceWalks, ReleasedWalks
from walklearn.streams import Streams
from walklearn.updates.step_choice import MIN_COVERAGE, has_converged, visited_mass
from walklearn.visit import Setting

Array = NDArray[Any]
Average = Literal["tail", "all", "none"]

NUMBERS_AT_ONCE = 1_000_000  # random numbers that are drawn at a time
MARKS = 32  # places in the last half of a stream that its average may begin at
SLOWER = 500  # times that the reference is: Ctrl-C should not have to wait for it longer
EARLY_LOOKS = 32  # the first look, for pictures, is at this fraction of where a walk may end


@dataclass(frozen=True)
class Stopping:
    """How long to walk: `steps` updates, or until the loss has settled, `max_steps` at most.

    first: updates before the loss may settle. average: what predicts, the average of the last
    round ("tail") or of the whole walk ("all"), or the last model ("none").
    go_on: a call of a stream, of `steps` updates: the "tail" is the last half of the whole stream.

    An update that converges ends the walk once it has converged (`convergence`), at any time.
    """

    steps: int | None
    max_steps: int
    first: int
    tolerance: float = 3e-3
    average: Average = "tail"
    go_on: bool = False

    def rounds(self) -> list[int]:
        """The updates, from here, after which a round ends."""
        ends = [self.steps or self.max_steps]
        if self.go_on and ends[0] > 1:
            return [ends[0] // 2, ends[0]]
        while not self.go_on and ends[0] >= 2 * self.first / EARLY_LOOKS:
            ends.insert(0, ends[0] // 2)
        return ends

    def may_end(self, end: int) -> bool:
        """Whether a round that ends there may be the last."""
        return self.steps is None and end >= 2 * self.first


@dataclass(eq=False)
class Walked:
    """Where a walk has got to: its token, and what was seen at the end of each round.

    carried: the token that a later call goes on with, which knows the sums of the whole stream.
    marks: the token as it was, wherever the last half of a stream may begin.
    arrival: of a walk that remembers gradients. Of a walk that ends by itself: whether it has
    settled, the loss of zeros, and been, the share of the network, by the walk's visit law, where
    the token was in the last round.
    """

    token: Position
    carried: Position
    marks: list[Position]
    settled: bool = False
    loss_at_zero: float = np.nan
    been: float = 0.0
    interrupted: bool = False
    arrival: Arrival | None = None
    updates: list[int] = field(default_factory=list)
    messages: list[int] = field(default_factory=list)
    values: list[float] = field(default_factory=list)
    average_values: list[float] = field(default_factory=list)
    visits: Array = field(default_factory=lambda: np.zeros(0, dtype=np.int64))
    contributions: Array | None = None


def run_walk(
    setting: Setting,
    graph: Graph,
    streams: Streams,
    token: Position | None,
    stopping: Stopping,
    contributions: Array | None = None,
    callback: Callable[[int, float], object] | None = None,
    real: bool = False,
    marks: Sequence[Position] = (),
) -> Walked:
    """Walk from a token, or from a new one, as `stopping` says.

    contributions: how often each node's rows showed in the model before. callback: called at
    the end of each round with the updates so far and the loss. real: noise on the model is drawn
    exactly, from the operating system's entropy, and protects; else it comes from the streams.
    """
    batch = _batch(setting, graph, streams, token, contributions, real)
    now = before = begun = batch.positions[0]
    first = begun.token.updates
    seen = Walked(begun, begun, list(marks) or [begun])
    ends_itself, waiting = stopping.steps is None, list[Position]()
    if ends_itself:
        seen.loss_at_zero = _value_of_zeros(setting.objective)
    if setting.update.converges:
        seen.arrival = Arrival(stopping.tolerance)
    stop = threading.Event()
    with stop_on_interrupt(stop):  # also between two rounds
        for end in stopping.rounds():
            round_begun, visits_before = now, batch.visits.copy()
            arrived = _advance(batch, first + end, seen.arrival, ends_itself, stop)
            seen.interrupted = batch.iterations < first + end and not arrived
            if seen.interrupted and batch.iterations == first:
                raise KeyboardInterrupt  # nothing is done that could be kept
            if seen.interrupted and batch.iterations == round_begun.token.updates:
                break  # between two rounds: all is kept already
            now = batch.positions[0]
            # The average of a round that was cut short may be over next to nothing.
            _average(batch, seen, now, before if seen.interrupted else round_begun, stopping)
            before = round_begun
            waiting.append(seen.token)
            # Where nobody waits for the loss, that of several rounds takes fewer passes over rows.
            numbers = len(waiting) * setting.objective.size
            if ends_itself or callback is not None or numbers >= NUMBERS_AT_ONCE:
                _look(batch, seen, waiting)
            losses = seen.values if stopping.average == "none" else seen.average_values
            if callback is not None:
                callback(seen.token.token.updates, losses[-1])
            if ends_itself:
                visits = batch.visits - visits_before
                seen.been = visited_mass(batch.setting.walk, graph, setting.objective, visits)
                seen.settled = arrived
                if seen.arrival is None:
                    of_zeros, tolerance = seen.loss_at_zero, stopping.tolerance
                    seen.settled = has_converged(losses, of_zeros, tolerance, seen.been)
            if seen.interrupted or arrived or (seen.settled and stopping.may_end(end)):
                break
    _look(batch, seen, waiting)
    seen.visits = batch.visits
    seen.contributions = None if batch.contributions is None else batch.contributions[0]
    return seen


MORE = "Raise max_steps or tol, use a larger penalty, or fix the number of updates with steps."


def why_not_settled(walked: Walked, stopping: Stopping) -> str:
    """What a walk that has not settled shows, and what to do about it."""
    losses = walked.values if stopping.average == "none" else walked.average_values
    if walked.arrival is not None and walked.arrival.ratio < np.inf:
        ratio = f"{walked.arrival.ratio:.3g} times the tolerance"
        if walked.arrival.ratio <= 1.0:
            ratio += ", but not yet for a whole round of the network"
        count = f"{walked.updates[-1]:,}"
        return f"not converged after {count} updates: the gradient norm is {ratio}. {MORE}"
    if walked.been < MIN_COVERAGE:
        return (
            f"in the last half of {walked.updates[-1]} updates the token has seen only "
            f"{100 * walked.been:.0f} % of the network's {len(walked.visits)} nodes. Raise "
            "max_steps, or help it along: a graph with more edges, or a walk that jumps, such as "
            "walks.Jumping(walks.Uniform())."
        )
    before = losses[-2] if len(losses) > 1 else walked.loss_at_zero
    return (
        f"after {walked.updates[-1]} updates the loss was {losses[-1]:.4g}, halfway it was "
        f"{before:.4g}: it has not settled. {MORE}"
    )


def _batch(
    setting: Setting,
    graph: Graph,
    streams: Streams,
    token: Position | None,
    contributions: Array | None,
    real: bool,
) -> WalkBatch:
    batch_class: type[WalkBatch] = ReleasedWalks if real else batch_class_of(setting)
    batch = batch_class(setting, graph, [streams], None if token is None else [token])
    if batch.contributions is not None and contributions is not None:
        batch.contributions[0, : len(contributions)] = contributions
    return batch


def _advance(
    batch: WalkBatch, target: int, arrival: Arrival | None, may_end: bool, stop: threading.Event
) -> bool:
    """Walk up to that many updates, or until stopped or arrived; return whether it has arrived."""
    numbers = batch.setting.draws
    if batch.setting.privacy.adds_noise:
        numbers += batch.objective.size
    slower = SLOWER if isinstance(batch, ReferenceWalks) else 1
    most = max(1, NUMBERS_AT_ONCE // (numbers * slower))
    while batch.iterations < target and not stop.is_set():
        block = min(most, target - batch.iterations)
        if arrival is not None and may_end:
            block = min(block, arrival.hops(batch))
        batch.advance(block)
        if arrival is not None and may_end and arrival.has_come(batch):
            return True
    return False


def _average(
    batch: WalkBatch, seen: Walked, now: Position, round_begun: Position, stopping: Stopping
) -> None:
    """Keep two tokens in `seen`: one whose average predicts, and the one that walks on."""
    seen.carried = now
    if stopping.average == "all":
        seen.token = now
    elif stopping.go_on:
        seen.token = _since(batch, _tail_begin(seen.marks, now), now)
        seen.marks = _thinned([*seen.marks, now], now.token.updates)
    else:
        seen.token = seen.carried = _since(batch, round_begun, now)


def _tail_begin(marks: Sequence[Position], now: Position) -> Position:
    """Where the last half of a stream begins: at the newest mark that is as old, or the first."""
    return max(
        (mark for mark in marks if 2 * mark.token.updates <= now.token.updates),
        key=lambda mark: mark.token.updates,
        default=marks[0],
    )


def _thinned(marks: Sequence[Position], now: int) -> list[Position]:
    """The marks that a last half may still begin at, and not too many of them."""
    early = [mark for mark in marks if 2 * mark.token.updates <= now]
    kept = early[-1:]
    for mark in marks[len(early) :]:
        if not kept or MARKS * (mark.token.updates - kept[-1].token.updates) >= now:
            kept.append(mark)
    return kept


def _since(batch: WalkBatch, before: Position, now: Position) -> Position:
    """Return the token with the average of its updates since then, if it carries one."""
    arrays = batch.setting.update.since(before.token.update, now.token.update)
    return now._replace(token=now.token._replace(update=arrays))


def _look(batch: WalkBatch, seen: Walked, waiting: list[Position]) -> None:
    """Find the losses of the waiting tokens, note them as seen, and let none wait."""
    update, objective = batch.setting.update, batch.setting.visible
    arrays = [position.token.update for position in waiting]
    pairs = [(update.model(objective, a), update.average_model(objective, a)) for a in arrays]
    models = [each for w, mean in pairs for each in ([w] if mean is w else [w, mean])]
    values = iter(_values(batch, models))
    for token, (w, mean) in zip(waiting, pairs, strict=True):
        seen.updates.append(token.token.updates)
        seen.messages.append(token.messages)
        seen.values.append(next(values))
        seen.average_values.append(seen.values[-1] if mean is w else next(values))
    waiting.clear()


def _value_of_zeros(problem: Problem) -> float:
    """f(0), which needs no pass over the rows."""
    shape = (problem.row_count,) if problem.outputs == 1 else (problem.row_count, problem.outputs)
    losses = problem.loss.value(np.zeros(shape), problem.y)
    return float(problem.row_weights @ losses) / problem.nodes


def _values(batch: WalkBatch, models: list[Array]) -> list[float]:
    if not models:
        return []
    with np.errstate(over="ignore", invalid="ignore"):  # a diverging walk is found out later
        return [float(value) for value in batch.values(np.stack(models)[:, None])[:, 0]]
