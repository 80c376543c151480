"""Updates that remember gradients, along paths: the twins of `updates.memory`.

A token's s takes the place of its Σγw. One dense row per node, where all of a step is one pass over
w and s, which sums up the next row's score as well, is for `remember_near_rows` while all rows fit
the cache, with the hops on the way, else for `remember_one_row`; `remember_rows` is for any rows,
picked or not, sparse ones with all their zeros. One sparse row per node is the matter of
`sparse_memory`.

A step is w ← Π((1 − γλ)w − γ·change − q·s), where change is g − h_i and q = (1 − unseen)γ/n.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from walklearn.simulation.compiled.arithmetic import (
    Array,
    Index,
    U,
    next_uniform,
    prefetch,
    slope_of,
    value_of,
)
from walklearn.simulation.compiled.cached import inlined, kernel
from walklearn.simulation.compiled.found_step import (
    ROUNDING,
    SHARE,
    SLACK,
    decay_of,
    decayed,
    pace_of,
    raised_curvature,
)
from walklearn.simulation.compiled.paths import Chain, Records, Tokens, hop
from walklearn.simulation.compiled.rows import Data, add_row, row_at, score_of, to_slopes
from walklearn.simulation.compiled.walks import AHEAD


class Memory(NamedTuple):
    """What tokens carry beside w and s, and what nodes keep, changed in place.

    squares: c_r ‖x_r‖² of each row; smoothness: β. Their product bounds a row's curvature.
    kept: for one row per node slope and last visit of each, side by side; for
    `remember_rows` all slopes, of which those of rows not seen are NaN.
    """

    nodes: Array  # n of each token
    ages: Array  # Σa
    squared_ages: Array  # Σa²
    curvatures: Array  # L̂
    wait: Array  # how many nodes have to be seen before w moves
    kept: Array  # (tokens · …,), flat
    updated: Array  # (tokens · nodes,), the last visits; empty for one row per node
    squares: Array
    smoothness: float
    step: float  # γ; 0 where it is found


@inlined
def _step(
    models: Array, sums: Array, at: Index, rows: Array, row: Index, following: Index, size: Index,
    keep: float, push: float, pull: float, change: float, low: float, high: float,
) -> tuple[float, float]:  # fmt: skip
    """Move w to keep·w − push·x − pull·s within a box, and s by change·x: ‖w‖², and the next score.

    The next row is known, so its score is summed in the same pass.
    """
    squared_norm, score = 0.0, 0.0
    boxed = low > -np.inf
    for a in range(size):
        s, x = sums[at + U(a)], rows[row + U(a)]
        w = keep * models[at + U(a)] - push * x - pull * s
        sums[at + U(a)] = s + change * x
        if boxed:
            w = min(max(w, low), high)
        models[at + U(a)] = w
        squared_norm += w * w
        score += w * rows[following + U(a)]
    return squared_norm, score


@kernel
def remember_near_rows(
    chain: Chain, uniforms: Array, streams: Array, data: Data, tokens: Tokens, memory: Memory,
    done: int, records: Records,
) -> None:  # fmt: skip
    """Let every token hop, and every node it comes to update it by its one dense row.

    As in `walks.walk_short_rows`, the next hop is found while an update waits for its slope.
    """
    count, steps, draws = uniforms.shape
    indptr, indices, law = chain.indptr, chain.indices, chain.score.reshape(-1)
    kind, laziness, jumping = len(chain.kind), chain.laziness, chain.jump_probability
    stops, counts, alpha, own = chain.jump_stops, tokens.counts, chain.alpha, streams.size > 0
    nodes, size = U(chain.score.shape[1]), U(data.dimension)
    of_token = nodes if chain.score.shape[0] > 1 else U(0)
    rows, targets, weights = data.rows, data.targets, data.weights
    penalty, loss, parameter = data.penalty, data.loss, data.loss_parameter
    low, high, radius = data.low, data.high, data.radius
    models, sums, visits = tokens.models, tokens.sums, tokens.visits
    after, kept_models = records.after, records.models
    sent_by, asked_by = records.messages, records.questions
    kept, squares, given = memory.kept, memory.squares, memory.step
    decay = np.log(2.0) / nodes
    for token in range(count):
        b = U(token)
        at, line, record = b * size, b * of_token, 0
        i, previous, score = U(tokens.nodes[b]), U(tokens.previous[b]), tokens.scores[b]
        shrink, messages, questions = tokens.shrink[b], tokens.messages[b], tokens.questions[b]
        n, ages, squared_ages = memory.nodes[b], memory.ages[b], memory.squared_ages[b]
        curvature, wait, inverse = memory.curvatures[b], memory.wait[b], 1.0 / max(n, 1.0)
        for t in range(steps):
            k, now = U(t), np.float64(done + t + 1)
            for d in range(draws if own else 0):
                uniforms[b, k, d] = next_uniform(streams[b, i])
            j, sent, asked = hop(
                kind, indptr, indices, law, line, nodes, i, previous, uniforms, b, k, jumping,
                laziness, stops, counts, alpha,
            )  # fmt: skip
            messages += sent
            questions += asked
            visits[i] += 1
            place = U(2) * (b * nodes + i)
            before, last = kept[place], kept[place + U(1)]
            first = last == 0.0
            if first:
                before = 0.0
                n += 1.0
                inverse = 1.0 / n
            else:
                ages += now - last
                squared_ages += (now - last) * (now - last)
            weight, target = weights[i], targets[i]
            slope = slope_of(loss, parameter, score, target)
            kept[place], kept[place + U(1)] = slope, now
            gamma = given
            if given == 0.0:
                pace = pace_of(n, ages, squared_ages)
                curvature = raised_curvature(
                    decayed(curvature, pace, decay), loss, parameter, score, target, slope, weight,
                    squares[i],
                )  # fmt: skip
                total = curvature + penalty
                gamma = pace * SHARE / total if total > 0.0 else 0.0
            if n < wait:
                gamma = 0.0
            change = weight * (slope - before)
            push, pull = gamma * change, 0.0 if first else gamma * inverse
            squared_norm, score = _step(
                models, sums, at, rows, i * size, j * size, size, (1.0 - gamma * penalty) * shrink,
                push, pull, change, low, high,
            )  # fmt: skip
            shrink = 1.0
            if squared_norm > radius * radius:
                shrink = radius / np.sqrt(squared_norm)
            score *= shrink
            if j != i:
                previous = i
            i = j
            if record < after.size and after[record] == t + 1:
                sent_by[record, b], asked_by[record, b] = messages, questions
                for a in range(size):
                    kept_models[record, b, a] = shrink * models[at + U(a)]
                record += 1
        tokens.nodes[b], tokens.previous[b], tokens.scores[b] = i, previous, score
        tokens.shrink[b], tokens.messages[b], tokens.questions[b] = shrink, messages, questions
        memory.nodes[b], memory.ages[b], memory.squared_ages[b] = n, ages, squared_ages
        memory.curvatures[b] = curvature


@kernel
def remember_one_row(
    path: Array, data: Data, tokens: Tokens, memory: Memory, done: int, records: Records,
    group: int,
) -> None:  # fmt: skip
    """Let every node of a path update the model, where each has one dense row and one score.

    For rows that do not fit the cache, and are asked for ahead.
    """
    count, steps, size = path.shape[0], path.shape[1] - 1, U(data.dimension)
    rows, targets, weights = data.rows, data.targets, data.weights
    models, sums, scores, shrink = tokens.models, tokens.sums, tokens.scores, tokens.shrink
    visits, after, kept_models = tokens.visits, records.after, records.models
    penalty, loss, parameter = data.penalty, data.loss, data.loss_parameter
    low, high, radius = data.low, data.high, data.radius
    seen, ages, squared_ages = memory.nodes, memory.ages, memory.squared_ages
    curvatures, wait, kept, squares = memory.curvatures, memory.wait, memory.kept, memory.squares
    given, nodes = memory.step, U(data.offsets.size - 1)
    decay = np.log(2.0) / nodes
    lasts, paces = np.empty(group), np.ones(group)
    for begin in range(0, count, group):
        end = min(count, begin + group)
        record = 0
        for t in range(steps):
            now = np.float64(done + t + 1)
            for token in range(begin, end):  # what does not wait for a score
                b, turn = U(token), U(token - begin)
                i = U(path[b, U(t)])
                ahead = U(path[b, U(min(t + AHEAD, steps))])
                prefetch(targets, ahead)
                prefetch(visits, ahead)
                prefetch(weights, ahead)
                prefetch(squares, ahead)
                prefetch(kept, U(2) * (b * nodes + ahead))
                prefetch(rows, ahead * size)
                prefetch(rows, ahead * size + U(8))
                visits[i] += 1
                place = U(2) * (b * nodes + i) + U(1)
                last = kept[place]
                kept[place], lasts[turn] = now, last
                if last == 0.0:
                    seen[b] += 1.0
                else:
                    ages[b] += now - last
                    squared_ages[b] += (now - last) * (now - last)
                if given == 0.0:
                    paces[turn] = pace_of(seen[b], ages[b], squared_ages[b])
                    curvatures[b] = decayed(curvatures[b], paces[turn], decay)
            for token in range(begin, end):
                b, turn = U(token), U(token - begin)
                i, j = U(path[b, U(t)]), U(path[b, U(t + 1)])
                place = U(2) * (b * nodes + i)
                weight, target, score, n = weights[i], targets[i], scores[b], seen[b]
                slope, first = slope_of(loss, parameter, score, target), lasts[turn] == 0.0
                before = 0.0 if first else kept[place]
                kept[place] = slope
                gamma = given
                if given == 0.0:
                    curvature = raised_curvature(
                        curvatures[b], loss, parameter, score, target, slope, weight, squares[i]
                    )
                    curvatures[b] = curvature
                    total = curvature + penalty
                    gamma = paces[turn] * SHARE / total if total > 0.0 else 0.0
                if n < wait[b]:
                    gamma = 0.0
                change = weight * (slope - before)
                push, pull = gamma * change, 0.0 if first else gamma * (1.0 / n)
                keep = (1.0 - gamma * penalty) * shrink[b]
                at, row, following = b * size, i * size, j * size
                squared_norm, next_score = _step(
                    models, sums, at, rows, row, following, size, keep, push, pull, change, low,
                    high,
                )  # fmt: skip
                inside = 1.0
                if squared_norm > radius * radius:
                    inside = radius / np.sqrt(squared_norm)
                shrink[b] = inside
                scores[b] = next_score * inside
            if record < after.size and after[record] == t + 1:
                for each in range(begin, end):
                    at = U(each) * size
                    for a in range(size):
                        kept_models[record, each, a] = shrink[each] * models[at + U(a)]
                record += 1


@inlined
def row_value(
    loss: int, parameter: float, scores: Array, along: Array, step: float, at: Index, outputs: int,
    target: float, form: tuple[int, ...],
) -> float:  # fmt: skip
    """ℓ at the scores, from scores[at] on, less step · along."""
    if len(form) % 2 == 0:
        top, total = -np.inf, 0.0
        for c in range(outputs):
            top = max(top, scores[at + U(c)] - step * along[at + U(c)])
        for c in range(outputs):
            total += np.exp(scores[at + U(c)] - step * along[at + U(c)] - top)
        own = at + U(np.int64(target))
        value = np.log(total) + (top - (scores[own] - step * along[own]))
    else:
        value = value_of(loss, parameter, scores[at] - step * along[at], target)
    return value


@kernel
def remember_rows(
    path: Array, data: Data, tokens: Tokens, memory: Memory, done: int, records: Records,
    uniforms: Array, walk_draws: int,
) -> None:  # fmt: skip
    """Let every node of a path update the model, whatever its rows."""
    steps, width, outputs, form = path.shape[1] - 1, U(data.dimension), data.outputs, data.form
    size, classes = width * U(outputs), U(outputs)
    rows, columns, starts = data.rows, data.columns, data.starts
    targets, weights, offsets = data.targets, data.weights, data.offsets
    batch, loss, parameter, penalty = data.batch, data.loss, data.loss_parameter, data.penalty
    low, high, boxed, radius = data.low, data.high, data.low > -np.inf, data.radius
    models, sums, visits = tokens.models, tokens.sums, tokens.visits
    after, kept_models = records.after, records.models
    seen, ages, squared_ages = memory.nodes, memory.ages, memory.squared_ages
    curvatures, wait, kept, squares = memory.curvatures, memory.wait, memory.kept, memory.squares
    updated, given, smoothness = memory.updated, memory.step, memory.smoothness
    nodes, row_count = U(offsets.size - 1), U(targets.size)
    most = np.diff(offsets).max() * outputs
    scores, slopes, along = np.empty(most), np.empty(most), np.zeros(most)
    gradient, correction = np.empty(size), np.empty(size)
    change = np.empty(size)
    drawn, draws, skipped = uniforms.reshape(-1), U(uniforms.shape[2]), U(walk_draws)
    for token in range(path.shape[0]):
        b = U(token)
        at, record = b * size, 0
        for t in range(steps):
            k = U(t)
            i = U(path[b, k])
            visits[i] += 1
            first = offsets[i]
            count = offsets[i + U(1)] - first
            picked = 0 < batch < count
            looks, share = (batch, count / batch) if picked else (count, 1.0)
            pick = (b * U(steps) + k) * draws + skipped
            last, now = updated[b * nodes + i], np.float64(done + t + 1)
            updated[b * nodes + i] = now
            for a in range(size):
                gradient[a] = 0.0
                correction[a] = 0.0
            unseen, bound = 0.0, 0.0
            for look in range(looks):  # what the rows say beside what is kept of them
                row, place = row_at(look, first, count, picked, drawn, pick), U(look) * classes
                for c in range(outputs):
                    scores[place + U(c)] = score_of(
                        rows, columns, starts, row, width, form, models, at + U(c) * width
                    )
                    slopes[place + U(c)] = scores[place + U(c)]
                if len(form) % 2 == 0:
                    to_slopes(slopes, place, outputs, targets[row])
                else:
                    slopes[place] = slope_of(loss, parameter, slopes[place], targets[row])
                bound += share * smoothness * squares[row]
                known = (b * row_count + row) * classes
                unseen += 1.0 if np.isnan(kept[known]) else 0.0
                for c in range(outputs):
                    slope, before = slopes[place + U(c)], kept[known + U(c)]
                    differs = slope - (0.0 if np.isnan(before) else before)
                    weight, to = share * weights[row], U(c) * width
                    if given == 0.0:
                        add_row(
                            rows, columns, starts, row, width, form, weight * slope, gradient, to
                        )
                    add_row(
                        rows, columns, starts, row, width, form, weight * differs, correction, to
                    )
            new = 1.0 if count == 0 and last == 0.0 else 0.0
            for a in range(size):
                change[a] = 0.0 if picked else correction[a]
            for look in range(looks):  # what is kept from now on; a row picked twice changes once
                row, place = row_at(look, first, count, picked, drawn, pick), U(look) * classes
                known = (b * row_count + row) * classes
                new += 1.0 / count if np.isnan(kept[known]) else 0.0
                for c in range(outputs):
                    slope, before = slopes[place + U(c)], kept[known + U(c)]
                    differs = slope - (0.0 if np.isnan(before) else before)
                    kept[known + U(c)] = slope
                    if picked:
                        push, to = weights[row] * differs, U(c) * width
                        add_row(rows, columns, starts, row, width, form, push, change, to)
            seen[b] += new
            if last > 0.0:
                ages[b] += now - last
                squared_ages[b] += (now - last) * (now - last)
            n, gamma = seen[b], given
            if given == 0.0:
                pace = pace_of(n, ages[b], squared_ages[b])
                decay = decay_of(offsets.size - 1, count, looks, ages[b] / n)
                curvature = decayed(curvatures[b], pace, decay)
                if curvature < bound:
                    squared_norm, value = 0.0, 0.0
                    for a in range(size):
                        squared_norm += gradient[a] * gradient[a]
                    for look in range(looks):
                        row = row_at(look, first, count, picked, drawn, pick)
                        place = U(look) * classes
                        for c in range(outputs):
                            along[place + U(c)] = score_of(
                                rows, columns, starts, row, width, form, gradient, U(c) * width
                            )
                        value += (
                            share
                            * weights[row]
                            * row_value(
                                loss,
                                parameter,
                                scores,
                                along,
                                0.0,
                                place,
                                outputs,
                                targets[row],
                                form,
                            )
                        )
                    if 0.0 < squared_norm < np.inf and value > 0.0:
                        if curvature == 0.0:
                            curvature = squared_norm / (2.0 * value)
                        fall = squared_norm / (2.0 * curvature)
                        while fall > ROUNDING * value:
                            trial = 0.0
                            for look in range(looks):
                                row = row_at(look, first, count, picked, drawn, pick)
                                trial += share * weights[row] * row_value(
                                    loss, parameter, scores, along, 1.0 / curvature,
                                    U(look) * classes, outputs, targets[row], form,
                                )  # fmt: skip
                            if trial <= value - (1.0 - SLACK) * fall:
                                break
                            curvature *= 2.0
                            fall *= 0.5
                curvatures[b] = curvature
                total = curvature + penalty
                gamma = pace * SHARE / total if total > 0.0 else 0.0
            if n < wait[b]:
                gamma = 0.0
            known_share = 1.0 - unseen / max(looks, 1)
            keep, mean, squared_norm = 1.0 - gamma * penalty, gamma / n, 0.0
            for a in range(size):
                w, s = models[at + a], sums[at + a]
                sums[at + a] = s + change[a]
                w = keep * w - gamma * correction[a] - known_share * mean * s
                if boxed:
                    w = min(max(w, low), high)
                models[at + a] = w
                squared_norm += w * w
            if squared_norm > radius * radius:
                inside = radius / np.sqrt(squared_norm)
                for a in range(size):
                    models[at + a] *= inside
            if record < after.size and after[record] == t + 1:
                for a in range(size):
                    kept_models[record, token, a] = models[at + a]
                record += 1
