"""Updates along paths over sparse rows, at the cost of their entries that are not 0.

A step changes all of w: the penalty shrinks it, the ball may, and the average takes it in. So
these are kept as factors. A model is w = a·v, and what goes into the average is Σγw = u + s·v:

    Σγw += γ w                s += γ a
    w ← keep·w − push·x       a ← keep·a,  v += δ,  u −= s·δ    with δ = −(push / a)·x
    w ← Π(w)                  a ← a·radius / ‖w‖                with ‖w‖² = a²‖v‖²

and ‖v‖² follows the entries of v that change. Now and then, and before a gets too small or too
large to divide by, v takes its factors in (`_settle`).
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from walklearn.simulation.compiled.arithmetic import Array, Index, U, prefetch, slope_of
from walklearn.simulation.compiled.cached import inlined, kernel
from walklearn.simulation.compiled.paths import Records, Tokens
from walklearn.simulation.compiled.rows import Data, row_at, score_of, to_slopes
from walklearn.simulation.compiled.walks import AHEAD

SMALLEST, LARGEST = 1e-6, 1e6  # of a, or digits get lost
LINE = 16  # columns in a line of the cache; of the entries themselves half as many
SETTLE_EVERY = 10_000  # visits, or as many as a model has numbers


class Factors(NamedTuple):
    """What `update_sparse` keeps beside the tokens, whose `shrink` is a, `models` v, `sums` u."""

    shares: Array  # s
    squared_norms: Array  # ‖v‖²


@inlined
def _settle(
    models: Array, sums: Array, at: Index, size: Index, factor: float, share: float
) -> float:
    """v takes in its factor, u the share of v; the new ‖v‖²."""
    squared_norm = 0.0
    for a in range(size):
        v = models[at + U(a)]
        sums[at + U(a)] += share * v
        v *= factor
        models[at + U(a)] = v
        squared_norm += v * v
    return squared_norm


@inlined
def ask_for(
    path: Array, b: Index, k: Index, steps: Index, offsets: Array, starts: Array, rows: Array,
    columns: Array, targets: Array, weights: Array,
) -> None:  # fmt: skip
    """Fetch into the cache the first row of a node that comes a few hops later.

    Near the end that is the last node of the path, not a branch: see `paths.hop`.
    """
    later = U(path[b, min(k + U(2 * AHEAD), steps)])
    prefetch(offsets, later)
    prefetch(starts, U(offsets[U(path[b, min(k + U(AHEAD + 1), steps)])]))
    row = min(U(offsets[U(path[b, min(k + U(AHEAD), steps)])]), U(targets.size - 1))
    prefetch(targets, row)
    prefetch(weights, row)
    for p in range(U(starts[row]), U(starts[row + U(1)]), U(LINE)):
        prefetch(rows, U(p))
        prefetch(rows, U(p) + U(LINE // 2))
        prefetch(columns, U(p))


@kernel
def update_sparse(
    path: Array, scale: Array, inverses: Array, data: Data, tokens: Tokens, gammas: Array,
    done: int, records: Records, uniforms: Array, walk_draws: int, factors_of: Factors,
) -> None:  # fmt: skip
    """Let every node of a path update the model, in a ball or everywhere."""
    steps, width, outputs, form = gammas.size, U(data.dimension), data.outputs, data.form
    size = width * U(outputs)
    rows, columns, starts = data.rows, data.columns, data.starts
    targets, weights, offsets = data.targets, data.weights, data.offsets
    batch, loss, parameter, penalty = data.batch, data.loss, data.loss_parameter, data.penalty
    radius = data.radius
    models, sums, shrink, visits = tokens.models, tokens.sums, tokens.shrink, tokens.visits
    shares, squared_norms = factors_of.shares, factors_of.squared_norms
    after, kept_models, kept_sums = records.after, records.models, records.sums
    factors = scale.reshape(-1)
    of_token = U(scale.shape[1] if scale.shape[0] > 1 else 0)
    drawn, draws, skipped = uniforms.reshape(-1), U(uniforms.shape[2]), U(walk_draws)
    slopes = np.empty(np.diff(offsets).max() * outputs, dtype=np.float64)
    settle_every = max(SETTLE_EVERY, data.dimension * outputs)
    for token in range(path.shape[0]):
        b = U(token)
        at, record = b * size, 0
        for t in range(steps):
            k = U(t)
            i = U(path[b, k])
            ask_for(path, b, k, U(steps), offsets, starts, rows, columns, targets, weights)
            visits[i] += 1
            first = offsets[i]
            count = offsets[i + U(1)] - first
            picked = 0 < batch < count
            looks, share = (batch, count / batch) if picked else (count, 1.0)
            first_pick = (b * U(steps) + k) * draws + skipped
            a = shrink[b]
            for look in range(looks):
                row = row_at(look, first, count, picked, drawn, first_pick)
                place = U(look) * U(outputs)
                for c in range(outputs):
                    of_class = at + U(c) * width
                    slopes[place + U(c)] = a * score_of(
                        rows, columns, starts, row, width, form, models, of_class
                    )
                if len(form) % 2 == 0:
                    to_slopes(slopes, place, outputs, targets[row])
                else:
                    slopes[place] = slope_of(loss, parameter, slopes[place], targets[row])
            factor = factors[b * of_token + i]
            if inverses.size:
                inverses[b] += factor
                factor *= (done + t + 1) / inverses[b]
            step_length = gammas[k] * factor
            shares[b] += gammas[k] * a
            a *= 1.0 - step_length * penalty
            if not SMALLEST < abs(a) < LARGEST or (done + t + 1) % settle_every == 0:
                squared_norms[b] = _settle(models, sums, at, size, a, shares[b])
                shares[b], a = 0.0, 1.0
            s, squared_norm = shares[b], squared_norms[b]
            for look in range(looks):
                row = row_at(look, first, count, picked, drawn, first_pick)
                for c in range(outputs):
                    slope = slopes[U(look) * U(outputs) + U(c)]
                    push = -step_length * share * weights[row] * slope / a
                    of_class = at + U(c) * width
                    for p in range(U(starts[row]), U(starts[row + U(1)])):
                        place = of_class + U(columns[U(p)])
                        v = np.float64(models[place])
                        models[place] = v + push * rows[U(p)]
                        change = models[place] - v  # as it was stored, in single precision too
                        sums[place] -= s * change
                        squared_norm += change * (2.0 * v + change)
            squared_norms[b] = max(squared_norm, 0.0)
            outside = a * a * squared_norm
            if outside > radius * radius:
                a *= radius / np.sqrt(outside)
            shrink[b] = a
            if record < after.size and after[record] == t + 1:
                for each in range(size):
                    v = models[at + U(each)]
                    kept_models[record, token, each] = a * v
                    kept_sums[record, token, each] = sums[at + U(each)] + s * v
                record += 1
