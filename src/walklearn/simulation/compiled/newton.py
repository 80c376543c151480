"""Newton along paths: the twin of `updates.newton`."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from walklearn.simulation.compiled.arithmetic import (
    HUBER,
    LOGISTIC,
    SOFTMAX,
    Array,
    U,
    slope_of,
)
from walklearn.simulation.compiled.cached import helper, kernel
from walklearn.simulation.compiled.paths import Records, Tokens
from walklearn.simulation.compiled.rows import Data, add_row, row_at, score_of, to_slopes

MOST_ITERATIONS, CLOSE = 50, 1e-14  # as in `updates.newton`


class Parabolas(NamedTuple):
    """What tokens carry beside w, whose b is in their `sums`, and what nodes keep."""

    inverses: Array  # (tokens, d, d), A⁻¹ of each
    kept: Array  # (tokens, rows, 1 + classes)


@helper
def majorant_of(loss: int, parameter: float, score: float, target: float) -> float:
    """κ; see `losses`."""
    if loss == LOGISTIC:
        half = max(0.5 * abs(score), 1e-8)
        return 0.25 * np.tanh(half) / half
    if loss == HUBER:
        return parameter / max(abs(score - target), parameter)
    return 0.5 if loss == SOFTMAX else 1.0


@helper
def _inside(inverse: Array, right_side: Array, radius: float) -> Array:
    """The minimum over the ball; see `updates.newton`."""
    lengths, directions = np.linalg.eigh(inverse)
    parts = right_side @ directions
    squares = np.zeros(lengths.size)
    for line in parts:
        squares += line * line
    mu = 0.0
    for _ in range(MOST_ITERATIONS):
        shrunk = lengths / (1.0 + mu * lengths)
        norm = np.sqrt((squares * shrunk**2).sum())
        if norm <= radius * (1.0 + CLOSE):
            break
        mu += (norm / radius - 1.0) * norm**2 / (squares * shrunk**3).sum()
    return (parts * (lengths / (1.0 + mu * lengths))) @ np.ascontiguousarray(directions.T)


@kernel
def minimise_along(
    path: Array, data: Data, tokens: Tokens, parabolas: Parabolas, records: Records,
    uniforms: Array, walk_draws: int,
) -> None:  # fmt: skip
    """Let every node of a path move its parabolas, and w be the minimum of all."""
    steps, width, outputs, form = path.shape[1] - 1, U(data.dimension), data.outputs, data.form
    size, classes, dimension = width * U(outputs), U(outputs), data.dimension
    rows, columns, starts = data.rows, data.columns, data.starts
    targets, weights, offsets = data.targets, data.weights, data.offsets
    batch, loss, parameter, radius = data.batch, data.loss, data.loss_parameter, data.radius
    models, sums, visits = tokens.models, tokens.sums, tokens.visits
    after, kept_models = records.after, records.models
    inverses, all_kept = parabolas.inverses, parabolas.kept
    node_count = offsets.size - 1
    most = np.diff(offsets).max() * outputs
    scores, slopes = np.empty(most), np.empty(most)
    x, v = np.empty(width), np.empty(width)
    drawn, draws, skipped = uniforms.reshape(-1), U(uniforms.shape[2]), U(walk_draws)
    for token in range(path.shape[0]):
        b = U(token)
        at, record = b * size, 0
        inverse, kept = inverses[b], all_kept[b]
        right_side = sums[at : at + size].reshape(outputs, dimension)
        for t in range(steps):
            k = U(t)
            i = U(path[b, k])
            visits[i] += 1
            first = offsets[i]
            count = offsets[i + U(1)] - first
            picked = 0 < batch < count
            looks = batch if picked else count
            pick = (b * U(steps) + k) * draws + skipped
            for look in range(looks):
                row, place = row_at(look, first, count, picked, drawn, pick), U(look) * classes
                for c in range(outputs):
                    score = score_of(
                        rows, columns, starts, row, width, form, models, at + U(c) * width
                    )
                    scores[place + U(c)] = score
                    slopes[place + U(c)] = score
                if len(form) % 2 == 0:
                    to_slopes(slopes, place, outputs, targets[row])
                else:
                    slopes[place] = slope_of(loss, parameter, slopes[place], targets[row])
            for look in range(looks):
                row, place = row_at(look, first, count, picked, drawn, pick), U(look) * classes
                weight = weights[row] / node_count
                kappa = majorant_of(loss, parameter, scores[place], targets[row])
                change = weight * (kappa - kept[row, U(0)])
                kept[row, U(0)] = kappa
                for a in range(width):
                    x[a] = 0.0
                add_row(rows, columns, starts, row, width, form, 1.0, x, U(0))
                if change != 0.0:
                    product = 0.0
                    for a in range(width):
                        total = 0.0
                        for c in range(width):
                            total += inverse[a, c] * x[c]
                        v[a] = total
                        product += total * x[a]
                    factor = change / (1.0 + change * product)
                    for a in range(width):
                        for c in range(width):
                            inverse[a, c] -= factor * v[a] * v[c]
                for c in range(outputs):
                    pull = kappa * scores[place + U(c)] - slopes[place + U(c)]
                    moved = weight * (pull - kept[row, U(c + 1)])
                    kept[row, U(c + 1)] = pull
                    for a in range(width):
                        sums[at + U(c) * width + a] += moved * x[a]
            squared_norm = 0.0
            for c in range(outputs):
                for a in range(width):
                    total = 0.0
                    for each in range(width):
                        total += sums[at + U(c) * width + each] * inverse[each, a]
                    models[at + U(c) * width + a] = total
                    squared_norm += total * total
            if squared_norm > radius * radius:
                minimum = _inside(inverse, right_side, radius)
                for c in range(outputs):
                    for a in range(width):
                        models[at + U(c) * width + a] = minimum[c, a]
            if record < after.size and after[record] == t + 1:
                for a in range(size):
                    kept_models[record, token, a] = models[at + a]
                record += 1
