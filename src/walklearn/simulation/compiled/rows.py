"""A visit to rows in memory, any number of them: the gradient of a node's loss, and the step."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from walklearn.simulation.compiled.arithmetic import Array, Index, U, exp_of_minus, slope_of
from walklearn.simulation.compiled.cached import helper, inlined


class Data(NamedTuple):
    """The problem as arrays; see `Problem`. Sparse rows are compressed, row by row.

    form: a tuple of 1 entry for dense rows and one score, 2 for dense rows and softmax, 3 for
    sparse rows and one score, 4 for sparse rows and softmax. The length of a tuple is known when
    a kernel is compiled, so each form has machine code of its own, without the others' branches.
    """

    rows: Array  # (M·d,), flat; of sparse rows the entries that are not 0
    columns: Array  # of these entries
    starts: Array  # where each sparse row begins, and the last one ends
    targets: Array
    weights: Array
    offsets: Array
    penalty: float
    loss: int
    loss_parameter: float
    dimension: int
    outputs: int
    form: tuple[int, ...]
    batch: int  # 0 for all rows
    radius: float  # infinite unless W is a ball
    low: float  # infinite unless W is a box
    high: float


@inlined
def row_at(step: Any, first: Any, count: Any, picked: bool, uniforms: Array, at: Index) -> Index:
    """The row that is looked at in this step: the next one, or the one that its number picks."""
    place = min(np.int64(uniforms[at + U(step)] * count), count - 1) if picked else step
    return U(first + place)


@inlined
def score_of(
    rows: Array, columns: Array, starts: Array, row: Index, width: Index, form: tuple[int, ...],
    models: Array, at: Index,
) -> float:  # fmt: skip
    """x·w of a row and the vector that begins at models[at]."""
    score = 0.0
    if len(form) > 2:
        for p in range(U(starts[row]), U(starts[row + U(1)])):
            score += rows[U(p)] * models[at + U(columns[U(p)])]
    else:
        base = row * width
        for a in range(width):
            score += rows[base + U(a)] * models[at + U(a)]
    return score


@inlined
def add_row(
    rows: Array, columns: Array, starts: Array, row: Index, width: Index, form: tuple[int, ...],
    push: float, gradient: Array, at: Index,
) -> None:  # fmt: skip
    """gradient += push · x, from gradient[at] on."""
    if len(form) > 2:
        for p in range(U(starts[row]), U(starts[row + U(1)])):
            gradient[at + U(columns[U(p)])] += push * rows[U(p)]
    else:
        base = row * width
        for a in range(width):
            gradient[at + U(a)] += push * rows[base + U(a)]


@inlined
def to_slopes(scores: Array, at: Index, outputs: int, target: float) -> None:
    """Of the scores of softmax, from scores[at] on, make their slopes."""
    top, total = scores[at], 0.0
    for c in range(outputs):
        top = max(top, scores[at + U(c)])
        total += 0.0 * scores[at + U(c)]  # NaN if one is: `exp_of_minus` would hide it
    for c in range(outputs):
        scores[at + U(c)] = exp_of_minus(top - scores[at + U(c)])
    for c in range(outputs):
        total += scores[at + U(c)]
    for c in range(outputs):
        scores[at + U(c)] = scores[at + U(c)] / total - (1.0 if c == target else 0.0)


@helper
def clipped(factor: float, length: float, clip: float) -> float:
    """The factor of a vector of this length, or what makes it as long as the clip if it is longer.

    0 where the length is not finite.
    """
    size = abs(factor) * length
    if size <= clip:
        return factor
    return factor * (clip / size) if size < np.inf else 0.0


@inlined
def find_gradient(
    rows: Array, columns: Array, starts: Array, targets: Array, weights: Array, offsets: Array,
    node: Index, uniforms: Array, first_pick: Index, batch: int, loss: int, parameter: float,
    width: Index, outputs: int, form: tuple[int, ...], models: Array, at: Index, gradient: Array,
    scores: Array, lengths: Array, clip: float,
) -> None:  # fmt: skip
    """The part of ∇f_i(w) that depends on the rows: all of the node's, or those picked.

    The model begins at models[at], the numbers that pick rows at uniforms[first_pick]. With a
    clip above 0 no row adds more than that; lengths: ‖x‖ of each row.
    """
    first = offsets[node]
    count = offsets[node + U(1)] - first
    picked = 0 < batch < count
    steps, share = (batch, count / batch) if picked else (count, 1.0)
    for a in range(width * U(outputs)):
        gradient[U(a)] = 0.0
    for step in range(steps):
        row = row_at(step, first, count, picked, uniforms, first_pick)
        weight = share * weights[row]
        if len(form) % 2 == 0:
            for c in range(outputs):
                of_class = at + U(c) * width
                scores[U(c)] = score_of(rows, columns, starts, row, width, form, models, of_class)
            to_slopes(scores, U(0), outputs, targets[row])
            if clip > 0.0:
                squares = 0.0
                for c in range(outputs):
                    squares += scores[U(c)] * scores[U(c)]
                weight = clipped(weight, np.sqrt(squares) * lengths[row], clip)
            for c in range(outputs):
                push, to = weight * scores[U(c)] if weight != 0.0 else 0.0, U(c) * width
                add_row(rows, columns, starts, row, width, form, push, gradient, to)
        else:
            score = score_of(rows, columns, starts, row, width, form, models, at)
            push = weight * slope_of(loss, parameter, score, targets[row])
            if clip > 0.0:
                push = clipped(push, lengths[row], clip)
            add_row(rows, columns, starts, row, width, form, push, gradient, U(0))


@inlined
def descend(
    gamma: float, step_length: float, penalty: float, low: float, high: float, radius: float,
    size: Index, models: Array, sums: Array, at: Index, gradient: Array,
) -> None:  # fmt: skip
    """sum += γ w, then w ← Π_W(w − step_length · (gradient + λw)), for any domain."""
    keep = 1.0 - step_length * penalty
    boxed = low > -np.inf
    squared_norm = 0.0
    for a in range(size):
        w = models[at + U(a)]
        sums[at + U(a)] += gamma * w
        w = keep * w - step_length * gradient[U(a)]
        if boxed:
            w = min(max(w, low), high)
        models[at + U(a)] = w
        squared_norm += w * w
    if squared_norm > radius * radius:
        shrink = radius / np.sqrt(squared_norm)
        for a in range(size):
            models[at + U(a)] *= shrink
